/* A CUDA driver without a GPU, for tests: memory is the host's, copies happen at once, kernels do nothing.
 *
 * It polices its caller. Each rule below that is broken prints "VIOLATION: ..." on stderr:
 * - no work on the legacy default stream, and every stream non-blocking
 * - a context is current on the calling thread, whenever one is needed
 * - handles are live when used; nothing is freed or destroyed twice; nothing is left at the end
 * - no allocation, copy or set of zero bytes; copies stay inside one allocation
 *
 * Environment: FAKE_DEVICES (1), FAKE_VERSION (12080), FAKE_CAPABILITY (90), FAKE_POOLS (1), FAKE_MEMORY (1 MiB),
 * FAKE_BROKEN
 * (what is left of pinned memory goes with the context), and codes to answer: FAKE_INIT, FAKE_LOAD, FAKE_LAUNCH, FAKE_SYNC, FAKE_RETAIN. FAKE_TRACE prints each call.
 * FAKE_COMPILE: so many compilations have to be under way at once, or the first waits in vain.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned R;
typedef void *H;
enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread H current;

static long setting(const char *name, long otherwise) {
  const char *value = getenv(name);
  return value ? strtol(value, NULL, 10) : otherwise;
}
static void violation(const char *call, const char *what) { fprintf(stderr, "VIOLATION: %s: %s\n", call, what); }
static void trace(const char *call) {
  if (getenv("FAKE_TRACE")) fprintf(stderr, "CALL: %s\n", call);
}

/* Live things. Streams, events, modules, pools and allocations share one table. */
enum kind { FREE, STREAM, EVENT, MODULE, POOL, DEVICE_MEMORY, HOST_MEMORY };
static const char *const kinds[] = {"", "stream", "event", "module", "pool", "device allocation", "pinned allocation"};
static struct thing {
  enum kind kind;
  H handle;
  size_t bytes;
  H context;
} things[4096];
static size_t used;
static int contexts[16];

static struct thing *find(enum kind kind, H handle) {
  for (size_t i = 0; i < 4096; i++)
    if (things[i].kind == kind && things[i].handle == handle) return &things[i];
  return NULL;
}
static H add(enum kind kind, size_t bytes) {
  void *block = aligned_alloc(256, (bytes + 511) / 256 * 256);
  memset(block, 0xee, (bytes + 511) / 256 * 256);
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < 4096; i++)
    if (things[i].kind == FREE) {
      things[i] = (struct thing){kind, block, bytes, current};
      if (kind == DEVICE_MEMORY) used += bytes;
      break;
    }
  pthread_mutex_unlock(&lock);
  return block;
}
static R take(const char *call, enum kind kind, H handle) {
  pthread_mutex_lock(&lock);
  struct thing *thing = find(kind, handle);
  if (thing) {
    if (kind == DEVICE_MEMORY) used -= thing->bytes;
    thing->kind = FREE; /* the block itself is never reused, so stale handles stay distinct */
  }
  pthread_mutex_unlock(&lock);
  if (thing) return OK;
  violation(call, "the handle is not live: freed twice?");
  return INVALID_VALUE;
}
static void need(const char *call, enum kind kind, H handle) {
  pthread_mutex_lock(&lock);
  struct thing *thing = find(kind, handle);
  pthread_mutex_unlock(&lock);
  if (!thing) violation(call, kind == STREAM && !handle ? "the legacy default stream" : "the handle is not live");
}
static void need_range(const char *call, uint64_t address, size_t bytes) {
  int inside = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < 4096; i++) {
    uint64_t start = (uint64_t)things[i].handle;
    if (things[i].kind == DEVICE_MEMORY && address >= start && address + bytes <= start + things[i].bytes) inside = 1;
  }
  pthread_mutex_unlock(&lock);
  if (!inside) violation(call, "the range is not inside a live allocation");
  if (!bytes) violation(call, "zero bytes");
}
#define ENTER(name)                              \
  trace(name);                                   \
  if (!current) {                                \
    violation(name, "no context is current here"); \
    return INVALID_CONTEXT;                      \
  }

__attribute__((destructor)) static void leaks(void) {
  for (size_t i = 0; i < 4096; i++)
    if (things[i].kind != FREE) fprintf(stderr, "VIOLATION: at exit: a %s is left\n", kinds[things[i].kind]);
  for (int i = 0; i < 16; i++)
    if (contexts[i]) fprintf(stderr, "VIOLATION: at exit: context %d is retained %d times\n", i, contexts[i]);
  fprintf(stderr, "FAKE DRIVER: end\n");
}

R cuInit(unsigned flags) { return flags ? INVALID_VALUE : (R)setting("FAKE_INIT", OK); }
R cuDriverGetVersion(int *version) { return *version = (int)setting("FAKE_VERSION", 12080), OK; }
R cuGetErrorString(R code, const char **text) {
  if (code > 999) return INVALID_VALUE;
  *text = "words of the fake driver";
  return OK;
}
R cuDeviceGetCount(int *count) { return *count = (int)setting("FAKE_DEVICES", 1), OK; }
R cuDeviceGet(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= setting("FAKE_DEVICES", 1)) return INVALID_DEVICE;
  return *device = ordinal, OK;
}
R cuDeviceCanAccessPeer(int *can, int device, int peer) {
  if (device == peer) violation("cuDeviceCanAccessPeer", "one device twice");
  return *can = 1, OK;
}
R cuDeviceGetName(char *name, int length, int device) {
  return snprintf(name, (size_t)length, "Fake GPU %d", device), OK;
}
R cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  return *bytes = (size_t)setting("FAKE_MEMORY", 1 << 20), OK;
}
R cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  switch (attribute) {
  case 1: case 2: case 3: *value = 1024; break;
  case 4: *value = 64; break;
  case 5: *value = 0x7fffffff; break;
  case 6: case 7: *value = 65535; break;
  case 8: *value = 48 << 10; break;
  case 10: *value = 32; break;
  case 16: *value = 8; break;
  case 39: *value = 2048; break;
  case 75: *value = (int)setting("FAKE_CAPABILITY", 90) / 10; break;
  case 76: *value = (int)setting("FAKE_CAPABILITY", 90) % 10; break;
  case 81: *value = 228 << 10; break;
  case 97: *value = 227 << 10; break;
  case 106: *value = 32; break;
  case 111: *value = 1 << 10; break;
  case 115: *value = (int)setting("FAKE_POOLS", 1); break;
  default: *value = 1;
  }
  return OK;
}
R cuDevicePrimaryCtxRetain(H *context, int device) {
  R code = (R)setting("FAKE_RETAIN", OK);
  if (code) return code;
  contexts[device]++;
  *context = &contexts[device];
  return OK;
}
R cuDevicePrimaryCtxRelease_v2(int device) {
  trace("cuDevicePrimaryCtxRelease");
  if (contexts[device]-- <= 0) violation("cuDevicePrimaryCtxRelease", "never retained");
  if (setting("FAKE_BROKEN", 0)) /* a broken context takes along what could not be freed in it */
    for (size_t i = 0; i < 4096; i++)
      if (things[i].kind == HOST_MEMORY) things[i].kind = FREE;
  return OK;
}
R cuCtxSetCurrent(H context) { return current = context, OK; }
R cuCtxSynchronize(void) {
  ENTER("cuCtxSynchronize")
  return (R)setting("FAKE_SYNC", OK);
}

/* Compilations under way, for FAKE_COMPILE. */
static pthread_cond_t more_compile = PTHREAD_COND_INITIALIZER;
static long compiling;
static void compile_beside(long others) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 10;
  pthread_mutex_lock(&lock);
  compiling++;
  pthread_cond_broadcast(&more_compile);
  while (compiling < others)
    if (pthread_cond_timedwait(&more_compile, &lock, &limit)) {
      violation("cuLibraryLoadData", "too few at once");
      break;
    }
  pthread_mutex_unlock(&lock);
}

/* As the driver does: text that the compiler refuses leaves a log and a library, whose module is the error. */
R cuLibraryLoadData(H *library, const char *text, int *options, void **values, unsigned count, int *more, void **more_values, unsigned more_count) {
  ENTER("cuLibraryLoadData")
  if (more || more_values || more_count) violation("cuLibraryLoadData", "options of libraries");
  compile_beside(setting("FAKE_COMPILE", 1));
  for (unsigned i = 0; setting("FAKE_LOAD", OK) && i + 1 < count; i++)
    if (options[i] == 5 && options[i + 1] == 6)
      snprintf(values[i], (size_t)values[i + 1], "ptxas fake, line 1; error: %s", strstr(text, ".maxntid") ? "with bounds" : "plain");
  return *library = add(MODULE, 1), OK;
}
R cuLibraryGetModule(H *module, H library) {
  ENTER("cuLibraryGetModule")
  need("cuLibraryGetModule", MODULE, library);
  R code = (R)setting("FAKE_LOAD", OK);
  if (!code) *module = library;
  return code;
}
R cuLibraryUnload(H library) {
  trace("cuLibraryUnload");
  return take("cuLibraryUnload", MODULE, library);
}
R cuModuleGetFunction(H *function, H module, const char *name) {
  ENTER("cuModuleGetFunction")
  need("cuModuleGetFunction", MODULE, module);
  if (!strcmp(name, "absent")) return NOT_FOUND;
  return *function = module, OK;
}
R cuFuncGetAttribute(int *value, int attribute, H function) {
  ENTER("cuFuncGetAttribute")
  need("cuFuncGetAttribute", MODULE, function);
  *value = attribute == 0 ? 512 : attribute == 1 ? 1024 : attribute == 4 ? 40 : 0;
  return OK;
}
R cuFuncSetAttribute(H function, int attribute, int value) {
  ENTER("cuFuncSetAttribute")
  need("cuFuncSetAttribute", MODULE, function);
  if (attribute != 8 || value <= (47 << 10) || value > (226 << 10)) violation("cuFuncSetAttribute", "not needed");
  return OK;
}
R cuLaunchKernel(H function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                 unsigned shared, H stream, void **arguments, void **extra) {
  ENTER("cuLaunchKernel")
  need("cuLaunchKernel", MODULE, function);
  need("cuLaunchKernel", STREAM, stream);
  if (!gx || !gy || !gz || !bx || !by || !bz || bx * by * bz > 512 || shared > (226u << 10) || !arguments || extra)
    violation("cuLaunchKernel", "a shape that the driver refuses");
  return (R)setting("FAKE_LAUNCH", OK);
}
R cuLaunchCooperativeKernel(H function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared, H stream, void **arguments) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, 0);
}
R cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, H function, int threads, size_t shared) {
  ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor")
  need("cuOccupancy", MODULE, function);
  return *blocks = shared > (100 << 10) ? 1 : 2048 / threads, OK;
}

R cuStreamCreateWithPriority(H *stream, unsigned flags, int priority) {
  ENTER("cuStreamCreateWithPriority")
  (void)priority;
  if (flags != 1) violation("cuStreamCreateWithPriority", "not a non-blocking stream");
  return *stream = add(STREAM, 1), OK;
}
R cuStreamDestroy_v2(H stream) {
  ENTER("cuStreamDestroy")
  return take("cuStreamDestroy", STREAM, stream);
}
R cuStreamGetCtx(H stream, H *context) {
  ENTER("cuStreamGetCtx")
  need("cuStreamGetCtx", STREAM, stream);
  pthread_mutex_lock(&lock);
  struct thing *thing = find(STREAM, stream);
  *context = thing ? thing->context : NULL;
  pthread_mutex_unlock(&lock);
  return OK;
}
R cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
  ENTER("cuPointerGetAttribute")
  R code = INVALID_VALUE;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < 4096; i++) {
    uint64_t start = (uint64_t)things[i].handle;
    if (attribute == 9 && things[i].kind == DEVICE_MEMORY && address >= start && address < start + things[i].bytes) {
      *(int *)value = (int)((int *)things[i].context - contexts);
      code = OK;
    }
  }
  pthread_mutex_unlock(&lock);
  return code;
}
R cuStreamGetFlags(H stream, unsigned *flags) {
  ENTER("cuStreamGetFlags")
  need("cuStreamGetFlags", STREAM, stream);
  return *flags = 1, OK;
}
R cuStreamSynchronize(H stream) {
  ENTER("cuStreamSynchronize")
  need("cuStreamSynchronize", STREAM, stream);
  return (R)setting("FAKE_SYNC", OK);
}
R cuStreamQuery(H stream) {
  ENTER("cuStreamQuery")
  need("cuStreamQuery", STREAM, stream);
  return (R)setting("FAKE_SYNC", OK);
}
R cuStreamWaitEvent(H stream, H event, unsigned flags) {
  ENTER("cuStreamWaitEvent")
  (void)flags;
  need("cuStreamWaitEvent", STREAM, stream);
  need("cuStreamWaitEvent", EVENT, event);
  return OK;
}
R cuEventCreate(H *event, unsigned flags) {
  ENTER("cuEventCreate")
  (void)flags;
  return *event = add(EVENT, 1), OK;
}
R cuEventDestroy_v2(H event) {
  ENTER("cuEventDestroy")
  return take("cuEventDestroy", EVENT, event);
}
R cuEventRecord(H event, H stream) {
  ENTER("cuEventRecord")
  need("cuEventRecord", EVENT, event);
  need("cuEventRecord", STREAM, stream);
  return OK;
}
R cuEventQuery(H event) {
  ENTER("cuEventQuery")
  need("cuEventQuery", EVENT, event);
  return OK;
}
R cuEventSynchronize(H event) {
  ENTER("cuEventSynchronize")
  need("cuEventSynchronize", EVENT, event);
  return (R)setting("FAKE_SYNC", OK);
}
R cuEventElapsedTime(float *milliseconds, H start, H end) {
  ENTER("cuEventElapsedTime")
  need("cuEventElapsedTime", EVENT, start);
  need("cuEventElapsedTime", EVENT, end);
  return *milliseconds = 1.5f, OK;
}

static R allocate(const char *call, uint64_t *address, size_t bytes) {
  if (!bytes) violation(call, "zero bytes");
  if (bytes > (size_t)setting("FAKE_MEMORY", 1 << 20) - used) return OUT_OF_MEMORY;
  return *address = (uint64_t)add(DEVICE_MEMORY, bytes), OK;
}
R cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER("cuMemAlloc")
  return allocate("cuMemAlloc", address, bytes);
}
R cuMemFree_v2(uint64_t address) {
  ENTER("cuMemFree")
  return take("cuMemFree", DEVICE_MEMORY, (H)address);
}
R cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, H pool, H stream) {
  ENTER("cuMemAllocFromPoolAsync")
  need("cuMemAllocFromPoolAsync", POOL, pool);
  need("cuMemAllocFromPoolAsync", STREAM, stream);
  return allocate("cuMemAllocFromPoolAsync", address, bytes);
}
R cuMemFreeAsync(uint64_t address, H stream) {
  ENTER("cuMemFreeAsync")
  need("cuMemFreeAsync", STREAM, stream);
  return take("cuMemFreeAsync", DEVICE_MEMORY, (H)address);
}
R cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER("cuMemGetInfo")
  *total = (size_t)setting("FAKE_MEMORY", 1 << 20);
  *free_bytes = *total - used;
  return OK;
}
R cuMemPoolCreate(H *pool, const void *properties) {
  ENTER("cuMemPoolCreate")
  const int *words = properties;
  if (words[0] != 1 || words[2] != 1) return INVALID_VALUE;
  return *pool = add(POOL, 1), OK;
}
R cuMemPoolDestroy(H pool) {
  ENTER("cuMemPoolDestroy")
  return take("cuMemPoolDestroy", POOL, pool);
}
R cuMemPoolSetAttribute(H pool, int attribute, void *value) {
  ENTER("cuMemPoolSetAttribute")
  need("cuMemPoolSetAttribute", POOL, pool);
  return attribute == 4 && *(uint64_t *)value ? OK : INVALID_VALUE;
}
R cuMemPoolSetAccess(H pool, const void *access, size_t count) {
  ENTER("cuMemPoolSetAccess")
  need("cuMemPoolSetAccess", POOL, pool);
  const int *words = access;
  if (count != 1 || words[0] != 1 || words[2] != 3) violation("cuMemPoolSetAccess", "not one device that reads and writes");
  return OK;
}
R cuMemPoolGetAttribute(H pool, int attribute, void *value) {
  ENTER("cuMemPoolGetAttribute")
  need("cuMemPoolGetAttribute", POOL, pool);
  (void)attribute;
  return *(uint64_t *)value = used, OK;
}
R cuMemPoolTrimTo(H pool, size_t keep) {
  ENTER("cuMemPoolTrimTo")
  (void)keep;
  need("cuMemPoolTrimTo", POOL, pool);
  return OK;
}
R cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  ENTER("cuMemHostAlloc")
  if (!bytes) violation("cuMemHostAlloc", "zero bytes");
  if (flags != 1) violation("cuMemHostAlloc", "not portable");
  if (bytes > (size_t)setting("FAKE_MEMORY", 1 << 20)) return OUT_OF_MEMORY;
  return *pointer = add(HOST_MEMORY, bytes), OK;
}
R cuMemFreeHost(void *pointer) {
  ENTER("cuMemFreeHost")
  return take("cuMemFreeHost", HOST_MEMORY, pointer);
}

R cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, H stream) {
  ENTER("cuMemcpyHtoDAsync")
  need("cuMemcpyHtoDAsync", STREAM, stream);
  need_range("cuMemcpyHtoDAsync", to, bytes);
  return memcpy((void *)to, from, bytes), OK;
}
R cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, H stream) {
  ENTER("cuMemcpyDtoHAsync")
  need("cuMemcpyDtoHAsync", STREAM, stream);
  need_range("cuMemcpyDtoHAsync", from, bytes);
  return memcpy(to, (void *)from, bytes), OK;
}
R cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, H stream) {
  ENTER("cuMemcpyDtoDAsync")
  need("cuMemcpyDtoDAsync", STREAM, stream);
  need_range("cuMemcpyDtoDAsync", to, bytes);
  need_range("cuMemcpyDtoDAsync", from, bytes);
  return memmove((void *)to, (void *)from, bytes), OK;
}
R cuMemcpyPeerAsync(uint64_t to, H to_context, uint64_t from, H from_context, size_t bytes, H stream) {
  ENTER("cuMemcpyPeerAsync")
  need("cuMemcpyPeerAsync", STREAM, stream);
  if (to_context == from_context) violation("cuMemcpyPeerAsync", "one context twice");
  need_range("cuMemcpyPeerAsync", to, bytes);
  need_range("cuMemcpyPeerAsync", from, bytes);
  return memmove((void *)to, (void *)from, bytes), OK;
}
R cuMemsetD8Async(uint64_t to, unsigned char byte, size_t count, H stream) {
  ENTER("cuMemsetD8Async")
  need("cuMemsetD8Async", STREAM, stream);
  need_range("cuMemsetD8Async", to, count);
  return memset((void *)to, byte, count), OK;
}
R cuMemsetD32Async(uint64_t to, unsigned word, size_t count, H stream) {
  ENTER("cuMemsetD32Async")
  need("cuMemsetD32Async", STREAM, stream);
  need_range("cuMemsetD32Async", to, count * 4);
  for (size_t i = 0; i < count; i++) ((uint32_t *)to)[i] = word;
  return OK;
}

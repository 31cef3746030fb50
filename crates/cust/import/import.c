/* The C half of the delay-loading import library; build.rs generates the trampolines and the tables.
 *
 * `warpset_cuda_resolve` runs on the first call of each driver function. Threads may race in it: opening
 * the library twice only counts a reference, and both store the same address, so no lock is needed.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))

#include "symbols.inc" /* SYMBOL_COUNT, RAW_FIRST, symbol_names */

#define NO_DEVICE 100                 /* what a machine without a driver answers */
#define CALL_REQUIRES_NEWER_DRIVER 36 /* for callers that take the code as a plain integer */
#define NOT_FOUND 500                 /* the same, for callers whose enumeration ends at CUDA 11.4 */
#define UNKNOWN 999

HIDDEN void *warpset_cuda_slots[SYMBOL_COUNT];

static unsigned no_driver(void) { return NO_DEVICE; }
static unsigned no_function_raw(void) { return CALL_REQUIRES_NEWER_DRIVER; }
static unsigned no_function_bound(void) { return NOT_FOUND; }

static void *library;      /* NULL: not tried, FAILED: no driver here, else the handle */
static char failure[256];  /* the loader's words, valid once `library` is FAILED */
#define FAILED ((void *)(intptr_t)-1)

static void keep_reason(void) {
  static int taken;
  const char *words = dlerror();
  /* One thread writes; the others see the text at the latest when they read FAILED after it is published. */
  if (!__atomic_exchange_n(&taken, 1, __ATOMIC_ACQ_REL)) {
    size_t i = 0;
    for (; words && words[i] && i + 1 < sizeof failure; i++) failure[i] = words[i];
    failure[i] = 0;
    __atomic_store_n(&library, FAILED, __ATOMIC_RELEASE);
  }
}

static void *open_library(void) {
  void *handle = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
  if (handle) return handle == FAILED ? NULL : handle;
  handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    keep_reason();
    return NULL;
  }
  __atomic_store_n(&library, handle, __ATOMIC_RELEASE);
  return handle;
}

HIDDEN void *warpset_cuda_resolve(uint64_t index) {
  void *handle = open_library();
  void *function = handle ? dlsym(handle, symbol_names[index]) : NULL;
  if (!function) {
    if (!handle)
      function = (void *)no_driver;
    else
      function = index >= RAW_FIRST ? (void *)no_function_raw : (void *)no_function_bound;
  }
  __atomic_store_n(&warpset_cuda_slots[index], function, __ATOMIC_RELEASE);
  return function;
}

/* Functions that `cust` calls in ordinary programs. Its result type is a Rust enumeration that ends at CUDA 11.4, so a newer
 * code must never reach it: these answer 999 instead. */
HIDDEN unsigned warpset_cuda_known(unsigned code) {
  switch (code) {
#include "known_codes.inc"
    return code;
  default:
    return UNKNOWN;
  }
}

#define BOUND(name, parameters, arguments)   \
  extern HIDDEN unsigned warpset_##name parameters; \
  HIDDEN unsigned name parameters { return warpset_cuda_known(warpset_##name arguments); }

BOUND(cuInit, (unsigned flags), (flags))
BOUND(cuDriverGetVersion, (int *version), (version))
BOUND(cuGetErrorString, (unsigned code, const char **text), (code, text))
BOUND(cuDeviceGetCount, (int *count), (count))
BOUND(cuDeviceGet, (int *device, int ordinal), (device, ordinal))
BOUND(cuDeviceGetName, (char *name, int length, int device), (name, length, device))
BOUND(cuDeviceTotalMem_v2, (size_t *bytes, int device), (bytes, device))
BOUND(cuDeviceGetAttribute, (int *value, int attribute, int device), (value, attribute, device))
BOUND(cuDevicePrimaryCtxRetain, (void **context, int device), (context, device))
BOUND(cuDevicePrimaryCtxRelease_v2, (int device), (device))
BOUND(cuCtxSetCurrent, (void *context), (context))
BOUND(cuModuleLoadDataEx, (void **module, const void *image, unsigned count, int *options, void **values),
      (module, image, count, options, values))
BOUND(cuModuleUnload, (void *module), (module))
BOUND(cuModuleGetFunction, (void **function, void *module, const char *name), (function, module, name))
BOUND(cuFuncGetAttribute, (int *value, int attribute, void *function), (value, attribute, function))
BOUND(cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority), (stream, flags, priority))
BOUND(cuStreamDestroy_v2, (void *stream), (stream))
BOUND(cuStreamGetFlags, (void *stream, unsigned *flags), (stream, flags))
BOUND(cuStreamGetPriority, (void *stream, int *priority), (stream, priority))
BOUND(cuStreamSynchronize, (void *stream), (stream))
BOUND(cuStreamWaitEvent, (void *stream, void *event, unsigned flags), (stream, event, flags))
BOUND(cuEventCreate, (void **event, unsigned flags), (event, flags))
BOUND(cuEventDestroy_v2, (void *event), (event))
BOUND(cuEventElapsedTime, (float *milliseconds, void *start, void *end), (milliseconds, start, end))
BOUND(cuEventQuery, (void *event), (event))
BOUND(cuEventRecord, (void *event, void *stream), (event, stream))
BOUND(cuEventSynchronize, (void *event), (event))
BOUND(cuCtxSynchronize, (void), ())
BOUND(cuMemAlloc_v2, (uint64_t *address, size_t bytes), (address, bytes))
BOUND(cuMemFree_v2, (uint64_t address), (address))
BOUND(cuMemAllocAsync, (uint64_t *address, size_t bytes, void *stream), (address, bytes, stream))
BOUND(cuMemFreeAsync, (uint64_t address, void *stream), (address, stream))
BOUND(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes), (to, from, bytes))
BOUND(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes), (to, from, bytes))
BOUND(cuMemcpyDtoD_v2, (uint64_t to, uint64_t from, size_t bytes), (to, from, bytes))
BOUND(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream), (to, from, bytes, stream))
BOUND(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream), (to, from, bytes, stream))
BOUND(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream), (to, from, bytes, stream))
BOUND(cuMemsetD8_v2, (uint64_t address, unsigned char value, size_t count), (address, value, count))
BOUND(cuMemsetD8Async, (uint64_t address, unsigned char value, size_t count, void *stream), (address, value, count, stream))
BOUND(cuMemsetD32_v2, (uint64_t address, unsigned value, size_t count), (address, value, count))
BOUND(cuMemsetD32Async, (uint64_t address, unsigned value, size_t count, void *stream), (address, value, count, stream))
BOUND(cuLaunchKernel,
      (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
       void *stream, void **arguments, void **extra),
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/**
 * Maps a filter that another program wrote, here {@code samples/filter.c}, and looks up a batch of keys. Java 22 or
 * later has the foreign-function API, and needs no compiled code:
 *
 * <pre>java --enable-native-access=ALL-UNNAMED Filter.java PREFIX/lib/libwarpset.so FOLDER</pre>
 */
public final class Filter implements AutoCloseable {
    private static final int KEY_TYPE_U64 = 7;
    /** Description of keys, {@code warpset_keys} of {@code warpset.h}. */
    private static final MemoryLayout KEYS = MemoryLayout.structLayout(
        JAVA_INT.withName("key_type"), JAVA_INT.withName("width"), ADDRESS.withName("data"), JAVA_LONG.withName("len"),
        JAVA_LONG.withName("stride"), ADDRESS.withName("offsets"), ADDRESS.withName("validity"),
        JAVA_LONG.withName("validity_offset"));

    /** Functions of {@code warpset.h}. */
    private static final class Library {
        private final SymbolLookup symbols;
        final MethodHandle map, free, contains, lastError;

        Library(Path path) {
            symbols = SymbolLookup.libraryLookup(path, Arena.global());
            map = function("warpset_structure_map", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
            free = function("warpset_structure_free", FunctionDescriptor.of(JAVA_INT, ADDRESS));
            contains = function("warpset_filter_contains", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
            lastError = function("warpset_last_error", FunctionDescriptor.of(ADDRESS));
        }

        private MethodHandle function(String name, FunctionDescriptor type) {
            return Linker.nativeLinker().downcallHandle(symbols.find(name).orElseThrow(), type);
        }

        /** Throws the message of an error. It belongs to the thread that made the call. */
        void check(int status) throws Throwable {
            if (status != 0) {
                MemorySegment message = (MemorySegment) lastError.invokeExact();
                throw new IllegalStateException(message.reinterpret(Long.MAX_VALUE).getString(0));
            }
        }
    }

    private final Library library;
    private final MemorySegment handle;

    /** Maps a file. */
    private Filter(Library library, Path path) throws Throwable {
        this.library = library;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ADDRESS);
            library.check((int) library.map.invokeExact(arena.allocateFrom(path.toString()), out));
            handle = out.get(ADDRESS, 0);
        }
    }

    /** Returns 1 for each key that may be in the filter, and 0 for others. Threads may call this at the same time. */
    byte[] contains(long[] keys) throws Throwable {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment batch = arena.allocate(KEYS); // zeros
            MemorySegment answers = arena.allocate(JAVA_BYTE, keys.length);
            batch.set(JAVA_INT, offset("key_type"), KEY_TYPE_U64);
            batch.set(ADDRESS, offset("data"), arena.allocateFrom(JAVA_LONG, keys));
            batch.set(JAVA_LONG, offset("len"), (long) keys.length);
            library.check((int) library.contains.invokeExact(handle, batch, answers));
            return answers.toArray(JAVA_BYTE);
        }
    }

    private static long offset(String field) {
        return KEYS.byteOffset(MemoryLayout.PathElement.groupElement(field));
    }

    @Override
    public void close() {
        try {
            library.check((int) library.free.invokeExact(handle));
        } catch (Throwable failure) {
            throw new AssertionError(failure);
        }
    }

    private static void expect(boolean isRight, String what) {
        if (!isRight) {
            throw new AssertionError("expected: " + what);
        }
    }

    public static void main(String[] arguments) throws Throwable {
        Library library = new Library(Path.of(arguments[0]));
        Path folder = Path.of(arguments[1]);
        int n = 100_000; // keys in the filter
        long[] keys = new long[2 * n];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = i * 0x9E3779B97F4A7C15L;
        }
        try (Filter filter = new Filter(library, folder.resolve("fuse.warpset"))) {
            byte[] answers = filter.contains(keys);
            int members = 0;
            int others = 0;
            for (int i = 0; i < n; i++) {
                members += answers[i];
                others += answers[n + i];
            }
            expect(members == n, "all members are found");
            expect(others < n / 100, "less than one other key in 100 is found");
            System.out.println("Java: " + members + " members, " + others + " false positives");
        }
        try (Filter absent = new Filter(library, folder.resolve("absent"))) {
            expect(false, "a file that does not exist is an error");
        } catch (IllegalStateException error) {
            expect(error.getMessage().contains("absent"), "the message names the file");
        }
    }
}

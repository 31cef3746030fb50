// Builds a filter and a perfect hash function, writes them to files, and maps the files: `filter FOLDER`.
// The other samples read these files.
//
//     cc filter.c $(pkg-config --cflags --libs warpset) -o filter
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpset.h>

enum { N = 100000 }; // keys of each file

// Ends the program with the message of the library, unless a call succeeded.
static void check(warpset_status status) {
    if (status != WARPSET_STATUS_OK) {
        fprintf(stderr, "status %d: %s\n", (int)status, warpset_last_error());
        exit(1);
    }
}

// Ends the program if a result is wrong.
static void expect(bool is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "expected: %s\n", what);
        exit(1);
    }
}

static const char *path_in(const char *folder, const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// Writes `fuse.warpset`: a sharded binary fuse filter of the first half of the keys. Maps it and looks up all of them.
static void filter(const char *folder) {
    static uint64_t keys[2 * N];
    static uint8_t answers[2 * N];
    for (uint64_t i = 0; i < 2 * N; i++) keys[i] = i * 0x9E3779B97F4A7C15;

    warpset_options options = warpset_options_default();
    options.sharded = 1;
    warpset_keys members = warpset_keys_u64(keys, N);
    warpset_structure *built, *mapped;
    check(warpset_binary_fuse_build(&members, &options, &built));
    check(warpset_structure_save(built, path_in(folder, "fuse.warpset")));
    check(warpset_structure_free(built));

    check(warpset_structure_map(path_in(folder, "fuse.warpset"), &mapped));
    warpset_keys all = warpset_keys_u64(keys, 2 * N);
    check(warpset_filter_contains(mapped, &all, answers));
    size_t found = 0, others = 0;
    for (size_t i = 0; i < N; i++) found += answers[i], others += answers[N + i];
    expect(found == N, "all members are found");
    expect(others < N / 100, "less than one other key in 100 is found");
    bool is_member;
    check(warpset_filter_contains_u64(mapped, keys[7], &is_member));
    expect(is_member, "one member is found");
    expect(warpset_filter_insert_u64(mapped, 1) != WARPSET_STATUS_OK, "a mapped filter does not change");
    check(warpset_structure_free(mapped));
    printf("C: %zu members, %zu false positives\n", found, others);
}

// Writes `recsplit.warpset`: a perfect hash function of strings, which numbers them from 0 to N - 1.
static void function(const char *folder) {
    static char names[N][16];
    static warpset_string strings[N];
    static uint64_t numbers[N];
    static bool taken[N];
    for (size_t i = 0; i < N; i++) {
        int len = snprintf(names[i], sizeof names[i], "block-%zu", i);
        strings[i] = (warpset_string){(const uint8_t *)names[i], (size_t)len};
    }

    warpset_keys all = warpset_keys_strings(strings, N);
    warpset_structure *built;
    check(warpset_recsplit_build(&all, NULL, &built));
    check(warpset_function_numbers(built, &all, numbers));
    for (size_t i = 0; i < N; i++) {
        expect(numbers[i] < N && !taken[numbers[i]], "numbers are different, and below the number of keys");
        taken[numbers[i]] = true;
    }
    check(warpset_structure_save(built, path_in(folder, "recsplit.warpset")));
    check(warpset_structure_free(built));
}

// Errors name cause and remedy.
static void errors(const char *folder) {
    warpset_structure *absent = NULL;
    warpset_status status = warpset_structure_map(path_in(folder, "absent"), &absent);
    expect(status == WARPSET_STATUS_IO, "a file that does not exist is an error");
    expect(strstr(warpset_last_error(), "absent") != NULL, "the message names the file");
    expect(absent == NULL, "outputs are unchanged after an error");
}

int main(int argc, char **argv) {
    expect(argc == 2, "one argument, a folder");
    expect(warpset_abi_version() == WARPSET_ABI_VERSION, "header and library are of one version");
    filter(argv[1]);
    function(argv[1]);
    errors(argv[1]);
}

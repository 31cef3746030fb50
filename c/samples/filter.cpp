// Fills a filter by several threads, counts with a dictionary, and maps the files of `filter.c`: `filter FOLDER`.
//
//     c++ -std=c++20 filter.cpp $(pkg-config --cflags --libs warpset) -o filter
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <warpset.hpp>

namespace {

void expect(bool is_right, const char *what) {
    if (!is_right) {
        std::cerr << "expected: " << what << '\n';
        std::exit(1);
    }
}

// A filter that several threads fill at the same time.
void insert_by_threads() {
    auto options = warpset::options();
    options.fpr = 0.001;
    auto filter = warpset::structure::make(warpset_split_block_bloom_build, 40'000, &options);
    std::vector<std::jthread> threads;
    for (std::uint32_t first = 0; first < 40'000; first += 10'000)
        threads.emplace_back([&filter, first] {
            std::vector<std::uint32_t> keys;
            for (auto key = first; key < first + 10'000; key++) keys.push_back(key);
            filter.insert(keys);
        });
    threads.clear(); // waits

    std::vector<std::int64_t> keys; // equal numbers of other types are equal keys
    for (std::int64_t key = 0; key < 40'000; key++) keys.push_back(key);
    expect(filter.count_contained(keys) == keys.size(), "all keys of all threads are found");

    filter.insert("https://example.org/");
    auto copy = warpset::structure::from_bytes(filter.to_bytes());
    expect(copy.contains("https://example.org/") && copy.contains(39'999), "bytes carry a filter");
    expect(copy.kind() == WARPSET_KIND_SPLIT_BLOCK_BLOOM && copy.fpr() < 0.01, "bytes tell the kind");
}

// A dictionary that adds the values of equal keys.
void count() {
    auto counts = warpset::structure::make(warpset_lsm_build, nullptr);
    std::vector<std::uint64_t> keys{3, 1, 3, 2, 3}, ones(keys.size(), 1), values(keys.size());
    std::vector<std::uint8_t> found(keys.size());
    counts.insert(keys, ones, WARPSET_OPERATOR_SUM);
    counts.values(keys, values, found);
    expect(values == std::vector<std::uint64_t>{3, 1, 3, 1, 3}, "equal keys are counted");
}

// Files of another program.
void map(const std::string &folder) {
    constexpr std::uint64_t n = 100'000;
    auto filter = warpset::structure::map(folder + "/fuse.warpset");
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 0; i < n; i++) keys.push_back(i * 0x9E3779B97F4A7C15);
    std::vector<std::uint8_t> answers(n);
    filter.contains(keys, answers);
    expect(std::ranges::count(answers, 1) == n, "all members are found");

    auto function = warpset::structure::map(folder + "/recsplit.warpset");
    std::vector<std::string> names{"block-0", "block-99999"};
    std::vector<std::uint64_t> numbers(names.size());
    function.numbers(names, numbers);
    expect(numbers[0] < n && numbers[0] == function.number("block-0"), "batches and single keys agree");

    try {
        warpset::structure::map(folder + "/absent");
        expect(false, "a file that does not exist is an error");
    } catch (const warpset::error &error) {
        expect(error.status() == WARPSET_STATUS_IO, error.what());
    }
    std::cout << "C++: " << filter.size() << " members\n";
}

} // namespace

int main(int argc, char **argv) {
    expect(argc == 2, "one argument, a folder");
    insert_by_threads();
    count();
    map(argv[1]);
}

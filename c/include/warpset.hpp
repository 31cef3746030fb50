// Warpset for C++20: owners of handles, spans, exceptions. Functions without a method here are called through
// `warpset.h`, with the handle of `get()` and inside `warpset::check`.
#ifndef WARPSET_HPP
#define WARPSET_HPP

#include <warpset.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warpset {

// Failed call, with the message of the library: cause and remedy.
class error : public std::runtime_error {
public:
    explicit error(warpset_status status) : std::runtime_error(warpset_last_error()), status_(status) {}
    warpset_status status() const noexcept { return status_; }

private:
    warpset_status status_;
};

// Throws an error, unless the status is success.
inline void check(warpset_status status) {
    if (status != WARPSET_STATUS_OK) throw error(status);
}

// Owner of a handle of type `T`, which `Free` frees. A moved owner holds NULL.
template <class T, warpset_status (*Free)(T *)>
class handle {
public:
    explicit handle(T *owned = nullptr) noexcept : owned_(owned) {}
    T *get() const noexcept { return owned_.get(); }

private:
    struct deleter {
        void operator()(T *owned) const noexcept { Free(owned); }
    };
    std::unique_ptr<T, deleter> owned_;
};

// Calls a function of `warpset.h` that writes its result to its last argument, and returns the result.
template <class R, class Function, class... Arguments>
R call(Function function, Arguments... arguments) {
    R result{};
    check(function(arguments..., &result));
    return result;
}

// Settings with a size; set the fields by name.
inline warpset_options options() { return warpset_options_default(); }

// Types of integers that are keys.
template <class T>
concept integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

// View of keys: a span, vector or array of integers, of `std::string_view` or of `std::string`. The memory of integers
// and strings is not copied, and has to outlive the view.
class keys {
public:
    template <std::ranges::contiguous_range R>
        requires integer<std::ranges::range_value_t<R>>
    keys(const R &integers) {
        using T = std::ranges::range_value_t<R>;
        constexpr std::array<std::uint32_t, 9> unsigned_types{
            0, WARPSET_KEY_TYPE_U8, WARPSET_KEY_TYPE_U16, 0, WARPSET_KEY_TYPE_U32, 0, 0, 0, WARPSET_KEY_TYPE_U64};
        auto key_type = unsigned_types[sizeof(T)] + (std::signed_integral<T> ? 1 : 0);
        view_ = warpset_keys_of(key_type, std::ranges::data(integers), std::ranges::size(integers));
    }

    template <std::ranges::contiguous_range R>
        requires std::convertible_to<std::ranges::range_value_t<R>, std::string_view>
    keys(const R &strings) {
        strings_.reserve(std::ranges::size(strings));
        for (std::string_view string : strings)
            strings_.push_back({reinterpret_cast<const std::uint8_t *>(string.data()), string.size()});
        view_ = warpset_keys_strings(strings_.data(), strings_.size());
    }

    // Keys as `warpset.h` describes them, such as strided ones.
    keys(const warpset_keys &view) noexcept : view_(view) {}

    keys(const keys &) = delete;
    keys &operator=(const keys &) = delete;

    std::size_t size() const noexcept { return view_.len; }
    const warpset_keys *get() const noexcept { return &view_; }

private:
    warpset_keys view_{};
    std::vector<warpset_string> strings_;
};

using device = handle<warpset_device, warpset_device_free>;
using stream = handle<warpset_stream, warpset_stream_free>;

// Structure of any kind. Threads may use it at the same time, as `warpset.h` describes.
class structure : public handle<warpset_structure, warpset_structure_free> {
public:
    using handle::handle;

    // Makes a structure by a function of `warpset.h`, such as `structure::make(warpset_bloom_new, 1000, &options)`.
    template <class Function, class... Arguments>
    static structure make(Function function, Arguments... arguments) {
        return structure(call<warpset_structure *>(function, arguments...));
    }
    static structure open(const std::string &path, const device &place = device()) {
        return make(warpset_structure_open, path.c_str(), place.get());
    }
    static structure map(const std::string &path) { return make(warpset_structure_map, path.c_str()); }
    static structure from_bytes(std::span<const std::byte> bytes, const device &place = device()) {
        return make(warpset_structure_from_bytes, reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size(),
                    place.get());
    }
    structure copy(const device &place = device()) const { return make(warpset_structure_copy, get(), place.get()); }

    void save(const std::string &path) const { check(warpset_structure_save(get(), path.c_str())); }
    std::vector<std::byte> to_bytes() const {
        handle<warpset_bytes, warpset_bytes_free> bytes(call<warpset_bytes *>(warpset_structure_to_bytes, get()));
        const std::uint8_t *data;
        std::size_t len;
        check(warpset_bytes_data(bytes.get(), &data, &len));
        auto first = reinterpret_cast<const std::byte *>(data);
        return {first, first + len};
    }

    warpset_kind kind() const { return call<warpset_kind>(warpset_structure_kind, get()); }
    std::uint64_t size() const { return call<std::uint64_t>(warpset_structure_len, get()); }
    std::uint64_t memory_bytes() const { return call<std::uint64_t>(warpset_structure_memory_bytes, get()); }
    double fpr() const { return call<double>(warpset_structure_fpr, get()); }
    void clear() { check(warpset_structure_clear(get())); }
    void merge(const structure &other) { check(warpset_structure_merge(get(), other.get())); }

    bool contains(std::uint64_t key) const { return call<bool>(warpset_filter_contains_u64, get(), key); }
    bool contains(std::string_view key) const {
        return call<bool>(warpset_filter_contains_string, get(), bytes_of(key), key.size());
    }
    // Writes 1 or 0 for each key.
    void contains(const keys &all, std::span<std::uint8_t> answers) const {
        check_size(all, answers.size());
        check(warpset_filter_contains(get(), all.get(), answers.data()));
    }
    std::size_t count_contained(const keys &all) const {
        return call<std::size_t>(warpset_filter_count_contained, get(), all.get());
    }
    void insert(std::uint64_t key) { check(warpset_filter_insert_u64(get(), key)); }
    void insert(std::string_view key) { check(warpset_filter_insert_string(get(), bytes_of(key), key.size())); }
    void insert(const keys &all) { check(warpset_filter_insert(get(), all.get())); }
    std::uint64_t remove(const keys &all) { return call<std::uint64_t>(warpset_filter_remove, get(), all.get()); }

    std::uint64_t number(std::uint64_t key) const {
        return call<std::uint64_t>(warpset_function_number_u64, get(), key);
    }
    std::uint64_t number(std::string_view key) const {
        return call<std::uint64_t>(warpset_function_number_string, get(), bytes_of(key), key.size());
    }
    void numbers(const keys &all, std::span<std::uint64_t> numbers) const {
        check_size(all, numbers.size());
        check(warpset_function_numbers(get(), all.get(), numbers.data()));
    }

    // Writes the value of each key, and 1 or 0 for whether there is one.
    void values(const keys &all, std::span<std::uint64_t> values, std::span<std::uint8_t> found) const {
        check_size(all, std::min(values.size(), found.size()));
        check(warpset_map_get(get(), all.get(), values.data(), found.data()));
    }
    void insert(const keys &all, std::span<const std::uint64_t> values, warpset_operator by = WARPSET_OPERATOR_REPLACE) {
        check_size(all, values.size());
        check(warpset_map_insert(get(), all.get(), values.data(), by));
    }

private:
    static const std::uint8_t *bytes_of(std::string_view key) {
        return reinterpret_cast<const std::uint8_t *>(key.data());
    }
    static void check_size(const keys &all, std::size_t len) {
        if (all.size() != len) throw std::invalid_argument("an array has another length than the keys");
    }
};

}  // namespace warpset

#endif

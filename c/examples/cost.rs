//! Cost of calls of the library beyond that of the same calls in Rust:
//! `cargo build --release && cargo run --release --example cost -- target/release/libwarpset.so`.

use std::ffi::{CString, c_char, c_int, c_void};
use std::hint::black_box;
use std::mem::transmute;
use std::ptr::{null, null_mut};
use std::time::Instant;

use warpset::bloom::SplitBlockBloom;
use warpset::fuse::{BinaryFuse8, StaticFunction};
use warpset::mphf::Placement;
use warpset::prelude::{Filter, Insert};
use warpset::quotient::RankSelectQuotientFilter;
use warpset::static_sets::StaticSet;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `warpset_keys` of the header.
#[repr(C)]
struct Keys {
    key_type: u32,
    width: u32,
    data: *const c_void,
    len: usize,
    stride: isize,
    offsets: *const c_void,
    validity: *const u8,
    validity_offset: usize,
}

impl Keys {
    fn new<T>(key_type: u32, data: &[T], len: usize, offsets: &[i32]) -> Keys {
        let (data, offsets) = (data.as_ptr().cast(), offsets.as_ptr().cast());
        Keys { key_type, width: 0, data, len, stride: 0, offsets, validity: null(), validity_offset: 0 }
    }
}

type Batch<T> = unsafe extern "C" fn(*const c_void, *const Keys, *mut T) -> c_int;
type Values = unsafe extern "C" fn(*const c_void, *const Keys, *mut u64, *mut u8) -> c_int;
type One<T> = unsafe extern "C" fn(*const c_void, u64, *mut T) -> c_int;
type Value = unsafe extern "C" fn(*const c_void, u64, *mut u64, *mut bool) -> c_int;
type FromBytes = unsafe extern "C" fn(*const u8, usize, *const c_void, *mut *mut c_void) -> c_int;

/// Keys of a batch.
const BATCH: usize = 1024;
/// Keys of a structure, which stays in the caches: there the calls weigh most.
const KEYS: u64 = 20_000;

/// Prints the median times of two functions and their difference, from interleaved runs of `repeats` calls.
fn row(name: &str, call: &str, keys: usize, repeats: u32, mut rust: impl FnMut(usize), mut c: impl FnMut(usize)) {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..401 {
        for (times, run) in times.iter_mut().zip([&mut rust as &mut dyn FnMut(usize), &mut c]) {
            let start = Instant::now();
            (0..repeats as usize).for_each(&mut *run);
            times.push(start.elapsed().as_nanos() as f64 / f64::from(repeats) / keys as f64);
        }
    }
    let [rust, c] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("| {name} | {call} | {rust:.2} | {c:.2} | {:.2} |", c - rust);
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of the library");
    let path = CString::new(path).expect("a path without zeros");
    // SAFETY: a C string; 2 is RTLD_NOW.
    let library = unsafe { dlopen(path.as_ptr(), 2) };
    assert!(!library.is_null(), "{path:?} cannot be opened");
    macro_rules! function {
        ($name:literal as $type:ty) => {{
            // SAFETY: a C string.
            let found = unsafe { dlsym(library, concat!($name, "\0").as_ptr().cast()) };
            assert!(!found.is_null(), $name);
            // SAFETY: the header declares the function with this type.
            unsafe { transmute::<*mut c_void, $type>(found) }
        }};
    }
    let from_bytes = function!("warpset_structure_from_bytes" as FromBytes);
    let contains = function!("warpset_filter_contains" as Batch<u8>);
    let contains_u64 = function!("warpset_filter_contains_u64" as One<bool>);
    let numbers = function!("warpset_function_numbers" as Batch<u64>);
    let number_u64 = function!("warpset_function_number_u64" as One<u64>);
    let get = function!("warpset_map_get" as Values);
    let get_u64 = function!("warpset_map_get_u64" as Value);
    let opened = |bytes: &[u8]| {
        let mut handle = null_mut();
        // SAFETY: the bytes of a structure, and a place for its handle.
        assert_eq!(unsafe { from_bytes(bytes.as_ptr(), bytes.len(), null(), &mut handle) }, 0);
        handle.cast_const()
    };

    let keys: Vec<u64> = (0..KEYS).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let asked: Vec<u64> = keys.iter().copied().step_by(7).take(BATCH).collect();
    let narrow: Vec<u32> = asked.iter().map(|&key| key as u32).collect();
    let strings: Vec<String> = asked.iter().map(|key| format!("{key:020}")).collect();
    let (slices, text) = (strings.iter().map(String::as_bytes).collect::<Vec<_>>(), strings.concat());
    let offsets: Vec<i32> = (0..=BATCH as i32).map(|i| 20 * i).collect();
    let of_words = Keys::new(7, &asked, BATCH, &[]);
    let of_narrow = Keys::new(5, &narrow, BATCH, &[]);
    let of_strings = Keys::new(10, text.as_bytes(), BATCH, &offsets);
    let (mut answers, mut others) = (vec![0u8; BATCH], vec![0u8; BATCH]);
    println!("| structure | call | Rust, ns | C, ns | more, ns |\n| --- | --- | --- | --- | --- |");

    macro_rules! filter {
        ($name:literal, $filter:expr) => {{
            let filter = $filter;
            let handle = opened(&filter.to_bytes());
            let mut answer = false;
            macro_rules! batch {
                ($call:literal, $rust:expr, $c:expr) => {
                    row(
                        $name,
                        $call,
                        BATCH,
                        20,
                        |_| filter.contains_bytes_bulk_into(black_box($rust), &mut answers).expect("equal lengths"),
                        // SAFETY: the handle of a filter, keys, and one answer per key.
                        |_| assert_eq!(unsafe { contains(handle, $c, others.as_mut_ptr()) }, 0),
                    );
                    assert_eq!(answers, others);
                };
            }
            batch!("1,024 keys of 64 bits, per key", &asked, &of_words);
            batch!("1,024 keys of 32 bits, per key", &narrow, &of_narrow);
            batch!("1,024 strings of 20 bytes, per key", &slices, &of_strings);
            row(
                $name,
                "one key",
                1,
                5000,
                |i| {
                    black_box(filter.contains(black_box(asked[i % BATCH])));
                },
                |i| {
                    // SAFETY: the handle of a filter, and a place for the answer.
                    black_box(unsafe { contains_u64(handle, asked[i % BATCH], &mut answer) });
                },
            );
        }};
    }
    let mut bloom = SplitBlockBloom::builder(KEYS).build().expect("valid settings");
    bloom.insert_bulk(&keys).expect("space");
    filter!("split-block Bloom filter", bloom);
    let mut quotient = RankSelectQuotientFilter::builder(2 * KEYS).build().expect("valid settings");
    quotient.insert_bulk(&keys).expect("space");
    filter!("quotient filter", quotient);
    filter!("binary fuse filter", BinaryFuse8::builder().build_from(&keys).expect("a filter"));
    filter!("static set", StaticSet::<u64>::builder().build_from(&keys).expect("a set"));

    let function = Placement::builder().build_from(&keys).expect("different keys");
    let handle = opened(&function.to_bytes());
    let (mut of_rust, mut of_c, mut one, mut found) = (vec![0u64; BATCH], vec![0u64; BATCH], 0, vec![0u8; BATCH]);
    row(
        "placement",
        "1,024 keys of 64 bits, per key",
        BATCH,
        20,
        |_| function.get_bulk_into(black_box(&asked), &mut of_rust).expect("equal lengths"),
        // SAFETY: the handle of a function, keys, and a place per key.
        |_| assert_eq!(unsafe { numbers(handle, &of_words, of_c.as_mut_ptr()) }, 0),
    );
    assert_eq!(of_rust, of_c);
    row(
        "placement",
        "one key",
        1,
        5000,
        |i| {
            black_box(function.get(black_box(asked[i % BATCH])));
        },
        |i| {
            // SAFETY: the handle of a function, and a place for the number.
            black_box(unsafe { number_u64(handle, asked[i % BATCH], &mut one) });
        },
    );

    let values: Vec<u64> = (0..KEYS).collect();
    let function = StaticFunction::<u64>::builder().value_bits(20).build_from(&keys, &values).expect("different keys");
    let handle = opened(&function.to_bytes());
    row(
        "static function",
        "1,024 keys of 64 bits, per key",
        BATCH,
        20,
        |_| drop(function.get_bulk_into(black_box(&asked), &mut of_rust).expect("equal lengths")),
        // SAFETY: the handle of a function, keys, and two places per key.
        |_| assert_eq!(unsafe { get(handle, &of_words, of_c.as_mut_ptr(), found.as_mut_ptr()) }, 0),
    );
    assert_eq!(of_rust, of_c);
    row(
        "static function",
        "one key",
        1,
        5000,
        |i| {
            black_box(function.get(black_box(asked[i % BATCH])));
        },
        |i| {
            // SAFETY: the handle of a function, and a place for the value.
            black_box(unsafe { get_u64(handle, asked[i % BATCH], &mut one, null_mut()) });
        },
    );
}

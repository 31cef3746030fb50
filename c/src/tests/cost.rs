//! Cost of calls beyond that of the same calls in Rust: `cargo test --release cost -- --ignored --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use warpset::bloom::SplitBlockBloom;
use warpset::fuse::{BinaryFuse8, StaticFunction};
use warpset::mphf::Placement;
use warpset::prelude::{Filter, Insert};
use warpset::quotient::RankSelectQuotientFilter;
use warpset::static_sets::StaticSet;

use super::*;
use crate::object::{Held, Object};

/// Keys of a batch.
const BATCH: usize = 1024;
/// Keys of a structure, which stays in the caches: there the calls weigh most.
const KEYS: u64 = 20_000;

/// Returns the median times of two functions in nanoseconds, from interleaved runs of `repeats` calls.
fn medians(repeats: u32, mut one: impl FnMut(u32), mut other: impl FnMut(u32)) -> [f64; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..201 {
        for (times, run) in times.iter_mut().zip([&mut one as &mut dyn FnMut(u32), &mut other]) {
            let start = Instant::now();
            (0..repeats).for_each(&mut *run);
            times.push(start.elapsed().as_nanos() as f64 / f64::from(repeats));
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

/// Returns a handle of a structure.
fn held(object: impl Object) -> *mut warpset_structure {
    // SAFETY: the contract of the header.
    made(|out| guarded(unsafe { hand_out(out, || Ok(Held::new(Box::new(object)))) }))
}

fn guarded(result: crate::error::Result<()>) -> warpset_status {
    result.map_or(warpset_status::Internal, |()| warpset_status::Ok)
}

#[test]
#[ignore = "measures times, in a release build"]
fn cost() {
    let keys: Vec<u64> = (0..KEYS).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let asked: Vec<u64> = keys.iter().copied().step_by(7).take(BATCH).collect();
    let strings: Vec<String> = asked.iter().map(|key| format!("{key:020}")).collect();
    let (slices, bytes) = (strings.iter().map(String::as_bytes).collect::<Vec<_>>(), strings.concat());
    let offsets: Vec<i32> = (0..=BATCH as i32).map(|i| 20 * i).collect();
    let narrow: Vec<u32> = asked.iter().map(|&key| key as u32).collect();
    let of_narrow = described(warpset_key_type::U32, narrow.as_ptr().cast(), BATCH);
    let of_strings = warpset_keys {
        offsets: offsets.as_ptr().cast(),
        ..described(warpset_key_type::Strings32, bytes.as_ptr(), BATCH)
    };
    let (of_words, mut answers, mut others) = (words(&asked), vec![0u8; BATCH], vec![0u8; BATCH]);
    println!("| structure | call | Rust, ns | C, ns | more, ns |\n| --- | --- | --- | --- | --- |");
    let row = |name: &str, call: &str, [rust, c]: [f64; 2]| {
        println!("| {name} | {call} | {rust:.2} | {c:.2} | {:.2} |", c - rust);
        c - rust
    };
    let per_key = |times: [f64; 2]| times.map(|time| time / BATCH as f64);

    macro_rules! filter {
        ($name:literal, $filter:expr) => {{
            let filter = $filter;
            let handle = held(filter.clone());
            let mut batch = |keys: &warpset_keys, answers: &mut [u8]| {
                // SAFETY: the contract of the header.
                ok(unsafe { black_box(warpset_filter_contains)(handle, keys, answers.as_mut_ptr()) });
            };
            let times = medians(
                20,
                |_| filter.contains_bytes_bulk_into(black_box(&asked), &mut answers).unwrap(),
                |_| batch(&of_words, &mut others),
            );
            assert!(row($name, "1,024 keys of 64 bits, per key", per_key(times)) < 1.0 || cfg!(debug_assertions));
            let times = medians(
                20,
                |_| filter.contains_bytes_bulk_into(black_box(&narrow), &mut answers).unwrap(),
                |_| batch(&of_narrow, &mut others),
            );
            row($name, "1,024 keys of 32 bits, per key", per_key(times));
            let times = medians(
                20,
                |_| filter.contains_bytes_bulk_into(black_box(&slices), &mut answers).unwrap(),
                |_| batch(&of_strings, &mut others),
            );
            row($name, "1,024 strings of 20 bytes, per key", per_key(times));
            let mut answer = false;
            let times = medians(
                10_000,
                |i| {
                    black_box(filter.contains(black_box(asked[i as usize % BATCH])));
                },
                // SAFETY: the contract of the header.
                |i| {
                    black_box(unsafe { warpset_filter_contains_u64(handle, asked[i as usize % BATCH], &mut answer) });
                },
            );
            row($name, "one key", times);
            // SAFETY: no other call uses the handle.
            ok(unsafe { warpset_structure_free(handle) });
        }};
    }
    let mut bloom = SplitBlockBloom::builder(KEYS).build().unwrap();
    bloom.insert_bulk(&keys).unwrap();
    filter!("split-block Bloom filter", bloom);
    let mut quotient = RankSelectQuotientFilter::builder(2 * KEYS).build().unwrap();
    quotient.insert_bulk(&keys).unwrap();
    filter!("quotient filter", quotient);
    filter!("binary fuse filter", BinaryFuse8::builder().build_from(&keys).unwrap());
    filter!("static set", StaticSet::<u64>::builder().build_from(&keys).unwrap());

    let function = Placement::builder().build_from(&keys).unwrap();
    let handle = held(function.clone());
    let (mut numbers, mut number) = (vec![0u64; BATCH], 0);
    let mut of_rust = vec![0u64; BATCH];
    let times = medians(
        20,
        |_| function.get_bulk_into(black_box(&asked), &mut of_rust).unwrap(),
        // SAFETY: the contract of the header.
        |_| ok(unsafe { black_box(warpset_function_numbers)(handle, &of_words, numbers.as_mut_ptr()) }),
    );
    row("placement", "1,024 keys of 64 bits, per key", per_key(times));
    let times = medians(
        10_000,
        |i| {
            black_box(function.get(black_box(asked[i as usize % BATCH])));
        },
        // SAFETY: likewise.
        |i| {
            black_box(unsafe { warpset_function_number_u64(handle, asked[i as usize % BATCH], &mut number) });
        },
    );
    row("placement", "one key", times);

    let function = StaticFunction::<u64>::builder().value_bits(20).build_from(&keys, &vec![7; keys.len()]).unwrap();
    let handle = held(function.clone());
    let mut found = vec![0u8; BATCH];
    let times = medians(
        20,
        |_| drop(function.get_bulk_into(black_box(&asked), &mut of_rust).unwrap()),
        // SAFETY: likewise.
        |_| ok(unsafe { black_box(warpset_map_get)(handle, &of_words, numbers.as_mut_ptr(), found.as_mut_ptr()) }),
    );
    row("static function", "1,024 keys of 64 bits, per key", per_key(times));
    let times = medians(
        10_000,
        |i| {
            black_box(function.get(black_box(asked[i as usize % BATCH])));
        },
        // SAFETY: likewise.
        |i| {
            black_box(unsafe { warpset_map_get_u64(handle, asked[i as usize % BATCH], &mut number, null_mut()) });
        },
    );
    row("static function", "one key", times);
}

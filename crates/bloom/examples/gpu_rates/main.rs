//! Rates of the filters on a CUDA device, beside the limits of the device in the same run, with the answers checked.
//!
//! `cargo run --release -p warpset-bloom --features cuda --example gpu_rates [MODE]`, where the mode is one of
//!
//! - `quick` (default) and `full`: limits of the device, insertions and lookups of keys on the device;
//! - `sizes`: more than 2^31 keys, more than 2^32 blocks, Rao's filters;
//! - `rao`: Rao's filters alone;
//! - `groups`: insertion into filters of 1 GiB by the number of groups;
//! - `modules`: how long the driver takes to load each module of kernels (`CUDA_CACHE_DISABLE=1`, or it has them already);
//! - `host`: keys in ordinary memory of the host, end to end, beside bare copies;
//! - `check`: small runs of everything, for a sanitizer; `profile LOG`: one filter of 2^LOG bytes, for a profiler.
//!
//! A failed check (a lost key, a wrong count, other bits, a rate of false positives away from theory) is marked in its
//! row, and the program ends with an error after the last row.
//!
//! Times are between events on the device, the median of several launches after one that is not counted; filters are
//! emptied before each insertion, outside its time.

mod bench;
mod host;
mod sizes;

use std::error::Error;

use warpset_bloom::gpu::{self, DeviceLayout, DeviceOneBlock, Grouping};
use warpset_bloom::{BlockShape, BlockedLayout, Layout, SplitBlockLayout, TEST_AND_INSERT_BATCH};
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::limits;

use bench::{Bench, Bound, head, row};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Random accesses and streams; returns, for each size, what lookups and insertions are held against.
fn limits(bench: &Bench, sizes: &[usize]) -> Outcome<Vec<(usize, Bound, Bound)>> {
    let largest = sizes.iter().copied().max().unwrap_or(0).max(1 << 30);
    let mut memory = bench.device.alloc_zeroed::<u32>(largest / 4)?;
    let mut sink = bench.device.alloc_zeroed::<u32>(1)?;
    let n = 1usize << 27;
    let keys = bench.keys(n, 77)?;
    let mut out = bench.device.alloc_uninit::<u8>(n)?;
    let none = |_: &Stream| Ok(());
    let copied = 1usize << 29;
    let ms = bench.time(none, |s| {
        let to = memory.global_mut().at(copied / 4);
        // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
        unsafe { limits::limits_copy::launch(s, bench.grid(16), memory.global(), to, copied / 16)? };
        Ok(())
    })?;
    println!("copy kernel, 512 MiB: {:.0} GB/s read and written", 2.0 * copied as f64 / ms / 1e6);
    let ms = bench.time(none, |s| {
        // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
        unsafe { limits::limits_read::launch(s, bench.grid(16), memory.global(), largest / 16, sink.global_mut())? };
        Ok(())
    })?;
    println!("read kernel: {:.0} GB/s", largest as f64 / ms / 1e6);
    let rounds = 1 << 14;
    let ms = bench.time(none, |s| {
        // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
        unsafe { limits::limits_integer::launch(s, bench.grid(8), rounds, 3, sink.global_mut())? };
        Ok(())
    })?;
    let threads = f64::from(bench.device.properties().multiprocessors * 8 * limits::BLOCK);
    println!(
        "integer: {:.2} T multiply-adds/s, with a shift and an exclusive or each",
        threads * f64::from(rounds) * 8.0 / ms / 1e9
    );
    head();
    let mut bounds = Vec::new();
    let mut seed = 0u64;
    for &bytes in sizes {
        let size = format!("{} MiB", bytes >> 20);
        let records = (bytes / 32) as u64;
        let mut next = || {
            seed += 1;
            seed << 33
        };
        let ms = bench.time(none, |s| {
            let (config, memory) = (bench.grid(8), memory.global());
            // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
            unsafe { limits::limits_random_32::launch(s, config, memory, records, n, next(), sink.global_mut())? };
            Ok(())
        })?;
        row("random read of 32 B", &size, n, ms, None, "");
        let ms = bench.time(none, |s| {
            let config = LaunchConfig::covering(n, limits::BLOCK);
            let (memory, keys) = (memory.global(), keys.global());
            // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
            unsafe { limits::limits_lookup_32::launch(s, config, memory, records, keys, n, out.global_mut())? };
            Ok(())
        })?;
        row("key in, 32 B, byte out", &size, n, ms, None, "");
        let lookup = Bound { name: "key, 32 B, byte", rate: n as f64 / ms / 1e6 };
        let ms = bench.time(none, |s| {
            let words = bytes as u64 / 4;
            // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
            unsafe { limits::limits_atomic_or_32::launch(s, bench.grid(16), memory.global_mut(), words, n, next())? };
            Ok(())
        })?;
        row("random atomic OR of 32 bits", &size, n, ms, None, "");
        bounds.push((bytes, lookup, Bound { name: "atomic OR", rate: n as f64 / ms / 1e6 }));
    }
    Ok(bounds)
}

/// Insertions and lookups of one layout.
fn rates<L: DeviceOneBlock>(
    bench: &Bench,
    name: &str,
    layout: L,
    n: usize,
    bounds: Option<(Bound, Bound)>,
    groupings: &[Grouping],
) -> Outcome<()> {
    let size = format!("{name} {} MiB", layout.words() >> 18);
    let mut filter = gpu::Bloom::with_layout(&bench.device, layout)?;
    let keys = bench.keys(n, 1)?;
    let mut reference = None;
    for &grouping in groupings {
        filter.set_grouping(grouping);
        let filter = std::cell::RefCell::new(&mut filter);
        let ms = bench.time(
            |s| {
                // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
                unsafe { filter.borrow_mut().clear_async(s)? };
                Ok(())
            },
            |s| {
                // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
                unsafe { filter.borrow_mut().insert_bulk_async(s, keys.as_slice())? };
                Ok(())
            },
        )?;
        let ones = filter.borrow().count_ones()?;
        let same = *reference.get_or_insert(ones) == ones;
        let how = match grouping {
            Grouping::Auto => "insert, auto".to_string(),
            Grouping::Never => "insert, direct".to_string(),
            Grouping::Bits(bits) => format!("insert, 2^{bits} groups"),
        };
        let note = bench.check(same, if same { "same bits" } else { "other bits" });
        row(&how, &size, n, ms, bounds.map(|b| b.1), &note);
    }
    lookups(bench, &size, &filter, &keys, bounds.map(|b| b.0))
}

/// Lookups of the keys of `filter`, and of as many that are not in it.
fn lookups<L: DeviceLayout>(
    bench: &Bench,
    size: &str,
    filter: &gpu::Bloom<L>,
    keys: &DeviceVec<u64>,
    bound: Option<Bound>,
) -> Outcome<()> {
    let n = keys.len();
    let asked = n.min(1 << 27);
    let mut bytes = bench.device.alloc_uninit::<u8>(asked)?;
    let absent = bench.keys(asked, 2)?;
    for (what, keys) in [("contains, hits", keys.slice(..asked)), ("contains, misses", absent.as_slice())] {
        let ms = bench.time(
            |_| Ok(()),
            |s| {
                // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
                unsafe { filter.contains_bytes_async(s, keys, bytes.as_mut_slice())? };
                Ok(())
            },
        )?;
        let yes = bench.count(filter, keys)?;
        let note = if what == "contains, hits" {
            bench.check(yes == asked as u64, format!("{yes} of {asked} found"))
        } else {
            bench.check_rate(yes, asked, filter.expected_fpr(n as u64))
        };
        row(what, size, asked, ms, bound, &note);
    }
    Ok(())
}

/// The other forms of answers, and test-and-insert.
fn forms(bench: &Bench, layout: SplitBlockLayout, n: usize, bounds: Option<(Bound, Bound)>) -> Outcome<()> {
    let size = format!("split-block {} MiB", layout.words() >> 18);
    let mut filter = gpu::Bloom::with_layout(&bench.device, layout)?;
    let keys = bench.keys(n, 1)?;
    let mut count = bench.device.alloc_zeroed::<u64>(1)?;
    let mut bits = bench.device.alloc_uninit::<u64>(n.div_ceil(64))?;
    let mut bytes = bench.device.alloc_uninit::<u8>(n)?;
    let mut kept = bench.device.alloc_uninit::<u64>(n)?;
    let none = |_: &Stream| Ok(());
    let (lookup, insert) = (bounds.map(|b| b.0), bounds.map(|b| b.1));
    {
        let filter = std::cell::RefCell::new(&mut filter);
        let ms = bench.time(
            |s| {
                // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
                unsafe { filter.borrow_mut().clear_async(s)? };
                Ok(())
            },
            |s| {
                // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
                unsafe { filter.borrow_mut().test_and_insert_bytes_async(s, keys.as_slice(), bytes.as_mut_slice())? };
                Ok(())
            },
        )?;
        let new = bytes.to_vec()?.iter().filter(|&&b| b != 0).count();
        // The keys of each batch are false positives of those before it.
        let batches = (0..n).step_by(TEST_AND_INSERT_BATCH);
        let seen =
            |first: usize| filter.borrow().expected_fpr(first as u64) * TEST_AND_INSERT_BATCH.min(n - first) as f64;
        let note = bench.check_rate((n - new) as u64, n, batches.map(seen).sum::<f64>() / n as f64);
        row("test and insert, all new", &size, n, ms, insert, &format!("not new: {note}"));
    }
    let ms = bench.time(none, |s| {
        // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
        unsafe { filter.test_and_insert_bytes_async(s, keys.as_slice(), bytes.as_mut_slice())? };
        Ok(())
    })?;
    let wrong = bytes.to_vec()?.iter().filter(|&&b| b != 0).count();
    let note = bench.check(wrong == 0, format!("{wrong} reported new"));
    row("test and insert, none new", &size, n, ms, insert, &note);
    let ms = bench.time(none, |s| {
        // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
        unsafe { filter.contains_bitmap_async(s, keys.as_slice(), bits.as_mut_slice())? };
        Ok(())
    })?;
    let set = bits.to_vec()?.iter().map(|word| word.count_ones() as usize).sum::<usize>();
    let note = bench.check(set == n, format!("{set} found"));
    row("contains, bitmap", &size, n, ms, lookup, &note);
    let ms = bench.time(none, |s| {
        // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
        unsafe { filter.count_contained_async(s, keys.as_slice(), count.as_mut_slice())? };
        Ok(())
    })?;
    let launches = bench.repeats as u64 + 1;
    let counted = count.to_vec()?[0];
    let note = bench.check(counted == n as u64 * launches, format!("{counted} in {launches} launches"));
    row("contains, count", &size, n, ms, lookup, &note);
    let half = bench.keys(n, 2)?;
    bench.stream.copy(kept.slice_mut(..n / 2), keys.slice(..n / 2))?;
    bench.stream.synchronize()?;
    let mut mixed = half;
    bench.stream.copy(mixed.slice_mut(..n / 2), kept.slice(..n / 2))?;
    let ms = bench.time(none, |s| {
        let (kept, count) = (kept.as_mut_slice(), count.as_mut_slice());
        // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
        unsafe { filter.retain_contained_async(s, mixed.as_slice(), kept, count)? };
        Ok(())
    })?;
    let selected = count.to_vec()?[0];
    let ordered = kept.slice(..n / 2).to_vec()? == keys.slice(..n / 2).to_vec()?;
    let extra = bench.check_rate(selected.saturating_sub(n as u64 / 2), n / 2, filter.expected_fpr(n as u64));
    let note = bench.check(ordered && selected >= n as u64 / 2, format!("{selected} kept of {n}, in order: {ordered}"));
    row("retain, half contained", &size, n, ms, lookup, &format!("{note}; {extra}"));
    Ok(())
}

/// Grouping alone.
fn grouping(bench: &Bench, n: usize) -> Outcome<()> {
    use warpset_primitives::radix::{self, Keys};
    let keys = bench.keys(n, 1)?;
    let mut out = bench.device.alloc_uninit::<u64>(n)?;
    for bits in [1, 3, 5, 6, 7, 8] {
        let ms = bench.time(
            |_| Ok(()),
            |s| {
                // SAFETY: buffers are as large as the call asks, nobody else uses them, and all live until the stream is done.
                unsafe { radix::group_by_top_bits(s, Keys::Xxh64U64(keys.as_slice()), bits, out.as_mut_slice())? };
                Ok(())
            },
        )?;
        row(
            "hash and group u64 keys",
            &format!("2^{bits} groups"),
            n,
            ms,
            None,
            &format!("{:.0} GB/s of 24 B a key", 24.0 * n as f64 / ms / 1e6),
        );
    }
    Ok(())
}

fn split_block(bytes: usize) -> Outcome<SplitBlockLayout> {
    Ok(SplitBlockLayout::new((bytes / 32) as u64)?)
}

fn blocked(bytes: usize, block_bits: u32, word_bits: u32, hashes: u32) -> Outcome<BlockedLayout> {
    let shape = BlockShape::new(block_bits, word_bits, hashes).ok_or("no such shape")?;
    Ok(BlockedLayout::new((bytes as u64 * 8) / u64::from(block_bits), shape, 0)?)
}

/// Small runs of everything, for the sanitizer.
fn check(bench: &Bench) -> Outcome<()> {
    head();
    rates(
        bench,
        "split-block",
        split_block(1 << 18)?,
        100_003,
        None,
        &[Grouping::Never, Grouping::Bits(5), Grouping::Bits(9)],
    )?;
    rates(bench, "256x32x8", blocked(1 << 18, 256, 32, 8)?, 50_001, None, &[Grouping::Never])?;
    rates(bench, "512x64x8", blocked(1 << 18, 512, 64, 8)?, 50_001, None, &[Grouping::Never])?;
    rates(bench, "1024x32x11", blocked(1 << 18, 1024, 32, 11)?, 50_001, None, &[Grouping::Never])?;
    forms(bench, split_block(1 << 18)?, 60_000, None)
}

fn main() -> Outcome<()> {
    let mode = std::env::args().nth(1).unwrap_or_else(|| "quick".into());
    let bench = Bench::open(if mode == "check" || mode == "profile" { 1 } else { 5 })?;
    println!("{}: {:?}", bench.device, bench.device.properties());
    match mode.as_str() {
        "check" => check(&bench)?,
        "profile" => profile(&bench)?,
        "sizes" => sizes::sizes(&bench)?,
        "rao" => {
            head();
            sizes::raos_filters(&bench)?;
        }
        "groups" => groups(&bench)?,
        "modules" => modules(&bench)?,
        "host" => host::host(&bench, 1 << 27)?,
        "quick" | "full" => device(&bench, mode == "full")?,
        _ => {
            return Err(
                format!("no mode {mode}: quick, full, sizes, rao, groups, modules, host, check, profile").into()
            );
        }
    }
    bench.verdict()
}

/// Insertions into filters of 1 GiB, grouped into more and fewer parts.
fn groups(bench: &Bench) -> Outcome<()> {
    head();
    let groupings = [4, 5, 6, 7, 8].map(Grouping::Bits);
    rates(bench, "512x64x8", blocked(1 << 30, 512, 64, 8)?, 1 << 29, None, &groupings)?;
    rates(bench, "64x64x4", blocked(1 << 30, 64, 64, 4)?, 1 << 29, None, &groupings)
}

/// The driver's compilation of each module, at its first load.
fn modules(bench: &Bench) -> Outcome<()> {
    for (name, ptx) in warpset_kernels::MODULES {
        let start = std::time::Instant::now();
        bench.device.load_module(name)?;
        println!("{name:<20} {:>8} bytes of PTX {:>8.1} ms", ptx.len(), start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

/// One filter of 2^LOG bytes.
fn profile(bench: &Bench) -> Outcome<()> {
    let bytes = 1usize << std::env::args().nth(2).map_or(Ok(25), |log| log.parse())?;
    rates(bench, "split-block", split_block(bytes)?, bytes / 2, None, &[Grouping::Bits(6), Grouping::Never])
}

/// Limits, and keys from device memory.
fn device(bench: &Bench, full: bool) -> Outcome<()> {
    let mib = |n: usize| n << 20;
    let sizes: Vec<usize> = [8, 32, 64, 1024, 4096].into_iter().map(mib).collect();
    let bounds = limits(bench, &sizes)?;
    let bound = |bytes: usize| bounds.iter().find(|b| b.0 == bytes).map(|b| (b.1, b.2)).ok_or("size without limits");
    let keys_of = |bytes: usize| bytes * 8 / 16;
    for &bytes in &sizes {
        let groupings: &[Grouping] = match bytes >> 20 {
            0..=32 => &[Grouping::Never, Grouping::Auto],
            64 => &[Grouping::Never, Grouping::Bits(2), Grouping::Bits(3), Grouping::Auto],
            1024 => &[Grouping::Never, Grouping::Bits(5), Grouping::Bits(6), Grouping::Bits(7), Grouping::Auto],
            _ => &[Grouping::Never, Grouping::Bits(7), Grouping::Bits(8), Grouping::Auto],
        };
        rates(bench, "split-block", split_block(bytes)?, keys_of(bytes), Some(bound(bytes)?), groupings)?;
    }
    for bytes in [mib(8), mib(32), mib(1024)] {
        let groupings: &[Grouping] =
            if bytes > mib(64) { &[Grouping::Never, Grouping::Auto] } else { &[Grouping::Never] };
        for (block, word, k) in [
            (256, 32, 8),
            (256, 64, 8),
            (512, 64, 8),
            (512, 32, 16),
            (128, 64, 6),
            (64, 64, 4),
            (1024, 64, 16),
            (256, 32, 7),
        ] {
            let name = format!("{block}x{word}x{k}");
            rates(bench, &name, blocked(bytes, block, word, k)?, keys_of(bytes), Some(bound(bytes)?), groupings)?;
        }
    }
    grouping(bench, 1 << 28)?;
    for bytes in [mib(32), mib(1024)] {
        forms(bench, split_block(bytes)?, 1 << 25, Some(bound(bytes)?))?;
    }
    println!("Batch sizes, filter of 1 GiB: where grouping begins to pay");
    for log in if full { 20..=29 } else { 22..=26 } {
        rates(
            bench,
            "split-block",
            split_block(mib(1024))?,
            1 << log,
            Some(bound(mib(1024))?),
            &[Grouping::Never, Grouping::Bits(6)],
        )?;
    }
    Ok(())
}

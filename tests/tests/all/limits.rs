//! No number ends the process: public constructors and setters that take a number or a length get 0, 1, 2^40 and the
//! largest one, each in a process of its own, which has to end well and in time.
//!
//! What a call answers is the business of other tests. Here it may be an error or a result.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warpset_base::bitmap::Bitmap;
use warpset_base::words::{AlignedWords, zeroed_vec};
use warpset_bloom::{
    BlockShape, BlockedBloom, BlockedLayout, BucketShape, Builder as BloomBuilder, FirstLevel, RaoBloom, RaoLayout,
    SplitBlockBloom, SplitBlockLayout, rates,
};
use warpset_fuse::{BinaryFuse8, StaticFunction};
use warpset_gpu::emulator::Config;
use warpset_gpu::{Device, Devices, EmulatorOptions};
use warpset_lsm::{CleanupPolicy, Lsm};
use warpset_mphf::{Consensus, KeyFile, Placement, RecSplit, RecSplitKind, StaticFilter, TreeShape};
use warpset_primitives::radix::Digit;
use warpset_primitives::{segmented_sort, sort};
use warpset_quotient::{
    Duplicates, Insert, RankSelectBuilder, RankSelectQuotientFilter, StandardBuilder, StandardQuotientFilter,
};
use warpset_range::{DynamicRangeFilter, RangeFilter};
use warpset_static::{StaticMap, StaticSet};

/// Variable with the task of a child process: the name of a case, and a number.
const CASE: &str = "WARPSET_LIMITS_CASE";
const NUMBERS: [u64; 4] = [0, 1, 1 << 40, u64::MAX];
/// Far more than any case takes, for machines that do much else.
const TIME: Duration = Duration::from_secs(60);

/// Converts the number to 32 bits; larger ones become the largest.
fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn keys() -> Vec<u64> {
    (0..100).map(|i| i * i).collect()
}

fn emulator() -> Device {
    Device::emulator_with(EmulatorOptions::default().memory_bytes(1 << 26))
}

/// Uses a device whose options have the number.
fn with_options(options: EmulatorOptions) {
    let device = Device::emulator_with(options);
    let _ = SplitBlockBloom::builder(100).on(&device).build().and_then(|mut filter| filter.insert_bulk(&keys()));
    let _ = StandardQuotientFilter::builder(100).on(&device).build_from(&keys());
    let _ = device.memory_info();
}

/// Every function of the number drops what it makes: without a result, it need not be used.
macro_rules! cases {
    ($($name:literal: |$n:ident| $($made:expr),+;)*) => {
        &[$(($name, |$n| {
            $(let _ = $made;)+
        })),*]
    };
}

/// A call by its name, with the number to give it.
type Case = (&'static str, fn(u64));

const CASES: &[Case] = cases! {
    "base": |n| Bitmap::from_words(vec![1], n as usize), AlignedWords::<u64>::zeroed(n), zeroed_vec::<u32>(n);

    "split-block capacity": |n| SplitBlockBloom::builder(n).build(), SplitBlockBloom::builder(n).power_of_two(true).build();
    "split-block capacity on a device": |n| SplitBlockBloom::builder(n).on(&emulator()).build();
    "split-block settings": |n|
        SplitBlockBloom::builder(100).fpr(n as f64).build(),
        SplitBlockBloom::builder(100).bits_per_key(n as f64).build(),
        SplitBlockBloom::builder(100).memory_limit(n).build(),
        SplitBlockBloom::builder(n).fpr(1e-9).memory_limit(n).build();
    "split-block layout": |n| SplitBlockLayout::new(n).map(|layout| BloomBuilder::with_layout(layout).build());
    "split-block layout on a device": |n|
        SplitBlockLayout::new(n).map(|layout| BloomBuilder::with_layout(layout).on(&emulator()).build());
    "blocked capacity": |n| BlockedBloom::builder(n).build();
    "blocked capacity on a device": |n| BlockedBloom::builder(n).on(&emulator()).build();
    "blocked settings": |n|
        BlockedBloom::builder(100).block_bits(narrow(n)).build(),
        BlockedBloom::builder(100).word_bits(narrow(n)).build(),
        BlockedBloom::builder(100).hashes(narrow(n)).seed(n).build(),
        BlockedBloom::builder(100).fpr(n as f64).build(),
        BlockedBloom::builder(100).bits_per_key(n as f64).build(),
        BlockedBloom::builder(100).memory_limit(n).build();
    "blocked layout": |n|
        BlockShape::new(narrow(n), narrow(n), narrow(n)),
        BlockShape::new(256, 32, 8).map(|shape| {
            BlockedLayout::new(n, shape, n).map(|layout| BloomBuilder::with_layout(layout).build())
        });
    "Rao capacity": |n| RaoBloom::builder(n).build(), RaoBloom::builder(n).choices(2).build();
    "Rao capacity on a device": |n| RaoBloom::builder(n).on(&emulator()).build();
    "Rao settings": |n|
        RaoBloom::builder(100).choices(narrow(n)).build(),
        RaoBloom::builder(100).bucket_words(narrow(n)).build(),
        RaoBloom::builder(100).hashes(narrow(n)).seed(n).build(),
        RaoBloom::builder(100).load_factor(n as f64).build(),
        RaoBloom::builder(100).fpr(n as f64).build(),
        RaoBloom::builder(100).bits_per_key(n as f64).build(),
        RaoBloom::builder(100).memory_limit(n).build();
    "Rao layout": |n|
        BucketShape::new(narrow(n), narrow(n)),
        BucketShape::new(100, 3).map(|shape| {
            let attempted =
                RaoLayout::new(n, shape, narrow(n), FirstLevel::Mixed, n).map(|layout| layout.at_attempt(narrow(n)));
            let built = RaoLayout::new(n, shape, 1, FirstLevel::Mixed, n).map(|layout| {
                BloomBuilder::with_layout(layout).build()
            });
            (attempted, built)
        });
    "Bloom rates": |n|
        rates::split_block_fpr(n, n), rates::split_block_fpr(1, n), rates::split_block_fpr(n, 1),
        SplitBlockBloom::builder(100).build().map(|filter| (filter.expected_fpr(n), filter.bits_per_key(n))),
        BlockedBloom::builder(100).build().map(|filter| (filter.expected_fpr(n), filter.bits_per_key(n))),
        RaoBloom::builder(100).build().map(|filter| (filter.expected_fpr(n), filter.bits_per_key(n)));
    "Bloom folds": |n|
        SplitBlockBloom::builder(100).build().map(|mut filter| filter.fold(n)),
        SplitBlockBloom::builder(100).on(&emulator()).build().map(|mut filter| filter.fold(n));
    "Bloom chunks": |n| SplitBlockBloom::builder(100).on(&emulator()).build().map(|mut filter| {
        filter.set_chunk_keys(n as usize);
        filter.insert_bulk(&keys())
    });

    "quotient capacity": |n|
        StandardQuotientFilter::builder(n).build(),
        RankSelectQuotientFilter::builder(n).build(),
        RankSelectQuotientFilter::builder(n).fpr(0.9999).duplicates(Duplicates::Kept).build(),
        RankSelectQuotientFilter::builder(n).duplicates(Duplicates::Counted).build(),
        RankSelectQuotientFilter::builder(n).duplicates(Duplicates::Counted).exact(40).build();
    "quotient capacity on a device": |n|
        StandardQuotientFilter::builder(n).on(&emulator()).build(),
        RankSelectQuotientFilter::builder(n).duplicates(Duplicates::Counted).on(&emulator()).build();
    "quotient settings": |n|
        StandardQuotientFilter::builder(100).fpr(n as f64).build(),
        StandardQuotientFilter::builder(100).max_load(n as f64).seed(n).build(),
        RankSelectQuotientFilter::builder(100).exact(narrow(n)).build(),
        RankSelectQuotientFilter::builder(n).exact(narrow(n)).build();
    "quotient bits": |n|
        StandardBuilder::with_bits(narrow(n), 5).build(),
        StandardBuilder::with_bits(5, narrow(n)).build(),
        RankSelectBuilder::with_bits(narrow(n), narrow(n)).exact(narrow(n)).build(),
        RankSelectBuilder::with_bits(narrow(n), 5).on(&emulator()).build();
    "quotient resizing": |n|
        StandardQuotientFilter::builder(100).build_from(&keys()).map(|filter| filter.resized(narrow(n))),
        StandardQuotientFilter::builder(100).on(&emulator()).build_from(&keys()).map(|filter| filter.resized(narrow(n)));
    "quotient fingerprints": |n| StandardQuotientFilter::builder(100).build().map(|mut filter| {
        filter.insert_fingerprint(n)?;
        filter.expected_fpr(n);
        filter.contains_fingerprint(n);
        filter.insert_fingerprints_bulk(&[n; 3])
    });
    "quotient copies": |n| for duplicates in [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted] {
        let builder = RankSelectQuotientFilter::builder(100).duplicates(duplicates);
        let _ = builder.build().map(|mut filter| {
            let inserted = filter.insert_counted(7u64, n);
            let _ = filter.insert_counted_bulk(&[8u64, 9], &[n, n]);
            filter.remove_counted(7u64, n);
            inserted.and_then(|_| filter.retain_counts(n))
        });
        let _ = builder.on(&emulator()).build().map(|mut filter| {
            let _ = filter.insert_counted_bulk(&[8u64, 9], &[n, n]);
            filter.retain_counts(n)
        });
    };
    "histogram": |n| RankSelectQuotientFilter::builder(100).build_from(&keys()).map(|f| f.count_histogram(n as usize));
    "histogram on a device": |n|
        RankSelectQuotientFilter::builder(100).on(&emulator()).build_from(&keys()).map(|f| f.count_histogram(n as usize));
    "histogram of many copies": |n|
        RankSelectQuotientFilter::builder(100).duplicates(Duplicates::Counted).build().map(|mut filter| {
            filter.insert_counted(7u64, 1 << 60)?;
            filter.count_histogram(n as usize)?;
            filter.to_device(&emulator())?.count_histogram(n as usize)
        });

    "maplets": |n|
        RankSelectQuotientFilter::builder(n).values(5).build(),
        RankSelectQuotientFilter::builder(100).values(narrow(n)).build_from(&keys(), &keys());
    "range filters": |n|
        RangeFilter::<u64>::builder().bits_per_key(n as f64).build_from(&keys()),
        RangeFilter::<u64>::builder().fpr_at(0.1, n).seed(n).build_from(&keys()).map(|filter| filter.fpr_of(n)),
        DynamicRangeFilter::<u64>::builder(n).build().map(|filter| filter.to_device(&emulator())),
        DynamicRangeFilter::<u64>::builder(100).fpr_at(0.1, n).seed(n).build().map(|filter| filter.fpr_of(n));
    "fuse filters": |n|
        BinaryFuse8::builder().layout(n), BinaryFuse8::builder().seed(n).build_from(&keys()),
        BinaryFuse8::builder().external().memory(n).build_from(keys().into_iter().map(Ok));
    "static functions": |n|
        StaticFunction::<u64>::builder().value_bits(narrow(n)).build_from(&keys(), &keys()),
        StaticFunction::<u64>::builder().filtered(narrow(n)).build_from(&keys(), &keys()),
        StaticFunction::<u64>::builder().external().memory(n).build_from(keys().into_iter().map(|key| Ok((key, key))));

    "dictionaries": |n|
        Lsm::<u64, u64>::builder().batch_size(n).build_from(&keys(), &keys()),
        Lsm::<u64, u64>::builder().batch_size(n).on(&emulator()).build_from(&keys(), &keys()),
        Lsm::<u64, u64>::builder().cleanup(CleanupPolicy::EveryBatches(n)).build_from(&keys(), &keys()),
        Lsm::<u64, u64>::builder().cleanup(CleanupPolicy::StaleShare(n as f64)).build_from(&keys(), &keys());
    "pieces of ranges": |n| Lsm::<u64, u64>::builder().on(&emulator()).build_from(&keys(), &keys()).map(|lsm| {
        let ends = lsm.device().from_slice(&[0, 1 << 62]).unwrap();
        let pieces = lsm.range_chunks_device(ends.slice(..1), ends.slice(1..), n as usize);
        pieces.map(|pieces| pieces.count())
    });

    "threads": |n|
        RecSplit::builder().threads(n as usize).build_from(&keys()),
        RecSplit::builder().threads(n as usize).build_from_iter(keys);
    "static sets": |n|
        StaticSet::<u64>::builder().seed(n).build_from(&[n, n]),
        StaticSet::<u32>::builder().seed(n).on(&emulator()).build_from(&[narrow(n)]),
        StaticMap::<u64, u64>::builder().build_from(&[n], &[n]).map(|map| (map.key_at(n), map.get(n), map.number(n)));
    "threads of filters": |n| StaticFilter::builder().threads(n as usize).build_from(&keys());
    "threads of external builds": |n|
        RecSplit::builder().threads(n as usize).external().memory(n).build_from(|| Ok(keys().into_iter().map(Ok)));
    "RecSplit settings": |n|
        RecSplit::builder().bucket_size(narrow(n)).seed(n).build_from(&keys()),
        RecSplit::builder().leaf_size(narrow(n)).build_from(&keys()),
        RecSplit::builder().fanouts(narrow(n), narrow(n)).build_from(&keys()),
        RecSplit::builder().keys_per_value(narrow(n)).build_from(&keys()),
        RecSplit::builder().load_factor(n as f64).build_from(&keys()),
        RecSplit::builder().for_space(n as f64).build_from(&keys()),
        RecSplit::builder().estimate().map(|estimate| estimate.device_pays(n, n as usize)),
        TreeShape::new(narrow(n), narrow(n), narrow(n), Default::default());
    "placement settings": |n|
        Placement::builder().bucket_size(narrow(n)).seed(n).build_from(&keys()),
        Placement::builder().keys_per_seed(n as f64).build_from(&keys());
    "Consensus settings": |n|
        Consensus::builder().bucket_size(narrow(n)).seed(n).build_from(&keys()),
        Consensus::builder().overhead(n as f64).build_from(&keys()),
        Consensus::builder().overhead(1.0 / n as f64).build_from(&keys()),
        Consensus::builder().for_space(n as f64).build_from(&keys()),
        StaticFilter::builder().width(narrow(n)).build_from(&keys());
    "RecSplit settings on a device": |n|
        RecSplit::builder().leaf_size(4).bucket_size(narrow(n)).on(&emulator()).build_from(&keys()),
        RecSplit::builder().leaf_size(narrow(n)).bucket_size(20).on(&emulator()).build_from(&keys());
    "static filters": |n|
        StaticFilter::builder_of_kind(RecSplitKind).width(narrow(n)).build_from(&keys()),
        StaticFilter::builder().fpr(n as f64).build_from(&keys()),
        StaticFilter::builder().fpr(1.0 / n as f64).build_from(&keys()),
        StaticFilter::builder_of_kind(RecSplitKind).width(narrow(n)).leaf_size(4).on(&emulator()).build_from(&keys());
    "files of keys": |n| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 1000]).unwrap();
        let widths = [n as usize, (n as usize).max(600)];
        widths.map(|width| RecSplit::builder().external().build_from(KeyFile::bytes(file.path(), width)).map(drop))
    };

    "device memory": |n|
        emulator().alloc_uninit::<u64>(n as usize), emulator().alloc_zeroed::<u8>(n as usize),
        emulator().new_stream().map(|stream| stream.alloc_zeroed::<u64>(n as usize).map(drop));
    "pinned memory": |n| emulator().pinned::<u64>(n as usize);
    "memory limits": |n| {
        let device = emulator();
        device.set_memory_limit(n as usize);
        StandardQuotientFilter::builder(100).on(&device).build_from(&keys()).map(|filter| filter.len())
    };
    "memory of emulators": |n| with_options(EmulatorOptions::default().memory_bytes(n as usize));
    "multiprocessors of emulators": |n| with_options(EmulatorOptions::default().multiprocessors(narrow(n)));
    "caches of emulators": |n| with_options(EmulatorOptions::default().l2_bytes(n as usize));
    "blocks of emulators": |n|
        with_options(EmulatorOptions::default().config(Config { resident_blocks: narrow(n), ..Config::default() }));
    "lists of devices": |n| Devices::from(&emulator()).at_most(n as usize);
    "primitives": |n|
        sort::scratch_bytes::<u64>(n as usize), sort::pair_scratch_bytes::<u64, u64>(n as usize),
        segmented_sort::scratch_bytes::<u64>(n as usize), segmented_sort::pair_scratch_bytes::<u64, u64>(n as usize),
        Digit::new(narrow(n), narrow(n)), Digit::top(narrow(n));
};

/// Makes the call of a child process; does nothing in the parent.
#[test]
fn one_call() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (name, number) = case.rsplit_once(' ').unwrap();
    let (_, call) = CASES.iter().find(|(other, _)| *other == name).unwrap();
    call(number.parse().unwrap());
}

/// Runs a case in a process of its own; what is wrong, if anything.
fn fault(name: &str, number: u64) -> Option<String> {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "limits::one_call", "--nocapture"])
        .env(CASE, format!("{name} {number}"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let (mut child, start) = (child.unwrap(), Instant::now());
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > TIME {
            child.kill().unwrap();
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| format!("{name} {number}: {}, {:?}, {said}", output.status, start.elapsed()))
}

#[test]
fn no_number_ends_the_process() {
    let calls: Vec<(&str, u64)> = CASES.iter().flat_map(|&(name, _)| NUMBERS.map(|number| (name, number))).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut faults = Vec::new();
        while let Some(&(name, number)) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
            faults.extend(fault(name, number));
        }
        faults
    };
    let faults: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

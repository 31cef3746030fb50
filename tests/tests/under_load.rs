//! Every structure under load: by eight threads at once on one device, by several processes of eight threads, and on a
//! device that is nearly full. The same bodies on the emulator and on CUDA, where there are more keys and launches are
//! delayed as on a busy device. `WARPSET_LOAD_SECONDS` and `WARPSET_LOAD_PROCESSES` make a long run of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use warpset_base::filter::Filter;

use warpset_base::filter::{Count, Insert, Remove};
use warpset_bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};
use warpset_fuse::BinaryFuse16;
use warpset_gpu::emulator::Config;
use warpset_gpu::{Device, DeviceVec, EmulatorOptions, testing};
use warpset_lsm::{CleanupPolicy, Lsm, OrderedMap, SortedArray, Sum};
use warpset_mphf::{Consensus, RecSplit, StaticFilter};
use warpset_primitives::DeviceFilter;
use warpset_primitives::sort::{self, By};
use warpset_quotient::{Duplicates, RankSelectQuotientFilter, StandardQuotientFilter};
use warpset_sequence::SequenceFilter;
use warpset_static::StaticMap;

/// Returns distinct keys, others for each salt.
fn keys(count: usize, salt: u64) -> Vec<u64> {
    (0..count as u64).map(|i| ((salt << 40) + i).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// Returns keys per structure and rounds per thread: one small round under the sanitizer, which is a hundred times
/// slower.
fn size(device: &Device) -> (usize, u64) {
    testing::sized(device, (100, 1), (3000, 1), (300_000, 4))
}

/// Checks that a filter answers as the host's does.
fn answers<D: Insert, H: Insert>(mut device: D, mut host: H, present: &[u64], asked: &[u64]) {
    device.insert_bulk(present).unwrap();
    host.insert_bulk(present).unwrap();
    assert_eq!(device.contains_bulk(asked).unwrap(), host.contains_bulk(asked).unwrap());
}

/// Checks that a multiset has the host's number of copies of each key.
fn counts<D: Remove + Count, H: Remove + Count>(mut device: D, mut host: H, present: &[u64], asked: &[u64]) {
    for part in [present, &present[..present.len() / 2]] {
        device.insert_bulk(part).unwrap();
        host.insert_bulk(part).unwrap();
    }
    let removed = &present[present.len() / 3..];
    assert_eq!(device.remove_bulk(removed).unwrap(), host.remove_bulk(removed).unwrap());
    assert_eq!(device.count_bulk(asked).unwrap(), host.count_bulk(asked).unwrap());
}

/// Checks that a dictionary has the entries of the standard library's map.
fn looks_up(mut dictionary: impl OrderedMap<u64, u64>, present: &[u64], asked: &[u64]) {
    let values: Vec<u64> = present.iter().map(|key| key.rotate_left(7)).collect();
    dictionary.insert_bulk(present, &values).unwrap();
    dictionary.remove_bulk(&present[present.len() / 2..]).unwrap();
    let model: BTreeMap<u64, u64> = present[..present.len() / 2].iter().copied().zip(values).collect();
    let expected: Vec<_> = asked.iter().map(|key| model.get(key).copied()).collect();
    assert_eq!(dictionary.get_bulk(asked).unwrap(), expected);
    let ranges: Vec<_> = asked.iter().take(50).map(|&low| low..=low.saturating_add(1 << 58)).collect();
    let counted: Vec<_> = ranges.iter().map(|range| model.range(range.clone()).count() as u64).collect();
    assert_eq!(dictionary.count_range_bulk(&ranges).unwrap(), counted);
}

/// Builds, asks and drops every structure.
fn round(device: &Device, n: usize, salt: u64) {
    let present = keys(n, 2 * salt);
    let asked = [&present[..], &keys(n, 2 * salt + 1)].concat();

    let split = SplitBlockBloom::builder(n as u64);
    answers(split.on(device).build().unwrap(), split.build().unwrap(), &present, &asked);
    let blocked = BlockedBloom::builder(n as u64);
    answers(blocked.on(device).build().unwrap(), blocked.build().unwrap(), &present, &asked);
    let rao = RaoBloom::builder(2 * n as u64);
    answers(rao.on(device).build().unwrap(), rao.build().unwrap(), &present, &asked);

    let standard = StandardQuotientFilter::builder(2 * n as u64).duplicates(Duplicates::Kept);
    counts(standard.on(device).build().unwrap(), standard.build().unwrap(), &present, &asked);
    let counted = RankSelectQuotientFilter::builder(n as u64).duplicates(Duplicates::Counted);
    counts(counted.on(device).build().unwrap(), counted.build().unwrap(), &present, &asked);

    looks_up(Lsm::builder().on(device).build().unwrap(), &present, &asked);
    looks_up(SortedArray::builder().on(device).build().unwrap(), &present, &asked);

    let function = RecSplit::builder().on(device).build_from(&present).unwrap();
    let mut numbers = function.get_bulk(&present).unwrap();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..n as u64), "a number is missing or comes twice");
    let members = StaticFilter::builder().width(16).on(device).build_from(&present).unwrap();
    assert_eq!(members.count_contained_bulk(&present).unwrap(), n);

    let function = Consensus::builder().on(device).build_from(&present).unwrap();
    assert!(function.to_host().unwrap() == Consensus::builder().build_from(&present).unwrap());
    let fuse = BinaryFuse16::builder().on(device).build_from(&present).unwrap();
    assert_eq!(fuse.count_contained_bulk(&present).unwrap(), n);
    let map = StaticMap::<u64, u64>::builder().on(device).build_from(&present, &present).unwrap();
    assert!(
        map.get_bulk(&asked).unwrap()[..n].iter().eq(present.iter().map(|&key| Some(key)).collect::<Vec<_>>().iter())
    );
    let letters: Vec<u8> = present.iter().map(|key| b"ACGT"[(key >> 62) as usize]).collect();
    let mut sequences = SequenceFilter::builder(n as u64).on(device).build().unwrap();
    sequences.insert(&letters).unwrap();
    let mut host = SequenceFilter::builder(n as u64).build().unwrap();
    host.insert(&letters);
    assert!(sequences.to_host().unwrap() == host);

    let (stream, mut sorted) = (device.new_stream().unwrap(), device.from_slice(&present).unwrap());
    // SAFETY: the vector lives until `to_vec` has waited, and nothing else uses it.
    unsafe { sort::sort_keys_in_place_async(&stream, &mut sorted, By::ascending()).unwrap() };
    assert!(sorted.to_vec().unwrap().is_sorted());
    short_batches(device, &present[..n.min(5000)]);
    queued(device, &present, &asked);
}

/// Inserts and combines a few keys at a time.
fn short_batches(device: &Device, keys: &[u64]) {
    let builder = Lsm::<u64, u64>::builder().batch_size(64);
    let (mut host, mut there) = (builder.build().unwrap(), builder.on(device).build().unwrap());
    for (i, batch) in keys.chunks(70).enumerate() {
        if i % 2 == 0 {
            host.insert_bulk(batch, batch).unwrap();
            there.insert_bulk(batch, batch).unwrap();
        } else {
            host.upsert_bulk::<Sum<u64>>(batch, batch).unwrap();
            there.upsert_bulk::<Sum<u64>>(batch, batch).unwrap();
        }
    }
    assert!(there.to_host().unwrap() == host);
}

/// Updates on one stream of the caller's and lookups on another, which waits for it.
fn queued(device: &Device, present: &[u64], asked: &[u64]) {
    let n = present.len();
    let (first, second) = present.split_at(n / 2);
    let builder = Lsm::<u64, u64>::builder().batch_size(64);
    let (mut host, mut dictionary) = (builder.build().unwrap(), builder.on(device).build().unwrap());
    host.insert_bulk(first, first).unwrap();
    host.insert_bulk(second, second).unwrap();
    host.remove_bulk(&first[..n / 4]).unwrap();
    let mut filter = SplitBlockBloom::builder(n as u64).on(device).build().unwrap();
    let map = StaticMap::<u64, u64>::builder().on(device).build_from(present, present).unwrap();

    let (updates, lookups) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let (there, questions) = (device.from_slice(present).unwrap(), device.from_slice(asked).unwrap());
    let mut values = lookups.alloc_uninit::<u64>(asked.len()).unwrap();
    let mut found = lookups.alloc_uninit::<u64>(asked.len().div_ceil(64)).unwrap();
    let mut of_map = lookups.alloc_uninit::<u64>(asked.len()).unwrap();
    let mut of_filter = lookups.alloc_uninit::<u8>(asked.len()).unwrap();
    // SAFETY: all memory lives until both streams have been waited for; answers are different vectors; lookups come
    // after the updates, by `wait_for`.
    unsafe {
        let (first, second) = (there.slice(..n / 2), there.slice(n / 2..));
        filter.insert_async(&updates, there.as_slice()).unwrap();
        dictionary.insert_async(&updates, first, first).unwrap();
        dictionary.insert_async(&updates, second, second).unwrap();
        dictionary.remove_async(&updates, there.slice(..n / 4)).unwrap();
        map.get_async(&lookups, questions.as_slice(), of_map.as_mut_slice(), found.as_mut_slice()).unwrap();
        lookups.wait_for(&updates).unwrap();
        filter.contains_async(&lookups, questions.as_slice(), of_filter.as_mut_slice()).unwrap();
        dictionary.get_async(&lookups, questions.as_slice(), values.as_mut_slice(), found.as_mut_slice()).unwrap();
    }
    lookups.synchronize().unwrap();
    let (values, found) = (values.to_vec().unwrap(), found.to_vec().unwrap());
    let has = |i: usize| found[i / 64] >> (i % 64) & 1 == 1;
    let answers: Vec<_> = values.iter().enumerate().map(|(i, &value)| has(i).then_some(value)).collect();
    assert_eq!(answers, host.get_bulk(asked));
    assert_eq!(of_map.to_vec().unwrap()[..n], *present);
    assert!(of_filter.to_vec().unwrap()[..n].iter().all(|&answer| answer == 1));
    // Levels differ: the host has cleaned up by itself, which `_async` methods leave to calls that wait.
    assert!(dictionary.to_host().unwrap().iter().eq(host.iter()));
}

/// Variables of a long run: its seconds, and its processes.
const SECONDS: &str = "WARPSET_LOAD_SECONDS";
const PROCESSES: &str = "WARPSET_LOAD_PROCESSES";

/// Longest delay before a launch on a CUDA device, in microseconds.
const DELAY: u32 = 50;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// Runs rounds on eight threads at once, each with keys of its own, while launches are delayed; for as long as asked.
fn eight_threads(device: &Device) {
    let (n, rounds) = size(device);
    let _delayed = testing::delay_launches(DELAY);
    let end = variable(SECONDS).map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let goes_on = |number| end.map_or(number < rounds, |end| Instant::now() < end);
    let done: u64 = thread::scope(|scope| {
        let work = |thread: u64| {
            let mut number = 0;
            while goes_on(number) {
                // A long run takes several sizes, so that short and long work meet.
                let n = if end.is_some() { n >> (3 * (number % 4)) } else { n };
                round(device, n, thread << 20 | number);
                number += 1;
            }
            number
        };
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{done} rounds of every structure");
}

#[test]
fn eight_threads_on_one_device() {
    testing::devices(3).iter().for_each(eight_threads);
}

/// In the environment of a child process.
const CHILD: &str = "WARPSET_UNDER_LOAD";

/// Runs the rounds of a child of the next test, which start on its command.
#[test]
fn rounds_of_a_child() {
    if std::env::var_os(CHILD).is_some() {
        let device = testing::cuda().expect("the parent has it");
        println!("\nready");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        eight_threads(&device);
    }
}

/// Runs on CUDA alone: emulators of several processes share nothing.
#[test]
fn processes_of_eight_threads_on_one_device() {
    if testing::cuda().is_none() {
        return;
    }
    let start = |_| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rounds_of_a_child", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<Child> = (0..variable(PROCESSES).unwrap_or(2)).map(start).collect();
    let take = |child: &mut Child| BufReader::new(child.stdout.take().unwrap());
    let mut outputs: Vec<_> = children.iter_mut().map(take).collect();
    // All have opened the device before one begins.
    for output in &mut outputs {
        assert!(output.by_ref().lines().map_while(Result::ok).any(|line| line == "ready"), "a child has not begun");
    }
    let begin = |child: &mut Child| child.stdin.take().unwrap().write_all(b"begin\n").unwrap();
    children.iter_mut().for_each(begin);
    for (child, output) in children.iter_mut().zip(&mut outputs) {
        let mut said = String::new();
        output.read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        said.lines().filter(|line| line.ends_with("structure")).for_each(|line| println!("{line}"));
    }
}

/// Memory that nothing uses, so that little is left.
struct Ballast<'a> {
    device: &'a Device,
    /// From the largest to the smallest.
    blocks: Vec<DeviceVec<u8>>,
    /// Bytes of the smallest.
    least: usize,
}

impl Ballast<'_> {
    /// Allocates all free memory in ever smaller blocks, until less than the smallest is left.
    fn fill(&mut self) {
        let mut bytes = self.device.memory_info().unwrap().free.next_power_of_two();
        while bytes >= self.least {
            match self.device.alloc_uninit(bytes) {
                Ok(block) => self.blocks.push(block),
                Err(error) => {
                    assert!(error.is_out_of_memory(), "{error}");
                    bytes /= 2;
                }
            }
        }
    }
}

/// Whether an error says that device memory did not suffice.
trait Refusal: std::fmt::Debug {
    fn is_out_of_memory(&self) -> bool;
}

macro_rules! refusals {
    ($($structure:ident),*) => {$(
        impl Refusal for $structure::Error {
            fn is_out_of_memory(&self) -> bool {
                matches!(self, $structure::Error::Gpu(why) if why.is_out_of_memory())
            }
        }
    )*};
}
refusals!(warpset_bloom, warpset_lsm, warpset_primitives, warpset_quotient, warpset_mphf);

/// Tries an operation on the full device, again and again with more memory, until it works; returns what it gives. Each
/// time before, it gives the typed error, and `state` is as it was: `image` of it is a copy on the host.
fn refuses_until_it_works<S, T, I: PartialEq, E: Refusal>(
    ballast: &mut Ballast<'_>,
    what: &str,
    state: &mut S,
    image: impl Fn(&S) -> Result<I, E>,
    mut operation: impl FnMut(&mut S) -> Result<T, E>,
) -> T {
    let before = image(state).unwrap_or_else(|error| panic!("{what}: a copy to the host: {error:?}"));
    ballast.fill();
    let mut refused = 0;
    loop {
        match operation(state) {
            Ok(given) => {
                println!("{what}: refused {refused} times");
                ballast.blocks.clear();
                assert!(refused > 0 || !ballast.device.is_emulator(), "{what} works without memory");
                return given;
            }
            Err(error) => assert!(error.is_out_of_memory(), "{what}: {error:?}"),
        }
        refused += 1;
        // A copy to the host may need memory too, for a time.
        loop {
            match image(state) {
                Ok(after) => break assert!(after == before, "{what} has failed, and has changed something"),
                Err(error) => assert!(error.is_out_of_memory(), "{what}, a copy to the host: {error:?}"),
            }
            assert!(ballast.blocks.pop().is_some(), "{what}: a copy to the host takes more memory than there is");
        }
        assert!(ballast.blocks.pop().is_some(), "{what} takes more memory than there is");
    }
}

/// Makes every structure on a device with less than `least` bytes of free memory, and some keys.
fn nearly_full(device: &Device, n: usize, least: usize) {
    // Kernels and streams are there before memory is short; what the driver needs for them is no vector's.
    round(device, n, 1);
    let (first, second) = (keys(n, 5), keys(n, 6));
    let all = [&first[..], &second].concat();
    let mut ballast = Ballast { device, blocks: Vec::new(), least };
    let ballast = &mut ballast;

    let builder = SplitBlockBloom::builder(4 * n as u64);
    let mut filter = builder.on(device).build_from(&first).unwrap();
    let mut host = filter.to_host().unwrap();
    let build = |_: &mut ()| builder.on(device).build_from(&second);
    let other = refuses_until_it_works(ballast, "a split-block filter's build", &mut (), |()| Ok(()), build);
    refuses_until_it_works(
        ballast,
        "an insertion",
        &mut filter,
        |filter| filter.to_host(),
        |filter| filter.insert_bulk(&second),
    );
    host.insert_bulk(&second).unwrap();
    assert!(filter.to_host().unwrap() == host);
    drop((filter, other));

    macro_rules! quotient {
        ($name:literal, $builder:expr) => {
            let builder = $builder;
            let mut filter = builder.on(device).build_from(&first).unwrap();
            let mut host = filter.to_host().unwrap();
            let other = builder.on(device).build_from(&second).unwrap();
            refuses_until_it_works(
                ballast,
                concat!($name, ": insertion"),
                &mut filter,
                |f| f.to_host(),
                |filter| filter.insert_bulk(&second),
            );
            refuses_until_it_works(
                ballast,
                concat!($name, ": removal"),
                &mut filter,
                |f| f.to_host(),
                |filter| filter.remove_bulk(&first),
            );
            refuses_until_it_works(
                ballast,
                concat!($name, ": doubling"),
                &mut filter,
                |f| f.to_host(),
                |filter| filter.double(),
            );
            refuses_until_it_works(
                ballast,
                concat!($name, ": merging"),
                &mut filter,
                |f| f.to_host(),
                |filter| filter.merge(&other),
            );
            host.insert_bulk(&second).unwrap();
            host.remove_bulk(&first).unwrap();
            host.double().unwrap();
            host.merge(&other.to_host().unwrap()).unwrap();
            assert!(filter.to_host().unwrap() == host);
        };
    }
    quotient!("standard slots", StandardQuotientFilter::builder(4 * n as u64).duplicates(Duplicates::Kept));
    quotient!("rank and select", RankSelectQuotientFilter::builder(2 * n as u64).duplicates(Duplicates::Counted));

    macro_rules! dictionary {
        ($name:literal, $form:ident, $builder:expr $(, $cleanup:ident)?) => {
            let mut dictionary = $builder.on(device).build_from(&first, &second).unwrap();
            let mut host = dictionary.to_host().unwrap();
            let image = warpset_lsm::gpu::$form::<u64, u64>::to_host;
            refuses_until_it_works(ballast, concat!($name, ": insertion"), &mut dictionary, image, |dictionary| {
                dictionary.insert_bulk(&second, &first)
            });
            refuses_until_it_works(ballast, concat!($name, ": removal"), &mut dictionary, image, |dictionary| {
                dictionary.remove_bulk(&first)
            });
            host.insert_bulk(&second, &first).unwrap();
            host.remove_bulk(&first).unwrap();
            assert!(dictionary.to_host().unwrap() == host);
            let get = |dictionary: &mut _| OrderedMap::get_bulk(dictionary, &all);
            let found = refuses_until_it_works(ballast, concat!($name, ": lookup"), &mut dictionary, image, get);
            assert_eq!(found, host.get_bulk(&all));
            $(
                refuses_until_it_works(ballast, concat!($name, ": cleanup"), &mut dictionary, image, |dictionary| {
                    dictionary.$cleanup()
                });
                host.$cleanup().unwrap();
                assert!(dictionary.to_host().unwrap() == host);
            )?
        };
    }
    // A cleanup that a tree does by itself would wait until there is memory.
    dictionary!("a tree", Lsm, Lsm::builder().cleanup(CleanupPolicy::Manual), cleanup);
    dictionary!("a sorted array", SortedArray, SortedArray::builder()); // is always clean

    let build = |_: &mut ()| RecSplit::builder().on(device).build_from(&all);
    let function = refuses_until_it_works(ballast, "a function's build", &mut (), |()| Ok(()), build);
    assert!(function.to_host().unwrap() == RecSplit::builder().build_from(&all).unwrap());
    let build = |_: &mut ()| StaticFilter::builder().width(16).on(device).build_from(&all);
    let members = refuses_until_it_works(ballast, "a static filter's build", &mut (), |()| Ok(()), build);
    assert_eq!(members.count_contained_bulk(&all).unwrap(), all.len());

    // More keys than one block sorts in shared memory.
    let mut expected = keys(25 * n, 7);
    let (stream, mut sorted) = (device.new_stream().unwrap(), device.from_slice(&expected).unwrap());
    // SAFETY: the vector lives until `to_vec` has waited, and nothing else uses it.
    let sort = |keys: &mut DeviceVec<u64>| unsafe { sort::sort_keys_in_place_async(&stream, keys, By::ascending()) };
    refuses_until_it_works(ballast, "a sort", &mut sorted, |keys| Ok(keys.to_vec()?), sort);
    expected.sort_unstable();
    assert_eq!(sorted.to_vec().unwrap(), expected);

    // When memory is there again, everything works.
    ballast.blocks.clear();
    round(device, n, 2);
}

#[test]
fn a_nearly_full_emulator() {
    if !testing::devices(7).is_empty() {
        let options = EmulatorOptions::default().config(Config::seeded(7)).memory_bytes(16 << 20);
        nearly_full(&Device::emulator_with(options), 200, 256);
    }
}

#[test]
#[ignore = "takes all memory of the CUDA device: nothing else may run on it"]
fn a_nearly_full_device() {
    if let Some(device) = testing::cuda() {
        nearly_full(&device, 1 << 20, 1 << 20);
    }
}

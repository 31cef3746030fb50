use std::fmt::Debug;
use warpset_base::filter::LengthMismatch;
use warpset_base::testing::tier;

use warpset_core::hash::mix;

use warpset_gpu::testing::devices;

use super::*;
use crate::Error;
use crate::merge::tests::{merged, run, unzip};
use warpset_kernels::primitives::merge_many as kernels;

fn check<K: SortKey + Debug, V: Payload + PartialEq + Debug>(runs: &[Vec<(K, V)>], mask: KeyMask<K>) {
    let slices: Vec<&[(K, V)]> = runs.iter().map(Vec::as_slice).collect();
    let expected = unzip(&merged(&slices, mask));
    let n = expected.0.len();
    let split: Vec<(Vec<K>, Vec<V>)> = runs.iter().map(|run| unzip(run)).collect();

    for device in devices((n + runs.len()) as u64) {
        let stream = device.new_stream().unwrap();
        let upload = |run: &(Vec<K>, Vec<V>)| (device.from_slice(&run.0).unwrap(), device.from_slice(&run.1).unwrap());
        let on_device: Vec<_> = split.iter().map(upload).collect();
        let runs: Vec<Pairs<'_, K, V>> = on_device.iter().map(|run| Pairs::new(&run.0, &run.1)).collect();
        let keys: Vec<DeviceSlice<'_, K>> = runs.iter().map(|run| run.keys).collect();
        let (mut out, mut out_values) = (device.alloc_uninit(n).unwrap(), device.alloc_uninit(n).unwrap());
        // SAFETY: all live until they have been waited for.
        unsafe { merge_many_keys_async(&stream, &keys, mask, &mut out) }.unwrap();
        assert_eq!(out.to_vec().unwrap(), expected.0, "{} runs, {n} keys", runs.len());
        out.fill_bytes(0).unwrap();
        // SAFETY: as above.
        unsafe { merge_many_pairs_async(&stream, &runs, mask, &mut out, &mut out_values) }.unwrap();
        let found = (out.to_vec().unwrap(), out_values.to_vec().unwrap());
        assert_eq!(found, expected, "{} runs, {n} pairs", runs.len());
    }
}

fn check_lengths<K: SortKey + Debug, V: Payload + PartialEq + Debug>(lengths: &[usize], range: u64, mask: KeyMask<K>) {
    let mut first = 0;
    let mut runs = Vec::new();
    for &length in lengths {
        runs.push(run::<K, V>(length, range, mask, first));
        first += length;
    }
    check(&runs, mask);
}

#[test]
fn one_to_eight_runs_are_merged_stably() {
    for runs in 0..=8 {
        let lengths: Vec<usize> = (0..runs).map(|r| 100 + 317 * r).collect();
        for range in [1, 7, 1 << 32] {
            check_lengths::<u32, u32>(&lengths, range, KeyMask::all());
        }
    }
    check_lengths::<u32, u64>(&[900, 1000, 1100, 800, 700], 1 << 32, KeyMask::above(20));
    check_lengths::<u64, u32>(&[900, 1000, 1100, 800, 700, 1], u64::MAX, KeyMask::above(60));
    check_lengths::<u64, u64>(&[900, 1000, 1100, 800, 700, 1, 2], 50, KeyMask::all());
    check_lengths::<u128, u32>(&[900, 1000, 1100, 800, 700], u64::MAX, KeyMask::above(90));
    check_lengths::<u128, u64>(&[900, 0, 1100, 800, 700, 1, 2], u64::MAX, KeyMask::all());
}

#[test]
fn empty_runs_and_runs_of_very_different_lengths() {
    for lengths in
        [&[0; 8][..], &[0, 0, 0, 0, 0, 0, 0, 1], &[5000, 0, 0, 0, 3, 0, 0, 0], &[1, 9000, 1], &[0, 4000, 0, 4000]]
    {
        check_lengths::<u32, u32>(lengths, 1 << 32, KeyMask::all());
        check_lengths::<u32, u32>(lengths, 2, KeyMask::all());
    }
}

#[test]
fn runs_one_behind_the_other() {
    let step = |r: u32| (0..1200u32).map(|i| (1200 * (7 - r) + i, r)).collect::<Vec<(u32, u32)>>();
    check(&(0..8).map(step).collect::<Vec<_>>(), KeyMask::all());
    let turns = |r: u32| (0..1200u32).map(|i| (8 * i + r, r)).collect::<Vec<(u32, u32)>>();
    check(&(0..8).map(turns).collect::<Vec<_>>(), KeyMask::all());
}

#[test]
fn more_runs_and_bad_lengths_are_errors() {
    for device in devices(3) {
        let stream = device.new_stream().unwrap();
        let run = device.from_slice(&[1u32]).unwrap();
        let mut out = device.alloc_uninit::<u32>(9).unwrap();
        // SAFETY: nothing gets queued.
        let wrong = unsafe { merge_many_keys_async(&stream, &[run.as_slice(); 33], KeyMask::all(), &mut out) };
        assert!(matches!(wrong, Err(Error::TooManyRuns { runs: 33, max: 32 })));
        // SAFETY: nothing gets queued.
        let wrong = unsafe { merge_many_keys_async(&stream, &[run.as_slice(); 8], KeyMask::all(), &mut out) };
        assert!(matches!(wrong, Err(Error::LengthMismatch(LengthMismatch { needed: 8, found: 9, .. }))));
    }
}

/// Status bits of a run, if it has any.
type Marks = Option<Vec<u32>>;

fn marks(n: usize, every: u64, seed: u64) -> Marks {
    let bit = |i: usize| u32::from(mix(i as u64, seed).is_multiple_of(every)) << (i % 32);
    let words = (0..n.div_ceil(32)).map(|w| (32 * w..n.min(32 * w + 32)).fold(0, |word, i| word | bit(i)));
    (every != 0).then(|| words.collect())
}

fn bit(words: &[u32], i: usize) -> bool {
    words[i / 32] >> (i % 32) & 1 != 0
}

fn bits_of(marks: impl IntoIterator<Item = bool>, words: usize) -> Vec<u32> {
    let mut bits = vec![0; words];
    marks.into_iter().enumerate().for_each(|(i, mark)| bits[i / 32] |= u32::from(mark) << (i % 32));
    bits
}

/// Item: key, value, status bit.
type Item<K, V> = (K, (V, bool));

/// Returns the newest of `items`, which are sorted and stable.
fn newest<K: SortKey, V: Copy>(items: &[Item<K, V>], mask: KeyMask<K>, keep_marked: bool) -> Vec<Item<K, V>> {
    let first = |i: &usize| *i == 0 || mask.of(items[i - 1].0) != mask.of(items[*i].0);
    (0..items.len()).filter(first).map(|i| items[i]).filter(|item| keep_marked || !item.1.1).collect()
}

/// Checks every form with status bits on every device against the definition.
fn check_marked<K: SortKey + Debug, V: Payload + PartialEq + Debug>(
    runs: &[(Vec<(K, V)>, Marks)],
    mask: KeyMask<K>,
    seed: u64,
) {
    let with_bits: Vec<Vec<Item<K, V>>> = runs
        .iter()
        .map(|(run, marks)| {
            let bit = |i| marks.as_ref().is_some_and(|words| bit(words, i));
            run.iter().enumerate().map(|(i, &(key, value))| (key, (value, bit(i)))).collect()
        })
        .collect();
    let slices: Vec<&[Item<K, V>]> = with_bits.iter().map(Vec::as_slice).collect();
    let all = merged(&slices, mask);
    let (n, words) = (all.len(), all.len().div_ceil(32));
    let parts = |items: &[Item<K, V>]| {
        let keys: Vec<K> = items.iter().map(|item| item.0).collect();
        let values: Vec<V> = items.iter().map(|item| item.1.0).collect();
        (keys, values, bits_of(items.iter().map(|item| item.1.1), words))
    };
    let expected = parts(&all);
    let expected_newest = [false, true].map(|keep| parts(&newest(&all, mask, keep)));
    let split: Vec<(Vec<K>, Vec<V>)> = runs.iter().map(|run| unzip(&run.0)).collect();
    let status = |r: usize| runs[r].1.as_deref();
    for device in devices(seed) {
        let stream = device.new_stream().unwrap();
        let on_device: Vec<_> = split
            .iter()
            .enumerate()
            .map(|(r, run)| {
                let status = status(r).map(|words| device.from_slice(words).unwrap());
                (device.from_slice(&run.0).unwrap(), device.from_slice(&run.1).unwrap(), status)
            })
            .collect();
        let pairs: Vec<_> = on_device
            .iter()
            .map(|(keys, values, status)| {
                WithStatus::new(Pairs::new(keys, values), status.as_ref().map(|words| words.as_slice()))
            })
            .collect();
        let keys: Vec<_> = pairs.iter().map(|pair| WithStatus::new(pair.run.keys, pair.status)).collect();
        let (mut out, mut out_values) = (device.alloc_uninit(n).unwrap(), device.alloc_uninit(n).unwrap());
        let mut out_status = device.alloc_uninit::<u32>(words).unwrap();
        let mut count = device.alloc_uninit::<u64>(1).unwrap();
        // SAFETY: all live until they have been waited for.
        unsafe { merge_many_keys_with_status_async(&stream, &keys, mask, &mut out, &mut out_status) }.unwrap();
        assert_eq!((out.to_vec().unwrap(), out_status.to_vec().unwrap()), (expected.0.clone(), expected.2.clone()));
        out.fill_bytes(0).unwrap();
        out_status.fill_bytes(0).unwrap();
        // SAFETY: as above.
        unsafe {
            merge_many_pairs_with_status_async(&stream, &pairs, mask, &mut out, &mut out_values, &mut out_status)
        }
        .unwrap();
        let found = (out.to_vec().unwrap(), out_values.to_vec().unwrap(), out_status.to_vec().unwrap());
        assert_eq!(found, expected);
        for (keep, expected) in [false, true].into_iter().zip(&expected_newest) {
            let kept = expected.0.len();
            let marked = if keep { Marked::Kept(out_status.as_mut_slice()) } else { Marked::Dropped };
            // SAFETY: as above.
            unsafe { merge_newest_keys_async(&stream, &keys, mask, marked, &mut out, &mut count) }.unwrap();
            assert_eq!(count.to_vec().unwrap(), [kept as u64], "keys, keep {keep}");
            assert_eq!(out.to_vec().unwrap()[..kept], expected.0);
            assert!(!keep || out_status.to_vec().unwrap() == expected.2);
            out.fill_bytes(0).unwrap();
            let marked = if keep { Marked::Kept(out_status.as_mut_slice()) } else { Marked::Dropped };
            // SAFETY: as above.
            unsafe { merge_newest_pairs_async(&stream, &pairs, mask, marked, &mut out, &mut out_values, &mut count) }
                .unwrap();
            assert_eq!(count.to_vec().unwrap(), [kept as u64], "pairs, keep {keep}");
            assert_eq!(out.to_vec().unwrap()[..kept], expected.0);
            assert_eq!(out_values.to_vec().unwrap()[..kept], expected.1);
            assert!(!keep || out_status.to_vec().unwrap() == expected.2);
        }
    }
}

/// Returns runs of these lengths with keys below `range`; every other run has status bits.
fn marked_runs<K: SortKey, V: Payload>(lengths: &[usize], range: u64, mask: KeyMask<K>) -> Vec<(Vec<(K, V)>, Marks)> {
    let mut first = 0;
    lengths
        .iter()
        .enumerate()
        .map(|(r, &length)| {
            let items = run::<K, V>(length, range, mask, first);
            first += length;
            (items, marks(length, [3, 0][r % 2], r as u64))
        })
        .collect()
}

#[test]
fn all_widths_with_status_bits() {
    let lengths = [0, 700, 1, 33, 2000, 0, 64, 3100];
    check_marked(&marked_runs::<u32, u64>(&lengths, 1 << 32, KeyMask::above(20)), KeyMask::above(20), 2);
    check_marked(&marked_runs::<u64, u64>(&lengths, 4000, KeyMask::all()), KeyMask::all(), 4);
    check_marked(&marked_runs::<u128, u32>(&lengths, 4000, KeyMask::above(41)), KeyMask::above(41), 15);
    if tier(false, true) {
        check_marked(&marked_runs::<u32, u32>(&lengths, 4000, KeyMask::all()), KeyMask::all(), 1);
        check_marked(&marked_runs::<u64, u32>(&lengths, u64::MAX, KeyMask::all()), KeyMask::all(), 3);
        check_marked(&marked_runs::<u128, u64>(&lengths, 4000, KeyMask::all()), KeyMask::all(), 16);
    }
}

#[test]
fn levels_of_an_lsm() {
    let levels: Vec<usize> = (0..9).map(|level| 32 << level).collect();
    check_marked(&marked_runs::<u32, u32>(&levels, 1 << 13, KeyMask::all()), KeyMask::all(), 5);
    check_marked(&marked_runs::<u64, u64>(&levels[..7], 1 << 12, KeyMask::all()), KeyMask::all(), 6);
}

#[test]
fn splits_between_others() {
    // More tiles than between two splits that are found first.
    let levels: Vec<usize> = (0..10).map(|level| 32 << level).collect();
    let tile = kernels::merge_many_u64_u64::SHAPE.tile();
    assert!(levels.iter().sum::<usize>() > kernels::SPLIT_STEP as usize * tile);
    check_lengths::<u64, u64>(&levels, u64::MAX, KeyMask::all());
    check_lengths::<u64, u64>(&levels, 900, KeyMask::all());
}

#[test]
fn more_than_eight_runs() {
    for runs in [9, 16, 17, 24, 32] {
        let lengths: Vec<usize> = (0..runs).map(|r| 20 + 97 * r % 501).collect();
        check_marked(&marked_runs::<u32, u32>(&lengths, 5000, KeyMask::all()), KeyMask::all(), runs as u64);
    }
}

#[test]
fn nothing_and_one_item() {
    check_marked::<u32, u32>(&[], KeyMask::all(), 7);
    check_marked(&marked_runs::<u32, u32>(&[0, 0], 9, KeyMask::all()), KeyMask::all(), 8);
    check_marked(&marked_runs::<u32, u32>(&[0, 1], 9, KeyMask::all()), KeyMask::all(), 9);
    check_marked(&[(vec![(5u32, 1u32)], Some(vec![1]))], KeyMask::all(), 10);
}

#[test]
fn equal_keys_across_tiles() {
    // A single key, marked in the first run or not at all; and a key that ends at the end of a tile.
    for marked in [vec![!0u32; 100], vec![0; 100]] {
        let runs: Vec<(Vec<(u32, u32)>, Marks)> =
            (0..3).map(|r| ((0..3200).map(|i| (7, 3200 * r + i)).collect(), Some(marked.clone()))).collect();
        check_marked(&runs, KeyMask::all(), 11);
    }
    let tile = kernels::merge_many_u32_u32::SHAPE.tile() as u32;
    let steps = |r: u32| (0..tile / 2 + 1).map(|i| (i / 4 * 2, r)).collect::<Vec<(u32, u32)>>();
    check_marked(&[(steps(0), None), (steps(1), None), (steps(2), None)], KeyMask::all(), 12);
}

#[test]
fn the_greatest_keys_and_runs_that_do_not_mix() {
    let all = u64::MAX;
    let runs: Vec<(Vec<(u64, u32)>, Marks)> =
        (0..12u64).map(|r| ((0..500).map(|i| (all - 6000 + 500 * (11 - r) + i, 0)).collect(), None)).collect();
    check_marked(&runs, KeyMask::all(), 13);
    check_marked(&[(vec![(u32::MAX, 1u32); 40], None), (vec![(u32::MAX, 2); 5000], None)], KeyMask::all(), 14);
}

#[test]
fn many_items_on_cuda() {
    let Some(device) = warpset_gpu::testing::cuda() else { return };
    let stream = device.new_stream().unwrap();
    // Levels from 64 items to 2^21.
    let mut runs: Vec<Vec<u32>> =
        (6..22).map(|log| (0..1u64 << log).map(|i| mix(i, log as u64) as u32).collect()).collect();
    runs.iter_mut().for_each(|run| run.sort_unstable());
    let mut expected = runs.concat();
    expected.sort_unstable();
    let on_device: Vec<_> = runs.iter().map(|run| device.from_slice(run).unwrap()).collect();
    let slices: Vec<_> = on_device.iter().map(|run| run.as_slice()).collect();
    let mut out = device.alloc_uninit::<u32>(expected.len()).unwrap();
    // SAFETY: all live until they have been waited for.
    unsafe { merge_many_keys_async(&stream, &slices, KeyMask::all(), &mut out) }.unwrap();
    stream.synchronize().unwrap();
    assert!(out.to_vec().unwrap() == expected);
    let kept: Vec<_> = slices.iter().map(|&run| WithStatus::new(run, None)).collect();
    let mut count = device.alloc_uninit::<u64>(1).unwrap();
    // SAFETY: as above.
    unsafe { merge_newest_keys_async(&stream, &kept, KeyMask::all(), Marked::Dropped, &mut out, &mut count) }.unwrap();
    stream.synchronize().unwrap();
    expected.dedup();
    assert_eq!(count.to_vec().unwrap(), [expected.len() as u64]);
    assert!(out.to_vec().unwrap()[..expected.len()] == expected);
}

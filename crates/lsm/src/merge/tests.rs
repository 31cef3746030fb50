//! Merges against sorting, across the borders of parts.

use super::*;
use warpset_core::hash::mix;

/// Returns a run of `len` elements with keys below `keys`; one in four is a tombstone if `tombstones`.
fn elements(len: usize, keys: u64, seed: u64, tombstones: bool) -> Elements<u32, u64> {
    let mut all: Vec<(u32, bool, u64)> = (0..len as u64)
        .map(|i| {
            let hash = mix(i, seed);
            ((hash % keys) as u32, tombstones && hash >> 60 < 4, hash | 1)
        })
        .collect();
    all.sort_by_key(|&(key, tombstone, _)| (key, !tombstone));
    let mut run = Elements::zeroed(len, tombstones).unwrap();
    for (i, &(key, tombstone, value)) in all.iter().enumerate() {
        run.keys.as_mut_slice()[i] = key;
        run.values[i] = if tombstone { 0 } else { value };
        if tombstone {
            run.tombstones.as_mut().unwrap()[i / 32] |= 1 << (i % 32);
        }
    }
    run
}

fn listed(run: Run<'_, u32, u64>) -> Vec<(u32, bool, u64)> {
    (0..run.len()).map(|i| (run.keys[i], run.is_tombstone(i), run.values[i])).collect()
}

fn check(lengths: &[usize], keys: u64, tombstones: impl Fn(usize) -> bool) {
    let runs: Vec<_> = lengths.iter().enumerate().map(|(i, &n)| elements(n, keys, i as u64, tombstones(i))).collect();
    let runs: Vec<_> = runs.iter().map(Elements::run).collect();
    let mut expected: Vec<_> = runs.iter().flat_map(|&run| listed(run)).collect();
    expected.sort_by_key(|&(key, ..)| key);
    let merged = merge_all(&runs).unwrap();
    assert!(listed(merged.run()) == expected, "{lengths:?}, keys below {keys}");
    assert_eq!(merged.tombstones.is_some(), runs.iter().any(Run::has_tombstones));

    expected.dedup_by_key(|&mut (key, ..)| key);
    expected.retain(|&(_, tombstone, _)| !tombstone);
    let live = merge_live(&runs).unwrap();
    assert!(listed(live.run()) == expected, "live of {lengths:?}, keys below {keys}");
}

#[test]
fn any_number_of_runs_of_any_length() {
    let shapes: &[&[usize]] = &[
        &[],
        &[0],
        &[1],
        &[1, 0, 1],
        &[33, 64, 31],
        &[PART, PART + 1, 3 * PART],
        &[64, 1, 5 * PART],
        &[10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240, 20_480],
        &[700; 24],
    ];
    for shape in shapes.iter().filter(|shape| !cfg!(miri) || shape.iter().sum::<usize>() < 330) {
        for keys in [7, 1, 1000, 1 << 32].into_iter().take(if cfg!(miri) { 1 } else { 4 }) {
            check(shape, keys, |run| run % 3 == 1);
            if !cfg!(miri) {
                check(shape, keys, |_| false);
                check(shape, keys, |_| true);
            }
        }
    }
}

#[test]
fn runs_that_do_not_overlap() {
    let mut low = elements(2 * PART, 1 << 20, 1, true);
    let high = elements(2 * PART, 1 << 20, 2, false);
    low.keys.as_mut_slice().iter_mut().for_each(|key| *key += 1 << 30);
    for runs in [[low.run(), high.run()], [high.run(), low.run()]] {
        let merged = merge_all(&runs).unwrap();
        let expected = [listed(high.run()), listed(low.run())].concat();
        assert!(listed(merged.run()) == expected);
    }
}

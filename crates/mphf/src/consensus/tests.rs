//! Tests of the search and of its costs; `kind_tests` has the properties of all kinds.

use super::*;
use crate::kind_tests::assert_bijection;
use crate::{RecSplit, StaticFilter};
use warpset_base::testing::{keys as random, tier};

#[test]
fn sizes_and_buckets() {
    let sizes =
        (0..30).chain(tier(&[63, 64, 65, 333, 2401][..], &[63, 64, 65, 100, 333, 2399, 2401, 6000]).iter().copied());
    for count in sizes {
        let keys = random(count, 1);
        for overhead in [0.001, 0.02, 0.2, 1.0] {
            for bucket_size in [1, 2, 3, 7, 33, 200, 2400, 30_000] {
                let builder = Consensus::builder().overhead(overhead).bucket_size(bucket_size);
                assert_bijection(&builder.build_from(&keys).unwrap(), &keys);
            }
        }
    }
}

#[test]
fn large_buckets() {
    let keys = random(120_000, 2);
    for bucket_size in [12_000, 58_000] {
        let builder = Consensus::builder().overhead(0.2).bucket_size(bucket_size);
        assert_bijection(&builder.build_from(&keys).unwrap(), &keys);
    }
}

#[test]
fn small_buckets_have_solutions() {
    let keys = random(if cfg!(debug_assertions) { 100_000 } else { 1_000_000 }, 20);
    for (bucket_size, overhead) in
        [(1, 0.1), (2, 0.3), (5, 0.001), (5, 0.3), (9, 1.0), (14, 0.1), (40, 0.01), (150, 0.02)]
    {
        let function = Consensus::builder().overhead(overhead).bucket_size(bucket_size).build_from(&keys).unwrap();
        // The first attempt succeeded.
        assert_eq!(function.seed(), 0, "{bucket_size} {overhead}");
    }
}

#[test]
fn all_instructions_and_threads_build_the_same() {
    let keys = random(tier(12_000, 30_000), 3);
    for (overhead, bucket_size) in [(0.03, 2400), (0.3, 100), (0.1, 5000), (0.2, 9)] {
        let build = |simd, threads| {
            let builder = Consensus::builder().overhead(overhead).bucket_size(bucket_size).seed(5);
            builder.simd(simd).threads(threads).build_from(&keys).unwrap()
        };
        let expected = build(Simd::Portable, 1);
        assert_bijection(&expected, &keys);
        for (simd, threads) in
            [(Simd::Auto, 3), (Simd::Sequential, 1), (Simd::Sequential, 3), (Simd::Avx2, 1), (Simd::Avx512, 1)]
        {
            assert!(build(simd, threads) == expected, "{simd:?} {threads}");
        }
    }
}

#[test]
fn settings_are_checked() {
    let build = |builder: crate::Builder<ConsensusKind>| builder.build_from(&[1_u64]);
    for overhead in [0.0, 0.000_9, 1.01, -1.0, f64::NAN, f64::INFINITY] {
        let error = build(Consensus::builder().overhead(overhead)).unwrap_err();
        assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
    }
    for bucket_size in [0, 65_536] {
        let built = build(Consensus::builder().bucket_size(bucket_size));
        assert!(matches!(built, Err(Error::InvalidBucketSize { .. })));
    }
}

#[test]
fn predicted_space_is_what_is_built() {
    let keys = random(400_000, 14);
    for (overhead, bucket_size) in [(0.2, 150), (0.1, 600), (0.3, 2400), (0.05, 2000), (0.1, 4800)] {
        let builder = Consensus::builder().overhead(overhead).bucket_size(bucket_size);
        let predicted = builder.estimate().unwrap().bits_per_key;
        let built = builder.build_from(&keys).unwrap().bits_per_key();
        assert!((predicted - built).abs() < 0.01, "{overhead} {bucket_size}: {predicted} for {built}");
    }
}

#[test]
#[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
fn a_target_of_space_is_met() {
    let keys = random(300_000, 15);
    for target in [1.9, 1.7, 1.6, 1.55, 1.5] {
        let builder = Consensus::builder().for_space(target);
        assert!(builder.estimate().unwrap().bits_per_key <= target);
        let bits = builder.build_from(&keys).unwrap().bits_per_key();
        assert!((target - 0.02..target + 0.01).contains(&bits), "{bits} for {target}");
    }
    assert_eq!(Kind::for_space(1.6).unwrap(), Kind::Consensus);
}

/// Checks that an unreachable target is an error in every builder, and that the next setting clears it.
#[test]
fn unreachable_targets_of_space_are_refused() {
    let few: &[f64] = &[f64::NAN, 0.5, 1.44];
    for &bits in tier(few, &[f64::NAN, f64::NEG_INFINITY, -1.0, 0.0, 0.5, 1.44]) {
        let refused = [
            Kind::for_space(bits).map(drop),
            Kind::for_space_on_device(bits).map(drop),
            Consensus::builder().for_space(bits).build_from(&[1u64]).map(drop),
            RecSplit::builder().for_space(bits).build_from(&[1u64]).map(drop),
            RecSplit::builder().for_space(bits).external().build_from(|| Ok([1u64].map(Ok))).map(drop),
            StaticFilter::builder().for_space(bits).build_from(&[1u64]).map(drop),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::UnreachableSpace { least: 1.44..1.53, .. })), "{bits}: {refused:?}");
        }
        Consensus::builder().for_space(bits).for_space(1.6).build_from(&[1u64]).unwrap();
    }
    for least in [1.46, 1.53] {
        let builder =
            |bits| (Consensus::builder().for_space(bits).estimate(), RecSplit::builder().for_space(bits).estimate());
        let (consensus, recsplit) = builder(least);
        assert!(consensus.unwrap().bits_per_key <= least);
        assert_eq!(recsplit.is_ok(), least == 1.53);
    }
}

#[test]
#[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
fn few_keys_get_smaller_buckets_on_a_device() {
    let (host, device) = (
        |bits| Consensus::builder().for_space(bits).estimate().unwrap(),
        |bits, keys| Consensus::builder().for_space_on_device(bits, keys).estimate().unwrap(),
    );
    for bits in [1.46, 1.47, 1.494, 1.545, 1.7] {
        for keys in [10_000_u64, 1_000_000, 10_000_000, 1_000_000_000] {
            let (chosen, n) = (device(bits, keys), keys as f64);
            assert!(chosen.bits_per_key <= bits && chosen.on_device(n) <= host(bits).on_device(n), "{bits}, {keys}");
        }
    }
    assert_eq!(device(1.47, 1_000_000_000), host(1.47));
    assert!(device(1.47, 1_000_000).on_device(1e6) < 0.6 * host(1.47).on_device(1e6));
}

/// Compares with measured nanoseconds per key on an H100, 10^8 keys in its memory.
#[test]
#[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
fn predicted_times_on_a_device_are_near_the_measured() {
    for (bits, measured) in
        [(1.9, 0.336), (1.7, 0.391), (1.6, 0.482), (1.545, 0.635), (1.494, 1.11), (1.47, 2.12), (1.455, 6.38)]
    {
        let predicted = Consensus::builder().for_space(bits).estimate().unwrap().device_nanoseconds_per_key;
        assert!((predicted / measured - 1.0).abs() < 0.15, "{bits}: {predicted} for {measured}");
    }
    // The host builds a few buckets faster, since each of them has one warp only.
    let estimate = Consensus::builder().overhead(0.01).bucket_size(4800).estimate().unwrap();
    assert!(!estimate.device_pays(100_000, 16) && estimate.device_pays(100_000_000, 16));
}

/// Finds the code of one bucket, task by task in the plainest way: the number at the beginning, then values and their
/// bits.
fn plain_code(keys: &[u64], code: CodeParameters) -> Option<Vec<(u32, u32)>> {
    use warpset_core::consensus::hash::{leaf_position, multiplier, next_seed, task_hash};
    use warpset_core::consensus::tree::{FRACTION, Node, depth};
    struct Plain {
        /// Level, node, threshold, bits.
        tasks: Vec<(u32, Node, u32, u32)>,
        depth: u32,
        values: Vec<(u32, u32)>,
    }
    impl Plain {
        /// Solves task `at` and all later ones; `places` are the keys in the order of nodes, level by level.
        fn solve(&mut self, at: usize, seed: u32, places: &mut Vec<Vec<u64>>) -> bool {
            let Some(&(level, node, threshold, bits)) = self.tasks.get(at) else { return true };
            let range = node.begin as usize..node.end as usize;
            for value in 0..1 << bits {
                let seed = next_seed(seed, value, bits);
                let hash = |key: u64| task_hash(key, multiplier(seed, level));
                let keys = places[level as usize][range.clone()].to_vec();
                let solved = if level == self.depth {
                    let mut positions: Vec<u32> =
                        keys.iter().map(|&key| leaf_position(hash(key), node.keys())).collect();
                    positions.sort_unstable();
                    positions.into_iter().eq(0..node.keys())
                } else {
                    let (left, right): (Vec<u64>, Vec<u64>) = keys.iter().partition(|&&key| hash(key) < threshold);
                    let halves = left.len() as u32 == node.middle - node.begin;
                    places[level as usize + 1][range.clone()].copy_from_slice(&[left, right].concat());
                    halves
                };
                self.values.push((value, bits));
                if solved && self.solve(at + 1, seed, places) {
                    return true;
                }
                self.values.pop();
            }
            false
        }
    }
    let (count, depth) = (keys.len() as u32, depth(keys.len() as u32));
    let rows = budget::Rows::new(count, code.slack);
    let (mut tasks, mut base) = (Vec::new(), 0_u32);
    let mut before = 0;
    for level in 0..=depth {
        let row = rows.of(count >> level, level == depth);
        for index in 0..1 << level {
            let node = Node::new(count, level, index);
            let end = (base + row.end(index, node.end)) >> FRACTION;
            tasks.push((level, node, node.threshold(&row), end - before));
            before = end;
        }
        base = base.wrapping_add(row.all(level, count));
    }
    (0..1 << code.root_bits).find_map(|root| {
        let mut plain = Plain { tasks: tasks.clone(), depth, values: vec![(root, code.root_bits)] };
        let mut places = vec![keys.to_vec(); depth as usize + 1];
        plain.solve(0, next_seed(0, root, code.root_bits), &mut places).then_some(plain.values)
    })
}

#[test]
fn codes_are_those_of_the_plainest_search() {
    for size in [2, 3, 5, 6, 10, 11, 40, 100, 161, 400, 1111_u64] {
        for (overhead, seed) in [(0.05, 1), (0.3, 2), (1.0, 3)] {
            let keys: Vec<u64> = (0..size).map(|key| warpset_base::key::Seed::new(seed).hash128(&key).low).collect();
            let code = KindOptions { overhead, ..KindOptions::default() }.code(size as u32).unwrap();
            let plain = plain_code(&keys, code);
            for simd in [Simd::Portable, Simd::Avx2, Simd::Avx512] {
                let mut scratch = Scratch::default();
                let tasks = Tasks::new(size as u32, code.slack, code.root_bits);
                let root = find::Instructions::of(simd).find(&tasks, &keys, &mut scratch).ok();
                let found = root.map(|root| std::iter::once((root, code.root_bits)).chain(scratch.parts()).collect());
                assert_eq!(found, plain, "{size} {overhead} {simd:?}");
            }
        }
    }
}

#[test]
#[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
fn predicted_times_are_those_measured() {
    // Measurements of `docs/consensus.md`.
    for (bits, measured) in
        [(2.0, 54.0), (1.7, 58.0), (1.6, 66.0), (1.543, 78.0), (1.5, 104.0), (1.47, 188.0), (1.455, 500.0)]
    {
        let predicted = Consensus::builder().for_space(bits).estimate().unwrap().nanoseconds_per_key;
        assert!((0.85..1.15).contains(&(predicted / measured)), "{bits}: {predicted} for {measured}");
    }
    assert_eq!([1.9, 1.8, 1.65, 1.5].map(|bits| Kind::for_space(bits).unwrap()), [Kind::Consensus; 4]);
    assert_eq!(Kind::for_space(2.0).unwrap(), Kind::Placement);
    assert_eq!(Kind::for_space(2.8).unwrap(), Kind::RecSplit);
}

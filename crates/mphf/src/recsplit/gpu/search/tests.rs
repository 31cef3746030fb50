//! Numbers found by devices equal those of the CPU.

use super::*;
use crate::kind::Buckets as HostBuckets;
use crate::recsplit::find::Simd;
use crate::recsplit::find::cpu::CpuFinder;
use warpset_core::hash::mix;
use warpset_core::recsplit::{Method, TreeShape};
use warpset_gpu::Device;
use warpset_gpu::testing::{cuda, devices, is_sanitized};

/// Random keys in buckets of these sizes.
struct Input {
    keys: Vec<u64>,
    bounds: Vec<u32>,
}

impl Input {
    fn new(sizes: &[u32], seed: u64) -> Self {
        let mut bounds = vec![0];
        let mut sum = 0;
        bounds.extend(sizes.iter().map(|&size| {
            sum += size;
            sum
        }));
        Self { keys: (0..u64::from(sum)).map(|i| mix(i, seed)).collect(), bounds }
    }

    fn trees(&self, shape: TreeShape, remix: Remix) -> Trees {
        Trees::new(shape, remix, self.bounds.windows(2).map(|of| of[1] - of[0]).max().unwrap_or(0))
    }

    fn on_cpu(&self, trees: &Trees) -> Vec<u64> {
        let mut keys = self.keys.clone();
        for of in self.bounds.windows(2) {
            keys[of[0] as usize..of[1] as usize].sort_by_key(|key| *key as u8);
        }
        let mut numbers = vec![0; trees.count(&self.bounds).unwrap()];
        let buckets = HostBuckets { keys: &mut keys, bounds: &self.bounds };
        let finder = CpuFinder::new(Simd::Auto, trees.remix, f64::INFINITY);
        finder.find(trees, buckets, &mut numbers, &mut Default::default()).unwrap();
        numbers
    }

    fn on_device(&self, device: &Device, trees: Trees) -> Result<Vec<u64>, SearchFailure> {
        let stream = device.new_stream().unwrap();
        let mut sum = 0;
        let firsts: Vec<u32> = self
            .bounds
            .windows(2)
            .map(|of| {
                let first = sum;
                sum += u32::from(trees.nodes()[(of[1] - of[0]) as usize].nodes);
                first
            })
            .collect();
        let mut numbers = stream.alloc_uninit::<u64>(sum as usize).unwrap();
        let mut lows = stream.from_slice(&self.keys).unwrap();
        let (bounds, firsts) = (stream.from_slice(&self.bounds).unwrap(), stream.from_slice(&firsts).unwrap());
        let trees = DeviceTrees::new(&stream, trees).unwrap();
        let buckets = Buckets { lows: &mut lows, bounds: &bounds, first_number: &firsts };
        find(&stream, Strategy::AllBuckets, &trees, buckets, &mut numbers, None).unwrap()?;
        let mut found = vec![0; sum as usize];
        stream.download(&numbers, &mut found).unwrap();
        Ok(found)
    }

    fn check(&self, device: &Device, shape: TreeShape, remix: Remix) {
        let expected = self.on_cpu(&self.trees(shape, remix));
        let found = self.on_device(device, self.trees(shape, remix)).unwrap();
        let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert!(found == expected, "{shape:?} {remix:?}: first at {wrong:?} of {}", expected.len());
    }
}

const METHODS: [Method; 3] = [Method::BruteForce, Method::Rotation, Method::Grouped];

/// Returns sizes of buckets around those of nodes.
fn sizes(shape: &TreeShape, most: u32) -> Vec<u32> {
    let units = [1, shape.leaf(), shape.first_unit(), shape.second_unit(), 2 * shape.second_unit()];
    let mut sizes: Vec<u32> = units.into_iter().flat_map(|unit| [unit - 1, unit, unit + 1]).collect();
    sizes.extend([0, 0, 2, most]);
    sizes.retain(|&size| size <= most);
    sizes
}

#[test]
fn small_trees() {
    for (i, method) in METHODS.into_iter().enumerate() {
        for (leaf, first, second) in [(2, 2, 2), (5, 4, 4), (4, 5, 3), (2, 9, 1), (6, 6, 1), (7, 2, 3)] {
            let shape = TreeShape::new(leaf, first, second, method).unwrap();
            let input = Input::new(&sizes(&shape, 300), u64::from(leaf));
            for device in devices((i * 100) as u64 + u64::from(leaf)) {
                input.check(&device, shape, Remix::Bits32);
            }
        }
    }
}

#[test]
fn leaves_of_all_sizes() {
    for leaf in 2..=24 {
        let shape = TreeShape::new(leaf, 2, 1, Method::Grouped).unwrap();
        let input = Input::new(&[leaf, leaf - 1, 0, leaf, leaf], u64::from(leaf));
        for device in devices(u64::from(leaf)) {
            if device.is_emulator() && !(leaf <= 12 || [15, 16, 18].contains(&leaf)) {
                continue; // hundreds of trials or more, of threads that are coroutines
            }
            input.check(&device, shape, Remix::Bits32);
        }
    }
}

#[test]
fn leaves_in_two_groups_of_many_trials() {
    let many = if is_sanitized() { 30 } else { 1000 };
    // Two warps of a few blocks, and few leaves, so that blocks are teams; all keys in one group occasionally.
    for (leaf, count) in [(9, 3), (10, 1), (11, 2)] {
        let shape = TreeShape::new(leaf, 2, 1, Method::Rotation).unwrap();
        let trees = Trees::new(shape, Remix::Bits32, leaf);
        assert!(is_paired(&trees.nodes()[leaf as usize], trees.budgets[leaf as usize]));
        for device in devices(u64::from(leaf)) {
            let count = count * if device.is_emulator() { 1 } else { many };
            let remix = if leaf == 10 { Remix::Bits64 } else { Remix::Bits32 };
            Input::new(&vec![leaf; count], 3).check(&device, shape, remix);
        }
    }
    let Some(device) = cuda() else { return };
    for (leaf, count) in [(13, 10 * many), (16, 40), (17, if is_sanitized() { 3 } else { 300 }), (18, 3)] {
        let shape = TreeShape::new(leaf, 2, 1, Method::Rotation).unwrap();
        Input::new(&vec![leaf; count], 4).check(&device, shape, Remix::Bits32);
    }
}

#[test]
fn other_finaliser_and_positions() {
    for device in devices(3) {
        for method in METHODS {
            let shape = TreeShape::new(5, 3, 2, method).unwrap();
            let input = Input::new(&[100, 3, 47, 5], 9);
            input.check(&device, shape, Remix::Bits64);
            input.check(&device, shape.with_positions(6).unwrap(), Remix::Bits32);
            input.check(&device, shape.with_positions(1).unwrap(), Remix::Bits32);
        }
    }
}

#[test]
fn buckets_that_do_not_fit_in_shared_memory() {
    for device in devices(4) {
        let shape = TreeShape::new(4, 3, 3, Method::Grouped).unwrap();
        Input::new(&[distribute::KEYS_IN_SHARED + 1000, 10, distribute::KEYS_IN_SHARED], 5).check(
            &device,
            shape,
            Remix::Bits32,
        );
    }
}

#[test]
fn equal_keys_have_no_solution() {
    for device in devices(5) {
        for method in METHODS {
            for (leaf, equal) in [(4, [7, 8]), (4, [0, 29]), (8, [3, 4])] {
                let shape = TreeShape::new(leaf, 3, 2, method).unwrap();
                let mut input = Input::new(&[5, 5, 30, 5], 6);
                input.keys[10 + equal[0]] = input.keys[10 + equal[1]];
                let trees = input.trees(shape, Remix::Bits32);
                let found = input.on_device(&device, trees);
                assert_eq!(found, Err(SearchFailure { bucket: 2 }), "{method:?} {leaf}");
            }
        }
        // A bucket larger than the trees.
        let trees = Trees::new(TreeShape::new(4, 3, 2, Method::Grouped).unwrap(), Remix::Bits32, 30);
        let input = Input::new(&[5, 0, 31, 6], 6);
        let bounds = device.from_slice(&input.bounds).unwrap();
        let mut lows = device.from_slice(&input.keys).unwrap();
        let (firsts, mut numbers) = (device.alloc_zeroed(4).unwrap(), device.alloc_zeroed(40).unwrap());
        let stream = device.new_stream().unwrap();
        let trees = DeviceTrees::new(&stream, trees).unwrap();
        let buckets = Buckets { lows: &mut lows, bounds: &bounds, first_number: &firsts };
        let found = find(&stream, Strategy::AllBuckets, &trees, buckets, &mut numbers, None).unwrap();
        assert_eq!(found, Err(SearchFailure { bucket: 2 }));
    }
}

/// Tests sizes for which the emulator is too slow.
#[test]
fn large_inputs() {
    let Some(device) = cuda() else { return };
    for (method, leaf, first, second, bucket) in [
        (Method::Grouped, 8, 6, 4, 100),
        (Method::Grouped, 14, 6, 4, 2000),
        (Method::Grouped, 16, 6, 4, 2000),
        (Method::Grouped, 24, 6, 4, 3000),
        (Method::Grouped, 7, 9, 2, 2000),
        (Method::Rotation, 12, 5, 4, 1000),
        (Method::BruteForce, 10, 4, 3, 60_000),
        (Method::BruteForce, 14, 4, 3, 800),
    ] {
        let shape = TreeShape::new(leaf, first, second, method).unwrap();
        let count = if is_sanitized() { (10_000 / bucket).max(2) } else { 200_000 / bucket };
        let sizes: Vec<u32> =
            (0..count).map(|i| bucket - bucket / 8 + (mix(u64::from(i), 1) as u32) % (bucket / 4)).collect();
        Input::new(&sizes, 7).check(&device, shape, Remix::Bits32);
    }
}

//! Finder for CPUs: picks the instructions, and lets threads share expensive trees.

use super::one_by_one::OneByOne;
use super::portable::Portable;
use super::walk::{self, Extent, Scratch};
use super::{Buckets, SearchFailure, Simd, Trees};
use crate::build::work_stealing;
use warpset_core::recsplit::{Level, Remix};

/// Finds numbers on the calling thread, and on idle threads of its pool.
pub(crate) struct CpuFinder {
    instructions: Instructions,
    /// Least work of a tree that threads share.
    share_from: f64,
}

/// Extent of the whole trees of buckets.
const TREES: Extent = Extent { depth: 0, roots_only: false };

/// Instructions of the processor, as far as the settings allow.
#[derive(Clone, Copy)]
enum Instructions {
    OneByOne,
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(super::x86::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(super::x86::Avx512),
}

impl Instructions {
    fn of(simd: Simd, remix: Remix) -> Self {
        match (simd, remix) {
            // This remix has no vectors.
            (_, Remix::Bits64) | (Simd::Sequential, _) => Self::OneByOne,
            (Simd::Portable, _) => Self::Portable,
            #[cfg(target_arch = "x86_64")]
            (simd, _) => {
                let avx512 = if simd == Simd::Avx2 { None } else { super::x86::Avx512::detect() };
                let avx2 = super::x86::Avx2::detect;
                avx512.map(Self::Avx512).or_else(|| avx2().map(Self::Avx2)).unwrap_or(Self::Portable)
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => Self::Portable,
        }
    }
}

impl CpuFinder {
    /// Makes a finder; threads share trees from `share_from` expected hashes on.
    pub(crate) fn new(simd: Simd, remix: Remix, share_from: f64) -> Self {
        Self { instructions: Instructions::of(simd, remix), share_from }
    }

    /// Runs [`walk::find`] with these instructions.
    fn walk(
        &self,
        trees: &Trees,
        buckets: Buckets,
        extent: Extent,
        numbers: &mut [u64],
        scratch: &mut Scratch,
    ) -> Result<(), SearchFailure> {
        match self.instructions {
            Instructions::OneByOne => walk::find(OneByOne, trees, buckets, extent, numbers, scratch),
            Instructions::Portable => walk::find(Portable, trees, buckets, extent, numbers, scratch),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2(avx2) => avx2.find(trees, buckets, extent, numbers, scratch),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512(avx512) => avx512.find(trees, buckets, extent, numbers, scratch),
        }
    }

    /// Finds the numbers of a subtree with `depth` nodes of the higher levels above its root, on all idle threads:
    /// first the root's, then those of its children, each child on another thread.
    fn share(
        &self,
        trees: &Trees,
        keys: &mut [u64],
        depth: u32,
        numbers: &mut [u64],
        scratch: &mut Scratch,
    ) -> Result<(), SearchFailure> {
        let len = keys.len();
        let node = &trees.nodes()[len];
        let roots_only = node.fanout > 0 && trees.works[len] >= self.share_from;
        let buckets = Buckets { keys: &mut *keys, bounds: &[0, len as u32] };
        self.walk(trees, buckets, Extent { depth, roots_only }, numbers, scratch)?;
        if !roots_only {
            return Ok(());
        }
        let mut numbers = &mut numbers[1..];
        let depth = depth + u32::from(trees.shape.level(len as u32) == Level::Higher);
        let mut keys = keys;
        let mut children = Vec::with_capacity(node.fanout.into());
        for child in 1..=node.fanout {
            let len = if child == node.fanout { keys.len() } else { node.unit.into() };
            let (keys_of_child, others) = keys.split_at_mut(len);
            let (numbers_of_child, other_numbers) = numbers.split_at_mut(trees.nodes()[len].nodes.into());
            children.push((keys_of_child, numbers_of_child));
            (keys, numbers) = (others, other_numbers);
        }
        let child = |scratch: &mut Scratch, (keys, numbers): (&mut [u64], &mut [u64])| {
            self.share(trees, keys, depth, numbers, scratch)
        };
        work_stealing::for_each(children.into_iter(), child)?;
        Ok(())
    }

    /// Writes the numbers of all nodes to `numbers`, [`Trees::count`] of them, in the order of [`super`]. Within a
    /// bucket the keys are in the order of the lowest byte, if the method is
    /// [`Method::Grouped`](warpset_core::recsplit::Method::Grouped).
    pub(crate) fn find(
        &self,
        trees: &Trees,
        Buckets { keys, bounds }: Buckets,
        mut numbers: &mut [u64],
        scratch: &mut Scratch,
    ) -> Result<(), SearchFailure> {
        let is_shared = |bucket: &usize| {
            let len = bounds[bucket + 1] - bounds[*bucket];
            trees.works[len as usize] >= self.share_from
        };
        let buckets = bounds.len() - 1;
        let shared = if self.share_from.is_finite() { 0..buckets } else { 0..0 };
        let mut begin = 0;
        for bucket in shared.filter(is_shared) {
            let before = &bounds[begin..=bucket];
            let (numbers_before, rest) = numbers.split_at_mut(trees.count(before)?);
            let (own, rest) = rest.split_at_mut(trees.count(&bounds[bucket..bucket + 2])?);
            let failed = |unsolved: SearchFailure| SearchFailure { bucket: begin + unsolved.bucket };
            self.walk(trees, Buckets { keys, bounds: before }, TREES, numbers_before, scratch).map_err(failed)?;
            let keys = &mut keys[bounds[bucket] as usize..bounds[bucket + 1] as usize];
            self.share(trees, keys, 0, own, scratch).map_err(|_| SearchFailure { bucket })?;
            (numbers, begin) = (rest, bucket + 1);
        }
        let failed = |unsolved: SearchFailure| SearchFailure { bucket: begin + unsolved.bucket };
        self.walk(trees, Buckets { keys, bounds: &bounds[begin..] }, TREES, numbers, scratch).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::recsplit::{Method, TreeShape};

    /// Returns the numbers of some buckets.
    fn numbers(simd: Simd, share_from: f64, shape: TreeShape) -> Vec<u64> {
        let sizes = [0_u32, 1, 2, 5, 40, 0, 300, 7];
        let trees = Trees::new(shape, Remix::Bits32, 300);
        let mut bounds = vec![0];
        sizes.iter().for_each(|size| bounds.push(bounds[bounds.len() - 1] + size));
        let mut keys: Vec<u64> = (1..=355_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i << 7).collect();
        bounds.windows(2).for_each(|of| keys[of[0] as usize..of[1] as usize].sort_unstable_by_key(|key| *key as u8));
        let mut numbers = vec![u64::MAX; trees.count(&bounds).unwrap()];
        let finder = CpuFinder::new(simd, Remix::Bits32, share_from);
        let buckets = Buckets { keys: &mut keys, bounds: &bounds };
        finder.find(&trees, buckets, &mut numbers, &mut Scratch::default()).unwrap();
        numbers
    }

    #[test]
    fn all_instructions_and_all_ways_to_share_find_the_same() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for method in [Method::BruteForce, Method::Rotation, Method::Grouped] {
            let shape = TreeShape::new(5, 3, 2, method).unwrap();
            let expected = numbers(Simd::Sequential, f64::INFINITY, shape);
            for simd in [Simd::Auto, Simd::Sequential, Simd::Portable, Simd::Avx2, Simd::Avx512] {
                for share_from in [f64::INFINITY, 0.0, 500.0] {
                    let found = pool.install(|| numbers(simd, share_from, shape));
                    assert_eq!(found, expected, "{method:?} {simd:?} {share_from}");
                }
            }
        }
    }

    #[test]
    fn equal_keys_have_no_solution() {
        let shape = TreeShape::new(4, 3, 2, Method::Grouped).unwrap();
        let trees = Trees::new(shape, Remix::Bits32, 30);
        for share_from in [f64::INFINITY, 0.0] {
            let finder = CpuFinder::new(Simd::Auto, Remix::Bits32, share_from);
            let mut keys: Vec<u64> = (0..30).collect();
            keys[20] = 19;
            let bounds = [0, 5, 10, 25, 30];
            let mut numbers = vec![0; trees.count(&bounds).unwrap()];
            let buckets = Buckets { keys: &mut keys, bounds: &bounds };
            let found = finder.find(&trees, buckets, &mut numbers, &mut Scratch::default());
            assert_eq!(found, Err(SearchFailure { bucket: 2 }));
        }
        assert_eq!(trees.count(&[0, 3, 34, 40]), Err(SearchFailure { bucket: 1 }));
    }
}

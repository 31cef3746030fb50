//! Search in portable vectors.

use super::node::{NoSolution, NodeSearch, Task};
use super::simd_leaf::by_leaf_size;
use super::{simd_leaf, simd_splitting};
use crate::u32_vector::portable::Portable as Vector;

/// Search in vectors that need no instruction beyond the target's.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl NodeSearch for Portable {
    #[inline(always)]
    fn leaf(self, task: &Task) -> Result<u64, NoSolution> {
        #[inline(never)]
        fn leaf<const M: usize>(task: &Task) -> Result<u64, NoSolution> {
            // SAFETY: portable vectors need no instruction beyond the target's; the leaf has `M` keys.
            unsafe { simd_leaf::leaf::<Vector, M>(task) }
        }
        by_leaf_size!(task, leaf)
    }

    fn splitting(self, task: &Task) -> Result<u64, NoSolution> {
        // SAFETY: portable vectors need no instruction beyond the target's; shapes keep units below 255.
        unsafe { simd_splitting::splitting::<Vector>(task) }
    }
}

//! The search, and the walk from node to node, compiled for AVX-512 and for AVX2.

use super::node::{NoSolution, NodeSearch, Task};
use super::simd_leaf::by_leaf_size;
use super::walk::{self, Extent, Scratch};
use super::{Buckets, SearchFailure, Trees, simd_leaf, simd_splitting};
use crate::u32_vector::x86::{V256, V512};

macro_rules! instance {
    ($name:ident, $vector:ty, $features:literal, $detect:path) => {
        /// Proof that the processor has the features: only `detect` makes one.
        #[derive(Clone, Copy)]
        pub(super) struct $name(());

        impl $name {
            /// Returns the proof if the processor has the features.
            pub(super) fn detect() -> Option<Self> {
                $detect().then_some(Self(()))
            }

            /// Runs [`walk::find`].
            pub(super) fn find(
                self,
                trees: &Trees,
                buckets: Buckets,
                extent: Extent,
                numbers: &mut [u64],
                scratch: &mut Scratch,
            ) -> Result<(), SearchFailure> {
                #[target_feature(enable = $features)]
                fn find(
                    this: $name,
                    trees: &Trees,
                    buckets: Buckets,
                    extent: Extent,
                    numbers: &mut [u64],
                    scratch: &mut Scratch,
                ) -> Result<(), SearchFailure> {
                    walk::find(this, trees, buckets, extent, numbers, scratch)
                }
                // SAFETY: a value of this type exists, so the processor has the features.
                unsafe { find(self, trees, buckets, extent, numbers, scratch) }
            }

            /// Searches a leaf of `M` keys.
            ///
            /// # Safety
            /// - `task.keys` has `M` keys.
            #[target_feature(enable = $features)]
            unsafe fn leaf_of<const M: usize>(task: &Task) -> Result<u64, NoSolution> {
                // SAFETY: the features are enabled here; the leaf has `M` keys, by this function's contract.
                unsafe { simd_leaf::leaf::<$vector, M>(task) }
            }

            #[target_feature(enable = $features)]
            fn splitting_of(task: &Task) -> Result<u64, NoSolution> {
                // SAFETY: the features are enabled here; shapes keep units below 255.
                unsafe { simd_splitting::splitting::<$vector>(task) }
            }
        }

        impl NodeSearch for $name {
            #[inline(always)]
            fn leaf(self, task: &Task) -> Result<u64, NoSolution> {
                #[inline(always)]
                fn leaf<const M: usize>(task: &Task) -> Result<u64, NoSolution> {
                    // SAFETY: a value of this type exists, so the processor has the features; `by_leaf_size` calls with
                    // the number of keys.
                    unsafe { $name::leaf_of::<M>(task) }
                }
                by_leaf_size!(task, leaf)
            }

            #[inline(always)]
            fn splitting(self, task: &Task) -> Result<u64, NoSolution> {
                // SAFETY: a value of this type exists, so the processor has the features.
                unsafe { $name::splitting_of(task) }
            }
        }
    };
}

instance!(
    Avx512,
    V512,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt",
    crate::processor::has_avx512
);
instance!(Avx2, V256, "avx2,bmi1,bmi2,lzcnt,popcnt", crate::processor::has_avx2);

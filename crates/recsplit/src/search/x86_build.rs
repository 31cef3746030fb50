//! The search and the building of trees, compiled for AVX-512 and for AVX2, and the choice between them.

use super::x86::{V256, V512};
use super::{NoSolution, Search, Simd, Task, by_leaf_size, portable, vector};
use crate::tree::{self, Buckets, Failure, Part, Plan, Scratch};

macro_rules! instance {
    ($name:ident, $vector:ty, $features:literal) => {
        /// Proof that the processor has the features: made in [`build`] only.
        #[derive(Clone, Copy)]
        struct $name(());

        impl $name {
            /// # Safety
            /// The processor must have the features.
            #[target_feature(enable = $features)]
            unsafe fn leaf_of<const M: usize>(task: &Task) -> Result<u64, NoSolution> {
                // SAFETY: the features are there; the leaf has `M` keys.
                unsafe { vector::leaf::<$vector, M>(task) }
            }

            /// # Safety
            /// The processor must have the features.
            #[target_feature(enable = $features)]
            unsafe fn splitting_of(task: &Task) -> Result<u64, NoSolution> {
                // SAFETY: the features are there; shapes keep units below 255.
                unsafe { vector::splitting::<$vector>(task) }
            }

            /// # Safety
            /// The processor must have the features.
            #[target_feature(enable = $features)]
            unsafe fn build(self, plan: &Plan, buckets: Buckets, scratch: &mut Scratch) -> Result<Part, Failure> {
                tree::build(self, plan, buckets, scratch)
            }
        }

        impl Search for $name {
            #[inline(always)]
            fn leaf(self, task: &Task) -> Result<u64, NoSolution> {
                #[inline(always)]
                fn leaf<const M: usize>(task: &Task) -> Result<u64, NoSolution> {
                    // SAFETY: a value of this type exists, so the processor has the features.
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

instance!(Avx512, V512, "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt");
instance!(Avx2, V256, "avx2,bmi1,bmi2,lzcnt,popcnt");

fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && warpset_base::processor::has_bit_instructions()
}

fn has_avx512() -> bool {
    crate::read::has_avx512() && has_avx2()
}

/// Builds with the vectors that `simd` asks for, or the next best that there are.
pub(crate) fn build(simd: Simd, plan: &Plan, buckets: Buckets, scratch: &mut Scratch) -> Result<Part, Failure> {
    if matches!(simd, Simd::Auto | Simd::Avx512) && has_avx512() {
        // SAFETY: the features were just found.
        return unsafe { Avx512(()).build(plan, buckets, scratch) };
    }
    if has_avx2() {
        // SAFETY: the features were just found.
        return unsafe { Avx2(()).build(plan, buckets, scratch) };
    }
    portable::build(plan, buckets, scratch)
}

//! Combination of the values of a maplet with those of a batch, in place: one body for the kernels of all operators.

#[cfg(feature = "bodies")]
use warpset_core::bits::{ByHalves, lowest};
#[cfg(feature = "bodies")]
use warpset_core::quotient::rank_select::Blocks;
use warpset_core::scan::Operator;
#[cfg(feature = "bodies")]
use warpset_simt::thread;
use warpset_simt::{Global, GlobalMut};
#[cfg(not(target_arch = "nvptx64"))]
use warpset_simt::{LaunchConfig, Launcher};

#[cfg(not(target_arch = "nvptx64"))]
use crate::primitives::by_key::ByKeyKernels;
#[cfg(feature = "bodies")]
use crate::quotient::memory::{Owned, Parameters};

/// Combines the stored value of each fingerprint with the value beside it.
///
/// # Safety
/// - Launch: 1-D, one thread per fingerprint.
/// - `fingerprints`: `n` different ones without values; `values`: `n`; `absent`: a bit per fingerprint. They are not
///   written while the kernel runs. Fingerprints whose bit is set are skipped, the others have one value in the filter.
/// - `words`: a sound filter of `blocks` blocks with these `Parameters`, without counters, accessed by this launch
///   alone.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn combine<O: Operator<Value = u64>>(
    fingerprints: Global<u64>,
    values: Global<u64>,
    absent: Global<u32>,
    n: usize,
    words: GlobalMut<u64>,
    blocks: u64,
    parameters: u32,
    value_bits: u32,
) {
    let split = Parameters(parameters).split();
    let mut blocks = Blocks::new(Owned(words), blocks, split.remainder_bits);
    let i = thread::index_1d() as usize;
    // SAFETY: `i < n`, and so there is a bit.
    unsafe {
        if i >= n || absent.read_nc(i / 32) >> (i % 32) & 1 != 0 {
            return;
        }
        let pair = fingerprints.read_nc(i) << value_bits;
        let least = split.remainder(pair);
        // Other threads change values alone, so comparisons with a remainder without a value hold.
        if let Some(slot) = blocks.first_prefixed(split.quotient(pair), least, value_bits, ByHalves) {
            let value = O::combine(blocks.remainder(slot) & lowest(value_bits), values.read_nc(i));
            blocks.set_remainder(slot, least | value & lowest(value_bits));
        }
    }
}

/// Operator with kernels that combine the values of maplets: see [`maplet_kernels!`](crate::maplet_kernels).
#[cfg(not(target_arch = "nvptx64"))]
pub trait MapletKernels: ByKeyKernels<u64, Value = u64> {
    /// Launches a combination in place.
    ///
    /// # Safety
    /// The contract of `combine`.
    #[allow(clippy::too_many_arguments)]
    unsafe fn launch_combine<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        fingerprints: Global<u64>,
        values: Global<u64>,
        absent: Global<u32>,
        n: usize,
        words: GlobalMut<u64>,
        blocks: u64,
        parameters: u32,
        value_bits: u32,
    ) -> Result<(), L::Error>;
}

/// Makes the kernels that combine values of maplets, and [`MapletKernels`] of the operators, which also have kernels of
/// [`by_key_kernels!`](crate::by_key_kernels) for `u64`. For operators outside this crate see
/// [`scan_kernels!`](crate::scan_kernels).
#[macro_export]
macro_rules! maplet_kernels {
    (#![module($at:expr)] $($name:ident: $operator:ty;)*) => {$(
        $crate::kernel! {
            #![module($at)]

            #[doc = concat!("Combines stored values with those of a batch by `", stringify!($operator), "`.")]
            ///
            /// # Safety
            /// The contract of the function `combine` of `warpset_kernels::quotient::rank_select::combine`.
            #[launch_bounds(256, 5)]
            pub unsafe fn $name(
                fingerprints: $crate::simt::Global<u64>, values: $crate::simt::Global<u64>,
                absent: $crate::simt::Global<u32>, n: usize, words: $crate::simt::GlobalMut<u64>, blocks: u64,
                parameters: u32, value_bits: u32,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    $crate::quotient::rank_select::combine::combine::<$operator>(
                        fingerprints, values, absent, n, words, blocks, parameters, value_bits,
                    )
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::quotient::rank_select::combine::MapletKernels for $operator {
            unsafe fn launch_combine<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, fingerprints: $crate::simt::Global<u64>,
                values: $crate::simt::Global<u64>, absent: $crate::simt::Global<u32>, n: usize,
                words: $crate::simt::GlobalMut<u64>, blocks: u64, parameters: u32, value_bits: u32,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe {
                    $name { fingerprints, values, absent, n, words, blocks, parameters, value_bits }
                        .launch(launcher, config)
                }
            }
        }
    )*};
    ($($name:ident: $operator:ty;)*) => { $crate::maplet_kernels! { #![module($crate::module_at)] $($name: $operator;)* } };
}

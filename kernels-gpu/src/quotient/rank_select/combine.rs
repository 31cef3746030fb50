//! Combination of the values of a maplet with those of a batch, in place: one body for the kernels of all operators.

#[cfg(feature = "bodies")]
use warpset_core::bits::{ReadWords as _, lowest, write_field};
use warpset_core::scan::Operator;
#[cfg(feature = "bodies")]
use warpset_simt::thread;
use warpset_simt::{Global, GlobalMut};
#[cfg(not(target_arch = "nvptx64"))]
use warpset_simt::{LaunchConfig, Launcher};

#[cfg(not(target_arch = "nvptx64"))]
use crate::primitives::by_key::ByKeyKernels;
#[cfg(feature = "bodies")]
use crate::quotient::memory::Owned;

/// Combines each stored value with the value beside its place.
///
/// # Safety
/// - Launch: 1-D, one thread per place.
/// - `places`: `n` first bits of different values of `value_bits` bits in `words`; `values`: `n`; `skipped`: a bit per
///   place. They are not written while the kernel runs. Places whose bit is set are not accessed.
/// - `words`: accessed by this launch alone.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn combine<O: Operator<Value = u64>>(
    words: GlobalMut<u64>,
    value_bits: u32,
    places: Global<u64>,
    values: Global<u64>,
    skipped: Global<u32>,
    n: usize,
) {
    let mut words = Owned(words);
    let i = thread::index_1d() as usize;
    // SAFETY: `i < n`, and so there is a bit.
    unsafe {
        if i < n && skipped.read_nc(i / 32) >> (i % 32) & 1 == 0 {
            let place = places.read_nc(i);
            let value = O::combine(words.field(place, value_bits), values.read_nc(i));
            write_field(&mut words, place, value_bits, value & lowest(value_bits));
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
        words: GlobalMut<u64>,
        value_bits: u32,
        places: Global<u64>,
        values: Global<u64>,
        skipped: Global<u32>,
        n: usize,
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
            #[launch_bounds(256, 8)]
            pub unsafe fn $name(
                words: $crate::simt::GlobalMut<u64>, value_bits: u32, places: $crate::simt::Global<u64>,
                values: $crate::simt::Global<u64>, skipped: $crate::simt::Global<u32>, n: usize,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    $crate::quotient::rank_select::combine::combine::<$operator>(
                        words, value_bits, places, values, skipped, n,
                    )
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::quotient::rank_select::combine::MapletKernels for $operator {
            unsafe fn launch_combine<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, words: $crate::simt::GlobalMut<u64>,
                value_bits: u32, places: $crate::simt::Global<u64>, values: $crate::simt::Global<u64>,
                skipped: $crate::simt::Global<u32>, n: usize,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe {
                    $name { words, value_bits, places, values, skipped, n }.launch(launcher, config)
                }
            }
        }
    )*};
    ($($name:ident: $operator:ty;)*) => { $crate::maplet_kernels! { #![module($crate::module_at)] $($name: $operator;)* } };
}

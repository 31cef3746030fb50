//! Kernel that builds a rank-and-select quotient filter by the layout of sorted fingerprints
//! ([`layout`](crate::quotient::layout)).

use warpset_simt::{Global, GlobalMut, allow};

use crate::quotient::layout::Slot;
#[cfg(feature = "bodies")]
use crate::quotient::layout::lay_out;
use crate::quotient::memory::Parameters;
use crate::quotient::rank_select::form::RankSelect;

kernel! {
    /// Writes a filter of `n` ascending `F` fingerprints.
    ///
    /// # Safety
    /// The contract of [`lay_out`], with [`Slot::ITEMS`] for `ITEMS`; the [`Parameters`] say that slots are packed.
    #[launch_bounds(256, 5)]
    pub unsafe fn quotient_rank_select_build<F>(
        fingerprints: Global<F>, n: usize, parameters: u32, slots: u64, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_build_u32, u64 => quotient_rank_select_build_u64] {
        // Some registers of the code after the items spill. One block fewer per processor, without spills, takes 1 to 2
        // % longer.
        allow::spill();
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            lay_out::<F, RankSelect, { F::ITEMS }>(
                fingerprints, fingerprints.cast(), n, Parameters(parameters), slots, look_back, ticket, words, totals,
            )
        }
    }
}

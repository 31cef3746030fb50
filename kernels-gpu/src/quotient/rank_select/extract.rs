//! Kernel that extracts the fingerprints of a rank-and-select quotient filter in ascending order
//! ([`extract_tile`](crate::quotient::rank_select::extract_tile)).

use warpset_core::quotient::rank_select::Blocks;
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_simt::{Global, GlobalMut};

use crate::quotient::memory::{Parameters, ReadOnly};
#[cfg(feature = "bodies")]
use crate::quotient::rank_select::extract_tile::extract;

pub use crate::quotient::rank_select::extract_tile::{BLOCK, TILE_BLOCKS, look_back_words, shared_bytes};

kernel! {
    /// Extracts a filter's fingerprints, ascending, without `dropped` low bits, as `F`.
    ///
    /// # Safety
    /// - Launch: 1-D, a block of [`BLOCK`] threads for each [`TILE_BLOCKS`] blocks of 64 slots, [`shared_bytes`] of
    ///   dynamic shared memory.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], not written while the kernel runs.
    /// - `look_back`: [`look_back_words`] of the tiles, at a multiple of 16 bytes, and `ticket` one
    ///   word: zero at the start, used by this launch alone.
    /// - `out`: `n` places, used by this launch alone, wide enough; items from the `n`-th on are left out.
    #[launch_bounds(256, 6)]
    pub unsafe fn quotient_rank_select_extract<F>(
        words: Global<u64>, slots: u64, parameters: u32, dropped: u32, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, out: GlobalMut<F>, n: u64,
    ) for [u32 => quotient_rank_select_extract_u32, u64 => quotient_rank_select_extract_u64] {
        let split = Parameters(parameters).split();
        // No remainders are searched here.
        let filter = Blocks::with_fields(ReadOnly(words), slots / BLOCK_SLOTS, split.remainder_bits, 0);
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            extract::<F, false>(
                words,
                filter,
                split,
                dropped,
                look_back,
                ticket,
                |_, _| 0,
                |place, _, item| {
                    if place < n {
                        out.write(place as usize, item);
                    }
                },
                |_, _| {},
            )
        }
    }
}

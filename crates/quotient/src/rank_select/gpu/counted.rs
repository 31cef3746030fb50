//! Filters with counters: laid out from fingerprints with their copies, and taken apart into them.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::layout::{self, SHARED_BYTES};
use warpset_kernels::quotient::rank_select::counted::{
    BLOCK, EXPAND_SHARED_BYTES, EXPAND_TILE, expand_look_back_words, quotient_rank_select_build_counted,
    quotient_rank_select_expand, quotient_rank_select_extract_counted,
};
use warpset_kernels::quotient::rank_select::extract::{TILE_BLOCKS, look_back_words, shared_bytes};
use warpset_primitives::LookBack;

use crate::cpu::rewrite::{MOST_COPIES, check_fit};
use crate::gpu::QuotientFilter;
use crate::gpu::counted_fingerprints::{CountedFingerprints, halves_of};
use crate::gpu::fingerprints::{Fingerprints, with_width, with_widths};
use crate::gpu::launch::{parameters, zeroed_words};
use crate::gpu::scan::tile_and_most;
use crate::slot_kind::Counts;
use crate::{Error, Layout, RankSelect};

/// Extracts fingerprints with their copies; see
/// [`DeviceSlots::extract_counts`](crate::gpu::slot_kind::DeviceSlots::extract_counts).
pub(super) fn extract(
    filter: &QuotientFilter<RankSelect>,
    stream: &Stream,
    dropped: u32,
    mut room: Fingerprints,
) -> Result<CountedFingerprints, Error> {
    let layout = &filter.layout;
    let n = room.len();
    let config_bytes = shared_bytes(room.bytes_per_item());
    let mut copies = stream.alloc_uninit::<u64>(n)?;
    let tiles = layout.blocks.div_ceil(TILE_BLOCKS) as usize;
    let mut scratch = LookBack::new(stream, look_back_words(tiles))?;
    let (look_back, ticket) = (scratch.words(), scratch.ticket());
    let mut total = stream.alloc_uninit::<u64>(1)?;
    let (words, slots, parameters) = (filter.words.global(), layout.slots(), parameters(layout));
    // SAFETY: the filter is sound and borrowed; there is a place for each slot in use, more than fingerprints; scratch
    // is zero, this call's own, and freed in the order of the stream.
    with_width!(&mut room, |out| unsafe {
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(config_bytes);
        quotient_rank_select_extract_counted {
            words,
            slots,
            parameters,
            dropped,
            look_back,
            ticket,
            out: out.global_mut(),
            copies: copies.global_mut(),
            n: n as u64,
            total: total.global_mut(),
        }
        .launch(stream, config)?;
    });
    CountedFingerprints { fingerprints: room, copies, len: n }.truncated(stream, &total)
}

/// Lays out fingerprints with counters; see
/// [`DeviceSlots::lay_out_counts`](crate::gpu::slot_kind::DeviceSlots::lay_out_counts).
pub(super) fn lay_out(
    stream: &Stream,
    layout: &Layout,
    counts: &CountedFingerprints,
) -> Result<(DeviceVec<u64>, Counts), Error> {
    let (n, limit) = (counts.len, layout.limit as usize);
    if n == 0 {
        return Ok((zeroed_words(layout, stream)?, Counts::default()));
    }
    // A fingerprint takes a slot for itself and at most one for every digit; one more than fit is enough to tell.
    let most = 1 + 64usize.div_ceil(layout.remainder_bits() as usize);
    let room = n.saturating_mul(most).min(limit);
    let mut items = Fingerprints::alloc(layout, stream, room)?;
    let mut digits = stream.alloc_zeroed::<u32>(room.div_ceil(32))?;
    let tiles = n.div_ceil(EXPAND_TILE);
    let mut scratch = LookBack::with_results(stream, expand_look_back_words(tiles), 3)?;
    let (look_back, ticket, totals) = (scratch.words(), scratch.ticket(), scratch.results());
    let config = LaunchConfig::new(tiles as u32, BLOCK).shared(EXPAND_SHARED_BYTES);
    // SAFETY: fingerprints ascend, with a number each; there is a bit for each place; scratch and digits are zero and
    // this call's own; all is freed in the order of the stream.
    with_widths!((&counts.fingerprints, &mut items), |fingerprints, out| unsafe {
        quotient_rank_select_expand {
            fingerprints: fingerprints.global(),
            copies: counts.copies.global(),
            n,
            parameters: parameters(layout),
            room: room as u64,
            look_back,
            ticket,
            out: out.global_mut(),
            digits: digits.global_mut(),
            totals,
        }
        .launch(stream, config)?;
    });
    let mut sums = [0; 3];
    scratch.download_results(stream, &mut sums)?;
    let copies = halves_of(sums[1], sums[2]);
    if copies > MOST_COPIES as u128 {
        return Err(Error::TooManyCopies);
    }
    check_fit(layout, sums[0], 0)?;
    let held = Counts { copies: copies as u64, slots: sums[0] };
    let words = written(stream, layout, &items, &digits, held.slots as usize)?;
    Ok((words, held))
}

/// Writes these `n` items, digits where the bit is set, to new words. Waits.
fn written(
    stream: &Stream,
    layout: &Layout,
    items: &Fingerprints,
    digits: &DeviceVec<u32>,
    n: usize,
) -> Result<DeviceVec<u64>, Error> {
    let mut words = zeroed_words(layout, stream)?;
    if n == 0 {
        return Ok(words);
    }
    let tiles = n.div_ceil(tile_and_most(items).0);
    let mut scratch = LookBack::with_results(stream, layout::look_back_words(tiles), 2)?;
    let (look_back, ticket, totals) = (scratch.words(), scratch.ticket(), scratch.results());
    let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
    let (parameters, slots) = (parameters(layout), layout.slots());
    // SAFETY: the words are those of the layout, zero, and no other work accesses them or the scratch memory; items
    // ascend by quotients, and live until the copy has been waited for. There are at most as many as the limit, which
    // 31 bits hold where fingerprints have 32.
    with_width!(items, |items| unsafe {
        quotient_rank_select_build_counted {
            items: items.global(),
            digits: digits.global(),
            n,
            parameters,
            slots,
            look_back,
            ticket,
            words: words.global_mut(),
            totals,
        }
        .launch(stream, config)?;
    });
    let mut totals = [0; 2];
    scratch.download_results(stream, &mut totals)?;
    check_fit(layout, totals[0], totals[1])?;
    Ok(words)
}

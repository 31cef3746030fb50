//! Supercluster inserts and deletes (algorithms 3 and 7).

use papers_kernels::quotient::superclusters::{
    quotient_update_bid, quotient_update_flag, quotient_update_insert_winners, quotient_update_remove_winners,
};
use warpset_core::scan::Sum;
use warpset_gpu::{DeviceVec, Stream};
use warpset_primitives::scan;

use warpset_quotient::gpu::methods::{Change, Fingerprints, grid, parameters};
use warpset_quotient::{Error, Layout};

use crate::with_width;

/// Changes words of this layout in rounds: superclusters are flagged and labelled, the batch bids for them, one
/// fingerprint is inserted or removed in each, and the losers are kept for the next round. Returns the number of
/// fingerprints stored or removed, and the number without a slot.
pub(crate) fn change(
    stream: &Stream,
    layout: &Layout,
    words: &mut DeviceVec<u64>,
    batch: &Fingerprints,
    change: Change,
) -> Result<(u64, u64), Error> {
    let (slots, blocks) = (layout.slots(), (layout.slots() / 64) as usize);
    let mut n = batch.len();
    let mut flags = stream.alloc_uninit::<u64>(blocks)?;
    let mut labels = stream.alloc_uninit::<u32>(blocks)?;
    let mut winners = stream.alloc_uninit::<u32>(slots as usize + 1)?;
    let mut left = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
    let mut changed = stream.alloc_zeroed::<u64>(3)?;
    let (words, parameters) = (words.global_mut(), parameters(layout));
    let removes = (change == Change::Remove) as u32;
    // `rest` is the batch after a round, and `spare` is memory for the rest after the next one.
    let (mut rest, mut spare): (Option<Fingerprints>, Option<Fingerprints>) = (None, None);
    loop {
        let now = rest.as_ref().unwrap_or(batch);
        let mut losers = match spare.take() {
            Some(spare) => spare,
            None => Fingerprints::alloc(layout, stream, n)?,
        };
        // SAFETY: the words are a sound filter and no other work accesses them; the vectors have the lengths that the
        // kernels ask for, and are freed in the order of the stream.
        unsafe {
            let (words, flags, counts) = (words.as_const(), flags.global_mut(), labels.global_mut());
            quotient_update_flag { words, slots, parameters, removes, flags, counts }.launch(stream, grid(blocks))?;
            scan::exclusive_in_place_async::<Sum<u32>>(stream, labels.as_mut_slice())?;
        }
        let (flags, labels, to) = (flags.global(), labels.global(), winners.global_mut());
        let (winners, left_to, changed_to) = (to.as_const(), left.global_mut().cast(), changed.global_mut());
        // SAFETY: as for the launch before.
        with_width!(now, |batch| unsafe {
            let fingerprints = batch.slice(..n).global();
            quotient_update_bid { fingerprints, n, parameters, flags, labels, winners: to }.launch(stream, grid(n))?;
            macro_rules! change {
                ($kernel:ident) => {
                    $kernel {
                        fingerprints,
                        n,
                        words,
                        slots,
                        parameters,
                        flags,
                        labels,
                        winners,
                        left: left_to,
                        changed: changed_to,
                    }
                    .launch(stream, grid(n))?
                };
            }
            match change {
                Change::Insert => change!(quotient_update_insert_winners),
                Change::Remove => change!(quotient_update_remove_winners),
            }
        });
        now.keep(stream, n, &left, &mut losers, changed.slice_mut(2..))?;
        let mut counts = [0; 3];
        stream.download(&changed, &mut counts)?;
        let [done, failed, lost] = counts;
        if lost == 0 {
            return Ok((done, failed));
        }
        n = lost as usize;
        spare = rest.replace(losers);
    }
}

//! Lookups of a batch sorted by fingerprint, for every kind of slots (section IV-A of the paper).

use warpset_gpu::batch::Answers;
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::batch::results;
use warpset_kernels::quotient::lookup::{quotient_lookup_clear, quotient_lookup_hash};
use warpset_primitives::sort;
use warpset_simt::Global;

use super::fingerprints::Fingerprints;
use super::launch::{grid, parameters};
use super::slot_kind::Asked;
use crate::{Error, Layout};

/// Sorted fingerprints as kernels take them.
#[derive(Clone, Copy)]
pub(crate) struct SortedKeys {
    /// Fingerprints.
    pub fingerprints: Global<u64>,
    /// 1 if they have 64 bits, 0 if 32.
    pub wide: u32,
    /// Place of each fingerprint's key; not written for counts.
    pub places: Global<u32>,
}

/// Sorts the fingerprints of keys, at least one and fewer than 2^32, with their places. Clears answers that are bits,
/// and lets `launch` queue the lookups.
///
/// # Safety
/// - Until the stream has passed this work the keys stay allocated, nothing writes them, and `answers` is valid for an
///   answer per key.
/// - `launch` reads as many fingerprints and places as keys, on the same stream.
pub(crate) unsafe fn with_sorted(
    layout: &Layout,
    Asked { stream, keys: KeySlice { keys, kind, spread, .. }, n }: Asked<'_>,
    answers: Answers,
    launch: impl FnOnce(SortedKeys) -> Result<(), Error>,
) -> Result<(), Error> {
    let Answers { words: out, form } = answers;
    let parameters = parameters(layout);
    let by = sort::By::ascending().bits(0..layout.fingerprint_bits());
    let mut places = stream.alloc_uninit::<u32>(n)?;
    if form == results::BITS {
        let bits = results::words(form, n);
        // SAFETY: as many words as the caller says there are.
        unsafe { quotient_lookup_clear { out, words: bits }.launch(stream, grid(bits))? };
    }
    macro_rules! run {
        ($items:ident, $wide:literal) => {
            // SAFETY: the vectors have a place per key, and are freed in the order of the stream; the rest is the
            // contract of this function.
            unsafe {
                let (items, places_out) = ($items.global_mut(), places.global_mut());
                quotient_lookup_hash { keys, kind, spread, n, parameters, out: items, places: places_out }
                    .launch(stream, grid(n))?;
                if form == results::COUNT {
                    sort::sort_keys_in_place_async(stream, $items.as_mut_slice(), by)?;
                } else {
                    sort::sort_pairs_in_place_async(stream, $items.as_mut_slice(), places.as_mut_slice(), by)?;
                }
                let fingerprints = KeySlice::new($items.global(), kind).keys;
                launch(SortedKeys { fingerprints, wide: $wide, places: places.global() })
            }
        };
    }
    match &mut Fingerprints::alloc(layout, stream, n)? {
        Fingerprints::Narrow(items) => run!(items, 0),
        Fingerprints::Wide(items) => run!(items, 1),
    }
}

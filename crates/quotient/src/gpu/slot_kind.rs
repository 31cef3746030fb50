//! What a quotient filter on a device has to know of its slots.

use std::fmt::Debug;

use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_simt::{Global, GlobalMut, KernelInfo};

use super::counts::Counts;
use super::fingerprints::{FingerprintWord, Fingerprints};
use super::{LookupMethod, QuotientFilter, kernels};
use crate::slot_kind::{Change, SlotKind, Tally};
use crate::{Error, Layout};

/// How fingerprints lie in slots, on devices. Sealed, as [`SlotKind`] is.
pub trait DeviceSlotKind: SlotKind {
    /// Ways to lay out ascending fingerprints. All give the same bytes.
    type BuildMethod: Copy + Debug + Default;

    /// Ways to insert or remove a batch. All give the same bytes.
    type UpdateMethod: Copy + Debug + Default;

    /// The kernels of [`DeviceSlotKind::lay_out`] by this method, for fingerprints of this width.
    fn layout_kernels<F: FingerprintWord>(method: Self::BuildMethod) -> Vec<&'static KernelInfo>;

    /// The kernels of [`DeviceSlotKind::lay_out_counts`].
    fn counted_kernels<F: FingerprintWord>() -> Vec<&'static KernelInfo> {
        vec![]
    }

    /// The kernel of [`DeviceSlotKind::extract`].
    fn extract_kernel<F: FingerprintWord>() -> &'static KernelInfo;

    /// Words in which ascending fingerprints are laid out, and how many are stored. Waits for all of `stream`, because only
    /// the result shows whether they fit; on an error work may still be queued.
    fn lay_out(
        stream: &Stream,
        layout: &Layout,
        sorted: &Fingerprints,
        method: Self::BuildMethod,
    ) -> Result<(DeviceVec<u64>, u64), Error>;

    /// Queues the extraction of all fingerprints in ascending order, each without its lowest `dropped` bits.
    ///
    /// # Safety
    /// - `words`: of a sound filter of this layout with `items > 0` fingerprints, not written until `stream` has passed.
    /// - `out`: valid for `items` writes until `stream` has passed; nothing else accesses it before.
    /// - Fingerprints fit in `F` once their lowest `dropped` bits are gone.
    unsafe fn extract<F: FingerprintWord>(
        stream: &Stream,
        layout: &Layout,
        words: Global<u64>,
        items: u64,
        dropped: u32,
        out: GlobalMut<F>,
    ) -> Result<(), Error>;

    /// The fingerprints of a filter with counters, which is not empty, each without its lowest `dropped` bits and with its
    /// copies, in `room`, which has a place for each slot in use. Waits. Kinds without counters are not asked.
    fn extract_counts(
        filter: &QuotientFilter<Self>,
        stream: &Stream,
        dropped: u32,
        room: Fingerprints,
    ) -> Result<Counts, Error> {
        let _ = (filter, stream, dropped, room);
        Err(Error::NoCounters { structure: Self::NAME })
    }

    /// Words with counters in which ascending fingerprints with their copies are laid out, and what they hold. Waits; on an
    /// error work may still be queued. Kinds without counters are not asked.
    fn lay_out_counts(stream: &Stream, layout: &Layout, counts: &Counts) -> Result<(DeviceVec<u64>, Tally), Error> {
        let _ = (stream, layout, counts);
        Err(Error::NoCounters { structure: Self::NAME })
    }

    /// Queues the lookup of `n` keys.
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter and the `n` keys stay allocated, and nothing writes them;
    /// - `answers` has room for `n` answers, which nothing else accesses, but for other counts added to the same word.
    unsafe fn look_up(
        filter: &QuotientFilter<Self>,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error>;

    /// The kernels of [`DeviceSlotKind::prepass_of_counts`] and [`DeviceSlotKind::counts`].
    fn counts_kernels(layout: &Layout, items: u64) -> Vec<&'static KernelInfo> {
        kernels::of_counts::<Self>(layout, items)
    }

    /// What counts need to know of the whole filter: all fingerprints, unless the kind counts in the slots ([`counts`](Self::counts)).
    /// Queues what it takes.
    fn prepass_of_counts(filter: &QuotientFilter<Self>, stream: &Stream) -> Result<Option<Fingerprints>, Error> {
        filter.extract(stream).map(Some)
    }

    /// Queues the count of the copies of `n > 0` keys' fingerprints; `stored` is what
    /// [`prepass_of_counts`](Self::prepass_of_counts) gave.
    ///
    /// The way that every kind has is to search all stored fingerprints.
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter, `stored` and the keys stay allocated, and nothing writes them;
    /// - `counts` has room for `n` words, and nothing else accesses it.
    unsafe fn counts(
        filter: &QuotientFilter<Self>,
        stream: &Stream,
        stored: Option<&Fingerprints>,
        keys: KeySlice,
        n: usize,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error> {
        match stored {
            // SAFETY: the caller's promise is the same.
            Some(stored) => unsafe { filter.count_among(stream, stored, keys, n, counts) },
            None => Ok(()),
        }
    }

    /// Inserts or removes a batch; returns by how many the fingerprints changed, and waits. On an error the filter is as it
    /// was. `batch` queues on the stream what gives the fingerprints of the `n` keys in any order; it may be called again.
    ///
    /// The way that every kind has is to extract, combine, and lay out.
    fn update(
        filter: &mut QuotientFilter<Self>,
        stream: &Stream,
        n: usize,
        batch: impl Fn(&Stream) -> Result<Fingerprints, Error>,
        change: Change,
        method: Self::UpdateMethod,
    ) -> Result<u64, Error> {
        let _ = method;
        stream.device().with_kernels(&kernels::of_update(filter, change, n), || {
            filter.rewrite_with(stream, &batch(stream)?.sorted(&filter.layout, stream)?, change)
        })
    }
}

//! Interface of a kind of slots on devices.

use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_simt::{Global, GlobalMut};

use super::counted_fingerprints::CountedFingerprints;
use super::fingerprints::Fingerprints;
use super::scan::Arguments;
use super::update::crossover::InPlaceRule;
use super::update::in_place::Round;
use super::{LookupMethod, QuotientFilter};
use crate::slot_kind::{Change, Counts, SlotKind};
use crate::{Error, Layout};

/// Keys on a device to be looked up, and the stream of the lookup.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub stream: &'a Stream,
    pub keys: KeySlice,
    pub n: usize,
}

/// Arrangement of fingerprints in slots, on devices. Sealed: [`Standard`](crate::Standard) and
/// [`RankSelect`](crate::RankSelect) implement it.
pub trait DeviceSlotKind: SlotKind + DeviceSlots {}

/// Operations of a [`DeviceSlotKind`]; not for other crates.
pub trait DeviceSlots: SlotKind {
    /// Rules for changes in place.
    const IN_PLACE: &'static [InPlaceRule];
    /// Least number of slots of filters that are always rewritten.
    const MOST_SLOTS_IN_PLACE: u64;

    /// Queues the kernel that lays out ascending fingerprints, at least one.
    ///
    /// # Safety
    /// The contract of `warpset_kernels::quotient::layout::lay_out`, until `stream` has passed it.
    unsafe fn launch_scan(
        stream: &Stream,
        config: LaunchConfig,
        sorted: &Fingerprints,
        arguments: Arguments,
    ) -> Result<(), Error>;

    /// Queues the extraction of all fingerprints in ascending order, each without its lowest `dropped` bits.
    ///
    /// # Safety
    /// - `words`: of a sound filter of this layout with `items > 0` fingerprints, not written until `stream` has
    ///   passed.
    /// - `out`: has `items` places.
    /// - Fingerprints fit in the words of `out` once their lowest `dropped` bits are gone.
    unsafe fn extract(
        stream: &Stream,
        layout: &Layout,
        words: Global<u64>,
        items: u64,
        dropped: u32,
        out: &mut Fingerprints,
    ) -> Result<(), Error>;

    /// Extracts the fingerprints of a filter with counters that is not empty, each without its lowest `dropped` bits
    /// and with its copies, into `room`, which has a place for each slot in use. Waits. Kinds without counters are not
    /// asked.
    fn extract_counts(
        filter: &QuotientFilter<Self>,
        stream: &Stream,
        dropped: u32,
        room: Fingerprints,
    ) -> Result<CountedFingerprints, Error> {
        let _ = (filter, stream, dropped, room);
        Err(Error::NoCounters { structure: Self::NAME })
    }

    /// Lays out ascending fingerprints with their copies in words with counters. Returns the words and their contents.
    /// Waits; on an error work may still be queued. Kinds without counters are not asked.
    fn lay_out_counts(
        stream: &Stream,
        layout: &Layout,
        counts: &CountedFingerprints,
    ) -> Result<(DeviceVec<u64>, Counts), Error> {
        let _ = (stream, layout, counts);
        Err(Error::NoCounters { structure: Self::NAME })
    }

    /// Queues the lookup of keys.
    ///
    /// # Safety
    /// Until the stream has passed this work:
    /// - the filter and the keys stay allocated, and nothing writes them;
    /// - `answers` is valid for an answer per key, and nothing else accesses it, except for other counts added to the
    ///   same word.
    unsafe fn look_up(
        filter: &QuotientFilter<Self>,
        asked: Asked<'_>,
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error>;

    /// Prepares counts: queues the extraction of all fingerprints, or returns nothing if the kind counts in the slots
    /// ([`counts`](Self::counts)).
    fn prepass_of_counts(filter: &QuotientFilter<Self>, stream: &Stream) -> Result<Option<Fingerprints>, Error>;

    /// Queues the count of the copies of fingerprints of keys, at least one; `stored` is the result of
    /// [`prepass_of_counts`](Self::prepass_of_counts).
    ///
    /// # Safety
    /// Until the stream has passed this work:
    /// - the filter, `stored` and the keys stay allocated, and nothing writes them;
    /// - `counts` is valid for a word per key, and nothing else accesses it.
    unsafe fn counts(
        filter: &QuotientFilter<Self>,
        asked: Asked<'_>,
        stored: Option<&Fingerprints>,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error>;

    /// Returns the first slot after the items of all quotients, counted from `first_slot`, that is empty or followed
    /// only by items in their canonical slots. `tail` is the words from the block at `first_slot` on, which has the
    /// last quotient.
    fn free_after_quotients(layout: &Layout, tail: &[u64], first_slot: u64) -> u64;

    /// Queues one round of a change in place. A round of a removal leaves no fingerprint.
    ///
    /// # Safety
    /// Until the stream has passed this work:
    /// - `words` are those of a sound filter of this layout, of fewer slots than [`DeviceSlots::MOST_SLOTS_IN_PLACE`],
    ///   and nothing else accesses them;
    /// - the batch stays allocated, ascends, has fewer than 2^32 - 1 fingerprints, and nothing writes it;
    /// - the rest of [`Round`] has the lengths named there, and nothing else accesses it.
    unsafe fn change_round(round: Round<'_>) -> Result<(), Error>;

    /// Combines `old`, the words of a filter without counters, with an ascending batch in one pass. Returns new words
    /// and their number of fingerprints, or `None` if this kind has no pass for them, or none that is faster than to
    /// extract, combine and lay out. Waits.
    fn rebuilt(
        stream: &Stream,
        layout: &Layout,
        old: &DeviceVec<u64>,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<Option<(DeviceVec<u64>, u64)>, Error>;
}

//! What a quotient filter on a device has to know of its slots.

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

/// Keys on a device that a filter is asked for, and the stream that this is queued on.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub stream: &'a Stream,
    pub keys: KeySlice,
    pub n: usize,
}

/// How fingerprints lie in slots, on devices. Sealed: [`Standard`](crate::Standard) and
/// [`RankSelect`](crate::RankSelect) implement it.
pub trait DeviceSlotKind: SlotKind + DeviceSlots {}

/// What [`DeviceSlotKind`] promises; not for other crates.
pub trait DeviceSlots: SlotKind {
    /// When batches are worked off in place.
    const IN_PLACE: &'static [InPlaceRule];
    /// Filters of this many slots and more are always rewritten.
    const MOST_SLOTS_IN_PLACE: u64;

    /// Queues the kernel that lays out ascending fingerprints, at least one.
    ///
    /// # Safety
    /// As `warpset_kernels::quotient::layout::lay_out`, until `stream` has passed it.
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

    /// The fingerprints of a filter with counters, which is not empty, each without its lowest `dropped` bits and with
    /// its copies, in `room`, which has a place for each slot in use. Waits. Kinds without counters are not asked.
    fn extract_counts(
        filter: &QuotientFilter<Self>,
        stream: &Stream,
        dropped: u32,
        room: Fingerprints,
    ) -> Result<CountedFingerprints, Error> {
        let _ = (filter, stream, dropped, room);
        Err(Error::NoCounters { structure: Self::NAME })
    }

    /// Words with counters in which ascending fingerprints with their copies are laid out, and what they hold. Waits;
    /// on an error work may still be queued. Kinds without counters are not asked.
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
    /// - `answers` has room for an answer per key, which nothing else accesses, but for other counts added to the same
    ///   word.
    unsafe fn look_up(
        filter: &QuotientFilter<Self>,
        asked: Asked<'_>,
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error>;

    /// What counts need to know of the whole filter: all fingerprints, queued to be extracted, or nothing if the kind
    /// counts in the slots ([`counts`](Self::counts)).
    fn prepass_of_counts(filter: &QuotientFilter<Self>, stream: &Stream) -> Result<Option<Fingerprints>, Error>;

    /// Queues the count of the copies of fingerprints of keys, one at least; `stored` is what
    /// [`prepass_of_counts`](Self::prepass_of_counts) gave.
    ///
    /// # Safety
    /// Until the stream has passed this work:
    /// - the filter, `stored` and the keys stay allocated, and nothing writes them;
    /// - `counts` has room for a word per key, and nothing else accesses it.
    unsafe fn counts(
        filter: &QuotientFilter<Self>,
        asked: Asked<'_>,
        stored: Option<&Fingerprints>,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error>;

    /// The first slot, counted from `first_slot`, that is empty or has only items after it that belong there, after the
    /// items of all quotients. `tail` are the words from the block at `first_slot` on, which has the last quotient.
    fn free_after_quotients(layout: &Layout, tail: &[u64], first_slot: u64) -> u64;

    /// Queues one round of a change in place. A round of a removal leaves no fingerprint.
    ///
    /// # Safety
    /// Until the stream has passed this work:
    /// - `words` are those of a sound filter of this layout, of fewer slots than [`DeviceSlots::MOST_SLOTS_IN_PLACE`],
    ///   and nothing else accesses them;
    /// - the batch stays allocated, ascends, has fewer than 2^32 - 1 fingerprints, and nothing writes it;
    /// - the rest of [`Round`] has the lengths that it says, and nothing else accesses it.
    unsafe fn change_round(round: Round<'_>) -> Result<(), Error>;

    /// What `old`, the words of a filter without counters, and an ascending batch make: new words, and how many
    /// fingerprints they hold. In one pass, or `None` if this kind has none for them, or none that is faster than to
    /// extract, combine and lay out. Waits.
    fn rebuilt(
        stream: &Stream,
        layout: &Layout,
        old: &DeviceVec<u64>,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<Option<(DeviceVec<u64>, u64)>, Error>;
}

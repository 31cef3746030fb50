//! Slots of the standard quotient filter: three metadata bits per slot (section III-A of the paper).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018;
//! algorithms 1, 3, 7 and 8. The arithmetic on slots is in `warpset_core::quotient`.

use warpset_base::file::FileKind;
use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots, SlotsMut};
use warpset_core::quotient::standard::{self as core, Fingerprints};

use crate::slot_kind::{Change, Changed, Counts, PlacedItem, SlotKind, Walk, WriteJob};
use crate::{Error, Layout, View};

mod bytes;
#[cfg(feature = "gpu")]
mod gpu;
mod packed;
mod validate;

use bytes::ByteWriter;
use packed::{Packed, PackedMut, PackedWalk, PackedWriter, WaitingRuns};

/// Least number of lookups per block, and least load, at which the pass that counts waiting runs pays.
const LOOKUPS_PER_BLOCK: u64 = 4;
const LEAST_LOAD_TO_COUNT: f64 = 0.6;

/// Slots with the bits `is_occupied`, `is_continuation` and `is_shifted`: the kind of
/// [`StandardQuotientFilter`](crate::StandardQuotientFilter).
#[derive(Clone, Copy, Debug)]
pub struct Standard;

/// Runs the body with the slots of these words, in either container.
macro_rules! with_slots {
    ($layout:expr, $words:expr, $len:expr, |$slots:ident| $body:expr) => {{
        let layout: &crate::Layout = $layout;
        let bits = layout.split.remainder_bits;
        match layout.container {
            Container::Bytes => {
                #[allow(unused_mut)]
                let mut $slots = ByteSlots::new($words, $len, bits);
                $body
            }
            Container::Packed => {
                #[allow(unused_mut)]
                let mut $slots = PackedSlots::new($words, $len, bits);
                $body
            }
        }
    }};
}
pub(crate) use with_slots;

impl SlotKind for Standard {
    const NAME: &'static str = "standard quotient filter";
    const MAX_LOAD: f64 = 0.9;
}

impl crate::slot_kind::Slots for Standard {
    const STRUCTURE: FileKind = FileKind::STANDARD_QUOTIENT_FILTER;
    const COUNTS: bool = false;

    fn lies_in(_: Container) -> bool {
        true
    }

    type Walk<'a> = StandardWalk<'a>;

    fn walk<'a>(layout: &Layout, words: &'a [u64], quotient: u64) -> StandardWalk<'a> {
        let split = layout.split;
        match layout.container {
            Container::Bytes => {
                let slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
                StandardWalk::Bytes(Fingerprints::from_quotient(slots, split, quotient))
            }
            Container::Packed => StandardWalk::Packed(PackedWalk::from_quotient(Packed::new(words, split), quotient)),
        }
    }

    fn write<J: WriteJob>(layout: &Layout, words: &mut [u64], job: J) -> J::Output {
        let remainder_bits = layout.split.remainder_bits;
        match layout.container {
            Container::Packed => job.run(PackedWriter::new(words, remainder_bits)),
            Container::Bytes => job.run(ByteWriter::new(words, remainder_bits)),
        }
    }

    fn put(layout: &Layout, words: &mut [u64], items: impl Iterator<Item = PlacedItem>) {
        with_slots!(layout, words, layout.slots(), |slots| {
            for PlacedItem { slot, quotient, follows, remainder, .. } in items {
                slots.set_item(slot, core::item_metadata(slot, quotient, follows), remainder);
            }
        });
    }

    #[inline]
    fn contains(layout: &Layout, words: &[u64], fingerprint: u64) -> bool {
        let split = layout.split;
        match layout.container {
            Container::Packed => Packed::new(words, split).contains(fingerprint),
            Container::Bytes => {
                let slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
                core::contains(&slots, split.quotient(fingerprint), split.remainder(fingerprint))
            }
        }
    }

    #[inline]
    fn count(layout: &Layout, words: &[u64], fingerprint: u64) -> u64 {
        let split = layout.split;
        match layout.container {
            Container::Packed => Packed::new(words, split).count(fingerprint),
            Container::Bytes => {
                let slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
                core::count(&slots, split.quotient(fingerprint), split.remainder(fingerprint))
            }
        }
    }

    type Prepass = WaitingRuns;

    fn prepass(layout: &Layout, words: &[u64], items: u64, lookups: usize) -> Option<WaitingRuns> {
        let load = items as f64 / layout.quotients() as f64;
        let pays = layout.container == Container::Packed
            && load >= LEAST_LOAD_TO_COUNT
            && lookups as u64 >= layout.blocks * LOOKUPS_PER_BLOCK;
        pays.then(|| Packed::new(words, layout.split).count_waiting_runs())
    }

    fn contains_each(
        layout: &Layout,
        words: &[u64],
        prepass: Option<&WaitingRuns>,
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, bool),
    ) {
        match layout.container {
            Container::Packed => Packed::new(words, layout.split).answer_many(prepass, len, fingerprint, take),
            Container::Bytes => bytes::answer_many(layout, words, len, fingerprint, bytes::contains, take),
        }
    }

    fn count_each(
        layout: &Layout,
        words: &[u64],
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, u64),
    ) {
        match layout.container {
            Container::Packed => packed::count_many(layout, words, len, fingerprint, take),
            Container::Bytes => bytes::answer_many(layout, words, len, fingerprint, bytes::count, take),
        }
    }

    fn empty_slots(layout: &Layout, words: &[u64], block: u64) -> u32 {
        with_slots!(layout, words, layout.slots(), |slots| {
            let [occupieds, _, shifteds] = slots.metadata_words(block);
            (occupieds | shifteds).count_zeros()
        })
    }

    #[inline(always)]
    fn change(layout: &Layout, words: &mut [u64], fingerprint: u64, change: Change) -> Changed {
        match layout.container {
            Container::Packed => PackedMut::new(words, layout).change(fingerprint, change),
            Container::Bytes => bytes::change(layout, words, fingerprint, change),
        }
    }

    fn change_part(
        layout: &Layout,
        words: &mut [u64],
        first_slot: u64,
        fingerprints: &[u64],
        change: Change,
        leave: impl FnMut(u64),
    ) -> Counts {
        let done = match layout.container {
            Container::Packed => PackedMut::new(words, layout).change_part(first_slot, fingerprints, change, leave),
            Container::Bytes => bytes::change_part(layout, words, first_slot, fingerprints, change, leave),
        };
        done.into()
    }

    fn validate(view: &View<'_, Standard>) -> Result<(), Error> {
        validate::validate(view)
    }
}

/// Iterator over the fingerprints of a standard quotient filter.
pub enum StandardWalk<'a> {
    /// Slot by slot.
    Bytes(Fingerprints<ByteSlots<&'a [u64]>>),
    /// By whole words.
    Packed(PackedWalk<'a>),
}

impl Walk for StandardWalk<'_> {
    #[inline]
    fn next_block(&mut self, fingerprints: &mut [u64; 64]) -> usize {
        match self {
            StandardWalk::Bytes(walk) => {
                let places = fingerprints.iter_mut().zip(walk);
                places.map(|(place, fingerprint)| *place = fingerprint).count()
            }
            StandardWalk::Packed(walk) => walk.next_block(fingerprints),
        }
    }
}

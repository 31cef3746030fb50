//! Lookups: from a key's hash to its number, one copy for hosts and devices.

use core::borrow::Borrow;

use super::{Bumped, COUNT_BITS, LOW_BITS_BITS, SAMPLE, SLICE, Shape, bumped_hash};
use crate::bits::Select;
use crate::recsplit::hash::{Hash128, bucket_of};
use crate::recsplit::lookup::Words;
use crate::recsplit::lookup::lists::Entry;

/// Fields of a function's header that determine its segments.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SegmentPlan {
    /// Keys.
    pub keys: u64,
    /// First bit of the codes within the words, a multiple of 8.
    pub codes: u64,
    /// Bits of the codes.
    pub code_bits: u64,
    /// Buckets per segment.
    pub buckets: u32,
    /// Keys of the largest segment.
    pub largest: u32,
}

/// Numbers of a function that lookups on devices need besides its words and segments.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Plan {
    /// Keys.
    pub keys: u64,
    /// Segments with keys; without any there is one segment of no keys.
    pub segments: u64,
}

/// A segment's keys, code and shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Keys in the segments before, minus half a slice, modulo 2^64: the number at position 0.
    pub base: u64,
    /// First byte of the code within the words.
    pub code: u64,
    /// Sizes.
    pub shape: Shape,
    /// Last number of the function, or 0.
    pub last: u64,
}

const _: () = assert!(size_of::<Segment>() == 32);

impl SegmentPlan {
    /// Returns a segment from its entry of the lists. Whatever the entry, the segment's seeds are within the words, if
    /// the codes are and there is a word before them.
    #[inline]
    pub const fn segment(&self, entry: Entry) -> Segment {
        let last = self.keys.saturating_sub(1);
        let first = if entry.keys_before < last { entry.keys_before } else { last };
        let (code, end) = (self.codes.wrapping_add(entry.bits_before) / 8, (self.codes + self.code_bits) / 8);
        // Only damaged words give more.
        let keys = if entry.keys <= self.largest as u64 { entry.keys } else { 0 };
        let shape = Shape::new(keys as u32, self.buckets);
        let base = first.wrapping_sub((SLICE / 2) as u64);
        if code > end || (self.buckets as u64) > end - code {
            // Seeds are bytes from the first of the header on; on devices that one alone.
            return Segment { base, code: 0, shape: Shape { buckets: 0, pace: 0 }, last };
        }
        Segment { base, code, shape, last }
    }
}

impl Segment {
    /// Packs the segment, for devices.
    pub const fn to_words(self) -> [u64; 4] {
        [self.base, self.code, self.shape.buckets as u64 | (self.shape.pace as u64) << 32, self.last]
    }

    /// Makes the segment of the words that [`Segment::to_words`] returned.
    #[inline(always)]
    pub const fn from_words([base, code, sizes, last]: [u64; 4]) -> Self {
        Self { base, code, shape: Shape { buckets: sizes as u32, pace: (sizes >> 32) as u32 }, last }
    }

    /// Returns the byte of the words with the seed of the key with this low half of its hash.
    #[inline(always)]
    pub const fn seed_at(&self, low: u64) -> u64 {
        self.code.wrapping_add(self.shape.bucket_of(low) as u64)
    }

    /// Returns the number of the key at a position.
    #[inline(always)]
    pub const fn number_at(&self, position: u32) -> u64 {
        self.within(self.base.wrapping_add(position as u64))
    }

    /// Returns a number of the function; it differs only for keys that the function was not built from.
    #[inline(always)]
    const fn within(&self, number: u64) -> u64 {
        if number < self.last { number } else { self.last }
    }

    /// Returns the number of a key whose bucket has the seed 0.
    #[inline(always)]
    pub fn bumped_number(&self, words: impl Words, low: u64, select: impl Select) -> u64 {
        let table = self.code.wrapping_add(self.shape.buckets.into());
        let sizes = words.bits_from(table.wrapping_mul(8));
        let count = |at: u32| sizes as u32 >> at & ((1 << COUNT_BITS) - 1);
        let bumped = Bumped { numbers: count(0), groups: count(COUNT_BITS) };
        let low_bits = (sizes >> (2 * COUNT_BITS)) as u32 % 32;
        let hash = bumped_hash(low);
        let samples = table.wrapping_add(((2 * COUNT_BITS + LOW_BITS_BITS) / 8).into());
        let seeds = samples.wrapping_add((COUNT_BITS / 8 * bumped.numbers.div_ceil(SAMPLE)).into());
        let index = bumped.number_of(hash, words.byte(seeds.wrapping_add(bumped.group_of(hash).into())));
        let lower = seeds.wrapping_add(bumped.groups.into()).wrapping_mul(8);
        let upper = lower.wrapping_add((low_bits * bumped.numbers).into());
        let sample = words.bits_from(samples.wrapping_add((COUNT_BITS / 8 * (index / SAMPLE)).into()).wrapping_mul(8));
        let from = upper.wrapping_add(sample & ((1 << COUNT_BITS) - 1));
        let low_part = words.bits_from(lower.wrapping_add((low_bits * index).into())) & ((1 << low_bits) - 1);
        let one = words.scan::<6>(from, index % SAMPLE, select);
        let high_part = one.wrapping_sub(upper).wrapping_sub(index.into());
        let first = self.base.wrapping_add((SLICE / 2).into());
        self.within(first.wrapping_add(high_part << low_bits | low_part))
    }
}

/// A function to look keys up in.
pub trait Function: Copy {
    /// Reader of the words.
    type Words: Words;
    /// A segment, or a reference to one.
    type Segment: Borrow<Segment>;

    /// Returns the words.
    fn words(&self) -> Self::Words;
    /// Returns the number of segments.
    fn segments(&self) -> u64;
    /// Returns a segment, `index < segments()`, or one without keys if there are none.
    fn segment(&self, index: u64) -> Self::Segment;

    /// Returns the segment of the key with this hash.
    #[inline(always)]
    fn segment_of(&self, hash: Hash128) -> Self::Segment {
        self.segment(bucket_of(hash.high, self.segments()))
    }

    /// Returns the value of the key with this hash under the function's seed, below the number of keys; 0 if there are
    /// none.
    #[inline(always)]
    fn value_of(&self, hash: Hash128, select: impl Select) -> u64 {
        let segment = self.segment_of(hash);
        let segment = segment.borrow();
        match self.words().byte(segment.seed_at(hash.low)) {
            0 => segment.bumped_number(self.words(), hash.low, select),
            seed => segment.number_at(segment.shape.position_of(hash.low, seed)),
        }
    }
}

//! Lookups: from a key's hash to its number, one copy for hosts and devices.

use core::borrow::Borrow;

use super::{Bumped, COUNT_BITS, Shape, bumped_hash};
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
    /// Buckets per key, in parts of `1 << POINT`.
    pub buckets_per_key: u32,
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
    /// Keys in the segments before.
    pub first: u64,
    /// First byte of the code within the words.
    pub code: u64,
    /// Sizes.
    pub shape: Shape,
}

const _: () = assert!(size_of::<Segment>() == 32);

impl SegmentPlan {
    /// Returns a segment from its entry of the lists. Whatever the entry, all numbers of the segment are below the
    /// number of keys, or 0.
    #[inline]
    pub const fn segment(&self, entry: Entry) -> Segment {
        // Only damaged words give more.
        let keys = if entry.keys <= self.largest as u64 { entry.keys } else { 0 };
        let most = self.keys.saturating_sub(if keys > 0 { keys } else { 1 });
        Segment {
            first: if entry.keys_before < most { entry.keys_before } else { most },
            code: self.codes.wrapping_add(entry.bits_before) / 8,
            shape: Shape::new(keys as u32, self.buckets_per_key),
        }
    }
}

impl Segment {
    /// Packs the segment, for devices.
    pub const fn to_words(self) -> [u64; 4] {
        let Shape { keys, buckets, last_start, mask } = self.shape;
        [self.first, self.code, keys as u64 | (buckets as u64) << 32, last_start as u64 | (mask as u64) << 32]
    }

    /// Makes the segment of the words that [`Segment::to_words`] returned.
    #[inline(always)]
    pub const fn from_words([first, code, sizes, slices]: [u64; 4]) -> Self {
        let [buckets, mask] = [(sizes >> 32) as u32, (slices >> 32) as u32];
        Self { first, code, shape: Shape { keys: sizes as u32, buckets, last_start: slices as u32, mask } }
    }

    /// Returns the byte of the words with the seed of the key with this low half of its hash.
    #[inline(always)]
    pub const fn seed_at(&self, low: u64) -> u64 {
        self.code.wrapping_add(self.shape.bucket_of(low) as u64)
    }

    /// Returns the number of a key whose bucket has this seed, other than 0.
    #[inline(always)]
    pub const fn number_of(&self, low: u64, seed: u8) -> u64 {
        self.first + self.shape.slot_of(low, seed) as u64
    }

    /// Returns the number of a key whose bucket has the seed 0.
    #[inline(always)]
    pub fn bumped_number(&self, words: impl Words, low: u64, select: impl Select) -> u64 {
        let shape = &self.shape;
        let table = self.code.wrapping_add(shape.buckets.into());
        let counts = words.bits_from(table.wrapping_mul(8)) as u32;
        let count = (counts & ((1 << COUNT_BITS) - 1)).min(shape.keys);
        if count == 0 {
            return self.first;
        }
        let bumped = Bumped::new(count, counts >> COUNT_BITS, shape.keys);
        let (hash, seeds) = (bumped_hash(low), table.wrapping_add(u64::from(2 * COUNT_BITS / 8)));
        let index = bumped.number_of(hash, words.byte(seeds.wrapping_add(bumped.group_of(hash).into())));
        let lower = seeds.wrapping_add(bumped.groups.into()).wrapping_mul(8);
        let upper = lower.wrapping_add((bumped.low_bits * bumped.keys).into());
        let low_part = words.bits_from(lower.wrapping_add((bumped.low_bits * index).into()));
        let high_part = words.scan::<6>(upper, index, select).wrapping_sub(upper).wrapping_sub(index.into());
        let slot = high_part << bumped.low_bits | low_part & ((1 << bumped.low_bits) - 1);
        // Only damaged words give more.
        self.first + slot.min(u64::from(shape.keys) - 1)
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
            seed => segment.number_of(hash.low, seed),
        }
    }
}

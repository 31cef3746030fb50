//! Minimal perfect hashing by placement: the arithmetic that every backend shares.
//!
//! Sources: Beling, Sanders, "PHast – Perfect Hashing made fast", ALENEX 2026 (arXiv 2504.17918): buckets with one seed
//! each, slices of allowed slots, bumping, additive placement. Vigna, "PHastR: Minimal Perfect Hashing with Rotated
//! Layouts", 2026: rotation of several layouts. Groot Koerkamp, "PtrHash: Minimal Perfect Hashing at RAM Throughput",
//! SEA 2025 (arXiv 2502.15539): independent parts.
//!
//! **Idea.** The keys of a *segment*, some ten thousand, have as many slots. A segment has *buckets* of four to five
//! keys, and each stores a *seed* of one byte. All segments have as many. Seed and hash give a key's slot within the
//! *slice* of its bucket: consecutive slots that begin half a slice before the bucket's share of the segment, at a
//! multiple of the step between two rotations. Slots of other segments are never chosen. A *position* is a slot plus
//! half a slice.
//!
//! ```text
//! low half of a hash   | bucket …                                       | field 3 | field 2 | field 1 | field 0 |
//! position             start + (field of layout seed % 4 + 2 * seed) mod length of the slice
//! ```
//!
//! The builder takes buckets in an order by position and size, and chooses the seed whose slots are free and lowest. If
//! there is none, it moves a placed bucket that is in the way of one slot. Buckets without a seed even so get seed 0:
//! their keys are *bumped*. At the end a segment has as many free slots as bumped keys. A second table of seeds, one
//! byte per group of about three keys, gives the bumped keys distinct numbers, and an Elias-Fano list has the free slot
//! of each number. There are slightly more numbers than bumped keys, so that seeds are found fast; an unused number has
//! the slot of the one before. *Samples* are the starts of every 128th number in the high bits. All keys of a segment
//! that is shorter than a slice are bumped:
//!
//! ```text
//! code of a segment     u8 × buckets | table of bumped keys
//! table of bumped keys  u16 numbers | u16 groups | u8 low bits of a slot | u16 × samples | u8 × groups
//!                       | low bits of free slots | high bits, unary
//! ```
//!
//! Without bumped keys the table is a `u16` of 0.
//!
//! Departures from the papers:
//! - Segments are minimal by themselves and independent, so threads, warps and external builds take them as they come.
//!   Their positions, 32 bytes each, are a table in memory that is derived from the lists of the function.
//! - Bumped keys are numbered within their segment by one more table, not by another function over all of them. Its
//!   builder moves groups too, so there is no third table.
//! - The four fields of a hash share a bit with the next one, so that a shift by whole bytes reaches them.

pub mod lookup;

/// Base-2 logarithm of the length of a slice.
pub const LOG_SLICE: u32 = 9;
/// Length of a slice.
pub const SLICE: u32 = 1 << LOG_SLICE;
/// Bits between the fields of two layouts.
pub const FIELD_BITS: u32 = 8;
/// Layouts, from which a seed's lowest bits choose.
pub const LAYOUTS: u32 = 4;
/// Rotations of a layout.
pub const ROTATIONS: u32 = 64;
/// Bits of buckets per key after the point.
pub const POINT: u32 = 16;
/// Bits of the count of numbers of bumped keys, of that of their groups, and of a sample.
pub const COUNT_BITS: u32 = 16;
/// Bits of the number of low bits of a free slot.
pub const LOW_BITS_BITS: u32 = 8;
/// Numbers of bumped keys per sample.
pub const SAMPLE: u32 = 128;

/// Returns the share of `of` in which the high 32 bits of `hash` fall.
#[inline(always)]
pub const fn share_of(hash: u64, of: u32) -> u32 {
    (((hash >> 32) * of as u64) >> 32) as u32
}

/// Returns the buckets of each segment in a function of `keys` keys, with `buckets_per_key` in parts of `1 << POINT`;
/// one where segments are shorter than a slice, as all keys are bumped there.
#[inline]
pub const fn buckets_per_segment(keys: u64, segments: u64, buckets_per_key: u32) -> u32 {
    let mean = if segments == 0 { 0 } else { keys.div_ceil(segments) };
    if mean < SLICE as u64 {
        return 1;
    }
    // Only damaged headers have more.
    let mean = if mean < u32::MAX as u64 { mean } else { u32::MAX as u64 };
    ((mean * buckets_per_key as u64 + (1 << POINT) - 1) >> POINT) as u32
}

/// Sizes of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Shape {
    /// Buckets.
    pub buckets: u32,
    /// Steps between the starts of the slices of two consecutive buckets, in parts of `1 << POINT`.
    pub pace: u32,
}

impl Shape {
    /// Returns the shape of a segment of `keys` keys in a function with `buckets > 0` buckets per segment.
    #[inline]
    pub const fn new(keys: u32, buckets: u32) -> Self {
        Self { buckets, pace: ((keys / STEP) << POINT) / buckets }
    }

    /// Returns the bucket of the key with this low half of a hash, below `buckets`; 0 if there are none.
    #[inline(always)]
    pub const fn bucket_of(&self, low: u64) -> u32 {
        share_of(low, self.buckets)
    }

    /// Returns the first position of the slice of a bucket's keys, a multiple of [`STEP`] below the number of keys.
    #[inline(always)]
    pub const fn start_of(&self, bucket: u32) -> u32 {
        (bucket.wrapping_mul(self.pace) >> POINT) * STEP
    }

    /// Returns the position of the key under a seed other than 0, less than the number of keys plus [`SLICE`].
    #[inline(always)]
    pub const fn position_of(&self, low: u64, seed: u8) -> u32 {
        self.start_of(self.bucket_of(low)) + rotated(low, seed)
    }
}

/// Returns a key's distance from the start of its slice under a seed: the field of its layout, rotated by
/// `seed / LAYOUTS * STEP` slots.
#[inline(always)]
pub const fn rotated(low: u64, seed: u8) -> u32 {
    rotated_field((low >> (FIELD_BITS * (seed as u32 % LAYOUTS))) as u32, seed)
}

/// Returns [`rotated`] for a field of a hash, which may have other bits above.
#[inline(always)]
pub const fn rotated_field(field: u32, seed: u8) -> u32 {
    field.wrapping_add(STEP / LAYOUTS * seed as u32) % SLICE
}

/// Slots between two rotations.
pub const STEP: u32 = SLICE / ROTATIONS;

/// Returns the cost of a slot at this distance from the start of its slice, below 512: about its logarithm. A builder
/// takes the free slots with the least sum of costs, since slots near the start are soon out of reach of other keys.
#[inline]
pub const fn cost_of(distance: u32) -> u32 {
    let from = distance + 64;
    let log = from.ilog2();
    (log << 7) + ((from << 7) >> log)
}

/// Sizes of the table of bumped keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bumped {
    /// Numbers, at least one per bumped key.
    pub numbers: u32,
    /// Groups of keys with one seed.
    pub groups: u32,
}

impl Bumped {
    /// Returns the group of a key with this hash.
    #[inline(always)]
    pub const fn group_of(&self, hash: u64) -> u32 {
        share_of(hash, self.groups)
    }

    /// Returns the number of a bumped key with this hash under a seed, below `numbers`.
    #[inline(always)]
    pub const fn number_of(&self, hash: u64, seed: u8) -> u32 {
        let mixed = hash ^ (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        share_of(mixed, self.numbers)
    }
}

/// Returns the hash of a bumped key from the low half of its hash, a bijection.
#[inline(always)]
pub const fn bumped_hash(low: u64) -> u64 {
    let mixed = (low ^ low >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

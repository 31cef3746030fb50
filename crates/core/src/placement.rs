//! Minimal perfect hashing by placement: the arithmetic that every backend shares.
//!
//! Sources: Beling, Sanders, "PHast – Perfect Hashing made fast", ALENEX 2026 (arXiv 2504.17918): buckets with one seed
//! each, slices of allowed slots, bumping, additive placement. Vigna, "PHastR: Minimal Perfect Hashing with Rotated
//! Layouts", 2026: rotation of several layouts. Groot Koerkamp, "PtrHash: Minimal Perfect Hashing at RAM Throughput",
//! SEA 2025 (arXiv 2502.15539): independent parts.
//!
//! **Idea.** The keys of a *segment*, some ten thousand, have as many slots. A segment has *buckets* of four to five
//! keys, and each stores a *seed* of one byte. Seed and hash give a key's slot within a *slice*: consecutive slots that
//! begin where the key's hash points, so that the slices of a bucket's keys nearly coincide.
//!
//! ```text
//! low half of a hash   | bucket, and start of the slice …              | field 3 | field 2 | field 1 | field 0 |
//! slot                 start + (field of layout seed % 4 + 2 * seed) mod length of the slice
//! ```
//!
//! The builder takes buckets in an order by position and size, and chooses the seed whose slots are free and lowest. If
//! there is none, it moves a placed bucket that is in the way of one slot. Buckets without a seed even so get seed 0:
//! their keys are *bumped*. At the end a segment has as many free slots as bumped keys. A second table of seeds, one
//! byte per group of about three keys, numbers the bumped keys, and an Elias-Fano list has the free slot of each
//! number. All keys of a segment that is shorter than a slice are bumped:
//!
//! ```text
//! code of a segment   u8 × buckets | u16 bumped | u16 groups | u8 × groups | low bits of free slots | high bits, unary
//! ```
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
/// Bits of the number of bumped keys, and of that of their groups.
pub const COUNT_BITS: u32 = 16;

/// Returns the share of `of` in which the high 32 bits of `hash` fall.
#[inline(always)]
const fn share_of(hash: u64, of: u32) -> u32 {
    (((hash >> 32) * of as u64) >> 32) as u32
}

/// Sizes of a segment, which follow from its number of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Shape {
    /// Keys, and slots.
    pub keys: u32,
    /// Buckets.
    pub buckets: u32,
    /// Last start of a slice.
    pub last_start: u32,
    /// Length of a slice minus one, or 0 if there are fewer keys.
    pub mask: u32,
}

impl Shape {
    /// Returns the shape of a segment of `keys` keys with `buckets_per_key` in parts of `1 << POINT`. If it is shorter
    /// than a slice, it has one bucket, whose keys are bumped.
    #[inline]
    pub const fn new(keys: u32, buckets_per_key: u32) -> Self {
        if keys < SLICE {
            return Self { keys, buckets: (keys > 0) as u32, last_start: 0, mask: 0 };
        }
        let buckets = (keys as u64 * buckets_per_key as u64 + (1 << POINT) - 1) >> POINT;
        Self { keys, buckets: buckets as u32, last_start: keys - SLICE, mask: SLICE - 1 }
    }

    /// Returns the bucket of the key with this low half of a hash, below `buckets`; 0 if there are none.
    #[inline(always)]
    pub const fn bucket_of(&self, low: u64) -> u32 {
        share_of(low, self.buckets)
    }

    /// Returns the first slot of the key's slice. The keys of half a slice more begin at the first slot, and as many at
    /// the last start: slots of later keys are always ahead of the first free one, by half a slice on average.
    #[inline(always)]
    pub const fn start_of(&self, low: u64) -> u32 {
        let start = share_of(low, self.keys).saturating_sub(SLICE / 2);
        if start < self.last_start { start } else { self.last_start }
    }

    /// Returns the slot of the key under a seed other than 0, below `keys` if there are keys.
    #[inline(always)]
    pub const fn slot_of(&self, low: u64, seed: u8) -> u32 {
        // A rotation by `seed / LAYOUTS * STEP`, with the addend of the layout.
        let field = (low >> (FIELD_BITS * (seed as u32 % LAYOUTS))) as u32;
        self.start_of(low) + (field.wrapping_add(STEP / LAYOUTS * seed as u32) & self.mask)
    }
}

/// Slots between two rotations.
pub const STEP: u32 = SLICE / ROTATIONS;

/// Returns a key's distance from the start of its slice in a layout, before rotations.
#[inline(always)]
pub const fn distance_of(low: u64, layout: u32) -> u32 {
    ((low >> (FIELD_BITS * layout)) as u32).wrapping_add(STEP / LAYOUTS * layout) % SLICE
}

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
    /// Bumped keys, and free slots.
    pub keys: u32,
    /// Groups of keys with one seed.
    pub groups: u32,
    /// Low bits of a free slot.
    pub low_bits: u32,
}

impl Bumped {
    /// Returns the sizes for `bumped > 0` of a segment's `keys` keys, in `groups` groups.
    #[inline]
    pub const fn new(bumped: u32, groups: u32, keys: u32) -> Self {
        let low_bits = crate::recsplit::elias_fano::elias_fano_low_bits(keys as u64 - 1, bumped as u64);
        Self { keys: bumped, groups, low_bits }
    }

    /// Returns the group of a key with this hash.
    #[inline(always)]
    pub const fn group_of(&self, hash: u64) -> u32 {
        share_of(hash, self.groups)
    }

    /// Returns the number of a bumped key with this hash under a seed, below `keys`.
    #[inline(always)]
    pub const fn number_of(&self, hash: u64, seed: u8) -> u32 {
        let mixed = hash ^ (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        share_of(mixed, self.keys)
    }
}

/// Returns the hash of a bumped key from the low half of its hash, a bijection.
#[inline(always)]
pub const fn bumped_hash(low: u64) -> u64 {
    let mixed = (low ^ low >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

//! Exact static sets: where a key is, one copy for every backend.
//!
//! **Problem.** Exact membership in one read of memory, with almost no space beyond the keys themselves. A hash table
//! needs probing or empty places; a perfect hash function needs a walk before the read.
//!
//! **Idea.** Keys are stored in *buckets* of one cache line. A bijection of 64 bits ([`permute`]) turns a key into a
//! hash, so the hash determines the key. The hash chooses a *shard*, a *group* of the shard, and, together with the
//! group's *pilot*, one of the shard's buckets:
//!
//! ```text
//! hash   | shard bits | group …  |  low 32 bits  |
//!                         |             |
//!               pilot = pilots[group]   |
//!                         \---> place(low, pilot) = bucket of the shard: one line of 8 words
//! ```
//!
//! A pilot is a byte that the build searches for: under it every key of the group finds space in its bucket. The build
//! treats the largest groups first, while buckets are empty. A lookup reads one pilot and one line.
//!
//! **Bound.** At 90 % full buckets of 8 slots (91 % of 16), 256 pilots per group suffice in the fullest of ten thousand
//! shards with a probability of 99 %; pilots take 1.33 bits per key (1 bit). See [`Shape::for_keys`].
//!
//! **Source.** Pilots of groups, largest group first: Pibiri and Trani, "PTHash", SIGIR 2021, after Belazzougui,
//! Botelho, Dietzfelbinger, "Hash, Displace, and Compress", ESA 2009. Groups of uneven sizes: Hermann, Lehmann, Pibiri,
//! Sanders, Walzer, "PHOBIC", ESA 2024. Departures: a bucket holds several keys, so pilots of one byte suffice for full
//! buckets; groups belong to shards, which are built one by one; one quadratic curve, in integers, gives the sizes of
//! the groups.

use crate::hash::permute::{permute, spread_of, unpermute};

/// Words of 64 bits in the keys of a bucket: a cache line.
pub const BUCKET_WORDS: usize = 8;
/// Pilots to try per group.
pub const PILOTS: u32 = 256;
/// The most keys of a group.
pub const MOST_IN_GROUP: u32 = 64;
/// The most expected keys of a shard.
pub const SHARD_KEYS: u64 = 1 << 14;
/// The most bits that number the shards: bucket numbers fit 32 bits.
pub const MOST_SHARD_BITS: u32 = 20;
/// The most keys of a set.
pub const MOST_KEYS: u64 = SHARD_KEYS << MOST_SHARD_BITS;

/// Numbers of shards, groups and buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Shape {
    /// Base-2 logarithm of the number of shards, at most [`MOST_SHARD_BITS`].
    pub shard_bits: u32,
    /// Groups of a shard.
    pub groups: u32,
    /// Buckets of a shard.
    pub buckets: u32,
}

const _: () = assert!(size_of::<Shape>() == 12);

impl Shape {
    /// Returns the shape for `keys` different keys in buckets of `slots`, 8 or 16; `None` for more than [`MOST_KEYS`].
    ///
    /// Nine tenths of 8 slots are used, with groups of 6 keys, or 91 of 100 of 16 slots, with groups of 8. The fullest
    /// of ten thousand shards then has pilots with a probability of 99 %, and pilots take 1.33 bits per key, or 1.
    pub const fn for_keys(keys: u64, slots: u32) -> Option<Shape> {
        if keys > MOST_KEYS {
            return None;
        }
        let mut shard_bits = 0;
        while keys > SHARD_KEYS << shard_bits {
            shard_bits += 1;
        }
        let mean = keys.div_ceil(1 << shard_bits);
        let (percent, in_group) = if slots == 16 { (91, 8) } else { (90, 6) };
        let buckets = (100 * mean).div_ceil(percent * slots as u64) as u32;
        Some(Shape { shard_bits, groups: mean.div_ceil(in_group) as u32, buckets })
    }

    /// Returns the number of shards, at least 1.
    #[inline(always)]
    pub const fn shards(self) -> u64 {
        1 << self.shard_bits
    }

    /// Returns the number of groups of all shards.
    #[inline(always)]
    pub const fn all_groups(self) -> u64 {
        (self.groups as u64) << self.shard_bits
    }

    /// Returns the number of buckets of all shards.
    #[inline(always)]
    pub const fn all_buckets(self) -> u64 {
        (self.buckets as u64) << self.shard_bits
    }

    /// Returns the shard of a hash. Hashes in ascending order have shards in ascending order.
    #[inline(always)]
    pub const fn shard(self, hash: u64) -> u64 {
        hash >> 1 >> (63 - self.shard_bits)
    }

    /// Returns the group of a hash in its shard. Within a shard hashes in ascending order have groups in ascending
    /// order.
    ///
    /// The first groups are the largest: a share `u` of the hashes falls in the first `u / 4 + 3 u^2 / 4` of the
    /// groups. Large groups are placed while buckets are empty, and the many small ones fill the rest.
    #[inline(always)]
    pub fn group_in_shard(self, hash: u64) -> u32 {
        self.group_in_shard_by(hash, high)
    }

    /// Computes [`group_in_shard`](Self::group_in_shard) with the caller's `high`, the upper half of a product.
    #[inline(always)]
    pub fn group_in_shard_by(self, hash: u64, high: impl Fn(u32, u32) -> u32) -> u32 {
        let share = ((hash << self.shard_bits) >> 32) as u32;
        let square = high(share, share);
        high((share >> 2) + (square >> 1) + (square >> 2), self.groups)
    }

    /// Returns the group of a hash among those of all shards, the index of its pilot.
    #[inline(always)]
    pub fn group(self, hash: u64) -> u64 {
        self.group_by(hash, high)
    }

    /// Computes [`group`](Self::group) with the caller's `high`, the upper half of a product.
    #[inline(always)]
    pub fn group_by(self, hash: u64, high: impl Fn(u32, u32) -> u32) -> u64 {
        self.shard(hash) * self.groups as u64 + self.group_in_shard_by(hash, high) as u64
    }

    /// Returns the bucket of a hash among those of all shards, by the pilot of its group.
    #[inline(always)]
    pub fn bucket(self, hash: u64, pilot: u32) -> u32 {
        self.bucket_by(hash, pilot, high)
    }

    /// Computes [`bucket`](Self::bucket) with the caller's `high`, the upper half of a product.
    #[inline(always)]
    pub fn bucket_by(self, hash: u64, pilot: u32, high: impl Fn(u32, u32) -> u32) -> u32 {
        self.shard(hash) as u32 * self.buckets + place_by(hash as u32, pilot, self.buckets, high)
    }
}

/// Returns the bucket in its shard of a hash with these low bits, by the pilot of its group: below `buckets`, unless
/// that is 0.
#[inline(always)]
pub fn place(low: u32, pilot: u32, buckets: u32) -> u32 {
    place_by(low, pilot, buckets, high)
}

/// Computes [`place`] with the caller's `high`, the upper half of a product. (`ptxas` of CUDA 12.9 merges the last two
/// multiplications here into one if `high` is written as a shift of a product of 64 bits.)
#[inline(always)]
pub fn place_by(low: u32, pilot: u32, buckets: u32, high: impl Fn(u32, u32) -> u32) -> u32 {
    let mut x = (low ^ pilot.wrapping_mul(0x9e37_79b1)).wrapping_mul(0x85eb_ca6b);
    x ^= x >> 15;
    high(x.wrapping_mul(0xc2b2_ae35), buckets)
}

/// Returns the hash of a key in 64 bits, under a seed after [`spread`].
#[inline(always)]
pub const fn hash(key: u64, spread: u64) -> u64 {
    permute(key, 64, spread)
}

/// Returns the key of a hash.
#[inline(always)]
pub const fn key(hash: u64, spread: u64) -> u64 {
    unpermute(hash, 64, spread)
}

/// Prepares a seed for [`hash`].
#[inline(always)]
pub const fn spread(seed: u64) -> u64 {
    spread_of(seed)
}

/// Returns the upper half of the product.
#[inline(always)]
const fn high(x: u32, y: u32) -> u32 {
    ((x as u64 * y as u64) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_room_and_limits() {
        for slots in [8, 16] {
            for keys in [1, 2, 7, 8, 9, 100, SHARD_KEYS, SHARD_KEYS + 1, 1 << 20, 1 << 31, MOST_KEYS] {
                let shape = Shape::for_keys(keys, slots).unwrap();
                let room = shape.all_buckets() * slots as u64;
                assert!(room >= keys && shape.all_buckets() < 1 << 32 && shape.shard_bits <= MOST_SHARD_BITS, "{keys}");
                assert!(keys < 1000 || keys as f64 / room as f64 > 0.89, "{keys}: {shape:?}");
                assert!(shape.groups > 0 && shape.all_groups() < keys.div_ceil(2).max(2), "{keys}");
            }
            assert_eq!(Shape::for_keys(0, slots), Some(Shape::default()));
            assert_eq!(Shape::for_keys(MOST_KEYS + 1, slots), None);
        }
    }

    #[test]
    fn groups_ascend_and_lie_within_the_shape() {
        for keys in [1, 50, 5000, 1 << 20, 1 << 33] {
            let shape = Shape::for_keys(keys, 8).unwrap();
            let mut before = 0;
            for i in 0..=10_000u64 {
                let hash = (u64::MAX / 10_000).wrapping_mul(i);
                let group = shape.group(hash);
                assert!(group >= before && group < shape.all_groups());
                assert_eq!(group / u64::from(shape.groups), shape.shard(hash));
                for pilot in [0, 1, 255] {
                    let bucket = u64::from(shape.bucket(hash, pilot));
                    assert_eq!(bucket / u64::from(shape.buckets), shape.shard(hash));
                }
                before = group;
            }
            assert_eq!(shape.group(u64::MAX), shape.all_groups() - 1);
        }
    }

    #[test]
    fn keys_come_back() {
        for seed in [0, 1, u64::MAX] {
            for word in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                assert_eq!(key(hash(word, spread(seed)), spread(seed)), word);
            }
        }
    }
}

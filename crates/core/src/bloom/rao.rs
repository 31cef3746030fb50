//! Rao's two-level Bloom filter: buckets and bit positions.
//!
//! Source: Venkatesh Rao, "Implementation of the Bloom Filter on GPU using CUDA", 2010. A first-level hash sends a key
//! to a bucket, and a bucket is a separate Bloom filter of `m` bits, `m` prime (section 5.2), small enough for the
//! shared memory of one thread block. The `k` positions of a key are `h1 + i * h2` modulo `m` (section 4.1). With two
//! choices (section 4.3) a key goes to the emptier of two buckets and a query asks both (Table 2: either says yes).
//!
//! Departures:
//! - `h1` and `h2` are the halves of one 64-bit hash; they are brought below `m` by multiply-shift rather than by
//!   division, and the step is never zero, so that the `k` positions of a key are distinct (`m` is prime).
//! - The first level of hashed keys is a second mix of the same hash, seeded by the attempt, so that a restart after an
//!   overflow changes the buckets and leaves `h1` and `h2` alone. The string hashes of Table 1 are available too.
//! - The load of a bucket is the number of its set bits, not of its keys: equal keys count once, loads need no memory
//!   of their own and survive merging and saving, and they do not depend on the order of insertion. A bucket overflows
//!   when clearly more than half of its bits are set ([`BucketShape::most_ones`]), which is where `m ln 2 / k` keys
//!   bring it.
//! - "The emptier of two buckets" would depend on the order in which threads arrive, so the assignment goes in rounds
//!   ([`round_keys`], [`emptier`]): within a round all keys see the filter of its start. Every backend cuts bulk input
//!   in the same rounds, and so builds the same bits.
//! - Paper: `unsigned char` filter on the host, one bucket of 5 KB; here 32-bit words and any bucket size.
//!
//! ```text
//!  words   [ bucket 0: m bits, padding to a whole word ][ bucket 1 ] ...      bucket_words words each
//! ```

use super::reduce32;
use crate::hash;

/// The most buckets that [`choices`] can address.
pub const MAX_BUCKETS: u64 = 1 << 32;
/// The most hashes per key, `k`.
pub const MAX_HASHES: u32 = 64;
/// The smallest bucket, in words of 32 bits: two.
pub const MIN_BUCKET_WORDS: u32 = 2;
/// The largest bucket, in words of 32 bits: 64 KiB.
pub const MAX_BUCKET_WORDS: u32 = 1 << 14;
/// The default bucket size: 32 KiB.
pub const DEFAULT_BUCKET_WORDS: u32 = 1 << 13;

/// Seeds of the first level start here, so that they never meet a filter's own seed by accident.
const FIRST_LEVEL_SEED: u64 = 0x5261_6f27_7320_3031;

/// One bucket's parameters; plain data that a kernel can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct BucketShape {
    /// Bits in use, `m`: the largest prime that fits in `bucket_words`.
    pub bits: u32,
    /// Hashes per key, `k`.
    pub hashes: u32,
    /// Words of 32 bits that a bucket takes.
    pub bucket_words: u32,
}

const _: () = assert!(size_of::<BucketShape>() == 12);

impl BucketShape {
    /// Returns a bucket of `bucket_words` words; `None` where a parameter is out of range.
    pub const fn new(bucket_words: u32, hashes: u32) -> Option<BucketShape> {
        if bucket_words < MIN_BUCKET_WORDS || bucket_words > MAX_BUCKET_WORDS || hashes == 0 || hashes > MAX_HASHES {
            return None;
        }
        let bits = previous_prime(bucket_words * 32);
        if hashes >= bits { None } else { Some(BucketShape { bits, hashes, bucket_words }) }
    }

    /// Returns the number of bits of a bucket that may be set; more are an overflow.
    ///
    /// Half of them, where `m ln 2 / k` keys bring it on average, and twice the square root of `m` for chance (seven
    /// standard deviations); three quarters of a bucket below 512 bits, where a single key can set half.
    #[inline]
    pub const fn most_ones(self) -> u32 {
        if self.bits < 512 { self.bits / 4 * 3 } else { self.bits / 2 + 2 * self.bits.isqrt() }
    }
}

/// Returns the largest prime not above `n`, for `n >= 2`.
pub const fn previous_prime(n: u32) -> u32 {
    let mut candidate = n;
    loop {
        let mut divisor = 2;
        let mut prime = true;
        while divisor * divisor <= candidate {
            if candidate.is_multiple_of(divisor) {
                prime = false;
                break;
            }
            divisor += 1;
        }
        if prime {
            return candidate;
        }
        candidate -= 1;
    }
}

/// Returns the two buckets that a hash may go to (they may be equal), for first-level attempt `attempt`.
///
/// With one choice only the first counts.
#[inline]
pub const fn choices(hash: u64, attempt: u32, buckets: u64) -> [u64; 2] {
    choices_spread(hash, spread_attempt(attempt), buckets)
}

/// Spreads the attempt as [`choices`] does; a kernel takes the result as a parameter and calls [`choices_spread`].
#[inline]
pub const fn spread_attempt(attempt: u32) -> u64 {
    hash::spread_seed(FIRST_LEVEL_SEED.wrapping_add(attempt as u64))
}

/// Returns the [`choices`] for an attempt that went through [`spread_attempt`].
#[inline]
pub const fn choices_spread(hash: u64, spread: u64, buckets: u64) -> [u64; 2] {
    let mixed = hash::mix_spread(hash, spread);
    [reduce32((mixed >> 32) as u32, buckets), reduce32(mixed as u32, buckets)]
}

/// Returns the two buckets from a string hash of Table 1: the paper's `hash mod buckets`, and for the second choice a
/// mix of it.
///
/// The first-level functions of Table 1 give 32 bits; the second choice cannot use more than these.
#[inline]
pub const fn choices_of_string_hash(string_hash: u32, buckets: u64) -> [u64; 2] {
    if buckets == 0 {
        return [0, 0];
    }
    [string_hash as u64 % buckets, hash::finalise(string_hash as u64 ^ FIRST_LEVEL_SEED) % buckets]
}

/// Returns the keys per round of two-choice assignment: a sixty-fourth of what all buckets may hold, at least one.
///
/// `bucket_capacity` is `m ln 2 / k`. A bulk insertion cuts its keys, in order, in rounds of this many; the last one
/// may be shorter, and the next bulk insertion begins a round of its own. A key of a round that the filter at the start
/// of the round contains (in either bucket) is left out; every other key goes to the [`emptier`] of its two buckets by
/// the number of set bits at the start of the round. The smaller a round, the more even the buckets: one round can
/// overfill a bucket by at most about a sixty-fourth of its capacity.
#[inline]
pub const fn round_keys(buckets: u64, bucket_capacity: u32) -> u64 {
    let keys = buckets.saturating_mul(bucket_capacity as u64) / 64;
    if keys == 0 { 1 } else { keys }
}

/// Chooses between two buckets by their numbers of set bits: the second only if it is strictly emptier.
#[inline]
pub const fn emptier(ones: [u32; 2]) -> usize {
    (ones[1] < ones[0]) as usize
}

/// The `k` bit positions of a hash within a bucket, in the order of `i`.
///
/// ```
/// use warpset_core::bloom::rao::{BucketShape, Positions};
/// let shape = BucketShape::new(1280, 7).unwrap(); // the paper's 5 KB
/// assert_eq!(shape.bits, 40_949);
/// assert_eq!(Positions::of(0x0123_4567_89ab_cdef, shape).count(), 7);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Positions {
    next: u32,
    step: u32,
    bits: u32,
    left: u32,
}

impl Positions {
    /// Starts at `i = 0`.
    #[inline]
    pub const fn of(hash: u64, shape: BucketShape) -> Positions {
        Positions {
            next: reduce32(hash as u32, shape.bits as u64) as u32,
            step: 1 + reduce32((hash >> 32) as u32, shape.bits as u64 - 1) as u32,
            bits: shape.bits,
            left: shape.hashes,
        }
    }
}

impl Iterator for Positions {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let position = self.next;
        let sum = position + self.step; // both below 2^21
        self.next = if sum >= self.bits { sum - self.bits } else { sum };
        Some(position)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Positions {}
impl core::iter::FusedIterator for Positions {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes() {
        assert_eq!(previous_prime(40_960), 40_949); // section 5.2
        assert_eq!(previous_prime(2), 2);
        assert_eq!(previous_prime(1 << 17), 131_071);
        assert_eq!(BucketShape::new(DEFAULT_BUCKET_WORDS, 7).unwrap().bits, 262_139);
    }

    #[test]
    fn wrong_shapes_are_refused() {
        assert_eq!(BucketShape::new(1, 7), None);
        assert_eq!(BucketShape::new(MAX_BUCKET_WORDS + 1, 7), None);
        assert_eq!(BucketShape::new(1280, 0), None);
        assert_eq!(BucketShape::new(1280, 65), None);
        assert_eq!(BucketShape::new(2, 61), None);
    }

    #[test]
    fn positions_are_distinct_and_in_range() {
        let shape = BucketShape::new(2, 60).unwrap(); // m = 61
        for i in 0..1000 {
            let mut seen = 0u64;
            for position in Positions::of(hash::finalise(i), shape) {
                assert!(position < shape.bits);
                assert_eq!(seen >> position & 1, 0);
                seen |= 1 << position;
            }
            assert_eq!(seen.count_ones(), 60);
        }
        for hash in [0, u64::MAX, u32::MAX as u64, !(u32::MAX as u64)] {
            assert!(Positions::of(hash, shape).all(|p| p < shape.bits));
        }
    }

    #[test]
    fn rounds_keep_buckets_even() {
        let (buckets, capacity) = (48u64, 4054u32); // section 5.2
        let mut loads = [0u32; 48];
        let keys = buckets * capacity as u64 * 95 / 100;
        let mut first = 0;
        while first < keys {
            let last = keys.min(first + round_keys(buckets, capacity));
            let start = loads;
            for key in first..last {
                let [a, b] = choices(hash::finalise(key), 0, buckets).map(|bucket| bucket as usize);
                loads[[a, b][emptier([start[a], start[b]])]] += 1;
            }
            first = last;
        }
        assert_eq!(loads.iter().sum::<u32>() as u64, keys);
        assert!(loads.iter().all(|&load| load < capacity), "{loads:?}");
        assert_eq!(round_keys(1, 1), 1);
        assert_eq!([emptier([3, 3]), emptier([2, 3]), emptier([3, 2])], [0, 0, 1]);
    }

    #[test]
    fn choices_stay_in_range_change_with_the_attempt_and_halve() {
        let mut equal = 0;
        for i in 0..1000 {
            let hash = hash::finalise(i);
            for buckets in [1, 48, 1000, MAX_BUCKETS] {
                let [a, b] = choices(hash, 0, buckets);
                assert!(a < buckets && b < buckets);
                if buckets.is_multiple_of(2) {
                    assert_eq!(choices(hash, 0, buckets / 2), [a / 2, b / 2]);
                }
                let [a, b] = choices_of_string_hash(hash as u32, buckets);
                assert!(a < buckets && b < buckets);
            }
            equal += (choices(hash, 0, 1000)[0] == choices(hash, 1, 1000)[0]) as u32;
        }
        assert!(equal < 10, "{equal}");
    }
}

//! Index of a level: the beginnings of many ranges of keys of equal width. A search reads a few neighbouring keys,
//! instead of one key per halving of the level.
//!
//! The interval from the least to the greatest key is cut into buckets of equal width, about one per
//! [`ELEMENTS_PER_BUCKET`] elements. Entry `i` of the index is the number of elements in buckets below `i`. The
//! position of a key within its bucket's interval predicts its place among the bucket's elements. Unevenly distributed
//! keys make some buckets large; a search halves its bucket, so it is never longer than a search of the whole level.
//!
//! ```text
//!  x = (key - least) << leading zeros of (greatest - least)       its upper 64 bits, order kept
//!  bucket = floor(x * multiplier / 2^64)                          at most `buckets - 1` for the greatest key
//!  fraction = floor(x * multiplier / 2^32) mod 2^32               how far the key is from one end to the other
//! ```

use super::Number;

/// Average number of elements per bucket of evenly distributed keys. It is small enough that interpolation within a
/// bucket is rarely wrong by more than eight places, and large enough that the index of a large level stays in the L2
/// cache.
pub const ELEMENTS_PER_BUCKET: u64 = 32;

/// Map from keys to buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets<N> {
    /// Least key.
    pub least: N,
    /// Greatest key.
    pub greatest: N,
    /// Left shift of the distance to the least key.
    pub shift: u32,
    /// Factor of the shifted distance.
    pub multiplier: u64,
}

/// Returns the number of buckets of a level with `len` elements.
#[inline]
pub const fn bucket_count(len: u64) -> u64 {
    len.div_ceil(ELEMENTS_PER_BUCKET)
}

impl<N: Number> Buckets<N> {
    /// Returns the buckets of `len` keys from `least` to `greatest`.
    #[inline]
    pub fn new(least: N, greatest: N, len: u64) -> Self {
        let shift = greatest.room(least);
        // Unless both are equal, the shifted distance is at least 2^63, so its upper half has 32 bits, and `greatest`
        // gets a bucket below `bucket_count`: x * multiplier < 2^64 * buckets.
        let upper = (greatest.shifted(least, shift) >> 32) + 1;
        // With more than 2^32 buckets the last ones stay empty.
        let buckets = bucket_count(len);
        let buckets = if buckets > u32::MAX as u64 { u32::MAX as u64 } else { buckets };
        Self { least, greatest, shift, multiplier: (buckets << 32) / upper }
    }

    /// Returns the bucket of a key between the least and the greatest.
    #[inline]
    pub fn of(self, key: N) -> u64 {
        self.locate(key).0
    }

    /// Returns the bucket of a key between the least and the greatest, and its position within the bucket's interval,
    /// in units of 2^-32.
    #[inline]
    pub fn locate(self, key: N) -> (u64, u32) {
        let product = key.shifted(self.least, self.shift) as u128 * self.multiplier as u128;
        ((product >> 64) as u64, (product >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_ascend_and_stay_in_bounds() {
        fn check<N: Number + core::fmt::Debug>(least: N, greatest: N, keys: impl Iterator<Item = N> + Clone) {
            for len in [1, 2, 7, 8, 9, 63, 64, 65, 1000, 1 << 20, (1 << 32) + 5, 1 << 40] {
                let buckets = Buckets::new(least, greatest, len);
                let mut last = (0, 0);
                for key in keys.clone() {
                    let place = buckets.locate(key);
                    assert!(
                        place >= last && place.0 < bucket_count(len),
                        "{least:?}..={greatest:?} {len} {key:?}: {place:?}"
                    );
                    last = place;
                }
            }
        }
        let spans =
            [(0, 0), (7, 7), (0, 1), (5, 6), (0, u64::MAX), (1, u64::MAX), (0, u32::MAX as u64), (100, 1_000_000)];
        for (least, greatest) in spans {
            let steps = 1000u64.min(greatest - least).max(1);
            let wide = (0..=steps).map(|step| u128::from(greatest - least) * u128::from(step) / u128::from(steps));
            check(least, greatest, wide.clone().map(|above| least + above as u64));
            let (from, to) = (u128::from(least), u128::from(greatest));
            check(from, to, wide.clone().map(|above| from + above));
            // Keys that differ only in their upper halves.
            check(from << 64, to << 64, wide.clone().map(|above| (from + above) << 64));
            check(from << 64 | 5, to << 64 | 5, wide.map(|above| (from + above) << 64 | 5));
        }
        check(0, u128::MAX, [0, 1, u128::from(u64::MAX), 1 << 64, 1 << 127, u128::MAX].into_iter());
    }

    #[test]
    fn even_keys_fill_nearly_all_buckets() {
        for (least, greatest) in [(0, u32::MAX as u64), (0, u64::MAX), (3, 3 + (1 << 20)), (0, 0xa000_0000)] {
            let len = 1 << 20;
            let buckets = Buckets::new(least, greatest, len);
            assert!(buckets.of(greatest) >= bucket_count(len) * 99 / 100, "{least}..={greatest}");
            let (least, greatest) = (u128::from(least) << 60, u128::from(greatest) << 60);
            let buckets = Buckets::new(least, greatest, len);
            assert!(buckets.of(greatest) >= bucket_count(len) * 99 / 100, "{least}..={greatest}");
        }
    }
}

//! Log-structured merge trees: capacities of levels, and the filter of a level's keys.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018. Departures: levels below the batch size gather batches that are not full (the paper pads them with
//! copies of an element), levels may be partly full, and each level can have a filter of its keys.

pub mod index;
mod number;

use crate::hash::mix;

pub use number::Number;

/// Smallest capacity of a level.
pub const LEAST_CAPACITY: u64 = 64;
/// Ratio of the capacities of consecutive gathering levels, as a power of two.
const GATHERING_FACTOR_BITS: u32 = 4;

/// Returns the number of levels that gather short batches: those smaller than `batch_size`, a power of two.
#[inline]
pub const fn gathering_levels(batch_size: u64) -> u32 {
    let bits = batch_size.trailing_zeros();
    bits.saturating_sub(LEAST_CAPACITY.trailing_zeros()) / GATHERING_FACTOR_BITS
}

/// Returns the capacity of level `index`: `batch_size / 256`, `batch_size / 16`, `batch_size`, then twice the previous
/// one.
#[inline]
pub const fn capacity(batch_size: u64, index: u32) -> u64 {
    let gathering = gathering_levels(batch_size);
    if index < gathering {
        return batch_size >> (GATHERING_FACTOR_BITS * (gathering - index));
    }
    let doublings = index - gathering;
    if doublings > batch_size.leading_zeros() { u64::MAX } else { batch_size << doublings }
}

/// Bits per key of a level's filter.
pub const FILTER_BITS_PER_KEY: u64 = 12;
/// Seed of the hash of the upper half of a key with more than 64 bits.
const UPPER_SEED: u64 = 0x6869_6768_2068_616c;
/// Seed of the hash of a key.
const FILTER_SEED: u64 = 0x6c73_6d66_696c_7465;

/// Returns the hash of a key, for [`filter_word`] and [`filter_mask`].
#[inline]
pub fn filter_hash(key: impl Number) -> u64 {
    mix(key.folded(), FILTER_SEED)
}

/// Returns the place of the 64-bit word that holds all bits of a key, below `words`. Uses the high bits of the hash.
#[inline]
pub const fn filter_word(hash: u64, words: u64) -> u64 {
    ((hash as u128 * words as u128) >> 64) as u64
}

/// Returns the bits of a key in its word: up to four. Uses the low bits of the hash.
#[inline]
pub const fn filter_mask(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63)
}

/// Returns the number of words of the filter of a level with `len` elements.
#[inline]
pub const fn filter_words(len: u64) -> u64 {
    (len * FILTER_BITS_PER_KEY).div_ceil(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_ascend_from_64() {
        let first = |batch_size: u64| -> [u64; 5] { core::array::from_fn(|i| capacity(batch_size, i as u32)) };
        assert_eq!(first(1 << 16), [256, 4096, 1 << 16, 1 << 17, 1 << 18]);
        assert_eq!(first(64), [64, 128, 256, 512, 1024]);
        assert_eq!(first(512), [512, 1024, 2048, 4096, 8192]);
        assert_eq!(first(1024), [64, 1024, 2048, 4096, 8192]);
        assert_eq!(capacity(64, 57), 1 << 63);
        assert_eq!(capacity(64, 58), u64::MAX);
        assert_eq!(capacity(64, 200), u64::MAX);
    }

    #[test]
    fn filters_tell_most_keys_apart() {
        let words = filter_words(1000);
        let mut filter = [0u64; 188];
        assert_eq!(words, 188);
        let place = |key: u64| (filter_word(filter_hash(key), words) as usize, filter_mask(filter_hash(key)));
        for key in 0..1000 {
            let (word, mask) = place(key);
            filter[word] |= mask;
        }
        let found = |key| filter[place(key).0] & place(key).1 == place(key).1;
        assert!((0..1000).all(found));
        let wrong = (1000..101_000).filter(|&key| found(key)).count();
        assert!(wrong < 4000, "{wrong} of 100000 are false positives");
    }

    #[test]
    fn both_halves_of_a_key_count_for_its_hash() {
        assert_eq!(filter_hash(7u128), filter_hash(7u128));
        let keys = [7u128, 7 << 64, 7 << 64 | 7, 8 << 64 | 8, 0];
        assert!((0..keys.len()).all(|i| (0..i).all(|j| filter_hash(keys[i]) != filter_hash(keys[j]))));
    }
}

//! Generated keys: a bijection over a counter, so that keys are distinct without a check.
//!
//! A [`Stream`] is a slice of the counter's range. Two streams of one [`KeySpace`] never share a
//! key, so "keys that were never inserted" are exact, with no table of what was.

use rayon::prelude::*;

/// Bits of a 64-bit counter that number the keys of one stream.
const STREAM_BITS: u32 = 40;
/// Bits of a key's number within its stream, for 32-bit keys: 16 streams of 2^28 keys.
const STREAM_BITS_32: u32 = 28;

/// All keys that one seed gives.
#[derive(Clone, Copy, Debug)]
pub struct KeySpace {
    seed: u64,
}

impl KeySpace {
    /// Makes the key space of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed: mix64(seed ^ 0x9e37_79b9_7f4a_7c15) }
    }

    /// Returns stream `number`: below 2^24 for 64-bit keys, below 16 for 32-bit keys.
    pub fn stream(self, number: u64) -> Stream {
        assert!(number >> (64 - STREAM_BITS) == 0, "stream number {number} is too large");
        Stream { seed: self.seed, number }
    }
}

/// One sequence of keys; disjoint from the other streams of its key space.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    seed: u64,
    number: u64,
}

impl Stream {
    /// Returns the key at position `i`, below 2^40.
    #[inline]
    pub fn key(self, i: u64) -> u64 {
        debug_assert!(i >> STREAM_BITS == 0);
        mix64((self.number << STREAM_BITS | i) ^ self.seed)
    }

    /// Returns the first `n` keys.
    pub fn u64_keys(self, n: usize) -> Vec<u64> {
        (0..n).into_par_iter().with_min_len(1 << 14).map(|i| self.key(i as u64)).collect()
    }

    /// Returns `n` keys, drawn with repetitions from the first `n`: see [`zipf_rank`].
    pub fn zipf_keys(self, n: usize) -> Vec<u64> {
        // The complement is in another stream, and so independent of the keys.
        let random = |i: usize| mix64(!(self.number << STREAM_BITS | i as u64) ^ self.seed);
        let keys = (0..n).into_par_iter().with_min_len(1 << 14);
        keys.map(|i| self.key(zipf_rank(n, random(i)) as u64)).collect()
    }

    /// Returns the first `n` 32-bit keys, distinct up to `n` = 2^28 and stream 15.
    ///
    /// # Panics
    /// If the stream has no `n` 32-bit keys.
    pub fn u32_keys(self, n: usize) -> Vec<u32> {
        assert!(self.number < 16 && n <= 1 << STREAM_BITS_32, "32-bit keys: 16 streams of 2^28");
        let first = (self.number as u32) << STREAM_BITS_32;
        let key = |i: u32| mix32((first | i) ^ self.seed as u32);
        (0..n as u32).into_par_iter().with_min_len(1 << 14).map(key).collect()
    }

    /// Returns the first `n` random strings of `length` lowercase letters each, end to end.
    ///
    /// Long ones are distinct in all likelihood: from 16 letters on there are more than 2^75 of them.
    pub fn strings(self, n: usize, length: usize) -> Strings {
        let mut bytes = vec![0; n * length];
        if length > 0 {
            bytes.par_chunks_mut(length).enumerate().with_min_len(1 << 10).for_each(|(i, string)| {
                let mut word = self.key(i as u64);
                for letters in string.chunks_mut(8) {
                    for (letter, random) in letters.iter_mut().zip(word.to_le_bytes()) {
                        *letter = b'a' + ((u16::from(random) * 26) >> 8) as u8;
                    }
                    word = mix64(word.wrapping_add(0x9e37_79b9_7f4a_7c15));
                }
            });
        }
        Strings { bytes, length, count: n }
    }
}

/// Strings of one length, end to end in one buffer.
#[derive(Clone, Debug)]
pub struct Strings {
    bytes: Vec<u8>,
    length: usize,
    count: usize,
}

impl Strings {
    /// Returns each string, in order.
    pub fn slices(&self) -> Vec<&[u8]> {
        (0..self.count).map(|i| &self.bytes[i * self.length..(i + 1) * self.length]).collect()
    }
}

/// Returns the rank, below `n`, that a random word draws: rank `i` has a probability in proportion to `1 / (i + 1)`
/// (Zipf, exponent 1).
///
/// # Panics
/// If `n` is zero.
pub fn zipf_rank(n: usize, random: u64) -> usize {
    let share = (random >> 11) as f64 / (1u64 << 53) as f64;
    // The sum of 1 / i up to x is about ln x.
    ((n as f64).powf(share) as usize).clamp(1, n) - 1
}

/// Permutes 64-bit words (the finaliser of SplitMix64, Steele et al., OOPSLA 2014).
///
/// Deliberately not the mixer of any filter: keys must not arrive pre-hashed.
#[inline]
pub const fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Permutes 32-bit words (two rounds of multiply and xor-shift).
#[inline]
pub const fn mix32(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn streams_are_distinct_and_disjoint() {
        let space = KeySpace::new(7);
        let mut seen = HashSet::new();
        for stream in 0..4 {
            assert!(space.stream(stream).u64_keys(50_000).iter().all(|key| seen.insert(*key)));
        }
        let mut seen = HashSet::new();
        for stream in [0, 1, 15] {
            assert!(space.stream(stream).u32_keys(50_000).iter().all(|key| seen.insert(*key)));
        }
    }

    #[test]
    fn keys_are_the_same_on_every_machine() {
        let keys = KeySpace::new(1).stream(2).u64_keys(1000);
        assert_eq!(keys, KeySpace::new(1).stream(2).u64_keys(1000));
        assert_eq!(keys[999], KeySpace::new(1).stream(2).key(999));
        assert_ne!(keys, KeySpace::new(2).stream(2).u64_keys(1000));
    }

    #[test]
    fn strings_have_their_length_and_differ() {
        for length in [0, 1, 16, 41] {
            let strings = KeySpace::new(3).stream(0).strings(1000, length);
            let slices = strings.slices();
            assert!(slices.len() == 1000 && slices.iter().all(|string| string.len() == length));
            if length >= 16 {
                assert_eq!(slices.iter().collect::<HashSet<_>>().len(), 1000);
            }
        }
    }
}

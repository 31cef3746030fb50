//! Elements of sets and maps: keys of 32 and 64 bits, and values.

use std::fmt::Debug;
use std::hash::Hash;

use bytemuck::Pod;
use warpset_base::key::Key;
use warpset_core::static_set::BUCKET_WORDS;

/// A cache line of keys.
pub(crate) type Line = [u64; BUCKET_WORDS];

/// Keys of static sets and maps: `u32` and `u64`, all their values. Sealed.
///
/// Other keys can be mapped to these by an injective function: signed integers by their bits, and two of 32 bits as
/// `u64::from(high) << 32 | u64::from(low)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a static set",
    note = "use `u32` or `u64`, or map other keys to these by a function that gives each its own number"
)]
pub trait StaticKey: Key + Pod + Ord + Hash + Debug + Send + Sync + sealed::StaticKey {}
impl StaticKey for u32 {}
impl StaticKey for u64 {}

/// Values next to keys: `u32`, `u64`, or `()`, which takes no memory and makes a set of a map. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a static map",
    note = "use `u32`, `u64` or `()`; larger values can stand in a `Vec`, at the places that `number` gives"
)]
pub trait Value: Pod + Eq + Debug + Send + Sync + sealed::Value {}
impl Value for u32 {}
impl Value for u64 {}
impl Value for () {}

/// Values that take memory: `u32` and `u64`. Sealed.
pub trait MapValue: Value {}
impl MapValue for u32 {}
impl MapValue for u64 {}

pub(crate) mod sealed {
    use super::*;

    pub trait StaticKey: Sized {
        /// Keys of a bucket.
        const SLOTS: usize;
        /// Converts the key to 64 bits.
        fn to_word(self) -> u64;
        /// Returns the key of that value, if there is one.
        fn of_word(word: u64) -> Option<Self>;
        /// Returns the slots of a bucket that hold the key, one bit per slot, at a multiple of `16 / SLOTS`.
        fn find(line: &Line, key: Self) -> u32;
        /// Returns the first of the slots that [`find`](StaticKey::find) returned.
        #[inline(always)]
        fn first_slot(found: u32) -> usize {
            found.trailing_zeros() as usize / (16 / Self::SLOTS)
        }
    }

    /// Returns which halves of a line's words equal the half of `pattern` at their place, one bit per half.
    #[inline(always)]
    fn equal_halves(line: &Line, pattern: u64) -> u32 {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::*;
            // SAFETY: SSE2 is part of x86-64.
            unsafe {
                let pattern = _mm_set1_epi64x(pattern as i64);
                let equal = |i: usize| {
                    let two = _mm_set_epi64x(line[2 * i + 1] as i64, line[2 * i] as i64);
                    _mm_cmpeq_epi32(two, pattern)
                };
                let (low, high) = (_mm_packs_epi32(equal(0), equal(1)), _mm_packs_epi32(equal(2), equal(3)));
                _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let halves: &[[u32; 2]] = bytemuck::cast_slice(line);
            let [low, high] = bytemuck::cast(pattern);
            let equal = |of: &[u32; 2]| u32::from(of[0] == low) | u32::from(of[1] == high) << 1;
            halves.iter().rev().fold(0, |mask, two| mask << 2 | equal(two))
        }
    }

    impl StaticKey for u64 {
        const SLOTS: usize = 8;
        #[inline(always)]
        fn to_word(self) -> u64 {
            self
        }
        #[inline(always)]
        fn of_word(word: u64) -> Option<u64> {
            Some(word)
        }
        #[inline(always)]
        fn find(line: &Line, key: u64) -> u32 {
            let equal = equal_halves(line, key);
            equal & equal >> 1 & 0x5555
        }
    }

    impl StaticKey for u32 {
        const SLOTS: usize = 16;
        #[inline(always)]
        fn to_word(self) -> u64 {
            self.into()
        }
        #[inline(always)]
        fn of_word(word: u64) -> Option<u32> {
            u32::try_from(word).ok()
        }
        #[inline(always)]
        fn find(line: &Line, key: u32) -> u32 {
            equal_halves(line, u64::from(key) << 32 | u64::from(key))
        }
    }

    pub trait Value: Sized {
        /// Bytes of a value.
        const BYTES: usize;
        /// Returns value `i` in the words.
        fn at(words: &[u64], i: usize) -> Self;
        /// Sets value `i` in the words.
        fn put(words: &mut [u64], i: usize, value: Self);
    }

    macro_rules! values {
        ($($value:ty),*) => {$(
            impl Value for $value {
                const BYTES: usize = size_of::<$value>();
                #[inline(always)]
                fn at(words: &[u64], i: usize) -> $value {
                    bytemuck::cast_slice::<u64, $value>(words)[i]
                }
                #[inline(always)]
                fn put(words: &mut [u64], i: usize, value: $value) {
                    bytemuck::cast_slice_mut::<u64, $value>(words)[i] = value;
                }
            }
        )*};
    }
    values!(u32, u64);

    impl Value for () {
        const BYTES: usize = 0;
        #[inline(always)]
        fn at(_: &[u64], _: usize) {}
        #[inline(always)]
        fn put(_: &mut [u64], _: usize, _: ()) {}
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::StaticKey;
    use super::*;

    fn is_found<K: super::StaticKey>(held: &[K], asked: K) {
        let line: Line = bytemuck::cast_slice(held).try_into().unwrap();
        let found = K::find(&line, asked);
        let slots: Vec<usize> = (0..16).filter(|i| found >> i & 1 == 1).map(|i| i / (16 / K::SLOTS)).collect();
        let wanted: Vec<usize> = (0..held.len()).filter(|&i| held[i] == asked).collect();
        assert_eq!(slots, wanted);
        assert!(wanted.first().is_none_or(|&first| K::first_slot(found) == first));
    }

    #[test]
    fn every_slot_is_found() {
        for place in 0..16 {
            let mut narrow = [7u32; 16];
            narrow[place] = u32::MAX;
            for asked in [7, u32::MAX, 0, 8] {
                is_found(&narrow, asked);
            }
            let mut wide = [7u64 << 32; 8];
            wide[place / 2] = u64::MAX;
            for asked in [7 << 32, u64::MAX, 7, u64::from(u32::MAX)] {
                is_found(&wide, asked);
            }
        }
        assert_eq!((u32::of_word(1 << 32), u64::of_word(1 << 32)), (None, Some(1 << 32)));
    }
}

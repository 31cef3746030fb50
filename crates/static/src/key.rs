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
        /// Returns the slots of a bucket that hold the key, as bits.
        fn find(line: &Line, key: Self) -> u32;
        /// Finds like [`find`](StaticKey::find), with AVX2.
        ///
        /// # Safety
        /// The processor has AVX2.
        #[cfg(target_arch = "x86_64")]
        unsafe fn find_avx2(line: &Line, key: Self) -> u32;
        /// Finds like [`find`](StaticKey::find), with AVX-512.
        ///
        /// # Safety
        /// The processor has AVX-512F.
        #[cfg(target_arch = "x86_64")]
        unsafe fn find_avx512(line: &Line, key: Self) -> u32;
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
            line.iter().rev().fold(0, |mask, &held| mask << 1 | u32::from(held == key))
        }
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        unsafe fn find_avx2(line: &Line, key: u64) -> u32 {
            use std::arch::x86_64::*;
            // SAFETY: the processor has AVX2, by this function's contract; both halves of the line are read unaligned.
            unsafe {
                let key = _mm256_set1_epi64x(key as i64);
                let half = |i: usize| {
                    let held = _mm256_loadu_si256(line[4 * i..][..4].as_ptr().cast());
                    _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(held, key))) as u32
                };
                half(0) | half(1) << 4
            }
        }
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        unsafe fn find_avx512(line: &Line, key: u64) -> u32 {
            use std::arch::x86_64::*;
            // SAFETY: the processor has AVX-512F, by this function's contract; the line has 64 bytes.
            unsafe {
                let held = _mm512_loadu_si512(line.as_ptr().cast());
                _mm512_cmpeq_epi64_mask(held, _mm512_set1_epi64(key as i64)).into()
            }
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
            let held: &[u32] = bytemuck::cast_slice(line);
            held.iter().rev().fold(0, |mask, &held| mask << 1 | u32::from(held == key))
        }
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        unsafe fn find_avx2(line: &Line, key: u32) -> u32 {
            use std::arch::x86_64::*;
            // SAFETY: the processor has AVX2, by this function's contract; both halves of the line are read unaligned.
            unsafe {
                let key = _mm256_set1_epi32(key as i32);
                let half = |i: usize| {
                    let held = _mm256_loadu_si256(line[4 * i..][..4].as_ptr().cast());
                    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(held, key))) as u32
                };
                half(0) | half(1) << 8
            }
        }
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        unsafe fn find_avx512(line: &Line, key: u32) -> u32 {
            use std::arch::x86_64::*;
            // SAFETY: the processor has AVX-512F, by this function's contract; the line has 64 bytes.
            unsafe {
                let held = _mm512_loadu_si512(line.as_ptr().cast());
                _mm512_cmpeq_epi32_mask(held, _mm512_set1_epi32(key as i32)).into()
            }
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

    fn all_forms_agree<K: super::StaticKey>(held: &[K], asked: K) {
        let line: Line = bytemuck::cast_slice(held).try_into().unwrap();
        let wanted = held.iter().enumerate().fold(0, |mask, (i, &key)| mask | u32::from(key == asked) << i);
        assert_eq!(K::find(&line, asked), wanted);
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                // SAFETY: there is AVX2.
                assert_eq!(unsafe { K::find_avx2(&line, asked) }, wanted);
            }
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: there is AVX-512F.
                assert_eq!(unsafe { K::find_avx512(&line, asked) }, wanted);
            }
        }
    }

    #[test]
    fn every_slot_is_found_in_every_form() {
        for place in 0..16 {
            let mut narrow = [7u32; 16];
            narrow[place] = u32::MAX;
            for asked in [7, u32::MAX, 0, 8] {
                all_forms_agree(&narrow, asked);
            }
            let mut wide = [7u64 << 32; 8];
            wide[place / 2] = u64::MAX;
            for asked in [7 << 32, u64::MAX, 7, u64::from(u32::MAX)] {
                all_forms_agree(&wide, asked);
            }
        }
        assert_eq!((u32::of_word(1 << 32), u64::of_word(1 << 32)), (None, Some(1 << 32)));
    }
}

//! Nodes of one cache line: counts of the keys below a search key, by the widest comparisons of the processor.
//!
//! With AVX-512 a node is one load, one comparison and one count of bits, with AVX2 two of each: k-ary search with as
//! many ways as a line has keys. Source: Schlegel, Gemulla, Lehner, "k-Ary Search on Modern Processors", DaMoN 2009.

use warpset_core::lsm::{filter_mask, filter_word};

use crate::OrderedKey;
use warpset_base::processor::prefetch;

/// Bytes per node.
const NODE_BYTES: usize = 64;

/// Returns the number of keys per node.
pub(crate) const fn node<K>() -> usize {
    NODE_BYTES / size_of::<K>()
}

/// Comparison of the keys of a node, by one kind of instructions.
pub(crate) trait Compare: Copy {
    /// Counts the keys of a node below `key`.
    fn count_below<K: OrderedKey>(self, node: &[K], key: K) -> usize;

    /// Returns a bit for each hash with a bit in `asked` that may belong to a key of a filter of these words. `words`
    /// is not empty.
    #[inline(always)]
    fn filter(self, words: &[u64], hashes: &[u64; 64], asked: u64) -> u64 {
        let place = |i: usize| filter_word(hashes[i], words.len() as u64) as usize;
        each(asked, |i| prefetch(words, place(i)));
        let mut passed = 0;
        each(asked, |i| {
            let mask = filter_mask(hashes[i]);
            passed |= u64::from(words[place(i)] & mask == mask) << i;
        });
        passed
    }
}

/// Calls `with` for every set bit.
#[inline(always)]
pub(crate) fn each(mut bits: u64, mut with: impl FnMut(usize)) {
    while bits != 0 {
        with(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// Comparison by instructions that every processor of the architecture has; also accepts less than a node.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Compare for Portable {
    #[inline(always)]
    fn count_below<K: OrderedKey>(self, node: &[K], key: K) -> usize {
        node.iter().map(|&other| u32::from(other < key)).sum::<u32>() as usize
    }
}

/// Evaluates the expression with the best available [`Compare`], compiled for its instructions.
macro_rules! by_best {
    (|$by:ident| $work:expr) => {
        match (warpset_base::processor::Avx512::detect(), warpset_base::processor::Avx2::detect()) {
            (Some($by), _) => $by.run(|| $work),
            (None, Some($by)) => $by.run(|| $work),
            (None, None) => {
                let $by = $crate::search_tree::Portable;
                $work
            }
        }
    };
}
pub(crate) use by_best;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use warpset_base::processor::{Avx2, Avx512};

    use super::{Compare, Portable, node};
    use crate::OrderedKey;

    /// Returns a key of 4 bytes as stored, and the mask that turns its order into that of unsigned numbers.
    #[inline(always)]
    fn word<K: OrderedKey>(key: K) -> (u32, u32) {
        (bytemuck::cast(key), bytemuck::cast(K::MIN))
    }

    /// Returns a key of 8 bytes and its mask, as [`word`] does.
    #[inline(always)]
    fn wide<K: OrderedKey>(key: K) -> (u64, u64) {
        (bytemuck::cast(key), bytemuck::cast(K::MIN))
    }

    /// Whether keys are stored as numbers of the processor, of 4 or 8 bytes, and not as strings.
    #[inline(always)]
    fn are_numbers<K: OrderedKey>() -> bool {
        let one = K::from_u64(1);
        match size_of::<K>() {
            4 => word(one).0 ^ word(one).1 == 1,
            8 => wide(one).0 ^ wide(one).1 == 1,
            _ => false,
        }
    }

    impl Compare for Avx512 {
        #[inline(always)]
        fn count_below<K: OrderedKey>(self, keys: &[K], key: K) -> usize {
            assert_eq!(keys.len(), node::<K>());
            if !are_numbers::<K>() {
                return Portable.count_below(keys, key);
            }
            // SAFETY: `self` proves that the processor has these instructions; the slice has the 64 bytes of a node, by
            // the assertion.
            unsafe {
                match size_of::<K>() {
                    4 => {
                        let (key, flip) = word(key);
                        let flips = _mm512_set1_epi32(flip.cast_signed());
                        let keys = _mm512_xor_si512(_mm512_loadu_si512(keys.as_ptr().cast()), flips);
                        _mm512_cmplt_epu32_mask(keys, _mm512_set1_epi32((key ^ flip).cast_signed())).count_ones()
                            as usize
                    }
                    _ => {
                        let (key, flip) = wide(key);
                        let flips = _mm512_set1_epi64(flip.cast_signed());
                        let keys = _mm512_xor_si512(_mm512_loadu_si512(keys.as_ptr().cast()), flips);
                        _mm512_cmplt_epu64_mask(keys, _mm512_set1_epi64((key ^ flip).cast_signed())).count_ones()
                            as usize
                    }
                }
            }
        }

        /// Tests eight words at a time; the accesses of a group overlap.
        #[inline(always)]
        fn filter(self, words: &[u64], hashes: &[u64; 64], asked: u64) -> u64 {
            let Some(len) = u32::try_from(words.len()).ok().filter(|&len| len != 0) else {
                return Portable.filter(words, hashes, asked);
            };
            let mut passed = 0;
            for (chunk, hashes) in hashes.chunks_exact(8).enumerate() {
                let asked = (asked >> (8 * chunk)) as u8;
                // SAFETY: `self` proves that the processor has these instructions. A place is the upper half of a
                // product with the number of words, hence below that number.
                unsafe {
                    let (hash, len) = (_mm512_loadu_si512(hashes.as_ptr().cast()), _mm512_set1_epi64(len.into()));
                    // `filter_word`: the upper 64 bits of hash * len, from the halves of the hash.
                    let low = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hash, len));
                    let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), len);
                    let place = _mm512_srli_epi64::<32>(_mm512_add_epi64(high, low));
                    let word =
                        _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), asked, place, words.as_ptr().cast());
                    // `filter_mask`: a shift by 64 or more gives zero, so higher bits are cut off.
                    let (one, bits) = (_mm512_set1_epi64(1), _mm512_set1_epi64(63));
                    let mut mask = _mm512_sllv_epi64(one, _mm512_and_si512(hash, bits));
                    for shifted in
                        [_mm512_srli_epi64::<6>(hash), _mm512_srli_epi64::<12>(hash), _mm512_srli_epi64::<18>(hash)]
                    {
                        mask = _mm512_or_si512(mask, _mm512_sllv_epi64(one, _mm512_and_si512(shifted, bits)));
                    }
                    let all = _mm512_mask_cmpeq_epi64_mask(asked, _mm512_and_si512(word, mask), mask);
                    passed |= u64::from(all) << (8 * chunk);
                }
            }
            passed
        }
    }

    impl Compare for Avx2 {
        #[inline(always)]
        fn count_below<K: OrderedKey>(self, keys: &[K], key: K) -> usize {
            assert_eq!(keys.len(), node::<K>());
            if !are_numbers::<K>() {
                return Portable.count_below(keys, key);
            }
            let halves: *const __m256i = keys.as_ptr().cast();
            // These comparisons are signed. SAFETY: as above.
            unsafe {
                let (low, high) = (_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1)));
                match size_of::<K>() {
                    4 => {
                        let (key, flip) = word(key);
                        let flip = flip ^ 1 << 31;
                        let (flips, key) =
                            (_mm256_set1_epi32(flip.cast_signed()), _mm256_set1_epi32((key ^ flip).cast_signed()));
                        let low = _mm256_cmpgt_epi32(key, _mm256_xor_si256(low, flips));
                        let high = _mm256_cmpgt_epi32(key, _mm256_xor_si256(high, flips));
                        let (low, high) = (_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
                        (_mm256_movemask_ps(low) | _mm256_movemask_ps(high) << 8).count_ones() as usize
                    }
                    _ => {
                        let (key, flip) = wide(key);
                        let flip = flip ^ 1 << 63;
                        let (flips, key) =
                            (_mm256_set1_epi64x(flip.cast_signed()), _mm256_set1_epi64x((key ^ flip).cast_signed()));
                        let low = _mm256_cmpgt_epi64(key, _mm256_xor_si256(low, flips));
                        let high = _mm256_cmpgt_epi64(key, _mm256_xor_si256(high, flips));
                        let (low, high) = (_mm256_castsi256_pd(low), _mm256_castsi256_pd(high));
                        (_mm256_movemask_pd(low) | _mm256_movemask_pd(high) << 4).count_ones() as usize
                    }
                }
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    use warpset_base::processor::{Avx2, Avx512};

    use super::{Compare, Portable};
    use crate::OrderedKey;

    macro_rules! none {
        ($($name:ident),*) => {$(
            impl Compare for $name {
                #[inline(always)]
                fn count_below<K: OrderedKey>(self, keys: &[K], key: K) -> usize {
                    Portable.count_below(keys, key)
                }
            }
        )*};
    }
    none!(Avx2, Avx512);
}

#[cfg(test)]
mod tests {
    use warpset_base::processor::{Avx2, Avx512};

    use super::*;

    fn all_agree<K: OrderedKey>(ends: &[K]) {
        let mut state = 1u64;
        let mut next = || {
            state = warpset_core::hash::finalise(state);
            K::from_u64(state)
        };
        for round in 0..if cfg!(miri) { 20 } else { 2000 } {
            let mut keys: Vec<K> = (0..node::<K>()).map(|_| next()).collect();
            keys[..round % (node::<K>() + 1)].fill(ends[round % ends.len()]);
            keys.sort_unstable();
            let asked: Vec<K> = keys.iter().chain(ends).copied().chain([next()]).collect();
            for key in asked.iter().flat_map(|key| [Some(*key), key.above(), key.below()]).flatten() {
                let expected = keys.iter().filter(|&&other| other < key).count();
                assert_eq!(Portable.count_below(&keys, key), expected);
                if let Some(by) = Avx2::detect() {
                    assert_eq!(by.run(|| by.count_below(&keys, key)), expected, "{key:?} in {keys:?}");
                }
                if let Some(by) = Avx512::detect() {
                    assert_eq!(by.run(|| by.count_below(&keys, key)), expected, "{key:?} in {keys:?}");
                }
            }
        }
    }

    #[test]
    fn filters_agree() {
        let mut state = 9u64;
        let mut next = || {
            state = warpset_core::hash::finalise(state);
            state
        };
        for len in [1, 2, 7, 188, 5000] {
            let words: Vec<u64> = (0..len).map(|i| if i % 3 == 0 { u64::MAX } else { next() | next() }).collect();
            for asked in [0, 1, 1 << 63, u64::MAX, next(), next()] {
                let mut hashes: [u64; 64] = std::array::from_fn(|_| next());
                (hashes[3], hashes[60]) = (0, u64::MAX);
                let holds = |&i: &usize| {
                    let mask = filter_mask(hashes[i]);
                    words[filter_word(hashes[i], len) as usize] & mask == mask
                };
                let expected =
                    (0..64).filter(|i| asked >> i & 1 == 1).filter(holds).fold(0, |bits, i| bits | 1u64 << i);
                assert_eq!(Portable.filter(&words, &hashes, asked), expected);
                if let Some(by) = Avx512::detect() {
                    assert_eq!(by.run(|| by.filter(&words, &hashes, asked)), expected, "{len} {asked:x}");
                }
            }
        }
    }

    #[test]
    fn comparisons_of_all_widths_agree() {
        all_agree(&[0, 1, u32::MAX, 1 << 31]);
        all_agree(&[0, 1, u64::MAX, 1 << 63]);
        all_agree(&[i32::MIN, -1, 0, i32::MAX]);
        all_agree(&[i64::MIN, -1, 0, i64::MAX]);
        all_agree(&[0, 1, u128::MAX, 1 << 127]);
        all_agree(&[[0; 3], [1, 0, 2], [255; 3]]);
        all_agree(&[[0; 4], [0, 1, 0, 2], [255; 4]]);
        all_agree(&[[0; 8], [0, 1, 2, 3, 4, 5, 6, 7], [255; 8]]);
    }
}

//! Lookups: the number of a key, and the fingerprint there.

use crate::bulk::in_chunks;
use crate::format::COMMON_WORDS;
use crate::function;
use crate::windows::bits_from;
use crate::{HashKind, Number};
use rayon::prelude::*;
use warpset_base::bitmap::Bitmap;
use warpset_base::key::{Hash128, Key};
use warpset_core::recsplit::fingerprint::fingerprint;

/// Keys to look up together.
pub(super) const BLOCK: usize = 256;

/// Fields of a filter's header.
#[derive(Clone)]
pub struct Parameters<M: HashKind> {
    pub(crate) function: function::Parameters<M>,
    /// Words of the function, which follows the header.
    pub(super) function_words: usize,
    /// Bits of a fingerprint.
    pub(crate) width: u32,
}

impl<M: HashKind> Parameters<M> {
    /// Makes the parameters of a filter around a function of this many words, with fingerprints of `width` bits.
    pub(crate) fn new(function: function::Parameters<M>, function_words: usize, width: u32) -> Self {
        Self { function, function_words, width }
    }

    /// Returns the words of the function, which follows the header.
    #[cfg(feature = "gpu")]
    pub(crate) fn function_words(&self) -> usize {
        self.function_words
    }

    /// Returns the probability that a non-member passes.
    pub(crate) fn fpr(&self) -> f64 {
        self.expected_fpr(self.keys())
    }

    /// Returns the false-positive rate of a filter of this width with `keys` keys.
    pub(crate) fn expected_fpr(&self, keys: u64) -> f64 {
        if keys == 0 { 0.0 } else { (-f64::from(self.width)).exp2() }
    }

    /// Returns the number of members.
    pub(crate) fn keys(&self) -> u64 {
        self.function.header.keys
    }
}

/// A filter to look keys up in.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a, M: HashKind> {
    pub(super) words: &'a [u64],
    pub(super) parameters: &'a Parameters<M>,
}

impl<'a, M: HashKind> Lookup<'a, M> {
    #[inline(always)]
    pub(super) fn function(self) -> function::Lookup<'a, M> {
        let words = &self.words[COMMON_WORDS..COMMON_WORDS + self.parameters.function_words];
        function::Lookup { words, parameters: &self.parameters.function }
    }

    /// Whether the fingerprint at this number is that of the hash.
    #[inline(always)]
    fn has(self, hash: Hash128, number: u64) -> bool {
        let width = self.parameters.width;
        let fingerprints = &self.words[COMMON_WORDS + self.parameters.function_words..];
        // A word follows the fingerprints, so that this reads all of them.
        bits_from(fingerprints, number * u64::from(width)) & ((1 << width) - 1) == fingerprint(hash, width)
    }

    /// Returns the number of a key, or `None` if it is certainly no member.
    #[inline(always)]
    pub(super) fn get<K: Key + ?Sized>(self, key: &K) -> Option<u64> {
        let header = &self.parameters.function.header;
        if header.keys == 0 {
            return None;
        }
        let hash = M::hash(key, header.seed);
        let number = M::get(self.function(), hash);
        self.has(hash, number).then_some(number)
    }

    /// Fills in the answers for many keys on all threads: `answer` gets the number of a key and whether it may be a
    /// member. The slices have equal lengths.
    pub(super) fn fill<K: Key, A: Send>(self, keys: &[K], answers: &mut [A], answer: impl Fn(u64, bool) -> A + Sync) {
        in_chunks::<1, _, _>(keys, answers, |keys, answers| {
            self.each(keys, |i, number, is_member| answers[i] = answer(number, is_member));
        });
    }

    /// Whether each key may be a member, on all threads.
    pub(super) fn bits<K: Key>(self, keys: &[K]) -> Bitmap {
        let mut words = vec![0_u64; keys.len().div_ceil(64)];
        in_chunks::<64, _, _>(keys, &mut words, |keys, words| {
            self.each(keys, |i, _, is_member| words[i / 64] |= u64::from(is_member) << (i % 64));
        });
        Bitmap::from_words(words, keys.len())
    }

    /// Whether each key may be a member, on all threads; writes the numbers of those keys. The slices have equal
    /// lengths.
    pub(super) fn numbers_and_bits<K: Key, N: Number>(self, keys: &[K], numbers: &mut [N]) -> Bitmap {
        /// Keys per task of a thread.
        const CHUNK: usize = 1 << 12;
        let mut words = vec![0_u64; keys.len().div_ceil(64)];
        let chunks = keys.par_chunks(CHUNK).zip(numbers.par_chunks_mut(CHUNK)).zip(words.par_chunks_mut(CHUNK / 64));
        chunks.for_each(|((keys, numbers), words)| {
            self.each(keys, |i, number, is_member| {
                numbers[i] = N::narrow(if is_member { number } else { 0 });
                words[i / 64] |= u64::from(is_member) << (i % 64);
            });
        });
        Bitmap::from_words(words, keys.len())
    }

    /// Calls `take` with the position of each key, its number, and whether it may be a member, on the calling thread.
    #[inline]
    fn each<K: Key>(self, keys: &[K], mut take: impl FnMut(usize, u64, bool)) {
        let header = &self.parameters.function.header;
        if header.keys == 0 {
            return (0..keys.len()).for_each(|i| take(i, 0, false));
        }
        let mut numbers = [0; BLOCK];
        if K::CHEAP {
            // Vectors hash faster than memory stores hashes.
            for (keys, first) in keys.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
                M::get_many(self.function(), keys, &mut numbers[..keys.len()]);
                for ((i, key), &number) in (first..).zip(keys).zip(&numbers) {
                    take(i, number, self.has(M::hash(key, header.seed), number));
                }
            }
            return;
        }
        let mut hashes = [Hash128::default(); BLOCK];
        for (keys, first) in keys.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
            let (hashes, numbers) = (&mut hashes[..keys.len()], &mut numbers[..keys.len()]);
            hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = M::hash(key, header.seed));
            self.function().get_hashes(hashes, numbers);
            for ((i, &hash), &number) in (first..).zip(&*hashes).zip(&*numbers) {
                take(i, number, self.has(hash, number));
            }
        }
    }
}

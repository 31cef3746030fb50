//! Queries: the number of a key, and the fingerprint there.

use crate::format::COMMON_WORDS;
use crate::query::{self, in_chunks};
use warpset_base::bitmap::Bitmap;
use warpset_base::key::{Hash128, Key};
use warpset_core::bits::field;
use warpset_core::recsplit::fingerprint::fingerprint;

/// Keys whose numbers are looked up together.
pub(super) const BLOCK: usize = 256;

/// What a filter's header says.
#[derive(Clone)]
pub(crate) struct Parameters {
    pub(crate) function: query::Parameters,
    /// Words of the function, which begins after the header.
    pub(super) function_words: usize,
    /// Bits of a fingerprint.
    pub(crate) width: u32,
}

impl Parameters {
    /// Those of a filter around a function of this many words, with fingerprints of `width` bits.
    pub(crate) fn new(function: query::Parameters, function_words: usize, width: u32) -> Self {
        Self { function, function_words, width }
    }

    /// Words of the function, which begins after the header.
    pub(crate) fn function_words(&self) -> usize {
        self.function_words
    }

    /// Number of members.
    pub(crate) fn keys(&self) -> u64 {
        self.function.keys()
    }
}

/// A filter to look keys up in.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) words: &'a [u64],
    pub(crate) parameters: &'a Parameters,
}

impl<'a> Lookup<'a> {
    #[inline(always)]
    pub(crate) fn function(self) -> query::Lookup<'a> {
        let words = &self.words[COMMON_WORDS..COMMON_WORDS + self.parameters.function_words];
        query::Lookup { words, parameters: &self.parameters.function }
    }

    /// Whether the fingerprint of the member with this number is that of the hash.
    #[inline(always)]
    fn has(self, hash: Hash128, number: u64) -> bool {
        let width = self.parameters.width;
        let fingerprints = &self.words[COMMON_WORDS + self.parameters.function_words..];
        field(fingerprints, number * u64::from(width), width) == fingerprint(hash, width)
    }

    /// The number of a key, unless it is certain that it is no member.
    #[inline(always)]
    pub(crate) fn get<K: Key + ?Sized>(self, key: &K) -> Option<u64> {
        let header = &self.parameters.function.header;
        if header.keys == 0 {
            return None;
        }
        let hash = key.hash128(header.seed);
        let number = self.function().get(hash);
        self.has(hash, number).then_some(number)
    }

    /// Answers for many keys on all threads; the slices have the same length.
    pub(crate) fn contains_bulk<K: Key>(self, keys: &[K], answers: &mut [bool]) {
        in_chunks::<1, _, _>(keys, answers, |keys, answers| self.contains_here(keys, answers));
    }

    /// Answers for many keys on all threads, one bit per key.
    pub(crate) fn contains_bitmap_bulk<K: Key>(self, keys: &[K]) -> Bitmap {
        let mut words = vec![0_u64; keys.len().div_ceil(64)];
        in_chunks::<64, _, _>(keys, &mut words, |keys, words| {
            let mut answers = [false; BLOCK];
            for (keys, words) in keys.chunks(BLOCK).zip(words.chunks_mut(BLOCK / 64)) {
                self.contains_here(keys, &mut answers[..keys.len()]);
                for (i, &answer) in answers[..keys.len()].iter().enumerate() {
                    words[i / 64] |= u64::from(answer) << (i % 64);
                }
            }
        });
        Bitmap::from_words(words, keys.len())
    }

    /// Answers for many keys on the calling thread; the slices have the same length.
    fn contains_here<K: Key>(self, keys: &[K], answers: &mut [bool]) {
        let header = &self.parameters.function.header;
        if header.keys == 0 {
            answers.fill(false);
            return;
        }
        let (mut hashes, mut numbers) = ([Hash128::default(); BLOCK], [0; BLOCK]);
        for (keys, answers) in keys.chunks(BLOCK).zip(answers.chunks_mut(BLOCK)) {
            let (hashes, numbers) = (&mut hashes[..keys.len()], &mut numbers[..keys.len()]);
            hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = key.hash128(header.seed));
            self.function().get_hashes(hashes, numbers);
            for ((answer, hash), number) in answers.iter_mut().zip(hashes).zip(numbers) {
                *answer = self.has(*hash, *number);
            }
        }
    }
}

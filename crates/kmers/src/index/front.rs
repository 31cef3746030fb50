//! What most k-mers that an exact index does not have are turned away by, before the index is looked at.
//!
//! A Bloom filter with blocks of one word: four bits of a k-mer in the word that its hash chooses, eight bits of memory
//! per k-mer. It says yes to one k-mer in twenty that is not there. It is a ninth of a set's size, so that caches hold
//! much of it, and nearly all lookups of reads that do not match end here.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use warpset_base::words::{AlignedWords, OutOfMemory};
use warpset_core::hash::mix_spread;

/// K-mers that are looked up together, at most.
pub(super) const PART: usize = 1 << 10;
/// How many k-mers ahead memory is asked for.
const AHEAD: usize = 24;
/// Where hashes differ from those of other structures.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// K-mers that one task inserts.
const TASK: usize = 1 << 14;

/// K-mers that passed, and which of those that were asked for they are.
pub(super) struct Passed {
    pub(super) kmers: [u64; PART],
    pub(super) at: [u16; PART],
}

/// A borrow of the words of such a filter.
#[derive(Clone, Copy)]
pub(super) struct Front<'a> {
    words: &'a [u64],
}

/// Words of the filter for that many k-mers: whole cache lines, at least one.
pub(super) const fn words_for(kmers: u64) -> u64 {
    (kmers / 8 + 1).next_multiple_of(8)
}

#[inline(always)]
fn word_of(hash: u64, words: usize) -> usize {
    ((u128::from(hash) * words as u128) >> 64) as usize
}

#[inline(always)]
fn bits_of(hash: u64) -> u64 {
    [0, 6, 12, 18].into_iter().fold(0, |bits, shift| bits | 1 << ((hash >> shift) & 63))
}

#[inline(always)]
pub(super) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch does not access memory as the language sees it, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// A view of words as atomic ones.
pub(super) fn shared(words: &mut [u64]) -> &[AtomicU64] {
    // SAFETY: an atomic integer has the size and alignment of the integer, and the words are borrowed exclusively for as
    // long as they are shared.
    unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast::<AtomicU64>(), words.len()) }
}

/// Adds k-mers to the words of a filter, for one of several threads.
pub(super) fn insert(words: &[AtomicU64], kmers: &[u64]) {
    let ask = |kmer: u64| prefetch(words, word_of(mix_spread(kmer, SPREAD), words.len()));
    kmers.iter().take(AHEAD).for_each(|&kmer| ask(kmer));
    for (i, &kmer) in kmers.iter().enumerate() {
        if let Some(&ahead) = kmers.get(i + AHEAD) {
            ask(ahead);
        }
        let hash = mix_spread(kmer, SPREAD);
        let (word, bits) = (&words[word_of(hash, words.len())], bits_of(hash));
        // Most of a filter's writes are spared where its bits are dense.
        if word.load(Ordering::Relaxed) & bits != bits {
            word.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

/// The words of a filter of these k-mers, made on all threads of the current pool.
pub(super) fn of(kmers: &[u64]) -> Result<AlignedWords<u64>, OutOfMemory> {
    let mut words = AlignedWords::zeroed(words_for(kmers.len() as u64))?.in_huge_pages();
    let atomic = shared(words.as_mut_slice());
    kmers.par_chunks(TASK).for_each(|kmers| insert(atomic, kmers));
    Ok(words)
}

impl<'a> Front<'a> {
    /// The filter in words, of which there are some.
    pub(super) fn new(words: &'a [u64]) -> Front<'a> {
        debug_assert!(!words.is_empty());
        Front { words }
    }

    /// Which of at most [`PART`] k-mers may be there, and how many they are.
    pub(super) fn pass(self, kmers: &[u64], passed: &mut Passed) -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("bmi2")
            {
                // SAFETY: the processor has these instructions.
                return unsafe { self.pass_avx512(kmers, passed) };
            }
        }
        self.pass_any(kmers, passed)
    }

    /// # Safety
    /// The processor has AVX-512F, AVX-512DQ and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,bmi2")]
    unsafe fn pass_avx512(self, kmers: &[u64], passed: &mut Passed) -> usize {
        self.pass_any(kmers, passed)
    }

    #[inline(always)]
    fn pass_any(self, kmers: &[u64], passed: &mut Passed) -> usize {
        let mut hashes = [0; PART];
        let hashes = &mut hashes[..kmers.len()];
        for (hash, &kmer) in hashes.iter_mut().zip(kmers) {
            *hash = mix_spread(kmer, SPREAD);
        }
        let place = |hash: u64| word_of(hash, self.words.len());
        hashes.iter().take(AHEAD).for_each(|&hash| prefetch(self.words, place(hash)));
        let mut count = 0;
        for (i, &kmer) in kmers.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + AHEAD) {
                prefetch(self.words, place(ahead));
            }
            let bits = bits_of(hashes[i]);
            // `count` does not pass `i`.
            (passed.kmers[count], passed.at[count]) = (kmer, i as u16);
            count += usize::from(self.words[place(hashes[i])] & bits == bits);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_inserted_passes_and_most_else_does_not() {
        let kmer = |i: u64| warpset_core::hash::finalise(i) >> 2;
        for len in [0usize, 1, 7, 8, 9, 50_000] {
            let kmers: Vec<u64> = (0..len as u64).map(kmer).collect();
            let words = of(&kmers).unwrap();
            let front = Front::new(words.as_slice());
            let mut passed = Passed { kmers: [0; PART], at: [0; PART] };
            for part in kmers.chunks(PART) {
                assert_eq!(front.pass(part, &mut passed), part.len());
                assert!(passed.kmers[..part.len()] == *part && (0..part.len()).all(|i| passed.at[i] == i as u16));
                assert_eq!(front.pass_any(part, &mut passed), part.len());
            }
            let others: Vec<u64> = (1 << 40..(1 << 40) + 50_000).map(kmer).collect();
            let false_ones: usize = others.chunks(PART).map(|part| front.pass(part, &mut passed)).sum();
            assert!(false_ones < 50_000 / 16, "{len}: {false_ones}");
        }
    }
}

//! Filter in front of an exact index, which rejects most k-mers that are not there before the index is read.
//!
//! A Bloom filter with blocks of one word: four bits per k-mer in the word that its hash chooses, eight bits of memory
//! per k-mer. It accepts one in twenty k-mers that are not there. It has a ninth of the size of a set, so that caches
//! hold much of it, and nearly all lookups of reads that do not match end here.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use warpset_base::processor::prefetch;
use warpset_base::words::{AlignedWords, OutOfMemory};
use warpset_core::hash::mix_spread;

use crate::word::Word;

/// Largest number of k-mers per lookup.
pub(super) const PART: usize = 1 << 10;
/// Distance of prefetches in k-mers.
const AHEAD: usize = 24;
/// K-mers per task of insertion.
const TASK: usize = 1 << 14;
/// Seed that separates these hashes from those of other structures.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// K-mers that passed, with their places among those asked for.
pub(super) struct Passed<W> {
    pub(super) kmers: [W; PART],
    pub(super) at: [u16; PART],
}

/// Borrowed words of such a filter.
#[derive(Clone, Copy)]
pub(super) struct Front<'a> {
    words: &'a [u64],
}

/// Returns the words of a filter for `kmers` k-mers: whole cache lines, at least one.
pub(super) const fn words_for(kmers: u64) -> u64 {
    (kmers / 8 + 1).next_multiple_of(8)
}

#[inline(always)]
fn word_of(hash: u64, words: usize) -> usize {
    ((u128::from(hash) * words as u128) >> 64) as usize
}

#[inline(always)]
fn hash_of<W: Word>(kmer: W) -> u64 {
    mix_spread(kmer.key(0), SPREAD)
}

#[inline(always)]
fn bits_of(hash: u64) -> u64 {
    [0, 6, 12, 18].into_iter().fold(0, |bits, shift| bits | 1 << ((hash >> shift) & 63))
}

/// Borrows words as atomic ones.
pub(super) fn shared(words: &mut [u64]) -> &[AtomicU64] {
    // SAFETY: an atomic integer has the size and alignment of the integer, and the exclusive borrow of the words lasts
    // as long as the shared one.
    unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast::<AtomicU64>(), words.len()) }
}

/// Adds k-mers to the words of a filter, on one of several threads.
fn insert<W: Word>(words: &[AtomicU64], kmers: &[W]) {
    let ask = |kmer: W| prefetch(words, word_of(hash_of(kmer), words.len()));
    kmers.iter().take(AHEAD).for_each(|&kmer| ask(kmer));
    for (i, &kmer) in kmers.iter().enumerate() {
        if let Some(&ahead) = kmers.get(i + AHEAD) {
            ask(ahead);
        }
        let hash = hash_of(kmer);
        let (word, bits) = (&words[word_of(hash, words.len())], bits_of(hash));
        // Skips most writes of a dense filter.
        if word.load(Ordering::Relaxed) & bits != bits {
            word.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

/// Builds the words of a filter of the k-mers of all lists, for `different` different ones, on all threads of the
/// current pool.
pub(super) fn of<W: Word>(lists: &[Vec<W>], different: u64) -> Result<AlignedWords<u64>, OutOfMemory> {
    let mut words = AlignedWords::zeroed(words_for(different))?.in_huge_pages();
    let atomic = shared(words.as_mut_slice());
    lists.par_iter().flat_map(|kmers| kmers.par_chunks(TASK)).for_each(|kmers| insert(atomic, kmers));
    Ok(words)
}

impl<'a> Front<'a> {
    /// Creates a view of the words of a filter; at least one word.
    pub(super) fn new(words: &'a [u64]) -> Front<'a> {
        debug_assert!(!words.is_empty());
        Front { words }
    }

    /// Selects the k-mers, of at most [`PART`], that may be there. Returns their number.
    pub(super) fn pass<W: Word>(self, kmers: &[W], passed: &mut Passed<W>) -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("bmi2")
            {
                // SAFETY: the processor has these instructions, detected above.
                return unsafe { self.pass_avx512(kmers, passed) };
            }
        }
        self.pass_any(kmers, passed)
    }

    /// Selects eight k-mers at a time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn pass_avx512<W: Word>(self, kmers: &[W], passed: &mut Passed<W>) -> usize {
        use std::arch::x86_64::*;

        const EIGHT: usize = 8;
        const ROOM: usize = PART + AHEAD.next_multiple_of(EIGHT);
        let Ok(words) = u32::try_from(self.words.len()) else { return self.pass_any(kmers, passed) };
        let (whole, rest) = kmers.as_chunks::<EIGHT>();
        let mut hashes = [0u64; PART];
        for (hash, &kmer) in hashes.iter_mut().zip(kmers) {
            *hash = hash_of(kmer);
        }
        let (many, low) = (_mm512_set1_epi64(words.into()), _mm512_set1_epi64(0xffff_ffff));
        // The places after the last k-mer are those of the first word; its prefetch does no harm.
        let mut places = [0u32; ROOM];
        for (hashes, places) in
            hashes.as_chunks::<EIGHT>().0.iter().zip(places.as_chunks_mut::<EIGHT>().0).take(whole.len())
        {
            // SAFETY: `hashes` is an array of eight `u64`, the width of the vector.
            let hash = unsafe { _mm512_loadu_si512(hashes.as_ptr().cast()) };
            // Upper half of the product by a number of 32 bits.
            let below = _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_and_si512(hash, low), many));
            let above = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), many);
            let place = _mm512_srli_epi64::<32>(_mm512_add_epi64(above, below));
            // SAFETY: `places` is an array of eight `u32`, the width of the vector.
            unsafe { _mm256_storeu_si256(places.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(place)) };
        }
        places[..AHEAD].iter().for_each(|&place| prefetch(self.words, place as usize));
        let (one, six) = (_mm512_set1_epi64(1), _mm512_set1_epi64(63));
        let mut count = 0;
        for (i, kmers) in whole.iter().enumerate() {
            for &place in &places[i * EIGHT + AHEAD..][..EIGHT] {
                prefetch(self.words, place as usize);
            }
            let hash: &[u64; EIGHT] = hashes[i * EIGHT..][..EIGHT].try_into().expect("as many hashes");
            let place: &[u32; EIGHT] = places[i * EIGHT..][..EIGHT].try_into().expect("as many places");
            // SAFETY: each array has eight items, the width of its vector; places are below the number of words.
            let (hash, word) = unsafe {
                let place = _mm256_loadu_si256(place.as_ptr().cast());
                (
                    _mm512_loadu_si512(hash.as_ptr().cast()),
                    _mm512_i32gather_epi64::<8>(place, self.words.as_ptr().cast()),
                )
            };
            // Bits as in `bits_of`.
            let bits = [
                _mm512_sllv_epi64(one, _mm512_and_si512(hash, six)),
                _mm512_sllv_epi64(one, _mm512_and_si512(_mm512_srli_epi64::<6>(hash), six)),
                _mm512_sllv_epi64(one, _mm512_and_si512(_mm512_srli_epi64::<12>(hash), six)),
                _mm512_sllv_epi64(one, _mm512_and_si512(_mm512_srli_epi64::<18>(hash), six)),
            ];
            let bits = _mm512_or_si512(_mm512_or_si512(bits[0], bits[1]), _mm512_or_si512(bits[2], bits[3]));
            let mut passes = _mm512_testn_epi64_mask(_mm512_andnot_si512(word, bits), _mm512_set1_epi64(-1));
            if W::BITS == u64::BITS && passes != 0 {
                let to: &mut [W; EIGHT] = (&mut passed.kmers[count..count + EIGHT]).try_into().expect("room");
                // SAFETY: `kmers` and `to` are arrays of eight words of 64 bits, the width of the vector.
                unsafe {
                    let kmer = _mm512_loadu_si512(kmers.as_ptr().cast());
                    _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_maskz_compress_epi64(passes, kmer));
                }
            }
            while passes != 0 {
                let lane = passes.trailing_zeros() as usize;
                if W::BITS != u64::BITS {
                    passed.kmers[count] = kmers[lane];
                }
                passed.at[count] = (i * EIGHT + lane) as u16;
                count += 1;
                passes &= passes - 1;
            }
        }
        let first = kmers.len() - rest.len();
        for (i, &kmer) in rest.iter().enumerate() {
            let hash = hashes[first + i];
            let bits = bits_of(hash);
            if self.words[word_of(hash, self.words.len())] & bits == bits {
                (passed.kmers[count], passed.at[count]) = (kmer, (first + i) as u16);
                count += 1;
            }
        }
        count
    }

    #[inline(always)]
    fn pass_any<W: Word>(self, kmers: &[W], passed: &mut Passed<W>) -> usize {
        let mut hashes = [0; PART];
        let hashes = &mut hashes[..kmers.len()];
        for (hash, &kmer) in hashes.iter_mut().zip(kmers) {
            *hash = hash_of(kmer);
        }
        let place = |hash: u64| word_of(hash, self.words.len());
        hashes.iter().take(AHEAD).for_each(|&hash| prefetch(self.words, place(hash)));
        let mut count = 0;
        for (i, &kmer) in kmers.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + AHEAD) {
                prefetch(self.words, place(ahead));
            }
            let bits = bits_of(hashes[i]);
            // `count` never exceeds `i`.
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
            let words = of(&[kmers.clone(), Vec::new()], len as u64).unwrap();
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

//! Super-k-mers: stretches of sequences whose k-mers have one minimizer, so that copies of a k-mer meet in one *bin*.
//!
//! The minimizer of a k-mer is the least hash of its m-mers on both strands. Neighbouring k-mers mostly share it: a
//! stretch has (w + 1) / 2 k-mers on average, w = k - m + 1 m-mers per k-mer, and takes as much as two k-mers. Bins by
//! minimizer are counted one by one in hash tables that fit into a core's own cache. Source: Li et al.,
//! "MSPKmerCounter", 2015, and Deorowicz et al., "KMC 2", Bioinformatics 31 (2015), section 2. Departures: minimizers
//! by hash instead of their letters, and no bins on disk.

mod stretch;
mod tally;

use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

pub(crate) use stretch::{Stretch, Wide};
pub(crate) use tally::Tally;

use crate::K;
use crate::chunks::Chunks;
use crate::odd::is_plain;
use crate::roll::{BREAK, CODES};

/// Number of bins, as a power of two; few in tests, so that each has k-mers.
const BIN_BITS: u32 = if cfg!(test) { 4 } else { 13 };
pub(crate) const BINS: usize = 1 << BIN_BITS;
/// Least k with super-k-mers; the k-mers of shorter ones have too few minimizers.
const LEAST_K: u32 = 14;
/// Most bases per minimizer.
const MOST_M: u32 = 11;
/// Odd, so that products differ as their factors do.
const FACTOR: u32 = 0x9e37_79b1;

/// Bases per block, about, so that its arrays stay in the first cache; few in tests, so that they have several blocks.
const BLOCK: usize = if cfg!(test) { 1 << 7 } else { 1 << 9 };
/// Items per turn of a loop over vectors; lengths are rounded up, since turns of one item take longer.
const LANES: usize = 32;
/// Pairs of bytes after packed bases, so that a whole super-k-mer can be read.
const PADDING: usize = 16;

/// Words of super-k-mers.
type Words = Chunks<u64, 6>;

/// Bytes of one thread's open chunks.
pub(crate) const OPEN_BYTES: u64 = BINS as u64 * Words::BYTES;

/// Whether k-mers are long enough.
pub(crate) fn suit(k: K) -> bool {
    k.get() >= LEAST_K
}

/// Returns the average number of k-mers per super-k-mer of random bases.
pub(crate) fn average(k: K) -> u64 {
    u64::from(k.get() - m_of(k.get()) + 2) / 2
}

/// Super-k-mers of one thread, grouped by bin.
pub(crate) struct SuperKmers<S> {
    k: usize,
    stretches: PhantomData<S>,
    words: Words,
    /// Codes of the bases of a sequence that are not cut yet.
    codes: Vec<u8>,
    scratch: Scratch,
}

/// Arrays of a block, reused from block to block.
#[derive(Default)]
struct Scratch {
    /// M-mers, then their hashes, then least hashes, one per base; two of each, because items of the next are made of
    /// two items of the one before.
    forward: [Vec<u32>; 2],
    reverse: [Vec<u32>; 2],
    /// First k-mer of each super-k-mer, then padding.
    begins: Vec<u32>,
    /// Bases in 2 bits each, the first one lowest, then padding.
    packed: Vec<[u8; 2]>,
}

/// Returns the bases per minimizer.
fn m_of(k: u32) -> u32 {
    (k / 2).min(MOST_M)
}

/// Returns the bin of a minimizer.
fn bin_of(minimizer: u32) -> usize {
    (minimizer.wrapping_mul(FACTOR) >> (32 - BIN_BITS)) as usize
}

impl<S: Stretch> SuperKmers<S> {
    /// Creates a thread's super-k-mers, for k-mers that [`suit`].
    pub(crate) fn new(k: K) -> SuperKmers<S> {
        let (codes, scratch) = (Vec::with_capacity(2 * BLOCK), Scratch::default());
        SuperKmers { k: k.get() as usize, stretches: PhantomData, words: Chunks::new(BINS), codes, scratch }
    }

    /// Adds the k-mers of a batch of letters, and adds to `taken` the bytes that are newly in use.
    pub(crate) fn fill(&mut self, batch: &[u8], taken: &AtomicU64) {
        for letters in batch.chunks(BLOCK) {
            if is_plain::<false>(letters) {
                // Codes of A, C, G, T and U in either case.
                self.codes.extend(letters.iter().map(|letter| (letter >> 1 ^ letter >> 2) & 3));
            } else {
                for &letter in letters {
                    match CODES[letter as usize] {
                        BREAK => self.end(taken),
                        code if code < BREAK => self.codes.push(code),
                        _ => {}
                    }
                }
            }
            if self.codes.len() >= BLOCK {
                self.cut(taken);
                // The next block begins with the first k-mer that has not been cut.
                self.codes.drain(..self.codes.len() + 1 - self.k);
            }
        }
        self.end(taken);
    }

    /// Ends a sequence.
    fn end(&mut self, taken: &AtomicU64) {
        if self.codes.len() >= self.k {
            self.cut(taken);
        }
        self.codes.clear();
    }

    /// Adds all k-mers of the codes; the caller has checked that these have at least one.
    fn cut(&mut self, taken: &AtomicU64) {
        let SuperKmers { k, words, codes, scratch, .. } = self;
        let (m, kmers) = (m_of(*k as u32) as usize, codes.len() + 1 - *k);
        let w = *k + 1 - m;
        let super_kmers = scratch.minimize(codes, m, w);
        let Scratch { forward: [minimizers, _], begins, packed, .. } = scratch;
        let begins = &begins[..super_kmers];
        for (i, &begin) in begins.iter().enumerate() {
            let (mut begin, end) = (begin as usize, begins.get(i + 1).map_or(kmers, |&end| end as usize));
            let bin = bin_of(minimizers[begin]);
            while begin < end {
                let len = (end - begin).min(w);
                let (packed, bit) = (&packed.as_flattened()[begin / 4..], begin % 4 * 2);
                S::of(packed, bit as u32, len + *k - 1, len).push(words, bin, taken);
                begin += len;
            }
        }
    }

    /// Returns the words of a bin, chunk by chunk.
    pub(crate) fn of_bin(&self, bin: usize) -> impl Iterator<Item = &[u64]> {
        self.words.of_group(bin)
    }

    /// Removes all super-k-mers and keeps the memory for the next round.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }
}

impl Scratch {
    /// Finds the minimizers of all k-mers of `w` m-mers, the first k-mer of each super-k-mer, and packed bases. Returns
    /// the number of super-k-mers.
    fn minimize(&mut self, codes: &[u8], m: usize, w: usize) -> usize {
        let kmers = codes.len() + 2 - m - w;
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2")]
            fn by_avx2(scratch: &mut Scratch, codes: &[u8], m: usize, w: usize) {
                scratch.minimize_here(codes, m, w);
            }
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            fn by_avx512(scratch: &mut Scratch, codes: &[u8], m: usize, w: usize, kmers: usize) -> usize {
                scratch.minimize_here(codes, m, w);
                begins_by_avx512(&scratch.forward[0], kmers, &mut scratch.begins)
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("popcnt")
            {
                // SAFETY: the processor has these instructions, detected above.
                return unsafe { by_avx512(self, codes, m, w, kmers) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, detected above.
                unsafe { by_avx2(self, codes, m, w) };
                return begins(&self.forward[0], kmers, &mut self.begins);
            }
        }
        self.minimize_here(codes, m, w);
        begins(&self.forward[0], kmers, &mut self.begins)
    }

    /// Finds minimizers and packed bases, with the instructions of the function that calls it. Loops over arrays become
    /// vectors; each at most doubles the number of bases, and then of m-mers, per item.
    #[inline(always)]
    fn minimize_here(&mut self, codes: &[u8], m: usize, w: usize) {
        let Scratch { forward: [forward, next_forward], reverse: [reverse, next_reverse], begins, packed } = self;
        for array in [&mut *forward, next_forward, reverse, next_reverse, begins] {
            array.resize(2 * BLOCK + LANES, 0);
        }
        let mut len = codes.len();
        let (first, complement) = (&mut forward[..len], &mut reverse[..len]);
        let mut i = 0;
        while i < len {
            (first[i], complement[i]) = (codes[i].into(), 3 - u32::from(codes[i]));
            i += 1;
        }
        let mut have = 1;
        while have < m {
            let more = have.min(m - have);
            let (shift, mask) = (2 * more as u32, !(!0 << (2 * more)));
            // Both items have the bases between, which are taken once.
            combine(forward, more, next_forward, len, |first, second| first << shift | second & mask);
            combine(reverse, more, next_reverse, len, |first, second| first & mask | second << shift);
            std::mem::swap(forward, next_forward);
            std::mem::swap(reverse, next_reverse);
            (have, len) = (have + more, len - more);
        }
        let padded = len.next_multiple_of(LANES);
        let (hashes, reverse) = (&mut forward[..padded], &reverse[..padded]);
        let mut i = 0;
        while i < padded {
            // A run of A or T has the largest hash, so that it is hardly ever a minimizer.
            hashes[i] = !hashes[i].min(reverse[i]).wrapping_mul(FACTOR);
            i += 1;
        }
        let mut have = 1;
        while have < w {
            let more = have.min(w - have);
            combine(forward, more, next_forward, len, u32::min);
            std::mem::swap(forward, next_forward);
            (have, len) = (have + more, len - more);
        }
        let (whole, rest) = codes.as_chunks();
        packed.resize(2 * BLOCK / 8 + 1 + PADDING, [0; 2]);
        let mut i = 0;
        while i < whole.len() {
            packed[i] = pack(whole[i]);
            i += 1;
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        packed[i] = pack(last);
    }
}

/// Writes the places of `len` minimizers, at least one, that differ from the one before. Returns their number.
fn begins(minimizers: &[u32], len: usize, begins: &mut [u32]) -> usize {
    let (minimizers, mut count, mut last, mut i) = (&minimizers[..len], 0, !minimizers[0], 0);
    while i < len {
        // Without a branch, which no processor would predict.
        begins[count] = i as u32;
        count += usize::from(minimizers[i] != last);
        last = minimizers[i];
        i += 1;
    }
    count
}

/// Works as [`begins`], sixteen minimizers at a time. Both slices have at least `len` rounded up to sixteen items.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,popcnt")]
fn begins_by_avx512(minimizers: &[u32], len: usize, begins: &mut [u32]) -> usize {
    use std::arch::x86_64::*;
    let mut places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let (mut count, mut before) = (0, _mm512_set1_epi32(!minimizers[0] as i32));
    for begin in (0..len).step_by(16) {
        let now = &minimizers[begin..begin + 16];
        // SAFETY: `now` has sixteen numbers.
        let now = unsafe { _mm512_loadu_si512(now.as_ptr().cast()) };
        let differ = _mm512_cmpneq_epi32_mask(now, _mm512_alignr_epi32::<15>(now, before));
        let differ = differ & (0xffff >> 16usize.saturating_sub(len - begin)) as u16;
        let to = &mut begins[count..count + 16];
        // SAFETY: `to` has sixteen numbers.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_maskz_compress_epi32(differ, places)) };
        (count, before) = (count + differ.count_ones() as usize, now);
        places = _mm512_add_epi32(places, _mm512_set1_epi32(16));
    }
    count
}

/// Makes `len` items of `to`, and some of its padding, each of two items of `from`, the second one `by` items later.
#[inline(always)]
fn combine(from: &[u32], by: usize, to: &mut [u32], len: usize, of: impl Fn(u32, u32) -> u32) {
    let len = len.next_multiple_of(LANES);
    let (to, first, second) = (&mut to[..len], &from[..len], &from[by..by + len]);
    let mut i = 0;
    while i < len {
        to[i] = of(first[i], second[i]);
        i += 1;
    }
}

/// Packs eight codes of bases.
#[inline(always)]
fn pack(codes: [u8; 8]) -> [u8; 2] {
    let codes = u64::from_le_bytes(codes);
    let codes = (codes | codes >> 6) & 0x000f_000f_000f_000f;
    let codes = (codes | codes >> 12) & 0x0000_00ff_0000_00ff;
    ((codes | codes >> 24) as u16).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use warpset_core::minimizer::MOST_K;

    use super::*;
    use crate::Roll;
    use crate::word::MOST_SHORT;

    /// Counts the k-mers of a text by super-k-mers. Each k-mer must be in one bin.
    fn by_bins<S: Stretch>(batches: &[&[u8]], k: K) -> BTreeMap<S::Kmer, u64> {
        let (mut super_kmers, taken) = (SuperKmers::<S>::new(k), AtomicU64::new(0));
        batches.iter().for_each(|batch| super_kmers.fill(batch, &taken));
        let (mut found, mut tally) = (BTreeMap::new(), Tally::<S>::default());
        for bin in 0..BINS {
            let chunks: Vec<&[u64]> = super_kmers.of_bin(bin).collect();
            tally.count(k, &chunks, |kmer, copies| assert!(found.insert(kmer, copies).is_none()));
        }
        super_kmers.clear();
        assert!((0..BINS).all(|bin| super_kmers.of_bin(bin).count() == 0));
        found
    }

    fn check(batches: &[&[u8]]) -> Result<(), TestCaseError> {
        (LEAST_K..=MOST_SHORT).try_for_each(|k| check_one::<u128>(batches, K::new(k).unwrap()))?;
        (MOST_SHORT + 1..=MOST_K).try_for_each(|k| check_one::<Wide>(batches, K::new(k).unwrap()))
    }

    fn check_one<S: Stretch>(batches: &[&[u8]], k: K) -> Result<(), TestCaseError> {
        let mut wanted = BTreeMap::<S::Kmer, u64>::new();
        batches.iter().for_each(|batch| Roll::of(k).each(batch, |kmer| *wanted.entry(kmer).or_default() += 1));
        prop_assert!(by_bins::<S>(batches, k) == wanted, "{k:?}");
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn bins_have_all_kmers(
            first in "[ACGTacgt]{0,300}[ACGTUacgtuNnRX\\-\r\n \t]{0,40}[ACGT\n]{0,80}",
            second in "(AC|A|GT){0,90}[ACGT]{0,30}N{0,2}",
        ) {
            check(&[first.as_bytes(), second.as_bytes(), first.as_bytes()])?;
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn begins_by_vectors_are_those_one_by_one() {
        if !is_x86_feature_detected!("avx512f") || !is_x86_feature_detected!("popcnt") {
            return;
        }
        let minimizers: Vec<u32> = (0..112).map(|i| (warpset_core::hash::finalise(i / 3) % 3) as u32).collect();
        for len in 1..=minimizers.len() {
            let (mut one_by_one, mut by_vectors) = ([0; 112], [0; 112]);
            let count = begins(&minimizers, len, &mut one_by_one);
            // SAFETY: the processor has these instructions, detected above.
            assert_eq!(unsafe { begins_by_avx512(&minimizers, len, &mut by_vectors) }, count);
            assert_eq!(one_by_one[..count], by_vectors[..count]);
        }
    }

    #[test]
    fn repeats_palindromes_and_lengths() {
        let random: Vec<u8> = (0..20_000).map(|i| b"ACGT"[(warpset_core::hash::finalise(i) & 3) as usize]).collect();
        let complement = |letter: &u8| b"TGCA"[b"ACGT".iter().position(|base| base == letter).unwrap()];
        let other: Vec<u8> = random.iter().rev().map(complement).collect();
        check(&[&random, &other]).unwrap();
        let palindromes = b"ACGT".repeat(20).into_iter().chain(b"AATT".repeat(20)).collect::<Vec<u8>>();
        check(&[&palindromes, &[b'A'; 500], &[b'T'; 200], &[b'G'; 99], b"", b"N", b"A"]).unwrap();
        for len in 0..80 {
            check(&[&random[..len], &random[100..100 + len], b"NN"]).unwrap();
        }
        // Both strands of a k-mer are in one bin.
        let k = K::new(31).unwrap();
        assert!(by_bins::<u128>(&[&random, &other], k).values().all(|copies| copies % 2 == 0));
        let k = K::new(55).unwrap();
        assert!(by_bins::<Wide>(&[&random, &other], k).values().all(|copies| copies % 2 == 0));
    }
}

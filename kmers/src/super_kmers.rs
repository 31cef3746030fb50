//! Super-k-mers: stretches of sequences whose k-mers have one minimizer, so that copies of a k-mer meet in one *bin*.
//!
//! The minimizer of a k-mer is the least hash of its m-mers on both strands. Neighbouring k-mers mostly share it: a
//! stretch has (w + 1) / 2 k-mers on average, w = k - m + 1 m-mers per k-mer, and takes two words instead of one per
//! k-mer. Bins by minimizer are counted one by one in hash tables that fit into a core's own cache. Source: Li et al.,
//! "MSPKmerCounter", 2015, and Deorowicz et al., "KMC 2", Bioinformatics 31 (2015), section 2. Departures: minimizers
//! by hash instead of their letters, and no bins on disk.
//!
//! ```text
//! | k-mers, 6 bits | zeros | bases, the last one lowest |
//! ```

use std::sync::atomic::AtomicU64;

use warpset_core::minimizer::reverse_complement;

use crate::K;
use crate::chunks::Chunks;
use crate::roll::{BREAK, CODES};

/// Number of bins, as a power of two; few in tests, so that each has k-mers.
const BIN_BITS: u32 = if cfg!(test) { 4 } else { 13 };
pub(crate) const BINS: usize = 1 << BIN_BITS;
/// Least k with super-k-mers; the k-mers of shorter ones have too few minimizers.
const LEAST_K: u32 = 14;
/// Most bases per minimizer.
const MOST_M: u32 = 11;
/// Bits for the number of k-mers.
const LEN_BITS: u32 = 6;
/// Most m-mers per k-mer.
const MOST_W: usize = (32 - MOST_M + 1) as usize;
/// Odd, so that products differ as their factors do.
const FACTOR: u32 = 0x9e37_79b1;

/// Words of super-k-mers.
type Words = Chunks<6>;

/// Bytes of a super-k-mer.
pub(crate) const BYTES: u64 = 16;
/// Most k-mers per super-k-mer.
pub(crate) const MOST: u64 = MOST_W as u64;
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
pub(crate) struct SuperKmers {
    k: u32,
    words: Words,
}

/// Returns the bases per minimizer.
fn m_of(k: u32) -> u32 {
    (k / 2).min(MOST_M)
}

/// Returns the bin of a minimizer.
fn bin_of(minimizer: u32) -> usize {
    (minimizer.wrapping_mul(FACTOR) >> (32 - BIN_BITS)) as usize
}

impl SuperKmers {
    /// Creates a thread's super-k-mers, for k-mers that [`suit`].
    pub(crate) fn new(k: K) -> SuperKmers {
        SuperKmers { k: k.get(), words: Chunks::new(BINS) }
    }

    /// Adds the k-mers of a batch of letters, and adds to `taken` the bytes that are newly in use.
    ///
    /// Least hashes of windows are those of two parts: m-mers so far of the current block of `w`, and the rest of the
    /// block before, whose least hashes from each place on are known.
    pub(crate) fn fill(&mut self, batch: &[u8], taken: &AtomicU64) {
        let (k, m) = (self.k, m_of(self.k));
        let (w, mask, shift) = ((k - m + 1) as usize, !0u32 >> (32 - 2 * m), 2 * (m - 1));
        let (mut forward, mut reverse, mut bases, mut length) = (0u32, 0u32, 0u128, 0u32);
        // Hashes of the current block up to `at`, then least hashes from there on of the block before.
        let (mut hashes, mut at, mut first) = ([u32::MAX; MOST_W + 1], 0, u32::MAX);
        let (mut minimizer, mut kmers) = (0, 0u32);
        let end = |words: &mut Words, bases: u128, minimizer: u32, kmers: u32| {
            let word = bases & !(!0 << (2 * (kmers + k - 1))) | u128::from(kmers) << (128 - LEN_BITS);
            words.push(bin_of(minimizer), [(word >> 64) as u64, word as u64], taken);
        };
        for &letter in batch {
            let code = CODES[letter as usize];
            if code >= BREAK {
                if code == BREAK {
                    if kmers > 0 {
                        end(&mut self.words, bases, minimizer, kmers);
                    }
                    (length, kmers, at, first) = (0, 0, 0, u32::MAX);
                    hashes = [u32::MAX; MOST_W + 1];
                }
                continue;
            }
            let base = u32::from(code);
            forward = (forward << 2 | base) & mask;
            reverse = reverse >> 2 | (3 - base) << shift;
            length += 1;
            if length >= m {
                // A run of A or T has the largest hash, so that it is hardly ever a minimizer.
                let hash = !forward.min(reverse).wrapping_mul(FACTOR);
                first = first.min(hash);
                let least = first.min(hashes[at + 1]);
                hashes[at] = hash;
                at += 1;
                if at == w {
                    for i in (0..w - 1).rev() {
                        hashes[i] = hashes[i].min(hashes[i + 1]);
                    }
                    (at, first) = (0, u32::MAX);
                }
                if length >= k {
                    length = k; // no overflow, however long the sequence
                    if least != minimizer || kmers == w as u32 {
                        if kmers > 0 {
                            end(&mut self.words, bases, minimizer, kmers);
                        }
                        (minimizer, kmers) = (least, 0);
                    }
                    kmers += 1;
                }
            }
            bases = bases << 2 | u128::from(code);
        }
        if kmers > 0 {
            end(&mut self.words, bases, minimizer, kmers);
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

/// Visits the canonical k-mers of a super-k-mer.
#[inline(always)]
fn each_kmer([high, low]: [u64; 2], k: u32, mut visit: impl FnMut(u64)) {
    let (mask, shift) = (!0 >> (64 - 2 * k), 2 * (k - 1));
    let later = 2 * ((high >> (64 - LEN_BITS)) as u32 - 1);
    let mut forward = ((u128::from(high) << 64 | u128::from(low)) >> later) as u64 & mask;
    // This complement of a base has one other bit, that of the function both.
    let mut reverse = (reverse_complement(forward, k) ^ 0x5555_5555_5555_5555) & mask;
    visit(forward.min(reverse));
    for i in (0..later / 2).rev() {
        let base = low >> (2 * i) & 3;
        forward = (forward << 2 | base) & mask;
        reverse = reverse >> 2 | (3 - base) << shift;
        visit(forward.min(reverse));
    }
}

/// Hash table of one thread for the k-mers of a bin, reused from bin to bin.
#[derive(Default)]
pub(crate) struct Tally {
    /// K-mers and copies, at the first free slot from that of their hash on; 0 copies in a free slot.
    slots: Vec<(u64, u64)>,
    used: usize,
    shift: u32,
    /// Words of the bin.
    words: usize,
}

/// Least slots of a table, as a power of two; few in tests, so that tables grow.
const LEAST_SLOT_BITS: u32 = if cfg!(test) { 3 } else { 10 };

impl Tally {
    /// Counts the k-mers of a bin, given in chunks of words, and visits each with its copies.
    pub(crate) fn count(&mut self, k: K, chunks: &[&[u64]], mut visit: impl FnMut(u64, u64)) {
        let words: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        // As many different k-mers per word as in the bin before, and some more.
        let kmers = words as u64 * (self.used as u64 + 1) / (self.words as u64 + 1);
        self.words = words;
        self.clear((5 * kmers as usize / 2 + 1).ilog2() + 1);
        for chunk in chunks {
            for &pair in chunk.as_chunks().0 {
                self.reserve(MOST_W);
                each_kmer(pair, k.get(), |kmer| self.add(kmer, 1));
            }
        }
        self.slots.iter().filter(|(_, copies)| *copies > 0).for_each(|&(kmer, copies)| visit(kmer, copies));
    }

    /// Empties the table and gives it 2^`bits` slots.
    fn clear(&mut self, bits: u32) {
        let bits = bits.max(LEAST_SLOT_BITS);
        self.slots.clear();
        self.slots.resize(1 << bits, (0, 0));
        (self.used, self.shift) = (0, 64 - bits);
    }

    /// Makes room for more k-mers, so that at least half of the slots stay free.
    #[inline(always)]
    fn reserve(&mut self, more: usize) {
        if 2 * (self.used + more) > self.slots.len() {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let bits = (4 * (self.used + more)).ilog2() + 1;
        let old = std::mem::take(&mut self.slots);
        self.clear(bits);
        old.into_iter().filter(|(_, copies)| *copies > 0).for_each(|(kmer, copies)| self.add(kmer, copies));
    }

    /// Adds copies of a k-mer; the caller has called [`Tally::reserve`], so that a slot is free.
    #[inline(always)]
    fn add(&mut self, kmer: u64, copies: u64) {
        let mut at = (kmer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            let slot = &mut self.slots[at];
            if slot.1 == 0 {
                *slot = (kmer, copies);
                self.used += 1;
                return;
            }
            if slot.0 == kmer {
                slot.1 += copies;
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::Roll;

    /// Counts the k-mers of a text by super-k-mers. Each k-mer must be in one bin.
    fn by_bins(batches: &[&[u8]], k: K) -> BTreeMap<u64, u64> {
        let (mut super_kmers, taken) = (SuperKmers::new(k), AtomicU64::new(0));
        batches.iter().for_each(|batch| super_kmers.fill(batch, &taken));
        let (mut found, mut tally) = (BTreeMap::new(), Tally::default());
        for bin in 0..BINS {
            let chunks: Vec<&[u64]> = super_kmers.of_bin(bin).collect();
            tally.count(k, &chunks, |kmer, copies| assert!(found.insert(kmer, copies).is_none()));
        }
        super_kmers.clear();
        assert!((0..BINS).all(|bin| super_kmers.of_bin(bin).count() == 0));
        found
    }

    fn check(batches: &[&[u8]]) -> Result<(), TestCaseError> {
        for k in (LEAST_K..=32).map(|k| K::new(k).unwrap()) {
            let mut wanted = BTreeMap::<u64, u64>::new();
            batches.iter().for_each(|batch| Roll::new(k).each(batch, |kmer| *wanted.entry(kmer).or_default() += 1));
            prop_assert!(by_bins(batches, k) == wanted, "{k:?}");
        }
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
        assert!(by_bins(&[&random, &other], k).values().all(|copies| copies % 2 == 0));
    }
}

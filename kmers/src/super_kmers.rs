//! Super-k-mers: stretches of sequences whose k-mers have one minimizer, so that copies of a k-mer meet in one *bin*.
//!
//! The minimizer of a k-mer is the least hash of its m-mers on both strands. Neighbouring k-mers mostly share it: a
//! stretch has (w + 1) / 2 k-mers on average, w = k - m + 1 m-mers per k-mer, and takes as much as two k-mers. Bins by
//! minimizer are counted one by one in hash tables that fit into a core's own cache. Source: Li et al.,
//! "MSPKmerCounter", 2015, and Deorowicz et al., "KMC 2", Bioinformatics 31 (2015), section 2. Departures: minimizers
//! by hash instead of their letters, and no bins on disk.
//!
//! ```text
//! | k-mers, 6 bits | zeros | bases, the last one lowest |    128 bits, or 256 for k-mers of more than 32 bases
//! ```

use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

use warpset_core::minimizer::{Kmer, MOST_K};

use crate::K;
use crate::chunks::Chunks;
use crate::odd::is_plain;
use crate::roll::{BREAK, CODES};
use crate::word::sealed::Word as _;
use crate::word::{MOST_SHORT, Word};
use warpset_base::processor::prefetch;

/// Number of bins, as a power of two; few in tests, so that each has k-mers.
const BIN_BITS: u32 = if cfg!(test) { 4 } else { 13 };
pub(crate) const BINS: usize = 1 << BIN_BITS;
/// Least k with super-k-mers; the k-mers of shorter ones have too few minimizers.
const LEAST_K: u32 = 14;
/// Most bases per minimizer.
const MOST_M: u32 = 11;
/// Bits for the number of k-mers.
const LEN_BITS: u32 = 6;
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

/// Super-k-mer: its bases, and above them the number of its k-mers.
pub(crate) trait Stretch: Key {
    /// Numbers that hold its k-mers.
    type Kmer: Word + Key;
    /// Words of 64 bits.
    const WORDS: usize;
    /// Bytes.
    const BYTES: u64 = 8 * Self::WORDS as u64;
    /// Most k-mers: m-mers per k-mer.
    const MOST: usize;

    /// Makes a super-k-mer of `len` k-mers and `bases` bases from packed bases, the first one lowest; these begin at a
    /// bit of the first byte, and there are 32 bytes.
    fn of(packed: &[u8], bit: u32, bases: usize, len: usize) -> Self;

    /// Appends its words to a bin.
    fn push(self, words: &mut Words, bin: usize, taken: &AtomicU64);

    /// Reads its words.
    fn read(words: &[u64]) -> Self;

    /// Returns the same super-k-mer for one and its reverse complement.
    fn canonical(self, k: u32) -> Self;

    /// Returns the number of its k-mers, its first k-mer, and the low bits, with the bases of the other k-mers.
    fn parts(self, k: u32) -> (u32, Self::Kmer, Self::Kmer);
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
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2")]
            fn by_avx2(scratch: &mut Scratch, codes: &[u8], m: usize, w: usize) -> usize {
                scratch.minimize_here(codes, m, w)
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, detected above.
                return unsafe { by_avx2(self, codes, m, w) };
            }
        }
        self.minimize_here(codes, m, w)
    }

    /// Works as [`Scratch::minimize`], with the instructions of the function that calls it. Loops over arrays become
    /// vectors; each at most doubles the number of bases, and then of m-mers, per item.
    #[inline(always)]
    fn minimize_here(&mut self, codes: &[u8], m: usize, w: usize) -> usize {
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
        let (mut count, mut last) = (0, !forward[0]);
        let (minimizers, mut i) = (&forward[..len], 0);
        while i < len {
            // Without a branch, which no processor would predict.
            begins[count] = i as u32;
            count += usize::from(minimizers[i] != last);
            last = minimizers[i];
            i += 1;
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
        count
    }
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

/// Returns 16 bytes of packed bases as a number.
#[inline(always)]
fn bases_at(packed: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(*packed[at..].first_chunk().expect("padding as long as a super-k-mer"))
}

/// Returns the reverse complement of 64 bases, the last one lowest.
#[inline(always)]
fn complement_all(bases: u128) -> u128 {
    // This complement of a base has one other bit than that of the function.
    bases.reverse_complement(64) ^ (!0 / 3)
}

/// Returns the reverse complement of `len` bases, at most 64, the last one lowest.
#[inline(always)]
fn complement(bases: u128, len: u32) -> u128 {
    complement_all(bases) >> (128 - 2 * len)
}

impl Stretch for u128 {
    type Kmer = u64;
    const WORDS: usize = 2;
    const MOST: usize = (MOST_SHORT - MOST_M + 1) as usize;

    #[inline(always)]
    fn of(packed: &[u8], bit: u32, bases: usize, len: usize) -> u128 {
        // The complement of bases in ascending order is the reverse complement in descending order.
        let bases = !(bases_at(packed, 0) >> bit) & !(!0 << (2 * bases));
        bases | (len as u128) << (128 - LEN_BITS)
    }

    #[inline(always)]
    fn push(self, words: &mut Words, bin: usize, taken: &AtomicU64) {
        words.push(bin, [(self >> 64) as u64, self as u64], taken);
    }

    #[inline(always)]
    fn read(words: &[u64]) -> u128 {
        u128::from(words[0]) << 64 | u128::from(words[1])
    }

    #[inline(always)]
    fn canonical(self, k: u32) -> u128 {
        let (len, bases) = ((self >> (128 - LEN_BITS)) as u32, self << LEN_BITS >> LEN_BITS);
        bases.min(complement(bases, len + k - 1)) | self & !0 << (128 - LEN_BITS)
    }

    #[inline(always)]
    fn parts(self, k: u32) -> (u32, u64, u64) {
        let len = (self >> (128 - LEN_BITS)) as u32;
        (len, (self >> (2 * len - 2)) as u64 & u64::mask(k), self as u64)
    }
}

/// Super-k-mer of up to 125 bases.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    /// Shifts by less than 256 bits, and at least one.
    #[inline(always)]
    fn shifted(self, bits: u32) -> Wide {
        match bits {
            ..128 => Wide { high: self.high >> bits, low: self.low >> bits | self.high << (128 - bits) },
            _ => Wide { high: 0, low: self.high >> (bits - 128) },
        }
    }
}

impl Stretch for Wide {
    type Kmer = u128;
    const WORDS: usize = 4;
    const MOST: usize = (MOST_K - MOST_M + 1) as usize;

    #[inline(always)]
    fn of(packed: &[u8], bit: u32, bases: usize, len: usize) -> Wide {
        let (low, high) = (bases_at(packed, 0), bases_at(packed, 16));
        let mask = Wide { high: !0, low: !0 }.shifted(256 - 2 * bases as u32);
        // A shift by 128 bits in two steps.
        let (low, high) = (low >> bit | high << 1 << (127 - bit), high >> bit);
        Wide { high: !high & mask.high | (len as u128) << (128 - LEN_BITS), low: !low & mask.low }
    }

    #[inline(always)]
    fn push(self, words: &mut Words, bin: usize, taken: &AtomicU64) {
        let Wide { high, low } = self;
        words.push(bin, [(high >> 64) as u64, high as u64, (low >> 64) as u64, low as u64], taken);
    }

    #[inline(always)]
    fn read(words: &[u64]) -> Wide {
        Wide { high: u128::read(&words[..2]), low: u128::read(&words[2..4]) }
    }

    #[inline(always)]
    fn canonical(self, k: u32) -> Wide {
        let len = self.high & !0 << (128 - LEN_BITS);
        let bases = Wide { high: self.high & !len, low: self.low };
        let all = Wide { high: complement_all(bases.low), low: complement_all(bases.high) };
        let other = all.shifted(256 - 2 * ((len >> (128 - LEN_BITS)) as u32 + k - 1));
        let least = if bases < other { bases } else { other };
        Wide { high: least.high | len, ..least }
    }

    #[inline(always)]
    fn parts(self, k: u32) -> (u32, u128, u128) {
        let len = (self.high >> (128 - LEN_BITS)) as u32;
        let first = if len > 1 { self.shifted(2 * len - 2).low } else { self.low };
        (len, first & u128::mask(k), self.low)
    }
}

/// Visits the canonical k-mers of a super-k-mer.
#[inline(always)]
fn each_kmer<S: Stretch>(stretch: S, k: u32, mut visit: impl FnMut(S::Kmer)) {
    let (len, mut forward, rest) = stretch.parts(k);
    let (mask, shift) = (S::Kmer::mask(k), 2 * (k - 1));
    let mut reverse = S::Kmer::of(complement(forward.wide(), k));
    visit(forward.min(reverse));
    for i in (0..len - 1).rev() {
        let base = (rest >> (2 * i)).low() & 3;
        forward = (forward << 2 | S::Kmer::from(base)) & mask;
        reverse = reverse >> 2 | S::Kmer::from(3 - base) << shift;
        visit(forward.min(reverse));
    }
}

/// Hash tables of one thread for a bin, reused from bin to bin.
pub(crate) struct Tally<S: Stretch> {
    /// Reads that overlap have equal super-k-mers, except at their ends; so most k-mers are counted by stretches.
    super_kmers: Counts<S>,
    kmers: Counts<S::Kmer>,
}

impl<S: Stretch> Default for Tally<S> {
    fn default() -> Tally<S> {
        Tally { super_kmers: Counts::default(), kmers: Counts::default() }
    }
}

impl<S: Stretch> Tally<S> {
    /// Counts the k-mers of a bin, given in chunks of words, and visits each with its copies.
    pub(crate) fn count(&mut self, k: K, chunks: &[&[u64]], visit: impl FnMut(S::Kmer, u64)) {
        let (Tally { super_kmers, kmers }, k) = (self, k.get());
        super_kmers.begin(chunks.iter().map(|chunk| chunk.len() / S::WORDS).sum());
        for (i, chunk) in chunks.iter().enumerate() {
            // Chunks lie anywhere in memory.
            if let Some(next) = chunks.get(i + 1) {
                (0..next.len()).step_by(8).for_each(|word| prefetch(next, word));
            }
            for words in chunk.chunks_exact(S::WORDS) {
                super_kmers.reserve(1);
                super_kmers.add(S::read(words).canonical(k), 1);
            }
        }
        kmers.begin(super_kmers.used);
        super_kmers.each(|word, copies| {
            kmers.reserve(S::MOST);
            each_kmer(word, k, |kmer| kmers.add(kmer, copies));
        });
        kmers.each(visit);
    }
}

/// Numbers of copies of keys in a hash table.
#[derive(Default)]
struct Counts<Key> {
    /// Keys and copies, at the first free slot from that of their hash on; 0 copies in a free slot.
    slots: Vec<(Key, u64)>,
    used: usize,
    shift: u32,
    /// Items of the bin.
    items: usize,
}

/// Least slots of a table, as a power of two; few in tests, so that tables grow.
const LEAST_SLOT_BITS: u32 = if cfg!(test) { 3 } else { 10 };

/// Key of a hash table, which begins with a product of the key and a constant.
pub(crate) trait Key: Copy + Default + PartialEq {
    fn hash(self) -> u64;
}
impl Key for u64 {
    #[inline(always)]
    fn hash(self) -> u64 {
        self.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
impl Key for u128 {
    #[inline(always)]
    fn hash(self) -> u64 {
        ((self >> 64) as u64).wrapping_add((self as u64).hash()).rotate_left(32).hash()
    }
}

impl Key for Wide {
    #[inline(always)]
    fn hash(self) -> u64 {
        self.high
            .hash()
            .wrapping_add((self.low >> 64) as u64)
            .hash()
            .rotate_left(32)
            .wrapping_add(self.low as u64)
            .hash()
    }
}

impl<K: Key> Counts<K> {
    /// Empties the table for a bin, with slots for as many keys per item as in the bin before, and some more.
    fn begin(&mut self, items: usize) {
        let keys = items as u64 * (self.used as u64 + 1) / (self.items as u64 + 1);
        self.items = items;
        self.clear((5 * keys / 2 + 1).ilog2() + 1);
    }

    /// Empties the table and gives it 2^`bits` slots.
    fn clear(&mut self, bits: u32) {
        let bits = bits.max(LEAST_SLOT_BITS);
        self.slots.clear();
        self.slots.resize(1 << bits, Default::default());
        (self.used, self.shift) = (0, 64 - bits);
    }

    /// Makes room for more keys, so that at least half of the slots stay free.
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
        old.into_iter().filter(|(_, copies)| *copies > 0).for_each(|(key, copies)| self.add(key, copies));
    }

    /// Adds copies of a key; the caller has called [`Counts::reserve`], so that a slot is free.
    #[inline(always)]
    fn add(&mut self, key: K, copies: u64) {
        let mut at = (key.hash() >> self.shift) as usize;
        loop {
            let slot = &mut self.slots[at];
            if slot.1 == 0 {
                *slot = (key, copies);
                self.used += 1;
                return;
            }
            if slot.0 == key {
                slot.1 += copies;
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Visits all keys with their copies.
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(K, u64)) {
        self.slots.iter().filter(|(_, copies)| *copies > 0).for_each(|&(key, copies)| visit(key, copies));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::Roll;

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

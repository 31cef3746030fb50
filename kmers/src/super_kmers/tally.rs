//! Counting of the super-k-mers of a bin in hash tables.

use warpset_base::processor::prefetch;

use super::stretch::{Key, Stretch, each_kmer};
use crate::K;

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
        super_kmers.take(|word, copies| {
            kmers.reserve(S::MOST);
            each_kmer(word, k, |kmer| kmers.add(kmer, copies));
        });
        kmers.take(visit);
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

    /// Visits all keys with their copies, and leaves the slots in no order. Taken slots are gathered first, without a
    /// branch, which no processor would predict.
    #[inline(always)]
    fn take(&mut self, mut visit: impl FnMut(K, u64)) {
        let mut taken = 0;
        for i in 0..self.slots.len() {
            let slot = self.slots[i];
            self.slots[taken] = slot;
            taken += usize::from(slot.1 > 0);
        }
        self.slots[..taken].iter().for_each(|&(key, copies)| visit(key, copies));
    }
}

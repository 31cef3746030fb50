//! Counts of one thread and round, grouped by part as they arrive.

use std::sync::atomic::AtomicU64;

use warpset_kernels::kmers::cut::Cut;

use crate::chunks::Chunks;
use crate::table::key_bits;
use crate::word::Word;
use crate::{K, Roll};

/// Words of counts, as [`Parts`](crate::parts::Parts) has them.
type Words<W> = Chunks<W, 8>;

/// Words of counts with the places of each part.
pub(crate) struct Filling<W> {
    cut: Cut<W>,
    bits: u32,
    roll: Roll<W>,
    words: Words<W>,
}

impl<W: Word> Filling<W> {
    /// Bytes that a part takes at least.
    pub(crate) const PART_BYTES: u64 = Words::<W>::BYTES;

    /// Creates a thread's counts, for k-mers that `W` holds.
    pub(crate) fn new(k: K) -> Filling<W> {
        let bits = key_bits(k);
        let cut = Cut::new(bits);
        Filling { cut, bits, roll: Roll::of(k), words: Chunks::new(cut.parts()) }
    }

    /// Adds the k-mers of a batch of letters, `copies` of each, and adds to `taken` the bytes that are newly in use.
    #[inline]
    pub(crate) fn fill(&mut self, batch: &[u8], copies: u64, taken: &AtomicU64) {
        let Filling { cut, bits, roll, words } = self;
        let (cut, bits) = (*cut, *bits);
        roll.restart();
        roll.each(batch, |kmer| {
            let fingerprint = kmer.fingerprint(bits);
            words.push(cut.part(fingerprint), [cut.word(fingerprint, copies)], taken);
        });
    }

    /// Adds copies of a k-mer, and adds to `taken` the bytes that are newly in use.
    #[inline(always)]
    pub(crate) fn add(&mut self, kmer: W, mut copies: u64, taken: &AtomicU64) {
        let fingerprint = kmer.fingerprint(self.bits);
        let part = self.cut.part(fingerprint);
        while copies > 0 {
            let now = copies.min(self.cut.most_copies());
            self.words.push(part, [self.cut.word(fingerprint, now)], taken);
            copies -= now;
        }
    }

    /// Returns the words of a part, chunk by chunk.
    pub(crate) fn of_part(&self, part: usize) -> impl Iterator<Item = &[W]> {
        self.words.of_group(part)
    }

    /// Returns the number of words of all parts.
    pub(crate) fn len(&self) -> u64 {
        self.words.len()
    }

    /// Removes all counts and keeps the memory for the next round.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_copy_is_in_its_part() {
        check::<u64>(&[1, 16, 31, 32]);
        check::<u128>(&[33, 47, 55, 63]);
    }

    /// Checks k-mers that are added one by one, and with more copies than a word holds.
    fn check<W: Word>(lengths: &[u32]) {
        for k in lengths.iter().map(|&k| K::new(k).unwrap()) {
            let cut = Cut::new(key_bits(k));
            let (mut filling, taken) = (Filling::<W>::new(k), AtomicU64::new(0));
            let batch: Vec<u8> =
                (0..5000).map(|i| b"ACGTN"[(warpset_core::hash::finalise(i) % 41 / 10) as usize]).collect();
            let mut wanted = vec![BTreeMap::<W, u64>::new(); cut.parts()];
            let mut want = |kmer: W, copies| {
                let fingerprint = kmer.fingerprint(key_bits(k));
                *wanted[cut.part(fingerprint)].entry(cut.value(cut.word(fingerprint, 1))).or_default() += copies;
            };
            filling.fill(&batch, 1, &taken);
            Roll::of(k).each(&batch, |kmer| want(kmer, 1));
            for (kmer, copies) in [(0, 1), (1, 1_000_000), (3, cut.most_copies()), (2, cut.most_copies() + 1)] {
                let kmer = W::from(kmer);
                filling.add(kmer, copies, &taken);
                want(kmer, copies);
            }
            for (part, wanted) in wanted.into_iter().enumerate() {
                let mut found = BTreeMap::new();
                for &word in filling.of_part(part).flatten() {
                    *found.entry(cut.value(word)).or_default() += cut.copies(word);
                }
                assert_eq!(found, wanted, "{part}");
            }
        }
    }
}

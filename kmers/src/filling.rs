//! Counts of one thread and round, grouped by part as they arrive.

use std::sync::atomic::AtomicU64;

use warpset_core::hash::permute::{permute, spread_of};

use crate::chunks::Chunks;
use crate::parts::Cut;
use crate::table::key_bits;
use crate::{K, Roll};

/// Words of counts, as [`Parts`](crate::parts::Parts) has them.
type Words = Chunks<8>;

/// Words of counts with the places of each part.
pub(crate) struct Filling {
    cut: Cut,
    bits: u32,
    roll: Roll,
    words: Words,
}

impl Filling {
    /// Bytes that a part takes at least.
    pub(crate) const PART_BYTES: u64 = Words::BYTES;

    pub(crate) fn new(k: K) -> Filling {
        let bits = key_bits(k);
        let cut = Cut::new(bits);
        Filling { cut, bits, roll: Roll::new(k), words: Chunks::new(cut.parts()) }
    }

    /// Adds the k-mers of a batch of letters, `copies` of each, and adds to `taken` the bytes that are newly in use.
    #[inline]
    pub(crate) fn fill(&mut self, batch: &[u8], copies: u64, taken: &AtomicU64) {
        let Filling { cut, bits, roll, words } = self;
        let (cut, bits, spread) = (*cut, *bits, spread_of(0));
        roll.restart();
        roll.each(batch, |kmer| {
            // Fingerprint of the table's filter with seed 0.
            let fingerprint = permute(kmer, bits, spread);
            words.push(cut.part(fingerprint), [cut.word(fingerprint, copies)], taken);
        });
    }

    /// Adds copies of a k-mer, and adds to `taken` the bytes that are newly in use.
    #[inline(always)]
    pub(crate) fn add(&mut self, kmer: u64, mut copies: u64, taken: &AtomicU64) {
        let fingerprint = permute(kmer, self.bits, spread_of(0));
        let part = self.cut.part(fingerprint);
        while copies > 0 {
            let now = copies.min(self.cut.most_copies());
            self.words.push(part, [self.cut.word(fingerprint, now)], taken);
            copies -= now;
        }
    }

    /// Returns the words of a part, chunk by chunk.
    pub(crate) fn of_part(&self, part: usize) -> impl Iterator<Item = &[u64]> {
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

    /// Checks k-mers that are added one by one, and with more copies than a word holds.
    #[test]
    fn every_copy_is_in_its_part() {
        for k in [1, 16, 31, 32].map(|k| K::new(k).unwrap()) {
            let cut = Cut::new(key_bits(k));
            let (mut filling, taken) = (Filling::new(k), AtomicU64::new(0));
            let batch: Vec<u8> =
                (0..5000).map(|i| b"ACGTN"[(warpset_core::hash::finalise(i) % 41 / 10) as usize]).collect();
            let mut wanted = vec![BTreeMap::<u64, u64>::new(); cut.parts()];
            let mut want = |kmer, copies| {
                let fingerprint = permute(kmer, key_bits(k), spread_of(0));
                *wanted[cut.part(fingerprint)].entry(cut.value(cut.word(fingerprint, 1))).or_default() += copies;
            };
            filling.fill(&batch, 1, &taken);
            Roll::new(k).each(&batch, |kmer| want(kmer, 1));
            for (kmer, copies) in [(0, 1), (1, 1_000_000), (3, cut.most_copies()), (2, cut.most_copies() + 1)] {
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

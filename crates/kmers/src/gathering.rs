//! Fingerprints of one part gathered in ascending order as they come, equal ones counted.
//!
//! Fingerprints are spread evenly, so each has a place in a table by its high bits, and stands there or, in ascending order, a few
//! places later: linear probing with sorted clusters. A fingerprint that is there already is found by walking while what is in
//! the table is smaller; one that is not moves what is larger up to the next gap. The table is a little larger than it has to be, is
//! in the cache of the core, and is only there while a part is counted.

use std::collections::BTreeMap;

use crate::parts::{Counted, Cut};

/// No fingerprint; larger than any.
const GAP: u64 = u64::MAX;

/// Memory of one thread, used for one part after the other.
#[derive(Default)]
pub(crate) struct Gathering {
    /// Words as [`Counted`] has them but that 0 copies are one less than it says, in ascending order between gaps. Ends with a gap.
    table: Vec<u64>,
    /// The places are `low * places >> low_bits`.
    places: u64,
    low_bits: u32,
    copy_bits: u32,
    /// The copies, less what stands in the table, of fingerprints that have had too many for a word.
    many: BTreeMap<u64, u64>,
}

impl Gathering {
    /// Begins with what has been counted, and room for `more` fingerprints.
    pub(crate) fn begin(&mut self, cut: Cut, counted: &Counted, more: usize) {
        let len = counted.words.len() + more;
        self.places = (len + len / 4 + 1) as u64;
        (self.low_bits, self.copy_bits) = (cut.low_bits(), cut.copy_bits);
        self.table.clear();
        self.table.resize(self.places as usize + 1, GAP);
        self.many.clear();
        let mut least = 0;
        for (low, copies) in counted.from(cut, 0) {
            let at = self.place(low).max(least);
            self.make_room(at);
            // The word keeps fewer copies than there can be in it, so that all bits set is a gap.
            let in_word = (copies - 1).min(cut.too_many() - 2);
            self.table[at] = low << self.copy_bits | in_word;
            if copies - 1 > in_word {
                self.many.insert(low, copies - 1 - in_word);
            }
            least = at + 1;
        }
    }

    #[inline(always)]
    fn place(&self, low: u64) -> usize {
        (u128::from(low) * u128::from(self.places) >> self.low_bits) as usize
    }

    /// Makes sure that the place is in the table, and a gap after it.
    fn make_room(&mut self, at: usize) {
        if at + 1 >= self.table.len() {
            self.table.resize(at + 2, GAP);
        }
    }

    /// Adds one copy of the fingerprint whose low bits, shifted as in a word, are `key`.
    #[inline(always)]
    pub(crate) fn add(&mut self, key: u64) {
        let mut at = self.place(key >> self.copy_bits);
        while self.table[at] < key {
            at += 1;
        }
        let mask = !(!0 << self.copy_bits);
        let word = self.table[at];
        if word ^ key > mask || word == GAP {
            self.insert(at, key);
        } else if word & mask < mask - 1 {
            self.table[at] += 1;
        } else {
            *self.many.entry(key >> self.copy_bits).or_default() += 1;
        }
    }

    /// Puts a word in its place; what is there moves up to the next gap.
    #[inline]
    fn insert(&mut self, mut at: usize, mut word: u64) {
        self.make_room(at);
        while word != GAP {
            std::mem::swap(&mut self.table[at], &mut word);
            at += 1;
            self.make_room(at);
        }
    }

    /// What has been counted.
    pub(crate) fn counted(&self, cut: Cut) -> Counted {
        let len = self.table.iter().filter(|word| **word != GAP).count();
        let mut counted = Counted { words: Vec::with_capacity(len), many: Vec::new() };
        let mask = cut.too_many() - 1;
        let words = self.table.iter().filter(|word| **word != GAP);
        if self.many.is_empty() {
            // One less than there are copies, and one less than fits.
            counted.words.extend(words.map(|word| word + 1));
            return counted;
        }
        for &word in words {
            let low = word >> self.copy_bits;
            counted.push(cut, low, (word & mask) + 1 + self.many.get(&low).copied().unwrap_or(0));
        }
        counted
    }
}

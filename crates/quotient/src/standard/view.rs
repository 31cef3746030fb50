//! Queries over words that someone else owns: a filter in memory, or a saved one in a memory-mapped file.

use std::fmt;

use rayon::prelude::*;
use warpset_core::hash;
use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots};
use warpset_core::quotient::standard as core;

use super::packed::{self, BATCH, Packed, Waiting};
use super::{source, with_slots};
use crate::key::Seed;
use crate::{Error, Hashed, Key, Layout, fpr};

/// Keys that one task of a parallel bulk operation takes; a multiple of [`BATCH`].
pub(super) const TASK: usize = 1 << 13;

/// Lookups a block from which on the pass that counts waiting runs is worth its time, in filters of at least this load.
const LOOKUPS_PER_BLOCK: u64 = 4;
const LEAST_LOAD_TO_COUNT: f64 = 0.6;

/// A filter's parameters and a borrow of its words: answers queries, owns nothing.
///
/// From saved bytes without a copy ([`View::from_bytes`]), or from a filter
/// ([`StandardQuotientFilter::view`](super::StandardQuotientFilter::view)).
///
/// ```
/// use warpset_quotient::{StandardQuotientFilter, View};
///
/// let filter = StandardQuotientFilter::builder(100).build_from(&["north", "south"])?;
/// let view = filter.view(); // may go to other threads, lives as long as the filter
/// assert!(view.contains("north") && view.len() == 2);
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a> {
    layout: Layout,
    words: &'a [u64],
    items: u64,
}

/// Whether an input of this length stays on the calling thread.
pub(super) fn is_serial(len: usize) -> bool {
    len < 2 * TASK || rayon::current_num_threads() == 1
}

impl<'a> View<'a> {
    /// `words` are exactly the words of `layout`.
    pub(crate) fn new(layout: Layout, words: &'a [u64], items: u64) -> View<'a> {
        debug_assert_eq!(words.len() as u64, layout.words());
        View { layout, words, items }
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The words, little-endian, block by block.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// How many fingerprints are stored, repetitions included.
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Fingerprints stored, as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.items as f64 / self.layout.quotients() as f64
    }

    /// Whether the key may be in the filter. Never false for a key that was inserted and not removed.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_fingerprint(self.layout.fingerprint(key))
    }

    /// Whether this fingerprint is stored.
    #[inline]
    pub fn contains_fingerprint(&self, fingerprint: u64) -> bool {
        if fingerprint > self.layout.last_fingerprint() {
            return false;
        }
        let split = self.layout.split;
        match self.layout.container {
            Container::Packed => Packed::new(self.words, split).contains(fingerprint),
            Container::Bytes => {
                let slots = ByteSlots::new(self.words, self.layout.slots(), split.remainder_bits);
                core::contains(&slots, split.quotient(fingerprint), split.remainder(fingerprint))
            }
        }
    }

    /// How many copies of the key's fingerprint are stored.
    pub fn count(&self, key: impl Key) -> u64 {
        let fingerprint = self.layout.fingerprint(key);
        let split = self.layout.split;
        with_slots!(&self.layout, self.words, self.layout.slots(), |slots| core::count(
            &slots,
            split.quotient(fingerprint),
            split.remainder(fingerprint)
        ))
    }

    /// Hands out the answers of `keys`, one after the other, as `ask` gives them.
    fn answer<K: Key, S: Slots, T>(
        &self,
        slots: &S,
        keys: &[K],
        ask: impl Fn(&S, u64, u64) -> T,
        mut take: impl FnMut(usize, T),
    ) {
        let (seed, split) = (Seed::new(self.layout.seed), self.layout.split);
        let mut fingerprints = [0; BATCH];
        let mut next = 0;
        for keys in keys.chunks(BATCH) {
            for (fingerprint, key) in fingerprints.iter_mut().zip(keys) {
                *fingerprint = self.layout.fingerprint_with(seed, key);
                self.prefetch(split.quotient(*fingerprint));
            }
            for fingerprint in &fingerprints[..keys.len()] {
                take(next, ask(slots, split.quotient(*fingerprint), split.remainder(*fingerprint)));
                next += 1;
            }
        }
    }

    /// Asks for the cache line with the metadata of a slot.
    #[inline]
    fn prefetch(&self, slot: u64) {
        let block_words = self.layout.block_words();
        let word = match self.layout.container {
            Container::Bytes => slot * block_words / 64,
            Container::Packed => slot / 64 * block_words,
        };
        packed::prefetch(self.words, word as usize);
    }

    /// The runs that wait at each block, where so many lookups are worth counting them.
    fn waiting(&self, lookups: usize) -> Option<Waiting> {
        let worth = self.layout.container == Container::Packed
            && self.load_factor() >= LEAST_LOAD_TO_COUNT
            && lookups as u64 >= self.layout.blocks * LOOKUPS_PER_BLOCK;
        worth.then(|| Packed::new(self.words, self.layout.split).waiting())
    }

    /// Hands out whether each of `keys` may be in the filter.
    fn answer_contains<K: Key>(&self, keys: &[K], waiting: Option<&Waiting>, take: impl FnMut(usize, bool)) {
        let seed = Seed::new(self.layout.seed);
        match self.layout.container {
            Container::Packed => {
                let packed = Packed::new(self.words, self.layout.split);
                packed.answer_many(waiting, keys.len(), |i| self.layout.fingerprint_with(seed, &keys[i]), take);
            }
            Container::Bytes => {
                let slots = ByteSlots::new(self.words, self.layout.slots(), self.layout.split.remainder_bits);
                self.answer(&slots, keys, core::contains, take);
            }
        }
    }

    /// [`View::answer_contains`] into a slice of the same length, on all threads.
    fn fill_contains<K: Key>(&self, keys: &[K], answers: &mut [bool]) {
        let waiting = self.waiting(keys.len());
        let task = |keys: &[K], answers: &mut [bool]| {
            self.answer_contains(keys, waiting.as_ref(), |i, yes| answers[i] = yes);
        };
        if is_serial(keys.len()) {
            return task(keys, answers);
        }
        keys.par_chunks(TASK).zip(answers.par_chunks_mut(TASK)).for_each(|(keys, answers)| task(keys, answers));
    }

    fn fill<K: Key, T: Send>(
        &self,
        keys: &[K],
        answers: &mut [T],
        of_bytes: impl Fn(&ByteSlots<&'a [u64]>, u64, u64) -> T + Sync,
        of_packed: impl Fn(&PackedSlots<&'a [u64]>, u64, u64) -> T + Sync,
    ) {
        let (bits, len) = (self.layout.split.remainder_bits, self.layout.slots());
        let task = |keys: &[K], answers: &mut [T]| match self.layout.container {
            Container::Bytes => {
                let slots = ByteSlots::new(self.words, len, bits);
                self.answer(&slots, keys, &of_bytes, |i, answer| answers[i] = answer);
            }
            Container::Packed => {
                let slots = PackedSlots::new(self.words, len, bits);
                self.answer(&slots, keys, &of_packed, |i, answer| answers[i] = answer);
            }
        };
        if is_serial(keys.len()) {
            return task(keys, answers);
        }
        keys.par_chunks(TASK).zip(answers.par_chunks_mut(TASK)).for_each(|(keys, answers)| task(keys, answers));
    }

    /// One answer a key, in the order of the keys.
    ///
    /// Like all bulk methods, this spreads large inputs over the threads of the current rayon pool.
    pub fn contains_bulk<K: Key>(&self, keys: &[K]) -> Vec<bool> {
        let mut answers = vec![false; keys.len()];
        self.fill_contains(keys, &mut answers);
        answers
    }

    /// [`View::contains_bulk`] into a slice of the same length.
    pub fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        if keys.len() != answers.len() {
            return Err(Error::LengthMismatch { keys: keys.len(), answers: answers.len() });
        }
        self.fill_contains(keys, answers);
        Ok(())
    }

    /// [`View::count`] of every key.
    pub fn count_bulk<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        let mut answers = vec![0; keys.len()];
        self.fill(keys, &mut answers, core::count, core::count);
        answers
    }

    /// How many of the keys may be in the filter.
    pub fn count_contained<K: Key>(&self, keys: &[K]) -> usize {
        let waiting = self.waiting(keys.len());
        let task = |keys: &[K]| {
            let mut count = 0;
            self.answer_contains(keys, waiting.as_ref(), |_, yes| count += yes as usize);
            count
        };
        if is_serial(keys.len()) { task(keys) } else { keys.par_chunks(TASK).map(task).sum() }
    }

    /// How many different fingerprints are stored.
    pub fn distinct(&self) -> u64 {
        if !self.layout.keeps_duplicates() {
            return self.items;
        }
        source::count_distinct(&source::stored(*self, 0), self.layout.last_fingerprint())
    }

    /// The rate of false positives of the filter as it is: the share of all fingerprints that are stored.
    pub fn fpr(&self) -> f64 {
        fpr::of_distinct(self.distinct(), self.layout.fingerprint_bits())
    }

    /// The fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> f64 {
        let spread = hash::spread_seed(seed);
        let (mut hits, mut done) = (0, 0);
        let mut hashes = vec![Hashed(0); (1 << 16).min(samples as usize)];
        while done < samples {
            let n = hashes.len().min((samples - done) as usize);
            for (i, hash) in hashes[..n].iter_mut().enumerate() {
                hash.0 = hash::mix_spread(done + i as u64, spread);
            }
            hits += self.count_contained(&hashes[..n]);
            done += n as u64;
        }
        hits as f64 / samples.max(1) as f64
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("layout", &self.layout).field("items", &self.items).finish()
    }
}

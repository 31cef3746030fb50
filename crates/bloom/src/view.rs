//! Queries over borrowed words: of a filter in memory, or of a saved one in a memory-mapped file.

use std::sync::atomic::{AtomicBool, Ordering};

use warpset_base::filter::share_of_hashes_on_host;
use warpset_base::parallel;

use crate::layout::BATCH;
use crate::layout::engine::Word;
use crate::{BlockedLayout, Key, Layout, RaoLayout, SplitBlockLayout};

/// Filters above this size (half of a usual L2 cache) are prefetched.
pub(crate) const PREFETCH_BYTES: usize = 1 << 20;
/// Nanoseconds to combine, count or scan a word of 32 bits.
pub(crate) const WORD_NS: f64 = 0.25;

/// A filter's parameters and a borrow of its words: answers queries, owns nothing.
///
/// From saved bytes without a copy (see [`View::from_bytes`]), or from a filter
/// ([`Bloom::view`](crate::cpu::Bloom::view)).
///
/// ```
/// use warpset_bloom::{Filter, SplitBlockBloom, SplitBlockBloomView};
///
/// let filter: SplitBlockBloom = ["a", "b"].into_iter().collect();
/// let view: SplitBlockBloomView = filter.view();
/// assert!(view.contains("a"));
/// assert_eq!(view.contains_bulk(&["a", "b"])?, [true, true]);
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a, L: Layout> {
    layout: L,
    words: &'a [L::Word],
}

/// A borrow of the words of a [`SplitBlockBloom`](crate::SplitBlockBloom) that answers queries.
pub type SplitBlockBloomView<'a> = View<'a, SplitBlockLayout>;
/// A borrow of the words of a [`BlockedBloom`](crate::BlockedBloom) that answers queries.
pub type BlockedBloomView<'a> = View<'a, BlockedLayout>;
/// A borrow of the words of a [`RaoBloom`](crate::RaoBloom) that answers queries.
pub type RaoBloomView<'a> = View<'a, RaoLayout>;

impl<'a, L: Layout> View<'a, L> {
    /// Borrows the words of a filter; their number equals `layout.words()`.
    pub(crate) fn new(layout: L, words: &'a [L::Word]) -> View<'a, L> {
        debug_assert_eq!(words.len() as u64, layout.words());
        View { layout, words }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Returns the words as bytes, little-endian, block by block.
    pub fn bytes(&self) -> &'a [u8] {
        bytemuck::cast_slice(self.words)
    }

    /// Returns the words, as the layout reads them.
    pub(crate) fn words(&self) -> &'a [L::Word] {
        self.words
    }

    /// Returns the size of the words in bytes.
    pub fn memory_bytes(&self) -> u64 {
        4 * self.layout.words()
    }

    /// Returns the bits of memory per key with `keys` keys in the filter.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        8.0 * self.memory_bytes() as f64 / keys as f64
    }

    /// Whether the key may be in the filter. Never false for a key that was inserted.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.layout.contains(self.words, &self.layout.probe(&key))
    }

    /// Answers 64 keys at a time: `answer(i, bits, probes)` has the answers for keys `64 i` and up, and their probes.
    ///
    /// Hashes a batch and prefetches its cache lines while the batch before it is tested.
    pub(crate) fn answer<K: Key>(&self, keys: &[K], mut answer: impl FnMut(usize, u64, &[L::Probe])) {
        let prefetch = size_of_val(self.words) > PREFETCH_BYTES;
        let mut probes = [[L::Probe::default(); BATCH]; 2];
        let mut waiting = 0;
        for (i, batch) in keys.chunks(BATCH).enumerate() {
            let [even, odd] = &mut probes;
            let (next, before) = if i % 2 == 0 { (even, odd) } else { (odd, even) };
            let next = &mut next[..batch.len()];
            self.layout.probe_batch(batch, next);
            if i > 0 {
                let bits = if prefetch {
                    self.layout.contains_batch_before(self.words, before, next)
                } else {
                    self.layout.contains_batch(self.words, before)
                };
                answer(i - 1, bits, before);
            } else if prefetch {
                self.layout.prefetch_batch(self.words, next);
            }
            waiting = batch.len();
        }
        if waiting > 0 {
            let last = keys.len().div_ceil(BATCH) - 1;
            let probes = &probes[last % 2][..waiting];
            answer(last, self.layout.contains_batch(self.words, probes), probes);
        }
    }

    /// Looks up many keys, one bit of the result per key, on all threads of the current rayon pool.
    pub(crate) fn bits<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        let mut words = vec![0; keys.len().div_ceil(64)];
        let task = |keys: &[K], words: &mut [u64]| self.answer(keys, |i, bits, _| words[i] = bits);
        parallel::answer(keys, &mut words, (L::LOOKUP_NS, 64), task);
        words
    }

    /// Whether at least one of the keys may be in the filter. Stops early.
    pub(crate) fn any<K: Key>(&self, keys: &[K]) -> bool {
        let task = |keys: &[K]| {
            keys.chunks(16 * BATCH).any(|keys| {
                let mut any = 0;
                self.answer(keys, |_, bits, _| any |= bits);
                any != 0
            })
        };
        let found = AtomicBool::new(false);
        parallel::for_each(keys.chunks(parallel::task_len(keys.len(), L::LOOKUP_NS)), |keys| {
            if !found.load(Ordering::Relaxed) && task(keys) {
                found.store(true, Ordering::Relaxed);
            }
        });
        found.into_inner()
    }

    /// Counts the set bits.
    pub fn count_ones(&self) -> u64 {
        let count = |words: &[L::Word]| words.iter().map(|w| w.get().count_ones() as u64).sum::<u64>();
        parallel::map(self.words.chunks(parallel::task_len(self.words.len(), WORD_NS)), count).into_iter().sum()
    }

    /// Returns the fraction of set bits; about half at the intended number of keys.
    pub fn fill_ratio(&self) -> f64 {
        self.count_ones() as f64 / self.layout.settable_bits() as f64
    }

    /// Estimates the number of different keys in the filter from the number of set bits.
    pub fn estimated_len(&self) -> f64 {
        self.layout.cardinality(self.count_ones())
    }

    /// Returns the current rate of false positives: the mean over the blocks of the probability that all bits of a
    /// random key are set, from the number of ones in each. Reads the whole filter.
    pub fn fpr(&self) -> f64 {
        let words = self.layout.words_per_block();
        let blocks = ((1 << 14) / words).max(1);
        let sum = |part: &[L::Word]| part.chunks_exact(words).map(|block| self.layout.block_rate(block)).sum::<f64>();
        // Summed in a fixed order, so that the same filter gives the same number.
        let sums = parallel::map(self.words.chunks(blocks * words), sum);
        self.layout.query_rate(sums.iter().sum::<f64>() / self.layout.blocks() as f64)
    }

    /// Returns the rate of false positives in theory with `keys` different keys.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.expected_fpr(keys)
    }

    /// Returns the fraction of bits that theory expects to be set with `keys` different keys in the filter.
    pub fn predicted_fill(&self, keys: u64) -> f64 {
        self.layout.predicted_fill(keys)
    }

    /// Returns the fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> f64 {
        share_of_hashes_on_host(samples, seed, |hashes| self.bits(hashes))
    }
}

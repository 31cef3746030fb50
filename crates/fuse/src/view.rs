//! Queries over borrowed words: of a filter in memory, or of a saved one in a memory-mapped file.

use std::fmt;
use std::marker::PhantomData;

use warpset_base::parallel;
use warpset_core::hash;

use crate::build::word_of;
use crate::lookup::Lookup;
use crate::width::Width;
use crate::{Hashed, Key, Layout};

/// Nanoseconds per key of a batch of lookups.
const LOOKUP_NS: f64 = 5.0;

/// A filter's parameters and a borrow of its words: answers queries, owns nothing.
///
/// From saved bytes without a copy ([`View::from_bytes`]), or from a filter
/// ([`BinaryFuse::view`](crate::BinaryFuse::view)).
///
/// ```
/// use warpset_fuse::BinaryFuse16;
///
/// let filter = BinaryFuse16::builder().build_from(&["north", "south"])?;
/// let view = filter.view(); // may go to other threads, lives as long as the filter
/// assert!(view.contains("north") && view.len() == 2);
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a, F> {
    layout: Layout,
    words: &'a [u64],
    width: PhantomData<F>,
}

impl<'a, F: Width> View<'a, F> {
    /// Borrows the words of a filter; their number equals `layout.words()`.
    pub(crate) fn new(layout: Layout, words: &'a [u64]) -> View<'a, F> {
        debug_assert_eq!(words.len() as u64, layout.words());
        View { layout, words, width: PhantomData }
    }

    #[inline(always)]
    fn lookup(&self) -> Lookup<'_, F> {
        Lookup::new(&self.layout, self.words)
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the words, little-endian: fingerprints, then the seeds of shards, the memory image that every backend
    /// shares.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns the number of different keys in the filter; estimated from the slots for a filter read from arrays of
    /// `xorf`, which do not record it.
    pub fn len(&self) -> u64 {
        self.layout.keys
    }

    /// Whether no key is in the filter.
    pub fn is_empty(&self) -> bool {
        self.layout.keys == 0
    }

    /// Returns the size of the words in bytes.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Returns the bits of memory per key.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.len().max(1) as f64
    }

    /// Returns the number of keys per slot.
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.layout.slots().max(1) as f64
    }

    /// Whether the key may be in the filter. Never false for a key that it was built from.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.lookup().contains(word_of(&key))
    }

    /// Looks up many keys, one bit of the result per key, on all threads of the current rayon pool.
    pub(crate) fn bits<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        let (mut words, lookup) = (vec![0u64; keys.len().div_ceil(64)], self.lookup());
        parallel::answer(keys, &mut words, (LOOKUP_NS, 64), |keys, words| {
            lookup.each_64(keys, |i, bits| words[i] = bits);
        });
        words
    }

    /// Returns the rate of false positives: `2^-bits`, and 0 for an empty filter.
    pub fn fpr(&self) -> f64 {
        if self.layout.graph.starts == 0 { 0.0 } else { self.expected_fpr(1) }
    }

    /// Returns the rate of false positives to expect with `keys` keys: `2^-bits`, for any number of keys.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        expected_fpr::<F>(keys)
    }

    /// Returns the fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> f64 {
        let spread = hash::spread_seed(seed);
        let (mut hits, mut done) = (0, 0);
        let mut hashes = vec![Hashed(0); (1 << 16).min(samples as usize)];
        while done < samples {
            let n = hashes.len().min((samples - done) as usize);
            for (i, hash) in hashes[..n].iter_mut().enumerate() {
                hash.0 = hash::mix_spread(done + i as u64, spread);
            }
            hits += self.bits(&hashes[..n]).iter().map(|word| word.count_ones() as u64).sum::<u64>();
            done += n as u64;
        }
        hits as f64 / samples.max(1) as f64
    }
}

/// Returns the rate of false positives of a filter of this width.
pub(crate) fn expected_fpr<F: Width>(keys: u64) -> f64 {
    if keys == 0 { 0.0 } else { (-f64::from(F::BITS)).exp2() }
}

impl<F: Width> fmt::Debug for View<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("layout", &self.layout).finish_non_exhaustive()
    }
}

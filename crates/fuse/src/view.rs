//! Queries over borrowed words: of a filter in memory, or of a saved one in a memory-mapped file.

use std::marker::PhantomData;

use warpset_base::filter::share_of_hashes_on_host;
use warpset_base::parallel;

use crate::build::word_of;
use crate::lookup::Lookup;
use crate::width::Width;
use crate::{Key, Layout};

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
    pub(crate) layout: Layout,
    pub(crate) words: &'a [u64],
    pub(crate) of: PhantomData<F>,
}

impl<F: Width> View<'_, F> {
    #[inline(always)]
    fn lookup(&self) -> Lookup<'_, F> {
        Lookup::new(&self.layout, self.words)
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

    /// Returns the rate of false positives to expect with `keys` keys: `2^-bits`, for any number of keys.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        expected_fpr::<F>(keys)
    }

    /// Returns the fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> f64 {
        share_of_hashes_on_host(samples, seed, |hashes| self.bits(hashes))
    }
}

/// Returns the rate of false positives of a filter of this width.
pub(crate) fn expected_fpr<F: Width>(keys: u64) -> f64 {
    if keys == 0 { 0.0 } else { (-f64::from(F::BITS)).exp2() }
}

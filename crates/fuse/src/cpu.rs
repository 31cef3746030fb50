//! Binary fuse filters in host memory.

use std::marker::PhantomData;

use warpset_base::filter::{Filter, Take};
use warpset_base::words::AlignedWords;

use crate::build::word_of;
use crate::image::{in_host_memory, measures};
use crate::lookup::Lookup;
use crate::width::Width;
use crate::{Builder, Error, Key, Layout, View};

/// A binary fuse filter in host memory: an approximate set of keys that are all given to the builder.
///
/// `F` is a fingerprint: `u8`, `u16` or `u32` ([`BinaryFuse8`](crate::BinaryFuse8),
/// [`BinaryFuse16`](crate::BinaryFuse16), [`BinaryFuse32`](crate::BinaryFuse32)).
///
/// - **Space**: 1.13 fingerprints per key at a million keys and more; 1.08 four-wise, 1.24 sharded. Fewer keys take
///   more: 1.38 at a thousand, and below some hundred a Bloom filter is smaller.
/// - **Cost**: a lookup reads three slots, four-wise four, whatever the answer.
/// - **Limits**: nothing can be added or removed; one graph takes 3.8 billion keys.
///
/// ```
/// use warpset_fuse::{BinaryFuse8, Filter};
///
/// let keys: Vec<u64> = (0..1_000_000).collect();
/// let filter = BinaryFuse8::builder().build_from(&keys)?;
/// assert!(filter.contains(7u64) && filter.count_contained_bulk(&keys)? == keys.len());
/// assert!(filter.bits_per_key() < 9.1 && filter.fpr() == 1.0 / 256.0);
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone)]
pub struct BinaryFuse<F> {
    layout: Layout,
    words: AlignedWords<u64>,
    of: PhantomData<F>,
}

impl<F: Width> BinaryFuse<F> {
    /// Returns settings for a filter; [`Builder::build_from`] takes the keys.
    pub fn builder() -> Builder<F> {
        Builder::new()
    }

    /// Returns the fingerprints, slot by slot.
    pub fn fingerprints(&self) -> &[F] {
        let words = &self.words()[..self.layout.slot_words() as usize];
        &bytemuck::cast_slice(words)[..self.layout.slots() as usize]
    }

    /// Whether the key may be in the filter. Never false for a key that it was built from.
    #[inline(always)]
    pub fn contains(&self, key: impl Key) -> bool {
        Lookup::<F>::new(&self.layout, self.words()).contains(word_of(&key))
    }
}

measures! {
    [F: Width] BinaryFuse<F>;
    [F: Width] View<'_, F>;
    #[cfg(feature = "mmap")]
    [F: Width] crate::Mapped<F>;
}

warpset_base::queries_of_view! {
    [F: Width] BinaryFuse<F>;
    #[cfg(feature = "mmap")]
    [F: Width] crate::Mapped<F>;
    => {
        /// Returns the rate of false positives to expect with `keys` keys: `2^-bits`, for any number of keys.
        fn expected_fpr(&self, keys: u64) -> f64;
        /// Returns the fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
        fn measured_fpr(&self, samples: u64, seed: u64) -> f64;
    }
}

#[cfg(feature = "mmap")]
warpset_base::queries_of_view! {
    [F: Width] crate::Mapped<F>;
    => {
        /// Whether the key may be in the filter. Never false for a key that it was built from.
        fn contains(&self, key: impl Key) -> bool;
    }
}

in_host_memory! {
    [F: Width] BinaryFuse<F>, View;
    F::STRUCTURE, F::NAME, F::BITS..=F::BITS, 0..=0;
    ///
    /// ```
    /// use warpset_fuse::{BinaryFuse8, BinaryFuse8View};
    ///
    /// let saved = BinaryFuse8::builder().build_from(&["a", "b"])?.to_bytes();
    /// let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved); // at a multiple of 8
    /// let view = BinaryFuse8View::from_bytes(bytemuck::cast_slice(&words))?;
    /// assert!(view.contains("a"));
    /// # Ok::<(), warpset_fuse::Error>(())
    /// ```
    fn from_bytes;
}

impl<F: Width> Filter for View<'_, F> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        take(0, &self.bits(keys));
        Ok(())
    }
    warpset_base::by_inherent! {
        fn memory_bytes(&self) -> u64;
        fn contains(&self, key: impl Key) -> Result<bool, Error> as Ok;
    }
}
warpset_base::filters_by_view! {
    Error;
    [F: Width] BinaryFuse<F>;
    #[cfg(feature = "mmap")]
    [F: Width] crate::Mapped<F>;
}

#[cfg(test)]
mod tests;

//! Filters in host memory.

use std::fmt;

use warpset_base::parallel;

use crate::layout::engine::OneBlock;
use crate::{AlignedWords, BlockedLayout, Error, Key, Layout, RaoLayout, SplitBlockLayout, View};

mod build;
mod by_hash;
mod insert;
pub(crate) mod rao;
mod shared;
mod traits;

pub use shared::SharedBloom;

/// Buckets that one task counts the bits of.
const BUCKETS: usize = 64;

/// A Bloom filter in host memory, of the kind that its layout `L` selects.
///
/// Use it by its names [`SplitBlockBloom`], [`BlockedBloom`] and [`RaoBloom`]. Filters are `Send` and `Sync`; queries
/// take `&self` and insertions `&mut self`, so that no query can see half of an insertion; threads that insert at the
/// same time share it by [`shared`](Bloom::shared).
#[derive(Clone)]
pub struct Bloom<L> {
    layout: L,
    words: AlignedWords<u32>,
    /// Set bits of each bucket, for Rao's filter; empty for the others. Follows from the words.
    bucket_ones: Vec<u32>,
}

/// Apache Parquet's split-block Bloom filter, bit for bit: blocks of 256 bits, eight bits per key, XXH64.
///
/// About 10.5 bits per key for 1% false positives, 16 for 0.13%. One cache line per query, and with AVX2 a handful of
/// instructions. Up to 128 GiB.
///
/// - One key: [`insert`](Bloom::insert), [`contains`](Bloom::contains), [`test_and_insert`](Bloom::test_and_insert).
/// - Many keys, on all cores: [`insert_bulk`](crate::Insert::insert_bulk),
///   [`contains_bulk`](crate::Filter::contains_bulk), and the other methods with that suffix.
/// - Two filters: [`merge`](Bloom::merge), [`intersect`](Bloom::intersect).
/// - Files: [`save`](Bloom::save), [`load`](Bloom::load); in Parquet's form
///   [`write_parquet`](SplitBlockBloom::write_parquet), [`read_parquet`](SplitBlockBloom::read_parquet).
///
/// ```
/// use warpset_bloom::{Filter, Insert, SplitBlockBloom};
///
/// let mut filter = SplitBlockBloom::builder(1_000).fpr(0.01).build()?;
/// filter.insert_bulk(&[2u64, 3, 5, 7, 11])?;
/// assert!(filter.contains(7u64));
/// assert_eq!(filter.count_contained_bulk(&[2u64, 3, 5])?, 3);
/// assert!(filter.test_and_insert("a new key"));
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
pub type SplitBlockBloom = Bloom<SplitBlockLayout>;

/// A blocked Bloom filter with parameters: block of 64 to 1024 bits, 32- or 64-bit words, 1 to 32 bits per key, a seed.
///
/// Fewer bits per key than the split-block filter at rates far from 1%, larger blocks for lower rates, smaller ones for
/// speed.
///
/// ```
/// use warpset_bloom::BlockedBloom;
///
/// let mut filter = BlockedBloom::builder(1_000).fpr(0.0001).block_bits(512).word_bits(64).seed(7).build()?;
/// filter.insert("key");
/// assert!(filter.contains("key"));
/// assert!(filter.layout().shape().hashes() > 8);
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
pub type BlockedBloom = Bloom<BlockedLayout>;

/// Rao's two-level Bloom filter: classic filters of a prime number of bits, one per bucket, each small enough for the
/// shared memory of a GPU's thread block; a first-level hash, or the emptier of two choices, picks the bucket.
///
/// Nearest of the three to a classic filter in bits per key; slower, because a key's bits are spread over the bucket.
///
/// ```
/// use warpset_bloom::{Filter, Insert, RaoBloom};
///
/// let mut filter = RaoBloom::builder(10_000).fpr(0.01).choices(2).build()?;
/// let keys: Vec<u64> = (0..10_000).collect();
/// filter.insert_bulk(&keys)?;
/// assert_eq!(filter.count_contained_bulk(&keys)?, keys.len());
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
pub type RaoBloom = Bloom<RaoLayout>;

impl<L: Layout> Bloom<L> {
    /// Returns an empty filter with these parameters.
    pub(crate) fn with_layout(layout: L) -> Result<Bloom<L>, Error> {
        let words = AlignedWords::zeroed(layout.words())?.in_huge_pages();
        let bucket_ones = if L::COUNTS_ONES { warpset_base::words::zeroed_vec(layout.blocks())? } else { Vec::new() };
        Ok(Bloom { layout, words, bucket_ones })
    }

    /// Puts a filter together; the number of words equals `layout.words()`.
    pub(crate) fn from_parts(layout: L, words: AlignedWords<u32>) -> Bloom<L> {
        debug_assert_eq!(words.as_slice().len() as u64, layout.words());
        let mut filter = Bloom { layout, words, bucket_ones: Vec::new() };
        filter.count_bucket_ones();
        filter
    }

    /// Brings the counts up to date with the words.
    fn count_bucket_ones(&mut self) {
        if L::COUNTS_ONES {
            let (words, mut ones) = (self.layout.words_per_block(), vec![0; self.layout.blocks() as usize]);
            let parts = ones.chunks_mut(BUCKETS).zip(self.words.as_slice().chunks(BUCKETS * words));
            parallel::for_each(parts, |(ones, buckets)| {
                let count = |bucket: &[u32]| bucket.iter().map(|word| word.count_ones()).sum();
                ones.iter_mut().zip(buckets.chunks(words)).for_each(|(ones, bucket)| *ones = count(bucket));
            });
            self.bucket_ones = ones;
        }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Returns the words, little-endian, block by block: the memory image that every backend shares.
    pub fn words(&self) -> &[u32] {
        self.words.as_slice()
    }

    /// Returns a borrow that can answer queries.
    #[inline]
    pub fn view(&self) -> View<'_, L> {
        View::new(self.layout, bytemuck::cast_slice(self.words.as_slice()))
    }

    /// Adds all keys of `other`, a filter with the same parameters: exactly the filter that both inputs together give.
    ///
    /// (Rao's filter with two choices may have sent a key to one bucket here and to the other there; it then is in
    /// both.)
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn merge(&mut self, other: &Bloom<L>) -> Result<(), Error> {
        self.merge_view(&other.view())
    }

    /// Merges a borrowed filter, such as one in saved bytes, which is read once and not copied; see [`Bloom::merge`].
    ///
    /// ```
    /// use warpset_bloom::{SplitBlockBloom, View};
    ///
    /// let builder = SplitBlockBloom::builder(100);
    /// let mut filter = builder.build_from(&["a"])?;
    /// let saved = builder.build_from(&["b"])?.to_bytes();
    /// filter.merge_view(&View::from_bytes(&saved)?)?;
    /// assert!(filter.contains("a") && filter.contains("b"));
    /// # Ok::<(), warpset_bloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn merge_view(&mut self, other: &View<'_, L>) -> Result<(), Error> {
        self.check_layout(other.layout())?;
        insert::zip_words(self.words.as_mut_slice(), other.words(), |a, b| *a |= b);
        self.count_bucket_ones();
        Ok(())
    }

    /// Keeps the bits that are set in `other` too, a filter with the same parameters.
    ///
    /// All keys of both inputs remain, except that Rao's filter with two choices may lose a key that went to different
    /// buckets: it refuses. Other keys may remain too: the rate of false positives is higher than that of a filter of
    /// the common keys alone.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs; [`Error::NoIntersection`].
    pub fn intersect(&mut self, other: &Bloom<L>) -> Result<(), Error> {
        self.check_compatible(other)?;
        self.layout.check_intersection()?;
        insert::zip_words(self.words.as_mut_slice(), other.view().words(), |a, b| *a &= b);
        self.count_bucket_ones();
        Ok(())
    }

    /// Whether `merge` and `intersect` would accept `other`; the error names the first difference.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn check_compatible(&self, other: &Bloom<L>) -> Result<(), Error> {
        self.check_layout(&other.layout)
    }

    fn check_layout(&self, other: &L) -> Result<(), Error> {
        match self.layout.difference(other) {
            None => Ok(()),
            Some((field, left, right)) => Err(Error::Incompatible { field, left, right }),
        }
    }

    /// Removes all keys and keeps the memory.
    fn reset(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.bucket_ones.fill(0);
    }

    /// Divides the number of blocks, a multiple of `factor`, by `factor`: the result equals a filter of that size built
    /// from the same keys.
    ///
    /// Neighbouring blocks are merged by OR, as Parquet's writers do (for Rao's filter over a string hash: buckets
    /// that agree modulo the new number). Memory shrinks and the rate of false positives grows.
    ///
    /// # Errors
    /// [`Error::CannotFold`], [`Error::OutOfMemory`].
    pub fn fold(&mut self, factor: u64) -> Result<(), Error> {
        let layout = self.layout.folded(factor)?;
        let mut folded = AlignedWords::zeroed(layout.words())?;
        let words = layout.words_per_block();
        let old = self.words.as_slice();
        for (new, block) in folded.as_mut_slice().chunks_exact_mut(words).enumerate() {
            for part in 0..factor {
                let from = self.layout.folded_from(new as u64, part, factor) as usize;
                for (word, other) in block.iter_mut().zip(&old[from * words..][..words]) {
                    *word |= other;
                }
            }
        }
        *self = Bloom::from_parts(layout, folded);
        Ok(())
    }

    /// Halves the filter while its number of blocks is even and [`Bloom::fpr`] stays at or below `fpr`; returns the
    /// number of halvings.
    ///
    /// For filters sized for more keys than were inserted.
    ///
    /// # Errors
    /// [`Error::InvalidFpr`], [`Error::OutOfMemory`].
    pub fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error> {
        crate::rates::check_fpr(fpr)?;
        let mut halvings = 0;
        while self.layout.blocks() > 1 && self.layout.blocks().is_multiple_of(2) {
            let mut smaller = self.clone();
            smaller.fold(2)?;
            if smaller.fpr() > fpr {
                break;
            }
            *self = smaller;
            halvings += 1;
        }
        Ok(halvings)
    }
}

warpset_base::queries_of_view! {
    [L: Layout] Bloom<L>;
    #[cfg(feature = "mmap")]
    [L: Layout] crate::Mapped<L>;
    => {
        /// Returns the size of the words in bytes.
        fn memory_bytes(&self) -> u64;
        /// Returns the bits of memory per key with `keys` keys in the filter.
        fn bits_per_key(&self, keys: u64) -> f64;
        /// Whether the key may be in the filter. Never false for a key that was inserted.
        fn contains(&self, key: impl Key) -> bool;
        /// Counts the set bits.
        fn count_ones(&self) -> u64;
        /// Returns the fraction of set bits; about half at the intended number of keys.
        fn fill_ratio(&self) -> f64;
        /// Estimates the number of different keys in the filter from the number of set bits.
        fn estimated_len(&self) -> f64;
        /// Returns the current rate of false positives, from the number of ones in each block.
        fn fpr(&self) -> f64;
        /// Returns the rate of false positives in theory with `keys` different keys.
        fn expected_fpr(&self, keys: u64) -> f64;
        /// Returns the fraction of bits that theory expects to be set with `keys` different keys in the filter: what
        /// [`Bloom::fill_ratio`] will be.
        fn predicted_fill(&self, keys: u64) -> f64;
        /// Returns the fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
        fn measured_fpr(&self, samples: u64, seed: u64) -> f64;
    }
}

/// Insertions of filters in which a key has one block. (Rao's filter has its own: a bucket of it can overflow.)
impl<L: OneBlock> Bloom<L> {
    /// Inserts a key.
    #[inline]
    pub fn insert(&mut self, key: impl Key) {
        let probe = self.layout.probe(&key);
        self.layout.insert(self.words.as_mut_slice(), 0, &probe);
    }

    /// Inserts the key; true if that changed a bit, hence if the key surely was not there.
    #[inline]
    pub fn test_and_insert(&mut self, key: impl Key) -> bool {
        let probe = self.layout.probe(&key);
        self.layout.insert(self.words.as_mut_slice(), 0, &probe)
    }
}

impl<L: OneBlock, K: Key> Extend<K> for Bloom<L> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

/// Same parameters, same bytes.
impl<L: Layout> PartialEq for Bloom<L> {
    fn eq(&self, other: &Bloom<L>) -> bool {
        self.layout == other.layout && self.words() == other.words()
    }
}
impl<L: Layout> Eq for Bloom<L> {}

impl<L: Layout> fmt::Debug for Bloom<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(L::NAME).field("layout", &self.layout).field("memory_bytes", &self.memory_bytes()).finish()
    }
}

impl<L: Layout> fmt::Debug for View<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("of", &L::NAME).field("layout", self.layout()).finish()
    }
}

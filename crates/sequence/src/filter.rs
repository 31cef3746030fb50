//! Bloom filters of k-mers that take and answer for whole sequences.

use std::fmt;

use warpset_base::bitmap::Bitmap;
use warpset_base::words::AlignedWords;

mod builder;
mod format;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
mod hits;
mod insert;
mod layout;
#[cfg(feature = "mmap")]
mod mapped;
mod packed;
mod probes;
mod rates;
mod sequences;
mod view;

#[cfg(test)]
mod tests;

pub use builder::{Builder, DEFAULT_BITS_PER_KEY, DEFAULT_K};
pub use hits::{Hits, Threshold};
pub use layout::Layout;
#[cfg(feature = "mmap")]
pub use mapped::MappedSequenceFilter;
pub use packed::PackedSequences;
pub use sequences::Sequences;
pub use view::SequenceFilterView;

use crate::Error;

/// Bloom filter of k-mers that takes whole sequences. Neighbouring k-mers share a block of memory, so that a read
/// touches a few cache lines instead of one per k-mer.
///
/// - **Space and rate**: 16 bits per k-mer by default; then fewer than one foreign k-mer in 100,000 is found (k = 31).
///   K-mers at the edge of an error share s-mers with inserted ones, and are found more often.
/// - **K-mers**: 9 to 63 bases, canonical (both strands are one). A k-mer has no letter other than A, C, G and T, in
///   either case; remove line ends before.
/// - **Cost**: a few nanoseconds per k-mer; about 6 neighbouring ones share an access to memory.
/// - **Limits**: nothing can be removed; 128 GiB.
///
/// Mapping of k-mers to bits, and sources: [`warpset_core::sequence_filter`].
///
/// ```
/// use warpset_sequence::{SequenceFilter, Threshold};
///
/// let genome = b"GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACG";
/// let mut filter = SequenceFilter::builder(1_000).k(21).build()?;
/// filter.insert(genome);
///
/// let read = b"AAGCTAGCTTAGCTAGCCGATCGTGCATGCAA"; // of the other strand
/// let hits = filter.count(read);
/// assert_eq!((hits.found, hits.kmers), (12, 12));
/// assert_eq!(filter.contains_windows(read).count_ones(), 12);
/// assert!(filter.matches(read, Threshold::at_least(2).and_fraction(0.5)?));
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
#[derive(Clone)]
pub struct SequenceFilter {
    layout: Layout,
    words: AlignedWords<u64>,
}

impl SequenceFilter {
    /// Returns settings for a filter of `kmers` different k-mers.
    pub fn builder(kmers: u64) -> Builder {
        Builder::new(kmers)
    }

    /// Creates an empty filter with these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn with_layout(layout: Layout) -> Result<SequenceFilter, Error> {
        let words = AlignedWords::zeroed(layout.words())?.in_huge_pages();
        Ok(SequenceFilter { layout, words })
    }

    /// Creates a filter from the words of `layout`.
    pub(crate) fn from_parts(layout: Layout, words: AlignedWords<u64>) -> SequenceFilter {
        debug_assert_eq!(words.as_slice().len() as u64, layout.words());
        SequenceFilter { layout, words }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Borrows the words, little-endian, block by block: the memory image of all backends.
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Borrows the filter for queries.
    #[inline]
    pub fn view(&self) -> SequenceFilterView<'_> {
        SequenceFilterView::new(self.layout, self.words())
    }

    /// Inserts the k-mers of a sequence: of each window of `k` letters that are all bases. A long sequence is shared
    /// among the threads of the current rayon pool.
    pub fn insert(&mut self, letters: &[u8]) {
        insert::insert(&self.layout, self.words.as_mut_slice(), &[letters]);
    }

    /// Inserts the k-mers of many sequences, on all threads of the current rayon pool.
    ///
    /// # Errors
    /// None on the host.
    pub fn insert_bulk<S: Sequences + ?Sized>(&mut self, sequences: &S) -> Result<(), Error> {
        insert::insert(&self.layout, self.words.as_mut_slice(), sequences);
        Ok(())
    }

    /// Adds all k-mers of `other`, a filter with the same parameters. The result equals a filter of both inputs.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn merge(&mut self, other: &SequenceFilter) -> Result<(), Error> {
        self.merge_view(&other.view())
    }

    /// Does the same as [`merge`](Self::merge) with a borrowed filter, such as one in saved bytes.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn merge_view(&mut self, other: &SequenceFilterView<'_>) -> Result<(), Error> {
        /// Words per task of a union.
        const TASK: usize = 1 << 15;
        self.layout.expect_same(other.layout())?;
        let parts = self.words.as_mut_slice().chunks_mut(TASK).zip(other.words().chunks(TASK));
        warpset_base::parallel::for_each(parts, |(words, others)| {
            words.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
        });
        Ok(())
    }

    /// Whether `merge` would accept `other`.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn check_compatible(&self, other: &SequenceFilter) -> Result<(), Error> {
        self.layout.expect_same(&other.layout)
    }

    /// Removes all k-mers and keeps the memory.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
    }
}

warpset_base::queries_of_view! {
    [] SequenceFilter;
    #[cfg(feature = "mmap")]
    [] MappedSequenceFilter;
    => {
        /// Returns the bytes of the words.
        fn memory_bytes(&self) -> u64;
        /// Returns the bits of memory per k-mer if the filter holds `kmers` k-mers.
        fn bits_per_key(&self, kmers: u64) -> f64;
        /// Counts the bits that are set.
        fn count_ones(&self) -> u64;
        /// Returns the fraction of bits that are set.
        fn fill_ratio(&self) -> f64;
        /// Estimates the false-positive rate of the present filter from the bits set in each block, for k-mers that
        /// share no s-mer with those in the filter. Takes time proportional to the size of the filter.
        fn fpr(&self) -> f64;
        /// Returns the theoretical false-positive rate after insertion of `kmers` different k-mers of random
        /// sequences.
        fn expected_fpr(&self, kmers: u64) -> f64;
        /// Returns the theoretical fraction of bits that are set after insertion of `kmers` different k-mers of
        /// random sequences.
        fn predicted_fill(&self, kmers: u64) -> f64;
        /// Measures the fraction of about `samples` k-mers of random sequences, drawn with `seed`, that the filter
        /// claims to contain.
        fn measured_fpr(&self, samples: u64, seed: u64) -> f64;
        /// Tests each window of `k` letters: one bit per window, set if it is a k-mer that may be in the filter. An
        /// inserted k-mer is always found, on either strand; a window with a letter that is no base never is.
        ///
        /// Like all methods for one sequence, this one shares a long sequence among the threads of the current
        /// rayon pool.
        fn contains_windows(&self, letters: &[u8]) -> Bitmap;
        /// Tests the windows of many sequences as [`contains_windows`](Self::contains_windows) does: one bitmap per
        /// sequence.
        ///
        /// # Errors
        /// None on the host.
        fn contains_windows_bulk[S: Sequences + ?Sized](&self, sequences: &S) -> Result<Vec<Bitmap>, Error>;
        /// Counts the k-mers of a sequence, and those that may be in the filter.
        fn count(&self, letters: &[u8]) -> Hits;
        /// Counts as [`count`](Self::count) does for many sequences: one answer per sequence, in order.
        ///
        /// # Errors
        /// None on the host.
        fn count_bulk[S: Sequences + ?Sized](&self, sequences: &S) -> Result<Vec<Hits>, Error>;
        /// Whether enough k-mers of the sequence may be in the filter.
        fn matches(&self, letters: &[u8], threshold: Threshold) -> bool;
        /// Tests many sequences as [`matches`](Self::matches) does: one bit per sequence.
        ///
        /// # Errors
        /// None on the host.
        fn matches_bulk[S: Sequences + ?Sized](&self, sequences: &S, threshold: Threshold) -> Result<Bitmap, Error>;
        /// Whether one k-mer may be in the filter, in either case and on either strand. An inserted k-mer is always
        /// found.
        ///
        /// # Errors
        /// [`Error::NotKmer`] unless these are `k` letters A, C, G or T.
        fn contains(&self, kmer: impl AsRef<[u8]>) -> Result<bool, Error>;
    }
}

/// Equality of parameters and words.
impl PartialEq for SequenceFilter {
    fn eq(&self, other: &SequenceFilter) -> bool {
        self.layout == other.layout && self.words() == other.words()
    }
}
impl Eq for SequenceFilter {}

impl fmt::Debug for SequenceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequenceFilter").field("layout", &self.layout).finish_non_exhaustive()
    }
}

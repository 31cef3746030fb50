//! Filters that sequences are put into and asked from.

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
#[cfg(feature = "serde")]
mod serde;
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

/// A Bloom filter of k-mers that takes sequences as they are: neighbouring k-mers share a block of memory, so that a
/// read touches a few cache lines instead of one per k-mer.
///
/// - **Space and rate**: 16 bits per k-mer unless asked otherwise; then fewer than one foreign k-mer in 100,000 is
///   found (k = 31). K-mers at the edge of an error, which share s-mers with the filter's own, are found more often.
/// - **K-mers**: 9 to 32 bases, canonical (both strands are one). No k-mer has a letter other than A, C, G and T in it,
///   in either case; line ends have to be taken out before.
/// - **Cost**: a few nanoseconds per k-mer; about 6 neighbouring ones share an access to memory.
/// - **Limits**: nothing can be removed; 128 GiB.
///
/// How k-mers become bits, and sources: [`warpset_core::sequence_filter`].
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
    /// Settings for a filter of so many different k-mers.
    pub fn builder(kmers: u64) -> Builder {
        Builder::new(kmers)
    }

    /// An empty filter with these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn with_layout(layout: Layout) -> Result<SequenceFilter, Error> {
        let words = AlignedWords::zeroed(layout.words())?.in_huge_pages();
        Ok(SequenceFilter { layout, words })
    }

    /// The words are those of this layout.
    pub(crate) fn from_parts(layout: Layout, words: AlignedWords<u64>) -> SequenceFilter {
        debug_assert_eq!(words.as_slice().len() as u64, layout.words());
        SequenceFilter { layout, words }
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The words, little-endian, block by block: the memory image that every backend shares.
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// A borrow that answers queries.
    #[inline]
    pub fn view(&self) -> SequenceFilterView<'_> {
        SequenceFilterView::new(self.layout, self.words())
    }

    /// Inserts the k-mers of a sequence: of every window of `k` letters that are all bases. A long one goes to all
    /// threads of the current rayon pool.
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

    /// Adds all k-mers of `other`, a filter with the same parameters: exactly the filter that both inputs together
    /// give.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn merge(&mut self, other: &SequenceFilter) -> Result<(), Error> {
        self.merge_view(&other.view())
    }

    /// [`merge`](Self::merge) with a borrowed filter, such as one in saved bytes.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn merge_view(&mut self, other: &SequenceFilterView<'_>) -> Result<(), Error> {
        /// Words that one task unites.
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

/// Gives types with a view its queries.
macro_rules! queries {
    ($($(#[$attribute:meta])* $of:ty;)*) => {$(
        /// Queries, those of the view.
        $(#[$attribute])*
        impl $of {
            /// Bytes of memory that the words take.
            pub fn memory_bytes(&self) -> u64 {
                self.view().memory_bytes()
            }

            /// Bits of memory per k-mer, were `kmers` in the filter.
            pub fn bits_per_key(&self, kmers: u64) -> f64 {
                self.view().bits_per_key(kmers)
            }

            /// How many bits are set.
            pub fn count_ones(&self) -> u64 {
                self.view().count_ones()
            }

            /// The fraction of bits that are set.
            pub fn fill_ratio(&self) -> f64 {
                self.view().fill_ratio()
            }

            /// The rate of false positives of the filter as it is, from the bits that are set in each block: of k-mers
            /// that share no s-mer with those in the filter. Takes time in proportion to the filter's size.
            pub fn fpr(&self) -> f64 {
                self.view().fpr()
            }

            /// The rate of false positives in theory, were `kmers` different k-mers of random sequences in the filter.
            pub fn expected_fpr(&self, kmers: u64) -> f64 {
                self.layout().expected_fpr(kmers)
            }

            /// The fraction of bits that theory expects to be set, were `kmers` different k-mers of random sequences in
            /// the filter.
            pub fn predicted_fill(&self, kmers: u64) -> f64 {
                self.layout().predicted_fill(kmers)
            }

            /// The fraction of about `samples` k-mers of random sequences, drawn with `seed`, that the filter claims to
            /// contain.
            pub fn measured_fpr(&self, samples: u64, seed: u64) -> f64 {
                self.view().measured_fpr(samples, seed)
            }

            /// For each window of `k` letters whether it is a k-mer that may be in the filter: as many bits as there
            /// are windows. Never false for a k-mer that was inserted, on either strand; false where a letter is no
            /// base.
            ///
            /// Like all methods for one sequence, this uses the threads of the current rayon pool for a long one.
            pub fn contains_windows(&self, letters: &[u8]) -> Bitmap {
                self.view().contains_windows(letters)
            }

            /// [`contains_windows`](Self::contains_windows) of many sequences, each with a bitmap of its own.
            ///
            /// # Errors
            /// None on the host.
            pub fn contains_windows_bulk<S: Sequences + ?Sized>(&self, sequences: &S) -> Result<Vec<Bitmap>, Error> {
                self.view().contains_windows_bulk(sequences)
            }

            /// How many k-mers the sequence has, and how many of them may be in the filter.
            pub fn count(&self, letters: &[u8]) -> Hits {
                self.view().count(letters)
            }

            /// [`count`](Self::count) of many sequences: one answer per sequence, in their order.
            ///
            /// # Errors
            /// None on the host.
            pub fn count_bulk<S: Sequences + ?Sized>(&self, sequences: &S) -> Result<Vec<Hits>, Error> {
                self.view().count_bulk(sequences)
            }

            /// Whether enough k-mers of the sequence may be in the filter.
            pub fn matches(&self, letters: &[u8], threshold: Threshold) -> bool {
                self.view().matches(letters, threshold)
            }

            /// [`matches`](Self::matches) of many sequences: one bit per sequence.
            ///
            /// # Errors
            /// None on the host.
            pub fn matches_bulk<S: Sequences + ?Sized>(
                &self,
                sequences: &S,
                threshold: Threshold,
            ) -> Result<Bitmap, Error> {
                self.view().matches_bulk(sequences, threshold)
            }

            /// Whether one k-mer may be in the filter, in either case and on either strand. Never false for one that
            /// was inserted.
            ///
            /// # Errors
            /// [`Error::NotKmer`] unless these are `k` letters A, C, G or T.
            pub fn contains(&self, kmer: impl AsRef<[u8]>) -> Result<bool, Error> {
                self.view().contains(kmer)
            }
        }
    )*};
}
queries! {
    SequenceFilter;
    #[cfg(feature = "mmap")]
    MappedSequenceFilter;
}

/// Same parameters, same bytes.
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

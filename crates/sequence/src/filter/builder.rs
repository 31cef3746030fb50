//! Settings of sequence filters.

use warpset_core::sequence_filter::{BLOCK_BITS, Shape};

use super::layout::Layout;
use super::sequences::Sequences;
use crate::{Error, SequenceFilter};

/// Default number of bits per k-mer.
pub const DEFAULT_BITS_PER_KEY: f64 = 16.0;
/// Default number of bases per k-mer.
pub const DEFAULT_K: u32 = 31;

/// Settings for a [`SequenceFilter`]; each setter states its default.
///
/// ```
/// use warpset_sequence::SequenceFilter;
///
/// let filter = SequenceFilter::builder(1_000_000).k(31).bits_per_key(12.0).build()?;
/// assert_eq!((filter.layout().k(), filter.layout().s()), (31, 27));
/// assert!(filter.expected_fpr(1_000_000) < 0.0001);
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    kmers: u64,
    k: u32,
    s: Option<u32>,
    m: Option<u32>,
    bits_per_key: f64,
}

impl Builder {
    pub(crate) fn new(kmers: u64) -> Builder {
        Builder { kmers: kmers.max(1), k: DEFAULT_K, s: None, m: None, bits_per_key: DEFAULT_BITS_PER_KEY }
    }

    /// Sets the bases per k-mer, 9 to 63. Default: 31.
    pub fn k(mut self, k: u32) -> Self {
        self.k = k;
        self
    }

    /// Sets the bases per s-mer: at most `k` and 32, at least `k - 31`. A k-mer is found if its `k - s + 1` s-mers are,
    /// so more s-mers give a lower false-positive rate, as long as s-mers of foreign sequences are seldom in the filter
    /// by chance. Default: `k - 4`, or 32 if that is less; more if the filter is so large that shorter s-mers would be
    /// found by chance.
    pub fn s(mut self, s: u32) -> Self {
        self.s = Some(s);
        self
    }

    /// Sets the bases per minimizer, 4 to `s`. Shorter minimizers let more neighbouring k-mers share a block, but there
    /// are fewer of them, which makes the loads of blocks unequal. Default: half the bits of the number of k-mers, and
    /// 2 more, or 1 from 16 on; less than `s`.
    pub fn m(mut self, m: u32) -> Self {
        self.m = Some(m);
        self
    }

    /// Sets the bits of memory per k-mer. Default: 16.
    pub fn bits_per_key(mut self, bits: f64) -> Self {
        self.bits_per_key = bits;
        self
    }

    /// Returns the parameters for these settings.
    ///
    /// # Errors
    /// [`Error::InvalidBitsPerKey`], [`Error::InvalidLengths`], [`Error::TooLarge`].
    pub fn layout(&self) -> Result<Layout, Error> {
        let bits_per_key = self.bits_per_key;
        if !(bits_per_key > 0.0 && bits_per_key.is_finite()) {
            return Err(Error::InvalidBitsPerKey { bits_per_key });
        }
        let blocks = (self.kmers as f64 * bits_per_key / BLOCK_BITS as f64).ceil() as u64;
        let suits = Shape::for_kmers(self.k, self.kmers);
        let s = self.s.or(suits.map(Shape::s)).unwrap_or(self.k);
        let m = self.m.unwrap_or_else(|| Shape::minimizer_for(s, self.kmers));
        Layout::new(self.k, s, m, blocks)
    }

    /// Checks all settings, then allocates an empty filter.
    ///
    /// # Errors
    /// The errors of [`layout`](Self::layout), and [`Error::OutOfMemory`].
    pub fn build(&self) -> Result<SequenceFilter, Error> {
        SequenceFilter::with_layout(self.layout()?)
    }

    /// Checks all settings, then builds a filter of the k-mers of these sequences.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build).
    pub fn build_from<S: Sequences + ?Sized>(&self, sequences: &S) -> Result<SequenceFilter, Error> {
        let mut filter = self.build()?;
        filter.insert_bulk(sequences)?;
        Ok(filter)
    }
}

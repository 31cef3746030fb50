//! Parameters of sequence filters, their sizes, and their theoretical rates.

use warpset_base::file::{FIELDS, FileError};
use warpset_core::sequence_filter::{BLOCK_BITS, BLOCK_WORDS, MAX_BLOCKS, Shape};

use super::rates;
use crate::Error;

/// Parameters of a [`SequenceFilter`](crate::SequenceFilter): lengths of its k-mers, s-mers and minimizers, and its
/// blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Shape,
    blocks: u64,
}

impl Layout {
    /// Creates a layout for k-mers of `k` bases by s-mers of `s` and minimizers of `m`, in `blocks` blocks of 32 bytes.
    ///
    /// # Errors
    /// [`Error::InvalidLengths`] unless `9 <= k <= 63`, `4 <= m <= s <= k`, and `s` and `k - s + 1` are at most 32;
    /// [`Error::ZeroCapacity`] without blocks, [`Error::TooLarge`] with more than 2^32.
    pub fn new(k: u32, s: u32, m: u32, blocks: u64) -> Result<Layout, Error> {
        let shape = Shape::new(k, s, m).ok_or(Error::InvalidLengths { k, s, m })?;
        match blocks {
            0 => Err(Error::ZeroCapacity),
            1..=MAX_BLOCKS => Ok(Layout { shape, blocks }),
            _ => {
                let bytes = |blocks: u64| blocks.saturating_mul(BLOCK_BITS / 8);
                Err(Error::TooLarge { bytes: bytes(blocks), limit: bytes(MAX_BLOCKS) })
            }
        }
    }

    /// Returns the lengths.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the bases per k-mer.
    pub fn k(&self) -> u32 {
        self.shape.k()
    }

    /// Returns the bases per s-mer. A k-mer is found if all of its s-mers are.
    pub fn s(&self) -> u32 {
        self.shape.s()
    }

    /// Returns the bases per minimizer. The minimizer of an s-mer chooses its block.
    pub fn m(&self) -> u32 {
        self.shape.m()
    }

    /// Returns the number of blocks of 32 bytes.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the number of words of 64 bits.
    pub fn words(&self) -> u64 {
        self.blocks * BLOCK_WORDS as u64
    }

    /// Returns the theoretical false-positive rate after insertion of `kmers` different k-mers of random sequences, for
    /// k-mers that share no s-mer with these.
    pub fn expected_fpr(&self, kmers: u64) -> f64 {
        rates::expected_fpr(self, kmers)
    }

    /// Returns the theoretical fraction of bits that are set after insertion of `kmers` different k-mers of random
    /// sequences.
    pub fn predicted_fill(&self, kmers: u64) -> f64 {
        rates::predicted_fill(self, kmers)
    }

    pub(crate) fn to_fields(self) -> [u64; FIELDS] {
        let (k, s, m) = (self.k(), self.s(), self.m());
        [self.blocks, k.into(), s.into(), m.into(), 0, 0, 0, 0]
    }

    pub(crate) fn from_fields(fields: [u64; FIELDS]) -> Result<Layout, Error> {
        let invalid = |field, value| Error::from(FileError::InvalidHeader { field, value });
        let [blocks, k, s, m, unused @ ..] = fields;
        if let Some(&value) = unused.iter().find(|&&value| value != 0) {
            return Err(invalid("unused parameters", value));
        }
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let shape =
            Shape::new(small(k), small(s), small(m)).ok_or_else(|| invalid("bases per k-mer, s-mer, minimizer", k))?;
        match blocks {
            1..=MAX_BLOCKS => Ok(Layout { shape, blocks }),
            _ => Err(invalid("blocks", blocks)),
        }
    }

    /// Checks that `other` has equal parameters; the error names the first one that differs.
    pub(crate) fn expect_same(&self, other: &Layout) -> Result<(), Error> {
        let fields = ["blocks", "bases per k-mer", "bases per s-mer", "bases per minimizer"];
        let values = self.to_fields().into_iter().zip(other.to_fields());
        match fields.into_iter().zip(values).find(|(_, (left, right))| left != right) {
            None => Ok(()),
            Some((field, (left, right))) => Err(Error::Incompatible { field, left, right }),
        }
    }
}

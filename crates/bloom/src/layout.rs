//! Layouts of the filters: parameters, the probe of a key, and the bits of a probe.

use std::fmt::Debug;

use warpset_base::file::FileKind;

use crate::{Error, FileError, Key};

pub(crate) mod blocked;
pub(crate) mod rao;
pub(crate) mod split_block;

pub use blocked::BlockedLayout;
pub use rao::{FirstLevel, RaoLayout};
pub use split_block::SplitBlockLayout;

/// Keys that one step of a bulk operation hashes, prefetches and then tests. One word of answers.
pub const BATCH: usize = 64;

/// The parameters of a filter, all that is needed to read its words: sealed, one type per kind of filter.
///
/// A layout does not hold memory; two filters with equal layouts can be merged.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no layout of a Bloom filter",
    note = "use `SplitBlockBloom`, `BlockedBloom` or `RaoBloom`, or their layouts"
)]
pub trait Layout: Copy + PartialEq + Eq + Debug + Send + Sync + engine::Engine {
    /// Number and version in the header of saved filters.
    const STRUCTURE: FileKind;
    /// The type's name, for `Debug`.
    const NAME: &'static str;

    /// Returns the number of blocks (buckets, for Rao's filter).
    fn blocks(&self) -> u64;
    /// Returns the number of 32-bit words per block.
    fn words_per_block(&self) -> usize;
    /// Returns the number of bits per block that keys can set.
    fn bits_per_block(&self) -> u64;
    /// Returns the number of bits per key, `k`.
    fn hashes(&self) -> u32;
    /// Returns the rate of false positives that theory gives once `keys` different keys are in.
    fn expected_fpr(&self, keys: u64) -> f64;
    /// Returns the fraction of the bits that theory expects to be set once `keys` different keys are in.
    fn predicted_fill(&self, keys: u64) -> f64;

    /// Returns the number of 32-bit words in all blocks.
    fn words(&self) -> u64 {
        self.blocks() * self.words_per_block() as u64
    }
    /// Returns the number of bits that keys can set.
    fn settable_bits(&self) -> u64 {
        self.blocks() * self.bits_per_block()
    }
}

pub(crate) mod engine {
    use super::*;

    /// A little-endian word of 32 bits.
    pub trait Word: bytemuck::Pod + Send + Sync {
        /// Returns the value.
        fn get(self) -> u32;
    }
    impl Word for u32 {
        #[inline(always)]
        fn get(self) -> u32 {
            self
        }
    }
    /// At any address.
    impl Word for [u8; 4] {
        #[inline(always)]
        fn get(self) -> u32 {
            u32::from_le_bytes(self)
        }
    }

    /// The inner loops of a layout on the CPU.
    pub trait Engine: Sized {
        /// Everything that the loops need of a key.
        type Probe: Copy + Default + Send + Sync;

        /// A word of 32 bits as queries read it.
        type Word: Word;

        /// Whether a filter keeps the number of set bits of each block.
        const COUNTS_ONES: bool = false;

        /// Nanoseconds per key of a batch of lookups in a cache; see [`warpset_base::parallel::task_len`].
        const LOOKUP_NS: f64 = 6.0;

        /// Returns the key's probe. Equal keys have equal probes.
        fn probe<K: Key + ?Sized>(&self, key: &K) -> Self::Probe;
        /// Computes the probes of up to [`BATCH`] keys; `probes` has the length of `keys`.
        fn probe_batch<K: Key>(&self, keys: &[K], probes: &mut [Self::Probe]) {
            for (probe, key) in probes.iter_mut().zip(keys) {
                *probe = self.probe(key);
            }
        }
        /// Returns the hash in a probe, by which bulk `test_and_insert` tells keys apart.
        fn hash_of(probe: &Self::Probe) -> u64;
        /// Prefetches the cache lines of a probe.
        fn prefetch(&self, words: &[Self::Word], probe: &Self::Probe);
        /// Prefetches the words of up to [`BATCH`] probes.
        fn prefetch_batch(&self, words: &[Self::Word], probes: &[Self::Probe]) {
            for probe in probes {
                self.prefetch(words, probe);
            }
        }
        /// Whether all bits of the probe are set.
        fn contains(&self, words: &[Self::Word], probe: &Self::Probe) -> bool;
        /// Looks up at most [`BATCH`] probes; bit `i` answers for probe `i`.
        fn contains_batch(&self, words: &[Self::Word], probes: &[Self::Probe]) -> u64 {
            probes.iter().enumerate().fold(0, |bits, (i, p)| bits | (self.contains(words, p) as u64) << i)
        }
        /// Looks up at most [`BATCH`] probes while it prefetches the cache lines of `next`, also at most [`BATCH`]
        /// probes.
        fn contains_batch_before(&self, words: &[Self::Word], probes: &[Self::Probe], next: &[Self::Probe]) -> u64 {
            self.prefetch_batch(words, next);
            self.contains_batch(words, probes)
        }
        /// Returns the layout after folding by `factor`: a `factor`-th of the blocks, each the OR of `factor` old ones.
        fn folded(&self, factor: u64) -> Result<Self, Error>;
        /// Returns the `part`-th of the old blocks that make block `new` of the folded layout; `part < factor`.
        fn folded_from(&self, new: u64, part: u64, factor: u64) -> u64;
        /// Returns the probability that a random key's bits in this block (one bucket) are all set.
        fn block_rate(&self, block: &[Self::Word]) -> f64;
        /// Estimates the number of different keys from the number of set bits.
        fn cardinality(&self, ones: u64) -> f64;
        /// Returns the false-positive rate of a query from the mean [`Engine::block_rate`].
        fn query_rate(&self, mean_block_rate: f64) -> f64 {
            mean_block_rate
        }
        /// Checks that the AND of two filters keeps every key that is in both.
        fn check_intersection(&self) -> Result<(), Error> {
            Ok(())
        }
        /// Returns the first parameter in which two layouts differ.
        fn difference(&self, other: &Self) -> Option<(&'static str, u64, u64)>;
        /// Returns the parameters for the header.
        fn to_fields(&self) -> [u64; 8];
        /// Checks the parameters of a header.
        fn from_fields(fields: [u64; 8]) -> Result<Self, Error>;
    }

    /// Layouts in which a key has one block and insertion only sets its bits.
    pub trait OneBlock: super::Layout {
        /// Returns the block of a probe.
        fn block_of(&self, probe: &Self::Probe) -> u64;
        /// Sets the probe's bits; `words` are the blocks from `first_block` on. True if a bit changed.
        fn insert(&self, words: &mut [u32], first_block: u64, probe: &Self::Probe) -> bool;
        /// Inserts up to [`BATCH`] probes.
        fn insert_batch(&self, words: &mut [u32], first_block: u64, probes: &[Self::Probe]) {
            for probe in probes {
                self.insert(words, first_block, probe);
            }
        }
        /// Inserts up to [`BATCH`] probes in their order; bit `i` tells whether probe `i` changed a bit.
        fn insert_and_tell(&self, words: &mut [u32], first_block: u64, probes: &[Self::Probe]) -> u64;
    }
}

/// Checks that header fields which a layout does not use are zero.
pub(crate) fn zero_fields(fields: &[u64]) -> Result<(), Error> {
    match fields.iter().find(|&&f| f != 0) {
        Some(&value) => Err(FileError::InvalidHeader { field: "reserved field", value }.into()),
        None => Ok(()),
    }
}

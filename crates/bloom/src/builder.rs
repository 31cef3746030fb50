//! From settings to a layout: capacity with a rate, bits per key, or a memory limit.

use warpset_core::bloom::blocked;

use crate::{AskedSize, BlockedLayout, Error, Layout, PhysicalType, SplitBlockLayout, rates};

/// The default rate.
pub const DEFAULT_FPR: f64 = 0.01;

/// Means below this many keys per block are called out of reach.
const LEAST_MEAN: f64 = 1e-9;

/// Size settings of a user.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Size {
    keys: u64,
    fpr: Option<f64>,
    bits_per_key: Option<f64>,
    memory_limit: Option<u64>,
}

/// Size to build: a number of bits per key, or a rate.
enum Goal {
    Fpr(f64),
    Bytes(f64),
}

impl Size {
    /// Returns the size for that many keys; for none, as for one.
    fn new(keys: u64) -> Size {
        Size { keys: keys.max(1), fpr: None, bits_per_key: None, memory_limit: None }
    }

    fn goal(&self) -> Result<Goal, Error> {
        if let Some(fpr) = self.fpr {
            rates::check_fpr(fpr)?;
        }
        match (self.bits_per_key, self.fpr, self.memory_limit) {
            (Some(bits_per_key), ..) => {
                if bits_per_key > 0.0 && bits_per_key.is_finite() {
                    Ok(Goal::Bytes((self.keys as f64 * bits_per_key / 8.0).ceil()))
                } else {
                    Err(Error::InvalidBitsPerKey { bits_per_key })
                }
            }
            (None, None, Some(limit)) => Ok(Goal::Bytes(limit as f64)),
            (None, fpr, _) => Ok(Goal::Fpr(fpr.unwrap_or(DEFAULT_FPR))),
        }
    }

    /// Refuses a layout above the memory limit.
    fn check_limit<L: Layout>(&self, layout: L) -> Result<L, Error> {
        let needed = 4 * layout.words();
        match self.memory_limit {
            Some(limit) if needed > limit => {
                let size = match (self.bits_per_key, self.fpr) {
                    (Some(bits_per_key), _) => AskedSize::BitsPerKey(bits_per_key),
                    (None, Some(fpr)) => AskedSize::Fpr(fpr),
                    (None, None) => AskedSize::MemoryLimit,
                };
                Err(Error::OverMemoryLimit { keys: self.keys, size, needed, limit })
            }
            _ => Ok(layout),
        }
    }

    /// Returns the number of blocks for a goal; `mean` is the number of keys per block at which the rate of a goal is
    /// reached.
    fn blocks(&self, goal: &Goal, block_bytes: f64, mean: impl FnOnce(f64) -> f64) -> Result<u64, Error> {
        match goal {
            Goal::Fpr(fpr) => {
                let mean = mean(*fpr);
                if mean < LEAST_MEAN {
                    return Err(Error::UnreachableFpr { keys: self.keys, fpr: *fpr });
                }
                Ok((self.keys as f64 / mean).ceil() as u64)
            }
            // At least one block; the memory limit has the last word.
            Goal::Bytes(bytes) if self.bits_per_key.is_some() => Ok((bytes / block_bytes).ceil() as u64),
            Goal::Bytes(bytes) => Ok(((bytes / block_bytes) as u64).max(1)),
        }
    }
}

macro_rules! size_setters {
    () => {
        /// Sets the rate of false positives with all keys inserted. Default: 0.01, or the rate that the memory limit
        /// allows.
        pub fn fpr(mut self, fpr: f64) -> Self {
            self.size.fpr = Some(fpr);
            self
        }

        /// Sets the memory per key in bits, instead of a rate.
        pub fn bits_per_key(mut self, bits_per_key: f64) -> Self {
            self.size.bits_per_key = Some(bits_per_key);
            self
        }

        /// Limits the memory to `bytes`. Alone: the filter takes all of them. With a rate or bits per key: it is an
        /// error if they do not fit.
        pub fn memory_limit(mut self, bytes: u64) -> Self {
            self.size.memory_limit = Some(bytes);
            self
        }
    };
}

mod rao;
pub use rao::RaoBuilder;

/// A builder of any Bloom filter with known parameters; its layout `L` selects the filter.
///
/// ```
/// use warpset_bloom::{Builder, SplitBlockLayout};
///
/// let filter = Builder::with_layout(SplitBlockLayout::new(100)?).build_from(&[2u64, 3, 5, 7])?;
/// assert_eq!(filter.memory_bytes(), 3200);
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<L> {
    layout: L,
}

impl<L: Layout> Builder<L> {
    /// Returns a builder of a filter with these parameters.
    pub fn with_layout(layout: L) -> Builder<L> {
        Builder { layout }
    }

    /// Returns the parameters.
    ///
    /// # Errors
    /// The first setting that no filter has, or settings that no filter has together.
    pub fn layout(&self) -> &L {
        &self.layout
    }
}

/// Settings of a [`SplitBlockBloom`](crate::SplitBlockBloom); each setter states its default.
///
/// ```
/// use warpset_bloom::SplitBlockBloom;
///
/// let filter = SplitBlockBloom::builder(1_000_000).fpr(0.01).build()?;
/// assert!((10.0..11.0).contains(&filter.bits_per_key(1_000_000)));
/// let filter = SplitBlockBloom::builder(1_000_000).memory_limit(1 << 20).build()?;
/// assert_eq!(filter.memory_bytes(), 1 << 20);
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct SplitBlockBuilder {
    size: Size,
    power_of_two: bool,
    column: Option<PhysicalType>,
}

impl SplitBlockBuilder {
    /// Returns a builder of a filter for `keys` different keys.
    pub fn new(keys: u64) -> SplitBlockBuilder {
        SplitBlockBuilder { size: Size::new(keys), power_of_two: false, column: None }
    }

    size_setters!();

    /// Whether to round the number of blocks up to a power of two (down, for a memory limit alone), as some Parquet
    /// writers do; such filters can be folded to any smaller power of two. Default: no.
    pub fn power_of_two(mut self, power_of_two: bool) -> Self {
        self.power_of_two = power_of_two;
        self
    }

    /// Sets the Parquet column that the filter is for: integers of one of type INT32 hash as four bytes. Default:
    /// none, and integers hash as eight bytes, as in columns of type INT64.
    pub fn column(mut self, column: PhysicalType) -> Self {
        self.column = Some(column);
        self
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that no filter has, or settings that no filter has together.
    pub fn layout(&self) -> Result<SplitBlockLayout, Error> {
        let shape = blocked::BlockShape::of::<256, 32, 8>();
        let goal = self.size.goal()?;
        let mut blocks = self.size.blocks(&goal, 32.0, |fpr| rates::blocked_mean_at_fpr(shape, fpr))?;
        if self.power_of_two {
            let down = matches!(goal, Goal::Bytes(_)) && self.size.bits_per_key.is_none();
            blocks = if down { 1 << blocks.ilog2() } else { blocks.checked_next_power_of_two().unwrap_or(u64::MAX) };
        }
        let layout = SplitBlockLayout::new(blocks)?;
        self.size.check_limit(self.column.map_or(layout, |column| layout.for_column(column)))
    }
}

/// Settings of a [`BlockedBloom`](crate::BlockedBloom); each setter states its default.
///
/// ```
/// use warpset_bloom::BlockedBloom;
///
/// let filter = BlockedBloom::builder(1_000_000).bits_per_key(16.0).block_bits(512).word_bits(64).hashes(8).build()?;
/// assert!(filter.expected_fpr(1_000_000) < 0.0015);
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct BlockedBuilder {
    size: Size,
    block_bits: u32,
    word_bits: u32,
    hashes: Option<u32>,
    seed: u64,
}

impl BlockedBuilder {
    /// Returns a builder of a filter for `keys` different keys.
    pub fn new(keys: u64) -> BlockedBuilder {
        BlockedBuilder { size: Size::new(keys), block_bits: 256, word_bits: 32, hashes: None, seed: 0 }
    }

    size_setters!();

    /// Sets the number of bits in a block: 64, 128, 256, 512 or 1024. Default: 256, one sector of GPU memory.
    pub fn block_bits(mut self, block_bits: u32) -> Self {
        self.block_bits = block_bits;
        self
    }

    /// Sets the number of bits in a word: 32 or 64. Default: 32.
    pub fn word_bits(mut self, word_bits: u32) -> Self {
        self.word_bits = word_bits;
        self
    }

    /// Sets the number of bits per key, 1 to 32. Default: what takes least memory; a multiple of the words per block if
    /// that costs at most 3%.
    pub fn hashes(mut self, hashes: u32) -> Self {
        self.hashes = Some(hashes);
        self
    }

    /// Sets the seed of the keys' hash. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    fn shape(&self, hashes: u32) -> Result<blocked::BlockShape, Error> {
        let (block_bits, word_bits) = (self.block_bits, self.word_bits);
        blocked::BlockShape::new(block_bits, word_bits, hashes).ok_or(Error::InvalidShape {
            block_bits,
            word_bits,
            hashes,
        })
    }

    /// Returns the shape with the best number of bits per key. `score` is to be maximised; `slack` is the permitted
    /// loss for an even shape.
    fn best_shape(&self, slack: f64, score: impl Fn(blocked::BlockShape) -> f64) -> Result<blocked::BlockShape, Error> {
        let mut best: Option<(blocked::BlockShape, f64)> = None;
        let mut best_even = best;
        let mut worse = 0;
        for hashes in 1..=blocked::MAX_HASHES {
            let shape = self.shape(hashes)?;
            let score = score(shape);
            let better = |than: &Option<(_, f64)>| than.is_none_or(|(_, best)| score > best);
            if hashes % shape.words() == 0 && better(&best_even) {
                best_even = Some((shape, score));
            }
            if better(&best) {
                best = Some((shape, score));
                worse = 0;
            } else {
                worse += 1;
                // The score has one maximum, up to ripples at bits per key that pass a power of two.
                if worse > 4 && hashes >= shape.words() {
                    break;
                }
            }
        }
        match (best, best_even) {
            (Some((_, score)), Some((even, even_score))) if even_score >= slack * score => Ok(even),
            (Some((shape, _)), _) => Ok(shape),
            (None, _) => self.shape(1),
        }
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that no filter has, or settings that no filter has together.
    pub fn layout(&self) -> Result<BlockedLayout, Error> {
        let goal = self.size.goal()?;
        self.shape(1)?;
        let shape = match (self.hashes, &goal) {
            (Some(hashes), _) => self.shape(hashes)?,
            (None, Goal::Fpr(fpr)) => self.best_shape(0.97, |shape| rates::blocked_mean_at_fpr(shape, *fpr))?,
            (None, Goal::Bytes(bytes)) => {
                let mean = self.size.keys as f64 * self.block_bits as f64 / (8.0 * bytes.max(1.0));
                // 3% of memory are about 10% of the rate, on a logarithmic scale of some size.
                self.best_shape(1.0 / 1.1, |shape| 1.0 / rates::blocked_fpr_at(shape, mean).max(f64::MIN_POSITIVE))?
            }
        };
        let block_bytes = self.block_bits as f64 / 8.0;
        let blocks = self.size.blocks(&goal, block_bytes, |fpr| rates::blocked_mean_at_fpr(shape, fpr))?;
        self.size.check_limit(BlockedLayout::new(blocks, shape, self.seed)?)
    }
}

#[cfg(test)]
mod tests;

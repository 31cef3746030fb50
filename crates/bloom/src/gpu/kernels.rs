//! Choice of the kernels that a layout runs, and their arguments.

use warpset_core::bloom::blocked::BlockShape;
use warpset_core::bloom::split_block::BLOCK_BYTES;
use warpset_gpu::batch::{Answers, Hashing};
use warpset_gpu::{GpuError, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::bloom::batch_partition::Parts;
use warpset_kernels::bloom::{blocked, sectors_narrow, sectors_wide, split_block};
use warpset_simt::{Global, GlobalMut};

use super::batch_partition::{ClaimTable, PartitionedKeys, one_block_per_part};
use crate::layout::engine::OneBlock;
use crate::{BlockedLayout, Error, Layout, PhysicalType, SplitBlockLayout};

/// Threads of a thread block, in all kernels of Bloom filters.
pub(super) const BLOCK: u32 = 256;

/// Launches one thread per key. A chunk has less than 2^39 keys, so the grid fits.
pub(super) fn one_thread_each(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

/// Launches one thread per key; if few keys or none will claim, only the threads that run at a time.
fn claiming(Batch { stream, n, .. }: Batch<'_>, divided: PartitionedKeys) -> LaunchConfig {
    let each = one_thread_each(n);
    if divided.parts == Parts::UNDIVIDED {
        return each;
    }
    let resident = stream.device().properties().multiprocessors * 8;
    LaunchConfig::new((n.div_ceil(BLOCK as usize) as u32).min(resident), BLOCK)
}

/// Keys that kernels take, and the stream that these are queued on.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub stream: &'a Stream,
    pub keys: KeySlice,
    /// One string hash per key if [`DeviceLayout::hashing`] has a string hash, else `None`.
    pub string_hashes: Option<Global<u32>>,
    pub n: usize,
}

/// Data to find equal keys of a batch: a table, and the division of the batch.
#[derive(Clone, Copy)]
pub struct Claims {
    pub table: ClaimTable,
    pub divided: PartitionedKeys,
}

/// Parameters from which the rate of a block or bucket follows.
#[derive(Clone, Copy)]
pub enum RateOf {
    /// The ones of a block's sectors.
    Block(BlockShape),
    /// The ones of a bucket, which the filter keeps.
    Bucket(warpset_core::bloom::rao::BucketShape),
}

/// A layout with kernels. Sealed, as [`Layout`] is.
pub trait DeviceLayout: Layout {
    /// Returns the hashing of keys.
    #[doc(hidden)]
    fn hashing(&self) -> Hashing;

    /// Returns the parameters from which the rate of a block follows.
    #[doc(hidden)]
    fn rate_of(&self) -> RateOf;

    /// Returns an error if kernels cannot address a filter of this size.
    #[doc(hidden)]
    fn check_device_limits(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Queues the lookup of a batch.
    ///
    /// # Safety
    /// - `words` are this layout's, at least those of the blocks of all keys; the batch's keys and string hashes are
    ///   valid for `n` keys, and `answers` for `n` answers.
    /// - Until the stream has passed this work, all stay allocated; nothing writes `words` and keys, and nothing else
    ///   accesses the answers.
    #[doc(hidden)]
    unsafe fn launch_contains(&self, batch: Batch<'_>, words: Global<u32>, answers: Answers) -> Result<(), GpuError>;
}

/// A layout with kernels in which a key has one block.
pub trait DeviceOneBlock: DeviceLayout + OneBlock {
    /// Returns this layout with another number of blocks.
    #[doc(hidden)]
    fn with_blocks(&self, blocks: u64) -> Result<Self, Error>;

    /// Queues the insertion of a batch.
    ///
    /// # Safety
    /// - `words` are this layout's, at least those of the blocks of all keys, which are valid for `n` keys.
    /// - Until the stream has passed this work, both stay allocated; nothing writes the keys, and `words` are only
    ///   accessed atomically.
    #[doc(hidden)]
    unsafe fn launch_insert(&self, batch: Batch<'_>, words: GlobalMut<u32>) -> Result<(), GpuError>;

    /// Queues both halves of a test-and-insert of a batch of at most `TEST_AND_INSERT_BATCH` keys; of a divided batch,
    /// for the keys of parts that overflowed.
    ///
    /// # Safety
    /// - As for lookups and insertions; nothing else accesses `words`.
    /// - `answers` are bytes or bits.
    /// - The table has more than `2 n` words, all empty unless no part overflowed, which nothing else accesses.
    /// - `claims.divided` is [`PartitionedKeys::none`], or the kernels of this batch's division are queued.
    #[doc(hidden)]
    unsafe fn launch_test_and_insert(
        &self,
        batch: Batch<'_>,
        words: GlobalMut<u32>,
        answers: Answers,
        claims: Claims,
    ) -> Result<(), GpuError>;

    /// Queues the rest of a test-and-insert of a divided batch, for the parts that did not overflow.
    ///
    /// # Safety
    /// - The contract of insertions; the division of this batch writes `divided`, and `answers` hold its marks.
    #[doc(hidden)]
    unsafe fn launch_insert_parts(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        divided: PartitionedKeys,
        answers: Answers,
    ) -> Result<(), GpuError>;
}

/// Launches the two halves of a test-and-insert, which take the same arguments.
macro_rules! claim_and_resolve {
    (
        $module:ident::$claim:ident, $resolve:ident in $stream:ident, $config:ident, $words:ident, $table:ident;
        $($argument:ident),*
    ) => {{
        let (table, table_bits) = ($table.words, $table.bits);
        $module::$claim { words: $words.into(), table, table_bits, $($argument),* }.launch($stream, $config)?;
        $module::$resolve { words: $words, table, table_bits, $($argument),* }.launch($stream, $config)
    }};
}

impl DeviceLayout for SplitBlockLayout {
    fn hashing(&self) -> Hashing {
        if self.is_int32() { Hashing::int32() } else { Hashing::xxh64() }
    }

    fn rate_of(&self) -> RateOf {
        RateOf::Block(BlockShape::of::<256, 32, 8>())
    }

    unsafe fn launch_contains(&self, batch: Batch<'_>, words: Global<u32>, answers: Answers) -> Result<(), GpuError> {
        debug_assert!(batch.string_hashes.is_none());
        let (Batch { stream, keys, n, .. }, Answers { words: out, form }) = (batch, answers);
        let (KeySlice { keys, kind, .. }, blocks) = (keys, self.blocks());
        // SAFETY: this function's contract includes that of the kernel; words of a filter are aligned to blocks.
        unsafe {
            split_block::split_block_contains { words, blocks, keys, kind, n, form, out }
                .launch(stream, one_thread_each(n))
        }
    }
}

impl DeviceOneBlock for SplitBlockLayout {
    fn with_blocks(&self, blocks: u64) -> Result<Self, Error> {
        let column = if self.is_int32() { PhysicalType::Int32 } else { PhysicalType::Int64 };
        Ok(SplitBlockLayout::new(blocks)?.for_column(column))
    }

    unsafe fn launch_insert(&self, batch: Batch<'_>, words: GlobalMut<u32>) -> Result<(), GpuError> {
        let Batch { stream, keys: KeySlice { keys, kind, .. }, n, .. } = batch;
        let blocks = self.blocks();
        // SAFETY: this function's contract includes that of the kernel.
        unsafe { split_block::split_block_insert { words, blocks, keys, kind, n }.launch(stream, one_thread_each(n)) }
    }

    unsafe fn launch_test_and_insert(
        &self,
        batch: Batch<'_>,
        words: GlobalMut<u32>,
        answers: Answers,
        claims: Claims,
    ) -> Result<(), GpuError> {
        let Claims { table, divided: divided @ PartitionedKeys { parts, counts, .. } } = claims;
        let (config, blocks, Answers { words: out, form }) = (claiming(batch, divided), self.blocks(), answers);
        let Batch { stream, keys: KeySlice { keys, kind, .. }, n, .. } = batch;
        // SAFETY: this function's contract includes that of the kernels; they run one after the other.
        unsafe {
            claim_and_resolve!(split_block::split_block_dedup_claim, split_block_dedup_resolve in stream, config, words, table;
                blocks, keys, kind, n, form, out, parts, counts)
        }
    }

    unsafe fn launch_insert_parts(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        divided: PartitionedKeys,
        answers: Answers,
    ) -> Result<(), GpuError> {
        let (PartitionedKeys { parts, counts, keys }, Answers { words: out, form }) = (divided, answers);
        let blocks = self.blocks();
        let (config, stretch) = one_block_per_part(parts, blocks, BLOCK_BYTES as u32 / 4);
        // SAFETY: this function's contract includes that of the kernel.
        unsafe {
            split_block::split_block_insert_parts { words, blocks, keys, counts, parts, form, out, stretch }
                .launch(stream, config)
        }
    }
}

macro_rules! shapes {
    ($($insert:ident, $contains:ident: $block_bits:literal, $word_bits:literal, $hashes:literal;)*) => {
        /// Queues the insertion if the layout's shape has kernels of its own; says whether.
        ///
        /// # Safety
        /// As `launch_insert`.
        unsafe fn insert_shape(
            layout: &BlockedLayout, batch: Batch<'_>, words: GlobalMut<u32>,
        ) -> Result<bool, GpuError> {
            let Batch { stream, keys: KeySlice { keys, kind, spread, .. }, n, .. } = batch;
            let (config, blocks, shape) = (one_thread_each(n), layout.blocks(), layout.shape());
            // SAFETY: this function's contract includes that of the kernels.
            unsafe {
                match (shape.block_bits(), shape.word_bits(), shape.hashes()) {
                    $(($block_bits, $word_bits, $hashes) =>
                        blocked::$insert { words, blocks, keys, kind, spread, n }.launch(stream, config)?,)*
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }

        /// Queues the lookup if the layout's shape has kernels of its own; says whether.
        ///
        /// # Safety
        /// As `launch_contains`.
        unsafe fn contains_shape(
            layout: &BlockedLayout, batch: Batch<'_>, words: Global<u32>, Answers { words: out, form }: Answers,
        ) -> Result<bool, GpuError> {
            let Batch { stream, keys: KeySlice { keys, kind, spread, .. }, n, .. } = batch;
            let (config, blocks, shape) = (one_thread_each(n), layout.blocks(), layout.shape());
            // SAFETY: this function's contract includes that of the kernels.
            unsafe {
                match (shape.block_bits(), shape.word_bits(), shape.hashes()) {
                    $(($block_bits, $word_bits, $hashes) => blocked::$contains { words, blocks, keys, kind, spread, n, form, out }.launch(stream, config)?,)*
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }

        /// Shapes with kernels of their own, in which block, word and bits per key are constants. In the kernels of all
        /// other shapes the number of bits per key is not.
        pub const SPECIALISED_SHAPES: &[(u32, u32, u32)] = &[$(($block_bits, $word_bits, $hashes)),*];
    };
}
warpset_kernels::for_each_blocked_shape!(shapes);

macro_rules! sectored {
    (
        $insertion:ident, $lookup:ident, $insertion_of_parts:ident, $module:ident:
        $($insert:ident, $contains:ident, $insert_parts:ident: $block_bits:literal, $sectors:literal;)*
    ) => {
        /// # Safety
        /// As `launch_insert`.
        unsafe fn $insertion(
            layout: &BlockedLayout, batch: Batch<'_>, words: GlobalMut<u32>,
        ) -> Result<(), GpuError> {
            let Batch { stream, keys: KeySlice { keys, kind, spread, .. }, n, .. } = batch;
            let (config, blocks, shape) = (one_thread_each(n), layout.blocks(), layout.shape());
            let hashes = shape.hashes();
            // SAFETY: this function's contract includes that of the kernels.
            unsafe {
                match (shape.block_bits(), shape.sectors()) {
                    $(($block_bits, $sectors) =>
                        $module::$insert { words, blocks, hashes, keys, kind, spread, n }.launch(stream, config),)*
                    (block_bits, sectors) => unreachable!("no such shape has {sectors} sectors in {block_bits} bits"),
                }
            }
        }

        /// # Safety
        /// As `launch_contains`.
        unsafe fn $lookup(
            layout: &BlockedLayout, batch: Batch<'_>, words: Global<u32>, Answers { words: out, form }: Answers,
        ) -> Result<(), GpuError> {
            let Batch { stream, keys: KeySlice { keys, kind, spread, .. }, n, .. } = batch;
            let (config, blocks, shape) = (one_thread_each(n), layout.blocks(), layout.shape());
            let hashes = shape.hashes();
            // SAFETY: this function's contract includes that of the kernels.
            unsafe {
                match (shape.block_bits(), shape.sectors()) {
                    $(($block_bits, $sectors) => $module::$contains { words, blocks, hashes, keys, kind, spread, n, form, out }.launch(stream, config),)*
                    (block_bits, sectors) => unreachable!("no such shape has {sectors} sectors in {block_bits} bits"),
                }
            }
        }

        /// # Safety
        /// As `launch_insert_parts`.
        unsafe fn $insertion_of_parts(
            stream: &Stream, words: GlobalMut<u32>, layout: &BlockedLayout, divided: PartitionedKeys, answers: Answers,
        ) -> Result<(), GpuError> {
            let (PartitionedKeys { parts, counts, keys }, Answers { words: out, form }) = (divided, answers);
            let (blocks, shape) = (layout.blocks(), layout.shape());
            let (config, stretch) = one_block_per_part(parts, blocks, shape.block_bits() / 32);
            let hashes = shape.hashes();
            // SAFETY: this function's contract includes that of the kernels.
            unsafe {
                match (shape.block_bits(), shape.sectors()) {
                    $(($block_bits, $sectors) =>
                        $module::$insert_parts { words, blocks, hashes, keys, counts, parts, form, out, stretch }
                            .launch(stream, config),)*
                    (block_bits, sectors) => unreachable!("no such shape has {sectors} sectors in {block_bits} bits"),
                }
            }
        }
    };
}
warpset_kernels::for_each_narrow_layout!(sectored, insert_narrow, contains_narrow, insert_parts_narrow);
warpset_kernels::for_each_wide_layout!(sectored, insert_wide, contains_wide, insert_parts_wide);

/// The largest block of the narrow layouts.
const NARROW: u32 = 256;

impl DeviceLayout for BlockedLayout {
    fn hashing(&self) -> Hashing {
        Hashing::seeded(self.seed())
    }

    fn rate_of(&self) -> RateOf {
        RateOf::Block(self.shape())
    }

    unsafe fn launch_contains(&self, batch: Batch<'_>, words: Global<u32>, answers: Answers) -> Result<(), GpuError> {
        debug_assert!(batch.string_hashes.is_none());
        // SAFETY: this function's contract is that of the callee.
        unsafe {
            if contains_shape(self, batch, words, answers)? {
                return Ok(());
            }
            if self.shape().block_bits() <= NARROW {
                contains_narrow(self, batch, words, answers)
            } else {
                contains_wide(self, batch, words, answers)
            }
        }
    }
}

impl DeviceOneBlock for BlockedLayout {
    fn with_blocks(&self, blocks: u64) -> Result<Self, Error> {
        BlockedLayout::new(blocks, self.shape(), self.seed())
    }

    unsafe fn launch_insert(&self, batch: Batch<'_>, words: GlobalMut<u32>) -> Result<(), GpuError> {
        // SAFETY: this function's contract is that of the callee.
        unsafe {
            if insert_shape(self, batch, words)? {
                return Ok(());
            }
            if self.shape().block_bits() <= NARROW {
                insert_narrow(self, batch, words)
            } else {
                insert_wide(self, batch, words)
            }
        }
    }

    unsafe fn launch_test_and_insert(
        &self,
        batch: Batch<'_>,
        words: GlobalMut<u32>,
        answers: Answers,
        claims: Claims,
    ) -> Result<(), GpuError> {
        let Claims { table, divided: divided @ PartitionedKeys { parts, counts, .. } } = claims;
        let (config, blocks, shape) = (claiming(batch, divided), self.blocks(), self.shape());
        let Batch { stream, keys: KeySlice { keys, kind, spread, .. }, n, .. } = batch;
        let Answers { words: out, form } = answers;
        // SAFETY: this function's contract includes that of the kernels; they run one after the other.
        unsafe {
            claim_and_resolve!(blocked::blocked_dedup_claim, blocked_dedup_resolve in stream, config, words, table;
                blocks, shape, keys, kind, spread, n, form, out, parts, counts)
        }
    }

    unsafe fn launch_insert_parts(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        divided: PartitionedKeys,
        answers: Answers,
    ) -> Result<(), GpuError> {
        // SAFETY: this function's contract is that of the callee.
        unsafe {
            if self.shape().block_bits() <= NARROW {
                insert_parts_narrow(stream, words, self, divided, answers)
            } else {
                insert_parts_wide(stream, words, self, divided, answers)
            }
        }
    }
}

const _: () = assert!(BLOCK_BYTES == 32 && size_of::<BlockShape>() == 16);

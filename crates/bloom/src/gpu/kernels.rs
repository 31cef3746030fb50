//! Which kernels a layout runs, and with what.

use warpset_core::bloom::blocked::BlockShape;
use warpset_core::bloom::split_block::BLOCK_BYTES;
use warpset_gpu::batch::{Answers, Hashing};
use warpset_gpu::{GpuError, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::bloom::parts::Parts;
use warpset_kernels::bloom::{blocked, sectors_narrow, sectors_wide, split_block};
use warpset_simt::{Global, GlobalMut, KernelInfo};

use super::parts::{Divided, one_block_per_part};
use crate::{BlockedLayout, Error, Layout, SplitBlockLayout};

/// Threads of a thread block, in all kernels of Bloom filters.
pub(super) const BLOCK: u32 = 256;

/// One thread per key. Keys come in chunks of less than 2^39, so the grid fits.
pub(super) fn one_thread_each(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

/// One thread per key, or, where few keys or none will claim, as many as run at a time.
fn claiming(stream: &Stream, n: usize, divided: Divided) -> LaunchConfig {
    let each = one_thread_each(n);
    if divided.parts == Parts::UNDIVIDED {
        return each;
    }
    let resident = stream.device().properties().multiprocessors * 8;
    LaunchConfig::new((n.div_ceil(BLOCK as usize) as u32).min(resident), BLOCK)
}

/// A claim table on the device.
#[derive(Clone, Copy)]
pub struct ClaimTable {
    /// Its words.
    pub words: GlobalMut<u64>,
    /// The base-two logarithm of their number.
    pub bits: u32,
}

/// From what the rate of a block or bucket follows.
#[derive(Clone, Copy)]
pub enum RateOf {
    /// The ones of a block's sectors.
    Block(BlockShape),
    /// The ones of a bucket, which the filter keeps.
    Bucket(warpset_core::bloom::rao::BucketShape),
}

/// A layout that kernels know. Sealed, as [`Layout`] is.
pub trait DeviceLayout: Layout {
    /// How keys are hashed.
    #[doc(hidden)]
    fn hashing(&self) -> Hashing;

    /// From what the rate of a block follows.
    #[doc(hidden)]
    fn rate_of(&self) -> RateOf;

    /// An error if kernels cannot address a filter of this size.
    #[doc(hidden)]
    fn check_device_limits(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Queues the lookup of `n` keys.
    ///
    /// # Safety
    /// - `words` are this layout's, `keys` are valid for `n` keys, and `answers` has room for as many.
    /// - `string_hashes` are `n` if [`DeviceLayout::hashing`] has a string hash, else `None`.
    /// - Until the stream has passed this work, all stay allocated; nothing writes `words` and keys, and nothing else accesses
    ///   the answers.
    #[doc(hidden)]
    unsafe fn launch_contains(
        &self,
        stream: &Stream,
        words: Global<u32>,
        keys: KeySlice,
        string_hashes: Option<Global<u32>>,
        n: usize,
        answers: Answers,
    ) -> Result<(), GpuError>;
}

/// A layout that kernels know and in which a key has one block.
pub trait DeviceOneBlock: DeviceLayout {
    /// Queues the insertion of `n` keys.
    ///
    /// # Safety
    /// - `words` are this layout's, and `keys` are valid for `n` keys.
    /// - Until the stream has passed this work, both stay allocated; nothing writes the keys, and `words` are only accessed
    ///   atomically.
    #[doc(hidden)]
    unsafe fn launch_insert(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        keys: KeySlice,
        n: usize,
    ) -> Result<(), GpuError>;

    /// Queues both halves of a test-and-insert of `n` keys, at most `TEST_AND_INSERT_BATCH`; of a divided batch, for the keys
    /// of parts that overflowed.
    ///
    /// # Safety
    /// - As for lookups and insertions; nothing else accesses `words`.
    /// - `answers` are bytes or bits.
    /// - `table` has more than `2 n` words, all empty unless no part overflowed, which nothing else accesses.
    /// - `divided` is [`Divided::not`], or the kernels of this batch's division are queued.
    #[doc(hidden)]
    #[allow(clippy::too_many_arguments)] // a kernel's
    unsafe fn launch_test_and_insert(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        table: ClaimTable,
        divided: Divided,
    ) -> Result<(), GpuError>;

    /// What a test-and-insert by parts launches besides the lookup and the division.
    #[doc(hidden)]
    fn kernels_of_parts(&self) -> [&'static KernelInfo; 3];

    /// Queues the rest of a test-and-insert of a batch that has been divided, for the parts that did not overflow.
    ///
    /// # Safety
    /// - As for insertions; `divided` is what the division of this batch writes, and `answers` hold its marks.
    #[doc(hidden)]
    unsafe fn launch_insert_parts(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        divided: Divided,
        answers: Answers,
    ) -> Result<(), GpuError>;
}

impl DeviceLayout for SplitBlockLayout {
    fn hashing(&self) -> Hashing {
        if self.is_int32() { Hashing::int32() } else { Hashing::xxh64() }
    }

    fn rate_of(&self) -> RateOf {
        RateOf::Block(BlockShape::of::<256, 32, 8>())
    }

    unsafe fn launch_contains(
        &self,
        stream: &Stream,
        words: Global<u32>,
        keys: KeySlice,
        string_hashes: Option<Global<u32>>,
        n: usize,
        answers: Answers,
    ) -> Result<(), GpuError> {
        debug_assert!(string_hashes.is_none());
        let (config, blocks) = (one_thread_each(n), self.blocks());
        // SAFETY: the caller's promise is the kernel's contract; words of a filter are aligned to blocks.
        unsafe {
            split_block::split_block_contains {
                words,
                blocks,
                keys: keys.keys,
                kind: keys.kind,
                n,
                form: answers.form,
                out: answers.words,
            }
            .launch(stream, config)
        }
    }
}

impl DeviceOneBlock for SplitBlockLayout {
    unsafe fn launch_insert(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        keys: KeySlice,
        n: usize,
    ) -> Result<(), GpuError> {
        let (config, blocks) = (one_thread_each(n), self.blocks());
        // SAFETY: the caller's promise is the kernel's contract.
        unsafe {
            split_block::split_block_insert { words, blocks, keys: keys.keys, kind: keys.kind, n }
                .launch(stream, config)
        }
    }

    unsafe fn launch_test_and_insert(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        table: ClaimTable,
        divided: Divided,
    ) -> Result<(), GpuError> {
        let (config, blocks, Answers { words: out, form }) = (claiming(stream, n, divided), self.blocks(), answers);
        let (KeySlice { keys, kind, .. }, Divided { parts, counts, .. }) = (keys, divided);
        // SAFETY: the caller's promise is the kernels' contract; they run one after the other.
        stream.device().with_kernels(
            &[split_block::split_block_claim::INFO, split_block::split_block_settle::INFO],
            || unsafe {
                split_block::split_block_claim {
                    words: words.into(),
                    blocks,
                    keys,
                    kind,
                    n,
                    form,
                    out,
                    table: table.words,
                    table_bits: table.bits,
                    parts,
                    counts,
                }
                .launch(stream, config)?;
                split_block::split_block_settle {
                    words,
                    blocks,
                    keys,
                    kind,
                    n,
                    form,
                    out,
                    table: table.words,
                    table_bits: table.bits,
                    parts,
                    counts,
                }
                .launch(stream, config)
            },
        )
    }

    fn kernels_of_parts(&self) -> [&'static KernelInfo; 3] {
        [
            split_block::split_block_insert_parts::INFO,
            split_block::split_block_settle::INFO,
            split_block::split_block_claim::INFO,
        ]
    }

    unsafe fn launch_insert_parts(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        divided: Divided,
        answers: Answers,
    ) -> Result<(), GpuError> {
        let (Divided { parts, counts, keys }, Answers { words: out, form }) = (divided, answers);
        let blocks = self.blocks();
        let (config, stretch) = one_block_per_part(parts, blocks, BLOCK_BYTES as u32 / 4);
        // SAFETY: the caller's promise is the kernel's contract.
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
            stream: &Stream, words: GlobalMut<u32>, layout: &BlockedLayout, keys: KeySlice, n: usize,
        ) -> Result<bool, GpuError> {
            let (config, blocks, shape) = (one_thread_each(n), layout.blocks(), layout.shape());
            let KeySlice { keys, kind, spread } = keys;
            // SAFETY: the caller's promise is the kernels' contract.
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
            stream: &Stream, words: Global<u32>, layout: &BlockedLayout, keys: KeySlice, n: usize, answers: Answers,
        ) -> Result<bool, GpuError> {
            let (config, blocks, shape) = (one_thread_each(n), layout.blocks(), layout.shape());
            let (KeySlice { keys, kind, spread }, Answers { words: out, form }) = (keys, answers);
            // SAFETY: the caller's promise is the kernels' contract.
            unsafe {
                match (shape.block_bits(), shape.word_bits(), shape.hashes()) {
                    $(($block_bits, $word_bits, $hashes) => blocked::$contains { words, blocks, keys, kind, spread, n, form, out }.launch(stream, config)?,)*
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }

        /// The shapes that have kernels of their own, in which everything is a constant: block, word, bits per key. All
        /// others have kernels in which the number of bits per key is not.
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
            stream: &Stream, words: GlobalMut<u32>, layout: &BlockedLayout, keys: KeySlice, n: usize,
        ) -> Result<(), GpuError> {
            let (config, blocks, shape) = (one_thread_each(n), layout.blocks(), layout.shape());
            let (KeySlice { keys, kind, spread }, hashes) = (keys, shape.hashes());
            // SAFETY: the caller's promise is the kernels' contract.
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
            stream: &Stream, words: Global<u32>, layout: &BlockedLayout, keys: KeySlice, n: usize, answers: Answers,
        ) -> Result<(), GpuError> {
            let (config, blocks, shape) = (one_thread_each(n), layout.blocks(), layout.shape());
            let (KeySlice { keys, kind, spread }, Answers { words: out, form }) = (keys, answers);
            let hashes = shape.hashes();
            // SAFETY: the caller's promise is the kernels' contract.
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
            stream: &Stream, words: GlobalMut<u32>, layout: &BlockedLayout, divided: Divided, answers: Answers,
        ) -> Result<(), GpuError> {
            let (Divided { parts, counts, keys }, Answers { words: out, form }) = (divided, answers);
            let (blocks, shape) = (layout.blocks(), layout.shape());
            let (config, stretch) = one_block_per_part(parts, blocks, shape.block_bits() / 32);
            let hashes = shape.hashes();
            // SAFETY: the caller's promise is the kernels' contract.
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

macro_rules! kernel_of_parts {
    (
        $name:ident, $_lookup:ident, $_insertion_of_parts:ident, $module:ident:
        $($insert:ident, $contains:ident, $insert_parts:ident: $block_bits:literal, $sectors:literal;)*
    ) => {
        /// The kernel that inserts parts.
        fn $name(layout: &BlockedLayout) -> &'static KernelInfo {
            let shape = layout.shape();
            match (shape.block_bits(), shape.sectors()) {
                $(($block_bits, $sectors) => $module::$insert_parts::INFO,)*
                (block_bits, sectors) => unreachable!("no such shape has {sectors} sectors in {block_bits} bits"),
            }
        }
    };
}
warpset_kernels::for_each_narrow_layout!(kernel_of_parts, narrow_kernel_of_parts, unused, unused);
warpset_kernels::for_each_wide_layout!(kernel_of_parts, wide_kernel_of_parts, unused, unused);

/// The largest block of the narrow layouts.
const NARROW: u32 = 256;

impl DeviceLayout for BlockedLayout {
    fn hashing(&self) -> Hashing {
        Hashing::seeded(self.seed())
    }

    fn rate_of(&self) -> RateOf {
        RateOf::Block(self.shape())
    }

    unsafe fn launch_contains(
        &self,
        stream: &Stream,
        words: Global<u32>,
        keys: KeySlice,
        string_hashes: Option<Global<u32>>,
        n: usize,
        answers: Answers,
    ) -> Result<(), GpuError> {
        debug_assert!(string_hashes.is_none());
        // SAFETY: the caller's promise is the same.
        unsafe {
            if contains_shape(stream, words, self, keys, n, answers)? {
                return Ok(());
            }
            if self.shape().block_bits() <= NARROW {
                contains_narrow(stream, words, self, keys, n, answers)
            } else {
                contains_wide(stream, words, self, keys, n, answers)
            }
        }
    }
}

impl DeviceOneBlock for BlockedLayout {
    unsafe fn launch_insert(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        keys: KeySlice,
        n: usize,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller's promise is the same.
        unsafe {
            if insert_shape(stream, words, self, keys, n)? {
                return Ok(());
            }
            if self.shape().block_bits() <= NARROW {
                insert_narrow(stream, words, self, keys, n)
            } else {
                insert_wide(stream, words, self, keys, n)
            }
        }
    }

    unsafe fn launch_test_and_insert(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        table: ClaimTable,
        divided: Divided,
    ) -> Result<(), GpuError> {
        let (config, blocks, shape) = (claiming(stream, n, divided), self.blocks(), self.shape());
        let (KeySlice { keys, kind, spread }, Answers { words: out, form }) = (keys, answers);
        let Divided { parts, counts, .. } = divided;
        // SAFETY: the caller's promise is the kernels' contract; they run one after the other.
        stream.device().with_kernels(&[blocked::blocked_claim::INFO, blocked::blocked_settle::INFO], || unsafe {
            blocked::blocked_claim {
                words: words.into(),
                blocks,
                shape,
                keys,
                kind,
                spread,
                n,
                form,
                out,
                table: table.words,
                table_bits: table.bits,
                parts,
                counts,
            }
            .launch(stream, config)?;
            blocked::blocked_settle {
                words,
                blocks,
                shape,
                keys,
                kind,
                spread,
                n,
                form,
                out,
                table: table.words,
                table_bits: table.bits,
                parts,
                counts,
            }
            .launch(stream, config)
        })
    }

    fn kernels_of_parts(&self) -> [&'static KernelInfo; 3] {
        let narrow = self.shape().block_bits() <= NARROW;
        let insertion = if narrow { narrow_kernel_of_parts(self) } else { wide_kernel_of_parts(self) };
        [insertion, blocked::blocked_settle::INFO, blocked::blocked_claim::INFO]
    }

    unsafe fn launch_insert_parts(
        &self,
        stream: &Stream,
        words: GlobalMut<u32>,
        divided: Divided,
        answers: Answers,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller's promise is the same.
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

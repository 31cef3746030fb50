//! Our filters with their settings.

use anyhow::Context;
use warpset::bloom::{
    BlockedBloom, BlockedLayout, Builder, FirstLevel, RaoBloom, RaoLayout, SplitBlockBloom, SplitBlockLayout,
};
use warpset_core::bloom::{blocked, rao};

use super::subject::Subject;
use bench_frame::clock::Effort;
use bench_frame::suite::Target;

/// One of our filters with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variant {
    /// Parquet's.
    SplitBlock,
    /// Blocked, with bits per block, bits per word, bits per key.
    Blocked(u32, u32, u32),
    /// Rao's, with one choice or two.
    Rao(u32),
}

/// Bits per key of Rao's filter where its memory is given: as many as the others have, so that 16 bits per key leave
/// its buckets room.
const RAO_HASHES: u32 = 8;

impl Variant {
    /// Returns the variants for real input.
    pub fn for_screens() -> [Variant; 4] {
        [Variant::SplitBlock, Variant::Blocked(512, 64, 7), Variant::Rao(1), Variant::Rao(2)]
    }

    /// Returns the variants for generated keys.
    pub fn for_generated(effort: Effort) -> Vec<Variant> {
        let mut variants = vec![Variant::SplitBlock, Variant::Blocked(64, 64, 5), Variant::Blocked(512, 64, 8)];
        if effort > Effort::Quick {
            variants.extend([Variant::Blocked(256, 64, 8), Variant::Blocked(1024, 64, 8)]);
        }
        variants.extend([Variant::Rao(1), Variant::Rao(2)]);
        variants
    }

    /// Returns the variants for devices: in full runs also shapes with other kernels.
    pub fn for_devices(effort: Effort) -> Vec<Variant> {
        let mut variants = Self::for_generated(effort);
        if effort == Effort::Full {
            let more = [(64, 64, 4), (128, 64, 6), (256, 32, 7), (256, 32, 8), (512, 32, 16), (1024, 64, 16)];
            variants.extend(more.map(|(block, word, hashes)| Variant::Blocked(block, word, hashes)));
        }
        variants
    }

    /// Returns the name; the bits per key of blocked filters are a parameter of the row if the builder chooses them.
    pub fn name(self) -> String {
        match self {
            Variant::SplitBlock => "split block".into(),
            Variant::Blocked(block, word, _) => format!("blocked {block}/{word}"),
            Variant::Rao(1) => "Rao".into(),
            Variant::Rao(_) => "Rao, two choices".into(),
        }
    }

    /// Makes an empty filter for `n` keys and a false-positive rate, sized by its builder.
    pub fn for_capacity(self, target: &Target, n: usize, fpr: f64) -> anyhow::Result<Box<dyn Subject>> {
        macro_rules! on_target {
            ($builder:expr) => {
                match target {
                    Target::Cpu => Box::new($builder.build()?),
                    Target::Gpu(device) => Box::new($builder.on(device).build()?),
                }
            };
        }
        let n = n as u64;
        Ok(match self {
            Variant::SplitBlock => on_target!(SplitBlockBloom::builder(n).fpr(fpr)),
            Variant::Blocked(block, word, _) => {
                on_target!(BlockedBloom::builder(n).fpr(fpr).block_bits(block).word_bits(word))
            }
            Variant::Rao(choices) => on_target!(RaoBloom::builder(n).fpr(fpr).choices(choices)),
        })
    }

    /// Makes an empty filter of `bytes` on the CPU.
    pub fn of_size(self, bytes: usize) -> anyhow::Result<Box<dyn Subject>> {
        self.of_size_and_hashes(bytes, RAO_HASHES)
    }

    /// Makes an empty filter of `bytes` on the CPU, Rao's with `rao_hashes` bits per key.
    pub fn of_size_and_hashes(self, bytes: usize, rao_hashes: u32) -> anyhow::Result<Box<dyn Subject>> {
        Ok(match self {
            Variant::SplitBlock => Box::new(Builder::with_layout(split_block(bytes)?).build()?),
            Variant::Blocked(block, word, hashes) => {
                Box::new(Builder::with_layout(blocked(bytes, block, word, hashes)?).build()?)
            }
            Variant::Rao(choices) => Box::new(Builder::with_layout(rao(bytes, choices, rao_hashes)?).build()?),
        })
    }
}

/// Returns the layout of `bytes`.
pub fn split_block(bytes: usize) -> anyhow::Result<SplitBlockLayout> {
    Ok(SplitBlockLayout::new(bytes as u64 / 32)?)
}

/// Returns the layout of `bytes` in such blocks.
pub fn blocked(bytes: usize, block: u32, word: u32, hashes: u32) -> anyhow::Result<BlockedLayout> {
    let shape = blocked::BlockShape::new(block, word, hashes).context("such a block is not allowed")?;
    Ok(BlockedLayout::new(bytes as u64 * 8 / u64::from(block), shape, 0)?)
}

/// Returns a layout of at least four buckets, of the default size if `bytes` suffice.
pub fn rao(bytes: usize, choices: u32, hashes: u32) -> anyhow::Result<RaoLayout> {
    let bucket_words = (bytes / 16).min(rao::DEFAULT_BUCKET_WORDS as usize) as u32;
    let shape = rao::BucketShape::new(bucket_words, hashes).context("such a bucket is not allowed")?;
    Ok(RaoLayout::new(bytes as u64 / (4 * u64::from(bucket_words)), shape, choices, FirstLevel::Mixed, 0)?)
}

/// Returns [`rao()`] with the bits per key that fit into 16 bits of memory per key.
pub fn rao_of_size(bytes: usize, choices: u32) -> anyhow::Result<RaoLayout> {
    rao(bytes, choices, RAO_HASHES)
}

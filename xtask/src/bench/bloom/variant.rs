//! Our filters as subjects.

use anyhow::Context;
use warpset::bloom::cpu::Bloom;
use warpset::bloom::gpu::{self, DeviceLayout};
use warpset::bloom::{
    BlockedBloom, BlockedLayout, Builder, FirstLevel, Layout, RaoBloom, RaoLayout, SplitBlockBloom, SplitBlockLayout,
};
use warpset_core::bloom::{blocked, rao};

use super::super::clock::Effort;
use super::super::suite::Target;
use super::subject::{Keys, Subject, same_type};

/// One of our filters with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variant {
    /// Parquet's.
    SplitBlock,
    /// Blocked, with bits in a block, bits in a word, bits a key.
    Blocked(u32, u32, u32),
    /// Rao's, with one choice or two.
    Rao(u32),
}

/// Bits a key of Rao's filter where its memory is given: as many as the others have, so that 16 bits a key leave its
/// buckets room.
const RAO_HASHES: u32 = 8;

impl Variant {
    /// The ones that real input goes through.
    pub fn for_screens() -> Vec<Variant> {
        vec![Variant::SplitBlock, Variant::Blocked(512, 64, 7), Variant::Rao(1), Variant::Rao(2)]
    }

    /// The ones that generated keys go through.
    pub fn for_generated(effort: Effort) -> Vec<Variant> {
        let mut variants = vec![Variant::SplitBlock, Variant::Blocked(64, 64, 5), Variant::Blocked(512, 64, 8)];
        if effort > Effort::Quick {
            variants.extend([Variant::Blocked(256, 64, 8), Variant::Blocked(1024, 64, 8)]);
        }
        variants.extend([Variant::Rao(1), Variant::Rao(2)]);
        variants
    }

    /// The ones that run on devices.
    pub fn for_devices(effort: Effort) -> Vec<Variant> {
        Self::for_generated(effort)
    }

    /// In words; the bits a key of blocked filters are left to the row where the builder chooses them.
    pub fn name(self) -> String {
        match self {
            Variant::SplitBlock => "split block".into(),
            Variant::Blocked(block, word, _) => format!("blocked {block}/{word}"),
            Variant::Rao(1) => "Rao".into(),
            Variant::Rao(_) => "Rao, two choices".into(),
        }
    }

    /// An empty filter for `n` keys and a rate of false positives, sized by its builder.
    pub fn for_capacity(self, target: &Target, n: usize, fpr: f64) -> anyhow::Result<Box<dyn Subject>> {
        let n = n as u64;
        match self {
            Variant::SplitBlock => on(target, SplitBlockBloom::builder(n).fpr(fpr).build()?),
            Variant::Blocked(block, word, _) => {
                on(target, BlockedBloom::builder(n).fpr(fpr).block_bits(block).word_bits(word).build()?)
            }
            Variant::Rao(choices) => on(target, RaoBloom::builder(n).fpr(fpr).choices(choices).build()?),
        }
    }

    /// An empty filter of `bytes`.
    pub fn of_size(self, bytes: usize) -> anyhow::Result<Box<dyn Subject>> {
        self.of_size_and_hashes(bytes, RAO_HASHES)
    }

    /// An empty filter of `bytes`, Rao's with `rao_hashes` bits a key.
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

/// The filter, moved to the target.
fn on<L: DeviceLayout>(target: &Target, filter: Bloom<L>) -> anyhow::Result<Box<dyn Subject>>
where
    Bloom<L>: Subject,
    gpu::Bloom<L>: Subject,
{
    Ok(match target {
        Target::Cpu => Box::new(filter),
        Target::Gpu(device) => Box::new(gpu::Bloom::from_host(device, &filter)?),
    })
}

/// The layout of `bytes`.
pub fn split_block(bytes: usize) -> anyhow::Result<SplitBlockLayout> {
    Ok(SplitBlockLayout::new(bytes as u64 / 32)?)
}

/// The layout of `bytes` in such blocks.
pub fn blocked(bytes: usize, block: u32, word: u32, hashes: u32) -> anyhow::Result<BlockedLayout> {
    let shape = blocked::BlockShape::new(block, word, hashes).context("such a block is not allowed")?;
    Ok(BlockedLayout::new(bytes as u64 * 8 / u64::from(block), shape, 0)?)
}

/// At least four buckets, of the default size where there is room.
pub fn rao(bytes: usize, choices: u32, hashes: u32) -> anyhow::Result<RaoLayout> {
    let bucket_words = (bytes / 16).min(rao::DEFAULT_BUCKET_WORDS as usize) as u32;
    let shape = rao::BucketShape::new(bucket_words, hashes).context("such a bucket is not allowed")?;
    Ok(RaoLayout::new(bytes as u64 / (4 * u64::from(bucket_words)), shape, choices, FirstLevel::Mixed, 0)?)
}

/// [`rao()`] with the bits a key that leave 16 bits a key room.
pub fn rao_of_size(bytes: usize, choices: u32) -> anyhow::Result<RaoLayout> {
    rao(bytes, choices, RAO_HASHES)
}

macro_rules! subject {
    ($filter:ty, |$this:ident, $keys:ident| insert $insert:expr, fill $fill:expr) => {
        impl Subject for $filter {
            fn clear(&mut self) -> anyhow::Result<()> {
                Bloom::clear(self);
                Ok(())
            }

            fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
                let $this = self;
                match keys {
                    Keys::U64($keys) => $insert,
                    Keys::Bytes($keys) => $insert,
                }
                Ok(())
            }

            fn fill(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
                let $this = self;
                match keys {
                    Keys::U64($keys) => $fill,
                    Keys::Bytes($keys) => $fill,
                }
                Ok(())
            }

            fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()> {
                match keys {
                    Keys::U64(keys) => self.contains_bulk_into(keys, answers)?,
                    Keys::Bytes(keys) => self.contains_bulk_into(keys, answers)?,
                }
                Ok(())
            }

            fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
                match keys {
                    Keys::U64(keys) => self.test_and_insert_bulk_into(keys, new)?,
                    Keys::Bytes(keys) => self.test_and_insert_bulk_into(keys, new)?,
                }
                Ok(())
            }

            fn union(&mut self, other: &dyn Subject) -> anyhow::Result<()> {
                Ok(Bloom::merge(self, same_type(other)?)?)
            }

            fn theory(&self, n: usize) -> Option<f64> {
                Some(self.expected_fpr(n as u64))
            }

            fn bytes(&self) -> usize {
                self.memory_bytes() as usize
            }

            fn hashes(&self) -> Option<u32> {
                Some(self.layout().hashes())
            }
        }
    };
}
subject!(SplitBlockBloom, |filter, keys| insert filter.insert_bulk(keys), fill filter.insert_bulk(keys));
subject!(BlockedBloom, |filter, keys| insert filter.insert_bulk(keys), fill filter.insert_bulk(keys));
// `extend` goes on where `insert_bulk` reports an overflow.
subject!(RaoBloom, |filter, keys| insert filter.insert_bulk(keys)?, fill filter.extend(keys));

macro_rules! subject_on_device {
    ($($filter:ty),*) => {$(
        impl Subject for $filter {
            fn clear(&mut self) -> anyhow::Result<()> {
                Ok(gpu::Bloom::clear(self)?)
            }

            fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
                Ok(match keys {
                    Keys::U64(keys) => self.insert_bulk(keys)?,
                    Keys::Bytes(keys) => self.insert_bulk(keys)?,
                })
            }

            fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()> {
                Ok(match keys {
                    Keys::U64(keys) => self.contains_bulk_into(keys, answers)?,
                    Keys::Bytes(keys) => self.contains_bulk_into(keys, answers)?,
                })
            }

            fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
                Ok(match keys {
                    Keys::U64(keys) => self.test_and_insert_bulk_into(keys, new)?,
                    Keys::Bytes(keys) => self.test_and_insert_bulk_into(keys, new)?,
                })
            }

            fn union(&mut self, other: &dyn Subject) -> anyhow::Result<()> {
                Ok(gpu::Bloom::merge(self, same_type(other)?)?)
            }

            fn theory(&self, n: usize) -> Option<f64> {
                Some(self.expected_fpr(n as u64))
            }

            fn bytes(&self) -> usize {
                self.memory_bytes() as usize
            }

            fn hashes(&self) -> Option<u32> {
                Some(self.layout().hashes())
            }
        }
    )*};
}
subject_on_device!(gpu::SplitBlockBloom, gpu::BlockedBloom, gpu::RaoBloom);

//! Filters with blocks on several devices.
//!
//! Each device has a range of the blocks, and so a range of the hashes, because a key's block follows from the highest
//! bits of its hash. Kernels address the blocks of the whole filter, so all parts together are its words, bit for bit,
//! for any number of devices. Batches are exchanged by [`Sharded`].

use std::fmt;
use std::ops::Range;

use warpset_base::words::AlignedWords;
use warpset_gpu::Devices;
use warpset_gpu::batch::{DeviceKeys, Hashing};
use warpset_primitives::DeviceInsert;
use warpset_primitives::sharded::{self, Route, Sharded};

use super::{Bloom, DeviceOneBlock};
use crate::{
    BlockedBuilder, BlockedLayout, Builder, Error, Hashed, Insert, Key, SplitBlockBuilder, SplitBlockLayout, cpu,
};

/// A [`SplitBlockBloom`](super::SplitBlockBloom) or [`BlockedBloom`](super::BlockedBloom) with its blocks divided among
/// several devices, for filters larger than one device's memory and for the bandwidth of all devices. Bits, answers and
/// rate equal those of the filter on the host for any number of devices.
///
/// Each device gets an equal share of the blocks, or a smaller one if its memory is short. Keys come from the host or
/// from any of the devices. [`insert_each_device`](Self::insert_each_device) and
/// [`contains_each_device`](Self::contains_each_device) take a batch on every device.
///
/// ```
/// use warpset_bloom::gpu::DeviceFilter;
/// use warpset_bloom::{Filter, Insert, SplitBlockBloom};
/// use warpset_gpu::{Device, Devices};
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let builder = SplitBlockBloom::builder(1_000).fpr(0.001);
/// let mut filter = builder.sharded_on(&devices).build_from(&[2u64, 3])?;
/// filter.insert_bulk(&[5u64])?;
/// assert_eq!(filter.contains_bulk(&[5u64, 6])?, [true, false]);
///
/// let there = &devices.all()[1];
/// let (keys, mut answers) = (there.from_slice(&[2u64, 4])?, there.alloc_zeroed(2)?);
/// filter.contains_device(keys.as_slice(), answers.as_mut_slice())?;
/// assert_eq!(answers.to_vec()?, [1, 0]);
/// assert!(filter.to_host()? == builder.build_from(&[2u64, 3, 5])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedBloom<L = SplitBlockLayout> {
    layout: L,
    /// Blocks of each part.
    blocks: Vec<Range<u64>>,
    shards: Sharded<Bloom<L>>,
}

/// A builder of filters divided among devices, from a builder's `sharded_on`.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ShardedBuilder<L = SplitBlockLayout> {
    layout: Result<L, Error>,
    devices: Devices,
}

impl<L: DeviceOneBlock> ShardedBuilder<L> {
    /// Checks every setting, then allocates: an empty filter.
    ///
    /// # Errors
    /// The errors of the settings; [`Error::Gpu`] if a device has too little memory for its share.
    pub fn build(self) -> Result<ShardedBloom<L>, Error> {
        ShardedBloom::with_layout(&self.devices, self.layout?)
    }

    /// Checks every setting, then makes a filter of these keys.
    ///
    /// # Errors
    /// The errors of [`ShardedBuilder::build`], and those of an insertion.
    pub fn build_from<K: Key>(self, keys: &[K]) -> Result<ShardedBloom<L>, Error> {
        let mut filter = self.build()?;
        filter.insert_bulk(keys)?;
        Ok(filter)
    }

    /// Checks every setting, then makes a filter of keys on one of the devices.
    ///
    /// # Errors
    /// The errors of [`ShardedBuilder::build`], and those of an insertion.
    pub fn build_from_device<K: DeviceKeys>(self, keys: K) -> Result<ShardedBloom<L>, Error> {
        let mut filter = self.build()?;
        DeviceInsert::insert_device(&mut filter, keys)?;
        Ok(filter)
    }
}

macro_rules! sharded_on {
    ($([$($generics:tt)*] $builder:ty => $layout:ty, |$settings:ident| $made:expr;)*) => {$(
        impl<$($generics)*> $builder {
            /// Returns a builder with these settings of a filter that is divided among `devices`.
            pub fn sharded_on(&self, devices: &Devices) -> ShardedBuilder<$layout> {
                let $settings = self;
                ShardedBuilder { layout: $made, devices: devices.clone() }
            }
        }
    )*};
}
sharded_on! {
    [] SplitBlockBuilder => SplitBlockLayout, |builder| builder.layout();
    [] BlockedBuilder => BlockedLayout, |builder| builder.layout();
    [L: DeviceOneBlock] Builder<L> => L, |builder| Ok(*builder.layout());
}

/// Returns the least hash of the keys of a block; `block > 0`.
fn first_hash<L: DeviceOneBlock>(layout: &L, block: u64) -> u64 {
    let is_before = |hash: u64| layout.block_of(&layout.probe(&Hashed(hash))) < block;
    let last_before =
        (0..64).rev().fold(0, |hash, bit| if is_before(hash | 1 << bit) { hash | 1 << bit } else { hash });
    last_before + 1
}

impl<L: DeviceOneBlock> ShardedBloom<L> {
    /// Returns an empty filter with these parameters, on at most one device per block.
    fn with_layout(devices: &Devices, layout: L) -> Result<ShardedBloom<L>, Error> {
        let devices = sharded::owners(devices, layout.blocks());
        let blocks = sharded::divide(&devices, layout.blocks(), 4 * layout.words_per_block() as u64)?;
        let bounds: Vec<u64> = blocks[1..].iter().map(|blocks| first_hash(&layout, blocks.start)).collect();
        let shards = Sharded::new(&devices, layout.hashing(), Route::HASH, &bounds, |place, device| {
            let Range { start, end } = blocks[place];
            let before = start as usize * layout.words_per_block();
            Bloom::part(device, layout.with_blocks(end - start)?, layout, before)
        })?;
        Ok(ShardedBloom { layout, blocks, shards })
    }

    /// Returns the places of a part's words among those of the whole filter.
    fn words_of(&self, place: usize) -> Range<usize> {
        let Range { start, end } = self.blocks[place];
        let words = self.layout.words_per_block();
        start as usize * words..end as usize * words
    }

    /// Returns a copy of a filter in host memory, which may have been loaded from a file.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn from_host(devices: &Devices, filter: &cpu::Bloom<L>) -> Result<ShardedBloom<L>, Error> {
        let mut copy = ShardedBloom::with_layout(devices, *filter.layout())?;
        let places: Vec<_> = (0..copy.blocks.len()).map(|place| copy.words_of(place)).collect();
        copy.shards.each_mut(|place, shard| {
            let words = &filter.words()[places[place].clone()];
            Ok::<_, Error>(shard.device.new_stream()?.upload(&mut shard.words, words)?)
        })?;
        Ok(copy)
    }

    /// Returns a copy in host memory: one filter, to save or to query. Waits for all work on the devices.
    ///
    /// # Errors
    /// [`Error::Gpu`]; too little host memory.
    pub fn to_host(&self) -> Result<cpu::Bloom<L>, Error> {
        let mut words = AlignedWords::zeroed(self.layout().words())?;
        self.shards.download(words.as_mut_slice(), |shard| shard.words())?;
        Ok(cpu::Bloom::from_parts(*self.layout(), words))
    }

    /// Returns the parameters of the whole filter.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Returns the bits of memory per key with `keys` keys in the filter.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        8.0 * self.memory_bytes() as f64 / keys as f64
    }

    /// Returns the rate of false positives in theory with `keys` different keys.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout().expected_fpr(keys)
    }

    /// Returns the fraction of bits that theory expects to be set with `keys` different keys in the filter.
    pub fn predicted_fill(&self, keys: u64) -> f64 {
        self.layout().predicted_fill(keys)
    }

    /// Returns the current rate of false positives, from the number of ones in each block.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn fpr(&self) -> Result<f64, Error> {
        let weighted = self.shards.each(|_, shard| Ok::<_, Error>(shard.fpr()? * shard.layout.blocks() as f64))?;
        Ok(weighted.iter().sum::<f64>() / self.layout().blocks() as f64)
    }

    /// Counts the set bits.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn count_ones(&self) -> Result<u64, Error> {
        Ok(self.shards.each(|_, shard| shard.count_ones())?.iter().sum())
    }

    /// Returns the fraction of set bits; about half at the intended number of keys.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn fill_ratio(&self) -> Result<f64, Error> {
        Ok(self.count_ones()? as f64 / self.layout().settable_bits() as f64)
    }

    /// Estimates the number of different keys in the filter from the number of set bits.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn estimated_len(&self) -> Result<f64, Error> {
        Ok(self.layout().cardinality(self.count_ones()?))
    }

    /// Inserts batches of keys, each on one of the devices. On an error some of the keys may be in the filter.
    ///
    /// # Errors
    /// [`Error::Gpu`]: keys on another device, say.
    pub fn insert_each_device<B: DeviceKeys>(&mut self, batches: &[B]) -> Result<(), Error> {
        self.shards.insert_each_device(batches)
    }

    /// Removes all keys and keeps the memory. Waits for all work on the devices.
    ///
    /// # Errors
    /// [`Error::Gpu`]; then some of the keys may be gone.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.shards.clear()
    }

    /// Adds all keys of `other`, a filter with the same parameters on the same devices, divided alike: devices that
    /// were short of memory when it was made got smaller parts.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs; [`Error::Gpu`] for other devices: nothing has
    /// been added then.
    pub fn merge(&mut self, other: &ShardedBloom<L>) -> Result<(), Error> {
        self.check_compatible(other)?;
        self.shards.merge(&other.shards)
    }

    /// Whether `merge` would accept `other`; the error names the first difference.
    ///
    /// # Errors
    /// The errors of [`ShardedBloom::merge`].
    pub fn check_compatible(&self, other: &ShardedBloom<L>) -> Result<(), Error> {
        if let Some((field, left, right)) = self.layout().difference(other.layout()) {
            return Err(Error::Incompatible { field, left, right });
        }
        let (left, right) = (self.blocks.len() as u64, other.blocks.len() as u64);
        if left != right {
            return Err(Error::Incompatible { field: "shards", left, right });
        }
        let mut ends = self.blocks.iter().zip(&other.blocks).map(|(own, other)| (own.end, other.end));
        if let Some((left, right)) = ends.find(|(left, right)| left != right) {
            return Err(Error::Incompatible { field: "blocks up to the end of a shard", left, right });
        }
        let pairs = self.shards.parts().iter().zip(other.shards.parts());
        pairs.into_iter().try_for_each(|(own, other)| own.check_compatible(other))
    }
}

warpset_primitives::divided_filter! { [L: DeviceOneBlock] ShardedBloom<L>, Error }

impl<L: DeviceOneBlock> Insert for ShardedBloom<L> {
    type Inserted = ();

    /// Inserts keys of any type. On an error some of the keys may be in the filter.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.shards.insert_bulk(keys)
    }
    warpset_base::by_inherent! {
        fn clear(&mut self) -> Result<(), Error>;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl<L: DeviceOneBlock> DeviceInsert for ShardedBloom<L> {
    fn hashing(&self) -> Hashing {
        self.layout.hashing()
    }

    /// Inserts keys on one of the devices. On an error some of the keys may be in the filter.
    fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<(), Error> {
        self.shards.insert_each_device(&[keys])
    }
}

impl<L: DeviceOneBlock> fmt::Debug for ShardedBloom<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedBloom").field("layout", self.layout()).field("devices", self.devices()).finish()
    }
}

#[cfg(test)]
mod tests;

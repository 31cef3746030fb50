//! Split-block filter with blocks on several devices.
//!
//! Each device has a range of the blocks, as a filter of its own. A key's block follows from the high half of its hash,
//! and the bits in the block from the low half. The device with the block gets a hash with the same low half, and with
//! a high half that selects this block among its own. All shards together are the words of one filter, bit for bit, for
//! any number of devices.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use warpset_base::filter::{Filter, Take};
use warpset_base::parallel;
use warpset_base::words::AlignedWords;
use warpset_core::bloom::split_block::{WORDS_PER_BLOCK, block_of};
use warpset_gpu::Devices;

use super::SplitBlockBloom;
use crate::layout::engine::Engine;
use crate::{Bitmap, Builder, Error, Hashed, Insert, Key, Layout, SplitBlockBuilder, SplitBlockLayout, cpu};

/// Keys that one task routes; a multiple of 64. (Tests have batches of several pieces that are small.)
const PIECE: usize = if cfg!(test) { 1 << 8 } else { 1 << 14 };
/// Keys that are routed at a time, for each shard: their hashes take 8 bytes each on the host.
const ROUTED: usize = if cfg!(test) { 1 << 9 } else { 1 << 22 };

/// A [`SplitBlockBloom`] with its blocks divided among several devices, for filters larger than one device's memory.
/// Bits, answers and rate equal those of [`cpu::SplitBlockBloom`] for any number of devices.
///
/// Keys come from host slices. The host hashes them and sends them, 8 bytes each, to the device with their block. All
/// devices work at the same time, one host thread each, while the host hashes the next keys.
///
/// ```
/// use warpset_bloom::{Filter, Insert, SplitBlockBloom};
/// use warpset_gpu::{Device, Devices};
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let builder = SplitBlockBloom::builder(1_000).fpr(0.001);
/// let mut filter = builder.sharded_on(&devices).build_from(&["two", "three"])?;
/// filter.insert_bulk(&["five"])?;
/// assert_eq!(filter.contains_bulk(&["five", "six"])?, [true, false]);
/// assert!(filter.to_host()? == builder.build_from(&["two", "three", "five"])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedBloom {
    router: Router,
    devices: Devices,
    /// One per device.
    shards: Vec<SplitBlockBloom>,
}

/// Assignment of blocks to shards.
struct Router {
    layout: SplitBlockLayout,
    /// One range per shard.
    blocks: Vec<Range<u64>>,
}

/// A builder of filters divided among devices, from a builder's `sharded_on`.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ShardedBuilder {
    layout: Result<SplitBlockLayout, Error>,
    devices: Devices,
}

impl ShardedBuilder {
    /// Checks every setting, then allocates: an empty filter.
    ///
    /// # Errors
    /// The errors of the settings; [`Error::Gpu`] if a device has too little memory for its share.
    pub fn build(self) -> Result<ShardedBloom, Error> {
        ShardedBloom::with_layout(&self.devices, self.layout?)
    }

    /// Checks every setting, then makes a filter of these keys.
    ///
    /// # Errors
    /// The errors of [`ShardedBuilder::build`], and those of an insertion.
    pub fn build_from<K: Key>(self, keys: &[K]) -> Result<ShardedBloom, Error> {
        let mut filter = self.build()?;
        filter.insert_bulk(keys)?;
        Ok(filter)
    }
}

impl Builder<SplitBlockLayout> {
    /// Returns a builder with these settings of a filter that is divided among `devices`.
    pub fn sharded_on(&self, devices: &Devices) -> ShardedBuilder {
        ShardedBuilder { layout: Ok(*self.layout()), devices: devices.clone() }
    }
}

impl SplitBlockBuilder {
    /// Returns a builder with these settings of a filter that is divided among `devices`.
    pub fn sharded_on(&self, devices: &Devices) -> ShardedBuilder {
        ShardedBuilder { layout: self.layout(), devices: devices.clone() }
    }
}

/// Some keys of a batch, by shards.
struct Piece {
    /// The shard of each key.
    shards: Vec<u32>,
    /// Hashes for each shard, in the order of the keys.
    hashes: Vec<Vec<u64>>,
}

impl ShardedBloom {
    /// Returns an empty filter with these parameters, on at most one device per block.
    fn with_layout(devices: &Devices, layout: SplitBlockLayout) -> Result<ShardedBloom, Error> {
        let count = (devices.all().len() as u64).min(layout.blocks());
        let devices = devices.at_most(count as usize);
        let start = |place: u64| layout.blocks() * place / count;
        let blocks: Vec<Range<u64>> = (0..count).map(|place| start(place)..start(place + 1)).collect();
        let shards = devices.each(|place, device| {
            let Range { start, end } = blocks[place];
            SplitBlockBloom::with_layout(device, layout.with_blocks(end - start)?)
        });
        let shards = shards.into_iter().collect::<Result<_, Error>>()?;
        Ok(ShardedBloom { router: Router { layout, blocks }, devices, shards })
    }

    /// Returns a copy of a filter in host memory, which may have been loaded from a file.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn from_host(devices: &Devices, filter: &cpu::SplitBlockBloom) -> Result<ShardedBloom, Error> {
        let mut copy = ShardedBloom::with_layout(devices, *filter.layout())?;
        let blocks = copy.router.blocks.clone();
        copy.each_mut(|place, shard| {
            let words = &filter.words()[words_of(&blocks[place])];
            Ok(shard.device.new_stream()?.upload(&mut shard.words, words)?)
        })?;
        Ok(copy)
    }

    /// Returns a copy in host memory: one filter, to save or to query. Waits for all work on the devices.
    ///
    /// # Errors
    /// [`Error::Gpu`]; too little host memory.
    pub fn to_host(&self) -> Result<cpu::SplitBlockBloom, Error> {
        let mut words = AlignedWords::zeroed(self.layout().words())?;
        let mut rest = words.as_mut_slice();
        let mut parts = Vec::new();
        for blocks in &self.router.blocks {
            let (part, later) = rest.split_at_mut(words_of(blocks).len());
            parts.push(Mutex::new(part));
            rest = later;
        }
        let copied = self.devices.each(|place, device| {
            device.synchronize()?;
            let mut part = parts[place].lock().unwrap_or_else(PoisonError::into_inner);
            Ok(device.new_stream()?.download(self.shards[place].words(), &mut part)?)
        });
        copied.into_iter().collect::<Result<(), Error>>()?;
        drop(parts);
        Ok(cpu::Bloom::from_parts(*self.layout(), words))
    }

    /// Returns the parameters of the whole filter.
    pub fn layout(&self) -> &SplitBlockLayout {
        &self.router.layout
    }

    /// Returns the devices that have a part of it.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Returns the size of the bits in bytes of device memory, on all devices together.
    pub fn memory_bytes(&self) -> u64 {
        4 * self.layout().words()
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
        let weighted = self.each(|_, shard| Ok(shard.fpr()? * shard.layout.blocks() as f64))?;
        Ok(weighted.iter().sum::<f64>() / self.layout().blocks() as f64)
    }

    /// Counts the set bits.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn count_ones(&self) -> Result<u64, Error> {
        Ok(self.each(|_, shard| shard.count_ones())?.iter().sum())
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

    /// Sets the number of keys that a chunk of a host slice carries to each device, see
    /// [`Bloom::set_chunk_keys`](super::Bloom::set_chunk_keys).
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.shards.iter_mut().for_each(|shard| shard.set_chunk_keys(keys));
    }

    /// Removes all keys and keeps the memory. Waits for all work on the devices.
    ///
    /// # Errors
    /// [`Error::Gpu`]; then some of the keys may be gone.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.each_mut(|_, shard| shard.clear())
    }

    /// Adds all keys of `other`, a filter with the same parameters on the same devices.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs; [`Error::Gpu`] for other devices: nothing has
    /// been added then.
    pub fn merge(&mut self, other: &ShardedBloom) -> Result<(), Error> {
        self.check_compatible(other)?;
        self.each_mut(|place, shard| shard.merge(&other.shards[place]))
    }

    /// Whether `merge` would accept `other`; the error names the first difference.
    ///
    /// # Errors
    /// The errors of [`ShardedBloom::merge`].
    pub fn check_compatible(&self, other: &ShardedBloom) -> Result<(), Error> {
        if let Some((field, left, right)) = self.layout().difference(other.layout()) {
            return Err(Error::Incompatible { field, left, right });
        }
        let (left, right) = (self.shards.len() as u64, other.shards.len() as u64);
        if left != right {
            return Err(Error::Incompatible { field: "shards", left, right });
        }
        self.shards.iter().zip(&other.shards).try_for_each(|(own, other)| own.check_compatible(other))
    }

    /// Runs `work` for each shard and its place, on a thread of its own.
    fn each<R: Send>(
        &self,
        work: impl Fn(usize, &SplitBlockBloom) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        self.devices.each(|place, _| work(place, &self.shards[place])).into_iter().collect()
    }

    /// Runs `work` for each shard, mutable, and its place; see [`each`](Self::each).
    fn each_mut(
        &mut self,
        work: impl Fn(usize, &mut SplitBlockBloom) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        each_mut(&self.devices, &mut self.shards, work)
    }
}

/// Runs `work` for each shard and its place, on a thread of its own.
fn each_mut(
    devices: &Devices,
    shards: &mut [SplitBlockBloom],
    work: impl Fn(usize, &mut SplitBlockBloom) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let shards: Vec<_> = shards.iter_mut().map(Mutex::new).collect();
    let results = devices.each(|place, _| {
        let mut shard = shards[place].lock().unwrap_or_else(PoisonError::into_inner);
        work(place, &mut shard)
    });
    results.into_iter().collect()
}

impl Router {
    /// Routes all keys, part by part, and gives each part to `work`, with the number of its first key; meanwhile the
    /// pool routes the next one.
    fn route_all<K: Key>(
        &self,
        keys: &[K],
        mut work: impl FnMut(usize, Vec<Piece>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let most = ROUTED * self.blocks.len();
        let mut parts = keys.chunks(most);
        let (mut routed, mut first) = (parts.next().map(|keys| self.route(keys)), 0);
        while let Some(pieces) = routed.take() {
            let following = parts.next();
            rayon::in_place_scope(|scope| {
                if let Some(keys) = following {
                    scope.spawn(|_| routed = Some(self.route(keys)));
                }
                work(first, pieces)
            })?;
            first += most;
        }
        Ok(())
    }

    /// Sorts hashes by shard.
    fn route<K: Key>(&self, keys: &[K]) -> Vec<Piece> {
        parallel::map(keys.chunks(PIECE), |keys| {
            let (mut shards, mut hashes) = (Vec::with_capacity(keys.len()), vec![Vec::new(); self.blocks.len()]);
            let share = keys.len() / self.blocks.len();
            hashes.iter_mut().for_each(|hashes| hashes.reserve(share + share / 8));
            for key in keys {
                let (shard, hash) = self.shard_of(self.layout.probe(key));
                shards.push(shard as u32);
                hashes[shard].push(hash);
            }
            Piece { shards, hashes }
        })
    }

    /// Returns the shard with the block of a hash, and the hash to look up there.
    fn shard_of(&self, hash: u64) -> (usize, u64) {
        let block = block_of(hash, self.layout.blocks());
        // Shards are nearly equal, so this is the right one or a neighbour.
        let mut shard = (((hash >> 32) * self.blocks.len() as u64) >> 32) as usize;
        while block < self.blocks[shard].start {
            shard -= 1;
        }
        while block >= self.blocks[shard].end {
            shard += 1;
        }
        let Range { start, end } = self.blocks[shard];
        (shard, hash_in_block(hash, block - start, end - start))
    }
}

impl Piece {
    /// Returns the answers to its keys, from those of the shards; `next` is the place of its first answer in each.
    fn gather(&self, mut next: Vec<usize>, answers: &[Bitmap]) -> Vec<u64> {
        let mut answer = |word: u64, &shard: &u32| {
            let (words, place) = (answers[shard as usize].as_words(), &mut next[shard as usize]);
            let bit = words[*place / 64] >> (*place % 64) & 1;
            *place += 1;
            word >> 1 | bit << 63
        };
        let word = |shards: &[u32]| shards.iter().fold(0, &mut answer) >> (64 - shards.len());
        self.shards.chunks(64).map(word).collect()
    }
}

/// Gathers all hashes for a shard.
fn asked(pieces: &[Piece], shard: usize) -> Vec<Hashed> {
    let mut all = Vec::with_capacity(pieces.iter().map(|piece| piece.hashes[shard].len()).sum());
    pieces.iter().for_each(|piece| all.extend_from_slice(crate::as_hashed(&piece.hashes[shard])));
    all
}

/// Returns the words of these blocks.
fn words_of(blocks: &Range<u64>) -> Range<usize> {
    blocks.start as usize * WORDS_PER_BLOCK..blocks.end as usize * WORDS_PER_BLOCK
}

/// Returns a hash with the low half of this one and with block `block` of `blocks`.
fn hash_in_block(hash: u64, block: u64, blocks: u64) -> u64 {
    // The least `high` with `high * blocks / 2^32` not below `block`; it is below `block + 1`, because `blocks <=
    // 2^32`.
    let high = (block << 32).div_ceil(blocks);
    high << 32 | hash & 0xffff_ffff
}

impl Filter for ShardedBloom {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        self.router.route_all(keys, |first, pieces| {
            let answers = self.each(|place, shard| shard.contains_bitmap_bulk(&asked(&pieces, place)))?;
            let mut starts = vec![0; self.shards.len()];
            let from = pieces.iter().map(|piece| {
                let from = starts.clone();
                starts.iter_mut().zip(&piece.hashes).for_each(|(start, hashes)| *start += hashes.len());
                (piece, from)
            });
            let gathered = parallel::map(from, |(piece, from)| piece.gather(from, &answers));
            gathered.iter().zip((first..).step_by(PIECE)).for_each(|(words, first)| take(first, words));
            Ok(())
        })
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl Insert for ShardedBloom {
    type Inserted = ();

    /// Inserts keys of any type, hashed on the host. On an error some of the keys may be in the filter.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        let ShardedBloom { router, devices, shards } = self;
        router.route_all(keys, |_, pieces| {
            each_mut(devices, shards, |place, shard| shard.insert_bulk(&asked(&pieces, place))) //
        })
    }
    warpset_base::by_inherent! {
        fn clear(&mut self) -> Result<(), Error>;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl fmt::Debug for ShardedBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedBloom").field("layout", self.layout()).field("devices", &self.devices).finish()
    }
}

#[cfg(test)]
mod tests;

//! Filters in device memory: the same bits as [`cpu`], built and queried by kernels.
//!
//! Every operation has three forms.
//! - `_bulk` takes host slices and waits. It takes keys of any type (keys that are no integers are hashed on the host)
//!   and stages them through pinned memory in chunks: inputs larger than device memory work, and one chunk is copied
//!   while the kernels work on another.
//! - `_device` takes device slices and waits.
//! - `_async` takes device slices and a stream, copies nothing and waits for nothing. It is `unsafe`, because it cannot
//!   see when the stream has finished with borrowed memory. Insertions into Rao's filter can overflow: on a stream they
//!   return a [`RaoInsertion`] with the outcome.
//!
//! Insertions into a filter larger than the L2 cache are slow one by one: random atomics stop at 16 billion per second
//! on an H200. Where a batch is large enough, its hashes are first grouped by the part of the filter they fall in (see
//! [`Grouping`]), which makes the atomics hit the cache.
//!
//! The answers of one filter are a stencil for the next one:
//!
//! ```
//! use warpset_bloom::SplitBlockBloom;
//! use warpset_bloom::gpu::DeviceFilter;
//! use warpset_gpu::Device;
//!
//! let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
//! let odd = SplitBlockBloom::builder(100).fpr(0.001).on(&device).build_from(&[1u64, 3, 5, 7])?;
//! let prime = SplitBlockBloom::builder(100).fpr(0.001).on(&device).build_from(&[2u64, 3, 5, 7])?;
//! let keys = device.from_slice(&[1u64, 2, 3, 4])?;
//! let mut answers = device.alloc_zeroed::<u64>(1)?;
//! odd.contains_bitmap_device(keys.as_slice(), answers.as_mut_slice())?;
//! let mut both = device.alloc_zeroed::<u64>(1)?;
//! prime.contains_if_bitmap_device(keys.as_slice(), &answers, both.as_mut_slice())?;
//! assert_eq!(both.to_vec()?, [0b0100]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use warpset_gpu::batch::{DEFAULT_CHUNK_KEYS, Staging};
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Stream};
use warpset_simt::{Global, LaunchConfig};

use crate::{AlignedWords, BlockedLayout, Error, Layout, OutOfMemory, RaoLayout, SplitBlockLayout, cpu};

mod batch_partition;
mod build;
mod device_query;
mod host;
mod insert;
mod kernels;
mod merge;
mod query;
mod rao;
mod rates;
mod sharded;
mod test_and_insert;
mod traits;

pub use build::{DeviceBuilder, Settings};
pub use device_query::{BlockedQuery, SplitBlockQuery};
pub use insert::Grouping;
use kernels::BLOCK;
#[doc(hidden)]
pub use kernels::SPECIALISED_SHAPES;
pub use kernels::{DeviceLayout, DeviceOneBlock};
pub use rao::RaoInsertion;
pub use sharded::{ShardedBloom, ShardedBuilder};
pub use warpset_gpu::batch::{DeviceKey, DeviceKeys, DeviceStrings, Offset, Stencil, StringVec};
pub use warpset_primitives::{DeviceFilter, DeviceInsert};

/// A Bloom filter in device memory; which one, the layout says.
///
/// Use it by its names [`SplitBlockBloom`], [`BlockedBloom`] and [`RaoBloom`]. Queries take `&self` and insertions
/// `&mut self`.
pub struct Bloom<L> {
    layout: L,
    device: Device,
    words: DeviceVec<u32>,
    /// Filter that keys are addressed in: this one, or the one that it is a part of.
    whole: L,
    /// Words of the whole filter before these.
    before: usize,
    /// Set bits of each bucket, for Rao's filter; empty for the others. Follows from the words.
    bucket_ones: DeviceVec<u32>,
    grouping: Grouping,
    /// Keys of a host slice that travel at a time.
    chunk_keys: usize,
}

/// [`cpu::SplitBlockBloom`] in device memory.
///
/// ```
/// use warpset_bloom::{Builder, Filter, Insert, SplitBlockLayout, cpu, gpu};
/// use warpset_gpu::Device;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let mut filter: gpu::SplitBlockBloom = Builder::with_layout(SplitBlockLayout::new(100)?).on(&device).build()?;
/// filter.insert_bulk(&[2u64, 3, 5, 7])?;
/// assert_eq!(filter.contains_bulk(&[5u64, 7])?, [true, true]);
///
/// let on_host: cpu::SplitBlockBloom = filter.to_host()?;
/// assert!(on_host.contains(3u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SplitBlockBloom = Bloom<SplitBlockLayout>;
/// [`cpu::BlockedBloom`] in device memory. Any shape works; the common ones have kernels of their own.
pub type BlockedBloom = Bloom<BlockedLayout>;
/// [`cpu::RaoBloom`] in device memory: buckets are built in shared memory, one thread block per bucket.
pub type RaoBloom = Bloom<RaoLayout>;

impl<L: DeviceLayout> Bloom<L> {
    /// Returns an empty filter with these parameters.
    pub(crate) fn with_layout(device: &Device, layout: L) -> Result<Bloom<L>, Error> {
        Bloom::part(device, layout, layout, 0)
    }

    /// Returns an empty part of a filter with the parameters `whole`: the blocks of `layout`, after `before` words.
    fn part(device: &Device, layout: L, whole: L, before: usize) -> Result<Bloom<L>, Error> {
        whole.check_device_limits()?;
        let too_large = |_| Error::from(OutOfMemory { bytes: layout.words().saturating_mul(4) });
        let words = device.alloc_zeroed(usize::try_from(layout.words()).map_err(too_large)?)?;
        let bucket_ones = device.alloc_zeroed(if L::COUNTS_ONES { layout.blocks() as usize } else { 0 })?;
        Ok(Bloom {
            layout,
            device: device.clone(),
            words,
            whole,
            before,
            bucket_ones,
            grouping: Grouping::default(),
            chunk_keys: DEFAULT_CHUNK_KEYS,
        })
    }

    /// Returns a copy of a filter in host memory.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Gpu`].
    pub fn from_host(device: &Device, filter: &cpu::Bloom<L>) -> Result<Bloom<L>, Error> {
        let mut copy = Bloom::with_layout(device, *filter.layout())?;
        copy.words.copy_from_slice(filter.words())?;
        let stream = device.new_stream()?;
        copy.count_bucket_ones(&stream)?;
        stream.synchronize()?;
        Ok(copy)
    }

    /// Returns a copy in host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Gpu`].
    pub fn to_host(&self) -> Result<cpu::Bloom<L>, Error> {
        let mut words = AlignedWords::zeroed(self.layout.words())?;
        self.words.copy_to_slice(words.as_mut_slice())?;
        Ok(cpu::Bloom::from_parts(self.layout, words))
    }

    /// Returns a copy on the same device.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn try_clone(&self) -> Result<Bloom<L>, Error> {
        let mut copy = Bloom::with_layout(&self.device, self.layout)?;
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        stream.copy(&mut copy.words, &self.words)?;
        stream.copy(&mut copy.bucket_ones, &self.bucket_ones)?;
        stream.synchronize()?;
        copy.grouping = self.grouping;
        Ok(copy)
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Returns the device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u32> {
        self.words.as_slice()
    }

    /// Returns the words for kernels that look up keys: those of the whole filter, only this part of which may be
    /// accessed.
    fn addressed(&self) -> Global<u32> {
        Global::from_raw_parts(self.words.global().as_ptr().wrapping_sub(self.before), self.whole.words() as usize)
    }

    /// Returns the size of the bits in bytes of device memory.
    pub fn memory_bytes(&self) -> u64 {
        4 * self.layout.words()
    }

    /// Returns the bits of memory per key with `keys` keys in the filter.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        8.0 * self.memory_bytes() as f64 / keys as f64
    }

    /// Sets when insertions group their hashes first. Default: [`Grouping::Auto`].
    pub fn set_grouping(&mut self, grouping: Grouping) {
        self.grouping = grouping;
    }

    /// Sets the number of keys per chunk of a host slice: more hide launch costs, fewer take less memory (about 50
    /// bytes of device and pinned memory per key). Default: 4 Mi keys. Rounded up to a multiple of 64.
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.chunk_keys = keys;
    }

    /// Returns the way of host slices to this filter.
    fn staging(&self) -> Staging<'_> {
        Staging::new(&self.device, self.layout.hashing()).chunk_keys(self.chunk_keys)
    }

    /// Returns a stream that starts after all work on the device; the caller may have queued work on other streams.
    fn synchronised_stream(&self) -> Result<Stream, Error> {
        self.device.synchronize()?;
        Ok(self.device.new_stream()?)
    }

    /// Runs what queues work that changes the filter on a stream, and waits for that work whether all of it could be
    /// queued or not.
    fn waiting<R>(&mut self, queue: impl FnOnce(&mut Self, &Stream) -> Result<R, Error>) -> Result<R, Error> {
        self.device.clone().waiting(|stream| queue(self, stream))
    }

    /// Returns an error unless all of these are the filter's device.
    fn expect_here<const N: usize>(&self, operation: &'static str, devices: [&Device; N]) -> Result<(), Error> {
        Ok(self.device.expect_all_here(devices, operation)?)
    }

    /// Returns a launch of at most the blocks that fit at once, for kernels that walk by grid stride.
    fn covering(&self, n: usize) -> LaunchConfig {
        let resident = self.device.properties().multiprocessors * 8;
        LaunchConfig::new(LaunchConfig::covering(n, BLOCK).grid.x.min(resident), BLOCK)
    }
}

impl<L: DeviceLayout> cpu::Bloom<L> {
    /// Returns a copy in device memory; [`Bloom::to_host`] is the way back.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Gpu`].
    pub fn to_device(&self, device: &Device) -> Result<Bloom<L>, Error> {
        Bloom::from_host(device, self)
    }
}

impl<L: Layout> fmt::Debug for Bloom<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(L::NAME).field("layout", &self.layout).field("device", &self.device).finish()
    }
}

//! Filters in device memory: the same bits as [`cpu`], built and queried by kernels.
//!
//! Every operation comes in two forms. The one on host slices waits; it takes keys of any kind (those that are no
//! integers are hashed on the host), stages them through pinned memory in chunks, so that inputs larger than device
//! memory work, and copies one chunk while the kernels work on another. The one that ends in `_async` takes device slices
//! and a stream, copies nothing, waits for nothing and is `unsafe`, because it cannot see when the stream is done with
//! what it was lent. Insertions into Rao's filter can overflow: on a stream they give back a [`RaoInsertion`], which tells.
//!
//! Insertions into a filter larger than the L2 cache are slow one by one: random atomics stop at 16 billion a second on
//! an H200. Where a batch is large enough, its hashes are first grouped by the part of the filter they fall in (see
//! [`Grouping`]), which makes the atomics hit the cache.

use std::fmt;

use warpset_gpu::batch::{Answers, DEFAULT_CHUNK_KEYS, Staging};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_simt::LaunchConfig;

use crate::{BlockedLayout, Error, Layout, OutOfMemory, RaoLayout, SplitBlockLayout, Words, cpu};

mod host;
mod insert;
mod kernels;
mod merge;
mod rao;
mod rates;
mod test_and_insert;

pub use insert::Grouping;
use kernels::BLOCK;
pub use kernels::{DeviceLayout, DeviceOneBlock, SPECIALISED_SHAPES};
pub use rao::RaoInsertion;
pub use warpset_gpu::batch::{DeviceKey, DeviceKeys, DeviceStrings, Offset, StringVec};

/// A Bloom filter in device memory; which one, the layout says.
///
/// Use it by its names [`SplitBlockBloom`], [`BlockedBloom`] and [`RaoBloom`]. Queries take `&self` and insertions
/// `&mut self`.
pub struct Bloom<L> {
    layout: L,
    device: Device,
    words: DeviceVec<u32>,
    /// Set bits of each bucket, for Rao's filter; empty for the others. Follows from the words.
    bucket_ones: DeviceVec<u32>,
    grouping: Grouping,
    /// Keys of a host slice that travel at a time.
    chunk_keys: usize,
}

/// [`cpu::SplitBlockBloom`] in device memory.
///
/// ```
/// use warpset_bloom::{cpu, gpu, SplitBlockLayout};
/// use warpset_gpu::Device;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let mut filter = gpu::SplitBlockBloom::with_layout(&device, SplitBlockLayout::new(100)?)?;
/// filter.insert_bulk(&[2u64, 3, 5, 7])?;
/// assert_eq!(filter.contains_bulk(&[5u64, 7])?, [true, true]);
///
/// let on_host: cpu::SplitBlockBloom = filter.to_host()?;
/// assert!(on_host.contains(3u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SplitBlockBloom = Bloom<SplitBlockLayout>;
/// [`cpu::BlockedBloom`] in device memory. Any shape works; [`SPECIALISED_SHAPES`] have kernels of their own.
pub type BlockedBloom = Bloom<BlockedLayout>;
/// [`cpu::RaoBloom`] in device memory: buckets are built in shared memory, one thread block a bucket.
pub type RaoBloom = Bloom<RaoLayout>;

impl<L: DeviceLayout> Bloom<L> {
    /// An empty filter with these parameters.
    pub fn with_layout(device: &Device, layout: L) -> Result<Bloom<L>, Error> {
        layout.check_device_limits()?;
        let too_large = |_| Error::from(OutOfMemory { bytes: layout.words().saturating_mul(4) });
        let words = device.alloc_zeroed(usize::try_from(layout.words()).map_err(too_large)?)?;
        let bucket_ones = device.alloc_zeroed(if L::COUNTS_ONES { layout.blocks() as usize } else { 0 })?;
        Ok(Bloom {
            layout,
            device: device.clone(),
            words,
            bucket_ones,
            grouping: Grouping::default(),
            chunk_keys: DEFAULT_CHUNK_KEYS,
        })
    }

    /// A copy of a filter in host memory.
    pub fn from_host(device: &Device, filter: &cpu::Bloom<L>) -> Result<Bloom<L>, Error> {
        let mut copy = Bloom::with_layout(device, *filter.layout())?;
        copy.words.copy_from_slice(filter.words())?;
        let stream = device.new_stream()?;
        copy.count_bucket_ones(&stream)?;
        stream.synchronize()?;
        Ok(copy)
    }

    /// A copy in host memory. Waits for all work on the device.
    pub fn to_host(&self) -> Result<cpu::Bloom<L>, Error> {
        let mut words = Words::zeroed(self.layout.words())?;
        self.words.copy_to_slice(words.as_mut_slice())?;
        Ok(cpu::Bloom::from_parts(self.layout, words))
    }

    /// A copy on the same device.
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

    /// The parameters.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u32> {
        self.words.as_slice()
    }

    /// Bytes of device memory that the bits take.
    pub fn memory_bytes(&self) -> u64 {
        4 * self.layout.words()
    }

    /// Bits that keys can set.
    pub fn bits(&self) -> u64 {
        self.layout.bits()
    }

    /// Bits of memory a key, were `keys` in the filter.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        8.0 * self.memory_bytes() as f64 / keys as f64
    }

    /// When insertions group their hashes first. Default: [`Grouping::Auto`].
    pub fn set_grouping(&mut self, grouping: Grouping) {
        self.grouping = grouping;
    }

    /// How many keys one chunk of a host slice carries: more hide launch costs, fewer take less memory (about 34 bytes a
    /// key of device and pinned memory). Default: 4 Mi keys. Rounded up to a multiple of 64.
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.chunk_keys = keys;
    }

    /// Queues the lookup of `keys`: answer `i` becomes 1 or 0.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter, `keys` and `answers` stay allocated, nobody writes the filter or
    /// the keys, and nobody else touches the answers.
    pub unsafe fn contains_bytes_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let answers = Answers::bytes(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.contains_async(stream, keys, answers) }
    }

    /// Queues the lookup of `keys`: answer `i` becomes bit `i % 64` of word `i / 64`.
    ///
    /// # Safety
    /// As for [`Bloom::contains_bytes_async`].
    pub unsafe fn contains_bitmap_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let answers = Answers::bits(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.contains_async(stream, keys, answers) }
    }

    /// Queues the lookup of `keys`: adds how many of them may be in the filter to the first word of `count`.
    ///
    /// # Safety
    /// As for [`Bloom::contains_bytes_async`]; other such counts may run at the same time.
    pub unsafe fn count_contained_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let answers = Answers::count(count, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.contains_async(stream, keys, answers) }
    }

    /// # Safety
    /// As for the three above; `answers` has room.
    unsafe fn contains_async<K: DeviceKeys>(&self, stream: &Stream, keys: K, answers: Answers) -> Result<(), Error> {
        let hashing = self.layout.hashing();
        let (n, chunk) = (keys.count(), keys.at_a_time(&hashing));
        for first in (0..n).step_by(chunk) {
            let part = keys.part(first..n.min(first + chunk));
            // SAFETY: the words are this layout's; scratch is freed in the order of the stream; `first` is a multiple of
            // 64; the rest is the caller's promise.
            unsafe {
                let hashed = part.kernel_keys(&hashing, stream)?;
                let (words, strings) = (self.words.global(), hashed.string_hashes());
                self.layout.launch_contains(stream, words, hashed.keys, strings, part.count(), answers.from(first))?;
            }
        }
        Ok(())
    }

    /// Queues the selection of the keys that may be in the filter: they go to the start of `retained`, in order, and
    /// their number to `count`.
    ///
    /// # Safety
    /// As for [`Bloom::contains_bytes_async`]; `keys` and `retained` do not overlap.
    pub unsafe fn retain_contained_async<K: DeviceKey + warpset_primitives::select::Item>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        retained: DeviceSliceMut<'_, K>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let mut bitmap = stream.alloc_uninit::<u64>(keys.len().div_ceil(64))?;
        // SAFETY: the bitmap is this call's own and freed in the order of the stream; the rest is the caller's promise.
        unsafe {
            self.contains_bitmap_async(stream, keys, bitmap.as_mut_slice())?;
            warpset_primitives::select::select_async(stream, keys, bitmap.as_slice(), retained, count)?;
        }
        Ok(())
    }

    /// Queues the selection of the keys that may be in the filter by number: the places that they have in `keys` go to the
    /// start of `retained`, in order, and their number to `count`. For strings too, which stay where they are.
    ///
    /// # Safety
    /// As for [`Bloom::contains_bytes_async`].
    pub unsafe fn retain_contained_indices_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        retained: DeviceSliceMut<'_, u64>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let n = keys.count();
        let mut bitmap = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        // SAFETY: the bitmap is this call's own and freed in the order of the stream; the rest is the caller's promise.
        unsafe {
            self.contains_bitmap_async(stream, keys, bitmap.as_mut_slice())?;
            warpset_primitives::select::select_indices_async(stream, n, bitmap.as_slice(), retained, count)?;
        }
        Ok(())
    }

    /// The way of host slices to this filter.
    fn staging(&self) -> Staging<'_> {
        Staging::new(&self.device, self.layout.hashing()).chunk_keys(self.chunk_keys)
    }

    /// A stream behind all work on the device, some of which the caller may have queued on streams of their own.
    fn synchronised_stream(&self) -> Result<Stream, Error> {
        self.device.synchronize()?;
        Ok(self.device.new_stream()?)
    }

    /// As many blocks as fit at once, for kernels that walk by grid stride.
    fn covering(&self, n: usize) -> LaunchConfig {
        let resident = self.device.properties().multiprocessors * 8;
        LaunchConfig::new(LaunchConfig::covering(n, BLOCK).grid.x.min(resident), BLOCK)
    }
}

impl<L: DeviceLayout> cpu::Bloom<L> {
    /// A copy in device memory; [`Bloom::to_host`] is the way back.
    pub fn to_device(&self, device: &Device) -> Result<Bloom<L>, Error> {
        Bloom::from_host(device, self)
    }
}

impl<L: Layout> fmt::Debug for Bloom<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(L::NAME).field("layout", &self.layout).field("device", &self.device).finish()
    }
}

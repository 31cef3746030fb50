//! Sets and maps in device memory: the same words as on the host, made and looked up by kernels.
//!
//! Methods on host slices copy them to the device first. Methods that end in `_device` take memory of the device; those
//! that end in `_async` also take a stream, and do not wait. The traits [`Filter`](crate::Filter), for keys on the
//! host, and [`DeviceFilter`](warpset_primitives::DeviceFilter), for keys on the device, have the membership tests.
//! Single keys, iteration, files and views need a copy on the host: `to_host`.

use std::fmt;
use std::ops::Range;

use warpset_gpu::batch::DEFAULT_CHUNK_KEYS;
use warpset_gpu::{Device, DeviceSlice, DeviceVec};

use crate::{Error, Layout, StaticKey, Value};

mod build;
mod builder;
mod element;
mod filter;
mod lookup;
mod sharded;

pub use builder::DeviceBuilder;
pub use element::{DeviceMapValue, DeviceStaticKey, DeviceValue};
pub use sharded::{ShardedBuilder, ShardedStaticMap, ShardedStaticSet};

/// A [`StaticMap`](crate::StaticMap) in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_static::StaticMap;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let map = StaticMap::<u64, u32>::builder().on(&device).build_from(&[30, 10], &[3, 1])?;
/// assert_eq!(map.get_bulk(&[10, 20, 30])?, [Some(1), None, Some(3)]);
/// assert_eq!(map.to_host()?.get(30), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StaticMap<K: StaticKey, V: Value> {
    device: Device,
    layout: Layout<K, V>,
    /// Shards whose pilots, buckets and values the words have: all, but on several devices.
    shards: Range<u64>,
    words: DeviceVec<u64>,
    /// Keys of a host slice per chunk.
    chunk_keys: usize,
}

/// A [`StaticSet`](crate::StaticSet) in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_static::{Filter, StaticSet};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let keys = device.from_slice(&[1u64, 2, 3])?;
/// let set = StaticSet::<u64>::builder().on(&device).build_from_device(keys.as_slice())?;
/// assert_eq!(set.contains_bulk(&[3u64, 4])?, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type StaticSet<K> = StaticMap<K, ()>;

impl<K: StaticKey, V: Value> StaticMap<K, V> {
    /// Joins `words` and the layout that they were made for.
    fn from_parts(device: &Device, layout: Layout<K, V>, words: DeviceVec<u64>) -> Self {
        let shards = 0..layout.shape().shards();
        StaticMap { device: device.clone(), layout, shards, words, chunk_keys: DEFAULT_CHUNK_KEYS }
    }

    /// Returns the pilots, buckets and values here.
    fn sections(&self) -> (DeviceSlice<'_, u8>, DeviceSlice<'_, u64>, DeviceSlice<'_, u64>) {
        let count = self.shards.end - self.shards.start;
        let [pilots, keys, values] = self.layout.places_of(count);
        let pilots = self.words.slice(pilots).cast().expect("bytes of words");
        let pilots = pilots.slice(..count as usize * self.layout.shape().groups as usize);
        (pilots, self.words.slice(keys), self.words.slice(values))
    }

    /// Copies a set or map from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`], for example if device memory is too small.
    pub fn from_host(device: &Device, host: &crate::StaticMap<K, V>) -> Result<Self, Error> {
        let mut words = device.alloc_uninit(host.words().len())?;
        device.new_stream()?.upload(&mut words, host.words())?;
        Ok(Self::from_parts(device, *host.layout(), words))
    }

    /// Copies the set or map to host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Gpu`].
    pub fn to_host(&self) -> Result<crate::StaticMap<K, V>, Error> {
        let mut words = warpset_base::words::AlignedWords::zeroed(self.layout.words())?.in_huge_pages();
        self.device.synchronize()?;
        self.device.new_stream()?.download(&self.words, words.as_mut_slice())?;
        crate::StaticMap::from_parts(self.layout, words)
    }

    /// Returns its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout<K, V> {
        &self.layout
    }

    /// Returns the words on the device: pilots, keys, values, as [`Layout`] draws them.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// Sets the number of keys of a host slice per chunk: more hide launch costs, fewer take less memory. Default: 4 Mi
    /// keys. Rounded up to a multiple of 64.
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.chunk_keys = keys.clamp(1, 1 << 30).next_multiple_of(64);
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.layout.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns the places for keys, used and free: all numbers are below.
    pub fn slots(&self) -> u64 {
        self.layout.slots()
    }

    /// Returns the bytes of device memory of pilots, keys and values.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Returns the bits of memory per key, values included.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.len().max(1) as f64
    }

    /// Returns the share of slots that hold keys.
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots().max(1) as f64
    }

    /// Returns the seed that the keys were placed under: that of the builder, or the first after it that placed all.
    pub fn seed(&self) -> u64 {
        self.layout.seed()
    }
}

impl<K: StaticKey, V: Value> crate::StaticMap<K, V> {
    /// Copies the set or map to device memory; [`StaticMap::to_host`] copies it back.
    ///
    /// # Errors
    /// [`Error::Gpu`], for example if device memory is too small.
    pub fn to_device(&self, device: &Device) -> Result<StaticMap<K, V>, Error> {
        StaticMap::from_host(device, self)
    }
}

impl<K: StaticKey, V: Value> fmt::Debug for StaticMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("gpu::StaticMap");
        f.field("layout", &self.layout).field("device", &self.device).finish_non_exhaustive()
    }
}

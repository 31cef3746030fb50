//! Filters and functions with shards on several devices.
//!
//! Each device has a range of the shards, and so a range of the hashes, since the high bits of a key's hash choose its
//! shard. Kernels address the shards of the whole, so the slots and seeds of all parts together are its words. Owners
//! hash a key's word again, so the word travels. Batches are exchanged by [`Sharded`].

use std::fmt;
use std::ops::Range;

use warpset_base::words::AlignedWords;
use warpset_core::fuse::hash::least_of_shard;
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Devices, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_primitives::sharded::{self, By, Replies, Route, Sharded};

use super::{BinaryFuse, DeviceFunctionValue, DeviceKeys, DeviceWidth, HASHING, StaticFunction};
use crate::image::measures;
use crate::{Error, Key, Layout, cpu};

/// [`BinaryFuse`] of many shards, divided among several devices, for filters larger than one device's memory and for
/// the bandwidth of all devices. A filter of one graph stays on the first one.
///
/// Keys come from the host or from any of the devices. [`contains_each_device`](Self::contains_each_device) takes a
/// batch on every device.
///
/// ```
/// use warpset_fuse::{BinaryFuse8, Filter};
/// use warpset_fuse::gpu::ShardedBinaryFuse;
/// use warpset_gpu::{Device, Devices};
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let keys: Vec<u64> = (0..30_000).collect();
/// let filter = BinaryFuse8::builder().for_build().build_from(&keys)?;
/// let divided = ShardedBinaryFuse::from_host(&devices, &filter)?;
/// assert_eq!(divided.count_contained_bulk(&keys)?, 30_000);
/// assert!(divided.to_host()? == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedBinaryFuse<F> {
    layout: Layout,
    shards: Sharded<BinaryFuse<F>>,
}

/// [`StaticFunction`] of many shards, divided among several devices as a [`ShardedBinaryFuse`] is.
///
/// ```
/// use warpset_fuse::StaticFunction;
/// use warpset_fuse::gpu::ShardedStaticFunction;
/// use warpset_gpu::{Device, Devices};
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let (keys, values): (Vec<u64>, Vec<u16>) = (0..30_000).map(|i| (i * i, i as u16)).unzip();
/// let function = StaticFunction::<u16>::builder().for_build().build_from(&keys, &values)?;
/// let divided = ShardedStaticFunction::from_host(&devices, &function)?;
/// assert_eq!(divided.get_bulk(&[49u64])?, [Some(7)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedStaticFunction<V> {
    layout: Layout,
    shards: Sharded<StaticFunction<V>>,
}

/// Divides the graphs of a layout, which take `graph_bytes` bytes each, and makes each part of its graphs on its
/// device.
fn divided<T: Send>(
    devices: &Devices,
    layout: &Layout,
    graph_bytes: u64,
    make: impl Fn(&Device, Range<u64>) -> Result<T, Error> + Sync,
) -> Result<Sharded<T>, Error> {
    let devices = sharded::owners(devices, layout.graphs());
    let graphs = sharded::divide(&devices, layout.graphs(), graph_bytes)?;
    let bounds = graphs[1..].iter().map(|graphs| least_of_shard(graphs.start, layout.shards).unwrap_or(u64::MAX));
    let route = Route::new(By::FuseHash, layout.seed);
    Sharded::new(&devices, HASHING, route, &bounds.collect::<Vec<_>>(), |place, device| {
        make(device, graphs[place].clone())
    })
}

/// Returns some graphs of a structure's words on a device.
fn words_on(device: &Device, layout: &Layout, words: &[u64], graphs: &Range<u64>) -> Result<DeviceVec<u64>, Error> {
    let (slots, seeds) = words.split_at(layout.slot_words() as usize);
    let words = layout.shard_words() as usize;
    let (first, end) = (graphs.start as usize, graphs.end as usize);
    let slots = &slots[first * words..end * words];
    let seeds = bytemuck::cast_slice::<_, u8>(seeds).get(first..end).unwrap_or_default();
    let mut own_seeds = vec![0u64; seeds.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut own_seeds)[..seeds.len()].copy_from_slice(seeds);
    let (stream, mut own) = (device.new_stream()?, device.alloc_uninit(slots.len() + own_seeds.len())?);
    stream.upload(own.slice_mut(..slots.len()), slots)?;
    stream.upload(own.slice_mut(slots.len()..), &own_seeds)?;
    Ok(own)
}

/// Gives divided structures their copies to and from host memory, and what follows from their layout.
macro_rules! divided {
    ([$($generics:tt)*] $name:ident<$of:ident>, $part:ident, $host:ty) => {
        impl<$($generics)*> $name<$of> {
            /// Divides a structure in host memory, which may have been loaded from a file: each device gets an equal
            /// share of the shards, or a smaller one if its memory is short.
            ///
            /// # Errors
            /// [`Error::Gpu`] if a device fails or has too little memory.
            pub fn from_host(devices: &Devices, host: &$host) -> Result<Self, Error> {
                let layout = *host.layout();
                let shards = divided(devices, &layout, 8 * layout.shard_words(), |device, graphs| {
                    let words = words_on(device, &layout, host.words(), &graphs)?;
                    Ok($part::of_graphs(device, layout, graphs, words))
                })?;
                Ok(Self { layout, shards })
            }

            /// Returns a copy in host memory: one structure, to save or to ask. Waits for all work on the devices.
            ///
            /// # Errors
            /// [`Error::Gpu`] if a device fails, [`Error::OutOfMemory`] if the host has too little memory.
            pub fn to_host(&self) -> Result<$host, Error> {
                let mut words = AlignedWords::zeroed(self.layout.words())?;
                let (slots, seeds) = words.as_mut_slice().split_at_mut(self.layout.slot_words() as usize);
                self.shards.download(slots, |part| part.slots_and_seeds().0)?;
                let seeds = &mut bytemuck::cast_slice_mut(seeds)[..self.layout.shards as usize];
                self.shards.download(seeds, |part| part.slots_and_seeds().1)?;
                Ok(<$host>::from_parts(self.layout, words))
            }

            /// Returns the parameters of the whole.
            pub fn layout(&self) -> &Layout {
                &self.layout
            }
        }

        impl<$($generics)*> fmt::Debug for $name<$of> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut f = f.debug_struct(stringify!($name));
                f.field("layout", &self.layout).field("devices", self.shards.devices()).finish()
            }
        }
    };
}

divided! { [F: DeviceWidth] ShardedBinaryFuse<F>, BinaryFuse, cpu::BinaryFuse<F> }
divided! { [V: DeviceFunctionValue] ShardedStaticFunction<V>, StaticFunction, crate::StaticFunction<V> }
measures! { [V: DeviceFunctionValue] ShardedStaticFunction<V>; }
warpset_primitives::divided_structure! { [V: DeviceFunctionValue] ShardedStaticFunction<V> }
warpset_primitives::divided_filter! { [F: DeviceWidth] ShardedBinaryFuse<F>, Error }

impl<F: DeviceWidth> ShardedBinaryFuse<F> {
    /// Returns the number of different keys that it was built from; see [`BinaryFuse::len`].
    pub fn len(&self) -> u64 {
        self.layout.keys
    }

    /// Whether it was built from no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bits of memory per key.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.len().max(1) as f64
    }

    /// Returns the rate of false positives; see [`BinaryFuse::fpr`].
    pub fn fpr(&self) -> f64 {
        // A part has the layout of the whole.
        self.shards.parts()[0].fpr()
    }
}

impl<V: DeviceFunctionValue> ShardedStaticFunction<V> {
    /// Queues the lookup of words in a part.
    fn look_up(
        part: &StaticFunction<V>,
        stream: &Stream,
        words: DeviceSlice<'_, u64>,
        to: Replies,
    ) -> Result<(), Error> {
        let Some(found) = to.found else { return Ok(()) };
        // SAFETY: the callers' contract: there is a place per word, and memory outlives the stream's work.
        unsafe { part.queue(stream, KeySlice::hashes(words.global()), words.len(), found, to.values.cast()) }
    }
}

warpset_primitives::divided_values! {
    [V: DeviceFunctionValue] ShardedStaticFunction<V>, Error, "value", V, Self::look_up,
    [<Q: DeviceKeys + Sync>] Q, [<Q: Key>] Q,
    get_device get_async get_each_device get_bulk get_bulk_into
}

mod build;
#[cfg(test)]
mod tests;

pub use build::{ShardedBuilder, ShardedFunctionBuilder};

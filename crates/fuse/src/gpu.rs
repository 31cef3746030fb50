//! Binary fuse filters in device memory: the same words as on the host, built and queried by kernels.
//!
//! Methods on host slices bring keys to the device in chunks, copies and kernels side by side: integers and hashes
//! unchanged, other keys as hashes. Methods that end in `_device` take memory of the device; methods in `_async` also
//! take a stream, and wait for nothing. Single keys, files and views need a copy on the host: [`BinaryFuse::to_host`].

use std::marker::PhantomData;
use std::ops::Range;

use warpset_base::filter::{Filter, share_of_hashes};
use warpset_gpu::batch::Hashing;
use warpset_gpu::{Device, DeviceVec};
use warpset_kernels::fuse::graph::fuse_graph_assign;
use warpset_kernels::fuse::lookup::fuse_contains;
use warpset_kernels::fuse::shards::{fuse_shards_four, fuse_shards_three};
use warpset_simt::EntryOf;

use crate::image::{in_device_memory, measures};
use crate::width::Width;
use crate::{Error, Layout, cpu, view};

mod build;
mod builder;
mod function;
mod graph;
mod lookup;
mod sharded;
mod shards;

pub use builder::DeviceBuilder;
pub use function::{DeviceFunctionBuilder, DeviceFunctionValue, FunctionQuery, StaticFunction};
pub use sharded::{ShardedBinaryFuse, ShardedBuilder, ShardedFunctionBuilder, ShardedStaticFunction};
pub use warpset_gpu::batch::{DeviceKey, DeviceKeys, DeviceStrings, Stencil};
pub use warpset_primitives::DeviceFilter;

/// [`crate::BinaryFuse8`] in device memory.
pub type BinaryFuse8 = BinaryFuse<u8>;
/// [`crate::BinaryFuse16`] in device memory.
pub type BinaryFuse16 = BinaryFuse<u16>;
/// [`crate::BinaryFuse32`] in device memory.
pub type BinaryFuse32 = BinaryFuse<u32>;

/// A fingerprint on devices: `u8`, `u16` or `u32`. Sealed, as [`Width`] is.
pub trait DeviceWidth:
    Width
    + EntryOf<fuse_contains<Self>>
    + EntryOf<fuse_graph_assign<Self>>
    + EntryOf<fuse_shards_three<Self>>
    + EntryOf<fuse_shards_four<Self>>
{
}
impl DeviceWidth for u8 {}
impl DeviceWidth for u16 {}
impl DeviceWidth for u32 {}

/// Form of host keys on their way to a device: integers unchanged, other keys by XXH64.
const HASHING: Hashing = Hashing::word();
/// Hashes per lookup when a rate is measured.
const SAMPLES: u64 = 1 << 22;

/// [`crate::BinaryFuse`] in device memory.
///
/// ```
/// use warpset_fuse::{BinaryFuse8, Filter};
/// use warpset_gpu::Device;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let keys: Vec<u64> = (0..1000).collect();
/// let filter = BinaryFuse8::builder().for_build().on(&device).build_from(&keys)?;
/// assert_eq!(filter.count_contained_bulk(&keys)?, 1000);
///
/// let on_host = filter.to_host()?; // the same bytes as if it had been built there
/// assert!(on_host == BinaryFuse8::builder().for_build().build_from(&keys)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BinaryFuse<F> {
    layout: Layout,
    device: Device,
    /// Graphs whose slots and seeds the words have: all, but on several devices.
    graphs: Range<u64>,
    /// The words of a filter of this layout, or of these graphs of it.
    words: DeviceVec<u64>,
    of: PhantomData<F>,
}

impl<F: DeviceWidth> BinaryFuse<F> {
    /// Returns the rate of false positives to expect with `keys` keys: `2^-bits`, for any number of keys.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        view::expected_fpr::<F>(keys)
    }

    /// Returns the fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain: the same
    /// hashes as on the host.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> {
        share_of_hashes((samples, seed), SAMPLES, |hashes| self.count_contained_bulk(hashes))
    }
}

in_device_memory! { [F: DeviceWidth] BinaryFuse<F> of cpu::BinaryFuse<F> }
measures! { [F: DeviceWidth] BinaryFuse<F>; }

#[cfg(test)]
mod tests;

//! Bloom filters.

use warpset::bloom::{self, BlockedBuilder, RaoBuilder, SplitBlockBuilder};

use crate::capabilities::*;
#[cfg(feature = "gpu")]
use crate::device::Place;
use crate::error::Result;
use crate::object::Object;
use crate::options::{Options, with_settings};

/// Devices of a filter in parts.
#[cfg(feature = "gpu")]
macro_rules! on_several {
    () => {
        fn devices(&self) -> Result<warpset::gpu::Devices> {
            Ok(self.devices().clone())
        }
    };
}

/// The three kinds: in host memory, in mapped files and on devices.
macro_rules! bloom {
    ($($kind:ident, $mapped:ident, [$($intersects:ident)?] $($several:ty)?;)*) => {$(
        object! {
            bloom::$kind, $kind:
            sized, numbered(estimated_len, fpr), saved(bloom::gpu::$kind $(, $several)?), filter, grows
            $(, $intersects)?
        }
        object! { bloom::$mapped, $kind: sized, numbered(estimated_len, fpr), filter }
        #[cfg(feature = "gpu")]
        object! {
            bloom::gpu::$kind, $kind:
            sized, numbered(estimated_len, fpr), on_device, filter, grows, device_filter, device_grows $(, $intersects)?
        }
    )*};
}
bloom! {
    SplitBlockBloom, MappedSplitBlockBloom, [intersects] bloom::gpu::ShardedBloom;
    BlockedBloom, MappedBlockedBloom, [intersects];
    RaoBloom, MappedRaoBloom, [];
}

#[cfg(feature = "gpu")]
object! {
    bloom::gpu::ShardedBloom, SplitBlockBloom:
    sized, numbered(estimated_len, fpr), on_devices, on_several, filter, inserts
}

/// Builds what a builder describes in its place.
macro_rules! in_place {
    ($builder:expr, $options:expr) => {{
        let builder = $builder;
        match &$options.place {
            $crate::device::Place::Host => Ok(Box::new(builder.build()?) as Box<dyn Object>),
            #[cfg(feature = "gpu")]
            $crate::device::Place::On(devices) => Ok(Box::new(builder.on(devices.first()).build()?)),
        }
    }};
}
pub(crate) use in_place;

pub fn split_block(keys: u64, options: &Options) -> Result<Box<dyn Object>> {
    let builder = with_settings!(SplitBlockBuilder::new(keys), options; fpr = fpr, bits_per_key = bits_per_key);
    #[cfg(feature = "gpu")]
    if let Place::On(devices) = &options.place
        && devices.all().len() > 1
    {
        return Ok(Box::new(builder.sharded_on(devices).build()?));
    }
    in_place!(builder, options)
}

pub fn blocked(keys: u64, options: &Options) -> Result<Box<dyn Object>> {
    let builder = with_settings!(BlockedBuilder::new(keys), options;
        fpr = fpr, bits_per_key = bits_per_key, block_bits = block_bits, hashes = hashes, seed = seed);
    in_place!(builder, options)
}

pub fn rao(keys: u64, options: &Options) -> Result<Box<dyn Object>> {
    let builder = with_settings!(RaoBuilder::new(keys), options;
        fpr = fpr, bits_per_key = bits_per_key, hashes = hashes, seed = seed);
    in_place!(builder, options)
}

//! From a builder to a filter in device memory.

use warpset_gpu::Device;

use super::{Bloom, DeviceKeys, DeviceLayout, DeviceOneBlock};
use crate::{
    BlockedBuilder, BlockedLayout, Error, Insert, Key, Layout, RaoBuilder, RaoLayout, SplitBlockBuilder,
    SplitBlockLayout,
};

/// A builder of filters on a device: what `on` makes of a builder.
///
/// ```
/// use warpset_bloom::SplitBlockBloom;
/// use warpset_gpu::Device;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let filter = SplitBlockBloom::builder(100).fpr(0.001).on(&device).build_from(&[2u64, 3, 5, 7])?;
/// assert_eq!(filter.contains_bulk(&[5u64, 7])?, [true, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<L> {
    layout: Result<L, Error>,
    device: Device,
}

impl<L: DeviceLayout> Builder<L> {
    /// Checks every setting, then allocates: an empty filter.
    pub fn build(self) -> Result<Bloom<L>, Error> {
        Bloom::with_layout(&self.device, self.layout?)
    }

    /// Checks every setting, then makes a filter of these keys.
    pub fn build_from<K: Key>(self, keys: &[K]) -> Result<Bloom<L>, Error>
    where
        Bloom<L>: Insert<Error = Error>,
    {
        let mut filter = self.build()?;
        Insert::insert_bulk(&mut filter, keys)?;
        Ok(filter)
    }
}

impl<L: DeviceOneBlock> Builder<L> {
    /// Checks every setting, then makes a filter of keys on the device.
    pub fn build_from_device<K: DeviceKeys>(self, keys: K) -> Result<Bloom<L>, Error> {
        let mut filter = self.build()?;
        filter.insert_device(keys)?;
        Ok(filter)
    }
}

impl Builder<RaoLayout> {
    /// Checks every setting, then makes a filter of keys on the device.
    pub fn build_from_device<K: DeviceKeys>(self, keys: K) -> Result<Bloom<RaoLayout>, Error> {
        let mut filter = self.build()?;
        filter.insert_device(keys)?;
        Ok(filter)
    }
}

impl<L: Layout> crate::Builder<L> {
    /// The same for a filter in device memory.
    pub fn on(&self, device: &Device) -> Builder<L> {
        Builder { layout: Ok(*self.layout()), device: device.clone() }
    }
}

macro_rules! builds_on_devices {
    ($($builder:ty => $layout:ty;)*) => {$(
        impl $builder {
            /// The same for a filter in device memory.
            pub fn on(&self, device: &Device) -> Builder<$layout> {
                Builder { layout: self.layout(), device: device.clone() }
            }
        }
    )*};
}
builds_on_devices! {
    SplitBlockBuilder => SplitBlockLayout;
    BlockedBuilder => BlockedLayout;
    RaoBuilder => RaoLayout;
}

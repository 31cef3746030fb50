//! From a builder to a filter in device memory.

use warpset_gpu::Device;
use warpset_primitives::DeviceInsert;

use super::{Bloom, DeviceKeys, DeviceLayout};
use crate::{
    BlockedBuilder, BlockedLayout, Builder, Error, Insert, Key, Layout, RaoBuilder, RaoLayout, SplitBlockBuilder,
    SplitBlockLayout,
};

/// Builder of filters in host memory, by the parameters that follow from its settings. Sealed.
#[doc(hidden)]
pub trait Settings: Clone {
    /// The parameters' type.
    type Layout: Layout;

    /// Returns the parameters.
    ///
    /// # Errors
    /// The first setting that no filter has, or settings that no filter has together.
    fn layout(&self) -> Result<Self::Layout, Error>;
}

/// A builder of filters on a device, from a builder's `on`.
///
/// ```
/// use warpset_bloom::{Filter, SplitBlockBloom};
/// use warpset_gpu::Device;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let filter = SplitBlockBloom::builder(100).fpr(0.001).on(&device).build_from(&[2u64, 3, 5, 7])?;
/// assert_eq!(filter.contains_bulk(&[5u64, 7])?, [true, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceBuilder<S> {
    settings: S,
    device: Device,
}

impl<S: Settings<Layout: DeviceLayout>> DeviceBuilder<S> {
    /// Checks every setting, then allocates: an empty filter.
    ///
    /// # Errors
    /// The first setting that no filter has; [`Error::Gpu`].
    pub fn build(&self) -> Result<Bloom<S::Layout>, Error> {
        Bloom::with_layout(&self.device, self.settings.layout()?)
    }

    /// Checks every setting, then makes a filter of these keys.
    ///
    /// # Errors
    /// The first setting that no filter has, and those of `insert_bulk`.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<Bloom<S::Layout>, Error>
    where
        Bloom<S::Layout>: Insert<Error = Error>,
    {
        let mut filter = self.build()?;
        Insert::insert_bulk(&mut filter, keys)?;
        Ok(filter)
    }

    /// Checks every setting, then makes a filter of keys on the device.
    ///
    /// # Errors
    /// The first setting that no filter has, and those of `insert_device`.
    pub fn build_from_device<K: DeviceKeys>(&self, keys: K) -> Result<Bloom<S::Layout>, Error>
    where
        Bloom<S::Layout>: DeviceInsert<Error = Error>,
    {
        let mut filter = self.build()?;
        DeviceInsert::insert_device(&mut filter, keys)?;
        Ok(filter)
    }
}

macro_rules! builds_on_devices {
    ($([$($generics:tt)*] $builder:ty => $layout:ty, |$settings:ident| $made:expr;)*) => {$(
        impl<$($generics)*> Settings for $builder {
            type Layout = $layout;

            fn layout(&self) -> Result<$layout, Error> {
                let $settings = self;
                $made
            }
        }

        impl<$($generics)*> $builder {
            /// Returns a builder with these settings of filters in device memory.
            pub fn on(&self, device: &Device) -> DeviceBuilder<$builder> {
                DeviceBuilder { settings: self.clone(), device: device.clone() }
            }
        }
    )*};
}
builds_on_devices! {
    [] SplitBlockBuilder => SplitBlockLayout, |builder| builder.layout();
    [] BlockedBuilder => BlockedLayout, |builder| builder.layout();
    [] RaoBuilder => RaoLayout, |builder| builder.layout();
    [L: Layout] Builder<L> => L, |builder| Ok(*builder.layout());
}

//! The same settings for filters in device memory.

use std::fmt;

use warpset_gpu::Device;

use crate::gpu::{DeviceKeys, DeviceSlotKind, QuotientFilter};
use crate::slot_kind::SlotKind;
use crate::{Builder, Error, Key, Layout};

/// A [`Builder`] of filters on a device: made by [`Builder::on`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceBuilder<S> {
    settings: Builder<S>,
    device: Device,
}

impl<S: DeviceSlotKind> Builder<S> {
    /// The same settings for a filter in device memory.
    pub fn on(&self, device: &Device) -> DeviceBuilder<S> {
        DeviceBuilder { settings: *self, device: device.clone() }
    }
}

impl<S: DeviceSlotKind> DeviceBuilder<S> {
    /// Checks every setting.
    pub fn layout(&self) -> Result<Layout, Error> {
        let layout = self.settings.layout()?;
        if layout.is_counted() {
            return Err(Error::CountersOnDevice);
        }
        if layout.exact {
            return Err(Error::ExactOnDevice);
        }
        Ok(layout)
    }

    /// An empty filter. Checks every setting, then allocates.
    pub fn build(&self) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::with_layout(&self.device, self.layout()?)
    }

    /// A filter of these keys, built at once: hashed, sorted, laid out.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<QuotientFilter<S>, Error> {
        self.build_from_with(keys, S::BuildMethod::default())
    }

    /// [`DeviceBuilder::build_from`] by a method of choice; all give the same bytes.
    pub fn build_from_with<K: Key>(&self, keys: &[K], method: S::BuildMethod) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_keys(&self.device, self.layout()?, keys, method)
    }

    /// [`DeviceBuilder::build_from`] for keys on the device.
    pub fn build_from_device<K: DeviceKeys>(&self, keys: K) -> Result<QuotientFilter<S>, Error> {
        self.build_from_device_with(keys, S::BuildMethod::default())
    }

    /// [`DeviceBuilder::build_from_device`] by a method of choice; all give the same bytes.
    pub fn build_from_device_with<K: DeviceKeys>(
        &self,
        keys: K,
        method: S::BuildMethod,
    ) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_device_keys(&self.device, self.layout()?, keys, method)
    }

    /// A filter of these fingerprints, in any order.
    pub fn build_from_fingerprints(&self, fingerprints: &[u64]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_fingerprints(&self.device, self.layout()?, fingerprints)
    }
}

impl<S: SlotKind> fmt::Debug for DeviceBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuilder").field("settings", &self.settings).field("device", &self.device).finish()
    }
}

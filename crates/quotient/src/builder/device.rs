//! The same settings for filters in device memory.

use std::fmt;

use warpset_gpu::{Device, DeviceSlice};

use crate::slot_kind::SlotKind;
use crate::standard::Standard;
use crate::{BuildMethod, Builder, Error, Key, Layout, gpu};

/// A [`Builder`] of filters on a device: made by [`Builder::on`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceBuilder<S> {
    settings: Builder<S>,
    device: Device,
}

impl DeviceBuilder<Standard> {
    pub(super) fn new(settings: Builder<Standard>, device: &Device) -> DeviceBuilder<Standard> {
        DeviceBuilder { settings, device: device.clone() }
    }

    /// Checks every setting.
    pub fn layout(&self) -> Result<Layout, Error> {
        self.settings.layout()
    }

    /// An empty filter. Checks every setting, then allocates.
    pub fn build(&self) -> Result<gpu::StandardQuotientFilter, Error> {
        gpu::StandardQuotientFilter::with_layout(&self.device, self.layout()?)
    }

    /// A filter of these keys, built at once: hashed, sorted, laid out.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<gpu::StandardQuotientFilter, Error> {
        self.build_from_with(keys, BuildMethod::default())
    }

    /// [`DeviceBuilder::build_from`] by a method of choice; all give the same bytes.
    pub fn build_from_with<K: Key>(
        &self,
        keys: &[K],
        method: BuildMethod,
    ) -> Result<gpu::StandardQuotientFilter, Error> {
        gpu::StandardQuotientFilter::from_keys(&self.device, self.layout()?, keys, method)
    }

    /// [`DeviceBuilder::build_from`] for keys on the device.
    pub fn build_from_device<K: gpu::DeviceKey>(
        &self,
        keys: DeviceSlice<'_, K>,
    ) -> Result<gpu::StandardQuotientFilter, Error> {
        self.build_from_device_with(keys, BuildMethod::default())
    }

    /// [`DeviceBuilder::build_from_device`] by a method of choice; all give the same bytes.
    pub fn build_from_device_with<K: gpu::DeviceKey>(
        &self,
        keys: DeviceSlice<'_, K>,
        method: BuildMethod,
    ) -> Result<gpu::StandardQuotientFilter, Error> {
        gpu::StandardQuotientFilter::from_device_keys(&self.device, self.layout()?, keys, method)
    }

    /// A filter of these fingerprints, in any order.
    pub fn build_from_fingerprints(&self, fingerprints: &[u64]) -> Result<gpu::StandardQuotientFilter, Error> {
        gpu::StandardQuotientFilter::from_fingerprints(&self.device, self.layout()?, fingerprints)
    }
}

impl<S: SlotKind> fmt::Debug for DeviceBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuilder").field("settings", &self.settings).field("device", &self.device).finish()
    }
}

//! Builders of filters in device memory.

use std::fmt;

use warpset_gpu::Device;

use super::build::{DeviceSource, HostSource, Source, build};
use super::{BinaryFuse, DeviceKeys, DeviceWidth};
use crate::width::Width;
use crate::{Builder, Error, Key, Layout};

/// A [`Builder`] of filters on a device: made by [`Builder::on`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct DeviceBuilder<F> {
    settings: Builder<F>,
    device: Device,
}

impl<F: DeviceWidth> Builder<F> {
    /// Returns a builder with these settings of a filter in device memory.
    pub fn on(&self, device: &Device) -> DeviceBuilder<F> {
        DeviceBuilder { settings: *self, device: device.clone() }
    }
}

impl<F: DeviceWidth> DeviceBuilder<F> {
    /// Returns the parameters for `keys` different keys.
    ///
    /// # Errors
    /// The errors of [`Builder::layout`].
    pub fn layout(&self, keys: u64) -> Result<Layout, Error> {
        self.settings.layout(keys)
    }

    /// Returns a filter of these keys, with the same bytes as on the host; equal keys count once. Integers and hashes
    /// cross the bus as they are, of other keys the hashes, once per attempt.
    ///
    /// Memory of the device for a time: 16 bytes per key sharded, 22 for one graph.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<BinaryFuse<F>, Error> {
        self.build(&HostSource(keys))
    }

    /// Builds a filter of keys on the device; see [`DeviceBuilder::build_from`].
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from`]; [`Error::Gpu`] for memory of another device.
    pub fn build_from_device<K: DeviceKeys>(&self, keys: K) -> Result<BinaryFuse<F>, Error> {
        if keys.count() > 0 {
            self.device.expect_same(keys.device(), "building a binary fuse filter")?;
            self.device.synchronize()?;
        }
        self.build(&DeviceSource(keys))
    }

    fn build(&self, source: &impl Source) -> Result<BinaryFuse<F>, Error> {
        let (layout, words) = build::<F>(&self.device, &self.settings.settings()?, source, None)?;
        Ok(BinaryFuse::from_parts(&self.device, layout, words))
    }
}

impl<F: Width> fmt::Debug for DeviceBuilder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuilder").field("settings", &self.settings).field("device", &self.device).finish()
    }
}

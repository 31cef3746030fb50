//! Builders of functions in device memory.

use warpset_base::key::Key;
use warpset_gpu::Device;
use warpset_gpu::batch::DeviceKeys128;

use super::RecSplit;
use super::build::Construction;
use super::source::{HostKeys, KeysThere, Source};
use super::watch::{Stages, Watch};
use crate::Error;
use crate::build::Settings;

/// Settings for building on a device: made by [`Builder::on`](crate::Builder::on). The words are those that the host's builder makes
/// of the same keys and settings.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_recsplit::RecSplit;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let keys: Vec<u64> = (0..1_000).map(|i| i * i).collect();
/// let settings = RecSplit::builder().leaf_size(5).bucket_size(50);
/// let function = settings.on(&device).build_from(&keys)?;
/// assert!(function.to_host()? == settings.build_from(&keys)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct Builder<S = crate::RecSplit> {
    pub(super) settings: crate::Builder<S>,
    pub(super) device: Device,
}

impl<S> crate::Builder<S> {
    /// The same for a structure in device memory. [`Builder::threads`](crate::Builder::threads) and
    /// [`Builder::simd`](crate::Builder::simd) mean nothing there.
    pub fn on(&self, device: &Device) -> Builder<S>
    where
        Self: Clone,
    {
        Builder { settings: self.clone(), device: device.clone() }
    }
}

/// The function of `keys`, not empty, built on `device`, in host memory.
pub(crate) fn build_from_slice<S, K: Key>(
    device: &Device,
    settings: Settings,
    builder: &crate::Builder<S>,
    keys: &[K],
) -> Result<crate::RecSplit, Error> {
    // Work that the caller queued on other streams comes first.
    device.synchronize()?;
    Construction { device, settings, builder, watch: None }.build(&HostKeys { device, keys })?.to_host()
}

impl<S> Builder<S> {
    /// The function of keys that are somewhere.
    pub(super) fn function(&self, keys: &impl Source, watch: Option<&Watch>) -> Result<RecSplit, Error> {
        let settings = self.settings.settings()?;
        if keys.len() == 0 {
            return self.settings.function_from::<u64>(&[])?.to_device(&self.device);
        }
        Construction { device: &self.device, settings, builder: &self.settings, watch }.build(keys)
    }
}

impl Builder<crate::RecSplit> {
    /// Builds the function of `keys`, which must be distinct. Integers cross the bus as they are, of other keys the hashes.
    ///
    /// Takes 44 bytes of device memory per key, or what there is: then the keys come several times, each time for some of the
    /// buckets.
    ///
    /// # Errors
    /// Those of [`Builder::build_from`](crate::Builder::build_from); [`Error::Gpu`].
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<RecSplit, Error> {
        // Work that the caller queued on other streams comes first.
        self.device.synchronize()?;
        self.function(&HostKeys { device: &self.device, keys }, None)
    }

    /// Builds the function of keys on the device, which must be distinct.
    ///
    /// # Errors
    /// As for [`Builder::build_from`]; [`warpset_gpu::GpuError::OtherDevice`].
    pub fn build_from_device(&self, keys: impl DeviceKeys128) -> Result<RecSplit, Error> {
        self.device.expect_same(keys.device(), "building a function")?;
        self.device.synchronize()?;
        self.function(&KeysThere(keys), None)
    }

    /// The same, and the seconds of each stage by the device's clock: for the bench.
    #[doc(hidden)]
    pub fn build_timed_device(&self, keys: impl DeviceKeys128) -> Result<(RecSplit, Stages), Error> {
        self.device.expect_same(keys.device(), "building a function")?;
        self.device.synchronize()?;
        let watch = Watch::default();
        let function = self.function(&KeysThere(keys), Some(&watch))?;
        Ok((function, watch.seconds()?))
    }
}

//! Builders of functions in device memory.

use warpset_base::key::Key;
use warpset_gpu::batch::DeviceKeys128;
use warpset_gpu::{Device, Devices};

use super::build::Construction;
use super::source::{HostKeys, KeysThere, Source};
use super::watch::{Stages, Watch};
use super::{RecSplit, Strategy};
use crate::Error;
use crate::build::Settings;

/// Settings for building on a device or several: made by [`Builder::on`](crate::Builder::on) and
/// [`Builder::on_each`](crate::Builder::on_each). The words are those that the host's builder makes
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
    pub(super) devices: Devices,
    strategy: Strategy,
}

impl<S> crate::Builder<S> {
    /// The same for a structure in device memory. [`Builder::threads`](crate::Builder::threads) and
    /// [`Builder::simd`](crate::Builder::simd) mean nothing there.
    pub fn on(&self, device: &Device) -> Builder<S>
    where
        Self: Clone,
    {
        self.on_each(&Devices::from(device))
    }

    /// The same for a structure in the memory of the first of several devices, which share the work: each finds the trees of as many
    /// buckets as the others. The words are the same, whatever the devices.
    ///
    /// ```
    /// use warpset_gpu::{Device, Devices};
    /// use warpset_recsplit::RecSplit;
    ///
    /// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
    /// let keys: Vec<u64> = (0..1_000).map(|i| i * i).collect();
    /// let settings = RecSplit::builder().leaf_size(5).bucket_size(50);
    /// let function = settings.on_each(&devices).build_from(&keys)?;
    /// assert_eq!(function.device(), devices.first());
    /// assert!(function.to_host()? == settings.build_from(&keys)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_each(&self, devices: &Devices) -> Builder<S>
    where
        Self: Clone,
    {
        Builder { settings: self.clone(), devices: devices.clone(), strategy: Strategy::default() }
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
    let (devices, strategy) = (&device.into(), Strategy::default());
    Construction { devices, settings, builder, strategy, watch: None }.build(&HostKeys(keys))?.to_host()
}

impl<S> Builder<S> {
    /// In which order the trees of buckets are searched, for comparison: the function is the same. Default: [`Strategy::AllBuckets`].
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The function of keys that are somewhere.
    pub(super) fn function(&self, keys: &impl Source, watch: Option<&Watch>) -> Result<RecSplit, Error> {
        let settings = self.settings.settings()?;
        if keys.len() == 0 {
            return self.settings.function_from::<u64>(&[])?.to_device(self.devices.first());
        }
        // Work that the caller queued on other streams comes first.
        self.devices.all().iter().try_for_each(Device::synchronize)?;
        let (devices, builder, strategy) = (&self.devices, &self.settings, self.strategy);
        Construction { devices, settings, builder, strategy, watch }.build(keys)
    }

    /// An error unless the keys are on one of the devices.
    pub(super) fn expect_among(&self, keys: &impl DeviceKeys128, operation: &'static str) -> Result<(), Error> {
        let (devices, there) = (self.devices.all(), keys.device());
        if devices.contains(there) { Ok(()) } else { Ok(self.devices.first().expect_same(there, operation)?) }
    }
}

impl Builder<crate::RecSplit> {
    /// Builds the function of `keys`, which must be distinct. Integers cross the bus as they are, of other keys the hashes.
    ///
    /// Takes 44 bytes of device memory per key, 68 of several devices, or what there is: then the keys come several times, each time for
    /// some of the buckets.
    ///
    /// # Errors
    /// Those of [`Builder::build_from`](crate::Builder::build_from); [`Error::Gpu`].
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<RecSplit, Error> {
        self.function(&HostKeys(keys), None)
    }

    /// Builds the function of keys on the device, or on one of several, which must be distinct. That one hashes them, and the others get the
    /// hashes of their buckets.
    ///
    /// # Errors
    /// As for [`Builder::build_from`]; [`warpset_gpu::GpuError::OtherDevice`].
    pub fn build_from_device(&self, keys: impl DeviceKeys128) -> Result<RecSplit, Error> {
        self.expect_among(&keys, "building a function")?;
        self.function(&KeysThere(keys), None)
    }

    /// The same, and the seconds of each stage by the clock of the first device: for the bench.
    #[doc(hidden)]
    pub fn build_timed_device(&self, keys: impl DeviceKeys128) -> Result<(RecSplit, Stages), Error> {
        self.expect_among(&keys, "building a function")?;
        let watch = Watch::default();
        let function = self.function(&KeysThere(keys), Some(&watch))?;
        Ok((function, watch.seconds()?))
    }
}

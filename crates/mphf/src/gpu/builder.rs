//! Builders of functions in device memory.

use warpset_base::key::Key;
use warpset_gpu::batch::DeviceKeys128;
use warpset_gpu::{Backend, Device, Devices};

use super::build::Construction;
use super::source::{HostKeys, KeysOnDevice, Source};
use super::stage_timer::{StageTimer, Stages};
use super::{DeviceHashKind, PerfectHash};
use crate::build::Settings;
use crate::{Builder, Error, RecSplitKind};

/// Settings for building on a device or several: made by [`Builder::on`](crate::Builder::on) and
/// [`Builder::on_each`](crate::Builder::on_each). The words equal those of the host's builder for the same keys and
/// settings.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_mphf::RecSplit;
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
pub struct DeviceBuilder<M: DeviceHashKind = RecSplitKind, S = crate::PerfectHash<M>> {
    pub(super) settings: Builder<M, S>,
    pub(super) devices: Devices,
    options: M::DeviceOptions,
}

impl<M: DeviceHashKind, S> Builder<M, S> {
    /// Builds with these settings a structure in device memory. [`Builder::threads`](crate::Builder::threads) and
    /// [`Builder::simd`](crate::Builder::simd) have no effect there.
    pub fn on(&self, device: &Device) -> DeviceBuilder<M, S>
    where
        Self: Clone,
    {
        self.on_each(&Devices::from(device))
    }

    /// Builds with these settings a structure in the memory of the first of several devices. They share the work: each
    /// finds the codes of an equal share of the buckets. The words are the same for any devices.
    ///
    /// ```
    /// use warpset_gpu::{Device, Devices};
    /// use warpset_mphf::RecSplit;
    ///
    /// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
    /// let keys: Vec<u64> = (0..1_000).map(|i| i * i).collect();
    /// let settings = RecSplit::builder().leaf_size(5).bucket_size(50);
    /// let function = settings.on_each(&devices).build_from(&keys)?;
    /// assert_eq!(function.device(), devices.first());
    /// assert!(function.to_host()? == settings.build_from(&keys)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_each(&self, devices: &Devices) -> DeviceBuilder<M, S>
    where
        Self: Clone,
    {
        DeviceBuilder { settings: self.clone(), devices: devices.clone(), options: Default::default() }
    }
}

/// Settings for building from keys in host memory, on the device or the host, whichever is predicted to take less time:
/// made by [`Builder::backend`](crate::Builder::backend). The result is in host memory.
///
/// Programs that do not call that function link no kernels.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct BackendBuilder<M: DeviceHashKind = RecSplitKind, S = crate::PerfectHash<M>> {
    pub(super) settings: Builder<M, S>,
    device: Option<Device>,
}

impl<M: DeviceHashKind, S> Builder<M, S> {
    /// Builds with these settings on the backend's device if that is predicted to take less time than the threads of
    /// the host ([`Estimate::device_pays`](crate::Estimate::device_pays)), and copies the result back; the words are
    /// the same. If the device fails, for example for lack of memory, the host builds. [`Builder::on`] always uses the
    /// device.
    ///
    /// ```
    /// use warpset_gpu::Backend;
    /// use warpset_mphf::RecSplit;
    ///
    /// let keys: Vec<u64> = (0..1000).collect();
    /// let function = RecSplit::builder().backend(&Backend::auto()).build_from(&keys)?;
    /// assert_eq!(function.len(), 1000);
    /// # Ok::<(), warpset_mphf::Error>(())
    /// ```
    pub fn backend(&self, backend: &Backend) -> BackendBuilder<M, S>
    where
        Self: Clone,
    {
        BackendBuilder { settings: self.clone(), device: backend.device().cloned() }
    }
}

impl<M: DeviceHashKind, S> BackendBuilder<M, S> {
    /// Builds the function of `keys` where that is predicted to take the least time.
    fn function_from<K: Key>(&self, keys: &[K]) -> Result<crate::PerfectHash<M>, Error> {
        let (settings, n) = (self.settings.settings()?, keys.len() as u64);
        let pays = || M::estimate(&settings.code, settings.bucket_size).device_pays(n, self.settings.threads_for(n));
        match self.device.as_ref().filter(|_| n > 0 && pays()) {
            Some(device) => build_there_or_here(device, settings, &self.settings, keys),
            None => self.settings.function_from(keys),
        }
    }
}

impl<M: DeviceHashKind> BackendBuilder<M> {
    /// Builds the function of `keys`, which must be distinct.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`](crate::Builder::build_from).
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<crate::PerfectHash<M>, Error> {
        self.function_from(keys)
    }
}

impl<M: DeviceHashKind> BackendBuilder<M, crate::StaticFilter<M>> {
    /// Builds the filter of `keys`, which must be distinct; the host writes its fingerprints.
    ///
    /// # Errors
    /// The errors of the host's builder.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<crate::StaticFilter<M>, Error> {
        self.settings.filter_of(keys, |_| self.function_from(keys))
    }
}

/// Builds the function of `keys`, not empty, on the device, or on the host if that fails.
pub(super) fn build_there_or_here<M: DeviceHashKind, S, K: Key>(
    device: &Device,
    settings: Settings<M>,
    builder: &Builder<M, S>,
    keys: &[K],
) -> Result<crate::PerfectHash<M>, Error> {
    match build_from_slice(device, settings, builder, keys) {
        Err(Error::Gpu(_) | Error::Primitive(_)) => builder.function_from(keys),
        built => built,
    }
}

/// Builds the function of `keys`, not empty, on `device`, and copies it to host memory.
pub(super) fn build_from_slice<M: DeviceHashKind, S, K: Key>(
    device: &Device,
    settings: Settings<M>,
    builder: &Builder<M, S>,
    keys: &[K],
) -> Result<crate::PerfectHash<M>, Error> {
    // Waits for work that the caller queued on other streams.
    device.synchronize()?;
    let construction =
        Construction { devices: &device.into(), settings, builder, options: Default::default(), timer: None };
    construction.build(&HostKeys(keys))?.to_host()
}

impl<S> DeviceBuilder<RecSplitKind, S> {
    /// Sets the order in which the trees of buckets are searched; the function is the same. For methods of other
    /// crates. Default: [`Strategy::AllBuckets`](super::Strategy::AllBuckets).
    #[doc(hidden)]
    pub fn strategy(mut self, strategy: super::Strategy) -> Self {
        self.options = strategy;
        self
    }
}

impl<M: DeviceHashKind, S> DeviceBuilder<M, S> {
    /// Builds the function of keys from any source.
    pub(super) fn function(&self, keys: &impl Source) -> Result<PerfectHash<M>, Error> {
        let construction = Construction {
            devices: &self.devices,
            settings: self.settings.settings()?,
            builder: &self.settings,
            options: self.options,
            timer: None,
        };
        self.run(construction, keys)
    }

    fn run(&self, construction: Construction<'_, M, S>, keys: &impl Source) -> Result<PerfectHash<M>, Error> {
        if keys.len() == 0 {
            return self.settings.function_from::<u64>(&[])?.to_device(self.devices.first());
        }
        // Waits for work that the caller queued on other streams.
        self.devices.all().iter().try_for_each(Device::synchronize)?;
        construction.build(keys)
    }

    /// Fails unless the keys are on one of the devices.
    pub(super) fn expect_among(&self, keys: &impl DeviceKeys128, operation: &'static str) -> Result<(), Error> {
        let (devices, there) = (self.devices.all(), keys.device());
        if devices.contains(there) { Ok(()) } else { Ok(self.devices.first().expect_same(there, operation)?) }
    }
}

impl<M: DeviceHashKind> DeviceBuilder<M> {
    /// Builds the function of `keys`, which must be distinct. Integers cross the bus unchanged, other keys as hashes.
    ///
    /// Takes 44 bytes of device memory per key, 68 on several devices. With less memory the keys cross the bus several
    /// times, each time for some of the buckets.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`](crate::Builder::build_from); [`Error::Gpu`].
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<PerfectHash<M>, Error> {
        self.function(&HostKeys(keys))
    }

    /// Builds the function of keys on the device, or on one of several, which must be distinct. That device hashes
    /// them, and the others get the hashes of their buckets.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from`]; [`warpset_gpu::GpuError::OtherDevice`].
    pub fn build_from_device(&self, keys: impl DeviceKeys128) -> Result<PerfectHash<M>, Error> {
        self.expect_among(&keys, "building a function")?;
        self.function(&KeysOnDevice(keys))
    }

    /// Runs [`build_from_device`](Self::build_from_device), and returns the seconds of each stage by the clock of the
    /// first device: for the bench.
    ///
    /// # Errors
    /// The errors of [`build_from_device`](Self::build_from_device).
    #[doc(hidden)]
    pub fn build_timed_device(&self, keys: impl DeviceKeys128) -> Result<(PerfectHash<M>, Stages), Error> {
        self.expect_among(&keys, "building a function")?;
        let timer = StageTimer::default();
        let construction = Construction {
            devices: &self.devices,
            settings: self.settings.settings()?,
            builder: &self.settings,
            options: self.options,
            timer: Some(&timer),
        };
        let function = self.run(construction, &KeysOnDevice(keys))?;
        Ok((function, timer.seconds()?))
    }
}

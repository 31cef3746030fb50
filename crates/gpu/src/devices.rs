//! Several devices that work together.

use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::workers::on_threads;

/// Different devices of one kind, at least one, between which memory can be copied: the argument of operations on
/// several devices. The results are on the first one.
///
/// ```
/// use warpset_gpu::{Device, Devices};
///
/// let both = [Device::emulator(Default::default()), Device::emulator(Default::default())];
/// let devices = Devices::new(both)?; // or `Devices::cuda_all()?`
/// assert_eq!(devices.each(|place, device| (place, device == &devices.all()[place])), [(0, true), (1, true)]);
/// # Ok::<(), warpset_gpu::GpuError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(Vec<Device>);

impl Devices {
    /// Bundles these devices. CUDA devices that can access each other's memory get that access, so that copies between
    /// them need not go through the host.
    ///
    /// # Errors
    /// [`GpuError::EmptyDeviceList`], [`GpuError::SameDeviceTwice`]; [`GpuError::OtherDevice`] if some are emulated and
    /// others are not.
    pub fn new(devices: impl IntoIterator<Item = Device>) -> Result<Self> {
        let devices: Vec<Device> = devices.into_iter().collect();
        let Some((first, others)) = devices.split_first() else { return Err(GpuError::EmptyDeviceList) };
        for (before, device) in others.iter().enumerate() {
            if devices[..=before].contains(device) {
                return Err(GpuError::SameDeviceTwice { device: device.to_string() });
            }
            if device.is_emulator() != first.is_emulator() {
                first.expect_same(device, "work on several devices")?;
            }
        }
        for device in &devices {
            devices.iter().filter(|other| *other != device).for_each(|other| device.open_memory_to(other));
        }
        Ok(Self(devices))
    }

    /// Opens every CUDA device that can run our kernels, in the order of their ordinals.
    ///
    /// # Errors
    /// Why there is none.
    pub fn cuda_all() -> Result<Self> {
        Self::new(Device::cuda_all()?)
    }

    /// Returns the devices in the order in which they were given.
    pub fn all(&self) -> &[Device] {
        &self.0
    }

    /// Returns the first device.
    pub fn first(&self) -> &Device {
        &self.0[0]
    }

    /// Returns the first `count` devices, at least one.
    #[must_use]
    pub fn at_most(&self, count: usize) -> Self {
        Self(self.0[..count.clamp(1, self.0.len())].to_vec())
    }

    /// Runs `work` for each device, with its place in the list: for the first one on this thread, and for each other on
    /// a thread of its own. Returns the results in the order of the list. A panic comes through after all have ended. A
    /// thread of a rayon pool does the pool's work while it waits for the others, which may wait for that work.
    pub fn each<R: Send>(&self, work: impl Fn(usize, &Device) -> R + Sync) -> Vec<R> {
        on_threads(self.0.len(), |place| work(place, &self.0[place]))
    }
}

impl From<&Device> for Devices {
    fn from(device: &Device) -> Self {
        Self(vec![device.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cuda, fail_each};

    fn emulators(count: usize) -> Vec<Device> {
        (0..count).map(|_| Device::emulator(Default::default())).collect()
    }

    #[test]
    fn lists_have_different_devices_of_one_kind() {
        assert!(matches!(Devices::new([]), Err(GpuError::EmptyDeviceList)));
        let [one, other] = emulators(2).try_into().unwrap();
        let twice = Devices::new([one.clone(), other.clone(), one.clone()]);
        assert!(matches!(twice, Err(GpuError::SameDeviceTwice { .. })), "{twice:?}");
        if let Some(cuda) = cuda() {
            let mixed = Devices::new([one.clone(), cuda]);
            assert!(matches!(mixed, Err(GpuError::OtherDevice { .. })), "{mixed:?}");
        }
        let devices = Devices::new([one.clone(), other.clone()]).unwrap();
        assert_eq!((devices.first(), devices.all()), (&one, &[one.clone(), other][..]));
        assert_eq!(devices.at_most(0), Devices::from(&one));
        assert_eq!(devices.at_most(9), devices);
    }

    #[test]
    fn each_device_has_its_worker_and_memory_is_copied_between_them() {
        let mut several = vec![Devices::new(emulators(3)).unwrap()];
        several.extend(cuda().map(|_| Devices::cuda_all().unwrap()));
        for devices in several {
            let parts = devices.each(|place, device| device.from_slice(&[place as u32; 1000]).unwrap());
            let stream = devices.first().new_stream().unwrap();
            let mut all = devices.first().alloc_uninit::<u32>(1000 * parts.len()).unwrap();
            for (place, part) in parts.iter().enumerate() {
                stream.copy(all.slice_mut(place * 1000..(place + 1) * 1000), part).unwrap();
            }
            stream.synchronize().unwrap();
            assert!(all.to_vec().unwrap().chunks(1000).zip(0..).all(|(part, place)| part == [place; 1000]));
        }
    }

    #[test]
    fn faults_strike_on_every_worker() {
        let devices = Devices::new(emulators(2)).unwrap();
        let allocate = |_: &mut [usize; 2]| {
            let results = devices.each(|place, device| device.alloc_zeroed::<u8>(1).map_err(|_| place));
            results.into_iter().collect::<Result<Vec<_>, usize>>()
        };
        let mut failed = [0; 2];
        let count = |failed: &mut [usize; 2], result: Result<Vec<_>, usize>| {
            if let Err(place) = result {
                failed[place] += 1;
            }
        };
        assert_eq!(fail_each(&mut failed, allocate, count), 2);
        assert_eq!(failed.iter().sum::<usize>(), 2);
    }

    /// Checks that no deadlock occurs when every thread of the pool waits for workers that use the pool.
    #[test]
    fn workers_may_use_the_pool_that_waits_for_them() {
        let devices = Devices::new(emulators(3)).unwrap();
        let wants_the_pool = |place: usize, _: &Device| {
            let (left, right) = rayon::join(|| place, || 1);
            left + right
        };
        let sums = rayon::broadcast(|_| devices.each(wants_the_pool));
        assert!(sums.iter().all(|sums| sums[..] == [1, 2, 3]));
    }

    #[test]
    #[should_panic(expected = "worker 1")]
    fn a_panic_comes_through() {
        Devices::new(emulators(2)).unwrap().each(|place, _| assert_eq!(place, 0, "worker {place}"));
    }
}

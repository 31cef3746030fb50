//! Settings of dictionaries.

use std::marker::PhantomData;

use warpset_gpu::{Device, DeviceSlice};

use crate::cpu::{self, Lsm, SortedArray};
use crate::form::{Array, Form, Tree};
use crate::gpu::{self, DeviceKey, DeviceValue};
use crate::{Error, OrderedKey, Value};

/// [`Builder::batch_size`] unless set.
pub const DEFAULT_BATCH_SIZE: u64 = 1 << 16;
const BATCH_SIZES: std::ops::RangeInclusive<u64> = 64..=1 << 40;

/// When a dictionary drops tombstones and stale elements by itself, at the end of an update.
///
/// Which elements are stale is not known until they are dropped, so the automatic policies count what came since the last
/// cleanup: every such element may have made an older one stale, or be stale.
///
/// A cleanup that is due and finds no memory is put off: the update has been done, and the next one tries again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CleanupPolicy {
    /// Never; call `cleanup`.
    Manual,
    /// When the elements that came since the last cleanup are more than this share of all, and there are at least four batches.
    /// With 0.5, memory is at most about twice what the live elements take, and a stream of insertions is cleaned up
    /// whenever it has doubled, which costs about two merges per element in all.
    StaleShare(f64),
    /// After this many updates, of whatever size.
    EveryBatches(u64),
}

impl Default for CleanupPolicy {
    fn default() -> Self {
        CleanupPolicy::StaleShare(0.5)
    }
}

/// What a builder of log-structured merge trees has been told, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub batch_size: u64,
    pub cleanup: CleanupPolicy,
}

impl Settings {
    pub fn check(self) -> Result<Settings, Error> {
        let Settings { batch_size, cleanup } = self;
        if !batch_size.is_power_of_two() || !BATCH_SIZES.contains(&batch_size) {
            return Err(Error::InvalidBatchSize { batch_size });
        }
        match cleanup {
            CleanupPolicy::StaleShare(share) if !(share > 0.0 && share < 1.0) => {
                Err(Error::InvalidStaleShare { share })
            }
            CleanupPolicy::EveryBatches(0) => Err(Error::NoBatches),
            _ => Ok(self),
        }
    }

    /// Whether a cleanup is due with this many elements, of which this many were there at the last one, after this many
    /// updates since.
    pub fn is_due(&self, resident: u64, live_at_cleanup: u64, updates: u64) -> bool {
        match self.cleanup {
            CleanupPolicy::Manual => false,
            CleanupPolicy::StaleShare(share) => {
                let new = resident.saturating_sub(live_at_cleanup);
                resident >= self.batch_size.saturating_mul(4) && new as f64 > share * resident as f64
            }
            CleanupPolicy::EveryBatches(every) => updates >= every,
        }
    }
}

/// Settings of an [`Lsm`]; each setter states its default.
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<K, V> {
    pub(crate) settings: Settings,
    elements: PhantomData<(K, V)>,
}

impl<K: OrderedKey, V: Value> Default for Builder<K, V> {
    fn default() -> Self {
        let settings = Settings { batch_size: DEFAULT_BATCH_SIZE, cleanup: CleanupPolicy::default() };
        Builder { settings, elements: PhantomData }
    }
}

impl<K: OrderedKey, V: Value> Builder<K, V> {
    /// Elements of the batches that are expected, a power of two: larger ones make updates cheaper, and queries too, because
    /// there are fewer levels. Batches of any length are taken; much smaller ones gather in smaller levels first. Default:
    /// 65536.
    pub fn batch_size(mut self, batch_size: u64) -> Self {
        self.settings.batch_size = batch_size;
        self
    }

    /// When tombstones and stale elements are dropped. Default: [`CleanupPolicy::StaleShare`] of one half.
    pub fn cleanup(mut self, policy: CleanupPolicy) -> Self {
        self.settings.cleanup = policy;
        self
    }

    /// An empty dictionary. Checks every setting.
    pub fn build(&self) -> Result<Lsm<K, V>, Error> {
        Ok(cpu::Ordered::empty(Tree::new(self.settings.check()?)))
    }

    /// A dictionary of these keys and values, of which there are as many: sorted once, into one level. Of equal keys the last
    /// one counts.
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<Lsm<K, V>, Error> {
        cpu::Ordered::from_pairs(Tree::new(self.settings.check()?), keys, values)
    }
}

/// Makes a dictionary in device memory, of one of its forms: made by [`Builder::on`] and [`SortedArrayBuilder::on`].
///
/// ```
/// use warpset_gpu::{Device, DeviceSlice};
/// use warpset_lsm::Lsm;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let (keys, values) = (device.from_slice(&[3u32, 1, 3])?, device.from_slice(&[30u64, 10, 33])?);
/// let lsm = Lsm::<u32, u64>::builder().on(&device).build_from_device(keys.as_slice(), values.as_slice())?;
/// assert_eq!(lsm.get_bulk(&[1, 3])?, [Some(10), Some(33)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceBuilder<K, V, F = Tree> {
    form: F,
    device: Device,
    elements: PhantomData<(K, V)>,
}

impl<K: DeviceKey, V: DeviceValue> Builder<K, V> {
    /// The same settings for a tree in device memory.
    pub fn on(&self, device: &Device) -> DeviceBuilder<K, V> {
        DeviceBuilder { form: Tree::new(self.settings), device: device.clone(), elements: PhantomData }
    }
}

impl<K: DeviceKey, V: DeviceValue> SortedArrayBuilder<K, V> {
    /// The same for an array in device memory.
    pub fn on(&self, device: &Device) -> DeviceBuilder<K, V, Array> {
        DeviceBuilder { form: Array, device: device.clone(), elements: PhantomData }
    }
}

impl<K: DeviceKey, V: DeviceValue, F: Form> DeviceBuilder<K, V, F> {
    /// An empty dictionary. Checks every setting.
    ///
    /// # Errors
    /// What is wrong with a setting; [`Error::Gpu`].
    pub fn build(&self) -> Result<gpu::Ordered<K, V, F>, Error> {
        gpu::Ordered::empty(&self.device, self.form.checked()?)
    }

    /// A dictionary of these keys and values, of which there are as many: sorted once, into one level. Of equal keys the last
    /// one counts.
    ///
    /// # Errors
    /// As for [`DeviceBuilder::build`]; [`Error::LengthMismatch`].
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<gpu::Ordered<K, V, F>, Error> {
        gpu::Ordered::build_from_slices(&self.device, self.form.checked()?, keys, values)
    }

    /// [`DeviceBuilder::build_from`] of keys and values on the device. Of `()` there are no values: pass an empty slice. Waits.
    ///
    /// # Errors
    /// As there; memory of another device is refused.
    pub fn build_from_device(
        &self,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V::Stored>,
    ) -> Result<gpu::Ordered<K, V, F>, Error> {
        gpu::Ordered::build_from_device(&self.device, self.form.checked()?, keys, values)
    }
}

/// Makes a [`SortedArray`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct SortedArrayBuilder<K, V>(PhantomData<(K, V)>);

impl<K, V> Default for SortedArrayBuilder<K, V> {
    fn default() -> Self {
        SortedArrayBuilder(PhantomData)
    }
}

impl<K: OrderedKey, V: Value> SortedArrayBuilder<K, V> {
    /// An empty array.
    pub fn build(&self) -> Result<SortedArray<K, V>, Error> {
        Ok(cpu::Ordered::empty(Array))
    }

    /// An array of these keys and values, of which there are as many. Of equal keys the last one counts.
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<SortedArray<K, V>, Error> {
        cpu::Ordered::from_pairs(Array, keys, values)
    }
}

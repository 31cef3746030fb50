//! Dynamic filters in device memory: quotient filters, with hashes of prefixes and lookups by kernels.

use std::fmt;
use std::marker::PhantomData;

use warpset_core::hash::spread_seed;
use warpset_core::range::KeyForm;
use warpset_gpu::batch::Answers;
use warpset_gpu::{Device, DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::range::filter::{BLOCK, Fingerprints, range_dynamic_hashes, range_dynamic_lookup};
use warpset_quotient::{Hashed, Layout, gpu};
use warpset_simt::Global;

use super::{DeviceRangeKey, words_of};
use crate::dynamic::{fingerprints, fpr_of, most_prefixes};
use crate::{Error, KeyOf};

/// [`crate::DynamicRangeFilter`] in device memory, made by
/// [`to_device`](crate::DynamicRangeFilter::to_device) of an empty or a filled one.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_range::DynamicRangeFilter;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let host = DynamicRangeFilter::<u64>::builder(1000).build_from(&[10_000u64, 7])?;
/// let mut filter = host.to_device(&device)?;
/// filter.insert_bulk(&[50_000u64])?;
/// assert_eq!(filter.may_contain_bulk(&[49_990..50_010, 8..100])?, [true, false]);
/// assert_eq!(filter.to_host()?.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DynamicRangeFilter<K> {
    slots: gpu::RankSelectQuotientFilter,
    keys: PhantomData<fn() -> K>,
}

impl<K: DeviceRangeKey> DynamicRangeFilter<K> {
    /// Returns a copy of a filter in host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn from_host(device: &Device, filter: &crate::DynamicRangeFilter<K>) -> Result<DynamicRangeFilter<K>, Error> {
        Ok(DynamicRangeFilter { slots: filter.slots.to_device(device)?, keys: PhantomData })
    }

    /// Returns a copy in host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory, [`Error::OutOfMemory`] if the host has.
    pub fn to_host(&self) -> Result<crate::DynamicRangeFilter<K>, Error> {
        Ok(crate::DynamicRangeFilter::from_slots(self.slots.to_host()?))
    }

    /// Returns the parameters of the slots.
    pub fn layout(&self) -> &Layout {
        self.slots.layout()
    }

    /// Returns the device that it is on.
    pub fn device(&self) -> &Device {
        self.slots.device()
    }

    /// Returns the words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.slots.words()
    }

    /// Returns the number of stored keys, repetitions included.
    pub fn len(&self) -> u64 {
        self.slots.len()
    }

    /// Whether no key is stored.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the slots in use as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.slots.load_factor()
    }

    /// Returns the bytes of device memory of the slots.
    pub fn memory_bytes(&self) -> u64 {
        self.slots.memory_bytes()
    }

    /// Returns a bound of the probability that a range of `length` keys gets a wrong "yes"; see
    /// [`DynamicRangeFilter`](crate::DynamicRangeFilter).
    pub fn fpr_of(&self, length: u64) -> f64 {
        fpr_of(self.layout(), self.len(), length)
    }

    /// Inserts keys of the host; of equal keys each takes a slot.
    ///
    /// # Errors
    /// [`Error::Slots`] if they do not all fit, [`Error::Gpu`] if the device fails or has too little memory. If the
    /// device fails during a change in place, part of the keys may be stored; otherwise the filter is unchanged.
    pub fn insert_bulk<Q: KeyOf<K>>(&mut self, keys: &[Q]) -> Result<(), Error> {
        self.slots.insert_fingerprints_bulk(&fingerprints::<K, Q>(self.layout(), keys))?;
        Ok(())
    }

    /// Inserts keys on the device like [`insert_bulk`](Self::insert_bulk).
    ///
    /// # Errors
    /// The errors of [`insert_bulk`](Self::insert_bulk); [`Error::Gpu`] for memory of another device.
    pub fn insert_device(&mut self, keys: DeviceSlice<'_, K>) -> Result<(), Error> {
        let hashes = self.hashes(keys)?;
        self.slots.insert_device(hashes.as_slice())?;
        Ok(())
    }

    /// Removes keys of the host, one stored copy for each, and returns the number of removed copies. Remove only keys
    /// that were inserted: see [`remove`](crate::DynamicRangeFilter::remove).
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn remove_bulk<Q: KeyOf<K>>(&mut self, keys: &[Q]) -> Result<u64, Error> {
        Ok(self.slots.remove_fingerprints_bulk(&fingerprints::<K, Q>(self.layout(), keys))?)
    }

    /// Removes keys on the device like [`remove_bulk`](Self::remove_bulk).
    ///
    /// # Errors
    /// The errors of [`remove_bulk`](Self::remove_bulk); [`Error::Gpu`] for memory of another device.
    pub fn remove_device(&mut self, keys: DeviceSlice<'_, K>) -> Result<u64, Error> {
        let hashes = self.hashes(keys)?;
        Ok(self.slots.remove_device(hashes.as_slice())?)
    }

    /// Adds all keys of another filter with the same seed, and the same bits of suffixes and of hashes.
    ///
    /// # Errors
    /// [`Error::Slots`] if the filters differ otherwise or the keys do not all fit; [`Error::Gpu`] if the device fails
    /// or has too little memory. The filter is unchanged then.
    pub fn merge(&mut self, other: &DynamicRangeFilter<K>) -> Result<(), Error> {
        Ok(self.slots.merge(&other.slots)?)
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails.
    pub fn clear(&mut self) -> Result<(), Error> {
        Ok(self.slots.clear()?)
    }

    /// Doubles the number of slots; see [`double`](crate::DynamicRangeFilter::double).
    ///
    /// # Errors
    /// [`Error::Slots`], [`Error::Gpu`]; nothing is changed then.
    pub fn double(&mut self) -> Result<(), Error> {
        Ok(self.slots.double()?)
    }

    /// Halves the number of slots.
    ///
    /// # Errors
    /// [`Error::Slots`] if the keys do not fit, [`Error::Gpu`]; nothing is changed then.
    pub fn halve(&mut self) -> Result<(), Error> {
        Ok(self.slots.halve()?)
    }

    fn parameters(&self) -> Fingerprints {
        let layout = self.layout();
        Fingerprints {
            spread: spread_seed(layout.seed()),
            quotient_bits: layout.quotient_bits(),
            remainder_bits: layout.remainder_bits(),
            suffix_bits: layout.ordered_bits(),
            unused: 0,
        }
    }

    /// Makes hashes with the fingerprints of keys. Waits.
    fn hashes(&self, keys: DeviceSlice<'_, K>) -> Result<DeviceVec<Hashed>, Error> {
        self.device().expect_all_here([keys.device()], "changing a range filter")?;
        let n = keys.len();
        let mut hashes = self.device().alloc_uninit::<Hashed>(n)?;
        if n > 0 {
            let kernel = range_dynamic_hashes {
                keys: words_of(keys),
                form: K::FORM,
                fingerprints: self.parameters(),
                n,
                hashes: hashes.global_mut().cast(),
            };
            // SAFETY: there is a place per key; `waiting` waits for the stream while keys and hashes are borrowed.
            self.device().waiting(|stream| unsafe { Ok::<(), Error>(kernel.launch(stream, per_item(n))?) })?;
        }
        Ok(hashes)
    }

    /// Queues the lookup of `n > 0` ranges.
    ///
    /// # Safety
    /// - `firsts` and `lasts` are `n` keys of this form; `answers` has places for `n` answers, which are not counts.
    /// - Until `stream` has passed this work, all stay allocated; nothing writes the filter or the keys, and nothing
    ///   else accesses the answers.
    pub(super) unsafe fn queue(
        &self,
        stream: &Stream,
        (firsts, lasts): (Global<u64>, Global<u64>),
        form_of_keys: KeyForm,
        n: usize,
        (_, answers): (bool, Answers),
    ) -> Result<(), Error> {
        let layout = self.layout();
        let kernel = range_dynamic_lookup {
            words: self.words().global(),
            len: layout.words(),
            blocks: layout.slots() / 64,
            fingerprints: self.parameters(),
            items: self.len(),
            most: most_prefixes(layout),
            firsts,
            lasts,
            form_of_keys,
            n,
            form: answers.form,
            answers: answers.words,
        };
        // SAFETY: the words are those of the layout; the rest is this function's contract.
        unsafe { kernel.launch(stream, per_item(n))? };
        Ok(())
    }
}

fn per_item(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

impl<K: DeviceRangeKey> crate::DynamicRangeFilter<K> {
    /// Returns a copy in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn to_device(&self, device: &Device) -> Result<DynamicRangeFilter<K>, Error> {
        DynamicRangeFilter::from_host(device, self)
    }
}

impl<K> fmt::Debug for DynamicRangeFilter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("gpu::DynamicRangeFilter").field("slots", &self.slots).finish()
    }
}

//! Builders of filters in device memory.

use std::fmt;

use warpset_gpu::{Device, DeviceSlice};

use super::scan::scan;
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter};
use crate::slot_kind::SlotKind;
use crate::{Builder, Error, Key, Layout};

/// [`Builder`] of filters on a device, made by [`Builder::on`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceBuilder<S> {
    settings: Builder<S>,
    pub(super) device: Device,
}

impl<S: DeviceSlotKind> Builder<S> {
    /// Makes a builder with these settings of a filter in device memory.
    pub fn on(&self, device: &Device) -> DeviceBuilder<S> {
        DeviceBuilder { settings: *self, device: device.clone() }
    }
}

impl<S: DeviceSlotKind> DeviceBuilder<S> {
    /// Checks every setting and returns the layout.
    ///
    /// # Errors
    /// The errors of [`Builder::layout`].
    pub fn layout(&self) -> Result<Layout, Error> {
        self.settings.layout()
    }

    /// Checks every setting, then allocates an empty filter.
    ///
    /// # Errors
    /// The errors of [`Builder::layout`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn build(&self) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::with_layout(&self.device, self.layout()?)
    }

    /// Builds a filter of these keys: they are hashed, sorted and laid out.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build`]; [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not all fit;
    /// [`Error::KeyTooWide`] if the filter is exact and a key has too many bits.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_keys(&self.device, self.layout()?, keys, &scan::<S>)
    }

    /// Builds a filter of keys on the device.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from`]; [`Error::Gpu`] for memory of another device.
    pub fn build_from_device<K: DeviceKeys>(&self, keys: K) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_device_keys(&self.device, self.layout()?, keys, &scan::<S>)
    }

    /// Builds a filter of these fingerprints, in any order.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build`]; [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not all fit;
    /// [`Error::InvalidFingerprint`] if one has too many bits.
    pub fn build_from_fingerprints(&self, fingerprints: &[u64]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_fingerprints(&self.device, self.layout()?, fingerprints)
    }

    /// Builds a filter of counted fingerprints: `copies[i]` copies of `fingerprints[i]`, which ascend, each once.
    /// Without counters each takes as many slots as it has copies, or one if duplicates are dropped.
    ///
    /// [`Layout::fingerprint`] maps keys to fingerprints; in exact filters it is a bijection of integers.
    ///
    /// ```
    /// use warpset_gpu::{Device, DeviceSlice};
    /// use warpset_quotient::{Duplicates, RankSelectBuilder};
    ///
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let builder = RankSelectBuilder::with_bits(10, 20).duplicates(Duplicates::Counted);
    /// let (fingerprints, copies) = (device.from_slice(&[7u64, 1 << 29])?, device.from_slice(&[1u64 << 40, 3])?);
    /// let filter =
    ///     builder.on(&device).build_from_fingerprint_counts_device(fingerprints.as_slice(), copies.as_slice())?;
    /// assert_eq!(filter.fingerprint_counts()?, [(7, 1 << 40), (1 << 29, 3)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAscending`] if they do not ascend, have no copies or too many bits;
    /// [`Error::LengthMismatch`] if there is not one number per fingerprint; [`Error::Full`],
    /// [`Error::OverflowRegionFull`] and [`Error::TooManyCopies`] if they do not fit.
    pub fn build_from_fingerprint_counts_device(
        &self,
        fingerprints: DeviceSlice<'_, u64>,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_given_counts(&self.device, self.layout()?, fingerprints, copies)
    }
}

impl<S: SlotKind> fmt::Debug for DeviceBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuilder").field("settings", &self.settings).field("device", &self.device).finish()
    }
}

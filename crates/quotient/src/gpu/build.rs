//! Filters built from keys and from fingerprints.

use warpset_base::filter::same_length;
use warpset_gpu::{Device, DeviceSlice, Stream};

use super::counts::Counts;
use super::fingerprints::{Fingerprints, Misfits};
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact, kernels, parts};
use crate::{Duplicates, Error, Key, Layout};

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// A filter of these keys: hashed, sorted, laid out.
    pub(crate) fn from_keys<K: Key>(
        device: &Device,
        layout: Layout,
        keys: &[K],
        method: S::BuildMethod,
    ) -> Result<QuotientFilter<S>, Error> {
        check_count(&layout, keys.len())?;
        if layout.exact {
            return QuotientFilter::from_hashed(device, layout, &exact::hashes(&layout, keys)?, method);
        }
        QuotientFilter::from_hashed(device, layout, keys, method)
    }

    /// The same; no key is an integer of an exact filter.
    fn from_hashed<K: Key>(
        device: &Device,
        layout: Layout,
        keys: &[K],
        method: S::BuildMethod,
    ) -> Result<QuotientFilter<S>, Error> {
        let stream = device.new_stream()?;
        device.with_kernels(&kernels::of_build::<S>(&layout, keys.len(), method), || {
            let sorted = Fingerprints::of_host_keys(&layout, &stream, keys)?.sorted(&layout, &stream)?;
            QuotientFilter::lay_out(&stream, layout, &sorted, method)
        })
    }

    /// The same of keys on the device.
    pub(crate) fn from_device_keys<K: DeviceKeys>(
        device: &Device,
        layout: Layout,
        keys: K,
        method: S::BuildMethod,
    ) -> Result<QuotientFilter<S>, Error> {
        check_count(&layout, keys.count())?;
        let stream = device.new_stream()?;
        if keys.count() > 0 {
            device.expect_same(keys.device(), "building a quotient filter")?;
            device.synchronize()?;
        }
        let in_parts = parts::pays(&layout, keys.count());
        let kernels = if in_parts { kernels::of_build_in_parts::<S> } else { kernels::of_build::<S> };
        let built = device.with_kernels(&kernels(&layout, keys.count(), method), || {
            // SAFETY: the keys are borrowed until the layout has been waited for, on an error too.
            let sorted = unsafe {
                if in_parts {
                    parts::sorted(&layout, &stream, keys)?
                } else {
                    Fingerprints::of_device_keys(&layout, &stream, keys, Misfits::Refused)?.sorted(&layout, &stream)?
                }
            };
            QuotientFilter::lay_out(&stream, layout, &sorted, method)
        });
        if built.is_err() {
            stream.synchronize()?;
        }
        built
    }

    /// A filter of these fingerprints, in any order.
    pub(crate) fn from_fingerprints(
        device: &Device,
        layout: Layout,
        fingerprints: &[u64],
    ) -> Result<QuotientFilter<S>, Error> {
        check_count(&layout, fingerprints.len())?;
        layout.check_fingerprints(fingerprints)?;
        let stream = device.new_stream()?;
        let method = S::BuildMethod::default();
        device.with_kernels(&kernels::of_layout::<S>(&layout, fingerprints.len(), method), || {
            let sorted = Fingerprints::from_host(&layout, &stream, fingerprints)?.sorted(&layout, &stream)?;
            QuotientFilter::lay_out(&stream, layout, &sorted, method)
        })
    }

    /// See [`DeviceBuilder::build_from_fingerprint_counts_device`](crate::DeviceBuilder::build_from_fingerprint_counts_device).
    pub(crate) fn from_given_counts(
        device: &Device,
        layout: Layout,
        fingerprints: DeviceSlice<'_, u64>,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<QuotientFilter<S>, Error> {
        same_length(fingerprints.len(), copies.len())?;
        let stream = device.new_stream()?;
        if !fingerprints.is_empty() {
            for of_slice in [fingerprints.device(), copies.device()] {
                device.expect_same(of_slice, "building a quotient filter")?;
            }
            device.synchronize()?;
        }
        let counts = Counts::given(&layout, &stream, fingerprints, copies);
        if counts.is_err() {
            stream.synchronize()?;
        }
        QuotientFilter::from_counts(&stream, layout, counts?)
    }

    /// A filter of ascending fingerprints. Waits for all of `stream`, on an error too.
    pub(super) fn lay_out(
        stream: &Stream,
        layout: Layout,
        sorted: &Fingerprints,
        method: S::BuildMethod,
    ) -> Result<QuotientFilter<S>, Error> {
        if layout.is_counted() {
            let counts = Counts::of_sorted(&layout, stream, sorted);
            if counts.is_err() {
                stream.synchronize()?;
            }
            return QuotientFilter::from_counts(stream, layout, counts?);
        }
        match S::lay_out(stream, &layout, sorted, method) {
            Ok((words, items)) => Ok(QuotientFilter::from_parts(stream.device(), layout, words, items)),
            Err(error) => {
                stream.synchronize()?;
                Err(error)
            }
        }
    }
}

/// An error if this many keys do not fit whatever they are: in a multiset each takes a slot.
pub(crate) fn check_count(layout: &Layout, keys: usize) -> Result<(), Error> {
    let items = keys as u64;
    if layout.duplicates == Duplicates::Kept && items > layout.limit {
        return Err(Error::Full { items, limit: layout.limit });
    }
    Ok(())
}

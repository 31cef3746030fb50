//! Filters built from keys and from fingerprints.

use warpset_gpu::{Device, Stream};

use super::fingerprints::Fingerprints;
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, kernels};
use crate::{Error, Key, Layout};

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// A filter of these keys: hashed, sorted, laid out.
    pub(crate) fn from_keys<K: Key>(
        device: &Device,
        layout: Layout,
        keys: &[K],
        method: S::BuildMethod,
    ) -> Result<QuotientFilter<S>, Error> {
        check_count(&layout, keys.len())?;
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
        let built = device.with_kernels(&kernels::of_build::<S>(&layout, keys.count(), method), || {
            // SAFETY: the keys are borrowed until the layout has been waited for, on an error too.
            let fingerprints = unsafe { Fingerprints::of_device_keys(&layout, &stream, keys)? };
            QuotientFilter::lay_out(&stream, layout, &fingerprints.sorted(&layout, &stream)?, method)
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

    /// A filter of ascending fingerprints. Waits for all of `stream`, on an error too.
    pub(super) fn lay_out(
        stream: &Stream,
        layout: Layout,
        sorted: &Fingerprints,
        method: S::BuildMethod,
    ) -> Result<QuotientFilter<S>, Error> {
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
    if layout.keeps_duplicates() && items > layout.limit {
        return Err(Error::Full { items, limit: layout.limit });
    }
    Ok(())
}

//! Filters built from keys and from fingerprints.

use warpset_base::filter::same_length;
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Stream};

use super::counted_fingerprints::CountedFingerprints;
use super::fingerprints::{Fingerprints, TooWide};
use super::launch::waiting_on_errors;
use super::scan::{check_count, scan};
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact, part_sort};
use crate::{Error, Key, Layout};

/// Layout of ascending fingerprints: words, and the number of stored fingerprints. It waits for all of the stream,
/// because only the result shows whether they fit; on an error work may still be queued.
pub type LayOut<'a> = &'a dyn Fn(&Stream, &Layout, &Fingerprints) -> Result<(DeviceVec<u64>, u64), Error>;

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Builds a filter of these keys: they are hashed, sorted and laid out.
    pub(crate) fn from_keys<K: Key>(
        device: &Device,
        layout: Layout,
        keys: &[K],
        lay_out: LayOut<'_>,
    ) -> Result<QuotientFilter<S>, Error> {
        check_count(&layout, keys.len())?;
        if layout.exact {
            return QuotientFilter::from_any(device, layout, &exact::words(&layout, keys)?, lay_out);
        }
        QuotientFilter::from_any(device, layout, keys, lay_out)
    }

    /// Builds a filter like [`QuotientFilter::from_keys`], of keys that all have a fingerprint.
    fn from_any<K: Key>(
        device: &Device,
        layout: Layout,
        keys: &[K],
        lay_out: LayOut<'_>,
    ) -> Result<QuotientFilter<S>, Error> {
        let stream = device.new_stream()?;
        let sorted = Fingerprints::of_host_keys(&layout, &stream, keys)?.sorted(&layout, &stream)?;
        QuotientFilter::lay_out_by(&stream, layout, &sorted, lay_out)
    }

    /// Builds a filter of keys on the device: they are hashed, sorted and laid out.
    pub(crate) fn from_device_keys<K: DeviceKeys>(
        device: &Device,
        layout: Layout,
        keys: K,
        lay_out: LayOut<'_>,
    ) -> Result<QuotientFilter<S>, Error> {
        check_count(&layout, keys.count())?;
        let stream = device.new_stream()?;
        if keys.count() > 0 {
            device.expect_same(keys.device(), "building a quotient filter")?;
            device.synchronize()?;
        }
        waiting_on_errors(&stream, || {
            // SAFETY: the keys are borrowed until the layout has been waited for, on an error too.
            let sorted = unsafe {
                if part_sort::pays(&layout, keys.count()) {
                    part_sort::sorted(&layout, &stream, keys)?
                } else {
                    Fingerprints::of_device_keys(&layout, &stream, keys, TooWide::Refused)?.sorted(&layout, &stream)?
                }
            };
            QuotientFilter::lay_out_by(&stream, layout, &sorted, lay_out)
        })
    }

    /// Builds a filter of these fingerprints, in any order.
    pub(crate) fn from_fingerprints(
        device: &Device,
        layout: Layout,
        fingerprints: &[u64],
    ) -> Result<QuotientFilter<S>, Error> {
        check_count(&layout, fingerprints.len())?;
        layout.check_fingerprints(fingerprints)?;
        let stream = device.new_stream()?;
        let sorted = Fingerprints::from_host(&layout, &stream, fingerprints)?.sorted(&layout, &stream)?;
        QuotientFilter::lay_out(&stream, layout, &sorted)
    }

    /// Builds a filter of `copies[i]` copies of `fingerprints[i]`, which ascend, each once.
    pub(crate) fn from_given_counts(
        device: &Device,
        layout: Layout,
        fingerprints: DeviceSlice<'_, u64>,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<QuotientFilter<S>, Error> {
        same_length(fingerprints.len(), copies.len())?;
        let stream = device.new_stream()?;
        if !fingerprints.is_empty() {
            device.expect_all_here([fingerprints.device(), copies.device()], "building a quotient filter")?;
            device.synchronize()?;
        }
        waiting_on_errors(&stream, || {
            let counts = CountedFingerprints::given(&layout, &stream, fingerprints, copies)?;
            QuotientFilter::from_counts(&stream, layout, counts)
        })
    }

    /// Builds a filter of ascending fingerprints. Waits for all of `stream`, on an error too.
    pub(crate) fn lay_out(stream: &Stream, layout: Layout, sorted: &Fingerprints) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::lay_out_by(stream, layout, sorted, &scan::<S>)
    }

    /// Builds a filter like [`QuotientFilter::lay_out`], by `lay_out` where there are no counters.
    fn lay_out_by(
        stream: &Stream,
        layout: Layout,
        sorted: &Fingerprints,
        lay_out: LayOut<'_>,
    ) -> Result<QuotientFilter<S>, Error> {
        waiting_on_errors(stream, || {
            if layout.is_counted() {
                let counts = CountedFingerprints::of_sorted(&layout, stream, sorted)?;
                return QuotientFilter::from_counts(stream, layout, counts);
            }
            let (words, items) = lay_out(stream, &layout, sorted)?;
            Ok(QuotientFilter::from_parts(stream.device(), layout, words, items))
        })
    }
}

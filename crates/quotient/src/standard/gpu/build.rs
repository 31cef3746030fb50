//! Filters laid out from ascending fingerprints.

use warpset_gpu::{Device, DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::build::{self as kernels, BLOCK, SHARED_BYTES, quotient_build};
use warpset_primitives::LookBack;

use super::fingerprints::{Fingerprints, parameters, sorted_fingerprints, with_width};
use super::keys::{Uploaded, key_slice};
use super::width::Width;
use super::{DeviceKey, StandardQuotientFilter, paper_builds};
use crate::{BuildMethod, Error, Key, Layout, OutOfMemory};

/// Builds.
impl StandardQuotientFilter {
    pub(crate) fn from_keys<K: Key>(
        device: &Device,
        layout: Layout,
        keys: &[K],
        method: BuildMethod,
    ) -> Result<StandardQuotientFilter, Error> {
        check_count(&layout, keys.len())?;
        let stream = device.new_stream()?;
        let uploaded = Uploaded::new(&stream, &layout, keys)?;
        // SAFETY: the keys live until the layout has been waited for.
        let sorted = unsafe { sorted_fingerprints(&stream, &layout, uploaded.keys(&layout), uploaded.n)? };
        lay_out_by(method, device, &stream, layout, &sorted)
    }

    pub(crate) fn from_device_keys<K: DeviceKey>(
        device: &Device,
        layout: Layout,
        keys: DeviceSlice<'_, K>,
        method: BuildMethod,
    ) -> Result<StandardQuotientFilter, Error> {
        check_count(&layout, keys.len())?;
        let stream = device.new_stream()?;
        device.synchronize()?;
        // SAFETY: the keys are borrowed until the layout has been waited for.
        let sorted = unsafe { sorted_fingerprints(&stream, &layout, key_slice(&layout, keys), keys.len())? };
        lay_out_by(method, device, &stream, layout, &sorted)
    }

    /// A filter of these fingerprints, in any order.
    pub(crate) fn from_fingerprints(
        device: &Device,
        layout: Layout,
        fingerprints: &[u64],
    ) -> Result<StandardQuotientFilter, Error> {
        check_count(&layout, fingerprints.len())?;
        check_fingerprints(&layout, fingerprints)?;
        let stream = device.new_stream()?;
        let sorted = Fingerprints::sorted_from(&layout, &stream, fingerprints)?;
        lay_out(device, &stream, layout, &sorted)
    }
}

/// Fails if so many keys are too many whatever they are: in a multiset each has a slot.
fn check_count(layout: &Layout, keys: usize) -> Result<(), Error> {
    let items = keys as u64;
    if layout.keeps_duplicates() && items > layout.limit {
        return Err(Error::Full { items, limit: layout.limit });
    }
    Ok(())
}

/// Fails if one of them has too many bits.
pub(super) fn check_fingerprints(layout: &Layout, fingerprints: &[u64]) -> Result<(), Error> {
    match fingerprints.iter().find(|&&fingerprint| fingerprint > layout.last_fingerprint()) {
        Some(&fingerprint) => Err(Error::InvalidFingerprint { fingerprint, bits: layout.fingerprint_bits() }),
        None => Ok(()),
    }
}

/// The words of an empty filter.
pub(super) fn zeroed_words(layout: &Layout, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
    let words = usize::try_from(layout.words()).map_err(|_| OutOfMemory { bytes: layout.words().saturating_mul(8) })?;
    Ok(stream.alloc_zeroed(words)?)
}

/// Fails unless `items` fingerprints, the last of them in slot `end - 1`, fit.
pub(super) fn check_fit(layout: &Layout, items: u64, end: u64) -> Result<(), Error> {
    if items > layout.limit {
        return Err(Error::Full { items, limit: layout.limit });
    }
    let usable = layout.slots() - 1;
    if end > usable {
        return Err(Error::OverflowRegionFull { slot: end - 1, limit: usable });
    }
    Ok(())
}

/// A filter of ascending fingerprints. Waits, because only the result shows whether they fit.
pub(super) fn lay_out(
    device: &Device,
    stream: &Stream,
    layout: Layout,
    sorted: &Fingerprints,
) -> Result<StandardQuotientFilter, Error> {
    lay_out_by(BuildMethod::default(), device, stream, layout, sorted)
}

/// A filter of ascending fingerprints, laid out by a method. Waits for all of `stream`, also if it fails.
fn lay_out_by(
    method: BuildMethod,
    device: &Device,
    stream: &Stream,
    layout: Layout,
    sorted: &Fingerprints,
) -> Result<StandardQuotientFilter, Error> {
    let filter = match method {
        BuildMethod::Scan => scan(device, stream, layout, sorted),
        BuildMethod::SuperclusterInserts => scan(device, stream, layout, sorted).and_then(|mut filter| {
            // It shows that all fit.
            if layout.slots() < 1 << 32 && sorted.len() < 1 << 32 {
                filter.clear()?;
                filter.fill_by_superclusters(stream, sorted.copied(&layout, stream)?)?;
            }
            Ok(filter)
        }),
        _ => paper_builds::build(method, device, stream, layout, sorted),
    };
    if filter.is_err() {
        stream.synchronize()?;
    }
    filter
}

/// [`BuildMethod::Scan`].
fn scan(
    device: &Device,
    stream: &Stream,
    layout: Layout,
    sorted: &Fingerprints,
) -> Result<StandardQuotientFilter, Error> {
    let n = sorted.len();
    let mut words = zeroed_words(&layout, stream)?;
    let mut totals = [0u64; 2];
    if n > 0 {
        let (tile, most) = match sorted {
            Fingerprints::Narrow(_) => (<u32 as Width>::TILE, <u32 as Width>::MOST),
            Fingerprints::Wide(_) => (<u64 as Width>::TILE, <u64 as Width>::MOST),
        };
        if n > most {
            // Far fewer fit, so there is no result but for one in which most are repetitions.
            check_count(&layout, n)?;
            let unique = sorted.unique(&layout, stream)?;
            check_fit(&layout, unique.len() as u64, 0)?;
            return scan(device, stream, layout, &unique);
        }
        let tiles = n.div_ceil(tile);
        let mut scratch = LookBack::with_results(stream, kernels::look_back_words(tiles), 2)?;
        let (look_back, ticket, out) = (scratch.words(), scratch.ticket(), scratch.results());
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (parameters, slots, target) = (parameters(&layout), layout.slots(), words.global_mut());
        // SAFETY: the words are those of the layout, zero, and nobody else's, as is the scratch memory; fingerprints are
        // ascending, and live until the copy has been waited for.
        with_width!(sorted, |items| unsafe {
            quotient_build {
                fingerprints: items.global(),
                n,
                parameters,
                slots,
                look_back,
                ticket,
                words: target,
                totals: out,
            }
            .launch(stream, config)
        })?;
        scratch.download_results(stream, &mut totals)?;
    } else {
        stream.synchronize()?;
    }
    let [items, end] = totals;
    check_fit(&layout, items, end)?;
    Ok(StandardQuotientFilter { layout, device: device.clone(), words, items })
}

//! Filters laid out from ascending fingerprints, and taken apart into them.

use warpset_gpu::{Device, DeviceSlice, LaunchConfig, Stream};
use warpset_kernels::quotient_standard::{self as kernels, BLOCK, SHARED_BYTES, TILE};

use super::fingerprints::{Fingerprints, compact, grid, parameters, sorted_fingerprints, with_width};
use super::keys::{Uploaded, key_slice};
use super::{DeviceKey, StandardQuotientFilter};
use crate::{Error, Key, Layout, OutOfMemory};

impl StandardQuotientFilter {
    /// A filter of these keys, built at once: hashed, sorted, laid out.
    pub fn build_from<K: Key>(device: &Device, layout: Layout, keys: &[K]) -> Result<StandardQuotientFilter, Error> {
        let stream = device.new_stream()?;
        let uploaded = Uploaded::new(&stream, &layout, keys)?;
        // SAFETY: the keys live until the layout has been waited for.
        let sorted = unsafe { sorted_fingerprints(&stream, &layout, uploaded.keys(&layout), uploaded.n)? };
        lay_out(device, &stream, layout, &sorted)
    }

    /// [`StandardQuotientFilter::build_from`] for keys on the device.
    pub fn build_from_device<K: DeviceKey>(
        device: &Device,
        layout: Layout,
        keys: DeviceSlice<'_, K>,
    ) -> Result<StandardQuotientFilter, Error> {
        let stream = device.new_stream()?;
        device.synchronize()?;
        // SAFETY: the keys are borrowed until the layout has been waited for.
        let sorted = unsafe { sorted_fingerprints(&stream, &layout, key_slice(&layout, keys), keys.len())? };
        lay_out(device, &stream, layout, &sorted)
    }

    /// The same fingerprints with quotients of another width: a quotient bit more is a remainder bit less.
    pub fn resized(&self, quotient_bits: u32) -> Result<StandardQuotientFilter, Error> {
        let layout = self.layout.with_quotient_bits(quotient_bits)?;
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let all = self.extract(&stream)?;
        lay_out(&self.device, &stream, layout, &all)
    }

    /// Queues the extraction of all fingerprints, in ascending order.
    pub(super) fn extract(&self, stream: &Stream) -> Result<Fingerprints, Error> {
        let slots = self.layout.slots() as usize;
        let mut all = Fingerprints::alloc(&self.layout, stream, self.items as usize)?;
        if self.items == 0 {
            return Ok(all);
        }
        let mut sparse = Fingerprints::alloc(&self.layout, stream, slots)?;
        let mut dense = Fingerprints::alloc(&self.layout, stream, slots)?;
        let mut used = stream.alloc_uninit::<u64>(slots / 64)?;
        let mut count = stream.alloc_uninit::<u64>(1)?;
        let (words, bits) = (self.words.global(), used.global_mut().cast());
        let parameters = parameters(&self.layout);
        // SAFETY: the filter is sound and borrowed; the vectors have a place a slot, and are freed in the order of the
        // stream. Selection keeps as many as there are items.
        with_width!(&mut sparse, |sparse, _h, _b, extract| unsafe {
            extract::launch(stream, grid(slots), words, slots as u64, parameters, sparse.global_mut(), bits)
        })?;
        match (&sparse, &mut dense, &mut all) {
            (Fingerprints::Narrow(sparse), Fingerprints::Narrow(dense), Fingerprints::Narrow(all)) => {
                compact(stream, sparse, &used, dense, &mut count, all)?;
            }
            (Fingerprints::Wide(sparse), Fingerprints::Wide(dense), Fingerprints::Wide(all)) => {
                compact(stream, sparse, &used, dense, &mut count, all)?;
            }
            _ => unreachable!("all are as wide as the layout says"),
        }
        Ok(all)
    }
}

/// A filter of ascending fingerprints. Waits, because only the result shows whether they fit.
pub(super) fn lay_out(
    device: &Device,
    stream: &Stream,
    layout: Layout,
    sorted: &Fingerprints,
) -> Result<StandardQuotientFilter, Error> {
    let n = sorted.len();
    let words = usize::try_from(layout.words()).map_err(|_| OutOfMemory { bytes: layout.words().saturating_mul(8) })?;
    let mut words = stream.alloc_zeroed::<u64>(words)?;
    let mut totals = [0u64; 2];
    if n > 0 {
        let tiles = n.div_ceil(TILE);
        let look_back_words = kernels::look_back_words(tiles);
        let mut scratch = stream.alloc_zeroed::<u64>(look_back_words + 4)?;
        let look_back = scratch.global_mut();
        let (ticket, out) = (look_back.at(look_back_words).cast(), look_back.at(look_back_words + 2));
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (parameters, slots, target) = (parameters(&layout), layout.slots(), words.global_mut());
        // SAFETY: the words are those of the layout, zero, and nobody else's, as is the scratch memory; fingerprints are
        // ascending, and live until the copy has been waited for.
        with_width!(sorted, |items, _h, build, _e| unsafe {
            build::launch(stream, config, items.global(), n, parameters, slots, look_back, ticket, target, out)
        })?;
        stream.download(scratch.slice(look_back_words + 2..), &mut totals)?;
    } else {
        stream.synchronize()?;
    }
    let [items, end] = totals;
    if items > layout.limit {
        return Err(Error::Full { items, limit: layout.limit });
    }
    let usable = layout.slots() - 1;
    if end > usable {
        return Err(Error::OverflowRegionFull { slot: end - 1, limit: usable });
    }
    Ok(StandardQuotientFilter { layout, device: device.clone(), words, items })
}

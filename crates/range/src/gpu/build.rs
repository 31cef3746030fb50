//! Builds on a device: keys are sorted for their number, their codes for the list, which kernels write.

use std::fmt;

use warpset_gpu::{Device, DeviceSlice, LaunchConfig};
use warpset_kernels::range::filter::{BLOCK, range_codes, range_directories, range_numbers, range_write};
use warpset_primitives::select::unique_async;
use warpset_primitives::sort::{By, sort_keys_in_place_async};

use super::{DeviceRangeKey, RangeFilter, words_of};
use crate::{Builder, Error, Layout};

/// A [`Builder`] of filters on a device: made by [`Builder::on`].
#[must_use = "a builder does nothing until `build_from`"]
pub struct DeviceBuilder<K> {
    settings: Builder<K>,
    device: Device,
}

impl<K: DeviceRangeKey> Builder<K> {
    /// Returns a builder with these settings of a filter in device memory.
    pub fn on(&self, device: &Device) -> DeviceBuilder<K> {
        DeviceBuilder { settings: *self, device: device.clone() }
    }
}

impl<K: DeviceRangeKey> DeviceBuilder<K> {
    /// Builds a filter of these keys, with the same bytes as on the host.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn build_from(&self, keys: &[K]) -> Result<RangeFilter<K>, Error> {
        self.build_from_device(self.device.from_slice(keys)?.as_slice())
    }

    /// Builds a filter of keys on the device, in any order, which stay unchanged; equal keys count once. Takes 24 bytes
    /// per key besides the filter. Waits.
    ///
    /// # Errors
    /// The errors of [`build_from`](Self::build_from); [`Error::Gpu`] for memory of another device.
    pub fn build_from_device(&self, keys: DeviceSlice<'_, K>) -> Result<RangeFilter<K>, Error> {
        let (codes_per_key, seed) = (self.settings.codes_per_key()?, self.settings.seed);
        self.device.expect_all_here([keys.device()], "the build of a range filter")?;
        let given = keys.len();
        if given == 0 {
            return Ok(RangeFilter::from_parts(&self.device, Layout::empty(seed), self.device.alloc_uninit(0)?));
        }
        self.device.waiting(|stream| {
            let per_item = |items: usize| LaunchConfig::new(items.div_ceil(BLOCK as usize) as u32, BLOCK);
            let mut numbers = stream.alloc_uninit::<u64>(given)?;
            let mut distinct = stream.alloc_uninit::<u64>(given)?;
            let mut count = stream.alloc_zeroed::<u64>(1)?;
            let kernel = range_numbers { keys: words_of(keys), form: K::FORM, n: given, numbers: numbers.global_mut() };
            // SAFETY: there are places for all numbers; keys are borrowed until the stream has been waited for; this
            // function owns the vectors, and they are freed in the order of the stream.
            unsafe {
                kernel.launch(stream, per_item(given))?;
                sort_keys_in_place_async(stream, &mut numbers, By::ascending())?;
                unique_async(stream, numbers.as_slice(), distinct.as_mut_slice(), count.as_mut_slice())?;
            }
            let n = stream.download_first(&count)? as usize;
            let ends = (stream.download_first(&distinct)?, stream.download_first(distinct.slice(n - 1..n))?);
            let layout = Layout::of(n as u64, (ends.0.into(), ends.1.into()), codes_per_key, seed)?;
            let shape = layout.shape;
            let mut words = self.device.alloc_uninit::<u64>(layout.words() as usize)?;
            stream.fill_bytes(words.as_mut_slice(), 0)?;
            let mut codes = numbers.slice_mut(..n);
            let coded = range_codes { numbers: distinct.global(), least: ends.0, shape, n, codes: codes.global_mut() };
            let bits = 64 - (shape.universe - 1).leading_zeros();
            let entries = shape.blocks() + shape.hint_count();
            // SAFETY: `n` numbers and codes have places; the words are those of the shape and zero; this function owns
            // all vectors until the stream has been waited for.
            unsafe {
                coded.launch(stream, per_item(n))?;
                sort_keys_in_place_async(stream, &mut codes, By::ascending().bits(0..bits))?;
                let codes = codes.as_slice().global();
                let words = words.global_mut();
                range_write { codes, n, shape, words }.launch(stream, per_item(n))?;
                range_directories { codes, n, shape, words }.launch(stream, per_item(entries as usize))?;
            }
            Ok(RangeFilter::from_parts(&self.device, layout, words))
        })
    }
}

impl<K> Clone for DeviceBuilder<K> {
    fn clone(&self) -> Self {
        DeviceBuilder { settings: self.settings, device: self.device.clone() }
    }
}

impl<K> fmt::Debug for DeviceBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("DeviceBuilder");
        f.field("settings", &self.settings).field("device", &self.device).finish()
    }
}

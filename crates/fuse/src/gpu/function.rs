//! Static functions in device memory: the words of the host, built and queried by kernels.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;
use warpset_base::filter::same_length;
use warpset_base::words::in_huge_pages;
use warpset_gpu::batch::{Answers, Staging, Stencil, expect_room};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
pub use warpset_kernels::fuse::device_query::FunctionQuery;
use warpset_kernels::fuse::values::{BLOCK, fuse_values};
use warpset_simt::GlobalMut;

use super::build::{DeviceSource, HostSource, Source, Values, build};
use super::{DeviceKeys, HASHING};
use crate::image::{in_device_memory, measures};
use crate::{Bitmap, Error, FunctionBuilder, FunctionValue, Key, Layout};

const _: () = assert!(size_of::<FunctionQuery>() == 48);

/// A value on devices: `u8`, `u16`, `u32` or `u64`; `u8` with [`value_bits(1)`](FunctionBuilder::value_bits) for
/// `bool`. Sealed, as [`FunctionValue`] is.
pub trait DeviceFunctionValue: FunctionValue + Pod {}
impl<V: FunctionValue + Pod> DeviceFunctionValue for V {}

/// [`crate::StaticFunction`] in device memory.
///
/// ```
/// use warpset_fuse::StaticFunction;
/// use warpset_gpu::Device;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let (keys, values): (Vec<u64>, Vec<u16>) = (0..1000).map(|i| (i * i, i as u16)).unzip();
/// let builder = StaticFunction::<u16>::builder().for_build();
/// let function = builder.on(&device).build_from(&keys, &values)?;
/// assert_eq!(function.get_bulk(&[49u64])?, [Some(7)]);
/// assert!(function.to_host()? == builder.build_from(&keys, &values)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StaticFunction<V> {
    layout: Layout,
    device: Device,
    /// Graphs whose slots and seeds the words have: all, but on several devices.
    graphs: Range<u64>,
    /// The words of a function of this layout, or of these graphs of it.
    words: DeviceVec<u64>,
    of: PhantomData<V>,
}

/// A [`FunctionBuilder`] of functions on a device: made by [`FunctionBuilder::on`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct DeviceFunctionBuilder<V> {
    settings: FunctionBuilder<V>,
    device: Device,
}

impl<V: DeviceFunctionValue> FunctionBuilder<V> {
    /// Returns a builder with these settings of a function in device memory.
    pub fn on(&self, device: &Device) -> DeviceFunctionBuilder<V> {
        DeviceFunctionBuilder { settings: *self, device: device.clone() }
    }
}

impl<V: DeviceFunctionValue> DeviceFunctionBuilder<V> {
    /// Returns the parameters for `keys` different keys.
    ///
    /// # Errors
    /// The errors of [`FunctionBuilder::layout`].
    pub fn layout(&self, keys: u64) -> Result<Layout, Error> {
        self.settings.layout(keys)
    }

    /// Returns a function of these keys and values, with the same bytes as on the host. Integers and hashes cross the
    /// bus as they are, of other keys the hashes, once per attempt.
    ///
    /// Memory of the device for a time: 24 bytes per key sharded, 30 for one graph; 5 more, or 10 for more than 32
    /// bits, for slots of other widths than 8, 16 and 32 bits. Those of more than 32 bits are built twice.
    ///
    /// # Errors
    /// The errors of [`FunctionBuilder::build_from`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn build_from<K: Key>(&self, keys: &[K], values: &[V]) -> Result<StaticFunction<V>, Error> {
        same_length(keys.len(), values.len())?;
        self.build(&HostSource(keys), self.device.from_slice(values)?.as_slice())
    }

    /// Builds a function of keys and values on the device; see [`DeviceFunctionBuilder::build_from`].
    ///
    /// # Errors
    /// The errors of [`DeviceFunctionBuilder::build_from`]; [`Error::Gpu`] for memory of another device.
    pub fn build_from_device<K: DeviceKeys>(
        &self,
        keys: K,
        values: DeviceSlice<'_, V>,
    ) -> Result<StaticFunction<V>, Error> {
        same_length(keys.count(), values.len())?;
        if keys.count() > 0 {
            self.device.expect_all_here([keys.device(), values.device()], "building a static function")?;
            self.device.synchronize()?;
        }
        self.build(&DeviceSource(keys), values)
    }

    fn build(&self, source: &impl Source, values: DeviceSlice<'_, V>) -> Result<StaticFunction<V>, Error> {
        let given = Some(Values::of(values));
        let (layout, words) = build::<u32>(&self.device, &self.settings.settings()?, source, given)?;
        Ok(StaticFunction::from_parts(&self.device, layout, words))
    }
}

/// Returns the words of 64 bits that have parts of `n` values.
pub(super) fn words_of<V>(n: usize) -> usize {
    (n * size_of::<V>()).div_ceil(8)
}

impl<V: DeviceFunctionValue> StaticFunction<V> {
    /// Queues the lookup of `n > 0` keys.
    ///
    /// # Safety
    /// - `keys` are `n`, all of them of the graphs here; `found` and `values` are valid for `n` answers.
    /// - Until `stream` has passed this work, all stay allocated; nothing writes the function or the keys, and nothing
    ///   else accesses the answers.
    pub(super) unsafe fn queue(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        found: Answers,
        values: GlobalMut<V>,
    ) -> Result<(), Error> {
        let Layout { graph, arity, shards, seed, bits, value_bits, .. } = self.layout;
        let (words, shard_seeds) = self.of_whole();
        let kernel = fuse_values {
            words,
            shard_seeds,
            graph,
            arity: arity as u32,
            shards,
            seed,
            bits,
            value_bits,
            keys: keys.keys,
            kind: keys.kind,
            n,
            form: found.form,
            found: found.words,
            width: size_of::<V>() as u32,
            // The length is rounded up, since values may share a word.
            out: GlobalMut::from_raw_parts(values.as_ptr().cast(), words_of::<V>(n)),
        };
        // SAFETY: the words are those of the graphs of all keys; the rest is this function's contract.
        unsafe { kernel.launch(stream, LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK))? };
        Ok(())
    }

    /// Looks up the value of each key. Bit `i % 64` of word `i / 64` of `found` says whether key `i` has a value; place
    /// `i` of `values` gets it, or zero. Other keys than the function's have any value, or none:
    /// [`StaticFunction::get`](crate::StaticFunction::get).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places or bits than keys; [`Error::Gpu`], for memory of another
    /// device.
    pub fn get_device<K: DeviceKeys>(
        &self,
        keys: K,
        values: DeviceSliceMut<'_, V>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: `waiting` waits for the stream while function, keys and answers are borrowed.
        self.device.waiting(|stream| unsafe { self.get_async(stream, keys, values, found) })
    }

    /// Queues [`get_device`](Self::get_device).
    ///
    /// # Errors
    /// The errors of [`get_device`](Self::get_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the function, `keys`, `values` and `found` stay allocated;
    /// - nothing writes the keys, and nothing else accesses the answers.
    pub unsafe fn get_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        mut values: DeviceSliceMut<'_, V>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        expect_room(keys.count(), values.len())?;
        let lent = [keys.device(), values.device(), found.device(), stream.device()];
        self.device.expect_all_here(lent, "a lookup in a static function")?;
        let (answers, out) = (Answers::bits(found, keys.count())?, values.global_mut());
        // SAFETY: answers and values have a place per key; the rest is this function's contract; scratch is freed in
        // the order of the stream.
        unsafe {
            keys.for_each_chunk(&HASHING, stream, |first, hashed, n| {
                self.queue(stream, hashed.keys, n, answers.from(first), out.at(first))
            })
        }
    }

    /// Looks up the values of the keys that a stencil, bytes or bits, selects, like [`get_device`](Self::get_device).
    /// The bits of other keys become zero, their places in `values` have no meaning. All keys are looked up: if the
    /// stencil selects few, [`select`](warpset_primitives::select) these first.
    ///
    /// # Errors
    /// The errors of [`get_device`](Self::get_device); [`Error::LengthMismatch`] if the stencil is too short.
    pub fn get_if_device<'s, K: DeviceKeys>(
        &self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        values: DeviceSliceMut<'_, V>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: `waiting` waits for the stream while function, keys, stencil and answers are borrowed.
        self.device.waiting(|stream| unsafe { self.get_if_async(stream, keys, stencil, values, found) })
    }

    /// Queues [`get_if_device`](Self::get_if_device).
    ///
    /// # Errors
    /// The errors of [`get_if_device`](Self::get_if_device).
    ///
    /// # Safety
    /// The contract of [`get_async`](Self::get_async); the stencil stays allocated and unchanged like the keys.
    pub unsafe fn get_if_async<'s, K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        values: DeviceSliceMut<'_, V>,
        mut found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let (n, stencil) = (keys.count(), stencil.into());
        stencil.expect_for(n)?;
        self.device.expect_same(stencil.device(), "a lookup in a static function")?;
        let answers = Answers::bits_at(found.global_mut());
        // SAFETY: the lookup checks that there is a bit per key; the stencil is for all keys; the rest is this
        // function's contract.
        unsafe {
            self.get_async(stream, keys, values, found)?;
            Ok(stencil.apply(stream, answers, n)?)
        }
    }

    /// Returns the query that a kernel asks this function with, beside its [`words`](StaticFunction::words): see
    /// [`warpset_kernels::fuse::device_query`], and the chapter on kernels of your own in the project's documentation.
    pub fn query(&self) -> FunctionQuery {
        let Layout { graph, arity, shards, seed, bits, value_bits, .. } = self.layout;
        let shard_seeds = self.layout.slot_words();
        FunctionQuery { shards, seed, shard_seeds, graph, arity: arity as u32, bits, value_bits }
    }

    /// Returns the value of each key of the host; see [`get_device`](Self::get_device).
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        let mut values = in_huge_pages(vec![V::default(); keys.len()]);
        let found = self.get_bulk_into(keys, &mut values)?;
        Ok(found.options(&values))
    }

    /// Writes the values of [`get_bulk`](Self::get_bulk) to a slice of equal length, and returns which keys have one;
    /// the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn get_bulk_into<K: Key>(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap, Error> {
        same_length(keys.len(), values.len())?;
        // Work that the caller queued on other streams runs first.
        self.device.synchronize()?;
        let mut found = vec![0; keys.len().div_ceil(64)];
        Staging::new(&self.device, HASHING).answer(keys, values, &mut found, |chunk, found, out| {
            // SAFETY: a chunk has places for its answers; the function is borrowed until `answer` has waited.
            unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), found, out) }
        })?;
        Ok(Bitmap::from_words(found, keys.len()))
    }
}

in_device_memory! { [V: DeviceFunctionValue] StaticFunction<V> of crate::StaticFunction<V> }
measures! { [V: DeviceFunctionValue] StaticFunction<V>; }

impl<V: FunctionValue> fmt::Debug for DeviceFunctionBuilder<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("DeviceFunctionBuilder");
        f.field("settings", &self.settings).field("device", &self.device).finish()
    }
}

#[cfg(test)]
mod tests;

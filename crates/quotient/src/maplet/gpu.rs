//! Maplets in device memory: the words of the host, built, changed and queried by kernels.
//!
//! A batch becomes pairs, which the filter sorts, lays out, inserts and removes as fingerprints. To combine values, the
//! sorted batch is reduced to one value per fingerprint. Fingerprints without a stored value are then inserted, and the
//! values of the others combined in place. If fingerprints of the batch have several stored values, these are merged
//! with the batch, removed, and the results inserted.

use std::fmt;

use warpset_base::filter::{Filter, Take, same_length};
use warpset_core::bits::lowest;
use warpset_gpu::batch::{Reply, Staging, Stencil};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
pub use warpset_kernels::quotient::rank_select::device_query::MapletQuery;
use warpset_kernels::quotient::rank_select::device_query::RankSelectQuery;
use warpset_kernels::quotient::rank_select::maplet::{
    ABSENT, quotient_maplet_find, quotient_maplet_get, quotient_maplet_get_counted, quotient_maplet_get_paired,
    quotient_maplet_join, quotient_maplet_list, quotient_maplet_list_counted, quotient_maplet_split,
};
use warpset_primitives::merge::Pairs;
use warpset_primitives::reduce::Sum;
use warpset_primitives::scan;
use warpset_simt::GlobalMut;

use super::{MapletBuilder, MapletLayout, cpu};
use crate::gpu::exact;
use crate::gpu::fingerprints::{Fingerprints, TooWide, with_width};
use crate::gpu::launch::{grid, hashing, parameters};
use crate::gpu::{DeviceKeys, QuotientFilter};
use crate::resize::resizes;
use crate::slot_kind::SlotKind as _;
use crate::{Error, Key, Layout, RankSelect};

mod sharded;
mod update;

pub use sharded::{ShardedMaplet, ShardedMapletBuilder};

/// [`crate::Maplet`] in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_quotient::{RankSelectQuotientFilter, Sum};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let builder = RankSelectQuotientFilter::builder(1000).fpr(1e-6).values(20);
/// let mut sold = builder.on(&device).build_from(&[7u64, 8], &[3u8, 1])?;
/// sold.upsert_bulk::<Sum<u64>, _, _>(&[7u64, 9], &[4u8, 2])?;
/// assert_eq!(sold.get_bulk(&[7u64, 9, 10])?, [Some(7), Some(2), None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Maplet {
    layout: MapletLayout,
    /// Filter with the pairs.
    pairs: QuotientFilter<RankSelect>,
}

/// [`MapletBuilder`] of maplets on a device, made by [`MapletBuilder::on`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceMapletBuilder {
    settings: MapletBuilder,
    device: Device,
}

impl MapletBuilder {
    /// Makes a builder with these settings of a maplet in device memory.
    pub fn on(&self, device: &Device) -> DeviceMapletBuilder {
        DeviceMapletBuilder { settings: *self, device: device.clone() }
    }
}

impl DeviceMapletBuilder {
    /// Checks every setting, then allocates an empty maplet.
    ///
    /// # Errors
    /// The errors of [`MapletBuilder::layout`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn build(&self) -> Result<Maplet, Error> {
        let layout = self.settings.layout()?;
        Ok(Maplet { layout, pairs: QuotientFilter::with_layout(&self.device, layout.pairs())? })
    }

    /// Builds a maplet like [`MapletBuilder::build_from`].
    ///
    /// # Errors
    /// The errors of [`MapletBuilder::build_from`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn build_from<K: Key, V: Copy + Into<u64> + Sync>(&self, keys: &[K], values: &[V]) -> Result<Maplet, Error> {
        let layout = self.settings.layout()?;
        let stream = self.device.new_stream()?;
        let batch = Fingerprints::from_host(&layout.pairs(), &stream, &cpu::pairs(&layout, keys, values)?)?;
        Maplet::of_pairs(&stream, layout, batch)
    }

    /// Builds a maplet of keys and values on the device.
    ///
    /// # Errors
    /// The errors of [`DeviceMapletBuilder::build_from`]; [`Error::Gpu`] for memory of another device.
    pub fn build_from_device<K: DeviceKeys>(&self, keys: K, values: DeviceSlice<'_, u64>) -> Result<Maplet, Error> {
        let layout = self.settings.layout()?;
        let stream = self.device.new_stream()?;
        waiting_on_errors(&stream, || {
            let batch = Maplet::brought(&layout, &stream, keys, values)?;
            Maplet::of_pairs(&stream, layout, batch)
        })
    }
}

/// Runs `work`, and waits for the stream if it fails.
fn waiting_on_errors<T>(stream: &Stream, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let done = work();
    if done.is_err() {
        stream.synchronize()?;
    }
    done
}

/// Fingerprints without values, ascending, and their values.
struct Apart {
    fingerprints: DeviceVec<u64>,
    values: DeviceVec<u64>,
}

impl Apart {
    fn uninit(stream: &Stream, len: usize) -> Result<Apart, Error> {
        Ok(Apart { fingerprints: stream.alloc_uninit(len)?, values: stream.alloc_uninit(len)? })
    }

    fn as_pairs(&self) -> Pairs<'_, u64, u64> {
        Pairs::new(self.fingerprints.as_slice(), self.values.as_slice())
    }
}

/// Stored values of a batch's fingerprints.
struct Found {
    /// First bit of the value of each fingerprint in the words.
    places: DeviceVec<u64>,
    /// Bit per fingerprint without a value.
    absent: DeviceVec<u64>,
    absent_count: usize,
    /// Number of fingerprints with several values.
    several_count: usize,
}

/// Stored pairs of ascending fingerprints.
struct Stored {
    /// Place of the first pair of each fingerprint.
    places: DeviceVec<u64>,
    pairs: DeviceVec<u64>,
    copies: DeviceVec<u64>,
}

impl Maplet {
    /// Copies a maplet from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn from_host(device: &Device, maplet: &crate::Maplet) -> Result<Maplet, Error> {
        Ok(Maplet { layout: *maplet.layout(), pairs: QuotientFilter::from_host(device, maplet.filter())? })
    }

    /// Copies the maplet to host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory, [`Error::OutOfMemory`] if the host has.
    pub fn to_host(&self) -> Result<crate::Maplet, Error> {
        Ok(crate::Maplet::from_parts(self.layout, self.pairs.to_host()?))
    }

    /// Copies the maplet on the same device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn try_clone(&self) -> Result<Maplet, Error> {
        Ok(Maplet { layout: self.layout, pairs: self.pairs.try_clone()? })
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &MapletLayout {
        &self.layout
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        self.pairs.device()
    }

    /// Returns the words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.pairs.words()
    }

    /// Returns the number of stored values, copies included.
    pub fn len(&self) -> u64 {
        self.pairs.len()
    }

    /// Whether no value is stored.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the bytes of device memory of the slots.
    pub fn memory_bytes(&self) -> u64 {
        self.pairs.memory_bytes()
    }

    /// Returns the slots in use as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.pairs.load_factor()
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.pairs.clear()
    }

    /// Builds a maplet of pairs in any order. Waits.
    fn of_pairs(stream: &Stream, layout: MapletLayout, batch: Fingerprints) -> Result<Maplet, Error> {
        let of_pairs = layout.pairs();
        let pairs = QuotientFilter::lay_out(stream, of_pairs, &batch.sorted(&of_pairs, stream)?)?;
        Ok(Maplet { layout, pairs })
    }

    /// Makes pairs of keys and values on the device. Waits for the check of the values.
    fn brought<K: DeviceKeys>(
        layout: &MapletLayout,
        stream: &Stream,
        keys: K,
        values: DeviceSlice<'_, u64>,
    ) -> Result<Fingerprints, Error> {
        same_length(keys.count(), values.len())?;
        if keys.count() == 0 {
            return Fingerprints::alloc(&layout.pairs(), stream, 0);
        }
        stream.device().expect_all_here([keys.device(), values.device()], "filling a maplet")?;
        stream.device().synchronize()?;
        // SAFETY: keys and values are borrowed until the check of the values has been waited for.
        let fingerprints = unsafe { Fingerprints::wide_of_device_keys(&layout.keys, stream, keys, TooWide::Refused)? };
        let (mut first, mut place) = (stream.from_slice(&[u64::MAX])?, [0]);
        let pairs = join(layout, stream, fingerprints.as_slice(), values, Some(&mut first))?;
        stream.download(&first, &mut place)?;
        if place[0] != u64::MAX {
            let (at, mut value) = (place[0] as usize, [0]);
            stream.download(values.slice(at..at + 1), &mut value)?;
            layout.check_value(value[0])?;
        }
        Ok(pairs)
    }

    /// Finds the values of `n > 0` fingerprints in a maplet without counters. Waits.
    fn find(&self, stream: &Stream, fingerprints: DeviceSlice<'_, u64>) -> Result<Found, Error> {
        let (layout, n) = (self.layout.pairs(), fingerprints.len());
        let mut places = stream.alloc_uninit::<u64>(n)?;
        let mut absent = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let (mut counted, mut counts) = (stream.alloc_zeroed::<u64>(2)?, [0; 2]);
        let kernel = quotient_maplet_find {
            words: self.pairs.words.global(),
            blocks: layout.blocks,
            parameters: parameters(&layout),
            value_bits: self.layout.value_bits,
            fields: warpset_core::quotient::rank_select::fields(layout.remainder_bits()),
            fingerprints: fingerprints.global(),
            n,
            places: places.global_mut(),
            absent: absent.global_mut(),
            counted: counted.global_mut(),
        };
        // SAFETY: the filter is sound and borrowed; the vectors have the lengths that the kernel asks for.
        unsafe { kernel.launch(stream, grid(n))? };
        stream.download(&counted, &mut counts)?;
        Ok(Found { places, absent, absent_count: counts[0] as usize, several_count: counts[1] as usize })
    }

    /// Lists the stored pairs, without the bits that are not in `kept`, of `n > 0` fingerprints without values; equal
    /// ones once if `different` is set. Waits.
    fn stored(
        &self,
        stream: &Stream,
        fingerprints: DeviceSlice<'_, u64>,
        different: bool,
        kept: u64,
    ) -> Result<Stored, Error> {
        let n = fingerprints.len();
        let mut counts = stream.alloc_uninit::<u64>(n)?;
        let mut places = stream.alloc_uninit::<u64>(n)?;
        // SAFETY: the vectors have the lengths that the kernel asks for, are apart, and freed in the order of the
        // stream; nothing is listed.
        unsafe {
            let counted = counts.global_mut();
            self.list(stream, fingerprints, different, None, [counted; 3])?;
            scan::exclusive_async::<Sum<u64>>(stream, counts.as_slice(), places.as_mut_slice())?;
        }
        let (mut last, mut before) = ([0], [0]);
        stream.download(counts.slice(n - 1..), &mut last)?;
        stream.download(places.slice(n - 1..), &mut before)?;
        let total = (before[0] + last[0]) as usize;
        let (mut pairs, mut copies) = (stream.alloc_uninit::<u64>(total)?, stream.alloc_uninit::<u64>(total)?);
        if total > 0 {
            let to = [places.global_mut(), pairs.global_mut(), copies.global_mut()];
            // SAFETY: there is a place for each pair that was counted.
            unsafe { self.list(stream, fingerprints, different, Some(kept), to)? };
        }
        Ok(Stored { places, pairs, copies })
    }

    /// Queues the kernel that counts the pairs of `n > 0` fingerprints or, with bits to keep, lists them.
    ///
    /// # Safety
    /// The contract of [`quotient_maplet_list`] for places, pairs and copies, until `stream` has passed this work.
    unsafe fn list(
        &self,
        stream: &Stream,
        fingerprints: DeviceSlice<'_, u64>,
        different: bool,
        kept: Option<u64>,
        [places, out, copies]: [GlobalMut<u64>; 3],
    ) -> Result<(), Error> {
        let (layout, n) = (self.layout.pairs(), fingerprints.len());
        let (words, blocks, parameters) = (self.pairs.words.global(), layout.blocks, parameters(&layout));
        let (value_bits, different, fingerprints) = (self.layout.value_bits, different as u32, fingerprints.global());
        let (lists, kept) = (kept.is_some() as u32, kept.unwrap_or(0));
        macro_rules! launch {
            ($kernel:ident) => {
                $kernel {
                    words,
                    blocks,
                    parameters,
                    value_bits,
                    different,
                    fingerprints,
                    n,
                    lists,
                    kept,
                    places,
                    out,
                    copies,
                }
                .launch(stream, grid(n))?
            };
        }
        // SAFETY: the filter is sound and borrowed; the rest is the contract of this function.
        unsafe {
            if layout.is_counted() { launch!(quotient_maplet_list_counted) } else { launch!(quotient_maplet_list) }
        }
        Ok(())
    }

    fn rewritten(&self, keys: Layout) -> Result<Maplet, Error> {
        let layout = MapletLayout::new(keys, self.layout.value_bits)?;
        Ok(Maplet { layout, pairs: self.pairs.rewritten(layout.pairs())? })
    }

    /// Returns the value of each key, like [`crate::Maplet::get_bulk`].
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<Option<u64>>, Error> {
        let mut values = vec![None; keys.len()];
        if self.layout.keys.exact {
            let (hashes, places) = exact::some_hashes(&self.layout.keys, keys);
            let mut places = places.unwrap_or_else(|| (0..keys.len()).collect()).into_iter();
            self.get_hashed(&hashes, |_, some| {
                some.iter().zip(&mut places).for_each(|(&value, place)| values[place] = present(value));
            })?;
        } else {
            self.get_hashed(keys, |first, some| {
                values[first..].iter_mut().zip(some).for_each(|(place, &value)| *place = present(value));
            })?;
        }
        Ok(values)
    }

    /// Looks up keys that are no integers of an exact maplet; gives values, or [`Maplet::ABSENT`], to `take`.
    fn get_hashed<K: Key>(&self, keys: &[K], mut take: impl FnMut(usize, &[u64])) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        self.device().synchronize()?;
        Staging::new(self.device(), hashing(&self.layout.keys)).run(
            keys,
            Reply::Words,
            // SAFETY: there is a word per key; the filter is borrowed until `run` has waited.
            |chunk| unsafe { self.look_up(chunk.stream, chunk.keys, chunk.range.len(), chunk.replies) },
            |range, words| take(range.start, words),
        )
    }

    /// Answer of lookups on the device for a key without a value; values have fewer than 64 bits.
    pub const ABSENT: u64 = ABSENT;

    /// Writes the value of each key, or [`Maplet::ABSENT`]; `values` has one word per key.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if not; memory of another device is refused.
    pub fn get_device<K: DeviceKeys>(&self, keys: K, values: DeviceSliceMut<'_, u64>) -> Result<(), Error> {
        // SAFETY: maplet, keys and values are borrowed until the stream has been waited for.
        self.device().waiting(|stream| unsafe { self.get_async(stream, keys, values) })
    }

    /// Queues [`Maplet::get_device`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the maplet, `keys` and `values` stay allocated;
    /// - nothing writes the maplet or the keys;
    /// - nothing else accesses `values`.
    ///
    /// # Errors
    /// The errors of [`Maplet::get_device`].
    pub unsafe fn get_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        mut values: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        same_length(keys.count(), values.len())?;
        if keys.count() == 0 {
            return Ok(());
        }
        let lent = [keys.device(), values.device(), stream.device()];
        self.device().expect_all_here(lent, "a lookup in a maplet")?;
        let to = values.global_mut();
        // SAFETY: the contract of this function; everything else is freed in the order of the stream.
        unsafe {
            keys.for_each_chunk(&hashing(&self.layout.keys), stream, |first, hashed, n| {
                self.look_up(stream, exact::keys_for(&self.layout.keys, hashed.keys), n, to.at(first))
            })
        }
    }

    /// Writes the values of the keys that a stencil, bytes or bits, selects, like [`Maplet::get_device`];
    /// [`Maplet::ABSENT`] for the others. All keys are looked up: if the stencil selects few,
    /// [`select`](warpset_primitives::select) these first.
    ///
    /// # Errors
    /// The errors of [`Maplet::get_device`]; [`Error::LengthMismatch`] if the stencil is too short.
    pub fn get_if_device<'s, K: DeviceKeys>(
        &self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        values: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: maplet, keys, stencil and values are borrowed until the stream has been waited for.
        self.device().waiting(|stream| unsafe { self.get_if_async(stream, keys, stencil, values) })
    }

    /// Queues [`Maplet::get_if_device`].
    ///
    /// # Safety
    /// The contract of [`Maplet::get_async`]; the stencil stays allocated and unchanged like the keys.
    ///
    /// # Errors
    /// The errors of [`Maplet::get_if_device`].
    pub unsafe fn get_if_async<'s, K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        mut values: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let (n, stencil, to) = (keys.count(), stencil.into(), values.global_mut());
        stencil.expect_for(n)?;
        self.device().expect_same(stencil.device(), "a lookup in a maplet")?;
        // SAFETY: the lookup checks that there is a word per key; the stencil is for all keys; the rest is the contract
        // of this function.
        unsafe {
            self.get_async(stream, keys, values)?;
            Ok(stencil.fill(stream, to, ABSENT, n)?)
        }
    }

    /// Returns the query that a kernel asks this maplet with, beside its [`words`](Maplet::words): see
    /// [`warpset_kernels::quotient::rank_select::device_query`], and the chapter on kernels of your own in the
    /// project's documentation.
    pub fn query(&self) -> MapletQuery {
        let (keys, Layout { blocks, split, .. }) = (&self.layout.keys, self.layout.pairs());
        let pairs = RankSelectQuery::new(blocks, split, keys.seed(), keys.is_counted(), keys.exact);
        MapletQuery::new(pairs, self.layout.value_bits)
    }

    /// Queues the lookup of `n` keys.
    ///
    /// # Safety
    /// The contract of [`Maplet::get_async`], with `out` valid for a word per key.
    unsafe fn look_up(&self, stream: &Stream, keys: KeySlice, n: usize, out: GlobalMut<u64>) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let (layout, words, value_bits) = (self.layout.pairs(), self.pairs.words.global(), self.layout.value_bits);
        let (blocks, parameters) = (layout.blocks, parameters(&layout));
        let fields = warpset_core::quotient::rank_select::fields(layout.remainder_bits());
        let KeySlice { keys, kind, spread, .. } = keys;
        macro_rules! launch {
            ($kernel:ident) => {
                $kernel { words, blocks, parameters, value_bits, fields, keys, kind, spread, n, out }
                    .launch(stream, grid(n))?
            };
        }
        // SAFETY: the filter is sound, with counters where the kernel expects them; the rest is the contract of this
        // function.
        unsafe {
            if layout.is_counted() {
                launch!(quotient_maplet_get_counted);
            } else if layout.block_words() % 2 == 0 {
                launch!(quotient_maplet_get_paired);
            } else {
                launch!(quotient_maplet_get);
            }
        }
        Ok(())
    }

    /// Lists the different values of each key's fingerprint in ascending order. The values of key `i` are those from
    /// place `i` of the first vector up to the next key's place; the second vector has all of them.
    ///
    /// # Errors
    /// [`Error::KeyTooWide`] if the maplet is exact and a key has too many bits; [`Error::Gpu`] if the device fails or
    /// has too little memory; memory of another device is refused.
    pub fn values_device<K: DeviceKeys>(&self, keys: K) -> Result<(DeviceVec<u64>, DeviceVec<u64>), Error> {
        let stream = self.pairs.ready_stream()?;
        if keys.count() == 0 {
            return Ok((stream.alloc_uninit(0)?, stream.alloc_uninit(0)?));
        }
        self.device().expect_same(keys.device(), "a lookup in a maplet")?;
        waiting_on_errors(&stream, || {
            // SAFETY: the keys are borrowed until the stream has been waited for.
            let fingerprints =
                unsafe { Fingerprints::wide_of_device_keys(&self.layout.keys, &stream, keys, TooWide::Refused)? };
            let Stored { places, pairs, .. } =
                self.stored(&stream, fingerprints.as_slice(), true, self.layout.value_of(!0))?;
            stream.synchronize()?;
            Ok((places, pairs))
        })
    }

    /// Returns the different values of a key's fingerprint in ascending order, like [`crate::Maplet::values`].
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn values(&self, key: impl Key) -> Result<Vec<u64>, Error> {
        let Some(fingerprint) = self.layout.keys.fingerprint(key) else { return Ok(Vec::new()) };
        let stream = self.pairs.ready_stream()?;
        waiting_on_errors(&stream, || {
            let fingerprints = stream.from_slice(&[fingerprint])?;
            let Stored { pairs, .. } = self.stored(&stream, fingerprints.as_slice(), true, self.layout.value_of(!0))?;
            stream.synchronize()?;
            Ok(pairs.to_vec()?)
        })
    }
}

resizes! { [] Maplet, RankSelect, |maplet| maplet.layout.keys; }

/// Returns a bit per answer, whether there is a value.
fn found_bits(values: &[Option<u64>]) -> Vec<u64> {
    let bits = |some: &[Option<u64>]| {
        some.iter().enumerate().fold(0, |word, (i, value)| word | u64::from(value.is_some()) << i)
    };
    values.chunks(64).map(bits).collect()
}

/// Returns the value of an answer, if there is one.
fn present(value: u64) -> Option<u64> {
    (value != ABSENT).then_some(value)
}

/// Queues the join of fingerprints and values to pairs. Excess bits of values are dropped; with `too_wide`, one word of
/// all ones, it becomes the first place of a value that has any.
fn join(
    layout: &MapletLayout,
    stream: &Stream,
    fingerprints: DeviceSlice<'_, u64>,
    values: DeviceSlice<'_, u64>,
    too_wide: Option<&mut DeviceVec<u64>>,
) -> Result<Fingerprints, Error> {
    let n = fingerprints.len();
    let mut pairs = Fingerprints::alloc(&layout.pairs(), stream, n)?;
    if n > 0 {
        let (fingerprints, values, value_bits) = (fingerprints.global(), values.global(), layout.value_bits);
        let too_wide = too_wide.map(DeviceVec::global_mut);
        // SAFETY: there is a place per pair; new vectors are freed in the order of the stream, and the callers keep the
        // others.
        with_width!(&mut pairs, |pairs| unsafe {
            let out = pairs.global_mut();
            // No value is too wide without a word for its place, so the kernel does not access that of another vector.
            let most = if too_wide.is_some() { lowest(value_bits) } else { u64::MAX };
            let too_wide = too_wide.unwrap_or(out.cast());
            quotient_maplet_join { fingerprints, values, n, value_bits, most, out, too_wide }
                .launch(stream, grid(n))?;
        });
    }
    Ok(pairs)
}

/// Queues the split of the first `n` pairs into fingerprints, `dropped` bits shorter, and values.
fn split(layout: &MapletLayout, stream: &Stream, pairs: &Fingerprints, n: usize, dropped: u32) -> Result<Apart, Error> {
    let mut apart = Apart::uninit(stream, n)?;
    if n > 0 {
        let (value_bits, fingerprints, values) =
            (layout.value_bits, apart.fingerprints.global_mut(), apart.values.global_mut());
        // SAFETY: there is a place per pair; all vectors are freed in the order of the stream.
        with_width!(pairs, |pairs| unsafe {
            let pairs = pairs.slice(..n).global();
            quotient_maplet_split { pairs, n, value_bits, dropped, fingerprints, values }.launch(stream, grid(n))?;
        });
    }
    Ok(apart)
}

impl Filter for Maplet {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        take(0, &found_bits(&self.get_bulk(keys)?));
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl crate::Maplet {
    /// Copies the maplet to device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn to_device(&self, device: &Device) -> Result<Maplet, Error> {
        Maplet::from_host(device, self)
    }
}

impl fmt::Debug for Maplet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("gpu::Maplet").field("layout", &self.layout).field("len", &self.len()).finish_non_exhaustive()
    }
}

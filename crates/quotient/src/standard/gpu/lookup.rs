//! Lookups.

use warpset_core::quotient::slots::{Container, bytes_of_slot};
use warpset_gpu::{DeviceSlice, DeviceSliceMut, GpuError, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::batch::results;
use warpset_kernels::quotient::windows::fields;
use warpset_kernels::quotient::{lookup as sorted, standard as kernels};
use warpset_primitives::sort;
use warpset_simt::{Global, GlobalMut};

use super::fingerprints::{Fingerprints, grid, parameters};
use super::keys::{Uploaded, key_slice};
use super::{DeviceKey, StandardQuotientFilter, crossover};
use crate::{Error, Key};

/// Keys that a query on a host slice takes at a time.
const CHUNK: usize = 1 << 24;

/// How a batch is looked up. Answers are in the order of the keys either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LookupMethod {
    /// The faster one, from measurements (`docs/performance-log.md`): sorted for large batches in filters so full that clusters
    /// are long, else, and where there is no memory for sorting, unsorted.
    #[default]
    Automatic,
    /// One thread a key, as keys come.
    Unsorted,
    /// As in the paper (section IV-A): fingerprints are sorted first, with the places of their keys, so that neighbouring
    /// threads read neighbouring slots. Takes memory for fingerprints and places, twice. Batches of 2^32 keys are looked up
    /// unsorted.
    Sorted,
}

impl StandardQuotientFilter {
    /// Queues the lookup of `keys`: answer `i` becomes 1 or 0.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter, `keys` and `answers` stay allocated, nobody writes the filter or
    /// the keys, and nobody else touches the answers.
    pub unsafe fn contains_async<K: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.contains_async_with(stream, keys, answers, LookupMethod::Automatic) }
    }

    /// [`StandardQuotientFilter::contains_async`] by a method of choice.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn contains_async_with<K: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut answers: DeviceSliceMut<'_, u8>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let n = keys.len();
        if answers.len() != n {
            return Err(Error::LengthMismatch { keys: n, answers: answers.len() });
        }
        let words = GlobalMut::from_raw_parts(answers.global_mut().as_ptr().cast(), n.div_ceil(8));
        // SAFETY: there is a byte a key; the rest is the caller's promise.
        unsafe { self.contains(stream, key_slice(&self.layout, keys), n, results::BYTES, words, method) }
    }

    /// Queues the lookup of `keys`: adds how many of them may be in the filter to the first word of `count`.
    ///
    /// # Safety
    /// As for [`StandardQuotientFilter::contains_async`]; other such counts may run at the same time.
    pub unsafe fn count_contained_async<K: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.count_contained_async_with(stream, keys, count, LookupMethod::Automatic) }
    }

    /// [`StandardQuotientFilter::count_contained_async`] by a method of choice.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn count_contained_async_with<K: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut count: DeviceSliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        if count.is_empty() {
            return Err(Error::LengthMismatch { keys: keys.len(), answers: 0 });
        }
        // SAFETY: there is a word; the rest is the caller's promise.
        unsafe {
            let (n, out) = (keys.len(), count.global_mut());
            self.contains(stream, key_slice(&self.layout, keys), n, results::COUNT, out, method)
        }
    }

    /// # Safety
    /// `out` has room for `n` results of this form; all stay valid, and filter and keys unwritten, until `stream` has
    /// passed.
    pub(super) unsafe fn contains(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        form: u32,
        out: GlobalMut<u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let (method, falls_back) = match method {
            LookupMethod::Automatic => (crossover::lookup_method(n, &self.layout, self.load_factor()), true),
            other => (other, false),
        };
        // SAFETY: the caller's promise is the same.
        unsafe { self.contains_by(stream, keys, n, form, out, method, falls_back) }
    }

    /// By one of the two methods; with `falls_back`, unsorted where there is no memory for sorting.
    ///
    /// # Safety
    /// As [`contains`](Self::contains).
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn contains_by(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        form: u32,
        out: GlobalMut<u64>,
        method: LookupMethod,
        falls_back: bool,
    ) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        if method == LookupMethod::Sorted && n < 1 << 32 {
            // SAFETY: the caller's promise is the same.
            match unsafe { self.contains_sorted(stream, keys, n, form, out) } {
                // Nothing has been counted yet, and bits that were cleared are written below.
                Err(Error::Gpu(GpuError::OutOfMemory { .. })) if falls_back => {}
                done => return done,
            }
        }
        let KeySlice { keys, kind, spread } = keys;
        let words: Global<u64> = self.words.global();
        let (grid, slots, parameters) = (grid(n), self.layout.slots(), parameters(&self.layout));
        let remainder_bits = self.layout.remainder_bits();
        macro_rules! launch {
            ($kernel:ident $(, $fields:expr)?) => {
                kernels::$kernel { words, slots, parameters, $(fields: $fields,)? keys, kind, spread, n, form, out }
                    .launch(stream, grid)
            };
        }
        // SAFETY: the filter is sound; the caller answers for the rest.
        unsafe {
            match self.layout.container() {
                Container::Packed if remainder_bits % 2 == 1 => {
                    launch!(quotient_standard_contains_paired, fields(remainder_bits))?
                }
                Container::Packed => launch!(quotient_standard_contains_packed, fields(remainder_bits))?,
                Container::Bytes if bytes_of_slot(remainder_bits) == 1 => launch!(quotient_standard_contains_bytes)?,
                Container::Bytes => launch!(quotient_standard_contains_wide)?,
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`contains`](Self::contains), with fewer than 2^32 keys.
    unsafe fn contains_sorted(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        form: u32,
        out: GlobalMut<u64>,
    ) -> Result<(), Error> {
        let layout = &self.layout;
        let (words, slots, parameters) = (self.words.global(), layout.slots(), parameters(layout));
        let KeySlice { keys, kind, spread } = keys;
        let by = sort::By::ascending().bits(0..layout.fingerprint_bits());
        let mut places = stream.alloc_uninit::<u32>(n)?;
        if form == results::BITS {
            let bits = results::words(form, n);
            // SAFETY: as many words as the caller says there are.
            unsafe { sorted::quotient_lookup_clear { out, words: bits }.launch(stream, grid(bits))? };
        }
        macro_rules! run {
            ($items:ident, $wide:literal) => {
                // SAFETY: the vectors have a place a key, and are freed in the order of the stream; the filter is sound; the
                // caller answers for the rest.
                unsafe {
                    let (items, places_out) = ($items.global_mut(), places.global_mut());
                    sorted::quotient_lookup_hash { keys, kind, spread, n, parameters, out: items, places: places_out }
                        .launch(stream, grid(n))?;
                    if form == results::COUNT {
                        sort::sort_keys_in_place_async(stream, $items.as_mut_slice(), by)?;
                    } else {
                        sort::sort_pairs_in_place_async(stream, $items.as_mut_slice(), places.as_mut_slice(), by)?;
                    }
                    let items = KeySlice::new($items.global(), kind, spread).keys;
                    let (wide, places) = ($wide, places.global());
                    match layout.container() {
                        Container::Packed => {
                            let fields = fields(layout.remainder_bits());
                            sorted::quotient_lookup_sorted_packed { words, slots, parameters, fields, fingerprints: items, wide, places, n, form, out }.launch(stream, grid(n))?;
                        }
                        Container::Bytes => {
                            sorted::quotient_lookup_sorted_bytes { words, slots, parameters, fingerprints: items, wide, places, n, form, out }.launch(stream, grid(n))?;
                        }
                    }
                }
            };
        }
        match &mut Fingerprints::alloc(layout, stream, n)? {
            Fingerprints::Narrow(items) => run!(items, 0),
            Fingerprints::Wide(items) => run!(items, 1),
        }
        Ok(())
    }

    /// One answer a key, in the order of the keys.
    pub fn contains_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(CHUNK) {
            let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
            let mut out = stream.alloc_uninit::<u64>(results::words(results::BITS, keys.len()))?;
            let slice = uploaded.keys(&self.layout);
            // SAFETY: there is a bit a key; all live until the copy has been waited for.
            unsafe {
                self.contains(&stream, slice, keys.len(), results::BITS, out.global_mut(), LookupMethod::Automatic)?
            };
            let mut words = vec![0u64; out.len()];
            stream.download(&out, &mut words)?;
            answers.extend((0..keys.len()).map(|i| words[i / 64] >> (i % 64) & 1 != 0));
        }
        Ok(answers)
    }

    /// How many of the keys may be in the filter.
    pub fn count_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        for keys in keys.chunks(CHUNK) {
            let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
            let slice = uploaded.keys(&self.layout);
            // SAFETY: one word counts; all live until the copy below has been waited for, keys being freed in order.
            unsafe {
                self.contains(&stream, slice, keys.len(), results::COUNT, count.global_mut(), LookupMethod::Automatic)?
            };
        }
        let mut found = [0];
        stream.download(&count, &mut found)?;
        Ok(found[0] as usize)
    }
}

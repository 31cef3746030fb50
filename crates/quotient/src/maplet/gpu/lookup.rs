//! Lookups in maplets: the value of a key, all values of a key, and the query that kernels ask with.

use rayon::prelude::*;
use warpset_base::filter::{Filter, Take, same_length};
use warpset_base::words::in_huge_pages;
use warpset_gpu::batch::{Staging, Stencil};
use warpset_gpu::{DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::rank_select::device_query::{MapletQuery, RankSelectQuery};
use warpset_kernels::quotient::rank_select::maplet::{
    ABSENT, quotient_maplet_get, quotient_maplet_get_counted, quotient_maplet_get_paired,
};
use warpset_simt::GlobalMut;

use super::pairs::Stored;
use super::{Maplet, ShardedMaplet};
use crate::gpu::fingerprints::{Fingerprints, TooWide};
use crate::gpu::launch::{grid, hashing, parameters, waiting_on_errors};
use crate::gpu::{DeviceKeys, exact};
use crate::{Bitmap, Error, Key, Layout};

impl Maplet {
    /// Returns the value of each key, like [`crate::Maplet::get_bulk`].
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<Option<u64>>, Error> {
        let mut answers = in_huge_pages(vec![None; keys.len()]);
        self.get_bulk_into(keys, &mut answers)?;
        Ok(answers)
    }

    /// Writes the value of each key, like [`crate::Maplet::get_bulk_into`].
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is one answer per key; [`Error::Gpu`] if the device fails or has too
    /// little memory.
    pub fn get_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [Option<u64>]) -> Result<(), Error> {
        same_length(keys.len(), answers.len())?;
        if !self.layout.keys.exact {
            return self.get_any(keys, answers);
        }
        exact::answer(&self.layout.keys, keys, answers, None, |words, answers| self.get_any(words, answers))
    }

    /// Looks up keys that all have a fingerprint.
    fn get_any<K: Key>(&self, keys: &[K], answers: &mut [Option<u64>]) -> Result<(), Error> {
        self.device().synchronize()?;
        let staging = Staging::new(self.device(), hashing(&self.layout.keys));
        staging.answer_as(keys, answers, &mut [], put, |chunk, _, out| {
            let keys = exact::keys_for(&self.layout.keys, chunk.keys);
            // SAFETY: there is a word per key; the filter is borrowed until `answer_as` has waited.
            unsafe { self.look_up(chunk.stream, keys, chunk.range.len(), out) }
        })
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
    pub(super) unsafe fn look_up(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        out: GlobalMut<u64>,
    ) -> Result<(), Error> {
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

/// Keys whose answers one task writes.
const TASK: usize = 1 << 13;

/// Writes the answers of a device, by all threads if they are many.
pub(super) fn put(answers: &mut [Option<u64>], values: &[u64]) {
    let all = answers.par_iter_mut().with_min_len(TASK).zip(values);
    all.for_each(|(answer, &value)| *answer = (value != ABSENT).then_some(value));
}

/// Implements [`Filter`] by `get_bulk`: a key with a value is contained.
macro_rules! filters_by_values {
    ($($maplet:ty),*) => {$(
        impl Filter for $maplet {
            type Error = Error;

            fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
                let found: Vec<bool> = self.get_bulk(keys)?.iter().map(Option::is_some).collect();
                take(0, Bitmap::from_bools(&found).as_words());
                Ok(())
            }

            fn memory_bytes(&self) -> u64 {
                self.memory_bytes()
            }
        }
    )*};
}
filters_by_values!(Maplet, ShardedMaplet);

//! Updates of maplets in device memory: insertions, combinations, removals, merges.

use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::quotient::rank_select::combine::MapletKernels;
use warpset_primitives::merge::{Pairs, merge_pairs_async};
use warpset_primitives::reduce::reduce_by_key_async;
use warpset_primitives::select::unique_async;
use warpset_primitives::{KeyMask, sort};

use super::pairs::{Apart, join, split};
use super::{Maplet, cpu};
use crate::gpu::counted_fingerprints::CountedFingerprints;
use crate::gpu::fingerprints::{Fingerprints, TooWide, with_width};
use crate::gpu::launch::{grid, waiting_on_errors};
use crate::gpu::{DeviceKeys, UpdateMethod};
use crate::slot_kind::Change;
use crate::{Error, Key};

impl Maplet {
    /// Stores values like [`crate::Maplet::insert_bulk`].
    ///
    /// # Errors
    /// The errors of [`crate::Maplet::insert_bulk`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn insert_bulk<K: Key, V: Copy + Into<u64> + Sync>(&mut self, keys: &[K], values: &[V]) -> Result<u64, Error> {
        self.with_host_batch(keys, values, |maplet, stream, batch| maplet.insert_pairs(stream, batch))
    }

    /// Stores values like [`Maplet::insert_bulk`], keys and values on the device.
    ///
    /// # Errors
    /// The errors of [`Maplet::insert_bulk`]; memory of another device is refused.
    pub fn insert_device<K: DeviceKeys>(&mut self, keys: K, values: DeviceSlice<'_, u64>) -> Result<u64, Error> {
        self.with_batch(keys, values, |maplet, stream, batch| maplet.insert_pairs(stream, batch))
    }

    fn insert_pairs(&mut self, stream: &Stream, batch: Fingerprints) -> Result<u64, Error> {
        self.pairs.update(stream, batch, Change::Insert, UpdateMethod::Auto)
    }

    /// Combines values like [`crate::Maplet::upsert_bulk`]. `Sum`, `Min`, `Max` and `BitOr` have kernels; programs
    /// compile kernels of other operators by `by_key_kernels!` and `maplet_kernels!` of `warpset-kernels`.
    ///
    /// A batch that brings new keys and also combines values takes memory for a second copy of the slots; one with keys
    /// of several values for two more, unless it is certain to fit.
    ///
    /// # Errors
    /// The errors of [`crate::Maplet::upsert_bulk`]; [`Error::Gpu`] if the device fails or has too little memory. If it
    /// fails while values are replaced in place, part of the batch may be stored.
    pub fn upsert_bulk<O: MapletKernels, K: Key, V: Copy + Into<u64> + Sync>(
        &mut self,
        keys: &[K],
        values: &[V],
    ) -> Result<u64, Error> {
        self.layout.check_combines()?;
        self.with_host_batch(keys, values, |maplet, stream, batch| maplet.upsert_pairs::<O>(stream, batch))
    }

    /// Combines values like [`Maplet::upsert_bulk`], keys and values on the device.
    ///
    /// # Errors
    /// The errors of [`Maplet::upsert_bulk`]; memory of another device is refused.
    pub fn upsert_device<O: MapletKernels, K: DeviceKeys>(
        &mut self,
        keys: K,
        values: DeviceSlice<'_, u64>,
    ) -> Result<u64, Error> {
        self.layout.check_combines()?;
        self.with_batch(keys, values, |maplet, stream, batch| maplet.upsert_pairs::<O>(stream, batch))
    }

    /// Lets `work` take the pairs of a batch on the host.
    fn with_host_batch<K: Key, V: Copy + Into<u64> + Sync>(
        &mut self,
        keys: &[K],
        values: &[V],
        work: impl FnOnce(&mut Maplet, &Stream, Fingerprints) -> Result<u64, Error>,
    ) -> Result<u64, Error> {
        let pairs = cpu::pairs(&self.layout, keys, values)?;
        if pairs.is_empty() {
            return Ok(0);
        }
        let stream = self.pairs.ready_stream()?;
        let batch = Fingerprints::from_host(&self.layout.pairs(), &stream, &pairs)?;
        waiting_on_errors(&stream, || work(self, &stream, batch))
    }

    /// Lets `work` take the pairs of a batch on the device.
    fn with_batch<K: DeviceKeys>(
        &mut self,
        keys: K,
        values: DeviceSlice<'_, u64>,
        work: impl FnOnce(&mut Maplet, &Stream, Fingerprints) -> Result<u64, Error>,
    ) -> Result<u64, Error> {
        let stream = self.pairs.ready_stream()?;
        waiting_on_errors(&stream, || {
            let batch = Maplet::brought(&self.layout, &stream, keys, values)?;
            if batch.len() == 0 { Ok(0) } else { work(self, &stream, batch) }
        })
    }

    /// Combines a batch of pairs in any order. Pairs of one fingerprint keep their order.
    fn upsert_pairs<O: MapletKernels>(&mut self, stream: &Stream, mut batch: Fingerprints) -> Result<u64, Error> {
        let (layout, n) = (self.layout, batch.len());
        let by = sort::By::ascending().bits(layout.value_bits..layout.pairs().fingerprint_bits());
        // SAFETY: the vector is this call's to change, and freed in the order of the stream.
        with_width!(&mut batch, |pairs| unsafe { sort::sort_keys_in_place_async(stream, pairs.as_mut_slice(), by) })?;
        let batch = split(&layout, stream, &batch, n, 0)?;
        self.upsert_sorted::<O>(stream, batch)
    }

    /// Combines a batch, ascending by fingerprint and not empty, with the stored values. Returns the number of
    /// fingerprints that had none, and waits.
    fn upsert_sorted<O: MapletKernels>(&mut self, stream: &Stream, batch: Apart) -> Result<u64, Error> {
        let (layout, of_pairs) = (self.layout, self.layout.pairs());
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        let batch = combine::<O>(stream, &batch, &mut count)?;
        let unique = stream.download_first(&count)? as usize;
        let (fingerprints, values) = (batch.fingerprints.slice(..unique), batch.values.slice(..unique));
        let mut found = self.find(stream, fingerprints)?;
        let absent_count = found.absent_count;
        if found.several_count > 0 {
            // They get one value, in a copy.
            let stored = self.stored(stream, fingerprints, false, !0)?;
            let there = split(&layout, stream, &Fingerprints::Wide(stored.pairs), stored.copies.len(), 0)?;
            let mut both = Apart::uninit(stream, there.fingerprints.len() + unique)?;
            // SAFETY: the vectors are apart, and freed in the order of the stream.
            unsafe {
                let (keys, of_keys) = (both.fingerprints.as_mut_slice(), both.values.as_mut_slice());
                let batch = Pairs::new(fingerprints, values);
                merge_pairs_async(stream, there.as_pairs(), batch, KeyMask::all(), keys, of_keys)?;
            }
            let new = combine::<O>(stream, &both, &mut count)?;
            let old = join(&layout, stream, there.fingerprints.as_slice(), there.values.as_slice(), None)?;
            let mut changed = self.pairs.changed(stream, &old, Change::Remove)?;
            let new = join(&layout, stream, new.fingerprints.slice(..unique), new.values.slice(..unique), None)?;
            changed.update_sorted(stream, &new, Change::Insert, UpdateMethod::Auto)?;
            self.pairs = changed;
            return Ok(absent_count as u64);
        }
        let mut copy = None;
        if absent_count > 0 {
            let new = join(&layout, stream, fingerprints, values, None)?;
            let mut added = Fingerprints::alloc(&of_pairs, stream, unique)?;
            new.keep(stream, unique, &found.absent, &mut added, count.as_mut_slice())?;
            let added = added.first(stream, absent_count)?;
            if absent_count == unique {
                return self.pairs.update_sorted(stream, &added, Change::Insert, UpdateMethod::Auto);
            }
            // New values go to a copy, so that a failure leaves the maplet unchanged. Stored values have other places
            // there; the new ones are skipped.
            let changed = Maplet { layout, pairs: self.pairs.changed(stream, &added, Change::Insert)? };
            found.places = changed.find(stream, fingerprints)?.places;
            copy = Some(changed);
        }
        let changed = copy.as_mut().unwrap_or(self);
        let (words, value_bits, config) = (changed.pairs.words.global_mut(), layout.value_bits, grid(unique));
        let (places, values, skipped) = (found.places.global(), values.global(), found.absent.global().cast());
        // SAFETY: fingerprints are different, and the others have one value each, at its place; the words are
        // borrowed until they have been waited for.
        unsafe { O::launch_combine(stream, config, words, value_bits, places, values, skipped, unique)? };
        stream.synchronize()?;
        if let Some(changed) = copy {
            *self = changed;
        }
        Ok(absent_count as u64)
    }

    /// Removes all values of keys like [`crate::Maplet::remove_bulk`].
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        let of = self.layout.keys.fingerprints_of();
        let fingerprints: Vec<u64> = keys.iter().filter_map(|key| of.of(key)).collect();
        let stream = self.pairs.ready_stream()?;
        let fingerprints = stream.from_slice(&fingerprints)?;
        waiting_on_errors(&stream, || self.remove_fingerprints(&stream, fingerprints))
    }

    /// Removes all values of keys like [`Maplet::remove_bulk`], keys on the device.
    ///
    /// # Errors
    /// The errors of [`Maplet::remove_bulk`]; memory of another device is refused.
    pub fn remove_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        if keys.count() == 0 {
            return Ok(0);
        }
        self.device().expect_same(keys.device(), "changing a maplet")?;
        let stream = self.pairs.ready_stream()?;
        waiting_on_errors(&stream, || {
            // SAFETY: the keys are borrowed until the stream has been waited for.
            let fingerprints =
                unsafe { Fingerprints::wide_of_device_keys(&self.layout.keys, &stream, keys, TooWide::Dropped)? };
            self.remove_fingerprints(&stream, fingerprints)
        })
    }

    /// Removes all values of fingerprints in any order. Waits.
    fn remove_fingerprints(&mut self, stream: &Stream, mut batch: DeviceVec<u64>) -> Result<u64, Error> {
        if batch.is_empty() || self.is_empty() {
            stream.synchronize()?;
            return Ok(0);
        }
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        let mut different = stream.alloc_uninit::<u64>(batch.len())?;
        let by = sort::By::ascending().bits(0..self.layout.keys.fingerprint_bits());
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        unsafe {
            sort::sort_keys_in_place_async(stream, batch.as_mut_slice(), by)?;
            unique_async(stream, batch.as_slice(), different.as_mut_slice(), count.as_mut_slice())?;
        }
        let unique = stream.download_first(&count)? as usize;
        let stored = self.stored(stream, different.slice(..unique), false, !0)?;
        let layout = self.layout.pairs();
        if layout.is_counted() {
            let batch = CountedFingerprints::given(&layout, stream, stored.pairs.as_slice(), stored.copies.as_slice())?;
            return self.pairs.recount(stream, &batch, Change::Remove);
        }
        let apart = split(&self.layout, stream, &Fingerprints::Wide(stored.pairs), stored.copies.len(), 0)?;
        let pairs = join(&self.layout, stream, apart.fingerprints.as_slice(), apart.values.as_slice(), None)?;
        self.pairs.update_sorted(stream, &pairs, Change::Remove, UpdateMethod::Auto)
    }

    /// Adds all values of another maplet on the same device, like [`crate::Maplet::merge`].
    ///
    /// # Errors
    /// The errors of [`crate::Maplet::merge`]; a maplet of another device is refused; [`Error::Gpu`] if the device
    /// fails or has too little memory.
    pub fn merge(&mut self, other: &Maplet) -> Result<(), Error> {
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        if dropped == 0 {
            return self.pairs.merge(&other.pairs);
        }
        if self.layout.keys.is_counted() {
            // Pairs with fewer bits have to be sorted and counted again; the host does so.
            let mut merged = self.to_host()?;
            merged.merge(&other.to_host()?)?;
            *self = Maplet::from_host(self.device(), &merged)?;
            return Ok(());
        }
        self.with_other(other, dropped, |maplet, stream, theirs| {
            let batch = join(&maplet.layout, stream, theirs.fingerprints.as_slice(), theirs.values.as_slice(), None)?;
            maplet.insert_pairs(stream, batch)
        })
    }

    /// Combines the values of another maplet on the same device, like [`crate::Maplet::merge_by`].
    ///
    /// # Errors
    /// The errors of [`crate::Maplet::merge_by`]; a maplet of another device is refused; [`Error::Gpu`] if the device
    /// fails or has too little memory. If it fails while values are replaced in place, part of them may be stored.
    pub fn merge_by<O: MapletKernels>(&mut self, other: &Maplet) -> Result<(), Error> {
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        self.layout.check_combines()?;
        self.with_other(other, dropped, |maplet, stream, theirs| maplet.upsert_sorted::<O>(stream, theirs))
    }

    /// Lets `work` take the pairs of another maplet, not empty, with fingerprints `dropped` bits shorter.
    fn with_other(
        &mut self,
        other: &Maplet,
        dropped: u32,
        work: impl FnOnce(&mut Maplet, &Stream, Apart) -> Result<u64, Error>,
    ) -> Result<(), Error> {
        self.device().expect_same(other.device(), "two maplets")?;
        if other.is_empty() {
            return Ok(());
        }
        let stream = self.pairs.ready_stream()?;
        waiting_on_errors(&stream, || {
            let theirs = other.pairs.extract(&stream)?;
            let theirs = split(&self.layout, &stream, &theirs, theirs.len(), dropped)?;
            work(self, &stream, theirs).map(|_| ())
        })
    }
}

/// Queues the combination of the values of each fingerprint, which ascend: one value per fingerprint, and their number
/// in the first word of `count`.
fn combine<O: MapletKernels>(stream: &Stream, all: &Apart, count: &mut DeviceVec<u64>) -> Result<Apart, Error> {
    let mut combined = Apart::uninit(stream, all.fingerprints.len())?;
    // SAFETY: the vectors are apart, and freed in the order of the stream.
    unsafe {
        let (keys, values) = (all.fingerprints.as_slice(), all.values.as_slice());
        let (out_keys, out) = (combined.fingerprints.as_mut_slice(), combined.values.as_mut_slice());
        reduce_by_key_async::<O, u64>(stream, keys, values, out_keys, out, count.as_mut_slice())?;
    }
    Ok(combined)
}

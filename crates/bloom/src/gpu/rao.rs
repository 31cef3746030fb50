//! Rao's filter on a device: batch after batch, assigned, grouped, built in shared memory, merged.
//!
//! The rule of assignment is that of [`cpu::RaoBloom`], with the same bits: one choice in any order; two choices in
//! rounds, in which every key sees the filter as it was at the round's start. Queries may come between insertions.

use std::collections::HashSet;
use std::sync::PoisonError;

use warpset_core::bloom::TEST_AND_INSERT_BATCH;
use warpset_core::bloom::rao::{round_keys, spread_attempt};
use warpset_gpu::{DeviceSlice, DeviceVec, GpuError, LaunchConfig, Stream};
use warpset_kernels::bloom_rao::{self as kernels, BLOCK, Parameters, SCAN_BLOCK};
use warpset_kernels::keys::KeySlice;
use warpset_simt::Global;

use super::kernels::{Answers, one_thread_each, seeded_hashing};
use super::keys::{KeyClass, bring_string_hashes};
use super::rates::RateOf;
use super::{Bloom, DeviceKeys, DeviceLayout, RaoBloom};
use crate::cpu::rao::MAX_ATTEMPTS;
use crate::key::as_hashed;
use crate::view::same_length;
use crate::{Bitmap, Error, FirstLevel, Key, Layout, RaoLayout, StringHash, cpu};

/// Keys of one batch where their order does not matter.
const BATCH: usize = 1 << 24;
/// Buckets that kernels can number, one number being taken.
const MAX_BUCKETS: u64 = u32::MAX as u64;

/// What the kernels need to know of a layout.
fn parameters(layout: &RaoLayout) -> Parameters {
    let first_level = match layout.first_level() {
        FirstLevel::Mixed => kernels::MIXED,
        FirstLevel::String(_) if layout.attempt() == 0 => kernels::STRING,
        FirstLevel::String(_) => kernels::STRING_MIXED,
    };
    Parameters {
        buckets: layout.blocks(),
        attempt_spread: spread_attempt(layout.attempt()),
        shape: layout.shape(),
        choices: layout.choices(),
        first_level,
        reserved: 0,
    }
}

/// A handle for kernels that will not look at it.
fn no_string_hashes() -> Global<u32> {
    Global::from_raw_parts(std::ptr::null(), 0)
}

impl DeviceLayout for RaoLayout {
    fn hashing(&self, class: KeyClass) -> (u32, u64) {
        seeded_hashing(class, self.seed())
    }

    fn rate_of(&self) -> RateOf {
        RateOf::Bucket(self.shape())
    }

    fn bytes_seed(&self) -> u64 {
        self.seed()
    }

    fn check_device_limits(&self) -> Result<(), Error> {
        let blocks = self.blocks();
        if blocks < MAX_BUCKETS { Ok(()) } else { Err(Error::TooLarge { blocks, limit: MAX_BUCKETS - 1 }) }
    }

    fn string_function(&self) -> Option<StringHash> {
        match self.first_level() {
            FirstLevel::Mixed => None,
            FirstLevel::String(function) => Some(function),
        }
    }

    unsafe fn launch_contains(
        &self,
        stream: &Stream,
        words: Global<u32>,
        keys: KeySlice,
        string_hashes: Option<Global<u32>>,
        n: usize,
        answers: Answers,
    ) -> Result<(), GpuError> {
        let (config, parameters) = (one_thread_each(n), parameters(self));
        let string_hashes = string_hashes.unwrap_or_else(no_string_hashes);
        let (KeySlice { keys, kind, spread }, Answers { words: out, form }) = (keys, answers);
        // SAFETY: the caller's promise is the kernel's contract.
        unsafe {
            kernels::rao_contains::launch(
                stream,
                config,
                words,
                parameters,
                keys,
                kind,
                spread,
                string_hashes,
                n,
                form,
                out,
            )
        }
    }
}

/// Device memory for one batch at a time, all of it allocated before the first change.
struct Workshop {
    stream: Stream,
    batch: usize,
    keys: DeviceVec<u64>,
    string_hashes: DeviceVec<u32>,
    assigned: DeviceVec<u32>,
    grouped: DeviceVec<u64>,
    counts: DeviceVec<u32>,
    most: DeviceVec<u32>,
}

/// The words and loads of a filter that had keys already, to go back to.
type Backup = Option<(DeviceVec<u32>, DeviceVec<u32>)>;

impl RaoBloom {
    /// Memory for insertions of `n` keys.
    fn workshop(&self, n: usize, keys_on_host: bool) -> Result<Workshop, Error> {
        let layout = &self.layout;
        let batch = match layout.choices() {
            1 => BATCH,
            _ => usize::try_from(round_keys(layout.blocks(), layout.bucket_capacity())).unwrap_or(BATCH).min(1 << 30),
        }
        .min(n);
        let strings = keys_on_host && layout.string_function().is_some();
        let device = &self.device;
        Ok(Workshop {
            stream: device.new_stream()?,
            batch,
            keys: device.alloc_uninit(if keys_on_host { batch } else { 0 })?,
            string_hashes: device.alloc_uninit(if strings { batch } else { 0 })?,
            assigned: device.alloc_uninit(batch)?,
            grouped: device.alloc_uninit(batch)?,
            counts: device.alloc_uninit(layout.blocks() as usize)?,
            most: device.alloc_uninit(1)?,
        })
    }

    /// The fullest bucket's number of set bits.
    fn most_ones(&self, workshop: &mut Workshop) -> Result<u32, Error> {
        let (n, stream) = (self.bucket_ones.len(), &workshop.stream);
        stream.fill_bytes(&mut workshop.most, 0)?;
        // SAFETY: the filter is borrowed until the stream has been waited for, in `download`.
        unsafe {
            let (config, ones, most) = (self.covering(n), self.bucket_ones.global(), workshop.most.global_mut());
            kernels::rao_most::launch(stream, config, ones, n, most)?;
        }
        let mut most = [0];
        stream.download(&workshop.most, &mut most)?;
        Ok(most[0])
    }

    /// Queues one batch: assign, group, build.
    ///
    /// # Safety
    /// `keys` are `n` keys of their kind, at most a batch, valid until the workshop's stream has passed; so is the
    /// filter, which nobody else uses; string hashes are given if the layout wants them.
    unsafe fn insert_batch(
        &mut self,
        workshop: &mut Workshop,
        keys: KeySlice,
        string_hashes: Option<Global<u32>>,
        n: usize,
    ) -> Result<(), Error> {
        let Workshop { stream, assigned, grouped, counts, .. } = workshop;
        let string_hashes = string_hashes.unwrap_or_else(no_string_hashes);
        let (parameters, buckets) = (parameters(&self.layout), self.layout.blocks() as usize);
        let KeySlice { keys, kind, spread } = keys;
        stream.fill_bytes(&mut *counts, 0)?;
        let (words, ones) = (self.words.global(), self.bucket_ones.global());
        let resident = self.device.properties().multiprocessors * 8;
        // SAFETY: the workshop has room for a batch and a count a bucket; launches run in order; the rest is the
        // caller's promise.
        unsafe {
            kernels::rao_assign::launch(
                stream,
                one_thread_each(n),
                words,
                ones,
                parameters,
                keys,
                kind,
                spread,
                string_hashes,
                n,
                assigned.global_mut(),
                counts.global_mut(),
            )?;
            let config = LaunchConfig::new(1, SCAN_BLOCK).shared(256);
            kernels::rao_scan::launch(stream, config, counts.global_mut(), buckets)?;
            let (config, places) = (one_thread_each(n), grouped.global_mut());
            let (assigned, starts) = (assigned.global(), counts.global_mut());
            kernels::rao_group::launch(stream, config, keys, kind, spread, n, assigned, starts, places)?;
            let shared_bytes = parameters.shape.bucket_words * 4 + 64;
            let config = LaunchConfig::new((buckets as u32).min(resident), BLOCK).shared(shared_bytes);
            kernels::rao_build::launch(
                stream,
                config,
                self.words.global_mut(),
                self.bucket_ones.global_mut(),
                parameters.buckets,
                parameters.shape,
                grouped.global(),
                counts.global(),
            )?;
        }
        Ok(())
    }

    /// Runs `insert_all` until no bucket overflows: with another first-level hash each time if the filter was empty.
    fn attempt(
        &mut self,
        workshop: &mut Workshop,
        mut insert_all: impl FnMut(&mut Self, &mut Workshop) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let limit = self.layout.shape().most_ones();
        let before = self.layout;
        let empty = self.most_ones(workshop)? == 0;
        let backup: Backup = if empty {
            None
        } else {
            let mut words = self.device.alloc_uninit(self.words.len())?;
            let mut ones = self.device.alloc_uninit(self.bucket_ones.len())?;
            workshop.stream.copy(&mut words, &self.words)?;
            workshop.stream.copy(&mut ones, &self.bucket_ones)?;
            Some((words, ones))
        };
        let mut attempts = 1;
        loop {
            let ones = insert_all(self, workshop).and_then(|()| self.most_ones(workshop));
            if matches!(ones, Ok(ones) if ones <= limit) {
                return Ok(());
            }
            match &backup {
                None => {
                    workshop.stream.fill_bytes(&mut self.words, 0)?;
                    workshop.stream.fill_bytes(&mut self.bucket_ones, 0)?;
                }
                Some((words, ones)) => {
                    workshop.stream.copy(&mut self.words, words)?;
                    workshop.stream.copy(&mut self.bucket_ones, ones)?;
                }
            }
            workshop.stream.synchronize()?;
            self.layout = before;
            let ones = ones?;
            if !empty || attempts == MAX_ATTEMPTS {
                return Err(Error::BucketOverflow { attempts, limit, ones });
            }
            self.layout = before.at_attempt(before.attempt().wrapping_add(attempts));
            attempts += 1;
        }
    }

    /// Inserts all keys by the two-level build, with the bits and errors of
    /// [`cpu::RaoBloom::insert_bulk`]: if a bucket overflows while the filter was empty, the build starts again with
    /// another first-level hash, 16 of them at most. On an error the filter is as it was.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        self.device.synchronize()?;
        let mut workshop = self.workshop(keys.len(), true)?;
        self.attempt(&mut workshop, |filter, workshop| {
            for keys in keys.chunks(workshop.batch) {
                // The buffers are in use by the batch before.
                workshop.stream.synchronize()?;
                let slice = {
                    let mut staging = filter.staging.lock().unwrap_or_else(PoisonError::into_inner);
                    staging.gather(&filter.device, &filter.layout, keys, &mut workshop.keys)?
                };
                let mut strings = None;
                if let Some(function) = filter.layout.string_function() {
                    let Workshop { stream, string_hashes, .. } = &mut *workshop;
                    // SAFETY: keys and hashes are in the workshop, and the keys have been waited for.
                    unsafe { bring_string_hashes(stream, function, keys, slice, string_hashes)? };
                    strings = Some(string_hashes.global());
                }
                // SAFETY: the keys are in the workshop; the filter is borrowed until `attempt` has waited.
                unsafe { filter.insert_batch(workshop, slice, strings, keys.len())? };
            }
            Ok(())
        })
    }

    /// Inserts the keys of an iterator, a million at a time.
    ///
    /// On an error the keys of earlier portions are in the filter; only the first can restart it.
    pub fn insert_iter<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), Error> {
        super::host::gather(keys, |keys| self.insert_bulk(keys))
    }

    /// [`RaoBloom::insert_bulk`] for keys on the device. Waits, because only the result shows whether a bucket overflows.
    pub fn insert_device_slice<K: DeviceKeys>(&mut self, keys: K) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        self.device.synchronize()?;
        let mut workshop = self.workshop(n, false)?;
        self.attempt(&mut workshop, |filter, workshop| {
            for first in (0..n).step_by(workshop.batch) {
                let batch = keys.part(first..n.min(first + workshop.batch));
                // SAFETY: keys and filter are borrowed until `attempt` has waited; scratch is freed in the order of the
                // workshop's stream.
                unsafe {
                    let hashing = batch.hashing(&filter.layout, &workshop.stream)?;
                    filter.insert_batch(workshop, hashing.keys, hashing.string_hashes(), batch.count())?;
                }
            }
            Ok(())
        })
    }

    /// Inserts all hashes.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Error> {
        self.insert_bulk(as_hashed(hashes))
    }

    /// Inserts all keys and says which were new; the rule is that of
    /// [`cpu::RaoBloom::test_and_insert_bulk`], with the same answers. Which of equal keys comes first is found on the
    /// host.
    ///
    /// An error, and no change, if a bucket overflows.
    pub fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let mut new = vec![false; keys.len()];
        self.test_and_insert_bulk_into(keys, &mut new)?;
        Ok(new)
    }

    /// [`RaoBloom::test_and_insert_bulk`] into a slice of the same length.
    pub fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        use crate::layout::engine::Engine;
        same_length(keys.len(), new.len())?;
        let mut next = self.try_clone()?;
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(TEST_AND_INSERT_BATCH) {
            let contained = next.contains_bulk(keys)?;
            let mut seen = HashSet::new();
            let mut fresh = Vec::new();
            for (key, contained) in keys.iter().zip(contained) {
                let is_new = !contained && seen.insert(next.layout.probe(key).hash);
                if is_new {
                    fresh.push(key);
                }
                all.push(is_new);
            }
            next.insert_bulk(&fresh)?;
        }
        std::mem::swap(&mut next.staging, &mut self.staging);
        *self = next;
        new.copy_from_slice(&all);
        Ok(())
    }

    /// [`RaoBloom::test_and_insert_bulk`] for hashes.
    pub fn test_and_insert_hashes(&mut self, hashes: &[u64]) -> Result<Vec<bool>, Error> {
        self.test_and_insert_bulk(as_hashed(hashes))
    }

    /// The number of set bits of each bucket, on the device.
    pub fn bucket_ones(&self) -> DeviceSlice<'_, u32> {
        self.bucket_ones.as_slice()
    }
}

impl crate::Filter for Bloom<RaoLayout> {
    type Layout = RaoLayout;

    fn layout(&self) -> &RaoLayout {
        &self.layout
    }
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.insert_bulk(keys)
    }
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        self.test_and_insert_bulk(keys)
    }
    fn contains_bitmap<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Error> {
        self.contains_bitmap(keys)
    }
    fn union(&mut self, other: &Self) -> Result<(), Error> {
        self.union(other)
    }
    fn intersect(&mut self, other: &Self) -> Result<(), Error> {
        self.intersect(other)
    }
    fn clear(&mut self) -> Result<(), Error> {
        self.clear()
    }
    fn fold(&mut self, factor: u64) -> Result<(), Error> {
        self.fold(factor)
    }
    fn count_ones(&self) -> Result<u64, Error> {
        self.count_ones()
    }
    fn estimated_fpr(&self) -> Result<f64, Error> {
        self.estimated_fpr()
    }
    fn to_cpu(&self) -> Result<cpu::RaoBloom, Error> {
        self.to_host()
    }
    fn count_contained<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        self.count_contained(keys)
    }
    fn any_contained<K: Key>(&self, keys: &[K]) -> Result<bool, Error> {
        self.any_contained(keys)
    }
    fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> {
        self.measured_fpr(samples, seed)
    }
    fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error> {
        self.shrink_to_fpr(fpr)
    }
}

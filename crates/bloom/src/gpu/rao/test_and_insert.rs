//! Test-and-insert: claims find the first of equal keys, as for the other filters. The new keys are inserted like a
//! bulk insertion of them alone, so with two choices the rounds agree with the host's.

use std::ops::Range;

use warpset_base::bitmap::bits_to;
use warpset_base::filter::same_length;
use warpset_core::bloom::TEST_AND_INSERT_BATCH;
use warpset_gpu::batch::{KernelKeys, expect_room};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::batch::results;
use warpset_kernels::bloom::rao as kernels;
use warpset_primitives::select::select_async;
use warpset_simt::GlobalMut;

use super::super::kernels::one_thread_each;
use super::super::test_and_insert::{claim_words, emptied};
use super::super::{DeviceKeys, DeviceLayout, RaoBloom};
use super::insert::{HostKeys, INSERTION};
use super::{BatchScratch, LiveKeys, RaoInsertion, no_string_hashes, parameters};
use crate::{Error, Key, TestAndInsert};

/// Device memory for sub-batches, allocated and freed in the order of a stream.
struct StepScratch<'s> {
    insertion: BatchScratch<'s>,
    table: DeviceVec<u64>,
    hashes: DeviceVec<u64>,
    /// One bit per key.
    marks: DeviceVec<u64>,
    new_hashes: DeviceVec<u64>,
    new_string_hashes: DeviceVec<u32>,
    /// Number of new keys: one word.
    count: DeviceVec<u64>,
}

impl<'s> StepScratch<'s> {
    fn new(filter: &RaoBloom, stream: &'s Stream, n: usize) -> Result<StepScratch<'s>, Error> {
        let most = n.min(TEST_AND_INSERT_BATCH);
        let strings = if filter.layout.hashing().string_hash().is_some() { most } else { 0 };
        Ok(StepScratch {
            insertion: filter.scratch(stream, most)?,
            table: claim_words(stream, most)?,
            hashes: stream.alloc_uninit(most)?,
            marks: stream.alloc_uninit(most.div_ceil(64))?,
            new_hashes: stream.alloc_uninit(most)?,
            new_string_hashes: stream.alloc_uninit(strings)?,
            count: stream.alloc_uninit(1)?,
        })
    }
}

impl RaoBloom {
    /// Queues the finding of the new keys of a sub-batch: their marks, hashes, string hashes and number. Answers may go
    /// to `answers` too, one byte per key.
    ///
    /// # Safety
    /// - `keys` are `n` keys, at least one and at most a sub-batch, with `n` string hashes if the layout wants them.
    /// - `answers` has one byte per key.
    /// - Until the stream has passed this work, all stay allocated; nothing else accesses the answers, and nothing
    ///   writes the rest.
    unsafe fn find_new(
        &self,
        step: &mut StepScratch<'_>,
        keys: KeySlice,
        string_hashes: Option<DeviceSlice<'_, u32>>,
        n: usize,
        answers: Option<GlobalMut<u64>>,
    ) -> Result<(), Error> {
        let stream = step.insertion.stream;
        let table = emptied(stream, &mut step.table, n)?;
        let (config, words, parameters) = (one_thread_each(n), self.words.global(), parameters(&self.layout));
        let KeySlice { keys, kind, spread, .. } = keys;
        let strings = string_hashes.map_or_else(no_string_hashes, |hashes| hashes.global());
        let (form, out) = match answers {
            Some(out) => (results::BYTES, out),
            None => (results::BITS, GlobalMut::from_raw_parts(std::ptr::null_mut(), 0)),
        };
        // SAFETY: the scratch has room for a sub-batch and is freed in the order of the stream; the table is empty and
        // large enough; the kernels run one after the other; the rest is this function's contract.
        unsafe {
            let (hashes, marks) = (step.hashes.global_mut(), step.marks.global_mut());
            kernels::rao_dedup_claim {
                words,
                parameters,
                keys,
                kind,
                spread,
                string_hashes: strings,
                n,
                hashes,
                absent: marks,
                table: table.words,
                table_bits: table.bits,
            }
            .launch(stream, config)?;
            let (hashes, marks) = (step.hashes.global(), step.marks.global_mut());
            kernels::rao_dedup_resolve { hashes, n, new: marks, form, out, table: table.words, table_bits: table.bits }
                .launch(stream, config)?;
            let marks = step.marks.slice(..n.div_ceil(64));
            select_async(
                stream,
                step.hashes.slice(..n),
                marks,
                step.new_hashes.as_mut_slice(),
                step.count.as_mut_slice(),
            )?;
            if let Some(hashes) = string_hashes {
                let to = step.new_string_hashes.as_mut_slice();
                select_async(stream, hashes.slice(..n), marks, to, step.count.as_mut_slice())?;
            }
        }
        Ok(())
    }

    /// Queues the insertion of the first `n` new keys, or of all if their number is on the device only.
    ///
    /// # Safety
    /// - [`RaoBloom::find_new`] has been queued for at least `n` keys.
    /// - Until the stream has passed this work, the filter stays allocated, and nothing else accesses it.
    unsafe fn insert_new(&mut self, step: &mut StepScratch<'_>, n: usize, number_is_known: bool) -> Result<(), Error> {
        let StepScratch { insertion, new_hashes, new_string_hashes, count, .. } = step;
        let batch = insertion.batch;
        for first in (0..n).step_by(batch) {
            let range = first..n.min(first + batch);
            let len = range.len();
            let keys = KeySlice::hashes(new_hashes.slice(range.clone()).global());
            let strings = self.layout.hashing().string_hash().map(|_| new_string_hashes.slice(range).global());
            let live = if number_is_known { None } else { Some(LiveKeys { count: count.global(), first }) };
            // SAFETY: the scratch is freed in the order of the stream; the rest is this function's contract.
            unsafe { self.insert_batch(insertion, keys, strings, len, live)? };
        }
        Ok(())
    }

    /// Queues the insertion of `keys`, all or none; answer `i` becomes 1 if key `i` was new, 0 if not. The rule is that
    /// of [`TestAndInsert::test_and_insert_bulk`], except for another first-level hash: see [`RaoBloom::insert_async`],
    /// also for the result. If the insertion is undone, the answers are meaningless.
    ///
    /// Takes a copy of the filter and up to 700 MiB of scratch memory.
    ///
    /// # Errors
    /// If work could not be queued, for example because memory ran out, the filter is unchanged.
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter, `keys` and `new` stay allocated;
    /// - nothing writes the keys, and nothing else accesses the filter or `new`.
    pub unsafe fn test_and_insert_async<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        mut new: DeviceSliceMut<'_, u8>,
    ) -> Result<RaoInsertion, Error> {
        if keys.count() == 0 {
            return RaoInsertion::nothing(self, stream);
        }
        expect_room(keys.count(), new.len())?;
        self.expect_here(INSERTION, [stream.device(), keys.device(), new.device()])?;
        let new = new.global_mut();
        // SAFETY: there is one byte per key; the rest is this function's contract.
        unsafe {
            self.test_and_insert_batches(stream, keys, |filter, step, hashed, range| {
                let words = GlobalMut::from_raw_parts(new.at(range.start).as_ptr().cast(), range.len().div_ceil(8));
                filter.find_new(step, hashed.keys, hashed.string_hash_slice(), range.len(), Some(words))
            })
        }
    }

    /// Queues the insertion and writes one bit per key; see [`RaoBloom::test_and_insert_async`].
    ///
    /// # Errors
    /// The errors of [`RaoBloom::test_and_insert_async`].
    ///
    /// # Safety
    /// That of [`RaoBloom::test_and_insert_async`].
    pub unsafe fn test_and_insert_bitmap_async<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        mut new: DeviceSliceMut<'_, u64>,
    ) -> Result<RaoInsertion, Error> {
        if keys.count() == 0 {
            return RaoInsertion::nothing(self, stream);
        }
        expect_room(keys.count().div_ceil(64), new.len())?;
        self.expect_here(INSERTION, [stream.device(), keys.device(), new.device()])?;
        // SAFETY: there is one bit per key; the rest is this function's contract.
        unsafe {
            self.test_and_insert_batches(stream, keys, |filter, step, hashed, range| {
                filter.find_new(step, hashed.keys, hashed.string_hash_slice(), range.len(), None)?;
                let words = range.start / 64..range.end.div_ceil(64);
                let marks = step.marks.slice(..words.len());
                Ok(stream.copy(new.reborrow().slice_mut(words), marks)?)
            })
        }
    }

    /// Runs both forms that queue: `find` finds the new keys of a sub-batch and answers.
    ///
    /// # Safety
    /// That of [`RaoBloom::test_and_insert_async`].
    unsafe fn test_and_insert_batches<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        mut find: impl FnMut(&RaoBloom, &mut StepScratch<'_>, &KernelKeys, Range<usize>) -> Result<(), Error>,
    ) -> Result<RaoInsertion, Error> {
        let n = keys.count();
        let mut step = StepScratch::new(self, stream, n)?;
        // SAFETY: this function's contract; scratch is freed in the order of the stream.
        unsafe {
            self.undoable(stream, |filter| {
                for first in (0..n).step_by(TEST_AND_INSERT_BATCH) {
                    let range = first..n.min(first + TEST_AND_INSERT_BATCH);
                    let hashed = keys.part(range.clone()).kernel_keys(&filter.layout.hashing(), stream)?;
                    find(filter, &mut step, &hashed, range.clone())?;
                    filter.insert_new(&mut step, range.len(), false)?;
                }
                Ok(())
            })
        }
    }

    /// Inserts keys on the device, all or none, and waits; answer `i` becomes 1 if key `i` was new, 0 if not. The rule,
    /// restarts and errors are those of
    /// [`TestAndInsert::test_and_insert_bulk`].
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer bytes than keys; memory of another device; an overflow. The filter
    /// is unchanged.
    pub fn test_and_insert_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        mut new: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        expect_room(keys.count(), new.len())?;
        let (there, new) = (new.device(), new.global_mut());
        self.test_and_insert_waiting(keys, there, |filter, step, hashed, range| {
            let words = GlobalMut::from_raw_parts(new.at(range.start).as_ptr().cast(), range.len().div_ceil(8));
            // SAFETY: there is one byte per key; all is borrowed until the stream has been waited for.
            unsafe { filter.find_new(step, hashed.keys, hashed.string_hash_slice(), range.len(), Some(words)) }
        })
    }

    /// Inserts keys and reports which were new as one bit per key; see [`RaoBloom::test_and_insert_device`].
    ///
    /// # Errors
    /// The errors of [`RaoBloom::test_and_insert_device`].
    pub fn test_and_insert_bitmap_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        mut new: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        expect_room(keys.count().div_ceil(64), new.len())?;
        let there = new.device();
        self.test_and_insert_waiting(keys, there, |filter, step, hashed, range| {
            // SAFETY: all is borrowed until the stream has been waited for.
            unsafe { filter.find_new(step, hashed.keys, hashed.string_hash_slice(), range.len(), None)? };
            let words = range.start / 64..range.end.div_ceil(64);
            let marks = step.marks.slice(..words.len());
            Ok(step.insertion.stream.copy(new.reborrow().slice_mut(words), marks)?)
        })
    }

    /// Runs both forms that wait: `find` finds the new keys of a sub-batch and answers, on the device `there`.
    fn test_and_insert_waiting<K: DeviceKeys>(
        &mut self,
        keys: K,
        there: &Device,
        mut find: impl FnMut(&RaoBloom, &mut StepScratch<'_>, &KernelKeys, Range<usize>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        self.expect_here(INSERTION, [keys.device(), there])?;
        let stream = self.synchronised_stream()?;
        let mut step = StepScratch::new(self, &stream, n)?;
        self.all_or_nothing(&stream, |filter, mut empty| {
            for first in (0..n).step_by(TEST_AND_INSERT_BATCH) {
                let range = first..n.min(first + TEST_AND_INSERT_BATCH);
                // SAFETY: the keys are borrowed until `all_or_nothing` has waited; scratch is freed in the order of the
                // stream.
                let hashed = unsafe { keys.part(range.clone()).kernel_keys(&filter.layout.hashing(), &stream)? };
                find(filter, &mut step, &hashed, range)?;
                let mut count = [0];
                stream.download(&step.count, &mut count)?;
                filter.attempt(&stream, empty, |filter| {
                    // SAFETY: the new keys have been found; the filter is borrowed until `all_or_nothing` has waited.
                    unsafe { filter.insert_new(&mut step, count[0] as usize, true) }
                })?;
                empty = false;
            }
            Ok(())
        })
    }
}

impl TestAndInsert for RaoBloom {
    /// Inserts all keys and reports which were new. On an error the filter is unchanged and `new` has unspecified
    /// values.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::BucketOverflow`], [`Error::Gpu`].
    fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        if keys.is_empty() {
            return Ok(());
        }
        let stream = self.synchronised_stream()?;
        let most = keys.len().min(TEST_AND_INSERT_BATCH);
        let mut step = StepScratch::new(self, &stream, most)?;
        let mut staged = HostKeys::new(self, &stream, most)?;
        let mut words = vec![0; most.div_ceil(64)];
        stream.synchronize()?; // the memory has been allocated, before other streams fill it
        self.all_or_nothing(&stream, |filter, mut empty| {
            for (keys, new) in keys.chunks(TEST_AND_INSERT_BATCH).zip(new.chunks_mut(TEST_AND_INSERT_BATCH)) {
                let words = &mut words[..keys.len().div_ceil(64)];
                // SAFETY: the sub-batch before has been waited for; all memory is allocated until `all_or_nothing` has
                // waited, because the filter is borrowed.
                unsafe {
                    let (slice, strings) = staged.bring(filter, &stream, keys)?;
                    filter.find_new(&mut step, slice, strings, keys.len(), None)?;
                }
                stream.download(step.marks.slice(..words.len()), words)?;
                bits_to(new, words);
                let count = words.iter().map(|word| word.count_ones() as usize).sum();
                filter.attempt(&stream, empty, |filter| {
                    // SAFETY: the new keys have been found; the rest as above.
                    unsafe { filter.insert_new(&mut step, count, true) }
                })?;
                empty = false;
            }
            Ok(())
        })
    }
}

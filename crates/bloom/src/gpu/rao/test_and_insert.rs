//! Test-and-insert: which of equal keys comes first is found as for the other filters, and the new keys are inserted as a
//! bulk insertion of them alone would, so that with two choices the rounds agree with the host's.

use std::ops::Range;

use warpset_base::filter::same_length;
use warpset_core::bloom::TEST_AND_INSERT_BATCH;
use warpset_gpu::batch::{KernelKeys, bits_to, expect_room};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::{self, KeySlice};
use warpset_kernels::batch::results;
use warpset_kernels::bloom::rao as kernels;
use warpset_primitives::select::select_async;
use warpset_simt::GlobalMut;

use super::super::kernels::one_thread_each;
use super::super::test_and_insert::{claim_words, emptied};
use super::super::{DeviceKeys, DeviceLayout, RaoBloom};
use super::insert::{INSERTION, Intake};
use super::{Living, RaoInsertion, Workshop, no_string_hashes, parameters};
use crate::{Error, Key};

/// Device memory for sub-batches; it comes and goes in the order of a stream.
struct Bench<'s> {
    workshop: Workshop<'s>,
    table: DeviceVec<u64>,
    hashes: DeviceVec<u64>,
    /// One bit a key.
    marks: DeviceVec<u64>,
    new_hashes: DeviceVec<u64>,
    new_string_hashes: DeviceVec<u32>,
    /// How many keys are new: one word.
    count: DeviceVec<u64>,
}

impl<'s> Bench<'s> {
    fn new(filter: &RaoBloom, stream: &'s Stream, n: usize) -> Result<Bench<'s>, Error> {
        let most = n.min(TEST_AND_INSERT_BATCH);
        let strings = if filter.layout.hashing().string_hash().is_some() { most } else { 0 };
        Ok(Bench {
            workshop: filter.workshop(stream, most)?,
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
    /// Queues the finding of the new keys of a sub-batch: their marks, hashes, string hashes and number. Answers may go to
    /// `answers` too, a byte a key.
    ///
    /// # Safety
    /// There are `n` keys, at most a sub-batch and not none, with string hashes if the layout wants them; `answers` has room;
    /// until the stream has passed, all stay allocated, nobody else touches the answers, and nobody writes the rest.
    unsafe fn find_new(
        &self,
        bench: &mut Bench<'_>,
        keys: KeySlice,
        string_hashes: Option<DeviceSlice<'_, u32>>,
        n: usize,
        answers: Option<GlobalMut<u64>>,
    ) -> Result<(), Error> {
        let stream = bench.workshop.stream;
        let table = emptied(stream, &mut bench.table, n)?;
        let (config, words, parameters) = (one_thread_each(n), self.words.global(), parameters(&self.layout));
        let KeySlice { keys, kind, spread } = keys;
        let strings = string_hashes.map_or_else(no_string_hashes, |hashes| hashes.global());
        let (form, out) = match answers {
            Some(out) => (results::BYTES, out),
            None => (results::BITS, GlobalMut::from_raw_parts(std::ptr::null_mut(), 0)),
        };
        // SAFETY: the bench has room for a sub-batch and is freed in the order of the stream; the table is empty and large
        // enough; the kernels run one after the other; the rest is the caller's promise.
        unsafe {
            let (hashes, marks) = (bench.hashes.global_mut(), bench.marks.global_mut());
            kernels::rao_claim {
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
            let (hashes, marks) = (bench.hashes.global(), bench.marks.global_mut());
            kernels::rao_settle { hashes, n, new: marks, form, out, table: table.words, table_bits: table.bits }
                .launch(stream, config)?;
            let marks = bench.marks.slice(..n.div_ceil(64));
            select_async(
                stream,
                bench.hashes.slice(..n),
                marks,
                bench.new_hashes.as_mut_slice(),
                bench.count.as_mut_slice(),
            )?;
            if let Some(hashes) = string_hashes {
                let to = bench.new_string_hashes.as_mut_slice();
                select_async(stream, hashes.slice(..n), marks, to, bench.count.as_mut_slice())?;
            }
        }
        Ok(())
    }

    /// Queues the insertion of the first `n` new keys, or as many as there are if that number is on the device only.
    ///
    /// # Safety
    /// [`RaoBloom::find_new`] has been queued for at least `n` keys; until the stream has passed, the filter stays allocated
    /// and nobody else uses it.
    unsafe fn insert_new(&mut self, bench: &mut Bench<'_>, n: usize, number_is_known: bool) -> Result<(), Error> {
        let Bench { workshop, new_hashes, new_string_hashes, count, .. } = bench;
        let batch = workshop.batch;
        for first in (0..n).step_by(batch) {
            let range = first..n.min(first + batch);
            let len = range.len();
            let keys = KeySlice::new(new_hashes.slice(range.clone()).global(), keys::HASH, 0);
            let strings = self.layout.hashing().string_hash().map(|_| new_string_hashes.slice(range).global());
            let living = if number_is_known { None } else { Some(Living { count: count.global(), first }) };
            // SAFETY: the bench is freed in the order of the stream; the rest is the caller's promise.
            unsafe { self.insert_batch(workshop, keys, strings, len, living)? };
        }
        Ok(())
    }

    /// Queues the insertion of `keys`, all or none; answer `i` becomes 1 if key `i` was new, 0 if not. The rule is that of
    /// [`cpu::RaoBloom::test_and_insert_bulk`](crate::cpu::RaoBloom::test_and_insert_bulk), but for another first-level hash:
    /// see [`RaoBloom::insert_async`], which also says what comes back. If the insertion is undone, the answers mean
    /// nothing.
    ///
    /// Takes a copy of the filter and up to 700 MiB of scratch memory.
    ///
    /// # Errors
    /// If something could not be queued, as for want of memory, the filter is as it was.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter, `keys` and `new` stay allocated, nobody else writes the keys, and
    /// nobody touches the filter or `new`.
    pub unsafe fn test_and_insert_async<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        mut new: DeviceSliceMut<'_, u8>,
    ) -> Result<RaoInsertion, Error> {
        if keys.count() == 0 {
            return RaoInsertion::nothing(self, stream);
        }
        expect_room(keys.count(), keys.count(), new.len())?;
        self.expect_here(INSERTION, [stream.device(), keys.device(), new.device()])?;
        let new = new.global_mut();
        // SAFETY: there is a byte a key; the rest is the caller's promise.
        unsafe {
            self.test_and_insert_batches(stream, keys, |filter, bench, hashed, range| {
                let words = GlobalMut::from_raw_parts(new.at(range.start).as_ptr().cast(), range.len().div_ceil(8));
                filter.find_new(bench, hashed.keys, hashed.string_hash_slice(), range.len(), Some(words))
            })
        }
    }

    /// [`RaoBloom::test_and_insert_async`] with one bit a key.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn test_and_insert_bitmap_async<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        mut new: DeviceSliceMut<'_, u64>,
    ) -> Result<RaoInsertion, Error> {
        if keys.count() == 0 {
            return RaoInsertion::nothing(self, stream);
        }
        expect_room(keys.count(), keys.count().div_ceil(64), new.len())?;
        self.expect_here(INSERTION, [stream.device(), keys.device(), new.device()])?;
        // SAFETY: there is a bit a key; the rest is the caller's promise.
        unsafe {
            self.test_and_insert_batches(stream, keys, |filter, bench, hashed, range| {
                filter.find_new(bench, hashed.keys, hashed.string_hash_slice(), range.len(), None)?;
                let words = range.start / 64..range.end.div_ceil(64);
                let marks = bench.marks.slice(..words.len());
                Ok(stream.copy(new.reborrow().slice_mut(words), marks)?)
            })
        }
    }

    /// Both forms: `find` finds the new keys of a sub-batch and answers.
    ///
    /// # Safety
    /// As there.
    unsafe fn test_and_insert_batches<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        mut find: impl FnMut(&RaoBloom, &mut Bench<'_>, &KernelKeys, Range<usize>) -> Result<(), Error>,
    ) -> Result<RaoInsertion, Error> {
        let n = keys.count();
        let mut bench = Bench::new(self, stream, n)?;
        // SAFETY: the caller's promise; scratch is freed in the order of the stream.
        unsafe {
            self.undoable(stream, |filter| {
                for first in (0..n).step_by(TEST_AND_INSERT_BATCH) {
                    let range = first..n.min(first + TEST_AND_INSERT_BATCH);
                    let hashed = keys.part(range.clone()).kernel_keys(&filter.layout.hashing(), stream)?;
                    find(filter, &mut bench, &hashed, range.clone())?;
                    filter.insert_new(&mut bench, range.len(), false)?;
                }
                Ok(())
            })
        }
    }

    /// Inserts keys on the device, all or none, and waits; answer `i` becomes 1 if key `i` was new, 0 if not. The rule, restarts and
    /// errors are those of [`cpu::RaoBloom::test_and_insert_bulk`](crate::cpu::RaoBloom::test_and_insert_bulk).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer bytes than keys; memory of another device; an overflow. The filter is as it
    /// was.
    pub fn test_and_insert_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        mut new: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        expect_room(keys.count(), keys.count(), new.len())?;
        let (there, new) = (new.device(), new.global_mut());
        self.test_and_insert_waiting(keys, there, |filter, bench, hashed, range| {
            let words = GlobalMut::from_raw_parts(new.at(range.start).as_ptr().cast(), range.len().div_ceil(8));
            // SAFETY: there is a byte per key; all is borrowed until the stream has been waited for.
            unsafe { filter.find_new(bench, hashed.keys, hashed.string_hash_slice(), range.len(), Some(words)) }
        })
    }

    /// [`RaoBloom::test_and_insert_device`] with one bit per key.
    ///
    /// # Errors
    /// As there.
    pub fn test_and_insert_bitmap_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        mut new: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        expect_room(keys.count(), keys.count().div_ceil(64), new.len())?;
        let there = new.device();
        self.test_and_insert_waiting(keys, there, |filter, bench, hashed, range| {
            // SAFETY: all is borrowed until the stream has been waited for.
            unsafe { filter.find_new(bench, hashed.keys, hashed.string_hash_slice(), range.len(), None)? };
            let words = range.start / 64..range.end.div_ceil(64);
            let marks = bench.marks.slice(..words.len());
            Ok(bench.workshop.stream.copy(new.reborrow().slice_mut(words), marks)?)
        })
    }

    /// Both forms that wait: `find` finds the new keys of a sub-batch and answers, on the device `there`.
    fn test_and_insert_waiting<K: DeviceKeys>(
        &mut self,
        keys: K,
        there: &Device,
        mut find: impl FnMut(&RaoBloom, &mut Bench<'_>, &KernelKeys, Range<usize>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        self.expect_here(INSERTION, [keys.device(), there])?;
        let stream = self.synchronised_stream()?;
        let mut bench = Bench::new(self, &stream, n)?;
        self.all_or_nothing(&stream, |filter, mut empty| {
            for first in (0..n).step_by(TEST_AND_INSERT_BATCH) {
                let range = first..n.min(first + TEST_AND_INSERT_BATCH);
                // SAFETY: the keys are borrowed until `all_or_nothing` has waited; scratch is freed in the order of the stream.
                let hashed = unsafe { keys.part(range.clone()).kernel_keys(&filter.layout.hashing(), &stream)? };
                find(filter, &mut bench, &hashed, range)?;
                let mut count = [0];
                stream.download(&bench.count, &mut count)?;
                filter.attempt(&stream, empty, |filter| {
                    // SAFETY: the new keys have been found; the filter is borrowed until `all_or_nothing` has waited.
                    unsafe { filter.insert_new(&mut bench, count[0] as usize, true) }
                })?;
                empty = false;
            }
            Ok(())
        })
    }

    /// Inserts all keys and says which were new; the rule is that of
    /// [`cpu::RaoBloom::test_and_insert_bulk`](crate::cpu::RaoBloom::test_and_insert_bulk), with the same answers.
    ///
    /// On an error the filter is as it was.
    pub fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let mut new = vec![false; keys.len()];
        self.test_and_insert_bulk_into(keys, &mut new)?;
        Ok(new)
    }

    /// [`RaoBloom::test_and_insert_bulk`] into a slice of the same length, which holds nothing of use after an error.
    pub fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        if keys.is_empty() {
            return Ok(());
        }
        let stream = self.synchronised_stream()?;
        let most = keys.len().min(TEST_AND_INSERT_BATCH);
        let mut bench = Bench::new(self, &stream, most)?;
        let mut intake = Intake::new(self, &stream, most)?;
        let mut words = vec![0; most.div_ceil(64)];
        stream.synchronize()?; // for the memory, which other streams fill
        self.all_or_nothing(&stream, |filter, mut empty| {
            for (keys, new) in keys.chunks(TEST_AND_INSERT_BATCH).zip(new.chunks_mut(TEST_AND_INSERT_BATCH)) {
                let words = &mut words[..keys.len().div_ceil(64)];
                // SAFETY: the sub-batch before has been waited for; bench and intake live until `all_or_nothing` has
                // waited, as long as the filter is borrowed.
                unsafe {
                    let (slice, strings) = intake.bring(filter, &stream, keys)?;
                    filter.find_new(&mut bench, slice, strings, keys.len(), None)?;
                }
                stream.download(bench.marks.slice(..words.len()), words)?;
                bits_to(new, words);
                let count = words.iter().map(|word| word.count_ones() as usize).sum();
                filter.attempt(&stream, empty, |filter| {
                    // SAFETY: the new keys have been found; the rest as above.
                    unsafe { filter.insert_new(&mut bench, count, true) }
                })?;
                empty = false;
            }
            Ok(())
        })
    }
}

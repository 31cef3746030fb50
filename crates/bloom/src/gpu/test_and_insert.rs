//! Test-and-insert: of equal new keys exactly the first is reported new.

use warpset_base::bitmap::bits_to;
use warpset_core::bloom::TEST_AND_INSERT_BATCH;
use warpset_gpu::batch::Answers;
use warpset_gpu::{Device, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::bloom::claims;

use super::batch_partition::{ClaimTable, Division, PartitionedKeys};
use super::kernels::{Batch, Claims};
use super::{Bloom, DeviceKeys, DeviceOneBlock, Grouping};
use crate::{Error, Key};

/// Returns a claim table for batches of up to `n` keys: up to 32 bytes per key.
pub(super) fn claim_words(stream: &Stream, n: usize) -> Result<DeviceVec<u64>, Error> {
    Ok(stream.alloc_uninit(1 << claims::table_bits(n.min(TEST_AND_INSERT_BATCH)))?)
}

/// Empties the table for a batch of `n` keys; a smaller batch uses less of it.
pub(super) fn emptied(stream: &Stream, table: &mut DeviceVec<u64>, n: usize) -> Result<ClaimTable, Error> {
    let bits = claims::table_bits(n);
    const { assert!(claims::EMPTY == !0 && TEST_AND_INSERT_BATCH <= 1 << claims::INDEX_BITS) };
    stream.fill_bytes(table.slice_mut(..1 << bits), 0xff)?;
    Ok(ClaimTable { words: table.global_mut(), bits })
}

/// Device memory for batches, allocated and freed in the order of a stream.
struct Scratch {
    table: DeviceVec<u64>,
    division: Option<Division>,
}

impl<L: DeviceOneBlock> Bloom<L> {
    /// Allocates scratch for batches of at most `n` keys.
    fn test_and_insert_scratch(&self, stream: &Stream, n: usize) -> Result<Scratch, Error> {
        let grouping = if self.layout.hashing().can_group() { self.grouping } else { Grouping::Never };
        let division = Division::new(stream, grouping, n.min(TEST_AND_INSERT_BATCH))?;
        Ok(Scratch { table: claim_words(stream, n)?, division })
    }

    /// Inserts keys on the device; answer `i` becomes 1 if key `i` was new, 0 if not. The rule is that of
    /// [`TestAndInsert::test_and_insert_bulk`](crate::TestAndInsert::test_and_insert_bulk).
    ///
    /// Takes up to 600 MiB of scratch memory.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer bytes than keys; memory of another device. If there is no memory
    /// for scratch, the filter is unchanged, unless there are more than 2^24 strings; strings of earlier sub-batches
    /// are in the filter.
    pub fn test_and_insert_device<K: DeviceKeys>(&mut self, keys: K, new: DeviceSliceMut<'_, u8>) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.waiting(|filter, stream| unsafe { filter.test_and_insert_async(stream, keys, new) })
    }

    /// Queues [`Bloom::test_and_insert_device`].
    ///
    /// # Errors
    /// The errors of [`Bloom::test_and_insert_device`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter, `keys` and `new` stay allocated;
    /// - nothing writes the keys, and nothing else accesses the filter or `new`.
    pub unsafe fn test_and_insert_async<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        new: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let there = new.device();
        let answers = Answers::bytes(new, keys.count())?;
        // SAFETY: there is room; the rest is this function's contract.
        unsafe { self.batches(stream, keys, there, answers) }
    }

    /// Inserts keys and reports which were new as one bit per key: answer `i` becomes bit `i % 64` of word `i / 64`.
    /// See [`Bloom::test_and_insert_device`].
    ///
    /// # Errors
    /// The errors of [`Bloom::test_and_insert_device`].
    pub fn test_and_insert_bitmap_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        new: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.waiting(|filter, stream| unsafe { filter.test_and_insert_bitmap_async(stream, keys, new) })
    }

    /// Queues [`Bloom::test_and_insert_bitmap_device`].
    ///
    /// # Errors
    /// The errors of [`Bloom::test_and_insert_bitmap_device`].
    ///
    /// # Safety
    /// That of [`Bloom::test_and_insert_async`].
    pub unsafe fn test_and_insert_bitmap_async<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        new: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let there = new.device();
        let answers = Answers::bits(new, keys.count())?;
        // SAFETY: there is room; the rest is this function's contract.
        unsafe { self.batches(stream, keys, there, answers) }
    }

    /// Runs all batches; `answers` are on the device `there`.
    ///
    /// # Safety
    /// - The contract above; `answers` are valid for one answer per key.
    unsafe fn batches<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        there: &Device,
        answers: Answers,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        self.expect_here("an insertion into a Bloom filter", [stream.device(), keys.device(), there])?;
        let mut scratch = self.test_and_insert_scratch(stream, n)?;
        for first in (0..n).step_by(TEST_AND_INSERT_BATCH) {
            let batch = keys.part(first..n.min(first + TEST_AND_INSERT_BATCH));
            // SAFETY: this function's contract; scratch is freed in the order of the stream.
            unsafe {
                let hashed = batch.kernel_keys(&self.layout.hashing(), stream)?;
                self.batch(stream, hashed.keys, batch.count(), answers.from(first), &mut scratch)?;
            }
        }
        Ok(())
    }

    /// Runs one batch.
    ///
    /// # Safety
    /// - The contract above; `answers` are valid for one answer per key, and the scratch was made for at least `n`
    ///   keys.
    unsafe fn batch(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let (batch, words) = (Batch { stream, keys, string_hashes: None, n }, self.words_atomic());
        // SAFETY: the table is large enough, and empty where it is used; scratch is freed in the order of the stream,
        // in which the kernels run one after the other; the rest is this function's contract.
        unsafe {
            let Some(division) = &mut scratch.division else {
                let table = emptied(stream, &mut scratch.table, n)?;
                self.layout.launch_test_and_insert(
                    batch,
                    words,
                    answers,
                    Claims { table, divided: PartitionedKeys::none() },
                )?;
                return Ok(());
            };
            let table = ClaimTable { words: scratch.table.global_mut(), bits: claims::table_bits(n) };
            self.layout.launch_contains(batch, words.into(), answers)?;
            let divided = division.divide(stream, keys, n, answers, table)?;
            self.layout.launch_insert_parts(stream, words, divided, answers)?;
            self.layout.launch_test_and_insert(batch, words, answers, Claims { table, divided })?;
        }
        Ok(())
    }

    /// Runs `test_and_insert_bulk_into`; the slices have the same length.
    pub(super) fn test_and_insert_host_keys<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let stream = self.synchronised_stream()?;
        let most = keys.len().min(TEST_AND_INSERT_BATCH);
        let mut scratch = self.test_and_insert_scratch(&stream, most)?;
        let mut on_device = self.device.alloc_uninit::<u64>(most)?;
        let mut answers = stream.alloc_uninit::<u64>(most.div_ceil(64))?;
        let mut words = vec![0; most.div_ceil(64)];
        for (keys, new) in keys.chunks(TEST_AND_INSERT_BATCH).zip(new.chunks_mut(TEST_AND_INSERT_BATCH)) {
            let slice = self.staging().gather(keys, &mut on_device)?;
            let to = Answers::bits_at(answers.global_mut());
            // SAFETY: everything is allocated until the stream has been waited for, in `download`; the filter is
            // borrowed.
            unsafe { self.batch(&stream, slice, keys.len(), to, &mut scratch)? };
            let words = &mut words[..keys.len().div_ceil(64)];
            stream.download(answers.slice(..words.len()), words)?;
            bits_to(new, words);
        }
        Ok(())
    }
}

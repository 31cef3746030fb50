//! Test-and-insert: of equal new keys exactly the first is reported new.

use warpset_core::bloom::TEST_AND_INSERT_BATCH;
use warpset_gpu::batch::{Answers, bits_to};
use warpset_gpu::{DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::bloom::claims;

use super::kernels::ClaimTable;
use super::{Bloom, DeviceKeys, DeviceOneBlock};
use crate::{Error, Key};

/// A claim table for batches of up to `n` keys: up to 32 bytes a key.
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

impl<L: DeviceOneBlock> Bloom<L> {
    /// Queues the insertion of `keys`; answer `i` becomes 1 if key `i` was new, 0 if not. The rule is that of
    /// [`cpu::Bloom::test_and_insert_bulk`](crate::cpu::Bloom::test_and_insert_bulk).
    ///
    /// Takes scratch memory of up to 512 MiB.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter, `keys` and `new` stay allocated, nobody else writes the keys, and
    /// nobody touches the filter or `new`.
    pub unsafe fn test_and_insert_bytes_async<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        new: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let answers = Answers::bytes(new, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.batches(stream, keys, answers) }
    }

    /// [`Bloom::test_and_insert_bytes_async`] with one bit a key.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn test_and_insert_bitmap_async<K: DeviceKeys>(
        &mut self,
        stream: &Stream,
        keys: K,
        new: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let answers = Answers::bits(new, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.batches(stream, keys, answers) }
    }

    /// All batches.
    ///
    /// # Safety
    /// As above; `answers` has room.
    unsafe fn batches<K: DeviceKeys>(&mut self, stream: &Stream, keys: K, answers: Answers) -> Result<(), Error> {
        let n = keys.count();
        let mut table = claim_words(stream, n)?;
        for first in (0..n).step_by(TEST_AND_INSERT_BATCH) {
            let batch = keys.part(first..n.min(first + TEST_AND_INSERT_BATCH));
            // SAFETY: the caller's promise; scratch is freed in the order of the stream.
            unsafe {
                let hashed = batch.kernel_keys(&self.layout.hashing(), stream)?;
                self.batch(stream, hashed.keys, batch.count(), answers.from(first), &mut table)?;
            }
        }
        Ok(())
    }

    /// One batch.
    ///
    /// # Safety
    /// As above; `answers` has room, and the table was made for `n` keys.
    unsafe fn batch(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        table: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let table = emptied(stream, table, n)?;
        let words = self.words_atomic();
        // SAFETY: the table is empty and large enough, and its owner frees it in the order of the stream; the rest is
        // the caller's promise.
        unsafe { self.layout.launch_test_and_insert(stream, words, keys, n, answers, table)? };
        Ok(())
    }
}

/// [`Bloom::test_and_insert_bulk_into`] where a key has one block.
pub(super) fn from_host<L: DeviceOneBlock, K: Key>(
    filter: &mut Bloom<L>,
    keys: &[K],
    new: &mut [bool],
) -> Result<(), Error> {
    if keys.is_empty() {
        return Ok(());
    }
    let stream = filter.synchronised_stream()?;
    let most = keys.len().min(TEST_AND_INSERT_BATCH);
    let mut table = claim_words(&stream, most)?;
    let mut on_device = filter.device.alloc_uninit::<u64>(most)?;
    let mut answers = stream.alloc_uninit::<u64>(most.div_ceil(64))?;
    let mut words = vec![0; most.div_ceil(64)];
    for (keys, new) in keys.chunks(TEST_AND_INSERT_BATCH).zip(new.chunks_mut(TEST_AND_INSERT_BATCH)) {
        let slice = filter.staging().gather(keys, &mut on_device)?;
        let to = Answers::bits_at(answers.global_mut());
        // SAFETY: everything lives until the stream has been waited for, in `download`; the filter is borrowed.
        unsafe { filter.batch(&stream, slice, keys.len(), to, &mut table)? };
        let words = &mut words[..keys.len().div_ceil(64)];
        stream.download(answers.slice(..words.len()), words)?;
        bits_to(new, words);
    }
    Ok(())
}

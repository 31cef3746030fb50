//! Lookups.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};
use warpset_kernels::keys::KeySlice;
use warpset_kernels::quotient_standard as kernels;
use warpset_kernels::results;
use warpset_simt::{Global, GlobalMut};

use super::fingerprints::{grid, parameters};
use super::keys::{Uploaded, key_slice};
use super::{DeviceKey, StandardQuotientFilter};
use crate::{Error, Key};

/// Keys that a query on a host slice takes at a time.
const CHUNK: usize = 1 << 24;

impl StandardQuotientFilter {
    /// Queues the lookup of `keys`: answer `i` becomes 1 or 0.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter, `keys` and `answers` stay allocated, nobody writes the filter or
    /// the keys, and nobody else touches the answers.
    pub unsafe fn contains_bytes_async<K: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let n = keys.len();
        if answers.len() != n {
            return Err(Error::LengthMismatch { keys: n, answers: answers.len() });
        }
        let words = GlobalMut::from_raw_parts(answers.global_mut().as_ptr().cast(), n.div_ceil(8));
        // SAFETY: there is a byte a key; the rest is the caller's promise.
        unsafe { self.contains(stream, key_slice(&self.layout, keys), n, results::BYTES, words) }
    }

    /// Queues the lookup of `keys`: adds how many of them may be in the filter to the first word of `count`.
    ///
    /// # Safety
    /// As for [`StandardQuotientFilter::contains_bytes_async`]; other such counts may run at the same time.
    pub unsafe fn count_contained_async<K: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        if count.is_empty() {
            return Err(Error::LengthMismatch { keys: keys.len(), answers: 0 });
        }
        // SAFETY: there is a word; the rest is the caller's promise.
        unsafe { self.contains(stream, key_slice(&self.layout, keys), keys.len(), results::COUNT, count.global_mut()) }
    }

    /// # Safety
    /// `out` has room for `n` results of this form; all stay valid, and filter and keys unwritten, until `stream` has
    /// passed.
    unsafe fn contains(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        form: u32,
        out: GlobalMut<u64>,
    ) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let KeySlice { keys, kind, spread } = keys;
        let words: Global<u64> = self.words.global();
        let (slots, parameters) = (self.layout.slots(), parameters(&self.layout));
        // SAFETY: the filter is sound; the caller answers for the rest.
        unsafe {
            kernels::quotient_standard_contains::launch(
                stream,
                grid(n),
                words,
                slots,
                parameters,
                keys,
                kind,
                spread,
                n,
                form,
                out,
            )?;
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
            unsafe { self.contains(&stream, slice, keys.len(), results::BITS, out.global_mut())? };
            let mut words = vec![0u64; out.len()];
            stream.download(&out, &mut words)?;
            answers.extend((0..keys.len()).map(|i| words[i / 64] >> (i % 64) & 1 != 0));
        }
        Ok(answers)
    }

    /// How many of the keys may be in the filter.
    pub fn count_contained<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        for keys in keys.chunks(CHUNK) {
            let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
            let slice = uploaded.keys(&self.layout);
            // SAFETY: one word counts; all live until the copy below has been waited for, keys being freed in order.
            unsafe { self.contains(&stream, slice, keys.len(), results::COUNT, count.global_mut())? };
        }
        let mut found = [0];
        stream.download(&count, &mut found)?;
        Ok(found[0] as usize)
    }
}

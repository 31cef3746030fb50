//! Numbers of copies of the fingerprints of keys.

use warpset_base::filter::same_length;
use warpset_gpu::{DeviceSliceMut, Stream};
use warpset_kernels::quotient::fingerprints::quotient_count;
use warpset_simt::GlobalMut;

use super::fingerprints::{Fingerprints, with_widths};
use super::launch::{grid, hashing};
use super::slot_kind::Asked;
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact};
use crate::{Count, Error, Key};

impl<S: DeviceSlotKind> Count for QuotientFilter<S> {
    /// Counts copies. A rank-and-select quotient filter does so in the slots. A standard filter extracts all of its
    /// fingerprints, and the keys are searched there.
    fn count_bulk_into<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
        same_length(keys.len(), counts.len())?;
        if keys.is_empty() {
            return Ok(());
        }
        if self.layout.exact {
            return exact::answer(&self.layout, keys, counts, 0, |words, counts| self.count_any(words, counts));
        }
        self.count_any(keys, counts)
    }
}

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Counts like [`Count::count_bulk_into`] for keys that all have a fingerprint.
    fn count_any<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let stream = self.ready_stream()?;
        let stored = S::prepass_of_counts(self, &stream)?;
        stream.synchronize()?; // other streams read it
        self.staging().answer(keys, counts, &mut [], |chunk, _, out| {
            let keys = exact::keys_for(&self.layout, chunk.keys);
            let asked = Asked { stream: chunk.stream, keys, n: chunk.range.len() };
            // SAFETY: there is a word per key; the filter is borrowed, and `answer` waits before `stored` is freed.
            unsafe { S::counts(self, asked, stored.as_ref(), out) }
        })
    }

    /// Writes the number of stored copies of each key's fingerprint; `counts` has one word per key.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if not; memory of another device is refused.
    pub fn count_device<K: DeviceKeys>(&self, keys: K, counts: DeviceSliceMut<'_, u64>) -> Result<(), Error> {
        // SAFETY: filter, keys and counts are borrowed until the stream has been waited for.
        self.device.waiting(|stream| unsafe { self.count_async(stream, keys, counts) })
    }

    /// Queues [`QuotientFilter::count_device`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter, `keys` and `counts` stay allocated;
    /// - nothing writes the filter or the keys;
    /// - nothing else accesses `counts`.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::count_device`].
    pub unsafe fn count_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        mut counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let n = keys.count();
        same_length(n, counts.len())?;
        if n == 0 {
            return Ok(());
        }
        let lent = [keys.device(), counts.device(), stream.device()];
        self.device.expect_all_here(lent, "counting in a quotient filter")?;
        let stored = S::prepass_of_counts(self, stream)?;
        // SAFETY: there is a word per key; `stored` is freed in the order of the stream; the rest is this function's
        // contract.
        unsafe { self.count_into(stream, keys, stored.as_ref(), counts.global_mut()) }
    }

    /// Queues the counts of at least one key on this device; `stored` is the result of the prepass.
    ///
    /// # Safety
    /// The contract of [`QuotientFilter::count_async`]; `to` is valid for a word per key; until `stream` has passed
    /// this work, `stored` stays allocated, and nothing writes it.
    pub(super) unsafe fn count_into<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stored: Option<&Fingerprints>,
        to: GlobalMut<u64>,
    ) -> Result<(), Error> {
        // SAFETY: the contract of this function; everything else is freed in the order of the stream.
        unsafe {
            keys.for_each_chunk(&hashing(&self.layout), stream, |first, hashed, n| {
                let keys = exact::keys_for(&self.layout, hashed.keys);
                S::counts(self, Asked { stream, keys, n }, stored, to.at(first))
            })
        }
    }

    /// Queues the count of the fingerprints of keys, at least one, among ascending ones.
    ///
    /// # Safety
    /// Until the stream has passed this work:
    /// - `stored` and the keys stay allocated, and nothing writes them;
    /// - `counts` is valid for a word per key, and nothing else accesses it.
    pub(crate) unsafe fn count_among(
        &self,
        Asked { stream, keys, n }: Asked<'_>,
        stored: &Fingerprints,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error> {
        // SAFETY: the contract of this function; the vector is freed in the order of the stream.
        unsafe {
            let asked = Fingerprints::of_kernel_keys(&self.layout, stream, keys, n)?;
            with_widths!((stored, &asked), |stored, asked| {
                let (stored_len, stored, asked) = (stored.len(), stored.global(), asked.global());
                quotient_count { stored, stored_len, asked, n, out: counts }.launch(stream, grid(n))?
            });
            if self.layout.exact {
                exact::clear(&self.layout, stream, keys, n, counts)?;
            }
        }
        Ok(())
    }
}

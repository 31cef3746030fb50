//! Insertion: directly, or grouped by the part of the filter first.

use warpset_gpu::{DeviceSlice, GpuError, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_primitives::radix;
use warpset_simt::GlobalMut;

use super::kernels::Batch;
use super::{Bloom, DeviceKeys, DeviceOneBlock};
use crate::{Error, Hashed};

/// When an insertion groups its hashes by the part of the filter that they fall in.
///
/// A part fits in the L2 cache with room to spare, and is filled before the next one begins: atomics that would each go
/// to memory find their block in the cache. Grouping is one radix pass (two for filters of more than 256 parts), which
/// also hashes the keys; it takes 8 bytes of scratch memory per key, up to 4 GiB at a time.
///
/// Test-and-insert divides its sub-batches into parts by the same choice: `Auto` those of 2^21 keys or more, whatever
/// the filter's size; `Bits` into `1 << bits` parts, 2^12 at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Groups where measurement shows a gain: filters above the L2 cache, batches of at least one key per 128 bytes of
    /// the filter, and from 2^24 keys on filters above three quarters of the cache. Up to seven eighths, insertions
    /// that wait keep a share of the filter in the cache instead. Inserts directly if the scratch does not fit in
    /// memory.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Groups by this many top bits of the hash, 1 to 24, whatever the sizes. (Filters of Parquet columns of type INT32
    /// are never grouped.)
    Bits(u32),
}

/// Keys of a batch from which it pays to keep a part of the filter in the L2 cache, or to group for a filter of that
/// size.
const MANY_KEYS: usize = 1 << 24;
/// Keys that are grouped at a time: scratch memory stays little above 4 GiB.
const MOST_KEYS: usize = 1 << 29;
/// Bytes of filter per key of a batch; with fewer keys, grouping costs more than it saves.
const BYTES_PER_KEY: u64 = 128;

impl Grouping {
    /// Returns the number of bits by which to group `n` keys for a filter of `bytes`; `None`: not grouped.
    pub(super) fn bits(self, bytes: u64, n: usize, l2_bytes: usize) -> Option<u32> {
        match self {
            Grouping::Never => None,
            Grouping::Bits(bits) => Some(bits),
            Grouping::Auto => {
                // A part of up to half the cache, and at least a quarter: 15 to 30 MiB on an H200.
                let l2_bytes = l2_bytes as u64;
                let part = (l2_bytes / 2).max(1);
                let is_larger = bytes > l2_bytes && n as u64 >= bytes / BYTES_PER_KEY;
                if !is_larger && (bytes <= l2_bytes / 4 * 3 || n < MANY_KEYS) {
                    return None;
                }
                let parts = bytes.div_ceil(part).next_power_of_two();
                Some(parts.trailing_zeros().clamp(1, radix::MAX_GROUP_BITS))
            }
        }
    }
}

impl<L: DeviceOneBlock> Bloom<L> {
    /// Inserts keys on the device.
    ///
    /// # Errors
    /// Memory of another device. If there is no memory for scratch, the filter is unchanged, unless the batch is
    /// inserted in chunks, above 2^29 keys or 2^26 strings; keys of earlier chunks are in the filter.
    pub fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<(), Error> {
        // SAFETY: filter and keys are borrowed until the stream has been waited for.
        self.waiting(|filter, stream| unsafe { filter.insert_async(stream, keys) })
    }

    /// Queues [`Bloom::insert_device`].
    ///
    /// # Errors
    /// The errors of [`Bloom::insert_device`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter and `keys` stay allocated, and nothing writes the keys;
    /// - nothing accesses the filter, except that other insertions may run at the same time: all of them are atomic.
    pub unsafe fn insert_async<K: DeviceKeys>(&mut self, stream: &Stream, keys: K) -> Result<(), Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        self.expect_here("an insertion into a Bloom filter", [stream.device(), keys.device()])?;
        let (n, hashing) = (keys.count(), self.layout.hashing());
        let is_kept = self.grouping == Grouping::Auto && self.keep_for_insertion(stream, n);
        if let Some(bits) = self.group_bits(n).filter(|_| !is_kept) {
            if !(1..=radix::MAX_GROUP_BITS).contains(&bits) {
                return Err(Error::InvalidGrouping { bits });
            }
            let required = self.grouping != Grouping::Auto;
            // SAFETY: this function's contract.
            match unsafe { self.insert_grouped(stream, keys, bits) } {
                Err(Error::Gpu(GpuError::OutOfMemory { .. })) if !required => {} // insert directly
                result => return result,
            }
        }
        // SAFETY: this function's contract; scratch is freed in the order of the stream.
        unsafe { keys.for_each_chunk(&hashing, stream, |_, hashed, n| self.insert_direct(stream, hashed.keys, n)) }
    }

    /// Returns the number of highest bits by which to group `n` hashes, if they are grouped.
    pub(super) fn group_bits(&self, n: usize) -> Option<u32> {
        let bits = self.grouping.bits(self.memory_bytes(), n, self.device.properties().l2_bytes)?;
        let bits = match self.grouping {
            Grouping::Auto => {
                // The hashes of a part of a filter have some of their highest bits in common.
                let parts = self.whole.blocks() / self.layout.blocks();
                (bits + parts.ilog2()).min(radix::MAX_GROUP_BITS)
            }
            _ => bits,
        };
        self.layout.hashing().can_group().then_some(bits)
    }

    /// Inserts hashes that are grouped already, without a wait for earlier work on the device.
    pub(super) fn insert_grouped_hashes(&mut self, hashes: DeviceSlice<'_, Hashed>) -> Result<(), Error> {
        let (stream, hashes) = (self.device.new_stream()?, hashes.cast::<u64>()?);
        // SAFETY: filter and hashes are borrowed until the stream has been waited for.
        let queued = unsafe { self.insert_direct(&stream, KeySlice::hashes(hashes.global()), hashes.len()) };
        stream.synchronize()?;
        queued
    }

    /// Keeps a share of the filter in the L2 cache, where that gains most: the filter is of 9/16 to 7/8 of the cache.
    /// Returns whether it does.
    fn keep_for_insertion(&self, stream: &Stream, n: usize) -> bool {
        let (bytes, l2_bytes) = (self.memory_bytes(), self.device.properties().l2_bytes as u64);
        n >= MANY_KEYS && 16 * bytes > 9 * l2_bytes && 8 * bytes <= 7 * l2_bytes && stream.keep_in_l2(self.words())
    }

    /// Inserts keys in their order, one per thread.
    ///
    /// # Safety
    /// - The contract of [`Bloom::insert_async`]; `keys` are valid for `n` keys.
    pub(super) unsafe fn insert_direct(&self, stream: &Stream, keys: KeySlice, n: usize) -> Result<(), Error> {
        if n == 0 {
            return Ok(()); // the driver rejects a grid of zero blocks
        }
        // SAFETY: a part gets hashes of its blocks alone, whose words are allocated; the rest is this function's
        // contract.
        unsafe { self.whole.launch_insert(Batch { stream, keys, string_hashes: None, n }, self.words_atomic())? };
        Ok(())
    }

    /// Inserts keys that are grouped by `bits` bits of their hashes first.
    ///
    /// # Safety
    /// - The contract of [`Bloom::insert_async`].
    unsafe fn insert_grouped<K: DeviceKeys>(&self, stream: &Stream, keys: K, bits: u32) -> Result<(), Error> {
        let n = keys.count();
        // All scratch is allocated first: an insertion that runs out of memory has not begun.
        let chunk = n.min(MOST_KEYS);
        let mut grouped = stream.alloc_uninit::<u64>(chunk)?;
        let scratch = stream.alloc_uninit::<u64>(if bits > radix::MAX_DIGIT_BITS { chunk } else { 0 })?;
        drop(scratch); // the passes allocate it again, from the device's pool
        let mut first = 0;
        while first < n {
            let part = keys.part(first..n.min(first + chunk));
            let len = part.count();
            first += len;
            let mut hashes = grouped.slice_mut(..len);
            // SAFETY: scratch is freed in the order of the stream; the rest is this function's contract.
            unsafe {
                let hashed = part.kernel_keys(&self.layout.hashing(), stream)?;
                radix::group_by_top_bits_async(stream, hashed.keys, len, bits, hashes.reborrow())?;
                drop(hashed);
                self.insert_direct(stream, KeySlice::hashes(hashes.global()), len)?;
            }
        }
        Ok(())
    }

    /// Returns the words for kernels that change them atomically, several at a time, as [`Bloom::addressed`] does.
    pub(super) fn words_atomic(&self) -> GlobalMut<u32> {
        let words = self.addressed();
        GlobalMut::from_raw_parts(words.as_ptr().cast_mut(), words.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouping_is_for_large_filters_and_large_batches() {
        let l2 = 60 << 20;
        let auto = |bytes, n| Grouping::Auto.bits(bytes, n, l2);
        assert_eq!(auto(32 << 20, 1 << 30), None);
        assert_eq!(auto(48 << 20, 1 << 23), None);
        assert_eq!(auto(48 << 20, 1 << 24), Some(1));
        assert_eq!(auto(1 << 30, 1 << 20), None);
        assert_eq!(auto(1 << 30, 1 << 22), None);
        assert_eq!(auto(1 << 30, 1 << 23), Some(6));
        assert_eq!(auto(4 << 30, 1 << 29), Some(8));
        assert_eq!(auto(64 << 30, 1 << 30), Some(12));
        assert_eq!(Grouping::Never.bits(1 << 40, 1 << 30, l2), None);
        assert_eq!(Grouping::Bits(3).bits(1, 1, l2), Some(3));
        assert_eq!(auto(u64::MAX / 2, usize::MAX), Some(24));
    }
}

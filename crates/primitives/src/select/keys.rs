//! Selection of the keys of a batch by a stencil, for structures that take keys on a device.

use warpset_gpu::batch::{DeviceKeys, Hashing, SelectWords, SelectedKeys, Stencil};
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};

use super::{Item, select_async, select_flagged_async};
use crate::error::check_len;
use crate::{Error, Result};

/// Selection on a stream that waits for each number.
struct Select<'s> {
    stream: &'s Stream,
    count: DeviceVec<u64>,
}

impl Select<'_> {
    fn words<T: Item>(
        &mut self,
        words: DeviceSlice<'_, T>,
        stencil: Stencil<'_>,
        to: &mut DeviceVec<T>,
        at: usize,
    ) -> Result<usize> {
        let (to, count) = (to.slice_mut(at..at + words.len()), self.count.as_mut_slice());
        // SAFETY: all are borrowed, and the stream is waited for below, or on an error by `select_keys_device`.
        unsafe {
            match stencil {
                Stencil::Bits(bits) => select_async(self.stream, words, bits, to, count)?,
                Stencil::Bytes(bytes) => select_flagged_async(self.stream, words, bytes, to, count)?,
            }
        }
        let mut selected = [0];
        self.stream.download(&self.count, &mut selected)?;
        Ok(selected[0] as usize)
    }
}

impl SelectWords<Error> for Select<'_> {
    fn narrow(
        &mut self,
        words: DeviceSlice<'_, u32>,
        stencil: Stencil<'_>,
        to: &mut DeviceVec<u32>,
        at: usize,
    ) -> Result<usize> {
        self.words(words, stencil, to, at)
    }

    fn wide(
        &mut self,
        words: DeviceSlice<'_, u64>,
        stencil: Stencil<'_>,
        to: &mut DeviceVec<u64>,
        at: usize,
    ) -> Result<usize> {
        self.words(words, stencil, to, at)
    }
}

/// Selects the keys that a stencil selects, in their order, for operations of a structure with this hash function.
/// Waits for all work on the device, and for the number of keys.
///
/// Takes memory for all keys, 4 or 8 bytes each (strings: 8, by their hashes), until the result is dropped.
///
/// # Errors
/// [`LengthMismatch`](Error::LengthMismatch), a stencil on another device, and errors of allocations and launches.
pub fn select_keys_device<K: DeviceKeys>(keys: K, hashing: &Hashing, stencil: Stencil<'_>) -> Result<SelectedKeys> {
    let device = keys.device();
    check_len("the stencil", keys.count(), stencil.room())?;
    let stream = device.new_stream()?;
    device.expect_same(stencil.device(), "a selection")?;
    device.synchronize()?;
    let count = stream.alloc_uninit(1)?;
    // SAFETY: the stencil has one place per key and is on this device; all are borrowed until the stream has been
    // waited for.
    let selected = unsafe { SelectedKeys::new(&stream, keys, hashing, stencil, Select { stream: &stream, count }) };
    stream.synchronize()?;
    selected
}

//! Words of keys, with values, that builds on several devices send to their owners.

use bytemuck::Pod;
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Stream};
use warpset_kernels::primitives::exchange::exchange_words;
use warpset_simt::Global;

use super::route::covering;
use crate::Result;

/// Words of keys, and their values if there are any, that a part has received for its build.
#[derive(Default)]
pub struct Received {
    words: Vec<DeviceVec<u64>>,
    values: Vec<DeviceVec<u64>>,
}

impl Received {
    /// Keeps a copy of words and values: a change of a part.
    ///
    /// # Errors
    /// A failed allocation or copy.
    pub fn take(&mut self, words: DeviceSlice<'_, u64>, values: DeviceSlice<'_, u64>) -> Result<()> {
        for (own, some) in [(&mut self.words, words), (&mut self.values, values)] {
            own.push(copied(some, some.device())?);
        }
        Ok(())
    }

    /// Queues the copy of all words to one vector, and of all values, in the order in which they came. A vector may be
    /// of another stream, so it must stay until the work with it has been waited for.
    ///
    /// # Errors
    /// A failed allocation or copy.
    pub fn joined(self, stream: &Stream) -> Result<(DeviceVec<u64>, DeviceVec<u64>)> {
        Ok((joined(stream, self.words)?, joined(stream, self.values)?))
    }
}

/// Queues the copy of some vectors to one.
fn joined(stream: &Stream, mut vectors: Vec<DeviceVec<u64>>) -> Result<DeviceVec<u64>> {
    if vectors.len() == 1 {
        return Ok(vectors.remove(0));
    }
    let mut all = stream.alloc_uninit(vectors.iter().map(|vector| vector.len()).sum())?;
    let mut first = 0;
    for vector in vectors {
        stream.copy(all.slice_mut(first..first + vector.len()), &vector)?;
        first += vector.len();
    }
    Ok(all)
}

/// Returns a copy on this device.
///
/// # Errors
/// A failed allocation or copy.
pub fn copied(words: DeviceSlice<'_, u64>, device: &Device) -> Result<DeviceVec<u64>> {
    let stream = device.new_stream()?;
    let mut copy = stream.alloc_uninit(words.len())?;
    stream.copy(&mut copy, words)?;
    stream.synchronize()?;
    Ok(copy)
}

/// Returns unsigned integers as words, on their device.
///
/// # Errors
/// A failed allocation or launch.
pub fn words_of<V: Pod + Into<u64>>(values: DeviceSlice<'_, V>) -> Result<DeviceVec<u64>> {
    // SAFETY: values are borrowed until the stream has been waited for.
    values.device().waiting(|stream| unsafe { queued_words_of(stream, values) })
}

/// Queues [`words_of`].
///
/// # Safety
/// Until `stream` has passed this work the values stay allocated, and nothing writes them.
pub(super) unsafe fn queued_words_of<V: Pod + Into<u64>>(
    stream: &Stream,
    values: DeviceSlice<'_, V>,
) -> Result<DeviceVec<u64>> {
    let (n, width) = (values.len(), size_of::<V>());
    let mut words = stream.alloc_uninit(n)?;
    if n > 0 {
        // The length is rounded up, since values may share a word.
        let values = Global::from_raw_parts(values.global().as_ptr().cast(), (n * width).div_ceil(8));
        // SAFETY: there is a place per value; the rest is this function's contract.
        unsafe {
            exchange_words { values, n, width: width as u32, out: words.global_mut() }
                .launch(stream, covering(stream, n))?
        };
    }
    Ok(words)
}

//! Scratch memory: allocated and freed in the order of the stream, from the device's pool.

use bytemuck::Pod;
use warpset_gpu::{DeviceVec, Stream};
use warpset_simt::GlobalMut;

use crate::Result;

/// The look-back words of a launch and its ticket, all zero: one allocation, one fill.
///
/// It may be dropped as soon as the launch is queued.
pub(crate) struct LookBack {
    memory: DeviceVec<u64>,
    words: usize,
}

impl LookBack {
    /// Room for `words` words.
    pub(crate) fn new(stream: &Stream, words: usize) -> Result<Self> {
        Ok(Self { memory: stream.alloc_zeroed(words + 1)?, words })
    }

    /// The words, at a multiple of 16 bytes.
    pub(crate) fn words(&mut self) -> GlobalMut<u64> {
        self.memory.global_mut()
    }

    /// The ticket, or any other counter of at most 8 bytes: it stands behind the words.
    pub(crate) fn ticket<T: Pod>(&mut self) -> GlobalMut<T> {
        self.memory.global_mut().at(self.words).cast()
    }
}

//! Scratch memory of kernels that look back at earlier blocks, or that need zeroed words, a counter and a few results.

use bytemuck::Pod;
use warpset_gpu::{DeviceVec, Result, Stream};
use warpset_simt::GlobalMut;

/// Zeroed look-back words of one launch, its ticket and its results: one allocation and one fill, from the device's
/// pool and in stream order.
///
/// ```text
///  +---------------------------+--------+-------------+
///  | look-back words           | ticket | results     |   words of 64 bits
///  +---------------------------+--------+-------------+
/// ```
///
/// It may be dropped as soon as the launch is queued.
pub struct LookBack {
    memory: DeviceVec<u64>,
    words: usize,
}

impl LookBack {
    /// Allocates `words` look-back words and a ticket.
    ///
    /// # Errors
    /// [`Error::Gpu`](crate::Error::Gpu).
    pub fn new(stream: &Stream, words: usize) -> Result<LookBack> {
        LookBack::with_results(stream, words, 0)
    }

    /// Allocates zeroed words for a look-back, and `results` words that the kernel writes for the host.
    ///
    /// # Errors
    /// [`Error::Gpu`](crate::Error::Gpu).
    pub fn with_results(stream: &Stream, words: usize, results: usize) -> Result<LookBack> {
        Ok(LookBack { memory: stream.alloc_zeroed(words + 1 + results)?, words })
    }

    /// Returns the words, at a multiple of 16 bytes.
    pub fn words(&mut self) -> GlobalMut<u64> {
        self.memory.global_mut()
    }

    /// Returns the ticket, or any other counter of at most 8 bytes.
    pub fn ticket<T: Pod>(&mut self) -> GlobalMut<T> {
        const { assert!(size_of::<T>() <= 8) };
        self.memory.global_mut().at(self.words).cast()
    }

    /// Returns the words for the kernel's results.
    pub fn results(&mut self) -> GlobalMut<u64> {
        self.memory.global_mut().at(self.words + 1)
    }

    /// Waits for the launch, and copies results until `to` is full.
    ///
    /// # Errors
    /// [`Error::Gpu`](crate::Error::Gpu).
    pub fn download_results(&self, stream: &Stream, to: &mut [u64]) -> Result<()> {
        let first = self.words + 1;
        stream.download(self.memory.slice(first..first + to.len()), to)
    }
}

//! Scratch memory of kernels whose blocks look back at the blocks before them, and of others that want zeroed words, a
//! counter and a few results.

use bytemuck::Pod;
use warpset_gpu::{DeviceVec, Result, Stream};
use warpset_simt::GlobalMut;

/// The look-back words of one launch, its ticket and its results, all zero: one allocation and one fill, from the
/// device's pool and in the order of the stream.
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
    /// Memory for `words` look-back words and a ticket.
    ///
    /// # Errors
    /// [`Error::Gpu`](crate::Error::Gpu).
    pub fn new(stream: &Stream, words: usize) -> Result<LookBack> {
        LookBack::with_results(stream, words, 0)
    }

    /// Zeroed words for a look-back, and after them `results` words that the kernel writes for the host.
    ///
    /// # Errors
    /// [`Error::Gpu`](crate::Error::Gpu).
    pub fn with_results(stream: &Stream, words: usize, results: usize) -> Result<LookBack> {
        Ok(LookBack { memory: stream.alloc_zeroed(words + 1 + results)?, words })
    }

    /// The words, at a multiple of 16 bytes.
    pub fn words(&mut self) -> GlobalMut<u64> {
        self.memory.global_mut()
    }

    /// The ticket, or any other counter of at most 8 bytes.
    pub fn ticket<T: Pod>(&mut self) -> GlobalMut<T> {
        const { assert!(size_of::<T>() <= 8) };
        self.memory.global_mut().at(self.words).cast()
    }

    /// Where the kernel writes its results.
    pub fn results(&mut self) -> GlobalMut<u64> {
        self.memory.global_mut().at(self.words + 1)
    }

    /// Waits for the launch and copies as many results as `to` holds.
    ///
    /// # Errors
    /// [`Error::Gpu`](crate::Error::Gpu).
    pub fn download_results(&self, stream: &Stream, to: &mut [u64]) -> Result<()> {
        let first = self.words + 1;
        stream.download(self.memory.slice(first..first + to.len()), to)
    }
}

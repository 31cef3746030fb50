//! Common parts of launches: arguments for layout, threads and hashing of keys, zero words, and the wait after an
//! error.

use warpset_gpu::batch::Hashing;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::layout::BLOCK;
use warpset_kernels::quotient::memory::Parameters;

use crate::{Error, Layout, OutOfMemory};

/// Encodes a layout for kernels.
pub fn parameters(layout: &Layout) -> u32 {
    Parameters::new(layout.split, layout.container, layout.keeps_duplicates()).0
}

/// Makes a grid of one thread per item.
pub fn grid(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

/// Returns the hashing of a filter's keys.
pub(crate) fn hashing(layout: &Layout) -> Hashing {
    Hashing::seeded(layout.seed())
}

/// Returns the number of words of a filter of this layout.
pub(super) fn word_count(layout: &Layout) -> Result<usize, OutOfMemory> {
    usize::try_from(layout.words()).map_err(|_| OutOfMemory { bytes: layout.words().saturating_mul(8) })
}

/// Runs `work`, and waits for the stream if it fails: what `work` has queued may use borrowed memory.
pub(crate) fn waiting_on_errors<T>(stream: &Stream, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let done = work();
    if done.is_err() {
        stream.synchronize()?;
    }
    done
}

/// Allocates the words of an empty filter.
///
/// # Errors
/// [`Error::OutOfMemory`] or [`Error::Gpu`] if there is no memory for them.
pub fn zeroed_words(layout: &Layout, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
    Ok(stream.alloc_zeroed(word_count(layout)?)?)
}

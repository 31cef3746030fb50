//! Zeroed words that stay with a stream, for launches that take less time than an allocation and a fill.
//!
//! A stream has two halves of words. Each launch uses the half that is zero, and clears the words that the launch
//! before it has used in the other one:
//!
//! ```text
//!            first half         second half
//! launch 1   uses 100 words     is zero
//! launch 2   clears 100 words   uses 40 words
//! launch 3   uses 7 words       clears 40 words
//! ```

use std::sync::PoisonError;

use warpset_simt::GlobalMut;

use crate::error::{GpuError, Result};
use crate::stream::Stream;
use crate::vector::DeviceVec;

/// The most words that stay with a stream, per half. A launch that needs more takes longer than a fill.
const MOST_KEPT: usize = 1 << 15;
/// The fewest words of a half.
const LEAST_KEPT: usize = 1 << 8;

/// Words for one launch.
#[derive(Clone, Copy)]
pub struct ZeroedWords {
    /// Zero, at a multiple of 16 bytes.
    pub zero: GlobalMut<u64>,
    /// Words that the launch has to clear.
    pub left: GlobalMut<u64>,
    /// Number of words to clear.
    pub left_words: usize,
}

/// Both halves.
pub(crate) struct Halves {
    words: DeviceVec<u64>,
    /// Words per half.
    half: usize,
    /// Whether the second half is the one that is zero.
    is_second: bool,
    /// Words at the beginning of the other half that need not be zero.
    left_words: usize,
}

impl Halves {
    fn new(stream: &Stream, half: usize) -> Result<Self> {
        // Not in the order of the stream: such memory would hold the stream, which holds this.
        let mut words = stream.device().alloc_uninit(2 * half)?;
        stream.fill_bytes(&mut words, 0)?;
        Ok(Self { words, half, is_second: false, left_words: 0 })
    }
}

impl Stream {
    /// Passes `words` zeroed words to `queue`, which queues one launch.
    ///
    /// # Errors
    /// Errors of `queue`, of an allocation and of a fill.
    ///
    /// # Safety
    /// If `queue` succeeds, it has queued work on this stream that writes the first `words` zeroed words at most,
    /// sets the words to clear to zero, and accesses both until its end at the latest. It does not use this function.
    #[doc(hidden)]
    pub unsafe fn with_zeroed_words<E: From<GpuError>>(
        &self,
        words: usize,
        queue: impl FnOnce(ZeroedWords) -> Result<(), E>,
    ) -> Result<(), E> {
        if words > MOST_KEPT || !self.keeps_words() {
            let mut own = self.alloc_zeroed(words)?;
            return queue(ZeroedWords { zero: own.global_mut(), left: own.global_mut(), left_words: 0 });
        }
        // Held until the launch is queued, so that launches of several threads use the halves in turn.
        let mut kept = self.zeroed().lock().unwrap_or_else(PoisonError::into_inner);
        let mut halves = match kept.take() {
            Some(halves) if words <= halves.half => halves,
            _ => Halves::new(self, words.next_power_of_two().max(LEAST_KEPT))?,
        };
        let Halves { half, is_second, left_words, .. } = halves;
        let (zero, left) = if is_second { (half, 0) } else { (0, half) };
        let all = halves.words.global_mut();
        // After an error the halves are dropped: part of the launch may have been queued.
        queue(ZeroedWords { zero: all.at(zero), left: all.at(left), left_words })?;
        *kept = Some(Halves { is_second: !is_second, left_words: words, ..halves });
        Ok(())
    }
}

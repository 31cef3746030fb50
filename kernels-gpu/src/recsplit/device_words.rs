//! Words of a function in device memory, as the lookups of `warpset_core` read them, for all kinds: through the
//! read-only cache, two words per window of bits.

use warpset_core::bits::Select;
use warpset_core::recsplit::lookup::{Words, scan};
use warpset_simt::Global;

/// The words of a function. Reads past the end give zeros.
#[derive(Clone, Copy)]
pub struct DeviceWords {
    words: Global<u64>,
    len: u64,
}

impl DeviceWords {
    /// Wraps these words.
    ///
    /// # Safety
    /// They are valid for `len` reads, and nothing writes them while the kernel runs.
    #[inline(always)]
    pub unsafe fn new(words: Global<u64>, len: u64) -> Self {
        Self { words, len }
    }
}

impl Words for DeviceWords {
    #[inline(always)]
    fn len(self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn word(self, index: u64) -> u64 {
        // SAFETY: `index` is below the length, by the contract of `new`.
        if index < self.len { unsafe { self.words.read_nc(index as usize) } } else { 0 }
    }

    #[inline(always)]
    fn bits_from(self, at: u64) -> u64 {
        let (index, shift) = (at / 64, at as u32 % 64);
        // Two shifts, since a shift by 64 is undefined.
        self.word(index) >> shift | (self.word(index.wrapping_add(1)) << 1) << (63 - shift)
    }

    #[inline(always)]
    fn scan<const N: usize>(self, from: u64, rank: u32, select: impl Select) -> u64 {
        scan(self, from, rank, select)
    }
}

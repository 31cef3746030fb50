//! A function in device memory, as the lookups of `warpset_core` read it: words through the read-only cache, two for a
//! window of bits, and rows of 32 bytes, of which the common ones stay in the first-level cache.

use warpset_core::bits::Select;
use warpset_core::recsplit::lookup::row::Row;
use warpset_core::recsplit::lookup::{Function, Plan, Words, scan};
use warpset_simt::Global;

/// The words of a function. Reads past the end give zeros.
#[derive(Clone, Copy)]
pub struct DeviceWords {
    words: Global<u64>,
    len: u64,
}

impl DeviceWords {
    /// These words.
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
        // Two shifts, since a shift by 64 has no meaning.
        self.word(index) >> shift | (self.word(index.wrapping_add(1)) << 1) << (63 - shift)
    }

    #[inline(always)]
    fn scan<const N: usize>(self, from: u64, rank: u32, select: impl Select) -> u64 {
        scan(self, from, rank, select)
    }
}

/// A function to look keys up in.
#[derive(Clone, Copy)]
pub struct DeviceFunction<'p> {
    words: DeviceWords,
    rows: Global<u64>,
    plan: &'p Plan,
}

impl<'p> DeviceFunction<'p> {
    /// The function of these parts.
    ///
    /// # Safety
    /// Nothing writes these while the kernel runs:
    /// - `words`: valid for `len` reads.
    /// - `rows`: four words for each of `plan.rows` rows, at least one, from a multiple of 16 bytes on; they are those
    ///   of the plan's shape, so that a node's children have rows.
    #[inline(always)]
    pub unsafe fn new(words: Global<u64>, len: u64, rows: Global<u64>, plan: &'p Plan) -> Self {
        Self { words: DeviceWords { words, len }, rows, plan }
    }
}

impl Function for DeviceFunction<'_> {
    type Words = DeviceWords;
    type Row = Row;

    #[inline(always)]
    fn words(&self) -> DeviceWords {
        self.words
    }

    #[inline(always)]
    fn plan(&self) -> &Plan {
        self.plan
    }

    #[inline(always)]
    fn row(&self, keys: u32) -> Row {
        let at = 4 * keys as usize;
        // SAFETY: a walk begins at a bucket of fewer keys than there are rows, and goes to children, which have fewer
        // keys.
        let ([a, b], [c, d]) = unsafe { (self.rows.read2_nc(at), self.rows.read2_nc(at + 2)) };
        Row::from_words([a, b, c, d])
    }
}

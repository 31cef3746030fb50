//! A function in device memory, as the lookups of `warpset_core` read it: rows of 32 bytes, of which the common ones
//! stay in the first-level cache.

use crate::recsplit::device_words::DeviceWords;
use warpset_core::recsplit::lookup::row::Row;
use warpset_core::recsplit::lookup::{Function, Plan};
use warpset_simt::Global;

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
    ///
    /// [`row`](Function::row) is for walks over this function alone.
    #[inline(always)]
    pub unsafe fn new(words: Global<u64>, len: u64, rows: Global<u64>, plan: &'p Plan) -> Self {
        // SAFETY: the caller's promise.
        Self { words: unsafe { DeviceWords::new(words, len) }, rows, plan }
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
        // SAFETY: `rows` has four words per row, by the contract of `new`. `keys` is below `plan.rows`: `Walk`, the
        // only caller, begins at a bucket that the plan was made for and goes to children, which have fewer keys.
        let ([a, b], [c, d]) = unsafe { (self.rows.read2_nc(at), self.rows.read2_nc(at + 2)) };
        Row::from_words([a, b, c, d])
    }
}

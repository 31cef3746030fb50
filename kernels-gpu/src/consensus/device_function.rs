//! A function in device memory, as the lookups of `warpset_core` read it: rows of 16 bytes, all of which stay in the
//! first-level cache.

use crate::recsplit::device_words::DeviceWords;
use warpset_core::consensus::lookup::{Function, Plan};
use warpset_core::consensus::tree::Row;
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
    /// - `rows`: two words for each of `plan.rows` rows of splittings, and for each row of leaves after them, from a
    ///   multiple of 16 bytes on.
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

    #[inline(always)]
    fn words(&self) -> DeviceWords {
        self.words
    }

    #[inline(always)]
    fn plan(&self) -> &Plan {
        self.plan
    }

    #[inline(always)]
    fn row(&self, place: u32) -> Row {
        // SAFETY: `rows` has two words per row, by the contract of `new`. `place` is that of a row: `Walk`, the only
        // caller, begins at a bucket that the plan was made for, goes to nodes of fewer keys, and ends at a leaf, whose
        // size has a row of its own.
        Row::from_words(unsafe { self.rows.read2_nc(2 * place as usize) })
    }
}

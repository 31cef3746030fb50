//! Lists of buckets on a device; see [`warpset_kernels::recsplit::lists`].

use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::recsplit::lists::{self as kernels, ListParts};
use warpset_simt::GlobalMut;

use super::buckets::covering;
use crate::Error;
use crate::elias_fano::{Layout, Prefixes};

/// Keys and bits before each bucket, and the totals.
pub(super) struct Sums {
    pub(super) keys: DeviceVec<u64>,
    pub(super) bits: DeviceVec<u64>,
}

impl Sums {
    /// Allocates the sums of this many buckets; those before the first are zero.
    pub(super) fn new(stream: &Stream, buckets: usize) -> Result<Self, Error> {
        let mut sums = Self { keys: stream.alloc_uninit(buckets + 1)?, bits: stream.alloc_uninit(buckets + 1)? };
        stream.fill_bytes(sums.keys.slice_mut(..1), 0)?;
        stream.fill_bytes(sums.bits.slice_mut(..1), 0)?;
        Ok(sums)
    }

    /// Queues the lists of `layout`, to `words`. The word of the result says whether 16 bits are too few for the jump
    /// array.
    ///
    /// # Safety
    /// - All sums are written, and `layout` was made for them.
    /// - `words` are of the number in `layout`, and zero; they stay allocated until `stream` has passed this work, and
    ///   nothing else accesses them.
    pub(super) unsafe fn queue_lists(
        &self,
        stream: &Stream,
        layout: &Layout,
        words: GlobalMut<u64>,
    ) -> Result<DeviceVec<u32>, Error> {
        let mut overflow = stream.alloc_zeroed(1)?;
        let [upper_keys, upper_bits, jumps] = layout.parts();
        let (block_words, log_stride) = (layout.block_words(), layout.log_stride.into());
        let entries = self.keys.len();
        // SAFETY: this function's contract.
        unsafe {
            kernels::recsplit_lists {
                keys_before: self.keys.global(),
                bits_before: self.bits.global(),
                entries,
                of: layout.list_values(),
                parts: ListParts { upper_keys, upper_bits, jumps, block_words, log_stride },
                words,
                overflow: overflow.global_mut(),
            }
            .launch(stream, covering(stream.device(), entries))?;
        }
        Ok(overflow)
    }
}

/// Last of the prefix sums; a layout depends on it and on their number only.
pub(super) struct Last {
    pub(super) entries: usize,
    pub(super) sums: (u64, u64),
}

impl Prefixes for Last {
    fn len(&self) -> usize {
        self.entries
    }

    fn read(&self, first: usize, to: &mut [(u64, u64)]) {
        debug_assert_eq!(first + to.len(), self.entries, "only the last one is known");
        to.fill(self.sums);
    }
}

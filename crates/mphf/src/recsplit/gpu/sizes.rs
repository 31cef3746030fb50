//! Numbers of the trees of buckets, from the buckets' sizes.

use warpset_gpu::{DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::recsplit::buckets::{LARGEST, SEEN, TOO_LARGE, recsplit_counts};
use warpset_primitives::scan::{self, Sum};

use super::rows::Rows;
use crate::gpu::{AttemptError, Sorted, covering};

/// Sums over the sizes of buckets.
pub(super) struct Sizes {
    /// Start of each bucket's numbers, and the end of the last one's.
    pub(super) first_number: DeviceVec<u32>,
    /// Count of all numbers.
    pub(super) numbers: usize,
    /// Keys of the largest bucket.
    pub(super) largest: u32,
}

impl Sizes {
    /// Adds up the numbers. Writes the number of keys before the end of each bucket to `keys_before`, which has a word
    /// per bucket; `base` keys precede these buckets. Waits.
    pub(super) fn of(
        sorted: &Sorted,
        stream: &Stream,
        rows: &Rows,
        base: u64,
        keys_before: DeviceSliceMut<'_, u64>,
    ) -> Result<Sizes, AttemptError> {
        let mut keys_before = keys_before;
        let buckets = sorted.buckets;
        let mut first_number = stream.alloc_uninit(buckets + 1)?;
        let mut seen = stream.alloc_zeroed::<u64>(SEEN)?;
        let config = covering(stream.device(), buckets + 1);
        // SAFETY: there are bounds and places for all buckets; memory is freed in the order of the stream.
        unsafe {
            recsplit_counts {
                bounds: sorted.bounds.global(),
                buckets,
                rows: rows.global(),
                largest: rows.largest(),
                base,
                counts: first_number.global_mut(),
                keys_before: keys_before.global_mut(),
                seen: seen.global_mut(),
            }
            .launch(stream, config)?;
            scan::exclusive_in_place_async::<Sum<u32>>(stream, first_number.as_mut_slice())?;
        }
        let (mut said, mut all) = ([0; SEEN], [0]);
        stream.download(&seen, &mut said)?;
        stream.download(first_number.slice(buckets..), &mut all)?;
        if said[TOO_LARGE] != 0 {
            return Err(AttemptError::Seed(sorted.explain(stream, !said[TOO_LARGE] as usize)?));
        }
        Ok(Sizes { first_number, numbers: all[0] as usize, largest: said[LARGEST] as u32 })
    }
}

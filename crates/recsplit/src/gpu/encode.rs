//! Numbers to bits on a device: see [`warpset_kernels::recsplit::encode`].

use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::recsplit::encode::{self as kernels, BLOCK};
use warpset_primitives::scan::{self, Sum};
use warpset_simt::GlobalMut;

use super::buckets::{Sizes, Sorted};
use super::rows::Rows;
use crate::Error;

/// Numbers per bucket from which on a whole warp takes a bucket.
const MANY: usize = 16;

/// Trees whose numbers have been found.
pub(super) struct Found<'a> {
    pub(super) rows: &'a Rows,
    pub(super) sorted: &'a Sorted,
    pub(super) sizes: &'a Sizes,
    pub(super) numbers: &'a DeviceVec<u64>,
}

impl Found<'_> {
    /// Whether buckets have few numbers, and how many threads take a bucket.
    fn lanes(&self) -> (bool, u32) {
        let are_few = self.numbers.len() < self.sorted.buckets.saturating_mul(MANY);
        (are_few, if are_few { 4 } else { 32 })
    }

    fn config(&self) -> LaunchConfig {
        LaunchConfig::new(self.sorted.buckets.div_ceil((BLOCK / self.lanes().1) as usize) as u32, BLOCK)
    }

    /// Queues the sums of bits: `bits_before` has the bits before the first bucket as its first word, and gets those before the
    /// end of each bucket after it. Lowers `least`.
    ///
    /// # Safety
    /// All of these stay allocated until `stream` has passed this work, and nothing else accesses what is written.
    pub(super) unsafe fn queue_bits(
        &self,
        stream: &Stream,
        mut bits_before: DeviceSliceMut<'_, u64>,
        least: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        macro_rules! launch {
            ($kernel:ident) => {
                kernels::$kernel {
                    bounds: self.sorted.bounds.global(),
                    buckets: self.sorted.buckets,
                    rows: self.rows.global(),
                    first_number: self.sizes.first_number.global(),
                    numbers: self.numbers.global(),
                    bits_before: bits_before.global_mut().at(1),
                    least: least.global_mut(),
                }
                .launch(stream, self.config())?
            };
        }
        // SAFETY: there are rows and words of `least` for all buckets, numbers for all nodes; the rest is the caller's promise.
        unsafe {
            match self.lanes().0 {
                true => launch!(recsplit_bits_few),
                false => launch!(recsplit_bits),
            }
            scan::inclusive_in_place_async::<Sum<u64>>(stream, bits_before)?;
        }
        Ok(())
    }

    /// Queues the writing of the bits to `words`, whose first bit is number `origin` of all.
    ///
    /// # Safety
    /// - `bits_before` is what [`Found::queue_bits`] has made, and `words` are zero and valid for all bits from `origin` on, where other
    ///   bits may have been set.
    /// - All of these stay allocated until `stream` has passed this work, and nothing else accesses the words.
    pub(super) unsafe fn queue_words(
        &self,
        stream: &Stream,
        bits_before: DeviceSlice<'_, u64>,
        origin: u64,
        words: GlobalMut<u64>,
    ) -> Result<(), Error> {
        macro_rules! launch {
            ($kernel:ident) => {
                kernels::$kernel {
                    bounds: self.sorted.bounds.global(),
                    buckets: self.sorted.buckets,
                    rows: self.rows.global(),
                    first_number: self.sizes.first_number.global(),
                    numbers: self.numbers.global(),
                    bits_before: bits_before.global(),
                    origin,
                    words,
                }
                .launch(stream, self.config())?
            };
        }
        // SAFETY: as above.
        unsafe {
            match self.lanes().0 {
                true => launch!(recsplit_encode_few),
                false => launch!(recsplit_encode),
            }
        }
        Ok(())
    }
}

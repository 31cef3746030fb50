//! Conversion of numbers to bits on a device; see [`warpset_kernels::recsplit::encode`].

use std::sync::Arc;

use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::recsplit::encode::{self as kernels, BLOCK};
use warpset_primitives::scan::{self, Sum};
use warpset_simt::GlobalMut;

use super::rows::Rows;
use super::sizes::Sizes;
use crate::Error;
use crate::gpu::{EncodedBuckets, Sorted};
use crate::recsplit::find::Trees;

/// Least numbers of a bucket that a whole warp encodes.
const MANY: u16 = 12;

/// Lanes that encode a bucket together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    /// Four.
    Few,
    /// All of a warp.
    Warp,
}

impl Lanes {
    /// Returns the lanes for buckets of about this many keys.
    pub(super) fn of(trees: &Trees, bucket_size: u32) -> Self {
        let nodes = trees.nodes();
        let usual = (bucket_size as usize).min(nodes.len() - 1);
        if nodes[usual].nodes < MANY { Self::Few } else { Self::Warp }
    }

    fn count(self) -> u32 {
        match self {
            Self::Few => 4,
            Self::Warp => 32,
        }
    }
}

/// Trees with their numbers.
pub struct Found {
    pub(super) lanes: Lanes,
    pub(super) rows: Arc<Rows>,
    pub(super) sorted: Sorted,
    pub(super) sizes: Sizes,
    pub(super) numbers: DeviceVec<u64>,
}

impl Found {
    fn config(&self) -> LaunchConfig {
        LaunchConfig::new(self.sorted.buckets.div_ceil((BLOCK / self.lanes.count()) as usize) as u32, BLOCK)
    }
}

/// Queues a kernel with the arguments that those for bits and those for words share, and its own.
macro_rules! launch {
    ($found:ident, $stream:ident, $kernel:ident { $($own:tt)* }) => {
        kernels::$kernel {
            bounds: $found.sorted.bounds.global(),
            buckets: $found.sorted.buckets,
            rows: $found.rows.global(),
            first_number: $found.sizes.first_number.global(),
            numbers: $found.numbers.global(),
            $($own)*
        }
        .launch($stream, $found.config())?
    };
}

impl EncodedBuckets for Found {
    fn largest(&self) -> u32 {
        self.sizes.largest
    }

    unsafe fn queue_bits(
        &self,
        stream: &Stream,
        mut bits_before: DeviceSliceMut<'_, u64>,
        least: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        let (next, least) = (bits_before.global_mut().at(1), least.global_mut());
        // SAFETY: there are rows and words of `least` for all buckets, numbers for all nodes; the rest is this
        // function's contract.
        unsafe {
            match self.lanes {
                Lanes::Few => launch!(self, stream, recsplit_bits_few { bits_before: next, least }),
                Lanes::Warp => launch!(self, stream, recsplit_bits { bits_before: next, least }),
            }
            scan::inclusive_in_place_async::<Sum<u64>>(stream, bits_before)?;
        }
        Ok(())
    }

    unsafe fn queue_words(
        &self,
        stream: &Stream,
        bits_before: DeviceSlice<'_, u64>,
        origin: u64,
        words: GlobalMut<u64>,
    ) -> Result<(), Error> {
        let bits_before = bits_before.global();
        // SAFETY: there are rows for all buckets, numbers for all nodes; the rest is this function's contract.
        unsafe {
            match self.lanes {
                Lanes::Few => launch!(self, stream, recsplit_encode_few { bits_before, origin, words }),
                Lanes::Warp => launch!(self, stream, recsplit_encode { bits_before, origin, words }),
            }
        }
        Ok(())
    }
}

//! Search on a device; see [`warpset_kernels::consensus::search`].
//!
//! A warp takes a bucket, and the next one when it is done. The position of a bucket's code follows from the numbers of
//! keys, so warps write bits directly, without another launch.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::consensus::search::{BLOCK, SearchPlan, consensus_search};
use warpset_kernels::consensus::sizes::{LARGEST, SEEN, TOO_LARGE, consensus_bits, consensus_sizes, consensus_words};
use warpset_kernels::consensus::slot::slot_words;
use warpset_primitives::scan::{self, Sum};
use warpset_simt::GlobalMut;

use crate::Error;
use crate::consensus::find::Tasks;
use crate::gpu::{AttemptError, EncodedBuckets, SearchProgress, Sorted, covering};

/// Blocks per multiprocessor, from the kernel's launch bounds.
const BLOCKS: u32 = 12;
/// Warps of a block.
const WARPS: u64 = BLOCK as u64 / 32;
/// The most bytes of all warps' slots, unless one block needs more.
const MOST_BYTES: u64 = 4 << 30;
/// Launches of a search that reports progress.
const STEPS: usize = 32;

/// Tables that all searches on one device share.
pub struct DeviceSearch {
    rows: DeviceVec<u64>,
    /// Bits of a bucket's code by its number of keys.
    bits_of: DeviceVec<u32>,
    splits: u32,
    root_bits: u32,
    entries: u32,
}

/// Codes, one after the other.
pub struct Found {
    pub(crate) bounds: DeviceVec<u32>,
    /// Start of each bucket's code, and the end of the last one.
    pub(crate) first_bit: DeviceVec<u64>,
    pub(crate) words: DeviceVec<u64>,
    /// Keys of the largest bucket.
    pub(crate) largest: u32,
}

impl DeviceSearch {
    pub(super) fn new(stream: &Stream, tasks: &Tasks) -> Result<Self, Error> {
        let Tasks { rows, root_bits, entries } = tasks;
        let bits_of: Vec<u32> = (0..rows.splits).map(|keys| tasks.bits(keys)).collect();
        Ok(Self {
            rows: stream.from_slice(rows.words().as_flattened())?,
            bits_of: stream.from_slice(&bits_of)?,
            splits: rows.splits,
            root_bits: *root_bits,
            entries: *entries,
        })
    }

    /// Returns the number of keys of the largest bucket that can be searched.
    pub(super) fn largest(&self) -> u32 {
        self.splits - 1
    }

    /// Finds the codes of all buckets, as [`DeviceHashKind`](crate::gpu::DeviceHashKind) requires.
    pub(super) fn find(
        &self,
        stream: &Stream,
        sorted: Sorted,
        base: u64,
        mut keys_before: DeviceSliceMut<'_, u64>,
        reported: &mut SearchProgress<'_>,
    ) -> Result<Found, AttemptError> {
        let buckets = sorted.buckets;
        let mut first_bit = stream.alloc_uninit::<u64>(buckets + 1)?;
        let mut seen = stream.alloc_zeroed::<u64>(SEEN)?;
        // SAFETY: there are bounds and places for all buckets; memory is freed in the order of the stream.
        unsafe {
            consensus_sizes {
                bounds: sorted.bounds.global(),
                buckets,
                bits_of: self.bits_of.global(),
                largest: self.largest(),
                base,
                bits: first_bit.global_mut(),
                keys_before: keys_before.global_mut(),
                seen: seen.global_mut(),
            }
            .launch(stream, covering(stream.device(), buckets + 1))?;
            scan::inclusive_in_place_async::<Sum<u64>>(stream, first_bit.as_mut_slice())?;
        }
        let (mut said, mut bits) = ([0; SEEN], [0]);
        stream.download(&seen, &mut said)?;
        stream.download(first_bit.slice(buckets..), &mut bits)?;
        if said[TOO_LARGE] != 0 {
            return Err(AttemptError::Seed(sorted.explain(stream, !said[TOO_LARGE] as usize)?));
        }
        let (largest, bits) = (said[LARGEST] as u32, bits[0]);
        reported.mark("sizes")?;
        let mut words = stream.alloc_zeroed(bits.div_ceil(64).max(1) as usize)?;
        if let Some(bucket) = self.search(stream, &sorted, &first_bit, largest, &mut words, reported)? {
            return Err(AttemptError::Seed(sorted.explain(stream, bucket as usize)?));
        }
        reported.mark("search")?;
        Ok(Found { bounds: sorted.bounds, first_bit, words, largest })
    }

    /// Writes the codes of all buckets to `words`; returns the first bucket without a code. Waits.
    fn search(
        &self,
        stream: &Stream,
        sorted: &Sorted,
        first_bit: &DeviceVec<u64>,
        largest: u32,
        words: &mut DeviceVec<u64>,
        reported: &mut SearchProgress<'_>,
    ) -> Result<Option<u32>, AttemptError> {
        let buckets = sorted.buckets;
        let plan = SearchPlan {
            slot_words: slot_words(largest),
            splits: self.splits,
            root_bits: self.root_bits,
            entries: self.entries,
        };
        let (mut space, blocks) = slots(stream, plan.slot_words, buckets)?;
        // The next bucket, and the first one without a code.
        let (mut next, mut failure) = (stream.alloc_uninit::<u32>(1)?, stream.alloc_uninit::<u32>(1)?);
        stream.fill_bytes(&mut failure, 0xff)?;
        let step = if reported.is_asked() { buckets.div_ceil(STEPS).max((blocks * WARPS) as usize) } else { buckets };
        let mut first = 0;
        while first < buckets {
            let count = step.min(buckets - first);
            stream.fill_bytes(&mut next, 0)?;
            let config = LaunchConfig::new(blocks.min((count as u64).div_ceil(WARPS)) as u32, BLOCK);
            // SAFETY: there is a slot per warp, and a bound and a place per bucket; words are zero where no earlier
            // launch has written; memory is freed in the order of the stream.
            unsafe {
                consensus_search {
                    lows: sorted.lows.global(),
                    bounds: sorted.bounds.global(),
                    first_bit: first_bit.global(),
                    first,
                    count: count as u32,
                    rows: self.rows.global(),
                    plan,
                    space: space.global_mut(),
                    next: next.global_mut(),
                    failure: failure.global_mut(),
                    words: words.global_mut(),
                }
                .launch(stream, config)?;
            }
            let mut failed = [0];
            stream.download(&failure, &mut failed)?;
            if failed[0] != u32::MAX {
                return Ok(Some(failed[0]));
            }
            first += count;
            if reported.is_asked() {
                reported.done(first as f64 / buckets as f64)?;
            }
        }
        Ok(None)
    }
}

/// Allocates slots of this many words, and returns the number of blocks with slots: the blocks that the device runs at
/// a time, limited by the number of buckets and by memory.
fn slots(stream: &Stream, words: u64, buckets: usize) -> Result<(DeviceVec<u64>, u64), Error> {
    let block = WARPS * words;
    let resident = u64::from(stream.device().properties().multiprocessors * BLOCKS);
    let mut blocks = resident.min((buckets as u64).div_ceil(WARPS)).min(MOST_BYTES / 8 / block.max(1)).max(1);
    loop {
        match stream.alloc_uninit((blocks * block) as usize) {
            Ok(space) => return Ok((space, blocks)),
            Err(error) if blocks > 1 && error.is_out_of_memory() => blocks = blocks.div_ceil(4),
            Err(error) => return Err(error.into()),
        }
    }
}

impl EncodedBuckets for Found {
    fn largest(&self) -> u32 {
        self.largest
    }

    unsafe fn queue_bits(
        &self,
        stream: &Stream,
        mut bits_before: DeviceSliceMut<'_, u64>,
        least: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        let (buckets, before) = (self.first_bit.len() - 1, bits_before.global_mut());
        // SAFETY: `least` has words for all buckets; the rest is this function's contract.
        unsafe {
            consensus_bits {
                bounds: self.bounds.global(),
                first_bit: self.first_bit.global(),
                buckets,
                base: before.as_const(),
                bits_before: before.at(1),
                least: least.global_mut(),
            }
            .launch(stream, covering(stream.device(), buckets))?;
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
        let n = self.words.len();
        // SAFETY: `words` has a place for all bits of the codes; the rest is this function's contract.
        unsafe {
            consensus_words { from: self.words.global(), n, base: bits_before.global(), origin, words }
                .launch(stream, covering(stream.device(), n))?;
        }
        Ok(())
    }
}

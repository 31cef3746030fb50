//! From keys to a function on a device, stage by stage.
//!
//! Source: section 5.10. Departures: hashing, assignment to buckets, encoding and the lists of buckets are kernels too, so that
//! keys on the device never leave it, and words stay there.
//!
//! 1. Every key becomes its bucket and its low half ([`buckets`](super::buckets)); a radix sort brings these into the order of
//!    buckets.
//! 2. The numbers of all nodes are found.
//! 3. Numbers become bits ([`encode`](super::encode)), after the bits of each bucket were added up.
//! 4. The lists are made from both sums ([`lists`](super::lists)).
//!
//! Keys that do not fit the device's memory together are taken range of buckets after range of buckets. Keys of the host come once, if
//! all buckets and low halves fit; otherwise, as keys on the device, in a pass for each range. What stays of a range is its bits and
//! its two sums per bucket.

use std::ops::Range;

use warpset_gpu::{Device, DeviceVec, Stream};
use warpset_kernels::primitives::scan::{scan_sum_u32, scan_sum_u64};
use warpset_kernels::recsplit::buckets::{
    recsplit_bounds, recsplit_counts, recsplit_hash, recsplit_pick, recsplit_select,
};
use warpset_kernels::recsplit::lists::recsplit_lists;
use warpset_primitives::sort;
use warpset_simt::{GlobalMut, KernelInfo};

use super::RecSplit;
use super::buckets::Hashes;
use super::encode::{Found, Lanes};
use super::lists::{Last, Sums};
use super::rows::Rows;
use super::search::{self, DeviceTrees};
use super::source::Source;
use super::watch::Watch;
use crate::build::{Failure, Settings};
use crate::elias_fano::{self, Least};
use crate::format::{HEADER_WORDS, Header};
use crate::{Builder, Error, Stage};

/// Why an attempt ended without a function.
#[derive(Debug)]
pub(super) enum Stopped {
    /// Another seed may help.
    Seed(Failure),
    /// More and smaller ranges may help.
    Room,
    Error(Error),
}

impl<E> From<E> for Stopped
where
    Error: From<E>,
{
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl Stopped {
    /// Whether it was for want of device memory.
    fn is_for_room(&self) -> bool {
        match self {
            Self::Error(Error::Gpu(error)) => error.is_out_of_memory(),
            Self::Room => true,
            _ => false,
        }
    }
}

/// The most keys of a range: positions of keys have 32 bits.
const MOST_KEYS: u64 = 1 << 31;
/// The fewest keys of a range for which a build that found too little memory starts over with smaller ones.
const FEWEST_KEYS: u64 = 1 << 12;
/// Bytes that a key takes while its range is sorted: pairs of 12 bytes before, after and during; and while its tree is searched.
const KEY_BYTES: u64 = 44;
/// Bytes of a bucket and a low half, which may be kept of every key.
const PAIR_BYTES: u64 = 12;
/// Bytes that a bucket of a range takes: where its keys and its numbers begin.
const BUCKET_BYTES: u64 = 8;
/// Bytes that stay of every bucket: both sums.
const SUM_BYTES: u64 = 16;

/// The construction of functions on one device.
pub(super) struct Construction<'a, S> {
    pub(super) device: &'a Device,
    pub(super) settings: Settings,
    pub(super) builder: &'a Builder<S>,
    /// Stages are timed, if the bench asks for it.
    pub(super) watch: Option<&'a Watch>,
}

/// How the keys are taken.
#[derive(Clone, Copy)]
struct Ranges {
    /// In how many ranges of buckets.
    count: u64,
    /// Whether buckets and low halves of all keys are kept meanwhile.
    are_kept: bool,
}

/// What the ranges that were built have left.
struct Built {
    /// The bits of each range, whose first word has the last bits of the range before.
    pieces: Vec<(Range<u64>, DeviceVec<u64>)>,
    sums: Sums,
    least: DeviceVec<u64>,
    largest: u32,
}

impl<S> Construction<'_, S> {
    /// The function of `keys`, not empty, under the first seed under which there is one.
    pub(super) fn build<K: Source>(&self, keys: &K) -> Result<RecSplit, Error> {
        let n = keys.len() as u64;
        let stream = self.device.new_stream()?;
        for (attempt, seed) in self.builder.seeds() {
            let settings = Settings { seed, ..self.settings };
            let mut ranges = self.ranges::<K>(n)?;
            let failure = loop {
                let kernels = self.kernels(n, ranges);
                match self.device.with_kernels(&kernels, || self.attempt(&stream, settings, keys, ranges, attempt)) {
                    Ok(function) => return Ok(function),
                    Err(Stopped::Seed(failure)) => break failure,
                    Err(stopped) => {
                        // What was allocated is free again.
                        stream.synchronize()?;
                        if !stopped.is_for_room()
                            || n / ranges.count < FEWEST_KEYS
                            || ranges.count * 2 > settings.buckets(n)
                        {
                            match stopped {
                                Stopped::Error(error) => return Err(error),
                                _ => break Failure::Unlucky,
                            }
                        }
                        ranges = Ranges { count: ranges.count * 2, are_kept: false };
                    }
                }
            };
            if let Failure::Collision { bucket, low } = failure {
                keys.check_duplicates(&stream, seed, (bucket, low), settings.buckets(n))?;
            }
        }
        Err(Error::HashesCollide { seeds: crate::builder::SEEDS })
    }

    /// How the keys are taken.
    fn ranges<K: Source>(&self, n: u64) -> Result<Ranges, Error> {
        let buckets = self.settings.buckets(n);
        let needed = n.saturating_mul(KEY_BYTES).saturating_add(buckets.saturating_mul(BUCKET_BYTES));
        let free = || {
            let free = self.device.memory_info()?.free as u64 / 10 * 9;
            Ok::<_, Error>(free.saturating_sub(buckets.saturating_mul(SUM_BYTES)))
        };
        let mut left = free()?;
        if needed > left {
            // What earlier work has left in the device's pool counts as used.
            self.device.trim()?;
            left = free()?;
        }
        let count = |free: u64| {
            needed.div_ceil(free.max(1)).max(n.div_ceil(MOST_KEYS)).clamp(1, buckets.min(n.div_ceil(FEWEST_KEYS)))
        };
        let ranges = count(left);
        // What is kept makes ranges smaller: four times as many are worth it that the keys come over the bus only once.
        let beside = count(left.saturating_sub(n.saturating_mul(PAIR_BYTES)));
        let are_kept = K::TRAVEL && ranges > 1 && beside <= 4 * ranges && buckets <= 1 << 32;
        Ok(if are_kept { Ranges { count: beside, are_kept } } else { Ranges { count: ranges, are_kept } })
    }

    /// The kernels of a build, those that take longest to compile first.
    fn kernels(&self, n: u64, ranges: Ranges) -> Vec<&'static KernelInfo> {
        let trees = self.settings.trees(n);
        let lanes = Lanes::of(&trees, self.settings.bucket_size);
        let mut kernels = search::kernels(&trees);
        kernels.extend(sort::kernels_for_pairs::<u32, u64>(n.div_ceil(ranges.count) as usize));
        kernels.extend(lanes.kernels());
        let hash = if ranges.count == 1 || ranges.are_kept { recsplit_hash::INFO } else { recsplit_select::INFO };
        kernels.extend([recsplit_lists::INFO, scan_sum_u64::INFO, scan_sum_u32::INFO, hash]);
        kernels.extend(ranges.are_kept.then_some(recsplit_pick::INFO));
        kernels.extend([recsplit_counts::INFO, recsplit_bounds::INFO]);
        kernels
    }

    /// Ends a stage where the stream is now, if stages are timed.
    fn mark(&self, stream: &Stream, stage: &'static str) -> Result<(), Error> {
        self.watch.map_or(Ok(()), |watch| watch.mark(stream, stage))
    }

    fn attempt(
        &self,
        stream: &Stream,
        settings: Settings,
        keys: &impl Source,
        ranges: Ranges,
        attempt: u32,
    ) -> Result<RecSplit, Stopped> {
        let n = keys.len() as u64;
        let buckets = settings.buckets(n);
        let trees = DeviceTrees::new(stream, settings.trees(n))?;
        let lanes = Lanes::of(&trees.trees, settings.bucket_size);
        let rows = Rows::new(stream, &trees.trees)?;
        let mut least = stream.alloc_uninit(trees.trees.nodes().len())?;
        stream.fill_bytes(&mut least, 0xff)?;
        let mut built = Built { pieces: Vec::new(), sums: Sums::new(stream, buckets as usize)?, least, largest: 0 };
        let meter = self.builder.meter(Stage::Building, n, attempt);
        let hashed = |range: Range<u64>, room: u64| {
            let mut hashes = Hashes::new(stream, range, buckets, room as usize)?;
            keys.hash(stream, settings.seed, &mut hashes, &self.builder.meter(Stage::Hashing, n, attempt))?;
            Ok::<_, Error>(hashes)
        };
        let kept = if ranges.are_kept { Some(hashed(0..buckets, n)?) } else { None };
        let (mut before, mut bits) = (0, 0);
        for range in 0..ranges.count {
            let ends =
                [range, range + 1].map(|at| (u128::from(buckets) * u128::from(at) / u128::from(ranges.count)) as u64);
            let range = ends[0]..ends[1];
            // Ten standard deviations above the mean; ready-made hashes may be more uneven.
            let mean = (u128::from(n) * u128::from(ends[1] - ends[0])).div_ceil(u128::from(buckets)) as u64;
            let room = if ranges.count == 1 { n } else { n.min(mean + 10 * mean.isqrt() + 64) };
            self.mark(stream, "start")?;
            let hashes = match &kept {
                Some(kept) => kept.part(stream, range.clone(), room as usize)?,
                None => hashed(range.clone(), room)?,
            };
            self.mark(stream, "hashing")?;
            let mut sorted = hashes.sorted(stream)?.ok_or(Stopped::Room)?;
            self.mark(stream, "sorting")?;

            let places = range.start as usize + 1..range.end as usize + 1;
            let sizes = sorted.sizes(stream, &rows, before, built.sums.keys.slice_mut(places))?;
            built.largest = built.largest.max(sizes.largest);
            let mut numbers = stream.alloc_uninit(sizes.numbers)?;
            self.mark(stream, "sizes")?;
            let found =
                search::find(stream, &trees, &mut sorted.lows, &sorted.bounds, &sizes.first_number, &mut numbers)?;
            if let Err(unsolved) = found {
                return Err(Stopped::Seed(sorted.explain(stream, unsolved.bucket)?));
            }
            self.mark(stream, "search")?;
            let keys_here = sorted.lows.len() as u64;
            before += keys_here;

            let found = Found { lanes, rows: &rows, sorted: &sorted, sizes: &sizes, numbers: &numbers };
            let places = range.start as usize..range.end as usize + 1;
            // SAFETY: all of these are freed in the order of the stream.
            unsafe { found.queue_bits(stream, built.sums.bits.slice_mut(places.clone()), &mut built.least)? };
            let mut end = [0];
            stream.download(built.sums.bits.slice(range.end as usize..places.end), &mut end)?;
            self.mark(stream, "sums of bits")?;
            let bits_here = bits..end[0];
            bits = end[0];
            if ranges.count == 1 {
                let function = self.finish(stream, settings, (n, bits), &built, |words| {
                    // SAFETY: the words begin with the bits of the first bucket, and are zero.
                    unsafe { found.queue_words(stream, built.sums.bits.slice(places), 0, words) }
                })?;
                meter.add(n);
                return Ok(function);
            }
            let origin = bits_here.start / 64;
            let mut piece = stream.alloc_zeroed((bits.div_ceil(64) - origin) as usize)?;
            if bits_here.start % 64 != 0
                && let Some((_, last)) = built.pieces.last()
            {
                stream.copy(piece.slice_mut(..1), last.slice(last.len() - 1..))?;
            }
            // SAFETY: the piece has room for all bits from its origin on, of which the first are those before.
            unsafe {
                found.queue_words(stream, built.sums.bits.slice(places), origin * 64, piece.global_mut())?;
            }
            built.pieces.push((bits_here, piece));
            meter.add(keys_here);
        }
        self.finish(stream, settings, (n, bits), &built, |_| Ok(()))
    }

    /// The function of `keys` keys and `bits` bits, whose trees `write` writes, or the pieces have.
    fn finish(
        &self,
        stream: &Stream,
        settings: Settings,
        (keys, bits): (u64, u64),
        built: &Built,
        write: impl FnOnce(GlobalMut<u64>) -> Result<(), Error>,
    ) -> Result<RecSplit, Stopped> {
        let mut least = vec![0; built.least.len()];
        stream.download(&built.least, &mut least)?;
        let last = Last { entries: built.sums.keys.len(), sums: (keys, bits) };
        let layout = elias_fano::layout(&last, &Least::of(least), elias_fano::log_stride(settings.bucket_size));
        let header = Header {
            keys,
            seed: settings.seed,
            shape: settings.shape,
            remix: settings.remix,
            largest_bucket: built.largest,
            bucket_size: settings.bucket_size,
            tree_bits: bits,
            layout,
        };
        let mut words = self.device.alloc_uninit::<u64>(header.words() as usize)?;
        stream.fill_bytes(&mut words, 0)?;
        self.mark(stream, "layout")?;
        let trees = HEADER_WORDS as usize;
        let lists = trees + bits.div_ceil(64) as usize;
        for (bits, piece) in &built.pieces {
            let first = trees + (bits.start / 64) as usize;
            stream.copy(words.slice_mut(first..first + piece.len()), piece.as_slice())?;
        }
        // SAFETY: the sums are those of the layout, for which there are words; all of it is waited for below, on an error too.
        let queued = unsafe { built.sums.queue_lists(stream, &layout, words.global_mut().at(lists)) };
        self.mark(stream, "lists")?;
        let written = write(words.global_mut().at(trees));
        self.mark(stream, "encoding")?;
        let mut overflow = [0];
        let queued = queued.and_then(|flag| Ok(stream.download(&flag, &mut overflow)?));
        stream.synchronize()?;
        queued.and(written)?;
        if overflow[0] != 0 {
            return Err(Stopped::Seed(Failure::Unlucky));
        }
        stream.upload(words.slice_mut(..trees), &header.to_words())?;
        Ok(RecSplit::from_parts(self.device, words, header)?)
    }
}

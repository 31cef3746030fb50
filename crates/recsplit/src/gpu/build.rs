//! From keys to a function on one device or several, stage by stage.
//!
//! Source: section 5.10. Departures: hashing, assignment to buckets, encoding and the lists of buckets are kernels too, so that
//! keys on the device never leave it, and words stay there; several devices share a build.
//!
//! 1. Every key becomes its bucket and its low half ([`buckets`](super::buckets)); a radix sort brings these into the order of
//!    buckets.
//! 2. The numbers of all nodes are found.
//! 3. Numbers become bits ([`encode`](super::encode)), after the bits of each bucket were added up.
//! 4. The lists are made from both sums ([`lists`](super::lists)).
//!
//! Several devices take a share of the buckets each, as many as the others, and do 1 to 3 for it ([`share`](super::share)); the first one joins
//! what they have built, and does 4 ([`join`](super::join)). Each device hashes as many of the host's keys as the others, or the device where
//! the keys are hashes all, and buckets and low halves are kept, from which every device takes those of its share ([`supply`](super::supply)).
//!
//! Keys that do not fit the devices' memory together are taken range of buckets after range of buckets. Buckets and low halves are kept
//! meanwhile where they fit, so that the host's keys come once; otherwise keys are hashed for each range. What stays of a range is its
//! bits and its two sums per bucket.

use std::ops::Range;

use warpset_gpu::{Device, Devices, Stream};

use super::share::Attempt;
use super::source::Source;
use super::watch::Watch;
use super::{RecSplit, Strategy};
use crate::build::{Failure, Settings};
use crate::{Builder, Error};

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

    /// Which of the reasons of several devices counts: the least.
    pub(super) fn rank(&self) -> u32 {
        match self {
            Self::Error(_) if !self.is_for_room() => 0,
            // Equal keys have an error of their own.
            Self::Seed(Failure::Collision { .. }) => 1,
            Self::Seed(_) => 2,
            _ => 3,
        }
    }
}

/// The most keys that a range is meant to have: positions of keys have 32 bits.
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

/// The construction of functions on devices.
pub(super) struct Construction<'a, S> {
    pub(super) devices: &'a Devices,
    pub(super) settings: Settings,
    pub(super) builder: &'a Builder<S>,
    pub(super) strategy: Strategy,
    /// Stages on the first device are timed, if the bench asks for it.
    pub(super) watch: Option<&'a Watch>,
}

/// How the keys are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// In how many ranges each device takes its share of the buckets.
    pub(super) ranges: u64,
    /// Whether buckets and low halves of all keys are kept meanwhile.
    pub(super) are_kept: bool,
}

/// Part `place` of `parts` parts of `0..all`, which differ by 1 at most.
pub(super) fn part_of(all: u64, place: u64, parts: u64) -> Range<u64> {
    let end = |place: u64| (u128::from(all) * u128::from(place) / u128::from(parts)) as u64;
    end(place)..end(place + 1)
}

impl<S> Construction<'_, S> {
    /// The function of `keys`, not empty, under the first seed under which there is one; on the first device.
    pub(super) fn build(&self, keys: &impl Source) -> Result<RecSplit, Error> {
        let n = keys.len() as u64;
        let buckets = self.settings.buckets(n);
        let devices = self.devices.at_most(buckets.try_into().unwrap_or(usize::MAX));
        let streams: Vec<Stream> = devices.all().iter().map(Device::new_stream).collect::<Result<_, _>>()?;
        let reporter = self.builder.reporter();
        for (number, seed) in self.builder.seeds() {
            let settings = Settings { seed, ..self.settings };
            let mut plan = self.plan(keys, &devices)?;
            let failure = loop {
                let (on, heard_by) = ((&devices, &streams[..]), (&reporter, number));
                let mut attempt = Attempt::new(settings, self.strategy, keys, on, plan, heard_by, self.watch);
                match attempt.run() {
                    Ok(function) => return Ok(function),
                    Err(Stopped::Seed(failure)) => break failure,
                    Err(stopped) => {
                        drop(attempt);
                        // What was allocated is free again.
                        devices.all().iter().try_for_each(Device::synchronize)?;
                        let of_share = devices.all().len() as u64 * plan.ranges;
                        if !stopped.is_for_room() || n / of_share < FEWEST_KEYS || of_share * 2 > buckets {
                            match stopped {
                                Stopped::Error(error) => return Err(error),
                                _ => break Failure::Unlucky,
                            }
                        }
                        plan = Plan { ranges: plan.ranges * 2, are_kept: false };
                    }
                }
            };
            match failure {
                Failure::Collision { bucket, low } => keys.check_duplicates(seed, (bucket, low), buckets)?,
                Failure::Interrupted(at) => return Err(at.into()),
                Failure::Unlucky => {}
            }
        }
        Err(Error::HashesCollide { seeds: crate::builder::SEEDS })
    }

    /// How the keys are taken.
    pub(super) fn plan(&self, keys: &impl Source, devices: &Devices) -> Result<Plan, Error> {
        let n = keys.len() as u64;
        let all_buckets = self.settings.buckets(n);
        let several = devices.all().len() as u64;
        let (share, buckets) = (n.div_ceil(several), all_buckets.div_ceil(several));
        let needed = share.saturating_mul(KEY_BYTES).saturating_add(buckets.saturating_mul(BUCKET_BYTES));
        let mut plan = Plan { ranges: 1, are_kept: true };
        let mut beside = 1;
        for device in devices.all() {
            let is_joining = several > 1 && device == devices.first();
            let sums = if is_joining { buckets + all_buckets } else { buckets }.saturating_mul(SUM_BYTES);
            let free = || {
                let free = device.memory_info()?.free as u64 / 10 * 9;
                Ok::<_, Error>(free.saturating_sub(sums))
            };
            let mut left = free()?;
            if needed > left {
                // What earlier work has left in the device's pool counts as used.
                device.trim()?;
                left = free()?;
            }
            let count = |free: u64| {
                needed
                    .div_ceil(free.max(1))
                    .max(share.div_ceil(MOST_KEYS))
                    .clamp(1, buckets.min(share.div_ceil(FEWEST_KEYS)))
            };
            // Keys whose buckets and low halves would be kept there, and copied for other devices.
            let kept = match keys.home() {
                None => share,
                Some(home) if home == device => n,
                Some(_) => 0,
            };
            let copies = if several > 1 { 2 } else { 1 };
            plan.ranges = plan.ranges.max(count(left));
            beside = beside.max(count(left.saturating_sub(kept.saturating_mul(PAIR_BYTES * copies))));
        }
        // What is kept makes ranges smaller: four times as many are worth it that the host's keys come over the bus only once, and that
        // devices do not hash the same keys again.
        let pays = several > 1 || keys.home().is_none() && plan.ranges > 1;
        plan.are_kept = pays && beside <= 4 * plan.ranges && all_buckets <= 1 << 32;
        if plan.are_kept {
            plan.ranges = beside;
        }
        Ok(plan)
    }
}

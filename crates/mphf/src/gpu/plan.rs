//! How the keys of a build are taken, and why an attempt may end without a function.

use std::ops::Range;

use warpset_gpu::Devices;

use super::source::Source;
use crate::Error;
use crate::build::Failure;

/// Why an attempt ended without a function.
#[derive(Debug)]
pub enum AttemptError {
    /// Another seed may help.
    Seed(Failure),
    /// More and smaller ranges may help.
    Room,
    /// No other attempt helps.
    Error(Error),
}

impl<E> From<E> for AttemptError
where
    Error: From<E>,
{
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl AttemptError {
    /// Whether it was for want of device memory.
    pub(super) fn is_for_room(&self) -> bool {
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
pub(super) const FEWEST_KEYS: u64 = 1 << 12;
/// Bytes that a key takes while its range is sorted: pairs of 12 bytes before, after and during; and while its tree is
/// searched.
const KEY_BYTES: u64 = 44;
/// Bytes of a bucket and a low half, which may be kept of every key.
const PAIR_BYTES: u64 = 12;
/// Bytes that a bucket of a range takes: where its keys and its numbers begin.
const BUCKET_BYTES: u64 = 8;
/// Bytes that stay of every bucket: both sums.
const SUM_BYTES: u64 = 16;

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

/// How the keys of a function of this many buckets are taken.
pub(super) fn plan(keys: &impl Source, all_buckets: u64, devices: &Devices) -> Result<Plan, Error> {
    let n = keys.len() as u64;
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
    // What is kept makes ranges smaller: four times as many are worth it that the host's keys come over the bus only
    // once, and that devices do not hash the same keys again.
    let pays = several > 1 || keys.home().is_none() && plan.ranges > 1;
    plan.are_kept = pays && beside <= 4 * plan.ranges && all_buckets <= 1 << 32;
    if plan.are_kept {
        plan.ranges = beside;
    }
    Ok(plan)
}

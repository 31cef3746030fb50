//! Division of a build's keys, and the failures of an attempt.

use std::ops::Range;

use warpset_gpu::Devices;

use super::source::Source;
use crate::Error;
use crate::build::Failure;

/// Reason why an attempt ended without a function.
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
    /// Whether device memory was too small.
    pub(super) fn is_for_room(&self) -> bool {
        match self {
            Self::Error(Error::Gpu(error)) => error.is_out_of_memory(),
            Self::Room => true,
            _ => false,
        }
    }

    /// Returns the rank among the failures of several devices: the least one counts.
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

/// The most keys of a range: positions of keys have 32 bits.
const MOST_KEYS: u64 = 1 << 31;
/// The fewest keys of a range with which a build that ran out of memory is repeated in smaller ranges.
pub(super) const FEWEST_KEYS: u64 = 1 << 12;
/// Bytes per key while its range is sorted (pairs of 12 bytes before, after and during) and its tree is searched.
const KEY_BYTES: u64 = 44;
/// Bytes of a bucket and a low half, which may be kept of every key.
const PAIR_BYTES: u64 = 12;
/// Bytes per bucket of a range: the positions of its keys and its numbers.
const BUCKET_BYTES: u64 = 8;
/// Bytes that remain per bucket: both sums.
const SUM_BYTES: u64 = 16;

/// Division of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Number of ranges of each device's share of the buckets.
    pub(super) ranges: u64,
    /// Whether buckets and low halves of all keys are kept meanwhile.
    pub(super) are_kept: bool,
}

/// Returns part `place` of `parts` parts of `0..all`; their sizes differ by 1 at most.
pub(super) fn part_of(all: u64, place: u64, parts: u64) -> Range<u64> {
    let end = |place: u64| (u128::from(all) * u128::from(place) / u128::from(parts)) as u64;
    end(place)..end(place + 1)
}

/// Plans the division of the keys of a function of this many buckets.
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
            // Memory that earlier work left in the device's pool counts as used.
            device.trim()?;
            left = free()?;
        }
        let count = |free: u64| {
            needed
                .div_ceil(free.max(1))
                .max(share.div_ceil(MOST_KEYS))
                .clamp(1, buckets.min(share.div_ceil(FEWEST_KEYS)))
        };
        // Keys that would be kept there with buckets and low halves, and copied for other devices.
        let kept = match keys.home() {
            None => share,
            Some(home) if home == device => n,
            Some(_) => 0,
        };
        let copies = if several > 1 { 2 } else { 1 };
        plan.ranges = plan.ranges.max(count(left));
        beside = beside.max(count(left.saturating_sub(kept.saturating_mul(PAIR_BYTES * copies))));
    }
    // Kept keys make ranges smaller. Four times as many ranges are acceptable if the host's keys then cross the bus
    // only once, or if devices do not hash the same keys again.
    let pays = several > 1 || keys.home().is_none() && plan.ranges > 1;
    plan.are_kept = pays && beside <= 4 * plan.ranges && all_buckets <= 1 << 32;
    if plan.are_kept {
        plan.ranges = beside;
    }
    Ok(plan)
}

//! Launches the kernels.

use warpset_bloom::gpu::{BlockedBloom, SplitBlockBloom};
use warpset_fuse::gpu::{DeviceFunctionValue, StaticFunction};
use warpset_gpu::{Device, LaunchConfig};
use warpset_lsm::gpu::Lsm;
use warpset_primitives::{Result, reduce};
use warpset_quotient::gpu::{Maplet, RankSelectQuotientFilter};

use crate::{Extremes, calibrate, pair, sum_known, weigh};

/// Finds the lowest and the highest reading; `None` if there is none.
///
/// # Errors
/// The device's error: no memory, or no such architecture.
pub fn extremes(device: &Device, readings: &[u32]) -> Result<Option<(u32, u32)>> {
    if readings.is_empty() {
        return Ok(None);
    }
    let n = readings.len();
    let stream = device.new_stream()?;
    let readings = device.from_slice(readings)?;
    let mut pairs = device.alloc_uninit::<u64>(n)?;
    let mut result = device.alloc_uninit::<u64>(1)?;
    // SAFETY: both vectors hold `n` items and stay allocated until `to_vec` has waited for the stream, which alone uses
    // them. The shape is the kernel's own.
    unsafe {
        pair { readings: readings.global(), pairs: pairs.global_mut(), n }
            .launch(&stream, LaunchConfig::covering(n, 256))?;
        reduce::reduce_async::<Extremes>(&stream, pairs.as_slice(), result.as_mut_slice())?;
    }
    let pair = result.to_vec()?[0];
    Ok(Some((pair as u32, (pair >> 32) as u32)))
}

/// Combines readings with the extremes of their sensors, pairs of the lowest and the highest one: by one reduction of
/// the stored and the new ones, with the operator's own kernel.
///
/// # Errors
/// [`warpset_lsm::Error::LengthMismatch`] unless there is one sensor per reading; the device's errors.
pub fn combine_extremes(
    of: &mut Lsm<u64, u64>,
    sensors: &[u64],
    readings: &[u32],
) -> std::result::Result<(), warpset_lsm::Error> {
    let pairs: Vec<u64> = readings.iter().map(|&reading| u64::from(reading) << 32 | u64::from(reading)).collect();
    of.upsert_bulk::<Extremes>(sensors, &pairs)
}

/// Sums the readings whose sensors are in a split-block filter, and those whose sensors are in a blocked one.
///
/// # Errors
/// The device's error: no memory, or memory on another device.
///
/// # Panics
/// Unless there is a sensor for each reading.
pub fn sums_of_known(
    split: &SplitBlockBloom,
    blocked: &BlockedBloom,
    sensors: &[u64],
    readings: &[u32],
) -> Result<(u64, u64)> {
    assert_eq!(sensors.len(), readings.len(), "a sensor for each reading");
    let (device, n) = (split.device(), readings.len());
    device.expect_same(blocked.device(), "a sum of known readings")?;
    if n == 0 {
        return Ok((0, 0));
    }
    let stream = device.new_stream()?;
    let (sensors, readings) = (device.from_slice(sensors)?, device.from_slice(readings)?);
    let mut sums = device.alloc_zeroed::<u64>(2)?;
    // SAFETY: all vectors have the lengths of the kernel's contract, and stay allocated, like the filters, until
    // `to_vec` has waited.
    unsafe {
        sum_known {
            split_words: split.words().global(),
            split: split.query(),
            blocked_words: blocked.words().global(),
            blocked: blocked.query(),
            sensors: sensors.global(),
            readings: readings.global(),
            sums: sums.global_mut(),
            n,
        }
        .launch(&stream, LaunchConfig::covering(n, 256))?;
    }
    let sums = sums.to_vec()?;
    Ok((sums[0], sums[1]))
}

/// Multiplies each reading by the copies of its sensor in a filter.
///
/// # Errors
/// The device's error: no memory.
///
/// # Panics
/// Unless there is a sensor for each reading.
pub fn weighed(filter: &RankSelectQuotientFilter, sensors: &[u64], readings: &[u32]) -> Result<Vec<u64>> {
    assert_eq!(sensors.len(), readings.len(), "a sensor for each reading");
    let (device, n) = (filter.device(), readings.len());
    if n == 0 {
        return Ok(Vec::new());
    }
    let stream = device.new_stream()?;
    let (sensors, readings) = (device.from_slice(sensors)?, device.from_slice(readings)?);
    let mut weighed = device.alloc_uninit::<u64>(n)?;
    let (words, filter) = (filter.words().global(), filter.query());
    // SAFETY: as above.
    unsafe {
        let (sensors, readings) = (sensors.global(), readings.global());
        weigh { words, filter, sensors, readings, weighed: weighed.global_mut(), n }
            .launch(&stream, LaunchConfig::covering(n, 256))?;
    }
    Ok(weighed.to_vec()?)
}

/// Multiplies each reading by the gain of its sensor and adds the offset of its sensor; gain 1 and offset 0 where there
/// is none.
///
/// # Errors
/// The device's error: no memory, or memory on another device.
///
/// # Panics
/// Unless there is a sensor for each reading.
pub fn calibrated<V: DeviceFunctionValue>(
    gains: &StaticFunction<V>,
    offsets: &Maplet,
    sensors: &[u64],
    readings: &[u32],
) -> Result<Vec<u64>> {
    assert_eq!(sensors.len(), readings.len(), "a sensor for each reading");
    let (device, n) = (gains.device(), readings.len());
    device.expect_same(offsets.device(), "a calibration of readings")?;
    if n == 0 {
        return Ok(Vec::new());
    }
    let stream = device.new_stream()?;
    let (sensors, readings) = (device.from_slice(sensors)?, device.from_slice(readings)?);
    let mut calibrated = device.alloc_uninit::<u64>(n)?;
    // SAFETY: as above.
    unsafe {
        calibrate {
            gain_words: gains.words().global(),
            gains: gains.query(),
            offset_words: offsets.words().global(),
            offsets: offsets.query(),
            sensors: sensors.global(),
            readings: readings.global(),
            calibrated: calibrated.global_mut(),
            n,
        }
        .launch(&stream, LaunchConfig::covering(n, 256))?;
    }
    Ok(calibrated.to_vec()?)
}

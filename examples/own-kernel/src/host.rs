//! Launches the kernels.

use warpset_gpu::{Device, LaunchConfig};
use warpset_primitives::{Result, reduce};

use crate::{Extremes, pair};

/// The lowest and the highest reading; `None` if there is none.
///
/// # Errors
/// What the device says: no memory, or no such architecture.
pub fn extremes(device: &Device, readings: &[u32]) -> Result<Option<(u32, u32)>> {
    if readings.is_empty() {
        return Ok(None);
    }
    let n = readings.len();
    let stream = device.new_stream()?;
    let readings = device.from_slice(readings)?;
    let mut pairs = device.alloc_uninit::<u64>(n)?;
    let mut result = device.alloc_uninit::<u64>(1)?;
    // SAFETY: both vectors hold `n` items and live until `to_vec` has waited for the stream, which is the only one to use
    // them. The shape is what the kernel asks for.
    unsafe {
        pair { readings: readings.global(), pairs: pairs.global_mut(), n }
            .launch(&stream, LaunchConfig::covering(n, 256))?;
        reduce::reduce_async::<Extremes>(&stream, pairs.as_slice(), result.as_mut_slice())?;
    }
    let pair = result.to_vec()?[0];
    Ok(Some((pair as u32, (pair >> 32) as u32)))
}

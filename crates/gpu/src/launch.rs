//! Launch shapes, checked before anything is queued.

use warpset_simt::{KernelInfo, LaunchConfig};

use crate::error::{GpuError, Result};
use crate::properties::{DeviceProperties, KernelAttributes};

/// Whether the device can run this shape of this kernel; the error names the limit.
pub(crate) fn check(
    info: &'static KernelInfo,
    config: LaunchConfig,
    device: &DeviceProperties,
    attributes: Option<KernelAttributes>,
) -> Result<()> {
    let LaunchConfig { grid, block, shared_bytes, cooperative: _ } = config;
    let invalid = |reason: String| Err(GpuError::InvalidLaunch { kernel: info.name, reason });
    for (what, extent, limits) in [("grid", grid, device.max_grid), ("block", block, device.max_block)] {
        for (axis, size, limit) in [("x", extent.x, limits[0]), ("y", extent.y, limits[1]), ("z", extent.z, limits[2])]
        {
            if size == 0 {
                return invalid(format!("the {what} is empty along {axis}"));
            }
            if size > limit {
                return invalid(format!("the {what} has {size} along {axis}, and the device allows {limit}"));
            }
        }
    }
    let threads = block.count();
    if threads > u64::from(device.max_threads_per_block) {
        let limit = device.max_threads_per_block;
        return invalid(format!("{threads} threads in a block, and the device allows {limit}"));
    }
    if let Some(bounds) = info.launch_bounds.filter(|bounds| threads > u64::from(bounds.max_threads)) {
        return invalid(format!("{threads} threads in a block, and its launch bounds say {}", bounds.max_threads));
    }
    if let Some(limit) = attributes.map(|a| a.max_threads_per_block).filter(|&limit| threads > u64::from(limit)) {
        return invalid(format!("{threads} threads in a block, and its registers allow {limit}"));
    }
    let fixed = attributes.map_or(0, |a| a.static_shared_bytes);
    let limit = device.max_shared_bytes_per_block.saturating_sub(fixed);
    if shared_bytes > limit {
        return invalid(format!("{shared_bytes} bytes of dynamic shared memory, and {limit} are left on the device"));
    }
    Ok(())
}

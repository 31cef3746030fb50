//! Selection: the items whose bit is set in a bitmap, in order.

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::select::{self as kernels, BLOCK, SHARED_BYTES, TILE};
use warpset_simt::{Global, GlobalMut};

use crate::error::check_len;
use crate::scratch::LookBack;
use crate::{Result, check};

/// What can be selected: items of 4 or 8 bytes. Sealed.
pub trait Item: Pod + Send + Sync + sealed::Sealed {}
impl<T: Pod + Send + Sync + sealed::Sealed> Item for T {}

mod sealed {
    pub trait Sealed {
        const WIDE: bool;
    }
    impl Sealed for u32 {
        const WIDE: bool = false;
    }
    impl Sealed for i32 {
        const WIDE: bool = false;
    }
    impl Sealed for u64 {
        const WIDE: bool = true;
    }
    impl Sealed for i64 {
        const WIDE: bool = true;
    }
}

/// Queues a selection: the items whose bit is set in `bitmap` (bit `i % 64` of word `i / 64`) go to the start of `out`,
/// in order, and their number to `selected`.
///
/// `out` has room for all items; what lies behind the selected ones stays as it was.
///
/// # Safety
/// Until `stream` has passed this work, all four stay allocated, nobody else writes `items` or `bitmap` or touches `out`
/// or `selected`; they do not overlap.
pub unsafe fn select<T: Item>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    bitmap: DeviceSlice<'_, u64>,
    mut out: DeviceSliceMut<'_, T>,
    selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    let n = items.len();
    check::apart("items and selected items", items, &out)?;
    let Some(mut run) = Run::new(stream, n, bitmap, out.len(), selected)? else { return Ok(()) };
    let (ticket, look_back) = (run.look_back.ticket(), run.look_back.words());
    let (config, bitmap, selected) = (run.config, run.bitmap, run.selected);
    // SAFETY: sizes have been checked; scratch is this call's own, and freed in the order of the stream; the caller
    // answers for the rest.
    unsafe {
        if T::WIDE {
            let (items, out) = (items.global().cast(), out.global_mut().cast());
            kernels::select_u64::launch(stream, config, items, n, bitmap, look_back, ticket, out, selected)?;
        } else {
            let (items, out) = (items.global().cast(), out.global_mut().cast());
            kernels::select_u32::launch(stream, config, items, n, bitmap, look_back, ticket, out, selected)?;
        }
    }
    Ok(())
}

/// Queues the selection of places: the numbers, below `n`, of the bits that are set.
///
/// # Safety
/// As for [`select`].
pub unsafe fn select_indices(
    stream: &Stream,
    n: usize,
    bitmap: DeviceSlice<'_, u64>,
    mut out: DeviceSliceMut<'_, u64>,
    selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    let Some(mut run) = Run::new(stream, n, bitmap, out.len(), selected)? else { return Ok(()) };
    let (ticket, look_back) = (run.look_back.ticket(), run.look_back.words());
    let (config, bitmap, selected, out) = (run.config, run.bitmap, run.selected, out.global_mut());
    // SAFETY: as in `select`.
    unsafe { kernels::select_indices::launch(stream, config, n, bitmap, look_back, ticket, out, selected)? };
    Ok(())
}

/// What every kernel of selection takes.
struct Run {
    config: LaunchConfig,
    bitmap: Global<u32>,
    look_back: LookBack,
    selected: GlobalMut<u64>,
}

impl Run {
    /// Checks that there is room. If there is nothing to select, says so in `selected`.
    fn new(
        stream: &Stream,
        n: usize,
        bitmap: DeviceSlice<'_, u64>,
        room: usize,
        mut selected: DeviceSliceMut<'_, u64>,
    ) -> Result<Option<Run>> {
        check_len("the bitmap's words", n.div_ceil(64), bitmap.len())?;
        check_len("selected items", n, room)?;
        check_len("the number of selected items", 1, selected.len())?;
        if n == 0 {
            stream.fill_bytes(selected.slice_mut(..1), 0)?;
            return Ok(None);
        }
        let tiles = check::tiles(n, TILE)?;
        let look_back = LookBack::new(stream, tiles as usize)?;
        let config = LaunchConfig::new(tiles, BLOCK).shared(SHARED_BYTES);
        Ok(Some(Run { config, bitmap: bitmap.global().cast(), look_back, selected: selected.global_mut() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use warpset_core::hash::mix;
    use warpset_gpu::testing::devices;

    fn check<T: Item + PartialEq + std::fmt::Debug>(n: usize, one_in: u64, item: impl Fn(u64) -> T) {
        for device in devices(n as u64) {
            let stream = device.new_stream().unwrap();
            let items: Vec<T> = (0..n as u64).map(&item).collect();
            let keep = |i: usize| mix(i as u64, 3).is_multiple_of(one_in);
            let mut words = vec![0u64; n.div_ceil(64)];
            (0..n).filter(|&i| keep(i)).for_each(|i| words[i / 64] |= 1 << (i % 64));
            if !n.is_multiple_of(64) {
                words[n / 64] |= !0 << (n % 64); // bits past the end do not count
            }
            let (on_device, bitmap) = (device.from_slice(&items).unwrap(), device.from_slice(&words).unwrap());
            let mut out = device.alloc_uninit(n).unwrap();
            let mut selected = device.alloc_uninit(1).unwrap();
            // SAFETY: all live until the stream has been waited for.
            let queued = unsafe {
                select(&stream, on_device.as_slice(), bitmap.as_slice(), out.as_mut_slice(), selected.as_mut_slice())
            };
            queued.unwrap();
            let expected: Vec<T> = (0..n).filter(|&i| keep(i)).map(|i| items[i]).collect();
            assert_eq!(selected.to_vec().unwrap(), [expected.len() as u64]);
            let mut indices = device.alloc_uninit(n).unwrap();
            // SAFETY: all live until the stream has been waited for.
            let queued = unsafe {
                select_indices(&stream, n, bitmap.as_slice(), indices.as_mut_slice(), selected.as_mut_slice())
            };
            queued.unwrap();
            let places: Vec<u64> = (0..n).filter(|&i| keep(i)).map(|i| i as u64).collect();
            assert_eq!(selected.to_vec().unwrap(), [expected.len() as u64]);
            assert_eq!(indices.slice(..places.len()).to_vec().unwrap(), places);
            assert_eq!(out.slice(..expected.len()).to_vec().unwrap(), expected);
        }
    }

    #[test]
    fn keeps_order_and_counts() {
        for n in [0, 1, 31, 64, 65, TILE - 1, TILE, 3 * TILE + 5] {
            check(n, 3, |i| i);
            check(n, 1, |i| i as u32);
        }
        check(40 * TILE + 1, 50, |i| i as u32);
        check(TILE + 1, u64::MAX, |i| i);
    }

    #[test]
    fn short_outputs_are_errors() {
        for device in devices(0) {
            let stream = device.new_stream().unwrap();
            let items = device.from_slice(&[1u32; 65]).unwrap();
            let bitmap = device.from_slice(&[0u64]).unwrap();
            let mut out = device.alloc_uninit(65).unwrap();
            let mut selected = device.alloc_uninit(1).unwrap();
            // SAFETY: nothing gets queued.
            let result = unsafe {
                select(&stream, items.as_slice(), bitmap.as_slice(), out.as_mut_slice(), selected.as_mut_slice())
            };
            assert!(matches!(result, Err(Error::LengthMismatch { needed: 2, found: 1, .. })));
        }
    }
}

//! Selection: the items whose bit is set in a bitmap, in order.

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::select::{self as kernels, BLOCK, SHARED_BYTES, TILE};

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
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    let n = items.len();
    check_len("the bitmap's words", n.div_ceil(64), bitmap.len())?;
    check_len("selected items", n, out.len())?;
    check_len("the number of selected items", 1, selected.len())?;
    check::apart("items and selected items", items, &out)?;
    if n == 0 {
        stream.fill_bytes(selected.slice_mut(..1), 0)?;
        return Ok(());
    }
    let tiles = check::tiles(n, TILE)?;
    let mut look_back = LookBack::new(stream, tiles as usize)?;
    let ticket = look_back.ticket();
    let config = LaunchConfig::new(tiles, BLOCK).shared(SHARED_BYTES);
    let (bitmap, look_back, selected) = (bitmap.global().cast(), look_back.words(), selected.global_mut());
    // SAFETY: sizes were checked above; scratch is this call's own, and freed in the order of the stream; the caller
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

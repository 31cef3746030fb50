//! Search: the place of each needle among sorted keys.
//!
//! A needle's *lower bound* is the number of keys below it, its *upper bound* the number of keys not above it. Keys are
//! compared by the bits of a [`KeyMask`], and sorted by them; for unsorted keys the result is some place.
//!
//! [`lower_bound_async`] and [`upper_bound_async`] take needles in any order. [`lower_bound_sorted_async`] and
//! [`upper_bound_sorted_async`] take needles that are sorted too, and merge them with the keys where that is faster:
//! for at most [`MERGED`] keys per needle.
//!
//! Scratch: none, or for a merge 8 bytes for each tile of some thousands of keys and needles, allocated and freed in
//! stream order.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::primitives::merge::search::{
    BLOCK, NEEDLES, lower_bound, lower_bound_sorted, upper_bound, upper_bound_sorted,
};
use warpset_kernels::primitives::merge::{SPLIT_BLOCK, merge_splits};

use crate::check::{apart, on_device_of, same_len, tiles};
use crate::sort::SortKey;
use crate::{KeyMask, Result};

/// Largest number of keys per sorted needle for a merge; with more keys each needle is searched separately.
pub const MERGED: usize = 16;

macro_rules! functions {
    ($($name:ident, $sorted:ident, $upper:literal, $what:literal;)*) => {$(
        #[doc = concat!("Queues a search: `out` gets ", $what, ".")]
        ///
        /// # Errors
        /// Before anything is queued: [`LengthMismatch`](crate::Error::LengthMismatch) unless `out` has a place for
        /// each needle, [`Overlap`](crate::Error::Overlap) if it shares memory with keys or needles.
        ///
        /// # Safety
        /// Until `stream` has passed this work:
        /// - `keys`, `needles` and `out` stay allocated;
        /// - no other work writes `keys` or `needles` or accesses `out`.
        pub unsafe fn $name<'a, K: SortKey>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            needles: DeviceSlice<'_, K>,
            mask: KeyMask<K>,
            out: impl Into<DeviceSliceMut<'a, u64>>,
        ) -> Result<()> {
            // SAFETY: the contract of this function.
            unsafe { search(stream, keys, needles, mask, out.into(), $upper, false) }
        }

        #[doc = concat!("[`", stringify!($name), "`] for needles that are sorted as the keys are.")]
        ///
        /// # Errors
        #[doc = concat!("The errors of [`", stringify!($name), "`], and [`TooLong`](crate::Error::TooLong).")]
        ///
        /// # Safety
        #[doc = concat!("As for [`", stringify!($name), "`].")]
        pub unsafe fn $sorted<'a, K: SortKey>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            needles: DeviceSlice<'_, K>,
            mask: KeyMask<K>,
            out: impl Into<DeviceSliceMut<'a, u64>>,
        ) -> Result<()> {
            let merged = keys.len() / MERGED <= needles.len();
            // SAFETY: the contract of this function.
            unsafe { search(stream, keys, needles, mask, out.into(), $upper, merged) }
        }
    )*};
}
functions! {
    lower_bound_async, lower_bound_sorted_async, false, "for each needle the number of keys below it";
    upper_bound_async, upper_bound_sorted_async, true, "for each needle the number of keys not above it";
}

/// Queues a search.
///
/// # Safety
/// The contract of [`lower_bound_async`]; needles are sorted if they are merged.
unsafe fn search<K: SortKey>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    needles: DeviceSlice<'_, K>,
    mask: KeyMask<K>,
    mut out: DeviceSliceMut<'_, u64>,
    upper: bool,
    merged: bool,
) -> Result<()> {
    same_len("places of needles", needles.len(), out.len())?;
    on_device_of(stream, "a search", &out)?;
    apart("keys and places of needles", keys, &out)?;
    apart("needles and their places", needles, &out)?;
    if needles.is_empty() {
        return Ok(());
    }
    let (n, count, mask) = (keys.len(), needles.len(), K::from_bits(mask.bits()));
    let (keys, needles, out) = (keys.global(), needles.global(), out.global_mut());
    if !merged {
        let blocks = count.div_ceil(BLOCK as usize * NEEDLES).min(i32::MAX as usize) as u32;
        let config = LaunchConfig::new(blocks, BLOCK);
        // SAFETY: lengths were checked; the rest is the contract of this function.
        unsafe {
            if upper {
                upper_bound { keys, n, needles, count, mask, out }.launch(stream, config)?;
            } else {
                lower_bound { keys, n, needles, count, mask, out }.launch(stream, config)?;
            }
        }
        return Ok(());
    }
    let shape = if upper { upper_bound_sorted::<K>::SHAPE } else { lower_bound_sorted::<K>::SHAPE };
    let tiles = tiles(n + count, shape.tile())?;
    let mut splits = stream.alloc_uninit::<u64>(tiles as usize + 1)?;
    let ((a, a_len), (b, b_len)) = if upper { ((keys, n), (needles, count)) } else { ((needles, count), (keys, n)) };
    // SAFETY: lengths were checked; scratch belongs to this call and is freed in stream order; the rest is the contract
    // of this function.
    unsafe {
        let config = LaunchConfig::covering(tiles as usize + 1, SPLIT_BLOCK);
        merge_splits {
            a,
            a_len,
            b,
            b_len,
            mask,
            tile_items: shape.tile(),
            tiles: tiles as usize,
            splits: splits.global_mut(),
        }
        .launch(stream, config)?;
        let (config, splits) = (LaunchConfig::new(tiles, shape.threads).shared(shape.shared_bytes), splits.global());
        if upper {
            upper_bound_sorted { keys, n, needles, count, mask, splits, out }.launch(stream, config)?;
        } else {
            lower_bound_sorted { keys, n, needles, count, mask, splits, out }.launch(stream, config)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::sort::key_of;
    use std::fmt::Debug;
    use warpset_base::filter::LengthMismatch;
    use warpset_core::hash::mix;
    use warpset_gpu::testing::devices;

    fn keys<K: SortKey>(n: usize, range: u64, seed: u64) -> Vec<K> {
        let key = |i| ((u128::from(mix(i, seed)) * u128::from(range)) >> 64) as u64;
        (0..n as u64).map(|i| key_of(key(i))).collect()
    }

    fn check<K: SortKey + Debug>(n: usize, count: usize, range: u64, mask: KeyMask<K>) {
        let (mut haystack, mut needles) = (keys::<K>(n, range, 1), keys::<K>(count, range, 2));
        haystack.sort_by_key(|&key| mask.of(key));
        for sorted in [false, true] {
            if sorted {
                needles.sort_by_key(|&key| mask.of(key));
            }
            let place = |upper: bool, needle: K| {
                let before = |key: K| mask.of(key) < mask.of(needle) || (upper && mask.of(key) == mask.of(needle));
                haystack.partition_point(|&key| before(key)) as u64
            };
            let lower: Vec<u64> = needles.iter().map(|&needle| place(false, needle)).collect();
            let upper: Vec<u64> = needles.iter().map(|&needle| place(true, needle)).collect();
            for device in devices((n + count) as u64) {
                let stream = device.new_stream().unwrap();
                let (haystack, needles) = (device.from_slice(&haystack).unwrap(), device.from_slice(&needles).unwrap());
                let mut out = device.alloc_uninit(count).unwrap();
                for (upper, expected) in [(false, &lower), (true, &upper)] {
                    for merged in [false, true] {
                        if merged && !sorted {
                            continue;
                        }
                        out.fill_bytes(7).unwrap();
                        let (keys, needles, to) = (haystack.as_slice(), needles.as_slice(), out.as_mut_slice());
                        // SAFETY: all live until the stream has been waited for.
                        unsafe { search(&stream, keys, needles, mask, to, upper, merged) }.unwrap();
                        assert_eq!(out.to_vec().unwrap(), *expected, "{n} keys, upper {upper}, merged {merged}");
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_are_those_of_partition_point() {
        for (n, count) in [(0, 0), (0, 5), (1, 1), (5, 0), (3, 1000), (1000, 3), (4000, 4100), (1, 5000), (9000, 33)] {
            for range in [1, 100, 1 << 32] {
                check::<u32>(n, count, range, KeyMask::all());
            }
        }
        for (n, count) in [(0, 1), (3000, 2900), (257, 255)] {
            check::<u64>(n, count, 100, KeyMask::all());
            check::<u64>(n, count, u64::MAX, KeyMask::all());
            check::<u64>(n, count, u64::MAX, KeyMask::above(56));
            check::<u32>(n, count, 1 << 32, KeyMask::above(25));
            check::<u128>(n, count, 100, KeyMask::all());
            check::<u128>(n, count, u64::MAX, KeyMask::above(97));
        }
    }

    #[test]
    fn public_functions_choose_and_check() {
        for device in devices(2) {
            let stream = device.new_stream().unwrap();
            let keys = device.from_slice(&[2u32, 4, 4, 6]).unwrap();
            let needles = device.from_slice(&[1u32, 4, 7]).unwrap();
            let mut out = device.alloc_uninit::<u64>(3).unwrap();
            let mut long = device.alloc_uninit::<u64>(4).unwrap();
            let (k, q, mask) = (keys.as_slice(), needles.as_slice(), KeyMask::all());
            // SAFETY: all live until the stream has been waited for.
            unsafe {
                lower_bound_async(&stream, k, q, mask, &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), [0, 1, 4]);
                upper_bound_async(&stream, k, q, mask, &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), [0, 3, 4]);
                lower_bound_sorted_async(&stream, k, q, mask, &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), [0, 1, 4]);
                upper_bound_sorted_async(&stream, k, q, mask, &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), [0, 3, 4]);
                let wrong = lower_bound_async(&stream, k, q, mask, &mut long);
                assert!(matches!(wrong, Err(Error::LengthMismatch(LengthMismatch { needed: 3, found: 4, .. }))));
            }
        }
    }
}

//! Merging up to eight runs in one pass over memory.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::primitives::merge::many::{self as kernels, RUNS, SPLIT_BLOCK};
use warpset_simt::{Global, GlobalMut};

use super::Pairs;
use crate::check::{apart, on_device_of, same_len, tiles};
use crate::sort::{Payload, SortKey, Widths, by_widths};
use crate::{Error, KeyMask, Result};

/// The most runs that are merged in one pass.
pub const MAX_RUNS: usize = RUNS;

/// Queues the merge of up to [`MAX_RUNS`] sorted runs of keys into `out`, in one pass: each item is read and written
/// once, besides few of them that are read to find where tiles begin. Of equal keys those of earlier runs come first.
///
/// # Errors
/// Before anything is queued: [`TooManyRuns`](Error::TooManyRuns); [`LengthMismatch`](Error::LengthMismatch) unless
/// `out` is as long as all runs; [`Overlap`](Error::Overlap) if it shares memory with one of them.
///
/// # Safety
/// Until `stream` has passed this work:
/// - all runs and `out` stay allocated;
/// - no other work writes the runs or accesses `out`.
pub unsafe fn merge_many_keys_async<'a, K: SortKey>(
    stream: &Stream,
    runs: &[DeviceSlice<'_, K>],
    mask: KeyMask<K>,
    out: impl Into<DeviceSliceMut<'a, K>>,
) -> Result<()> {
    let mut out = out.into();
    check_runs(runs.len())?;
    same_len("merged keys", runs.iter().map(DeviceSlice::len).sum(), out.len())?;
    on_device_of(stream, "a merge", &out)?;
    runs.iter().try_for_each(|&run| apart("a run and the merged keys", run, &out))?;
    let out = out.global_mut();
    let keys = eight(runs.iter().map(DeviceSlice::global), out.as_const());
    let lengths = eight(runs.iter().map(DeviceSlice::len), 0);
    // SAFETY: lengths were checked; the kernels without values do not look at any; the caller answers for the rest.
    unsafe { merge(stream, keys, keys, lengths, runs.len(), mask, out, out, false) }
}

/// Queues the merge of up to [`MAX_RUNS`] sorted runs of keys with values into `out_keys` and `out_values`, in one
/// pass.
///
/// # Errors
/// As for [`merge_many_keys_async`]; and [`LengthMismatch`](Error::LengthMismatch) unless keys and values are as many.
///
/// # Safety
/// Until `stream` has passed this work:
/// - keys and values of all runs and both outputs stay allocated;
/// - no other work writes the runs or accesses the outputs.
pub unsafe fn merge_many_pairs_async<'a, K: SortKey, V: Payload>(
    stream: &Stream,
    runs: &[Pairs<'_, K, V>],
    mask: KeyMask<K>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'a, V>>,
) -> Result<()> {
    let (mut out_keys, mut out_values) = (out_keys.into(), out_values.into());
    check_runs(runs.len())?;
    same_len("merged keys", runs.iter().map(|run| run.keys.len()).sum(), out_keys.len())?;
    same_len("merged values", out_keys.len(), out_values.len())?;
    on_device_of(stream, "a merge", &out_keys)?;
    apart("merged keys and merged values", out_keys.as_slice(), &out_values)?;
    for run in runs {
        run.check()?;
        run.check_apart(&out_keys, &out_values)?;
    }
    let (out_keys, out_values) = (out_keys.global_mut(), out_values.global_mut());
    let keys = eight(runs.iter().map(|run| run.keys.global()), out_keys.as_const());
    let values = eight(runs.iter().map(|run| run.values.global()), out_values.as_const());
    let lengths = eight(runs.iter().map(|run| run.keys.len()), 0);
    // SAFETY: lengths were checked; the caller answers for the rest.
    unsafe { merge(stream, keys, values, lengths, runs.len(), mask, out_keys, out_values, true) }
}

fn check_runs(runs: usize) -> Result<()> {
    if runs > MAX_RUNS { Err(Error::TooManyRuns { runs, max: MAX_RUNS }) } else { Ok(()) }
}

/// As many as the kernels take; `rest` stands for those that are not there.
fn eight<T: Copy>(items: impl Iterator<Item = T>, rest: T) -> [T; RUNS] {
    let mut all = [rest; RUNS];
    all.iter_mut().zip(items).for_each(|(to, item)| *to = item);
    all
}

/// # Safety
/// As [`merge_many_pairs_async`], lengths checked; there are `runs` runs.
#[allow(clippy::too_many_arguments)] // those of a kernel
unsafe fn merge<K: SortKey, V: Payload>(
    stream: &Stream,
    keys: [Global<K>; RUNS],
    values: [Global<V>; RUNS],
    lengths: [usize; RUNS],
    runs: usize,
    mask: KeyMask<K>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    pairs: bool,
) -> Result<()> {
    let total = lengths.iter().sum::<usize>();
    if total == 0 {
        return Ok(());
    }
    let rounds = runs.next_power_of_two().trailing_zeros();
    let mask = mask.bits();
    macro_rules! launch {
        ($kernel:ident) => {{
            let shape = $kernel::SHAPE;
            let tiles = tiles(total, shape.tile())?;
            let mut splits = stream.alloc_uninit::<u64>(RUNS * (tiles as usize + 1))?;
            let [v0, v1, v2, v3, v4, v5, v6, v7] = values.map(|run| run.cast());
            let [n0, n1, n2, n3, n4, n5, n6, n7] = lengths;
            let config = LaunchConfig::covering(32 * (tiles as usize + 1), SPLIT_BLOCK);
            let to = splits.global_mut();
            // SAFETY: the types have the sizes of the kernels'; lengths were checked; scratch is this call's own, and
            // freed in the order of the stream; the caller answers for the rest.
            unsafe {
                let [k0, k1, k2, k3, k4, k5, k6, k7] = keys;
                kernels::merge_many_splits {
                    k0,
                    k1,
                    k2,
                    k3,
                    k4,
                    k5,
                    k6,
                    k7,
                    n0,
                    n1,
                    n2,
                    n3,
                    n4,
                    n5,
                    n6,
                    n7,
                    total,
                    mask: K::from_bits(mask),
                    tile_items: shape.tile(),
                    tiles: tiles as usize,
                    splits: to,
                }
                .launch(stream, config)?;
                let config = LaunchConfig::new(tiles, shape.threads).shared(shape.shared_bytes);
                let [k0, k1, k2, k3, k4, k5, k6, k7] = keys.map(|run| run.cast());
                $kernel {
                    k0,
                    k1,
                    k2,
                    k3,
                    k4,
                    k5,
                    k6,
                    k7,
                    v0,
                    v1,
                    v2,
                    v3,
                    v4,
                    v5,
                    v6,
                    v7,
                    rounds,
                    mask: mask as _,
                    splits: splits.global(),
                    out_keys: out_keys.cast(),
                    out_values: out_values.cast(),
                }
                .launch(stream, config)?
            }
        }};
    }
    let widths = if pairs { Widths::pairs::<K, V>() } else { Widths::keys::<K>() };
    by_widths!(
        widths,
        kernels::{
            merge_many_u32, merge_many_u32_u32, merge_many_u32_u64, merge_many_u64, merge_many_u64_u32,
            merge_many_u64_u64
        },
        |kernel| launch!(kernel)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use warpset_gpu::testing::devices;

    use super::super::tests::{merged, run, unzip};
    use super::*;

    fn check<K: SortKey + Debug, V: Payload + PartialEq + Debug>(runs: &[Vec<(K, V)>], mask: KeyMask<K>) {
        let slices: Vec<&[(K, V)]> = runs.iter().map(Vec::as_slice).collect();
        let expected = unzip(&merged(&slices, mask));
        let n = expected.0.len();
        let split: Vec<(Vec<K>, Vec<V>)> = runs.iter().map(|run| unzip(run)).collect();

        let mut out = (vec![K::from_bits(0); n], vec![V::from_bits(0); n]);
        let keys: Vec<&[K]> = split.iter().map(|run| &run.0[..]).collect();
        crate::cpu::merge::merge_many_keys(&keys, mask, &mut out.0).unwrap();
        assert_eq!(out.0, expected.0);
        let pairs: Vec<(&[K], &[V])> = split.iter().map(|run| (&run.0[..], &run.1[..])).collect();
        crate::cpu::merge::merge_many_pairs(&pairs, mask, &mut out.0, &mut out.1).unwrap();
        assert_eq!(out, expected);

        for device in devices((n + runs.len()) as u64) {
            let stream = device.new_stream().unwrap();
            let upload =
                |run: &(Vec<K>, Vec<V>)| (device.from_slice(&run.0).unwrap(), device.from_slice(&run.1).unwrap());
            let on_device: Vec<_> = split.iter().map(upload).collect();
            let runs: Vec<Pairs<'_, K, V>> = on_device.iter().map(|run| Pairs::new(&run.0, &run.1)).collect();
            let keys: Vec<DeviceSlice<'_, K>> = runs.iter().map(|run| run.keys).collect();
            let (mut out, mut out_values) = (device.alloc_uninit(n).unwrap(), device.alloc_uninit(n).unwrap());
            // SAFETY: all live until they have been waited for.
            unsafe { merge_many_keys_async(&stream, &keys, mask, &mut out) }.unwrap();
            assert_eq!(out.to_vec().unwrap(), expected.0, "{} runs, {n} keys", runs.len());
            out.fill_bytes(0).unwrap();
            // SAFETY: as above.
            unsafe { merge_many_pairs_async(&stream, &runs, mask, &mut out, &mut out_values) }.unwrap();
            let found = (out.to_vec().unwrap(), out_values.to_vec().unwrap());
            assert_eq!(found, expected, "{} runs, {n} pairs", runs.len());
        }
    }

    fn check_lengths<K: SortKey + Debug, V: Payload + PartialEq + Debug>(
        lengths: &[usize],
        range: u64,
        mask: KeyMask<K>,
    ) {
        let mut first = 0;
        let mut runs = Vec::new();
        for &length in lengths {
            runs.push(run::<K, V>(length, range, mask, first));
            first += length;
        }
        check(&runs, mask);
    }

    #[test]
    fn one_to_eight_runs_are_merged_stably() {
        for runs in 0..=8 {
            let lengths: Vec<usize> = (0..runs).map(|r| 100 + 317 * r).collect();
            for range in [1, 7, 1 << 32] {
                check_lengths::<u32, u32>(&lengths, range, KeyMask::all());
            }
        }
        check_lengths::<u32, u64>(&[900, 1000, 1100, 800, 700], 1 << 32, KeyMask::above(20));
        check_lengths::<u64, u32>(&[900, 1000, 1100, 800, 700, 1], u64::MAX, KeyMask::above(60));
        check_lengths::<u64, u64>(&[900, 1000, 1100, 800, 700, 1, 2], 50, KeyMask::all());
    }

    #[test]
    fn empty_runs_and_runs_of_very_different_lengths() {
        for lengths in
            [&[0; 8][..], &[0, 0, 0, 0, 0, 0, 0, 1], &[5000, 0, 0, 0, 3, 0, 0, 0], &[1, 9000, 1], &[0, 4000, 0, 4000]]
        {
            check_lengths::<u32, u32>(lengths, 1 << 32, KeyMask::all());
            check_lengths::<u32, u32>(lengths, 2, KeyMask::all());
        }
    }

    #[test]
    fn runs_one_behind_the_other() {
        let step = |r: u32| (0..1200u32).map(|i| (1200 * (7 - r) + i, r)).collect::<Vec<(u32, u32)>>();
        check(&(0..8).map(step).collect::<Vec<_>>(), KeyMask::all());
        let turns = |r: u32| (0..1200u32).map(|i| (8 * i + r, r)).collect::<Vec<(u32, u32)>>();
        check(&(0..8).map(turns).collect::<Vec<_>>(), KeyMask::all());
    }

    #[test]
    fn more_runs_and_bad_lengths_are_errors() {
        for device in devices(3) {
            let stream = device.new_stream().unwrap();
            let run = device.from_slice(&[1u32]).unwrap();
            let mut out = device.alloc_uninit::<u32>(9).unwrap();
            // SAFETY: nothing gets queued.
            let wrong = unsafe { merge_many_keys_async(&stream, &[run.as_slice(); 9], KeyMask::all(), &mut out) };
            assert!(matches!(wrong, Err(Error::TooManyRuns { runs: 9, max: 8 })));
            // SAFETY: nothing gets queued.
            let wrong = unsafe { merge_many_keys_async(&stream, &[run.as_slice(); 8], KeyMask::all(), &mut out) };
            assert!(matches!(wrong, Err(Error::LengthMismatch { needed: 8, found: 9, .. })));
        }
    }
}

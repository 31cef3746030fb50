//! Sorting the segments of host slices: see [`crate::segmented_sort`]. Segments side by side, long ones by rayon's
//! stable merge sort.

use warpset_base::filter::LengthMismatch;
use warpset_base::parallel;

use crate::check::same_len;
use crate::cpu::sort::{sort_keys_in_place, sort_pairs_in_place};
use crate::sort::{By, Payload, SortKey};
use crate::{Error, Result};

/// The segments of `items`.
fn cut<'a, T>(mut items: &'a mut [T], offsets: &[u64]) -> Vec<&'a mut [T]> {
    let mut at = 0;
    let mut skip_to = |offset: u64| {
        let (before, rest) = std::mem::take(&mut items).split_at_mut(offset as usize - at);
        (items, at) = (rest, offset as usize);
        before
    };
    skip_to(offsets[0]);
    offsets[1..].iter().map(|&end| skip_to(end)).collect()
}

/// Fails unless offsets ascend to at most `n`.
fn check_offsets(offsets: &[u64], n: usize) -> Result<()> {
    let Some(&last) = offsets.last() else {
        return Err(LengthMismatch { what: "offsets", needed: 1, found: 0 }.into());
    };
    if let Some(pair) = offsets.windows(2).find(|pair| pair[0] > pair[1]) {
        return Err(Error::InvalidOffsets { offset: pair[1], limit: pair[0] });
    }
    if last > n as u64 { Err(Error::InvalidOffsets { offset: last, limit: n as u64 }) } else { Ok(()) }
}

/// Sorts each segment of `keys` into `out`, which is as long. Items outside of segments are left alone.
///
/// # Errors
/// [`LengthMismatch`](Error::LengthMismatch), [`InvalidBitRange`](Error::InvalidBitRange),
/// [`InvalidOffsets`](Error::InvalidOffsets).
pub fn sort_keys<K: SortKey>(keys: &[K], offsets: &[u64], out: &mut [K], by: By) -> Result<()> {
    same_len("sorted keys", keys.len(), out.len())?;
    by.range::<K>()?;
    check_offsets(offsets, keys.len())?;
    parallel::try_for_each(cut(out, offsets).into_iter().zip(offsets), |(out, &begin)| {
        out.copy_from_slice(&keys[begin as usize..][..out.len()]);
        sort_keys_in_place(out, by.clone())
    })
}

/// Sorts each segment of `keys` with `values` into `out_keys` and `out_values`; all four are of one length.
///
/// # Errors
/// As [`sort_keys`].
pub fn sort_pairs<K: SortKey, V: Payload>(
    keys: &[K],
    values: &[V],
    offsets: &[u64],
    out_keys: &mut [K],
    out_values: &mut [V],
    by: By,
) -> Result<()> {
    same_len("payloads", keys.len(), values.len())?;
    same_len("sorted keys", keys.len(), out_keys.len())?;
    same_len("sorted payloads", keys.len(), out_values.len())?;
    by.range::<K>()?;
    check_offsets(offsets, keys.len())?;
    let outputs = cut(out_keys, offsets).into_iter().zip(cut(out_values, offsets));
    parallel::try_for_each(outputs.zip(offsets), |((out_keys, out_values), &begin)| {
        out_keys.copy_from_slice(&keys[begin as usize..][..out_keys.len()]);
        out_values.copy_from_slice(&values[begin as usize..][..out_values.len()]);
        sort_pairs_in_place(out_keys, out_values, by.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_sorted_and_the_rest_left_alone() {
        let keys = [9u32, 5, 4, 7, 1, 3, 2, 8];
        let mut out = [0; 8];
        sort_keys(&keys, &[1, 4, 4, 5, 7], &mut out, By::ascending()).unwrap();
        assert_eq!(out, [0, 4, 5, 7, 1, 2, 3, 0]);
        let (mut out, mut places) = ([0; 8], [9u64; 8]);
        let values = [0, 1, 2, 3, 4, 5, 6, 7];
        sort_pairs(&keys, &values, &[0, 8], &mut out, &mut places, By::descending().bits(0..1)).unwrap();
        assert_eq!(out, [9, 5, 7, 1, 3, 4, 2, 8]);
        assert_eq!(places, [0, 1, 3, 4, 5, 2, 6, 7]);
    }

    #[test]
    fn bad_arguments_are_errors() {
        let mut out = [0u32; 3];
        for offsets in [&[2u64, 1][..], &[0, 4]] {
            assert!(matches!(
                sort_keys(&[1, 2, 3], offsets, &mut out, By::ascending()),
                Err(Error::InvalidOffsets { .. })
            ));
        }
        assert!(sort_keys(&[1, 2, 3], &[], &mut out, By::ascending()).is_err());
    }
}

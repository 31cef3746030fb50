//! Sorting host slices: see [`crate::sort`]. A stable radix sort by the chosen bits, on the threads of the current
//! pool.

use warpset_base::parallel;
use warpset_base::sort::sort_by_rank;

use crate::Result;
use crate::check::same_len;
use crate::sort::{By, Payload, SortKey};

/// Items that a task copies.
const PART: usize = 1 << 15;

/// Sorts `keys` into `out`, which is as long.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch), [`InvalidBitRange`](crate::Error::InvalidBitRange).
pub fn sort_keys<K: SortKey>(keys: &[K], out: &mut [K], by: By) -> Result<()> {
    same_len("sorted keys", keys.len(), out.len())?;
    by.range::<K>()?;
    out.copy_from_slice(keys);
    sort_keys_in_place(out, by)
}

/// Sorts `keys` with `values` into `out_keys` and `out_values`; all four are of one length.
///
/// # Errors
/// As [`sort_keys`].
pub fn sort_pairs<K: SortKey, V: Payload>(
    keys: &[K],
    values: &[V],
    out_keys: &mut [K],
    out_values: &mut [V],
    by: By,
) -> Result<()> {
    same_len("payloads", keys.len(), values.len())?;
    same_len("sorted keys", keys.len(), out_keys.len())?;
    same_len("sorted payloads", keys.len(), out_values.len())?;
    by.range::<K>()?;
    out_keys.copy_from_slice(keys);
    out_values.copy_from_slice(values);
    sort_pairs_in_place(out_keys, out_values, by)
}

/// Sorts `keys` where they are.
///
/// # Errors
/// [`InvalidBitRange`](crate::Error::InvalidBitRange).
pub fn sort_keys_in_place<K: SortKey>(keys: &mut [K], by: By) -> Result<()> {
    let bits = by.range::<K>()?;
    if by.is_reversed() {
        keys.reverse();
    }
    sort_by_rank(keys, bits.end - bits.start, K::rank_by(bits, by.is_descending()));
    Ok(())
}

/// Sorts `keys` with `values` where they are; both are of one length.
///
/// # Errors
/// As [`sort_keys`].
pub fn sort_pairs_in_place<K: SortKey, V: Payload>(keys: &mut [K], values: &mut [V], by: By) -> Result<()> {
    same_len("payloads", keys.len(), values.len())?;
    let bits = by.range::<K>()?;
    if by.is_reversed() {
        keys.reverse();
        values.reverse();
    }
    let mut pairs = bytemuck::zeroed_vec::<(K, V)>(keys.len());
    let parts = pairs.chunks_mut(PART).zip(keys.chunks(PART)).zip(values.chunks(PART));
    parallel::for_each(parts, |((pairs, keys), values)| {
        pairs.iter_mut().zip(keys).zip(values).for_each(|((pair, key), value)| *pair = (*key, *value));
    });
    let width = bits.end - bits.start;
    let rank = K::rank_by(bits, by.is_descending());
    sort_by_rank(&mut pairs, width, |(key, _)| rank(key));
    let parts = keys.chunks_mut(PART).zip(values.chunks_mut(PART)).zip(pairs.chunks(PART));
    parallel::for_each(parts, |((keys, values), pairs)| {
        keys.iter_mut().zip(values).zip(pairs).for_each(|((key, value), pair)| (*key, *value) = *pair);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use warpset_base::filter::LengthMismatch;
    use warpset_core::hash::mix;

    #[test]
    fn equal_keys_keep_their_order_in_both_directions() {
        let keys: Vec<u32> = (0..10_000).map(|i| mix(i, 1) as u32 % 97).collect();
        let places: Vec<u64> = (0..keys.len() as u64).collect();
        for (by, rank) in [
            (By::ascending(), (|k| k) as fn(u32) -> u32),
            (By::descending(), |k| !k),
            (By::ascending().bits(3..5), |k| k >> 3 & 3),
            (By::descending().bits(3..5), |k| !(k >> 3) & 3),
            (By::descending().bits(32..32), |_| 0),
        ] {
            let mut expected: Vec<(u32, u64)> = keys.iter().copied().zip(places.iter().copied()).collect();
            expected.sort_by_key(|&(key, _)| rank(key));
            let (mut out_keys, mut out_places) = (vec![0; keys.len()], vec![0; keys.len()]);
            sort_pairs(&keys, &places, &mut out_keys, &mut out_places, by.clone()).unwrap();
            assert!(out_keys.iter().copied().zip(out_places).eq(expected.iter().copied()), "{by:?}");
            sort_keys(&keys, &mut out_keys, by).unwrap();
            assert!(out_keys.iter().eq(expected.iter().map(|(key, _)| key)));
        }
    }

    #[test]
    fn bad_arguments_are_errors() {
        let mut keys = [3u32, 1, 2];
        assert!(matches!(
            sort_keys_in_place(&mut keys, By::ascending().bits(0..33)),
            Err(Error::InvalidBitRange { end: 33, width: 32, .. })
        ));
        assert!(matches!(
            sort_pairs_in_place(&mut keys, &mut [0u64; 2], By::ascending()),
            Err(Error::LengthMismatch(LengthMismatch { needed: 3, found: 2, .. }))
        ));
        assert_eq!(keys, [3, 1, 2]);
    }
}

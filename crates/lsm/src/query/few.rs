//! Merge of few elements, for short ranges.
//!
//! A short range has some elements in every level. Searching for them should dominate its cost, so this merge uses no
//! scratch memory and makes no passes. The pieces of the levels are inserted one after the other, the newest first,
//! each element at its place among the earlier ones. A piece is sorted, so an element passes only elements of newer
//! pieces. Levels double in size, so an element of the largest piece passes about half of the others.

use crate::run::Run;
use crate::{OrderedKey, Value};

/// Largest number of elements of all pieces; one bit each marks the tombstones.
pub(crate) const FEW: usize = 48;

/// Writes the live elements of the pieces, the newest first, in the order of their keys, and returns their number: the
/// first one of equal keys, unless it is a tombstone. There are at most [`FEW`] elements, and a place for each.
pub(crate) fn few_into<K: OrderedKey, V: Value>(
    pieces: &[Run<'_, K, V>],
    to_keys: &mut [K],
    to_values: &mut [V],
) -> usize {
    let total: usize = pieces.iter().map(Run::len).sum();
    assert!(total <= FEW, "{total} elements are not few");
    let (mut len, mut tombstones) = (0, 0u64);
    for piece in pieces {
        for (i, (&key, &value)) in piece.keys.iter().zip(piece.values).enumerate() {
            let mut place = len;
            while place > 0 && to_keys[place - 1] > key {
                (to_keys[place], to_values[place]) = (to_keys[place - 1], to_values[place - 1]);
                place -= 1;
            }
            (to_keys[place], to_values[place]) = (key, value);
            if piece.has_tombstones() || tombstones != 0 {
                let below = tombstones & ((1 << place) - 1);
                tombstones = below | (tombstones ^ below) << 1 | u64::from(piece.is_tombstone(i)) << place;
            }
            len += 1;
        }
    }
    let (mut live, mut last) = (0, None);
    for i in 0..len {
        let (key, value) = (to_keys[i], to_values[i]);
        let keep = last != Some(key) && tombstones >> i & 1 == 0;
        last = Some(key);
        (to_keys[live], to_values[live]) = (key, value);
        live += usize::from(keep);
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Folder;

    /// Checks pieces with numbers of a weak generator, which often coincide.
    fn check(lengths: &[usize], domain: u32, seed: u32) {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(0x915f_77f5).wrapping_add(1);
            state >> 8
        };
        let mut pieces = Vec::new();
        for &len in lengths {
            let mut keys: Vec<u32> = (0..len).map(|_| next() % domain).collect();
            keys.sort_unstable();
            let values: Vec<u64> = (0..len).map(|_| u64::from(next())).collect();
            let words: Vec<u32> = (0..len.div_ceil(32)).map(|_| next() & next()).collect();
            pieces.push((keys, values, (next() % 2 == 0).then_some(words)));
        }
        let runs: Vec<_> = pieces.iter().map(|(keys, values, bits)| Run::new(keys, values, bits.as_deref())).collect();
        let (mut keys, mut values) = ([7; FEW], [8; FEW]);
        let live = few_into(&runs, &mut keys, &mut values);
        let mut folder = Folder::default();
        let (expected_keys, expected_values) = folder.live(&runs);
        assert_eq!((&keys[..live], &values[..live]), (expected_keys, expected_values), "{runs:?}", runs = pieces);
    }

    #[test]
    fn few_elements_are_merged_as_many_are() {
        for seed in 0..500 {
            let lengths = [seed % 3, seed % 5, seed % 7, seed % 11, seed % 23].map(|len| len as usize);
            for domain in [1, 5, 40, 10_000] {
                check(&lengths, domain, seed);
            }
        }
        check(&[], 1, 0);
        check(&[FEW], 1000, 0);
        check(&[1; FEW], 1000, 0);
    }
}

//! Primitives on host slices, on the threads of the current rayon pool. Lengths satisfy the contracts of the steps.

use bytemuck::Pod;
use warpset_base::parallel;
use warpset_base::sort::sort_by_rank;

use super::element::{PackedKey, PairValue};

/// Items per task.
const PART: usize = 1 << 15;
/// Needles per task.
const NEEDLES: usize = 1 << 12;

/// Sorts keys by their bits from `first_bit` on; keys with equal bits keep their order.
pub(super) fn sort_keys<K: PackedKey>(keys: &mut [K], first_bit: u32) {
    sort_by_rank(keys, 8 * size_of::<K>() as u32 - first_bit, |key| key.to_u64() >> first_bit);
}

/// Sorts keys with values as [`sort_keys`] does.
pub(super) fn sort_pairs<K: PackedKey, V: Pod + Send + Sync>(keys: &mut [K], values: &mut [V], first_bit: u32) {
    let mut pairs = bytemuck::zeroed_vec::<(K, V)>(keys.len());
    let parts = pairs.chunks_mut(PART).zip(keys.chunks(PART)).zip(values.chunks(PART));
    parallel::for_each(parts, |((pairs, keys), values)| {
        pairs.iter_mut().zip(keys).zip(values).for_each(|((pair, key), value)| *pair = (*key, *value));
    });
    sort_by_rank(&mut pairs, 8 * size_of::<K>() as u32 - first_bit, |(key, _)| key.to_u64() >> first_bit);
    let parts = keys.chunks_mut(PART).zip(values.chunks_mut(PART)).zip(pairs.chunks(PART));
    parallel::for_each(parts, |((keys, values), pairs)| {
        keys.iter_mut().zip(values).zip(pairs).for_each(|((key, value), pair)| (*key, *value) = *pair);
    });
}

/// Merges two runs that are sorted by original keys; `a` comes first among equal keys. Merge path cuts the output into
/// parts of one length, one task per part.
pub(super) fn merge_pairs<K: PackedKey, V: PairValue>(
    (a, a_values): (&[K], &[V]),
    (b, b_values): (&[K], &[V]),
    out_keys: &mut [K],
    out_values: &mut [V],
) {
    let a_first = |i: usize, j: usize| j >= b.len() || (i < a.len() && a[i].original() <= b[j].original());
    let parts = out_keys.chunks_mut(PART).zip(out_values.chunks_mut(PART));
    parallel::for_each(parts.enumerate(), |(part, (keys, values))| {
        let first = part * PART;
        let (mut low, mut high) = (first.saturating_sub(b.len()), first.min(a.len()));
        while low < high {
            let middle = low + (high - low) / 2;
            if a_first(middle, first - 1 - middle) { low = middle + 1 } else { high = middle }
        }
        let (mut i, mut j) = (low, first - low);
        for (key, value) in keys.iter_mut().zip(values) {
            let from_a = a_first(i, j);
            (*key, *value) = if from_a { (a[i], a_values[i]) } else { (b[j], b_values[j]) };
            i += usize::from(from_a);
            j += usize::from(!from_a);
        }
    });
}

/// Replaces each item by the sum of the items before it.
pub(super) fn exclusive_sum(items: &mut [u64]) {
    let mut before: Vec<u64> = parallel::map(items.chunks(PART), |part| part.iter().sum());
    let mut sum = 0;
    before.iter_mut().for_each(|part| sum += std::mem::replace(part, sum));
    parallel::for_each(items.chunks_mut(PART).zip(before), |(part, mut before)| {
        part.iter_mut().for_each(|item| before += std::mem::replace(item, before));
    });
}

/// Writes the number of keys below each needle; both are sorted by original keys. A task searches its first needle in
/// all keys, and each later one from the result of the one before: in steps that double, then by halving.
pub(super) fn lower_bound_sorted<K: PackedKey>(keys: &[K], needles: &[K], out: &mut [u64]) {
    parallel::for_each(out.chunks_mut(NEEDLES).zip(needles.chunks(NEEDLES)), |(out, needles)| {
        let mut place = keys.partition_point(|key| key.original() < needles[0].original());
        for (to, needle) in out.iter_mut().zip(needles) {
            let is_below = |key: &K| key.original() < needle.original();
            let mut step = 1;
            while place + step <= keys.len() && is_below(&keys[place + step - 1]) {
                place += step;
                step *= 2;
            }
            place += keys[place..keys.len().min(place + step)].partition_point(is_below);
            *to = place as u64;
        }
    });
}

/// Copies the items with a set bit to the start of `out`, in order, and returns their number. Each part is counted, and
/// then written after the parts before it.
pub(super) fn select<T: Pod + Send + Sync>(items: &[T], bitmap: &[u64], out: &mut [T]) -> usize {
    let parts = || items.chunks(PART).zip(bitmap.chunks(PART / 64));
    let is_set = |bits: &[u64], i: usize| bits[i / 64] >> (i % 64) & 1 != 0;
    let counts = parallel::map(parts(), |(items, bits)| (0..items.len()).filter(|&i| is_set(bits, i)).count());
    let mut rest = out;
    let outs: Vec<&mut [T]> =
        counts.iter().map(|&count| rest.split_off_mut(..count).expect("room for all items")).collect();
    parallel::for_each(parts().zip(outs), |((items, bits), out)| {
        let selected = (0..items.len()).filter(|&i| is_set(bits, i)).map(|i| items[i]);
        out.iter_mut().zip(selected).for_each(|(out, item)| *out = item);
    });
    counts.iter().sum()
}

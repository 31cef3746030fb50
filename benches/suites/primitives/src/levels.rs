//! Merges of the levels of an LSM dictionary: runs that double in length, the newest and shortest first.

use bench_frame::input::keys::KeySpace;
use warpset::gpu::{Device, DeviceVec};
use warpset::primitives::KeyMask;
use warpset::primitives::merge::{self, Marked, Pairs, WithStatus};
use warpset::primitives::sort::{Payload, SortKey};

use super::case::{Case, blank};
use super::{MOST_WIDEST, narrow, steps_of, widest};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step};

/// Levels of a dictionary of 2^27 items and batches of 2^16.
const LEVELS: usize = 11;

pub fn steps(setup: &Setup) -> Vec<Step> {
    steps_of(setup, "levels", |session, device, n| {
        let keys = KeySpace::new(0x15e).stream(0).u64_keys(n);
        of_pairs::<u32, u32>(session, device, "u32, u32", &narrow(&keys))?;
        of_pairs::<u64, u64>(session, device, "u64, u64", &keys)?;
        if session.effort == Effort::Quick {
            return Ok(());
        }
        of_pairs::<u128, u64>(session, device, "u128, u64", &widest(&keys[..n.min(MOST_WIDEST)]))
    })
}

/// Returns lengths of levels that add up to `n`.
fn lengths(n: usize) -> Vec<usize> {
    let shortest = n >> (LEVELS - 1);
    let mut lengths: Vec<usize> = (1..LEVELS).rev().map(|level| n >> level).collect();
    lengths.insert(0, shortest);
    lengths[LEVELS - 1] += n - lengths.iter().sum::<usize>();
    lengths
}

/// Makes words with one of 16 bits set, one bit per item.
fn bits(n: usize) -> Vec<u32> {
    (0..n.div_ceil(32)).map(|word| if 32 * word + 16 < n { 0x0001_0001 } else { 1 }).collect()
}

fn of_pairs<K: SortKey, V: Payload + PartialEq + TryFrom<usize>>(
    session: &mut Session,
    device: &Device,
    name: &str,
    keys: &[K],
) -> anyhow::Result<()> {
    let (n, lengths) = (keys.len(), lengths(keys.len()));
    let values: Vec<V> = super::sort::counting(n);
    let mut levels = keys.to_vec();
    let mut rest = &mut levels[..];
    for &length in &lengths {
        let (level, after) = rest.split_at_mut(length);
        level.sort_unstable();
        rest = after;
    }
    let status: Vec<Vec<u32>> = lengths.iter().map(|&length| bits(length)).collect();
    let marked = lengths
        .iter()
        .zip(&status)
        .flat_map(|(&length, words)| (0..length).map(move |i| words[i / 32] >> (i % 32) & 1 != 0));
    let mut expected: Vec<(K, (V, bool))> = levels.iter().copied().zip(values.iter().copied().zip(marked)).collect();
    expected.sort_by_key(|item| item.0);
    let merged: (Vec<K>, Vec<V>) = expected.iter().map(|item| (item.0, item.1.0)).unzip();
    expected.dedup_by_key(|item| item.0);
    let live: Vec<(K, V)> = expected.iter().filter(|item| !item.1.1).map(|item| (item.0, item.1.0)).collect();

    let ends: Vec<usize> = [0]
        .into_iter()
        .chain(lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }))
        .collect();
    let ranges: Vec<_> = ends.windows(2).map(|ends| ends[0]..ends[1]).collect();
    let (mask, bytes) = (KeyMask::all(), 2 * n * (size_of::<K>() + size_of::<V>()));
    Case::new(session, device, "merge of levels", name, n, bytes).run(
        (&levels[..], &values[..]),
        (blank::<K>(n), blank::<V>(n)),
        |stream, (keys, values), (out, out_values)| {
            let runs: Vec<_> =
                ranges.iter().map(|r| Pairs::new(keys.slice(r.clone()), values.slice(r.clone()))).collect();
            // SAFETY: `run` keeps all of them as the merge asks.
            unsafe { merge::merge_many_pairs_async(stream, &runs, mask, out, out_values) }
        },
        |out| *out == merged,
    )?;
    let on_device: Vec<DeviceVec<u32>> =
        status.iter().map(|words| device.from_slice(words)).collect::<Result<_, _>>()?;
    Case::new(session, device, "cleanup of levels", name, n, bytes).run(
        (&levels[..], &values[..]),
        (blank::<K>(n), blank::<V>(n), blank::<u64>(1)),
        |stream, (keys, values), (out, out_values, count)| {
            let pairs = ranges.iter().map(|r| Pairs::new(keys.slice(r.clone()), values.slice(r.clone())));
            let bits = on_device.iter().map(|words| Some(words.as_slice()));
            let runs: Vec<_> = pairs.zip(bits).map(|(pairs, bits)| WithStatus::new(pairs, bits)).collect();
            // SAFETY: `run` keeps all of them as the merge asks; the bitmaps outlive the call.
            unsafe { merge::merge_newest_pairs_async(stream, &runs, mask, Marked::Dropped, out, out_values, count) }
        },
        |(keys, values, count)| {
            let found = keys.iter().zip(values).take(count[0] as usize);
            count[0] as usize == live.len() && found.eq(live.iter().map(|(key, value)| (key, value)))
        },
    )
}

//! Merging sorted runs, the newest first: all elements ([`merge_all`]), or the live ones ([`merge_live`]).
//!
//! Large merges are cut ([`cut`]) into parts that fit in a core's cache; a task merges a part by folding neighbouring
//! runs ([`fold`]). Runs of a log-structured merge tree double in length, so folding the two shortest first costs two
//! steps per element, whatever the number of runs.

use std::sync::atomic::{AtomicU32, Ordering};

use bytemuck::Zeroable;
use warpset_base::parallel;
use warpset_base::words::OutOfMemory;

use crate::run::{Elements, Run};
use crate::{OrderedKey, Value};

mod cut;
mod fold;

use cut::{by_key, by_rank, parts};
pub(crate) use fold::Folder;

/// Elements per part, roughly: the keys and values of a part and its scratch memory fit in a second-level cache.
pub(crate) const PART: usize = if cfg!(miri) { 64 } else { 1 << 14 };

/// Returns all elements of the runs, stale ones included. Of equal keys the newest run comes first, in the order of
/// that run.
pub(crate) fn merge_all<K: OrderedKey, V: Value>(runs: &[Run<'_, K, V>]) -> Result<Elements<K, V>, OutOfMemory> {
    let len: usize = runs.iter().map(Run::len).sum();
    let with_tombstones = runs.iter().any(Run::has_tombstones);
    let mut merged = Elements::zeroed(len, with_tombstones)?;
    if len <= PART && !with_tombstones {
        // The calling thread merges short batches before another thread would have woken up.
        let runs: Vec<Run<'_, K, V>> = runs.iter().filter(|run| !run.is_empty()).copied().collect();
        Folder::default().fold_into(&runs, merged.keys.as_mut_slice(), &mut merged.values, |_| {});
        return Ok(merged);
    }
    let cuts = by_rank(runs, len.div_ceil(PART));
    let lengths: Vec<usize> = cuts.windows(2).map(|ends| ends[1].total() - ends[0].total()).collect();
    let keys = split(merged.keys.as_mut_slice(), &lengths);
    let values = split(&mut merged.values, &lengths);
    let bits = merged.tombstones.as_mut().map(|words| bytemuck::cast_slice_mut::<u32, u32>(words));
    let bits: Option<&[AtomicU32]> = bits.map(atomic);
    let tasks = parts(runs, &cuts).zip(keys.into_iter().zip(values)).zip(&cuts);
    parallel::map_with(Folder::default, tasks, |folder, ((pieces, (keys, values)), begin)| {
        folder.fold_into(&pieces, keys, values, |folder| {
            if let Some(words) = bits {
                set_bits(words, begin.total(), folder.flags());
            }
        });
    });
    Ok(merged)
}

/// Returns the live elements, strictly ascending: of equal keys the newest one, unless it is a tombstone.
pub(crate) fn merge_live<K: OrderedKey, V: Value>(runs: &[Run<'_, K, V>]) -> Result<Elements<K, V>, OutOfMemory> {
    let len: usize = runs.iter().map(Run::len).sum();
    let cuts = by_key(runs, len.div_ceil(PART));
    let live = parallel::map_with(Folder::default, parts(runs, &cuts), |folder, pieces| {
        let (keys, values) = folder.live(&pieces);
        (keys.to_vec(), values.to_vec())
    });
    let lengths: Vec<usize> = live.iter().map(|(keys, _)| keys.len()).collect();
    let mut merged = Elements::zeroed(lengths.iter().sum(), false)?;
    let keys = split(merged.keys.as_mut_slice(), &lengths);
    let values = split(&mut merged.values, &lengths);
    parallel::for_each(live.into_iter().zip(keys.into_iter().zip(values)), |(from, (keys, values))| {
        keys.copy_from_slice(&from.0);
        values.copy_from_slice(&from.1);
    });
    Ok(merged)
}

/// Writes the result of [`merge_live`] to `keys` and `values`, which have a place for each element of the runs, and
/// returns the number of live elements. Places after these hold unspecified items.
pub(crate) fn merge_live_into<K: OrderedKey, V: Value>(
    runs: &[Run<'_, K, V>],
    keys: &mut [K],
    values: &mut [V],
) -> usize {
    let len: usize = runs.iter().map(Run::len).sum();
    let cuts = by_key(runs, len.div_ceil(PART));
    let lengths: Vec<usize> = cuts.windows(2).map(|ends| ends[1].total() - ends[0].total()).collect();
    let targets = split(keys, &lengths).into_iter().zip(split(values, &lengths));
    let live =
        parallel::map_with(Folder::default, parts(runs, &cuts).zip(targets), |folder, (pieces, (keys, values))| {
            folder.live_into(&pieces, keys, values)
        });
    close_gaps(keys, &lengths, &live);
    close_gaps(values, &lengths, &live)
}

/// Moves the first `live[i]` items of each part `i` together, and returns their number.
pub(crate) fn close_gaps<T: Copy>(items: &mut [T], lengths: &[usize], live: &[usize]) -> usize {
    let (mut from, mut to) = (0, 0);
    for (&len, &live) in lengths.iter().zip(live) {
        if from != to {
            items.copy_within(from..from + live, to);
        }
        (from, to) = (from + len, to + live);
    }
    to
}

/// Cuts items into parts of these lengths.
pub(crate) fn split<'a, T>(mut items: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(lengths.len());
    for &len in lengths {
        let (part, rest) = items.split_at_mut(len);
        parts.push(part);
        items = rest;
    }
    parts
}

/// Returns words that several tasks may write.
fn atomic(words: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: `AtomicU32` has the size and alignment of `u32`; the mutable borrow lasts as long as the result and
    // excludes other accesses.
    unsafe { &*(std::ptr::from_mut(words) as *const [AtomicU32]) }
}

/// Sets bit `first + i` for every flag `i` that is not zero. The words are zero there, and tasks share only the words
/// at the borders of their parts.
fn set_bits(words: &[AtomicU32], first: usize, flags: &[u8]) {
    let mut word = first / 32;
    let mut bits = 0u32;
    for (i, &flag) in flags.iter().enumerate() {
        let bit = first + i;
        if bit / 32 != word {
            words[word].fetch_or(bits, Ordering::Relaxed);
            (word, bits) = (bit / 32, 0);
        }
        bits |= u32::from(flag != 0) << (bit % 32);
    }
    if bits != 0 {
        words[word].fetch_or(bits, Ordering::Relaxed);
    }
}

/// Resizes `items` to `len` items of unspecified content.
fn resize<T: Zeroable + Clone>(items: &mut Vec<T>, len: usize) {
    items.resize(len, T::zeroed());
}

#[cfg(test)]
mod tests;

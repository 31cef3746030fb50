//! Many runs on host slices, in one pass: parts of the output are merged each by a task, from the places in the runs
//! where a part begins.

use warpset_base::parallel;

use crate::check::same_len;
use crate::error::check_len;
use crate::sort::{Payload, SortKey};
use crate::{KeyMask, Result};

/// Items of a part: whole words of status bits.
const PART: usize = 1 << 15;

/// A run, keys or keys and values, and a status bit for each of its items: bit `i % 32` of word `i / 32` is that of
/// item `i`.
#[derive(Clone, Copy, Debug)]
pub struct WithStatus<'a, R> {
    /// The run.
    pub run: R,
    /// The bits, in as many words as they take; `None` if no bit is set.
    pub status: Option<&'a [u32]>,
}

impl<'a, R> WithStatus<'a, R> {
    /// A run and its status bits.
    pub fn new(run: R, status: Option<&'a [u32]>) -> Self {
        Self { run, status }
    }

    /// The bit of item `i`.
    fn bit(&self, i: usize) -> bool {
        self.status.is_some_and(|words| words[i / 32] >> (i % 32) & 1 != 0)
    }
}

/// What becomes of the first of equal keys if its status bit is set.
#[derive(Debug)]
pub enum Marked<'a> {
    /// A marked item is dropped as well: nothing is left of the key.
    Dropped,
    /// A marked item is kept, and its bit goes here: a word for each 32 items of all runs. Bits of what is not written
    /// are clear.
    Kept(&'a mut [u32]),
}

/// How many items of each run are among the first `rank` of the merge.
fn split<K: SortKey>(runs: &[&[K]], rank: usize, mask: KeyMask<K>) -> Vec<usize> {
    let mut low = vec![0; runs.len()];
    let mut high: Vec<usize> = runs.iter().map(|run| run.len()).collect();
    // Halves the widest of the ranges in which the split may be, until its place in each is known.
    while let Some(widest) = (0..runs.len()).filter(|&r| low[r] < high[r]).max_by_key(|&r| high[r] - low[r]) {
        let place = low[widest] + (high[widest] - low[widest]) / 2;
        let pivot = mask.of(runs[widest][place]);
        let before = |r: usize| {
            let range = &runs[r][low[r]..high[r]];
            match r.cmp(&widest) {
                std::cmp::Ordering::Less => low[r] + range.partition_point(|&key| mask.of(key) <= pivot),
                std::cmp::Ordering::Equal => place,
                std::cmp::Ordering::Greater => low[r] + range.partition_point(|&key| mask.of(key) < pivot),
            }
        };
        let splits: Vec<usize> = (0..runs.len()).map(before).collect();
        if splits.iter().sum::<usize>() < rank {
            low = splits;
            low[widest] += 1;
        } else {
            high = splits;
        }
        if low.iter().sum::<usize>() == rank {
            return low;
        }
    }
    low
}

/// The next item of each run, ordered: a tree in which each place holds the loser of two, and the winner stands apart.
struct Heads<'a, K> {
    runs: &'a [&'a [K]],
    mask: KeyMask<K>,
    at: Vec<usize>,
    /// Losers, of which place 0 is the winner: whether a run has ended, its compared part, its number.
    tree: Vec<(bool, K, usize)>,
}

impl<'a, K: SortKey> Heads<'a, K> {
    fn new(runs: &'a [&'a [K]], at: Vec<usize>, mask: KeyMask<K>) -> Self {
        let leaves = runs.len().next_power_of_two();
        let mut heads = Heads { runs, mask, at, tree: vec![(true, K::from_bits(0), usize::MAX); leaves] };
        // Winners of all subtrees, from the leaves up.
        let mut winners: Vec<_> = (0..leaves).map(|r| heads.head(r)).collect();
        let mut width = leaves;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                let (a, b) = (winners[2 * i], winners[2 * i + 1]);
                winners[i] = a.min(b);
                heads.tree[width + i] = a.max(b);
            }
        }
        heads.tree[0] = winners[0];
        heads
    }

    fn head(&self, r: usize) -> (bool, K, usize) {
        match self.runs.get(r).and_then(|run| run.get(self.at[r])) {
            Some(&key) => (false, self.mask.of(key), r),
            None => (true, K::from_bits(0), r),
        }
    }

    /// The next item: its run and its place there.
    fn next(&mut self) -> (usize, usize) {
        let (_, _, run) = self.tree[0];
        let place = self.at[run];
        self.at[run] += 1;
        let mut winner = self.head(run);
        let mut node = (self.tree.len() + run) / 2;
        while node > 0 {
            if self.tree[node] < winner {
                std::mem::swap(&mut self.tree[node], &mut winner);
            }
            node /= 2;
        }
        self.tree[0] = winner;
        (run, place)
    }
}

fn keys_of<'a, R: Copy, K: 'a>(runs: &[WithStatus<'a, R>], keys: impl Fn(R) -> &'a [K]) -> Vec<&'a [K]> {
    runs.iter().map(|run| keys(run.run)).collect()
}

/// There are as many words as the bits of each run take.
fn check_words<R>(runs: &[WithStatus<'_, R>], len: impl Fn(&R) -> usize) -> Result<()> {
    runs.iter().try_for_each(|run| {
        let status = run.status.map(|words| words.len());
        status.map_or(Ok(()), |words| same_len("words of a run's status bits", len(&run.run).div_ceil(32), words))
    })
}

/// Merges sorted runs of keys with status bits into `out` and `out_status`, in whole words: see
/// [`merge_many_keys`](super::merge_many_keys).
///
/// # Errors
/// The errors of [`merge_many_keys`](super::merge_many_keys); [`LengthMismatch`](crate::Error::LengthMismatch) unless
/// there are as many words as the bits take, in the runs that have bits and merged.
pub fn merge_many_keys_with_status<K: SortKey>(
    runs: &[WithStatus<'_, &[K]>],
    mask: KeyMask<K>,
    out: &mut [K],
    out_status: &mut [u32],
) -> Result<()> {
    check_words(runs, |run| run.len())?;
    let keys = keys_of(runs, |run| run);
    same_len("merged keys", keys.iter().map(|run| run.len()).sum(), out.len())?;
    same_len("words of merged status bits", out.len().div_ceil(32), out_status.len())?;
    let parts = out.chunks_mut(PART).zip(out_status.chunks_mut(PART / 32));
    parallel::for_each(parts.enumerate(), |(part, (out, status))| {
        let mut heads = Heads::new(&keys, split(&keys, part * PART, mask), mask);
        status.fill(0);
        for (i, out) in out.iter_mut().enumerate() {
            let (run, place) = heads.next();
            *out = keys[run][place];
            status[i / 32] |= u32::from(runs[run].bit(place)) << (i % 32);
        }
    });
    Ok(())
}

/// [`merge_many_keys_with_status`] of keys with values.
///
/// # Errors
/// The errors of [`merge_many_keys_with_status`]; [`LengthMismatch`](crate::Error::LengthMismatch) unless there are as
/// many values as keys, in the runs and merged.
pub fn merge_many_pairs_with_status<K: SortKey, V: Payload>(
    runs: &[WithStatus<'_, (&[K], &[V])>],
    mask: KeyMask<K>,
    out_keys: &mut [K],
    out_values: &mut [V],
    out_status: &mut [u32],
) -> Result<()> {
    check_words(runs, |run| run.0.len())?;
    runs.iter().try_for_each(|run| same_len("values of a run", run.run.0.len(), run.run.1.len()))?;
    let keys = keys_of(runs, |run| run.0);
    same_len("merged keys", keys.iter().map(|run| run.len()).sum(), out_keys.len())?;
    same_len("merged values", out_keys.len(), out_values.len())?;
    same_len("words of merged status bits", out_keys.len().div_ceil(32), out_status.len())?;
    let parts = out_keys.chunks_mut(PART).zip(out_values.chunks_mut(PART));
    let parts = parts.zip(out_status.chunks_mut(PART / 32));
    parallel::for_each(parts.enumerate(), |(part, ((out, values), status))| {
        let mut heads = Heads::new(&keys, split(&keys, part * PART, mask), mask);
        status.fill(0);
        for (i, (out, value)) in out.iter_mut().zip(values).enumerate() {
            let (run, place) = heads.next();
            (*out, *value) = (keys[run][place], runs[run].run.1[place]);
            status[i / 32] |= u32::from(runs[run].bit(place)) << (i % 32);
        }
    });
    Ok(())
}

/// What a part keeps: run and place of each item, and their bits.
struct Kept {
    items: Vec<(u32, usize)>,
}

/// The newest items of each part.
fn newest<K: SortKey, R: Copy + Sync>(
    runs: &[WithStatus<'_, R>],
    keys: &[&[K]],
    mask: KeyMask<K>,
    keep_marked: bool,
) -> Vec<Kept> {
    let total: usize = keys.iter().map(|run| run.len()).sum();
    let part_of = |part: usize| {
        let at = split(keys, part * PART, mask);
        // The greatest item before the part.
        let before = keys.iter().zip(&at).filter(|(_, at)| **at > 0).map(|(run, at)| mask.of(run[at - 1]));
        let mut last = before.max();
        let mut heads = Heads::new(keys, at, mask);
        let mut items = Vec::new();
        for _ in part * PART..total.min((part + 1) * PART) {
            let (run, place) = heads.next();
            let key = mask.of(keys[run][place]);
            let first = last != Some(key);
            last = Some(key);
            if first && (keep_marked || !runs[run].bit(place)) {
                items.push((run as u32, place));
            }
        }
        Kept { items }
    };
    parallel::map(0..total.div_ceil(PART), part_of)
}

/// Writes the bits of what was kept.
fn write_status<R>(runs: &[WithStatus<'_, R>], kept: &[Kept], out: &mut [u32]) {
    out.fill(0);
    let items = kept.iter().flat_map(|part| &part.items);
    for (i, &(run, place)) in items.enumerate() {
        out[i / 32] |= u32::from(runs[run as usize].bit(place)) << (i % 32);
    }
}

/// Cuts `out` into the places of each part's items.
fn cut<'a, T>(mut out: &'a mut [T], kept: &[Kept]) -> Vec<&'a mut [T]> {
    kept.iter()
        .map(|part| {
            let (first, rest) = std::mem::take(&mut out).split_at_mut(part.items.len());
            out = rest;
            first
        })
        .collect()
}

/// Merges sorted runs of keys into `out` without what is stale: of equal keys the first is kept alone, that of the
/// earliest run that has the key, and it too is dropped if its status bit is set, unless `marked` says otherwise.
/// Returns how many are kept. Takes 16 bytes of scratch for each of them.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) if `out` or the memory for status bits is shorter than all runs
/// are, or a run's bitmap is not as long as its bits take.
pub fn merge_newest_keys<K: SortKey>(
    runs: &[WithStatus<'_, &[K]>],
    mask: KeyMask<K>,
    marked: Marked<'_>,
    out: &mut [K],
) -> Result<usize> {
    check_words(runs, |run| run.len())?;
    let keys = keys_of(runs, |run| run);
    let total = keys.iter().map(|run| run.len()).sum::<usize>();
    check_len("kept keys", total, out.len())?;
    let kept = kept_of(runs, &keys, mask, marked, total)?;
    parallel::for_each(kept.iter().zip(cut(out, &kept)), |(part, out)| {
        for (&(run, place), out) in part.items.iter().zip(out) {
            *out = keys[run as usize][place];
        }
    });
    Ok(kept.iter().map(|part| part.items.len()).sum())
}

/// [`merge_newest_keys`] of keys with values.
///
/// # Errors
/// The errors of [`merge_newest_keys`]; [`LengthMismatch`](crate::Error::LengthMismatch) unless there are as many
/// values as keys.
pub fn merge_newest_pairs<K: SortKey, V: Payload>(
    runs: &[WithStatus<'_, (&[K], &[V])>],
    mask: KeyMask<K>,
    marked: Marked<'_>,
    out_keys: &mut [K],
    out_values: &mut [V],
) -> Result<usize> {
    check_words(runs, |run| run.0.len())?;
    runs.iter().try_for_each(|run| same_len("values of a run", run.run.0.len(), run.run.1.len()))?;
    let keys = keys_of(runs, |run| run.0);
    let total = keys.iter().map(|run| run.len()).sum::<usize>();
    check_len("kept keys", total, out_keys.len())?;
    check_len("kept values", total, out_values.len())?;
    let kept = kept_of(runs, &keys, mask, marked, total)?;
    let outputs = cut(out_keys, &kept).into_iter().zip(cut(out_values, &kept));
    parallel::for_each(kept.iter().zip(outputs), |(part, (out, values))| {
        for ((&(run, place), out), value) in part.items.iter().zip(out).zip(values) {
            (*out, *value) = (keys[run as usize][place], runs[run as usize].run.1[place]);
        }
    });
    Ok(kept.iter().map(|part| part.items.len()).sum())
}

fn kept_of<K: SortKey, R: Copy + Sync>(
    runs: &[WithStatus<'_, R>],
    keys: &[&[K]],
    mask: KeyMask<K>,
    marked: Marked<'_>,
    total: usize,
) -> Result<Vec<Kept>> {
    match marked {
        Marked::Dropped => Ok(newest(runs, keys, mask, false)),
        Marked::Kept(out) => {
            check_len("words of kept status bits", total.div_ceil(32), out.len())?;
            let kept = newest(runs, keys, mask, true);
            write_status(runs, &kept, out);
            Ok(kept)
        }
    }
}

/// Merges sorted runs of keys into `out`.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) unless `out` is as long as all runs.
pub fn merge_many_keys<K: SortKey>(runs: &[&[K]], mask: KeyMask<K>, out: &mut [K]) -> Result<()> {
    same_len("merged keys", runs.iter().map(|run| run.len()).sum(), out.len())?;
    if let [a, b] = *runs {
        return super::merge_keys(a, b, mask, out);
    }
    parallel::for_each(out.chunks_mut(PART).enumerate(), |(part, out)| {
        let mut heads = Heads::new(runs, split(runs, part * PART, mask), mask);
        for out in out {
            let (run, place) = heads.next();
            *out = runs[run][place];
        }
    });
    Ok(())
}

/// Merges sorted runs of keys with values into `out_keys` and `out_values`.
///
/// # Errors
/// The errors of [`merge_many_keys`]; there are as many values as keys, in the runs and merged.
pub fn merge_many_pairs<K: SortKey, V: Payload>(
    runs: &[(&[K], &[V])],
    mask: KeyMask<K>,
    out_keys: &mut [K],
    out_values: &mut [V],
) -> Result<()> {
    same_len("merged keys", runs.iter().map(|run| run.0.len()).sum(), out_keys.len())?;
    same_len("merged values", out_keys.len(), out_values.len())?;
    runs.iter().try_for_each(|run| same_len("values of a run", run.0.len(), run.1.len()))?;
    if let [a, b] = *runs {
        return super::merge_pairs(a, b, mask, out_keys, out_values);
    }
    let keys: Vec<&[K]> = runs.iter().map(|run| run.0).collect();
    let parts = out_keys.chunks_mut(PART).zip(out_values.chunks_mut(PART));
    parallel::for_each(parts.enumerate(), |(part, (out, values))| {
        let mut heads = Heads::new(&keys, split(&keys, part * PART, mask), mask);
        for (out, value) in out.iter_mut().zip(values) {
            let (run, place) = heads.next();
            (*out, *value) = (keys[run][place], runs[run].1[place]);
        }
    });
    Ok(())
}

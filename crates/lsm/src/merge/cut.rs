//! Cuts of runs into parts that tasks merge independently.
//!
//! Every run gives samples at equal distances `d`. All samples are sorted, and every `s`-th one is a border between two
//! parts. A part then has at most `(s + r) d` elements for `r` runs, where `s d` are intended.

use warpset_base::parallel;

use crate::run::Run;
use crate::{OrderedKey, Value};

/// Samples per part.
const SAMPLES: usize = 8;

/// Place in each run.
#[derive(Clone, Default)]
pub(crate) struct Cut(Vec<usize>);

impl Cut {
    /// Returns the number of elements before the cut.
    pub(crate) fn total(&self) -> usize {
        self.0.iter().sum()
    }
}

/// Sampled element: its key, its run and its place there. The order of these tuples is the order of merging.
type Sample<K> = (K, usize, usize);

/// Returns the samples at the borders of about `parts` parts.
fn borders<K: OrderedKey, V: Value>(runs: &[Run<'_, K, V>], parts: usize) -> Vec<Sample<K>> {
    let len: usize = runs.iter().map(Run::len).sum();
    let step = (len / (parts.max(1) * SAMPLES)).max(1);
    if parts <= 1 {
        return Vec::new();
    }
    let mut samples: Vec<Sample<K>> = Vec::with_capacity(len / step);
    for (run, elements) in runs.iter().enumerate() {
        samples.extend((step - 1..elements.len()).step_by(step).map(|place| (elements.keys[place], run, place)));
    }
    samples.sort_unstable();
    samples.into_iter().skip(SAMPLES - 1).step_by(SAMPLES).collect()
}

fn with_ends<K: OrderedKey, V: Value>(runs: &[Run<'_, K, V>], between: Vec<Cut>) -> Vec<Cut> {
    let mut cuts = vec![Cut(vec![0; runs.len()])];
    cuts.extend(between);
    cuts.push(Cut(runs.iter().map(Run::len).collect()));
    // In unsorted runs, as in a damaged file that was opened unverified, a place may be before that of the previous
    // cut.
    for i in 1..cuts.len() {
        let (before, after) = cuts.split_at_mut(i);
        after[0].0.iter_mut().zip(&before[i - 1].0).for_each(|(place, &least)| *place = (*place).max(least));
    }
    cuts
}

/// Cuts between any two elements that are consecutive in the merge.
pub(crate) fn by_rank<K: OrderedKey, V: Value>(runs: &[Run<'_, K, V>], parts: usize) -> Vec<Cut> {
    let borders = borders(runs, parts);
    let cut = |(key, from, place): Sample<K>| {
        let place_in = |(run, elements): (usize, &Run<'_, K, V>)| match run.cmp(&from) {
            std::cmp::Ordering::Less => elements.upper_bound(key),
            std::cmp::Ordering::Equal => place,
            std::cmp::Ordering::Greater => elements.lower_bound(key),
        };
        Cut(runs.iter().enumerate().map(place_in).collect())
    };
    with_ends(runs, parallel::map(borders, cut))
}

/// Cuts between different keys only: all elements of a key are in one part.
pub(crate) fn by_key<K: OrderedKey, V: Value>(runs: &[Run<'_, K, V>], parts: usize) -> Vec<Cut> {
    let mut borders = borders(runs, parts);
    borders.dedup_by_key(|&mut (key, ..)| key);
    let cut = |(key, ..): Sample<K>| Cut(runs.iter().map(|run| run.lower_bound(key)).collect());
    with_ends(runs, parallel::map(borders, cut))
}

/// Returns the pieces of the runs between two consecutive cuts, without empty ones.
pub(crate) fn parts<'a, K: OrderedKey, V: Value>(
    runs: &'a [Run<'a, K, V>],
    cuts: &'a [Cut],
) -> impl Iterator<Item = Vec<Run<'a, K, V>>> {
    cuts.windows(2).map(move |ends| {
        let places = ends[0].0.iter().zip(&ends[1].0);
        let pieces = runs.iter().zip(places).map(|(run, (&begin, &end))| run.slice(begin..end));
        pieces.filter(|piece| !piece.is_empty()).collect()
    })
}

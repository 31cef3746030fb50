//! Implicit search tree over sorted keys, with nodes of one cache line.
//!
//! ```text
//! tier 0     k0                      kC                        first keys of nodes of tier 1, C = B * B
//! tier 1     k0   kB    k2B   ...    kC   kC+B  ...            first keys of nodes of `keys`
//! keys       k0 k1 ... | kB ... | k2B ... |                    B keys per node
//! ```
//!
//! A search compares one node per tier and descends into the last child whose first key is below the search key. It
//! reads one cache line per tier, where halving reads one per step: 6 instead of about 20 for 2^24 keys of 4 bytes. The
//! tiers take 1 / (B - 1) of the memory of the keys.
//!
//! Source: Kim et al., "FAST: Fast Architecture Sensitive Tree Search on Modern CPUs and GPUs", SIGMOD 2010; nodes of
//! 16 keys.

use warpset_base::processor::prefetch;
use warpset_base::words::AlignedWords;

use super::node::{Compare, Portable, by_best, node};
use crate::OrderedKey;

/// Tiers above the keys.
pub(crate) struct SearchTree<K> {
    /// Tiers, the coarsest first; each is filled up to whole nodes with the largest key.
    tiers: Vec<AlignedWords<K>>,
}

impl<K: OrderedKey> SearchTree<K> {
    /// Builds the tree over these keys. Without memory for a tier there are no tiers, and searches halve.
    pub(crate) fn new(keys: &[K]) -> SearchTree<K> {
        let mut tiers = Vec::new();
        let mut stride = node::<K>();
        while keys.len() > stride {
            let len = keys.len().div_ceil(stride);
            let Ok(mut tier) = AlignedWords::<K>::zeroed(len.next_multiple_of(node::<K>()) as u64) else {
                return SearchTree { tiers: Vec::new() };
            };
            let (first, padding) = tier.as_mut_slice().split_at_mut(len);
            first.iter_mut().zip(keys.iter().step_by(stride)).for_each(|(fence, &key)| *fence = key);
            padding.fill(K::MAX);
            tiers.push(tier);
            stride *= node::<K>();
        }
        tiers.reverse();
        SearchTree { tiers }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.tiers.iter().map(|tier| size_of_val(tier.as_slice()) as u64).sum()
    }

    /// Counts the keys below `key`.
    pub(crate) fn lower_bound(&self, keys: &[K], key: K) -> usize {
        self.lower_bound_ahead(keys, key, |_| {})
    }

    /// Counts as [`SearchTree::lower_bound`] does, and calls `ahead` with the start of the last node before waiting for
    /// the keys there.
    #[inline]
    pub(crate) fn lower_bound_ahead(&self, keys: &[K], key: K, ahead: impl FnOnce(usize)) -> usize {
        by_best!(|by| self.lower_bound_by(by, keys, key, ahead))
    }

    #[inline(always)]
    fn lower_bound_by(&self, by: impl Compare, keys: &[K], key: K, ahead: impl FnOnce(usize)) -> usize {
        if self.tiers.is_empty() && keys.len() > node::<K>() {
            return keys.partition_point(|&other| other < key);
        }
        let mut place = 0;
        for tier in &self.tiers {
            let first = place * node::<K>();
            place = (first + by.count_below(&tier.as_slice()[first..first + node::<K>()], key)).saturating_sub(1);
        }
        prefetch(keys, place * node::<K>());
        ahead(place * node::<K>());
        in_last_node(by, keys, place, key)
    }

    /// Writes to `places` the number of keys below each of `asked` in each level. All searches descend together and
    /// reach their keys in the same step, so that their memory accesses overlap. A level without a tree is halved.
    pub(crate) fn lower_bounds_in_all<const ASKED: usize>(
        levels: &[(&[K], Option<&SearchTree<K>>)],
        asked: [K; ASKED],
        places: &mut [[usize; ASKED]],
    ) {
        by_best!(|by| Self::lower_bounds_in_all_by(by, levels, asked, places));
    }

    #[inline(always)]
    fn lower_bounds_in_all_by<const ASKED: usize>(
        by: impl Compare,
        levels: &[(&[K], Option<&SearchTree<K>>)],
        asked: [K; ASKED],
        places: &mut [[usize; ASKED]],
    ) {
        let tiers = |tree: Option<&SearchTree<K>>| tree.map_or(0, |tree| tree.tiers.len());
        let deepest = levels.iter().map(|&(_, tree)| tiers(tree)).max().unwrap_or(0);
        places.fill([0; ASKED]);
        for left in (1..=deepest).rev() {
            for (places, &(keys, tree)) in places.iter_mut().zip(levels) {
                let Some(tree) = tree.filter(|tree| tree.tiers.len() >= left) else { continue };
                let at = tree.tiers.len() - left;
                let (tier, next) =
                    (tree.tiers[at].as_slice(), tree.tiers.get(at + 1).map_or(keys, AlignedWords::as_slice));
                for (place, &key) in places.iter_mut().zip(&asked) {
                    *place = down(by, tier, next, *place, key);
                }
            }
        }
        for (places, &(keys, tree)) in places.iter_mut().zip(levels) {
            for (place, &key) in places.iter_mut().zip(&asked) {
                *place = match tiers(tree) {
                    0 => keys.partition_point(|&other| other < key),
                    _ => in_last_node(by, keys, *place, key),
                };
            }
        }
    }

    /// Counts the keys below each of `asked`. All searches descend together, so that their memory accesses overlap.
    #[inline(always)]
    pub(crate) fn lower_bounds_by(&self, by: impl Compare, keys: &[K], asked: &[K], places: &mut [usize]) {
        let places = &mut places[..asked.len()];
        if self.tiers.is_empty() && keys.len() > node::<K>() {
            for (place, &key) in places.iter_mut().zip(asked) {
                *place = keys.partition_point(|&other| other < key);
            }
            return;
        }
        places.fill(0);
        let below = self.tiers.iter().skip(1).map(AlignedWords::as_slice).chain([keys]);
        for (tier, next) in self.tiers.iter().zip(below) {
            for (place, &key) in places.iter_mut().zip(asked) {
                *place = down(by, tier.as_slice(), next, *place, key);
            }
        }
        for (place, &key) in places.iter_mut().zip(asked) {
            *place = in_last_node(by, keys, *place, key);
        }
    }
}

/// Descends from a node of one tier to a node of the next, which is prefetched.
#[inline(always)]
fn down<K: OrderedKey>(by: impl Compare, tier: &[K], next: &[K], place: usize, key: K) -> usize {
    // Except for the leftmost nodes, the first key of the child is below `key`.
    let first = place * node::<K>();
    let place = (first + by.count_below(&tier[first..first + node::<K>()], key)).saturating_sub(1);
    prefetch(next, place * node::<K>());
    place
}

/// Counts the keys below `key`, given that the count falls into this node or just after it.
#[inline(always)]
fn in_last_node<K: OrderedKey>(by: impl Compare, keys: &[K], place: usize, key: K) -> usize {
    let first = place * node::<K>();
    match keys.get(first..first + node::<K>()) {
        Some(whole) => first + by.count_below(whole, key),
        None => first + Portable.count_below(&keys[first..], key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees<K: OrderedKey>(keys: &[K], asked: &[K]) {
        let tree = SearchTree::new(keys);
        let mut places = vec![0; asked.len()];
        by_best!(|by| tree.lower_bounds_by(by, keys, asked, &mut places));
        for (&key, place) in asked.iter().zip(places) {
            assert_eq!(place, keys.partition_point(|&other| other < key), "{key:?} among {}", keys.len());
        }
        // Levels with trees of different heights, some without a tree.
        let parts = [&keys[..keys.len() / 20], keys, &keys[..keys.len() / 3], &keys[..keys.len() / 300]];
        let built = parts.map(SearchTree::new);
        let levels: Vec<_> = (0..4).map(|i| (parts[i], (i != 2).then_some(&built[i]))).collect();
        let mut places = [[7; 2]; 4];
        for &key in asked.iter().step_by(asked.len().div_ceil(500).max(1)) {
            let both = [key, asked[asked.len() / 2]];
            SearchTree::lower_bounds_in_all(&levels, both, &mut places);
            let expected = parts.map(|keys| both.map(|key| keys.partition_point(|&other| other < key)));
            assert_eq!(places, expected, "{both:?}");
        }
    }

    #[test]
    fn every_place_around_the_borders_of_nodes() {
        let lens = [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 128, 129, 255, 256, 257, 4095, 4096, 4097, 5000];
        for len in lens.into_iter().filter(|&len| !cfg!(miri) || [1, 9, 17].contains(&len)) {
            let keys: Vec<u32> = (0..len).map(|i| 3 * i + 1).collect();
            let asked: Vec<u32> = (0..3 * len + 5).chain([u32::MAX]).collect();
            agrees(&keys, &asked);
            agrees(&keys.iter().map(|&k| k.into()).collect::<Vec<u64>>(), &[0, 1, 2, 3 * u64::from(len), u64::MAX]);
        }
        for equal in [0, 5, u32::MAX] {
            agrees(&vec![equal; if cfg!(miri) { 40 } else { 1000 }], &[0, 4, 5, 6, u32::MAX - 1, u32::MAX]);
        }
        let half = if cfg!(miri) { 15 } else { 150 };
        let ends: Vec<u64> = (0..2 * half).map(|i| if i < half { 0 } else { u64::MAX }).collect();
        agrees(&ends, &[0, 1, u64::MAX - 1, u64::MAX]);
    }
}

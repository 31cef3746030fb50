//! Lists of nodes, and their lengths.
//!
//! A list has the nodes of one level and one search method; leaves have a list per number of keys. So a launch has one
//! start seed and one kind of work. The length of each list follows from the sizes of the buckets.

use crate::recsplit::find::Trees;
use warpset_core::recsplit::Level;
use warpset_kernels::recsplit::nodes::{HIGHER, NO_LIST};

/// Search method of a list's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Splittings in two.
    Binary,
    /// Splittings in more parts, with rotation of groups.
    Rotated,
    /// Splittings in more parts by brute force.
    Packed,
    /// Leaves of this many keys.
    Leaves(u32),
}

/// A list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub level: Level,
    /// Nodes of the higher levels above: 0 except on those levels.
    pub depth: u32,
    pub search: Search,
    /// Keys of its largest node at most.
    pub most_keys: u32,
}

/// All lists of trees, in the order of their searches.
#[derive(Debug)]
pub(super) struct Lists {
    lists: Vec<List>,
    /// By number of keys: the list, [`NO_LIST`] or [`HIGHER`].
    of_size: Vec<u32>,
}

impl Lists {
    pub(super) fn of(trees: &Trees) -> Self {
        let nodes = trees.nodes();
        let shape = &trees.shape;
        let largest = nodes.len() as u32 - 1;
        let mut lists = Vec::new();
        // The largest nodes of each depth.
        let mut keys = largest;
        while shape.level(keys) == Level::Higher {
            let depth = lists.len() as u32;
            lists.push(List { level: Level::Higher, depth, search: Search::Binary, most_keys: keys });
            // A child has half of the keys, and at most half a node of the second level more.
            keys = (keys / 2 + shape.second_unit() / 2 + 1).min(keys - 1);
        }
        let mut of_size = vec![NO_LIST; nodes.len()];
        let mut add = |level, search, keys: u32| {
            let same = |list: &List| list.level == level && list.search == search;
            let place = lists.iter().position(same).unwrap_or_else(|| {
                lists.push(List { level, depth: 0, search, most_keys: keys });
                lists.len() - 1
            });
            lists[place].most_keys = lists[place].most_keys.max(keys);
            place as u32
        };
        // From the second level down, so that the order of lists is that of the work.
        for keys in (0..=largest).rev() {
            let node = &nodes[keys as usize];
            let level = shape.level(keys);
            of_size[keys as usize] = match level {
                _ if node.nodes == 0 => NO_LIST,
                Level::Higher => HIGHER,
                Level::Leaf => add(level, Search::Leaves(keys), keys),
                _ if node.fanout == 2 => add(level, Search::Binary, keys),
                _ if node.groups > 1 => add(level, Search::Rotated, keys),
                _ => add(level, Search::Packed, keys),
            };
        }
        Self { lists, of_size }
    }

    pub(super) fn all(&self) -> &[List] {
        &self.lists
    }

    /// Returns the list of each size.
    pub(super) fn of_size(&self) -> &[u32] {
        &self.of_size
    }

    /// Returns the expected hashes of each list of this length, estimated from its largest nodes.
    pub(super) fn works(&self, trees: &Trees, lengths: &[u64]) -> Vec<f64> {
        let work = |(list, &count): (&List, &u64)| {
            // A budget is 64 times the expected trials, and 64 more.
            (count * u64::from(list.most_keys)) as f64 * (trees.budgets[list.most_keys as usize] / 64) as f64
        };
        self.lists.iter().zip(lengths).map(work).collect()
    }

    /// Returns the length of each list for `buckets[k]` buckets of `k` keys.
    pub(super) fn lengths(&self, trees: &Trees, buckets: &[u32]) -> Vec<u64> {
        let nodes = trees.nodes();
        let mut lengths = vec![0; self.lists.len()];
        // Nodes of one depth by size, and all nodes below the higher levels.
        let mut at_depth: Vec<u64> = buckets.iter().map(|&count| count.into()).collect();
        let mut below = vec![0; nodes.len()];
        let mut depth = 0;
        while at_depth.iter().any(|&count| count > 0) {
            let mut deeper = vec![0; nodes.len()];
            for (keys, &count) in at_depth.iter().enumerate().filter(|(_, count)| **count > 0) {
                if self.of_size[keys] == HIGHER {
                    let unit = usize::from(nodes[keys].unit);
                    lengths[depth] += count;
                    deeper[unit] += count;
                    deeper[keys - unit] += count;
                } else {
                    below[keys] += count;
                }
            }
            at_depth = deeper;
            depth += 1;
        }
        for keys in (0..nodes.len()).rev() {
            let (count, node) = (below[keys], &nodes[keys]);
            if count == 0 || self.of_size[keys] == NO_LIST {
                continue;
            }
            lengths[self.of_size[keys] as usize] += count;
            if node.fanout > 0 {
                let (full, unit) = (usize::from(node.fanout) - 1, usize::from(node.unit));
                below[unit] += count * full as u64;
                below[keys - full * unit] += count;
            }
        }
        lengths
    }
}

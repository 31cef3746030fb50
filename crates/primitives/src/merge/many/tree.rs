//! Order in which the parts of a tile are merged, neighbours with neighbours.
//!
//! An item is merged once per level of the tree above its run, and each level costs a round in which blocks wait. So
//! short runs are merged with each other first, and long ones last. The levels of an LSM dictionary, each twice as long
//! as the previous one, take about two merges per item, independent of their number.

use warpset_kernels::primitives::merge_many::runs::{RUNS, node};

/// Tree of merges over runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Merges, the deepest first.
    pub(crate) nodes: [u32; RUNS],
    /// Bit per run, set if the run's depth is odd.
    pub(crate) odd: u32,
    /// Depth of the deepest run.
    pub(crate) rounds: u32,
}

/// Cost of a round, in hundredths of merging all items once.
const ROUND_COST: usize = 15;
/// Number of depths that are tried beyond the least.
const DEEPER: u32 = 3;

struct Draft<'a> {
    /// Prefix sums of the lengths: `sums[r]` is the number of items before run `r`.
    sums: &'a [usize],
    nodes: Vec<u32>,
    depths: [u32; RUNS],
}

impl Draft<'_> {
    /// Cuts the runs in `begin..end`, which may be at most `left` merges deep, into halves of nearly equal length.
    fn cut(&mut self, begin: usize, end: usize, depth: u32, left: u32) {
        if end - begin == 1 {
            self.depths[begin] = depth;
            return;
        }
        let most = 1 << (left - 1);
        let unequal = |m: usize| (2 * self.sums[m]).abs_diff(self.sums[begin] + self.sums[end]);
        let middles = (begin + 1).max(end.saturating_sub(most))..=(end - 1).min(begin + most);
        let middle = middles.min_by_key(|&m| unequal(m)).expect("2^left runs at most");
        self.nodes.push(node(begin as u32, middle as u32, end as u32, depth));
        self.cut(begin, middle, depth + 1, left - 1);
        self.cut(middle, end, depth + 1, left - 1);
    }
}

impl Tree {
    /// Returns a tree over 1 to [`RUNS`] runs of these lengths.
    pub(crate) fn new(lengths: &[usize]) -> Tree {
        let mut sums = vec![0];
        sums.extend(lengths.iter().scan(0, |sum, len| {
            *sum += len;
            Some(*sum)
        }));
        let total = sums[lengths.len()];
        let least = lengths.len().next_power_of_two().trailing_zeros();
        let drafts = (least..=least + DEEPER).map(|most| {
            let mut draft = Draft { sums: &sums, nodes: Vec::new(), depths: [0; RUNS] };
            draft.cut(0, lengths.len(), 0, most);
            let rounds = draft.depths.iter().copied().max().unwrap_or(0);
            let items: usize = lengths.iter().zip(draft.depths).map(|(len, depth)| len * depth as usize).sum();
            (items + total / 100 * ROUND_COST * rounds as usize, rounds, draft)
        });
        let (_, rounds, mut draft) = drafts.min_by_key(|&(cost, ..)| cost).expect("several");
        draft.nodes.sort_by_key(|node| std::cmp::Reverse(node >> 24));
        let mut nodes = [0; RUNS];
        nodes[..draft.nodes.len()].copy_from_slice(&draft.nodes);
        let odd = (0..RUNS).fold(0, |odd, r| odd | (draft.depths[r] & 1) << r);
        Tree { nodes, odd, rounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the depth of each run.
    fn depths(lengths: &[usize]) -> Vec<u32> {
        let tree = Tree::new(lengths);
        let mut depths = vec![0; lengths.len()];
        for node in tree.nodes.iter().copied().filter(|&node| node != 0) {
            let (first, middle, end) = (node & 0xff, node >> 8 & 0xff, node >> 16 & 0xff);
            assert!(first < middle && middle < end && end as usize <= lengths.len());
            (first..end).for_each(|r| depths[r as usize] += 1);
        }
        assert_eq!(depths.iter().max(), Some(&tree.rounds));
        for (r, depth) in depths.iter().enumerate() {
            assert_eq!(tree.odd >> r & 1, depth & 1);
        }
        depths
    }

    #[test]
    fn equal_runs_are_merged_equally_often() {
        assert_eq!(depths(&[7]), [0]);
        assert_eq!(depths(&[1000; 8]), [3; 8]);
        assert_eq!(depths(&[1000; 32]), [5; 32]);
        assert!(depths(&[1000; 24]).iter().all(|&depth| depth == 4 || depth == 5));
    }

    #[test]
    fn long_runs_are_merged_last() {
        let levels: Vec<usize> = (0..24).map(|level| 64 << level).collect();
        let depths = depths(&levels);
        assert_eq!(depths[22..], [2, 1]);
        let merged: usize = levels.iter().zip(&depths).map(|(len, &depth)| len * depth as usize).sum();
        assert!(10 * merged < 23 * levels.iter().sum::<usize>(), "{merged}");
    }
}

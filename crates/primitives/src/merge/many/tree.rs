//! In which order the parts of a tile are merged, neighbours with neighbours.
//!
//! An item is merged as often as its run is deep in the tree, and each depth costs a round in which blocks wait, so
//! short runs are merged with each other first, and long ones last: the levels of an LSM dictionary, each twice as long
//! as the one before, take two merges per item and not as many as there are levels.

use warpset_kernels::primitives::merge_many::runs::{RUNS, node};

/// A tree over runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Its merges, the deepest first.
    pub(crate) nodes: [u32; RUNS],
    /// A bit for each run that is an odd number of merges deep.
    pub(crate) odd: u32,
    /// How many merges the deepest run takes part in.
    pub(crate) rounds: u32,
}

/// What a round costs, in hundredths of merging all items once.
const ROUND_COST: usize = 15;
/// Depths that are tried beyond the least.
const DEEPER: u32 = 3;

struct Draft<'a> {
    /// Lengths summed up: `sums[r]` are the items of runs before `r`.
    sums: &'a [usize],
    nodes: Vec<u32>,
    depths: [u32; RUNS],
}

impl Draft<'_> {
    /// Cuts the runs from `begin` to before `end`, which may be `left` merges deep, into halves as alike as that
    /// allows.
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
    /// A tree over at least one and at most [`RUNS`] runs of these lengths.
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

    /// Merges that a run takes part in.
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

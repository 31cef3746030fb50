//! Sequential search: one trial at a time, directly from the definition.
//!
//! Source: sections 5.4 (bijections as bit masks, with the midstop of 5.4.1), 5.5 (rotation), 5.6 and 5.7 (splittings
//! by counting). The hash of a key is evaluated once for all candidates of a trial.

use super::node::{NoSolution, NodeSearch, Task};
use warpset_core::recsplit::candidate::child_of_hash;
use warpset_core::recsplit::hash::{self, REGROUP};

/// Sequential search; see the module.
#[derive(Clone, Copy)]
pub(super) struct OneByOne;

impl NodeSearch for OneByOne {
    fn leaf(self, task: &Task) -> Result<u64, NoSolution> {
        leaf_from(task, 0)
    }

    fn splitting(self, task: &Task) -> Result<u64, NoSolution> {
        splitting_from(task, 0)
    }
}

/// Searches a leaf, from a trial on.
pub(super) fn leaf_from(task: &Task, from: u64) -> Result<u64, NoSolution> {
    let keys = task.keys.len() as u32;
    let full = u32::MAX >> (32 - keys);
    let groups = usize::from(task.node.groups);
    let mut sorted = task.keys.to_vec();
    let mut bounds = [0; 8];
    bounds[1] = sorted.len();
    // Midstop of the original implementation: 2 sqrt(m) keys, from 9 keys on.
    let midstop = if keys < 9 { usize::MAX } else { (2.0 * f64::from(keys).sqrt()).ceil() as usize };
    'trials: for trial in from..task.budget {
        if groups > 1 && (trial == from || trial % REGROUP == 0) {
            let multiplier = hash::leaf_group_multiplier(trial);
            let group = |key: u64| hash::leaf_group_of(key, multiplier, groups as u32);
            sorted.sort_unstable_by_key(|&key| group(key));
            for (index, bound) in bounds.iter_mut().enumerate().skip(1) {
                *bound = sorted.partition_point(|&key| group(key) < index as u32);
            }
        }
        if (0..groups).any(|group| bounds[group] == bounds[group + 1]) {
            continue;
        }
        let mut masks = [0_u32; 8];
        let mut done = 0;
        for group in 0..groups {
            for &key in &sorted[bounds[group]..bounds[group + 1]] {
                let hash = hash::trial_hash(task.remix, key, task.start, trial);
                masks[group] |= 1 << hash::leaf_position(hash, task.positions);
                done += 1;
                if done == midstop && groups == 1 && masks[0].count_ones() < midstop as u32 {
                    continue 'trials;
                }
            }
            if (masks[group].count_ones() as usize) < bounds[group + 1] - bounds[group] {
                continue 'trials;
            }
        }
        if groups == 1 {
            return Ok(trial); // as many positions as keys
        }
        let candidates = task.node.candidates;
        for index in 0..candidates {
            let mut union = masks[0];
            let mut digits = index;
            for mask in &masks[1..groups] {
                union |= hash::rotate(*mask, digits % keys, keys);
                digits /= keys;
            }
            if union == full {
                return Ok(trial * u64::from(candidates) + u64::from(index));
            }
        }
    }
    Err(NoSolution)
}

/// Searches a splitting, from a trial on.
pub(super) fn splitting_from(task: &Task, from: u64) -> Result<u64, NoSolution> {
    let node = task.node;
    let bounds = task.group_bounds();
    let (groups, fanout, radix) = (usize::from(node.groups), usize::from(node.fanout), u32::from(node.radix));
    for trial in from..task.budget {
        // counts[group][rotation][child]
        let mut counts = [[[0_u32; 9]; 9]; 8];
        for group in 0..groups {
            let rotations = if group == 0 { 1 } else { radix };
            for &key in &task.keys[bounds[group]..bounds[group + 1]] {
                let hash = hash::trial_hash(task.remix, key, task.start, trial);
                for rotation in 0..rotations {
                    counts[group][rotation as usize][child_of_hash(hash, node, rotation) as usize] += 1;
                }
            }
        }
        for index in 0..node.candidates {
            let mut sums = counts[0][0];
            let mut digits = index;
            for count in &counts[1..groups] {
                for (sum, add) in sums.iter_mut().zip(&count[(digits % radix) as usize]) {
                    *sum += add;
                }
                digits /= radix;
            }
            if sums[..fanout - 1].iter().all(|&sum| sum == u32::from(node.unit)) {
                return Ok(trial * u64::from(node.candidates) + u64::from(index));
            }
        }
    }
    Err(NoSolution)
}

//! Walk from node to node: the trees of consecutive buckets in preorder, on one thread.
//!
//! Source: sections 4.3, 5.7.1 (key redistribution) and 5.8. Departure: redistribution keeps the order of keys within a
//! child, so keys sorted by rotation group in the bucket stay sorted all the way down.

use super::node::{NoSolution, NodeSearch, Task};
use super::{Buckets, SearchFailure, Trees};
use warpset_core::recsplit::candidate::{Candidate, child_of_hash, start_of};
use warpset_core::recsplit::hash;
use warpset_core::recsplit::{Level, Node};

/// Memory reused from bucket to bucket.
#[derive(Default)]
pub struct Scratch {
    moves: Moves,
    /// Pending subtrees of the bucket.
    stack: Vec<Subtree>,
}

/// Memory for moving the keys of a splitting.
#[derive(Default)]
struct Moves {
    keys: Vec<u64>,
    children: Vec<u8>,
}

/// Keys of a subtree within a bucket.
#[derive(Clone, Copy)]
struct Subtree {
    start: u32,
    len: u32,
    /// Nodes of the higher levels above its root.
    depth: u32,
}

/// Nodes to solve.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Nodes of the higher levels above the roots: 0 for whole buckets.
    pub depth: u32,
    /// Whether only the roots are solved, and their keys moved to their children.
    pub roots_only: bool,
}

/// Finds the numbers of all nodes of `buckets`, as far as `extent` goes. One function for both extents: the compiler
/// then sees one caller per search, and inlines it.
#[inline(always)]
pub(super) fn find<S: NodeSearch>(
    search: S,
    trees: &Trees,
    Buckets { keys, bounds }: Buckets,
    Extent { depth, roots_only }: Extent,
    numbers: &mut [u64],
    Scratch { moves, stack }: &mut Scratch,
) -> Result<(), SearchFailure> {
    let nodes = trees.nodes();
    let mut numbers = numbers.iter_mut();
    for (bucket, bounds) in bounds.windows(2).enumerate() {
        let keys = &mut keys[bounds[0] as usize..bounds[1] as usize];
        stack.clear();
        stack.push(Subtree { start: 0, len: keys.len() as u32, depth });
        while let Some(Subtree { start, len, depth }) = stack.pop() {
            let node = &nodes[len as usize];
            if node.nodes == 0 {
                continue;
            }
            let keys = &mut keys[start as usize..(start + len) as usize];
            let number = solve(search, trees, node, keys, depth, moves).map_err(|_| SearchFailure { bucket })?;
            if let Some(place) = numbers.next() {
                *place = number;
            }
            if roots_only {
                break;
            }
            let depth = depth + u32::from(trees.shape.level(len) == Level::Higher);
            let (fanout, unit) = (u32::from(node.fanout), u32::from(node.unit));
            for child in (0..fanout).rev() {
                let at = child * unit;
                let len = if child + 1 == fanout { len - at } else { unit };
                if len > 1 {
                    stack.push(Subtree { start: start + at, len, depth });
                }
            }
        }
    }
    Ok(())
}

/// Finds the number of a node, and moves its keys to its children.
#[inline(always)]
fn solve<S: NodeSearch>(
    search: S,
    trees: &Trees,
    node: &Node,
    keys: &mut [u64],
    depth: u32,
    moves: &mut Moves,
) -> Result<u64, NoSolution> {
    let len = keys.len() as u32;
    let task = Task {
        keys,
        node,
        positions: trees.shape.leaf_positions(len),
        start: start_of(&trees.shape, len, depth),
        remix: trees.remix,
        budget: trees.budgets[len as usize],
    };
    if node.fanout == 0 {
        return search.leaf(&task);
    }
    let (number, start) = (search.splitting(&task)?, task.start);
    distribute(trees, node, start, number, keys, moves);
    Ok(number)
}

/// Moves the keys of a splitting to their children.
#[inline(always)]
fn distribute(trees: &Trees, node: &Node, start: u32, number: u64, keys: &mut [u64], moves: &mut Moves) {
    let Moves { keys: other, children } = moves;
    let candidate = Candidate::of(number, node);
    let groups = u32::from(node.groups);
    // The children of all keys first: this loop becomes vectors.
    children.clear();
    let mut from = 0;
    for group in 0..groups {
        let to = match group + 1 == groups {
            true => keys.len(),
            false => from + keys[from..].partition_point(|&key| hash::group_of(key, groups) <= group),
        };
        let rotation = candidate.rotation(group, u32::from(node.radix));
        children.extend(keys[from..to].iter().map(|&key| {
            child_of_hash(hash::trial_hash(trees.remix, key, start, candidate.trial), node, rotation) as u8
        }));
        from = to;
    }
    other.clear();
    other.extend_from_slice(keys);
    let mut at = [0_u32; 16];
    for (child, at) in at.iter_mut().enumerate() {
        *at = child as u32 * u32::from(node.unit);
    }
    for (&key, &child) in other.iter().zip(&*children) {
        let at = &mut at[child as usize & 15];
        keys[*at as usize] = key;
        *at += 1;
    }
}

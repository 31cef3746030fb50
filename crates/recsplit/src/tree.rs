//! Building the splitting trees of a range of buckets.
//!
//! Source: sections 4.3, 4.4 (fixed and unary parts apart, preorder), 5.6.2 and 5.7.1 (key redistribution), 5.8 and 5.11.
//! Departures: the unary parts of a bucket's higher levels stand before all of its other unary parts, each in preorder, so that
//! a look-up has the long way over whole subtrees once (`query.rs`). Redistribution keeps the order of keys within a child, so that keys that a bucket brings sorted by rotation
//! group stay sorted all the way down.

use crate::bits::BitVec;
use crate::elias_fano::Least;
use crate::search::{Candidate, Search, Simd, Task, child_of_hash, start_of};
use crate::spread::Partition;
use crate::stage;
use warpset_core::recsplit::hash;
use warpset_core::recsplit::{Level, Method, Node, Remix, Shape};

/// What all trees of a function have in common.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub shape: &'a Shape,
    /// Rows for up to the largest bucket.
    pub table: &'a [Node],
    /// Trials for each number of keys after which a search gives up.
    pub budgets: &'a [u64],
    pub remix: Remix,
    /// [`works`] of each number of keys.
    pub works: &'a [f64],
    /// Trees that take this much work are shared by threads.
    pub share_from: f64,
    /// Calls [`build`] with the search that was asked for.
    pub simd: Simd,
    pub build: fn(&Plan, Buckets, &mut Scratch) -> Result<Part, Failure>,
    /// Set if the only bucket is a subtree, whose unary parts stay in the scratch space.
    pub subtree: Option<Subtree>,
}

/// A subtree that is built by itself.
#[derive(Clone, Copy)]
pub(crate) struct Subtree {
    /// Nodes of the higher levels above.
    depth: u32,
    /// Whether the root is all that is solved.
    root_only: bool,
}

/// What a bucket has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    pub keys: u32,
    /// Bits of its tree.
    pub bits: u32,
}

/// The buckets of one partition.
pub(crate) struct Buckets<'a> {
    /// Their keys.
    pub keys: Partition<'a>,
    /// The first one.
    pub first: u64,
    /// What is found out, so far nothing.
    pub found: &'a mut [Bucket],
}

/// Trees of consecutive buckets.
#[derive(Default)]
pub(crate) struct Part {
    /// Number of buckets.
    pub buckets: usize,
    /// Keys in all buckets, and in the largest.
    pub keys: u64,
    pub largest: u32,
    /// The trees, one after the other.
    pub bits: BitVec,
}

/// A bucket without a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// Two keys have this bucket and this low half of their hash.
    Collision { bucket: u64, low: u64 },
    /// None have, and still there was no solution, or the bucket is too large: another seed will do.
    Unlucky,
}

/// Space that is reused from bucket to bucket.
#[derive(Default)]
pub(crate) struct Scratch {
    sorted: Vec<u64>,
    /// Low halves and buckets by rotation group.
    grouped: Vec<(u64, u16)>,
    other: Vec<u64>,
    children: Vec<u8>,
    starts: Vec<u32>,
    /// Unary parts of the higher levels, and of the others.
    higher: BitVec,
    unary: BitVec,
    stack: Vec<(u32, u32, u32)>,
    /// Of all buckets so far.
    pub least: Least,
}

/// Sorts the keys of `buckets` into them, as `scratch.sorted`, and counts them. Counting sort (section 5.1); with `by_group`,
/// keys of a bucket are in the order of their lowest byte.
fn sort_into_buckets(Buckets { keys, found, .. }: &mut Buckets, by_group: bool, scratch: &mut Scratch) {
    let Scratch { sorted, starts, grouped, .. } = scratch;
    keys.buckets.iter().for_each(|&bucket| found[usize::from(bucket)].keys += 1);
    starts.clear();
    let mut sum = 0;
    for bucket in &**found {
        starts.push(sum);
        sum += bucket.keys;
    }
    sorted.clear();
    sorted.resize(keys.lows.len(), 0);
    let mut put = |low: u64, bucket: u16| {
        let at = &mut starts[usize::from(bucket)];
        sorted[*at as usize] = low;
        *at += 1;
    };
    if !by_group {
        keys.lows.iter().zip(keys.buckets).for_each(|(&low, &bucket)| put(low, bucket));
        return;
    }
    let mut places = [0_u32; 256];
    keys.lows.iter().for_each(|&low| places[low as usize & 0xff] += 1);
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    grouped.clear();
    grouped.resize(keys.lows.len(), (0, 0));
    for (&low, &bucket) in keys.lows.iter().zip(keys.buckets) {
        let at = &mut places[low as usize & 0xff];
        grouped[*at as usize] = (low, bucket);
        *at += 1;
    }
    grouped.iter().for_each(|&(low, bucket)| put(low, bucket));
}

/// Builds the trees of `buckets`.
#[inline(always)]
pub(crate) fn build<S: Search>(
    search: S,
    plan: &Plan,
    mut buckets: Buckets,
    scratch: &mut Scratch,
) -> Result<Part, Failure> {
    let by_group = plan.shape.method() == Method::Grouped;
    sort_into_buckets(&mut buckets, by_group, scratch);
    let mut part = Part { keys: buckets.keys.lows.len() as u64, buckets: buckets.found.len(), ..Part::default() };
    let mut sorted = std::mem::take(&mut scratch.sorted);
    let mut from = 0;
    for (index, bucket) in (buckets.first..).zip(buckets.found) {
        let size = bucket.keys;
        part.largest = part.largest.max(size);
        let begin = part.bits.len();
        let keys = &mut sorted[from..from + size as usize];
        from += size as usize;
        if size > 1 {
            if size as usize >= plan.table.len() {
                return Err(explain(keys, index));
            }
            if plan.works[size as usize] >= plan.share_from {
                let bits = share(plan, index, keys, 0, &mut Scratch::default())?;
                bits.iter().for_each(|bits| part.bits.append(bits));
                bucket.bits = (part.bits.len() - begin) as u32;
                scratch.least.see(size as usize, part.bits.len() - begin);
                continue;
            }
            scratch.higher.clear();
            scratch.unary.clear();
            scratch.stack.clear();
            scratch.stack.push((0, size, plan.subtree.map_or(0, |subtree| subtree.depth)));
            while let Some((start, len, depth)) = scratch.stack.pop() {
                let keys = &mut keys[start as usize..(start + len) as usize];
                let node = &plan.table[len as usize];
                if node.nodes == 0 {
                    continue;
                }
                let task = Task {
                    keys,
                    node,
                    positions: plan.shape.leaf_positions(len),
                    start: start_of(plan.shape, len, depth),
                    remix: plan.remix,
                    budget: plan.budgets[len as usize],
                };
                let number = if node.fanout == 0 { search.leaf(&task) } else { search.splitting(&task) };
                let Ok(number) = number else {
                    return Err(explain(keys, index));
                };
                part.bits.push(number, u32::from(node.golomb));
                let higher = plan.shape.level(len) == Level::Higher;
                let unary = if higher { &mut scratch.higher } else { &mut scratch.unary };
                unary.push_unary(number >> node.golomb);
                if node.fanout > 0 {
                    let level_start = task.start;
                    distribute(plan, node, level_start, number, keys, &mut scratch.other, &mut scratch.children);
                    if plan.subtree.is_some_and(|subtree| subtree.root_only) {
                        break;
                    }
                    let depth = depth + u32::from(higher);
                    let unit = u32::from(node.unit);
                    for child in (0..u32::from(node.fanout)).rev() {
                        let at = child * unit;
                        let size = if child + 1 == u32::from(node.fanout) { len - at } else { unit };
                        if size > 1 {
                            scratch.stack.push((start + at, size, depth));
                        }
                    }
                }
            }
            if plan.subtree.is_none() {
                part.bits.append(&scratch.higher);
                part.bits.append(&scratch.unary);
            }
        }
        let bits = part.bits.len() - begin;
        bucket.bits = bits as u32;
        scratch.least.see(size as usize, bits);
    }
    scratch.sorted = sorted;
    Ok(part)
}

/// Builds a tree on as many threads as have nothing else to do: its root, and then its children, each by another thread. Returns
/// fixed parts, unary parts of the higher levels, and of the others. What threads do is a bucket to [`build`].
fn share(
    plan: &Plan,
    bucket: u64,
    keys: &mut [u64],
    depth: u32,
    scratch: &mut Scratch,
) -> Result<[BitVec; 3], Failure> {
    let len = keys.len();
    let node = &plan.table[len];
    if node.nodes == 0 {
        return Ok(<[BitVec; 3]>::default());
    }
    let whole = node.fanout == 0 || plan.works[len] < plan.share_from;
    let subtree = Some(Subtree { depth, root_only: !whole });
    let lows = Partition { lows: keys, buckets: &vec![0; len] };
    let buckets = Buckets { keys: lows, first: bucket, found: &mut [Bucket::default()] };
    let part = (plan.build)(&Plan { subtree, share_from: f64::INFINITY, ..*plan }, buckets, scratch)?;
    let mut bits = [part.bits, std::mem::take(&mut scratch.higher), std::mem::take(&mut scratch.unary)];
    if whole {
        return Ok(bits);
    }
    keys.copy_from_slice(&scratch.sorted);
    let depth = depth + u32::from(plan.shape.level(len as u32) == Level::Higher);
    let (units, last) = keys.split_at_mut(usize::from(node.unit) * (usize::from(node.fanout) - 1));
    let mut children: Vec<&mut [u64]> = units.chunks_mut(node.unit.into()).collect();
    children.push(last);
    let child = |scratch: &mut Scratch, keys: &mut [u64]| share(plan, bucket, keys, depth, scratch);
    let (children, _) = stage::each(children.into_iter(), child)?;
    for child in &children {
        bits.iter_mut().zip(child).for_each(|(bits, child)| bits.append(child));
    }
    Ok(bits)
}

/// Hashes that are expected to be taken for the whole subtree of each number of keys.
pub(crate) fn works(shape: &Shape, table: &[Node]) -> Vec<f64> {
    let mut works: Vec<f64> = Vec::with_capacity(table.len());
    for (keys, node) in table.iter().enumerate() {
        let trials = if keys > 1 { shape.expected_candidates(keys as u32) / f64::from(node.candidates) } else { 0.0 };
        let full = usize::from(node.fanout).saturating_sub(1);
        let last = works.get(keys - full * usize::from(node.unit)).copied().unwrap_or(0.0);
        let units = works.get(usize::from(node.unit)).map_or(0.0, |unit| unit * full as f64);
        works.push(trials * keys as f64 + units + last);
    }
    works
}

/// Trials that are enough with certainty for each number of keys: beyond them, with probability e^-64, something is wrong
/// with the keys. A multiple of every vector's length.
pub(crate) fn budgets(shape: &Shape, table: &[Node]) -> Vec<u64> {
    let budget = |(keys, node): (usize, &Node)| {
        ((shape.expected_candidates(keys as u32) / f64::from(node.candidates)) as u64 + 64) * 64
    };
    table.iter().enumerate().map(budget).collect()
}

/// Why a node has no solution, or a bucket too many keys.
#[cold]
fn explain(keys: &mut [u64], bucket: u64) -> Failure {
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Failure::Collision { bucket, low: pair[0] },
        None => Failure::Unlucky,
    }
}

/// Moves the keys of a splitting to their children.
#[inline(always)]
fn distribute(
    plan: &Plan,
    node: &Node,
    start: u32,
    number: u64,
    keys: &mut [u64],
    other: &mut Vec<u64>,
    children: &mut Vec<u8>,
) {
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
            child_of_hash(hash::trial_hash(plan.remix, key, start, candidate.trial), node, rotation) as u8
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

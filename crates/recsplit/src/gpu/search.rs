//! Finding the numbers of trees on a device: all buckets at once, list by list.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, sections 5.4 to 5.7 and 5.10. Departure: the thesis
//! goes bucket by bucket, on many streams. Here the roots of all buckets are put into lists first; a launch solves a list, another one moves the
//! keys of its splittings to their children and appends these to the lists that come later. So there are as many launches as lists,
//! whatever the number of buckets, and small nodes fill the device as large ones do.

use super::node_lists::{List, Lists, Search};
use crate::find::{Trees, Unsolved};
use warpset_core::recsplit::{Level, Node, Remix, hash};
use warpset_gpu::{DeviceVec, GpuError, Stream};
use warpset_kernels::recsplit::counted_parts::{self, recsplit_counted_parts};
use warpset_kernels::recsplit::distribute::{self, recsplit_distribute};
use warpset_kernels::recsplit::halves::recsplit_halves;
use warpset_kernels::recsplit::leaves::{self, recsplit_leaves};
use warpset_kernels::recsplit::node_keys;
use warpset_kernels::recsplit::nodes::{ITEM_WORDS, Mix, NO_FAILURE, NO_LIST};
use warpset_kernels::recsplit::parts::recsplit_parts;
use warpset_kernels::recsplit::roots::{self, recsplit_check, recsplit_roots, recsplit_sizes};
use warpset_kernels::recsplit::rotated_leaves::{self, recsplit_rotated_leaves, recsplit_small_leaves};
use warpset_simt::{EntryOf, KernelInfo, LaunchConfig};

/// Trees, with the tables that kernels read.
pub(crate) struct DeviceTrees {
    pub(crate) trees: Trees,
    lists: Lists,
    /// Rows of the table of nodes, as words.
    nodes: DeviceVec<u32>,
    budgets: DeviceVec<u64>,
    /// The list of each number of keys.
    lists_of_size: DeviceVec<u32>,
}

/// What all launches of a search read and write.
struct Work<'a> {
    stream: &'a Stream,
    trees: &'a DeviceTrees,
    items: DeviceVec<u32>,
    cursors: DeviceVec<u32>,
    /// How many nodes of each list have been taken.
    taken: DeviceVec<u32>,
    lows: &'a mut DeviceVec<u64>,
    /// As long as `lows` if a node's keys do not fit in shared memory.
    other: DeviceVec<u64>,
    numbers: &'a mut DeviceVec<u64>,
    failure: DeviceVec<u32>,
    multiprocessors: u32,
}

impl DeviceTrees {
    /// The tables of `trees` on a device.
    pub(crate) fn new(stream: &Stream, trees: Trees) -> Result<Self, GpuError> {
        let lists = Lists::of(&trees);
        let nodes: Vec<u32> = trees.nodes().iter().flat_map(|node| node.to_words()).collect();
        Ok(Self {
            nodes: stream.from_slice(&nodes)?,
            budgets: stream.from_slice(&trees.budgets)?,
            lists_of_size: stream.from_slice(lists.of_size())?,
            lists,
            trees,
        })
    }

    /// The number of keys of the largest bucket.
    fn largest(&self) -> u32 {
        self.trees.nodes().len() as u32 - 1
    }

    /// How many buckets there are of each number of keys; the last of the counts is that of larger ones than the trees know.
    /// Waits for the stream.
    fn sizes(&self, stream: &Stream, bounds: &DeviceVec<u32>, buckets: usize) -> Result<Vec<u32>, GpuError> {
        /// Counts that fit in shared memory.
        const IN_SHARED: u32 = 4096;
        let largest = self.largest();
        let mut sizes = vec![0; largest as usize + 2];
        if buckets == 0 {
            return Ok(sizes);
        }
        let mut counts = stream.alloc_zeroed::<u32>(sizes.len())?;
        let rows = if largest + 2 <= IN_SHARED { largest + 2 } else { 0 };
        let most = stream.device().properties().multiprocessors as usize * 8;
        let blocks = buckets.div_ceil(roots::BLOCK as usize).min(most) as u32;
        let config = LaunchConfig::new(blocks, roots::BLOCK).shared(roots::sizes_shared_bytes(rows));
        // SAFETY: there are `buckets + 1` bounds, which ascend, and a count for each size and one more.
        unsafe {
            recsplit_sizes { bounds: bounds.global(), buckets, largest, rows, sizes: counts.global_mut() }
                .launch(stream, config)?;
        }
        stream.download(&counts, &mut sizes)?;
        Ok(sizes)
    }
}

/// Finds the numbers of all nodes, in the order that [`crate::find`] describes: those of a bucket begin at `first_number`. `lows` has the keys
/// of all buckets, which begin and end at `bounds`, in any order within a bucket; they are moved.
/// Waits for the stream.
pub(crate) fn find(
    stream: &Stream,
    trees: &DeviceTrees,
    lows: &mut DeviceVec<u64>,
    bounds: &DeviceVec<u32>,
    first_number: &DeviceVec<u32>,
    numbers: &mut DeviceVec<u64>,
) -> Result<Result<(), Unsolved>, GpuError> {
    match trees.trees.remix {
        Remix::Bits32 => find_with::<u32>(stream, trees, lows, bounds, first_number, numbers),
        Remix::Bits64 => find_with::<u64>(stream, trees, lows, bounds, first_number, numbers),
    }
}

/// The kernels of a search, those that take longest to compile first.
pub(crate) fn kernels(trees: &Trees) -> Vec<&'static KernelInfo> {
    match trees.remix {
        Remix::Bits32 => kernels_with::<u32>(trees),
        Remix::Bits64 => kernels_with::<u64>(trees),
    }
}

fn kernels_with<M: SearchMix>(trees: &Trees) -> Vec<&'static KernelInfo> {
    let lists = Lists::of(trees);
    let any = |search| lists.all().iter().any(|list| list.search == search);
    let leaves = |is: fn(&Node) -> bool| {
        let of_leaf = |list: &List| match list.search {
            Search::Leaves(keys) => is(&trees.nodes()[keys as usize]),
            _ => false,
        };
        lists.all().iter().any(of_leaf)
    };
    let mut kernels = Vec::new();
    if leaves(|node| node.groups > 1 && (node.groups > 4 || node.radix as u32 > rotated_leaves::MOST_OF_HALF)) {
        kernels.push(recsplit_rotated_leaves::<M>::INFO);
    }
    if leaves(|node| node.groups > 1 && u32::from(node.radix) <= rotated_leaves::MOST_OF_HALF) {
        kernels.push(recsplit_small_leaves::<M>::INFO);
    }
    if any(Search::Parts) {
        kernels.push(recsplit_parts::<M>::INFO);
    }
    if any(Search::CountedParts) {
        kernels.push(recsplit_counted_parts::<M>::INFO);
    }
    if any(Search::Halves) {
        kernels.push(recsplit_halves::<M>::INFO);
    }
    if leaves(|node| node.groups == 1) {
        kernels.extend([recsplit_leaves::<M>::INFO, recsplit_check::INFO]);
    }
    kernels.extend([recsplit_distribute::<M>::INFO, recsplit_sizes::INFO, recsplit_roots::INFO]);
    kernels
}

/// A finaliser that all kernels of a search exist for.
trait SearchMix:
    Mix
    + From<u32>
    + EntryOf<recsplit_distribute<Self>>
    + EntryOf<recsplit_halves<Self>>
    + EntryOf<recsplit_parts<Self>>
    + EntryOf<recsplit_counted_parts<Self>>
    + EntryOf<recsplit_leaves<Self>>
    + EntryOf<recsplit_small_leaves<Self>>
    + EntryOf<recsplit_rotated_leaves<Self>>
{
}

impl SearchMix for u32 {}
impl SearchMix for u64 {}

fn find_with<M: SearchMix>(
    stream: &Stream,
    trees: &DeviceTrees,
    lows: &mut DeviceVec<u64>,
    bounds: &DeviceVec<u32>,
    first_number: &DeviceVec<u32>,
    numbers: &mut DeviceVec<u64>,
) -> Result<Result<(), Unsolved>, GpuError> {
    let buckets = bounds.len().saturating_sub(1);
    let sizes = trees.sizes(stream, bounds, buckets)?;
    let (known, larger) = sizes.split_at(trees.trees.nodes().len());
    if larger.iter().any(|&count| count > 0) {
        return too_large(bounds, known.len()).map(Err);
    }
    let lengths = trees.lists.lengths(&trees.trees, known);
    let mut firsts = Vec::with_capacity(lengths.len());
    let mut sum = 0;
    for length in &lengths {
        firsts.push(sum as u32);
        sum += length;
    }
    if sum == 0 {
        return Ok(Ok(()));
    }
    let largest = known.iter().rposition(|&count| count > 0).unwrap_or(0) as u32;
    let needs_other = largest > distribute::KEYS_IN_SHARED;
    stream.fill_bytes(&mut *numbers, 0xff)?;
    let mut work = Work {
        stream,
        trees,
        items: stream.alloc_zeroed(sum as usize * ITEM_WORDS)?,
        cursors: stream.from_slice(&firsts)?,
        taken: stream.alloc_zeroed(firsts.len())?,
        other: stream.alloc_uninit(if needs_other { lows.len() } else { 0 })?,
        lows,
        numbers,
        failure: stream.from_slice(&[NO_FAILURE])?,
        multiprocessors: stream.device().properties().multiprocessors,
    };
    work.roots(bounds, buckets, first_number)?;
    for (number, list) in trees.lists.all().iter().enumerate() {
        let part = Part { number, first: firsts[number] as usize, count: lengths[number] as usize };
        if part.count > 0 {
            work.solve::<M>(list, part)?;
        }
    }
    let mut failure = [NO_FAILURE];
    stream.download(&work.failure, &mut failure)?;
    match failure[0] {
        NO_FAILURE => Ok(Ok(())),
        key => bucket_of_key(bounds, key).map(|bucket| Err(Unsolved { bucket })),
    }
}

/// The items of a list.
#[derive(Clone, Copy)]
struct Part {
    /// The number of the list.
    number: usize,
    first: usize,
    count: usize,
}

impl Work<'_> {
    /// Puts the roots of all buckets into their lists.
    fn roots(
        &mut self,
        bounds: &DeviceVec<u32>,
        buckets: usize,
        first_number: &DeviceVec<u32>,
    ) -> Result<(), GpuError> {
        let most = self.multiprocessors as usize * 8;
        let blocks = buckets.div_ceil(roots::BLOCK as usize).min(most) as u32;
        // SAFETY: there are `buckets + 1` bounds, which ascend, and a first number for each bucket; no bucket is larger than the
        // table of lists knows; the items have room for all nodes, each list from its cursor on.
        unsafe {
            recsplit_roots {
                bounds: bounds.global(),
                buckets,
                first_number: first_number.global(),
                lists: self.trees.lists_of_size.global(),
                higher: 0,
                cursors: self.cursors.global_mut(),
                items: self.items.global_mut(),
            }
            .launch(self.stream, LaunchConfig::new(blocks, roots::BLOCK))
        }
    }

    /// Solves the nodes of a list, and moves the keys of splittings to their children.
    fn solve<M: SearchMix>(&mut self, list: &List, part: Part) -> Result<(), GpuError> {
        let level = match list.level {
            Level::Leaf => hash::LEVEL_LEAF,
            Level::First => hash::LEVEL_FIRST,
            Level::Second => hash::LEVEL_SECOND,
            Level::Higher => hash::LEVEL_ROOT + list.depth,
        };
        let start = M::from(hash::start_seed(level));
        match list.search {
            Search::Leaves(keys) => return self.leaves(keys, start, part),
            Search::CountedParts => self.counted_parts(list, start, part)?,
            Search::Halves | Search::Parts => self.grouped_splittings(list, start, part)?,
        }
        self.distribute(list, start, part)
    }

    /// Blocks of `threads` threads that fill the device, at most `count`.
    fn blocks(&self, threads: u32, count: usize) -> u32 {
        count.min((self.multiprocessors * (2048 / threads).min(32)) as usize) as u32
    }

    /// Threads of the block that takes a splitting.
    fn threads(&self, list: &List, count: usize) -> u32 {
        match list.most_keys {
            _ if count < self.multiprocessors as usize * 8 => 256,
            0..=192 => 32,
            193..=768 => 64,
            _ => 256,
        }
    }

    fn grouped_splittings<M: SearchMix>(
        &mut self,
        list: &List,
        start: M,
        Part { number, first, count }: Part,
    ) -> Result<(), GpuError> {
        let threads = self.threads(list, count);
        let config =
            LaunchConfig::new(self.blocks(threads, count), threads).shared(node_keys::shared_bytes(list.most_keys));
        let (items, nodes) = (self.items.global(), self.trees.nodes.global());
        let next = self.taken.global_mut().at(number);
        let (budgets, lows) = (self.trees.budgets.global(), self.lows.global());
        let (numbers, failure) = (self.numbers.global_mut(), self.failure.global_mut());
        // SAFETY: the list has these items, all of which were appended by launches before; its nodes are searched in this way, and have
        // at most that many keys; tables have a row for every size of a node; keys and numbers of different nodes are apart.
        unsafe {
            if list.search == Search::Halves {
                recsplit_halves { items, first, count, next, nodes, budgets, start, lows, numbers, failure }
                    .launch(self.stream, config)
            } else {
                recsplit_parts { items, first, count, next, nodes, budgets, start, lows, numbers, failure }
                    .launch(self.stream, config)
            }
        }
    }

    fn counted_parts<M: SearchMix>(
        &mut self,
        list: &List,
        start: M,
        Part { number, first, count }: Part,
    ) -> Result<(), GpuError> {
        let block = counted_parts::BLOCK;
        let budget = self.trees.trees.budgets[list.most_keys as usize];
        let (blocks, team) = self.teams(self.blocks(block, usize::MAX), count, (budget / 64 - 64) / u64::from(block));
        let config = LaunchConfig::new(blocks, block).shared(counted_parts::shared_bytes(list.most_keys));
        // SAFETY: as for the other splittings; numbers are all ones until they are found.
        unsafe {
            recsplit_counted_parts {
                items: self.items.global(),
                first,
                count,
                next: self.taken.global_mut().at(number),
                team,
                nodes: self.trees.nodes.global(),
                budgets: self.trees.budgets.global(),
                start,
                lows: self.lows.global(),
                numbers: self.numbers.global_mut(),
            }
            .launch(self.stream, config)
        }
    }

    /// Of `most` workers: how many start, and how many of them share one of `count` items: a power of two, at most `useful`.
    fn teams(&self, most: u32, count: usize, useful: u64) -> (u32, u32) {
        let share = (most as usize / count).min(useful.max(1) as usize).max(1);
        let team = 1 << share.ilog2();
        (((most / team) as usize).min(count) as u32 * team, team)
    }

    fn distribute<M: SearchMix>(
        &mut self,
        list: &List,
        start: M,
        Part { first, count, .. }: Part,
    ) -> Result<(), GpuError> {
        let threads = self.threads(list, count);
        let config =
            LaunchConfig::new(self.blocks(threads, count), threads).shared(distribute::shared_bytes(list.most_keys));
        let higher = if list.level == Level::Higher { list.depth + 1 } else { NO_LIST };
        // SAFETY: as for the search, whose numbers are read; children go to lists that come later, which have room for them; keys of
        // different nodes are apart; `other` is as long as the keys if a bucket has more than fit in shared memory.
        unsafe {
            recsplit_distribute {
                items: self.items.global_mut(),
                first,
                count,
                nodes: self.trees.nodes.global(),
                lists: self.trees.lists_of_size.global(),
                higher,
                cursors: self.cursors.global_mut(),
                start,
                lows: self.lows.global_mut(),
                other: self.other.global_mut(),
                numbers: self.numbers.global(),
                failure: self.failure.global_mut(),
            }
            .launch(self.stream, config)
        }
    }

    fn leaves<M: SearchMix>(
        &mut self,
        keys: u32,
        start: M,
        Part { number, first, count }: Part,
    ) -> Result<(), GpuError> {
        let trees = &self.trees.trees;
        let node = trees.nodes()[keys as usize];
        let (groups, candidates) = (u32::from(node.groups), node.candidates);
        let budget = trees.budgets[keys as usize];
        // Trials that are expected.
        let expected = budget / 64 - 64;
        let positions = trees.shape.leaf_positions(keys);
        let items = self.items.global();
        let lows = self.lows.global();
        let next = self.taken.global_mut().at(number);
        let (numbers, failure) = (self.numbers.global_mut(), self.failure.global_mut());
        if groups == 1 {
            let lanes = match expected {
                0..12 => 8,
                12..40 => 16,
                _ => 32,
            };
            let in_block = leaves::BLOCK / lanes;
            let most = self.blocks(leaves::BLOCK, usize::MAX) * in_block;
            let useful = if lanes == 32 { expected / 32 } else { 1 };
            let (workers, team) = self.teams(most, count, useful);
            // Whole blocks and whole teams, which are powers of two.
            let blocks = workers.next_multiple_of(in_block.max(team)) / in_block;
            let config = LaunchConfig::new(blocks, leaves::BLOCK).shared(leaves::shared_bytes(keys, lanes));
            // SAFETY: the list has these items, leaves of `keys` keys; numbers are all ones until they are found.
            unsafe {
                recsplit_leaves { items, first, count, lanes, team, keys, positions, budget, start, lows, numbers }
                    .launch(self.stream, config)?;
            }
            return self.check(first, count);
        }
        let block = rotated_leaves::BLOCK;
        let blocks = self.blocks(block, usize::MAX);
        let halves = blocks * (block / 16);
        let is_small = keys <= rotated_leaves::MOST_OF_HALF && groups <= 4;
        if is_small && (count >= halves as usize / 4 || expected < 1024) {
            let blocks = blocks.min(count.div_ceil(block as usize / 16) as u32);
            // Short searches take some leaves at a time, as long as there are plenty.
            let step = if expected < 512 && count >= 64 * halves as usize { 4 } else { 1 };
            let config = LaunchConfig::new(blocks, block).shared(rotated_leaves::small_shared_bytes(keys));
            // SAFETY: as above; the leaves have at most 16 keys and 4 groups.
            return unsafe {
                recsplit_small_leaves {
                    items,
                    first,
                    count,
                    next,
                    step,
                    keys,
                    groups,
                    candidates,
                    budget,
                    start,
                    lows,
                    numbers,
                    failure,
                }
                .launch(self.stream, config)
            };
        }
        let in_block = block / 32;
        let (workers, team) = self.teams(blocks * in_block, count, expected / 32);
        let blocks = workers.next_multiple_of(in_block.max(team)) / in_block;
        let config = LaunchConfig::new(blocks, block).shared(rotated_leaves::shared_bytes(keys, groups));
        // SAFETY: as above; numbers are all ones until they are found.
        unsafe {
            recsplit_rotated_leaves {
                items,
                first,
                count,
                next,
                team,
                keys,
                groups,
                candidates,
                budget,
                start,
                lows,
                numbers,
            }
            .launch(self.stream, config)?;
        }
        self.check(first, count)
    }

    /// Sees whether all leaves of a list have a number.
    fn check(&mut self, first: usize, count: usize) -> Result<(), GpuError> {
        let config = LaunchConfig::new(self.blocks(256, count.div_ceil(256)), 256);
        // SAFETY: the list has these items, whose numbers have been written.
        unsafe {
            recsplit_check {
                items: self.items.global(),
                first,
                count,
                numbers: self.numbers.global(),
                failure: self.failure.global_mut(),
            }
            .launch(self.stream, config)
        }
    }
}

/// The first bucket that has as many keys as `known` or more.
#[cold]
fn too_large(bounds: &DeviceVec<u32>, known: usize) -> Result<Unsolved, GpuError> {
    let bounds = bounds.to_vec()?;
    let is_too_large = |of: &[u32]| (of[1] - of[0]) as usize >= known;
    Ok(Unsolved { bucket: bounds.windows(2).position(is_too_large).unwrap_or(0) })
}

/// The bucket of the key at this position.
#[cold]
fn bucket_of_key(bounds: &DeviceVec<u32>, key: u32) -> Result<usize, GpuError> {
    Ok(bounds.to_vec()?.partition_point(|&bound| bound <= key).saturating_sub(1))
}

#[cfg(all(test, not(warpset_host_tests)))]
mod tests;

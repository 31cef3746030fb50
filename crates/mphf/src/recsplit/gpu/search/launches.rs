//! Launches of a search: one per list, and one that moves the keys of its splittings.

use super::{DeviceTrees, SearchMix, is_paired};
use crate::recsplit::gpu::node_lists::{List, Search};
use warpset_core::recsplit::{Level, hash};
use warpset_gpu::{DeviceSlice, DeviceVec, GpuError, Stream};
use warpset_kernels::recsplit::binary_splittings::recsplit_binary_splittings;
use warpset_kernels::recsplit::distribute::{self, recsplit_distribute};
use warpset_kernels::recsplit::leaves::{self, recsplit_leaves};
use warpset_kernels::recsplit::node_keys;
use warpset_kernels::recsplit::nodes::{ITEM_WORDS, NO_LIST};
use warpset_kernels::recsplit::packed_splittings::{self, recsplit_packed_splittings};
use warpset_kernels::recsplit::roots::{self, recsplit_check, recsplit_roots};
use warpset_kernels::recsplit::rotated_leaves::{self, recsplit_rotated_leaves, recsplit_small_leaves};
use warpset_kernels::recsplit::rotated_splittings::recsplit_rotated_splittings;
use warpset_kernels::recsplit::two_group_leaves::{self, recsplit_two_group_leaves};
use warpset_simt::{GlobalMut, LaunchConfig};

/// Least expected trial hashes of all leaves with which their lists are solved side by side: about a millisecond. Tests
/// use fewer.
const SIDE_BY_SIDE: f64 = if cfg!(test) { 1e4 } else { 1e9 };
/// Streams for leaves side by side.
const LEAF_STREAMS: usize = 8;

/// Returns the blocks of `threads` threads that share a leaf if buckets are solved one by one: together they have the
/// 512 threads of the thesis.
fn per_leaf(threads: u32) -> usize {
    (512 / threads) as usize
}

/// Memory that the launches of all buckets read and write.
#[derive(Clone, Copy)]
pub(super) struct AllKeys {
    pub(super) lows: GlobalMut<u64>,
    /// Second buffer for keys: the length of `lows` if a node's keys do not fit shared memory.
    pub(super) other: GlobalMut<u64>,
    pub(super) numbers: GlobalMut<u64>,
    pub(super) failure: GlobalMut<u32>,
}

/// Lists of nodes, and the launches that solve them.
pub(super) struct Work<'a> {
    stream: &'a Stream,
    trees: &'a DeviceTrees,
    items: DeviceVec<u32>,
    /// Position of the next item of each list.
    pub(super) cursors: DeviceVec<u32>,
    /// Number of nodes taken from each list.
    pub(super) taken: DeviceVec<u32>,
    all: AllKeys,
    /// Whether no other work is on the device, so that several blocks may share a node.
    pub(super) is_alone: bool,
    multiprocessors: u32,
}

/// The items of a list.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// Number of the list.
    pub(super) number: usize,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl<'a> Work<'a> {
    /// Allocates lists of `items` nodes.
    ///
    /// # Safety
    /// The memory of `all` stays allocated until `stream` has passed the launches of this work. It has the keys and
    /// numbers of the buckets that are taken, and no other work has the same buckets; `failure` is accessed by atomics
    /// alone.
    pub(super) unsafe fn new(
        stream: &'a Stream,
        trees: &'a DeviceTrees,
        all: AllKeys,
        items: usize,
    ) -> Result<Self, GpuError> {
        let lists = trees.lists.all().len();
        Ok(Self {
            stream,
            trees,
            items: stream.alloc_zeroed(items * ITEM_WORDS)?,
            cursors: stream.alloc_zeroed(lists)?,
            taken: stream.alloc_zeroed(lists)?,
            all,
            is_alone: true,
            multiprocessors: stream.device().properties().multiprocessors,
        })
    }

    /// Puts the roots of buckets into their lists: `bounds` has the start of each bucket's keys, and the end of the
    /// last one's.
    pub(super) fn roots(
        &mut self,
        bounds: DeviceSlice<'_, u32>,
        first_number: DeviceSlice<'_, u32>,
    ) -> Result<(), GpuError> {
        let buckets = bounds.len() - 1;
        let most = self.multiprocessors as usize * 8;
        let blocks = buckets.div_ceil(roots::BLOCK as usize).min(most) as u32;
        // SAFETY: there are `buckets + 1` ascending bounds, and a first number per bucket; no bucket is larger than the
        // table of lists allows; the items have places for all nodes, each list from its cursor on.
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
    pub(super) fn solve<M: SearchMix>(&mut self, list: &List, part: Part) -> Result<(), GpuError> {
        let level = match list.level {
            Level::Leaf => hash::LEVEL_LEAF,
            Level::First => hash::LEVEL_FIRST,
            Level::Second => hash::LEVEL_SECOND,
            Level::Higher => hash::LEVEL_ROOT + list.depth,
        };
        let start = M::from(hash::start_seed(level));
        match list.search {
            Search::Leaves(keys) => return self.leaves::<M>(self.stream, keys, part),
            Search::Packed => self.packed_splittings(list, start, part)?,
            Search::Binary | Search::Rotated => self.grouped_splittings(list, start, part)?,
        }
        self.distribute(list, start, part)
    }

    /// Returns the blocks of `threads` threads that fill the device, at most `count`.
    fn blocks(&self, threads: u32, count: usize) -> u32 {
        count.min((self.multiprocessors * (2048 / threads).min(32)) as usize) as u32
    }

    /// Returns the most blocks of `threads` threads for `count` nodes; several blocks may share a node.
    fn most_blocks(&self, threads: u32, count: usize) -> u32 {
        self.blocks(threads, if self.is_alone { usize::MAX } else { count })
    }

    /// Returns the threads of the block that takes a splitting.
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
        let (budgets, lows) = (self.trees.budgets.global(), self.all.lows.as_const());
        let AllKeys { other, numbers, failure, .. } = self.all;
        // SAFETY: the list has these items, and launches before appended all of them; its nodes have this search
        // method, and at most that many keys; tables have a row for every size of a node; keys and numbers of different
        // nodes are disjoint; `other` is as long as the keys if a bucket's keys do not fit shared memory.
        unsafe {
            if list.search == Search::Binary {
                recsplit_binary_splittings {
                    items,
                    first,
                    count,
                    next,
                    nodes,
                    budgets,
                    start,
                    lows,
                    other,
                    numbers,
                    failure,
                }
                .launch(self.stream, config)
            } else {
                recsplit_rotated_splittings { items, first, count, next, nodes, budgets, start, lows, numbers, failure }
                    .launch(self.stream, config)
            }
        }
    }

    fn packed_splittings<M: SearchMix>(
        &mut self,
        list: &List,
        start: M,
        Part { number, first, count }: Part,
    ) -> Result<(), GpuError> {
        let block = packed_splittings::BLOCK;
        let budget = self.trees.trees.budgets[list.most_keys as usize];
        let (blocks, team) = self.teams(self.most_blocks(block, count), count, (budget / 64 - 64) / u64::from(block));
        let config = LaunchConfig::new(blocks, block).shared(packed_splittings::shared_bytes(list.most_keys));
        // SAFETY: as for the other splittings; numbers are all ones until they are found.
        unsafe {
            recsplit_packed_splittings {
                items: self.items.global(),
                first,
                count,
                next: self.taken.global_mut().at(number),
                team,
                nodes: self.trees.nodes.global(),
                budgets: self.trees.budgets.global(),
                start,
                lows: self.all.lows.as_const(),
                numbers: self.all.numbers,
            }
            .launch(self.stream, config)
        }
    }

    /// Returns how many of at most `most` workers start, and how many of them share one of `count` items: a power of
    /// two, at most `useful`.
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
        // SAFETY: as for the search, and its numbers are read; children go to later lists, which have places for them;
        // keys of different nodes are disjoint; `other` is as long as the keys if a bucket's keys do not fit shared
        // memory.
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
                lows: self.all.lows,
                other: self.all.other,
                numbers: self.all.numbers.as_const(),
                failure: self.all.failure,
            }
            .launch(self.stream, config)
        }
    }

    /// Solves lists of leaves, each with its number of keys. Expensive lists are solved side by side, the longest
    /// first, so that the next lists fill the device while the last leaves of earlier ones are still being searched.
    pub(super) fn all_leaves<M: SearchMix>(&mut self, mut lists: Vec<(u32, Part)>) -> Result<(), GpuError> {
        let trees = self.trees;
        let trials = |keys: u32| trees.trees.budgets[keys as usize] / 64 - 64;
        let hashes = |&(keys, part): &(u32, Part)| part.count as f64 * trials(keys) as f64 * f64::from(keys);
        if lists.len() < 2 || lists.iter().map(hashes).sum::<f64>() < SIDE_BY_SIDE {
            return lists.into_iter().try_for_each(|(keys, part)| self.leaves::<M>(self.stream, keys, part));
        }
        lists.sort_by_key(|&(keys, _)| std::cmp::Reverse(trials(keys)));
        let device = self.stream.device();
        let streams = (0..LEAF_STREAMS.min(lists.len())).map(|_| device.new_stream());
        let streams = streams.collect::<Result<Vec<_>, _>>()?;
        let queued = lists.into_iter().zip((0..streams.len()).cycle()).try_for_each(|((keys, part), turn)| {
            let own = &streams[turn];
            own.wait_for(self.stream)?;
            self.leaves::<M>(own, keys, part)
        });
        // The queued work uses memory of this stream.
        let waits = streams.iter().map(|own| self.stream.wait_for(own)).collect::<Vec<_>>();
        queued.and(waits.into_iter().collect())
    }

    /// Solves a list of leaves of `keys` keys on `stream`.
    fn leaves<M: SearchMix>(
        &mut self,
        stream: &Stream,
        keys: u32,
        Part { number, first, count }: Part,
    ) -> Result<(), GpuError> {
        let start = M::from(hash::start_seed(hash::LEVEL_LEAF));
        let trees = &self.trees.trees;
        let node = trees.nodes()[keys as usize];
        let (groups, candidates) = (u32::from(node.groups), node.candidates);
        let budget = trees.budgets[keys as usize];
        // Expected trials.
        let expected = budget / 64 - 64;
        let positions = trees.shape.leaf_positions(keys);
        let items = self.items.global();
        let lows = self.all.lows.as_const();
        let next = self.taken.global_mut().at(number);
        let AllKeys { numbers, failure, .. } = self.all;
        if groups == 1 {
            let lanes = match expected {
                0..12 => 8,
                12..40 => 16,
                _ => 32,
            };
            let in_block = leaves::BLOCK / lanes;
            let most = self.most_blocks(leaves::BLOCK, count * per_leaf(leaves::BLOCK)) * in_block;
            let useful = if lanes == 32 { expected / 32 } else { 1 };
            let (workers, team) = self.teams(most, count, useful);
            // Whole blocks and whole teams, which are powers of two.
            let blocks = workers.next_multiple_of(in_block.max(team)) / in_block;
            let config = LaunchConfig::new(blocks, leaves::BLOCK).shared(leaves::shared_bytes(keys, lanes));
            // SAFETY: the list has these items, leaves of `keys` keys; numbers are all ones until they are found.
            unsafe {
                recsplit_leaves { items, first, count, lanes, team, keys, positions, budget, start, lows, numbers }
                    .launch(stream, config)?;
            }
            return self.check(stream, first, count);
        }
        if is_paired(&node, budget) {
            // A warp takes a leaf with a short search, if there are enough leaves.
            let is_short = expected < 1 << 15 && count >= 32 * self.multiprocessors as usize;
            let block = if is_short { 32 } else { two_group_leaves::MOST_THREADS };
            let (blocks, team) =
                self.teams(self.most_blocks(block, count * per_leaf(block)), count, expected / u64::from(4 * block));
            let config = LaunchConfig::new(blocks, block).shared(two_group_leaves::shared_bytes(keys, block));
            // SAFETY: the list has these items, leaves of `keys` keys; numbers are all ones until they are found.
            unsafe {
                recsplit_two_group_leaves { items, first, count, next, team, keys, budget, start, lows, numbers }
                    .launch(stream, config)?;
            }
            return self.check(stream, first, count);
        }
        let block = rotated_leaves::BLOCK;
        let blocks = self.most_blocks(block, count * per_leaf(block));
        let halves = blocks * (block / 16);
        let is_small = keys <= rotated_leaves::MOST_OF_HALF && groups <= 4;
        if is_small && (count >= halves as usize / 4 || expected < 1024) {
            let blocks = blocks.min(count.div_ceil(block as usize / 16) as u32);
            // Short searches take several leaves at a time, if there are enough.
            let step = if expected < 512 && count >= 64 * halves as usize { 4 } else { 1 };
            let config = LaunchConfig::new(blocks, block).shared(rotated_leaves::small_shared_bytes(keys));
            // SAFETY: the list has these items; the leaves have at most 16 keys and 4 groups.
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
                .launch(stream, config)
            };
        }
        let in_block = block / 32;
        let (workers, team) = self.teams(blocks * in_block, count, expected / 32);
        let blocks = workers.next_multiple_of(in_block.max(team)) / in_block;
        let config = LaunchConfig::new(blocks, block).shared(rotated_leaves::shared_bytes(keys, groups));
        // SAFETY: the list has these items, leaves of `keys` keys; numbers are all ones until they are found.
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
            .launch(stream, config)?;
        }
        self.check(stream, first, count)
    }

    /// Checks that all leaves of a list have a number.
    fn check(&mut self, stream: &Stream, first: usize, count: usize) -> Result<(), GpuError> {
        let config = LaunchConfig::new(self.blocks(256, count.div_ceil(256)), 256);
        // SAFETY: the list has these items, and their numbers have been written.
        unsafe {
            recsplit_check {
                items: self.items.global(),
                first,
                count,
                numbers: self.all.numbers.as_const(),
                failure: self.all.failure,
            }
            .launch(stream, config)
        }
    }
}

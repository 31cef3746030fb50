//! The launches of a search: one for each list, and one that moves the keys of its splittings.

use super::{DeviceTrees, SearchMix};
use crate::gpu::node_lists::{List, Search};
use warpset_core::recsplit::{Level, hash};
use warpset_gpu::{DeviceVec, GpuError, Stream};
use warpset_kernels::recsplit::counted_parts::{self, recsplit_counted_parts};
use warpset_kernels::recsplit::distribute::{self, recsplit_distribute};
use warpset_kernels::recsplit::halves::recsplit_halves;
use warpset_kernels::recsplit::leaves::{self, recsplit_leaves};
use warpset_kernels::recsplit::node_keys;
use warpset_kernels::recsplit::nodes::NO_LIST;
use warpset_kernels::recsplit::parts::recsplit_parts;
use warpset_kernels::recsplit::roots::{self, recsplit_check, recsplit_roots};
use warpset_kernels::recsplit::rotated_leaves::{self, recsplit_rotated_leaves, recsplit_small_leaves};
use warpset_simt::LaunchConfig;

/// What all launches of a search read and write.
pub(super) struct Work<'a> {
    pub(super) stream: &'a Stream,
    pub(super) trees: &'a DeviceTrees,
    pub(super) items: DeviceVec<u32>,
    pub(super) cursors: DeviceVec<u32>,
    /// How many nodes of each list have been taken.
    pub(super) taken: DeviceVec<u32>,
    pub(super) lows: &'a mut DeviceVec<u64>,
    /// As long as `lows` if a node's keys do not fit in shared memory.
    pub(super) other: DeviceVec<u64>,
    pub(super) numbers: &'a mut DeviceVec<u64>,
    pub(super) failure: DeviceVec<u32>,
    pub(super) multiprocessors: u32,
}

/// The items of a list.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The number of the list.
    pub(super) number: usize,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Work<'_> {
    /// Puts the roots of all buckets into their lists.
    pub(super) fn roots(
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
    pub(super) fn solve<M: SearchMix>(&mut self, list: &List, part: Part) -> Result<(), GpuError> {
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

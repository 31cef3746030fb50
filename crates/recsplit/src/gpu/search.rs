//! Finding the numbers of trees on a device: all buckets at once, list by list.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, sections 5.4 to 5.7 and 5.10. Departure: the thesis
//! goes bucket by bucket, on many streams. Here the roots of all buckets are put into lists first; a launch solves a list, another one moves the
//! keys of its splittings to their children and appends these to the lists that come later. So there are as many launches as lists,
//! whatever the number of buckets, and small nodes fill the device as large ones do. [`launches`] has them.

mod launches;

use super::node_lists::{List, Lists, Search};
use crate::Error;
use crate::find::{Trees, Unsolved};
use crate::progress::Interrupted;
use launches::{Part, Work};
use warpset_core::recsplit::{Node, Remix};
use warpset_gpu::{DeviceVec, GpuError, Stream};
use warpset_kernels::recsplit::counted_parts::recsplit_counted_parts;
use warpset_kernels::recsplit::distribute::{self, recsplit_distribute};
use warpset_kernels::recsplit::halves::recsplit_halves;
use warpset_kernels::recsplit::leaves::recsplit_leaves;
use warpset_kernels::recsplit::nodes::{ITEM_WORDS, Mix, NO_FAILURE};
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

/// What hears how much of a search is done.
pub(crate) type Report<'a> = Option<&'a mut dyn FnMut(f64) -> Result<(), Interrupted>>;

/// Finds the numbers of all nodes, in the order that [`crate::find`] describes: those of a bucket begin at `first_number`. `lows` has the keys
/// of all buckets, which begin and end at `bounds`, in any order within a bucket; they are moved. `report`, if there is one, is called
/// with the share of the work that is done, by expectation, after each list, for which it waits; its error ends the search.
/// Waits for the stream.
pub(crate) fn find(
    stream: &Stream,
    trees: &DeviceTrees,
    lows: &mut DeviceVec<u64>,
    bounds: &DeviceVec<u32>,
    first_number: &DeviceVec<u32>,
    numbers: &mut DeviceVec<u64>,
    report: Report<'_>,
) -> Result<Result<(), Unsolved>, Error> {
    match trees.trees.remix {
        Remix::Bits32 => find_with::<u32>(stream, trees, lows, bounds, first_number, numbers, report),
        Remix::Bits64 => find_with::<u64>(stream, trees, lows, bounds, first_number, numbers, report),
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
    mut report: Report<'_>,
) -> Result<Result<(), Unsolved>, Error> {
    let buckets = bounds.len().saturating_sub(1);
    let sizes = trees.sizes(stream, bounds, buckets)?;
    let (known, larger) = sizes.split_at(trees.trees.nodes().len());
    if larger.iter().any(|&count| count > 0) {
        return Ok(Err(too_large(bounds, known.len())?));
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
    let works = trees.lists.works(&trees.trees, &lengths);
    let (all, mut done) = (works.iter().sum::<f64>(), 0.0);
    for (number, list) in trees.lists.all().iter().enumerate() {
        let part = Part { number, first: firsts[number] as usize, count: lengths[number] as usize };
        if part.count > 0 {
            work.solve::<M>(list, part)?;
            done += works[number];
            if let Some(report) = &mut report {
                stream.synchronize()?;
                report(done / all)?;
            }
        }
    }
    let mut failure = [NO_FAILURE];
    stream.download(&work.failure, &mut failure)?;
    match failure[0] {
        NO_FAILURE => Ok(Ok(())),
        key => Ok(Err(Unsolved { bucket: bucket_of_key(bounds, key)? })),
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

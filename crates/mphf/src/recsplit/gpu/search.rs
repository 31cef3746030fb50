//! Search for the numbers of trees on a device: all buckets at once, list by list.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, sections 5.4
//! to 5.7 and 5.10. Departure: the thesis goes bucket by bucket, on many streams (`benches/papers/mphf`). Here the
//! roots of all buckets are put into lists first. A launch solves a list; another one moves the keys of its splittings
//! to their children and appends these to later lists. The number of launches is that of lists, whatever the number of
//! buckets, and small nodes fill the device as large ones do. [`launches`] has them.

mod by_bucket;
mod launches;

use super::Strategy;
use super::node_lists::{List, Lists, Search};
use crate::Error;
use crate::kind::SearchFailure;
use crate::progress::Interrupted;
use crate::recsplit::find::Trees;
pub use by_bucket::{BucketPlan, BucketSearch, BucketWork};
use launches::{AllKeys, Part, Work};
use warpset_core::recsplit::{Node, Remix};
use warpset_gpu::{DeviceVec, GpuError, Stream};
use warpset_kernels::recsplit::binary_splittings::recsplit_binary_splittings;
use warpset_kernels::recsplit::distribute::{self, recsplit_distribute};
use warpset_kernels::recsplit::leaves::recsplit_leaves;
use warpset_kernels::recsplit::node_keys;
use warpset_kernels::recsplit::nodes::{Mix, NO_FAILURE};
use warpset_kernels::recsplit::packed_splittings::recsplit_packed_splittings;
use warpset_kernels::recsplit::roots::{self, recsplit_sizes};
use warpset_kernels::recsplit::rotated_leaves::{recsplit_rotated_leaves, recsplit_small_leaves};
use warpset_kernels::recsplit::rotated_splittings::recsplit_rotated_splittings;
use warpset_kernels::recsplit::two_group_leaves::recsplit_two_group_leaves;
use warpset_simt::{EntryOf, LaunchConfig};

/// Trees, with the tables for kernels.
pub(super) struct DeviceTrees {
    pub(super) trees: Trees,
    lists: Lists,
    /// Rows of the table of nodes, as words.
    nodes: DeviceVec<u32>,
    budgets: DeviceVec<u64>,
    /// The list of each number of keys.
    lists_of_size: DeviceVec<u32>,
}

impl DeviceTrees {
    /// Copies the tables of `trees` to a device.
    pub(super) fn new(stream: &Stream, trees: Trees) -> Result<Self, GpuError> {
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

    /// Returns the number of keys of the largest bucket.
    pub(super) fn largest(&self) -> u32 {
        self.trees.nodes().len() as u32 - 1
    }

    /// Counts the buckets of each number of keys; the last count is that of buckets larger than the trees. Waits for
    /// the stream.
    fn sizes(&self, stream: &Stream, bounds: &DeviceVec<u32>, buckets: usize) -> Result<Vec<u32>, GpuError> {
        /// Counts that fit shared memory.
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
        // SAFETY: there are `buckets + 1` ascending bounds, and a count per size and one more.
        unsafe {
            recsplit_sizes { bounds: bounds.global(), buckets, largest, rows, sizes: counts.global_mut() }
                .launch(stream, config)?;
        }
        stream.download(&counts, &mut sizes)?;
        Ok(sizes)
    }
}

/// Callback for the finished share of a search.
pub(super) type Report<'a> = Option<&'a mut dyn FnMut(f64) -> Result<(), Interrupted>>;

/// Finds the numbers of all nodes, in the order of [`crate::recsplit::find`]; those of a bucket begin at
/// `first_number`. `lows` has the keys of all buckets with the bounds `bounds`, in any order within a bucket; they are
/// moved. `report`, if given, is called with the expected share of finished work after each list, and waits for it; its
/// error ends the search. It is not called if buckets are searched one by one. Waits for the stream.
pub(super) fn find(
    stream: &Stream,
    strategy: Strategy,
    trees: &DeviceTrees,
    buckets: Buckets<'_>,
    numbers: &mut DeviceVec<u64>,
    report: Report<'_>,
) -> Result<Result<(), SearchFailure>, Error> {
    match trees.trees.remix {
        Remix::Bits32 => find_with::<u32>(stream, strategy, trees, buckets, numbers, report),
        Remix::Bits64 => find_with::<u64>(stream, strategy, trees, buckets, numbers, report),
    }
}

/// Keys of consecutive buckets.
pub(super) struct Buckets<'a> {
    pub(super) lows: &'a mut DeviceVec<u64>,
    pub(super) bounds: &'a DeviceVec<u32>,
    pub(super) first_number: &'a DeviceVec<u32>,
}

/// Least expected trials of leaves in two groups that have a kernel of their own; 9104 are expected of leaves of 14
/// keys. Tests use it for smaller ones.
const PAIRED_TRIALS: u64 = if cfg!(test) { 100 } else { 8192 };

/// Whether that kernel searches a leaf.
fn is_paired(leaf: &Node, budget: u64) -> bool {
    leaf.groups == 2 && budget / 64 - 64 >= PAIRED_TRIALS
}

/// Finaliser with all kernels of a search.
trait SearchMix:
    Mix
    + From<u32>
    + EntryOf<recsplit_distribute<Self>>
    + EntryOf<recsplit_binary_splittings<Self>>
    + EntryOf<recsplit_rotated_splittings<Self>>
    + EntryOf<recsplit_packed_splittings<Self>>
    + EntryOf<recsplit_leaves<Self>>
    + EntryOf<recsplit_two_group_leaves<Self>>
    + EntryOf<recsplit_small_leaves<Self>>
    + EntryOf<recsplit_rotated_leaves<Self>>
{
}

impl SearchMix for u32 {}
impl SearchMix for u64 {}

fn find_with<M: SearchMix>(
    stream: &Stream,
    strategy: Strategy,
    trees: &DeviceTrees,
    buckets: Buckets<'_>,
    numbers: &mut DeviceVec<u64>,
    report: Report<'_>,
) -> Result<Result<(), SearchFailure>, Error> {
    let Buckets { lows, bounds, first_number } = buckets;
    let sizes = trees.sizes(stream, bounds, bounds.len().saturating_sub(1))?;
    let (known, larger) = sizes.split_at(trees.trees.nodes().len());
    if larger.iter().any(|&count| count > 0) {
        return Ok(Err(too_large(bounds, known.len())?));
    }
    let largest = known.iter().rposition(|&count| count > 0).unwrap_or(0) as u32;
    let needs_other = largest > distribute::KEYS_IN_SHARED.min(node_keys::TILE);
    stream.fill_bytes(&mut *numbers, 0xff)?;
    let mut other = stream.alloc_uninit(if needs_other { lows.len() } else { 0 })?;
    let mut failure = stream.from_slice(&[NO_FAILURE])?;
    let all = AllKeys {
        lows: lows.global_mut(),
        other: other.global_mut(),
        numbers: numbers.global_mut(),
        failure: failure.global_mut(),
    };
    match strategy {
        // SAFETY: the stream is waited for below, or these are freed in its order; `all` has the keys and numbers of
        // the buckets.
        Strategy::AllBuckets => unsafe { all_buckets::<M>(stream, trees, all, (bounds, first_number), known, report)? },
        Strategy::By(solve) => solve(&BucketSearch { stream, trees, all, bounds, first_number, known })?,
    }
    let mut failed = [NO_FAILURE];
    stream.download(&failure, &mut failed)?;
    match failed[0] {
        NO_FAILURE => Ok(Ok(())),
        key => Ok(Err(SearchFailure { bucket: bucket_of_key(bounds, key)? })),
    }
}

/// Solves the trees of all buckets at once, `known[k]` buckets of `k` keys.
///
/// # Safety
/// The conditions of [`Work::new`].
unsafe fn all_buckets<M: SearchMix>(
    stream: &Stream,
    trees: &DeviceTrees,
    all: AllKeys,
    (bounds, first_number): (&DeviceVec<u32>, &DeviceVec<u32>),
    known: &[u32],
    mut report: Report<'_>,
) -> Result<(), Error> {
    let plan = Plan::new(trees, known);
    if plan.items == 0 {
        return Ok(());
    }
    // SAFETY: this function's contract.
    let mut work = unsafe { Work::new(stream, trees, all, plan.items)? };
    stream.upload(&mut work.cursors, &plan.firsts)?;
    work.roots(bounds.as_slice(), first_number.as_slice())?;
    let works = trees.lists.works(&trees.trees, &plan.lengths);
    let (sum, mut done) = (works.iter().sum::<f64>(), 0.0);
    // Lists of leaves are the last ones.
    let mut leaves = Vec::new();
    for (list, part) in plan.parts(trees) {
        match (list.search, &mut report) {
            (Search::Leaves(keys), None) => leaves.push((keys, part)),
            (_, None) => work.solve::<M>(list, part)?,
            (_, Some(report)) => {
                work.solve::<M>(list, part)?;
                done += works[part.number];
                stream.synchronize()?;
                report(done / sum)?;
            }
        }
    }
    Ok(work.all_leaves::<M>(leaves)?)
}

/// Start of each list of some buckets, and its final length.
struct Plan {
    firsts: Vec<u32>,
    lengths: Vec<u64>,
    /// Nodes of all lists.
    items: usize,
}

impl Plan {
    /// Plans lists for `buckets[k]` buckets of `k` keys.
    fn new(trees: &DeviceTrees, buckets: &[u32]) -> Self {
        let lengths = trees.lists.lengths(&trees.trees, buckets);
        let mut items = 0;
        let firsts = lengths
            .iter()
            .map(|&length| {
                let first = items as u32;
                items += length as usize;
                first
            })
            .collect();
        Self { firsts, lengths, items }
    }

    /// Returns the lists with nodes, in the order of their searches.
    fn parts<'t>(&self, trees: &'t DeviceTrees) -> impl Iterator<Item = (&'t List, Part)> {
        let part =
            |number: usize| Part { number, first: self.firsts[number] as usize, count: self.lengths[number] as usize };
        let all = trees.lists.all().iter().enumerate();
        all.map(move |(number, list)| (list, part(number))).filter(|(_, part)| part.count > 0)
    }
}

/// Returns the first bucket with at least `known` keys.
#[cold]
fn too_large(bounds: &DeviceVec<u32>, known: usize) -> Result<SearchFailure, GpuError> {
    let bounds = bounds.to_vec()?;
    let is_too_large = |of: &[u32]| (of[1] - of[0]) as usize >= known;
    Ok(SearchFailure { bucket: bounds.windows(2).position(is_too_large).unwrap_or(0) })
}

/// Returns the bucket of the key at this position.
#[cold]
fn bucket_of_key(bounds: &DeviceVec<u32>, key: u32) -> Result<usize, GpuError> {
    Ok(bounds.to_vec()?.partition_point(|&bound| bound <= key).saturating_sub(1))
}

#[cfg(test)]
mod tests;

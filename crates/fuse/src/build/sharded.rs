//! Sharded binary fuse filters: many small graphs, each built by one thread in its cache.
//!
//! Problem: one graph of all keys is peeled in an order that depends on every slot. Each step reads a random slot of an
//! array of many bytes per key, and one thread does it.
//!
//! Idea: the high bits of a key's hash pick a shard, a complete graph of its own with 2^14 slots for about 13,200 keys.
//! Shards are independent, so all threads build them, and 16,384 slots with their state stay in the cache of a core
//! (or the shared memory of a thread block).
//!
//! ```text
//! hash   | high 32 bits                 | low 32 bits |
//!          shard = high * shards >> 32    slots and fingerprint, from the hash mixed with the shard's seed
//!
//! words  | shard 0: 2^14 fingerprints | shard 1 | ... | seeds: one byte per shard |
//! ```
//!
//! Bound: the multiplication keeps the order of hashes, so a sort by the high half groups the shards. Space: a graph of
//! this size takes 1.24 slots per key (four-wise 1.18), where one of a million keys takes 1.13 (1.08). The number of
//! keys per shard deviates by its square root, about 115 of 13,200. A shard that cannot be peeled tries its own next
//! seed, of 256: measured, 42 of 1,516 three-wise shards needed a second seed and none a third.
//!
//! Source: the graph is that of Graf and Lemire ([`warpset_core::fuse`]); shards with their own seeds are ours.

use std::ops::Range;

use warpset_base::parallel;
use warpset_base::words::{OutOfMemory, zeroed_vec};
use warpset_core::fuse::SHARD_SEEDS;
use warpset_core::fuse::hash::shard_of;

use super::Failure;
use super::partition::{Hashes, MOST_PARTS, Partitioned};
use super::shard::ShardPeeler;
use crate::Layout;
use crate::width::Width;

/// Scratch of a thread for one shard after the other.
struct Scratch<F> {
    peeler: Option<ShardPeeler<F>>,
    /// Hashes of several shards, shard by shard.
    sorted: Vec<u64>,
    /// The end of each shard.
    ends: Vec<usize>,
    /// Hashes of one shard, to find equal ones.
    spare: Vec<u64>,
}

impl<F> Default for Scratch<F> {
    fn default() -> Scratch<F> {
        Scratch { peeler: None, sorted: Vec::new(), ends: Vec::new(), spare: Vec::new() }
    }
}

/// The fingerprints and the seeds of some shards.
pub(crate) struct Shards<'a, F> {
    /// Their numbers.
    pub numbers: Range<u64>,
    pub fingerprints: &'a mut [F],
    pub seeds: &'a mut [u8],
}

/// Returns the fingerprints of all shards in the words of a filter, and their seeds.
pub(crate) fn split_words<'a, F: Width>(layout: &Layout, words: &'a mut [u64]) -> Shards<'a, F> {
    let (fingerprints, seeds) = words.split_at_mut(layout.fingerprint_words() as usize);
    Shards {
        numbers: 0..layout.shards,
        fingerprints: &mut bytemuck::cast_slice_mut(fingerprints)[..layout.slots() as usize],
        seeds: &mut bytemuck::cast_slice_mut(seeds)[..layout.shards as usize],
    }
}

/// Fills `words` with the fingerprints of `keys > 0` keys with these hashes.
pub(super) fn build<const ARITY: usize, F: Width>(
    layout: &Layout,
    keys: usize,
    hash: Hashes<'_>,
    words: &mut [u64],
    are_distinct: bool,
) -> Result<(), Failure> {
    build_range::<ARITY, F>(layout, keys, hash, split_words(layout, words), are_distinct)
}

/// Builds neighbouring shards from all of their hashes, on all threads.
pub(crate) fn build_range<const ARITY: usize, F: Width>(
    layout: &Layout,
    keys: usize,
    hash: Hashes<'_>,
    shards: Shards<'_, F>,
    are_distinct: bool,
) -> Result<(), Failure> {
    let Shards { numbers, fingerprints, seeds } = shards;
    let count = numbers.end - numbers.start;
    let together = count.div_ceil(MOST_PARTS as u64).next_power_of_two();
    let parts = count.div_ceil(together) as usize;
    let part_of = |hash: u64| ((shard_of(hash, layout.shards) - numbers.start) >> together.ilog2()) as usize;
    let hashes = Partitioned::new(keys, hash, parts, part_of)?;
    let parts = (numbers.step_by(together as usize))
        .zip(fingerprints.chunks_mut(together as usize * layout.graph_slots() as usize))
        .zip(seeds.chunks_mut(together as usize))
        .map(|((first, fingerprints), seeds)| Shards {
            numbers: first..first + seeds.len() as u64,
            fingerprints,
            seeds,
        });
    let built = parallel::map_with(Scratch::default, parts.enumerate(), |scratch, (part, shards)| {
        build_some::<ARITY, F>(layout, hashes.part(part), shards, are_distinct, scratch)
    });
    first_failure(built)
}

/// Returns the failure that decides the next step: errors, then repetitions, then bad luck.
fn first_failure(built: Vec<Result<(), Failure>>) -> Result<(), Failure> {
    let mut worst = Ok(());
    for one in built {
        worst = match (worst, one) {
            (Err(Failure::Error(error)), _) | (_, Err(Failure::Error(error))) => Err(Failure::Error(error)),
            (Err(Failure::Duplicates), _) | (_, Err(Failure::Duplicates)) => Err(Failure::Duplicates),
            (Err(Failure::Unlucky), _) | (_, Err(Failure::Unlucky)) => Err(Failure::Unlucky),
            (Ok(()), Ok(())) => Ok(()),
        };
    }
    worst
}

/// Builds some shards from all of their hashes, in any order.
fn build_some<const ARITY: usize, F: Width>(
    layout: &Layout,
    hashes: &[u64],
    shards: Shards<'_, F>,
    are_distinct: bool,
    scratch: &mut Scratch<F>,
) -> Result<(), Failure> {
    let Shards { numbers, fingerprints, seeds } = shards;
    let Scratch { peeler, sorted, ends, spare } = scratch;
    let peeler = match peeler {
        Some(peeler) => peeler,
        None => peeler.insert(ShardPeeler::new()?),
    };
    let sorted = match seeds.len() {
        1 => {
            *ends = vec![hashes.len()];
            hashes
        }
        _ => sort_by_shard(layout, hashes, &numbers, sorted, ends)?,
    };
    let mut first = 0;
    let places = fingerprints.chunks_mut(layout.graph_slots() as usize).zip(seeds);
    for ((slots, seed), &end) in places.zip(&*ends) {
        let hashes = &sorted[first..end];
        first = end;
        build_one::<ARITY, F>(layout, hashes, slots, seed, are_distinct, peeler, spare)?;
    }
    Ok(())
}

/// Copies hashes to `sorted`, shard by shard, and returns them; writes the end of each shard to `ends`.
fn sort_by_shard<'a>(
    layout: &Layout,
    hashes: &[u64],
    numbers: &Range<u64>,
    sorted: &'a mut Vec<u64>,
    ends: &mut Vec<usize>,
) -> Result<&'a [u64], OutOfMemory> {
    if sorted.len() < hashes.len() {
        *sorted = zeroed_vec(hashes.len() as u64)?;
    }
    let count = (numbers.end - numbers.start) as usize;
    ends.clear();
    let shard = |hash: u64| (shard_of(hash, layout.shards) - numbers.start) as usize;
    ends.resize(count, 0);
    hashes.iter().for_each(|&hash| ends[shard(hash)] += 1);
    let mut begin = 0;
    for end in ends.iter_mut() {
        begin += std::mem::replace(end, begin);
    }
    // Start of each shard, which moves to its end as hashes are placed.
    for &hash in hashes {
        let place = &mut ends[shard(hash)];
        sorted[*place] = hash;
        *place += 1;
    }
    Ok(&sorted[..hashes.len()])
}

/// Builds one shard, under the first seed that will do.
fn build_one<const ARITY: usize, F: Width>(
    layout: &Layout,
    hashes: &[u64],
    slots: &mut [F],
    seed: &mut u8,
    are_distinct: bool,
    peeler: &mut ShardPeeler<F>,
    spare: &mut Vec<u64>,
) -> Result<(), Failure> {
    let (graph, keys) = (layout.graph, hashes.len() as u64);
    let mut may_repeat = !are_distinct;
    if keys <= slots.len() as u64 {
        for candidate in 0..SHARD_SEEDS {
            let shard_seed = candidate as u8;
            if peeler.peel::<ARITY>(graph, hashes, shard_seed) {
                *seed = shard_seed;
                peeler.assign::<ARITY>(slots);
                return Ok(());
            }
            if may_repeat && repeat(hashes, spare) {
                return Err(Failure::Duplicates);
            }
            may_repeat = false;
        }
    }
    Err(if may_repeat && repeat(hashes, spare) { Failure::Duplicates } else { Failure::Unlucky })
}

/// Whether some of these are equal.
fn repeat(hashes: &[u64], spare: &mut Vec<u64>) -> bool {
    spare.clear();
    spare.extend_from_slice(hashes);
    super::has_equal(spare)
}

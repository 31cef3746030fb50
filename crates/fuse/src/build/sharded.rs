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
use super::item::{Item, in_slots};
use super::partition::{Hashes, MOST_PARTS, Partitioned};
use super::shard::ShardPeeler;
use crate::Layout;
use crate::width::Slot;

/// Scratch of a thread for one shard after the other.
struct Scratch<T, F> {
    peeler: Option<ShardPeeler<F>>,
    /// Hashes of several shards, shard by shard.
    sorted: Vec<T>,
    /// The end of each shard.
    ends: Vec<usize>,
    /// Hashes of one shard, to find equal ones.
    spare: Vec<T>,
    /// Slots before they are packed.
    slots: Vec<F>,
}

impl<T, F> Default for Scratch<T, F> {
    fn default() -> Scratch<T, F> {
        Scratch { peeler: None, sorted: Vec::new(), ends: Vec::new(), spare: Vec::new(), slots: Vec::new() }
    }
}

/// The slots and the seeds of some shards.
pub(crate) struct Shards<'a> {
    /// Their numbers.
    pub numbers: Range<u64>,
    /// Their slots, in whole words per shard.
    pub words: &'a mut [u64],
    pub seeds: &'a mut [u8],
}

/// Returns the slots of all shards in the words of a filter, and their seeds.
pub(crate) fn split_words<'a>(layout: &Layout, words: &'a mut [u64]) -> Shards<'a> {
    let (words, seeds) = words.split_at_mut(layout.slot_words() as usize);
    Shards { numbers: 0..layout.shards, words, seeds: &mut bytemuck::cast_slice_mut(seeds)[..layout.shards as usize] }
}

/// Fills `words` with the contents of `keys > 0` keys with these hashes.
pub(super) fn build<const ARITY: usize, T: Item, F: Slot>(
    layout: &Layout,
    keys: usize,
    hash: Hashes<'_, T>,
    words: &mut [u64],
    are_distinct: bool,
) -> Result<(), Failure> {
    build_range::<ARITY, T, F>(layout, keys, hash, split_words(layout, words), are_distinct)
}

/// Builds neighbouring shards from all of their hashes, on all threads.
pub(crate) fn build_range<const ARITY: usize, T: Item, F: Slot>(
    layout: &Layout,
    keys: usize,
    hash: Hashes<'_, T>,
    shards: Shards<'_>,
    are_distinct: bool,
) -> Result<(), Failure> {
    let Shards { numbers, words, seeds } = shards;
    let count = numbers.end - numbers.start;
    let together = count.div_ceil(MOST_PARTS as u64).next_power_of_two();
    let parts = count.div_ceil(together) as usize;
    let part_of = |hash: u64| ((shard_of(hash, layout.shards) - numbers.start) >> together.ilog2()) as usize;
    let hashes = Partitioned::new(keys, hash, parts, part_of)?;
    let parts = (numbers.step_by(together as usize))
        .zip(words.chunks_mut(together as usize * layout.shard_words() as usize))
        .zip(seeds.chunks_mut(together as usize))
        .map(|((first, words), seeds)| Shards { numbers: first..first + seeds.len() as u64, words, seeds });
    let built = parallel::map_with(Scratch::default, parts.enumerate(), |scratch, (part, shards)| {
        build_some::<ARITY, T, F>(layout, hashes.part(part), shards, are_distinct, scratch)
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
fn build_some<const ARITY: usize, T: Item, F: Slot>(
    layout: &Layout,
    hashes: &[T],
    shards: Shards<'_>,
    are_distinct: bool,
    scratch: &mut Scratch<T, F>,
) -> Result<(), Failure> {
    let Shards { numbers, words, seeds } = shards;
    let Scratch { peeler, sorted, ends, spare, slots } = scratch;
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
    let places = words.chunks_mut(layout.shard_words() as usize).zip(seeds);
    for ((words, seed), &end) in places.zip(&*ends) {
        let hashes = &sorted[first..end];
        first = end;
        build_one::<ARITY, T, F>(layout, hashes, words, seed, are_distinct, peeler, (spare, slots))?;
    }
    Ok(())
}

/// Copies hashes to `sorted`, shard by shard, and returns them; writes the end of each shard to `ends`.
fn sort_by_shard<'a, T: Item>(
    layout: &Layout,
    hashes: &[T],
    numbers: &Range<u64>,
    sorted: &'a mut Vec<T>,
    ends: &mut Vec<usize>,
) -> Result<&'a [T], OutOfMemory> {
    if sorted.len() < hashes.len() {
        *sorted = zeroed_vec(hashes.len() as u64)?;
    }
    let count = (numbers.end - numbers.start) as usize;
    ends.clear();
    let shard = |item: T| (shard_of(item.hash(), layout.shards) - numbers.start) as usize;
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
fn build_one<const ARITY: usize, T: Item, F: Slot>(
    layout: &Layout,
    hashes: &[T],
    words: &mut [u64],
    seed: &mut u8,
    are_distinct: bool,
    peeler: &mut ShardPeeler<F>,
    (spare, scratch): (&mut Vec<T>, &mut Vec<F>),
) -> Result<(), Failure> {
    let (graph, keys) = (layout.graph, hashes.len() as u64);
    let mut may_repeat = !are_distinct;
    if keys <= layout.graph_slots() {
        for candidate in 0..SHARD_SEEDS {
            let shard_seed = candidate as u8;
            if peeler.peel::<ARITY, T>(graph, hashes, (shard_seed, layout.value_bits)) {
                *seed = shard_seed;
                in_slots(layout, words, scratch, |slots| peeler.assign::<ARITY>(slots))?;
                return Ok(());
            }
            if may_repeat {
                repeat(hashes, spare)?;
            }
            may_repeat = false;
        }
    }
    if may_repeat {
        repeat(hashes, spare)?;
    }
    Err(Failure::Unlucky)
}

/// Fails if some of these are equal.
fn repeat<T: Item>(hashes: &[T], spare: &mut Vec<T>) -> Result<(), Failure> {
    spare.clear();
    spare.extend_from_slice(hashes);
    super::expect_different(spare)
}

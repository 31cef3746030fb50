//! Hashes by partition.
//!
//! The keys are taken in chunks that fit into the second-level cache. Each chunk is sorted by partition in its own part of the room,
//! so that writes stay in that cache and chunks do not wait for each other; a partition then has a piece in every chunk.
//! Its task reads all of them, one after the other.

use crate::key::Hash128;
use crate::room::{HUGE, Room};
use crate::stage;
use std::convert::Infallible;
use std::mem::MaybeUninit;

/// Keys in a chunk at most: half of a megabyte of hashes. Places in a chunk fit 16 bits.
const CHUNK: usize = 1 << 15;
/// Chunks for each thread, so that none waits long for the others.
const CHUNKS: usize = 8;

/// Hashes, chunk by chunk in the order of their partitions.
pub(crate) struct Spread {
    room: Room<Hash128>,
    chunk: usize,
    /// The end of each partition's piece in each chunk.
    ends: Vec<u16>,
    partitions: usize,
}

/// Space of a thread: the hashes of a chunk that are not cheap to make, and the place of each partition's next one.
#[derive(Default)]
struct Space {
    hashes: Vec<Hash128>,
    places: Vec<u16>,
}

impl Spread {
    /// Spreads `keys` hashes over `partitions`. Those that are `cheap` are made twice and never copied.
    pub(crate) fn new(
        keys: usize,
        hash: impl Fn(usize) -> Hash128 + Sync,
        cheap: bool,
        partition_of: impl Fn(&Hash128) -> usize + Sync,
        partitions: usize,
    ) -> Self {
        let chunk = keys.div_ceil(rayon::current_num_threads() * CHUNKS).clamp(1 << 12, CHUNK);
        let mut ends = vec![0_u16; keys.div_ceil(chunk) * partitions];
        let mut room = Room::new(keys);
        let slots = room.slots()[..keys].chunks_mut(chunk);
        let mut chunks: Vec<_> = slots.zip(ends.chunks_exact_mut(partitions)).enumerate().collect();
        // Threads that first write to the same page would each make one of zeros: neighbours are not taken at the same time.
        let in_page = HUGE / (chunk * size_of::<Hash128>()) + 1;
        chunks.sort_by_key(|(index, _)| index % in_page);
        let work = |space: &mut Space, (index, (slots, ends)): (usize, (&mut [_], &mut [u16]))| {
            let begin = index * chunk;
            let Space { hashes, places } = space;
            if cheap {
                sort(slots, ends, places, |i| hash(begin + i), &partition_of);
            } else {
                hashes.clear();
                hashes.extend((begin..begin + slots.len()).map(&hash));
                sort(slots, ends, places, |i| hashes[i], &partition_of);
            }
            Ok::<_, Infallible>(())
        };
        let Ok(_) = stage::each(chunks.into_iter(), work);
        // SAFETY: `sort` wrote all places of each chunk.
        unsafe { room.set_len(keys) };
        Self { room, chunk, ends, partitions }
    }

    /// The keys of a partition.
    pub(crate) fn partition(&self, index: usize) -> Partition<'_> {
        Partition { spread: self, index }
    }
}

/// Puts `hash(0)` and so on into the order of their partitions; also gives the partitions' `ends`. All `slots` are written.
#[inline(always)]
fn sort(
    slots: &mut [MaybeUninit<Hash128>],
    ends: &mut [u16],
    places: &mut Vec<u16>,
    hash: impl Fn(usize) -> Hash128,
    partition_of: impl Fn(&Hash128) -> usize,
) {
    let keys = slots.len();
    places.clear();
    places.resize(ends.len(), 0);
    match places.as_mut_slice() {
        [all] => *all = keys as u16,
        counts => (0..keys).for_each(|i| counts[partition_of(&hash(i))] += 1),
    }
    // Turn counts into places and ends.
    let mut sum = 0;
    for (place, end) in places.iter_mut().zip(&mut *ends) {
        sum += std::mem::replace(place, sum);
        *end = sum;
    }
    for i in 0..keys {
        let hash = hash(i);
        let partition = partition_of(&hash);
        let place = &mut places[partition];
        // So every place is taken once, and none is left.
        assert!(*place < ends[partition], "a key must have the same hash each time");
        slots[usize::from(*place)].write(hash);
        *place += 1;
    }
}

/// The hashes of one partition.
#[derive(Clone, Copy)]
pub(crate) struct Partition<'a> {
    spread: &'a Spread,
    index: usize,
}

impl<'a> Partition<'a> {
    /// Its piece of every chunk.
    #[inline(always)]
    pub(crate) fn pieces(self) -> impl Iterator<Item = &'a [Hash128]> {
        let Spread { room, chunk, ends, partitions } = self.spread;
        let chunks = room.as_slice().chunks(*chunk).zip(ends.chunks_exact(*partitions));
        chunks.map(move |(hashes, ends)| {
            let from = if self.index == 0 { 0 } else { ends[self.index - 1] };
            &hashes[usize::from(from)..usize::from(ends[self.index])]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_hash_in_its_partition() {
        for cheap in [true, false] {
            for (keys, partitions) in [(0, 1), (1, 1), (5000, 1), (5000, 3), (4096, 7), (300_000, 1024)] {
                let hash = |i: usize| Hash128 { high: (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), low: i as u64 };
                let partition_of = |hash: &Hash128| (hash.high >> 32) as usize % partitions;
                let spread = Spread::new(keys, hash, cheap, partition_of, partitions);
                let mut found = 0;
                for index in 0..partitions {
                    let mut before = None;
                    for of in spread.partition(index).pieces().flatten() {
                        assert_eq!((partition_of(of), *of), (index, hash(of.low as usize)));
                        assert!(before < Some(of.low), "in the order of keys");
                        before = Some(of.low);
                        found += 1;
                    }
                }
                assert_eq!(found, keys);
            }
        }
    }

    #[test]
    #[should_panic(expected = "the same hash each time")]
    fn keys_that_change_are_noticed() {
        let calls = AtomicU64::new(0);
        let hash = |_| Hash128 { high: calls.fetch_add(1, Ordering::Relaxed) / 9000, low: 0 };
        Spread::new(10_000, hash, true, |hash| hash.high as usize, 3);
    }
}

//! Hashes in the order of their partitions.

use crate::key::Hash128;
use crate::room::Room;
use rayon::prelude::*;

/// Chunks of keys for each thread, so that none waits long for the others.
const CHUNKS: usize = 8;

/// Puts `keys` hashes into the order of their partitions, `count` of them; also gives each partition's end.
pub(crate) fn spread(
    keys: usize,
    hash: impl Fn(usize) -> Hash128 + Sync,
    partition_of: impl Fn(&Hash128) -> usize + Sync,
    count: usize,
) -> (Room, Vec<usize>) {
    let mut room = Room::new(keys);
    let chunk = keys.div_ceil(rayon::current_num_threads() * CHUNKS).max(1 << 12);
    let range = |index: usize| index * chunk..keys.min((index + 1) * chunk);
    let in_chunk = |index: usize| {
        let mut counts = vec![0_usize; count];
        if count == 1 {
            counts[0] = range(index).len();
        } else {
            range(index).for_each(|i| counts[partition_of(&hash(i))] += 1);
        }
        counts
    };
    let chunks = (0..keys.div_ceil(chunk)).into_par_iter().with_max_len(1);
    let ((), mut counts) = rayon::join(|| room.touch(), || chunks.map(in_chunk).collect::<Vec<_>>());
    // Turn counts into places: chunk by chunk within each partition. In the end there are the ends of partitions.
    let mut places = vec![0; count];
    for counts in &counts {
        places.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let mut sum = 0;
    places.iter_mut().for_each(|place| sum += std::mem::replace(place, sum));
    for counts in &mut counts {
        for (place, count) in places.iter_mut().zip(counts) {
            *place += std::mem::replace(count, *place);
        }
    }
    let ends = places;
    let to = Places(room.slots().as_mut_ptr().cast());
    (0..counts.len()).into_par_iter().with_max_len(1).for_each(|index| {
        let mut places = counts[index].clone();
        let ends = counts.get(index + 1).unwrap_or(&ends);
        for i in range(index) {
            let hash = hash(i);
            let partition = partition_of(&hash);
            let place = &mut places[partition];
            assert!(*place < ends[partition], "a key must have the same hash each time");
            // SAFETY: this chunk alone has the places up to where the next one's begin, and takes each once.
            unsafe { to.put(*place, hash) };
            *place += 1;
        }
    });
    // SAFETY: each chunk has as many places as keys, and every key took another one.
    unsafe { room.set_len(keys) };
    (room, ends)
}

/// Where several threads write, each to its own places.
struct Places(*mut Hash128);

// SAFETY: all access is through `put`, whose callers write to disjoint places.
unsafe impl Sync for Places {}

impl Places {
    /// # Safety
    /// There is a place `at`, and nobody else writes it.
    #[inline]
    unsafe fn put(&self, at: usize, hash: Hash128) {
        // SAFETY: as the caller says.
        unsafe { self.0.add(at).write(hash) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    #[should_panic(expected = "the same hash each time")]
    fn keys_that_change_are_noticed() {
        let calls = AtomicU64::new(0);
        let hash = |_| Hash128 { high: calls.fetch_add(1, Ordering::Relaxed) / 9000, low: 0 };
        spread(10_000, hash, |hash| hash.high as usize, 3);
    }
}

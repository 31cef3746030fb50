//! Hashes by parts of their range, on all threads: keys with neighbouring slots become neighbours.

use std::ops::Range;

use warpset_base::parallel;
use warpset_base::words::{OutOfMemory, zeroed_vec};

use super::item::Item;

/// Parts at most: each open place of a thread that writes takes a cache line.
pub(crate) const MOST_PARTS: usize = 1 << 10;
/// Keys from which on several threads share the work.
const SERIAL: usize = 1 << 14;
/// Chunks of keys per thread: enough that no thread waits long for the others.
const CHUNKS: usize = 4;

/// Computes hashes of keys: of as many as the slice has places, from a number of a key on.
pub(crate) type Hashes<'a, T> = &'a (dyn Fn(usize, &mut [T]) + Sync);

/// Hashes, part by part.
pub(crate) struct Partitioned<T> {
    hashes: Vec<T>,
    /// The end of each part.
    ends: Vec<usize>,
}

impl<T: Item> Partitioned<T> {
    /// Hashes `n` keys, and sorts the hashes by `part_of`, which is below `parts`.
    pub(crate) fn new(
        n: usize,
        hash: Hashes<'_, T>,
        parts: usize,
        part_of: impl Fn(u64) -> usize + Sync,
    ) -> Result<Partitioned<T>, OutOfMemory> {
        let mut hashes: Vec<T> = zeroed_vec(n as u64)?;
        let threads = if n < SERIAL { 1 } else { rayon::current_num_threads() };
        let chunk = n.div_ceil(if threads == 1 { 1 } else { threads * CHUNKS }).max(1);
        let range = |i: usize| i * chunk..n.min((i + 1) * chunk);
        let chunks = n.div_ceil(chunk);
        let counts: Vec<Vec<usize>> = parallel::map(0..chunks, |i| {
            let mut counts = vec![0; parts];
            in_blocks(range(i), hash, |hashes| hashes.iter().for_each(|&hash| counts[part_of(hash.hash())] += 1));
            counts
        });
        // The places of a part: those of the first chunk, of the second, and so on.
        let mut places: Vec<Vec<std::slice::IterMut<'_, T>>> = (0..chunks).map(|_| Vec::with_capacity(parts)).collect();
        let mut rest = &mut hashes[..];
        let (mut ends, mut end) = (Vec::with_capacity(parts), 0);
        for part in 0..parts {
            for (counts, places) in counts.iter().zip(&mut places) {
                let (some, others) = rest.split_at_mut(counts[part]);
                places.push(some.iter_mut());
                rest = others;
                end += counts[part];
            }
            ends.push(end);
        }
        parallel::for_each(places.into_iter().enumerate(), |(i, mut places)| {
            in_blocks(range(i), hash, |hashes| {
                for &hash in hashes {
                    // A key has the same hash each time, so its place was counted.
                    if let Some(place) = places[part_of(hash.hash())].next() {
                        *place = hash;
                    }
                }
            });
        });
        Ok(Partitioned { hashes, ends })
    }

    fn range(&self, part: usize) -> Range<usize> {
        let first = if part == 0 { 0 } else { self.ends[part - 1] };
        first..self.ends[part]
    }

    /// Returns the hashes of a part.
    pub(crate) fn part(&self, part: usize) -> &[T] {
        &self.hashes[self.range(part)]
    }

    /// Returns all hashes, part by part.
    pub(crate) fn all(&self) -> &[T] {
        &self.hashes
    }
}

/// Hashes keys, and gives `take` some hashes at a time.
fn in_blocks<T: Item>(keys: Range<usize>, hash: Hashes<'_, T>, mut take: impl FnMut(&[T])) {
    let mut hashes = [T::zeroed(); 256];
    for first in keys.clone().step_by(hashes.len()) {
        let hashes = &mut hashes[..(keys.end - first).min(256)];
        hash(first, hashes);
        take(hashes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::hash::finalise;

    #[test]
    fn every_hash_is_in_its_part() {
        for (n, parts) in [(0, 1), (1, 5), (1000, 1), (SERIAL - 1, 7), (SERIAL + 1, 3), (100_000, MOST_PARTS)] {
            let part_of = |hash: u64| ((u128::from(hash) * parts as u128) >> 64) as usize;
            let hash = |first: usize, to: &mut [u64]| {
                to.iter_mut().zip(first as u64..).for_each(|(to, key)| *to = finalise(key));
            };
            let spread = Partitioned::new(n, &hash, parts, part_of).unwrap();
            assert_eq!((spread.ends.len(), spread.all().len()), (parts, n));
            for part in 0..parts {
                assert!(spread.part(part).iter().all(|&hash| part_of(hash) == part));
            }
            let mut all = spread.all().to_vec();
            all.sort_unstable();
            let mut expected: Vec<u64> = (0..n as u64).map(finalise).collect();
            expected.sort_unstable();
            assert!(all == expected);
        }
    }
}

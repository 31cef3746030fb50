//! Bulk insertion where a key has one block, serial and in parallel without atomics.
//!
//! In parallel the keys of a step are distributed to stripes of the filter, several per thread. Each stripe is one
//! task, and no other task writes its blocks. Distribution keeps the order of the keys within a stripe, as bulk
//! `test_and_insert` requires: equal keys meet in one stripe, in their order.

use warpset_base::processor::prefetch;
use warpset_base::{bitmap, parallel};

use super::by_hash::ByHash;
use crate::layout::BATCH;
use crate::layout::engine::{OneBlock, Word};
use crate::view::{PREFETCH_BYTES, WORD_NS};
use crate::{Hashed, Key, View};

/// Keys distributed in one step of a parallel insertion; bounds the memory that this takes.
const STEP: usize = 1 << 22;
/// Stripes per thread, so that unequal stripes even out.
const STRIPES_PER_THREAD: usize = 4;
/// Nanoseconds per key of an insertion; fewer than they are, because a division takes them twice.
const KEY_NS: f64 = 2.0;
/// Least number of threads of a division: it does more than twice the work.
const LEAST_THREADS: usize = 4;

/// Combines two equally long slices word by word, on all threads if they are long.
pub(super) fn zip_words<W: Word>(to: &mut [u32], from: &[W], combine: impl Fn(&mut u32, u32) + Sync) {
    let task = parallel::task_len(to.len(), WORD_NS);
    parallel::for_each(to.chunks_mut(task).zip(from.chunks(task)), |(to, from)| {
        to.iter_mut().zip(from).for_each(|(a, b)| combine(a, b.get()));
    });
}

pub(super) fn insert_bulk<L: OneBlock, K: Key>(layout: &L, words: &mut [u32], keys: &[K]) {
    let threads = threads_for(keys.len(), KEY_NS);
    if threads == 1 || layout.blocks() < 64 {
        return insert_serial(layout, words, keys);
    }
    let stripes = Stripes::of(layout, threads);
    for step in keys.chunks(STEP) {
        let shares = step.chunks(step.len().div_ceil(threads));
        let distributed = parallel::map(shares, |keys| {
            stripes.distribute(layout, keys.iter().map(|key| layout.probe(key)), |probe| *probe)
        });
        let of_stripes = stripes.split(layout, words).into_iter().enumerate();
        parallel::for_each(of_stripes, |(stripe, (first_block, words))| {
            for share in &distributed {
                insert_probes(layout, words, first_block, &share[stripe]);
            }
        });
    }
}

/// Returns the number of threads that share an insertion of this many keys, each `key_ns` nanoseconds of work.
pub(super) fn threads_for(keys: usize, key_ns: f64) -> usize {
    let threads = parallel::threads_of(keys, key_ns);
    if threads < LEAST_THREADS { 1 } else { threads }
}

/// Hashes a batch and prefetches its cache lines while the batch before it is inserted.
fn insert_serial<L: OneBlock, K: Key>(layout: &L, words: &mut [u32], keys: &[K]) {
    let prefetch = size_of_val(words) > PREFETCH_BYTES;
    let mut probes = [[L::Probe::default(); BATCH]; 2];
    let mut waiting = 0;
    let mut turn = 0;
    for batch in keys.chunks(BATCH) {
        for (probe, key) in probes[turn].iter_mut().zip(batch) {
            *probe = layout.probe(key);
            if prefetch {
                layout.prefetch(bytemuck::cast_slice(words), probe);
            }
        }
        turn ^= 1;
        layout.insert_batch(words, 0, &probes[turn][..waiting]);
        waiting = batch.len();
    }
    layout.insert_batch(words, 0, &probes[turn ^ 1][..waiting]);
}

/// Inserts hashed keys batch by batch, while the cache lines of the next batch are prefetched. Their blocks lie in
/// `words`, which begins with block `first_block`.
fn insert_probes<L: OneBlock>(layout: &L, words: &mut [u32], first_block: u64, probes: &[L::Probe]) {
    if size_of_val(words) <= PREFETCH_BYTES {
        return probes.chunks(BATCH).for_each(|batch| layout.insert_batch(words, first_block, batch));
    }
    let block_words = layout.words_per_block();
    let mut before: &[L::Probe] = &[];
    for batch in probes.chunks(BATCH) {
        for probe in batch {
            let index = (layout.block_of(probe) - first_block) as usize * block_words;
            prefetch(words, index);
        }
        layout.insert_batch(words, first_block, before);
        before = batch;
    }
    layout.insert_batch(words, first_block, before);
}

/// Division of a filter for parallel work: block `b` is in stripe `b >> shift`.
struct Stripes {
    shift: u32,
    count: usize,
}

impl Stripes {
    fn of<L: OneBlock>(layout: &L, threads: usize) -> Stripes {
        let wanted = (STRIPES_PER_THREAD * threads) as u64;
        let shift = (layout.blocks() / wanted).checked_ilog2().unwrap_or(0);
        Stripes { shift, count: (((layout.blocks() - 1) >> shift) + 1) as usize }
    }

    /// Sorts what belongs to probes by stripe, keeping the order.
    fn distribute<L: OneBlock, T: Copy>(
        &self,
        layout: &L,
        items: impl ExactSizeIterator<Item = T>,
        probe: impl Fn(&T) -> L::Probe,
    ) -> Vec<Vec<T>> {
        let share = items.len() / self.count;
        let mut stripes: Vec<Vec<T>> = (0..self.count).map(|_| Vec::with_capacity(share + share / 8 + 64)).collect();
        for item in items {
            stripes[(layout.block_of(&probe(&item)) >> self.shift) as usize].push(item);
        }
        stripes
    }

    /// Returns the stripes of the words, each with the number of its first block.
    fn split<'a, L: OneBlock>(&self, layout: &L, words: &'a mut [u32]) -> Vec<(u64, &'a mut [u32])> {
        let stripe_words = layout.words_per_block() << self.shift;
        words.chunks_mut(stripe_words).enumerate().map(|(i, stripe)| ((i as u64) << self.shift, stripe)).collect()
    }
}

/// A key of a `test_and_insert` step: its probe and its place.
#[derive(Clone, Copy)]
struct Placed<P> {
    probe: P,
    place: u32,
}

/// Runs one step of bulk `test_and_insert`.
pub(super) fn test_and_insert_step<L: OneBlock, K: Key>(layout: &L, words: &mut [u32], keys: &[K], new: &mut [bool]) {
    let threads = threads_for(keys.len(), KEY_NS);
    if threads == 1 || layout.blocks() < 64 {
        return test_and_insert_serial(layout, words, keys, new);
    }
    new.fill(false);
    let stripes = Stripes::of(layout, threads);
    let share = keys.len().div_ceil(threads);
    let distributed = parallel::map(keys.chunks(share).enumerate(), |(i, keys)| {
        absent_by_stripe(layout, words, keys, i * share, &stripes)
    });
    let of_stripes = stripes.split(layout, words).into_iter().enumerate();
    let places: Vec<Vec<u32>> = parallel::map(of_stripes, |(stripe, (first_block, words))| {
        let shares: Vec<&[Placed<L::Probe>]> = distributed.iter().map(|share| share[stripe].as_slice()).collect();
        insert_absent(layout, words, first_block, &shares)
    });
    places.iter().flatten().for_each(|place| new[*place as usize] = true);
}

/// Runs one step on the calling thread: looks all keys up, then inserts the absent ones; see [`Undecided`]. Keys are
/// hashed again rather than kept.
fn test_and_insert_serial<L: OneBlock, K: Key>(layout: &L, words: &mut [u32], keys: &[K], new: &mut [bool]) {
    if !K::CHEAP {
        let hashes: Vec<Hashed> = keys.iter().map(|key| Hashed(L::hash_of(&layout.probe(key)))).collect();
        return test_and_insert_serial(layout, words, &hashes, new);
    }
    let prefetch = size_of_val(words) > PREFETCH_BYTES;
    let mut answers = vec![0; keys.len().div_ceil(BATCH)];
    View::new(*layout, bytemuck::cast_slice(words)).answer(keys, |i, found, probes| {
        answers[i] = !found & u64::MAX >> (BATCH - probes.len());
    });
    let hash = |place: usize| L::hash_of(&layout.probe(&keys[place]));
    let mut undecided = Undecided::default();
    let mut probes = [[L::Probe::default(); BATCH]; 2];
    let mut waiting = 0;
    for i in 0..=answers.len() {
        let [even, odd] = &mut probes;
        let (next, before) = if i % 2 == 0 { (even, odd) } else { (odd, even) };
        let mut count = 0;
        if let Some(&absent) = answers.get(i).filter(|absent| **absent != 0) {
            let batch = &keys[i * BATCH..keys.len().min((i + 1) * BATCH)];
            layout.probe_batch(batch, &mut next[..batch.len()]);
            for_each_one(absent, |j| {
                next[count] = next[j];
                count += 1;
            });
            if prefetch {
                layout.prefetch_batch(bytemuck::cast_slice(words), &next[..count]);
            }
        }
        if waiting > 0 {
            let absent = answers[i - 1];
            let changed = spread(layout.insert_and_tell(words, 0, &before[..waiting]), absent);
            for_each_one(absent & !changed, |j| {
                let place = (i - 1) * BATCH + j;
                undecided.add(hash(place), place as u32);
            });
            answers[i - 1] = changed;
        }
        waiting = count;
    }
    if !undecided.is_empty() {
        for (i, (batch, &changed)) in keys.chunks(BATCH).zip(&answers).enumerate() {
            let probes = &mut probes[i % 2][..batch.len()];
            layout.probe_batch(batch, probes);
            for_each_one(changed, |j| undecided.remove(L::hash_of(&probes[j])));
        }
        undecided.into_places().for_each(|place| answers[place as usize / BATCH] |= 1 << (place as usize % BATCH));
    }
    bitmap::bits_to(new, &answers);
}

/// Moves the lowest bits to the places of the ones of `to`, in their order.
#[inline(always)]
fn spread(mut bits: u64, to: u64) -> u64 {
    if to == u64::MAX {
        return bits;
    }
    let mut spread = 0;
    for_each_one(to, |i| {
        spread |= (bits & 1) << i;
        bits >>= 1;
    });
    spread
}

/// Keys of a step that were absent and changed no bit when they were inserted. Each is new unless an equal hash came
/// before it.
///
/// A key that was absent and changes a bit is new: an equal hash before it would have set all its bits. If it changes
/// nothing, either an equal hash precedes it, or other keys set its bits; only these few keys are looked up by hash.
struct Undecided {
    /// Place of the first key with each hash.
    first: ByHash<u32>,
    /// Bits for the hashes, several hashes per bit, so that most other hashes cost one test.
    marks: [u64; Undecided::WORDS],
}

impl Default for Undecided {
    fn default() -> Undecided {
        Undecided { first: ByHash::default(), marks: [0; Undecided::WORDS] }
    }
}

impl Undecided {
    const WORDS: usize = 1 << 10;

    #[inline(always)]
    fn mark(hash: u64) -> (usize, u64) {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> 54) as usize % Undecided::WORDS, 1 << (mixed >> 48 & 63))
    }

    fn add(&mut self, hash: u64, place: u32) {
        let (word, bit) = Undecided::mark(hash);
        self.marks[word] |= bit;
        self.first.entry(hash).or_insert(place);
    }

    /// Takes out a hash whose first key changed a bit.
    #[inline(always)]
    fn remove(&mut self, hash: u64) {
        let (word, bit) = Undecided::mark(hash);
        if self.marks[word] & bit != 0 {
            self.first.remove(&hash);
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns the places of the new keys.
    fn into_places(self) -> impl Iterator<Item = u32> {
        self.first.into_values()
    }
}

/// Returns the absent keys by stripe, in their order; the first key has the place `first`. Only these matter: the
/// filter changes after all lookups.
fn absent_by_stripe<L: OneBlock, K: Key>(
    layout: &L,
    words: &[u32],
    keys: &[K],
    first: usize,
    stripes: &Stripes,
) -> Vec<Vec<Placed<L::Probe>>> {
    let share = keys.len() / stripes.count / 2;
    let mut distributed: Vec<Vec<_>> =
        (0..stripes.count).map(|_| Vec::with_capacity(share + share / 8 + BATCH)).collect();
    View::new(*layout, bytemuck::cast_slice(words)).answer(keys, |i, found, probes| {
        for_each_one(!found & u64::MAX >> (BATCH - probes.len()), |j| {
            let place = (first + i * BATCH + j) as u32;
            distributed[(layout.block_of(&probes[j]) >> stripes.shift) as usize]
                .push(Placed { probe: probes[j], place });
        });
    });
    distributed
}

/// Inserts what [`absent_by_stripe`] left for one stripe; the places of the new keys. See [`Undecided`].
fn insert_absent<L: OneBlock>(
    layout: &L,
    words: &mut [u32],
    first_block: u64,
    shares: &[&[Placed<L::Probe>]],
) -> Vec<u32> {
    let far = size_of_val(words) > PREFETCH_BYTES;
    let block_words = layout.words_per_block();
    let batches = || shares.iter().flat_map(|share| share.chunks(BATCH));
    let mut new = Vec::with_capacity(shares.iter().map(|share| share.len()).sum());
    let mut told = Vec::with_capacity(new.capacity() / BATCH + shares.len());
    let mut undecided = Undecided::default();
    let mut probes = [L::Probe::default(); BATCH];
    let mut ahead = batches().skip(1);
    for batch in batches() {
        if far {
            for key in ahead.next().unwrap_or(&[]) {
                let index = (layout.block_of(&key.probe) - first_block) as usize * block_words;
                prefetch(words, index);
            }
        }
        probes.iter_mut().zip(batch).for_each(|(probe, key)| *probe = key.probe);
        let changed = layout.insert_and_tell(words, first_block, &probes[..batch.len()]);
        told.push(changed);
        for_each_one(changed, |i| new.push(batch[i].place));
        for_each_one(!changed & u64::MAX >> (BATCH - batch.len()), |i| {
            undecided.add(L::hash_of(&batch[i].probe), batch[i].place);
        });
    }
    if !undecided.is_empty() {
        for (batch, changed) in batches().zip(told) {
            for_each_one(changed, |i| undecided.remove(L::hash_of(&batch[i].probe)));
        }
        new.extend(undecided.into_places());
    }
    new
}

/// Calls `see` with the number of each bit that is set.
#[inline(always)]
pub(super) fn for_each_one(mut bits: u64, mut see: impl FnMut(usize)) {
    while bits != 0 {
        see(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::{BlockedBloom, Hashed, Insert, SplitBlockBloom, TestAndInsert};
    use warpset_core::bloom::blocked::BlockShape;
    use warpset_core::hash::finalise;

    fn many_threads<R: Send>(run: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap().install(run)
    }

    #[test]
    fn parallel_insertion_gives_the_bytes_of_serial_insertion() {
        let keys: Vec<u64> = (0..100_000).collect();
        for blocks in [1, 63, 64, 65, 1000, 4096] {
            let layout = crate::SplitBlockLayout::new(blocks).unwrap();
            let (mut one, mut all) =
                (SplitBlockBloom::with_layout(layout).unwrap(), SplitBlockBloom::with_layout(layout).unwrap());
            keys.iter().for_each(|key| one.insert(*key));
            many_threads(|| all.insert_bulk(&keys).unwrap());
            assert!(one == all, "{blocks}");
            let layout = crate::BlockedLayout::new(blocks, BlockShape::new(512, 64, 11).unwrap(), 3).unwrap();
            let (mut one, mut all) =
                (BlockedBloom::with_layout(layout).unwrap(), BlockedBloom::with_layout(layout).unwrap());
            keys.iter().for_each(|key| one.insert(*key));
            many_threads(|| all.insert_bulk(&keys).unwrap());
            assert!(one == all, "{blocks}");
        }
    }

    #[test]
    fn test_and_insert_follows_its_rule() {
        // The filter is so small that many keys change nothing although they are new.
        for (blocks, n) in [(2u64, 200u64), (40, 3000), (100, 60_000)] {
            let layout = crate::SplitBlockLayout::new(blocks).unwrap();
            let mut filter = SplitBlockBloom::with_layout(layout).unwrap();
            filter.insert_bulk(crate::as_hashed(&[finalise(1), finalise(2)])).unwrap();
            let keys: Vec<Hashed> = (0..n).map(|i| Hashed(finalise(i % (n / 3)))).collect();
            let before = filter.clone();
            let mut seen = std::collections::HashSet::new();
            let expected: Vec<bool> = keys.iter().map(|k| seen.insert(*k) && !before.contains(*k)).collect();
            let serial = filter.clone().test_and_insert_bulk(&keys).unwrap();
            assert_eq!(serial, expected);
            assert_eq!(many_threads(|| filter.test_and_insert_bulk(&keys).unwrap()), expected);
            let mut inserted = before.clone();
            inserted.insert_bulk(&keys).unwrap();
            assert!(inserted == filter);
            // Strings are hashed once.
            let names: Vec<String> = keys.iter().map(|key| key.0.to_string()).collect();
            let mut seen = std::collections::HashSet::new();
            let expected: Vec<bool> = names.iter().map(|name| seen.insert(name) && !before.contains(name)).collect();
            assert_eq!(before.clone().test_and_insert_bulk(&names).unwrap(), expected);
        }
    }
}

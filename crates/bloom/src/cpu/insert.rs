//! Bulk insertion where a key has one block, serial and in parallel without atomics.
//!
//! In parallel the keys of a step are dealt to as many parts of the filter as keep all threads busy; then each part is
//! one task, which alone writes its blocks. Dealing keeps the order of the keys within a part, which is what bulk
//! `test_and_insert` needs: equal keys meet in one part, in their order.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::Key;
use crate::layout::BATCH;
use crate::layout::engine::OneBlock;
use crate::view::{PREFETCH_BYTES, TASK, is_serial};

/// Keys dealt in one step of a parallel insertion; bounds the memory that dealing takes.
const STEP: usize = 1 << 22;
/// Parts a thread, so that unequal parts even out.
const PARTS_PER_THREAD: usize = 4;

/// Combines two equally long slices word by word, on all threads if they are long.
pub(super) fn zip_words(to: &mut [u32], from: &[u32], combine: impl Fn(&mut u32, u32) + Sync) {
    let task = |to: &mut [u32], from: &[u32]| to.iter_mut().zip(from).for_each(|(a, b)| combine(a, *b));
    if is_serial(to.len()) {
        return task(to, from);
    }
    to.par_chunks_mut(TASK).zip(from.par_chunks(TASK)).for_each(|(to, from)| task(to, from));
}

pub(super) fn insert_bulk<L: OneBlock, K: Key>(layout: &L, words: &mut [u32], keys: &[K]) {
    if is_serial(keys.len()) || layout.blocks() < 64 {
        return insert_serial(layout, words, keys);
    }
    let parts = Parts::of(layout);
    for step in keys.chunks(STEP) {
        let dealt: Vec<Vec<Vec<L::Probe>>> = step
            .par_chunks(step.len().div_ceil(rayon::current_num_threads()))
            .map(|keys| parts.deal(layout, keys.iter().map(|key| layout.probe(key)), |probe| *probe))
            .collect();
        parts.split(layout, words).into_par_iter().enumerate().for_each(|(part, (first_block, words))| {
            for share in &dealt {
                insert_probes(layout, words, first_block, &share[part]);
            }
        });
    }
}

/// Hashes a batch and asks for its cache lines while the batch before it is inserted.
fn insert_serial<L: OneBlock, K: Key>(layout: &L, words: &mut [u32], keys: &[K]) {
    let prefetch = size_of_val(words) > PREFETCH_BYTES;
    let mut probes = [[L::Probe::default(); BATCH]; 2];
    let mut waiting = 0;
    let mut turn = 0;
    for batch in keys.chunks(BATCH) {
        for (probe, key) in probes[turn].iter_mut().zip(batch) {
            *probe = layout.probe(key);
            if prefetch {
                layout.prefetch(words, probe);
            }
        }
        turn ^= 1;
        layout.insert_batch(words, 0, &probes[turn][..waiting]);
        waiting = batch.len();
    }
    layout.insert_batch(words, 0, &probes[turn ^ 1][..waiting]);
}

/// The same for keys that are hashed already and fall in `words`, the blocks from `first_block` on.
fn insert_probes<L: OneBlock>(layout: &L, words: &mut [u32], first_block: u64, probes: &[L::Probe]) {
    if size_of_val(words) <= PREFETCH_BYTES {
        return probes.chunks(BATCH).for_each(|batch| layout.insert_batch(words, first_block, batch));
    }
    let block_words = layout.words_per_block();
    let mut before: &[L::Probe] = &[];
    for batch in probes.chunks(BATCH) {
        for probe in batch {
            let index = (layout.block_of(probe) - first_block) as usize * block_words;
            crate::layout::prefetch(words, index);
        }
        layout.insert_batch(words, first_block, before);
        before = batch;
    }
    layout.insert_batch(words, first_block, before);
}

/// How a filter is cut for parallel work: block `b` is in part `b >> shift`.
struct Parts {
    shift: u32,
    count: usize,
}

impl Parts {
    fn of<L: OneBlock>(layout: &L) -> Parts {
        let wanted = (PARTS_PER_THREAD * rayon::current_num_threads()) as u64;
        let shift = (layout.blocks() / wanted).checked_ilog2().unwrap_or(0);
        Parts { shift, count: (((layout.blocks() - 1) >> shift) + 1) as usize }
    }

    /// Sorts what belongs to probes by part, keeping the order.
    fn deal<L: OneBlock, T: Copy>(
        &self,
        layout: &L,
        items: impl ExactSizeIterator<Item = T>,
        probe: impl Fn(&T) -> L::Probe,
    ) -> Vec<Vec<T>> {
        let share = items.len() / self.count;
        let mut parts: Vec<Vec<T>> = (0..self.count).map(|_| Vec::with_capacity(share + share / 8 + 64)).collect();
        for item in items {
            parts[(layout.block_of(&probe(&item)) >> self.shift) as usize].push(item);
        }
        parts
    }

    /// The parts of the words, each with the number of its first block.
    fn split<'a, L: OneBlock>(&self, layout: &L, words: &'a mut [u32]) -> Vec<(u64, &'a mut [u32])> {
        let part_words = layout.words_per_block() << self.shift;
        words.chunks_mut(part_words).enumerate().map(|(i, part)| ((i as u64) << self.shift, part)).collect()
    }
}

/// A key of a `test_and_insert` step: its probe and its place.
#[derive(Clone, Copy)]
struct Placed<P> {
    probe: P,
    place: u32,
}

/// One step of bulk `test_and_insert`.
pub(super) fn test_and_insert_step<L: OneBlock, K: Key>(layout: &L, words: &mut [u32], keys: &[K], new: &mut [bool]) {
    let placed = |first: usize, keys: &'_ [K]| {
        let place = move |(i, probe)| Placed { probe, place: (first + i) as u32 };
        keys.iter().map(|key| layout.probe(key)).enumerate().map(place).collect::<Vec<_>>()
    };
    if is_serial(keys.len()) || layout.blocks() < 64 {
        for i in test_and_insert_part(layout, words, 0, &[placed(0, keys)]) {
            new[i as usize] = true;
        }
        return;
    }
    let parts = Parts::of(layout);
    let share = keys.len().div_ceil(rayon::current_num_threads());
    let dealt: Vec<Vec<Vec<Placed<L::Probe>>>> = keys
        .par_chunks(share)
        .enumerate()
        .map(|(i, keys)| parts.deal(layout, placed(i * share, keys).into_iter(), |placed| placed.probe))
        .collect();
    let places: Vec<Vec<u32>> = parts
        .split(layout, words)
        .into_par_iter()
        .enumerate()
        .map(|(part, (first_block, words))| {
            let shares: Vec<&[Placed<L::Probe>]> = dealt.iter().map(|share| share[part].as_slice()).collect();
            test_and_insert_part(layout, words, first_block, &shares)
        })
        .collect();
    for i in places.into_iter().flatten() {
        new[i as usize] = true;
    }
}

/// The places of the new keys among those of one part.
///
/// A key that was not contained before and whose insertion changes a bit is new: an equal hash before it would have
/// set all its bits. If it changes nothing, either an equal hash went before, or others happened to set its bits;
/// only those few are looked up by hash.
fn test_and_insert_part<L: OneBlock, S: AsRef<[Placed<L::Probe>]>>(
    layout: &L,
    words: &mut [u32],
    first_block: u64,
    shares: &[S],
) -> Vec<u32> {
    let block_words = layout.words_per_block();
    let keys = || shares.iter().flat_map(|share| share.as_ref());
    // What the filter said before: only keys that it does not contain matter from here on.
    let mut absent: Vec<&Placed<L::Probe>> = Vec::new();
    for key in keys() {
        let first = (layout.block_of(&key.probe) - first_block) as usize * block_words;
        if !layout.block_contains(&words[first..first + block_words], &key.probe) {
            absent.push(key);
        }
    }
    let mut new = Vec::with_capacity(absent.len());
    let mut changed = Vec::with_capacity(absent.len());
    let mut undecided: HashMap<u64, u32> = HashMap::new();
    for key in absent {
        if layout.insert(words, first_block, &key.probe) {
            changed.push(key);
        } else {
            undecided.entry(L::hash_of(&key.probe)).or_insert(key.place);
        }
    }
    for key in changed {
        new.push(key.place);
        if !undecided.is_empty() {
            undecided.remove(&L::hash_of(&key.probe));
        }
    }
    new.extend(undecided.into_values());
    new
}

#[cfg(test)]
mod tests {
    use crate::{BlockedBloom, Hashed, SplitBlockBloom};
    use warpset_core::bloom::blocked::Shape;
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
            many_threads(|| all.insert_bulk(&keys));
            assert!(one == all, "{blocks}");
            let layout = crate::BlockedLayout::new(blocks, Shape::new(512, 64, 11).unwrap(), 3).unwrap();
            let (mut one, mut all) =
                (BlockedBloom::with_layout(layout).unwrap(), BlockedBloom::with_layout(layout).unwrap());
            keys.iter().for_each(|key| one.insert(*key));
            many_threads(|| all.insert_bulk(&keys));
            assert!(one == all, "{blocks}");
        }
    }

    #[test]
    fn test_and_insert_follows_its_rule() {
        // A filter so small that keys often change nothing although they are new.
        for (blocks, n) in [(2u64, 200u64), (40, 3000), (100, 60_000)] {
            let layout = crate::SplitBlockLayout::new(blocks).unwrap();
            let mut filter = SplitBlockBloom::with_layout(layout).unwrap();
            filter.insert_hashes(&[finalise(1), finalise(2)]);
            let keys: Vec<Hashed> = (0..n).map(|i| Hashed(finalise(i % (n / 3)))).collect();
            let before = filter.clone();
            let mut seen = std::collections::HashSet::new();
            let expected: Vec<bool> = keys.iter().map(|k| seen.insert(*k) && !before.contains(*k)).collect();
            let serial = filter.clone().test_and_insert_bulk(&keys);
            assert_eq!(serial, expected);
            assert_eq!(many_threads(|| filter.test_and_insert_bulk(&keys)), expected);
            let mut inserted = before.clone();
            inserted.insert_bulk(&keys);
            assert!(inserted == filter);
        }
    }
}

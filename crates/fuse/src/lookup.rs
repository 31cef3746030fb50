//! Lookups: the slots of a key, and whether their exclusive or is its fingerprint.
//!
//! A batch of 64 keys goes through loops over arrays: hashes and slots first, in vectors where the processor has them,
//! then the reads of all slots. These reads depend on no other work, so a core keeps as many in progress as it can.
//! Filters beyond the cache prefetch the slots of a batch while those of the batch before are read. On recent
//! processors of Intel, lookups in one graph are vectors from keys to answers (`gather`).

use std::marker::PhantomData;

use warpset_base::processor::prefetch;
use warpset_base::with_vectors;
use warpset_core::fuse::Graph;
use warpset_core::fuse::hash::{fingerprint, mix, shard_of, within_shard};

use crate::Arity;
use crate::build::word_of;
use crate::width::Width;
use crate::{Key, Layout};

#[cfg(target_arch = "x86_64")]
mod gather;

/// Keys per batch.
const BATCH: usize = 64;
/// Bytes of words from which on slots are prefetched: those of a typical second-level cache.
pub(crate) const FAR: usize = 1 << 21;

/// A filter to look keys up in.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a, F> {
    layout: &'a Layout,
    words: &'a [u64],
    width: PhantomData<F>,
}

impl<'a, F: Width> Lookup<'a, F> {
    /// Returns the filter in the words of a layout.
    #[inline(always)]
    pub(crate) fn new(layout: &'a Layout, words: &'a [u64]) -> Lookup<'a, F> {
        Lookup { layout, words, width: PhantomData }
    }

    /// Returns the slots, and what follows them in the words.
    #[inline(always)]
    fn slots(self) -> &'a [F] {
        bytemuck::cast_slice(self.words)
    }

    /// Returns the hash of a key in its graph, and where that graph begins.
    #[inline(always)]
    fn locate<const ARITY: usize, const SHARDED: bool>(self, word: u64) -> (u64, usize) {
        let &Layout { graph, seed, shards, .. } = self.layout;
        let hash = mix(word, seed);
        if !SHARDED {
            return (hash, 0);
        }
        let shard = shard_of(hash, shards) as usize;
        (within_shard(hash, self.seeds::<ARITY>()[shard]), shard * graph.slots(ARITY as u32) as usize)
    }

    /// Returns the seeds of the shards, which follow the fingerprints, which are whole words.
    #[inline(always)]
    fn seeds<const ARITY: usize>(self) -> &'a [u8] {
        let slots = self.layout.graph.slots(ARITY as u32) * self.layout.shards;
        &bytemuck::cast_slice(self.words)[(slots as usize * size_of::<F>()).next_multiple_of(8)..]
    }

    /// Calls `visit` with the slots of a key. (One after the other: an array of them would go through memory.)
    #[inline(always)]
    fn visit<const ARITY: usize>(self, (hash, begin): (u64, usize), mut visit: impl FnMut(usize)) {
        let graph = self.layout.graph;
        let first = graph.first(hash);
        for j in 0..ARITY {
            visit(begin + graph.position::<ARITY>(first, hash, j) as usize);
        }
    }

    #[inline(always)]
    fn is_at<const ARITY: usize>(self, place: (u64, usize)) -> bool {
        let mut sum = F::of(fingerprint(place.0));
        self.visit::<ARITY>(place, |at| sum = sum ^ self.slots()[at]);
        sum == F::of(0)
    }

    /// Whether the key of this word may be in the filter.
    #[inline(always)]
    pub(crate) fn contains(self, word: u64) -> bool {
        // The published form is part of the caller's code; the others would make it too large.
        match (self.layout.arity, self.layout.shards, self.layout.graph.starts) {
            (_, _, 0) => false,
            (Arity::Three, 0, _) => self.is_at::<3>(self.locate::<3, false>(word)),
            _ => contains_in_other::<F>(self.layout, self.words, word),
        }
    }

    /// Hands out whether each key may be in the filter, 64 of them at a time, lowest bit first.
    #[inline]
    pub(crate) fn each_64<K: Key>(self, keys: &[K], mut take: impl FnMut(usize, u64)) {
        if self.layout.graph.starts == 0 {
            return (0..keys.len().div_ceil(BATCH)).for_each(|i| take(i, 0));
        }
        #[cfg(target_arch = "x86_64")]
        if gather::is_fast(self) {
            return keys.chunks(BATCH).enumerate().for_each(|(i, keys)| {
                take(i, gather::answers(self, keys) & u64::MAX >> (BATCH - keys.len()));
            });
        }
        let is_far = 8 * self.words.len() > FAR;
        let mut words = [0; BATCH];
        let mut two = [Places { slots: [[0; BATCH]; 4], fingerprints: [F::of(0); BATCH] }; 2];
        for i in 0..keys.len().div_ceil(BATCH) + 1 {
            if let Some(keys) = keys.chunks(BATCH).nth(i) {
                (0..keys.len().min(BATCH)).for_each(|i| words[i] = word_of(&keys[i]));
                let places = &mut two[i % 2];
                locate(self, &words, places);
                if is_far {
                    let slots = places.slots[..self.layout.arity as usize].as_flattened();
                    slots.iter().for_each(|&slot| prefetch(self.slots(), slot as usize));
                }
            }
            let before = i.wrapping_sub(1);
            if let Some(keys) = keys.chunks(BATCH).nth(before) {
                let places = &two[before % 2];
                let answers = match self.layout.arity {
                    Arity::Three => self.answers::<3>(places),
                    Arity::Four => self.answers::<4>(places),
                };
                take(before, answers & u64::MAX >> (BATCH - keys.len()));
            }
        }
    }

    #[inline(always)]
    fn locate_in<const ARITY: usize, const SHARDED: bool>(self, words: &[u64; BATCH], places: &mut Places<F>) {
        let &Layout { graph, seed, shards, .. } = self.layout;
        let (mut hashes, mut begins) = ([0; BATCH], [0; BATCH]);
        for i in 0..BATCH {
            hashes[i] = mix(words[i], seed);
        }
        if SHARDED {
            let (seeds, mut shard_seeds) = (self.seeds::<ARITY>(), [0; BATCH]);
            for i in 0..BATCH {
                begins[i] = shard_of(hashes[i], shards);
            }
            for i in 0..BATCH {
                shard_seeds[i] = seeds[begins[i] as usize];
            }
            for i in 0..BATCH {
                hashes[i] = within_shard(hashes[i], shard_seeds[i]);
                begins[i] *= graph.slots(ARITY as u32);
            }
        }
        for i in 0..BATCH {
            let first = first_by_halves(graph, hashes[i]);
            for j in 0..ARITY {
                places.slots[j][i] = begins[i] + u64::from(graph.position::<ARITY>(first, hashes[i], j));
            }
            places.fingerprints[i] = F::of(fingerprint(hashes[i]));
        }
    }

    /// Returns whether keys with these slots and fingerprints may be in the filter, one bit per key. (Compiled without
    /// vectors: to gather bytes in them takes longer.)
    fn answers<const ARITY: usize>(self, places: &Places<F>) -> u64 {
        let (slots_of, all) = (&places.slots[..ARITY], self.slots());
        assert!(greatest(slots_of.as_flattened()) < all.len() as u64, "every slot is one of the filter's");
        let mut sums = places.fingerprints;
        for (i, sum) in sums.iter_mut().enumerate() {
            for slots in slots_of {
                // SAFETY: no slot is greater than the greatest, which is less than the number of slots.
                *sum = *sum ^ unsafe { *all.get_unchecked(slots[i] as usize) };
            }
        }
        zeros(&sums)
    }
}

/// Slots of a batch of keys, three or four of each, and their fingerprints.
#[derive(Clone, Copy)]
struct Places<F> {
    slots: [[u64; BATCH]; 4],
    fingerprints: [F; BATCH],
}

/// Computes the slots and fingerprints of the keys of these words.
fn locate<F: Width>(lookup: Lookup<'_, F>, words: &[u64; BATCH], places: &mut Places<F>) {
    with_vectors!(locate_each[F: Width][F](lookup: Lookup<'_, F>, words: &[u64; BATCH], places: &mut Places<F>))
}

#[inline(always)]
fn locate_each<F: Width>(lookup: Lookup<'_, F>, words: &[u64; BATCH], places: &mut Places<F>) {
    match (lookup.layout.arity, lookup.layout.shards) {
        (Arity::Three, 0) => lookup.locate_in::<3, false>(words, places),
        (Arity::Three, _) => lookup.locate_in::<3, true>(words, places),
        (Arity::Four, 0) => lookup.locate_in::<4, false>(words, places),
        (Arity::Four, _) => lookup.locate_in::<4, true>(words, places),
    }
}

/// Returns the greatest of some numbers.
fn greatest(of: &[u64]) -> u64 {
    with_vectors!(greatest_each(of: &[u64]) -> u64)
}

#[inline(always)]
fn greatest_each(of: &[u64]) -> u64 {
    of.iter().fold(0, |last, &this| u64::max(last, this))
}

/// Returns which fingerprints are zero, one bit per key.
fn zeros<F: Width>(of: &[F; BATCH]) -> u64 {
    with_vectors!(zero_each[F: Width][F](of: &[F; BATCH]) -> u64)
}

#[inline(always)]
fn zero_each<F: Width>(of: &[F; BATCH]) -> u64 {
    of.iter().enumerate().fold(0, |bits, (i, &sum)| bits | u64::from(sum == F::of(0)) << i)
}

/// Whether the key of this word may be in a filter of another form than the published one.
#[inline(never)]
fn contains_in_other<F: Width>(layout: &Layout, words: &[u64], word: u64) -> bool {
    let lookup = Lookup::<F>::new(layout, words);
    match (layout.arity, layout.shards) {
        (Arity::Three, _) => lookup.is_at::<3>(lookup.locate::<3, true>(word)),
        (Arity::Four, 0) => lookup.is_at::<4>(lookup.locate::<4, false>(word)),
        (Arity::Four, _) => lookup.is_at::<4>(lookup.locate::<4, true>(word)),
    }
}

/// Computes [`Graph::first`] from products of 64 bits, which processors have in vectors.
#[inline(always)]
pub(crate) fn first_by_halves(graph: Graph, hash: u64) -> u32 {
    let starts = u64::from(graph.starts);
    (((hash >> 32) * starts + (((hash & u64::from(u32::MAX)) * starts) >> 32)) >> 32) as u32
}

//! Lookups of values: the slots of a key, and their exclusive or.
//!
//! A batch of 64 keys goes through loops over arrays: hashes and the slots first, in vectors where the
//! processor has them, then the reads. Beyond the cache, the words of a batch are prefetched while those of the
//! batch before are read.

use warpset_base::bitmap::Bitmap;
use warpset_base::{parallel, with_vectors};
use warpset_core::bits::{window, word};
use warpset_core::fuse::hash::{mix, shard_of, within_shard};
use warpset_core::fuse::value::value_in;

use crate::lookup::{FAR, first_by_halves, prefetch};
use crate::{Arity, Key, Layout, word_of};

/// Keys per batch.
const BATCH: usize = 64;
/// Nanoseconds per key of a batch of lookups.
const LOOKUP_NS: f64 = 6.0;

/// A function to look keys up in.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a> {
    pub layout: &'a Layout,
    pub words: &'a [u64],
}

/// Places of a batch of keys: their slots, and their hashes.
#[derive(Clone, Copy)]
struct Places {
    slots: [[u64; BATCH]; 4],
    hashes: [u64; BATCH],
}

impl<'a> Lookup<'a> {
    /// Returns the seeds of the shards, which follow the slots.
    #[inline(always)]
    fn seeds(self) -> &'a [u8] {
        bytemuck::cast_slice(&self.words[self.layout.slot_words() as usize..])
    }

    /// Returns the 64 bits from bit `at` on; with `WHOLE`, slots do not cross words, and only the slot's are right.
    #[inline(always)]
    fn bits_at<const WHOLE: bool>(self, at: u64) -> u64 {
        if WHOLE { word(self.words, (at / 64) as usize) >> (at % 64) } else { window(self.words, at) }
    }

    #[inline(always)]
    fn value_at<const ARITY: usize>(self, hash: u64) -> Option<u64> {
        let Layout { graph, shards, bits, value_bits, .. } = *self.layout;
        let (mut within, mut begin) = (hash, 0);
        if shards > 0 {
            let shard = shard_of(hash, shards);
            within = within_shard(hash, self.seeds()[shard as usize]);
            begin = shard * graph.slots(ARITY as u32);
        }
        let first = graph.first(within);
        let slot = |j| begin + u64::from(graph.position::<ARITY>(first, within, j));
        let at = |j| slot(j) * u64::from(bits);
        let content = if bits.is_power_of_two() {
            (0..ARITY).fold(0, |sum, j| sum ^ self.bits_at::<true>(at(j)))
        } else {
            (0..ARITY).fold(0, |sum, j| sum ^ self.bits_at::<false>(at(j)))
        };
        value_in(content, hash, bits, value_bits)
    }

    /// Returns the value of the key of this word.
    #[inline]
    pub(super) fn value(self, word: u64) -> Option<u64> {
        let hash = mix(word, self.layout.seed);
        match (self.layout.graph.starts, self.layout.arity) {
            (0, _) => None,
            (_, Arity::Three) => self.value_at::<3>(hash),
            (_, Arity::Four) => self.value_at::<4>(hash),
        }
    }

    /// Writes what `of` makes of the value of each key, on all threads, and returns which keys have one; the slices
    /// have equal lengths.
    pub(super) fn values_of<K: Key, A: Copy + Send, F: Fn(Option<u64>) -> A + Sync>(
        self,
        keys: &[K],
        out: &mut [A],
        of: F,
    ) -> Bitmap {
        let mut found = vec![0; keys.len().div_ceil(BATCH)];
        let task = parallel::task_len(keys.len(), LOOKUP_NS);
        let tasks = keys.chunks(task).zip(out.chunks_mut(task)).zip(found.chunks_mut(task.div_ceil(BATCH)));
        let batches = match (self.layout.graph.starts, self.layout.bits.is_power_of_two()) {
            (0, _) => {
                out.fill(of(None));
                return Bitmap::from_words(found, keys.len());
            }
            (_, true) => Lookup::batches::<true, K, A, F>,
            (_, false) => Lookup::batches::<false, K, A, F>,
        };
        parallel::for_each(tasks, |((keys, out), found)| batches(self, keys, out, found, &of));
        Bitmap::from_words(found, keys.len())
    }

    fn batches<const WHOLE: bool, K: Key, A, F: Fn(Option<u64>) -> A>(
        self,
        keys: &[K],
        out: &mut [A],
        found: &mut [u64],
        of: &F,
    ) {
        let (is_far, bits) = (size_of_val(self.words) > FAR, u64::from(self.layout.bits));
        let mut words = [0; BATCH];
        let mut two = [Places { slots: [[0; BATCH]; 4], hashes: [0; BATCH] }; 2];
        for i in 0..found.len() + 1 {
            if let Some(keys) = keys.chunks(BATCH).nth(i) {
                words.iter_mut().zip(keys).for_each(|(word, key)| *word = word_of(key));
                let places = &mut two[i % 2];
                locate(self, &words, places);
                if is_far {
                    let slots = places.slots[..self.layout.arity as usize].as_flattened();
                    slots.iter().for_each(|&slot| prefetch(self.words, (slot * bits / 64) as usize));
                }
            }
            let before = i.wrapping_sub(1);
            if let (Some(out), Some(found)) = (out.chunks_mut(BATCH).nth(before), found.get_mut(before)) {
                let places = &two[before % 2];
                let mut sums = [0; BATCH];
                for slots in &places.slots[..self.layout.arity as usize] {
                    sums.iter_mut().zip(slots).for_each(|(sum, &slot)| *sum ^= self.bits_at::<WHOLE>(slot * bits));
                }
                let Layout { bits, value_bits, .. } = *self.layout;
                let mut any = 0;
                for (j, (out, (&sum, &hash))) in out.iter_mut().zip(sums.iter().zip(&places.hashes)).enumerate() {
                    let value = value_in(sum, hash, bits, value_bits);
                    any |= u64::from(value.is_some()) << j;
                    *out = of(value);
                }
                *found = any;
            }
        }
    }

    #[inline(always)]
    fn locate_in<const ARITY: usize>(self, words: &[u64; BATCH], places: &mut Places) {
        let Layout { graph, seed, shards, .. } = *self.layout;
        let (mut hashes, mut begins) = ([0; BATCH], [0; BATCH]);
        for (i, (hash, &word)) in hashes.iter_mut().zip(words).enumerate() {
            *hash = mix(word, seed);
            places.hashes[i] = *hash;
        }
        if shards > 0 {
            let (seeds, mut shard_seeds) = (self.seeds(), [0; BATCH]);
            for (begin, &hash) in begins.iter_mut().zip(&hashes) {
                *begin = shard_of(hash, shards);
            }
            for (seed, &shard) in shard_seeds.iter_mut().zip(&begins) {
                *seed = seeds[shard as usize];
            }
            for ((hash, begin), &seed) in hashes.iter_mut().zip(&mut begins).zip(&shard_seeds) {
                *hash = within_shard(*hash, seed);
                *begin *= graph.slots(ARITY as u32);
            }
        }
        for (i, (&hash, &begin)) in hashes.iter().zip(&begins).enumerate() {
            let first = first_by_halves(graph, hash);
            for (j, slots) in places.slots[..ARITY].iter_mut().enumerate() {
                slots[i] = begin + u64::from(graph.position::<ARITY>(first, hash, j));
            }
        }
    }
}

/// Computes the places of the keys of these words.
fn locate(lookup: Lookup<'_>, words: &[u64; BATCH], places: &mut Places) {
    with_vectors!(locate_each(lookup: Lookup<'_>, words: &[u64; BATCH], places: &mut Places))
}

#[inline(always)]
fn locate_each(lookup: Lookup<'_>, words: &[u64; BATCH], places: &mut Places) {
    match lookup.layout.arity {
        Arity::Three => lookup.locate_in::<3>(words, places),
        Arity::Four => lookup.locate_in::<4>(words, places),
    }
}

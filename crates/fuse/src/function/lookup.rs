//! Lookups of values: the slots of a key, and their exclusive or.
//!
//! A batch of 64 keys goes through loops over arrays: hashes and the places of slots first, in vectors where the
//! processor has them, then the reads. The words of a batch are prefetched while those of the batch before are read.

use warpset_base::bitmap::Bitmap;
use warpset_base::{parallel, with_vectors};
use warpset_core::bits::{lowest, window, word};
use warpset_core::fuse::hash::{fingerprint, mix, shard_of, within_shard};

use crate::lookup::{first_by_halves, prefetch};
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

/// Places of a batch of keys: the first bit of each slot, and the fingerprints of their hashes.
#[derive(Clone, Copy)]
struct Places {
    bits: [[u64; BATCH]; 4],
    fingerprints: [u32; BATCH],
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

    /// Returns the value among the bits of a content, if the fingerprint above is that of the key.
    #[inline(always)]
    fn value_in(self, content: u64, fingerprint: u32) -> Option<u64> {
        let Layout { bits, value_bits, .. } = *self.layout;
        let wrong = content.unbounded_shr(value_bits) ^ u64::from(fingerprint);
        (wrong & ((1 << (bits - value_bits)) - 1) == 0).then_some(content & lowest(value_bits))
    }

    #[inline(always)]
    fn value_at<const ARITY: usize>(self, hash: u64) -> Option<u64> {
        let Layout { graph, shards, bits, .. } = *self.layout;
        let (mut within, mut begin) = (hash, 0);
        if shards > 0 {
            let shard = shard_of(hash, shards);
            within = within_shard(hash, self.seeds()[shard as usize]);
            begin = shard * graph.slots(ARITY as u32);
        }
        let first = graph.first(within);
        let slot = |j| begin + u64::from(graph.position::<ARITY>(first, within, j));
        let content = (0..ARITY).fold(0, |sum, j| sum ^ window(self.words, slot(j) * u64::from(bits)));
        self.value_in(content, fingerprint(hash))
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
    pub(super) fn values_of<K: Key, A: Copy + Send>(
        self,
        keys: &[K],
        out: &mut [A],
        of: impl Fn(Option<u64>) -> A + Sync,
    ) -> Bitmap {
        let mut found = vec![0; keys.len().div_ceil(BATCH)];
        let task = parallel::task_len(keys.len(), LOOKUP_NS);
        let tasks = keys.chunks(task).zip(out.chunks_mut(task)).zip(found.chunks_mut(task.div_ceil(BATCH)));
        let batches = match (self.layout.graph.starts, 64 % self.layout.bits == 0) {
            (0, _) => {
                out.fill(of(None));
                return Bitmap::from_words(found, keys.len());
            }
            (_, true) => Lookup::batches::<true, K, A>,
            (_, false) => Lookup::batches::<false, K, A>,
        };
        parallel::for_each(tasks, |((keys, out), found)| batches(self, keys, out, found, &of));
        Bitmap::from_words(found, keys.len())
    }

    fn batches<const WHOLE: bool, K: Key, A>(
        self,
        keys: &[K],
        out: &mut [A],
        found: &mut [u64],
        of: &dyn Fn(Option<u64>) -> A,
    ) {
        let mut words = [0; BATCH];
        let mut two = [Places { bits: [[0; BATCH]; 4], fingerprints: [0; BATCH] }; 2];
        for i in 0..found.len() + 1 {
            if let Some(keys) = keys.chunks(BATCH).nth(i) {
                words.iter_mut().zip(keys).for_each(|(word, key)| *word = word_of(key));
                let places = &mut two[i % 2];
                locate(self, &words, places);
                let bits = places.bits[..self.layout.arity as usize].as_flattened();
                bits.iter().for_each(|&at| prefetch(self.words, (at / 64) as usize));
            }
            let before = i.wrapping_sub(1);
            if let (Some(out), Some(found)) = (out.chunks_mut(BATCH).nth(before), found.get_mut(before)) {
                let places = &two[before % 2];
                let mut sums = [0; BATCH];
                for bits in &places.bits[..self.layout.arity as usize] {
                    sums.iter_mut().zip(bits).for_each(|(sum, &at)| *sum ^= self.bits_at::<WHOLE>(at));
                }
                for (j, out) in out.iter_mut().enumerate() {
                    let value = self.value_in(sums[j], places.fingerprints[j]);
                    *found |= u64::from(value.is_some()) << j;
                    *out = of(value);
                }
            }
        }
    }

    #[inline(always)]
    fn locate_in<const ARITY: usize>(self, words: &[u64; BATCH], places: &mut Places) {
        let Layout { graph, seed, shards, bits, .. } = *self.layout;
        let (mut hashes, mut begins) = ([0; BATCH], [0; BATCH]);
        for (i, (hash, &word)) in hashes.iter_mut().zip(words).enumerate() {
            *hash = mix(word, seed);
            places.fingerprints[i] = fingerprint(*hash);
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
            for (j, at) in places.bits[..ARITY].iter_mut().enumerate() {
                at[i] = (begin + u64::from(graph.position::<ARITY>(first, hash, j))) * u64::from(bits);
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

//! Lookups of values: the slots of a key, and their exclusive or.
//!
//! A batch of 64 keys goes through loops over arrays: hashes and the slots first, in vectors where the
//! processor has them, then the reads. Beyond the cache, the words of a batch are prefetched while those of the
//! batch before are read. Slots of whole bytes are read as such; others in eight bytes, or in two words.

use warpset_base::bitmap::Bitmap;
use warpset_base::{parallel, with_vectors};
use warpset_core::bits::{lowest, window};
use warpset_core::fuse::hash::{mix, shard_of, within_shard};
use warpset_core::fuse::value::value_in;

use crate::lookup::{FAR, first_by_halves};
use crate::{Arity, Key, Layout, word_of};
use warpset_base::processor::prefetch;

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

/// Runs `$body` with a function `$read` for slots of whole bytes, and `$other` for slots of other widths.
macro_rules! with_bytes {
    ($lookup:expr, |$read:ident| $body:expr, $other:expr) => {
        with_bytes!(@ $lookup, $read, $body, $other, 8 u8, 16 u16, 32 u32, 64 u64)
    };
    (@ $lookup:expr, $read:ident, $body:expr, $other:expr, $($bits:literal $slot:ty),*) => {
        match $lookup.layout.bits {
            $($bits => {
                let slots = bytemuck::cast_slice::<u64, $slot>($lookup.words);
                let $read = |slot: u64| -> u64 { slots[slot as usize].into() };
                $body
            })*
            _ => $other,
        }
    };
}

impl<'a> Lookup<'a> {
    /// Returns the seeds of the shards, which follow the slots.
    #[inline(always)]
    fn seeds(self) -> &'a [u8] {
        bytemuck::cast_slice(&self.words[self.layout.slot_words() as usize..])
    }

    /// Returns the content of a slot of any width, and any bits above.
    #[inline(always)]
    fn read(self, slot: u64) -> u64 {
        let bits = u64::from(self.layout.bits);
        let at = slot * bits;
        // Slots of 60 bits begin at the first or fifth bit of a byte.
        if bits > 57 && bits != 60 {
            return window(self.words, at);
        }
        let bytes: &[u8] = bytemuck::cast_slice(self.words);
        let begin = ((at / 8) as usize).min(bytes.len().saturating_sub(8));
        let eight = bytes[begin..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
        eight >> ((at - 8 * begin as u64) % 64)
    }

    /// Returns the value of the key of this word.
    #[inline(always)]
    pub(super) fn value(self, word: u64) -> Option<u64> {
        match (self.layout.arity, self.layout.shards) {
            _ if self.layout.graph.starts == 0 => None,
            (Arity::Three, 0) => value_in_form::<3, false>(self.layout, self.words, word),
            (Arity::Three, _) => value_in_form::<3, true>(self.layout, self.words, word),
            (Arity::Four, 0) => value_in_form::<4, false>(self.layout, self.words, word),
            (Arity::Four, _) => value_in_form::<4, true>(self.layout, self.words, word),
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
        if self.layout.graph.starts == 0 {
            out.fill(of(None));
            return Bitmap::from_words(found, keys.len());
        }
        let task = parallel::task_len(keys.len(), LOOKUP_NS);
        let tasks = keys.chunks(task).zip(out.chunks_mut(task)).zip(found.chunks_mut(task.div_ceil(BATCH)));
        parallel::for_each(tasks, |((keys, out), found)| self.batches(keys, out, found, &of));
        Bitmap::from_words(found, keys.len())
    }

    fn batches<K: Key, A, F: Fn(Option<u64>) -> A>(self, keys: &[K], out: &mut [A], found: &mut [u64], of: &F) {
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
                let mut values = [0; BATCH];
                read(self, &two[before % 2], &mut values);
                let all = decode(self.layout, &two[before % 2].hashes, &mut values);
                *found = all & u64::MAX >> (BATCH - out.len());
                for (j, (out, &value)) in out.iter_mut().zip(&values).enumerate() {
                    *out = of((all >> j & 1 != 0).then_some(value));
                }
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

/// Returns the value of the key of this word in a function of one form.
#[inline(never)]
fn value_in_form<const ARITY: usize, const SHARDED: bool>(layout: &Layout, words: &[u64], word: u64) -> Option<u64> {
    let (&Layout { graph, seed, shards, bits, value_bits, .. }, lookup) = (layout, Lookup { layout, words });
    let hash = mix(word, seed);
    let (mut within, mut begin) = (hash, 0);
    if SHARDED {
        let shard = shard_of(hash, shards);
        within = within_shard(hash, lookup.seeds()[shard as usize]);
        begin = shard * graph.slots(ARITY as u32);
    }
    let first = graph.first(within);
    let slot = |j| begin + u64::from(graph.position::<ARITY>(first, within, j));
    let content = with_bytes!(
        lookup,
        |read| (0..ARITY).fold(0, |sum, j| sum ^ read(slot(j))),
        in_parts(layout, words, &std::array::from_fn::<u64, ARITY, _>(slot))
    );
    if bits == value_bits { Some(content) } else { value_in(content, hash, bits, value_bits) }
}

/// Returns the exclusive or of slots of other widths than whole bytes. (Not a part of its callers, which it would slow
/// down.)
#[inline(never)]
fn in_parts(layout: &Layout, words: &[u64], slots: &[u64]) -> u64 {
    let lookup = Lookup { layout, words };
    slots.iter().fold(0, |sum, &slot| sum ^ lookup.read(slot)) & lowest(layout.bits)
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

/// Writes the exclusive or of the slots of each key. (Compiled without vectors: to gather bytes in them takes longer.)
fn read(lookup: Lookup<'_>, places: &Places, contents: &mut [u64; BATCH]) {
    match lookup.layout.arity {
        Arity::Three => read_each::<3>(lookup, places, contents),
        Arity::Four => read_each::<4>(lookup, places, contents),
    }
}

fn read_each<const ARITY: usize>(lookup: Lookup<'_>, places: &Places, contents: &mut [u64; BATCH]) {
    let slots = |i: usize| places.slots[..ARITY].iter().map(move |slots| slots[i]);
    let fill = contents.iter_mut().enumerate();
    with_bytes!(
        lookup,
        |read| fill.for_each(|(i, content)| *content = slots(i).fold(0, |sum, slot| sum ^ read(slot))),
        fill.for_each(|(i, content)| *content = slots(i).fold(0, |sum, slot| sum ^ lookup.read(slot)))
    );
}

/// Replaces contents by values, and returns which keys have one, a bit per key.
fn decode(layout: &Layout, hashes: &[u64; BATCH], contents: &mut [u64; BATCH]) -> u64 {
    with_vectors!(decode_each(layout: &Layout, hashes: &[u64; BATCH], contents: &mut [u64; BATCH]) -> u64)
}

#[inline(always)]
fn decode_each(layout: &Layout, hashes: &[u64; BATCH], contents: &mut [u64; BATCH]) -> u64 {
    let Layout { bits, value_bits, .. } = *layout;
    if bits == value_bits {
        contents.iter_mut().for_each(|content| *content &= lowest(bits));
        return u64::MAX;
    }
    let mut all = 0;
    for (i, (content, &hash)) in contents.iter_mut().zip(hashes).enumerate() {
        let value = value_in(*content, hash, bits, value_bits);
        all |= u64::from(value.is_some()) << i;
        *content = value.unwrap_or(0);
    }
    all
}

//! Lookups: the slots of a key, and whether their exclusive or is its fingerprint.

use warpset_core::fuse::hash::{fingerprint, mix, shard_of, within_shard};

use crate::Arity;
use crate::build::word_of;
use crate::width::Width;
use crate::{Key, Layout};

/// Keys whose slots are asked for before those of the first of them are read.
const BATCH: usize = 64;
/// Bytes of fingerprints up to which they are near: to ask for them first would cost more than it brings.
const NEAR: usize = 1 << 18;

/// A filter to look keys up in.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a, F> {
    pub layout: &'a Layout,
    pub slots: &'a [F],
    pub shard_seeds: &'a [u8],
}

/// Where a key's fingerprint is, and what it is.
type Place<const ARITY: usize, F> = ([usize; ARITY], F);

impl<'a, F: Width> Lookup<'a, F> {
    /// The filter in the words of a layout.
    #[inline]
    pub(crate) fn new(layout: &'a Layout, words: &'a [u64]) -> Lookup<'a, F> {
        let (fingerprints, seeds) = words.split_at(layout.fingerprint_words() as usize);
        Lookup {
            layout,
            slots: &bytemuck::cast_slice(fingerprints)[..layout.slots() as usize],
            shard_seeds: bytemuck::cast_slice(seeds),
        }
    }

    #[inline(always)]
    fn locate<const ARITY: usize, const SHARDED: bool>(self, word: u64) -> Place<ARITY, F> {
        let Layout { graph, seed, shards, .. } = *self.layout;
        let hash = mix(word, seed);
        if !SHARDED {
            return (graph.positions::<ARITY>(hash).map(|at| at as usize), F::of(fingerprint(hash)));
        }
        let shard = shard_of(hash, shards) as usize;
        let hash = within_shard(hash, self.shard_seeds[shard]);
        let first = shard * graph.slots(ARITY as u32) as usize;
        (graph.positions::<ARITY>(hash).map(|at| first + at as usize), F::of(fingerprint(hash)))
    }

    #[inline(always)]
    fn is_at<const ARITY: usize>(self, (positions, fingerprint): Place<ARITY, F>) -> bool {
        positions.iter().fold(fingerprint, |sum, &at| sum ^ self.slots[at]) == F::of(0)
    }

    /// Whether the key of this word may be in the filter.
    #[inline(always)]
    pub(crate) fn contains(self, word: u64) -> bool {
        if self.layout.graph.starts == 0 {
            return false;
        }
        match (self.layout.arity, self.layout.shards) {
            (Arity::Three, 0) => self.is_at(self.locate::<3, false>(word)),
            (Arity::Three, _) => self.is_at(self.locate::<3, true>(word)),
            (Arity::Four, 0) => self.is_at(self.locate::<4, false>(word)),
            (Arity::Four, _) => self.is_at(self.locate::<4, true>(word)),
        }
    }

    /// Hands out whether each key may be in the filter, 64 of them at a time, lowest bit first.
    #[inline]
    pub(crate) fn each_64<K: Key>(self, keys: &[K], mut take: impl FnMut(usize, u64)) {
        if self.layout.graph.starts == 0 {
            return (0..keys.len().div_ceil(64)).for_each(|i| take(i, 0));
        }
        match (self.layout.arity, self.layout.shards) {
            (Arity::Three, 0) => self.each_of::<3, false, K>(keys, &mut take),
            (Arity::Three, _) => self.each_of::<3, true, K>(keys, &mut take),
            (Arity::Four, 0) => self.each_of::<4, false, K>(keys, &mut take),
            (Arity::Four, _) => self.each_of::<4, true, K>(keys, &mut take),
        }
    }

    #[inline]
    fn each_of<const ARITY: usize, const SHARDED: bool, K: Key>(self, keys: &[K], take: &mut impl FnMut(usize, u64)) {
        let is_near = size_of_val(self.slots) <= NEAR;
        let mut places = [([0; ARITY], F::of(0)); BATCH];
        for (i, keys) in keys.chunks(BATCH).enumerate() {
            let mut bits = 0;
            if is_near {
                for (j, key) in keys.iter().enumerate() {
                    bits |= u64::from(self.is_at(self.locate::<ARITY, SHARDED>(word_of(key)))) << j;
                }
            } else {
                for (place, key) in places.iter_mut().zip(keys) {
                    *place = self.locate::<ARITY, SHARDED>(word_of(key));
                    place.0.iter().for_each(|&at| prefetch(self.slots, at));
                }
                for (j, &place) in places[..keys.len()].iter().enumerate() {
                    bits |= u64::from(self.is_at(place)) << j;
                }
            }
            take(i, bits);
        }
    }
}

/// Asks for the cache line of a slot.
#[inline(always)]
fn prefetch<T>(slots: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which may name any address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slots.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slots, at);
}

//! Lookups: the slots of a key, and whether their exclusive or is its fingerprint.

use warpset_core::fuse::hash::{fingerprint, mix, shard_of, within_shard};

use crate::Arity;
use crate::build::word_of;
use crate::width::Width;
use crate::{Key, Layout};

/// Keys per batch: the slots of all are prefetched before those of the first are read.
const BATCH: usize = 64;
/// Largest size of fingerprints, in bytes, that are taken to be cached: prefetching them would cost more than it saves.
const NEAR: usize = 1 << 18;

/// A filter to look keys up in.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a, F> {
    layout: &'a Layout,
    /// The slots, and what follows them in the words.
    slots: &'a [F],
    bytes: &'a [u8],
}

impl<'a, F: Width> Lookup<'a, F> {
    /// Returns the filter in the words of a layout.
    #[inline(always)]
    pub(crate) fn new(layout: &'a Layout, words: &'a [u64]) -> Lookup<'a, F> {
        Lookup { layout, slots: bytemuck::cast_slice(words), bytes: bytemuck::cast_slice(words) }
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
        let slots = graph.slots(ARITY as u32) as usize;
        // The seeds follow the fingerprints, which are whole words.
        let seeds = (slots * shards as usize * size_of::<F>()).next_multiple_of(8);
        (within_shard(hash, self.bytes[seeds + shard]), shard * slots)
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
        self.visit::<ARITY>(place, |at| sum = sum ^ self.slots[at]);
        sum == F::of(0)
    }

    /// Whether the key of this word may be in the filter.
    #[inline(always)]
    pub(crate) fn contains(self, word: u64) -> bool {
        if self.layout.graph.starts == 0 {
            return false;
        }
        match (self.layout.arity, self.layout.shards) {
            (Arity::Three, 0) => self.is_at::<3>(self.locate::<3, false>(word)),
            (Arity::Three, _) => self.is_at::<3>(self.locate::<3, true>(word)),
            (Arity::Four, 0) => self.is_at::<4>(self.locate::<4, false>(word)),
            (Arity::Four, _) => self.is_at::<4>(self.locate::<4, true>(word)),
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
        let is_near = self.bytes.len() <= NEAR;
        let mut places = [(0, 0); BATCH];
        for (i, keys) in keys.chunks(BATCH).enumerate() {
            let mut bits = 0;
            if is_near {
                for (j, key) in keys.iter().enumerate() {
                    bits |= u64::from(self.is_at::<ARITY>(self.locate::<ARITY, SHARDED>(word_of(key)))) << j;
                }
            } else {
                for (place, key) in places.iter_mut().zip(keys) {
                    *place = self.locate::<ARITY, SHARDED>(word_of(key));
                    self.visit::<ARITY>(*place, |at| prefetch(self.slots, at));
                }
                for (j, &place) in places[..keys.len()].iter().enumerate() {
                    bits |= u64::from(self.is_at::<ARITY>(place)) << j;
                }
            }
            take(i, bits);
        }
    }
}

/// Prefetches the cache line of a slot.
#[inline(always)]
pub(crate) fn prefetch<T>(slots: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which may name any address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slots.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slots, at);
}

//! Words of one thread, grouped as they arrive.
//!
//! Memory is allocated in *slabs*, each larger than an allocator keeps for itself, so that all of it returns to the
//! system at the end. A slab is cut into *chunks* of 2^`CHUNK_BITS` words. Each group has one open chunk for its next
//! words, each written once. A full chunk is followed by another, with a link to the one before.

use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use warpset_base::words::advise_huge_pages;

/// Words per slab, as a power of two; small in tests, so that they use several slabs.
const SLAB_BITS: u32 = if cfg!(test) { 14 } else { 22 };
/// Mark for no chunk.
const NONE: u64 = !0;

/// Words with the places of each group.
pub(crate) struct Chunks<W, const CHUNK_BITS: u32> {
    slabs: Vec<Vec<W>>,
    /// Link of each chunk to the one before of the same group.
    before: Vec<u64>,
    /// Place of the next word of each group, counted through all slabs. At a multiple of a chunk's length the next
    /// chunk is still to be allocated.
    next: Vec<u64>,
    /// Open chunk of each group.
    open: Vec<u64>,
}

impl<W: Pod, const CHUNK_BITS: u32> Chunks<W, CHUNK_BITS> {
    const CHUNK: usize = 1 << CHUNK_BITS;
    /// Bytes of a chunk.
    pub(crate) const BYTES: u64 = (size_of::<W>() as u64) << CHUNK_BITS;

    pub(crate) fn new(groups: usize) -> Self {
        Chunks { slabs: Vec::new(), before: Vec::new(), next: vec![0; groups], open: vec![NONE; groups] }
    }

    /// Appends words to a group, `N` a power of two that is the same in all calls, and adds to `taken` the bytes that
    /// are newly in use.
    #[inline(always)]
    pub(crate) fn push<const N: usize>(&mut self, group: usize, words: [W; N], taken: &AtomicU64) {
        let Chunks { slabs, before, next, open } = self;
        let next = &mut next[group];
        if *next & (Self::CHUNK as u64 - 1) == 0 {
            let chunk = before.len() as u64;
            before.push(std::mem::replace(&mut open[group], chunk));
            *next = chunk << CHUNK_BITS;
            if (*next >> SLAB_BITS) as usize == slabs.len() {
                let mut slab = bytemuck::zeroed_vec(1 << SLAB_BITS);
                advise_huge_pages(&mut slab);
                slabs.push(slab);
            }
            taken.fetch_add(Self::BYTES, Ordering::Relaxed);
        }
        let (slab, at) = (&mut slabs[(*next >> SLAB_BITS) as usize], *next as usize & ((1 << SLAB_BITS) - 1));
        for (i, word) in words.into_iter().enumerate() {
            slab[at + i] = word;
        }
        *next += N as u64;
    }

    /// Returns the words of a group, chunk by chunk.
    pub(crate) fn of_group(&self, group: usize) -> impl Iterator<Item = &[W]> {
        let last = self.next[group] & (Self::CHUNK as u64 - 1);
        let mut len = if last == 0 { Self::CHUNK } else { last as usize };
        let mut chunk = self.open[group];
        std::iter::from_fn(move || {
            if chunk == NONE {
                return None;
            }
            let at = chunk << CHUNK_BITS;
            let slab = &self.slabs[(at >> SLAB_BITS) as usize];
            let begin = at as usize & ((1 << SLAB_BITS) - 1);
            chunk = self.before[chunk as usize];
            Some(&slab[begin..begin + std::mem::replace(&mut len, Self::CHUNK)])
        })
    }

    /// Returns the number of words of all groups.
    pub(crate) fn len(&self) -> u64 {
        let opened = self.next.iter().zip(&self.open).filter(|&(_, &open)| open != NONE);
        let free: u64 = opened.map(|(next, _)| next.wrapping_neg() & (Self::CHUNK as u64 - 1)).sum();
        ((self.before.len() as u64) << CHUNK_BITS) - free
    }

    /// Removes all words and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.before.clear();
        self.next.fill(0);
        self.open.fill(NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks groups with none, few, exactly one chunk, and many words, in three rounds of several slabs.
    #[test]
    fn every_word_is_in_its_group_once() {
        let (mut chunks, taken) = (Chunks::<u64, 6>::new(50), AtomicU64::new(0));
        for (round, len) in [(0, 1000), (1, 3 << SLAB_BITS), (2, 0)] {
            let mut wanted = vec![Vec::new(); 50];
            // Group 7 fills its chunks to the last place, and group 8 has none.
            let groups = (0..len).map(|i| [0, 1, 2, 3, 3, 3, 5, 49][(i % 8) as usize]).chain([7; 96]);
            for (i, group) in groups.enumerate() {
                let words = [warpset_core::hash::finalise(i as u64 + round), i as u64];
                chunks.push(group, words, &taken);
                wanted[group].extend(words);
            }
            assert_eq!(chunks.len(), wanted.iter().map(|wanted| wanted.len() as u64).sum::<u64>());
            for (group, mut wanted) in wanted.into_iter().enumerate() {
                let mut found: Vec<u64> = chunks.of_group(group).flatten().copied().collect();
                found.sort_unstable();
                wanted.sort_unstable();
                assert!(found == wanted, "{group}");
            }
            chunks.clear();
        }
        assert!(taken.into_inner() >= 8 << SLAB_BITS);
        assert_eq!(chunks.of_group(7).count(), 0);
    }
}

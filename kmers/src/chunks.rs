//! Words of one thread, grouped as they arrive.
//!
//! Memory is allocated in *slabs*, each larger than an allocator keeps for itself, so that all of it returns to the
//! system at the end. A slab is cut into *chunks* of 2^`CHUNK_BITS` words. Each group has one open chunk for its next
//! words, each written once. A full chunk is followed by another. The first reader sorts the chunks by group: following
//! links from chunk to chunk would take a cache miss each, one after another.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use warpset_base::processor::prefetch;
use warpset_base::words::advise_huge_pages;

/// Words per slab, as a power of two; small in tests, so that they use several slabs.
const SLAB_BITS: u32 = if cfg!(test) { 14 } else { 22 };

/// Words with the places of each group.
pub(crate) struct Chunks<W, const CHUNK_BITS: u32> {
    slabs: Vec<Vec<W>>,
    /// Group of each chunk.
    groups: Vec<u32>,
    /// Chunks by group, made once they are read.
    by_group: OnceLock<ByGroup>,
    /// Place of the next word of each group, counted through all slabs. At a multiple of a chunk's length the next
    /// chunk is still to be allocated.
    next: Vec<u64>,
}

/// Numbers of chunks by group, ascending.
struct ByGroup {
    /// End of each group's chunks in `chunks`.
    ends: Vec<u32>,
    chunks: Vec<u32>,
}

impl ByGroup {
    /// Sorts chunks by their groups.
    fn new(groups: &[u32], number: usize) -> ByGroup {
        let mut ends = vec![0; number];
        groups.iter().for_each(|&group| ends[group as usize] += 1);
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut chunks = vec![0; groups.len()];
        for (chunk, &group) in groups.iter().enumerate() {
            let end = &mut ends[group as usize];
            chunks[*end as usize] = chunk as u32;
            *end += 1;
        }
        ByGroup { ends, chunks }
    }

    fn of(&self, group: usize) -> &[u32] {
        let begin = if group == 0 { 0 } else { self.ends[group - 1] };
        &self.chunks[begin as usize..self.ends[group] as usize]
    }
}

impl<W: Pod, const CHUNK_BITS: u32> Chunks<W, CHUNK_BITS> {
    const CHUNK: usize = 1 << CHUNK_BITS;
    /// Bytes of a chunk.
    pub(crate) const BYTES: u64 = (size_of::<W>() as u64) << CHUNK_BITS;

    pub(crate) fn new(groups: usize) -> Self {
        Chunks { slabs: Vec::new(), groups: Vec::new(), by_group: OnceLock::new(), next: vec![0; groups] }
    }

    /// Appends words to a group, `N` a power of two that is the same in all calls, and adds to `taken` the bytes that
    /// are newly in use.
    #[inline(always)]
    pub(crate) fn push<const N: usize>(&mut self, group: usize, words: [W; N], taken: &AtomicU64) {
        let Chunks { slabs, groups, by_group, next } = self;
        let next = &mut next[group];
        if *next & (Self::CHUNK as u64 - 1) == 0 {
            let chunk = groups.len() as u64;
            groups.push(group as u32);
            by_group.take();
            *next = chunk << CHUNK_BITS;
            if (*next >> SLAB_BITS) as usize == slabs.len() {
                let mut slab = bytemuck::zeroed_vec(1 << SLAB_BITS);
                advise_huge_pages(&mut slab);
                slabs.push(slab);
            }
            taken.fetch_add(Self::BYTES, Ordering::Relaxed);
        }
        let (slab, at) = (&mut slabs[(*next >> SLAB_BITS) as usize], *next as usize & ((1 << SLAB_BITS) - 1));
        if N == 1 {
            // The next cache line of the chunk is in no cache yet. Items of several words have more groups, whose lines
            // would not stay in the cache.
            prefetch(slab, at + 64 / size_of::<W>());
        }
        for (i, word) in words.into_iter().enumerate() {
            slab[at + i] = word;
        }
        *next += N as u64;
    }

    /// Returns the words of a group, chunk by chunk.
    pub(crate) fn of_group(&self, group: usize) -> impl Iterator<Item = &[W]> {
        let by_group = self.by_group.get_or_init(|| ByGroup::new(&self.groups, self.next.len()));
        let (chunks, last) = (by_group.of(group), self.next[group]);
        chunks.iter().enumerate().map(move |(i, &chunk)| {
            let at = u64::from(chunk) << CHUNK_BITS;
            let slab = &self.slabs[(at >> SLAB_BITS) as usize];
            let begin = at as usize & ((1 << SLAB_BITS) - 1);
            let len = if i + 1 == chunks.len() { (last - at) as usize } else { Self::CHUNK };
            &slab[begin..begin + len]
        })
    }

    /// Returns the number of words of all groups.
    pub(crate) fn len(&self) -> u64 {
        let free: u64 = self.next.iter().map(|next| next.wrapping_neg() & (Self::CHUNK as u64 - 1)).sum();
        ((self.groups.len() as u64) << CHUNK_BITS) - free
    }

    /// Removes all words and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.by_group.take();
        self.next.fill(0);
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

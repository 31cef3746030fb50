//! Decisions on reads: which of the minimizers of a read differ, how many of those an index has, and whether that is
//! enough.
//!
//! A *unit* is what is decided: a read, or a pair of reads, some words of packed bases. Minimizers of all units lie in
//! one array, by position. One thread per minimizer puts it into an open-addressing table of the whole batch, whose
//! slots hold numbers of minimizers: who finds it there already, of its own unit, is a duplicate. So units of any
//! length cost the same per minimizer, and counts do not depend on the order of threads.

use warpset_core::hash::mix;
use warpset_core::minimizer::needed_hits;
use warpset_simt::{Global, GlobalMut, atomic, thread};

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// A slot that is free.
pub const FREE: u32 = u32::MAX;

/// The unit that has a word: the last one that begins at it or before.
///
/// # Safety
/// `starts` is valid for `units > 0` words, ascending, the first at most `word`.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn unit_of(starts: Global<u32>, units: u32, word: u32) -> u32 {
    let (mut low, mut high) = (0, units);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        // SAFETY: below `units`.
        if unsafe { starts.read_nc(middle as usize) } <= word {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

kernel! {
    /// Counts the different minimizers of each unit, and those of them that are hits: adds 1 to `counts[u]` for the
    /// first of equal minimizers of unit `u`, and 2^32 more if it is a hit. The minimizers are the first `count` ones,
    /// of which there may be more than `room`; then those without room are left out.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, [`BLOCK`] threads per block, no shared memory.
    /// - `kmers`, `positions`, `hits`: valid for `room` items each, the first `count` of them initialised, not written
    ///   while the kernel runs; `room` is below [`FREE`]. `count`: one word, not written while the kernel runs.
    /// - `starts`: valid for `units` words, not written while the kernel runs: the first word of 32 positions of each
    ///   unit, ascending, the first one 0. Units without positions begin where the next one does.
    /// - `slots`: `mask + 1` words, a power of two and more than `room`, all [`FREE`] before the launch; `counts`:
    ///   `units` words. Only accessed atomically while the kernel runs.
    pub unsafe fn sequence_distinct(
        kmers: Global<u64>, positions: Global<u32>, hits: Global<u8>, count: Global<u64>, room: usize,
        starts: Global<u32>, units: u32, slots: GlobalMut<u32>, mask: u64, counts: GlobalMut<u64>,
    ) {
        // SAFETY: one word.
        let n = Ord::min(unsafe { count.read_nc(0) } as usize, room);
        for i in thread::grid_stride(n) {
            // SAFETY: `i` and what slots hold are below `n`; places are at most `mask`; the table has a free slot.
            unsafe {
                let kmer = kmers.read_nc(i);
                let unit = unit_of(starts, units, positions.read_nc(i) / 32);
                let mut slot = mix(kmer, unit as u64) & mask;
                loop {
                    let there = atomic::compare_exchange(slots.at(slot as usize), FREE, i as u32);
                    if there == FREE {
                        let hit = (hits.read_nc(i) != 0) as u64;
                        atomic::reduce_add(counts.at(unit as usize), 1 | hit << 32);
                        break;
                    }
                    let other = there as usize;
                    if kmers.read_nc(other) == kmer && unit_of(starts, units, positions.read_nc(other) / 32) == unit {
                        break;
                    }
                    slot = (slot + 1) & mask;
                }
            }
        }
    }

    /// Decides `units` units by their counts: `decisions[u]` gets 1 if at least as many different minimizers are hits
    /// as [`needed_hits`] says, else 0.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, [`BLOCK`] threads per block, no shared memory.
    /// - `counts`: valid for `units` words, as [`sequence_distinct`] left them, not written while the kernel runs.
    /// - `decisions`: valid for `units` bytes, which this launch alone accesses.
    pub unsafe fn sequence_decide(
        counts: Global<u64>, units: usize, hits: u64, share: f64, decisions: GlobalMut<u8>,
    ) {
        for u in thread::grid_stride(units) {
            // SAFETY: below `units`.
            unsafe {
                let count = counts.read_nc(u);
                decisions.write(u, (count >> 32 >= needed_hits(hits, share, count & 0xffff_ffff)) as u8);
            }
        }
    }
}

//! Decisions on reads: which minimizers of a read differ, how many of those an index has, and whether that is enough.
//!
//! A *unit* is a read or a pair of reads, decided as one: some words of packed bases. Minimizers of all units lie in
//! one array, ordered by position. One thread per minimizer inserts it into an open-addressing table of the whole
//! batch; its slots hold numbers of minimizers. A minimizer that finds an equal one of its unit there is a duplicate.
//! So units of any length cost the same per minimizer, and counts do not depend on the order of threads.

use warpset_core::hash::{finalise, mix};
use warpset_core::minimizer::{Kmer, needed_hits};
use warpset_simt::{Global, GlobalMut, atomic, thread};

/// Threads per block.
pub const BLOCK: u32 = 256;
/// Free slot.
pub const FREE: u32 = u32::MAX;

/// Returns the unit of a word: the last one that begins at it or before.
///
/// # Safety
/// `starts` is valid for `units > 0` words, ascending, the first at most `word`.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn unit_of(starts: Global<u32>, units: u32, word: u32) -> u32 {
    let (mut low, mut high) = (0, units);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        // SAFETY: `middle` is below `units`.
        if unsafe { starts.read_nc(middle as usize) } <= word {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Returns 64 bits to hash in place of a k-mer.
#[cfg(feature = "bodies")]
#[inline(always)]
fn folded<W: Kmer>(kmer: W) -> u64 {
    if W::MOST_K > 32 { kmer.low() ^ finalise((kmer >> 32 >> 32).low()) } else { kmer.low() }
}

kernel! {
    /// Counts the different minimizers of each unit, and the hits among them: adds 1 to `counts[u]` for the first of
    /// equal minimizers of unit `u`, and 2^32 more if it is a hit. There are `count` minimizers; if these are more than
    /// `room`, those beyond `room` are left out.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, [`BLOCK`] threads per block, no shared memory.
    /// - `kmers`, `positions`, `hits`: valid for `room` items each, the first `count` of them initialised, not written
    ///   while the kernel runs; `room` is below [`FREE`]. `count`: one word, not written while the kernel runs.
    /// - `starts`: valid for `units` words, not written while the kernel runs: the first word of 32 positions of each
    ///   unit, ascending, the first one 0. A unit without positions has the start of the next one.
    /// - `slots`: `mask + 1` words, a power of two and more than `room`, all [`FREE`] before the launch; `counts`:
    ///   `units` words. Only accessed atomically while the kernel runs.
    pub unsafe fn sequence_distinct<W>(
        kmers: Global<W>, positions: Global<u32>, hits: Global<u8>, count: Global<u64>, room: usize,
        starts: Global<u32>, units: u32, slots: GlobalMut<u32>, mask: u64, counts: GlobalMut<u64>,
    ) for [u64 => sequence_distinct_u64, u128 => sequence_distinct_u128] {
        // SAFETY: `count` is one word.
        let n = Ord::min(unsafe { count.read_nc(0) } as usize, room);
        for i in thread::grid_stride(n) {
            // SAFETY: `i` and the contents of slots are below `n`; places are at most `mask`; the table has a free
            // slot, so each search ends.
            unsafe {
                let kmer = kmers.read_nc(i);
                let unit = unit_of(starts, units, positions.read_nc(i) / 32);
                let mut slot = mix(folded(kmer), unit as u64) & mask;
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

    /// Decides `units` units by their counts: `decisions[u]` gets 1 if the unit has the hits that [`needed_hits`]
    /// demands, else 0.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, [`BLOCK`] threads per block, no shared memory.
    /// - `counts`: valid for `units` words, as [`sequence_distinct`] left them, not written while the kernel runs.
    /// - `decisions`: valid for `units` bytes, which this launch alone accesses.
    pub unsafe fn sequence_decide(
        counts: Global<u64>, units: usize, hits: u64, share: f64, decisions: GlobalMut<u8>,
    ) {
        for u in thread::grid_stride(units) {
            // SAFETY: `unit` is below `units`.
            unsafe {
                let count = counts.read_nc(u);
                decisions.write(u, (count >> 32 >= needed_hits(hits, share, count & 0xffff_ffff)) as u8);
            }
        }
    }
}

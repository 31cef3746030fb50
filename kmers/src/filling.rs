//! Fingerprints of one thread and round, grouped by part as they arrive.
//!
//! Memory is allocated in *slabs*, each larger than an allocator keeps for itself, so that all of it returns to the
//! system at the end. A slab is cut into *chunks*. Each part has one open chunk for its next fingerprints, each written
//! once. A full chunk is followed by another, with a link to the one before.

use std::sync::atomic::{AtomicU64, Ordering};

use warpset_core::hash::permute::{permute, spread_of};

use crate::parts::Cut;
use crate::table::key_bits;
use crate::{K, Roll};

/// Fingerprints per chunk and per slab, as powers of two; small in tests, so that they use several slabs.
const CHUNK_BITS: u32 = 8;
const SLAB_BITS: u32 = if cfg!(test) { 14 } else { 22 };
const CHUNK: usize = 1 << CHUNK_BITS;
/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: u64 = 8 << CHUNK_BITS;
/// Mark for no chunk.
const NONE: u64 = !0;

/// Fingerprints with the places of each part.
pub(crate) struct Filling {
    cut: Cut,
    bits: u32,
    roll: Roll,
    slabs: Vec<Vec<u64>>,
    /// Link of each chunk to the one before of the same part.
    before: Vec<u64>,
    /// Place of the next fingerprint of each part, counted through all slabs. At a multiple of a chunk's length the
    /// next chunk is still to be allocated.
    next: Vec<u64>,
    /// Open chunk of each part.
    open: Vec<u64>,
}

impl Filling {
    pub(crate) fn new(k: K) -> Filling {
        let bits = key_bits(k);
        let cut = Cut::new(bits);
        let (slabs, before) = (Vec::new(), Vec::new());
        Filling {
            cut,
            bits,
            roll: Roll::new(k),
            slabs,
            before,
            next: vec![0; cut.parts()],
            open: vec![NONE; cut.parts()],
        }
    }

    /// Adds the k-mers of a batch of letters, and adds to `taken` the bytes that are newly in use.
    pub(crate) fn fill(&mut self, batch: &[u8], taken: &AtomicU64) {
        let Filling { cut, bits, roll, slabs, before, next, open } = self;
        let (cut, bits, spread) = (*cut, *bits, spread_of(0));
        roll.restart();
        roll.each(batch, |kmer| {
            // Fingerprint of the table's filter with seed 0.
            let fingerprint = permute(kmer, bits, spread);
            let part = cut.part(fingerprint);
            let next = &mut next[part];
            if *next & (CHUNK as u64 - 1) == 0 {
                let chunk = before.len() as u64;
                before.push(std::mem::replace(&mut open[part], chunk));
                *next = chunk << CHUNK_BITS;
                if (*next >> SLAB_BITS) as usize == slabs.len() {
                    slabs.push(vec![0; 1 << SLAB_BITS]);
                }
                taken.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
            }
            slabs[(*next >> SLAB_BITS) as usize][*next as usize & ((1 << SLAB_BITS) - 1)] = fingerprint;
            *next += 1;
        });
    }

    /// Returns the fingerprints of a part, chunk by chunk.
    pub(crate) fn of_part(&self, part: usize) -> impl Iterator<Item = &[u64]> {
        let last = self.next[part] & (CHUNK as u64 - 1);
        let mut len = if last == 0 { CHUNK } else { last as usize };
        let mut chunk = self.open[part];
        std::iter::from_fn(move || {
            if chunk == NONE {
                return None;
            }
            let at = chunk << CHUNK_BITS;
            let slab = &self.slabs[(at >> SLAB_BITS) as usize];
            let begin = at as usize & ((1 << SLAB_BITS) - 1);
            chunk = self.before[chunk as usize];
            Some(&slab[begin..begin + std::mem::replace(&mut len, CHUNK)])
        })
    }

    /// Removes all fingerprints and keeps the memory for the next round.
    pub(crate) fn clear(&mut self) {
        self.before.clear();
        self.next.fill(0);
        self.open.fill(NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks parts with none, few, exactly one chunk, and many fingerprints, in two rounds of several slabs.
    #[test]
    fn every_fingerprint_is_in_its_part_once() {
        let k = K::new(31).unwrap();
        let cut = Cut::new(key_bits(k));
        let mut filling = Filling::new(k);
        let taken = AtomicU64::new(0);
        let base = |i| b"ACGT"[(warpset_core::hash::finalise(i) & 3) as usize];
        for (round, len) in [(0, 2000), (1, (1u64 << SLAB_BITS) + 100_000), (2, 0)] {
            // One k-mer often enough to fill its chunks to the last place.
            let batch: Vec<u8> = (0..len).map(|i| base(i + round)).chain([0]).chain([b'A'; 30 + 5 * CHUNK]).collect();
            filling.fill(&batch, &taken);
            let mut wanted = vec![Vec::new(); cut.parts()];
            Roll::new(k).each(&batch, |kmer| {
                let fingerprint = permute(kmer, 62, spread_of(0));
                wanted[cut.part(fingerprint)].push(fingerprint);
            });
            for (part, mut wanted) in wanted.into_iter().enumerate() {
                let mut found: Vec<u64> = filling.of_part(part).flatten().copied().collect();
                found.sort_unstable();
                wanted.sort_unstable();
                assert!(found == wanted, "{part}");
            }
            filling.clear();
        }
        assert!(taken.into_inner() >= 8 << SLAB_BITS);
        assert_eq!(filling.of_part(5).count(), 0);
    }
}

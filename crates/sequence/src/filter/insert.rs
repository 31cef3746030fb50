//! Insertion into host memory, by one thread or by several into shared words.

use std::sync::atomic::{AtomicU64, Ordering};

use warpset_base::parallel;
use warpset_core::sequence_filter::{BLOCK_WORDS, mask_of, word_of};

use super::layout::Layout;
use super::packed::PackedSequences;
use super::probes::{Probes, WORDS};
use super::sequences::{Piece, Sequences, tasks};
use super::view::{TASK, prefetch_all};

/// Destination of s-mers.
trait Words {
    /// Returns the address of the words, and their bytes.
    fn place(&self) -> (*const u64, usize);
    /// Sets the bits of a mask in a word.
    fn set(&mut self, word: usize, mask: u64);
}

/// Words of a single thread.
struct Own<'a>(&'a mut [u64]);
/// Words shared by several threads.
struct Shared<'a>(&'a [AtomicU64]);

impl Words for Own<'_> {
    fn place(&self) -> (*const u64, usize) {
        (self.0.as_ptr(), size_of_val(self.0))
    }

    #[inline(always)]
    fn set(&mut self, word: usize, mask: u64) {
        self.0[word] |= mask;
    }
}

impl Words for Shared<'_> {
    fn place(&self) -> (*const u64, usize) {
        (self.0.as_ptr().cast(), size_of_val(self.0))
    }

    #[inline(always)]
    fn set(&mut self, word: usize, mask: u64) {
        let word = &self.0[word];
        // Without a write the cache line stays valid in the caches of other threads.
        if word.load(Ordering::Relaxed) & mask != mask {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }
}

/// Inserts the k-mers of all sequences; on all threads of the current pool if they are long enough.
pub(super) fn insert<S: Sequences + ?Sized>(layout: &Layout, words: &mut [u64], sequences: &S) {
    let k = layout.k() as usize;
    let (pieces, ends) = tasks(sequences, k, TASK);
    let scratch = || (PackedSequences::new(), Probes::new());
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let parts = starts.zip(&ends).map(|(start, &end)| &pieces[start..end]);
    let pack = |pieces: &[Piece], packed: &mut PackedSequences| {
        packed.clear();
        pieces.iter().for_each(|piece| piece.append(sequences, k, packed));
    };
    if ends.len() < 2 || rayon::current_num_threads() == 1 {
        let (mut packed, mut probes) = scratch();
        for pieces in parts {
            pack(pieces, &mut packed);
            insert_packed(layout, &mut Own(words), &packed, &mut probes);
        }
        return;
    }
    let shared = std::ptr::from_mut(words) as *const [AtomicU64];
    // SAFETY: an `AtomicU64` has the size and alignment of a `u64`. The mutable borrow of the words lasts until all
    // threads have ended, so that all accesses meanwhile are atomic.
    let shared = unsafe { &*shared };
    parallel::map_with(scratch, parts, |(packed, probes), pieces| {
        pack(pieces, packed);
        insert_packed(layout, &mut Shared(shared), packed, probes);
    });
}

/// Inserts packed sequences.
fn insert_packed(layout: &Layout, to: &mut impl Words, packed: &PackedSequences, probes: &mut Probes) {
    let (words, bytes) = to.place();
    for first in (0..packed.bases().len()).step_by(WORDS) {
        probes.fill(layout.shape(), layout.blocks(), packed.bases(), packed.breaks(), first);
        prefetch_all(words, bytes, probes);
        // The s-mers of a run are collected and written to their block together.
        let (mut block, mut bits) = (u32::MAX, [0u64; BLOCK_WORDS]);
        let positions = probes.blocks.as_chunks::<32>().0.iter().zip(probes.hashes.as_chunks::<32>().0);
        for ((blocks, hashes), &smers) in positions.zip(&probes.smers) {
            let mut left = smers;
            while left != 0 {
                let i = left.trailing_zeros() as usize;
                left &= left - 1;
                if blocks[i] != block {
                    set_all(to, block, &mut bits);
                    block = blocks[i];
                }
                let word = word_of(hashes[i]) as usize;
                bits[word / 2 % BLOCK_WORDS] |= u64::from(mask_of(hashes[i])) << (word % 2 * 32);
            }
        }
        set_all(to, block, &mut bits);
    }
}

/// Sets bits in a block of the filter, and clears `bits`.
#[inline(always)]
fn set_all(to: &mut impl Words, block: u32, bits: &mut [u64; BLOCK_WORDS]) {
    for (i, bits) in bits.iter_mut().enumerate() {
        if *bits != 0 {
            to.set(block as usize * BLOCK_WORDS + i, *bits);
            *bits = 0;
        }
    }
}

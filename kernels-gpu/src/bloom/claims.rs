//! Which of equal keys in a batch stands first: a hash table in which the smallest index wins each hash.
//!
//! Open addressing with linear probing, at most half full. A word holds 39 bits of the hash above a 24-bit index, so
//! that a minimum over words of one hash is a minimum over indices, whatever the order in which threads arrive. Where
//! the 39 bits agree, the whole hash of the key with that index decides.

use warpset_simt::{Global, GlobalMut, atomic, warp};

use crate::batch::results;
use crate::bloom::batch_partition::{self, Parts};

/// The word that claims nothing; its highest bit is set, which no claim's is.
pub const EMPTY: u64 = !0;
/// Indices stay below `1 << INDEX_BITS`.
pub const INDEX_BITS: u32 = 24;

const INDEX: u64 = (1 << INDEX_BITS) - 1;
const TAG_BITS: u32 = 39;

/// The base-two logarithm of a table's words for `n` claims: at most half of them get used.
pub const fn table_bits(n: usize) -> u32 {
    (if n < 32 { 32 } else { n }).next_power_of_two().trailing_zeros() + 1
}

/// A table of claims.
#[derive(Clone, Copy)]
pub struct Claims {
    table: GlobalMut<u64>,
    bits: u32,
}

#[cfg(feature = "bodies")]
impl Claims {
    /// A table of `1 << bits` words, more than twice as many as there will be claims, only accessed atomically.
    #[inline(always)]
    pub fn new(table: GlobalMut<u64>, bits: u32) -> Claims {
        Claims { table, bits }
    }

    /// Where the search for a hash begins; independent of what chooses the filter's block.
    #[inline(always)]
    fn start(self, hash: u64) -> u64 {
        hash.wrapping_mul(0x9fb2_1c65_1e98_df25) >> (64 - self.bits)
    }

    /// Claims `hash` for key `index`, if no key with a smaller index does.
    ///
    /// # Safety
    /// - The table is as [`Claims::new`] says.
    /// - `hash_of` gives the hash of any index that has been claimed with.
    #[inline(always)]
    pub unsafe fn claim(self, hash: u64, index: usize, hash_of: impl Fn(usize) -> u64) {
        let own = (hash & ((1 << TAG_BITS) - 1)) << INDEX_BITS | index as u64;
        let last = (1u64 << self.bits) - 1;
        let mut at = self.start(hash);
        loop {
            // SAFETY: `at <= last`; the table is only accessed atomically.
            unsafe {
                let word = self.table.at(at as usize);
                let mut held = atomic::load_relaxed(word);
                if held == EMPTY {
                    held = atomic::compare_exchange(word, EMPTY, own);
                    if held == EMPTY {
                        return;
                    }
                }
                if (held ^ own) >> INDEX_BITS == 0 && hash_of((held & INDEX) as usize) == hash {
                    if own < held {
                        atomic::reduce_min(word, own);
                    }
                    return;
                }
            }
            at = (at + 1) & last;
        }
    }

    /// The smallest index that claimed `hash`; all claims lie in earlier launches, and one is for this hash.
    ///
    /// # Safety
    /// The contract of [`Claims::claim`].
    #[inline(always)]
    pub unsafe fn winner(self, hash: u64, hash_of: impl Fn(usize) -> u64) -> usize {
        let tag = hash & ((1 << TAG_BITS) - 1);
        let last = (1u64 << self.bits) - 1;
        let mut at = self.start(hash);
        loop {
            // SAFETY: `at <= last`.
            let held = unsafe { atomic::load_relaxed(self.table.at(at as usize)) };
            let index = (held & INDEX) as usize;
            if held == EMPTY || (held >> INDEX_BITS == tag && hash_of(index) == hash) {
                return index;
            }
            at = (at + 1) & last;
        }
    }
}

/// A batch of a test-and-insert, as both of its kernels see it.
#[derive(Clone, Copy)]
pub struct Batch {
    /// Threads of a block.
    pub block: u32,
    /// Number of keys.
    pub n: usize,
    /// The form of `out`: bytes or bits.
    pub form: u32,
    /// The marks, and in the end the answers.
    pub out: GlobalMut<u64>,
    /// The table of claims.
    pub claims: Claims,
    /// How the batch is divided.
    pub parts: Parts,
    /// The counts of the parts.
    pub counts: Global<u32>,
}

#[cfg(feature = "bodies")]
impl Batch {
    /// First half: marks the keys that the filter does not contain, and lets each of them claim its hash. In a batch
    /// that is divided the marks are there already, and only keys of parts that overflowed claim.
    ///
    /// # Safety
    /// - All threads of the grid come here together, blocks of [`Batch::block`] threads.
    /// - `hash_of` gives the hash of any of `n` keys; the table is as [`Claims::new`] says.
    /// - `out` has room for `n` answers and no other launch uses it; `counts` holds what grouping has counted, and
    ///   `out` its marks, unless the batch is not divided.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn claim(self, hash_of: impl Fn(usize) -> u64, contains: impl Fn(u64) -> bool) {
        let Batch { block, n, form, out, claims, parts, counts } = self;
        // SAFETY: `i < n` where a key is read; all threads reach `put`; claims hold indices below `n`.
        unsafe {
            if parts.all_fit(counts) {
                return;
            }
            for i in batch_partition::rounds(block, n) {
                let mut absent = false;
                if i < n && (parts.bits == 0 || results::get(form, out, i)) {
                    let hash = hash_of(i);
                    absent = parts.bits != 0 || !contains(hash);
                    if absent && parts.overflowed(counts, hash) {
                        claims.claim(hash, i, &hash_of);
                    }
                }
                warp::sync_warp(warp::FULL_MASK);
                results::put(form, out, i, n, absent);
            }
        }
    }

    /// Second half: among the marked keys leaves those marked that won their hash, and inserts them; in a batch that is
    /// divided, those of parts that overflowed. `insert_warp` inserts the hashes of the lanes whose bit is set.
    ///
    /// # Safety
    /// The contract of [`Batch::claim`], which an earlier launch has run with the same batch.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn resolve(self, hash_of: impl Fn(usize) -> u64, insert_warp: impl Fn(u64, u32)) {
        let Batch { block, n, form, out, claims, parts, counts } = self;
        // SAFETY: `i < n` where a key is read; all threads reach `put` and `insert_warp`; claims hold indices below
        // `n`.
        unsafe {
            if parts.all_fit(counts) {
                return;
            }
            for i in batch_partition::rounds(block, n) {
                let mut new = i < n && results::get(form, out, i);
                let mut inserts = false;
                let mut hash = 0;
                if new {
                    hash = hash_of(i);
                    if parts.overflowed(counts, hash) {
                        new = claims.winner(hash, &hash_of) == i;
                        inserts = new;
                    }
                }
                warp::sync_warp(warp::FULL_MASK); // one word of `out` holds bits of all lanes
                results::put(form, out, i, n, new);
                let valid = warp::ballot(warp::FULL_MASK, inserts);
                insert_warp(hash, valid);
            }
        }
    }
}

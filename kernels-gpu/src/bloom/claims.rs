//! Deduplication by claims: the first of equal keys in a batch, found by all threads at once.
//!
//! Problem: test-and-insert of a batch reports a key as new if the filter did not contain it and no equal key precedes
//! it in the batch. Threads run in any order, so the thread that sets a key's bits first may hold a later copy, and the
//! answers would change from run to run.
//!
//! Idea: lookups and insertions are separate launches, with a contest between them. Each absent key claims its hash in
//! a hash table, in which the smallest index wins; only winners are new.
//!
//! ```text
//! index   0    1    2    3    4         table after all claims        answers
//! hash    a    b    a    c    a            a -> 0                     0 1   3
//! absent  yes  yes  yes  yes  yes          b -> 1                     a b - c -
//!                                          c -> 3
//! ```
//!
//! A word of the table is one integer with the index in its low bits:
//!
//! ```text
//!  63  62                       24 23          0
//! | 0 | 39 bits of the hash       | index       |      EMPTY: all ones
//! ```
//!
//! The minimum over words of one hash is the minimum over indices, so one `atomicMin` decides, in whatever order
//! threads arrive. Different hashes may agree in 39 bits: the whole hash of the key at that index decides between them.
//! The table uses open addressing with linear probing and is at most half full, so a search for an absent hash takes at
//! most 2.5 probes on average (Knuth, TAOCP vol. 3, section 6.4: `(1 + 1/(1 - load)^2) / 2`).
//!
//! Cost: two launches and 16 to 32 bytes per key of the batch, bounded by batches of
//! [`TEST_AND_INSERT_BATCH`](warpset_core::bloom::TEST_AND_INSERT_BATCH) keys. Large batches find most winners in
//! shared memory instead ([`batch_partition`]); keys of parts that overflow there claim here.

use warpset_simt::{Global, GlobalMut, atomic, warp};

use crate::batch::results;
use crate::bloom::batch_partition::{self, Parts};

/// The word that claims nothing; its highest bit is set, which no claim's is.
pub const EMPTY: u64 = !0;
/// Indices stay below `1 << INDEX_BITS`.
pub const INDEX_BITS: u32 = 24;

const INDEX: u64 = (1 << INDEX_BITS) - 1;
const TAG_BITS: u32 = 39;

/// Returns the base-two logarithm of a table's words for `n` claims: at most half of them get used.
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
    /// Returns a table of `1 << bits` words, more than twice the number of claims, only accessed atomically.
    #[inline(always)]
    pub fn new(table: GlobalMut<u64>, bits: u32) -> Claims {
        Claims { table, bits }
    }

    /// Returns the start of the search for a hash, independent of the choice of the filter's block.
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

    /// Returns the smallest index that claimed `hash`; all claims lie in earlier launches, and one is for this hash.
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
    /// Division of the batch.
    pub parts: Parts,
    /// The counts of the parts.
    pub counts: Global<u32>,
}

#[cfg(feature = "bodies")]
impl Batch {
    /// Marks the keys that the filter does not contain, and lets each of them claim its hash: the first half. In a
    /// divided batch the marks exist already, and only keys of parts that overflowed claim.
    ///
    /// # Safety
    /// - All threads of the grid call this together, in blocks of [`Batch::block`] threads.
    /// - `hash_of` gives the hash of any of `n` keys; the table is as [`Claims::new`] says.
    /// - `out` is valid for `n` answers and no other launch uses it; `counts` holds the counts of grouping, and `out`
    ///   its marks, unless the batch is not divided.
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

    /// Resolves claims: of the marked keys leaves marked the winners of their hashes, and inserts them; in a divided
    /// batch, the keys of parts that overflowed. `insert_warp` inserts the hashes of the lanes that its mask has set.
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

//! Which of equal keys in a batch stands first: a hash table in which the smallest index wins each hash.
//!
//! Open addressing with linear probing, at most half full. A word holds 39 bits of the hash above a 24-bit index, so
//! that a minimum over words of one hash is a minimum over indices, whatever the order in which threads arrive. Where
//! the 39 bits agree, the whole hash of the key with that index decides.

use warpset_simt::{GlobalMut, atomic};

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
    /// As for [`Claims::claim`].
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

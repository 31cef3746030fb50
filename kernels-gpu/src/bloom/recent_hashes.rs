//! Inexact memory of the hashes that earlier tiles of a batch have shown: for frequent keys, it finds most later copies
//! before they are grouped.
//!
//! A direct-mapped table in device memory, small enough for the L2 cache. A word holds the number of a tile below the
//! bits of the hash that its place leaves open, so a word and its place determine the whole hash: a thread that finds
//! its own hash with a smaller tile has an equal key before it. The last writer keeps the place, and the first copies
//! of a tile may miss each other, so a copy that finds nothing may still be a later one.

use warpset_simt::{GlobalMut, atomic};

/// Bits of the tiles of a batch: there are fewer than `1 << TILE_BITS`. They count from one here; zero means none.
pub const TILE_BITS: u32 = 12;
/// The base-two logarithm of the fewest words: with fewer, a hash would not fit above a tile.
pub const MIN_BITS: u32 = TILE_BITS;

/// A table of recent hashes.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Recent {
    words: GlobalMut<u64>,
    bits: u32,
}

#[cfg(feature = "bodies")]
impl Recent {
    /// Returns a table of `1 << bits` words, `bits >= MIN_BITS`, zero at the start, only accessed atomically.
    #[inline(always)]
    pub fn new(words: GlobalMut<u64>, bits: u32) -> Recent {
        Recent { words, bits }
    }

    /// Returns the place of a hash, and its word in this tile.
    #[inline(always)]
    fn entry(bits: u32, hash: u64, tile: u32) -> (usize, u64) {
        let mixed = hash.wrapping_mul(0x9fb2_1c65_1e98_df25); // odd: different hashes stay different
        let rest = mixed << bits >> bits;
        ((mixed >> (64 - bits)) as usize, rest << TILE_BITS | (tile as u64 + 1))
    }

    /// Returns the word at the place of a hash.
    ///
    /// # Safety
    /// The table is as [`Recent::new`] says.
    #[inline(always)]
    pub unsafe fn held(self, hash: u64) -> u64 {
        let (at, _) = Recent::entry(self.bits, hash, 0);
        // SAFETY: the place is below `1 << bits`.
        unsafe { atomic::load_relaxed(self.words.at(at)) }
    }

    /// Whether `held`, the word at the place of this hash, shows that an earlier tile has this hash; if not, it is
    /// recorded for this tile.
    ///
    /// # Safety
    /// The contract of [`Recent::held`]; `tile + 1` is below `1 << TILE_BITS`.
    #[inline(always)]
    pub unsafe fn comes_again(self, held: u64, hash: u64, tile: u32) -> bool {
        let (at, own) = Recent::entry(self.bits, hash, tile);
        let same = (held ^ own) >> TILE_BITS == 0;
        if same && held < own {
            return held % (1 << TILE_BITS) != 0;
        }
        if held != own {
            // SAFETY: the place is below `1 << bits`.
            unsafe { atomic::store_relaxed(self.words.at(at), own) };
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_and_its_place_are_the_hash() {
        for bits in [MIN_BITS, 20, 24] {
            let hashes = (0..1000u64).flat_map(|i| [i, i << 40, i.wrapping_mul(0x9e37_79b9_7f4a_7c15), !i]);
            let mut seen = std::collections::HashMap::new();
            for hash in hashes {
                let (at, word) = Recent::entry(bits, hash, 5);
                assert!(at < 1 << bits && word % (1 << TILE_BITS) == 6);
                assert_eq!(*seen.entry((at, word)).or_insert(hash), hash);
            }
        }
    }
}

//! Table of the levels in device memory: levels are separate allocations, so a launch of its own writes the table from
//! addresses that it gets by value.

use warpset_simt::GlobalMut;

/// Largest number of levels: one lane of a warp each.
pub const LEVELS: usize = 32;
/// Words of the table.
pub const TABLE_WORDS: usize = WORDS * LEVELS;
/// Words per level.
pub const WORDS: usize = 8;

/// Places of the words of a level in the table: consecutive words are `LEVELS` apart.
pub mod word {
    /// Address of the keys.
    pub const KEYS: usize = 0;
    /// Address of the values.
    pub const VALUES: usize = 1;
    /// Address of the tombstones' bits, or 0.
    pub const TOMBSTONES: usize = 2;
    /// Number of elements.
    pub const LEN: usize = 3;
    /// Address of the filter, or 0.
    pub const FILTER: usize = 4;
    /// Words of 64 bits of the filter, or 0.
    pub const FILTER_WORDS: usize = 5;
    /// Address of the index, or 0.
    pub const INDEX: usize = 6;
    /// Place of the level's first word of [visibility](crate::lsm::visibility) among those of all levels.
    pub const FIRST_VISIBLE: usize = 7;
}

/// Addresses on the device and lengths, the newest level first. Entries beyond the last level are zero.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Addresses {
    /// Addresses of keys.
    pub keys: [u64; LEVELS],
    /// Addresses of values; any address for values of size zero.
    pub values: [u64; LEVELS],
    /// Addresses of bitmaps of tombstones; zero for levels without.
    pub tombstones: [u64; LEVELS],
    /// Numbers of elements.
    pub lengths: [u64; LEVELS],
    /// Addresses of filters ([`derive`](super::derive)); zero for levels without.
    pub filters: [u64; LEVELS],
    /// Words of each filter.
    pub filter_words: [u64; LEVELS],
    /// Addresses of indexes; zero for levels without.
    pub indexes: [u64; LEVELS],
    /// Numbers of words of visibility of earlier levels; beyond the last level, the number of all words.
    pub first_visible: [u64; LEVELS],
}

impl Addresses {
    /// Addresses of a tree without levels.
    pub const NONE: Self = {
        let none = [0; LEVELS];
        Self {
            keys: none,
            values: none,
            tombstones: none,
            lengths: none,
            filters: none,
            filter_words: none,
            indexes: none,
            first_visible: none,
        }
    };
}

const _: () = assert!(size_of::<Addresses>() == 8 * TABLE_WORDS);

#[cfg(feature = "bodies")]
impl Addresses {
    /// Writes level `i` to the table.
    ///
    /// # Safety
    /// `i < LEVELS`; `table` is valid for [`TABLE_WORDS`] words, used by this launch alone, and no other thread writes
    /// this level.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn write_to(&self, table: GlobalMut<u64>, i: u32) {
        // A variable index would move the arrays to local memory.
        let choose = |words: &[u64; LEVELS]| {
            let mut chosen = words[0];
            for level in 1..LEVELS {
                chosen = if i == level as u32 { words[level] } else { chosen };
            }
            chosen
        };
        let words = [
            choose(&self.keys),
            choose(&self.values),
            choose(&self.tombstones),
            choose(&self.lengths),
            choose(&self.filters),
            choose(&self.filter_words),
            choose(&self.indexes),
            choose(&self.first_visible),
        ];
        for w in 0..WORDS {
            // SAFETY: there are eight places per level.
            unsafe { table.write(w * LEVELS + i as usize, words[w]) };
        }
    }
}

//! The levels as kernels see them: separate allocations, so a table of their addresses in device memory, written by a
//! launch of its own from addresses that it gets by value.

use warpset_simt::GlobalMut;

/// The most levels: one lane of a warp for each.
pub const LEVELS: usize = 32;
/// Words of the table.
pub const TABLE_WORDS: usize = WORDS * LEVELS;
/// Words of a level in the table.
pub const WORDS: usize = 8;

/// Where each word of a level stands in the table: `LEVELS` words from the one before.
pub mod word {
    /// Address of the keys.
    pub const KEYS: usize = 0;
    /// Address of the values.
    pub const VALUES: usize = 1;
    /// Address of the tombstones' bits, or 0.
    pub const TOMBSTONES: usize = 2;
    /// Elements.
    pub const LEN: usize = 3;
    /// Address of the filter, or 0.
    pub const FILTER: usize = 4;
    /// Words of 64 bits of the filter, or 0.
    pub const FILTER_WORDS: usize = 5;
    /// Address of the index, or 0.
    pub const INDEX: usize = 6;
    /// Where the level's words of [visibility](crate::lsm::visibility) begin among those of all levels.
    pub const FIRST_VISIBLE: usize = 7;
}

/// Addresses on the device and lengths, the newest level first. Places beyond the last level are zero.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Addresses {
    /// Where keys begin.
    pub keys: [u64; LEVELS],
    /// Where values begin; any address where values have no bytes.
    pub values: [u64; LEVELS],
    /// Where bitmaps of tombstones begin; zero for a level that has none.
    pub tombstones: [u64; LEVELS],
    /// How many elements each level has.
    pub lengths: [u64; LEVELS],
    /// Where filters ([`derive`](super::derive)) begin; zero for a level that has none.
    pub filters: [u64; LEVELS],
    /// Words of each filter.
    pub filter_words: [u64; LEVELS],
    /// Where indexes begin; zero for a level that has none.
    pub indexes: [u64; LEVELS],
    /// How many words of visibility the levels before have; for places beyond the last level, how many all have.
    pub first_visible: [u64; LEVELS],
}

impl Addresses {
    /// The addresses of a tree without levels.
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
        // An index that is no constant would move the arrays to local memory.
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
            // SAFETY: eight places for each level.
            unsafe { table.write(w * LEVELS + i as usize, words[w]) };
        }
    }
}

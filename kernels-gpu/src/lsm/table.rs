//! The levels as kernels see them: separate allocations, so a table of their addresses in device memory, written by a launch
//! of its own from addresses that it gets by value.

use warpset_simt::{Global, GlobalMut, ShuffleWord, warp};

/// The most levels: one lane of a warp for each.
pub const LEVELS: usize = 32;
/// Words of the table.
pub const TABLE_WORDS: usize = 4 * LEVELS;

const FULL_MASK: u32 = u32::MAX;

/// Addresses on the device and lengths, the newest level first. Places beyond the last level are zero.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Levels {
    /// Of keys.
    pub keys: [u64; LEVELS],
    /// Of values; of anything where values have no bytes.
    pub values: [u64; LEVELS],
    /// Of bitmaps of tombstones; zero for a level that has none.
    pub tombstones: [u64; LEVELS],
    /// How many elements each level has.
    pub lengths: [u64; LEVELS],
}

const _: () = assert!(size_of::<Levels>() == 8 * TABLE_WORDS);

/// Keys of dictionaries on the device.
pub trait LevelKey: ShuffleWord + Ord {
    /// The largest key.
    const LARGEST: Self;
    /// The smallest key of a warp.
    ///
    /// # Safety
    /// All lanes of the warp come here.
    unsafe fn least_of_warp(self) -> Self;
}

impl LevelKey for u32 {
    const LARGEST: u32 = u32::MAX;
    #[inline(always)]
    unsafe fn least_of_warp(self) -> u32 {
        // SAFETY: the caller's promise is the same.
        unsafe { warp::reduce_min(FULL_MASK, self) }
    }
}

impl LevelKey for u64 {
    const LARGEST: u64 = u64::MAX;
    #[inline(always)]
    unsafe fn least_of_warp(self) -> u64 {
        let mut least = self;
        for step in 0..5 {
            // SAFETY: the caller's promise is the same.
            least = least.min(unsafe { warp::shuffle_xor(FULL_MASK, least, 1 << step) });
        }
        least
    }
}

/// A handle to what begins at `address`.
///
/// # Safety
/// There are elements of that type at the address, in global memory, or nothing is accessed by way of the handle.
#[inline(always)]
pub(super) unsafe fn at_address<T>(address: u64) -> Global<T> {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a handle is one pointer, transparently, and all its bits may be anything.
    unsafe {
        core::mem::transmute::<u64, Global<T>>(address)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    Global::from_raw_parts(core::ptr::with_exposed_provenance(address as usize), usize::MAX >> 4)
}

impl Levels {
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
        let words = [choose(&self.keys), choose(&self.values), choose(&self.tombstones), choose(&self.lengths)];
        for w in 0..4 {
            // SAFETY: four places for each level.
            unsafe { table.write(w * LEVELS + i as usize, words[w]) };
        }
    }
}

/// One level, as the table has it.
#[derive(Clone, Copy)]
pub(super) struct Level<K> {
    pub keys_at: u64,
    pub keys: Global<K>,
    pub values: u64,
    pub tombstones: u64,
    pub len: usize,
}

impl<K: LevelKey> Level<K> {
    /// Level `i`.
    ///
    /// # Safety
    /// `i < LEVELS`; a launch before wrote the table; its levels are valid and not written while the result is used.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read(table: Global<u64>, i: u32) -> Self {
        // SAFETY: four places for each level.
        let word = |w: usize| unsafe { table.read_nc(w * LEVELS + i as usize) };
        Level {
            keys_at: word(0),
            // SAFETY: the table has addresses of keys.
            keys: unsafe { at_address(word(0)) },
            values: word(1),
            tombstones: word(2),
            len: word(3) as usize,
        }
    }

    /// The level that lane `lane` has, for all lanes.
    ///
    /// # Safety
    /// All lanes of the warp come here with the same `lane`.
    #[inline(always)]
    pub unsafe fn of_lane(self, lane: u32) -> Self {
        // SAFETY: the caller's promise; addresses are those of another lane's level.
        unsafe {
            let word = |value: u64| warp::shuffle_idx(FULL_MASK, value, lane);
            let keys = word(self.keys_at);
            Level {
                keys_at: keys,
                keys: at_address(keys),
                values: word(self.values),
                tombstones: word(self.tombstones),
                len: word(self.len as u64) as usize,
            }
        }
    }

    /// Whether element `i` is a tombstone.
    ///
    /// # Safety
    /// `i < self.len`, and as for [`Level::read`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn is_tombstone(&self, i: usize) -> bool {
        // SAFETY: a bitmap has a bit for each element.
        self.tombstones != 0 && unsafe { at_address::<u32>(self.tombstones).read_nc(i / 32) } >> (i % 32) & 1 != 0
    }

    /// Copies the value of element `i`, of `words` words of 32 bits: 0, 1 or 2, to place `to`.
    ///
    /// # Safety
    /// `i < self.len`, and as for [`Level::read`]; `out` is valid for a value at `to`, which nothing else accesses.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn copy_value(&self, i: usize, words: u32, out: GlobalMut<u32>, to: usize) {
        // SAFETY: the caller's promise; the address is that of values of so many words.
        unsafe {
            if words == 1 {
                out.write(to, at_address::<u32>(self.values).read_nc(i));
            } else if words == 2 {
                out.cast::<u64>().write(to, at_address::<u64>(self.values).read_nc(i));
            }
        }
    }

    /// The first place from `from` on whose key is not below `key`, by halving (section III-D of the paper).
    ///
    /// # Safety
    /// As for [`Level::read`]; `from <= self.len`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn lower_bound(&self, from: usize, key: K) -> usize {
        let (mut first, mut left) = (from, self.len - from);
        while left > 0 {
            let half = left / 2;
            // SAFETY: `half < left`, and `left` keys are left after the place.
            let below = unsafe { self.keys.read_nc(first + half) } < key;
            first = if below { first + half + 1 } else { first };
            left = if below { left - half - 1 } else { half };
        }
        first
    }
}

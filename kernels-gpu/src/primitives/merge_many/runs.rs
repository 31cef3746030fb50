//! Merged runs in kernels: addresses and lengths in one parameter, then a table in memory.
//!
//! Runs are separate allocations, too many for parameters of their own in every kernel. So the first kernel gets all
//! addresses by value and writes them to memory for the second.

use warpset_simt::{Global, GlobalMut};

/// Largest number of runs: one lane of a warp each.
pub const RUNS: usize = 32;
/// Words of the table.
pub const TABLE_WORDS: usize = 4 * RUNS;

/// Addresses on the device, lengths, and the order in which neighbours are merged. Places beyond the last run are zero.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Runs {
    /// Addresses of keys.
    pub keys: [u64; RUNS],
    /// Addresses of values; zero without values.
    pub values: [u64; RUNS],
    /// Addresses of bitmaps of status bits; zero for runs without.
    pub status: [u64; RUNS],
    /// Number of items of each run.
    pub lengths: [u64; RUNS],
    /// Merges of a tile, see [`node`], the deepest first.
    pub nodes: [u32; RUNS],
}

const _: () = assert!(size_of::<Runs>() == 36 * RUNS && size_of::<Global<u32>>() % 8 == 0);

/// Returns the word of a merge of the runs `first..middle` with the runs `middle..end`, which is `depth` merges away
/// from the last one:
///
/// ```text
///   31      24 23      16 15       8 7        0
///  +----------+----------+----------+----------+
///  |  depth   |   end    |  middle  |  first   |
///  +----------+----------+----------+----------+
/// ```
#[must_use]
pub const fn node(first: u32, middle: u32, end: u32, depth: u32) -> u32 {
    depth << 24 | end << 16 | middle << 8 | first
}

/// Returns a handle to the memory at `address`.
///
/// # Safety
/// There are elements of this type at the address, in global memory, or the handle is not accessed.
#[cfg(feature = "bodies")]
#[inline(always)]
pub(super) unsafe fn at_address<T>(address: u64) -> Global<T> {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a handle is a transparent wrapper of one pointer, for which all bits are valid.
    unsafe {
        core::mem::transmute::<u64, Global<T>>(address)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    Global::from_raw_parts(core::ptr::with_exposed_provenance(address as usize), usize::MAX >> 4)
}

/// Returns element `i` of an array in registers.
#[cfg(feature = "bodies")]
#[inline(always)]
fn choose<T: Copy>(words: &[T; RUNS], i: u32) -> T {
    let mut chosen = words[0];
    for r in 1..RUNS {
        chosen = if i == r as u32 { words[r] } else { chosen };
    }
    chosen
}

#[cfg(feature = "bodies")]
impl Runs {
    /// Returns keys and length of run `i`.
    ///
    /// # Safety
    /// The contract of [`at_address`].
    #[inline(always)]
    pub(super) unsafe fn run<K>(&self, i: u32) -> (Global<K>, u64) {
        // SAFETY: the contract of this function.
        (unsafe { at_address(choose(&self.keys, i)) }, choose(&self.lengths, i))
    }

    /// Writes run `i` to the table.
    ///
    /// # Safety
    /// `i < RUNS`; `table` is valid for [`TABLE_WORDS`] words, used by this launch alone, and no other thread writes
    /// this run.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn write_to(&self, table: GlobalMut<u64>, i: u32) {
        let words = [
            choose(&self.keys, i),
            choose(&self.values, i),
            choose(&self.status, i),
            u64::from(choose(&self.nodes, i)),
        ];
        for w in 0..4 {
            // SAFETY: there are four places per run.
            unsafe { table.write(w * RUNS + i as usize, words[w]) };
        }
    }
}

/// Data of the run and of the merge with a lane's number.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Addresses, as in [`Runs`].
    pub keys: u64,
    pub values: u64,
    pub status: u64,
    pub node: u32,
}

#[cfg(feature = "bodies")]
impl Entry {
    /// Reads the entry of `lane`.
    ///
    /// # Safety
    /// `lane < RUNS`; the table was written by a launch before.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn read(table: Global<u64>, lane: u32) -> Self {
        // SAFETY: there are four places per run.
        let word = |w: usize| unsafe { table.read_nc(w * RUNS + lane as usize) };
        Entry { keys: word(0), values: word(1), status: word(2), node: word(3) as u32 }
    }
}

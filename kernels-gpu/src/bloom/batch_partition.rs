//! Test-and-insert by parts: deduplication of a large batch in shared memory.
//!
//! The absent keys of a batch are grouped into parts by the top bits of their hashes ([`crate::bloom::partition`]).
//! Equal hashes meet in one part, and the keys of a part fall in one stretch of the filter. One thread block takes a
//! part: its keys claim their hashes in a table in shared memory, in which the smallest index wins; then the block
//! inserts the hashes. If the stretch is short, the block sets the bits in shared memory first and writes each word to
//! the filter once.
//!
//! A part holds a bounded number of keys. Keys of a part that overflows, by many equal hashes or by poor ones, are left
//! to [`claims`](crate::bloom::claims), which explains the contest.

use crate::batch::results;
use warpset_core::bloom::blocked::block_of;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block that takes a part.
pub const BLOCK: u32 = 384;
/// The most keys of a part.
pub const MAX_CAPACITY: usize = 5376;
/// The most bits that choose a part.
pub const MAX_BITS: u32 = 12;
/// The most words of 32 bits of a stretch that is built in shared memory.
pub const MAX_STRETCH: usize = 3840;

/// Slots of the table, of 32 bits.
const TABLE: u32 = 1 << TABLE_BITS;
const TABLE_BITS: u32 = 13;
const EMPTY: u32 = !0;
/// A slot holds a key's place in its part below bits of its hash.
const PLACE_BITS: u32 = 13;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
const LATER_AT: u32 = TABLE * 4;
const SALTS_AT: u32 = LATER_AT + MAX_CAPACITY as u32 / 8;
const STRETCH_AT: u32 = SALTS_AT + 32 * 4;

const _: () = assert!(MAX_CAPACITY % 32 == 0 && MAX_CAPACITY < PLACE as usize && STRETCH_AT % 8 == 0);
const _: () = assert!(shared_bytes(MAX_STRETCH) <= 48 << 10);

/// Returns the dynamic shared memory, in bytes, of a block that takes a part.
pub const fn shared_bytes(stretch: usize) -> u32 {
    STRETCH_AT + stretch as u32 * 4
}

/// Division of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Parts {
    /// There are `1 << bits` parts; 0 marks a batch that is not divided.
    pub bits: u32,
    /// Most keys of a part, at most [`MAX_CAPACITY`].
    pub capacity: u32,
}

const _: () = assert!(size_of::<Parts>() == 8);

impl Parts {
    /// A batch that is not divided.
    pub const UNDIVIDED: Parts = Parts { bits: 0, capacity: 0 };

    /// Returns the part of a hash.
    #[inline(always)]
    pub fn of(self, hash: u64) -> u32 {
        (hash >> (64 - self.bits)) as u32
    }

    /// Returns the number of 32-bit counters: one per part for its keys, and a last one that says whether a part
    /// overflowed.
    pub const fn counts(self) -> usize {
        (1 << self.bits) + 1
    }

    /// Whether no part overflowed.
    ///
    /// # Safety
    /// `counts` holds what grouping has counted, unless the batch is not divided.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn all_fit(self, counts: Global<u32>) -> bool {
        // SAFETY: the word after those of the parts.
        self.bits != 0 && unsafe { counts.read_nc(1 << self.bits) } == 0
    }

    /// Whether the part of a hash overflowed; always, if the batch is not divided.
    ///
    /// # Safety
    /// The contract of [`Parts::all_fit`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn overflowed(self, counts: Global<u32>, hash: u64) -> bool {
        // SAFETY: `of` stays below the number of parts.
        self.bits == 0 || unsafe { counts.read_nc(self.of(hash) as usize) } > self.capacity
    }
}

/// Returns the keys of this thread, one per round, while a key of its thread block is below `n`: all threads of a block
/// have the same number of rounds, and their last keys may lie past the end.
#[inline(always)]
pub fn rounds(block: u32, n: usize) -> impl Iterator<Item = usize> {
    let first = thread::block_idx_x() as usize * block as usize;
    let step = thread::grid_dim_x() as usize * block as usize;
    (first..n).step_by(step).map(|at| at + thread::thread_idx_x() as usize)
}

/// Map from a hash to the bits of a filter's block.
#[cfg(feature = "bodies")]
pub(crate) trait Insertion: Copy {
    /// The multipliers that [`Insertion::setter`] finds in shared memory.
    const SALTS: &'static [u32];
    /// Words of 32 bits of a block.
    const BLOCK_WORDS: u32;

    /// Returns the block of a hash.
    fn block_of(self, hash: u64, blocks: u64) -> u64;

    /// Inserts the hashes of the lanes that `valid` has set into the filter.
    ///
    /// # Safety
    /// - All lanes of the warp arrive together.
    /// - `words` is the filter, and only accessed atomically; `salts` holds [`Insertion::SALTS`].
    unsafe fn insert_warp(self, words: GlobalMut<u32>, salts: Shared<u32>, hash: u64, valid: u32);

    /// Returns a function that sets the bits of one hash in a block in shared memory; it takes the words, the block's
    /// first word, and the hash. Neighbouring lanes begin with different bits, so that they meet in fewer banks.
    ///
    /// # Safety
    /// - `salts` holds [`Insertion::SALTS`]. The setter is called for valid words, which are only accessed atomically.
    unsafe fn setter(self, salts: Shared<u32>) -> impl Fn(Shared<u32>, u32, u64);
}

/// Lets the key at place `place` claim its hash in the table, and notes which of two equal ones is the later.
///
/// # Safety
/// - The table and the bits after it are this block's, and only accessed atomically.
/// - `keys` holds a hash and an index for each place of the part, not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn claim(keys: Global<u64>, place: u32, hash: u64, index: u64) {
    let table: Shared<u32> = shared::dynamic(0);
    let later: Shared<u32> = shared::dynamic(LATER_AT);
    let mixed = (hash.wrapping_mul(0x9fb2_1c65_1e98_df25) >> 32) as u32;
    let own = mixed << PLACE_BITS | place;
    let mut at = mixed >> (32 - TABLE_BITS);
    loop {
        // SAFETY: `at < TABLE`; places in the table are below the number of keys.
        unsafe {
            let held = table.compare_exchange(at, EMPTY, own);
            if held == EMPTY {
                return;
            }
            if (held ^ own) >> PLACE_BITS == 0 {
                let rival = held & PLACE;
                let [rival_hash, rival_index] = keys.read2_nc(2 * rival as usize);
                if rival_hash == hash {
                    let mut loser = place;
                    if index < rival_index {
                        if table.compare_exchange(at, held, own) != held {
                            continue;
                        }
                        loser = rival;
                    }
                    later.reduce_or(loser / 32, 1 << (loser % 32));
                    return;
                }
            }
        }
        at = (at + 1) % TABLE;
    }
}

/// Takes the part of this thread block: answers "not new" to all but the first of equal keys, and inserts the hashes.
///
/// # Safety
/// The contract of [`split_block_insert_parts`](crate::bloom::split_block::split_block_insert_parts), for blocks of
/// this insertion.
#[cfg(feature = "bodies")]
#[inline(always)]
pub(crate) unsafe fn insert_part<I: Insertion>(
    insertion: I,
    words: GlobalMut<u32>,
    blocks: u64,
    keys: Global<u64>,
    counts: Global<u32>,
    parts: Parts,
    form: u32,
    out: GlobalMut<u64>,
    stretch: u32,
) {
    let (t, part) = (thread::thread_idx_x(), thread::block_idx_x());
    let later: Shared<u32> = shared::dynamic(LATER_AT);
    let salts: Shared<u32> = shared::dynamic(SALTS_AT);
    let here: Shared<u32> = shared::dynamic(STRETCH_AT);
    let lowest = (part as u64) << (64 - parts.bits); // split-block filters number the block of this hash alike
    let first_block = block_of(lowest, blocks);
    // SAFETY: all threads of the block agree on `count`, so all reach every barrier, and whole warps reach the votes;
    // places are below `count`, which is at most the capacity; blocks of the part's hashes lie in the stretch, which
    // the host has measured; an index occurs once among the keys, and is below their number.
    unsafe {
        let count = counts.read_nc(part as usize);
        if count == 0 || count > parts.capacity {
            return;
        }
        let keys = keys.at(2 * (part as usize * parts.capacity as usize));
        let table: Shared<u32> = shared::dynamic(0);
        let mut i = 4 * t;
        while i < TABLE {
            table.set4(i, [EMPTY; 4]);
            i += 4 * BLOCK;
        }
        if t < MAX_CAPACITY as u32 / 32 {
            later.set(t, 0);
        }
        if t < I::SALTS.len() as u32 {
            salts.set(t, I::SALTS[t as usize]);
        }
        let mut i = t;
        while i < stretch {
            here.set(i, 0);
            i += BLOCK;
        }
        thread::sync_threads();

        let mut place = t;
        while place < count {
            let [hash, index] = keys.read2_nc(2 * place as usize);
            claim(keys, place, hash, index);
            place += BLOCK;
        }
        thread::sync_threads();

        // Whether the key is the first of its equals; answers if not.
        let is_first = |place: u32, index: u64| {
            let is_first = later.get(place / 32) >> (place % 32) & 1 == 0;
            if !is_first {
                if form == results::BYTES {
                    out.cast::<u8>().write(index as usize, 0);
                } else {
                    atomic::reduce_and(out.cast::<u32>().at(index as usize / 32), !(1 << (index % 32)));
                }
            }
            is_first
        };
        let mut place = t;
        if stretch == 0 {
            let mut next = [0; 2];
            if place < count {
                next = keys.read2_nc(2 * place as usize);
            }
            while place - t % 32 < count {
                let [hash, index] = next;
                let valid = place < count && is_first(place, index);
                place += BLOCK;
                if place < count {
                    // Read for the cache's sake, in which the next round's atomics find the block.
                    next = keys.read2_nc(2 * place as usize);
                    let first = insertion.block_of(next[0], blocks) as usize * I::BLOCK_WORDS as usize;
                    let mut sector = 0;
                    while sector < I::BLOCK_WORDS as usize {
                        let _ = atomic::load_relaxed(words.at(first + sector));
                        sector += 8;
                    }
                }
                warp::sync_warp(warp::FULL_MASK);
                insertion.insert_warp(words, salts, hash, warp::ballot(warp::FULL_MASK, valid));
            }
        } else {
            let set = insertion.setter(salts);
            while place < count {
                let [hash, index] = keys.read2_nc(2 * place as usize);
                if is_first(place, index) {
                    set(here, (insertion.block_of(hash, blocks) - first_block) as u32 * I::BLOCK_WORDS, hash);
                }
                place += BLOCK;
            }
            thread::sync_threads();
            let first = first_block as usize * I::BLOCK_WORDS as usize;
            let mut i = t;
            while i < stretch {
                let bits = here.get(i);
                if bits != 0 {
                    atomic::reduce_or(words.at(first + i as usize), bits);
                }
                i += BLOCK;
            }
        }
    }
}

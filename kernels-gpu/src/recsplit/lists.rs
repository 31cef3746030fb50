//! Positions of each bucket's keys and tree: the two interleaved Elias-Fano lists, one thread per entry.
//!
//! Source: section 4.5, construction as in 5.9. Departure: the jump array needs no selection, because the position of a
//! one is known when it is written.

#[cfg(feature = "bodies")]
use crate::recsplit::memory::put;
use warpset_core::recsplit::elias_fano::{JUMP_BLOCK, ListValues};
use warpset_simt::{Global, GlobalMut, atomic, thread};

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Starts of the lists' parts, in words from the start of the lists.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ListParts {
    /// The upper bits of keys.
    pub upper_keys: u64,
    /// The upper bits of tree positions.
    pub upper_bits: u64,
    /// The jump array.
    pub jumps: u64,
    /// Words of a full block of the jump array.
    pub block_words: u64,
    /// Base-2 logarithm of the distance between sampled positions in the jump array.
    pub log_stride: u64,
}

const _: () = assert!(size_of::<ListParts>() == 40);

kernel! {
    /// Writes the lists of `entries` pairs of sums. Sets `overflow` if the jump array's 16 bits are too few.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `keys_before`, `bits_before`: `entries` each, not written while the kernel runs.
    /// - `words`: valid for the lists, zero at the start; nothing else accesses them while the kernel runs.
    /// - `overflow`: one word, only accessed atomically.
    #[launch_bounds(256, 4)]
    pub unsafe fn recsplit_lists(
        keys_before: Global<u64>, bits_before: Global<u64>, entries: usize, of: ListValues, parts: ListParts,
        words: GlobalMut<u64>, overflow: GlobalMut<u32>,
    ) {
        let sums = |i: usize| {
            // SAFETY: callers stay below `entries`.
            unsafe { (keys_before.read_nc(i), bits_before.read_nc(i)) }
        };
        for i in thread::grid_stride(entries) {
            let index = i as u64;
            let values = of.values(index, sums(i));
            let ones = of.ones(index, values);
            // SAFETY: the layout was made for these sums, so all bits are within the words; bits that share words are
            // or-ed in, and one thread writes each word or half of it of the jump array.
            unsafe {
                let at = index * (of.low_keys + of.low_bits) as u64;
                put(words, at, values[0] & ((1 << of.low_keys) - 1));
                put(words, at + of.low_keys as u64, values[1] & ((1 << of.low_bits) - 1));
                put(words.at(parts.upper_keys as usize), ones[0], 1);
                put(words.at(parts.upper_bits as usize), ones[1], 1);
                let within = index % JUMP_BLOCK;
                if within & ((1 << parts.log_stride) - 1) == 0 {
                    let first = index - within;
                    let base = of.ones(first, of.values(first, sums(first as usize)));
                    let (keys, bits) = (ones[0].wrapping_sub(base[0]), ones[1].wrapping_sub(base[1]));
                    if (keys | bits) >> 16 != 0 {
                        atomic::store_relaxed(overflow, 1);
                    }
                    let block = words.at((parts.jumps + index / JUMP_BLOCK * parts.block_words) as usize);
                    if within == 0 {
                        block.write(0, base[0]);
                        block.write(1, base[1]);
                    }
                    let pairs = block.at(2).cast::<u32>();
                    pairs.write((within >> parts.log_stride) as usize, (keys | bits << 16) as u32);
                }
            }
        }
    }
}

//! Search data of a level, for lookups before they read its keys: a filter and an index.
//!
//! The filter is a Bloom filter in which all bits of a key are in one word of 64 bits (`warpset_core::lsm`): one read
//! shows that a key is not in the level. The index bounds the place of a key (`warpset_core::lsm::index`).
//! [`lsm_derive`] writes the end of each non-empty bucket into the index; the running maximum of these, computed by a
//! scan, is the number of elements up to the end of every bucket.

use warpset_core::lsm::index::Buckets;
use warpset_core::lsm::{filter_hash, filter_mask, filter_word};
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::lsm::levels::number;
use crate::lsm::nodes::{self, EQUAL_KEYS};

/// Threads per block of [`lsm_derive`].
pub const BLOCK: u32 = 256;

kernel! {
    /// Writes the head of the index of `n` keys.
    ///
    /// # Safety
    /// - Launch: one thread.
    /// - `keys`: valid for `n > 0` reads, ascending, not written while the kernel runs.
    /// - `index`: valid for [`INDEX_HEAD`](nodes::INDEX_HEAD) words, used by this launch alone.
    pub unsafe fn lsm_index_head<K>(keys: Global<K>, n: usize, index: GlobalMut<u64>)
    for [u32 => lsm_index_head_u32, u64 => lsm_index_head_u64, u128 => lsm_index_head_u128] {
        // SAFETY: the contract of this kernel.
        unsafe {
            let (least, greatest) = (number(keys.read_nc(0)), number(keys.read_nc(n - 1)));
            nodes::write_head(index, Buckets::new(least, greatest, n as u64));
        }
    }

    /// Adds the keys to the filter, and writes the end of each non-empty bucket into the index.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads.
    /// - `keys`: valid for `n` reads, ascending, not written while the kernel runs.
    /// - `filter`: valid for `filter_words` words, only accessed atomically while the kernel runs; may be empty.
    /// - `index`: starts with the head of these keys, at a multiple of 16 bytes; only its word [`EQUAL_KEYS`] may be
    ///   written while the kernel runs. `equal_keys` is that word, initially zero; `entries` is valid for one word per
    ///   bucket and one more; both are used by this launch alone.
    #[launch_bounds(256, 8)]
    pub unsafe fn lsm_derive<K>(
        keys: Global<K>, n: usize, filter: GlobalMut<u64>, filter_words: u64, index: Global<u64>, equal_keys: GlobalMut<u64>,
        entries: GlobalMut<u32>,
    ) for [u32 => lsm_derive_u32, u64 => lsm_derive_u64, #[launch_bounds(256, 6)] u128 => lsm_derive_u128] {
        // SAFETY: the index starts with its head.
        let buckets = unsafe { nodes::read_head::<K>(index) };
        let mut has_equal = false;
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; a filter's word is below their number; the bucket of a key is below the number of
            // buckets, and only the bucket's last key writes its entry.
            unsafe {
                let key = number(keys.read_nc(i));
                if filter_words != 0 {
                    let hash = filter_hash(key);
                    atomic::reduce_or(filter.at(filter_word(hash, filter_words) as usize), filter_mask(hash));
                }
                let bucket = buckets.of(key);
                let next = if i + 1 == n { key } else { number(keys.read_nc(i + 1)) };
                has_equal |= i + 1 != n && next == key;
                if i + 1 == n || buckets.of(next) != bucket {
                    entries.write(bucket as usize + 1, (i + 1) as u32);
                }
            }
        }
        // SAFETY: all lanes have left the loop; there is one word.
        unsafe {
            if warp::any(FULL_MASK, has_equal) && lane_id() == 0 {
                atomic::reduce_or(equal_keys, 1u64);
            }
        }
    }
}

const _: () = assert!(EQUAL_KEYS == 4);

//! Steps before a batch is sorted (section IV-A), and between the primitives of a cleanup (IV-E).

use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

use super::layout::KeyVariable;

/// Every element of the batch is regular.
pub const REGULAR: u32 = 0;
/// Every element is a tombstone.
pub const TOMBSTONES: u32 = 1;
/// A flag per element says whether it is a tombstone.
pub const MIXED: u32 = 2;

kernel! {
    /// Makes the key variables of a batch of `n` elements, the last one first, and pads it to `padded` elements with
    /// copies of the last one. The value of a tombstone is zero. `largest` becomes the largest key with a set highest
    /// bit, if there is one.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `keys`: valid for `n > 0` reads; so are `values` unless `status` is [`TOMBSTONES`], and `removed` if it is
    ///   [`MIXED`]; no thread writes them while the kernel runs.
    /// - `out_keys`, `out_values`: for `padded` writes, used by this launch alone. `largest`: a word, which is accessed
    ///   by atomics only.
    pub unsafe fn published_pack<K, V>(
        keys: Global<K>, values: Global<V>, removed: Global<u8>, status: u32, n: usize, padded: usize,
        out_keys: GlobalMut<K>, out_values: GlobalMut<V>, largest: GlobalMut<u64>,
    ) for [
        (u32, u32) => published_pack_u32_u32, (u32, u64) => published_pack_u32_u64,
        (u64, u32) => published_pack_u64_u32, (u64, u64) => published_pack_u64_u64
    ] {
        for i in thread::grid_stride(padded) {
            let from = if i < n { n - 1 - i } else { n - 1 };
            // SAFETY: `from < n` and `i < padded`; values and flags are read only where there are some.
            unsafe {
                let key = keys.read_nc(from);
                let is_regular = status == REGULAR || (status == MIXED && removed.read_nc(from) == 0);
                out_keys.write(i, K::pack(key, is_regular));
                out_values.write(i, if is_regular { values.read_nc(from) } else { 0 });
                if key > K::MAX_KEY {
                    atomic::fetch_max(largest, key.into());
                }
            }
        }
    }

    /// Marks the elements that a cleanup keeps: regular ones that are the first of their key. Bit `i % 32` of word `i /
    /// 32` of `valid`.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of a multiple of 32 threads.
    /// - `keys`: valid for `n` reads, not written while the kernel runs; ascending, the newest of equal ones first.
    /// - `valid`: for `n` bits in whole words, used by this launch alone.
    pub unsafe fn published_mark_stale<K>(keys: Global<K>, n: usize, valid: GlobalMut<u32>)
    for [u32 => published_mark_stale_u32, u64 => published_mark_stale_u64] {
        let lane = warp::lane_id() as usize;
        let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
        let mut first = thread::index_1d() as usize - lane;
        while first < n {
            let i = first + lane;
            // SAFETY: `i < n` where anything is read; all lanes reach the vote; a warp writes its own word.
            unsafe {
                let mut is_valid = false;
                if i < n {
                    let variable = keys.read_nc(i);
                    is_valid = variable.is_regular() && (i == 0 || keys.read_nc(i - 1).original() != variable.original());
                }
                let bits = warp::ballot(warp::FULL_MASK, is_valid);
                if lane == 0 {
                    valid.write(first / 32, bits);
                }
            }
            first += threads;
        }
    }

    /// Writes placebos.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `keys`: valid for `n` writes, used by this launch alone.
    pub unsafe fn published_placebos<K>(keys: GlobalMut<K>, n: usize)
    for [u32 => published_placebos_u32, u64 => published_placebos_u64] {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            unsafe { keys.write(i, K::PLACEBO) };
        }
    }
}

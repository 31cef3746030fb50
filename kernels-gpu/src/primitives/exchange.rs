//! Exchange of a batch between devices that own ranges of hashes: the owner of each key, and answers in question order.

use crate::batch::keys::{HashFunction, KeyKind};
#[cfg(feature = "bodies")]
use crate::batch::keys::{mix_at, xxh64_at};
use crate::batch::results;
use warpset_simt::{Global, GlobalMut, thread};

/// Threads per block, in every kernel of this module.
pub const BLOCK: u32 = 256;
/// Bits of a key's number within its batch; the bits above hold its owner.
pub const NUMBER_BITS: u32 = 26;
/// Largest number of owners.
pub const MAX_OWNERS: usize = 1 << (32 - NUMBER_BITS);

kernel! {
    /// Writes the hash of each key without its `shift` highest bits, moved up, and its owner with its number. The owner
    /// is the number of `bounds` that do not exceed the hash.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs, `n <= 1 << NUMBER_BITS`; the class is not one
    ///   of 128 bits, and the function is of 64 bits.
    /// - `bounds`: valid for `count` reads and not written while the kernel runs, `count < MAX_OWNERS`; `shift < 64`.
    /// - `hashes` and `owners`: valid for `n` writes, overlap nothing else, nothing else accesses them.
    pub unsafe fn exchange_route(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, bounds: Global<u64>, count: u32,
        shift: u32, hashes: GlobalMut<u64>, owners: GlobalMut<u32>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread, and `b < count`.
            unsafe {
                let hash = match kind.function {
                    HashFunction::Seeded => mix_at(keys, kind, spread, i),
                    _ => xxh64_at(keys, kind, i),
                };
                let mut owner = 0;
                for b in 0..count {
                    owner += (bounds.read_nc(b as usize) <= hash) as u32;
                }
                hashes.write(i, hash << shift);
                owners.write(i, owner << NUMBER_BITS | i as u32);
            }
        }
    }

    /// Writes bit `i` of `answers` as the byte of the key with the number in `owners[i]`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `answers`: valid for `n` bits, and `owners` for `n` reads; nothing writes them while the kernel runs.
    /// - `bytes`: valid for all numbers in `owners`, which differ; nothing else accesses these bytes.
    pub unsafe fn exchange_spread(answers: Global<u64>, owners: Global<u32>, n: usize, bytes: GlobalMut<u8>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the byte belongs to this thread.
            unsafe {
                let yes = answers.cast::<u32>().read_nc(i / 32) >> (i % 32) & 1;
                let number = owners.read_nc(i) & ((1 << NUMBER_BITS) - 1);
                bytes.write(number as usize, yes as u8);
            }
        }
    }

    /// Writes answers in bytes as answers in the form `form`.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, one thread per answer, no shared memory.
    /// - `bytes`: valid for `n` reads, and nothing writes them while the kernel runs.
    /// - `out`: valid for `n` answers in that form; nothing else accesses it, except that others may add to a count.
    #[launch_bounds(256)]
    pub unsafe fn exchange_finish(bytes: Global<u8>, n: usize, form: u32, out: GlobalMut<u64>) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n` for the read; all threads reach `put`.
        unsafe { results::put(form, out, i, n, i < n && bytes.read(i) != 0) };
    }
}

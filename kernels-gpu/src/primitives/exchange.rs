//! Exchange of a batch between devices that own ranges of hashes: the owner of each key, and answers in question order.

use crate::batch::keys::{HashFunction, KeyKind};
#[cfg(feature = "bodies")]
use crate::batch::keys::{mix_at, word_at, xxh64_at};
use crate::batch::results;
use warpset_core::fuse;
use warpset_core::hash::permute::permute;
use warpset_simt::{Global, GlobalMut, thread};

/// Threads per block, in every kernel of this module.
pub const BLOCK: u32 = 256;
/// Bits of a key's number within its batch; the bits above hold its owner.
pub const NUMBER_BITS: u32 = 26;
/// Largest number of owners.
pub const MAX_OWNERS: usize = 1 << (32 - NUMBER_BITS);

/// Hash that chooses a key's owner, and the word that travels there. A function has a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Route {
    /// The function.
    pub by: By,
    /// Parameter of the function.
    pub parameter: u64,
}

const _: () = assert!(size_of::<Route>() == 16);

/// Function of a [`Route`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum By {
    /// The structure's hash, which travels without its highest bits, as many as the parameter, moved up.
    Hash,
    /// The hash of fuse filters, under the seed in the parameter; the key's word travels.
    FuseHash,
    /// The hash of exact static sets, under the spread seed in the parameter; the key's word travels.
    StaticHash,
}

/// Returns the number of a key from the word with its owner.
#[cfg(feature = "bodies")]
#[inline(always)]
const fn number_of(owner: u32) -> usize {
    (owner & ((1 << NUMBER_BITS) - 1)) as usize
}

/// Copies value `i` of `units` units to place `number`.
///
/// # Safety
/// `from` is valid for reads of value `i`, and `to` for writes of value `number`, which nothing else accesses.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn put<T: warpset_simt::Word>(from: Global<T>, i: usize, to: GlobalMut<T>, number: usize, units: u32) {
    let units = units as usize;
    for unit in 0..units {
        // SAFETY: the contract of this function; `unit < units`.
        unsafe { to.write(number * units + unit, from.read_nc(i * units + unit)) };
    }
}

kernel! {
    /// Writes the word of each key that travels, and its owner with its number. The owner is the number of `bounds`
    /// that do not exceed the hash.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs, `n <= 1 << NUMBER_BITS`; the class is not one
    ///   of 128 bits, and the function is of 64 bits.
    /// - `bounds`: valid for `count` reads and not written while the kernel runs, `count < MAX_OWNERS`. [`By::Hash`]
    ///   has a parameter below 64.
    /// - `words` and `owners`: valid for `n` writes, overlap nothing else, nothing else accesses them.
    pub unsafe fn exchange_route(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, bounds: Global<u64>, count: u32,
        route: Route, words: GlobalMut<u64>, owners: GlobalMut<u32>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread, and `b < count`.
            unsafe {
                let (hash, word) = match route.by {
                    By::Hash => {
                        let hash = match kind.function {
                            HashFunction::Seeded => mix_at(keys, kind, spread, i),
                            _ => xxh64_at(keys, kind, i),
                        };
                        (hash, hash << route.parameter)
                    }
                    By::FuseHash => {
                        let word = word_at(keys, kind.class, i);
                        (fuse::hash::mix(word, route.parameter), word)
                    }
                    By::StaticHash => {
                        let word = word_at(keys, kind.class, i);
                        (permute(word, 64, route.parameter), word)
                    }
                };
                let mut owner = 0;
                for b in 0..count {
                    owner += (bounds.read_nc(b as usize) <= hash) as u32;
                }
                words.write(i, word);
                owners.write(i, owner << NUMBER_BITS | i as u32);
            }
        }
    }

    /// Writes value `i` of a round: the value of the key whose number is in `owners[i]`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `owners`: valid for `n` reads, and `values` for all numbers there; nothing writes them while the kernel runs.
    /// - `out`: valid for `n` writes, overlaps nothing else, nothing else accesses it.
    pub unsafe fn exchange_gather(values: Global<u64>, owners: Global<u32>, n: usize, out: GlobalMut<u64>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the place belongs to this thread.
            unsafe { out.write(i, values.read_nc(number_of(owners.read_nc(i)))) };
        }
    }

    /// Writes answer `i` to the place of the key with the number in `owners[i]`: a value of `width` bytes, or a byte
    /// with bit `i` of `answers` for a width of 0.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `answers` and `out` have the alignment of the largest power of two up to 8 that divides `width`.
    /// - `answers`: valid for `n` bits or values, and `owners` for `n` reads; nothing writes them while the kernel
    ///   runs.
    /// - `out`: valid for all numbers in `owners`, which differ; nothing else accesses these places.
    pub unsafe fn exchange_spread(
        answers: Global<u64>, owners: Global<u32>, n: usize, width: u32, out: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the place belongs to this thread.
            unsafe {
                let number = number_of(owners.read_nc(i));
                match width {
                    0 => out.cast::<u8>().write(number, (answers.cast::<u32>().read_nc(i / 32) >> (i % 32) & 1) as u8),
                    _ if width % 2 != 0 => put(answers.cast::<u8>(), i, out.cast::<u8>(), number, width),
                    _ if width % 4 != 0 => put(answers.cast::<u16>(), i, out.cast::<u16>(), number, width / 2),
                    _ if width % 8 != 0 => put(answers.cast::<u32>(), i, out.cast::<u32>(), number, width / 4),
                    _ => put(answers, i, out, number, width / 8),
                }
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

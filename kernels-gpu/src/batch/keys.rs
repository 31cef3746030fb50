//! How a kernel gets the hash of its i-th key.
//!
//! The kind of key is a launch argument and not a version of the kernel: the branch is the same for all threads and
//! costs two instructions, while every further version costs compile time when the module is loaded.

use warpset_core::hash;
use warpset_simt::Global;

/// `u64` hashes, taken as they are.
pub const HASH: u32 = 0;
/// `u64` keys, XXH64 with seed 0.
pub const XXH64_U64: u32 = 1;
/// `u32` keys, XXH64 with seed 0.
pub const XXH64_U32: u32 = 2;
/// `u64` keys, the seeded finaliser.
pub const MIX_U64: u32 = 3;
/// `u32` keys, the seeded finaliser of the same `u64`.
pub const MIX_U32: u32 = 4;

/// A hash function known at compile time; `S` is the spread seed, for those that have one.
pub trait Hasher: Copy {
    /// The hash of key `i`.
    ///
    /// # Safety
    /// `i` is below the number of keys.
    unsafe fn hash(self, i: usize) -> u64;
}

macro_rules! hashers {
    ($($name:ident($key:ty): |$value:ident, $spread:ident| $hash:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name {
            keys: Global<$key>,
            spread: u64,
        }
        impl Hasher for $name {
            #[inline(always)]
            unsafe fn hash(self, i: usize) -> u64 {
                // SAFETY: the caller keeps `i` in range.
                let $value = unsafe { self.keys.read_nc(i) };
                let $spread = self.spread;
                let _ = $spread;
                $hash
            }
        }
    )*};
}
hashers! {
    Plain(u64): |value, spread| value;
    Xxh64U64(u64): |value, spread| hash::xxh64_u64(value, 0);
    Xxh64U32(u32): |value, spread| hash::xxh64_u32(value, 0);
    MixU64(u64): |value, spread| hash::mix_spread(value, spread);
    MixU32(u32): |value, spread| hash::mix_spread(value as u64, spread);
}

/// What to do with a hash function, whichever it is.
pub trait WithHasher {
    /// Runs with `hasher`.
    ///
    /// # Safety
    /// As the caller of [`with_hasher`] arranged.
    unsafe fn run<H: Hasher>(self, hasher: H);
}

/// Branches once on the kind of key, so that loops inside `work` are free of the branch.
///
/// # Safety
/// `keys` points to keys of that kind, as many as `work` reads.
#[inline(always)]
pub unsafe fn with_hasher(keys: Global<u64>, kind: u32, spread: u64, work: impl WithHasher) {
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        match kind {
            XXH64_U64 => work.run(Xxh64U64 { keys, spread }),
            XXH64_U32 => work.run(Xxh64U32 { keys: keys.cast(), spread }),
            MIX_U64 => work.run(MixU64 { keys, spread }),
            MIX_U32 => work.run(MixU32 { keys: keys.cast(), spread }),
            _ => work.run(Plain { keys, spread }),
        }
    }
}

/// The hash of key `i` for Parquet's filter: of kinds [`HASH`], [`XXH64_U64`] and [`XXH64_U32`].
///
/// # Safety
/// `keys` points to more than `i` keys of that kind.
#[inline(always)]
pub unsafe fn xxh64_at(keys: Global<u64>, kind: u32, i: usize) -> u64 {
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        if kind == XXH64_U32 {
            return hash::xxh64_u32(keys.cast::<u32>().read_nc(i), 0);
        }
        let value = keys.read_nc(i);
        if kind == HASH { value } else { hash::xxh64_u64(value, 0) }
    }
}

/// The hash of key `i` for the other filters: of kinds [`HASH`], [`MIX_U64`] and [`MIX_U32`].
///
/// # Safety
/// `keys` points to more than `i` keys of that kind.
#[inline(always)]
pub unsafe fn mix_at(keys: Global<u64>, kind: u32, spread: u64, i: usize) -> u64 {
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        let value = if kind == MIX_U32 { keys.cast::<u32>().read_nc(i) as u64 } else { keys.read_nc(i) };
        if kind == HASH { value } else { hash::mix_spread(value, spread) }
    }
}

/// Keys as the host hands them to a kernel.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub struct KeySlice {
    /// Where they are.
    pub keys: Global<u64>,
    /// What they are: [`HASH`] and its neighbours.
    pub kind: u32,
    /// The spread seed, for the kinds that have one.
    pub spread: u64,
}

#[cfg(not(target_arch = "nvptx64"))]
impl KeySlice {
    /// Keys of this kind; rounds the length up where two `u32` keys share a word.
    pub fn new<T>(keys: Global<T>, kind: u32, spread: u64) -> KeySlice {
        let words = (keys.len() * size_of::<T>()).div_ceil(8);
        KeySlice { keys: Global::from_raw_parts(keys.as_ptr().cast(), words), kind, spread }
    }
}

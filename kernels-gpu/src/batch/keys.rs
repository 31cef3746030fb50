//! How a kernel gets the hash of its i-th key.
//!
//! The kind of key is a launch argument and not a version of the kernel: the branch is the same for all threads and
//! costs two or three instructions, while every further version costs compile time when the module is loaded.

use warpset_core::hash;
use warpset_simt::Global;

/// 64-bit hashes, taken as they are.
pub const HASH: u32 = 0;
/// Integers, XXH64 with seed 0 of their value in eight bytes.
const XXH64: u32 = 1;
/// Integers, the seeded finaliser of their value in 64 bits.
const MIX: u32 = 2;
/// Integers, as Parquet hashes a column of type INT32.
const INT32: u32 = 3;
/// The bits of a kind that name the function.
const FUNCTION: u32 = 3;
/// Added to a function: integers of 32 bits instead of 64.
pub(super) const NARROW: u32 = 4;
/// Added to [`NARROW`]: their sign is carried to 64 bits.
pub(super) const SIGNED: u32 = 8;

/// `u64` keys (and `i64`, which have the same words), XXH64 with seed 0.
pub const XXH64_U64: u32 = XXH64;
/// `u32` keys, hashed as the `u64` of the same value.
pub const XXH64_U32: u32 = XXH64 | NARROW;
/// `i32` keys, hashed as the `i64` of the same value.
pub const XXH64_I32: u32 = XXH64 | NARROW | SIGNED;
/// `u64` keys, the seeded finaliser.
pub const MIX_U64: u32 = MIX;
/// `u32` keys, hashed as the `u64` of the same value.
pub const MIX_U32: u32 = MIX | NARROW;
/// `i32` keys, hashed as the `i64` of the same value.
pub const MIX_I32: u32 = MIX | NARROW | SIGNED;
/// `u64` keys, asked of a Parquet column of type INT32.
pub const INT32_U64: u32 = INT32;
/// `u32` or `i32` keys, the same: their bytes are those of the column.
pub const INT32_U32: u32 = INT32 | NARROW;

/// A 32-bit integer in 64 bits; `sign` has all bits set if its sign is carried, else none.
#[inline(always)]
const fn widened(value: u32, sign: u32) -> u64 {
    let high = ((value as i32) >> 31) as u32 & sign;
    (high as u64) << 32 | value as u64
}

/// What [`widened`] takes for a kind.
#[inline(always)]
const fn sign_of(kind: u32) -> u32 {
    if kind & SIGNED != 0 { !0 } else { 0 }
}

/// Key `i` in 64 bits: an integer's value, or a hash.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind.
#[inline(always)]
pub unsafe fn word_at(keys: Global<u64>, kind: u32, i: usize) -> u64 {
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        if kind & NARROW != 0 {
            return widened(keys.cast::<u32>().read_nc(i), sign_of(kind));
        }
        keys.read_nc(i)
    }
}

/// A hash function known at compile time; `S` is the spread seed, for those that have one.
pub trait Hasher: Copy {
    /// The hash of key `i`.
    ///
    /// # Safety
    /// `i` is below the number of keys.
    unsafe fn hash(self, i: usize) -> u64;
}

macro_rules! hashers {
    ($($name:ident($key:ty $(, $field:ident: $type:ty)*): |$value:ident| $hash:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name {
            keys: Global<$key>,
            $($field: $type,)*
        }
        impl Hasher for $name {
            #[inline(always)]
            unsafe fn hash(self, i: usize) -> u64 {
                // SAFETY: the caller keeps `i` in range.
                let $value = unsafe { self.keys.read_nc(i) };
                $(let $field = self.$field;)*
                $hash
            }
        }
    )*};
}
hashers! {
    Plain(u64): |value| value;
    Xxh64Wide(u64): |value| hash::xxh64_u64(value, 0);
    Xxh64Narrow(u32, sign: u32): |value| hash::xxh64_u64(widened(value, sign), 0);
    MixWide(u64, spread: u64): |value| hash::mix_spread(value, spread);
    MixNarrow(u32, sign: u32, spread: u64): |value| hash::mix_spread(widened(value, sign), spread);
}

/// What to do with a hash function, whichever it is.
pub trait WithHasher {
    /// Runs with `hasher`.
    ///
    /// # Safety
    /// As the caller of [`with_hasher`] arranged.
    unsafe fn run<H: Hasher>(self, hasher: H);
}

/// Branches once on the kind of key, so that loops inside `work` are free of the branch. Not for kinds that start with
/// `INT32`: the kernels that group hashes are short of registers, and two functions more would spill some.
///
/// # Safety
/// `keys` points to keys of that kind, as many as `work` reads.
#[inline(always)]
pub unsafe fn with_hasher(keys: Global<u64>, kind: u32, spread: u64, work: impl WithHasher) {
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        let sign = sign_of(kind);
        match kind & (FUNCTION | NARROW) {
            XXH64_U64 => work.run(Xxh64Wide { keys }),
            XXH64_U32 => work.run(Xxh64Narrow { keys: keys.cast(), sign }),
            MIX_U64 => work.run(MixWide { keys, spread }),
            MIX_U32 => work.run(MixNarrow { keys: keys.cast(), sign, spread }),
            _ => work.run(Plain { keys }),
        }
    }
}

/// The hash of key `i` for Parquet's filter: of kind [`HASH`], or one that starts with `XXH64` or `INT32`.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind.
#[inline(always)]
pub unsafe fn xxh64_at(keys: Global<u64>, kind: u32, i: usize) -> u64 {
    // SAFETY: the caller says what `keys` points to.
    let word = unsafe { word_at(keys, kind, i) };
    match kind & FUNCTION {
        HASH => word,
        INT32 => hash::xxh64_int32(word),
        _ => hash::xxh64_u64(word, 0),
    }
}

/// The hash of key `i` for the other filters: of kind [`HASH`], or one that starts with `MIX`.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind.
#[inline(always)]
pub unsafe fn mix_at(keys: Global<u64>, kind: u32, spread: u64, i: usize) -> u64 {
    // SAFETY: the caller says what `keys` points to.
    let word = unsafe { word_at(keys, kind, i) };
    if kind == HASH { word } else { hash::mix_spread(word, spread) }
}

/// Keys as the host hands them to a kernel.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub struct KeySlice {
    /// Where they are.
    pub keys: Global<u64>,
    /// What they are: [`HASH`] and its neighbours, or a kind of [`super::hash128`].
    pub kind: u32,
    /// The spread seed, for the kinds that have one; for hashes of 128 bits the seed itself.
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

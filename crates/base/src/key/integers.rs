//! Integers as keys.

use warpset_core::hash::{self, string::StringHash};

use super::sealed::{Raw, Sealed};
use super::{Hash128, Key};

/// An integer of up to 64 bits hashes as its value in 64 bits: zeros before an unsigned one, the sign before a signed
/// one.
macro_rules! integer_keys {
    ($($key:ty: $raw:expr;)*) => {$(
        impl Key for $key {}
        impl Sealed for $key {
            const CHEAP: bool = true;
            const HAS_WORD: bool = true;
            #[inline]
            fn xxh64(&self) -> u64 {
                hash::xxh64_u64(*self as u64, 0)
            }
            #[inline]
            fn int32_hash(&self) -> u64 {
                hash::xxh64_int32(*self as u64)
            }
            #[inline]
            fn seeded_hash(&self, _seed: u64, spread: u64) -> u64 {
                hash::mix_spread(*self as u64, spread)
            }
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                Hash128::of_integer(*self as u64, seed)
            }
            #[inline(always)]
            fn short_hash128(&self, seed: u64) -> Hash128 {
                Hash128::of_integer_short(*self as u64, seed)
            }
            #[inline]
            fn word(&self) -> Option<u64> {
                Some(*self as u64)
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                function.hash_bytes(&(*self as u64).to_le_bytes())
            }
            fn describe(&self) -> String {
                self.to_string()
            }
            #[inline]
            fn raw(keys: &[Self]) -> Raw<'_> {
                $raw(keys)
            }
        }
    )*};
}

fn as_u32<K: bytemuck::Pod>(keys: &[K]) -> Raw<'_> {
    Raw::U32(bytemuck::cast_slice(keys))
}

fn as_i32<K: bytemuck::Pod>(keys: &[K]) -> Raw<'_> {
    Raw::I32(bytemuck::cast_slice(keys))
}

fn as_u64<K: bytemuck::Pod>(keys: &[K]) -> Raw<'_> {
    Raw::U64(bytemuck::cast_slice(keys))
}

fn other<K>(_keys: &[K]) -> Raw<'_> {
    Raw::Other
}

integer_keys! {
    u8: other;
    i8: other;
    u16: other;
    i16: other;
    u32: as_u32;
    i32: as_i32;
    u64: as_u64;
    i64: as_u64;
    char: other;
}

#[cfg(target_pointer_width = "64")]
integer_keys! {
    usize: as_u64;
    isize: as_u64;
}
#[cfg(not(target_pointer_width = "64"))]
integer_keys! {
    usize: other;
    isize: other;
}

/// An integer of 128 bits hashes like the 64-bit integer of its value, if there is one, else by its 16 little-endian
/// bytes. `$word` is the 64-bit integer; `$exact` is too, if no two values of the type share it.
macro_rules! wide_integer_keys {
    ($($key:ty: $word:expr, $exact:expr;)*) => {$(
        impl Key for $key {}
        impl Sealed for $key {
            #[inline]
            fn xxh64(&self) -> u64 {
                $word(*self).map_or_else(|| self.to_le_bytes().xxh64(), |word| word.xxh64())
            }
            #[inline]
            fn int32_hash(&self) -> u64 {
                $word(*self).map_or_else(|| self.to_le_bytes().xxh64(), |word| word.int32_hash())
            }
            #[inline]
            fn seeded_hash(&self, seed: u64, spread: u64) -> u64 {
                let bytes = || self.to_le_bytes().seeded_hash(seed, spread);
                $word(*self).map_or_else(bytes, |word| word.seeded_hash(seed, spread))
            }
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                $exact(*self).map_or_else(|| self.to_le_bytes().hash128(seed), |word| word.hash128(seed))
            }
            #[inline]
            fn short_hash128(&self, seed: u64) -> Hash128 {
                $exact(*self).map_or_else(|| self.to_le_bytes().hash128(seed), |word| word.short_hash128(seed))
            }
            #[inline]
            fn word(&self) -> Option<u64> {
                $word(*self)
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                let bytes = || function.hash_bytes(&self.to_le_bytes());
                $word(*self).map_or_else(bytes, |word| word.string_hash(function))
            }
            fn describe(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

fn word_of_u128(value: u128) -> Option<u64> {
    u64::try_from(value).ok()
}

/// Returns the word of an `i64`, which for a negative value may be that of a large `u64` too.
fn word_of_i128(value: i128) -> Option<u64> {
    exact_word_of_i128(value).or_else(|| u64::try_from(value).ok())
}

fn exact_word_of_i128(value: i128) -> Option<u64> {
    i64::try_from(value).ok().map(|value| value as u64)
}

wide_integer_keys! {
    u128: word_of_u128, word_of_u128;
    i128: word_of_i128, exact_word_of_i128;
}

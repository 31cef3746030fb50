//! Integers as keys.

use warpset_core::hash::{self, string::StringHash};
use xxhash_rust::xxh64::xxh64;

use super::sealed::{Raw, Sealed};
use super::{Hash128, Key};

/// Stafford's variant 13 of MurmurHash3's finaliser: a bijection.
#[inline]
pub(super) const fn mix_low(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// MurmurHash3's finaliser: a bijection.
#[inline]
pub(super) const fn mix_high(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// The 128-bit hash of an integer of up to 64 bits: its low half is a bijection of the integer, so that different integers
/// never collide.
#[inline]
pub(super) const fn hash128_of(x: u64, seed: u64) -> Hash128 {
    let x = x ^ seed;
    Hash128 { high: mix_high(x.wrapping_add(0x9e37_79b9_7f4a_7c15)), low: mix_low(x) }
}

/// `$same` is the unsigned integer of the same bits, and `|$value| …` its XXH64 with seed 0.
macro_rules! integer_keys {
    ($($key:ty as $same:ty, |$value:ident| $parquet:expr, $raw:expr;)*) => {$(
        impl Key for $key {}
        impl Sealed for $key {
            const CHEAP: bool = true;
            #[inline]
            fn parquet_hash(&self) -> u64 {
                let $value = *self as $same;
                $parquet
            }
            #[inline]
            fn seeded_hash(&self, _seed: u64, spread: u64) -> u64 {
                hash::mix_spread(*self as $same as u64, spread)
            }
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                hash128_of(*self as u64, seed)
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                function.hash_bytes(&(*self as $same).to_le_bytes())
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

fn as_u64<K: bytemuck::Pod>(keys: &[K]) -> Raw<'_> {
    Raw::U64(bytemuck::cast_slice(keys))
}

fn other<K>(_keys: &[K]) -> Raw<'_> {
    Raw::Other
}

integer_keys! {
    u8 as u8, |value| xxh64(&value.to_le_bytes(), 0), other;
    i8 as u8, |value| xxh64(&value.to_le_bytes(), 0), other;
    u16 as u16, |value| xxh64(&value.to_le_bytes(), 0), other;
    i16 as u16, |value| xxh64(&value.to_le_bytes(), 0), other;
    u32 as u32, |value| hash::xxh64_u32(value, 0), as_u32;
    i32 as u32, |value| hash::xxh64_u32(value, 0), as_u32;
    u64 as u64, |value| hash::xxh64_u64(value, 0), as_u64;
    i64 as u64, |value| hash::xxh64_u64(value, 0), as_u64;
}

#[cfg(target_pointer_width = "64")]
integer_keys! {
    usize as u64, |value| hash::xxh64_u64(value, 0), as_u64;
    isize as u64, |value| hash::xxh64_u64(value, 0), as_u64;
}
#[cfg(not(target_pointer_width = "64"))]
integer_keys! {
    usize as u64, |value| hash::xxh64_u64(value, 0), other;
    isize as u64, |value| hash::xxh64_u64(value, 0), other;
}

macro_rules! wide_integer_keys {
    ($($key:ty),*) => {$(
        /// Hashed as its 16 little-endian bytes.
        impl Key for $key {}
        impl Sealed for $key {
            #[inline]
            fn parquet_hash(&self) -> u64 {
                self.to_le_bytes().parquet_hash()
            }
            #[inline]
            fn seeded_hash(&self, seed: u64, spread: u64) -> u64 {
                self.to_le_bytes().seeded_hash(seed, spread)
            }
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                self.to_le_bytes().hash128(seed)
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                function.hash_bytes(&self.to_le_bytes())
            }
            fn describe(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
wide_integer_keys!(u128, i128);

//! What can be a key, and how it is hashed.
//!
//! | key | Parquet's hash | seeded hash |
//! | --- | --- | --- |
//! | `u32` | XXH64, seed 0, of 4 little-endian bytes | `mix` of the value, as the same `u64` |
//! | `u64` | XXH64, seed 0, of 8 little-endian bytes | `mix` of the value |
//! | bytes, strings | XXH64, seed 0 | XXH64 with the seed |
//! | [`Hashed`] | the hash as given | the hash as given |
//!
//! `i32` and `i64` hash as the unsigned integer of the same bytes, as Parquet does. `mix` is a bijection for each seed,
//! so different integers have different seeded hashes. Split-block filters take Parquet's hash, all others the seeded
//! one.

use std::borrow::Cow;
use std::sync::Arc;

use warpset_core::hash::{self, string::StringHash};

/// A key: `u32`, `u64`, `i32`, `i64`, byte strings, strings, references to keys, [`Hashed`], and [`Bytes`] around
/// anything else that is `AsRef<[u8]>`.
///
/// Sealed: the bits of a filter depend on how its keys are hashed, on every backend.
///
/// ```
/// use warpset_base::key::{Bytes, Hashed, Key};
///
/// fn takes(key: impl Key) {}
/// takes(7u64);
/// takes("seven");
/// takes([7u8, 7, 7]);
/// takes(Bytes(String::from("sieben")));
/// takes(Hashed(0x7777_7777_7777_7777));
/// ```
pub trait Key: sealed::Sealed {}

/// A 64-bit hash that stands for a key: a filter uses it as it is.
///
/// All 64 bits should be uniform: in a Bloom filter the high ones choose the block and the low ones the bits; in a
/// quotient filter the high ones are the fingerprint.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    bytemuck::TransparentWrapper,
    bytemuck::Pod,
    bytemuck::Zeroable,
)]
#[repr(transparent)]
pub struct Hashed(pub u64);

/// Makes a key of anything that is `AsRef<[u8]>`; hashes as the bytes do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Bytes<T>(pub T);

/// A seed, prepared for integers and for bytes.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    seed: u64,
    spread: u64,
}

impl Seed {
    /// Prepares a seed.
    pub const fn new(seed: u64) -> Seed {
        Seed { seed, spread: hash::spread_seed(seed) }
    }

    /// The seed as kernels take it for integers.
    pub const fn spread(self) -> u64 {
        self.spread
    }

    /// The seeded hash of a key.
    #[inline]
    pub fn hash<K: Key + ?Sized>(self, key: &K) -> u64 {
        key.seeded_hash(self.seed, self.spread)
    }
}

/// What the filters' crates need of keys; nothing that users call.
#[doc(hidden)]
pub mod sealed {
    use super::*;

    /// A slice of keys as a backend sees it; integers and hashes can go to a device as they are.
    #[derive(Clone, Copy, Debug)]
    pub enum Raw<'a> {
        /// Integers of 32 bits.
        U32(&'a [u32]),
        /// Integers of 64 bits.
        U64(&'a [u64]),
        /// Hashes.
        Hashes(&'a [u64]),
        /// Anything else: hash it on the host.
        Other,
    }

    pub trait Sealed: Sync {
        /// XXH64 with seed 0 of the plain bytes.
        fn parquet_hash(&self) -> u64;
        /// The seeded hash; `spread` is `spread_seed(seed)`.
        fn seeded_hash(&self, seed: u64, spread: u64) -> u64;
        /// A first-level hash of Rao's Table 1; of integers: of their little-endian bytes.
        fn string_hash(&self, function: StringHash) -> u32;
        /// The slice without its type.
        fn raw(_keys: &[Self]) -> Raw<'_>
        where
            Self: Sized,
        {
            Raw::Other
        }
    }
}
use sealed::{Raw, Sealed};

macro_rules! integer_key {
    ($($key:ty as $unsigned:ty, $xxh64:ident, $raw:ident;)*) => {$(
        impl Key for $key {}
        impl Sealed for $key {
            #[inline]
            fn parquet_hash(&self) -> u64 {
                hash::$xxh64(*self as $unsigned, 0)
            }
            #[inline]
            fn seeded_hash(&self, _seed: u64, spread: u64) -> u64 {
                hash::mix_spread(*self as $unsigned as u64, spread)
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                function.hash_bytes(&self.to_le_bytes())
            }
            #[inline]
            fn raw(keys: &[Self]) -> Raw<'_> {
                Raw::$raw(bytemuck::cast_slice(keys))
            }
        }
    )*};
}
integer_key! {
    u32 as u32, xxh64_u32, U32;
    i32 as u32, xxh64_u32, U32;
    u64 as u64, xxh64_u64, U64;
    i64 as u64, xxh64_u64, U64;
}

impl Key for Hashed {}
impl Sealed for Hashed {
    #[inline]
    fn parquet_hash(&self) -> u64 {
        self.0
    }
    #[inline]
    fn seeded_hash(&self, _seed: u64, _spread: u64) -> u64 {
        self.0
    }
    #[inline]
    fn string_hash(&self, function: StringHash) -> u32 {
        function.hash_bytes(&self.0.to_le_bytes())
    }
    #[inline]
    fn raw(keys: &[Self]) -> Raw<'_> {
        Raw::Hashes(bytemuck::cast_slice(keys))
    }
}

impl Key for [u8] {}
impl Sealed for [u8] {
    #[inline]
    fn parquet_hash(&self) -> u64 {
        xxhash_rust::xxh64::xxh64(self, 0)
    }
    #[inline]
    fn seeded_hash(&self, seed: u64, _spread: u64) -> u64 {
        xxhash_rust::xxh64::xxh64(self, seed)
    }
    #[inline]
    fn string_hash(&self, function: StringHash) -> u32 {
        function.hash_bytes(self)
    }
}

macro_rules! key_as_another {
    ($([$($generics:tt)*] $key:ty, |$this:ident| $other:expr;)*) => {$(
        impl<$($generics)*> Key for $key {}
        impl<$($generics)*> Sealed for $key {
            #[inline]
            fn parquet_hash(&self) -> u64 {
                let $this = self;
                $other.parquet_hash()
            }
            #[inline]
            fn seeded_hash(&self, seed: u64, spread: u64) -> u64 {
                let $this = self;
                $other.seeded_hash(seed, spread)
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                let $this = self;
                $other.string_hash(function)
            }
        }
    )*};
}
key_as_another! {
    [] str, |this| this.as_bytes();
    [] String, |this| this.as_bytes();
    [] Vec<u8>, |this| this.as_slice();
    [] Box<[u8]>, |this| (**this);
    [] Box<str>, |this| this.as_bytes();
    [] Arc<[u8]>, |this| (**this);
    [] Arc<str>, |this| this.as_bytes();
    [] Cow<'_, [u8]>, |this| (**this);
    [] Cow<'_, str>, |this| this.as_bytes();
    [const N: usize] [u8; N], |this| this.as_slice();
    [T: AsRef<[u8]> + Sync] Bytes<T>, |this| this.0.as_ref();
    [K: Key + ?Sized] &K, |this| (**this);
}

/// The hashes as keys, without a copy.
pub fn as_hashed(hashes: &[u64]) -> &[Hashed] {
    bytemuck::TransparentWrapper::wrap_slice(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_hashes_as_its_bytes_whatever_holds_them() {
        let word = "filter";
        let hash = word.parquet_hash();
        assert_eq!(hash, xxhash_rust::xxh64::xxh64(word.as_bytes(), 0));
        assert_eq!(hash, String::from(word).parquet_hash());
        assert_eq!(hash, b"filter".parquet_hash());
        assert_eq!(hash, Bytes(Vec::from(word)).parquet_hash());
        assert_eq!(hash, (&&word).parquet_hash());
        assert_eq!(word.seeded_hash(3, 0), Cow::Borrowed(word).seeded_hash(3, 1));
        assert_eq!(7u32.parquet_hash(), 7u32.to_le_bytes().parquet_hash());
        assert_eq!((-7i64).parquet_hash(), (-7i64).to_le_bytes().parquet_hash());
        assert_eq!(7u32.seeded_hash(0, 9), 7u64.seeded_hash(0, 9));
        assert_eq!(Hashed(5).parquet_hash(), 5);
        assert_eq!(Seed::new(3).hash("filter"), xxhash_rust::xxh64::xxh64(b"filter", 3));
        assert_eq!(Seed::new(3).hash(&-7i32), Seed::new(3).hash(&(-7i32 as u32)));
        assert_eq!(Seed::new(3).hash(&Hashed(5)), 5);
    }
}

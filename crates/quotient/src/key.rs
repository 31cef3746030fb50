//! What can be a key, and how it is hashed.
//!
//! | key | hash |
//! | --- | --- |
//! | `u32`, `u64` | `mix` of the value with the filter's seed; a `u32` as the same `u64` |
//! | `i32`, `i64` | as the unsigned integer of the same bytes |
//! | bytes, strings | XXH64 with the filter's seed |
//! | [`Hashed`] | the hash as given |
//!
//! `mix` is a bijection for each seed, so different integers have different hashes.

use std::borrow::Cow;
use std::sync::Arc;

use warpset_core::hash;

/// A key: `u32`, `u64`, `i32`, `i64`, byte strings, strings, references to keys, [`Hashed`], and [`Bytes`] around
/// anything else that is `AsRef<[u8]>`.
///
/// Sealed: the fingerprints in a filter depend on how its keys are hashed, on every backend.
pub trait Key: sealed::Sealed {}

/// A 64-bit hash that stands for a key: its high bits are the fingerprint. All of them should be uniform.
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

/// What [`sealed::Sealed::hash`] needs of a filter.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    /// For bytes.
    seed: u64,
    /// For integers.
    spread: u64,
}

impl Seed {
    pub(crate) const fn new(seed: u64) -> Seed {
        Seed { seed, spread: hash::spread_seed(seed) }
    }

    /// The seed as kernels take it.
    pub(crate) const fn spread(self) -> u64 {
        self.spread
    }
}

pub(crate) mod sealed {
    use super::Seed;

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
        /// The hash of the key.
        fn hash(&self, seed: Seed) -> u64;
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
    ($($key:ty as $unsigned:ty, $raw:ident;)*) => {$(
        impl Key for $key {}
        impl Sealed for $key {
            #[inline]
            fn hash(&self, seed: Seed) -> u64 {
                hash::mix_spread(*self as $unsigned as u64, seed.spread)
            }
            #[inline]
            fn raw(keys: &[Self]) -> Raw<'_> {
                Raw::$raw(bytemuck::cast_slice(keys))
            }
        }
    )*};
}
integer_key! {
    u32 as u32, U32;
    i32 as u32, U32;
    u64 as u64, U64;
    i64 as u64, U64;
}

impl Key for Hashed {}
impl Sealed for Hashed {
    #[inline]
    fn hash(&self, _seed: Seed) -> u64 {
        self.0
    }
    #[inline]
    fn raw(keys: &[Self]) -> Raw<'_> {
        Raw::Hashes(bytemuck::cast_slice(keys))
    }
}

impl Key for [u8] {}
impl Sealed for [u8] {
    #[inline]
    fn hash(&self, seed: Seed) -> u64 {
        xxhash_rust::xxh64::xxh64(self, seed.seed)
    }
}

macro_rules! key_as_another {
    ($([$($generics:tt)*] $key:ty, |$this:ident| $other:expr;)*) => {$(
        impl<$($generics)*> Key for $key {}
        impl<$($generics)*> Sealed for $key {
            #[inline]
            fn hash(&self, seed: Seed) -> u64 {
                let $this = self;
                $other.hash(seed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_hashes_as_its_bytes_whatever_holds_them() {
        let seed = Seed::new(3);
        let hash = "filter".hash(seed);
        assert_eq!(hash, xxhash_rust::xxh64::xxh64(b"filter", 3));
        assert_eq!(hash, String::from("filter").hash(seed));
        assert_eq!(hash, Bytes(b"filter").hash(seed));
        assert_eq!(hash, (&&Cow::Borrowed("filter")).hash(seed));
        assert_eq!(7u32.hash(seed), 7u64.hash(seed));
        assert_eq!((-7i32).hash(seed), (-7i32 as u32).hash(seed));
        assert_eq!(Hashed(5).hash(seed), 5);
    }
}

//! Byte strings and strings as keys, whatever holds them.

use std::borrow::Cow;
use std::sync::Arc;

use warpset_core::hash::string::StringHash;
use xxhash_rust::xxh3::xxh3_128_with_seed;
use xxhash_rust::xxh64::xxh64;

use super::sealed::Sealed;
use super::{Bytes, Hash128, Key};

/// Bytes of a key that an error message shows at most.
const SHOWN: usize = 64;

impl Key for [u8] {}
impl Sealed for [u8] {
    #[inline]
    fn xxh64(&self) -> u64 {
        xxh64(self, 0)
    }
    #[inline]
    fn seeded_hash(&self, seed: u64, _spread: u64) -> u64 {
        xxh64(self, seed)
    }
    #[inline]
    fn hash128(&self, seed: u64) -> Hash128 {
        let hash = xxh3_128_with_seed(self, seed);
        Hash128 { high: (hash >> 64) as u64, low: hash as u64 }
    }
    #[inline]
    fn string_hash(&self, function: StringHash) -> u32 {
        function.hash_bytes(self)
    }
    fn describe(&self) -> String {
        let shown = &self[..self.len().min(SHOWN)];
        let text = match std::str::from_utf8(shown) {
            Ok(text) => format!("{text:?}"),
            Err(_) => shown.iter().fold(String::from("0x"), |text, byte| text + &format!("{byte:02x}")),
        };
        if self.len() > SHOWN { format!("{text}… ({} bytes)", self.len()) } else { text }
    }
}

macro_rules! key_as_another {
    ($([$($generics:tt)*] $key:ty, $cheap:expr, |$this:ident| $other:expr;)*) => {$(
        impl<$($generics)*> Key for $key {}
        impl<$($generics)*> Sealed for $key {
            const CHEAP: bool = $cheap;
            #[inline]
            fn xxh64(&self) -> u64 {
                let $this = self;
                $other.xxh64()
            }
            #[inline]
            fn int32_hash(&self) -> u64 {
                let $this = self;
                $other.int32_hash()
            }
            #[inline]
            fn seeded_hash(&self, seed: u64, spread: u64) -> u64 {
                let $this = self;
                $other.seeded_hash(seed, spread)
            }
            #[inline]
            fn word(&self) -> Option<u64> {
                let $this = self;
                $other.word()
            }
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                let $this = self;
                $other.hash128(seed)
            }
            #[inline]
            fn short_hash128(&self, seed: u64) -> Hash128 {
                let $this = self;
                $other.short_hash128(seed)
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                let $this = self;
                $other.string_hash(function)
            }
            fn describe(&self) -> String {
                let $this = self;
                $other.describe()
            }
        }
    )*};
}
key_as_another! {
    [] str, false, |this| this.as_bytes();
    [] String, false, |this| this.as_bytes();
    [] Vec<u8>, false, |this| this.as_slice();
    [] Box<[u8]>, false, |this| (**this);
    [] Box<str>, false, |this| this.as_bytes();
    [] Arc<[u8]>, false, |this| (**this);
    [] Arc<str>, false, |this| this.as_bytes();
    [] Cow<'_, [u8]>, false, |this| (**this);
    [] Cow<'_, str>, false, |this| this.as_bytes();
    [const N: usize] [u8; N], false, |this| this.as_slice();
    [T: AsRef<[u8]> + Sync] Bytes<T>, false, |this| this.0.as_ref();
    [K: Key + ?Sized] &K, K::CHEAP, |this| (**this);
}

//! What can be a key, and how it is hashed: one trait for all structures.
//!
//! | key | seeded hash, 64 bits | seeded hash, 128 bits | Parquet's hash |
//! | --- | --- | --- | --- |
//! | `u8` to `u64`, `usize` | `mix` of the value as a `u64` | two finalisers of the value as a `u64` | XXH64 of the little-endian bytes |
//! | `i8` to `i64`, `isize` | as the unsigned integer of the same bits | as the `i64` of the same value | as the unsigned integer of the same bits |
//! | `u128`, `i128` | XXH64 of 16 little-endian bytes | XXH3-128 of 16 little-endian bytes | XXH64 of 16 little-endian bytes |
//! | bytes, strings | XXH64 | XXH3-128 | XXH64 |
//! | [`Hashed`] | the hash as given | as the `u64` of the same bits | the hash as given |
//! | [`Hash128`] | the low half as given | the hash as given, mixed if the seed is not 0 | the low half as given |
//!
//! Split-block Bloom filters take Parquet's hash, whose seed is 0; the other filters take the seeded hash of 64 bits,
//! and RecSplit takes that of 128 bits. `mix` is a bijection for each seed, and so is the low half of an integer's 128-bit hash:
//! different integers of up to 64 bits have different seeded hashes. `usize` and `isize` hash as if they had 64 bits.
//!
//! Parquet stores columns of 8- and 16-bit integers as `i32`: for the filter of such a column, convert the keys first.

use warpset_core::hash;
use warpset_core::hash::string::StringHash;
pub use warpset_core::recsplit::Hash128;

mod bytes;
mod integers;
mod ready_made;

pub use ready_made::{Hashed, as_hashed};

/// A key: integers of 8 to 128 bits, `usize`, `isize`, byte strings, strings, references to keys, [`Hashed`] and
/// [`Hash128`], and [`Bytes`] around anything else that is `AsRef<[u8]>`.
///
/// Sealed: what a structure holds depends on how its keys are hashed, on every backend.
///
/// ```
/// use warpset_base::key::{Bytes, Hash128, Hashed, Key};
///
/// fn takes(key: impl Key) {}
/// takes(7u64);
/// takes("seven");
/// takes([7u8, 7, 7]);
/// takes(Bytes(String::from("sieben")));
/// takes(Hashed(0x7777_7777_7777_7777));
/// takes(Hash128 { high: 7, low: 77 });
/// ```
pub trait Key: sealed::Sealed {}

/// Makes a key of anything that is `AsRef<[u8]>`; hashes as the bytes do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Bytes<T>(pub T);

/// A seed, prepared for integers and for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    seed: u64,
    spread: u64,
}

impl Seed {
    /// Prepares a seed.
    pub const fn new(seed: u64) -> Seed {
        Seed { seed, spread: hash::spread_seed(seed) }
    }

    /// The seed as given.
    pub const fn get(self) -> u64 {
        self.seed
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

    /// The seeded hash of a key in 128 bits.
    #[inline]
    pub fn hash128<K: Key + ?Sized>(self, key: &K) -> Hash128 {
        key.hash128(self.seed)
    }
}

/// What the structures' crates need of keys; nothing that users call.
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
        /// Whether hashing is so cheap that doing it twice beats storing 16 bytes.
        const CHEAP: bool = false;

        /// XXH64 with seed 0 of the plain bytes.
        fn parquet_hash(&self) -> u64;
        /// The seeded hash; `spread` is `spread_seed(seed)`.
        fn seeded_hash(&self, seed: u64, spread: u64) -> u64;
        /// The seeded hash of 128 bits. Keys that are equal have equal hashes for every seed.
        fn hash128(&self, seed: u64) -> Hash128;
        /// A first-level hash of Rao's Table 1; of integers: of their little-endian bytes.
        fn string_hash(&self, function: StringHash) -> u32;
        /// The key for people to read, in error messages.
        fn describe(&self) -> String;
        /// The slice without its type.
        fn raw(_keys: &[Self]) -> Raw<'_>
        where
            Self: Sized,
        {
            Raw::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::{Raw, Sealed};
    use super::*;
    use std::borrow::Cow;

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
        assert_eq!(Seed::new(3).hash("filter"), xxhash_rust::xxh64::xxh64(b"filter", 3));
        assert_eq!("abc".hash128(3), b"abc".hash128(3));
        assert_eq!("abc".hash128(3), String::from("abc").hash128(3));
        assert_eq!("abc".hash128(3), Bytes("abc").hash128(3));
        assert_ne!("abc".hash128(3), "abc".hash128(4));
    }

    #[test]
    fn integers_of_the_same_value_have_one_seeded_hash() {
        let seed = Seed::new(9);
        let hash = seed.hash(&7u64);
        assert_eq!(hash, hash::mix(7, 9));
        assert_eq!([seed.hash(&7u8), seed.hash(&7u16), seed.hash(&7u32), seed.hash(&7usize)], [hash; 4]);
        assert_eq!([seed.hash(&7i8), seed.hash(&7i16), seed.hash(&7i32), seed.hash(&7i64)], [hash; 4]);
        assert_eq!(seed.hash(&-7i8), seed.hash(&(-7i8 as u8)));
        assert_eq!(seed.hash(&-7i32), seed.hash(&(-7i32 as u32)));
        assert_eq!(seed.hash(&-7isize), seed.hash(&-7i64));
        assert_eq!(seed.hash(&7u128), xxhash_rust::xxh64::xxh64(&7u128.to_le_bytes(), 9));
        assert_eq!(seed.hash(&-7i128), seed.hash(&(-7i128 as u128)));
        assert_eq!(7u8.hash128(3), 7u64.hash128(3));
        assert_eq!((-7i8).hash128(3), (-7i64).hash128(3));
        assert_eq!((-7isize).hash128(3), (-7i64).hash128(3));
        assert_eq!(7i128.hash128(3), 7u128.hash128(3));
    }

    #[test]
    fn parquets_hash_of_an_integer_is_that_of_its_bytes() {
        assert_eq!(7u8.parquet_hash(), [7u8].parquet_hash());
        assert_eq!((-7i16).parquet_hash(), (-7i16).to_le_bytes().parquet_hash());
        assert_eq!(7u32.parquet_hash(), 7u32.to_le_bytes().parquet_hash());
        assert_eq!((-7i64).parquet_hash(), (-7i64).to_le_bytes().parquet_hash());
        assert_eq!(7usize.parquet_hash(), 7u64.to_le_bytes().parquet_hash());
        assert_eq!((-7i128).parquet_hash(), (-7i128).to_le_bytes().parquet_hash());
    }

    #[test]
    fn ready_made_hashes_are_taken_as_they_are() {
        let seed = Seed::new(3);
        assert_eq!((Hashed(5).parquet_hash(), seed.hash(&Hashed(5))), (5, 5));
        let wide = Hash128 { high: 6, low: 5 };
        assert_eq!((wide.parquet_hash(), seed.hash(&wide)), (5, 5));
        assert_eq!(wide.hash128(0), wide);
        assert_ne!(wide.hash128(1), wide);
        assert_eq!(Hashed(5).hash128(3), 5u64.hash128(3));
        let value = 6u128 << 64 | 5;
        assert_eq!(wide.string_hash(StringHash::Bkdr), value.string_hash(StringHash::Bkdr));
    }

    #[test]
    fn slices_of_64_bits_go_to_a_device_as_they_are() {
        assert!(matches!(<u64 as Sealed>::raw(&[1]), Raw::U64([1])));
        assert!(matches!(<i32 as Sealed>::raw(&[-1]), Raw::U32([u32::MAX])));
        assert!(matches!(<Hashed as Sealed>::raw(&[Hashed(1)]), Raw::Hashes([1])));
        assert!(matches!(<u16 as Sealed>::raw(&[1]), Raw::Other));
        #[cfg(target_pointer_width = "64")]
        assert!(matches!(<isize as Sealed>::raw(&[-1]), Raw::U64([u64::MAX])));
    }

    #[test]
    fn describes() {
        assert_eq!("abc".describe(), "\"abc\"");
        assert_eq!([255_u8, 1].describe(), "0xff01");
        assert_eq!(17_u64.describe(), "17");
        assert_eq!((-17_i128).describe(), "-17");
        assert_eq!(Hashed(17).describe(), "0000000000000011");
        assert!([b'x'; 100].describe().ends_with("(100 bytes)"));
    }
}

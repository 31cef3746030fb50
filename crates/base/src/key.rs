//! Keys and their hashes: one trait for all structures.
//!
//! | key | XXH64 | seeded hash, 64 bits | seeded hash, 128 bits |
//! | --- | --- | --- | --- |
//! | `u8` to `u64`, `i8` to `i64`, `usize`, `isize` | of the 8 little-endian bytes of the value | `mix` of the value | two finalisers of the value |
//! | `u128`, `i128` | as the 64-bit integer of the same value; if there is none, of 16 little-endian bytes | the same | the same, by XXH3-128 |
//! | bytes, strings | XXH64 | XXH64 | XXH3-128 |
//! | `char` | as the integer of its code point | the same | the same |
//! | arrays of integers of 16 to 64 bits, of `i8`, of `char` | as the string of their values in 8 little-endian bytes each | the same | the same |
//! | tuples of 2 to 8 keys | XXH64 of their parts' hashes | XXH64 of their parts' hashes | XXH3-128 of their parts' hashes |
//! | [`Hashed`] | the hash as given | the hash as given | as the `u64` of the same bits |
//! | [`Hash128`] | the low half as given | the low half as given | the hash as given, mixed if the seed is not 0 |
//!
//! Split-block Bloom filters take XXH64 with seed 0; the other filters take the seeded hash of 64 bits, and RecSplit
//! takes that of 128 bits.
//!
//! # Integers hash by their value
//!
//! The type of an inserted key is not stored, and the compiler cannot refuse a lookup with another type: `insert(5)`
//! takes an `i32`, `contains(5u64)` a `u64`. So an integer hashes by its value, in any type: as a word of 64 bits, with
//! zeros before an unsigned value and the sign before a signed one. -7 is one key as `i8`, `i64` and `i128`; 7 is one
//! key in all twelve types.
//!
//! A negative value has the word of an unsigned one: `-1i64` and `u64::MAX` are one key, as in a column of 64 bits that
//! stores both. In a filter that is at worst a false positive. A function that numbers its keys must tell `i128` values
//! apart, so there, and only there, an `i128` of 2^63 or more differs from the `u64` of that value.
//!
//! # Several keys as one
//!
//! A tuple hashes like a byte string: the hashes of its parts, each by the requested function and under its seed,
//! little-endian (of 128 bits the low half first), then the bytes `tuple`, two zeros and the number of parts (of 128
//! bits, eight zeros before these). So each part hashes as a key of its own: `(1u8, "a")` equals `(1u64, b"a")`;
//! `("ab", "c")` differs from `("a", "bc")`, and `((a, b), c)` from `(a, b, c)`; and no tuple equals another kind of
//! key except by a collision of hashes.
//!
//! An array of integers counts by its values too: `[1i32, -1]` and `[1i64, -1]` are one key. It equals the string of
//! the values' 8 bytes, the form that a device takes. An array of `u8` is a byte string, unchanged.
//!
//! `mix` is a bijection for each seed, and so is the low half of an integer's 128-bit hash: different integers of one
//! type of up to 64 bits have different seeded hashes.
//!
//! Parquet hashes a column of type INT64 as eight bytes, like this crate, but one of type INT32 (8- and 16-bit
//! integers, dates) as four. Only a split-block filter with that column type hashes integers as four bytes, again in
//! any type.

use warpset_core::hash;
use warpset_core::hash::string::StringHash;
pub use warpset_core::recsplit::Hash128;

mod bytes;
mod integers;
mod ready_made;
mod sequences;

pub use ready_made::{Hashed, as_hashed};

/// A key: integers of 8 to 128 bits, `usize`, `isize`, `char`, byte strings, strings, arrays of integers, tuples of 2
/// to 8 keys, references to keys, [`Hashed`] and [`Hash128`], and [`Bytes`] around anything else that is `AsRef<[u8]>`.
///
/// Sealed: the contents of a structure depend on the hashes of its keys, on every backend. A type of your own can serve
/// as a key in the form of the tuple of its fields, of its bytes, or of [`Hashed`] around a hash of your own.
///
/// ```
/// use warpset_base::key::{Bytes, Hash128, Hashed, Key};
///
/// fn takes(key: impl Key) {}
/// takes(7u64);
/// takes("seven");
/// takes([7u8, 7, 7]);
/// takes(Bytes(String::from("sieben")));
/// takes((7u32, "seven", [7u64, 77]));
/// takes(Hashed(0x7777_7777_7777_7777));
/// takes(Hash128 { high: 7, low: 77 });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key",
    note = "keys are integers, `char`, bytes, strings, arrays of integers, and tuples of keys; of other types pass a tuple of \
            the fields, their bytes, or `Hashed` around a hash of your own"
)]
pub trait Key: sealed::Sealed {}

/// Makes a key of anything that is `AsRef<[u8]>`; hashes as the bytes do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Bytes<T>(pub T);

/// A seed, prepared for integers and for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed {
    seed: u64,
    spread: u64,
}

impl Seed {
    /// Prepares a seed.
    pub const fn new(seed: u64) -> Seed {
        Seed { seed, spread: hash::spread_seed(seed) }
    }

    /// Returns the seed as given.
    pub const fn get(self) -> u64 {
        self.seed
    }

    /// Returns the seed in the form that kernels take for integers.
    pub const fn spread(self) -> u64 {
        self.spread
    }

    /// Hashes a key to 64 bits.
    #[inline]
    pub fn hash<K: Key + ?Sized>(self, key: &K) -> u64 {
        key.seeded_hash(self.seed, self.spread)
    }

    /// Hashes a key to 128 bits.
    #[inline]
    pub fn hash128<K: Key + ?Sized>(self, key: &K) -> Hash128 {
        key.hash128(self.seed)
    }
}

/// Functions of keys for the structures' crates; users call none of them.
#[doc(hidden)]
pub mod sealed {
    use super::*;

    /// A slice of keys as a backend sees it; integers and hashes can go to a device as they are.
    #[derive(Clone, Copy, Debug)]
    pub enum Raw<'a> {
        /// Unsigned integers of 32 bits.
        U32(&'a [u32]),
        /// Signed integers of 32 bits, by their bits.
        I32(&'a [u32]),
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

        /// Hashes the key's bytes by XXH64 with seed 0; an integer's bytes are its value in 64 bits.
        fn xxh64(&self) -> u64;
        /// Hashes like [`xxh64`](Self::xxh64), but integers as four bytes, as in a Parquet column of type INT32.
        fn int32_hash(&self) -> u64 {
            self.xxh64()
        }
        /// Hashes to 64 bits under a seed; `spread` is `spread_seed(seed)`.
        fn seeded_hash(&self, seed: u64, spread: u64) -> u64;
        /// Hashes to 128 bits under a seed. Keys that are equal have equal hashes for every seed.
        fn hash128(&self, seed: u64) -> Hash128;
        /// Hashes to 128 bits under a seed, for placement: an integer by [`Hash128::of_integer_short`], other keys as
        /// [`hash128`](Self::hash128) does.
        #[inline]
        fn short_hash128(&self, seed: u64) -> Hash128 {
            self.hash128(seed)
        }
        /// Whether every key of this type has a [`word`](Sealed::word).
        const HAS_WORD: bool = false;
        /// Returns the value of an integer in 64 bits, if the key is an integer and has such a value.
        fn word(&self) -> Option<u64> {
            None
        }
        /// Hashes by a first-level function of Rao's Table 1; an integer as the little-endian bytes of its value in 64
        /// bits.
        fn string_hash(&self, function: StringHash) -> u32;
        /// Formats the key for error messages.
        fn describe(&self) -> String;
        /// Returns the slice without its type.
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
        let hash = word.xxh64();
        assert_eq!(hash, xxhash_rust::xxh64::xxh64(word.as_bytes(), 0));
        assert_eq!(hash, String::from(word).xxh64());
        assert_eq!(hash, b"filter".xxh64());
        assert_eq!(hash, Bytes(Vec::from(word)).xxh64());
        assert_eq!(hash, (&&word).xxh64());
        assert_eq!(word.seeded_hash(3, 0), Cow::Borrowed(word).seeded_hash(3, 1));
        assert_eq!(Seed::new(3).hash("filter"), xxhash_rust::xxh64::xxh64(b"filter", 3));
        assert_eq!("abc".hash128(3), b"abc".hash128(3));
        assert_eq!("abc".hash128(3), String::from("abc").hash128(3));
        assert_eq!("abc".hash128(3), Bytes("abc").hash128(3));
        assert_ne!("abc".hash128(3), "abc".hash128(4));
    }

    /// Computes all hashes of a key under one seed.
    fn hashes(key: impl Key) -> (u64, u64, u64, Hash128, u32) {
        let seed = Seed::new(9);
        (key.xxh64(), key.int32_hash(), seed.hash(&key), seed.hash128(&key), key.string_hash(StringHash::Bkdr))
    }

    #[test]
    fn integers_of_the_same_value_are_one_key() {
        let seven = hashes(7u64);
        assert_eq!((seven.0, seven.2), (7u64.to_le_bytes().xxh64(), hash::mix(7, 9)));
        assert_eq!([hashes(7u8), hashes(7u16), hashes(7u32), hashes(7usize), hashes(7u128)], [seven; 5]);
        assert_eq!([hashes(7i8), hashes(7i16), hashes(7i32), hashes(7i64), hashes(7isize), hashes(7i128)], [seven; 6]);
        let minus = hashes(-7i64);
        assert_eq!((minus.0, minus.2), ((-7i64).to_le_bytes().xxh64(), hash::mix(-7i64 as u64, 9)));
        assert_eq!([hashes(-7i8), hashes(-7i16), hashes(-7i32), hashes(-7isize), hashes(-7i128)], [minus; 5]);
        assert_eq!(hashes(-7i64 as u64), minus);
        assert_ne!(hashes(-7i32 as u32), minus);
        let reference = &&7u32;
        assert_eq!(hashes(reference), seven);
        let large = hashes(u64::MAX);
        assert_eq!(hashes(u128::from(u64::MAX)), large);
        let signed = hashes(i128::from(u64::MAX));
        assert_eq!((signed.0, signed.1, signed.2, signed.4), (large.0, large.1, large.2, large.4));
    }

    #[test]
    fn values_beyond_64_bits_hash_as_16_bytes() {
        for value in [1u128 << 64, u128::MAX, 3 << 100] {
            let hash = hashes(value);
            assert_eq!((hash.0, hash.1), (value.to_le_bytes().xxh64(), value.to_le_bytes().xxh64()));
            assert_eq!((hash.2, hash.3), (hashes(value.to_le_bytes()).2, hashes(value.to_le_bytes()).3));
        }
        assert_eq!(hashes(i128::MIN).0, i128::MIN.to_le_bytes().xxh64());
        // Functions that number their keys tell these apart.
        assert_ne!(hashes(-1i128).3, hashes(i128::from(u64::MAX)).3);
    }

    #[test]
    fn an_integer_of_an_int32_column_is_four_bytes() {
        let four = |value: i32| value.to_le_bytes().xxh64();
        for value in [7, -7, i32::MAX, i32::MIN] {
            assert_eq!(
                [value.int32_hash(), i64::from(value).int32_hash(), i128::from(value).int32_hash()],
                [four(value); 3]
            );
        }
        assert_eq!([7u8.int32_hash(), 7u64.int32_hash()], [four(7); 2]);
        // Parquet stores UINT_32 as the INT32 with equal bits.
        assert_eq!([u32::MAX.int32_hash(), u64::from(u32::MAX).int32_hash()], [four(-1); 2]);
        assert_eq!((1u64 << 32).int32_hash(), (1u64 << 32).to_le_bytes().xxh64());
        assert_eq!("seven".int32_hash(), "seven".xxh64());
    }

    #[test]
    fn ready_made_hashes_are_taken_as_they_are() {
        let seed = Seed::new(3);
        assert_eq!((Hashed(5).xxh64(), seed.hash(&Hashed(5))), (5, 5));
        let wide = Hash128 { high: 6, low: 5 };
        assert_eq!((wide.xxh64(), seed.hash(&wide)), (5, 5));
        assert_eq!(wide.hash128(0), wide);
        assert_ne!(wide.hash128(1), wide);
        assert_eq!(Hashed(5).hash128(3), 5u64.hash128(3));
        let value = 6u128 << 64 | 5;
        assert_eq!(wide.string_hash(StringHash::Bkdr), value.string_hash(StringHash::Bkdr));
    }

    #[test]
    fn slices_of_64_bits_go_to_a_device_as_they_are() {
        assert!(matches!(<u64 as Sealed>::raw(&[1]), Raw::U64([1])));
        assert!(matches!(<i32 as Sealed>::raw(&[-1]), Raw::I32([u32::MAX])));
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

//! Several keys as one: tuples, and arrays of integers.

use warpset_core::hash::string::StringHash;
use xxhash_rust::xxh3::xxh3_128_with_seed;
use xxhash_rust::xxh64::xxh64;

use super::sealed::Sealed;
use super::{Hash128, Key};

/// Returns the last eight of the bytes that are hashed for a tuple of `parts` parts.
const fn end(parts: u8) -> [u8; 8] {
    [b't', b'u', b'p', b'l', b'e', 0, 0, parts]
}

macro_rules! tuple_keys {
    ($($parts:literal: $($part:ident)*;)*) => {$(
        impl<$($part: Key),*> Key for ($($part,)*) {}
        impl<$($part: Key),*> Sealed for ($($part,)*) {
            const CHEAP: bool = $($part::CHEAP &&)* true;
            #[inline]
            fn xxh64(&self) -> u64 {
                #[expect(non_snake_case, reason = "named after their types")]
                let ($($part,)*) = self;
                xxh64([$($part.xxh64().to_le_bytes(),)* end($parts)].as_flattened(), 0)
            }
            #[inline]
            fn seeded_hash(&self, seed: u64, spread: u64) -> u64 {
                #[expect(non_snake_case, reason = "named after their types")]
                let ($($part,)*) = self;
                xxh64([$($part.seeded_hash(seed, spread).to_le_bytes(),)* end($parts)].as_flattened(), seed)
            }
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                #[expect(non_snake_case, reason = "named after their types")]
                let ($($part,)*) = self;
                let halves = [$($part.hash128(seed),)*].map(|hash| [hash.low.to_le_bytes(), hash.high.to_le_bytes()]);
                let mut bytes = [[[0; 8]; 2]; $parts + 1];
                bytes[..$parts].copy_from_slice(&halves);
                bytes[$parts][1] = end($parts);
                let hash = xxh3_128_with_seed(bytes.as_flattened().as_flattened(), seed);
                Hash128 { high: (hash >> 64) as u64, low: hash as u64 }
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                #[expect(non_snake_case, reason = "named after their types")]
                let ($($part,)*) = self;
                function.hash_bytes([$($part.xxh64().to_le_bytes(),)* end($parts)].as_flattened())
            }
            fn describe(&self) -> String {
                #[expect(non_snake_case, reason = "named after their types")]
                let ($($part,)*) = self;
                format!("({})", [$($part.describe()),*].join(", "))
            }
        }
    )*};
}
tuple_keys! {
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
    7: A B C D E F G;
    8: A B C D E F G H;
}

macro_rules! array_keys {
    ($($item:ty),*) => {$(
        impl<const N: usize> Key for [$item; N] {}
        impl<const N: usize> Sealed for [$item; N] {
            #[inline]
            fn xxh64(&self) -> u64 {
                self.map(|item| (item as u64).to_le_bytes()).as_flattened().xxh64()
            }
            #[inline]
            fn seeded_hash(&self, seed: u64, spread: u64) -> u64 {
                self.map(|item| (item as u64).to_le_bytes()).as_flattened().seeded_hash(seed, spread)
            }
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                self.map(|item| (item as u64).to_le_bytes()).as_flattened().hash128(seed)
            }
            #[inline]
            fn string_hash(&self, function: StringHash) -> u32 {
                self.map(|item| (item as u64).to_le_bytes()).as_flattened().string_hash(function)
            }
            fn describe(&self) -> String {
                format!("{self:?}")
            }
        }
    )*};
}
array_keys!(i8, u16, i16, u32, i32, u64, i64, usize, isize, char);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Bytes, Hashed, Seed};

    /// Computes all hashes of a key under one seed.
    fn hashes(key: impl Key) -> [u64; 6] {
        let wide = key.hash128(9);
        let narrow = key.string_hash(StringHash::Bkdr).into();
        [key.xxh64(), key.int32_hash(), Seed::new(9).hash(&key), wide.high, wide.low, narrow]
    }

    #[test]
    fn fixed_hashes() {
        let of = |hash: [u64; 6]| hash.map(|word| format!("{word:016x}")).join(" ");
        assert_eq!(
            of(hashes((1u64, "two"))),
            "1a98171688abd2b0 1a98171688abd2b0 9809e76cc7da936b dd3fbbb461c8a376 f70d64eeeee74fe3 000000008a26dbe9"
        );
        assert_eq!(
            of(hashes((1u8, 2u16, [3u8]))),
            "604d0a4a86c76d32 604d0a4a86c76d32 7463716ebb0a3d4d cf18bb79adda6765 ffd622d06fb7bbaa 00000000c312a771"
        );
        assert_eq!(
            of(hashes([1u64, u64::MAX])),
            "64e0f3384cef7a91 64e0f3384cef7a91 f3bb138dec0ea881 8500d19ec630e973 a75a13f85cc5cb80 000000006b1d9f1b"
        );
        assert_eq!(
            of(hashes('z')),
            "27ba0ee3b5822bf5 270d9ef2460fd92c 8c0bb791b1bfc0f8 56993fc86dea83c9 786dd0ab972d849a 00000000e67d853e"
        );
    }

    #[test]
    fn pairs_hash_as_documented() {
        let (pair, two) = ((1u64, "two"), ["two".xxh64(), Seed::new(9).hash("two")]);
        let bytes = |parts: [u64; 2]| [&parts[0].to_le_bytes()[..], &parts[1].to_le_bytes(), b"tuple\0\0\x02"].concat();
        assert_eq!(pair.xxh64(), bytes([1u64.xxh64(), two[0]]).xxh64());
        assert_eq!(Seed::new(9).hash(&pair), xxh64(&bytes([Seed::new(9).hash(&1u64), two[1]]), 9));
        let half = |hash: Hash128| u128::from(hash.high) << 64 | u128::from(hash.low);
        let parts = [half(1u64.hash128(9)), half("two".hash128(9))].map(u128::to_le_bytes);
        let bytes = [parts.as_flattened(), &[0; 8], b"tuple\0\0\x02"].concat();
        assert_eq!(half(pair.hash128(9)), xxh3_128_with_seed(&bytes, 9));
    }

    #[test]
    fn parts_count_by_their_values_and_places() {
        let pair = hashes((1u64, 2u64));
        assert_eq!([hashes((1u8, 2i128)), hashes((&1i32, '\u{2}'))], [pair; 2]);
        let others = [hashes((2u64, 1u64)), hashes((1u64, 3u64)), hashes((1u64, 2u64, 0u64)), hashes((1u64, "2"))];
        let nested = [hashes(((1u64, 2u64), 3u64)), hashes((1u64, (2u64, 3u64))), hashes((1u64, 2u64, 3u64))];
        let all: Vec<_> = others.iter().chain(&nested).chain([&pair]).collect();
        for (i, hash) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| (0..6).all(|at| at == 1 || other[at] != hash[at])), "{i}");
        }
        assert_ne!(hashes(("ab", "c")), hashes(("a", "bc")));
        assert_eq!(hashes(("ab", String::from("c"))), hashes((Bytes("ab"), "c")));
        // A value beyond 64 bits is a part as it is a key.
        assert_ne!(hashes((i128::from(u64::MAX), 0))[3..5], hashes((u64::MAX, 0))[3..5]);
        assert_ne!(hashes((Hashed(1), 2))[2], pair[2]);
    }

    #[test]
    fn arrays_of_integers_are_their_values() {
        let array = hashes([1u64, u64::MAX]);
        assert_eq!([hashes([1i32, -1]), hashes([1i64, -1]), hashes([1isize, -1])], [array; 3]);
        let bytes: Vec<u8> = [1u64, u64::MAX].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(hashes(bytes), array);
        assert_ne!(hashes([1u32, u32::MAX]), array);
        assert_eq!(hashes(['a', 'b']), hashes([97u16, 98]));
        assert_ne!(hashes([97u8, 98]), hashes([97u16, 98]));
        assert_ne!(hashes([1u64, 2]), hashes((1u64, 2u64)));
    }

    #[test]
    fn describes_parts() {
        assert_eq!((1u64, "two", [3u32, 4]).describe(), "(1, \"two\", [3, 4])");
        assert_eq!('z'.describe(), "z");
    }
}

//! Keys and their initial hash (section 4.1).
//!
//! Departure: byte strings are hashed with XXH3-128, integers with two 64-bit finalisers, instead of SpookyHash. The low
//! half of an integer's hash is a bijection of the integer, so that integers up to 64 bits never collide.

pub use warpset_core::recsplit::Hash128;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// What can be a key: integers, byte strings, strings, ready-made hashes; anything else that is `AsRef<[u8]>` through
/// [`Bytes`].
///
/// Keys that are equal must have equal hashes for every seed, and unequal keys should look unrelated.
pub trait Key {
    /// Whether hashing is so cheap that doing it twice beats storing 16 bytes.
    const CHEAP: bool = false;

    /// The initial hash under `seed`.
    fn hash128(&self, seed: u64) -> Hash128;

    /// The key for people to read, in error messages.
    fn describe(&self) -> String;
}

/// Stafford's variant 13 of MurmurHash3's finaliser: a bijection.
#[inline]
const fn mix_low(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// MurmurHash3's finaliser: a bijection.
#[inline]
const fn mix_high(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

#[inline]
fn hash_bytes(bytes: &[u8], seed: u64) -> Hash128 {
    let hash = xxh3_128_with_seed(bytes, seed);
    Hash128 { high: (hash >> 64) as u64, low: hash as u64 }
}

fn describe_bytes(bytes: &[u8]) -> String {
    /// Bytes shown at most.
    const SHOWN: usize = 64;
    let shown = &bytes[..bytes.len().min(SHOWN)];
    let text = match std::str::from_utf8(shown) {
        Ok(text) => format!("{text:?}"),
        Err(_) => shown.iter().fold(String::from("0x"), |text, byte| text + &format!("{byte:02x}")),
    };
    if bytes.len() > SHOWN { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}

macro_rules! integer_keys {
    ($($t:ty),*) => {$(
        /// Hashed as the 64-bit integer of the same value.
        impl Key for $t {
            const CHEAP: bool = true;
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                let x = *self as u64 ^ seed;
                Hash128 { high: mix_high(x.wrapping_add(0x9e37_79b9_7f4a_7c15)), low: mix_low(x) }
            }
            fn describe(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
integer_keys!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

macro_rules! byte_keys {
    ($([$($g:tt)*] $t:ty),*) => {$(
        impl<$($g)*> Key for $t {
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                hash_bytes(self.as_ref(), seed)
            }
            fn describe(&self) -> String {
                describe_bytes(self.as_ref())
            }
        }
    )*};
}
byte_keys!([] [u8], [const N: usize] [u8; N], [] Vec<u8>, [] Box<[u8]>);

macro_rules! string_keys {
    ($([$($g:tt)*] $t:ty),*) => {$(
        /// Hashed as its bytes.
        impl<$($g)*> Key for $t {
            #[inline]
            fn hash128(&self, seed: u64) -> Hash128 {
                hash_bytes(self.as_bytes(), seed)
            }
            fn describe(&self) -> String {
                describe_bytes(self.as_bytes())
            }
        }
    )*};
}
string_keys!([] str, [] String, [] Box<str>, ['a] std::borrow::Cow<'a, str>);

/// Hashed as its 16 little-endian bytes.
impl Key for u128 {
    #[inline]
    fn hash128(&self, seed: u64) -> Hash128 {
        hash_bytes(&self.to_le_bytes(), seed)
    }
    fn describe(&self) -> String {
        self.to_string()
    }
}

/// Hashed as the unsigned integer of the same bits.
impl Key for i128 {
    #[inline]
    fn hash128(&self, seed: u64) -> Hash128 {
        (*self as u128).hash128(seed)
    }
    fn describe(&self) -> String {
        self.to_string()
    }
}

/// A ready-made hash, taken as it is under seed 0. Other seeds, which are tried after a collision, mix its halves.
impl Key for Hash128 {
    const CHEAP: bool = true;
    #[inline]
    fn hash128(&self, seed: u64) -> Hash128 {
        if seed == 0 {
            return *self;
        }
        // Two rounds of a Feistel network: a bijection of all 128 bits in which each half depends on both.
        let high = self.high ^ mix_high(self.low ^ seed);
        let low = self.low ^ mix_low(high ^ seed);
        Hash128 { high: mix_high(high), low: mix_low(low) }
    }
    fn describe(&self) -> String {
        format!("{:016x}{:016x}", self.high, self.low)
    }
}

impl<K: Key + ?Sized> Key for &K {
    const CHEAP: bool = K::CHEAP;
    #[inline]
    fn hash128(&self, seed: u64) -> Hash128 {
        (**self).hash128(seed)
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
}

/// Anything that is a byte string, as a key: hashes as its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Bytes<T>(pub T);

impl<T: AsRef<[u8]>> Key for Bytes<T> {
    #[inline]
    fn hash128(&self, seed: u64) -> Hash128 {
        hash_bytes(self.0.as_ref(), seed)
    }
    fn describe(&self) -> String {
        describe_bytes(self.0.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_hash_equally_whatever_their_type() {
        assert_eq!(7_u32.hash128(3), 7_u64.hash128(3));
        assert_eq!(7_i128.hash128(3), 7_u128.hash128(3));
        assert_eq!("abc".hash128(3), b"abc".hash128(3));
        assert_eq!("abc".hash128(3), String::from("abc").hash128(3));
        assert_eq!("abc".hash128(3), Bytes("abc").hash128(3));
        assert_ne!("abc".hash128(3), "abc".hash128(4));
    }

    #[test]
    fn describes() {
        assert_eq!("abc".describe(), "\"abc\"");
        assert_eq!([255_u8, 1].describe(), "0xff01");
        assert_eq!(17_u64.describe(), "17");
        assert_eq!((-17_i128).describe(), "-17");
        assert!([b'x'; 100].describe().ends_with("(100 bytes)"));
    }
}

//! Ordered keys: each type as unsigned integers of 64 or 128 bits in the same order.

use std::ops::Bound;

use sealed::Word;
use warpset_base::file::{BYTE_STRING, FLOAT, SIGNED};
use warpset_core::range::{self, KeyForm};

/// Bytes of a byte string that count.
pub const PREFIX_BYTES: usize = 16;

/// Type of the keys of a filter: integers of 8 to 128 bits, `f32`, `f64`, and `[u8]` for byte strings. Sealed.
#[diagnostic::on_unimplemented(
    message = "a range filter has no keys of type `{Self}`",
    note = "take an integer, `f32`, `f64`, or `[u8]` for strings"
)]
pub trait RangeKey: sealed::Ordered {}

/// A value that is a key of type `K`: `K` itself, and for `[u8]` everything that holds bytes or text. Sealed.
///
/// ```
/// use warpset_range::RangeFilter;
///
/// let filter = RangeFilter::<[u8]>::builder().build_from(&["melon", "peach"])?;
/// assert!(filter.contains(b"melon") && filter.may_contain("lemon".."orange"));
/// # Ok::<(), warpset_range::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key of a `RangeFilter<{K}>`",
    note = "pass the type of the filter's keys; for `[u8]` a slice, an array or a vector of bytes, or a string"
)]
pub trait KeyOf<K: RangeKey + ?Sized>: Sync + sealed::Bounds<K> {}

pub(crate) mod sealed {
    /// An unsigned integer that holds keys in their order.
    pub trait Word:
        warpset_core::range::Offset
        + warpset_base::sort::Rank
        + warpset_base::key::Key
        + bytemuck::Pod
        + std::fmt::Debug
    {
        const MAX: Self;
        fn of(word: u128) -> Self;
        fn wide(self) -> u128;
        fn minus(self, other: Self) -> Self;
        fn plus(self, other: u64) -> Self;
        /// Returns the number without its lowest bits, and these.
        fn split(self, bits: u32) -> (Self, u64);
    }

    pub trait Ordered {
        type Word: Word;
        /// The type in headers: bytes of a key, with what marks its kind.
        const TYPE: u64;
        /// Name in messages.
        const NAME: &'static str;
    }

    pub trait Bounds<K: Ordered + ?Sized> {
        /// Returns the key's number; keys in order have numbers in order.
        fn word(&self) -> K::Word;
        /// Returns the largest number of a smaller key, or more.
        fn below(&self) -> Option<K::Word>;
        /// Returns the least number of a larger key, or less.
        fn above(&self) -> Option<K::Word>;
    }
}

/// Numbers of the first and the last key of a range, unless it is empty.
pub(crate) type Ends<K> = Option<(<K as sealed::Ordered>::Word, <K as sealed::Ordered>::Word)>;

/// Returns the least and the largest number of keys within bounds; `None` if there are none.
#[inline(always)]
pub(crate) fn words_of<K, Q>(start: Bound<&Q>, end: Bound<&Q>) -> Ends<K>
where
    K: RangeKey + ?Sized,
    Q: KeyOf<K>,
{
    let first = match start {
        Bound::Included(key) => key.word(),
        Bound::Excluded(key) => key.above()?,
        Bound::Unbounded => K::Word::of(0),
    };
    let last = match end {
        Bound::Included(key) => key.word(),
        Bound::Excluded(key) => key.below()?,
        Bound::Unbounded => K::Word::MAX,
    };
    (first <= last).then_some((first, last))
}

macro_rules! words {
    ($($word:ty)*) => {$(
        impl Word for $word {
            const MAX: $word = <$word>::MAX;
            #[inline(always)]
            fn of(word: u128) -> $word {
                word as $word
            }
            #[inline(always)]
            fn wide(self) -> u128 {
                self.into()
            }
            #[inline(always)]
            fn minus(self, other: $word) -> $word {
                self - other
            }
            #[inline(always)]
            fn plus(self, other: u64) -> $word {
                self + <$word>::from(other)
            }
            #[inline(always)]
            fn split(self, bits: u32) -> ($word, u64) {
                (self >> bits, self as u64 & ((1 << bits) - 1))
            }
        }
    )*};
}
words! { u64 u128 }

/// Returns the number of the key with these bits.
#[inline(always)]
fn number(bits: u32, order: u32, key: u64) -> u64 {
    KeyForm { bits, order }.number(key)
}

macro_rules! keys {
    ($($key:ty, $word:ty, $kind:expr, |$value:ident| $number:expr;)*) => {$(
        impl RangeKey for $key {}
        impl sealed::Ordered for $key {
            type Word = $word;
            const TYPE: u64 = size_of::<$key>() as u64 | $kind;
            const NAME: &'static str = stringify!($key);
        }
        impl KeyOf<$key> for $key {}
        impl sealed::Bounds<$key> for $key {
            #[inline(always)]
            fn word(&self) -> $word {
                let $value = *self;
                $number
            }
            #[inline(always)]
            fn below(&self) -> Option<$word> {
                self.word().checked_sub(1)
            }
            #[inline(always)]
            fn above(&self) -> Option<$word> {
                self.word().checked_add(1)
            }
        }
    )*};
}
keys! {
    u8, u64, 0, |key| key.into();
    u16, u64, 0, |key| key.into();
    u32, u64, 0, |key| key.into();
    u64, u64, 0, |key| key;
    u128, u128, 0, |key| key;
    i8, u64, SIGNED, |key| number(8, range::SIGNED, (key as u8).into());
    i16, u64, SIGNED, |key| number(16, range::SIGNED, (key as u16).into());
    i32, u64, SIGNED, |key| number(32, range::SIGNED, (key as u32).into());
    i64, u64, SIGNED, |key| number(64, range::SIGNED, key as u64);
    i128, u128, SIGNED, |key| key as u128 ^ 1 << 127;
    f32, u64, FLOAT, |key| number(32, range::FLOAT, key.to_bits().into());
    f64, u64, FLOAT, |key| number(64, range::FLOAT, key.to_bits());
}

impl RangeKey for [u8] {}
impl sealed::Ordered for [u8] {
    type Word = u128;
    const TYPE: u64 = PREFIX_BYTES as u64 | BYTE_STRING;
    const NAME: &'static str = "[u8]";
}

/// Returns the first 16 bytes as a number, with zeros after a shorter string.
#[inline]
fn prefix(bytes: &[u8]) -> u128 {
    match bytes.first_chunk() {
        Some(first) => u128::from_be_bytes(*first),
        None => {
            let mut padded = [0; PREFIX_BYTES];
            padded[..bytes.len()].copy_from_slice(bytes);
            u128::from_be_bytes(padded)
        }
    }
}

macro_rules! strings {
    ($([$($generics:tt)*] $key:ty;)*) => {$(
        impl<$($generics)*> KeyOf<[u8]> for $key {}
        impl<$($generics)*> sealed::Bounds<[u8]> for $key {
            #[inline]
            fn word(&self) -> u128 {
                prefix(self.as_ref())
            }
            #[inline]
            fn below(&self) -> Option<u128> {
                let bytes: &[u8] = self.as_ref();
                // A smaller string has the same prefix only if zeros or further bytes make the difference.
                match bytes.len() <= PREFIX_BYTES && bytes.last() != Some(&0) {
                    true => prefix(bytes).checked_sub(1),
                    false => Some(prefix(bytes)),
                }
            }
            #[inline]
            fn above(&self) -> Option<u128> {
                Some(prefix(self.as_ref()))
            }
        }
    )*};
}
strings! {
    [] &[u8];
    [] Vec<u8>;
    [const N: usize] [u8; N];
    [const N: usize] &[u8; N];
    [] &str;
    [] String;
}

#[cfg(test)]
mod tests {
    use super::sealed::Bounds;
    use super::*;

    /// Compares the order of keys with that of their numbers.
    fn ordered<K: RangeKey + KeyOf<K>>(ascending: &[K]) {
        let words: Vec<_> = ascending.iter().map(|key| key.word()).collect();
        assert!(words.windows(2).all(|two| two[0] < two[1]), "{words:?}");
        for (key, &word) in ascending.iter().zip(&words) {
            assert_eq!(key.below().map(|below| below.wide() + 1).unwrap_or(0), word.wide());
            assert_eq!(
                key.above().map(|above| above.wide()),
                word.wide().checked_add(1).filter(|_| word < K::Word::MAX)
            );
        }
    }

    #[test]
    fn numbers_keep_the_order_of_keys() {
        ordered(&[0u8, 1, 255]);
        ordered(&[0u64, 1, u64::MAX]);
        ordered(&[0u128, 1 << 64, u128::MAX]);
        ordered(&[i8::MIN, -1, 0, i8::MAX]);
        ordered(&[i64::MIN, -1, 0, i64::MAX]);
        ordered(&[i128::MIN, -1, 0, i128::MAX]);
        ordered(&[-f32::NAN, f32::NEG_INFINITY, f32::MIN, -0.0, 0.0, f32::MIN_POSITIVE, 1.0, f32::INFINITY, f32::NAN]);
        ordered(&[-f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN]);
    }

    #[test]
    fn strings_never_have_numbers_out_of_order() {
        let strings = [
            "",
            "\0",
            "\0\0",
            "a",
            "a\0",
            "a\0b",
            "ab",
            "abcdefghijklmno",
            "abcdefghijklmnop",
            "abcdefghijklmnop\0",
            "abcdefghijklmnopq",
            "b",
            "\u{7f}",
        ];
        for (i, lower) in strings.iter().enumerate() {
            for upper in &strings[i + 1..] {
                assert!(lower.word() <= upper.word(), "{lower:?} {upper:?}");
                assert!(upper.below().is_some_and(|below| lower.word() <= below), "{lower:?} {upper:?}");
                assert!(lower.above().is_some_and(|above| above <= upper.word()), "{lower:?} {upper:?}");
            }
        }
        assert_eq!(("b".below(), "".below()), (Some((u128::from(b'b') << 120) - 1), None));
    }
}

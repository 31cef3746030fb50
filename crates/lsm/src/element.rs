//! Parts of a dictionary: ordered keys, values, and tombstones.

use std::fmt::Debug;
use std::hash::Hash;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use bytemuck::Pod;
use warpset_base::file::{BYTE_STRING, SIGNED};
use warpset_base::words::{self, OutOfMemory};
use warpset_core::lsm;

/// Keys of ordered dictionaries: `u32`, `u64`, `u128`, `i32`, `i64` and `i128`, all their values, in the order of their
/// numbers; and byte strings of fixed length, `[u8; 1]` to `[u8; 16]`, in the order of their bytes, which is also the
/// order of numbers written with the highest byte first. Sealed.
///
/// Map other keys to one of these by a function that keeps their order. Two keys of 32 bits, for example, become one
/// key `u64::from(high) << 32 | u64::from(low)`.
///
/// ```
/// use warpset_lsm::Lsm;
///
/// let mut owners = Lsm::<[u8; 16], u32>::builder().build()?;
/// let address = |last: u8| std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).octets();
/// owners.insert_bulk(&[address(9), address(7)], &[90, 70])?;
/// assert_eq!(owners.successor(address(7)), Some((address(9), 90)));
/// assert_eq!(owners.count_range(..address(9)), 1);
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a dictionary",
    note = "use `u32`, `u64`, `u128`, `i32`, `i64`, `i128` or `[u8; 1]` to `[u8; 16]`, or map other keys to one of \
            these by a function that keeps their order"
)]
pub trait OrderedKey: Pod + Ord + Hash + Debug + Send + Sync + sealed::Sealed {
    /// The smallest key.
    const MIN: Self;
    /// The largest key.
    const MAX: Self;
    /// Returns the key as an unsigned number, in the same order. The highest bit of a signed key is flipped; the first
    /// byte of a string is the highest.
    fn to_u128(self) -> u128;
    /// Returns the key with this number; bits beyond the width of the key are dropped.
    fn from_u128(number: u128) -> Self;
    /// Returns the lowest 64 bits of [`to_u128`](OrderedKey::to_u128), which are all bits of a key of at most 8 bytes.
    #[inline]
    fn to_u64(self) -> u64 {
        self.to_u128() as u64
    }
    /// Returns [`from_u128`](OrderedKey::from_u128) of a number of 64 bits.
    #[inline]
    fn from_u64(number: u64) -> Self {
        Self::from_u128(number.into())
    }
    /// Returns the next key, if any.
    #[inline]
    fn above(self) -> Option<Self> {
        (self != Self::MAX).then(|| Self::from_u128(self.to_u128() + 1))
    }
    /// Returns the previous key, if any.
    #[inline]
    fn below(self) -> Option<Self> {
        (self != Self::MIN).then(|| Self::from_u128(self.to_u128() - 1))
    }
}

/// Returns the hash of a key for the filter of a level.
#[inline]
pub(crate) fn filter_hash<K: OrderedKey>(key: K) -> u64 {
    if size_of::<K>() <= 8 { lsm::filter_hash(key.to_u64()) } else { lsm::filter_hash(key.to_u128()) }
}

/// Largest size of a value, in bytes.
pub(crate) const MOST_VALUE_BYTES: usize = 32;

/// Values of dictionaries: plain old data of up to 32 bytes ([`bytemuck::Pod`]), such as numbers, arrays of numbers,
/// and structs that derive `Pod`; keep larger values in a `Vec`, and store their places. Values of size zero, `()`,
/// take no memory and make an ordered set.
///
/// ```
/// use warpset_lsm::Lsm;
///
/// let mut set = Lsm::<u64, ()>::builder().build()?;
/// let keys = [7, 5, 7];
/// set.insert_bulk(&keys, &vec![(); keys.len()])?; // a `Vec` of `()` takes no memory
/// assert_eq!(set.iter().map(|(key, ())| key).collect::<Vec<_>>(), [5, 7]);
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
///
/// A larger type does not compile.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use warpset_lsm::Lsm;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
/// #[repr(C)]
/// struct Trade {
///     price: f64,
///     volume: u32,
///     venue: u32,
/// }
/// let trade = |price, volume| Trade { price, volume, venue: 3 };
/// let mut last = Lsm::<u32, Trade>::builder().build_from(&[7, 9], &[trade(1.5, 10), trade(2.5, 20)])?;
/// last.insert(9, trade(2.25, 5))?;
/// assert_eq!(last.get(9), Some(trade(2.25, 5)));
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
///
/// ```compile_fail,E0080
/// warpset_lsm::Lsm::<u32, [u64; 5]>::builder().build()?.get(1);
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
pub trait Value: Pod + PartialEq + Debug + Send + Sync {
    /// Placeholder value of a tombstone: all bytes are zero.
    const NONE: Self;
    /// Returns `len` values with all bytes zero.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    fn zeroed_vec(len: usize) -> Result<Vec<Self>, OutOfMemory>;
    /// Returns the first `len` values in `bytes`, which must be aligned.
    fn from_bytes(bytes: &[u8], len: usize) -> &[Self];
}

impl<V: Pod + PartialEq + Debug + Send + Sync> Value for V {
    const NONE: V = {
        assert!(size_of::<V>() <= MOST_VALUE_BYTES, "values of dictionaries have at most 32 bytes");
        // SAFETY: any bytes are a valid value of plain old data.
        unsafe { MaybeUninit::zeroed().assume_init() }
    };
    fn zeroed_vec(len: usize) -> Result<Vec<V>, OutOfMemory> {
        if size_of::<V>() == 0 { Ok(vec![V::NONE; len]) } else { words::zeroed_vec(len as u64) }
    }
    fn from_bytes(bytes: &[u8], len: usize) -> &[V] {
        if size_of::<V>() == 0 {
            // SAFETY: a dangling aligned pointer is valid for items of size zero, and no bytes are a valid value of
            // plain old data.
            return unsafe { std::slice::from_raw_parts(NonNull::dangling().as_ptr(), len) };
        }
        bytemuck::cast_slice(&bytes[..len * size_of::<V>()])
    }
}

/// Returns the bytes of values; none for values of size zero.
pub(crate) fn bytes_of<V: Value>(values: &[V]) -> &[u8] {
    if size_of::<V>() == 0 { &[] } else { bytemuck::cast_slice(values) }
}

/// Whether two slices are equal, byte for byte; values of size zero always are.
pub(crate) fn are_same<V: Value>(a: &[V], b: &[V]) -> bool {
    a.len() == b.len() && bytes_of(a) == bytes_of(b)
}

pub(crate) mod sealed {
    pub trait Sealed {
        /// Number of the kind of key in the headers of files, combined with the key's size in bytes.
        const KIND: u64;
    }
}

macro_rules! integer {
    ($($type:ty as $unsigned:ty: $kind:expr;)*) => {$(
        impl sealed::Sealed for $type {
            const KIND: u64 = $kind;
        }
        impl OrderedKey for $type {
            const MIN: Self = <$type>::MIN;
            const MAX: Self = <$type>::MAX;
            #[inline]
            fn to_u128(self) -> u128 {
                // The least key is zero, or has only the highest bit set.
                (self as $unsigned ^ Self::MIN as $unsigned).into()
            }
            #[inline]
            fn from_u128(number: u128) -> Self {
                (number as $unsigned ^ Self::MIN as $unsigned) as $type
            }
            #[inline]
            fn above(self) -> Option<Self> {
                self.checked_add(1)
            }
            #[inline]
            fn below(self) -> Option<Self> {
                self.checked_sub(1)
            }
        }
    )*};
}
integer! {
    u32 as u32: 0;
    u64 as u64: 0;
    u128 as u128: 0;
    i32 as u32: SIGNED;
    i64 as u64: SIGNED;
    i128 as u128: SIGNED;
}

macro_rules! byte_strings {
    ($($len:literal)*) => {$(
        impl sealed::Sealed for [u8; $len] {
            const KIND: u64 = BYTE_STRING;
        }
        impl OrderedKey for [u8; $len] {
            const MIN: Self = [0; $len];
            const MAX: Self = [u8::MAX; $len];
            #[inline]
            fn to_u128(self) -> u128 {
                let mut bytes = [0; 16];
                bytes[16 - $len..].copy_from_slice(&self);
                u128::from_be_bytes(bytes)
            }
            #[inline]
            fn from_u128(number: u128) -> Self {
                let mut bytes = [0; $len];
                bytes.copy_from_slice(&number.to_be_bytes()[16 - $len..]);
                bytes
            }
        }
    )*};
}
byte_strings!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);

/// Items of size zero take no memory, whatever their number.
static UNITS: [(); usize::MAX] = [(); usize::MAX];

/// Returns `len` values of an ordered set, which take no memory.
pub(crate) fn units(len: usize) -> &'static [()] {
    &UNITS[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps_the_order<K: OrderedKey>(ascending: &[K]) {
        assert_eq!((ascending[0], ascending[ascending.len() - 1]), (K::MIN, K::MAX));
        assert!(ascending.windows(2).all(|two| two[0] < two[1] && two[0].to_u128() < two[1].to_u128()));
        assert!(ascending.iter().all(|&key| K::from_u128(key.to_u128()) == key));
        assert!(ascending[1..].iter().all(|&key| key.below().and_then(K::above) == Some(key)));
        assert_eq!((K::MIN.to_u128(), K::MIN.below(), K::MAX.above()), (0, None, None));
    }

    #[test]
    fn numbers_of_keys_keep_their_order() {
        keeps_the_order(&[0u32, 1, 1 << 31, u32::MAX]);
        keeps_the_order(&[0u64, 1, 1 << 63, u64::MAX]);
        keeps_the_order(&[0u128, 1, 1 << 64, 1 << 127, u128::MAX]);
        keeps_the_order(&[i32::MIN, -2, -1, 0, 1, i32::MAX]);
        keeps_the_order(&[i64::MIN, i64::from(i32::MIN), -1, 0, 1, i64::MAX]);
        keeps_the_order(&[i128::MIN, i128::from(i64::MIN), -1, 0, 1, i128::MAX]);
        keeps_the_order(&[[0u8; 3], [0, 0, 1], [0, 1, 0], [0, 255, 255], [1, 0, 0], [255; 3]]);
        let at = |i: usize| std::array::from_fn(|j| u8::from(i == j));
        keeps_the_order(&[[0u8; 16], at(15), at(8), at(7), at(0), [255; 16]]);
    }

    #[test]
    fn values_of_any_size_are_their_bytes() {
        assert_eq!(<[u8; 3]>::from_bytes(&[1, 2, 3, 4, 5, 6, 0, 0], 2), [[1, 2, 3], [4, 5, 6]]);
        assert_eq!((<()>::from_bytes(&[], 5).len(), <[u32; 0]>::from_bytes(&[], 3).len()), (5, 3));
        assert_eq!((u128::NONE, <[f64; 4]>::NONE, <[u8; 32]>::zeroed_vec(2).unwrap()), (0, [0.0; 4], vec![[0; 32]; 2]));
        assert!(are_same(&[f32::NAN], &[f32::NAN]) && !are_same(&[0.0f32], &[-0.0]));
    }
}

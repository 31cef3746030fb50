//! What a dictionary is made of: keys in their order, values, and tombstones.

use std::fmt::Debug;
use std::hash::Hash;

use bytemuck::Pod;
use warpset_base::words::{self, OutOfMemory};

/// Keys of ordered dictionaries: `u32`, `u64`, `i32` and `i64`, all their values, in the order of their numbers.
/// Sealed.
///
/// Other keys can be mapped to `u64` by a function that keeps their order; two of 32 bits, for example, are one key
/// `u64::from(high) << 32 | u64::from(low)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a dictionary",
    note = "use `u32`, `u64`, `i32` or `i64`, or map other keys to `u64` by a function that keeps their order"
)]
pub trait OrderedKey: Pod + Ord + Hash + Debug + Send + Sync + sealed::Sealed {
    /// The smallest key.
    const MIN: Self;
    /// The largest key.
    const MAX: Self;
    /// The key as an unsigned number, in the same order: of a signed key the highest bit is flipped.
    fn to_u64(self) -> u64;
    /// The key of such a number, of which high bits that it has no room for are dropped.
    fn from_u64(number: u64) -> Self;
    /// The next key, if there is one.
    fn above(self) -> Option<Self>;
    /// The key before, if there is one.
    fn below(self) -> Option<Self>;
}

/// Values of dictionaries: `u32`, `u64`, or `()`, which takes no memory and makes an ordered set. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a dictionary",
    note = "use `u32`, `u64` or `()`; larger values can stand in a `Vec`, with their places as values"
)]
pub trait Value: Pod + Eq + Debug + Send + Sync + sealed::Sealed {
    /// Placeholder value of a tombstone.
    const NONE: Self;
    /// `len` values of which all bytes are zero.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    fn zeroed_vec(len: usize) -> Result<Vec<Self>, OutOfMemory>;
    /// `len` values in the bytes, of which there are exactly as many, aligned.
    fn from_bytes(bytes: &[u8], len: usize) -> &[Self];
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integer {
    ($($type:ty as $unsigned:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl OrderedKey for $type {
            const MIN: Self = <$type>::MIN;
            const MAX: Self = <$type>::MAX;
            #[inline]
            fn to_u64(self) -> u64 {
                // The least key is 0 or has the highest bit alone.
                (self as $unsigned ^ Self::MIN as $unsigned).into()
            }
            #[inline]
            fn from_u64(number: u64) -> Self {
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
integer!(u32 as u32, u64 as u64, i32 as u32, i64 as u64);

macro_rules! value {
    ($($type:ty),*) => {$(
        impl Value for $type {
            const NONE: Self = 0;
            fn zeroed_vec(len: usize) -> Result<Vec<Self>, OutOfMemory> {
                words::zeroed_vec(len as u64)
            }
            fn from_bytes(bytes: &[u8], len: usize) -> &[Self] {
                &bytemuck::cast_slice(bytes)[..len]
            }
        }
    )*};
}
value!(u32, u64);

/// Items of no size cost nothing, however many there are.
static UNITS: [(); usize::MAX] = [(); usize::MAX];

impl sealed::Sealed for () {}
impl Value for () {
    const NONE: Self = ();
    fn zeroed_vec(len: usize) -> Result<Vec<()>, OutOfMemory> {
        Ok(vec![(); len])
    }
    fn from_bytes(_: &[u8], len: usize) -> &[()] {
        &UNITS[..len]
    }
}

/// `len` values of an ordered set, which take no memory.
///
/// ```
/// use warpset_lsm::{Lsm, units};
///
/// let mut set = Lsm::<u64, ()>::builder().build()?;
/// set.insert_bulk(&[7, 5, 7], units(3))?;
/// assert_eq!(set.iter().map(|(key, ())| key).collect::<Vec<_>>(), [5, 7]);
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
pub fn units(len: usize) -> &'static [()] {
    &UNITS[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps_the_order<K: OrderedKey>(ascending: &[K]) {
        assert_eq!((ascending[0], ascending[ascending.len() - 1]), (K::MIN, K::MAX));
        assert!(ascending.windows(2).all(|two| two[0].to_u64() < two[1].to_u64()));
        assert!(ascending.iter().all(|&key| K::from_u64(key.to_u64()) == key));
        assert_eq!((K::MIN.to_u64(), K::MIN.below(), K::MAX.above()), (0, None, None));
    }

    #[test]
    fn numbers_of_keys_keep_their_order() {
        keeps_the_order(&[0u32, 1, 1 << 31, u32::MAX]);
        keeps_the_order(&[0u64, 1, 1 << 63, u64::MAX]);
        keeps_the_order(&[i32::MIN, -2, -1, 0, 1, i32::MAX]);
        keeps_the_order(&[i64::MIN, i64::from(i32::MIN), -1, 0, 1, i64::MAX]);
    }
}

//! What a dictionary is made of: keys in their order, values, and tombstones.

use std::fmt::Debug;
use std::hash::Hash;

use bytemuck::Pod;
use warpset_base::words::{self, OutOfMemory};
use warpset_primitives::sort::SortKey;

/// Keys of ordered dictionaries: `u32` and `u64`, all their values. Sealed.
pub trait OrderedKey: SortKey + Hash + Debug + sealed::Sealed {
    /// The smallest key.
    const MIN: Self;
    /// The largest key.
    const MAX: Self;
    /// The key as a number.
    fn to_u64(self) -> u64;
    /// The key of a number, of which high bits that it has no room for are dropped.
    fn from_u64(number: u64) -> Self;
    /// The next key, if there is one.
    fn above(self) -> Option<Self>;
    /// The key before, if there is one.
    fn below(self) -> Option<Self>;
}

/// Values of dictionaries: `u32`, `u64`, or `()`, which takes no memory and makes an ordered set. Sealed.
pub trait Value: Pod + Eq + Debug + Send + Sync + sealed::Sealed {
    /// A value that nobody asks for: that of a tombstone.
    const NONE: Self;
    /// `len` values of which all bytes are zero.
    fn zeroed_vec(len: usize) -> Result<Vec<Self>, OutOfMemory>;
    /// `len` values in the bytes, of which there are exactly as many, aligned.
    fn from_bytes(bytes: &[u8], len: usize) -> &[Self];
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl OrderedKey for $type {
            const MIN: Self = <$type>::MIN;
            const MAX: Self = <$type>::MAX;
            #[inline]
            fn to_u64(self) -> u64 {
                self.into()
            }
            #[inline]
            fn from_u64(number: u64) -> Self {
                number as $type
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
integer!(u32, u64);

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

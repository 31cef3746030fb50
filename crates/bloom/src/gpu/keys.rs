//! Keys in device memory.

use bytemuck::Pod;
use warpset_gpu::DeviceSlice;
use warpset_kernels::keys::KeySlice;

use super::DeviceLayout;
use crate::{Hashed, Key};

/// How a key looks to a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyClass {
    /// 64-bit hashes.
    Hashes,
    /// Integers of 64 bits.
    U64,
    /// Integers of 32 bits.
    U32,
}

impl KeyClass {
    /// Bytes of a key.
    pub(super) const fn bytes(self) -> usize {
        match self {
            KeyClass::Hashes | KeyClass::U64 => 8,
            KeyClass::U32 => 4,
        }
    }
}

/// A key that device memory can hold and kernels can hash: integers of 32 and 64 bits, and [`Hashed`]. Sealed, as
/// [`Key`] is.
pub trait DeviceKey: Key + Pod {
    /// How it looks to a kernel.
    #[doc(hidden)]
    const CLASS: KeyClass;
}

macro_rules! device_keys {
    ($($key:ty: $class:ident;)*) => {$(
        impl DeviceKey for $key {
            const CLASS: KeyClass = KeyClass::$class;
        }
    )*};
}
device_keys! {
    u32: U32;
    i32: U32;
    u64: U64;
    i64: U64;
    Hashed: Hashes;
}

/// Device keys as the kernels of a layout take them.
pub(super) fn kernel_keys<L: DeviceLayout, K: DeviceKey>(layout: &L, keys: DeviceSlice<'_, K>) -> KeySlice {
    let (kind, spread) = layout.hashing(K::CLASS);
    KeySlice::new(keys.global(), kind, spread)
}

//! Keys in device memory.

use std::ops::Range;

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceVec, GpuError, Stream};
use warpset_kernels::keys::KeySlice;
use warpset_simt::Global;

use super::strings::hash_integers;
use super::{DeviceLayout, DeviceStrings};
use crate::key::sealed::Raw;
use crate::{Error, Hashed, Key, StringHash};

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

/// A key of fixed size that device memory can hold and kernels can hash: integers of 32 and 64 bits, and [`Hashed`].
/// Sealed, as [`Key`] is.
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

/// Keys in device memory: slices of [`DeviceKey`], and [`DeviceStrings`]. Sealed.
pub trait DeviceKeys: Copy + sealed::DeviceKeys {}

impl<K: DeviceKey> DeviceKeys for DeviceSlice<'_, K> {}
impl DeviceKeys for DeviceStrings<'_> {}

/// Keys of which the hashes take scratch memory at a time: 512 MiB for strings.
pub(super) const HASHED_AT_A_TIME: usize = 1 << 26;

/// Keys as the kernels of a layout take them, with the memory of what was hashed for them.
pub struct Hashing {
    pub(super) keys: KeySlice,
    /// Where `keys` points, if they had to be hashed.
    _hashes: Option<DeviceVec<u64>>,
    string_hashes: Option<DeviceVec<u32>>,
}

impl Hashing {
    /// The string hashes, if the layout wants them.
    pub(super) fn string_hashes(&self) -> Option<Global<u32>> {
        self.string_hashes.as_ref().map(DeviceVec::global)
    }

    /// The same, as a slice.
    pub(super) fn string_hash_slice(&self) -> Option<DeviceSlice<'_, u32>> {
        self.string_hashes.as_ref().map(DeviceVec::as_slice)
    }
}

pub(crate) mod sealed {
    use super::*;

    pub trait DeviceKeys: Sized {
        /// How many keys.
        fn count(&self) -> usize;
        /// Some of them.
        fn part(&self, range: Range<usize>) -> Self;
        /// How many of them to give to [`DeviceKeys::hashing`] at a time; a multiple of 64, or all.
        fn at_a_time<L: DeviceLayout>(&self, layout: &L) -> usize;
        /// Queues what kernels need besides the keys themselves. Scratch memory is freed in the order of the stream.
        ///
        /// # Safety
        /// The keys stay allocated and unwritten until `stream` has passed.
        unsafe fn hashing<L: DeviceLayout>(&self, layout: &L, stream: &Stream) -> Result<Hashing, Error>;
    }
}

impl<K: DeviceKey> sealed::DeviceKeys for DeviceSlice<'_, K> {
    fn count(&self) -> usize {
        self.len()
    }
    fn part(&self, range: Range<usize>) -> Self {
        self.slice(range)
    }
    fn at_a_time<L: DeviceLayout>(&self, layout: &L) -> usize {
        if layout.string_function().is_some() { HASHED_AT_A_TIME } else { self.len().max(1) }
    }
    unsafe fn hashing<L: DeviceLayout>(&self, layout: &L, stream: &Stream) -> Result<Hashing, Error> {
        let (kind, spread) = layout.hashing(K::CLASS);
        let keys = KeySlice::new(self.global(), kind, spread);
        let mut string_hashes = None;
        if let Some(function) = layout.string_function() {
            let buffer = string_hashes.insert(stream.alloc_uninit(self.len())?);
            // SAFETY: the class says how long a key is; the rest is the caller's promise.
            unsafe { hash_integers(stream, keys.keys, K::CLASS.bytes(), self.len(), function, buffer.global_mut())? };
        }
        Ok(Hashing { keys, _hashes: None, string_hashes })
    }
}

impl sealed::DeviceKeys for DeviceStrings<'_> {
    fn count(&self) -> usize {
        self.len()
    }
    fn part(&self, range: Range<usize>) -> Self {
        self.slice(range)
    }
    fn at_a_time<L: DeviceLayout>(&self, _layout: &L) -> usize {
        HASHED_AT_A_TIME
    }
    unsafe fn hashing<L: DeviceLayout>(&self, layout: &L, stream: &Stream) -> Result<Hashing, Error> {
        let mut hashes = stream.alloc_uninit::<u64>(self.len())?;
        let mut string_hashes = None;
        let function = match layout.string_function() {
            Some(function) => {
                let buffer: &mut DeviceVec<u32> = string_hashes.insert(stream.alloc_uninit(self.len())?);
                Some((function, buffer.global_mut()))
            }
            None => None,
        };
        // SAFETY: there is a place a string; the scratch is freed in the order of the stream; the rest is the caller's
        // promise.
        unsafe { self.hash(stream, layout.bytes_seed(), hashes.global_mut(), function)? };
        let (kind, spread) = layout.hashing(KeyClass::Hashes);
        let keys = KeySlice::new(hashes.global(), kind, spread);
        Ok(Hashing { keys, _hashes: Some(hashes), string_hashes })
    }
}

/// Brings the string hashes of host keys to `to`: those of integers, which are at `on_device`, are computed there; those of
/// other keys on the host.
///
/// # Safety
/// `on_device` holds the keys, or will when `stream` has passed what is queued; they and `to` stay allocated and are
/// nobody else's until `stream` has passed this work too.
pub(super) unsafe fn bring_string_hashes<K: Key>(
    stream: &Stream,
    function: StringHash,
    keys: &[K],
    on_device: KeySlice,
    to: &mut DeviceVec<u32>,
) -> Result<(), GpuError> {
    use rayon::prelude::*;
    let size = match K::raw(keys) {
        Raw::Other => {
            let hashes: Vec<u32> = keys.par_iter().map(|key| key.string_hash(function)).collect();
            return stream.upload(to.slice_mut(..keys.len()), &hashes);
        }
        Raw::U32(_) => 4,
        Raw::U64(_) | Raw::Hashes(_) => 8,
    };
    // SAFETY: the caller's promise.
    unsafe { hash_integers(stream, on_device.keys, size, keys.len(), function, to.global_mut()) }
}

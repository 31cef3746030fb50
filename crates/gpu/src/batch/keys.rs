//! Keys in device memory.

use std::ops::Range;

use bytemuck::Pod;
use warpset_base::key::{Hashed, Key};
pub use warpset_kernels::batch::keys::KeyClass;
use warpset_kernels::batch::keys::KeySlice;
use warpset_simt::Global;

use super::strings::hash_integers;
use super::{DeviceStrings, Hashing, KeyWords};
use crate::error::Result;
use crate::{Device, DeviceSlice, DeviceVec, GpuError, Stream};

/// A key of fixed size that device memory can hold and kernels can hash: integers of 32 and 64 bits, `usize` and
/// `isize` of 64 bits, and [`Hashed`]. Sealed, as [`Key`] is.
#[diagnostic::on_unimplemented(
    message = "keys of type `{Self}` cannot lie in device memory",
    note = "use integers of 32 or 64 bits or `Hashed`; for strings use `DeviceStrings`"
)]
pub trait DeviceKey: Key + Pod {
    /// Representation in kernels.
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
    i32: I32;
    u64: U64;
    i64: U64;
    Hashed: Hashes;
}
#[cfg(target_pointer_width = "64")]
device_keys! {
    usize: U64;
    isize: U64;
}

/// Keys of any kind in device memory, whatever structure takes them. Sealed.
pub trait DeviceBatch: Copy + sealed::OnDevice {}

impl<K: Copy + sealed::OnDevice> DeviceBatch for K {}

/// Keys in device memory: slices of [`DeviceKey`], and [`DeviceStrings`]. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no batch of keys in device memory",
    note = "pass a `DeviceSlice` of keys or `DeviceStrings`; methods that end in `_bulk` take host slices"
)]
pub trait DeviceKeys: Copy + Send + Sync + sealed::DeviceKeys {}

impl<K: DeviceKey> DeviceKeys for DeviceSlice<'_, K> {}
impl DeviceKeys for DeviceStrings<'_> {}

/// Number of keys hashed at a time, for scratch memory of 512 MiB for strings.
const HASHED_AT_A_TIME: usize = 1 << 26;

/// Keys in the form that kernels take, with the memory of their hashes.
pub struct KernelKeys {
    /// The keys.
    pub keys: KeySlice,
    /// Memory that `keys` points to, if the keys had to be hashed.
    hashes: Option<DeviceVec<u64>>,
    string_hashes: Option<DeviceVec<u32>>,
}

impl KernelKeys {
    /// Wraps keys that are used in place.
    pub(super) fn new(keys: KeySlice, string_hashes: Option<DeviceVec<u32>>) -> KernelKeys {
        KernelKeys { keys, hashes: None, string_hashes }
    }

    /// Returns the string hashes, if the structure uses them.
    pub fn string_hashes(&self) -> Option<Global<u32>> {
        self.string_hashes.as_ref().map(DeviceVec::global)
    }

    /// Returns [`string_hashes`](Self::string_hashes) as a slice.
    pub fn string_hash_slice(&self) -> Option<DeviceSlice<'_, u32>> {
        self.string_hashes.as_ref().map(DeviceVec::as_slice)
    }
}

pub(super) mod sealed {
    use super::*;

    /// Keys of any kind in device memory.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is no batch of keys in device memory",
        note = "pass a `DeviceSlice` of keys or `DeviceStrings`; methods that end in `_bulk` take host slices"
    )]
    pub trait OnDevice: Sized {
        /// Returns the number of keys.
        fn count(&self) -> usize;
        /// Returns the device of the keys.
        fn device(&self) -> &Device;
        /// Returns some of the keys.
        fn part(&self, range: Range<usize>) -> Self;
    }

    pub trait DeviceKeys: OnDevice {
        /// Returns the number of keys to give to [`DeviceKeys::kernel_keys`] at a time: a multiple of 64, or all.
        fn at_a_time(&self, hashing: &Hashing) -> usize;
        /// Queues what kernels need besides the keys themselves. Scratch memory is freed in the order of the stream.
        ///
        /// # Safety
        /// The keys stay allocated until `stream` has passed this work, and nothing writes them before.
        unsafe fn kernel_keys(&self, hashing: &Hashing, stream: &Stream) -> Result<KernelKeys>;
        /// Gives `work` the keys part after part, in the form that kernels take: the number of a part's first key, a
        /// multiple of 64, the keys, and their number.
        ///
        /// # Safety
        /// That of [`DeviceKeys::kernel_keys`].
        unsafe fn for_each_chunk<E: From<GpuError>>(
            &self,
            hashing: &Hashing,
            stream: &Stream,
            mut work: impl FnMut(usize, &KernelKeys, usize) -> Result<(), E>,
        ) -> Result<(), E> {
            let (n, at_a_time) = (self.count(), self.at_a_time(hashing));
            for first in (0..n).step_by(at_a_time) {
                let part = self.part(first..n.min(first.saturating_add(at_a_time)));
                // SAFETY: these keys are a part of all keys, which stay allocated by this function's contract.
                let hashed = unsafe { part.kernel_keys(hashing, stream)? };
                work(first, &hashed, part.count())?;
            }
            Ok(())
        }
        /// Whether kernels take them in 32 bits.
        fn is_narrow(&self) -> bool;
        /// Returns the words that kernels take; `hashed` is the result of [`DeviceKeys::kernel_keys`] for these keys.
        fn words<'k>(&'k self, hashed: &'k KernelKeys) -> Result<KeyWords<'k>>;
    }
}

impl<T: Pod> sealed::OnDevice for DeviceSlice<'_, T> {
    fn count(&self) -> usize {
        self.len()
    }
    fn device(&self) -> &Device {
        DeviceSlice::device(self)
    }
    fn part(&self, range: Range<usize>) -> Self {
        self.slice(range)
    }
}

impl sealed::OnDevice for DeviceStrings<'_> {
    fn count(&self) -> usize {
        self.len()
    }
    fn device(&self) -> &Device {
        DeviceStrings::device(self)
    }
    fn part(&self, range: Range<usize>) -> Self {
        self.slice(range)
    }
}

impl<K: DeviceKey> sealed::DeviceKeys for DeviceSlice<'_, K> {
    fn at_a_time(&self, hashing: &Hashing) -> usize {
        if hashing.string_hash().is_some() { HASHED_AT_A_TIME } else { self.len().max(1) }
    }
    unsafe fn kernel_keys(&self, hashing: &Hashing, stream: &Stream) -> Result<KernelKeys> {
        let keys = hashing.key_slice(K::CLASS, self.global());
        let mut string_hashes = None;
        if let Some(function) = hashing.string_hash() {
            let buffer = string_hashes.insert(stream.alloc_uninit(self.len())?);
            // SAFETY: there is a place for each key; the rest is this function's contract.
            unsafe { hash_integers(stream, keys, self.len(), function, buffer.global_mut())? };
        }
        Ok(KernelKeys::new(keys, string_hashes))
    }
    fn is_narrow(&self) -> bool {
        K::CLASS.bytes() == 4
    }
    fn words<'k>(&'k self, _hashed: &'k KernelKeys) -> Result<KeyWords<'k>> {
        Ok(if self.is_narrow() { KeyWords::Narrow(self.cast()?) } else { KeyWords::Wide(self.cast()?) })
    }
}

impl sealed::DeviceKeys for DeviceStrings<'_> {
    fn at_a_time(&self, _hashing: &Hashing) -> usize {
        HASHED_AT_A_TIME
    }
    unsafe fn kernel_keys(&self, hashing: &Hashing, stream: &Stream) -> Result<KernelKeys> {
        let mut hashes = stream.alloc_uninit::<u64>(self.len())?;
        let mut string_hashes = None;
        let function = match hashing.string_hash() {
            Some(function) => {
                let buffer: &mut DeviceVec<u32> = string_hashes.insert(stream.alloc_uninit(self.len())?);
                Some((function, buffer.global_mut()))
            }
            None => None,
        };
        // SAFETY: there is a place for each string; the scratch is freed in the order of the stream; the rest is the
        // caller's promise.
        unsafe { self.hash(stream, hashing.bytes_seed(), hashes.global_mut(), function)? };
        let keys = hashing.key_slice(KeyClass::Hashes, hashes.global());
        Ok(KernelKeys { keys, hashes: Some(hashes), string_hashes })
    }
    fn is_narrow(&self) -> bool {
        false
    }
    fn words<'k>(&'k self, hashed: &'k KernelKeys) -> Result<KeyWords<'k>> {
        Ok(KeyWords::Wide(hashed.hashes.as_ref().expect("strings are hashed").as_slice()))
    }
}

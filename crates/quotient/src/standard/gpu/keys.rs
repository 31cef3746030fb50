//! Keys on their way to a device.

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::batch::keys::{self as kinds, KeySlice};

use crate::key::Seed;
use crate::key::sealed::Raw;
use crate::{Error, Hashed, Key, Layout};

/// A key of fixed size that device memory can hold and kernels can hash: integers of 32 and 64 bits, and [`Hashed`].
/// Sealed, as [`Key`] is.
pub trait DeviceKey: Key + Pod {
    /// How kernels call it.
    #[doc(hidden)]
    const KIND: u32;
}

macro_rules! device_keys {
    ($($key:ty: $kind:ident;)*) => {$(
        impl DeviceKey for $key {
            const KIND: u32 = kinds::$kind;
        }
    )*};
}
device_keys! {
    u32: MIX_U32;
    i32: MIX_U32;
    u64: MIX_U64;
    i64: MIX_U64;
    Hashed: HASH;
}

/// Keys brought to a device.
pub(super) struct Uploaded {
    words: DeviceVec<u64>,
    kind: u32,
    pub(super) n: usize,
}

impl Uploaded {
    pub(super) fn new<K: Key>(stream: &Stream, layout: &Layout, keys: &[K]) -> Result<Uploaded, Error> {
        let n = keys.len();
        let (words, kind) = match K::raw(keys) {
            Raw::U32(keys) => {
                let mut words = stream.alloc_uninit::<u64>(n.div_ceil(2))?;
                stream.upload(words.as_mut_slice().cast::<u32>()?.slice_mut(..n), keys)?;
                (words, kinds::MIX_U32)
            }
            Raw::U64(keys) => (stream.from_slice(keys)?, kinds::MIX_U64),
            Raw::Hashes(hashes) => (stream.from_slice(hashes)?, kinds::HASH),
            Raw::Other => {
                use rayon::prelude::*;
                let seed = Seed::new(layout.seed);
                let hashes: Vec<u64> = keys.par_iter().with_min_len(1 << 10).map(|key| seed.hash(key)).collect();
                (stream.from_slice(&hashes)?, kinds::HASH)
            }
        };
        Ok(Uploaded { words, kind, n })
    }

    pub(super) fn keys(&self, layout: &Layout) -> KeySlice {
        KeySlice::new(self.words.global(), self.kind, Seed::new(layout.seed).spread())
    }
}

/// Keys that are on the device.
pub(super) fn key_slice<K: DeviceKey>(layout: &Layout, keys: DeviceSlice<'_, K>) -> KeySlice {
    KeySlice::new(keys.global(), K::KIND, Seed::new(layout.seed).spread())
}

//! Maps from hashes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use warpset_core::hash;

/// A map from 64-bit hashes. They are mixed once more, because users may bring their own.
pub(super) type ByHash<T> = HashMap<u64, T, BuildHasherDefault<Mixed>>;

/// [`hash::finalise`] of one `u64`.
#[derive(Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = hash::finalise(self.0 ^ value);
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

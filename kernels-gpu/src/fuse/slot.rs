//! Fingerprints of 8, 16 and 32 bits, and hashes from places in an array.

use core::ops::BitXor;

use warpset_core::fuse::hash::fingerprint;
use warpset_simt::{Global, Word};

/// A fingerprint in a slot.
pub trait Slot: Word + Copy + Eq + BitXor<Output = Self> + Into<u32> + 'static {
    /// Returns the low bits of `value`.
    fn of(value: u32) -> Self;

    /// Returns the fingerprint of a hash.
    #[inline(always)]
    fn of_hash(hash: u64) -> Self {
        Self::of(fingerprint(hash))
    }
}

macro_rules! slots {
    ($($slot:ty)*) => {$(
        impl Slot for $slot {
            #[inline(always)]
            fn of(value: u32) -> $slot {
                value as $slot
            }
        }
    )*};
}
slots! { u8 u16 u32 }

/// Contents of keys on their way to slots.
#[derive(Clone, Copy)]
pub struct Contents {
    /// Content of each key, if `given`.
    pub contents: Global<u32>,
    /// Whether keys have contents of their own, and not fingerprints of their hashes.
    pub given: bool,
}

impl Contents {
    /// Returns the content of a key with this hash in its graph.
    ///
    /// # Safety
    /// - If contents are given, key `key` has one, which nothing writes while the kernel runs.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn of<F: Slot>(self, key: usize, hash: u64) -> F {
        // SAFETY: this function's contract.
        if self.given { F::of(unsafe { self.contents.read_nc(key) }) } else { F::of_hash(hash) }
    }
}

/// The entry of a list of free slots that took no key.
pub const NONE: u32 = u32::MAX;

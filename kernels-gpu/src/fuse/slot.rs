//! Fingerprints of 8, 16 and 32 bits, and hashes from places in an array.

use core::ops::BitXor;

use warpset_core::fuse::hash::fingerprint;
use warpset_simt::Word;

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

/// The entry of a list of free slots that took no key.
pub const NONE: u32 = u32::MAX;

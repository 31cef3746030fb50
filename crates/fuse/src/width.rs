//! Fingerprints of 8, 16 and 32 bits.

use std::ops::BitXor;

use bytemuck::Pod;
use warpset_base::file::FileKind;

pub(crate) use sealed::Slot;

/// A fingerprint: `u8`, `u16` or `u32`. Sealed.
///
/// An absent key is a false positive with probability `2^-w` in a filter of `w`-bit fingerprints.
///
/// ```
/// use warpset_fuse::Width;
///
/// fn rate<F: Width>() -> f64 {
///     (-f64::from(F::BITS)).exp2()
/// }
/// assert_eq!([rate::<u8>(), rate::<u16>()], [1.0 / 256.0, 1.0 / 65536.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no fingerprint of a binary fuse filter",
    note = "take `u8`, `u16` or `u32`: `BinaryFuse8`, `BinaryFuse16` or `BinaryFuse32`"
)]
pub trait Width: sealed::Width {
    /// Bits of a fingerprint.
    const BITS: u32;
}

pub(crate) mod sealed {
    use super::*;

    pub trait Width: Slot {
        /// Its number in headers, with the version of its format.
        const STRUCTURE: FileKind;
        /// For messages.
        const NAME: &'static str;
    }

    /// Contents of a slot while a graph is assigned: a fingerprint, a value, or a value and a fingerprint above it.
    pub trait Slot: Pod + Eq + BitXor<Output = Self> + Into<u64> + Send + Sync {
        const SLOT_BITS: u32;

        /// Returns the low bits of a fingerprint.
        fn of(fingerprint: u32) -> Self;
        /// Returns the low bits of a content.
        fn low(content: u64) -> Self;
    }
}

macro_rules! widths {
    ($($width:ty: $structure:ident, $name:literal;)*) => {$(
        impl Width for $width {
            const BITS: u32 = <$width>::BITS;
        }
        impl sealed::Width for $width {
            const STRUCTURE: FileKind = FileKind::$structure;
            const NAME: &'static str = $name;
        }
    )*};
}
macro_rules! slots {
    ($($slot:ty)*) => {$(
        impl sealed::Slot for $slot {
            const SLOT_BITS: u32 = <$slot>::BITS;

            #[inline(always)]
            fn of(fingerprint: u32) -> $slot {
                fingerprint as $slot
            }
            #[inline(always)]
            fn low(content: u64) -> $slot {
                content as $slot
            }
        }
    )*};
}
slots! { u8 u16 u32 u64 }
widths! {
    u8: BINARY_FUSE_8, "binary fuse filter of 8 bits";
    u16: BINARY_FUSE_16, "binary fuse filter of 16 bits";
    u32: BINARY_FUSE_32, "binary fuse filter of 32 bits";
}

/// Returns the least width of fingerprints, 8, 16 or 32 bits, with which a filter's rate of false positives is at most
/// `fpr`; `None` for less than `2^-32`.
///
/// ```
/// assert_eq!([0.01, 0.001, 1e-9].map(warpset_fuse::bits_for), [Some(8), Some(16), Some(32)]);
/// assert_eq!(warpset_fuse::bits_for(1e-10), None);
/// ```
pub fn bits_for(fpr: f64) -> Option<u32> {
    [8, 16, 32].into_iter().find(|&bits| (-f64::from(bits)).exp2() <= fpr)
}

//! Masks for the compared part of keys.

use crate::sort::SortKey;

/// Bits by which keys are compared; keys that differ only in other bits are equal.
///
/// ```
/// use warpset_primitives::KeyMask;
///
/// let mask = KeyMask::<u32>::above(1); // the low bit says something else
/// assert_eq!(mask.of(7), mask.of(6));
/// assert!(mask.of(6) < mask.of(8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyMask<K>(K);

impl<K: SortKey> KeyMask<K> {
    /// Returns a mask that keeps all bits.
    pub fn all() -> Self {
        Self(K::from_bits(!0))
    }

    /// Returns a mask that keeps the bits set in `mask`.
    pub fn new(mask: K) -> Self {
        Self(mask)
    }

    /// Returns a mask that keeps the bits from `bit` on.
    pub fn above(bit: u32) -> Self {
        Self(K::from_bits(if bit < 128 { !0 << bit } else { 0 }))
    }

    /// Returns the compared part of `key`.
    #[inline]
    pub fn of(self, key: K) -> K {
        K::from_bits(key.bits() & self.0.bits())
    }

    pub(crate) fn bits(self) -> u128 {
        self.0.bits()
    }
}

impl<K: SortKey> Default for KeyMask<K> {
    fn default() -> Self {
        Self::all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_keep_what_is_above() {
        assert_eq!([0, 31, 32, 200].map(|bit| KeyMask::<u32>::above(bit).of(!0)), [!0, 1 << 31, 0, 0]);
        assert_eq!([1, 63, 64].map(|bit| KeyMask::<u64>::above(bit).of(!0)), [!1, 1 << 63, 0]);
        assert_eq!(
            [0, 63, 64, 127, 128].map(|bit| KeyMask::<u128>::above(bit).of(!0)),
            [!0, !0 << 63, !0 << 64, 1 << 127, 0]
        );
    }
}

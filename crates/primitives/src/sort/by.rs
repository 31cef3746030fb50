//! Bits of keys, and a direction.

use std::ops::Range;

use super::SortKey;
use crate::{Error, Result};

/// Bits of the keys that decide, and the direction. Items with equal bits keep their order in both directions, except
/// with [`By::last_first`].
///
/// ```
/// use warpset_primitives::sort::By;
/// let all_bits = By::ascending();
/// let fingerprint = By::descending().bits(4..32);
/// assert_ne!(all_bits, fingerprint);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct By {
    bits: Option<Range<u32>>,
    descending: bool,
    reversed: bool,
}

impl By {
    /// Returns the order with the least keys first, by all bits.
    pub fn ascending() -> By {
        By { bits: None, descending: false, reversed: false }
    }

    /// Returns the order with the greatest keys first, by all bits.
    pub fn descending() -> By {
        By { bits: None, descending: true, reversed: false }
    }

    /// Sorts by these bits only; bit 0 is the lowest. The time depends on these bits only, in steps of 8. Default: all
    /// bits.
    #[must_use]
    pub fn bits(self, bits: Range<u32>) -> By {
        By { bits: Some(bits), ..self }
    }

    /// Reverses the order of items with equal bits: the last one comes first. Costs a copy of the items if they are too
    /// many or too few for one launch of many blocks.
    #[must_use]
    pub fn last_first(self) -> By {
        By { reversed: true, ..self }
    }

    /// Whether items with equal bits are reversed.
    pub(crate) fn is_reversed(&self) -> bool {
        self.reversed
    }

    /// Returns this order for items that have already been reversed.
    pub(crate) fn of_reversed(&self) -> By {
        By { reversed: false, ..self.clone() }
    }

    /// Returns the bits of keys of type `K`; `0..0` if there are none.
    pub(crate) fn range<K: SortKey>(&self) -> Result<Range<u32>> {
        let width = 8 * size_of::<K>() as u32;
        let bits = self.bits.clone().unwrap_or(0..width);
        if bits.start > bits.end || bits.end > width {
            return Err(Error::InvalidBitRange { begin: bits.start, end: bits.end, width });
        }
        Ok(if bits.is_empty() { 0..0 } else { bits })
    }

    pub(crate) fn flip(&self) -> u32 {
        if self.descending { !0 } else { 0 }
    }
}

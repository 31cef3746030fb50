//! Remainders of a run compared all at once, as fields of a word.

use warpset_core::bits::lowest;
use warpset_core::quotient::rank_select::fields;

/// Remainders of one width, side by side in a word; incomplete ones are no fields.
///
/// Comparisons answer in the highest bit of each field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// Lowest bit of each field.
    lows: u64,
    width: u32,
}

impl Fields {
    #[inline(always)]
    pub(super) fn new(width: u32) -> Fields {
        Fields { lows: fields(width), width }
    }

    #[inline(always)]
    pub(super) fn width(self) -> u32 {
        self.width
    }

    /// Whether a word has this many fields.
    #[inline(always)]
    pub(super) fn hold(self, len: u64) -> bool {
        len * self.width as u64 <= 64
    }

    /// Returns the bits of the first `len` fields.
    #[inline(always)]
    pub(super) fn first(self, len: u64) -> u64 {
        lowest(len as u32 * self.width)
    }

    #[inline(always)]
    fn highs(self) -> u64 {
        self.lows << (self.width - 1)
    }

    /// Marks the fields with this value.
    #[inline(always)]
    pub(super) fn equal(self, word: u64, value: u64) -> u64 {
        let differ = word ^ self.lows.wrapping_mul(value);
        // A sum sets the highest bit of a field where another bit is set, and carries no further.
        let below = self.highs() - self.lows;
        !(((differ & below) + below) | differ) & self.highs()
    }

    /// Whether a field of `within`, which covers the lowest fields, has this value.
    #[inline(always)]
    pub(super) fn any_equal(self, word: u64, within: u64, value: u64) -> bool {
        self.lowest_equal(word, value) & within != 0
    }

    /// Returns the number of the first field with this value of `within`, which covers the lowest fields.
    #[inline(always)]
    pub(super) fn first_equal(self, word: u64, within: u64, value: u64) -> Option<u64> {
        let equal = self.lowest_equal(word, value) & within;
        if equal != 0 { Some(self.lowest_of(equal)) } else { None }
    }

    /// Returns the number of the first field of `within`, which covers the lowest fields, with this value in all bits
    /// but the lowest `dropped`, which are zero in `value`.
    #[inline(always)]
    pub(super) fn first_prefixed(self, word: u64, within: u64, value: u64, dropped: u32) -> Option<u64> {
        let kept = self.lows.wrapping_mul(lowest(self.width) & !lowest(dropped));
        self.first_equal(word & kept, within, value)
    }

    /// Marks the lowest field with this value, and possibly fields above it.
    #[inline(always)]
    fn lowest_equal(self, word: u64, value: u64) -> u64 {
        // A field is zero where it is equal; the lowest such field is the first with a highest bit set by the
        // subtraction.
        let differ = word ^ self.lows.wrapping_mul(value);
        differ.wrapping_sub(self.lows) & !differ & self.highs()
    }

    /// Marks the fields that are not less than this value.
    #[inline(always)]
    pub(super) fn not_below(self, word: u64, value: u64) -> u64 {
        let (highs, value) = (self.highs(), self.lows.wrapping_mul(value));
        // The highest bits are set on one side and clear on the other, so no difference borrows from the next field.
        let rest = (word | highs) - (value & !highs);
        (word & !value | !(word ^ value) & rest) & highs
    }

    /// Returns the number of the lowest marked field; there is one.
    #[inline(always)]
    pub(super) fn lowest_of(self, bits: u64) -> u64 {
        (self.lows & (bits ^ bits.wrapping_sub(1))).count_ones() as u64 - 1
    }
}

#[cfg(test)]
mod tests {
    use warpset_core::hash::finalise;

    use super::*;

    #[test]
    fn as_field_by_field() {
        let mut state = 3;
        for width in 1..64 {
            let fields = Fields::new(width);
            for i in 0..200 {
                state = finalise(state);
                let word = if i % 2 == 0 { state } else { state & finalise(!state) };
                let nth = |n: u64| word >> (n * width as u64) & lowest(width);
                let count = 64 / width as u64;
                assert!(fields.hold(count) && !fields.hold(count + 1));
                let value = if i % 3 == 0 { nth(state % count) } else { finalise(state ^ 1) & lowest(width) };
                let some = state % (count + 1);
                let wanted = (0..some).any(|n| nth(n) == value);
                assert_eq!(fields.any_equal(word, fields.first(some), value), wanted);
                let first = (0..some).find(|&n| nth(n) == value);
                assert_eq!(fields.first_equal(word, fields.first(some), value), first);
                let dropped = (state % width as u64) as u32;
                let prefixed = (0..some).find(|&n| nth(n) >> dropped == value >> dropped);
                let least = value & !lowest(dropped);
                assert_eq!(fields.first_prefixed(word, fields.first(some), least, dropped), prefixed);
                let (equal, not_below) = (fields.equal(word, value), fields.not_below(word, value));
                for n in 0..count {
                    let high = 1 << ((n + 1) * width as u64 - 1);
                    assert_eq!((equal & high != 0, not_below & high != 0), (nth(n) == value, nth(n) >= value));
                    assert_eq!((equal & fields.first(n) & high, fields.first(n + 1) & high), (0, high));
                }
                let found = (0..count).find(|&n| nth(n) == value);
                assert_eq!((equal != 0).then(|| fields.lowest_of(equal)), found, "{width}");
            }
        }
    }
}

//! Fields that lie one after the other, whatever their width, and windows of 64 bits.
//!
//! ```text
//!  fields of 24 bits:    word 0                                word 1
//!                  |  field 2 (low 16) | field 1 | field 0 |  ... | field 3 | field 2 (high 8) |
//!                   63               48          24        0                 8                 0
//! ```
//!
//! [`read_field`] and [`write_field`] touch only words that hold a part of the field: where the next word belongs to
//! another owner, or lies past the end. [`window`] and [`field`] always read two words of a slice, and so have no
//! branch.

use super::{ReadWords, WriteWords, lowest, word};

/// Reads the `width` bits from bit `at` on, `width` from 1 to 64. Reads no word that contains none of them.
#[inline]
pub fn read_field<W: ReadWords + ?Sized>(words: &W, at: u64, width: u32) -> u64 {
    let (index, shift) = (at / 64, at as u32 % 64);
    let mut value = words.word(index) >> shift;
    if shift + width > 64 {
        value |= words.word(index + 1) << (64 - shift);
    }
    value & lowest(width)
}

/// Sets the `width` bits from bit `at` on to `value`, which has no others; `width` from 1 to 64.
#[inline]
pub fn write_field<W: WriteWords + ?Sized>(words: &mut W, at: u64, width: u32, value: u64) {
    let (index, shift) = (at / 64, at as u32 % 64);
    words.replace(index, lowest(width) << shift, value << shift);
    if shift + width > 64 {
        words.replace(index + 1, lowest(shift + width - 64), value >> (64 - shift));
    }
}

/// Returns the 64 bits from bit `at` on, zeros past the end.
#[inline]
pub fn window(words: &[u64], at: u64) -> u64 {
    let index = (at / 64) as usize;
    let shift = at as u32 % 64;
    let low = word(words, index) >> shift;
    // Two shifts, since a shift by 64 has no meaning.
    low | ((word(words, index.wrapping_add(1)) << 1) << (63 - shift))
}

/// Returns the `width` bits from bit `at` on, `width` up to 63, zeros past the end.
#[inline]
pub fn field(words: &[u64], at: u64, width: u32) -> u64 {
    window(words, at) & ((1 << width) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads bit by bit.
    fn slow(words: &[u64], at: u64, width: u32) -> u64 {
        (0..width as u64).fold(0, |value, i| {
            let place = at.saturating_add(i);
            value | (word(words, (place / 64) as usize) >> (place % 64) & 1) << i
        })
    }

    const WORDS: [u64; 4] = [0xfedc_ba98_7654_3210, 0x0123_4567_89ab_cdef, 0x9e37_79b9_7f4a_7c15, !0];

    #[test]
    fn reads_every_width_at_every_place() {
        for at in 0..280 {
            for width in 1..=64 {
                let wanted = slow(&WORDS, at, width);
                assert_eq!(read_field(&WORDS[..], at, width), wanted, "{at} {width}");
                if width < 64 {
                    assert_eq!(field(&WORDS, at, width), wanted, "{at} {width}");
                }
            }
            assert_eq!(window(&WORDS, at), slow(&WORDS, at, 64));
            assert_eq!(field(&WORDS, at, 0), 0);
        }
        assert_eq!(window(&WORDS, u64::MAX), 0);
    }

    #[test]
    fn writes_every_width_at_every_place() {
        for at in 0..190 {
            for width in 1..=64 {
                let mut words = WORDS;
                let value = 0x5a5a_a5a5_3c3c_c3c3 & lowest(width);
                write_field(&mut words[..], at, width, value);
                assert_eq!(read_field(&words[..], at, width), value, "{at} {width}");
                for place in 0..256 {
                    if place < at || place >= at + width as u64 {
                        assert_eq!(slow(&words, place, 1), slow(&WORDS, place, 1), "{at} {width} {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_word_is_touched_without_a_part_of_the_field() {
        struct Only(u64);
        impl ReadWords for Only {
            fn word(&self, index: u64) -> u64 {
                assert_eq!(index, self.0);
                !0
            }
        }
        impl WriteWords for Only {
            fn replace(&mut self, index: u64, mask: u64, bits: u64) {
                assert_eq!(index, self.0);
                assert_eq!(bits & !mask, 0);
            }
        }
        for width in 1..=64 {
            for shift in 0..=64 - width {
                let at = 5 * 64 + shift as u64;
                assert_eq!(read_field(&Only(5), at, width), lowest(width));
                write_field(&mut Only(5), at, width, lowest(width));
            }
        }
    }
}

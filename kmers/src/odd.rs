//! Letters other than A, C, G, T: their numbers, and sequences without white space and U.

use std::ops::{AddAssign, SubAssign};

use memchr::{memchr, memchr3};

use crate::roll::is_white;

/// Numbers of letters other than A, C, G, T.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OddLetters {
    /// Letters that ended a k-mer.
    pub others: u64,
    /// Letters U, which are read as T.
    pub uracils: u64,
}

impl OddLetters {
    /// Counts them in a text.
    pub(crate) fn of(text: &[u8]) -> OddLetters {
        let mut odd = OddLetters::default();
        if is_plain::<true>(text) {
            return odd;
        }
        // Sums of a chunk fit into a byte, so that vectors of bytes add them.
        for chunk in text.chunks(u8::MAX.into()) {
            let (mut uracils, mut others) = (0u8, 0u8);
            for &letter in chunk {
                uracils += u8::from(is_uracil(letter));
                others += u8::from(!is_allowed::<true>(letter) & !is_uracil(letter));
            }
            odd += OddLetters { others: others.into(), uracils: uracils.into() };
        }
        odd
    }
}

impl AddAssign for OddLetters {
    fn add_assign(&mut self, other: OddLetters) {
        self.others += other.others;
        self.uracils += other.uracils;
    }
}

impl SubAssign for OddLetters {
    fn sub_assign(&mut self, other: OddLetters) {
        self.others -= other.others;
        self.uracils -= other.uracils;
    }
}

fn is_uracil(letter: u8) -> bool {
    letter & 0xdf == b'U'
}

/// Whether all letters are A, C, G, T in either case; white space is allowed if `WHITE`.
#[inline]
pub(crate) fn is_plain<const WHITE: bool>(text: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn by_avx2<const WHITE: bool>(text: &[u8]) -> bool {
            is_plain_here::<WHITE>(text)
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, detected above.
            return unsafe { by_avx2::<WHITE>(text) };
        }
    }
    is_plain_here::<WHITE>(text)
}

/// Answers as [`is_plain`], with the instructions of the function that calls it. Blocks of 32 letters become vectors;
/// the last block overlaps the one before, since a loop over the rest would take longer than all of them.
#[inline(always)]
fn is_plain_here<const WHITE: bool>(text: &[u8]) -> bool {
    let mut plain = [1u8; 32];
    let Some(last) = text.last_chunk::<32>() else {
        let mut rest = 1;
        for &letter in text {
            rest &= u8::from(is_allowed::<WHITE>(letter));
        }
        return rest == 1;
    };
    let (blocks, _) = text.as_chunks::<32>();
    let mut i = 0;
    while i <= blocks.len() {
        let block = if i < blocks.len() { &blocks[i] } else { last };
        let mut lane = 0;
        while lane < 32 {
            plain[lane] &= u8::from(is_allowed::<WHITE>(block[lane]));
            lane += 1;
        }
        i += 1;
    }
    plain == [1; 32]
}

#[inline(always)]
fn is_allowed<const WHITE: bool>(letter: u8) -> bool {
    let upper = letter & 0xdf;
    let is_base = (upper == b'A') | (upper == b'C') | (upper == b'G') | (upper == b'T');
    is_base | (WHITE & is_white(letter))
}

/// Appends letters without white space, with T for U.
pub(crate) fn tidy(text: &[u8], to: &mut Vec<u8>) {
    // Lines are checked one by one only where it is needed.
    let has_lines_only = is_plain::<true>(text) && memchr3(b'\r', b' ', b'\t', text).is_none();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(memchr(b'\n', rest).unwrap_or(rest.len()));
        if has_lines_only || is_plain::<false>(line) {
            to.extend_from_slice(line);
        } else {
            let letters = line.iter().filter(|&&letter| !is_white(letter));
            to.extend(letters.map(|&letter| letter - u8::from(is_uracil(letter))));
        }
        rest = after.get(1..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_told_apart() {
        for len in [0, 1, 31, 32, 33, 100, 1000] {
            let plain = b"ACGTacgt".iter().copied().cycle().take(len).collect::<Vec<u8>>();
            assert!(is_plain::<false>(&plain) && is_plain::<true>(&plain));
            for at in 0..len {
                for letter in [b'U', b'u', b'N', b' ', b'\t', b'\n', b'\r', 0, 1, 0x21, b'@', 0xff] {
                    let mut text = plain.clone();
                    text[at] = letter;
                    let is_white = letter.is_ascii_whitespace();
                    assert!(!is_plain::<false>(&text) && is_plain::<true>(&text) == is_white, "{letter}");
                    let uracils = u64::from(letter & 0xdf == b'U');
                    let others = u64::from(!is_white) - uracils;
                    assert_eq!(OddLetters::of(&text), OddLetters { others, uracils });
                    let mut tidied = b"x".to_vec();
                    tidy(&text, &mut tidied);
                    let wanted = match letter {
                        b'U' => b"T".to_vec(),
                        b'u' => b"t".to_vec(),
                        _ if is_white => Vec::new(),
                        _ => vec![letter],
                    };
                    assert!(tidied == [b"x", &plain[..at], &wanted, &plain[at + 1..]].concat());
                }
            }
        }
    }
}

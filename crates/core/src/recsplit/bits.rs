//! Reading bit vectors of 64-bit words, least significant bit first.
//!
//! Source: sections 2.1 (selection) and 4.4. Reads past the end give zeros, so that a damaged file can lead to a wrong
//! answer but never to a read out of bounds.

/// The word at `index`, zero past the end.
#[inline]
pub fn word(words: &[u64], index: usize) -> u64 {
    match words.get(index) {
        Some(&word) => word,
        None => 0,
    }
}

/// The 64 bits from bit position `at` on.
#[inline]
pub fn window(words: &[u64], at: u64) -> u64 {
    let index = (at / 64) as usize;
    let shift = at as u32 % 64;
    let low = word(words, index) >> shift;
    // Two shifts, since a shift by 64 has no meaning.
    low | ((word(words, index.wrapping_add(1)) << 1) << (63 - shift))
}

/// `width <= 63` bits from bit position `at` on.
#[inline]
pub fn field(words: &[u64], at: u64, width: u32) -> u64 {
    window(words, at) & ((1 << width) - 1)
}

/// Index of the one of `word` that has `rank` ones below it; 64 if there is none. Portable.
#[inline]
pub const fn select(mut word: u64, rank: u32) -> u32 {
    // Halve by popcounts: six steps without a table or a branch that depends on data order.
    if rank >= word.count_ones() {
        return 64;
    }
    let mut rank = rank;
    let mut at = 0;
    let mut width = 32;
    while width > 0 {
        let ones = (word & ((1 << width) - 1)).count_ones();
        if rank >= ones {
            rank -= ones;
            word >>= width;
            at += width;
        }
        width /= 2;
    }
    at
}

/// The number of low bits that an Elias-Fano list of `count > 0` values up to `last` keeps verbatim (4.5.1).
#[inline]
pub const fn elias_fano_low_bits(last: u64, count: u64) -> u32 {
    let quotient = if last == u64::MAX { last / count } else { (last + 1) / count };
    if quotient == 0 { 0 } else { 63 - quotient.leading_zeros() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_every_one() {
        for word in [1, u64::MAX, 0x8000_0000_0000_0000, 0x1234_5678_9abc_def0, 0xaaaa_5555_0000_ffff] {
            let mut rank = 0;
            for at in 0..64 {
                if word >> at & 1 == 1 {
                    assert_eq!(select(word, rank), at);
                    rank += 1;
                }
            }
            assert_eq!(select(word, rank), 64);
        }
        assert_eq!(select(0, 0), 64);
    }

    #[test]
    fn windows_cross_words_and_ends() {
        let words = [0xfedc_ba98_7654_3210, 0x0123_4567_89ab_cdef];
        assert_eq!(window(&words, 0), words[0]);
        assert_eq!(window(&words, 4), 0xffed_cba9_8765_4321);
        assert_eq!(window(&words, 124), 0);
        assert_eq!(window(&words, 128), 0);
        assert_eq!(window(&words, u64::MAX), 0);
        assert_eq!(field(&words, 60, 8), 0xff);
        assert_eq!(field(&words, 60, 0), 0);
    }
}

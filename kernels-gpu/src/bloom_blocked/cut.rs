//! A key's bits in 64-bit words of its block, when block size and number of sectors are constants and the number of bits
//! is not.
//!
//! The little-endian image of a block depends on its size, its sectors and the bits a key, not on the word size of its
//! [`Shape`](warpset_core::bloom::blocked::Shape). So 20 cuts stand for all shapes, and all shifts are constants.

use warpset_core::bloom::blocked::{MAX_HASHES, Pattern, SALT};

/// Blocks of `BLOCK_BITS` in `SECTORS` sectors.
pub struct Cut<const BLOCK_BITS: u32, const SECTORS: u32>;

/// The multipliers of the bits that can fall in one word, in the order of [`Cut::mask`].
pub type Salts = [u32; MAX_HASHES as usize];

impl<const BLOCK_BITS: u32, const SECTORS: u32> Cut<BLOCK_BITS, SECTORS> {
    const SECTOR_BITS: u32 = {
        assert!(BLOCK_BITS.is_power_of_two() && SECTORS.is_power_of_two() && SECTORS * 32 <= BLOCK_BITS);
        BLOCK_BITS / SECTORS
    };
    /// Sectors that a word holds: two of 32 bits, else one, or a part of one.
    const IN_WORD: u32 = if Self::SECTOR_BITS == 32 { 2 } else { 1 };
    /// Words of a sector.
    const WORDS: u32 = if Self::SECTOR_BITS > 64 { Self::SECTOR_BITS / 64 } else { 1 };
    /// Bits that a sector gets at most: fewer than two if it could have been halved, and 32 in all.
    const MOST: u32 = if Self::WORDS > 1 { 2 } else { MAX_HASHES / SECTORS };
    /// Bits that can fall in one word.
    const DRAWS: u32 = Self::IN_WORD * Self::MOST;

    /// Which bit of a key draw `n` of word `word` is.
    #[inline(always)]
    const fn index(word: u32, n: u32) -> u32 {
        word * Self::IN_WORD / Self::WORDS + n % Self::IN_WORD + n / Self::IN_WORD * SECTORS
    }

    /// The multipliers for word `word`; constants if it is one.
    #[inline(always)]
    pub fn salts(word: u32, hashes: u32) -> Salts {
        let mut salts = [0; MAX_HASHES as usize];
        let mut n = 0;
        while n < Self::DRAWS {
            // The same for all lanes: the first bit of this round.
            if n < Self::IN_WORD || n / Self::IN_WORD * SECTORS < hashes {
                salts[n as usize] = SALT[(Self::index(word, n) % MAX_HASHES) as usize];
            }
            n += 1;
        }
        salts
    }

    /// The bits of a key in word `word`.
    #[inline(always)]
    pub fn mask(pattern: Pattern, hashes: u32, word: u32, salts: &Salts) -> u64 {
        let part = word % Self::WORDS;
        let mut mask = 0u64;
        let mut n = 0;
        while n < Self::DRAWS {
            let first = n < Self::IN_WORD; // there are as many bits as sectors, at least
            if first || n / Self::IN_WORD * SECTORS < hashes {
                let position = pattern.a.wrapping_mul(salts[n as usize]).wrapping_add(pattern.b)
                    >> (32 - Self::SECTOR_BITS.trailing_zeros());
                let mut live = first || Self::index(word, n) < hashes;
                if Self::WORDS > 1 {
                    live = live && position / 64 == part;
                }
                mask |= (live as u64) << (position % 64 + 32 * (n % Self::IN_WORD));
            }
            n += 1;
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::bloom::blocked::Shape;
    use warpset_core::hash::finalise;

    fn agrees<const BLOCK_BITS: u32, const SECTORS: u32>() {
        let mut shapes = 0;
        for word_bits in [32, 64] {
            for hashes in 1..=MAX_HASHES {
                let Some(shape) = Shape::new(BLOCK_BITS, word_bits, hashes).filter(|s| s.sectors() == SECTORS) else {
                    continue;
                };
                shapes += 1;
                for seed in 0..20 {
                    let pattern = Pattern::of(finalise(seed));
                    for word in 0..BLOCK_BITS / 64 {
                        let salts = Cut::<BLOCK_BITS, SECTORS>::salts(word, hashes);
                        let expected = match word_bits {
                            64 => pattern.word_mask64(shape, word),
                            _ => {
                                let halves = [2 * word, 2 * word + 1].map(|w| pattern.word_mask32(shape, w) as u64);
                                halves[1] << 32 | halves[0]
                            }
                        };
                        let mask = Cut::<BLOCK_BITS, SECTORS>::mask(pattern, hashes, word, &salts);
                        assert_eq!(mask, expected, "{shape:?}, word {word}");
                    }
                }
            }
        }
        assert!(shapes > 0);
    }

    #[test]
    fn every_cut_has_the_bits_of_its_shapes() {
        agrees::<64, 1>();
        agrees::<64, 2>();
        agrees::<128, 1>();
        agrees::<128, 2>();
        agrees::<128, 4>();
        agrees::<256, 1>();
        agrees::<256, 2>();
        agrees::<256, 4>();
        agrees::<256, 8>();
        agrees::<512, 1>();
        agrees::<512, 2>();
        agrees::<512, 4>();
        agrees::<512, 8>();
        agrees::<512, 16>();
        agrees::<1024, 1>();
        agrees::<1024, 2>();
        agrees::<1024, 4>();
        agrees::<1024, 8>();
        agrees::<1024, 16>();
        agrees::<1024, 32>();
    }
}

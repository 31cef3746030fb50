//! Blocked Bloom filter with parameters: addressing and bit patterns.
//!
//! All bits of a key fall in one block, so that a lookup costs one or two memory transactions. Source: Putze, Sanders,
//! Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007 (blocked filters); the cut of a block into
//! sectors that each get the same number of bits: Lang, Neumann, Kemper, Boncz, "Performance-Optimal Filtering",
//! VLDB 2019 (cache-sectorised filters).
//!
//! A block of `block_bits` holds `words` words. The `hashes` bits of a key are dealt in turn to `sectors` equal parts
//! of the block: one sector per word or, with fewer bits than words, the largest power of two not above `hashes` (a
//! sector then spans several words). Within its sector each bit takes any position.
//!
//! ```text
//!  hash (64 bits, uniform)
//!    | high bits: block = floor(hash / 2^64 * blocks)
//!    | a = low 32 bits, b = high 32 bits of hash * PATTERN   (independent of the high bits of hash)
//!    '-> bit i: sector i mod sectors, position (a * SALT[i] + b) >> (32 - log2(sector bits))
//! ```
//!
//! Block and pattern use independent parts of the hash: a library that took both from the same low bits had
//! false-positive rates of 20 to 100 times theory at block counts that are powers of two. The high bits choose the
//! block; both `a` and `b` depend on lower bits. Two keys of one block have equal patterns about as rarely as 64-bit
//! hashes allow.

use super::reduce64;

/// The smallest block, in bits.
pub const MIN_BLOCK_BITS: u32 = 64;
/// The largest block, in bits.
pub const MAX_BLOCK_BITS: u32 = 1024;
/// The most bits per key.
pub const MAX_HASHES: u32 = 32;
/// The most words in a block: 1024 bits in words of 32.
pub const MAX_WORDS_PER_BLOCK: usize = 32;

/// Odd multiplier from the hash to the second half of the pattern's source.
const PATTERN: u64 = 0xd6e8_feb8_6659_fd93;

/// One odd multiplier for each bit of a key: successive outputs of SplitMix64 from state 0, high halves, made odd.
pub const SALT: [u32; MAX_HASHES as usize] = {
    let mut salt = [0; MAX_HASHES as usize];
    let mut state = 0u64;
    let mut i = 0;
    while i < salt.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        salt[i] = (z >> 32) as u32 | 1;
        i += 1;
    }
    salt
};

/// Returns the block of `hash`, below `blocks`, from the high bits.
#[inline]
pub const fn block_of(hash: u64, blocks: u64) -> u64 {
    reduce64(hash, blocks)
}

/// The parameters of a block; plain data that a kernel can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct BlockShape {
    block_bits: u32,
    word_bits: u32,
    hashes: u32,
    sectors: u32,
}

const _: () = assert!(size_of::<BlockShape>() == 16);

impl BlockShape {
    /// Checks the parameters: block a power of two from 64 to 1024, words of 32 or 64 bits, 1 to 32 bits per key and
    /// not more than half the block.
    pub const fn new(block_bits: u32, word_bits: u32, hashes: u32) -> Option<BlockShape> {
        let block_ok = block_bits.is_power_of_two() && block_bits >= MIN_BLOCK_BITS && block_bits <= MAX_BLOCK_BITS;
        let word_ok = word_bits == 32 || word_bits == 64;
        let hashes_ok = hashes >= 1 && hashes <= MAX_HASHES && hashes <= block_bits / 2;
        if block_ok && word_ok && hashes_ok { Some(Self::derive(block_bits, word_bits, hashes)) } else { None }
    }

    /// Returns a shape known at compile time: the same values, and every shift of [`Pattern::word_mask32`] and
    /// [`Pattern::word_mask64`] constant.
    ///
    /// Wrong parameters fail to compile.
    #[inline]
    pub const fn of<const BLOCK_BITS: u32, const WORD_BITS: u32, const HASHES: u32>() -> BlockShape {
        const {
            match Self::new(BLOCK_BITS, WORD_BITS, HASHES) {
                Some(shape) => shape,
                None => panic!("block of 64 to 1024 bits, words of 32 or 64, 1 to 32 bits per key"),
            }
        }
    }

    const fn derive(block_bits: u32, word_bits: u32, hashes: u32) -> BlockShape {
        let words = block_bits / word_bits;
        let most = 1 << hashes.ilog2();
        BlockShape { block_bits, word_bits, hashes, sectors: if most < words { most } else { words } }
    }

    /// Returns the number of bits in a block.
    #[inline]
    pub const fn block_bits(self) -> u32 {
        self.block_bits
    }
    /// Returns the number of bits in a word.
    #[inline]
    pub const fn word_bits(self) -> u32 {
        self.word_bits
    }
    /// Returns the number of bits per key, `k`.
    #[inline]
    pub const fn hashes(self) -> u32 {
        self.hashes
    }
    /// Returns the number of parts of the block that get bits in turn; a power of two, at most the number of words.
    #[inline]
    pub const fn sectors(self) -> u32 {
        self.sectors
    }
    /// Returns the number of bits in a sector.
    #[inline]
    pub const fn sector_bits(self) -> u32 {
        self.block_bits >> self.sectors.trailing_zeros()
    }
    /// Returns the number of words in a block.
    #[inline]
    pub const fn words(self) -> u32 {
        self.block_bits >> self.word_bits.trailing_zeros()
    }
    /// Returns the number of a key's bits in sector `sector`.
    #[inline]
    pub const fn hashes_in_sector(self, sector: u32) -> u32 {
        (self.hashes + self.sectors - 1 - sector) >> self.sectors.trailing_zeros()
    }
}

/// Source of a key's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Multiplied by the salts.
    pub a: u32,
    /// Added to each product.
    pub b: u32,
}

impl Pattern {
    /// Returns the pattern of `hash`.
    #[inline]
    pub const fn of(hash: u64) -> Pattern {
        Pattern { a: hash as u32, b: (hash.wrapping_mul(PATTERN) >> 32) as u32 }
    }

    /// Returns 32 mixed bits for bit `i` of the key; the high ones count.
    #[inline]
    const fn draw(self, i: u32) -> u32 {
        self.a.wrapping_mul(SALT[i as usize % SALT.len()]).wrapping_add(self.b)
    }

    /// Returns the place of bit `i` of the key in its block, below `block_bits`.
    #[inline]
    pub const fn bit(self, shape: BlockShape, i: u32) -> u32 {
        let sector_bits = shape.sector_bits();
        let position = self.draw(i) >> (32 - sector_bits.trailing_zeros());
        (i & (shape.sectors - 1)) * sector_bits + position
    }

    /// Returns the bits of the key in word `word` of its block, for words of 32 bits.
    #[inline]
    pub const fn word_mask32(self, shape: BlockShape, word: u32) -> u32 {
        self.word_mask(shape, word) as u32
    }

    /// Returns the bits of the key in word `word` of its block, for words of 64 bits.
    #[inline]
    pub const fn word_mask64(self, shape: BlockShape, word: u32) -> u64 {
        self.word_mask(shape, word)
    }

    #[inline]
    const fn word_mask(self, shape: BlockShape, word: u32) -> u64 {
        let sector_bits = shape.sector_bits();
        let sector_shift = sector_bits.trailing_zeros();
        // The word is part `part` of its sector.
        let sector = (word << shape.word_bits.trailing_zeros()) >> sector_shift;
        let part = word & ((sector_bits >> shape.word_bits.trailing_zeros()) - 1);
        let mut mask = 0u64;
        let mut i = sector;
        while i < shape.hashes {
            let position = self.draw(i) >> (32 - sector_shift);
            let bit = 1u64 << (position & (shape.word_bits - 1));
            if position >> shape.word_bits.trailing_zeros() == part {
                mask |= bit;
            }
            i += shape.sectors;
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes() -> impl Iterator<Item = BlockShape> {
        [64, 128, 256, 512, 1024].into_iter().flat_map(|block| {
            [32, 64].into_iter().flat_map(move |word| (1..=32).filter_map(move |k| BlockShape::new(block, word, k)))
        })
    }

    #[test]
    fn wrong_shapes_are_refused() {
        for (block, word, hashes) in
            [(32, 32, 4), (2048, 64, 8), (96, 32, 4), (256, 16, 4), (256, 128, 4), (256, 32, 0), (256, 32, 33)]
        {
            assert_eq!(BlockShape::new(block, word, hashes), None, "{block} {word} {hashes}");
        }
        assert!(BlockShape::new(64, 64, 32).is_some());
        assert_eq!(BlockShape::of::<256, 32, 8>(), BlockShape::new(256, 32, 8).unwrap());
    }

    #[test]
    fn word_masks_hold_exactly_the_bits() {
        for shape in shapes() {
            let mut in_sectors = 0;
            for sector in 0..shape.sectors() {
                in_sectors += shape.hashes_in_sector(sector);
            }
            assert_eq!(in_sectors, shape.hashes());
            for seed in 0..20 {
                let pattern = Pattern::of(crate::hash::finalise(seed));
                let mut expected = [0u64; MAX_WORDS_PER_BLOCK];
                for i in 0..shape.hashes() {
                    let bit = pattern.bit(shape, i);
                    assert!(bit < shape.block_bits());
                    expected[(bit / shape.word_bits()) as usize] |= 1 << (bit % shape.word_bits());
                }
                for word in 0..shape.words() {
                    let mask = pattern.word_mask64(shape, word);
                    assert_eq!(mask, expected[word as usize], "{shape:?}, word {word}");
                    if shape.word_bits() == 32 {
                        assert_eq!(pattern.word_mask32(shape, word) as u64, mask);
                    }
                }
            }
        }
    }

    #[test]
    fn positions_are_even_within_one_block() {
        // Hashes that share their 24 high bits, hence their block in any filter of up to 2^24 blocks.
        let shape = BlockShape::of::<256, 32, 8>();
        let mut counts = [0u32; 256];
        let n = 1 << 16;
        for i in 0..n {
            let pattern = Pattern::of(0x1234_5600_0000_0000 | crate::hash::finalise(i) >> 24);
            for bit in 0..8 {
                counts[pattern.bit(shape, bit) as usize] += 1;
            }
        }
        let expected = n as f64 * 8.0 / 256.0;
        let chi_square: f64 = counts.iter().map(|&c| (c as f64 - expected) * (c as f64 - expected) / expected).sum();
        // 248 degrees of freedom: mean 248, standard deviation 22.
        assert!(chi_square < 248.0 + 6.0 * 22.0, "{chi_square}");
    }
}

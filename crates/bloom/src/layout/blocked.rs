//! The blocked layout with parameters on the CPU.
//!
//! The number of bits per key is a constant of the inner loops (one copy per number, 1 to 32); block and word size are
//! not. Blocks of at least 256 bits with sectors of 32 or 64 bits use AVX2; blocks of 64 bits are read as one word.

use warpset_base::file::FileKind;
use warpset_core::bloom::blocked::{self, BlockShape, MAX_HASHES, Pattern};
use warpset_core::hash;

use super::Layout;
use super::engine::{Engine, OneBlock};
use super::split_block::fold_blocks;
use crate::{Error, FileError, Key, rates};
use warpset_base::processor::prefetch;

/// The most blocks, so that bit numbers fit 64 bits with room to spare.
const MAX_BLOCKS: u64 = 1 << 48;

/// Parameters of a [`BlockedBloom`](crate::BlockedBloom): number of blocks, their [`BlockShape`], seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockedLayout {
    blocks: u64,
    shape: BlockShape,
    seed: u64,
    spread: u64,
}

impl BlockedLayout {
    /// Returns a filter of `blocks` blocks, 1 to 2^48.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::ZeroCapacity`].
    pub fn new(blocks: u64, shape: BlockShape, seed: u64) -> Result<BlockedLayout, Error> {
        match blocks {
            0 => Err(Error::ZeroCapacity),
            1..=MAX_BLOCKS => Ok(BlockedLayout { blocks, shape, seed, spread: hash::spread_seed(seed) }),
            _ => {
                let bytes = |blocks: u64| blocks.saturating_mul(shape.block_bits() as u64 / 8);
                Err(Error::TooLarge { bytes: bytes(blocks), limit: bytes(MAX_BLOCKS) })
            }
        }
    }

    /// Returns block size, word size and bits per key.
    pub fn shape(&self) -> BlockShape {
        self.shape
    }

    /// Returns the seed of the keys' hash.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

impl Layout for BlockedLayout {
    const STRUCTURE: FileKind = FileKind::BLOCKED_BLOOM;
    const NAME: &'static str = "BlockedBloom";

    fn blocks(&self) -> u64 {
        self.blocks
    }
    #[inline(always)]
    fn words_per_block(&self) -> usize {
        self.shape.block_bits() as usize / 32
    }
    fn bits_per_block(&self) -> u64 {
        self.shape.block_bits() as u64
    }
    fn hashes(&self) -> u32 {
        self.shape.hashes()
    }
    fn expected_fpr(&self, keys: u64) -> f64 {
        rates::blocked_fpr(self.blocks, self.shape, keys)
    }
    fn predicted_fill(&self, keys: u64) -> f64 {
        rates::blocked_fill(self.shape, keys as f64 / self.blocks as f64)
    }
}

/// Calls `$function::<K>` with the number of bits per key as constant `K`.
macro_rules! with_constant_hashes {
    ($hashes:expr, $function:ident($($argument:expr),*)) => {
        with_constant_hashes!(@ $hashes, $function, ($($argument),*),
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    (@ $hashes:expr, $function:ident, $arguments:tt, $($k:literal)*) => {
        match $hashes {
            $($k => $function::<$k> $arguments,)*
            _ => $function::<32> $arguments,
        }
    };
}

const _: () = assert!(MAX_HASHES == 32);

/// Places of a key's bits, for a shape with `K` bits per key.
#[derive(Clone, Copy)]
struct Places<const K: usize> {
    shift: u32,
    sector: [u32; K],
    words: usize,
}

impl<const K: usize> Places<K> {
    #[inline(always)]
    fn of(shape: BlockShape) -> Places<K> {
        Places {
            shift: 32 - shape.sector_bits().trailing_zeros(),
            sector: std::array::from_fn(|i| (i as u32 & (shape.sectors() - 1)) * shape.sector_bits()),
            words: shape.block_bits() as usize / 32,
        }
    }

    /// Returns a bit's place; see [`Pattern::bit`].
    #[inline(always)]
    fn bit(&self, pattern: Pattern, i: usize) -> u32 {
        self.sector[i] + (pattern.a.wrapping_mul(blocked::SALT[i]).wrapping_add(pattern.b) >> self.shift)
    }

    /// Returns 1 if all bits are set, else 0, without a branch.
    #[inline(always)]
    fn all_set(&self, block: &[u32], hash: u64) -> u32 {
        let pattern = Pattern::of(hash);
        let mut all = 1;
        for i in 0..K {
            let bit = self.bit(pattern, i);
            all &= block[(bit / 32) as usize] >> (bit % 32);
        }
        all
    }
}

fn contains_batch<const K: usize>(layout: &BlockedLayout, words: &[u32], hashes: &[u64]) -> u64 {
    let places = Places::<K>::of(layout.shape);
    let mut bits = 0;
    for (i, hash) in hashes.iter().enumerate() {
        let first = layout.block_of(hash) as usize * places.words;
        bits |= (places.all_set(&words[first..first + places.words], *hash) as u64) << i;
    }
    bits
}

/// Inserts hashes in their order; bit `i` of the result tells whether hash `i` changed a bit.
fn insert_batch<const K: usize>(layout: &BlockedLayout, words: &mut [u32], first_block: u64, hashes: &[u64]) -> u64 {
    let places = Places::<K>::of(layout.shape);
    let mut changed = 0;
    for (n, hash) in hashes.iter().enumerate() {
        let first = (layout.block_of(hash) - first_block) as usize * places.words;
        let block = &mut words[first..first + places.words];
        let pattern = Pattern::of(*hash);
        let mut all = 1;
        for i in 0..K {
            let bit = places.bit(pattern, i);
            let word = &mut block[(bit / 32) as usize];
            all &= *word >> (bit % 32);
            *word |= 1 << (bit % 32);
        }
        changed |= ((all ^ 1) as u64) << n;
    }
    changed
}

/// Bits of a key in a block of 64 bits, which is one word of one sector or two.
#[derive(Clone, Copy)]
struct WordMask<const K: usize> {
    shift: u32,
    /// Place of the second sector; zero if there is one sector.
    second: u32,
}

impl<const K: usize> WordMask<K> {
    #[inline(always)]
    fn of(shape: BlockShape) -> WordMask<K> {
        WordMask { shift: 32 - shape.sector_bits().trailing_zeros(), second: shape.sector_bits() % 64 }
    }

    #[inline(always)]
    fn mask(self, hash: u64) -> u64 {
        let pattern = Pattern::of(hash);
        let mut mask = 0;
        for (i, salt) in blocked::SALT[..K].iter().enumerate() {
            let place = pattern.a.wrapping_mul(*salt).wrapping_add(pattern.b) >> self.shift;
            mask |= 1u64 << (place + if i % 2 == 0 { 0 } else { self.second });
        }
        mask
    }
}

#[inline(always)]
fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Does the work of [`contains_batch`] for blocks of 64 bits, each read once.
fn contains_batch_64<const K: usize>(layout: &BlockedLayout, words: &[u32], hashes: &[u64]) -> u64 {
    let (mask, blocks) = (WordMask::<K>::of(layout.shape), words.as_chunks::<2>().0);
    let mut bits = 0;
    for (i, hash) in hashes.iter().enumerate() {
        let missing = mask.mask(*hash) & !join(blocks[layout.block_of(hash) as usize]);
        bits |= u64::from(missing == 0) << i;
    }
    bits
}

/// Does the work of [`insert_batch`] for blocks of 64 bits, each read and written once.
fn insert_batch_64<const K: usize>(layout: &BlockedLayout, words: &mut [u32], first_block: u64, hashes: &[u64]) -> u64 {
    let (mask, blocks) = (WordMask::<K>::of(layout.shape), words.as_chunks_mut::<2>().0);
    let mut changed = 0;
    for (i, hash) in hashes.iter().enumerate() {
        let block = &mut blocks[(layout.block_of(hash) - first_block) as usize];
        let old = join(*block);
        let new = old | mask.mask(*hash);
        *block = [new as u32, (new >> 32) as u32];
        changed |= u64::from(new != old) << i;
    }
    changed
}

impl BlockedLayout {
    /// Whether the AVX2 code covers this shape.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn is_vector_shape(&self) -> bool {
        self.shape.block_bits() >= 256 && self.shape.sector_bits() <= 64 && std::is_x86_feature_detected!("avx2")
    }

    #[inline]
    fn contains_batch_portable(&self, words: &[u32], hashes: &[u64]) -> u64 {
        if self.shape.block_bits() == 64 {
            return with_constant_hashes!(self.shape.hashes(), contains_batch_64(self, words, hashes));
        }
        with_constant_hashes!(self.shape.hashes(), contains_batch(self, words, hashes))
    }

    #[inline]
    fn insert_batch_portable(&self, words: &mut [u32], first_block: u64, hashes: &[u64]) -> u64 {
        if self.shape.block_bits() == 64 {
            return with_constant_hashes!(self.shape.hashes(), insert_batch_64(self, words, first_block, hashes));
        }
        with_constant_hashes!(self.shape.hashes(), insert_batch(self, words, first_block, hashes))
    }
}

impl Engine for BlockedLayout {
    type Probe = u64;
    type Word = u32;

    #[inline(always)]
    fn probe<K: Key + ?Sized>(&self, key: &K) -> u64 {
        key.seeded_hash(self.seed, self.spread)
    }
    #[inline(always)]
    fn hash_of(probe: &u64) -> u64 {
        *probe
    }
    #[inline(always)]
    fn prefetch(&self, words: &[u32], probe: &u64) {
        let first = self.block_of(probe) as usize * self.words_per_block();
        prefetch(words, first);
        if self.shape.block_bits() > 512 {
            prefetch(words, first + 16);
        }
    }
    #[inline]
    fn contains(&self, words: &[u32], probe: &u64) -> bool {
        self.contains_batch(words, &[*probe]) != 0
    }
    #[inline]
    fn contains_batch(&self, words: &[u32], probes: &[u64]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.is_vector_shape() {
            // SAFETY: `is_vector_shape` detected AVX2.
            return unsafe { avx2::contains_batch(self, words, probes) };
        }
        self.contains_batch_portable(words, probes)
    }
    fn folded(&self, factor: u64) -> Result<Self, Error> {
        fold_blocks(self.blocks, factor).map(|blocks| BlockedLayout { blocks, ..*self })
    }
    fn folded_from(&self, new: u64, part: u64, factor: u64) -> u64 {
        new * factor + part
    }
    fn block_rate(&self, block: &[u32]) -> f64 {
        // A sector is one or several words of 32 bits, or half of one where words have 32 bits and blocks 64.
        let words = (self.shape.sector_bits() / 32) as usize;
        block
            .chunks(words)
            .enumerate()
            .map(|(sector, bits)| {
                let ones: u32 = bits.iter().map(|w| w.count_ones()).sum();
                let fill = ones as f64 / self.shape.sector_bits() as f64;
                fill.powi(self.shape.hashes_in_sector(sector as u32) as i32)
            })
            .product()
    }
    fn cardinality(&self, ones: u64) -> f64 {
        self.blocks as f64 * rates::blocked_mean_at_fill(self.shape, ones as f64 / self.settable_bits() as f64)
    }
    fn difference(&self, other: &Self) -> Option<(&'static str, u64, u64)> {
        [
            ("block bits", self.shape.block_bits() as u64, other.shape.block_bits() as u64),
            ("word bits", self.shape.word_bits() as u64, other.shape.word_bits() as u64),
            ("bits per key", self.shape.hashes() as u64, other.shape.hashes() as u64),
            ("seed", self.seed, other.seed),
            ("bytes", 4 * self.words(), 4 * other.words()),
        ]
        .into_iter()
        .find(|(_, left, right)| left != right)
    }
    fn to_fields(&self) -> [u64; 8] {
        let shape = self.shape;
        let packed = [shape.block_bits() as u64, shape.word_bits() as u64, shape.hashes() as u64];
        [self.blocks, packed[0], packed[1], packed[2], self.seed, 0, 0, 0]
    }
    fn from_fields(fields: [u64; 8]) -> Result<Self, Error> {
        super::zero_fields(&fields[5..])?;
        let [blocks, block_bits, word_bits, hashes, seed, ..] = fields;
        let small = |value: u64, field| u32::try_from(value).map_err(|_| FileError::InvalidHeader { field, value });
        let shape = BlockShape::new(
            small(block_bits, "block bits")?,
            small(word_bits, "word bits")?,
            small(hashes, "bits per key")?,
        )
        .ok_or(FileError::InvalidHeader { field: "block bits, word bits and bits per key", value: block_bits })?;
        BlockedLayout::new(blocks, shape, seed)
            .map_err(|_| FileError::InvalidHeader { field: "blocks", value: blocks }.into())
    }
}

impl OneBlock for BlockedLayout {
    #[inline(always)]
    fn block_of(&self, probe: &u64) -> u64 {
        blocked::block_of(*probe, self.blocks)
    }
    #[inline]
    fn insert(&self, words: &mut [u32], first_block: u64, probe: &u64) -> bool {
        self.insert_and_tell(words, first_block, &[*probe]) != 0
    }
    #[inline]
    fn insert_batch(&self, words: &mut [u32], first_block: u64, probes: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if self.is_vector_shape() {
            // SAFETY: `is_vector_shape` detected AVX2.
            unsafe { avx2::insert_batch::<false>(self, words, first_block, probes) };
            return;
        }
        self.insert_batch_portable(words, first_block, probes);
    }
    #[inline]
    fn insert_and_tell(&self, words: &mut [u32], first_block: u64, probes: &[u64]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.is_vector_shape() {
            // SAFETY: `is_vector_shape` detected AVX2.
            return unsafe { avx2::insert_batch::<true>(self, words, first_block, probes) };
        }
        self.insert_batch_portable(words, first_block, probes)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Blocks of 256 bits and more, in sectors of 32 or 64 bits: every sector is a lane.
    //!
    //! `R` is the number of registers per block, `WIDE` whether sectors have 64 bits (two 32-bit words are such a
    //! sector in memory too). Eight bits of a key are drawn at a time: a register of narrow sectors, or two of wide
    //! ones.

    use std::arch::x86_64::*;

    use super::*;

    /// Returns ones in the lanes of draw `g` that hold bits below `hashes`, else zeros.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn lanes_in_use(hashes: u32, g: u32) -> __m256i {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let used = _mm256_cmpgt_epi32(_mm256_set1_epi32(hashes as i32 - 8 * g as i32), lanes);
        _mm256_srli_epi32::<31>(used)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn salts(g: u32) -> __m256i {
        let salts = &blocked::SALT[8 * g as usize..][..8];
        // SAFETY: `salts` is 32 bytes long; the load takes any alignment.
        unsafe { _mm256_loadu_si256(salts.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn masks<const R: usize, const WIDE: bool>(hash: u64, hashes: u32) -> [__m256i; R] {
        let pattern = Pattern::of(hash);
        let (a, b) = (_mm256_set1_epi32(pattern.a as i32), _mm256_set1_epi32(pattern.b as i32));
        let mut masks = [_mm256_setzero_si256(); R];
        for g in 0..hashes.div_ceil(8) {
            let used = lanes_in_use(hashes, g);
            let draw = _mm256_add_epi32(_mm256_mullo_epi32(a, salts(g)), b);
            if WIDE {
                let position = _mm256_srli_epi32::<26>(draw);
                let halves = [
                    (_mm256_castsi256_si128(used), _mm256_castsi256_si128(position)),
                    (_mm256_extracti128_si256::<1>(used), _mm256_extracti128_si256::<1>(position)),
                ];
                for (i, (used, position)) in halves.into_iter().enumerate() {
                    let bits = _mm256_sllv_epi64(_mm256_cvtepu32_epi64(used), _mm256_cvtepu32_epi64(position));
                    let mask = &mut masks[(2 * g as usize + i) % R];
                    *mask = _mm256_or_si256(*mask, bits);
                }
            } else {
                let mask = &mut masks[g as usize % R];
                *mask = _mm256_or_si256(*mask, _mm256_sllv_epi32(used, _mm256_srli_epi32::<27>(draw)));
            }
        }
        masks
    }

    #[target_feature(enable = "avx2")]
    fn contains<const R: usize, const WIDE: bool>(layout: &BlockedLayout, words: &[u32], hashes: &[u64]) -> u64 {
        let registers = words.as_chunks::<8>().0;
        let k = layout.shape.hashes();
        let mut bits = 0;
        for (i, hash) in hashes.iter().enumerate() {
            let block = &registers[layout.block_of(hash) as usize * R..][..R];
            let mut all = 1;
            for (register, mask) in block.iter().zip(masks::<R, WIDE>(*hash, k)) {
                // SAFETY: a register is 32 bytes long; the load takes any alignment.
                let register = unsafe { _mm256_loadu_si256(register.as_ptr().cast()) };
                all &= _mm256_testc_si256(register, mask);
            }
            bits |= (all as u64) << i;
        }
        bits
    }

    /// Inserts hashes. With `TELLS`, bit `i` of the result tells whether hash `i` changed a bit; else the result is
    /// zero.
    #[target_feature(enable = "avx2")]
    fn insert<const R: usize, const WIDE: bool, const TELLS: bool>(
        layout: &BlockedLayout,
        words: &mut [u32],
        first: u64,
        hashes: &[u64],
    ) -> u64 {
        let registers = words.as_chunks_mut::<8>().0;
        let k = layout.shape.hashes();
        let mut changed = 0;
        for (i, hash) in hashes.iter().enumerate() {
            let block = &mut registers[(layout.block_of(hash) - first) as usize * R..][..R];
            let mut all = 1;
            for (register, mask) in block.iter_mut().zip(masks::<R, WIDE>(*hash, k)) {
                let pointer = register.as_mut_ptr().cast();
                // SAFETY: `pointer` is 32 bytes of a block borrowed mutably; load and store take any alignment.
                unsafe {
                    let old = _mm256_loadu_si256(pointer);
                    if TELLS {
                        all &= _mm256_testc_si256(old, mask);
                    }
                    _mm256_storeu_si256(pointer, _mm256_or_si256(old, mask));
                }
            }
            changed |= ((all ^ 1) as u64) << i;
        }
        changed
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn contains_batch(layout: &BlockedLayout, words: &[u32], hashes: &[u64]) -> u64 {
        match (layout.shape.block_bits(), layout.shape.sector_bits()) {
            (256, 32) => contains::<1, false>(layout, words, hashes),
            (256, _) => contains::<1, true>(layout, words, hashes),
            (512, 32) => contains::<2, false>(layout, words, hashes),
            (512, _) => contains::<2, true>(layout, words, hashes),
            (_, 32) => contains::<4, false>(layout, words, hashes),
            _ => contains::<4, true>(layout, words, hashes),
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn insert_batch<const TELLS: bool>(
        layout: &BlockedLayout,
        words: &mut [u32],
        first_block: u64,
        hashes: &[u64],
    ) -> u64 {
        match (layout.shape.block_bits(), layout.shape.sector_bits()) {
            (256, 32) => insert::<1, false, TELLS>(layout, words, first_block, hashes),
            (256, _) => insert::<1, true, TELLS>(layout, words, first_block, hashes),
            (512, 32) => insert::<2, false, TELLS>(layout, words, first_block, hashes),
            (512, _) => insert::<2, true, TELLS>(layout, words, first_block, hashes),
            (_, 32) => insert::<4, false, TELLS>(layout, words, first_block, hashes),
            _ => insert::<4, true, TELLS>(layout, words, first_block, hashes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_sets_and_sees_the_bits_of_core() {
        let hashes: Vec<u64> = (0..64).map(hash::finalise).collect();
        for block_bits in [64, 128, 256, 512, 1024] {
            for word_bits in [32, 64] {
                for k in if cfg!(miri) { 5..=5 } else { 1..=32 } {
                    let shape = BlockShape::new(block_bits, word_bits, k).unwrap();
                    let layout = BlockedLayout::new(7, shape, 0).unwrap();
                    let len = layout.words() as usize;
                    let mut expected = vec![0u32; len];
                    for hash in &hashes[..30] {
                        for i in 0..k {
                            let bit =
                                layout.block_of(hash) * block_bits as u64 + Pattern::of(*hash).bit(shape, i) as u64;
                            expected[(bit / 32) as usize] |= 1 << (bit % 32);
                        }
                    }
                    let (mut fast, mut portable, mut single) = (vec![0; len], vec![0; len], vec![0; len]);
                    layout.insert_batch(&mut fast, 0, &hashes[..30]);
                    layout.insert_batch_portable(&mut portable, 0, &hashes[..30]);
                    let mut told = vec![0; len];
                    let changed = layout.insert_and_tell(&mut told, 0, &hashes[..30]);
                    for (i, hash) in hashes[..30].iter().enumerate() {
                        let before = layout.contains(&single, hash);
                        assert_eq!(layout.insert(&mut single, 0, hash), !before);
                        assert_eq!(changed >> i & 1 == 1, !before);
                    }
                    assert!(
                        fast == expected && portable == expected && single == expected && told == expected,
                        "{shape:?}"
                    );
                    let found = layout.contains_batch(&fast, &hashes);
                    assert_eq!(found, layout.contains_batch_portable(&fast, &hashes), "{shape:?}");
                    for (i, hash) in hashes.iter().enumerate() {
                        assert_eq!(found >> i & 1 == 1, layout.contains(&fast, hash), "{shape:?}");
                    }
                }
            }
        }
    }
}

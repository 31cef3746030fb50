//! Insertion and lookup when block size and number of sectors are constants and the number of bits per key is not.
//!
//! The little-endian image of a block depends on its size, its sectors and the bits per key, not on the word size of
//! its [`BlockShape`](warpset_core::bloom::blocked::BlockShape). So 20 pairs of a block size and a number of sectors
//! cover all shapes, and all shifts are constants.

use warpset_core::bloom::blocked::{MAX_HASHES, Pattern, SALT, block_of};
use warpset_simt::shared::Shared;
use warpset_simt::{Global, GlobalMut, atomic, warp};

#[cfg(feature = "bodies")]
use crate::bloom::batch_partition::Insertion;

/// Blocks of `BLOCK_BITS` in `SECTORS` sectors.
#[cfg(feature = "bodies")]
pub struct Sectored<const BLOCK_BITS: u32, const SECTORS: u32>;

/// The multipliers of the bits that can fall in one word, in the order of [`Sectored::mask`].
pub type Salts = [u32; MAX_HASHES as usize];

#[cfg(feature = "bodies")]
impl<const BLOCK_BITS: u32, const SECTORS: u32> Sectored<BLOCK_BITS, SECTORS> {
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

    /// Returns the index of a key's bit: draw `n` of word `word`.
    #[inline(always)]
    const fn index(word: u32, n: u32) -> u32 {
        word * Self::IN_WORD / Self::WORDS + n % Self::IN_WORD + n / Self::IN_WORD * SECTORS
    }

    /// Returns the multipliers for word `word`; constants if it is one.
    #[inline(always)]
    pub fn salts(word: u32, hashes: u32) -> Salts {
        Self::salts_from(word, hashes, |i| SALT[i as usize])
    }

    /// Returns the multipliers for word `word`, by `salt`.
    #[inline(always)]
    fn salts_from(word: u32, hashes: u32, salt: impl Fn(u32) -> u32) -> Salts {
        let mut salts = [0; MAX_HASHES as usize];
        let mut n = 0;
        while n < Self::DRAWS {
            // Equal for all lanes: the first bit of this round.
            if n < Self::IN_WORD || n / Self::IN_WORD * SECTORS < hashes {
                salts[n as usize] = salt(Self::index(word, n) % MAX_HASHES);
            }
            n += 1;
        }
        salts
    }

    /// Returns the place of bit `i` of a key in its block; `salt` is salt `i`.
    #[inline(always)]
    pub fn bit(pattern: Pattern, i: u32, salt: u32) -> u32 {
        let position =
            pattern.a.wrapping_mul(salt).wrapping_add(pattern.b) >> (32 - Self::SECTOR_BITS.trailing_zeros());
        i % SECTORS * Self::SECTOR_BITS + position
    }

    /// Returns the bits of a key in word `word`.
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

/// Inserts the hashes of the lanes that `valid` has set, one lane per 64-bit word of a key's block. `salts_of` gives
/// the multipliers of a word.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `words` holds `blocks > 0` blocks of these, 8-byte aligned, and is only accessed atomically.
#[cfg(feature = "bodies")]
#[inline(always)]
pub(crate) unsafe fn insert_warp<const BLOCK_BITS: u32, const SECTORS: u32>(
    words: GlobalMut<u32>,
    blocks: u64,
    hashes: u32,
    hash: u64,
    valid: u32,
    salts_of: impl Fn(u32) -> Salts,
) {
    let lanes = BLOCK_BITS / 64;
    let lane = warp::lane_id();
    let word = lane % lanes;
    let block = block_of(hash, blocks);
    let pattern = Pattern::of(hash);
    let wide = blocks > 1 << 32;
    let words = words.cast::<u64>();
    for round in 0..lanes {
        let source = round * (32 / lanes) + lane / lanes;
        // SAFETY: the whole warp is here (`wide` is the same for all); `block_of` stays below `blocks`.
        unsafe {
            let low = warp::shuffle_idx(warp::FULL_MASK, block as u32, source);
            let high = if wide { warp::shuffle_idx(warp::FULL_MASK, (block >> 32) as u32, source) } else { 0 };
            let block = (high as u64) << 32 | low as u64;
            let pattern = Pattern {
                a: warp::shuffle_idx(warp::FULL_MASK, pattern.a, source),
                b: warp::shuffle_idx(warp::FULL_MASK, pattern.b, source),
            };
            let mask = Sectored::<BLOCK_BITS, SECTORS>::mask(pattern, hashes, word, &salts_of(word));
            if valid >> source & 1 != 0 && mask != 0 {
                atomic::reduce_or(words.at(block as usize * lanes as usize + word as usize), mask);
            }
        }
    }
}

/// An insertion into a filter of `blocks` of these, `hashes` bits per key.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub(crate) struct SectoredInsertion<const BLOCK_BITS: u32, const SECTORS: u32> {
    pub blocks: u64,
    pub hashes: u32,
}

#[cfg(feature = "bodies")]
impl<const BLOCK_BITS: u32, const SECTORS: u32> Insertion for SectoredInsertion<BLOCK_BITS, SECTORS> {
    const SALTS: &'static [u32] = &SALT;
    const BLOCK_WORDS: u32 = BLOCK_BITS / 32;

    #[inline(always)]
    fn block_of(self, hash: u64, blocks: u64) -> u64 {
        block_of(hash, blocks)
    }

    #[inline(always)]
    unsafe fn insert_warp(self, words: GlobalMut<u32>, salts: Shared<u32>, hash: u64, valid: u32) {
        // Read again for every key: in registers they would keep thread blocks from running.
        // SAFETY: indices are below the number of salts; the rest is this function's contract.
        unsafe {
            let salts = |word| Sectored::<BLOCK_BITS, SECTORS>::salts_from(word, self.hashes, |i| salts.get(i));
            insert_warp::<BLOCK_BITS, SECTORS>(words, self.blocks, self.hashes, hash, valid, salts);
        }
    }

    #[inline(always)]
    unsafe fn setter(self, salts: Shared<u32>) -> impl Fn(Shared<u32>, u32, u64) {
        let hashes = self.hashes;
        let begin = warp::lane_id() % hashes;
        move |here, first, hash| {
            let pattern = Pattern::of(hash);
            let mut i = begin;
            for _ in 0..hashes {
                // SAFETY: `i` is below the bits per key, and so below the number of salts; bits lie in the block, and
                // its words are valid by the contract.
                unsafe {
                    let bit = Sectored::<BLOCK_BITS, SECTORS>::bit(pattern, i, salts.get(i));
                    here.reduce_or(first + bit / 32, 1 << (bit % 32));
                }
                i += 1;
                if i == hashes {
                    i = 0;
                }
            }
        }
    }
}

/// Whether the filter contains each lane's hash.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `words` holds `blocks > 0` blocks of these, 16-byte aligned, not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
pub(crate) unsafe fn contains_warp<const BLOCK_BITS: u32, const SECTORS: u32>(
    words: Global<u32>,
    blocks: u64,
    hashes: u32,
    hash: u64,
) -> bool {
    let block = block_of(hash, blocks);
    let pattern = Pattern::of(hash);
    let missing = |word: u32, held: u64| {
        let salts = Sectored::<BLOCK_BITS, SECTORS>::salts(word, hashes);
        Sectored::<BLOCK_BITS, SECTORS>::mask(pattern, hashes, word, &salts) & !held
    };
    // SAFETY: `block_of` stays below `blocks`; the whole warp is here, and `BLOCK_BITS` is a constant.
    unsafe {
        let words = words.cast::<u64>();
        match BLOCK_BITS {
            64 => missing(0, words.read_nc(block as usize)) == 0,
            128 => {
                let held = words.read2_nc(block as usize * 2);
                missing(0, held[0]) | missing(1, held[1]) == 0
            }
            256 => {
                let (a, b) = (words.read2_nc(block as usize * 4), words.read2_nc(block as usize * 4 + 2));
                missing(0, a[0]) | missing(1, a[1]) | missing(2, b[0]) | missing(3, b[1]) == 0
            }
            512 => contains_lanes::<BLOCK_BITS, SECTORS, 4>(words, block, blocks > 1 << 32, hashes, pattern),
            _ => contains_lanes::<BLOCK_BITS, SECTORS, 8>(words, block, blocks > 1 << 32, hashes, pattern),
        }
    }
}

/// Looks up the keys of `LANES` lanes in turn, 16 bytes per lane.
///
/// # Safety
/// - The contract of [`contains_warp`].
/// - `block` is below the number of blocks, and below 2^32 unless `wide`.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn contains_lanes<const BLOCK_BITS: u32, const SECTORS: u32, const LANES: usize>(
    words: Global<u64>,
    block: u64,
    wide: bool,
    hashes: u32,
    pattern: Pattern,
) -> bool {
    let lane = warp::lane_id();
    let pair = lane % LANES as u32;
    let group = lane - pair;
    let salts = [2 * pair, 2 * pair + 1].map(|word| Sectored::<BLOCK_BITS, SECTORS>::salts(word, hashes));
    let mut held = [[0u64; 2]; LANES];
    let mut found = false;
    // SAFETY: the whole warp is here; sources are lanes of the own group; blocks are in range.
    unsafe {
        for j in 0..LANES {
            let source = group + j as u32;
            let low = warp::shuffle_idx(warp::FULL_MASK, block as u32, source);
            let high = if wide { warp::shuffle_idx(warp::FULL_MASK, (block >> 32) as u32, source) } else { 0 };
            let block = ((high as u64) << 32 | low as u64) as usize;
            held[j] = words.read2_nc((block * LANES + pair as usize) * 2);
        }
        for j in 0..LANES {
            let source = group + j as u32;
            let pattern = Pattern {
                a: warp::shuffle_idx(warp::FULL_MASK, pattern.a, source),
                b: warp::shuffle_idx(warp::FULL_MASK, pattern.b, source),
            };
            let a = Sectored::<BLOCK_BITS, SECTORS>::mask(pattern, hashes, 2 * pair, &salts[0]) & !held[j][0];
            let b = Sectored::<BLOCK_BITS, SECTORS>::mask(pattern, hashes, 2 * pair + 1, &salts[1]) & !held[j][1];
            let votes = warp::ballot(warp::FULL_MASK, a | b != 0);
            if pair == j as u32 {
                found = votes >> group & ((1 << LANES) - 1) == 0;
            }
        }
    }
    found
}

/// Three kernels for each block size and number of sectors; and on the host a table of them, which names the
/// module.
macro_rules! sectored_kernels {
    ($module:ident, $for_each:ident: $($insert:ident, $contains:ident, $insert_parts:ident: $block_bits:literal, $sectors:literal, $min_blocks:literal, $min_parts:literal;)*) => {
        $(
            kernel! {
                #[doc = concat!("Inserts `n` keys, one per thread, into a filter of ", $block_bits, "-bit blocks in ", $sectors,
                    " sectors.")]
                ///
                /// # Safety
                /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads, no shared memory.
                /// - `words`: valid for `blocks > 0` blocks, 8-byte aligned, only accessed atomically while the kernel
                ///   runs.
                /// - `hashes`: bits per key, of a shape with these sectors.
                /// - `keys`: `n` keys of `kind`, not written while the kernel runs.
                #[launch_bounds(256, 4)]
                pub unsafe fn $insert(
                    words: GlobalMut<u32>, blocks: u64, hashes: u32, keys: Global<u64>,
                    kind: $crate::batch::keys::KeyKind, spread: u64, n: usize,
                ) {
                    let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
                    // SAFETY: `i < n`; no lane has left; the rest is this kernel's contract.
                    unsafe {
                        let valid = warp::ballot(warp::FULL_MASK, i < n);
                        let hash = if i < n { $crate::batch::keys::mix_at(keys, kind, spread, i) } else { 0 };
                        let salts = Sectored::<$block_bits, $sectors>::salts(warp::lane_id() & ($block_bits / 64 - 1), hashes);
                        insert_warp::<$block_bits, $sectors>(words, blocks, hashes, hash, valid, |_| salts);
                    }
                }
            }
            kernel! {
                #[doc = concat!("Looks up `n` keys, one per thread, in a filter of ", $block_bits, "-bit blocks in ", $sectors,
                    " sectors.")]
                ///
                /// # Safety
                /// - Launch, `hashes`, `keys`: as for the insertion.
                /// - `words`: valid for `blocks > 0` blocks, 16-byte aligned, not written while the kernel runs.
                /// - `out`: room for the form of result (see [`crate::batch::results`]), used by this launch alone.
                #[launch_bounds(256, $min_blocks)]
                pub unsafe fn $contains(
                    words: Global<u32>, blocks: u64, hashes: u32, keys: Global<u64>,
                    kind: $crate::batch::keys::KeyKind, spread: u64, n: usize, form: u32, out: GlobalMut<u64>,
                ) {
                    let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
                    // SAFETY: `n > 0`; no lane has left; all threads reach `put`. A lane without a key looks up the
                    // last one, because the words may be a part of a filter without block 0.
                    unsafe {
                        let hash = $crate::batch::keys::mix_at(keys, kind, spread, if i < n { i } else { n - 1 });
                        let found = $crate::bloom::sectors::contains_warp::<$block_bits, $sectors>(words, blocks, hashes, hash);
                        $crate::batch::results::put(form, out, i, n, i < n && found);
                    }
                }
            }
            kernel! {
                #[doc = concat!("The rest of a test-and-insert by parts, for a filter of ", $block_bits, "-bit blocks in ", $sectors,
                    " sectors: see [`split_block_insert_parts`](crate::bloom::split_block::split_block_insert_parts).")]
                ///
                /// # Safety
                /// The contract of `split_block_insert_parts`; `hashes` as for the insertion.
                #[launch_bounds(384, $min_parts)]
                pub unsafe fn $insert_parts(
                    words: GlobalMut<u32>, blocks: u64, hashes: u32, keys: Global<u64>, counts: Global<u32>,
                    parts: Parts, form: u32, out: GlobalMut<u64>, stretch: u32,
                ) {
                    let insertion = $crate::bloom::sectors::SectoredInsertion::<$block_bits, $sectors> { blocks, hashes };
                    // SAFETY: the caller keeps this kernel's contract.
                    unsafe { batch_partition::insert_part(insertion, words, blocks, keys, counts, parts, form, out, stretch) }
                }
            }
        )*

        /// Calls `$then!` with three names for its output, the module, and the names of its kernels, for the host's
        /// dispatch.
        #[cfg(not(target_arch = "nvptx64"))]
        #[macro_export]
        macro_rules! $for_each {
            ($then:ident, $insertion:ident, $lookup:ident, $insertion_of_parts:ident) => {
                $then! {
                    $insertion, $lookup, $insertion_of_parts, $module:
                    $($insert, $contains, $insert_parts: $block_bits, $sectors;)*
                }
            };
        }
    };
}
pub(crate) use sectored_kernels;

/// Threads of a block, in every kernel here.
pub const BLOCK: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::bloom::blocked::BlockShape;
    use warpset_core::hash::finalise;

    fn agrees<const BLOCK_BITS: u32, const SECTORS: u32>() {
        let mut shapes = 0;
        for word_bits in [32, 64] {
            for hashes in 1..=MAX_HASHES {
                let Some(shape) = BlockShape::new(BLOCK_BITS, word_bits, hashes).filter(|s| s.sectors() == SECTORS)
                else {
                    continue;
                };
                shapes += 1;
                for seed in 0..20 {
                    let pattern = Pattern::of(finalise(seed));
                    for i in 0..hashes {
                        let bit = Sectored::<BLOCK_BITS, SECTORS>::bit(pattern, i, SALT[i as usize]);
                        assert_eq!(bit, pattern.bit(shape, i), "{shape:?}, bit {i}");
                    }
                    for word in 0..BLOCK_BITS / 64 {
                        let salts = Sectored::<BLOCK_BITS, SECTORS>::salts(word, hashes);
                        let expected = match word_bits {
                            64 => pattern.word_mask64(shape, word),
                            _ => {
                                let halves = [2 * word, 2 * word + 1].map(|w| pattern.word_mask32(shape, w) as u64);
                                halves[1] << 32 | halves[0]
                            }
                        };
                        let mask = Sectored::<BLOCK_BITS, SECTORS>::mask(pattern, hashes, word, &salts);
                        assert_eq!(mask, expected, "{shape:?}, word {word}");
                    }
                }
            }
        }
        assert!(shapes > 0);
    }

    #[test]
    fn all_have_the_bits_of_their_shapes() {
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

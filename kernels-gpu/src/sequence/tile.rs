//! Tiles of positions for the kernels of sequence filters: from letters or packed bases to windows of sixteen bases on
//! both strands, in shared memory.
//!
//! ```text
//! tile    256 words of 32 positions, a thread each: one before its own, 248 that are its own, and what follows
//! warp    32 rounds of 32 positions, one lane each; of them 31 are its own
//! pair    u64  sixteen bases, the first lowest, and above them their reverse complement; 512 per tile
//! smers   u32  a bit per position: set where an s-mer of a k-mer begins
//! ```

use warpset_core::minimizer::{code, codes_of_eight, is_base};
use warpset_core::sequence_filter::{Both, Shape, kmers_of, reverse_complement, smers_of};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, thread, warp};

/// Threads per block in every kernel that uses tiles.
pub const BLOCK: u32 = 256;
/// Words of 32 positions that a block loads.
const TILE: u32 = BLOCK;
/// Rounds of a warp that no other warp does.
pub const OWN_ROUNDS: u32 = 31;
/// Words of 32 positions that a block answers for.
pub const OWN_WORDS: usize = (BLOCK / 32 * OWN_ROUNDS) as usize;
/// Dynamic shared memory, in bytes.
pub const SHARED_BYTES: u32 = 16 * TILE + 4 * TILE + 4 * TILE;

/// Source of positions.
pub trait Source: Copy {
    /// Returns the bases of word `i`, the first lowest, and one bit per position without a base; positions past the end
    /// have none.
    ///
    /// # Safety
    /// The source is valid as the contract of the kernel states.
    unsafe fn word(self, i: usize) -> (u64, u32);
}

/// Source of letters.
#[derive(Clone, Copy)]
pub struct Letters {
    /// Letters, `n` bytes.
    pub letters: Global<u8>,
    /// Number of letters.
    pub n: usize,
    /// Whether the address of the letters is a multiple of 16.
    pub aligned: bool,
}

impl Source for Letters {
    #[inline(always)]
    unsafe fn word(self, i: usize) -> (u64, u32) {
        let first = 32 * i;
        let (mut bases, mut breaks) = (0u64, !0u32);
        if self.aligned && first + 32 <= self.n {
            breaks = 0;
            for half in 0..2 {
                // SAFETY: the 32 bytes from `first` on are below `n`, and at a multiple of 16.
                let eights = unsafe { self.letters.cast::<u64>().read2_nc(4 * i + 2 * half) };
                for j in 0..2 {
                    let (codes, broken) = codes_of_eight(eights[j]);
                    bases |= (codes as u64) << (32 * half + 16 * j);
                    breaks |= (broken as u32) << (16 * half + 8 * j);
                }
            }
        } else if first < self.n {
            let count = if self.n - first < 32 { self.n - first } else { 32 };
            for j in 0..count {
                // SAFETY: `first + j < n`.
                let letter = unsafe { self.letters.read_nc(first + j) };
                bases |= ((code(letter)) as u64) << (2 * j);
                breaks &= !((is_base(letter) as u32) << j);
            }
        }
        (bases, breaks)
    }
}

/// Source of packed bases, with one bit per position without a base.
#[derive(Clone, Copy)]
pub struct Packed {
    /// Bases, 32 positions per word, 2 bits each.
    pub bases: Global<u64>,
    /// Positions without a base, 32 per word.
    pub breaks: Global<u32>,
    /// Words of either.
    pub words: usize,
}

impl Source for Packed {
    #[inline(always)]
    unsafe fn word(self, i: usize) -> (u64, u32) {
        // SAFETY: `i` is below `words`.
        if i < self.words { unsafe { (self.bases.read_nc(i), self.breaks.read_nc(i)) } } else { (0, !0) }
    }
}

/// Tile in shared memory.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Tile {
    pairs: Shared<u64>,
    breaks: Shared<u32>,
    smers: Shared<u32>,
}

#[cfg(feature = "bodies")]
impl Tile {
    /// Returns the tile in the shared memory of the block.
    #[inline(always)]
    pub fn in_shared() -> Tile {
        Tile { pairs: shared::dynamic(0), breaks: shared::dynamic(16 * TILE), smers: shared::dynamic(20 * TILE) }
    }

    /// Loads the words from `first` on, preceded by the one before them: word `i` of the source becomes word `i + 1 -
    /// first` here.
    ///
    /// # Safety
    /// All threads of the block arrive here, with [`SHARED_BYTES`] of shared memory that nothing else uses; the
    /// contract of [`Source::word`].
    #[inline(always)]
    pub unsafe fn load(self, source: impl Source, first: usize, shape: Shape) {
        let t = thread::thread_idx_x();
        // SAFETY: each thread writes its own two pairs and one word, and barriers separate writes from reads by others;
        // `Source::word` is valid by the contract.
        unsafe {
            let after = first + t as usize;
            let (bases, breaks) = if after > 0 { source.word(after - 1) } else { (0, !0) };
            for half in 0..2 {
                let word = (bases >> (32 * half)) as u32;
                self.pairs.set(2 * t + half, word as u64 | (reverse_complement(word) as u64) << 32);
            }
            self.breaks.set(t, breaks);
            thread::sync_threads();
            let before = if t > 0 { self.kmers(t - 1, shape) } else { 0 };
            self.smers.set(t, smers_of(before as u64 | (self.kmers(t, shape) as u64) << 32, shape.smers()));
            thread::sync_threads();
        }
    }

    /// Returns the sixteen bases from position `32 * word + place` on; bases past the tile are arbitrary.
    ///
    /// # Safety
    /// After [`load`](Tile::load); `word` is below 252 and `place` below 64.
    #[inline(always)]
    pub unsafe fn both(self, word: u32, place: u32) -> Both {
        let (i, shift) = (2 * word + place / 16, 2 * (place % 16));
        // SAFETY: `i + 1 < 512`, since `word` is below 252 and `place` below 64.
        let (here, next) = unsafe { (self.pairs.get(i), self.pairs.get(i + 1)) };
        let bases = (here as u32) as u64 | next << 32;
        let others = next >> 32 | here & !0xffff_ffff;
        Both { word: (bases >> shift) as u32, other: ((others << shift) >> 32) as u32 }
    }

    /// Returns one bit per position of a word, set if an s-mer of a k-mer begins there; correct from the second word to
    /// the last but two.
    ///
    /// # Safety
    /// After [`load`](Tile::load); `word` is below 256.
    #[inline(always)]
    pub unsafe fn smers(self, word: u32) -> u32 {
        // SAFETY: `word` is below 256, and `load` has written the word, by the contract.
        unsafe { self.smers.get(word) }
    }

    /// Returns one bit per position of a word, set if a k-mer begins there; the last two words are treated as if
    /// breaks followed the tile.
    ///
    /// # Safety
    /// After [`load`](Tile::load), or the barrier in it; `word` is below 256.
    #[inline(always)]
    pub unsafe fn kmers(self, word: u32, shape: Shape) -> u32 {
        let mut breaks = [!0; 3];
        for i in 0..3 {
            if word + i < TILE {
                // SAFETY: the word is below 256, and `load` has written the breaks before its barrier, by the contract.
                breaks[i as usize] = unsafe { self.breaks.get(word + i) };
            }
        }
        kmers_of(breaks, shape.k())
    }
}

/// Returns the value `distance` lanes further, below 32, where `this` and `next` are 64 lanes in a row.
///
/// # Safety
/// All lanes of the warp arrive here.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn further(this: u32, next: u32, distance: u32) -> u32 {
    let lane = warp::lane_id();
    // SAFETY: all lanes of the warp arrive here, by the contract.
    unsafe { warp::shuffle_idx(warp::FULL_MASK, if lane < distance { next } else { this }, (lane + distance) % 32) }
}

//! Positions of sequences as the blocks of threads of a sequence filter take them: from letters or from packed bases to
//! windows of sixteen bases of both strands, in shared memory.
//!
//! ```text
//! tile    256 words of 32 positions, a thread each: one before its own, 248 that are its own, and what follows
//! warp    32 rounds of 32 positions, one lane each; of them 31 are its own
//! pair    u64  sixteen bases, the first lowest, and above them their reverse complement; 512 per tile
//! smers   u32  a bit per position: set where an s-mer of a k-mer begins
//! ```

use warpset_core::minimizer::{code, codes_of_eight, is_base};
use warpset_core::sequence_filter::{Both, Shape, all_of, reverse_complement, smers_of};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, thread, warp};

/// Threads of a block, in every kernel that takes tiles.
pub const BLOCK: u32 = 256;
/// Words of 32 positions that a block takes in.
const TILE: u32 = BLOCK;
/// Rounds of a warp that are its own.
pub const OWN_ROUNDS: u32 = 31;
/// Words of 32 positions that a block answers for.
pub const OWN_WORDS: usize = (BLOCK / 32 * OWN_ROUNDS) as usize;
/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = 16 * TILE + 4 * TILE + 4 * TILE;

/// Where positions come from.
pub trait Source: Copy {
    /// The bases of word `i`, the first lowest, and a bit per position that is no base; past the end there is none.
    ///
    /// # Safety
    /// What the kernel's contract says of its input.
    unsafe fn word(self, i: usize) -> (u64, u32);
}

/// Letters.
#[derive(Clone, Copy)]
pub struct Letters {
    /// `n` bytes.
    pub letters: Global<u8>,
    /// Their number.
    pub n: usize,
    /// Whether they begin at a multiple of 16.
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
                // SAFETY: 32 bytes from `first` on are there, at a multiple of 16.
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

/// Packed bases, and a bit per position that says where there is none.
#[derive(Clone, Copy)]
pub struct Packed {
    /// 32 positions per word, 2 bits each.
    pub bases: Global<u64>,
    /// 32 positions per word, set where there is no base.
    pub breaks: Global<u32>,
    /// Words of each.
    pub words: usize,
}

impl Source for Packed {
    #[inline(always)]
    unsafe fn word(self, i: usize) -> (u64, u32) {
        // SAFETY: there are `words` of each.
        if i < self.words { unsafe { (self.bases.read_nc(i), self.breaks.read_nc(i)) } } else { (0, !0) }
    }
}

/// A tile in shared memory.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Tile {
    pairs: Shared<u64>,
    breaks: Shared<u32>,
    smers: Shared<u32>,
}

#[cfg(feature = "bodies")]
impl Tile {
    /// The block's shared memory.
    #[inline(always)]
    pub fn in_shared() -> Tile {
        Tile { pairs: shared::dynamic(0), breaks: shared::dynamic(16 * TILE), smers: shared::dynamic(20 * TILE) }
    }

    /// Brings the words from `first` on in, after the one before them: word `i` of the source is word `i + 1 - first`
    /// here.
    ///
    /// # Safety
    /// All threads of the block come here, with [`SHARED_BYTES`] of shared memory that nothing else uses; the contract
    /// of [`Source::word`].
    #[inline(always)]
    pub unsafe fn load(self, source: impl Source, first: usize, shape: Shape) {
        let t = thread::thread_idx_x();
        // SAFETY: two pairs and one word per thread, and barriers between writing and reading those of others; the rest
        // is the caller's promise.
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

    /// Sixteen bases from position `32 * word + place` on; bases past the tile are any.
    ///
    /// # Safety
    /// After [`load`](Tile::load); `word` is below 252 and `place` below 64.
    #[inline(always)]
    pub unsafe fn both(self, word: u32, place: u32) -> Both {
        let (i, shift) = (2 * word + place / 16, 2 * (place % 16));
        // SAFETY: `i + 1 < 512`.
        let (here, next) = unsafe { (self.pairs.get(i), self.pairs.get(i + 1)) };
        let bases = (here as u32) as u64 | next << 32;
        let others = next >> 32 | here & !0xffff_ffff;
        Both { word: (bases >> shift) as u32, other: ((others << shift) >> 32) as u32 }
    }

    /// The positions of a word at which s-mers of k-mers begin, a bit each; rightly from the second word to the last
    /// but one.
    ///
    /// # Safety
    /// After [`load`](Tile::load); `word` is below 256.
    #[inline(always)]
    pub unsafe fn smers(self, word: u32) -> u32 {
        // SAFETY: the caller's promise is the same.
        unsafe { self.smers.get(word) }
    }

    /// The positions of a word at which k-mers begin, a bit each; of the last word as if breaks followed.
    ///
    /// # Safety
    /// After [`load`](Tile::load), or the barrier in it; `word` is below 256.
    #[inline(always)]
    pub unsafe fn kmers(self, word: u32, shape: Shape) -> u32 {
        // SAFETY: the caller's promise is the same.
        let (breaks, next) =
            unsafe { (self.breaks.get(word), if word + 1 < TILE { self.breaks.get(word + 1) } else { !0 }) };
        all_of(!(breaks as u64 | (next as u64) << 32), shape.k()) as u32
    }
}

/// The value of `this` or `next`, 64 lanes in a row, that is `distance` lanes further, below 32.
///
/// # Safety
/// All lanes of the warp come here.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn further(this: u32, next: u32, distance: u32) -> u32 {
    let lane = warp::lane_id();
    // SAFETY: the caller's promise.
    unsafe { warp::shuffle_idx(warp::FULL_MASK, if lane < distance { next } else { this }, (lane + distance) % 32) }
}

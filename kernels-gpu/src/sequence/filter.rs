//! Kernels of sequence filters: insertion and queries straight from sequences ([`warpset_core::sequence_filter`]).
//!
//! A lane processes one position at a time, a warp 32 neighbouring ones. So s-mers that share a block are neighbouring
//! lanes, and their words, one per s-mer, lie in one sector: the memory system sees a run of s-mers as one access.
//! Minima of windows are computed by exchanging values between lanes, each time over twice as many m-mers, for four
//! rounds side by side.

use warpset_core::sequence_filter::{Both, Shape, Span, all_of, block_of, mask_of, word_of};
use warpset_simt::{Global, GlobalMut, atomic, opaque, thread, warp};

use super::tile::{BLOCK, Letters, OWN_ROUNDS, OWN_WORDS, Packed, Source};
#[cfg(feature = "bodies")]
use super::tile::{Tile, further};

/// Rounds side by side; a divisor of 32.
const ROUNDS: usize = 4;

/// S-mer of one position.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Probe {
    /// Number of its 32-bit word in the filter.
    word: usize,
    /// Its bits in that word.
    mask: u32,
    /// Whether an s-mer begins here.
    is_smer: bool,
}

/// Returns the hash of the span that begins at this lane's position of a word; `first` are its first sixteen bases.
///
/// # Safety
/// The contract of [`Tile::both`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn hash(tile: Tile, span: Span, first: Both, word: u32) -> u32 {
    let offset = span.offset();
    // SAFETY: an offset is at most 16, so that the place is below 64; `word` is valid for `both` by the contract.
    let last = if offset > 0 { unsafe { tile.both(word, warp::lane_id() + offset) } } else { first };
    span.hash(first, last)
}

/// Visits the s-mers of a warp's 32 words from `first` on, in order and four words at a time. `visit` gets the number
/// of the first word among the 32, and this lane's four s-mers.
///
/// # Safety
/// All lanes of the warp arrive here after [`Tile::load`]; `first` is at most 218.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn each_smer(tile: Tile, first: u32, shape: Shape, blocks: u64, mut visit: impl FnMut(u32, [Probe; ROUNDS])) {
    let lane = warp::lane_id();
    // SAFETY: words are at most 218 + 32, so below 252; all lanes of the warp exchange values together.
    unsafe {
        let mut both = [Both { word: 0, other: 0 }; ROUNDS + 1];
        let mut least = [0; ROUNDS + 1];
        both[ROUNDS] = tile.both(first, lane);
        least[ROUNDS] = hash(tile, shape.minimizer_span(), both[ROUNDS], first);
        let mut next_least = least[ROUNDS];
        // Hidden from the compiler, which would unroll the loop.
        let (mut round, end) = (0, opaque(32));
        while round < end {
            both[0] = both[ROUNDS];
            least[0] = next_least;
            for i in 0..ROUNDS {
                let word = first + round + 1 + i as u32;
                both[i + 1] = tile.both(word, lane);
                least[i + 1] = hash(tile, shape.minimizer_span(), both[i + 1], word);
            }
            next_least = least[ROUNDS];
            let mut have = 1;
            while 2 * have <= shape.window() {
                for i in 0..ROUNDS {
                    least[i] = Ord::min(least[i], further(least[i], least[i + 1], have));
                }
                least[ROUNDS] = Ord::min(least[ROUNDS], warp::shuffle_down(warp::FULL_MASK, least[ROUNDS], have));
                have *= 2;
            }
            let mut probes = [Probe { word: 0, mask: 0, is_smer: false }; ROUNDS];
            for i in 0..ROUNDS {
                let word = first + round + i as u32;
                let least = Ord::min(least[i], further(least[i], least[i + 1], shape.window() - have));
                let hash = hash(tile, shape.smer_span(), both[i], word);
                probes[i] = Probe {
                    word: (block_of(least, blocks) * 8) as usize + word_of(hash) as usize,
                    mask: mask_of(hash),
                    is_smer: tile.smers(word) >> lane & 1 != 0,
                };
            }
            visit(round, probes);
            round += ROUNDS as u32;
        }
    }
}

/// Inserts the s-mers of the tile of this block.
///
/// # Safety
/// The contract of the kernels here.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn insert(words: GlobalMut<u32>, blocks: u64, shape: Shape, source: impl Source) {
    let (tile, warp) = (Tile::in_shared(), thread::thread_idx_x() / 32);
    // SAFETY: all threads arrive at each barrier and exchange; the word that the next warp also loads is left to that
    // warp; `block_of` is below `blocks`.
    unsafe {
        tile.load(source, thread::block_idx_x() as usize * OWN_WORDS, shape);
        each_smer(tile, 1 + warp * OWN_ROUNDS, shape, blocks, |round, probes| {
            for i in 0..ROUNDS {
                if probes[i].is_smer && round + (i as u32) < OWN_ROUNDS {
                    atomic::reduce_or(words.at(probes[i].word), probes[i].mask);
                }
            }
        });
    }
}

/// Looks up the positions of this block's tile.
///
/// # Safety
/// The contract of the kernels here.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn contains(
    words: Global<u32>,
    blocks: u64,
    shape: Shape,
    source: impl Source,
    sequence_words: usize,
    found: GlobalMut<u32>,
    kmers: GlobalMut<u32>,
    with_kmers: u32,
) {
    let (tile, lane, warp) = (Tile::in_shared(), warp::lane_id(), thread::thread_idx_x() / 32);
    let (first, begin) = (thread::block_idx_x() as usize * OWN_WORDS, 1 + warp * OWN_ROUNDS);
    // SAFETY: all threads arrive at each barrier and exchange; `block_of` is below `blocks`; each lane writes the word
    // of its own round, if that is below the number of words.
    unsafe {
        tile.load(source, first, shape);
        let mut own = 0;
        each_smer(tile, begin, shape, blocks, |round, probes| {
            let mut stored = [0; ROUNDS];
            for i in 0..ROUNDS {
                if probes[i].is_smer {
                    stored[i] = words.read_nc(probes[i].word);
                }
            }
            for i in 0..ROUNDS {
                // A lane without an s-mer has read no word, so `stored` is 0 there, and a mask is never 0.
                let hits = warp::ballot(warp::FULL_MASK, stored[i] & probes[i].mask == probes[i].mask);
                if lane == round + i as u32 {
                    own = hits;
                }
            }
        });
        let next = warp::shuffle_down(warp::FULL_MASK, own, 1);
        let own = all_of(own as u64 | (next as u64) << 32, shape.smers()) as u32;
        let word = first + (begin - 1 + lane) as usize;
        if lane < OWN_ROUNDS && word < sequence_words {
            found.write(word, own);
            if with_kmers != 0 {
                kmers.write(word, tile.kmers(begin + lane, shape));
            }
        }
    }
}

kernel! {
    /// Inserts every k-mer of `n` letters; letters that are no base end a sequence.
    ///
    /// # Safety
    /// - Launch: 1-D, a block of [`BLOCK`] threads per [`OWN_WORDS`] words of 32 positions,
    ///   [`SHARED_BYTES`](super::tile::SHARED_BYTES) of shared memory.
    /// - `words`: valid for `8 * blocks` words, `0 < blocks <= 2^32`; only accessed atomically while the kernel runs.
    /// - `letters`: valid for `n` reads, at a multiple of 16 if `aligned` is not 0; not written while the kernel runs.
    #[launch_bounds(256, 4)]
    pub unsafe fn sequence_insert_letters(
        words: GlobalMut<u32>, blocks: u64, shape: Shape, letters: Global<u8>, n: usize, aligned: u32,
    ) {
        let source = Letters { letters, n, aligned: aligned != 0 };
        // SAFETY: the caller keeps the contract of this kernel.
        unsafe { insert(words, blocks, shape, source) };
    }

    /// Inserts every k-mer of packed bases; positions of breaks end a sequence.
    ///
    /// # Safety
    /// - Launch: 1-D, a block of [`BLOCK`] threads per [`OWN_WORDS`] words of 32 positions,
    ///   [`SHARED_BYTES`](super::tile::SHARED_BYTES) of shared memory.
    /// - `words`: valid for `8 * blocks` words, `0 < blocks <= 2^32`; only accessed atomically while the kernel runs.
    /// - `bases`, `breaks`: valid for `n` reads each, 32 positions per word; not written while the kernel runs.
    #[launch_bounds(256, 4)]
    pub unsafe fn sequence_insert_packed(
        words: GlobalMut<u32>, blocks: u64, shape: Shape, bases: Global<u64>, breaks: Global<u32>, n: usize,
    ) {
        // SAFETY: the caller keeps the contract of this kernel.
        unsafe { insert(words, blocks, shape, Packed { bases, breaks, words: n }) };
    }

    /// Sets bit `i` of `found` exactly if a k-mer begins at letter `i` and may be in the filter. If `with_kmers` is not
    /// 0, sets bit `i` of `kmers` exactly if a k-mer begins at letter `i`. Clears bits past the last letter.
    ///
    /// # Safety
    /// - Launch: 1-D, a block of [`BLOCK`] threads per [`OWN_WORDS`] words of 32 positions,
    ///   [`SHARED_BYTES`](super::tile::SHARED_BYTES) of shared memory.
    /// - `words`: valid for `8 * blocks` words, `0 < blocks <= 2^32`; not written while the kernel runs.
    /// - `letters`: valid for `n` reads, at a multiple of 16 if `aligned` is not 0; not written while the kernel runs.
    /// - `found`, and `kmers` if `with_kmers` is not 0: valid for `n.div_ceil(32)` words; no other thread accesses
    ///   them.
    #[launch_bounds(256, 5)]
    pub unsafe fn sequence_contains_letters(
        words: Global<u32>, blocks: u64, shape: Shape, letters: Global<u8>, n: usize, aligned: u32,
        found: GlobalMut<u32>, kmers: GlobalMut<u32>, with_kmers: u32,
    ) {
        let source = Letters { letters, n, aligned: aligned != 0 };
        // SAFETY: the caller keeps the contract of this kernel.
        unsafe { contains(words, blocks, shape, source, n.div_ceil(32), found, kmers, with_kmers) };
    }

    /// Answers as [`sequence_contains_letters`] does, for packed bases.
    ///
    /// # Safety
    /// - Launch: 1-D, a block of [`BLOCK`] threads per [`OWN_WORDS`] words of 32 positions,
    ///   [`SHARED_BYTES`](super::tile::SHARED_BYTES) of shared memory.
    /// - `words`: valid for `8 * blocks` words, `0 < blocks <= 2^32`; not written while the kernel runs.
    /// - `bases`, `breaks`: valid for `n` reads each, 32 positions per word; not written while the kernel runs.
    /// - `found`, and `kmers` if `with_kmers` is not 0: valid for `n` words; no other thread accesses them.
    #[launch_bounds(256, 5)]
    pub unsafe fn sequence_contains_packed(
        words: Global<u32>, blocks: u64, shape: Shape, bases: Global<u64>, breaks: Global<u32>, n: usize,
        found: GlobalMut<u32>, kmers: GlobalMut<u32>, with_kmers: u32,
    ) {
        let source = Packed { bases, breaks, words: n };
        // SAFETY: the caller keeps the contract of this kernel.
        unsafe { contains(words, blocks, shape, source, n, found, kmers, with_kmers) };
    }

    /// Computes `words |= other`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `words`, `other`: valid for `n` words, and do not overlap; no other thread accesses `words` and nothing writes
    ///   `other` while the kernel runs.
    pub unsafe fn sequence_or(words: GlobalMut<u64>, other: Global<u64>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and no other thread has this `i`.
            unsafe { words.write(i, words.read(i) | other.read_nc(i)) };
        }
    }

    /// Adds the numbers of set bits of `found` and of `kmers` in each stretch of positions to the two counts of its
    /// read.
    ///
    /// # Safety
    /// - Launch: 1-D, [`BLOCK`] threads per block, any grid, no shared memory.
    /// - `stretches`: `3 * n` numbers: first position, end, read. `found`, `kmers`: bits of all these positions, not
    ///   written while the kernel runs.
    /// - `counts`: two words per read, only accessed atomically while the kernel runs.
    pub unsafe fn sequence_count(
        found: Global<u32>, kmers: Global<u32>, stretches: Global<u64>, n: usize, counts: GlobalMut<u64>,
    ) {
        let lane = warp::lane_id();
        let mut i = (thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize) / 32;
        while i < n {
            // SAFETY: `i < n` is equal in all lanes of the warp; the words read are those of positions in the stretch.
            unsafe {
                let (first, end) = (stretches.read_nc(3 * i) as usize, stretches.read_nc(3 * i + 1) as usize);
                let (mut hits, mut all) = (0, 0);
                let mut word = first / 32 + lane as usize;
                while 32 * word < end {
                    let mut mask = !0u32;
                    if 32 * word < first {
                        mask &= !0 << (first % 32);
                    }
                    if end - 32 * word < 32 {
                        mask &= !(!0 << (end % 32));
                    }
                    hits += (found.read_nc(word) & mask).count_ones();
                    all += (kmers.read_nc(word) & mask).count_ones();
                    word += 32;
                }
                let hits = warp::reduce_add(warp::FULL_MASK, hits);
                let all = warp::reduce_add(warp::FULL_MASK, all);
                if lane == 0 {
                    let read = stretches.read_nc(3 * i + 2) as usize;
                    atomic::reduce_add(counts.at(2 * read), hits as u64);
                    atomic::reduce_add(counts.at(2 * read + 1), all as u64);
                }
            }
            i += (thread::grid_dim_x() * BLOCK / 32) as usize;
        }
    }
}

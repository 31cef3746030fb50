//! Kernels of the blocked Bloom filter with parameters.
//!
//! One lane per word of a block inserts a key, neighbouring lanes the words of one block, so that its bits leave in one
//! instruction. One thread looks up a block of up to 256 bits (8 or 16 bytes, or twice 16), and several lanes of 16
//! bytes each a wider one: beyond the L2 cache of an H200, 64 bytes read by four lanes cost what 32 bytes read by one
//! thread do, while one thread reading 64 bytes halves the rate.
//!
//! Common shapes have kernels of their own here, in which everything is a constant. All others share those of their
//! block size and number of sectors, in which only the number of bits per key is a variable (see
//! [`sectors`](crate::bloom::sectors); they are modules of their own). Test-and-insert, which its claim table bounds,
//! takes any shape.

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::mix_at;
use crate::batch::results;
use crate::bloom::batch_partition::Parts;
use crate::bloom::claims::{Batch, Claims};
#[cfg(feature = "bodies")]
use crate::bloom::device_query::in_block;
use warpset_core::bloom::blocked::{BlockShape, Pattern, block_of};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 256;

/// Inserts the hashes of the lanes that `valid` has set.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `words` holds `blocks > 0` blocks of `shape` and is only accessed atomically.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn insert_warp(words: GlobalMut<u32>, blocks: u64, shape: BlockShape, hash: u64, valid: u32) {
    let lane = warp::lane_id();
    let block_words = shape.words();
    let shift = block_words.trailing_zeros();
    let word = lane & (block_words - 1);
    let block = block_of(hash, blocks);
    let pattern = Pattern::of(hash);
    let wide = blocks > 1 << 32;
    for round in 0..block_words {
        let source = (round << (5 - shift)) + (lane >> shift);
        // SAFETY: the whole warp is here (`wide` and the shape are the same for all); `block_of` stays below `blocks`.
        unsafe {
            let low = warp::shuffle_idx(warp::FULL_MASK, block as u32, source);
            let high = if wide { warp::shuffle_idx(warp::FULL_MASK, (block >> 32) as u32, source) } else { 0 };
            let block = (high as u64) << 32 | low as u64;
            let pattern = Pattern {
                a: warp::shuffle_idx(warp::FULL_MASK, pattern.a, source),
                b: warp::shuffle_idx(warp::FULL_MASK, pattern.b, source),
            };
            if valid >> source & 1 != 0 {
                let at = ((block << shift) + word as u64) as usize;
                if shape.word_bits() == 64 {
                    let mask = pattern.word_mask64(shape, word);
                    if mask != 0 {
                        atomic::reduce_or(words.cast::<u64>().at(at), mask);
                    }
                } else {
                    let mask = pattern.word_mask32(shape, word);
                    if mask != 0 {
                        atomic::reduce_or(words.at(at), mask);
                    }
                }
            }
        }
    }
}

/// Returns the bits of a key in four 32-bit words of its block: the little-endian image is the same for both word
/// sizes.
#[cfg(feature = "bodies")]
#[inline(always)]
fn quad_mask(pattern: Pattern, shape: BlockShape, quad: u32) -> [u32; 4] {
    if shape.word_bits() == 64 {
        let a = pattern.word_mask64(shape, 2 * quad);
        let b = pattern.word_mask64(shape, 2 * quad + 1);
        [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32]
    } else {
        let first = 4 * quad;
        [
            pattern.word_mask32(shape, first),
            pattern.word_mask32(shape, first + 1),
            pattern.word_mask32(shape, first + 2),
            pattern.word_mask32(shape, first + 3),
        ]
    }
}

#[cfg(feature = "bodies")]
#[inline(always)]
fn missing(mask: [u32; 4], words: [u32; 4]) -> u32 {
    (mask[0] & !words[0]) | (mask[1] & !words[1]) | (mask[2] & !words[2]) | (mask[3] & !words[3])
}

/// Whether the filter contains each lane's hash.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `words` holds `blocks > 0` blocks of `shape`, 16-byte aligned, not written while the kernel runs.
/// - `shape` has blocks of `BLOCK_BITS`.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn contains_warp<const BLOCK_BITS: u32>(words: Global<u32>, blocks: u64, shape: BlockShape, hash: u64) -> bool {
    let block = block_of(hash, blocks);
    let pattern = Pattern::of(hash);
    // SAFETY: `block_of` stays below `blocks`; the whole warp is here, and `BLOCK_BITS` is a constant.
    unsafe {
        match BLOCK_BITS {
            64 => {
                let held = words.cast::<u64>().read_nc(block as usize);
                let mask = if shape.word_bits() == 64 {
                    pattern.word_mask64(shape, 0)
                } else {
                    (pattern.word_mask32(shape, 1) as u64) << 32 | pattern.word_mask32(shape, 0) as u64
                };
                mask & !held == 0
            }
            128 => {
                let held = words.read4_nc(block as usize * 4);
                missing(quad_mask(pattern, shape, 0), held) == 0
            }
            256 => {
                let (a, b) = (words.read4_nc(block as usize * 8), words.read4_nc(block as usize * 8 + 4));
                missing(quad_mask(pattern, shape, 0), a) | missing(quad_mask(pattern, shape, 1), b) == 0
            }
            512 => contains_lanes::<4>(words, block, blocks > 1 << 32, shape, pattern),
            _ => contains_lanes::<8>(words, block, blocks > 1 << 32, shape, pattern),
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
unsafe fn contains_lanes<const LANES: usize>(
    words: Global<u32>,
    block: u64,
    wide: bool,
    shape: BlockShape,
    pattern: Pattern,
) -> bool {
    let lane = warp::lane_id();
    let quad = lane % LANES as u32;
    let group = lane - quad;
    let mut held = [[0u32; 4]; LANES];
    let mut found = false;
    // SAFETY: the whole warp is here; sources are lanes of the own group; blocks are in range.
    unsafe {
        for j in 0..LANES {
            let source = group + j as u32;
            let low = warp::shuffle_idx(warp::FULL_MASK, block as u32, source);
            let high = if wide { warp::shuffle_idx(warp::FULL_MASK, (block >> 32) as u32, source) } else { 0 };
            let block = ((high as u64) << 32 | low as u64) as usize;
            held[j] = words.read4_nc((block * LANES + quad as usize) * 4);
        }
        for j in 0..LANES {
            let source = group + j as u32;
            let pattern = Pattern {
                a: warp::shuffle_idx(warp::FULL_MASK, pattern.a, source),
                b: warp::shuffle_idx(warp::FULL_MASK, pattern.b, source),
            };
            let votes = warp::ballot(warp::FULL_MASK, missing(quad_mask(pattern, shape, quad), held[j]) != 0);
            if quad == j as u32 {
                found = votes >> group & ((1 << LANES) - 1) == 0;
            }
        }
    }
    found
}

/// Inserts `n` keys: the body of the insert kernels.
///
/// # Safety
/// The contract of the kernels that [`shapes`] makes.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn insert(
    words: GlobalMut<u32>,
    blocks: u64,
    shape: BlockShape,
    keys: Global<u64>,
    kind: KeyKind,
    spread: u64,
    n: usize,
) {
    let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    // SAFETY: `i < n`; no lane has left.
    unsafe {
        let valid = warp::ballot(warp::FULL_MASK, i < n);
        let hash = if i < n { mix_at(keys, kind, spread, i) } else { 0 };
        insert_warp(words, blocks, shape, hash, valid);
    }
}

/// Looks up `n` keys: the body of the lookup kernels.
///
/// # Safety
/// The contract of the kernels that [`shapes`] makes.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn contains<const BLOCK_BITS: u32>(
    words: Global<u32>,
    blocks: u64,
    shape: BlockShape,
    keys: Global<u64>,
    kind: KeyKind,
    spread: u64,
    n: usize,
    form: u32,
    out: GlobalMut<u64>,
) {
    let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    // SAFETY: `n > 0`; no lane has left; all threads reach `put`. A lane without a key looks up the last one, because
    // the words may be a part of a filter without block 0.
    unsafe {
        let hash = mix_at(keys, kind, spread, if i < n { i } else { n - 1 });
        let found = contains_warp::<BLOCK_BITS>(words, blocks, shape, hash);
        results::put(form, out, i, n, i < n && found);
    }
}

/// A pair of kernels for each shape that has its own; and on the host the table of these shapes.
macro_rules! shapes {
    ($($insert:ident, $contains:ident: $block_bits:literal, $word_bits:literal, $hashes:literal;)*) => {
        $(
            kernel! {
                #[doc = concat!("[`blocked_insert_64_1`](crate::bloom::sectors_narrow::blocked_insert_64_1) for blocks of ", $block_bits, " bits, words of ", $word_bits, " and ",
                    $hashes, " bits a key.")]
                ///
                /// # Safety
                /// The contract of `blocked_insert_64_1`.
                #[launch_bounds(256, 8)]
                pub unsafe fn $insert(
                    words: GlobalMut<u32>, blocks: u64, keys: Global<u64>, kind: KeyKind, spread: u64, n: usize,
                ) {
                    let shape = BlockShape::of::<$block_bits, $word_bits, $hashes>();
                    // SAFETY: the caller keeps this kernel's contract.
                    unsafe { insert(words, blocks, shape, keys, kind, spread, n) }
                }
            }
            kernel! {
                #[doc = concat!("[`blocked_contains_64_1`](crate::bloom::sectors_narrow::blocked_contains_64_1) for blocks of ", $block_bits, " bits, words of ", $word_bits,
                    " and ", $hashes, " bits a key.")]
                ///
                /// # Safety
                /// The contract of `blocked_contains_64_1`.
                #[launch_bounds(256, 6)]
                pub unsafe fn $contains(
                    words: Global<u32>, blocks: u64, keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, form: u32,
                    out: GlobalMut<u64>,
                ) {
                    let shape = BlockShape::of::<$block_bits, $word_bits, $hashes>();
                    // SAFETY: the caller keeps this kernel's contract.
                    unsafe { contains::<$block_bits>(words, blocks, shape, keys, kind, spread, n, form, out) }
                }
            }
        )*

        /// Calls `$then!` with the names of all shapes' kernels, for the host's dispatch.
        #[cfg(not(target_arch = "nvptx64"))]
        #[macro_export]
        macro_rules! for_each_blocked_shape {
            ($then:ident) => { $then! { $($insert, $contains: $block_bits, $word_bits, $hashes;)* } };
        }
    };
}
shapes! {
    blocked_insert_64x64x4, blocked_contains_64x64x4: 64, 64, 4;
    blocked_insert_128x64x6, blocked_contains_128x64x6: 128, 64, 6;
    blocked_insert_256x32x8, blocked_contains_256x32x8: 256, 32, 8;
    blocked_insert_256x64x8, blocked_contains_256x64x8: 256, 64, 8;
    blocked_insert_512x64x8, blocked_contains_512x64x8: 512, 64, 8;
    blocked_insert_512x32x16, blocked_contains_512x32x16: 512, 32, 16;
}

kernel! {
    /// Marks the keys that the filter does not contain, and lets each of them claim its hash: the first half of
    /// test-and-insert. In a divided batch the marks exist already, and only keys of parts that overflowed claim.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, any number of them, no shared memory.
    /// - `words`, `keys`, `out`: as for
    ///   [`blocked_contains_64_1`](crate::bloom::sectors_narrow::blocked_contains_64_1), the form being bytes or bits.
    /// - `table`: as [`Claims::new`] asks, all words [`EMPTY`](crate::bloom::claims::EMPTY) at the start (if a part
    ///   overflowed).
    /// - `parts`, `counts`: as [`partition_absent`](crate::bloom::partition::partition_absent) has left them, with the
    ///   marks; or [`Parts::UNDIVIDED`].
    #[launch_bounds(256, 4)]
    pub unsafe fn blocked_dedup_claim(
        words: Global<u32>, blocks: u64, shape: BlockShape, keys: Global<u64>, kind: KeyKind, spread: u64, n: usize,
        form: u32, out: GlobalMut<u64>, table: GlobalMut<u64>, table_bits: u32, parts: Parts, counts: Global<u32>,
    ) {
        let batch = Batch { block: BLOCK, n, form, out, claims: Claims::new(table, table_bits), parts, counts };
        // SAFETY: the contract is that of this kernel; `j < n`, and the words of all blocks are valid.
        unsafe { batch.claim(|j| mix_at(keys, kind, spread, j), |hash| in_block(words, blocks, shape, hash)) };
    }
}

kernel! {
    /// Resolves claims: of the keys marked by [`blocked_dedup_claim`] leaves marked the winners of their hashes, and
    /// inserts them; in a divided batch, the keys of parts that overflowed. The second half of test-and-insert.
    ///
    /// # Safety
    /// - The contract of [`blocked_dedup_claim`], which has run with the same arguments.
    /// - `words` is only accessed atomically.
    #[launch_bounds(256, 4)]
    pub unsafe fn blocked_dedup_resolve(
        words: GlobalMut<u32>, blocks: u64, shape: BlockShape, keys: Global<u64>, kind: KeyKind, spread: u64, n: usize,
        form: u32, out: GlobalMut<u64>, table: GlobalMut<u64>, table_bits: u32, parts: Parts, counts: Global<u32>,
    ) {
        let batch = Batch { block: BLOCK, n, form, out, claims: Claims::new(table, table_bits), parts, counts };
        // SAFETY: the caller keeps this kernel's contract; `j < n`, and all lanes of a warp insert together.
        unsafe { batch.resolve(|j| mix_at(keys, kind, spread, j), |hash, valid| insert_warp(words, blocks, shape, hash, valid)) };
    }
}

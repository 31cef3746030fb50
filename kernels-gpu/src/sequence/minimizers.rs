//! Canonical minimizers of sequences, in the order of their positions ([`warpset_core::minimizer`]).
//!
//! ```text
//! tile      2048 positions, 8 per thread at first, then one in each of 8 rounds of 256
//! forward   u32 per position and 64 more: prefix hashes, then orders above positions
//! reverse   u32 per position and 64 more: prefix hashes, then orders above complements of positions
//! counted   u32 per position and 64 more: letters that are no base above G and T, before the position; then what the
//!           window that begins there takes
//! eights    u32 per 8 positions: their bases, 2 bits each
//! ```
//!
//! The hash of a k-mer is computed from two prefixes, so a tile needs one scan, and no thread rolls through the bases
//! of others. The minimum of a window is that of four windows of a fourth of its length. A tile collects the k-mers
//! that one of its windows selects and the window before does not. Look-back over earlier tiles gives their places, so
//! that the output has no gaps and does not depend on the order of blocks.
//!
//! A tile begins with the 32 positions before its first window; the last of them gives the selection of the window
//! before.

use warpset_core::minimizer::{Kmer, MOST_W, Prefix, Scheme, codes_of_eight};
use warpset_core::scan::{Count, Sum};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, thread, warp};

use crate::look_back;

/// Threads per block.
pub const BLOCK: u32 = 256;
/// Positions per thread, one per round.
const ROUNDS: usize = 8;
/// Positions per tile.
const TILE: u32 = BLOCK * ROUNDS as u32;
/// Positions of a tile before its first window.
const BEFORE: u32 = 32;
/// Values per array of the tile, with those after its end that windows of its last k-mers reach.
const VALUES: u32 = TILE + MOST_W;
/// Warps per block.
const WARPS: u32 = BLOCK / 32;
/// Offset of the bases of groups of 8 positions, with a few groups after the end that are read and not used.
const EIGHTS_AT: u32 = 12 * VALUES;
/// Offset of the sums of warps: three words each at first, then one per round.
const SUMS_AT: u32 = EIGHTS_AT + 4 * (BLOCK + 8);
/// Offset of the number of minimizers before the tile, the number of the tile, and the number of its own minimizers.
const SLOTS_AT: u32 = SUMS_AT + 4 * WARPS * ROUNDS as u32;
/// Dynamic shared memory of every kernel here, in bytes.
pub const SHARED_BYTES: u32 = SLOTS_AT + 16;
const _: () = assert!(SLOTS_AT.is_multiple_of(8) && (4 * VALUES).is_multiple_of(16) && WARPS * ROUNDS as u32 == 64);

/// Selection of a window without a minimizer.
const NONE: u32 = 0xffff;

/// Returns the windows that a tile answers for, a multiple of 32.
pub const fn tile_windows(scheme: Scheme) -> usize {
    (TILE - BEFORE - scheme.window() + 1) as usize / 32 * 32
}

/// Source of positions.
#[cfg(feature = "bodies")]
trait Source: Copy {
    /// Returns the codes of the 8 positions from `first`, a multiple of 8, on, and one bit per position without a base;
    /// positions past the end have none.
    ///
    /// # Safety
    /// The source is valid as the contract of the kernel states.
    unsafe fn eight(self, first: usize) -> (u16, u8);
}

/// Source of letters.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Letters {
    letters: Global<u8>,
    n: usize,
    /// Whether the address of the letters is a multiple of 8.
    is_aligned: bool,
}

#[cfg(feature = "bodies")]
impl Source for Letters {
    #[inline(always)]
    unsafe fn eight(self, first: usize) -> (u16, u8) {
        if self.is_aligned && first + 8 <= self.n {
            // SAFETY: the 8 bytes from `first` on are below `n`, and at a multiple of 8.
            return codes_of_eight(unsafe { self.letters.cast::<u64>().read_nc(first / 8) });
        }
        let mut eight = 0;
        for i in 0..8 {
            if first + i < self.n {
                // SAFETY: `first + i < n`.
                eight |= (unsafe { self.letters.read_nc(first + i) } as u64) << (8 * i);
            }
        }
        codes_of_eight(eight)
    }
}

/// Source of packed bases.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Packed {
    bases: Global<u64>,
    breaks: Global<u32>,
    words: usize,
}

#[cfg(feature = "bodies")]
impl Source for Packed {
    #[inline(always)]
    unsafe fn eight(self, first: usize) -> (u16, u8) {
        let (word, place) = (first / 32, first as u32 % 32);
        if word >= self.words {
            return (0, 0xff);
        }
        // SAFETY: `word` is below `words`.
        let (bases, breaks) = unsafe { (self.bases.read_nc(word), self.breaks.read_nc(word)) };
        ((bases >> (2 * place)) as u16, (breaks >> place) as u8)
    }
}

/// Destination of minimizers.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Output<W> {
    positions: GlobalMut<u32>,
    kmers: GlobalMut<W>,
    /// Requested outputs: [`POSITIONS`], [`KMERS`] or both.
    wanted: u32,
    /// Capacity of the outputs.
    room: usize,
    count: GlobalMut<u64>,
}

/// Bit of `wanted` that requests positions.
pub const POSITIONS: u32 = 1;
/// Bit of `wanted` that requests k-mers.
pub const KMERS: u32 = 2;

/// Prefix hashes, with a count of positions without a base (upper half) and of G and T (lower half).
#[cfg(feature = "bodies")]
#[derive(Clone, Copy, Default)]
struct Sums {
    hash: Prefix,
    counted: u32,
}

#[cfg(feature = "bodies")]
impl Sums {
    #[inline(always)]
    fn with(self, other: Sums) -> Sums {
        Sums { hash: self.hash.with(other.hash), counted: self.counted + other.counted }
    }
}

/// Returns the sums of all positions before each of this thread's positions, and the first position of the thread.
///
/// # Safety
/// - All threads of the block arrive here together.
/// - Nothing else accesses `eights` and `sums` until the next barrier.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn sums_before<S: Source>(
    source: S,
    first: Option<usize>,
    scheme: Scheme,
    eights: Shared<u32>,
    sums: Shared<u32>,
) -> [Sums; ROUNDS + 1] {
    let t = thread::thread_idx_x();
    let (lane, warp_index) = (warp::lane_id(), t / 32);
    // SAFETY: each thread writes its own word, each warp its own three; a barrier precedes reads by others. All threads
    // arrive at all exchanges.
    unsafe {
        let (codes, breaks) = match first {
            Some(first) => source.eight(first),
            None => (0, 0xff),
        };
        eights.set(t, codes as u32);
        let mut before = [Sums::default(); ROUNDS + 1];
        for i in 0..ROUNDS {
            let base = (codes >> (2 * i)) as u8 & 3;
            let counted = (base >> 1) as u32 | (breaks as u32 >> i & 1) << 16;
            let hash = Prefix::term(base, 8 * t + i as u32, scheme.rotation);
            before[i + 1] = before[i].with(Sums { hash, counted });
        }
        let own = before[ROUNDS];
        let mut through = own;
        let mut distance = 1;
        while distance < 32 {
            let forward = warp::shuffle_up(warp::FULL_MASK, through.hash.forward, distance);
            let reverse = warp::shuffle_up(warp::FULL_MASK, through.hash.reverse, distance);
            let counted = warp::shuffle_up(warp::FULL_MASK, through.counted, distance);
            if lane >= distance {
                through = through.with(Sums { hash: Prefix { forward, reverse }, counted });
            }
            distance *= 2;
        }
        if lane == 31 {
            sums.set(3 * warp_index, through.hash.forward);
            sums.set(3 * warp_index + 1, through.hash.reverse);
            sums.set(3 * warp_index + 2, through.counted);
        }
        thread::sync_threads();
        // Exclusive or removes the thread's own term.
        let hash = through.hash.with(own.hash);
        let mut all_before = Sums { hash, counted: through.counted - own.counted };
        let mut i = 0;
        while i < warp_index {
            let hash = Prefix { forward: sums.get(3 * i), reverse: sums.get(3 * i + 1) };
            all_before = all_before.with(Sums { hash, counted: sums.get(3 * i + 2) });
            i += 1;
        }
        for i in 0..ROUNDS + 1 {
            before[i] = before[i].with(all_before);
        }
        before
    }
}

/// Returns the minimum of four values: `own`, and those of `values` at three distances from `i`.
///
/// # Safety
/// `i + a`, `i + b` and `i + c` are valid places of `values`, which nothing writes meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn least_of_four(values: Shared<u32>, own: u32, i: u32, [a, b, c]: [u32; 3]) -> u32 {
    // SAFETY: the places are valid and not written, by the contract.
    unsafe { Ord::min(Ord::min(own, values.get(i + a)), Ord::min(values.get(i + b), values.get(i + c))) }
}

/// Finds the minimizers of one tile.
///
/// # Safety
/// The contract of the kernels; all threads of the block arrive here.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn minimizers_tile<S: Source, W: Kmer>(
    source: S,
    positions: usize,
    scheme: Scheme,
    words: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    out: Output<W>,
) {
    let forward: Shared<u32> = shared::dynamic(0);
    let reverse = forward.at(VALUES);
    let counted = forward.at(2 * VALUES);
    let eights: Shared<u32> = shared::dynamic(EIGHTS_AT);
    let sums: Shared<u32> = shared::dynamic(SUMS_AT);
    let slots: Shared<u32> = shared::dynamic(SLOTS_AT);
    let t = thread::thread_idx_x();
    let (lane, warp_index) = (warp::lane_id(), t / 32);
    let (k, w, window) = (scheme.k, scheme.w, scheme.window());
    let windows = tile_windows(scheme);
    // SAFETY: places are below `VALUES`, the positions of the tile and `MOST_W` more. Barriers separate writes from
    // reads by other threads, and every thread arrives at every barrier, vote and exchange. The place of a minimizer is
    // the number of minimizers before it, so places differ.
    unsafe {
        let tile = look_back::ticket(ticket, slots.at(2));
        let start = tile * windows;
        let first = (start + (8 * t) as usize).checked_sub(BEFORE as usize);
        let before = sums_before(source, first, scheme, eights, sums);
        for half in 0..2 {
            let at = 8 * t + 4 * half;
            let four = |of: fn(Sums) -> u32| -> [u32; 4] {
                let i = 4 * half as usize;
                [of(before[i]), of(before[i + 1]), of(before[i + 2]), of(before[i + 3])]
            };
            forward.at(at).set4(0, four(|sums| sums.hash.forward));
            reverse.at(at).set4(0, four(|sums| sums.hash.reverse));
            counted.at(at).set4(0, four(|sums| sums.counted));
        }
        if t == BLOCK - 1 {
            forward.set(TILE, before[ROUNDS].hash.forward);
            reverse.set(TILE, before[ROUNDS].hash.reverse);
            counted.set(TILE, before[ROUNDS].counted);
        }
        thread::sync_threads();

        // Rounds of neighbouring positions. Rotations of hashes repeat after 256 positions.
        let (mut left, mut right) = ([u32::MAX; ROUNDS], [u32::MAX; ROUNDS]);
        for j in 0..ROUNDS {
            let i = t + BLOCK * j as u32;
            if i + k <= TILE {
                let start = Prefix { forward: forward.get(i), reverse: reverse.get(i) };
                let end = Prefix { forward: forward.get(i + k), reverse: reverse.get(i + k) };
                let order = start.hash(end, t, scheme) & 0xffff_0000;
                (left[j], right[j]) = (order | i, order | (0xffff - i));
            }
        }
        thread::sync_threads();
        for j in 0..ROUNDS {
            forward.set(t + BLOCK * j as u32, left[j]);
            reverse.set(t + BLOCK * j as u32, right[j]);
        }
        if t < MOST_W {
            forward.set(TILE + t, u32::MAX);
            reverse.set(TILE + t, u32::MAX);
        }
        thread::sync_threads();
        let mut len = 1;
        while 4 * len <= w {
            for j in 0..ROUNDS {
                let i = t + BLOCK * j as u32;
                left[j] = least_of_four(forward, left[j], i, [len, 2 * len, 3 * len]);
                right[j] = least_of_four(reverse, right[j], i, [len, 2 * len, 3 * len]);
            }
            thread::sync_threads();
            for j in 0..ROUNDS {
                forward.set(t + BLOCK * j as u32, left[j]);
                reverse.set(t + BLOCK * j as u32, right[j]);
            }
            thread::sync_threads();
            len *= 4;
        }
        let rest = w - len;
        let steps = [Ord::min(len, rest), Ord::min(2 * len, rest), rest];
        let mut taken = [NONE; ROUNDS];
        for j in 0..ROUNDS {
            let i = t + BLOCK * j as u32;
            if i + window <= TILE {
                let sum = counted.get(i + window) - counted.get(i);
                let leftmost = least_of_four(forward, left[j], i, steps) & 0xffff;
                let rightmost = 0xffff - (least_of_four(reverse, right[j], i, steps) & 0xffff);
                let position = if scheme.takes_leftmost(sum & 0xffff) { leftmost } else { rightmost };
                taken[j] = if sum >> 16 == 0 { position } else { NONE };
            }
        }
        thread::sync_threads();
        for j in 0..ROUNDS {
            counted.set(t + BLOCK * j as u32, taken[j]);
        }
        thread::sync_threads();

        // Ranks ascend by rounds, within these by warps, within these by lanes.
        let mut anew = [0; ROUNDS];
        for j in 0..ROUNDS {
            let i = t + BLOCK * j as u32;
            let own = i >= BEFORE && i < BEFORE + windows as u32 && taken[j] != NONE;
            let is_anew = own && counted.get(if own { i - 1 } else { 0 }) != taken[j];
            anew[j] = warp::ballot(warp::FULL_MASK, is_anew);
            if lane == j as u32 {
                sums.set(WARPS * j as u32 + warp_index, anew[j].count_ones());
            }
        }
        thread::sync_threads();
        if t < 32 {
            let (low, high) = (sums.get(2 * t), sums.get(2 * t + 1));
            let through = warp::inclusive_scan_add(warp::FULL_MASK, low + high);
            sums.set(2 * t, through - low - high);
            sums.set(2 * t + 1, through - high);
            if t == 31 {
                slots.set(3, through);
            }
        }
        thread::sync_threads();
        let own = slots.get(3) as u64;
        let place = look_back::tile_prefix::<Sum<Count>>(words, tile, Count(own), slots).0;
        if t == 0 && start + windows >= positions {
            out.count.write(0, place + own);
        }
        for j in 0..ROUNDS {
            if anew[j] >> lane & 1 != 0 {
                let rank = sums.get(WARPS * j as u32 + warp_index) + (anew[j] & warp::lane_mask_lt()).count_ones();
                let at = place as usize + rank as usize;
                if at < out.room {
                    if out.wanted & POSITIONS != 0 {
                        out.positions.write(at, (start as u32 + taken[j]) - BEFORE);
                    }
                    if out.wanted & KMERS != 0 {
                        let (word, shift) = (taken[j] / 8, 2 * (taken[j] % 8));
                        let (mut low, groups) = (W::default(), if W::MOST_K > 32 { 8 } else { 4 });
                        for i in 0..groups {
                            low = low | W::from(eights.get(word + i) as u64) << (16 * i);
                        }
                        let high = W::from(eights.get(word + groups) as u64) << (16 * groups - 16) << (16 - shift);
                        let kmer = (low >> shift | high) & W::mask(k);
                        out.kmers.write(at, kmer.canonical(k));
                    }
                }
            }
        }
    }
}

kernel! {
    /// Finds the minimizers of `words` words of packed bases: positions and canonical k-mers, ascending by position.
    ///
    /// # Safety
    /// - Launch: 1-D, `(32 * words).div_ceil(tile_windows(scheme))` blocks of [`BLOCK`] threads, at least one,
    ///   [`SHARED_BYTES`] of dynamic shared memory.
    /// - `scheme` was made by [`Scheme::new`], with a `k` that `W` holds; there are fewer than 2^32 positions.
    /// - `bases`, `breaks`: valid for `words` words each, not written while the kernel runs. A set bit of `breaks`
    ///   marks a position without a base.
    /// - `look_back`: one word per block, zero before the launch, 16-byte aligned, used by this launch alone; `ticket`:
    ///   one word, the same.
    /// - `positions` and `kmers`, if `wanted` requests them: valid for `room` items each, which this launch alone
    ///   accesses.
    /// - `count`: one word, which this launch alone accesses. It gets the number of minimizers, which may exceed
    ///   `room`.
    pub unsafe fn sequence_minimizers_packed<W>(
        bases: Global<u64>, breaks: Global<u32>, words: usize, scheme: Scheme, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, positions: GlobalMut<u32>, kmers: GlobalMut<W>, wanted: u32, room: usize,
        count: GlobalMut<u64>,
    ) for [
        #[launch_bounds(256, 4)] u64 => sequence_minimizers_packed_u64,
        #[launch_bounds(256, 4)] u128 => sequence_minimizers_packed_u128,
    ] {
        let source = Packed { bases, breaks, words };
        let out = Output { positions, kmers, wanted, room, count };
        // SAFETY: the caller keeps the contract of this kernel.
        unsafe { minimizers_tile(source, 32 * words, scheme, look_back, ticket, out) }
    }

    /// Finds the minimizers of `n` letters: positions and canonical k-mers, ascending by position. Letters other than
    /// A, C, G and T, in either case, separate sequences.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(tile_windows(scheme))` blocks of [`BLOCK`] threads, at least one, [`SHARED_BYTES`] of
    ///   dynamic shared memory.
    /// - `scheme` was made by [`Scheme::new`], with a `k` that `W` holds; `n` is below 2^32.
    /// - `letters`: valid for `n` reads, not written while the kernel runs; at a multiple of 8 if `is_aligned` is not
    ///   0.
    /// - `look_back`: one word per block, zero before the launch, 16-byte aligned, used by this launch alone; `ticket`:
    ///   one word, the same.
    /// - `positions` and `kmers`, if `wanted` requests them: valid for `room` items each, which this launch alone
    ///   accesses.
    /// - `count`: one word, which this launch alone accesses. It gets the number of minimizers, which may exceed
    ///   `room`.
    pub unsafe fn sequence_minimizers_letters<W>(
        letters: Global<u8>, n: usize, is_aligned: u32, scheme: Scheme, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, positions: GlobalMut<u32>, kmers: GlobalMut<W>, wanted: u32, room: usize,
        count: GlobalMut<u64>,
    ) for [
        #[launch_bounds(256, 4)] u64 => sequence_minimizers_letters_u64,
        #[launch_bounds(256, 4)] u128 => sequence_minimizers_letters_u128,
    ] {
        let source = Letters { letters, n, is_aligned: is_aligned != 0 };
        let out = Output { positions, kmers, wanted, room, count };
        // SAFETY: the caller keeps the contract of this kernel.
        unsafe { minimizers_tile(source, n, scheme, look_back, ticket, out) }
    }
}

//! Minimizers of a thousand windows at a time, each step over whole vectors of positions.
//!
//! Every step reads and writes arrays that stay in the first-level cache. Neighbouring positions are neighbouring
//! lanes. So letters that are no bases cost nothing, and short sequences cost as much per base as long ones.
//!
//! 1. Code and count of each letter: the count is 1 for G and T, and 128 for a letter that is no base. Sums over all
//!    windows, by doubling and saturated, then show the strand of a window and whether all of its letters are bases.
//! 2. [`Prefix`](warpset_core::minimizer::Prefix) hashes, by scans within vectors.
//! 3. The order of each k-mer above its position, so that the minimum is the leftmost least k-mer; and above the
//!    complement of its position, for the rightmost one. Minima of all windows, by doubling.
//! 4. Windows that select another k-mer than the window before: one bit per window, and one visit per set bit.

use std::cell::RefCell;

use warpset_core::minimizer::{Kmer, MOST_K, MOST_W, Scheme, complement, seed};

use super::lanes::{Avx2, Avx512, Lanes};
use super::text::Text;

/// Windows per block.
const WINDOWS: usize = 1024;
/// Positions per block, with those that its last windows reach.
const TEXT: usize = WINDOWS + (MOST_K + MOST_W) as usize;
/// Positions per turn of a loop, after which rotations of hashes repeat.
const STEP: usize = 32;
/// Places after the last position that loops may read and write.
const SLACK: usize = (MOST_K + MOST_W) as usize + 2 * STEP;
/// Count of a letter that is no base: more than the G and T of any window.
pub(super) const BREAK: u8 = 128;
/// Selection of a window without k-mers.
const NONE: u32 = u32::MAX;

/// One value per position of a block.
type Positions<T> = [T; TEXT + SLACK];

/// Arrays from one step to the next.
struct Buffers {
    codes: Positions<u8>,
    /// Counts of positions, then their sums over powers of two positions.
    counts: Positions<u8>,
    sums: Positions<u8>,
    /// Codes, two bits each.
    packed: [u8; (TEXT + SLACK) / 4],
    forward: Positions<u32>,
    reverse: Positions<u32>,
    left: Positions<u32>,
    right: Positions<u32>,
    /// Newly selected k-mers.
    anew: Positions<u32>,
    /// Selected k-mer of each window; the first place is that of the window before the block.
    taken: Positions<u32>,
}

thread_local! {
    static BUFFERS: RefCell<Box<Buffers>> = RefCell::new(Box::new(Buffers {
        codes: [0; _],
        counts: [0; _],
        sums: [0; _],
        packed: [0; _],
        forward: [0; _],
        reverse: [0; _],
        left: [0; _],
        right: [0; _],
        anew: [0; _],
        taken: [0; _],
    }));
}

/// Visits the minimizers of a text with AVX2: position and canonical k-mer.
pub(super) fn visit_avx2<K: Kmer>(lanes: Avx2, text: &impl Text, scheme: Scheme, visit: impl FnMut(usize, K)) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn fast<K: Kmer>(
        buffers: &mut Buffers,
        lanes: Avx2,
        text: &impl Text,
        scheme: Scheme,
        visit: impl FnMut(usize, K),
    ) {
        blocks(buffers, lanes, text, scheme, visit);
    }
    // SAFETY: a value of `Avx2` exists only if the processor has the instructions.
    BUFFERS.with_borrow_mut(|buffers| unsafe { fast(buffers, lanes, text, scheme, visit) });
}

/// Visits the minimizers of a text with AVX-512: position and canonical k-mer.
pub(super) fn visit_avx512<K: Kmer>(lanes: Avx512, text: &impl Text, scheme: Scheme, visit: impl FnMut(usize, K)) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
    fn fast<K: Kmer>(
        buffers: &mut Buffers,
        lanes: Avx512,
        text: &impl Text,
        scheme: Scheme,
        visit: impl FnMut(usize, K),
    ) {
        blocks(buffers, lanes, text, scheme, visit);
    }
    // SAFETY: a value of `Avx512` exists only if the processor has the instructions.
    BUFFERS.with_borrow_mut(|buffers| unsafe { fast(buffers, lanes, text, scheme, visit) });
}

#[inline(always)]
fn blocks<L: Lanes, K: Kmer>(
    buffers: &mut Buffers,
    lanes: L,
    text: &impl Text,
    scheme: Scheme,
    mut visit: impl FnMut(usize, K),
) {
    let window = scheme.window() as usize;
    let Some(windows) = (text.len() + 1).checked_sub(window) else { return };
    let mut last = NONE;
    let mut first = 0;
    while first < windows {
        let here = WINDOWS.min(windows - first);
        let len = here + window - 1;
        text.load(Avx2::of(lanes), first, len, &mut buffers.codes, &mut buffers.counts);
        count(buffers, Avx2::of(lanes), window, here);
        scan(buffers, lanes, scheme, len + 1);
        orders(buffers, lanes, scheme, len + 1 - scheme.k as usize);
        minima(buffers, lanes, scheme, here);
        for at in (0..len).step_by(8) {
            let codes = Avx2::of(lanes).pack_eight(&buffers.codes, at);
            buffers.packed[at / 4..at / 4 + 2].copy_from_slice(&codes.to_le_bytes());
        }
        buffers.taken[0] = last;
        visits(buffers, lanes, scheme, here, first, &mut visit);
        // Relative to the next block. No window there selects a k-mer before its begin.
        last = match buffers.taken[here] {
            NONE => NONE,
            taken => taken.wrapping_sub(WINDOWS as u32).min(NONE - 1),
        };
        first += here;
    }
}

/// Sums the counts of `window` positions from each of `windows` positions on.
#[inline(always)]
fn count(buffers: &mut Buffers, bytes: Avx2, window: usize, windows: usize) {
    let Buffers { counts, sums, .. } = buffers;
    // Bit by bit of `window`: `counts` holds sums of `len` positions, and `sums` those of `summed` positions.
    let (mut len, mut summed) = (1, 0);
    loop {
        if window & len != 0 {
            for at in (0..windows).step_by(32) {
                let more = bytes.load_bytes(counts, at + summed);
                let sum = if summed == 0 { more } else { bytes.add_bytes(bytes.load_bytes(sums, at), more) };
                bytes.store_bytes(sums, at, sum);
            }
            summed += len;
        }
        if 2 * len > window {
            return;
        }
        for at in (0..windows + window - 2 * len + 1).step_by(32) {
            let sum = bytes.add_bytes(bytes.load_bytes(counts, at), bytes.load_bytes(counts, at + len));
            bytes.store_bytes(counts, at, sum);
        }
        len *= 2;
    }
}

/// Seeds of all bases, repeated over a vector, and those of their complements.
const SEEDS: [[u32; 16]; 2] = {
    let mut seeds = [[0; 16]; 2];
    let mut i = 0;
    while i < 16 {
        seeds[0][i] = seed(i as u8 % 4);
        seeds[1][i] = seed(complement(i as u8 % 4));
        i += 1;
    }
    seeds
};

/// Returns the rotation of hashes at each position of a step.
#[inline(always)]
fn turns(scheme: Scheme) -> [u32; STEP] {
    let mut turns = [0; STEP];
    for i in 1..STEP {
        turns[i] = (turns[i - 1] + scheme.rotation) % 32;
    }
    turns
}

/// Computes the prefix hash before each of `len` positions.
#[inline(always)]
fn scan<L: Lanes>(buffers: &mut Buffers, lanes: L, scheme: Scheme, len: usize) {
    let Buffers { codes, forward, reverse, .. } = buffers;
    let turns = turns(scheme);
    let (seeds, others) = (lanes.load(&SEEDS[0], 0), lanes.load(&SEEDS[1], 0));
    let (mut before_forward, mut before_reverse) = (lanes.splat(0), lanes.splat(0));
    for step in (0..len).step_by(STEP) {
        for part in (0..STEP).step_by(L::LEN) {
            let (at, turn) = (step + part, lanes.load(&turns, part));
            let code = lanes.bytes(codes, at);
            let f = lanes.rotate_right(lanes.pick(seeds, code), turn);
            let r = lanes.rotate_left(lanes.pick(others, code), turn);
            let through_f = lanes.xor(lanes.scan(f), before_forward);
            let through_r = lanes.xor(lanes.scan(r), before_reverse);
            lanes.store(forward, at, lanes.xor(through_f, f));
            lanes.store(reverse, at, lanes.xor(through_r, r));
            (before_forward, before_reverse) = (lanes.last(through_f), lanes.last(through_r));
        }
    }
}

/// Computes the order of each of `kmers` k-mers above its position, and above the complement of its position.
#[inline(always)]
fn orders<L: Lanes>(buffers: &mut Buffers, lanes: L, scheme: Scheme, kmers: usize) {
    let Buffers { forward, reverse, left, right, .. } = buffers;
    let k = scheme.k as usize;
    let turns = turns(scheme);
    let rest = lanes.splat((scheme.k - 1) * scheme.rotation % 32);
    let (upper, lower, below) = (lanes.splat(0xffff_0000), lanes.splat(0xffff), lanes.splat(31));
    const NUMBERS: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let numbers = lanes.load(&NUMBERS, 0);
    for step in (0..kmers).step_by(STEP) {
        for part in (0..STEP).step_by(L::LEN) {
            let (at, turn) = (step + part, lanes.load(&turns, part));
            let last = lanes.and(lanes.add(turn, rest), below);
            let f = lanes.xor(lanes.load(forward, at), lanes.load(forward, at + k));
            let r = lanes.xor(lanes.load(reverse, at), lanes.load(reverse, at + k));
            let hash = lanes.add(lanes.rotate_left(f, last), lanes.rotate_right(r, turn));
            let order = lanes.and(hash, upper);
            let position = lanes.add(numbers, lanes.splat(at as u32));
            let leftmost = lanes.or(order, position);
            lanes.store(left, at, leftmost);
            lanes.store(right, at, lanes.xor(leftmost, lower));
        }
    }
}

/// Computes the k-mer that each of `windows` windows selects.
#[inline(always)]
fn minima<L: Lanes>(buffers: &mut Buffers, lanes: L, scheme: Scheme, windows: usize) {
    let Buffers { sums, left, right, taken, .. } = buffers;
    let w = scheme.w as usize;
    // Minima of `len` k-mers; `len` grows fourfold per round.
    let mut len = 1;
    while 4 * len <= w {
        for at in (0..windows + w - 4 * len + 1).step_by(L::LEN) {
            let least = least_of_four(lanes, left, at, [len, 2 * len, 3 * len]);
            let other = least_of_four(lanes, right, at, [len, 2 * len, 3 * len]);
            lanes.store(left, at, least);
            lanes.store(right, at, other);
        }
        len *= 4;
    }
    let rest = w - len;
    let steps = [len.min(rest), (2 * len).min(rest), rest];
    let (lower, none) = (lanes.splat(0xffff), lanes.splat(NONE));
    let (half, most) = (lanes.splat(scheme.window() / 2), lanes.splat(u32::from(BREAK) - 1));
    for at in (0..windows).step_by(L::LEN) {
        let leftmost = least_of_four(lanes, left, at, steps);
        let rightmost = least_of_four(lanes, right, at, steps);
        let sum = lanes.bytes(sums, at);
        let position = lanes.greater(sum, half, leftmost, lanes.xor(rightmost, lower));
        lanes.store(taken, at + 1, lanes.greater(sum, most, none, lanes.and(position, lower)));
    }
}

/// Returns the minimum of the values at `at` and at the distances `steps` from there. Not a closure: closures are
/// compiled without the instructions.
#[inline(always)]
fn least_of_four<L: Lanes>(lanes: L, values: &[u32], at: usize, steps: [usize; 3]) -> L::Vector {
    let [a, b, c] = steps;
    let first = lanes.min(lanes.load(values, at), lanes.load(values, at + a));
    lanes.min(first, lanes.min(lanes.load(values, at + b), lanes.load(values, at + c)))
}

/// Visits the k-mers that windows select and the windows before them did not.
#[inline(always)]
fn visits<L: Lanes, K: Kmer>(
    buffers: &mut Buffers,
    lanes: L,
    scheme: Scheme,
    windows: usize,
    first: usize,
    visit: &mut impl FnMut(usize, K),
) {
    let Buffers { packed, taken, anew, .. } = buffers;
    let none = lanes.splat(NONE);
    // All of them are compacted first, so that no branch depends on their places.
    let mut count = 0;
    for at in (0..windows).step_by(L::LEN) {
        let now = lanes.load(taken, at + 1);
        let here = lanes.anew(now, lanes.load(taken, at), none) & (!0 >> 32usize.saturating_sub(windows - at));
        lanes.compress(anew, count, now, here);
        count += here.count_ones() as usize;
    }
    for &position in &anew[..count] {
        let position = position as usize;
        visit(first + position, kmer_at::<K>(packed, position, scheme.k).canonical(scheme.k));
    }
}

/// Returns the `k` bases from `position` on; `packed` has four per byte, and 17 bytes from that position on.
#[inline(always)]
pub(super) fn kmer_at<K: Kmer>(packed: &[u8], position: usize, k: u32) -> K {
    let (bytes, shift) = (&packed[position / 4..position / 4 + 17], 2 * (position as u32 % 4));
    let word = |i: usize| {
        let bytes: &[u8; 9] = bytes[8 * i..8 * i + 9].try_into().expect("9 bytes");
        let low = u64::from_le_bytes(*bytes.first_chunk().expect("8 bytes"));
        low >> shift | u64::from(bytes[8]) << 1 << (63 - shift)
    };
    let low = K::from(word(0));
    // A shift by 64 bits, in two steps, leaves nothing of a number of 64 bits.
    let kmer = if K::MOST_K > 32 { low | K::from(word(1)) << 32 << 32 } else { low };
    kmer & K::mask(k)
}

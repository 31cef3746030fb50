//! With AVX2. For many keys at once, a lane of a register holds a key; for one key, a lane holds one of its bits.
//!
//! The next positions of [`KEYS`] keys are computed in registers, three instructions for one bit of eight keys, and
//! stored. Then a plain loop reads or writes the words, key by key, and does nothing else, so accesses of many keys
//! overlap. Only positions are stored: masks would save instructions, but loads limit the loop.
//!
//! The loops are without closures: a closure with target features is not inlined into the iterators of `core`, which
//! have none.

use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU8, Ordering};

use super::*;

/// Keys per computation of positions.
const KEYS: usize = 32;
/// Bits of a key per computation of positions.
const BITS: usize = 8;
/// Keys of a register.
const LANES: usize = 8;

/// Whether the processor has the instructions that these functions need. Tested once: single keys pay for each test.
#[inline(always)]
pub(super) fn is_there() -> bool {
    static KNOWN: AtomicU8 = AtomicU8::new(0);

    #[cold]
    fn find_out() -> bool {
        let there = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("popcnt");
        KNOWN.store(1 + u8::from(there), Ordering::Relaxed);
        there
    }
    match KNOWN.load(Ordering::Relaxed) {
        0 => find_out(),
        known => known == 2,
    }
}

/// Positions of each of [`KEYS`] keys in its bucket, bit by bit.
struct Positions(Rows);

/// A number for each bit of each key.
type Rows = [[u32; KEYS]; BITS];

impl Positions {
    fn new() -> Positions {
        Positions([[0; KEYS]; BITS])
    }
}

/// [`Walk`]s of [`KEYS`] keys.
struct Walks {
    positions: [__m256i; KEYS / LANES],
    steps: [__m256i; KEYS / LANES],
}

impl Walks {
    /// Returns the walks of at most [`KEYS`] keys.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn of<P: Placed>(shape: BucketShape, keys: &[P]) -> Walks {
        let mut hashes = [0u64; KEYS];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = key.hash();
        }
        let zero = _mm256_setzero_si256();
        let mut walks = Walks { positions: [zero; KEYS / LANES], steps: [zero; KEYS / LANES] };
        let bits = _mm256_set1_epi64x(shape.bits as i64);
        let steps = _mm256_set1_epi64x(shape.bits as i64 - 1);
        for (i, hashes) in hashes.as_chunks::<LANES>().0.iter().enumerate() {
            // SAFETY: each half of `hashes` is 32 bytes long; the loads take any alignment.
            let [a, b] = unsafe {
                let first: *const __m256i = hashes.as_ptr().cast();
                [_mm256_loadu_si256(first), _mm256_loadu_si256(first.add(1))]
            };
            walks.positions[i] = reduce(a, b, bits);
            let reduced = reduce(_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b), steps);
            walks.steps[i] = _mm256_add_epi32(reduced, _mm256_set1_epi32(1));
        }
        walks
    }

    /// Skips that many bits without noting their positions.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn skip(&mut self, shape: BucketShape, bits: usize) {
        for (positions, steps) in self.positions.iter_mut().zip(&self.steps) {
            for _ in 0..bits {
                *positions = plus(*positions, *steps, shape);
            }
        }
    }

    /// Notes the next `N` positions of each key.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn go<const N: usize>(&mut self, shape: BucketShape, positions: &mut Positions) {
        for (i, (at, steps)) in self.positions.iter_mut().zip(&self.steps).enumerate() {
            for row in &mut positions.0[..N] {
                let row = &mut row[i * LANES..][..LANES];
                // SAFETY: `row` is 32 bytes long; the store takes any alignment.
                unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), *at) };
                *at = plus(*at, *steps, shape);
            }
        }
    }
}

/// Returns the low halves of the lanes of `a` and of `b`, each brought below `n` as
/// [`reduce32`](warpset_core::bloom::reduce32) does.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn reduce(a: __m256i, b: __m256i, n: __m256i) -> __m256i {
    let a = _mm256_castsi256_ps(_mm256_mul_epu32(a, n));
    let b = _mm256_castsi256_ps(_mm256_mul_epu32(b, n));
    // The high halves of the products, back in order.
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(a, b)))
}

/// Adds the steps to the positions of eight keys; see [`super::plus`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn plus(positions: __m256i, steps: __m256i, shape: BucketShape) -> __m256i {
    let sum = _mm256_add_epi32(positions, steps);
    _mm256_min_epu32(sum, _mm256_sub_epi32(sum, _mm256_set1_epi32(shape.bits as i32)))
}

/// Evaluates `$body` with [`BITS`], or what is left if that is less, as constant `$n`.
macro_rules! with_constant_bits {
    ($left:expr, $n:ident => $body:expr) => {
        with_constant_bits!(@ $left, $n, $body, 1 2 3 4 5 6 7)
    };
    (@ $left:expr, $n:ident, $body:expr, $($bits:literal)*) => {
        match $left {
            $($bits => { const $n: usize = $bits; $body })*
            _ => { const $n: usize = BITS; $body }
        }
    };
}

/// Returns 1 if the first `N` bits of key `i` are set.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn all_set<const N: usize>(bucket: &[u32], positions: &Positions, i: usize) -> u32 {
    let mut all = 1;
    for row in &positions.0[..N] {
        let position = row[i];
        // SAFETY: `bucket` has `bucket_words` words, in which every position lies.
        all &= unsafe { *bucket.get_unchecked((position / 32) as usize) } >> (position % 32);
    }
    all
}

/// Looks up to 64 keys up; see [`super::contained`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn contained<P: Placed>(shape: BucketShape, words: &[u32], keys: &[P]) -> u64 {
    let mut positions = Positions::new();
    let mut found = 0;
    for (chunk, keys) in keys.chunks(KEYS).enumerate() {
        let mut walks = Walks::of(shape, keys);
        let mut left = shape.hashes as usize;
        let mut of_chunk = u64::MAX >> (64 - keys.len());
        while left > 0 {
            with_constant_bits!(left, N => {
                walks.go::<N>(shape, &mut positions);
                let mut set = 0;
                for (i, key) in keys.iter().enumerate() {
                    set |= (all_set::<N>(bucket_of(shape, words, key.bucket()), &positions, i) as u64) << i;
                }
                of_chunk &= set;
                left -= N;
            });
        }
        found |= of_chunk << (chunk * KEYS);
    }
    found
}

/// Looks keys up in words beyond the caches of a core: the first [`FIRST`] bits of all keys, already prefetched, then
/// the remaining bits of the remaining keys, prefetched together. See [`contained`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn contained_far<P: Placed>(shape: BucketShape, words: &[u32], keys: &[P]) -> u64 {
    let Some(any) = keys.first() else { return 0 };
    let (mut left, mut numbers, mut count) = ([*any; 64], [0u8; 64], keys.len());
    for (i, key) in keys.iter().enumerate() {
        (left[i], numbers[i]) = (*key, i as u8);
    }
    let mut positions = [Positions::new(), Positions::new()];
    let hashes = shape.hashes as usize;
    let mut done = 0;
    while done < hashes && count > 0 {
        let bits = if done == 0 { FIRST.min(hashes) } else { hashes - done };
        with_constant_bits!(bits, N => {
            for (keys, positions) in left[..count].chunks(KEYS).zip(&mut positions) {
                let mut walks = Walks::of(shape, keys);
                walks.skip(shape, done);
                walks.go::<N>(shape, positions);
                if done > 0 {
                    ask::<N, P>(shape, words, keys, positions);
                }
            }
            let mut kept = 0;
            for i in 0..count {
                let (key, number) = (left[i], numbers[i]);
                (left[kept], numbers[kept]) = (key, number);
                let bucket = bucket_of(shape, words, key.bucket());
                kept += (all_set::<N>(bucket, &positions[i / KEYS], i % KEYS) & 1) as usize;
            }
            (count, done) = (kept, done + N);
        });
    }
    let mut found = 0;
    for number in &numbers[..count] {
        found |= 1 << number;
    }
    found
}

/// Prefetches the cache lines of the first `N` bits of keys.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn ask<const N: usize, P: Placed>(shape: BucketShape, words: &[u32], keys: &[P], positions: &Positions) {
    for (i, key) in keys.iter().enumerate() {
        let start = key.bucket() as usize * shape.bucket_words as usize;
        for row in &positions.0[..N] {
            prefetch(words, start + (row[i] / 32) as usize);
        }
    }
}

/// Prefetches the cache lines of the first [`FIRST`] bits.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn ask_for_first<P: Placed>(shape: BucketShape, words: &[u32], keys: &[P]) {
    let mut positions = Positions::new();
    for keys in keys.chunks(KEYS) {
        let mut walks = Walks::of(shape, keys);
        with_constant_bits!(FIRST.min(shape.hashes as usize), N => {
            walks.go::<N>(shape, &mut positions);
            ask::<N, P>(shape, words, keys, &positions);
        });
    }
}

/// Sets the bits of keys; see [`super::insert_all`]. With `COUNTS`, `missing`, which has the length of `keys`, gets for
/// each key the number of bits that were not set. With `FAR`, cache lines are prefetched one step ahead.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn insert<const COUNTS: bool, const FAR: bool, P: Placed>(
    shape: BucketShape,
    words: &mut [u32],
    keys: &[P],
    ahead: Ahead,
    missing: &mut [u32],
) {
    let mut positions = [Positions::new(), Positions::new()];
    let mut found = [[0; KEYS]; BITS];
    let (mut turn, mut waiting) = (0, None);
    for (chunk, some) in keys.chunks(KEYS).enumerate() {
        let mut walks = Walks::of(shape, some);
        let mut left = shape.hashes as usize;
        while left > 0 {
            let bits = left.min(BITS);
            with_constant_bits!(left, N => {
                walks.go::<N>(shape, &mut positions[turn]);
                if FAR {
                    ask::<N, P>(shape, words, some, &positions[turn]);
                } else {
                    let first = chunk * KEYS;
                    set::<COUNTS, N, P>(shape, words, keys, first, (&positions[turn], &mut found), ahead, missing);
                }
            });
            if FAR {
                turn ^= 1;
                if let Some((first, bits)) = waiting.replace((chunk * KEYS, bits)) {
                    with_constant_bits!(bits, N =>
                        set::<COUNTS, N, P>(shape, words, keys, first, (&positions[turn], &mut found), ahead, missing));
                }
            }
            left -= bits;
        }
    }
    if let Some((first, bits)) = waiting {
        with_constant_bits!(bits, N => set::<COUNTS, N, P>(shape, words, keys, first, (&positions[turn ^ 1], &mut found), ahead, missing));
    }
}

/// Sets `N` bits of the [`KEYS`] keys from `first` on, or of the remaining ones.
///
/// To count, old words are stored in `found`, and their bits are counted for eight keys at a time.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn set<const COUNTS: bool, const N: usize, P: Placed>(
    shape: BucketShape,
    words: &mut [u32],
    keys: &[P],
    first: usize,
    (positions, found): (&Positions, &mut Rows),
    ahead: Ahead,
    missing: &mut [u32],
) {
    let keys = &keys[first..keys.len().min(first + KEYS)];
    for (i, key) in keys.iter().enumerate() {
        ahead.ask(words, first + i);
        let bucket = bucket_of_mut(shape, words, key.bucket());
        for (row, found) in positions.0[..N].iter().zip(&mut *found) {
            let position = row[i];
            // SAFETY: `bucket` has `bucket_words` words, in which every position lies.
            let word = unsafe { bucket.get_unchecked_mut((position / 32) as usize) };
            if COUNTS {
                found[i] = *word;
            }
            *word |= 1 << (position % 32);
        }
    }
    if !COUNTS {
        return;
    }
    let mut unset = [N as u32; KEYS];
    for (i, unset) in unset.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let pointer: *mut __m256i = unset.as_mut_ptr().cast();
        // SAFETY: `unset` is 32 bytes long; the load takes any alignment.
        let mut counts = unsafe { _mm256_loadu_si256(pointer) };
        for (row, found) in positions.0[..N].iter().zip(&*found) {
            let (row, found) = (&row[i * LANES..][..LANES], &found[i * LANES..][..LANES]);
            // SAFETY: both are 32 bytes long; the loads take any alignment.
            let (positions, words) =
                unsafe { (_mm256_loadu_si256(row.as_ptr().cast()), _mm256_loadu_si256(found.as_ptr().cast())) };
            let bits = _mm256_srlv_epi32(words, _mm256_and_si256(positions, _mm256_set1_epi32(31)));
            counts = _mm256_sub_epi32(counts, _mm256_and_si256(bits, _mm256_set1_epi32(1)));
        }
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(pointer, counts) };
    }
    for (missing, unset) in missing[first..].iter_mut().zip(&unset[..keys.len()]) {
        *missing += unset;
    }
}

/// Positions of one key, eight bits of it at a time.
struct Lanes {
    positions: __m256i,
    step: u32,
}

impl Lanes {
    /// Returns the positions of a key's first bits: by double hashing, lane `i` adds `i` steps, modulo `m`.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn of(hash: u64, shape: BucketShape) -> Lanes {
        let Walk { position, step } = Walk::of(hash, shape);
        let multiples = _mm256_mullo_epi32(_mm256_set1_epi32(step as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        // Below 8 m, where m is below 2^20.
        let mut positions = _mm256_add_epi32(_mm256_set1_epi32(position as i32), multiples);
        for log in [2, 1, 0] {
            // If the difference wraps around, the sum is the smaller.
            let difference = _mm256_sub_epi32(positions, _mm256_set1_epi32((shape.bits << log) as i32));
            positions = _mm256_min_epu32(positions, difference);
        }
        Lanes { positions, step }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn to_array(&self) -> [u32; BITS] {
        let mut positions = [0; BITS];
        // SAFETY: `positions` is 32 bytes long; the store takes any alignment.
        unsafe { _mm256_storeu_si256(positions.as_mut_ptr().cast(), self.positions) };
        positions
    }

    /// Moves to the next eight bits.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn advance(&mut self, shape: BucketShape) {
        let steps = _mm256_set1_epi32(self.step as i32);
        for _ in 0..BITS {
            self.positions = plus(self.positions, steps, shape);
        }
    }
}

/// Whether a key has all its bits set; see [`super::contains`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn contains(shape: BucketShape, bucket: &[u32], hash: u64) -> bool {
    assert!(bucket.len() == shape.bucket_words as usize);
    let mut lanes = Lanes::of(hash, shape);
    let mut left = shape.hashes as usize;
    loop {
        let positions = lanes.to_array();
        let mut all = 1;
        with_constant_bits!(left, N => for position in &positions[..N] {
            // SAFETY: every position lies in the bucket.
            all &= unsafe { *bucket.get_unchecked((*position / 32) as usize) } >> (*position % 32);
        });
        // Up to eight bits there is no branch that depends on the key.
        if left <= BITS || all & 1 == 0 {
            return all & 1 == 1;
        }
        left -= BITS;
        lanes.advance(shape);
    }
}

/// Sets the bits of a key; returns the number of bits that were not set. See [`super::insert`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn insert_one(shape: BucketShape, bucket: &mut [u32], hash: u64) -> u32 {
    assert!(bucket.len() == shape.bucket_words as usize);
    let mut lanes = Lanes::of(hash, shape);
    let mut left = shape.hashes as usize;
    let mut there = 0;
    loop {
        let positions = lanes.to_array();
        with_constant_bits!(left, N => for position in &positions[..N] {
            // SAFETY: every position lies in the bucket.
            let word = unsafe { bucket.get_unchecked_mut((*position / 32) as usize) };
            there += *word >> (*position % 32) & 1;
            *word |= 1 << (*position % 32);
        });
        if left <= BITS {
            return shape.hashes - there;
        }
        left -= BITS;
        lanes.advance(shape);
    }
}

/// Counts the set bits by a table of 16 counts, for both halves of each byte.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn count_ones(words: &[u32]) -> u32 {
    #[rustfmt::skip]
    let table = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let low = _mm256_set1_epi8(15);
    let (registers, rest) = words.as_chunks::<LANES>();
    let mut sums = _mm256_setzero_si256();
    for register in registers {
        // SAFETY: a register is 32 bytes long; the load takes any alignment.
        let register = unsafe { _mm256_loadu_si256(register.as_ptr().cast()) };
        let counts = _mm256_shuffle_epi8(table, _mm256_and_si256(register, low));
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(register), low);
        let bytes = _mm256_add_epi8(counts, _mm256_shuffle_epi8(table, high));
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    }
    let mut ones = [0u64; 4];
    // SAFETY: `ones` is 32 bytes long; the store takes any alignment.
    unsafe { _mm256_storeu_si256(ones.as_mut_ptr().cast(), sums) };
    let mut sum = (ones[0] + ones[1] + ones[2] + ones[3]) as u32;
    for word in rest {
        sum += word.count_ones();
    }
    sum
}

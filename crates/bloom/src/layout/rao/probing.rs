//! Testing and setting the bits of keys in their buckets.
//!
//! With AVX2, the places of [`KEYS`] keys are computed first and kept in memory, eight bits of a key to a register
//! (double hashing is a multiple of the step in each lane, modulo `m`); then a plain loop reads or writes the words. It
//! has nothing else to do, so that many keys are in flight at once. The portable code gives the same answers.
//!
//! Queries of a filter that is in no near cache go in two steps. The first [`FIRST`] bits of every key are looked at
//! first: in a filter that is half full they rule out three of four absent keys. Then the cache lines of the others are
//! asked for together.

use warpset_core::bloom::rao::{Positions, Shape};

use crate::layout::prefetch;

/// Bits that the first step looks at; their cache lines are asked for in advance.
pub(super) const FIRST: usize = 2;

/// A key in a bucket.
pub(crate) trait Placed: Copy {
    /// The bucket's number, counted from where the words at hand begin.
    fn bucket(&self) -> u32;
    /// The key's hash.
    fn hash(&self) -> u64;
}

/// [`Positions`] without a branch, which would go either way.
struct Walk {
    position: u32,
    step: u32,
}

impl Walk {
    #[inline(always)]
    fn of(hash: u64, shape: Shape) -> Walk {
        // The step is the distance of any two neighbours modulo m; a key of one bit has a step too.
        let mut positions = Positions::of(hash, Shape { hashes: 2, ..shape });
        let (Some(position), Some(second)) = (positions.next(), positions.next()) else { unreachable!() };
        let distance = second.wrapping_sub(position);
        Walk { position, step: distance.min(distance.wrapping_add(shape.bits)) }
    }

    /// The position that it is at; goes on to the next.
    #[inline(always)]
    fn go(&mut self, shape: Shape) -> u32 {
        let position = self.position;
        self.position = plus(position, self.step, shape);
        position
    }
}

/// The sum modulo m. Where the difference wraps around, the sum is the smaller.
#[inline(always)]
fn plus(position: u32, step: u32, shape: Shape) -> u32 {
    let sum = position + step;
    sum.min(sum.wrapping_sub(shape.bits))
}

#[inline(always)]
fn bit(words: &[u32], position: u32) -> u32 {
    words[(position / 32) as usize] >> (position % 32) & 1
}

/// A bucket's words.
#[inline(always)]
fn bucket_of(shape: Shape, words: &[u32], bucket: u32) -> &[u32] {
    &words[bucket as usize * shape.bucket_words as usize..][..shape.bucket_words as usize]
}

#[inline(always)]
fn bucket_of_mut(shape: Shape, words: &mut [u32], bucket: u32) -> &mut [u32] {
    &mut words[bucket as usize * shape.bucket_words as usize..][..shape.bucket_words as usize]
}

/// Which of up to 64 keys have all their bits set; `far` tells that the words are in no near cache.
#[inline]
pub(crate) fn contained<P: Placed>(shape: Shape, words: &[u32], keys: &[P], far: bool) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2 and its company were just detected.
        return unsafe { avx2::contained(shape, words, keys, far) };
    }
    contained_portable(shape, words, keys)
}

fn contained_portable<P: Placed>(shape: Shape, words: &[u32], keys: &[P]) -> u64 {
    let all = |key: &P| contains(shape, bucket_of(shape, words, key.bucket()), key.hash());
    keys.iter().enumerate().fold(0, |found, (i, key)| found | (all(key) as u64) << i)
}

/// Whether a key has all its bits set.
#[inline]
pub(crate) fn contains(shape: Shape, bucket: &[u32], hash: u64) -> bool {
    let mut walk = Walk::of(hash, shape);
    (0..shape.hashes).all(|_| bit(bucket, walk.go(shape)) == 1)
}

/// Sets the bits of a key; how many were not set before.
#[inline]
pub(crate) fn insert(shape: Shape, bucket: &mut [u32], hash: u64) -> u32 {
    let (mut missing, mut walk) = (0, Walk::of(hash, shape));
    for _ in 0..shape.hashes {
        let position = walk.go(shape);
        let word = &mut bucket[(position / 32) as usize];
        missing += !*word >> (position % 32) & 1;
        *word |= 1 << (position % 32);
    }
    missing
}

/// Sets the bits of keys.
#[inline]
pub(crate) fn insert_all<P: Placed>(shape: Shape, words: &mut [u32], keys: &[P]) {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2 and its company were just detected.
        return unsafe { avx2::insert_all(shape, words, keys) };
    }
    for key in keys {
        insert_portable(shape, words, key);
    }
}

/// Sets the bits of keys; `missing` gets for each how many were not set before. Of equal keys only the first may have any.
#[inline]
pub(crate) fn insert_each<P: Placed>(shape: Shape, words: &mut [u32], keys: &[P], missing: &mut Vec<u32>) {
    missing.clear();
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2 and its company were just detected.
        return unsafe { avx2::insert_each(shape, words, keys, missing) };
    }
    missing.extend(keys.iter().map(|key| insert_portable(shape, words, key)));
}

#[inline(always)]
fn insert_portable<P: Placed>(shape: Shape, words: &mut [u32], key: &P) -> u32 {
    insert(shape, bucket_of_mut(shape, words, key.bucket()), key.hash())
}

/// How many bits are set.
#[inline]
pub(crate) fn count_ones(words: &[u32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2 and its company were just detected.
        return unsafe { avx2::count_ones(words) };
    }
    words.iter().map(|word| word.count_ones()).sum()
}

/// Asks for the cache lines of a key's bits from the `from`-th on.
#[inline(always)]
pub(crate) fn prefetch_bits<P: Placed>(shape: Shape, words: &[u32], key: &P, from: usize) {
    let start = key.bucket() as usize * shape.bucket_words as usize;
    let mut walk = Walk::of(key.hash(), shape);
    for i in 0..shape.hashes as usize {
        let position = walk.go(shape);
        if i >= from {
            prefetch(words, start + position as usize / 32);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The loops are plain and without closures: a closure with target features is not inlined into the iterators of
    //! `core`, which have none.

    use std::arch::x86_64::*;

    use super::*;

    /// Keys whose places are computed at a time.
    const KEYS: usize = 16;
    /// Bits of a key that are computed at a time.
    const LANES: usize = 8;

    #[inline(always)]
    pub(super) fn is_there() -> bool {
        std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("popcnt")
    }

    /// The next position of each of [`KEYS`] keys in its bucket, and the step.
    struct Next {
        positions: [u32; KEYS],
        steps: [u32; KEYS],
    }

    impl Next {
        /// Of at most [`KEYS`] keys, from bit `from` on.
        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn of<P: Placed>(shape: Shape, keys: &[P], from: usize) -> Next {
            let mut hashes = [0u64; KEYS];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = key.hash();
            }
            let mut next = Next { positions: [0; KEYS], steps: [0; KEYS] };
            for (i, hash) in hashes.into_iter().enumerate() {
                let walk = Walk::of(hash, shape);
                (next.positions[i], next.steps[i]) = (walk.position, walk.step);
            }
            next.advance(shape, from);
            next
        }

        /// Goes on by so many bits.
        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn advance(&mut self, shape: Shape, bits: usize) {
            for _ in 0..bits {
                for i in 0..KEYS {
                    self.positions[i] = plus(self.positions[i], self.steps[i], shape);
                }
            }
        }
    }

    /// Where [`LANES`] bits of each key lie: the number of the word in the bucket, and the bit in it.
    struct Places {
        words: [[u32; LANES]; KEYS],
        bits: [[u32; LANES]; KEYS],
    }

    impl Places {
        #[inline]
        fn new() -> Places {
            Places { words: [[0; LANES]; KEYS], bits: [[0; LANES]; KEYS] }
        }

        /// The numbers of the words are below `bucket_words`, as every position is below `bits`.
        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn compute(&mut self, shape: Shape, next: &Next) {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            for i in 0..KEYS {
                let multiples = _mm256_mullo_epi32(_mm256_set1_epi32(next.steps[i] as i32), lanes);
                // Below 8 m, where m is below 2^20.
                let mut positions = _mm256_add_epi32(_mm256_set1_epi32(next.positions[i] as i32), multiples);
                for log in [2, 1, 0] {
                    // Where the difference wraps around, the sum is the smaller.
                    let difference = _mm256_sub_epi32(positions, _mm256_set1_epi32((shape.bits << log) as i32));
                    positions = _mm256_min_epu32(positions, difference);
                }
                let in_word = _mm256_and_si256(positions, _mm256_set1_epi32(31));
                let bits = _mm256_sllv_epi32(_mm256_set1_epi32(1), in_word);
                // SAFETY: both arrays are 32 bytes long; the stores take any alignment.
                unsafe {
                    let words = _mm256_srli_epi32::<5>(positions);
                    _mm256_storeu_si256(self.words[i].as_mut_ptr().cast(), words);
                    _mm256_storeu_si256(self.bits[i].as_mut_ptr().cast(), bits);
                }
            }
        }
    }

    /// Evaluates `$body` with the number of lanes in use as constant `$n`.
    macro_rules! with_constant_lanes {
        ($lanes:expr, $n:ident => $body:expr) => {
            with_constant_lanes!(@ $lanes, $n, $body, 1 2 3 4 5 6 7)
        };
        (@ $lanes:expr, $n:ident, $body:expr, $($lane:literal)*) => {
            match $lanes {
                $($lane => { const $n: usize = $lane; $body })*
                _ => { const $n: usize = LANES; $body }
            }
        };
    }

    /// Which of up to 16 keys have all their bits from bit `from` on set.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn test<P: Placed>(shape: Shape, words: &[u32], keys: &[P], from: usize, places: &mut Places) -> u64 {
        let mut found = u64::MAX >> (64 - keys.len());
        let mut next = Next::of(shape, keys, from);
        let mut left = (shape.hashes as usize).saturating_sub(from);
        while left > 0 {
            places.compute(shape, &next);
            with_constant_lanes!(left, N => for (i, key) in keys.iter().enumerate() {
                let bucket = bucket_of(shape, words, key.bucket());
                let (numbers, bits) = (&places.words[i], &places.bits[i]);
                let mut missing = 0;
                for j in 0..N {
                    // SAFETY: `bucket` has `bucket_words` words, and the numbers are below that.
                    missing |= bits[j] & !unsafe { *bucket.get_unchecked(numbers[j] as usize) };
                }
                found &= !(((missing != 0) as u64) << i);
            });
            left = left.saturating_sub(LANES);
            if left > 0 {
                next.advance(shape, LANES);
            }
        }
        found
    }

    /// Sets the bits of up to 16 keys; with `COUNTS`, returns how many of each key's were not set.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn set<const COUNTS: bool, P: Placed>(
        shape: Shape,
        words: &mut [u32],
        keys: &[P],
        places: &mut Places,
    ) -> [u32; KEYS] {
        let mut missing = [0; KEYS];
        let mut next = Next::of(shape, keys, 0);
        let mut left = shape.hashes as usize;
        while left > 0 {
            places.compute(shape, &next);
            with_constant_lanes!(left, N => for (i, key) in keys.iter().enumerate() {
                let bucket = bucket_of_mut(shape, words, key.bucket());
                let (numbers, bits) = (&places.words[i], &places.bits[i]);
                for j in 0..N {
                    // SAFETY: `bucket` has `bucket_words` words, and the numbers are below that.
                    let word = unsafe { bucket.get_unchecked_mut(numbers[j] as usize) };
                    if COUNTS {
                        missing[i] += (*word & bits[j] == 0) as u32;
                    }
                    *word |= bits[j];
                }
            });
            left = left.saturating_sub(LANES);
            if left > 0 {
                next.advance(shape, LANES);
            }
        }
        missing
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn contained<P: Placed>(shape: Shape, words: &[u32], keys: &[P], far: bool) -> u64 {
        let mut places = Places::new();
        let mut found = 0;
        if !far || keys.is_empty() {
            for (i, keys) in keys.chunks(KEYS).enumerate() {
                found |= test(shape, words, keys, 0, &mut places) << (i * KEYS);
            }
            return found;
        }
        // The keys whose first bits are set, and their numbers.
        let (mut left, mut numbers, mut count) = ([keys[0]; 64], [0u8; 64], 0);
        for (i, key) in keys.iter().enumerate() {
            let bucket = bucket_of(shape, words, key.bucket());
            let (mut all, mut walk) = (1, Walk::of(key.hash(), shape));
            for _ in 0..FIRST.min(shape.hashes as usize) {
                all &= bit(bucket, walk.go(shape));
            }
            (left[count], numbers[count]) = (*key, i as u8);
            count += all as usize;
        }
        let (left, numbers) = (&left[..count], &numbers[..count]);
        for key in left {
            prefetch_bits(shape, words, key, FIRST);
        }
        for (keys, numbers) in left.chunks(KEYS).zip(numbers.chunks(KEYS)) {
            let set = test(shape, words, keys, FIRST, &mut places);
            for (i, number) in numbers.iter().enumerate() {
                found |= (set >> i & 1) << number;
            }
        }
        found
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn insert_all<P: Placed>(shape: Shape, words: &mut [u32], keys: &[P]) {
        let mut places = Places::new();
        for keys in keys.chunks(KEYS) {
            set::<false, P>(shape, words, keys, &mut places);
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn insert_each<P: Placed>(shape: Shape, words: &mut [u32], keys: &[P], missing: &mut Vec<u32>) {
        let mut places = Places::new();
        for keys in keys.chunks(KEYS) {
            missing.extend_from_slice(&set::<true, P>(shape, words, keys, &mut places)[..keys.len()]);
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn count_ones(words: &[u32]) -> u32 {
        let mut ones = 0;
        for word in words {
            ones += word.count_ones();
        }
        ones
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::hash::finalise;

    #[derive(Clone, Copy)]
    struct Key(u32, u64);
    impl Placed for Key {
        fn bucket(&self) -> u32 {
            self.0
        }
        fn hash(&self) -> u64 {
            self.1
        }
    }

    /// Against the positions themselves, for every number of bits a key and of keys in a batch.
    #[test]
    fn every_path_sets_and_sees_the_bits_of_core() {
        for (bucket_words, most) in [(2, 60), (3, 64), (64, 64), (16_384, 24)] {
            for hashes in 1..=most {
                let shape = Shape::new(bucket_words, hashes).unwrap();
                let keys: Vec<Key> =
                    (0..100).map(|i| finalise(i % 90 + 1)).map(|hash| Key((hash >> 40) as u32 % 3, hash)).collect();
                let mut expected = vec![0u32; 3 * bucket_words as usize];
                let place = |key: &Key, position: u32| (key.0 * bucket_words + position / 32) as usize;
                for key in &keys[..60] {
                    Positions::of(key.1, shape).for_each(|p| expected[place(key, p)] |= 1 << (p % 32));
                }
                let count = (hashes as usize * 7 + bucket_words as usize) % 61;
                let [mut all, mut each, mut portable] = [(); 3].map(|()| vec![0; expected.len()]);
                insert_all(shape, &mut all, &keys[..count]);
                insert_all(shape, &mut all, &keys[count..60]);
                let mut counts = Vec::new();
                insert_each(shape, &mut each, &keys[..60], &mut counts);
                let counted = keys[..60].iter().map(|key| insert_portable(shape, &mut portable, key)).sum::<u32>();
                assert!(all == expected && each == expected && portable == expected, "{shape:?}");
                assert_eq!(counts.iter().sum::<u32>(), counted);
                assert_eq!((counts.len(), count_ones(&all)), (60, counted));
                for batch in [&keys[..0], &keys[..1], &keys[40..77], &keys[36..100]] {
                    let found = contained_portable(shape, &expected, batch);
                    assert_eq!(contained(shape, &expected, batch, false), found, "{shape:?}");
                    assert_eq!(contained(shape, &expected, batch, true), found, "{shape:?}");
                }
                assert_eq!(contained(shape, &expected, &keys[..60], true), u64::MAX >> 4);
            }
        }
    }
}

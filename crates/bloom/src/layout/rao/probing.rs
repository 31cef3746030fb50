//! Testing and setting the bits of keys in their buckets.
//!
//! Batches of keys use [`avx2`] where the processor has it. The portable code gives the same answers.
//!
//! Queries of a filter larger than the caches of a core take two steps. The first step reads the first [`FIRST`] bits
//! of every key: in a half-full filter they rule out three of four absent keys. Then the cache lines of the others are
//! prefetched together.

use warpset_core::bloom::rao::{BucketShape, Positions};
use warpset_core::bloom::reduce32;

use warpset_base::processor::prefetch;

#[cfg(target_arch = "x86_64")]
mod avx2;

/// Bits that the first step reads; their cache lines are prefetched.
pub(super) const FIRST: usize = 2;

/// A key in a bucket.
pub(crate) trait Placed: Copy {
    /// Returns the bucket's number, counted from the first of the given words.
    fn bucket(&self) -> u32;
    /// Returns the key's hash.
    fn hash(&self) -> u64;
}

/// Position of a key's next bit, as in [`Positions`] but without its unpredictable branch.
struct Walk {
    position: u32,
    step: u32,
}

impl Walk {
    #[inline(always)]
    fn of(hash: u64, shape: BucketShape) -> Walk {
        // The step that `Positions::of` computes and does not expose.
        let step = 1 + reduce32((hash >> 32) as u32, u64::from(shape.bits) - 1) as u32;
        Walk { position: reduce32(hash as u32, u64::from(shape.bits)) as u32, step }
    }

    /// Returns the current position; moves to the next.
    #[inline(always)]
    fn go(&mut self, shape: BucketShape) -> u32 {
        let position = self.position;
        self.position = plus(position, self.step, shape);
        position
    }
}

/// Returns the sum modulo m. If the difference wraps around, the sum is the smaller.
#[inline(always)]
fn plus(position: u32, step: u32, shape: BucketShape) -> u32 {
    let sum = position + step;
    sum.min(sum.wrapping_sub(shape.bits))
}

#[inline(always)]
fn bit(words: &[u32], position: u32) -> u32 {
    words[(position / 32) as usize] >> (position % 32) & 1
}

/// Returns a bucket's words.
#[inline(always)]
fn bucket_of(shape: BucketShape, words: &[u32], bucket: u32) -> &[u32] {
    &words[bucket as usize * shape.bucket_words as usize..][..shape.bucket_words as usize]
}

#[inline(always)]
fn bucket_of_mut(shape: BucketShape, words: &mut [u32], bucket: u32) -> &mut [u32] {
    &mut words[bucket as usize * shape.bucket_words as usize..][..shape.bucket_words as usize]
}

/// Looks up at most 64 keys: bit `i` tells whether all bits of key `i` are set; `far` tells that the words are in no
/// near cache.
#[inline]
pub(crate) fn contained<P: Placed>(shape: BucketShape, words: &[u32], keys: &[P], far: bool) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2, BMI1, BMI2 and POPCNT were just detected.
        return unsafe {
            if far { avx2::contained_far(shape, words, keys) } else { avx2::contained(shape, words, keys) }
        };
    }
    let _ = far; // portable code asks for no cache lines in between
    contained_portable(shape, words, keys)
}

fn contained_portable<P: Placed>(shape: BucketShape, words: &[u32], keys: &[P]) -> u64 {
    let all = |key: &P| contains_portable(shape, bucket_of(shape, words, key.bucket()), key.hash());
    keys.iter().enumerate().fold(0, |found, (i, key)| found | (all(key) as u64) << i)
}

/// Whether a key has all its bits set.
#[inline]
pub(crate) fn contains(shape: BucketShape, bucket: &[u32], hash: u64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2, BMI1, BMI2 and POPCNT were just detected.
        return unsafe { avx2::contains(shape, bucket, hash) };
    }
    contains_portable(shape, bucket, hash)
}

fn contains_portable(shape: BucketShape, bucket: &[u32], hash: u64) -> bool {
    let mut walk = Walk::of(hash, shape);
    (0..shape.hashes).all(|_| bit(bucket, walk.go(shape)) == 1)
}

/// Sets the bits of a key; returns the number of bits that were not set.
#[inline]
pub(crate) fn insert(shape: BucketShape, bucket: &mut [u32], hash: u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2, BMI1, BMI2 and POPCNT were just detected.
        return unsafe { avx2::insert_one(shape, bucket, hash) };
    }
    insert_one_portable(shape, bucket, hash)
}

fn insert_one_portable(shape: BucketShape, bucket: &mut [u32], hash: u64) -> u32 {
    let (mut missing, mut walk) = (0, Walk::of(hash, shape));
    for _ in 0..shape.hashes {
        let position = walk.go(shape);
        let word = &mut bucket[(position / 32) as usize];
        missing += !*word >> (position % 32) & 1;
        *word |= 1 << (position % 32);
    }
    missing
}

/// Sets the bits of keys; `far` tells that the words are in no near cache.
#[inline]
pub(crate) fn insert_all<P: Placed>(shape: BucketShape, words: &mut [u32], keys: &[P], far: bool) {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2, BMI1, BMI2 and POPCNT were just detected.
        return unsafe {
            if far {
                avx2::insert::<false, true, P>(shape, words, keys, Ahead::default(), &mut [])
            } else {
                avx2::insert::<false, false, P>(shape, words, keys, Ahead::default(), &mut [])
            }
        };
    }
    let _ = far;
    for key in keys {
        insert_portable(shape, words, key);
    }
}

/// Sets the bits of keys; `missing` gets, for each, the number of bits that were not set. Of equal keys only the first
/// may have missing bits.
#[inline]
pub(crate) fn insert_each<P: Placed>(
    shape: BucketShape,
    words: &mut [u32],
    keys: &[P],
    far: bool,
    ahead: Ahead,
    missing: &mut Vec<u32>,
) {
    missing.clear();
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        missing.resize(keys.len(), 0);
        // SAFETY: AVX2, BMI1, BMI2 and POPCNT were just detected.
        return unsafe {
            if far {
                avx2::insert::<true, true, P>(shape, words, keys, ahead, missing)
            } else {
                avx2::insert::<true, false, P>(shape, words, keys, ahead, missing)
            }
        };
    }
    let _ = far;
    missing.extend(keys.iter().enumerate().map(|(i, key)| {
        ahead.ask(words, i);
        insert_portable(shape, words, key)
    }));
}

#[inline(always)]
fn insert_portable<P: Placed>(shape: BucketShape, words: &mut [u32], key: &P) -> u32 {
    insert_one_portable(shape, bucket_of_mut(shape, words, key.bucket()), key.hash())
}

/// Counts the set bits.
#[inline]
pub(crate) fn count_ones(words: &[u32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2, BMI1, BMI2 and POPCNT were just detected.
        return unsafe { avx2::count_ones(words) };
    }
    words.iter().map(|word| word.count_ones()).sum()
}

/// Cache lines to prefetch during insertions: `lines` per key, in order, from `word` on.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ahead {
    pub(crate) word: usize,
    pub(crate) lines: usize,
}

impl Ahead {
    #[inline(always)]
    fn ask(self, words: &[u32], key: usize) {
        for line in key * self.lines..(key + 1) * self.lines {
            prefetch(words, self.word + line * 16);
        }
    }
}

/// Prefetches all cache lines, in their order.
pub(crate) fn prefetch_all(words: &[u32]) {
    (0..words.len()).step_by(16).for_each(|word| prefetch(words, word));
}

/// Prefetches the cache lines that decide most queries of absent keys; [`contained`] prefetches the others.
#[inline]
pub(crate) fn prefetch_first<P: Placed>(shape: BucketShape, words: &[u32], keys: &[P]) {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: AVX2, BMI1, BMI2 and POPCNT were just detected.
        return unsafe { avx2::ask_for_first(shape, words, keys) };
    }
    for key in keys {
        let start = key.bucket() as usize * shape.bucket_words as usize;
        for position in Positions::of(key.hash(), shape).take(FIRST) {
            prefetch(words, start + position as usize / 32);
        }
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

    /// Compares every path with the positions themselves, for every number of bits per key and of keys in a batch.
    #[test]
    fn every_path_sets_and_sees_the_bits_of_core() {
        for (bucket_words, most) in [(2, 60), (3, 64), (64, 64), (16_384, 24)] {
            for hashes in 1..=most {
                let shape = BucketShape::new(bucket_words, hashes).unwrap();
                let keys: Vec<Key> =
                    (0..100).map(|i| finalise(i % 90 + 1)).map(|hash| Key((hash >> 40) as u32 % 3, hash)).collect();
                let mut expected = vec![0u32; 3 * bucket_words as usize];
                let place = |key: &Key, position: u32| (key.0 * bucket_words + position / 32) as usize;
                for key in &keys[..60] {
                    Positions::of(key.1, shape).for_each(|p| expected[place(key, p)] |= 1 << (p % 32));
                }
                let count = (hashes as usize * 7 + bucket_words as usize) % 61;
                let [mut all, mut each, mut portable] = [(); 3].map(|()| vec![0; expected.len()]);
                insert_all(shape, &mut all, &keys[..count], hashes % 2 == 0);
                insert_all(shape, &mut all, &keys[count..60], hashes % 2 == 1);
                let mut counts = Vec::new();
                insert_each(
                    shape,
                    &mut each,
                    &keys[..60],
                    hashes % 2 == 0,
                    Ahead { word: 16, lines: hashes as usize % 3 },
                    &mut counts,
                );
                let counted = keys[..60].iter().map(|key| insert_portable(shape, &mut portable, key)).sum::<u32>();
                assert!(all == expected && each == expected && portable == expected, "{shape:?}");
                assert_eq!(counts.iter().sum::<u32>(), counted);
                assert_eq!((counts.len(), count_ones(&all)), (60, counted));
                let mut single = vec![0; expected.len()];
                for (key, count) in keys[..60].iter().zip(&counts) {
                    let bucket = bucket_of_mut(shape, &mut single, key.0);
                    let missing = insert(shape, bucket, key.1);
                    // Beyond eight bits, the keys of a batch take turns, and a new bit of two keys may be counted for
                    // either.
                    assert!(missing == *count || hashes > 8, "{shape:?}");
                }
                assert!(single == expected, "{shape:?}");
                for key in &keys {
                    let bucket = bucket_of(shape, &expected, key.0);
                    assert_eq!(contains(shape, bucket, key.1), contains_portable(shape, bucket, key.1), "{shape:?}");
                }
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

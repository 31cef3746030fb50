//! Lookups of many keys: batches go through three stages, and while one waits for memory, others proceed.
//!
//! | stage | work | prefetches |
//! | --- | --- | --- |
//! | group | hashes a batch's keys | the pilots' lines |
//! | bucket | reads the pilots of the batch before | the buckets' lines |
//! | slot | compares the keys of the batch before that | the values' lines, if values are read |

use bytemuck::Pod;
use warpset_base::bitmap::Bitmap;
use warpset_base::key::Key;
use warpset_base::parallel;
use warpset_core::static_set::{self, BUCKET_WORDS};

use crate::key::Line;
use crate::{Layout, MapValue, StaticKey, Value};

/// Keys of a batch.
const BATCH: usize = 32;
/// Nanoseconds per key of a batch.
const LOOKUP_NS: f64 = 10.0;
/// Slot of absent keys.
const ABSENT: usize = usize::MAX;
/// Least bytes of pilots and keys with prefetches: half of a typical second-level cache.
const AHEAD_BYTES: u64 = 1 << 20;

/// Parts of a set that lookups of many keys read.
pub(crate) struct Lookup<'a, K, V> {
    pub(crate) layout: Layout<K, V>,
    pub(crate) pilots: &'a [u8],
    pub(crate) keys: &'a [u64],
    pub(crate) values: &'a [u64],
}

impl<K: StaticKey, V: Value> Clone for Lookup<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: StaticKey, V: Value> Copy for Lookup<'_, K, V> {}

/// Comparison of a line's keys.
trait Compare: Copy {
    fn find<K: StaticKey>(self, line: &Line, key: K) -> u32;
}

#[derive(Clone, Copy)]
struct Portable;
impl Compare for Portable {
    #[inline(always)]
    fn find<K: StaticKey>(self, line: &Line, key: K) -> u32 {
        K::find(line, key)
    }
}

/// Proof of AVX2: values exist only in functions compiled for it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx2(());
#[cfg(target_arch = "x86_64")]
impl Compare for Avx2 {
    #[inline(always)]
    fn find<K: StaticKey>(self, line: &Line, key: K) -> u32 {
        // SAFETY: a value of this type exists, so the processor has AVX2.
        unsafe { <K as crate::key::sealed::StaticKey>::find_avx2(line, key) }
    }
}

/// Proof of AVX-512: values exist only in functions compiled for it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx512(());
#[cfg(target_arch = "x86_64")]
impl Compare for Avx512 {
    #[inline(always)]
    fn find<K: StaticKey>(self, line: &Line, key: K) -> u32 {
        // SAFETY: a value of this type exists, so the processor has AVX-512F.
        unsafe { <K as crate::key::sealed::StaticKey>::find_avx512(line, key) }
    }
}

/// A batch between stages.
#[derive(Clone, Copy)]
struct Batch<K> {
    keys: [K; BATCH],
    hashes: [u64; BATCH],
    /// Groups, then buckets, then slots.
    at: [usize; BATCH],
    /// Keys that can be in the set.
    valid: u32,
}

const _: () = assert!(BATCH == u32::BITS as usize);

/// Prefetches a cache line.
#[inline(always)]
fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch accesses no memory in the sense of the language, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

impl<'a, K: StaticKey, V: Value> Lookup<'a, K, V> {
    /// Passes the slots of all keys to `take`, [`BATCH`] at a time, with the position of the first one; [`ABSENT`] for
    /// absent keys. `key_of` returns the key of the set that an item may be. With `VALUES`, values will be read.
    #[inline]
    fn slots<Q, const VALUES: bool>(
        self,
        items: &[Q],
        key_of: impl Fn(&Q) -> Option<K>,
        take: impl FnMut(usize, &[usize]),
    ) {
        if self.layout.is_empty() {
            let mut take = take;
            for (i, items) in items.chunks(BATCH).enumerate() {
                take(i * BATCH, &[ABSENT; BATCH][..items.len()]);
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("bmi2") {
                // SAFETY: the processor has these instructions.
                return unsafe { self.with_avx512::<Q, VALUES>(items, key_of, take) };
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                // SAFETY: the processor has these instructions.
                return unsafe { self.with_avx2::<Q, VALUES>(items, key_of, take) };
            }
        }
        self.staged::<Q, VALUES>(Portable, items, key_of, take);
    }

    /// Runs [`slots`](Self::slots) with AVX-512.
    ///
    /// # Safety
    /// The processor has AVX-512F and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx2,bmi2")]
    unsafe fn with_avx512<Q, const VALUES: bool>(
        self,
        items: &[Q],
        key_of: impl Fn(&Q) -> Option<K>,
        take: impl FnMut(usize, &[usize]),
    ) {
        self.staged::<Q, VALUES>(Avx512(()), items, key_of, take);
    }

    /// Runs [`slots`](Self::slots) with AVX2.
    ///
    /// # Safety
    /// The processor has AVX2 and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn with_avx2<Q, const VALUES: bool>(
        self,
        items: &[Q],
        key_of: impl Fn(&Q) -> Option<K>,
        take: impl FnMut(usize, &[usize]),
    ) {
        self.staged::<Q, VALUES>(Avx2(()), items, key_of, take);
    }

    /// Runs [`slots`](Self::slots) for a set that is not empty.
    #[inline(always)]
    fn staged<Q, const VALUES: bool>(
        self,
        compare: impl Compare,
        items: &[Q],
        key_of: impl Fn(&Q) -> Option<K>,
        mut take: impl FnMut(usize, &[usize]),
    ) {
        // Four batches are in progress: one in each of the three stages, and one in `take`.
        let mut ring = [Batch { keys: [K::zeroed(); BATCH], hashes: [0; BATCH], at: [0; BATCH], valid: 0 }; 4];
        let ahead = 8 * self.layout.words() > AHEAD_BYTES;
        let batches = items.len().div_ceil(BATCH);
        for i in 0..batches + 3 {
            if let Some(items) = items.chunks(BATCH).nth(i) {
                self.to_groups(&mut ring[i % 4], items, &key_of, ahead);
            }
            if (1..=batches).contains(&i) {
                self.to_buckets(&mut ring[(i - 1) % 4], ahead);
            }
            if (2..=batches + 1).contains(&i) {
                self.to_slots::<VALUES>(&mut ring[(i - 2) % 4], compare, ahead);
            }
            if i >= 3 {
                let first = (i - 3) * BATCH;
                take(first, &ring[(i - 3) % 4].at[..BATCH.min(items.len() - first)]);
            }
        }
    }

    #[inline(always)]
    fn to_groups<Q>(self, batch: &mut Batch<K>, items: &[Q], key_of: impl Fn(&Q) -> Option<K>, ahead: bool) {
        let (shape, spread) = (self.layout.shape(), self.layout.spread());
        batch.valid = 0;
        for (i, item) in items.iter().enumerate() {
            let key = key_of(item);
            batch.valid |= u32::from(key.is_some()) << i;
            // Without a key any key: its answer is dropped.
            batch.keys[i] = key.unwrap_or(K::zeroed());
        }
        for i in 0..BATCH {
            batch.hashes[i] = static_set::hash(batch.keys[i].to_word(), spread);
            batch.at[i] = shape.group(batch.hashes[i]) as usize;
        }
        if ahead {
            batch.at.iter().for_each(|&group| prefetch(self.pilots, group));
        }
    }

    #[inline(always)]
    fn to_buckets(self, batch: &mut Batch<K>, ahead: bool) {
        let shape = self.layout.shape();
        for (at, &hash) in batch.at.iter_mut().zip(&batch.hashes) {
            *at = shape.bucket(hash, self.pilots[*at].into()) as usize;
            if ahead {
                prefetch(self.keys, *at * BUCKET_WORDS);
            }
        }
    }

    #[inline(always)]
    fn to_slots<const VALUES: bool>(self, batch: &mut Batch<K>, compare: impl Compare, ahead: bool) {
        for (i, (at, &key)) in batch.at.iter_mut().zip(&batch.keys).enumerate() {
            let line: &Line = self.keys[*at * BUCKET_WORDS..].first_chunk().expect("buckets are whole lines");
            let found = compare.find(line, key);
            let slot = *at * K::SLOTS + found.trailing_zeros() as usize;
            *at = if found != 0 && batch.valid >> i & 1 != 0 { slot } else { ABSENT };
            if VALUES && ahead && found != 0 {
                prefetch(self.values, slot * V::BYTES / 8);
            }
        }
    }

    /// Returns one bit per item, on all threads.
    pub(crate) fn bits<Q: Sync>(self, items: &[Q], key_of: impl Fn(&Q) -> Option<K> + Sync) -> Bitmap {
        let mut words = vec![0; items.len().div_ceil(64)];
        parallel::answer(items, &mut words, (LOOKUP_NS, 64), |items, words| {
            self.slots::<_, false>(items, &key_of, |first, slots| put_bits(words, first, slots));
        });
        Bitmap::from_words(words, items.len())
    }

    /// Returns the [`bits`](Self::bits) of keys of any type: keys outside the set's type are absent.
    pub(crate) fn bits_of<Q: Key>(self, keys: &[Q]) -> Bitmap {
        self.bits(keys, |key| key.word().and_then(K::of_word))
    }

    /// Passes the number of each key to `put`; the slices have equal lengths.
    pub(crate) fn numbers<A: Send>(self, keys: &[K], numbers: &mut [A], put: impl Fn(&mut A, Option<u64>) + Sync) {
        parallel::answer(keys, numbers, (LOOKUP_NS, 1), |keys, numbers| {
            self.slots::<_, false>(
                keys,
                |&key| Some(key),
                |first, slots| {
                    for (number, &slot) in numbers[first..].iter_mut().zip(slots) {
                        put(number, (slot != ABSENT).then_some(slot as u64));
                    }
                },
            );
        });
    }

    /// Returns which keys have a number, and writes the numbers; the slices have equal lengths.
    pub(crate) fn numbers_and_bits(self, keys: &[K], numbers: &mut [u64]) -> Bitmap {
        self.with_bits::<_, false>(keys, numbers, |slot| slot as u64)
    }

    /// Returns which keys are in the set, and writes the result of `of` for their slots; the slices have equal lengths.
    fn with_bits<A: Pod + Send, const VALUES: bool>(
        self,
        keys: &[K],
        out: &mut [A],
        of: impl Fn(usize) -> A + Sync,
    ) -> Bitmap {
        let mut words = vec![0; keys.len().div_ceil(64)];
        let task = parallel::task_len(keys.len(), LOOKUP_NS);
        let tasks = keys.chunks(task).zip(out.chunks_mut(task)).zip(words.chunks_mut(task.div_ceil(64)));
        parallel::for_each(tasks, |((keys, out), words)| {
            self.slots::<_, VALUES>(
                keys,
                |&key| Some(key),
                |first, slots| {
                    put_bits(words, first, slots);
                    for (out, &slot) in out[first..].iter_mut().zip(slots) {
                        *out = if slot == ABSENT { A::zeroed() } else { of(slot) };
                    }
                },
            );
        });
        Bitmap::from_words(words, keys.len())
    }
}

impl<K: StaticKey, V: MapValue> Lookup<'_, K, V> {
    /// Passes the value of each key to `put`; the slices have equal lengths.
    pub(crate) fn get<A: Send>(self, keys: &[K], values: &mut [A], put: impl Fn(&mut A, Option<V>) + Sync) {
        parallel::answer(keys, values, (LOOKUP_NS, 1), |keys, values| {
            self.slots::<_, true>(
                keys,
                |&key| Some(key),
                |first, slots| {
                    for (value, &slot) in values[first..].iter_mut().zip(slots) {
                        put(value, (slot != ABSENT).then(|| V::at(self.values, slot)));
                    }
                },
            );
        });
    }

    /// Returns which keys have a value, and writes the values; the slices have equal lengths.
    pub(crate) fn values_and_bits(self, keys: &[K], values: &mut [V]) -> Bitmap {
        self.with_bits::<_, true>(keys, values, |slot| V::at(self.values, slot))
    }
}

/// Sets the bits of keys from `first` on, a multiple of [`BATCH`], in words that were zero.
#[inline(always)]
fn put_bits(words: &mut [u64], first: usize, slots: &[usize]) {
    let bits = slots.iter().rev().fold(0, |bits: u64, &slot| bits << 1 | u64::from(slot != ABSENT));
    words[first / 64] |= bits << (first % 64);
}

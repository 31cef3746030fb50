//! From hashed keys to a function: partitions of buckets in parallel, parts joined, lists built.
//!
//! Source: sections 5.1 (counting sort), 5.8 (threads), 5.9. Departures:
//! - Keys are first spread over partitions, each a range of buckets small enough for the cache; a task then sorts its
//!   partition into buckets and builds their trees while the keys are still in cache.
//! - The parts' bit vectors are joined in parallel: every part shifts its own words to their place, only the words that
//!   two parts share are combined with an atomic `or`.

use crate::bits::BitVec;
use crate::elias_fano;
use crate::format::{self, Header};
use crate::function::RecSplit;
use crate::search::Simd;
use crate::search::sequential::Sequential;
use crate::tree::{self, Failure, Part, Plan, Scratch};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_core::recsplit::hash::{Hash128, bucket_of};
use warpset_core::recsplit::shape::MAX_BUCKET;
use warpset_core::recsplit::{Remix, Shape};

/// The settings of one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub shape: Shape,
    pub bucket_size: u32,
    pub remix: Remix,
    pub simd: Simd,
    pub seed: u64,
}

impl Settings {
    pub(crate) fn buckets(&self, keys: u64) -> u64 {
        keys.div_ceil(u64::from(self.bucket_size))
    }

    /// A bound for bucket sizes that hashed keys exceed with a probability of less than 2^-64 a bucket.
    fn largest_bucket(&self) -> u32 {
        let mean = f64::from(self.bucket_size);
        ((mean + 10.0 * mean.sqrt() + 50.0) as usize).min(MAX_BUCKET) as u32
    }
}

/// Parts of equal size of a range of buckets.
#[derive(Clone, Debug)]
pub(crate) struct Partitions {
    /// All buckets.
    buckets: u64,
    /// Those in the partitions.
    within: Range<u64>,
    /// Base-2 logarithm of the buckets in one partition.
    log_buckets: u32,
}

impl Partitions {
    /// Partitions of the buckets `within`, which have some `keys_wanted` of `keys` keys each; at most `most` of them.
    pub(crate) fn new(keys: u64, within: Range<u64>, buckets: u64, keys_wanted: u64, most: u64) -> Self {
        let wanted = (keys / keys_wanted).clamp(1, most);
        let mut log_buckets = 0;
        while (within.end - within.start).div_ceil(1 << log_buckets) > wanted {
            log_buckets += 1;
        }
        Self { buckets, within, log_buckets }
    }

    pub(crate) fn count(&self) -> usize {
        (self.within.end - self.within.start).div_ceil(1 << self.log_buckets) as usize
    }

    #[inline]
    pub(crate) fn of(&self, hash: &Hash128) -> usize {
        ((bucket_of(hash.high, self.buckets) - self.within.start) >> self.log_buckets) as usize
    }

    /// First bucket and number of buckets of a partition.
    pub(crate) fn range(&self, partition: usize) -> (u64, usize) {
        let first = self.within.start + ((partition as u64) << self.log_buckets);
        (first, (self.within.end - first).min(1 << self.log_buckets) as usize)
    }
}

/// The builder of trees for one set of settings.
pub(crate) struct Engine {
    pub settings: Settings,
    table: std::sync::Arc<[warpset_core::recsplit::Node]>,
    budgets: Vec<u64>,
    largest: u32,
}

impl Engine {
    pub(crate) fn new(settings: Settings, keys: u64) -> Self {
        let largest = u64::from(settings.largest_bucket()).min(keys) as u32;
        let table = crate::table::nodes(&settings.shape, largest);
        let budgets = tree::budgets(&settings.shape, &table[..=largest as usize]);
        Self { settings, table, budgets, largest }
    }

    /// Builds the trees of one partition.
    pub(crate) fn part(
        &self,
        keys: &[Hash128],
        (first, count): (u64, usize),
        buckets: u64,
        scratch: &mut Scratch,
    ) -> Result<Part, Failure> {
        let plan = Plan {
            shape: &self.settings.shape,
            table: &self.table[..=self.largest as usize],
            budgets: &self.budgets,
            remix: self.settings.remix,
        };
        let range = (first, count, buckets);
        let simd = if self.settings.remix == Remix::Bits64 { Simd::Sequential } else { self.settings.simd };
        match simd {
            Simd::Sequential => tree::build(Sequential, &plan, keys, range, scratch),
            Simd::Portable => crate::search::portable::build(&plan, keys, range, scratch),
            #[cfg(target_arch = "x86_64")]
            simd => crate::search::x86_build::build(simd, &plan, keys, range, scratch),
            #[cfg(not(target_arch = "x86_64"))]
            _ => crate::search::portable::build(&plan, keys, range, scratch),
        }
    }

    /// Joins the parts of all partitions, in order, to a function.
    pub(crate) fn join(&self, keys: u64, parts: &[Part]) -> Result<RecSplit, Failure> {
        let buckets = self.settings.buckets(keys);
        // Where each part begins: bucket, keys, bits.
        let mut starts = Vec::with_capacity(parts.len());
        let mut sum = (0_usize, 0_u64, 0_u64);
        for part in parts {
            starts.push(sum);
            sum.0 += part.sizes.len();
            sum.1 += part.sizes.iter().map(|&size| u64::from(size)).sum::<u64>();
            sum.2 += part.bits.len();
        }
        let tree_bits = sum.2;
        let mut keys_before = vec![0_u64; buckets as usize + 1];
        let mut bits_before = vec![0_u64; buckets as usize + 1];
        {
            let mut slots = Vec::with_capacity(parts.len());
            let (mut keys_rest, mut bits_rest) = (&mut keys_before[1..], &mut bits_before[1..]);
            for part in parts {
                let (keys, rest) = std::mem::take(&mut keys_rest).split_at_mut(part.sizes.len());
                keys_rest = rest;
                let (bits, rest) = std::mem::take(&mut bits_rest).split_at_mut(part.sizes.len());
                bits_rest = rest;
                slots.push((keys, bits));
            }
            slots.into_par_iter().zip(parts).zip(&starts).for_each(|(((keys, bits), part), start)| {
                let mut sum = start.1;
                for (slot, &size) in keys.iter_mut().zip(&part.sizes) {
                    sum += u64::from(size);
                    *slot = sum;
                }
                for (slot, end) in bits.iter_mut().zip(&part.ends) {
                    *slot = start.2 + end;
                }
            });
        }
        let log_stride = elias_fano::log_stride(self.settings.bucket_size);
        let (layout, lists) = elias_fano::build(&keys_before, &bits_before, log_stride).ok_or(Failure::Unlucky)?;
        let largest = parts.par_iter().map(|part| part.sizes.iter().copied().max().unwrap_or(0)).max().unwrap_or(0);
        let header = Header {
            keys,
            seed: self.settings.seed,
            shape: self.settings.shape,
            remix: self.settings.remix,
            largest_bucket: largest,
            bucket_size: self.settings.bucket_size,
            tree_bits,
            layout,
        };
        // Fresh pages, which the threads that write to them get from the system.
        let mut words = vec![0; header.words() as usize];
        let (head, rest) = words.split_at_mut(format::HEADER_WORDS as usize);
        head.iter_mut().zip(header.to_words()).for_each(|(to, from)| *to = from);
        let (trees, rest) = rest.split_at_mut(tree_bits.div_ceil(64) as usize);
        copy_parts(trees, parts, &starts);
        rest.par_chunks_mut(COPIED).zip(lists.par_chunks(COPIED)).for_each(|(to, from)| to.copy_from_slice(from));
        words[format::COMMON_WORDS - 1] = format::checksum(&words);
        Ok(RecSplit::trusted(words, header))
    }
}

/// Words that are copied at a time.
const COPIED: usize = 1 << 14;

/// Copies the bits of each part to its place.
fn copy_parts(words: &mut [u64], parts: &[Part], starts: &[(usize, u64, u64)]) {
    if let [part] = parts {
        words.iter_mut().zip(part.bits.words()).for_each(|(to, from)| *to = from);
        return;
    }
    // SAFETY: `AtomicU64` has the layout of `u64`, and the exclusive borrow lasts as long as the shared one.
    let words = unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast::<AtomicU64>(), words.len()) };
    parts.par_iter().zip(starts).for_each(|(part, &(.., start))| copy_bits(words, &part.bits, start));
}

/// Adds `bits` at position `start`. Only the first and the last word may be shared with others.
fn copy_bits(words: &[AtomicU64], bits: &BitVec, start: u64) {
    let shift = start as u32 % 64;
    let mut at = (start / 64) as usize;
    let mut carry = 0;
    let mut first = true;
    let mut put = |at: usize, word: u64| {
        if first {
            words[at].fetch_or(word, Ordering::Relaxed);
            first = false;
        } else {
            words[at].store(word, Ordering::Relaxed);
        }
    };
    let all = bits.words();
    let count = all.len();
    for (index, word) in all.enumerate() {
        let moved = carry | word << shift;
        carry = if shift == 0 { 0 } else { word >> (64 - shift) };
        if index + 1 < count {
            put(at, moved);
        } else {
            words[at].fetch_or(moved, Ordering::Relaxed);
        }
        at += 1;
    }
    if carry != 0 {
        words[at].fetch_or(carry, Ordering::Relaxed);
    }
}

//! The finished function: one array of words, and queries on it.
//!
//! Source: sections 4.2, 4.4.2 (fast queries), 4.5.2. The words are the saved form (`docs/formats.md`), so that a function
//! can be opened from a memory-mapped file without copying.

use crate::elias_fano::{Entry, Lists, nth_one, portable_select};
use crate::format::{self, Header};
use crate::key::{Hash128, Key};
use crate::search::{Candidate, child_of_hash};
use crate::{Error, table};
use std::sync::Arc;
use warpset_core::recsplit::bits::window;
use warpset_core::recsplit::hash::{self, LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND};
use warpset_core::recsplit::{Node, Shape};

/// Where the words of a function are: `Vec<u64>`, `&[u64]`, [`crate::Mapped`], or anything else that derefs to words and
/// keeps them as they are.
pub trait Words {
    /// The words.
    fn words(&self) -> &[u64];
}

impl Words for Vec<u64> {
    #[inline]
    fn words(&self) -> &[u64] {
        self
    }
}

impl Words for &[u64] {
    #[inline]
    fn words(&self) -> &[u64] {
        self
    }
}

/// A minimal perfect hash function: maps the `n` keys that it was built from to `0..n`, each to its own number.
///
/// Other keys map to any number below `n`: the function does not know its keys. See [`crate::StaticFilter`] for that.
///
/// ```
/// use warpset_recsplit::{Builder, RecSplit};
///
/// let keys = ["Alpha", "Beta", "Gamma", "Delta"];
/// let function: RecSplit = Builder::new().build(&keys)?;
/// let mut seen = [false; 4];
/// for key in &keys {
///     seen[function.get(key) as usize] = true;
/// }
/// assert_eq!(seen, [true; 4]);
/// # Ok::<(), warpset_recsplit::Error>(())
/// ```
///
/// Space: 1.50 to 3 bits a key, see [`Builder`](crate::Builder). Queries: two cache misses for large functions, then a
/// walk down the splitting tree of one bucket.
#[derive(Clone)]
pub struct RecSplit<W = Vec<u64>> {
    words: W,
    pub(crate) header: Header,
    lists: Lists,
    /// First bit of the trees within the words.
    trees: u64,
    /// All values are below.
    values: u64,
    table: Arc<[Node]>,
}

impl<W> std::fmt::Debug for RecSplit<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecSplit")
            .field("keys", &self.header.keys)
            .field("shape", &self.header.shape)
            .finish_non_exhaustive()
    }
}

impl<A: Words, B: Words> PartialEq<RecSplit<B>> for RecSplit<A> {
    /// Whether both are the same function, bit for bit.
    fn eq(&self, other: &RecSplit<B>) -> bool {
        self.words.words() == other.words.words()
    }
}

impl<W: Words> RecSplit<W> {
    /// Opens words that [`RecSplit::as_words`] gave, without copying them. They are checked: damaged or foreign words are
    /// an error, and even words that were made to pass the checks can only give wrong numbers below the number of keys.
    pub fn from_words(words: W) -> Result<Self, Error> {
        let header = format::parse(words.words())?;
        Ok(Self::trusted(words, header))
    }

    /// As `from_words`, for words whose header is known to be right.
    pub(crate) fn trusted(words: W, header: Header) -> Self {
        let lists = Lists::at(header.layout, format::HEADER_WORDS + header.tree_bits.div_ceil(64));
        let table = table::nodes(&header.shape, header.largest_bucket);
        let values = header.shape.base(header.keys, header.layout.buckets);
        Self { words, header, lists, trees: format::HEADER_WORDS * 64, values, table }
    }

    /// The saved form.
    pub fn as_words(&self) -> &[u64] {
        self.words.words()
    }

    /// Number of keys that the function was built from.
    pub fn len(&self) -> u64 {
        self.header.keys
    }

    /// All values are below this: [`RecSplit::len`] for a minimal function, more for one built with
    /// [`Builder::load_factor`](crate::Builder::load_factor), fewer with
    /// [`Builder::keys_per_value`](crate::Builder::keys_per_value).
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.header.keys == 0
    }

    /// Size of the function in bits, all but the table that functions of one shape share in memory.
    pub fn bits(&self) -> u64 {
        self.as_words().len() as u64 * 64
    }

    /// [`RecSplit::bits`] for each key.
    pub fn bits_per_key(&self) -> f64 {
        self.bits() as f64 / self.len().max(1) as f64
    }

    /// Bits of the splitting trees and of the lists of bucket positions.
    pub fn space(&self) -> Space {
        Space { trees: self.header.tree_bits, buckets: self.header.layout.words() * 64 }
    }

    /// The shape of the splitting trees.
    pub fn shape(&self) -> Shape {
        self.header.shape
    }

    /// Seed of the initial hash, for [`Key::hash128`].
    pub fn seed(&self) -> u64 {
        self.header.seed
    }

    /// The number of `key`, below [`RecSplit::values`]; 0 if there are no keys.
    #[inline]
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.get_hash(key.hash128(self.header.seed))
    }

    /// The number of the key with this hash, which is [`Key::hash128`] with [`RecSplit::seed`].
    #[inline]
    pub fn get_hash(&self, hash: Hash128) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if bmi2() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.get_bmi2(hash) };
        }
        self.get_with(hash, portable_select)
    }

    /// [`RecSplit::get_hash`] with `pdep` for selection.
    ///
    /// # Safety
    /// The processor must have BMI1, BMI2, LZCNT and POPCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn get_bmi2(&self, hash: Hash128) -> u64 {
        self.get_with(hash, |word, rank| std::arch::x86_64::_pdep_u64(1 << rank, word).trailing_zeros())
    }

    #[inline(always)]
    fn get_with(&self, hash: Hash128, select: impl Fn(u64, u32) -> u32 + Copy) -> u64 {
        if self.header.keys == 0 {
            return 0;
        }
        let words = self.words.words();
        let bucket = hash::bucket_of(hash.high, self.header.layout.buckets);
        let mut walk = self.enter(bucket, self.lists.get(words, bucket, select), hash.low);
        while self.step(words, &mut walk, select) {}
        // Only damaged words that were made to pass the checks get here with more.
        walk.number.min(self.values - 1)
    }

    /// The root of a bucket's tree.
    #[inline(always)]
    fn enter(&self, bucket: u64, entry: Entry, low: u64) -> Walk {
        let keys = entry.keys_through.wrapping_sub(entry.keys_before);
        // A bucket larger than the largest exists in damaged words only.
        let keys = if keys < self.table.len() as u64 { keys as u32 } else { 0 };
        let fixed = self.trees.wrapping_add(entry.bits_before);
        let unary = fixed.wrapping_add(u64::from(self.table[keys as usize].fixed_bits));
        let number = self.header.shape.base(entry.keys_before, bucket);
        Walk { low, number, keys, skip: 0, fixed, unary, level: LEVEL_ROOT }
    }

    /// Goes down by one node; false at the end.
    #[inline(always)]
    fn step(&self, words: &[u64], walk: &mut Walk, select: impl Fn(u64, u32) -> u32 + Copy) -> bool {
        let keys = walk.keys;
        if keys <= 1 {
            return false;
        }
        let node = &self.table[keys as usize];
        let shape = &self.header.shape;
        if node.nodes == 0 {
            return false;
        }
        // The unary part ends at the one after those that are skipped, and began after the last of these.
        let end = nth_one(words, walk.unary, walk.skip, select);
        let most = end.wrapping_sub(walk.unary);
        let mut zeros = u64::from(bits_before(words, end).leading_zeros()).min(most);
        if zeros >= 57 {
            zeros = zeros_before(words, walk.unary, end).min(most);
        }
        let golomb = u32::from(node.golomb);
        let stored = zeros << golomb | (bits_from(words, walk.fixed) & ((1 << golomb) - 1));
        walk.fixed = walk.fixed.wrapping_add(u64::from(golomb));
        walk.unary = end.wrapping_add(1);

        let (low, remix) = (walk.low, self.header.remix);
        let candidate = Candidate::of(stored, node);
        let groups = u32::from(node.groups);
        if node.fanout == 0 {
            let group = hash::leaf_group_of(low, hash::leaf_group_multiplier(candidate.trial), groups);
            let hash = hash::trial_hash(remix, low, hash::start_seed(LEVEL_LEAF), candidate.trial);
            let positions = shape.leaf_positions(keys);
            let position = hash::leaf_position(hash, positions) + candidate.rotation(group, keys);
            walk.number += u64::from(if position >= positions { position - positions } else { position });
            return false;
        }
        let level = if keys > shape.second_unit() {
            walk.level
        } else if keys > shape.first_unit() {
            LEVEL_SECOND
        } else {
            LEVEL_FIRST
        };
        walk.level += 1;
        let hash = hash::trial_hash(remix, low, hash::start_seed(level), candidate.trial);
        let rotation = candidate.rotation(hash::group_of(low, groups), u32::from(node.radix));
        let child = child_of_hash(hash, node, rotation);
        let unit = u32::from(node.unit);
        let before = child * unit;
        let full = &self.table[unit as usize];
        walk.fixed = walk.fixed.wrapping_add(u64::from(child * full.fixed_bits));
        walk.skip = child * u32::from(full.nodes);
        walk.number += u64::from(match shape.is_minimal() {
            true => before,
            false => before / shape.leaf() * shape.positions(),
        });
        walk.keys = if child + 1 == u32::from(node.fanout) { keys - before } else { unit };
        true
    }

    /// The numbers of many keys, as [`RecSplit::get`] gives them, in `numbers`. The look-ups of a batch wait for memory
    /// together and go down their trees in turns: several times faster than one by one.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn get_many<K: Key>(&self, keys: &[K], numbers: &mut [u64]) {
        assert_eq!(keys.len(), numbers.len(), "one number for each key");
        let seed = self.header.seed;
        for (keys, numbers) in keys.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            let mut hashes = [Hash128::default(); BATCH];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = key.hash128(seed);
            }
            self.get_batch(&hashes[..keys.len()], numbers);
        }
    }

    /// As `get_many`, for hashes; at most `BATCH` of them.
    fn get_batch(&self, hashes: &[Hash128], numbers: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if bmi2() {
            // SAFETY: the processor has the instructions.
            unsafe { self.get_batch_bmi2(hashes, numbers) };
            return;
        }
        self.get_batch_with(hashes, numbers, portable_select);
    }

    /// [`RecSplit::get_batch`] with `pdep` for selection.
    ///
    /// # Safety
    /// The processor must have BMI1, BMI2, LZCNT and POPCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn get_batch_bmi2(&self, hashes: &[Hash128], numbers: &mut [u64]) {
        self.get_batch_with(hashes, numbers, |word, rank| {
            std::arch::x86_64::_pdep_u64(1 << rank, word).trailing_zeros()
        });
    }

    #[inline(always)]
    fn get_batch_with(&self, hashes: &[Hash128], numbers: &mut [u64], select: impl Fn(u64, u32) -> u32 + Copy) {
        if self.header.keys == 0 {
            numbers.fill(0);
            return;
        }
        let words = self.words.words();
        let mut buckets = [0_u64; BATCH];
        for (bucket, hash) in buckets.iter_mut().zip(hashes) {
            *bucket = hash::bucket_of(hash.high, self.header.layout.buckets);
            for index in self.lists.first_touched(*bucket) {
                prefetch(words, index);
            }
        }
        let mut walks = [Walk::default(); BATCH];
        for ((walk, bucket), hash) in walks.iter_mut().zip(buckets).zip(hashes) {
            *walk = self.enter(bucket, self.lists.get(words, bucket, select), hash.low);
            prefetch(words, walk.fixed / 64);
            prefetch(words, walk.unary / 64);
        }
        // Who still walks. All go down a level in turn, so that their chains of dependent loads overlap.
        let mut active: [u8; BATCH] = std::array::from_fn(|i| i as u8);
        let mut count = hashes.len();
        while count > 0 {
            let mut rest = 0;
            for i in 0..count {
                let index = active[i];
                let on = self.step(words, &mut walks[usize::from(index) % BATCH], select);
                active[rest] = index;
                rest += usize::from(on);
            }
            count = rest;
        }
        let last = self.values - 1;
        for (number, walk) in numbers.iter_mut().zip(&walks) {
            *number = walk.number.min(last);
        }
    }
}

/// Look-ups that are under way at a time in a batch.
const BATCH: usize = 32;

/// A look-up on its way down a tree.
#[derive(Clone, Copy, Default)]
struct Walk {
    low: u64,
    /// Numbers below all that this subtree can give.
    number: u64,
    /// Where the next fixed part begins.
    fixed: u64,
    /// Where the unary parts that were not skipped yet begin.
    unary: u64,
    /// Unary parts to skip.
    skip: u32,
    /// Keys of the node.
    keys: u32,
    /// Level of the node if it is a higher one.
    level: u32,
}

/// Zeros before position `end`, back to `begin` or beyond it.
#[cold]
fn zeros_before(words: &[u64], begin: u64, end: u64) -> u64 {
    let mut zeros = 0;
    while zeros < end.wrapping_sub(begin) && zeros < words.len() as u64 * 64 {
        let more = window(words, end.wrapping_sub(zeros + 64)).leading_zeros();
        zeros += u64::from(more);
        if more < 64 {
            break;
        }
    }
    zeros
}

/// Eight bytes from byte `at` on, zero if they are not all there.
#[inline(always)]
fn eight_bytes(words: &[u64], at: u64) -> u64 {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let at = at as usize;
    match bytes.get(at..at.wrapping_add(8)) {
        Some(bytes) => {
            u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]])
        }
        None => 0,
    }
}

/// At least 57 bits from position `at` on: one unaligned load. The jump array stands behind all bits that are read so.
#[inline(always)]
fn bits_from(words: &[u64], at: u64) -> u64 {
    if cfg!(target_endian = "little") { eight_bytes(words, at / 8) >> (at % 8) } else { window(words, at) }
}

/// At least 57 bits up to position `end`, the last of them highest.
#[inline(always)]
fn bits_before(words: &[u64], end: u64) -> u64 {
    if cfg!(target_endian = "little") {
        eight_bytes(words, (end / 8).wrapping_sub(7)) << (7 - end % 8) << 1
    } else {
        window(words, end.wrapping_sub(64))
    }
}

#[inline(always)]
fn prefetch(words: &[u64], index: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching any address is harmless, and nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().wrapping_add(index as usize).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, index);
}

/// Where the space of a function goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bits of splittings and bijections.
    pub trees: u64,
    /// Bits of the positions of buckets (double Elias-Fano).
    pub buckets: u64,
}

/// Whether the processor selects with `pdep`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn bmi2() -> bool {
    is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

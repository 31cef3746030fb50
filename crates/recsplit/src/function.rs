//! The finished function: one array of words, and queries on it.
//!
//! Source: sections 4.2, 4.4.2 (fast queries), 4.5.2. The words are the saved form (`docs/formats.md`), so that a function
//! can be opened from a memory-mapped file without copying.

use crate::elias_fano::{Lists, portable_select};
use crate::format::{self, Header};
use crate::key::{Hash128, Key};
use crate::search::{Candidate, child_of_hash};
use crate::{Error, table};
use std::sync::Arc;
use warpset_core::recsplit::bits::{field, window, word};
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
        Self { words, header, lists, trees: format::HEADER_WORDS * 64, table }
    }

    /// The saved form.
    pub fn as_words(&self) -> &[u64] {
        self.words.words()
    }

    /// Number of keys that the function was built from.
    pub fn len(&self) -> u64 {
        self.header.keys
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

    /// The number of `key`, below [`RecSplit::len`]; 0 if there are no keys.
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
        let entry = self.lists.get(words, bucket, select);
        let number = self.walk(words, hash.low, entry, select);
        // Only damaged words that were made to pass the checks get here with more.
        number.min(self.header.keys - 1)
    }

    /// Walks down a tree.
    #[inline(always)]
    fn walk(
        &self,
        words: &[u64],
        low: u64,
        entry: crate::elias_fano::Entry,
        select: impl Fn(u64, u32) -> u32 + Copy,
    ) -> u64 {
        let mut number = entry.keys_before;
        let mut keys = entry.keys_through.wrapping_sub(number);
        let Some(mut node) = self.table.get(keys as usize) else { return number };
        let remix = self.header.remix;
        let mut fixed = self.trees.wrapping_add(entry.bits_before);
        let mut unary = fixed.wrapping_add(u64::from(node.fixed_bits));
        let mut level = LEVEL_ROOT;
        while keys > 1 {
            // The number of this node's trial and rotations.
            let mut zeros = 0;
            let mut rest = window(words, unary);
            while rest == 0 {
                zeros += 64;
                unary = unary.wrapping_add(64);
                if unary / 64 >= words.len() as u64 {
                    return number;
                }
                rest = window(words, unary);
            }
            zeros += u64::from(rest.trailing_zeros());
            unary = unary.wrapping_add(u64::from(rest.trailing_zeros()) + 1);
            let golomb = u32::from(node.golomb);
            let stored = zeros << golomb | field(words, fixed, golomb);
            fixed = fixed.wrapping_add(u64::from(golomb));

            let candidate = Candidate::of(stored, node);
            let groups = u32::from(node.groups);
            if node.fanout == 0 {
                let keys = keys as u32;
                let group = hash::leaf_group_of(low, hash::leaf_group_multiplier(candidate.trial), groups);
                let hash = hash::trial_hash(remix, low, hash::start_seed(LEVEL_LEAF), candidate.trial);
                let position = hash::leaf_position(hash, keys) + candidate.rotation(group, keys);
                return number + u64::from(if position >= keys { position - keys } else { position });
            }
            let shape = &self.header.shape;
            let start = if keys > u64::from(shape.second_unit()) {
                level += 1;
                level - 1
            } else if keys > u64::from(shape.first_unit()) {
                LEVEL_SECOND
            } else {
                LEVEL_FIRST
            };
            let hash = hash::trial_hash(remix, low, hash::start_seed(start), candidate.trial);
            let rotation = candidate.rotation(hash::group_of(low, groups), u32::from(node.radix));
            let child = child_of_hash(hash, node, rotation);
            let unit = u64::from(node.unit);
            let before = u64::from(child) * unit;
            let full = &self.table[node.unit as usize];
            if child > 0 {
                fixed = fixed.wrapping_add(u64::from(child * full.fixed_bits));
                unary = skip_ones(words, unary, child * u32::from(full.nodes), select);
                number += before;
            }
            if child + 1 == u32::from(node.fanout) {
                keys -= before;
                node = &self.table[keys as usize];
            } else {
                keys = unit;
                node = full;
            }
        }
        number
    }
}

/// Position after the `ones`-th one from `from` on.
#[inline(always)]
fn skip_ones(words: &[u64], from: u64, mut ones: u32, select: impl Fn(u64, u32) -> u32) -> u64 {
    if ones == 0 {
        return from;
    }
    let mut index = (from / 64) as usize;
    let mut bits = word(words, index) & (u64::MAX << (from % 64));
    loop {
        let count = bits.count_ones();
        if ones <= count {
            return index as u64 * 64 + u64::from(select(bits, ones - 1)) + 1;
        }
        ones -= count;
        index = index.wrapping_add(1);
        if index >= words.len() {
            return words.len() as u64 * 64;
        }
        bits = words[index];
    }
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

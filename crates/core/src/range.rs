//! Range filters: codes of keys, and the words that hold them.
//!
//! Source: Costa, Ferragina, Vinciguerra, "Grafite: Taming Adversarial Queries with Optimal Range Filters", SIGMOD
//! 2024: a hash that keeps the order of keys within blocks, its codes sorted in an Elias-Fano list. Departures:
//! - A block has a power of two of keys, at most as many as there are codes, so the code of a key takes neither a
//!   division nor a remainder. Ranges that touch more than three blocks are longer than the number of codes.
//! - Keys are numbered from the least one. If there are as many codes as numbers, the filter is exact.
//! - The list has the number of ones before each 512 upper bits, and finds a bucket by zeros. Dense keys therefore cost
//!   a lookup no more than others.
//!
//! ```text
//! offset of a key    key - least key  =  | block | place in the block |
//! code               (start(block) + place) mod universe              start: a hash of the block, below the universe
//! upper bits         0 then a one per code of bucket 0, 0 then a one per code of bucket 1, …      bucket: code >> low
//! ```
//!
//! Another key than those of the filter has the code of a given one with probability `1 / universe`, whatever the keys:
//! a range of `l` keys is taken for occupied with probability at most `l * keys / universe`.

use crate::bits::{ReadWords, Select, lowest, walk};
use crate::hash::{finalise, mix_spread};
use crate::recsplit::elias_fano::elias_fano_low_bits;

/// Upper bits with one number of ones before them.
pub const BLOCK: u64 = 512;
/// Words of a block of upper bits.
pub const LINE: usize = BLOCK as usize / 64;
/// Buckets with one hint to the block of upper bits where the first one begins.
pub const HINTED: u64 = 512;
/// Most codes of a universe.
pub const MOST_CODES: u64 = 1 << 62;
/// Most keys of a filter.
pub const MOST_KEYS: u64 = 1 << 40;
/// Buckets between two codes up to which the upper bits between them are read.
const NEAR: u64 = 512;

/// Form of keys in memory: integers of 32 or 64 bits, or floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct KeyForm {
    /// Bits of a key, 32 or 64 on devices.
    pub bits: u32,
    /// [`UNSIGNED`], [`SIGNED`] or [`FLOAT`].
    pub order: u32,
}

const _: () = assert!(size_of::<KeyForm>() == 8);

/// Order of unsigned integers.
pub const UNSIGNED: u32 = 0;
/// Order of signed integers.
pub const SIGNED: u32 = 1;
/// Total order of floating-point numbers.
pub const FLOAT: u32 = 2;

impl KeyForm {
    /// Returns the number of the key with these bits: numbers have the order of keys.
    #[inline(always)]
    pub const fn number(self, key: u64) -> u64 {
        let sign = 1 << (self.bits - 1);
        match self.order {
            UNSIGNED => key,
            FLOAT if key & sign != 0 => !key & lowest(self.bits),
            _ => key ^ sign,
        }
    }
}

/// Blocks of upper bits after that of a hint, and codes of a bucket, that a lookup compares without branches.
const FEW_BLOCKS: u64 = 3;
const FEW_CODES: u64 = 2;

/// Words of a filter: those past the end are zero.
pub trait Lines: ReadWords {
    /// Returns the words of a block of upper bits.
    #[inline(always)]
    fn line(&self, block: u64) -> [u64; LINE] {
        let mut line = [0; LINE];
        (block * LINE as u64..).zip(&mut line).for_each(|(index, word)| *word = self.word(index));
        line
    }
}

/// Distance of a key from the least one: `u64` or `u128`.
pub trait Offset: Copy + Ord {
    /// Returns the bits from `shift` on; 0 if there are none.
    fn above(self, shift: u32) -> Self;
    /// Returns the lowest 64 bits.
    fn low(self) -> u64;
    /// Returns the hash of a block's number.
    fn hash(self, spread: u64) -> u64;
    /// Returns the next number.
    fn next(self) -> Self;
    /// Returns the difference to a number that is not larger, at most `u64::MAX`.
    fn since(self, earlier: Self) -> u64;
}

impl Offset for u64 {
    #[inline(always)]
    fn above(self, shift: u32) -> u64 {
        self >> shift
    }
    #[inline(always)]
    fn low(self) -> u64 {
        self
    }
    #[inline(always)]
    fn hash(self, spread: u64) -> u64 {
        mix_spread(self, spread)
    }
    #[inline(always)]
    fn next(self) -> u64 {
        self.wrapping_add(1)
    }
    #[inline(always)]
    fn since(self, earlier: u64) -> u64 {
        self - earlier
    }
}

impl Offset for u128 {
    #[inline(always)]
    fn above(self, shift: u32) -> u128 {
        self >> shift
    }
    #[inline(always)]
    fn low(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn hash(self, spread: u64) -> u64 {
        mix_spread(self as u64 ^ finalise((self >> 64) as u64 ^ !spread), spread)
    }
    #[inline(always)]
    fn next(self) -> u128 {
        self.wrapping_add(1)
    }
    #[inline(always)]
    fn since(self, earlier: u128) -> u64 {
        Ord::min(self - earlier, u64::MAX as u128) as u64
    }
}

/// Parameters of a filter, and the places of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Shape {
    /// Different keys, and codes in the list.
    pub keys: u64,
    /// Number of possible codes.
    pub universe: u64,
    /// The seed, prepared by [`spread_seed`](crate::hash::spread_seed).
    pub spread: u64,
    /// Starts of blocks are below this: the universe, or 0 if all keys are of one block.
    pub starts: u64,
    /// Bit position of the number of ones before each block of upper bits.
    pub ranks: u64,
    /// Bit position of the hints.
    pub hints: u64,
    /// Bit position of the lower bits.
    pub lower: u64,
    /// Words of all parts.
    pub words: u64,
    /// Base-2 logarithm of the keys of a block.
    pub block_bits: u32,
    /// Lower bits of a code.
    pub low_bits: u32,
    /// Bits of a number of ones.
    pub rank_bits: u32,
    /// Bits of a hint.
    pub hint_bits: u32,
}

const _: () = assert!(size_of::<Shape>() == 80);

/// Codes of the list that have equal upper bits: their indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Index of the first code.
    pub first: u64,
    /// Index after the last code.
    pub end: u64,
}

impl Shape {
    /// Returns the shape for `keys <= universe <= MOST_CODES`, `keys <= MOST_KEYS`; `exact` if all offsets are below
    /// `universe`.
    pub const fn new(keys: u64, universe: u64, exact: bool, spread: u64) -> Shape {
        let mut shape = Shape {
            keys,
            universe,
            spread,
            starts: if exact { 0 } else { universe },
            ranks: 0,
            hints: 0,
            lower: 0,
            words: 0,
            block_bits: 0,
            low_bits: 0,
            rank_bits: 0,
            hint_bits: 0,
        };
        if keys == 0 {
            return shape;
        }
        let log = 63 - universe.leading_zeros();
        shape.block_bits = if exact { 63 } else { log };
        shape.low_bits = elias_fano_low_bits(universe - 1, keys);
        shape.rank_bits = 64 - keys.leading_zeros();
        shape.hint_bits = 64 - shape.blocks().leading_zeros();
        shape.ranks = shape.blocks() * BLOCK;
        shape.hints = (shape.ranks + shape.blocks() * shape.rank_bits as u64).next_multiple_of(64);
        shape.lower = (shape.hints + shape.hint_count() * shape.hint_bits as u64).next_multiple_of(64);
        shape.words = (shape.lower + keys * shape.low_bits as u64).div_ceil(64);
        shape
    }

    /// Returns the number of buckets.
    #[inline(always)]
    pub const fn buckets(&self) -> u64 {
        ((self.universe - 1) >> self.low_bits) + 1
    }

    /// Returns the number of upper bits: one per code, one per bucket, and one zero more.
    #[inline(always)]
    pub const fn upper_bits(&self) -> u64 {
        self.keys + self.buckets() + 1
    }

    /// Returns the number of blocks of upper bits.
    pub const fn blocks(&self) -> u64 {
        self.upper_bits().div_ceil(BLOCK)
    }

    /// Returns the number of hints: one per [`HINTED`] buckets, and that of the end.
    pub const fn hint_count(&self) -> u64 {
        self.buckets() / HINTED + 2
    }

    /// Returns the bucket of a code.
    #[inline(always)]
    pub const fn bucket_number(&self, code: u64) -> u64 {
        code >> self.low_bits
    }

    /// Returns the position of the one of a code among the upper bits.
    #[inline(always)]
    pub const fn one(&self, index: u64, code: u64) -> u64 {
        self.bucket_number(code) + index + 1
    }

    /// Returns the lower bits of a code.
    #[inline(always)]
    pub const fn low_of(&self, code: u64) -> u64 {
        code & lowest(self.low_bits)
    }

    /// Returns the first bit of a block of upper bits.
    #[inline(always)]
    pub const fn upper_place(&self, block: u64) -> u64 {
        block * BLOCK
    }

    /// Returns the block of an upper bit.
    #[inline(always)]
    pub const fn block_at(&self, bit: u64) -> u64 {
        bit / BLOCK
    }

    /// Returns the code of the first key of a block, before the keys of the block wrap around.
    #[inline(always)]
    fn start<O: Offset>(&self, block: O) -> u64 {
        ((block.hash(self.spread) as u128 * self.starts as u128) >> 64) as u64
    }

    /// Returns the code of a key, below the universe.
    #[inline(always)]
    pub fn code<O: Offset>(&self, offset: O) -> u64 {
        let code = self.start(offset.above(self.block_bits)) + (offset.low() & lowest(self.block_bits));
        // Both terms are below the universe.
        if code >= self.universe { code - self.universe } else { code }
    }

    /// Returns the first and the last code of keys from `first` to `last >= first`, if these are all codes from the one
    /// to the other.
    #[inline(always)]
    pub fn interval<O: Offset>(&self, first: O, last: O) -> Option<(u64, u64)> {
        let block = first.above(self.block_bits);
        let length = last.low().wrapping_sub(first.low());
        let from = self.code(first);
        let is_one = last.above(self.block_bits) == block && length < self.universe - from;
        if is_one { Some((from, from + length)) } else { None }
    }

    /// Calls `found` with the first and the last code of each interval that keys from `first` to `last >= first` have,
    /// until it returns `true`. Returns whether it did, or `true` for ranges in more than three blocks, which have more
    /// keys than there are codes.
    #[inline(always)]
    pub fn any_interval<O: Offset>(&self, first: O, last: O, mut found: impl FnMut(u64, u64) -> bool) -> bool {
        let (begin, end) = (first.above(self.block_bits), last.above(self.block_bits));
        if end.since(begin) > 2 {
            return true;
        }
        let (mask, mut block) = (lowest(self.block_bits), begin);
        let (mut from, mut to) = (0, 0);
        let mut is_new = true;
        // `found` is called at one place, so that a kernel has its code once.
        loop {
            if is_new {
                let start = self.start(block);
                from = start + if block == begin { first.low() & mask } else { 0 };
                to = start + if block == end { last.low() & mask } else { mask };
                if from >= self.universe {
                    (from, to) = (from - self.universe, to - self.universe);
                }
            }
            // Codes wrap around, so the keys of a block have one interval or two.
            let is_cut = to >= self.universe;
            if found(from, if is_cut { self.universe - 1 } else { to }) {
                return true;
            }
            if is_cut {
                (from, to) = (0, to - self.universe);
            } else if block == end {
                return false;
            } else {
                block = block.next();
            }
            is_new = !is_cut;
        }
    }

    /// Returns the number of ones before a block of upper bits.
    #[inline(always)]
    fn ones_before<W: Lines + ?Sized>(&self, words: &W, block: u64) -> u64 {
        words.field(self.rank_place(block), self.rank_bits)
    }

    /// Returns the position of the bits from which [`block_of`](Self::block_of) reads its hints.
    #[inline(always)]
    pub fn hint_place(&self, bucket: u64) -> u64 {
        self.hints + bucket / HINTED * self.hint_bits as u64
    }

    /// Returns the position of the number of ones before a block of upper bits.
    #[inline(always)]
    pub fn rank_place(&self, block: u64) -> u64 {
        self.ranks + block * self.rank_bits as u64
    }

    /// Returns the block of upper bits that has the zero at which a bucket begins.
    #[inline(always)]
    pub fn block_of<W: Lines + ?Sized>(&self, words: &W, bucket: u64) -> u64 {
        let at = self.hint_place(bucket);
        let mut first = words.field(at, self.hint_bits);
        let mut last = words.field(at + self.hint_bits as u64, self.hint_bits);
        let begins = |block: u64| self.upper_place(block).wrapping_sub(self.ones_before(words, block)) <= bucket;
        if last.wrapping_sub(first) <= FEW_BLOCKS {
            // Without branches, which no processor predicts.
            let mut block = first;
            for after in first + 1..first + 1 + FEW_BLOCKS {
                block += u64::from((after <= last) & begins(after));
            }
            return block;
        }
        while first < last {
            let middle = last - (last - first) / 2;
            if begins(middle) {
                first = middle;
            } else {
                last = middle - 1;
            }
        }
        first
    }

    /// Returns the position of the zero at which a bucket begins, in its block.
    #[inline(always)]
    fn zero<W: Lines + ?Sized>(&self, words: &W, bucket: u64, block: u64, select: impl Select) -> u64 {
        let begin = self.upper_place(block);
        let rank = bucket.wrapping_sub(begin.wrapping_sub(self.ones_before(words, block)));
        let line = words.line(block);
        // The word is chosen, not indexed, so that a kernel has the line in registers.
        let (mut at, mut word, mut rest, mut zeros) = (0, line[0], rank, 0);
        for i in 1..LINE {
            zeros += line[i - 1].count_zeros() as u64;
            let is_before = zeros <= rank;
            at = if is_before { i } else { at };
            word = if is_before { line[i] } else { word };
            rest = if is_before { rank - zeros } else { rest };
        }
        let within = select.select(!word, Ord::min(rest, 63) as u32);
        begin + at as u64 * 64 + Ord::min(within, 63) as u64
    }

    /// Returns a bucket that begins in this block of upper bits.
    #[inline(always)]
    pub fn bucket<W: Lines + ?Sized>(&self, words: &W, bucket: u64, block: u64, select: impl Select) -> Bucket {
        let begin = self.zero(words, bucket, block, select) + 1;
        let block_end = (block + 1) * BLOCK;
        let mut end = walk::next_one(begin, block_end, |i| !words.word(i));
        if end >= block_end {
            end = self.zero(words, bucket + 1, self.block_of(words, bucket + 1), select);
        }
        Bucket { first: begin.wrapping_sub(bucket + 1), end: end.wrapping_sub(bucket + 1) }
    }

    /// Returns the bucket of a code.
    #[inline(always)]
    pub fn bucket_of<W: Lines + ?Sized>(&self, words: &W, code: u64, select: impl Select) -> Bucket {
        let bucket = self.bucket_number(code);
        self.bucket(words, bucket, self.block_of(words, bucket), select)
    }

    /// Returns the lower bits of the code of this index.
    #[inline(always)]
    pub fn low<W: Lines + ?Sized>(&self, words: &W, index: u64) -> u64 {
        words.field(self.low_place(index), self.low_bits)
    }

    /// Returns the position of the lower bits of the code of this index.
    #[inline(always)]
    pub fn low_place(&self, index: u64) -> u64 {
        self.lower.wrapping_add(index.wrapping_mul(self.low_bits as u64))
    }

    /// Returns the number of codes below `code`, with `OR_EQUAL` not above it, given the code's bucket.
    #[inline(always)]
    pub fn rank_in<const OR_EQUAL: bool, W: Lines + ?Sized>(&self, words: &W, code: u64, bucket: Bucket) -> u64 {
        let wanted = self.low_of(code);
        let Bucket { mut first, mut end } = bucket;
        let is_before = |index: u64| {
            let low = self.low(words, index);
            if OR_EQUAL { low <= wanted } else { low < wanted }
        };
        if end.wrapping_sub(first) <= FEW_CODES {
            let mut index = first;
            for i in 0..FEW_CODES {
                let is_counted = (i < end.wrapping_sub(first)) & is_before(first.wrapping_add(i));
                index = index.wrapping_add(u64::from(is_counted));
            }
            return index;
        }
        while first < end {
            let middle = first + (end - first) / 2;
            if is_before(middle) {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        first
    }

    /// Whether a code from `from` to `to >= from` is in the list, given the bucket of `from`.
    #[inline(always)]
    pub fn any_in<W: Lines + ?Sized>(
        &self,
        words: &W,
        (from, to): (u64, u64),
        bucket: Bucket,
        select: impl Select,
    ) -> bool {
        let index = self.rank_in::<false, W>(words, from, bucket);
        let (first, last) = (self.bucket_number(from), self.bucket_number(to));
        let is_here = index < bucket.end;
        let low_is_within = self.low(words, index) <= self.low_of(to);
        if first == last {
            return is_here & low_is_within;
        }
        if is_here || index >= self.keys {
            return is_here;
        }
        if last - first > NEAR {
            return self.rank_in::<true, W>(words, to, self.bucket_of(words, to, select)) > index;
        }
        // The code of an index and a bucket is the one at `index + bucket + 1`.
        let one = walk::next_one(index + first + 2, index + last + 2, |i| words.word(i)) - index - 1;
        one < last || one == last && low_is_within
    }

    /// Whether a code from `from` to `to >= from` is in the list.
    #[inline(always)]
    pub fn any<W: Lines + ?Sized>(&self, words: &W, from: u64, to: u64, select: impl Select) -> bool {
        self.any_in(words, (from, to), self.bucket_of(words, from, select), select)
    }

    /// Returns the number of codes from `from` to `to >= from`.
    #[inline(always)]
    pub fn count<W: Lines + ?Sized>(&self, words: &W, from: u64, to: u64, select: impl Select) -> u64 {
        let before = self.rank_in::<false, W>(words, from, self.bucket_of(words, from, select));
        self.rank_in::<true, W>(words, to, self.bucket_of(words, to, select)).wrapping_sub(before)
    }

    /// Whether a key from `first` to `last >= first` may be in the filter, which has keys.
    #[inline(always)]
    pub fn any_between<O: Offset, W: Lines + ?Sized>(&self, words: &W, first: O, last: O, select: impl Select) -> bool {
        self.any_interval(first, last, |from, to| self.any(words, from, to, select))
    }

    /// Returns an upper bound of the number of keys from `first` to `last >= first` in the filter, which has keys.
    #[inline(always)]
    pub fn count_between<O: Offset, W: Lines + ?Sized>(
        &self,
        words: &W,
        first: O,
        last: O,
        select: impl Select,
    ) -> u64 {
        let mut count = 0u64;
        let is_long = self.any_interval(first, last, |from, to| {
            count = count.saturating_add(self.count(words, from, to, select));
            false
        });
        if is_long || count > self.keys { self.keys } else { count }
    }
}

//! Function of any kind in device memory, as the lookups of `warpset_core` read it. RecSplit's rows have 32 bytes,
//! and the common ones stay in the first-level cache. Rows of Consensus have 16 bytes, and all of them stay there.
//! Rows of placement are its segments, of 32 bytes.

use crate::recsplit::device_words::DeviceWords;
use warpset_core::bits::ByHalves;
use warpset_core::consensus::{lookup as consensus, tree};
use warpset_core::placement::lookup::{self as placement, Segment};
use warpset_core::recsplit::lookup::{self as recsplit, row};
use warpset_core::recsplit::{Hash128, Remix};
use warpset_simt::Global;

/// A function to look keys up in, with the plan `P` of its kind.
#[derive(Clone, Copy)]
pub struct DeviceFunction<'p, P>(Parts<'p, P>);

impl<'p, P> DeviceFunction<'p, P> {
    /// Joins the parts of a function.
    ///
    /// # Safety
    /// Nothing writes these while the kernel runs:
    /// - `words`: valid for `len` reads.
    /// - `rows`, from a multiple of 16 bytes on. For RecSplit: four words for each of `plan.rows` rows, at least one;
    ///   they are those of the plan's shape, so that a node's children have rows. For Consensus: two words for each of
    ///   `plan.rows` rows of splittings, at least one, and for each row of leaves after them. For placement: four words
    ///   for each of `plan.segments` segments, at least one.
    #[inline(always)]
    pub unsafe fn new(words: Global<u64>, len: u64, rows: Global<u64>, plan: &'p P) -> Self {
        // SAFETY: `words` is valid for `len` reads, and nothing writes it, by this function's contract.
        Self(Parts { words: unsafe { DeviceWords::new(words, len) }, rows, plan })
    }
}

impl DeviceFunction<'_, recsplit::Plan> {
    /// Returns the number of the key with this hash. The [`Remix`] is tested at every trial hash, by all threads alike:
    /// two versions of the walk would take twice as long to compile.
    #[inline(always)]
    pub fn number_of(self, hash: Hash128, remix: u32) -> u64 {
        let remix = if remix == Remix::Bits32 as u32 { Remix::Bits32 } else { Remix::Bits64 };
        recsplit::Function::value_of(&self.0, hash, remix, ByHalves)
    }
}

impl DeviceFunction<'_, consensus::Plan> {
    /// Returns the number of the key with this hash; there is one kind of hash.
    #[inline(always)]
    pub fn number_of(self, hash: Hash128, _remix: u32) -> u64 {
        consensus::Function::value_of(&self.0, hash, ByHalves)
    }
}

impl DeviceFunction<'_, placement::Plan> {
    /// Returns the number of the key with this hash; there is one kind of hash.
    #[inline(always)]
    pub fn number_of(self, hash: Hash128, _remix: u32) -> u64 {
        placement::Function::value_of(&self.0, hash, ByHalves)
    }
}

/// Words, rows and plan. Private, so that no code but `value_of`, which `number_of` calls, asks for a row.
#[derive(Clone, Copy)]
struct Parts<'p, P> {
    words: DeviceWords,
    rows: Global<u64>,
    plan: &'p P,
}

impl recsplit::Function for Parts<'_, recsplit::Plan> {
    type Words = DeviceWords;
    type Row = row::Row;

    #[inline(always)]
    fn words(&self) -> DeviceWords {
        self.words
    }

    #[inline(always)]
    fn plan(&self) -> &recsplit::Plan {
        self.plan
    }

    #[inline(always)]
    fn row(&self, keys: u32) -> row::Row {
        let at = 4 * keys as usize;
        // SAFETY: `keys < plan.rows`: only `value_of` calls this; it begins at a node with a row (`enter` checks) and
        // goes to children, which have fewer keys. `rows` has four words per row, by the contract of `new`.
        let ([a, b], [c, d]) = unsafe { (self.rows.read2_nc(at), self.rows.read2_nc(at + 2)) };
        row::Row::from_words([a, b, c, d])
    }
}

impl consensus::Function for Parts<'_, consensus::Plan> {
    type Words = DeviceWords;

    #[inline(always)]
    fn words(&self) -> DeviceWords {
        self.words
    }

    #[inline(always)]
    fn plan(&self) -> &consensus::Plan {
        self.plan
    }

    #[inline(always)]
    fn row(&self, place: u32) -> tree::Row {
        // SAFETY: `place` is a row's: only `value_of` calls this; it begins at a node with a row (`enter` checks), goes
        // to nodes of fewer keys, and ends at a leaf, whose size has a row after those of splittings. `rows` has two
        // words per row, by the contract of `new`.
        tree::Row::from_words(unsafe { self.rows.read2_nc(2 * place as usize) })
    }
}

impl placement::Function for Parts<'_, placement::Plan> {
    type Words = DeviceWords;
    type Segment = Segment;

    #[inline(always)]
    fn words(&self) -> DeviceWords {
        self.words
    }

    #[inline(always)]
    fn segments(&self) -> u64 {
        self.plan.segments
    }

    #[inline(always)]
    fn segment(&self, index: u64) -> Segment {
        let at = 4 * index as usize;
        // SAFETY: `index` is below the number of segments, or 0: only `segment_of` calls this. `rows` has four words
        // per segment, and those of one without any, by the contract of `new`.
        let ([a, b], [c, d]) = unsafe { (self.rows.read2_nc(at), self.rows.read2_nc(at + 2)) };
        Segment::from_words([a, b, c, d])
    }
}

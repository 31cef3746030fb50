//! Queries of rank-and-select quotient filters and maplets in device memory by one thread, for kernels of other crates
//! (feature `filters`), like [`bloom::device_query`](crate::bloom::device_query) for Bloom filters. They use the
//! functions of the kernels here.

#[cfg(feature = "bodies")]
use warpset_core::bits::ByHalves;
use warpset_core::bits::lowest;
use warpset_core::hash::{self, permute};
use warpset_core::quotient::Split;
#[cfg(feature = "bodies")]
use warpset_core::quotient::rank_select::Blocks;
use warpset_core::quotient::rank_select::fields;
use warpset_simt::Global;

use crate::quotient::memory::ReadOnly;
use crate::quotient::rank_select::search::Runs;

/// Rank-and-select quotient filter without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RankSelectQuery {
    blocks: u64,
    spread: u64,
    fields: u64,
    quotient_bits: u32,
    remainder_bits: u32,
    counted: u32,
    exact: u32,
}

const _: () = assert!(size_of::<RankSelectQuery>() == 40);

impl RankSelectQuery {
    /// Makes a query of a filter of `blocks` blocks; `is_counted` if its slots have counters, `is_exact` if its
    /// fingerprints are bijections of integers.
    pub const fn new(blocks: u64, split: Split, seed: u64, is_counted: bool, is_exact: bool) -> RankSelectQuery {
        let Split { quotient_bits, remainder_bits } = split;
        let spread = if is_exact { permute::spread_of(seed) } else { hash::spread_seed(seed) };
        let (counted, exact) = (is_counted as u32, is_exact as u32);
        RankSelectQuery {
            blocks,
            spread,
            fields: fields(remainder_bits),
            quotient_bits,
            remainder_bits,
            counted,
            exact,
        }
    }

    #[inline(always)]
    const fn split(self) -> Split {
        Split { quotient_bits: self.quotient_bits, remainder_bits: self.remainder_bits }
    }

    /// Returns the fingerprint of an integer by its value in 64 bits, with the sign of a signed one extended; `None` if
    /// the filter is exact and the value has more bits.
    #[inline(always)]
    pub fn fingerprint(self, key: u64) -> Option<u64> {
        let bits = self.split().fingerprint_bits();
        if self.exact != 0 {
            return (key <= lowest(bits)).then(|| permute::permute(key, bits, self.spread));
        }
        Some(self.split().fingerprint(hash::mix_spread(key, self.spread)))
    }

    /// Whether the filter may contain an integer, by its value in 64 bits.
    ///
    /// # Safety
    /// `words` are those of the filter, at a multiple of 16 bytes, not written while the kernel runs.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn contains(self, words: Global<u64>, key: u64) -> bool {
        let Some(fingerprint) = self.fingerprint(key) else { return false };
        // SAFETY: the contract is the same.
        unsafe { self.contains_fingerprint(words, fingerprint) }
    }

    /// Returns the number of stored copies of an integer's fingerprint.
    ///
    /// # Safety
    /// The contract of [`RankSelectQuery::contains`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn count(self, words: Global<u64>, key: u64) -> u64 {
        let Some(fingerprint) = self.fingerprint(key) else { return 0 };
        // SAFETY: the contract is the same.
        unsafe { self.count_fingerprint(words, fingerprint) }
    }

    /// Whether a fingerprint of this filter is stored.
    ///
    /// # Safety
    /// The contract of [`RankSelectQuery::contains`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn contains_fingerprint(self, words: Global<u64>, fingerprint: u64) -> bool {
        let (quotient, remainder) = (self.split().quotient(fingerprint), self.split().remainder(fingerprint));
        if self.counted != 0 {
            Runs::<false, true, _>::new(ReadOnly(words), self.blocks, self.remainder_bits, self.fields)
                .contains_counted(quotient, remainder)
        } else {
            Runs::<false, false, _>::new(ReadOnly(words), self.blocks, self.remainder_bits, self.fields)
                .contains(quotient, remainder)
        }
    }

    /// Returns the number of stored copies of a fingerprint of this filter.
    ///
    /// # Safety
    /// The contract of [`RankSelectQuery::contains`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn count_fingerprint(self, words: Global<u64>, fingerprint: u64) -> u64 {
        let (quotient, remainder) = (self.split().quotient(fingerprint), self.split().remainder(fingerprint));
        if self.counted != 0 {
            Runs::<false, true, _>::new(ReadOnly(words), self.blocks, self.remainder_bits, self.fields)
                .count_counted(quotient, remainder)
        } else {
            Runs::<false, false, _>::new(ReadOnly(words), self.blocks, self.remainder_bits, self.fields)
                .count(quotient, remainder)
        }
    }
}

/// Maplet without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct MapletQuery {
    /// Filter with the pairs of fingerprints and values.
    pairs: RankSelectQuery,
    value_bits: u64,
}

const _: () = assert!(size_of::<MapletQuery>() == 48);

impl MapletQuery {
    /// Makes a query of a maplet with values of `value_bits` bits; `pairs` is that of the filter with its pairs, exact
    /// if the fingerprints without values are bijections of integers.
    pub const fn new(pairs: RankSelectQuery, value_bits: u32) -> MapletQuery {
        MapletQuery { pairs, value_bits: value_bits as u64 }
    }

    /// Returns the value of an integer, by its value in 64 bits: the least one if its fingerprint has several.
    ///
    /// # Safety
    /// The contract of [`RankSelectQuery::contains`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn get(self, words: Global<u64>, key: u64) -> Option<u64> {
        let remainder_bits = self.pairs.remainder_bits - self.value_bits as u32;
        let fingerprint = RankSelectQuery { remainder_bits, ..self.pairs }.fingerprint(key)?;
        // SAFETY: the contract is the same.
        unsafe { self.get_fingerprint(words, fingerprint) }
    }

    /// Returns the value of a fingerprint of this maplet: the least one if it has several.
    ///
    /// # Safety
    /// The contract of [`RankSelectQuery::contains`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn get_fingerprint(self, words: Global<u64>, fingerprint: u64) -> Option<u64> {
        let RankSelectQuery { blocks, fields, remainder_bits, counted, .. } = self.pairs;
        let (value_bits, pair) = (self.value_bits as u32, fingerprint << self.value_bits);
        let (quotient, remainder) = (self.pairs.split().quotient(pair), self.pairs.split().remainder(pair));
        if counted != 0 {
            let blocks = Blocks::counted(ReadOnly(words), blocks, remainder_bits);
            let slot = blocks.first_prefixed(quotient, remainder, value_bits, ByHalves)?;
            return Some(blocks.remainder(slot) & lowest(value_bits));
        }
        Runs::<false, false, _>::new(ReadOnly(words), blocks, remainder_bits, fields)
            .first_prefixed(quotient, remainder, value_bits)
    }
}

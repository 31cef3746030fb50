//! Perfect hash functions: a header, the words of all codes, and the lists of buckets.
//!
//! Source: sections 4.2, 4.5.2. The words are the saved form (`docs/formats.md`), so a function can be opened from a
//! memory-mapped file without copying.

use crate::bulk::in_chunks;
use crate::elias_fano::Lists;
use crate::format::Header;
use crate::kind::sealed;
use crate::stored::{self, StoredFunction, StoredParts};
use crate::{Error, HashKind, Number};
use std::fmt;
use std::marker::PhantomData;
use warpset_base::file::{self, FileError};
use warpset_base::filter::same_length;
use warpset_base::key::Key;
use warpset_base::words::in_huge_pages;

/// Parts of a [`PerfectHash`]: a function of the kind `M`.
pub struct Function<M>(PhantomData<M>);

/// A perfect hash function of the kind `M` with its words in `W`. It maps the keys that it was built from to numbers; a
/// minimal one maps each of `n` keys to its own number of `0..n`.
///
/// Other keys map to any of the numbers: the function does not know its keys. See [`StaticFilter`](crate::StaticFilter)
/// for a structure that does. [`RecSplit`](crate::RecSplit) and [`Consensus`](crate::Consensus) own their words.
pub type PerfectHash<M, W = Vec<u64>> = StoredFunction<Function<M>, W>;

/// Fields of a function's header, and tables derived from them.
#[derive(Clone)]
pub struct Parameters<M: sealed::HashKind> {
    pub(crate) header: Header<M>,
    pub(crate) lists: Lists,
    pub(crate) tables: M::Tables,
}

impl<M: HashKind> Parameters<M> {
    /// Derives the parameters from a checked header and the words of the lists, which `of_lists` copies if they are
    /// needed.
    #[cfg(feature = "gpu")]
    pub(crate) fn new<E>(header: Header<M>, of_lists: impl FnOnce(&mut [u64]) -> Result<(), E>) -> Result<Self, E> {
        let mut list_words = vec![0; if M::READS_LISTS { header.layout.words() as usize } else { 0 }];
        if M::READS_LISTS {
            of_lists(&mut list_words)?;
        }
        Ok(Self::from_lists(header, &list_words))
    }

    /// Derives the parameters from a checked header and all words of the function.
    pub(crate) fn trusted(header: Header<M>, words: &[u64]) -> Self {
        Self::from_lists(header, &words[header.lists_at() as usize..])
    }

    fn from_lists(header: Header<M>, list_words: &[u64]) -> Self {
        let lists = Lists::at(header.layout, header.lists_at());
        Self { header, lists, tables: M::tables(&header, &lists, list_words) }
    }

    /// Returns the space of codes and lists.
    pub(crate) fn space(&self) -> Space {
        Space { trees: self.header.code_bits, buckets: self.header.layout.words() * 64 }
    }
}

impl<M: HashKind> StoredParts for Function<M> {}

impl<M: HashKind> stored::sealed::StoredParts for Function<M> {
    const STRUCTURE: file::FileKind = M::KIND.structure();
    const NAME: &'static str = M::NAME;
    type Parameters = Parameters<M>;

    fn parse(words: &[u64]) -> Result<Parameters<M>, FileError> {
        crate::format::parse(words).map(|header| Parameters::trusted(header, words))
    }

    fn keys(parameters: &Parameters<M>) -> u64 {
        parameters.header.keys
    }

    fn seed(parameters: &Parameters<M>) -> u64 {
        parameters.header.seed
    }

    fn debug(parameters: &Parameters<M>, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("code", &parameters.header.code);
    }
}

/// A function to look keys up in.
#[derive(Clone, Copy)]
pub struct Lookup<'a, M: sealed::HashKind> {
    pub(crate) words: &'a [u64],
    pub(crate) parameters: &'a Parameters<M>,
}

impl<M: HashKind, W: AsRef<[u64]>> PerfectHash<M, W> {
    #[inline(always)]
    pub(crate) fn lookup(&self) -> Lookup<'_, M> {
        Lookup { words: self.words(), parameters: self.parameters() }
    }

    /// Returns the upper bound of all numbers: `len` for a minimal function, more for one with a [load
    /// factor](crate::Builder::load_factor), less with several [keys per value](crate::Builder::keys_per_value).
    pub fn values(&self) -> u64 {
        M::values(&self.parameters().header)
    }

    /// Returns the bits of the codes and of the lists of bucket positions.
    pub fn space(&self) -> Space {
        self.parameters().space()
    }

    /// Returns the number of `key`, below [`values`](Self::values). A key that the function was not built from gets an
    /// arbitrary number. A function of no keys has no numbers and returns 0: read a table that may be empty by
    /// `table.get(number as usize)`.
    #[inline(always)]
    pub fn get(&self, key: impl Key) -> u64 {
        let lookup = self.lookup();
        M::get(lookup, M::hash(&key, lookup.parameters.header.seed))
    }

    /// Returns the numbers of many keys, on all threads of the current rayon pool; a few thousand keys stay on the
    /// calling thread.
    ///
    /// The lookups of a batch go down their trees together, so their cache misses overlap. On one thread this is two
    /// and a half to four times faster than single lookups with AVX-512, or if the function is larger than the caches;
    /// 1.4 to 1.7 times faster with AVX2, slightly faster without.
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        let mut numbers = in_huge_pages(vec![0; keys.len()]);
        self.fill_numbers(keys, &mut numbers);
        numbers
    }

    /// Writes the numbers of many keys to a slice of equal length, of `u64` or of `u32`.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::NumbersTooLarge`] for `u32` and a function of more than 2^32 values.
    pub fn get_bulk_into<K: Key, N: Number>(&self, keys: &[K], numbers: &mut [N]) -> Result<(), Error> {
        same_length(keys.len(), numbers.len())?;
        N::check(self.values())?;
        self.fill_numbers(keys, numbers);
        Ok(())
    }

    fn fill_numbers<K: Key, N: Number>(&self, keys: &[K], numbers: &mut [N]) {
        let lookup = self.lookup();
        in_chunks::<1, _, _>(keys, numbers, |keys, numbers| lookup.get_here(keys, numbers));
    }
}

/// Bits of a function by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Space {
    /// Bits of the codes of all buckets.
    pub trees: u64,
    /// Bits of the positions of buckets (double Elias-Fano).
    pub buckets: u64,
}

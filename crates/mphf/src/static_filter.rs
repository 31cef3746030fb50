//! Static filter: fingerprints next to a minimal perfect hash function.
//!
//! Source: introduction of the thesis. A key counts as a member if the fingerprint at its number is its own. Any other
//! key passes with probability 2^-w, for fingerprints of `w` bits.

mod build;
mod format;
mod lookup;

use crate::function::PerfectHash;
#[cfg(feature = "mmap")]
use crate::stored::Mapped;
use crate::stored::{self, StoredFunction, StoredParts};
use crate::{Bitmap, ConsensusKind, Error, HashKind, Key, Number};
#[cfg(feature = "gpu")]
pub(crate) use format::fingerprint_words;
use lookup::Lookup;
pub(crate) use lookup::Parameters;
use std::fmt;
use std::marker::PhantomData;
use warpset_base::file::{self, FileError};
use warpset_base::filter::{Filter, Take, same_length};
use warpset_base::words::in_huge_pages;

/// Parts of a [`StaticFilter`]: fingerprints next to a function of the kind `M`.
pub struct Fingerprints<M>(PhantomData<M>);

/// Immutable set on top of a perfect hash function of the kind `M`: gives each member its number, and rejects every
/// other key with probability `1 - 2^-w`.
///
/// ```
/// use warpset_mphf::{RecSplitKind, StaticFilter};
///
/// let keys = ["one", "two", "three"];
/// let filter = StaticFilter::builder().width(16).build_from(&keys)?;
/// assert!(filter.contains("one") && filter.contains("three"));
/// assert!(filter.get("two").is_some_and(|number| number < 3));
///
/// // `load`, `from_bytes` and their like read the kind that the type says.
/// let copy: StaticFilter = StaticFilter::from_bytes(&filter.to_bytes())?;
/// assert!(copy == filter);
///
/// // The same on a function of the other kind, with faster lookups and more bits per key.
/// let filter = StaticFilter::builder_of_kind(RecSplitKind).width(16).leaf_size(8).build_from(&keys)?;
/// assert!(filter.contains("two"));
/// # Ok::<(), warpset_mphf::Error>(())
/// ```
///
/// Space: `w` bits per key, and the function's: 1.46 to 1.7 for the default kind,
/// [`ConsensusKind`]; 1.5 to 3 for [`RecSplitKind`](crate::RecSplitKind). Lookups: one in the
/// function, and one more cache miss in large filters.
pub type StaticFilter<M = ConsensusKind> = StoredFunction<Fingerprints<M>>;

/// Static filter that borrows its words: lent by [`StaticFilter::view`], or opened in bytes without a copy.
pub type StaticFilterView<'a, M = ConsensusKind> = StoredFunction<Fingerprints<M>, &'a [u64]>;

/// Static filter in a memory-mapped file, made by [`StaticFilter::map`].
#[cfg(feature = "mmap")]
pub type MappedStaticFilter<M = ConsensusKind> = StoredFunction<Fingerprints<M>, Mapped>;

impl<M: HashKind> StoredParts for Fingerprints<M> {}

impl<M: HashKind> stored::sealed::StoredParts for Fingerprints<M> {
    const STRUCTURE: file::FileKind = format::STRUCTURE;
    const NAME: &'static str = "static filter";
    type Parameters = Parameters<M>;

    fn parse(words: &[u64]) -> Result<Parameters<M>, FileError> {
        Parameters::of(words)
    }

    fn keys(parameters: &Parameters<M>) -> u64 {
        parameters.keys()
    }

    fn seed(parameters: &Parameters<M>) -> u64 {
        parameters.function.header.seed
    }

    fn debug(parameters: &Parameters<M>, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("width", &parameters.width);
    }
}

impl<M: HashKind, W: AsRef<[u64]>> StoredFunction<Fingerprints<M>, W> {
    #[inline(always)]
    fn lookup(&self) -> Lookup<'_, M> {
        Lookup { words: self.words(), parameters: self.parameters() }
    }

    /// Returns the bits of a fingerprint.
    pub fn width(&self) -> u32 {
        self.parameters().width
    }

    /// Returns the probability that a non-member passes: 2^-width, and 0 for an empty filter.
    pub fn fpr(&self) -> f64 {
        self.parameters().fpr()
    }

    /// Returns the theoretical false-positive rate with `keys` keys: 2^-width, or 0 without any.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        self.parameters().expected_fpr(keys)
    }

    /// Returns the function that numbers the members.
    pub fn function(&self) -> PerfectHash<M, &[u64]> {
        let function = self.lookup().function();
        PerfectHash::trusted(function.words, function.parameters.clone())
    }

    /// Whether `key` is a member, or passes as one.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.lookup().get(&key).is_some()
    }

    /// Returns the number of `key`, below `len`, or `None` if it is certainly no member.
    #[inline]
    pub fn get(&self, key: impl Key) -> Option<u64> {
        self.lookup().get(&key)
    }

    /// Returns the number of each key, like `get`, on all threads of the current rayon pool; a few thousand keys stay
    /// on the calling thread.
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Vec<Option<u64>> {
        let mut numbers = in_huge_pages(vec![None; keys.len()]);
        self.lookup().fill(keys, &mut numbers, |number, is_member| is_member.then_some(number));
        numbers
    }

    /// Writes the number of each key to a slice of equal length, of `u64` or of `u32`, and returns which keys have one;
    /// the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::NumbersTooLarge`] for `u32` and a filter of more than 2^32 members.
    pub fn get_bulk_into<K: Key, N: Number>(&self, keys: &[K], numbers: &mut [N]) -> Result<Bitmap, Error> {
        same_length(keys.len(), numbers.len())?;
        N::check(self.len())?;
        Ok(self.lookup().numbers_and_bits(keys, numbers))
    }
}

impl<M: HashKind, W: AsRef<[u64]>> Filter for StoredFunction<Fingerprints<M>, W> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        take(0, self.lookup().bits(keys).as_words());
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn contains(&self, key: impl Key) -> Result<bool, Error> {
        Ok(self.contains(key))
    }
}

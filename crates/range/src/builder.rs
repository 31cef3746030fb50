//! Settings of range filters.

use std::marker::PhantomData;

use crate::{Error, KeyOf, RangeFilter, RangeKey, build};

/// Settings of a [`RangeFilter`]; each setter states its default.
///
/// ```
/// use warpset_range::RangeFilter;
///
/// let builder = RangeFilter::<i32>::builder().bits_per_key(12.0);
/// let filter = builder.build_from(&[-2_000_000_000, 5, 5, 2_000_000_000])?;
/// assert!(filter.contains(5) && filter.may_contain(..=-2_000_000_000) && filter.len() == 3);
/// # Ok::<(), warpset_range::Error>(())
/// ```
#[must_use = "a builder does nothing until `build_from`"]
pub struct Builder<K: ?Sized> {
    space: Space,
    pub(crate) seed: u64,
    keys: PhantomData<fn() -> K>,
}

/// Number of codes per key, as the user gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Space {
    Bits(f64),
    Rate { fpr: f64, length: u64 },
}

impl<K: RangeKey + ?Sized> Builder<K> {
    pub(crate) fn new() -> Builder<K> {
        Builder { space: Space::Bits(16.0), seed: 0, keys: PhantomData }
    }

    /// Sets the bits per key, `B` from 3 to 60: a range of `l` keys gets a wrong "yes" with probability at most
    /// `l / 2^(B-2)`. The filter takes at most 0.2 bits per key more, and less if keys are dense. Default: 16.
    pub fn bits_per_key(mut self, bits: f64) -> Self {
        self.space = Space::Bits(bits);
        self
    }

    /// Sets the bits per key to those with this rate of wrong answers at ranges of `length` keys:
    /// `log2(length / fpr) + 2`. Default: 16 bits, or a rate of 0.6 % at ranges of 100 keys.
    pub fn fpr_at(mut self, fpr: f64, length: u64) -> Self {
        self.space = Space::Rate { fpr, length };
        self
    }

    /// Sets the seed of the hash of blocks. The same keys, settings and seed make the same bytes on every backend.
    /// Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Builds the filter of these keys, in any order, on all threads of the current rayon pool; equal keys count once.
    /// Takes 16 bytes per key besides the filter, and as much as the keys if some are equal. Keys in ascending order
    /// without repetitions that are dense enough for an exact filter take nothing.
    ///
    /// # Errors
    /// [`Error::InvalidBitsPerKey`], [`Error::InvalidFpr`], [`Error::InvalidRangeLength`] for impossible settings;
    /// [`Error::TooManyKeys`], [`Error::TooManyCodes`], [`Error::OutOfMemory`].
    pub fn build_from<Q: KeyOf<K>>(&self, keys: &[Q]) -> Result<RangeFilter<K>, Error> {
        build::build(self.codes_per_key()?, self.seed, keys)
    }

    /// Checks the settings and returns the number of codes per key.
    pub(crate) fn codes_per_key(&self) -> Result<f64, Error> {
        match self.space {
            Space::Bits(bits) if (3.0..=60.0).contains(&bits) => Ok((bits - 2.0).exp2()),
            Space::Bits(bits) => Err(Error::InvalidBitsPerKey { bits }),
            Space::Rate { length: 0, .. } => Err(Error::InvalidRangeLength),
            Space::Rate { fpr, length } if fpr > 0.0 && fpr < 1.0 => Ok(length as f64 / fpr),
            Space::Rate { fpr, .. } => Err(Error::InvalidFpr { fpr }),
        }
    }
}

impl<K: ?Sized> Clone for Builder<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: ?Sized> Copy for Builder<K> {}

impl<K: ?Sized> std::fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("space", &self.space).field("seed", &self.seed).finish()
    }
}

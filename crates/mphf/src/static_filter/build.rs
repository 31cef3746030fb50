//! Builds of filters: a function, and then the fingerprint of each key at its number.

use super::StaticFilter;
use super::format::{WIDTHS, fingerprint_words, seal};
use super::lookup::{BLOCK, Parameters};
use crate::bit_vec::shared;
use crate::builder::FingerprintWidth;
use crate::format::COMMON_WORDS;
use crate::function::{Lookup, PerfectHash};
use crate::{Builder, ConsensusKind, Error, HashKind};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_base::key::{Hash128, Key};
use warpset_core::recsplit::fingerprint::fingerprint;

impl StaticFilter {
    /// Returns the default settings, for at most 1 % false positives;
    /// [`build_from`](crate::Builder::build_from) takes the keys.
    pub fn builder() -> Builder<ConsensusKind, Self> {
        Builder::new()
    }
}

impl<M: HashKind> StaticFilter<M> {
    /// Returns the default settings of a filter on a function of this kind.
    pub fn builder_of_kind(_: M) -> Builder<M, Self> {
        Builder::new()
    }
}

impl<M: HashKind> Builder<M, StaticFilter<M>> {
    /// Sets the highest false-positive rate, from 2^-32 on and below 1: fingerprints get the fewest bits that keep it.
    /// Replaces the width. Default: 0.01.
    ///
    /// ```
    /// use warpset_mphf::StaticFilter;
    ///
    /// let filter = StaticFilter::builder().fpr(0.001).build_from(&["one", "two", "three"])?;
    /// assert!(filter.contains("two") && filter.width() == 10 && filter.fpr() < 0.001);
    /// # Ok::<(), warpset_mphf::Error>(())
    /// ```
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.width = FingerprintWidth::Fpr(fpr);
        self
    }

    /// Sets the bits of a fingerprint, 1 to 32: a non-member passes with probability 2^-width. Replaces the rate.
    /// Default: 7, for a rate of 0.01.
    pub fn width(mut self, width: u32) -> Self {
        self.width = FingerprintWidth::Bits(width);
        self
    }

    /// Builds the filter of `keys`, which must be distinct.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`] for functions; [`Error::InvalidParameter`] for a width or a rate out of
    /// range.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<StaticFilter<M>, Error> {
        self.filter_of(keys, |builder| builder.function_from(keys))
    }

    /// Builds the filter of `keys` around the function that `build` returns for them.
    pub(crate) fn filter_of<K: Key>(
        &self,
        keys: &[K],
        build: impl FnOnce(&Self) -> Result<PerfectHash<M>, Error>,
    ) -> Result<StaticFilter<M>, Error> {
        let width = self.checked_width()?;
        let mut draft = Draft::new(build(self)?, width);
        self.run(keys.len() as u64, || {
            let space = draft.space();
            keys.par_chunks(BLOCK).for_each(|keys| {
                space.put(keys.iter());
            });
            draft.finish()
        })
    }

    /// Builds the filter of the keys of `source`. It may be called several times, usually three times, and must return
    /// the same keys in the same order each time. The keys themselves are never all in memory.
    ///
    /// # Errors
    /// The errors of `build_from`; [`Error::InputChanged`] if the last call returns more or fewer keys.
    pub fn build_from_iter<K: Key, I: IntoIterator<Item = K>>(
        &self,
        mut source: impl FnMut() -> I,
    ) -> Result<StaticFilter<M>, Error> {
        let width = self.checked_width()?;
        let mut draft = Draft::new(self.function_from_iter(&mut source)?, width);
        let first = draft.parameters.function.header.keys;
        let mut keys = source().into_iter();
        let (space, mut later) = (draft.space(), 0);
        while later < first {
            let put = space.put(keys.by_ref().take((first - later).min(BLOCK as u64) as usize));
            later += put as u64;
            if put == 0 {
                return Err(Error::InputChanged { first, later });
            }
        }
        if keys.next().is_some() {
            return Err(Error::InputChanged { first, later: first + 1 });
        }
        Ok(draft.finish())
    }

    /// Returns the bits of a fingerprint, if they are in range.
    pub(crate) fn checked_width(&self) -> Result<u32, Error> {
        match self.width {
            FingerprintWidth::Bits(width) if WIDTHS.contains(&width) => Ok(width),
            FingerprintWidth::Bits(width) => {
                let value = f64::from(width);
                Err(Error::InvalidParameter { what: "fingerprint width", value, allowed: "1 to 32" })
            }
            FingerprintWidth::Fpr(fpr) if fpr < 1.0 && fpr.log2() >= -f64::from(*WIDTHS.end()) => {
                Ok((-fpr.log2()).ceil() as u32)
            }
            FingerprintWidth::Fpr(value) => {
                let allowed = "at least 2^-32 (2.4e-10) and below 1";
                Err(Error::InvalidParameter { what: "false-positive rate", value, allowed })
            }
        }
    }
}

/// A filter without its fingerprints and header.
struct Draft<M: HashKind> {
    words: Vec<u64>,
    parameters: Parameters<M>,
}

/// A draft's function, and its fingerprints, which start as zeros.
struct Space<'a, M: HashKind> {
    function: Lookup<'a, M>,
    fingerprints: &'a [AtomicU64],
    width: u32,
}

impl<M: HashKind> Draft<M> {
    fn new(function: PerfectHash<M>, width: u32) -> Self {
        let (function_words, function) = function.into_parts();
        // Builders of filters make only functions that fit in memory.
        let fingerprints = fingerprint_words(function.header.keys, width) as usize;
        let mut words = vec![0; COMMON_WORDS + function_words.len() + fingerprints];
        words[COMMON_WORDS..][..function_words.len()].copy_from_slice(&function_words);
        Self { words, parameters: Parameters::new(function, function_words.len(), width) }
    }

    fn space(&mut self) -> Space<'_, M> {
        let Parameters { function, function_words, width } = &self.parameters;
        let (words, fingerprints) = self.words.split_at_mut(COMMON_WORDS + function_words);
        let function = Lookup { words: &words[COMMON_WORDS..], parameters: function };
        Space { function, fingerprints: shared(fingerprints), width: *width }
    }

    fn finish(mut self) -> StaticFilter<M> {
        seal(&mut self.words, &self.parameters);
        StaticFilter::trusted(self.words, self.parameters)
    }
}

impl<M: HashKind> Space<'_, M> {
    /// Writes the fingerprints of at most [`BLOCK`] keys; returns their number.
    fn put<K: Key>(&self, keys: impl Iterator<Item = K>) -> usize {
        let seed = self.function.parameters.header.seed;
        let hashes: Vec<Hash128> = keys.map(|key| M::hash(&key, seed)).collect();
        let mut numbers = [0; BLOCK];
        let count = hashes.len();
        self.function.get_hashes(&hashes, &mut numbers[..count]);
        for (hash, number) in hashes.into_iter().zip(numbers) {
            let at = number * u64::from(self.width);
            let (word, shift) = ((at / 64) as usize, at % 64);
            let bits = u128::from(fingerprint(hash, self.width)) << shift;
            self.fingerprints[word].fetch_or(bits as u64, Ordering::Relaxed);
            self.fingerprints[word + 1].fetch_or((bits >> 64) as u64, Ordering::Relaxed);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use crate::{Error, StaticFilter};

    #[test]
    fn a_source_with_other_numbers_of_keys_is_refused() {
        for (first, last) in [(0, 1), (5, 4), (5, 6), (5, 0), (1000, 999), (1000, 3000)] {
            let mut calls = 0;
            let source = || {
                calls += 1;
                0..if calls == 1 { first } else { last }
            };
            let refused = StaticFilter::builder().build_from_iter(source).unwrap_err();
            let later = last.min(first + 1);
            assert!(
                matches!(refused, Error::InputChanged { first: f, later: l } if (f, l) == (first, later)),
                "{refused}"
            );
        }
    }

    #[test]
    fn rates_become_widths() {
        let keys: Vec<u64> = (0..100).collect();
        let width = |fpr: f64| StaticFilter::builder().fpr(fpr).build_from(&keys).map(|filter| filter.width());
        for (fpr, expected) in [(0.9, 1), (0.5, 1), (0.49, 2), (0.01, 7), (2f64.powi(-32), 32)] {
            assert_eq!(width(fpr).unwrap(), expected, "{fpr}");
        }
        for fpr in [1.0, 2.0, f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-10, 1e-300] {
            assert!(matches!(width(fpr), Err(Error::InvalidParameter { what: "false-positive rate", .. })), "{fpr}");
        }
        let filter = StaticFilter::builder().width(32).build_from(&keys).unwrap();
        let asked: Vec<u64> = (0..5000).rev().collect();
        let expected: Vec<Option<u64>> = asked.iter().map(|key| filter.get(*key)).collect();
        assert!((0..100).all(|at| expected[4999 - at].is_some()) && expected.iter().flatten().count() == 100);
        assert_eq!(filter.get_bulk(&asked), expected);
        let mut numbers = vec![7u32; asked.len()];
        let found = filter.get_bulk_into(&asked, &mut numbers).unwrap();
        let found: Vec<Option<u64>> =
            found.iter().zip(&numbers).map(|(found, &number)| found.then_some(number.into())).collect();
        assert_eq!(found, expected);
    }
}

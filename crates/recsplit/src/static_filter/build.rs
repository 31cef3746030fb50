//! Building filters: a function, and then the fingerprint of each key at its number.

use super::StaticFilter;
use super::format::{WIDTHS, fingerprint_words, seal};
use super::lookup::{BLOCK, Parameters};
use crate::bit_vec::shared;
use crate::format::COMMON_WORDS;
use crate::query;
use crate::{Builder, Error, RecSplit};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_base::key::{Hash128, Key};
use warpset_core::recsplit::fingerprint::fingerprint;

impl Builder<StaticFilter> {
    /// Builds the filter of `keys`, which must be distinct.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<StaticFilter, Error> {
        self.check_width()?;
        let mut draft = Draft::new(self.function_from(keys)?, self.width());
        self.run(|| {
            let space = draft.space();
            keys.par_chunks(BLOCK).for_each(|keys| space.put(keys.iter()));
            draft.finish()
        })
    }

    /// Builds the filter of the keys that `source` gives, which may be called several times and must give the same keys in
    /// the same order each time: three times as a rule. The keys themselves are never all in memory.
    pub fn build_from_iter<K: Key, I: IntoIterator<Item = K>>(
        &self,
        mut source: impl FnMut() -> I,
    ) -> Result<StaticFilter, Error> {
        self.check_width()?;
        let mut draft = Draft::new(self.function_from_iter(&mut source)?, self.width());
        let mut keys = source().into_iter().peekable();
        let space = draft.space();
        while keys.peek().is_some() {
            space.put(keys.by_ref().take(BLOCK));
        }
        Ok(draft.finish())
    }

    pub(crate) fn check_width(&self) -> Result<(), Error> {
        let value = f64::from(self.width());
        match WIDTHS.contains(&self.width()) {
            true => Ok(()),
            false => Err(Error::InvalidParameter { what: "fingerprint width", value, allowed: "1 to 32" }),
        }
    }
}

/// A filter whose fingerprints and header are still to come.
struct Draft {
    words: Vec<u64>,
    parameters: Parameters,
}

/// A draft's function, and the space of its fingerprints, all zero to begin with.
struct Space<'a> {
    function: query::Lookup<'a>,
    fingerprints: &'a [AtomicU64],
    width: u32,
}

impl Draft {
    fn new(function: RecSplit, width: u32) -> Self {
        let (function_words, function) = function.into_parts();
        // A builder of filters makes no function that is larger than memory.
        let fingerprints = fingerprint_words(function.header.keys, width) as usize;
        let mut words = vec![0; COMMON_WORDS + function_words.len() + fingerprints];
        words[COMMON_WORDS..][..function_words.len()].copy_from_slice(&function_words);
        Self { words, parameters: Parameters::new(function, function_words.len(), width) }
    }

    fn space(&mut self) -> Space<'_> {
        let Parameters { function, function_words, width } = &self.parameters;
        let (words, fingerprints) = self.words.split_at_mut(COMMON_WORDS + function_words);
        let function = query::Lookup { words: &words[COMMON_WORDS..], parameters: function };
        Space { function, fingerprints: shared(fingerprints), width: *width }
    }

    fn finish(mut self) -> StaticFilter {
        seal(&mut self.words, &self.parameters);
        StaticFilter { words: self.words, parameters: self.parameters }
    }
}

impl Space<'_> {
    /// Puts the fingerprints of at most [`BLOCK`] keys to their places.
    fn put<K: Key>(&self, keys: impl Iterator<Item = K>) {
        let seed = self.function.parameters.header.seed;
        let hashes: Vec<Hash128> = keys.map(|key| key.hash128(seed)).collect();
        let mut numbers = [0; BLOCK];
        self.function.get_hashes(&hashes, &mut numbers[..hashes.len()]);
        for (hash, number) in hashes.into_iter().zip(numbers) {
            let at = number * u64::from(self.width);
            let (word, shift) = ((at / 64) as usize, at % 64);
            let bits = u128::from(fingerprint(hash, self.width)) << shift;
            self.fingerprints[word].fetch_or(bits as u64, Ordering::Relaxed);
            self.fingerprints[word + 1].fetch_or((bits >> 64) as u64, Ordering::Relaxed);
        }
    }
}

//! From keys to fingerprints: attempts under one seed after the other, whatever the form.
//!
//! The bytes of a filter follow from the set of its keys, its form and its seed, for any number of threads and on every
//! backend. Repeated keys count once: equal keys keep a graph from being peeled, so the build searches for them when
//! peeling fails, and starts again with the number of different keys.

pub(crate) mod external;
mod one_graph;
pub(crate) mod partition;
pub(crate) mod peel;
pub(crate) mod sharded;

use warpset_base::key::Key;
use warpset_base::words::{AlignedWords, OutOfMemory, zeroed_vec};
use warpset_base::{parallel, sort};
use warpset_core::fuse::hash::mix;
use warpset_core::hash;

use crate::width::Width;
use crate::{Arity, BinaryFuse, Error, Form, Layout};

/// Seeds of a filter that are tried: about every second one works.
pub(crate) const SEEDS: u32 = 64;

/// Seed in place of 0; any other would do.
const INSTEAD_OF_0: u64 = 1 << 32;

/// Settings of a filter, independent of its keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub arity: Arity,
    pub form: Form,
    pub seed: u64,
}

impl Settings {
    /// Returns the parameters for the `attempt`-th attempt with `keys` different keys.
    pub(crate) fn layout<F: Width>(&self, keys: u64, attempt: u32) -> Result<Layout, Error> {
        // Under the seed 0, the key 0 has the fingerprint of unused slots and would always be found.
        let seed = match hash::mix(attempt.into(), self.seed) {
            0 => INSTEAD_OF_0,
            seed => seed,
        };
        Layout::new(F::BITS, self.arity, self.form, keys, seed, attempt)
    }
}

/// Failure of an attempt.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another seed may do.
    Unlucky,
    /// Some keys are equal.
    Duplicates,
    Error(Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Error(error.into())
    }
}

/// Returns the number that a filter uses in place of a key: an integer's value, and XXH64 of the bytes of other keys.
///
/// A filter that is built from these numbers is that of the keys, so programs that gather keys before they build can
/// keep 8 bytes of each.
///
/// ```
/// use warpset_fuse::{BinaryFuse8, word_of};
///
/// let keys = ["north", "south"];
/// let words: Vec<u64> = keys.iter().map(word_of).collect();
/// let filter = BinaryFuse8::builder().build_from(&words)?;
/// assert!(filter == BinaryFuse8::builder().build_from(&keys)? && filter.contains("north"));
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[inline(always)]
pub fn word_of<K: Key + ?Sized>(key: &K) -> u64 {
    key.word().unwrap_or_else(|| key.xxh64())
}

/// Runs attempts until one succeeds. `attempt` builds under a layout; `without_repetitions` removes equal keys and
/// returns the number of the others.
pub(crate) fn attempts<F: Width, T>(
    settings: &Settings,
    mut keys: u64,
    mut attempt: impl FnMut(&Layout, bool) -> Result<T, Failure>,
    mut without_repetitions: impl FnMut() -> Result<u64, Error>,
) -> Result<T, Error> {
    let mut are_distinct = false;
    loop {
        let mut repeat = false;
        for number in 0..SEEDS {
            let layout = settings.layout::<F>(keys, number)?;
            match attempt(&layout, are_distinct) {
                Ok(built) => return Ok(built),
                Err(Failure::Unlucky) => {}
                Err(Failure::Duplicates) if are_distinct => break,
                Err(Failure::Duplicates) => {
                    repeat = true;
                    break;
                }
                Err(Failure::Error(error)) => return Err(error),
            }
        }
        if !repeat {
            return Err(Error::NoSeed { seeds: SEEDS });
        }
        keys = without_repetitions()?;
        are_distinct = true;
    }
}

/// Returns the filter of these keys.
pub(crate) fn build<F: Width, K: Key>(settings: &Settings, keys: &[K]) -> Result<BinaryFuse<F>, Error> {
    if K::CHEAP {
        return build_words(settings, keys.len(), |i| word_of(&keys[i]));
    }
    let words = words_of(keys)?;
    build_words(settings, words.len(), |i| words[i])
}

/// Returns the words of many keys, on all threads.
fn words_of<K: Key>(keys: &[K]) -> Result<Vec<u64>, OutOfMemory> {
    /// Nanoseconds to hash a string.
    const HASH_NS: f64 = 15.0;
    let mut words: Vec<u64> = zeroed_vec(keys.len() as u64)?;
    parallel::answer(keys, &mut words, (HASH_NS, 1), |keys, words| {
        words.iter_mut().zip(keys).for_each(|(word, key)| *word = word_of(key));
    });
    Ok(words)
}

/// Returns the filter of keys by their words.
fn build_words<F: Width>(
    settings: &Settings,
    keys: usize,
    word: impl Fn(usize) -> u64 + Sync,
) -> Result<BinaryFuse<F>, Error> {
    let distinct: std::cell::RefCell<Option<Vec<u64>>> = std::cell::RefCell::new(None);
    attempts::<F, _>(
        settings,
        keys as u64,
        |layout, are_distinct| {
            let words = match &*distinct.borrow() {
                Some(words) => attempt::<F>(layout, words.len(), |i| words[i], are_distinct)?,
                None => attempt::<F>(layout, keys, &word, are_distinct)?,
            };
            Ok(BinaryFuse::from_parts(*layout, words))
        },
        || {
            let mut words: Vec<u64> = zeroed_vec(keys as u64)?;
            words.iter_mut().enumerate().for_each(|(i, to)| *to = word(i));
            sort::sort_by_rank(&mut words, 64, |word| word);
            words.dedup();
            let left = words.len() as u64;
            *distinct.borrow_mut() = Some(words);
            Ok(left)
        },
    )
}

/// Returns the words of a filter under this layout.
fn attempt<F: Width>(
    layout: &Layout,
    keys: usize,
    word: impl Fn(usize) -> u64 + Sync,
    are_distinct: bool,
) -> Result<AlignedWords<u64>, Failure> {
    let mut words = AlignedWords::zeroed(layout.words())?;
    let hash = |i: usize| mix(word(i), layout.seed);
    match (layout.form(), layout.arity) {
        _ if keys == 0 => {}
        (Form::OneGraph, Arity::Three) => {
            one_graph::build::<3, F>(layout, keys, hash, words.as_mut_slice(), are_distinct)?;
        }
        (Form::OneGraph, Arity::Four) => {
            one_graph::build::<4, F>(layout, keys, hash, words.as_mut_slice(), are_distinct)?;
        }
        (Form::Sharded, Arity::Three) => {
            sharded::build::<3, F>(layout, keys, hash, words.as_mut_slice(), are_distinct)?;
        }
        (Form::Sharded, Arity::Four) => {
            sharded::build::<4, F>(layout, keys, hash, words.as_mut_slice(), are_distinct)?;
        }
    }
    Ok(words)
}

/// Whether some of these are equal; sorts them.
fn has_equal(hashes: &mut [u64]) -> bool {
    hashes.sort_unstable();
    hashes.windows(2).any(|two| two[0] == two[1])
}

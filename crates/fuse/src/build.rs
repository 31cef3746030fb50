//! From keys to fingerprints: attempts under one seed after the other, whatever the form.
//!
//! The bytes of a filter follow from the set of its keys, its form and its seed, for any number of threads and on every
//! backend. Repeated keys count once: equal keys keep a graph from being peeled, so the build searches for them when
//! peeling fails, and starts again with the number of different keys.

pub(crate) mod external;
pub(crate) mod item;
mod one_graph;
pub(crate) mod partition;
pub(crate) mod peel;
mod shard;
pub(crate) mod sharded;

use warpset_base::key::Key;
use warpset_base::words::{AlignedWords, OutOfMemory, zeroed_vec};
use warpset_base::{parallel, sort, with_vectors};
use warpset_core::fuse::hash::mix;
use warpset_core::hash;

use crate::width::Slot;
use crate::{Arity, Error, Form, Layout};
use item::{Entry, Item};
use partition::Hashes;

/// Seeds of a filter that are tried: about every second one works.
pub(crate) const SEEDS: u32 = 64;

/// Seed in place of 0; any other would do.
const INSTEAD_OF_0: u64 = 1 << 32;

/// Settings of a structure, independent of its keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Bits of a slot, and those of a value in it.
    pub bits: u32,
    pub value_bits: u32,
    pub arity: Arity,
    pub form: Form,
    pub seed: u64,
}

impl Settings {
    /// Returns the defaults for slots of `bits` bits, `value_bits` of them for a value.
    pub(crate) fn new(bits: u32, value_bits: u32) -> Settings {
        Settings { bits, value_bits, arity: Arity::default(), form: Form::default(), seed: 0 }
    }

    /// Returns the parameters for the `attempt`-th attempt with `keys` different keys.
    pub(crate) fn layout(&self, keys: u64, attempt: u32) -> Result<Layout, Error> {
        // Under the seed 0, the key 0 has the fingerprint of unused slots and would always be found.
        let seed = match hash::mix(attempt.into(), self.seed) {
            0 => INSTEAD_OF_0,
            seed => seed,
        };
        Layout::new(self, keys, seed, attempt)
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
pub(crate) fn attempts<T>(
    settings: &Settings,
    mut keys: u64,
    mut attempt: impl FnMut(&Layout, bool) -> Result<T, Failure>,
    mut without_repetitions: impl FnMut() -> Result<u64, Error>,
) -> Result<T, Error> {
    let mut are_distinct = false;
    loop {
        let mut repeat = false;
        for number in 0..SEEDS {
            let layout = settings.layout(keys, number)?;
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

/// Keys of a build, with their values if there are any.
pub(crate) trait Source: Sync {
    type Item: Item;
    /// Whether a key's word is computed in about the time to read it, and need not be kept.
    const CHEAP: bool;

    fn count(&self) -> usize;

    /// Computes items, from that of key `first` on, with hashes under a seed.
    fn items(&self, first: usize, seed: u64, to: &mut [Self::Item]);

    /// Returns items that have words in place of hashes, on all threads.
    fn words(&self) -> Result<Words<Self::Item>, OutOfMemory>;
}

/// Nanoseconds to hash a string.
const HASH_NS: f64 = 15.0;

/// Keys alone.
pub(crate) struct Keys<'k, K>(pub &'k [K]);

impl<K: Key> Source for Keys<'_, K> {
    type Item = u64;
    const CHEAP: bool = K::CHEAP;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn items(&self, first: usize, seed: u64, to: &mut [u64]) {
        hashes(&self.0[first..], seed, to);
    }

    fn words(&self) -> Result<Words<u64>, OutOfMemory> {
        let mut words: Vec<u64> = zeroed_vec(self.0.len() as u64)?;
        parallel::answer(self.0, &mut words, (HASH_NS, 1), |keys, words| {
            words.iter_mut().zip(keys).for_each(|(word, key)| *word = word_of(key));
        });
        Ok(Words(words))
    }
}

/// Keys and one value for each.
pub(crate) struct Pairs<'k, K, V> {
    pub keys: &'k [K],
    pub values: &'k [V],
}

impl<K: Key, V: Copy + Into<u64> + Sync> Source for Pairs<'_, K, V> {
    type Item = Entry;
    const CHEAP: bool = K::CHEAP;

    fn count(&self) -> usize {
        self.keys.len()
    }

    fn items(&self, first: usize, seed: u64, to: &mut [Entry]) {
        for ((to, key), &value) in to.iter_mut().zip(&self.keys[first..]).zip(&self.values[first..]) {
            *to = Entry { hash: mix(word_of(key), seed), value: value.into() };
        }
    }

    fn words(&self) -> Result<Words<Entry>, OutOfMemory> {
        let mut words: Vec<Entry> = zeroed_vec(self.keys.len() as u64)?;
        // Pairs of a key and a value, chunk by chunk.
        const CHUNK: usize = 1 << 14;
        let parts = words.chunks_mut(CHUNK).zip(self.keys.chunks(CHUNK).zip(self.values.chunks(CHUNK)));
        parallel::for_each(parts, |(words, (keys, values))| {
            for ((to, key), &value) in words.iter_mut().zip(keys).zip(values) {
                *to = Entry { hash: word_of(key), value: value.into() };
            }
        });
        Ok(Words(words))
    }
}

/// Items that have the words of keys in place of hashes.
pub(crate) struct Words<T>(Vec<T>);

impl<T: Item> Words<T> {
    /// Sorts the items and removes repeated ones.
    fn without_repetitions(mut self) -> Result<Words<T>, Error> {
        sort::sort_by_rank(&mut self.0, 64, |item| item.hash());
        self.0.dedup();
        expect_one_value(&self.0)?;
        Ok(self)
    }
}

impl<T: Item> Source for Words<T> {
    type Item = T;
    const CHEAP: bool = true;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn items(&self, first: usize, seed: u64, to: &mut [T]) {
        rehash(&self.0[first..], seed, to);
    }

    fn words(&self) -> Result<Words<T>, OutOfMemory> {
        let mut words = zeroed_vec(self.0.len() as u64)?;
        words.copy_from_slice(&self.0);
        Ok(Words(words))
    }
}

/// Returns layout and words of the structure of these keys.
pub(crate) fn build<F: Slot, S: Source>(settings: &Settings, source: &S) -> Result<(Layout, AlignedWords<u64>), Error> {
    if S::CHEAP { build_cheap::<F, S>(settings, source) } else { build_cheap::<F, _>(settings, &source.words()?) }
}

/// Returns the structure of keys that are hashed several times.
fn build_cheap<F: Slot, S: Source>(settings: &Settings, source: &S) -> Result<(Layout, AlignedWords<u64>), Error> {
    let distinct: std::cell::RefCell<Option<Words<S::Item>>> = std::cell::RefCell::new(None);
    attempts(
        settings,
        source.count() as u64,
        |layout, are_distinct| {
            let words = match &*distinct.borrow() {
                Some(words) => attempt::<F, _>(layout, words, are_distinct)?,
                None => attempt::<F, _>(layout, source, are_distinct)?,
            };
            Ok((*layout, words))
        },
        || {
            let words = source.words()?.without_repetitions()?;
            let left = words.count() as u64;
            *distinct.borrow_mut() = Some(words);
            Ok(left)
        },
    )
}

/// Returns the words of a structure under this layout.
fn attempt<F: Slot, S: Source>(layout: &Layout, source: &S, are_distinct: bool) -> Result<AlignedWords<u64>, Failure> {
    let mut words = AlignedWords::zeroed(layout.words())?.in_huge_pages();
    let hash: Hashes<'_, S::Item> = &|first, to| source.items(first, layout.seed, to);
    let build = match (layout.form(), layout.arity) {
        _ if source.count() == 0 => return Ok(words),
        (Form::OneGraph, Arity::Three) => one_graph::build::<3, S::Item, F>,
        (Form::OneGraph, Arity::Four) => one_graph::build::<4, S::Item, F>,
        (Form::Sharded, Arity::Three) => sharded::build::<3, S::Item, F>,
        (Form::Sharded, Arity::Four) => sharded::build::<4, S::Item, F>,
    };
    build(layout, source.count(), hash, words.as_mut_slice(), are_distinct)?;
    Ok(words)
}

/// Computes the hashes of the first keys.
fn hashes<K: Key>(keys: &[K], seed: u64, to: &mut [u64]) {
    with_vectors!(hash_each[K: Key][K](keys: &[K], seed: u64, to: &mut [u64]))
}

#[inline(always)]
fn hash_each<K: Key>(keys: &[K], seed: u64, to: &mut [u64]) {
    to.iter_mut().zip(keys).for_each(|(to, key)| *to = mix(word_of(key), seed));
}

/// Computes the hashes of the first items, which have words.
fn rehash<T: Item>(items: &[T], seed: u64, to: &mut [T]) {
    with_vectors!(rehash_each[T: Item][T](items: &[T], seed: u64, to: &mut [T]))
}

#[inline(always)]
fn rehash_each<T: Item>(items: &[T], seed: u64, to: &mut [T]) {
    to.iter_mut().zip(items).for_each(|(to, &item)| *to = item.with_hash(mix(item.hash(), seed)));
}

/// Fails if some of these are of equal keys; sorts them.
fn expect_different<T: Item>(items: &mut [T]) -> Result<(), Failure> {
    items.sort_unstable();
    expect_one_value(items)?;
    if items.windows(2).any(|two| two[0].hash() == two[1].hash()) { Err(Failure::Duplicates) } else { Ok(()) }
}

/// Fails if a key has several values, given items in the order of their hashes.
fn expect_one_value<T: Item>(items: &[T]) -> Result<(), Error> {
    let mut equal = items.windows(2).filter(|two| two[0].hash() == two[1].hash());
    match equal.find_map(|two| two[0].different_values(two[1])) {
        Some([first, second]) => Err(Error::TwoValues { first, second }),
        None => Ok(()),
    }
}

//! Other libraries' Bloom filters, run in the same process on the same keys and in the same memory.

#[cfg(feature = "peers")]
mod parquet;

use std::hash::BuildHasher;

use fastbloom::{AtomicBloomFilter, BloomFilter};
use rayon::prelude::*;

use super::subject::{Keys, Subject, same_type};
use bench_frame::machine;

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `fastbloom` with its defaults: SipHash, the best number of hashes for the memory.
    Fastbloom,
    /// `fastbloom` with the fastest hash that its users choose.
    FastbloomFoldhash,
    /// The split-block filter of the crate `parquet`, which takes long to compile.
    #[cfg(feature = "peers")]
    Parquet,
}

impl Peer {
    /// All of them that this executable has.
    pub const ALL: &[Peer] = &[
        Peer::Fastbloom,
        Peer::FastbloomFoldhash,
        #[cfg(feature = "peers")]
        Peer::Parquet,
    ];

    /// Returns name and version.
    pub fn name(self) -> String {
        match self {
            Peer::Fastbloom => format!("fastbloom {}", machine::version("fastbloom")),
            Peer::FastbloomFoldhash => format!("fastbloom {} + foldhash", machine::version("fastbloom")),
            #[cfg(feature = "peers")]
            Peer::Parquet => format!("parquet {}", machine::version("parquet")),
        }
    }

    /// Makes a filter for `n` keys and a false-positive rate.
    pub fn for_capacity(self, n: usize, fpr: f64) -> anyhow::Result<Box<dyn Subject>> {
        let atomic = AtomicBloomFilter::with_false_pos(fpr);
        Ok(match self {
            Peer::Fastbloom => Box::new(Atomic(atomic.seed(&1).expected_items(n))),
            Peer::FastbloomFoldhash => Box::new(Atomic(atomic.hasher(fold()).expected_items(n))),
            #[cfg(feature = "peers")]
            Peer::Parquet => Box::new(parquet::Parquet::for_capacity(n, fpr)?),
        })
    }

    /// Whether several threads may insert at once.
    pub fn inserts_in_parallel(self) -> bool {
        matches!(self, Peer::Fastbloom | Peer::FastbloomFoldhash)
    }

    /// Makes an empty filter of `bytes`, which is a multiple of 32, for `n` keys; `parallel` picks the form that
    /// several threads may fill.
    pub fn build(self, bytes: usize, n: usize, parallel: bool) -> Box<dyn Subject> {
        let (plain, atomic) = (BloomFilter::with_num_bits(bytes * 8), AtomicBloomFilter::with_num_bits(bytes * 8));
        match (self, parallel) {
            (Peer::Fastbloom, false) => Box::new(Plain(plain.seed(&1).expected_items(n))),
            (Peer::Fastbloom, true) => Box::new(Atomic(atomic.seed(&1).expected_items(n))),
            (Peer::FastbloomFoldhash, false) => Box::new(Plain(plain.hasher(fold()).expected_items(n))),
            (Peer::FastbloomFoldhash, true) => Box::new(Atomic(atomic.hasher(fold()).expected_items(n))),
            #[cfg(feature = "peers")]
            (Peer::Parquet, _) => Box::new(parquet::Parquet::of_size(bytes)),
        }
    }
}

fn fold() -> foldhash::fast::FixedState {
    foldhash::fast::FixedState::default()
}

/// Calls `$body` for each key, one thread.
macro_rules! each {
    ($keys:expr, |$key:ident| $body:expr) => {
        match $keys {
            Keys::U64(keys) => keys.iter().for_each(|$key| _ = $body),
            Keys::Bytes(keys) => keys.iter().copied().for_each(|$key| _ = $body),
        }
    };
}

/// Writes the value of `$body` for each key to its answer, on all threads.
macro_rules! answer {
    ($keys:expr, $answers:expr, |$key:ident| $body:expr) => {{
        let share = $keys.len().div_ceil(rayon::current_num_threads()).max(1);
        match $keys {
            Keys::U64(keys) => {
                keys.par_chunks(share).zip($answers.par_chunks_mut(share)).for_each(|(keys, answers)| {
                    keys.iter().zip(answers).for_each(|($key, answer)| *answer = $body);
                })
            }
            Keys::Bytes(keys) => {
                keys.par_chunks(share).zip($answers.par_chunks_mut(share)).for_each(|(keys, answers)| {
                    keys.iter().copied().zip(answers).for_each(|($key, answer)| *answer = $body);
                })
            }
        }
        Ok(())
    }};
}

/// Writes the value of `$body` for each key to its answer, on one thread.
macro_rules! answer_in_order {
    ($keys:expr, $answers:expr, |$key:ident| $body:expr) => {
        match $keys {
            Keys::U64(keys) => keys.iter().zip($answers).for_each(|($key, answer)| *answer = $body),
            Keys::Bytes(keys) => keys.iter().copied().zip($answers).for_each(|($key, answer)| *answer = $body),
        }
    };
}

#[cfg(feature = "peers")]
use {answer, answer_in_order, each};

/// Methods that both forms of `fastbloom` have in common.
macro_rules! fastbloom {
    () => {
        fn clear(&mut self) -> anyhow::Result<()> {
            self.0.clear();
            Ok(())
        }

        fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()> {
            answer!(keys, answers, |key| self.0.contains(key))
        }

        fn merge(&mut self, other: &dyn Subject) -> anyhow::Result<()> {
            self.0.union(&same_type::<Self>(other)?.0);
            Ok(())
        }

        fn theory(&self, n: usize) -> Option<f64> {
            Some(self.0.expected_false_pos(n))
        }

        fn bytes(&self) -> usize {
            self.0.num_bits() / 8
        }
    };
}

struct Plain<S: BuildHasher>(BloomFilter<S>);

impl<S: BuildHasher + Send + Sync + 'static> Subject for Plain<S> {
    fastbloom!();

    fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
        each!(keys, |key| self.0.insert(key));
        Ok(())
    }

    fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
        answer_in_order!(keys, new, |key| !self.0.insert(key));
        Ok(())
    }
}

struct Atomic<S: BuildHasher>(AtomicBloomFilter<S>);

impl<S: BuildHasher + Send + Sync + 'static> Subject for Atomic<S> {
    fastbloom!();

    fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
        let share = keys.len().div_ceil(rayon::current_num_threads()).max(1);
        match keys {
            Keys::U64(keys) => keys.par_chunks(share).for_each(|keys| each!(Keys::U64(keys), |key| self.0.insert(key))),
            Keys::Bytes(keys) => {
                keys.par_chunks(share).for_each(|keys| each!(Keys::Bytes(keys), |key| self.0.insert(key)));
            }
        }
        Ok(())
    }

    fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
        answer!(keys, new, |key| !self.0.insert(key))
    }
}

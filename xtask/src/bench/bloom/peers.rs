//! Other libraries' Bloom filters, run in the same process on the same keys and in the same memory.

use std::hash::BuildHasher;

use anyhow::bail;
use fastbloom::{AtomicBloomFilter, BloomFilter};
use parquet::bloom_filter::Sbbf;
use rayon::prelude::*;

use super::super::machine;
use super::subject::{Keys, Subject, same_type};

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `fastbloom` as it comes: SipHash, the best number of hashes for the memory.
    Fastbloom,
    /// `fastbloom` with the fastest hash that its users choose.
    FastbloomFoldhash,
    /// The split-block filter of the crate `parquet`.
    Parquet,
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 3] = [Peer::Fastbloom, Peer::FastbloomFoldhash, Peer::Parquet];

    /// Name and version.
    pub fn name(self) -> String {
        match self {
            Peer::Fastbloom => format!("fastbloom {}", machine::version("fastbloom")),
            Peer::FastbloomFoldhash => format!("fastbloom {} + foldhash", machine::version("fastbloom")),
            Peer::Parquet => format!("parquet {}", machine::version("parquet")),
        }
    }

    /// A filter for `n` keys and a false-positive rate.
    pub fn for_capacity(self, n: usize, fpr: f64) -> anyhow::Result<Box<dyn Subject>> {
        let fold = foldhash::fast::FixedState::default();
        Ok(match self {
            Peer::Fastbloom => Box::new(Atomic(AtomicBloomFilter::with_false_pos(fpr).seed(&1).expected_items(n))),
            Peer::FastbloomFoldhash => {
                Box::new(Atomic(AtomicBloomFilter::with_false_pos(fpr).hasher(fold).expected_items(n)))
            }
            Peer::Parquet => Box::new(Parquet(Sbbf::new_with_ndv_fpp(n as u64, fpr)?)),
        })
    }

    /// Whether several threads may insert at once.
    pub fn inserts_in_parallel(self) -> bool {
        self != Peer::Parquet
    }

    /// An empty filter of `bytes`, which is a multiple of 32, for `n` keys; `parallel` picks the form that several
    /// threads may fill.
    pub fn build(self, bytes: usize, n: usize, parallel: bool) -> Box<dyn Subject> {
        let fold = foldhash::fast::FixedState::default();
        match (self, parallel) {
            (Peer::Fastbloom, false) => {
                Box::new(Plain(BloomFilter::with_num_bits(bytes * 8).seed(&1).expected_items(n)))
            }
            (Peer::Fastbloom, true) => {
                Box::new(Atomic(AtomicBloomFilter::with_num_bits(bytes * 8).seed(&1).expected_items(n)))
            }
            (Peer::FastbloomFoldhash, false) => {
                Box::new(Plain(BloomFilter::with_num_bits(bytes * 8).hasher(fold).expected_items(n)))
            }
            (Peer::FastbloomFoldhash, true) => {
                Box::new(Atomic(AtomicBloomFilter::with_num_bits(bytes * 8).hasher(fold).expected_items(n)))
            }
            (Peer::Parquet, _) => Box::new(Parquet(Sbbf::new(&vec![0; bytes]))),
        }
    }
}

/// The length of each thread's share.
fn share(n: usize) -> usize {
    n.div_ceil(rayon::current_num_threads()).max(1)
}

/// Asks for each key, each thread for a share.
fn ask(
    keys: Keys<'_>,
    answers: &mut [bool],
    u64_in: impl Fn(u64) -> bool + Sync,
    bytes_in: impl Fn(&[u8]) -> bool + Sync,
) {
    let share = share(keys.len());
    match keys {
        Keys::U64(keys) => keys.par_chunks(share).zip(answers.par_chunks_mut(share)).for_each(|(keys, answers)| {
            keys.iter().zip(answers).for_each(|(key, answer)| *answer = u64_in(*key));
        }),
        Keys::Bytes(keys) => keys.par_chunks(share).zip(answers.par_chunks_mut(share)).for_each(|(keys, answers)| {
            keys.iter().zip(answers).for_each(|(key, answer)| *answer = bytes_in(key));
        }),
    }
}

struct Plain<S: BuildHasher>(BloomFilter<S>);

impl<S: BuildHasher + Send + Sync + 'static> Subject for Plain<S> {
    fn clear(&mut self) -> anyhow::Result<()> {
        self.0.clear();
        Ok(())
    }

    fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
        match keys {
            Keys::U64(keys) => keys.iter().for_each(|key| _ = self.0.insert(key)),
            Keys::Bytes(keys) => keys.iter().for_each(|key| _ = self.0.insert(*key)),
        }
        Ok(())
    }

    fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()> {
        ask(keys, answers, |key| self.0.contains(&key), |key| self.0.contains(key));
        Ok(())
    }

    fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
        match keys {
            Keys::U64(keys) => keys.iter().zip(new).for_each(|(key, new)| *new = !self.0.insert(key)),
            Keys::Bytes(keys) => keys.iter().zip(new).for_each(|(key, new)| *new = !self.0.insert(*key)),
        }
        Ok(())
    }

    fn union(&mut self, other: &dyn Subject) -> anyhow::Result<()> {
        self.0.union(&same_type::<Self>(other)?.0);
        Ok(())
    }

    fn theory(&self, n: usize) -> Option<f64> {
        Some(self.0.expected_false_pos(n))
    }

    fn bytes(&self) -> usize {
        self.0.num_bits() / 8
    }
}

struct Atomic<S: BuildHasher>(AtomicBloomFilter<S>);

impl<S: BuildHasher + Send + Sync + 'static> Subject for Atomic<S> {
    fn clear(&mut self) -> anyhow::Result<()> {
        self.0.clear();
        Ok(())
    }

    fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
        let share = share(keys.len());
        match keys {
            Keys::U64(keys) => {
                keys.par_chunks(share).for_each(|keys| keys.iter().for_each(|key| _ = self.0.insert(key)))
            }
            Keys::Bytes(keys) => {
                keys.par_chunks(share).for_each(|keys| keys.iter().for_each(|key| _ = self.0.insert(*key)));
            }
        }
        Ok(())
    }

    fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()> {
        ask(keys, answers, |key| self.0.contains(&key), |key| self.0.contains(key));
        Ok(())
    }

    fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
        ask(keys, new, |key| !self.0.insert(&key), |key| !self.0.insert(key));
        Ok(())
    }

    fn union(&mut self, other: &dyn Subject) -> anyhow::Result<()> {
        self.0.union(&same_type::<Self>(other)?.0);
        Ok(())
    }

    fn theory(&self, n: usize) -> Option<f64> {
        Some(self.0.expected_false_pos(n))
    }

    fn bytes(&self) -> usize {
        self.0.num_bits() / 8
    }
}

struct Parquet(Sbbf);

impl Subject for Parquet {
    fn clear(&mut self) -> anyhow::Result<()> {
        self.0 = Sbbf::new(&vec![0; self.bytes()]);
        Ok(())
    }

    fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
        if rayon::current_num_threads() > 1 {
            bail!("parquet's filter takes inserts from one thread only");
        }
        match keys {
            Keys::U64(keys) => keys.iter().for_each(|key| self.0.insert(key)),
            Keys::Bytes(keys) => keys.iter().for_each(|key| self.0.insert(*key)),
        }
        Ok(())
    }

    fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()> {
        ask(keys, answers, |key| self.0.check(&key), |key| self.0.check(key));
        Ok(())
    }

    fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
        if rayon::current_num_threads() > 1 {
            bail!("parquet's filter takes inserts from one thread only");
        }
        match keys {
            Keys::U64(keys) => keys.iter().zip(new).for_each(|(key, new)| {
                *new = !self.0.check(key);
                self.0.insert(key);
            }),
            Keys::Bytes(keys) => keys.iter().zip(new).for_each(|(key, new)| {
                *new = !self.0.check(*key);
                self.0.insert(*key);
            }),
        }
        Ok(())
    }

    fn union(&mut self, _other: &dyn Subject) -> anyhow::Result<()> {
        bail!("parquet's filter has no union")
    }

    fn theory(&self, _n: usize) -> Option<f64> {
        None // its estimate looks at the bits that are set, not at a number of keys
    }

    fn bytes(&self) -> usize {
        self.0.num_blocks() * 32
    }
}

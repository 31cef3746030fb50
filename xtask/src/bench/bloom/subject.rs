//! One face for every filter that is measured on host slices: ours on each backend, and the peers.

use std::any::Any;

/// Keys as the filters take them.
#[derive(Clone, Copy)]
pub enum Keys<'a> {
    /// Integers.
    U64(&'a [u64]),
    /// Byte strings.
    Bytes(&'a [&'a [u8]]),
}

impl<'a> Keys<'a> {
    /// How many.
    pub fn len(self) -> usize {
        match self {
            Keys::U64(keys) => keys.len(),
            Keys::Bytes(keys) => keys.len(),
        }
    }

    /// What they are, for the rows.
    pub fn kind(self) -> &'static str {
        match self {
            Keys::U64(_) => "u64",
            Keys::Bytes(_) => "string",
        }
    }
}

/// A filter under measurement. It uses the threads of the current pool.
pub trait Subject: Any + Send + Sync {
    /// Empties it.
    fn clear(&mut self) -> anyhow::Result<()>;
    /// Inserts all keys.
    fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()>;
    /// Inserts all keys, beyond the number that it was made for too.
    fn fill(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
        self.insert(keys)
    }
    /// Asks for all keys; `answers` has their length.
    fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()>;
    /// Inserts all keys and says of each whether it was new.
    fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()>;
    /// Inserts what `other`, a filter of the same type and size, holds.
    fn union(&mut self, other: &dyn Subject) -> anyhow::Result<()>;
    /// The false-positive rate that its formula gives with `n` keys in it, if it has one.
    fn theory(&self, n: usize) -> Option<f64>;
    /// Its memory.
    fn bytes(&self) -> usize;
    /// Bits a key, where we know them.
    fn hashes(&self) -> Option<u32> {
        None
    }
}

/// `other` as what it must be for a union.
pub fn same_type<T: Subject>(other: &dyn Subject) -> anyhow::Result<&T> {
    (other as &dyn Any).downcast_ref().ok_or_else(|| anyhow::anyhow!("a union of filters of different types"))
}

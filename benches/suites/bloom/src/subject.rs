//! Common interface of all filters measured on host slices: ours on each backend, and the peers.

use std::any::Any;

use warpset::bloom::{BlockedBloom, Filter, Insert, RaoBloom, SplitBlockBloom, TestAndInsert, gpu};

/// Keys as the filters take them.
#[derive(Clone, Copy)]
pub enum Keys<'a> {
    /// Integers.
    U64(&'a [u64]),
    /// Byte strings.
    Bytes(&'a [&'a [u8]]),
}

/// Evaluates `$body` with the keys of either kind.
macro_rules! with_keys {
    ($keys:expr, |$slice:ident| $body:expr) => {
        match $keys {
            Keys::U64($slice) => $body,
            Keys::Bytes($slice) => $body,
        }
    };
}

impl<'a> Keys<'a> {
    /// Returns the number of keys.
    pub fn len(self) -> usize {
        with_keys!(self, |keys| keys.len())
    }
}

/// A filter under measurement. It uses the threads of the current pool.
pub trait Subject: Any + Send + Sync {
    /// Empties it.
    fn clear(&mut self) -> anyhow::Result<()>;
    /// Inserts all keys.
    fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()>;
    /// Inserts all keys, also beyond the number that it was made for.
    fn fill(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
        self.insert(keys)
    }
    /// Asks for all keys; `answers` has their length.
    fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()>;
    /// Inserts all keys; reports for each whether it was new.
    fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()>;
    /// Inserts what `other`, a filter of the same type and size, holds.
    fn merge(&mut self, other: &dyn Subject) -> anyhow::Result<()>;
    /// Returns the false-positive rate by its formula with `n` keys in it, if it has one.
    fn theory(&self, n: usize) -> Option<f64>;
    /// Returns the memory in bytes.
    fn bytes(&self) -> usize;
    /// Returns the number of bits set per key, if known.
    fn hashes(&self) -> Option<u32> {
        None
    }
}

/// Returns `other` as the type that merging needs.
pub fn same_type<T: Subject>(other: &dyn Subject) -> anyhow::Result<&T> {
    (other as &dyn Any).downcast_ref().ok_or_else(|| anyhow::anyhow!("filters of different types are not merged"))
}

macro_rules! ours {
    ($($filter:ty $(, fill |$this:ident, $slice:ident| $fill:expr)?;)*) => {$(
        impl Subject for $filter {
            fn clear(&mut self) -> anyhow::Result<()> {
                Ok(Insert::clear(self)?)
            }

            fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
                Ok(with_keys!(keys, |keys| Insert::insert_bulk(self, keys))?)
            }

            $(fn fill(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
                let $this = self;
                with_keys!(keys, |$slice| $fill);
                Ok(())
            })?

            fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()> {
                Ok(with_keys!(keys, |keys| self.contains_bulk_into(keys, answers))?)
            }

            fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
                Ok(with_keys!(keys, |keys| self.test_and_insert_bulk_into(keys, new))?)
            }

            fn merge(&mut self, other: &dyn Subject) -> anyhow::Result<()> {
                Ok(Insert::merge(self, same_type(other)?)?)
            }

            fn theory(&self, n: usize) -> Option<f64> {
                Some(self.expected_fpr(n as u64))
            }

            fn bytes(&self) -> usize {
                Filter::memory_bytes(self) as usize
            }

            fn hashes(&self) -> Option<u32> {
                Some(warpset::bloom::Layout::hashes(self.layout()))
            }
        }
    )*};
}
ours! {
    SplitBlockBloom;
    BlockedBloom;
    // `extend` continues where `insert_bulk` reports an overflow.
    RaoBloom, fill |filter, keys| filter.extend(keys);
    gpu::SplitBlockBloom;
    gpu::BlockedBloom;
    gpu::RaoBloom;
}

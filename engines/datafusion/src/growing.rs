//! Filters that start as a list: groups of few rows, of which there can be millions, take the memory of their rows.
//!
//! A group is a list of items (hashes or fingerprints, 8 bytes each) until they take more than a quarter of the filter's
//! memory, and the filter from then on. The result is the filter in both cases, with the same bytes. A partial result
//! is the list after the tag `WARPFEW\0`, or the saved filter. So an engine that gives up aggregating early and passes each
//! row on as a group of its own sends 16 bytes for it, not a filter.

use std::fmt::Debug;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::key::Key;

use crate::error::Cause;

/// Starts a partial result that is a list.
const TAG: [u8; 8] = *b"WARPFEW\0";

/// A filter that can be filled with items in place of keys.
pub(crate) trait Filter: Debug + Send + Sync + Sized + 'static {
    /// The name in SQL of the aggregate of keys.
    const OF_KEYS: &'static str;
    /// The name in SQL of the aggregate of filters.
    const OF_FILTERS: &'static str;
    /// Whether `DISTINCT` changes nothing.
    const IGNORES_COPIES: bool;
    /// Names and types of the arguments of the aggregate of keys, after the first.
    const PARAMETERS: &'static [(&'static str, DataType)];
    /// What is the same for all groups.
    type Layout: Debug + Copy + Send + Sync + 'static;

    /// The layout that the parameters ask for, those that are there, which have their types.
    fn layout(parameters: &[ScalarValue]) -> Result<Self::Layout, Cause>;
    /// What the filter stores of a key.
    fn item<K: Key>(layout: &Self::Layout, key: K) -> u64;
    /// Bytes of memory of a filter.
    fn bytes_of(layout: &Self::Layout) -> usize;
    /// An empty filter.
    fn empty(layout: &Self::Layout) -> Result<Self, Cause>;
    /// Adds items.
    fn insert_items(&mut self, items: &[u64]) -> Result<(), Cause>;
    /// Adds keys.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Cause>;
    /// Adds a saved filter.
    fn merge_saved(&mut self, saved: &[u8]) -> Result<(), Cause>;
    /// Opens a saved filter.
    fn open(saved: &[u8]) -> Result<Self, Cause>;
    /// Bytes of memory of this filter.
    fn memory_bytes(&self) -> usize;
    /// The saved form.
    fn to_bytes(&self) -> Vec<u8>;
}

/// A list of items, or a filter.
#[derive(Debug)]
pub(crate) enum Growing<F> {
    Few(Vec<u64>),
    Many(F),
}

/// How many items a list can have.
fn most<F: Filter>(layout: &F::Layout) -> usize {
    F::bytes_of(layout) / 4 / size_of::<u64>()
}

impl<F: Filter> Growing<F> {
    pub(crate) fn empty() -> Growing<F> {
        Growing::Few(Vec::new())
    }

    fn become_filter(&mut self, layout: &F::Layout) -> Result<&mut F, Cause> {
        if let Growing::Few(items) = self {
            let mut filter = F::empty(layout)?;
            filter.insert_items(items)?;
            *self = Growing::Many(filter);
        }
        match self {
            Growing::Many(filter) => Ok(filter),
            Growing::Few(_) => unreachable!("replaced above"),
        }
    }

    pub(crate) fn insert<K: Key>(&mut self, layout: &F::Layout, key: K) -> Result<(), Cause> {
        let item = F::item(layout, key);
        match self {
            Growing::Many(filter) => filter.insert_items(&[item]),
            Growing::Few(items) => {
                items.push(item);
                if items.len() > most::<F>(layout) { self.become_filter(layout).map(|_| ()) } else { Ok(()) }
            }
        }
    }

    pub(crate) fn insert_bulk<K: Key + Copy>(&mut self, layout: &F::Layout, keys: &[K]) -> Result<(), Cause> {
        match self {
            Growing::Few(items) if items.len() + keys.len() <= most::<F>(layout) => {
                items.extend(keys.iter().map(|&key| F::item(layout, key)));
                Ok(())
            }
            _ => self.become_filter(layout)?.insert_bulk(keys),
        }
    }

    /// Adds a partial result.
    pub(crate) fn merge(&mut self, layout: &F::Layout, partial: &[u8]) -> Result<(), Cause> {
        let Some(theirs) = partial.strip_prefix(&TAG) else {
            return match self {
                Growing::Few(items) if items.is_empty() => {
                    *self = Growing::Many(F::open(partial)?);
                    Ok(())
                }
                _ => self.become_filter(layout)?.merge_saved(partial),
            };
        };
        let (theirs, []) = theirs.as_chunks::<8>() else {
            return Err(Cause::PartialResult { bytes: partial.len() });
        };
        let theirs = theirs.iter().map(|&item| u64::from_le_bytes(item));
        match self {
            Growing::Few(items) if items.len() + theirs.len() <= most::<F>(layout) => {
                items.extend(theirs);
                Ok(())
            }
            _ => self.become_filter(layout)?.insert_items(&theirs.collect::<Vec<u64>>()),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Growing::Few(items) => items.capacity() * size_of::<u64>(),
            Growing::Many(filter) => filter.memory_bytes(),
        }
    }

    pub(crate) fn partial(&self) -> Vec<u8> {
        match self {
            Growing::Many(filter) => filter.to_bytes(),
            Growing::Few(items) => {
                let items = items.iter().map(|item| item.to_le_bytes());
                TAG.into_iter().chain(items.flatten()).collect()
            }
        }
    }

    pub(crate) fn result(&mut self, layout: &F::Layout) -> Result<Vec<u8>, Cause> {
        Ok(self.become_filter(layout)?.to_bytes())
    }
}

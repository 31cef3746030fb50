//! Filters that start as a list: groups of few rows, of which there can be millions, take the memory of their rows.
//!
//! A group is a list of items (hashes or fingerprints, 8 bytes each) until they take more than a quarter of the
//! filter's memory, and the filter from then on. The result is the filter in both cases, with the same bytes. A partial
//! result is the list after the tag `WARPFEW\0`, or the saved filter. So an engine that gives up aggregating early and
//! passes each row on as a group of its own sends 16 bytes for it, not a filter.
//!
//! What comes in smaller batches than the filter likes goes on being gathered: beside the filter stands a list of as
//! many items, which are inserted together when it is full. For a quotient filter these are the engine's own batches of
//! 8192 rows, a thousandth of a large filter, which cost it three times as much per row; for every filter, single rows
//! of many groups.

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
    /// Whether many items at once cost less than as many in the engine's batches.
    const GATHERS: bool;
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
    /// The filter, and items that it will get.
    Many(F, Vec<u64>),
}

/// How many items a list can have.
fn most<F: Filter>(layout: &F::Layout) -> usize {
    F::bytes_of(layout) / 4 / size_of::<u64>()
}

impl<F: Filter> Growing<F> {
    pub(crate) fn empty() -> Growing<F> {
        Growing::Few(Vec::new())
    }

    /// The filter, with all items.
    fn become_filter(&mut self, layout: &F::Layout) -> Result<&mut F, Cause> {
        if let Growing::Few(_) = self {
            let filter = F::empty(layout)?;
            let Growing::Few(items) = self else { unreachable!("matched above") };
            *self = Growing::Many(filter, std::mem::take(items));
        }
        match self {
            Growing::Many(filter, items) => {
                if !items.is_empty() {
                    filter.insert_items(items)?;
                    items.clear();
                }
                Ok(filter)
            }
            Growing::Few(_) => unreachable!("replaced above"),
        }
    }

    /// Adds items to the list; a list that is too long becomes, or goes into, the filter.
    fn gather(&mut self, layout: &F::Layout, items: impl Iterator<Item = u64>) -> Result<(), Cause> {
        let (Growing::Few(list) | Growing::Many(_, list)) = self;
        list.extend(items);
        if list.len() > most::<F>(layout) { self.become_filter(layout).map(|_| ()) } else { Ok(()) }
    }

    /// Whether this many more items fit into the list.
    fn gathers(&self, layout: &F::Layout, more: usize) -> bool {
        match self {
            Growing::Few(items) => items.len() + more <= most::<F>(layout),
            Growing::Many(..) => F::GATHERS,
        }
    }

    /// Adds a key to the list, whatever the filter: rows of a batch that are of many groups come one by one.
    pub(crate) fn insert<K: Key>(&mut self, layout: &F::Layout, key: K) -> Result<(), Cause> {
        self.gather(layout, [F::item(layout, key)].into_iter())
    }

    pub(crate) fn insert_bulk<K: Key + Copy>(&mut self, layout: &F::Layout, keys: &[K]) -> Result<(), Cause> {
        if self.gathers(layout, keys.len()) {
            return self.gather(layout, keys.iter().map(|&key| F::item(layout, key)));
        }
        self.become_filter(layout)?.insert_bulk(keys)
    }

    /// Adds a partial result.
    pub(crate) fn merge(&mut self, layout: &F::Layout, partial: &[u8]) -> Result<(), Cause> {
        let Some(theirs) = partial.strip_prefix(&TAG) else {
            return match self {
                Growing::Few(items) if items.is_empty() => {
                    *self = Growing::Many(F::open(partial)?, Vec::new());
                    Ok(())
                }
                _ => self.become_filter(layout)?.merge_saved(partial),
            };
        };
        let (theirs, []) = theirs.as_chunks::<8>() else {
            return Err(Cause::PartialResult { bytes: partial.len() });
        };
        let items = theirs.iter().map(|&item| u64::from_le_bytes(item));
        if self.gathers(layout, theirs.len()) {
            return self.gather(layout, items);
        }
        self.become_filter(layout)?.insert_items(&items.collect::<Vec<u64>>())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Growing::Few(items) => items.capacity() * size_of::<u64>(),
            Growing::Many(filter, items) => filter.memory_bytes() + items.capacity() * size_of::<u64>(),
        }
    }

    pub(crate) fn partial(&mut self, layout: &F::Layout) -> Result<Vec<u8>, Cause> {
        match self {
            Growing::Many(..) => self.result(layout),
            Growing::Few(items) => {
                let items = items.iter().map(|item| item.to_le_bytes());
                Ok(TAG.into_iter().chain(items.flatten()).collect())
            }
        }
    }

    pub(crate) fn result(&mut self, layout: &F::Layout) -> Result<Vec<u8>, Cause> {
        Ok(self.become_filter(layout)?.to_bytes())
    }
}

//! Filters that start as a list, for millions of small groups.
//!
//! A full-size filter per group would take all memory when most groups have few rows. So a group is a list of items
//! (hashes or fingerprints, 8 bytes each) until the list exceeds a quarter of the filter's memory:
//!
//! ```text
//! rows       few                    more                         many
//! state      [item, item]    ──►    filter + [pending items]    ──►    filter + [ ]
//! partial    tag, items             saved filter                 saved filter
//! ```
//!
//! The result is the filter in both cases, with the same bytes. A partial result is the tag `WARPFEW\0` and the list,
//! or the saved filter. An engine that gives up partial aggregation and sends each row as its own group thus sends 16
//! bytes per row, not a filter.
//!
//! Small batches are collected in a list of the same size beside the filter and inserted together when it is full. A
//! quotient filter takes three times as long per row in the engine's batches of 8192 rows, which are a thousandth of a
//! large filter. Single rows of many groups are slow in every filter.

use std::fmt::Debug;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::key::Key;

use crate::error::Cause;

/// Start of a partial result that is a list.
const TAG: [u8; 8] = *b"WARPFEW\0";

/// A filter that takes items in place of keys.
pub(crate) trait Filter: Debug + Send + Sync + Sized + 'static {
    /// SQL name of the aggregate of keys.
    const OF_KEYS: &'static str;
    /// SQL name of the aggregate of filters.
    const OF_FILTERS: &'static str;
    /// Whether `DISTINCT` changes nothing.
    const IGNORES_COPIES: bool;
    /// Whether large batches cost less per item than the engine's.
    const GATHERS: bool;
    /// Names and types of the arguments of the aggregate of keys, after the first.
    const PARAMETERS: &'static [(&'static str, DataType)];
    /// Parameters shared by all groups.
    type Layout: Debug + Copy + Send + Sync + 'static;

    /// Computes the layout from the given parameters, which are cast to their types.
    fn layout(parameters: &[ScalarValue]) -> Result<Self::Layout, Cause>;
    /// Computes the item of a key.
    fn item<K: Key>(layout: &Self::Layout, key: K) -> u64;
    /// Returns the bytes of memory of a filter.
    fn bytes_of(layout: &Self::Layout) -> usize;
    /// Returns an empty filter.
    fn empty(layout: &Self::Layout) -> Result<Self, Cause>;
    /// Adds items.
    fn insert_items(&mut self, items: &[u64]) -> Result<(), Cause>;
    /// Adds keys.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Cause>;
    /// Adds a saved filter.
    fn merge_saved(&mut self, saved: &[u8]) -> Result<(), Cause>;
    /// Opens a saved filter.
    fn open(saved: &[u8]) -> Result<Self, Cause>;
    /// Returns the bytes of memory of this filter.
    fn memory_bytes(&self) -> usize;
    /// Returns the saved form.
    fn to_bytes(&self) -> Vec<u8>;
}

/// A list of items, or a filter.
#[derive(Debug)]
pub(crate) enum Growing<F> {
    Few(Vec<u64>),
    /// Filter, and pending items.
    Many(F, Vec<u64>),
}

/// Returns the most items of a list.
fn most<F: Filter>(layout: &F::Layout) -> usize {
    F::bytes_of(layout) / 4 / size_of::<u64>()
}

impl<F: Filter> Growing<F> {
    pub(crate) fn empty() -> Growing<F> {
        Growing::Few(Vec::new())
    }

    /// Inserts all pending items into the filter, and returns it.
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

    /// Appends items to the list; a list that is too long goes into the filter.
    fn gather(&mut self, layout: &F::Layout, items: impl Iterator<Item = u64>) -> Result<(), Cause> {
        let (Growing::Few(list) | Growing::Many(_, list)) = self;
        list.extend(items);
        if list.len() > most::<F>(layout) { self.become_filter(layout).map(|_| ()) } else { Ok(()) }
    }

    /// Whether the list takes `more` items.
    fn gathers(&self, layout: &F::Layout, more: usize) -> bool {
        match self {
            Growing::Few(items) => items.len() + more <= most::<F>(layout),
            Growing::Many(..) => F::GATHERS,
        }
    }

    /// Adds a key to the list, whatever the filter prefers: rows of many groups come one by one.
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

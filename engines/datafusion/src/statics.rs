//! Structures built from all keys at once: the aggregate gathers items and builds at the end.
//!
//! Two of them cannot be merged, so a partial result is the list of distinct items, 8 or 16 bytes each.

use std::fmt::Debug;

use bytemuck::Pod;
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::key::{Hash128, Key};

use crate::error::Cause;
use crate::gather::{Gather, OfKeys, Slots, add_keys};
use crate::keys;
use crate::rows::Rows;

/// Up to this number, items are kept with duplicates.
const FEW: usize = 1024;

/// A structure built from all keys at once.
pub(crate) trait Static: Debug + Send + Sync + Sized + 'static {
    /// SQL name of the aggregate.
    const OF_KEYS: &'static str;
    /// Names and types of the arguments of the aggregate, after the first.
    const PARAMETERS: &'static [(&'static str, DataType)];
    /// The parsed parameters.
    type Settings: Debug + Send + Sync + 'static;
    /// Representation of a key.
    type Item: Item;

    /// Parses the given parameters, which are cast to their types.
    fn settings(parameters: &[ScalarValue]) -> Result<Self::Settings, Cause>;
    /// Computes the item of a key.
    fn item<K: Key>(key: &K) -> Self::Item;
    /// Builds the saved structure of distinct items.
    fn build(settings: &Self::Settings, items: &[Self::Item]) -> Result<Vec<u8>, Cause>;
}

/// Representation of a key: a hash.
pub(crate) trait Item: Copy + Ord + Debug + Send + Sync + 'static {
    /// Bytes in a partial result.
    type Bytes: Pod;

    /// Returns the little-endian bytes.
    fn to_bytes(self) -> Self::Bytes;
    /// Reads little-endian bytes.
    fn from_bytes(bytes: Self::Bytes) -> Self;
}

impl Item for u64 {
    type Bytes = [u8; 8];

    fn to_bytes(self) -> [u8; 8] {
        self.to_le_bytes()
    }

    fn from_bytes(bytes: [u8; 8]) -> u64 {
        u64::from_le_bytes(bytes)
    }
}

impl Item for Hash128 {
    type Bytes = [u8; 16];

    fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_le_bytes()
    }

    fn from_bytes(bytes: [u8; 16]) -> Hash128 {
        let bits = u128::from_le_bytes(bytes);
        Hash128 { high: (bits >> 64) as u64, low: bits as u64 }
    }
}

/// State of `…_agg(x [, …])` for a structure built at the end.
#[derive(Debug)]
pub(crate) struct StaticOfKeys<S: Static> {
    items: Vec<S::Item>,
    /// Length of the prefix without duplicates.
    distinct: usize,
}

impl<S: Static> StaticOfKeys<S> {
    /// Appends items; removes duplicates when the list is twice as long as after the last time.
    fn extend(&mut self, items: impl Iterator<Item = S::Item>) {
        self.items.extend(items);
        if self.items.len() > FEW.max(2 * self.distinct) {
            self.drop_copies();
        }
    }

    fn drop_copies(&mut self) {
        self.items.sort_unstable();
        self.items.dedup();
        self.distinct = self.items.len();
    }
}

impl<S: Static> Gather for StaticOfKeys<S> {
    const NAME: &'static str = S::OF_KEYS;
    const IGNORES_COPIES: bool = true;
    const PARAMETERS: &'static [(&'static str, DataType)] = S::PARAMETERS;
    type Settings = S::Settings;

    fn check_type(argument: &DataType) -> Result<(), Cause> {
        keys::check_type(argument)
    }

    fn settings(parameters: &[ScalarValue]) -> Result<S::Settings, Cause> {
        S::settings(parameters)
    }

    fn add(settings: &S::Settings, slots: &mut Slots<Self>, values: &dyn Array, rows: &Rows) -> Result<(), Cause> {
        add_keys(settings, slots, values, rows)
    }

    fn merge(_: &S::Settings, slot: &mut Option<Self>, partial: &[u8]) -> Result<(), Cause> {
        let items: &[<S::Item as Item>::Bytes] =
            bytemuck::try_cast_slice(partial).map_err(|_| Cause::PartialResult { bytes: partial.len() })?;
        slot.get_or_insert_with(Self::empty).extend(items.iter().map(|&bytes| S::Item::from_bytes(bytes)));
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.items.capacity() * size_of::<S::Item>()
    }

    fn partial(&mut self, _: &S::Settings) -> Result<Vec<u8>, Cause> {
        self.drop_copies();
        let mut partial = Vec::with_capacity(size_of_val(&self.items[..]));
        self.items.iter().for_each(|item| partial.extend_from_slice(bytemuck::bytes_of(&item.to_bytes())));
        Ok(partial)
    }

    fn result(&mut self, settings: &S::Settings) -> Result<Vec<u8>, Cause> {
        self.drop_copies();
        S::build(settings, &self.items)
    }
}

impl<S: Static> OfKeys for StaticOfKeys<S> {
    fn empty() -> Self {
        StaticOfKeys { items: Vec::new(), distinct: 0 }
    }

    fn insert<K: Key + Copy>(&mut self, _: &S::Settings, key: K) -> Result<(), Cause> {
        self.extend([S::item(&key)].into_iter());
        Ok(())
    }

    fn insert_bulk<K: Key + Copy>(&mut self, _: &S::Settings, keys: &[K]) -> Result<(), Cause> {
        self.extend(keys.iter().map(S::item));
        Ok(())
    }
}

//! Aggregates of keys and of saved filters, over any [`Filter`].

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::key::Key;

use crate::error::Cause;
use crate::gather::{Gather, OfKeys, Slots, add_blobs, add_keys};
use crate::growing::{Filter, Growing};
use crate::rows::Rows;
use crate::{blobs, keys};

/// `…_filter_agg(x [, items [, …]])`.
#[derive(Debug)]
pub(crate) struct FilterOfKeys<F>(Growing<F>);

impl<F: Filter> Gather for FilterOfKeys<F> {
    const NAME: &'static str = F::OF_KEYS;
    const IGNORES_COPIES: bool = F::IGNORES_COPIES;
    const PARAMETERS: &'static [(&'static str, DataType)] = F::PARAMETERS;
    type Settings = F::Layout;

    fn check_type(argument: &DataType) -> Result<(), Cause> {
        keys::check_type(argument)
    }

    fn settings(parameters: &[ScalarValue]) -> Result<F::Layout, Cause> {
        F::layout(parameters)
    }

    fn add(layout: &F::Layout, slots: &mut Slots<Self>, values: &dyn Array, rows: &Rows) -> Result<(), Cause> {
        add_keys(layout, slots, values, rows)
    }

    fn merge(layout: &F::Layout, slot: &mut Option<Self>, partial: &[u8]) -> Result<(), Cause> {
        slot.get_or_insert_with(Self::empty).0.merge(layout, partial)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn partial(&mut self, layout: &F::Layout) -> Result<Vec<u8>, Cause> {
        self.0.partial(layout)
    }

    fn result(&mut self, layout: &F::Layout) -> Result<Vec<u8>, Cause> {
        self.0.result(layout)
    }
}

impl<F: Filter> OfKeys for FilterOfKeys<F> {
    fn empty() -> Self {
        FilterOfKeys(Growing::empty())
    }

    fn insert<K: Key + Copy>(&mut self, layout: &F::Layout, key: K) -> Result<(), Cause> {
        self.0.insert(layout, key)
    }

    fn insert_bulk<K: Key + Copy>(&mut self, layout: &F::Layout, keys: &[K]) -> Result<(), Cause> {
        self.0.insert_bulk(layout, keys)
    }
}

/// `…_filter_merge(filter)`.
#[derive(Debug)]
pub(crate) struct FilterOfFilters<F>(F);

impl<F: Filter> Gather for FilterOfFilters<F> {
    const NAME: &'static str = F::OF_FILTERS;
    const IGNORES_COPIES: bool = F::IGNORES_COPIES;
    type Settings = ();

    fn check_type(argument: &DataType) -> Result<(), Cause> {
        blobs::check_type(argument)
    }

    fn settings(_: &[ScalarValue]) -> Result<(), Cause> {
        Ok(())
    }

    fn add(settings: &(), slots: &mut Slots<Self>, values: &dyn Array, rows: &Rows) -> Result<(), Cause> {
        add_blobs(settings, slots, values, rows)
    }

    fn merge((): &(), slot: &mut Option<Self>, partial: &[u8]) -> Result<(), Cause> {
        match slot {
            Some(FilterOfFilters(filter)) => filter.merge_saved(partial)?,
            None => *slot = Some(FilterOfFilters(F::open(partial)?)),
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn partial(&mut self, (): &()) -> Result<Vec<u8>, Cause> {
        Ok(self.0.to_bytes())
    }

    fn result(&mut self, (): &()) -> Result<Vec<u8>, Cause> {
        Ok(self.0.to_bytes())
    }
}

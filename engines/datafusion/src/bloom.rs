//! `bloom_filter_agg`, `bloom_filter_merge`: Parquet's split-block filters of a column.

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::key::Key;
use warpset_bloom::{Hashed, Layout as _, PhysicalType, SplitBlockBloom, SplitBlockLayout, View, as_hashed};

use crate::blobs;
use crate::error::Cause;
use crate::gather::{Gather, OfKeys, Slots, add_blobs, add_keys};
use crate::growing::{Filter, Growing};
use crate::keys;
use crate::parameters::{self, Precision};
use crate::rows::Rows;

impl Filter for SplitBlockBloom {
    type Layout = SplitBlockLayout;

    fn item<K: Key>(layout: &SplitBlockLayout, key: K) -> u64 {
        layout.hash(key).0
    }

    fn bytes_of(layout: &SplitBlockLayout) -> usize {
        32 * layout.blocks() as usize
    }

    fn empty(layout: &SplitBlockLayout) -> Result<SplitBlockBloom, Cause> {
        Ok(warpset_bloom::Builder::with_layout(*layout).build()?)
    }

    fn insert_items(&mut self, items: &[u64]) -> Result<(), Cause> {
        match items {
            [item] => self.insert(Hashed(*item)),
            items => self.insert_bulk(as_hashed(items)),
        }
        Ok(())
    }

    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Cause> {
        SplitBlockBloom::insert_bulk(self, keys);
        Ok(())
    }

    fn merge_saved(&mut self, saved: &[u8]) -> Result<(), Cause> {
        let saved = blobs::aligned(saved);
        Ok(self.merge_view(&View::from_bytes(saved.bytes())?)?)
    }

    fn open(saved: &[u8]) -> Result<SplitBlockBloom, Cause> {
        Ok(SplitBlockBloom::from_bytes(saved)?)
    }

    fn memory_bytes(&self) -> usize {
        SplitBlockBloom::memory_bytes(self) as usize
    }

    fn to_bytes(&self) -> Vec<u8> {
        SplitBlockBloom::to_bytes(self)
    }
}

/// `bloom_filter_agg(x [, items [, bits_per_item | fpr [, column]]])`.
#[derive(Debug)]
pub(crate) struct BloomOfKeys(Growing<SplitBlockBloom>);

impl Gather for BloomOfKeys {
    const NAME: &'static str = "bloom_filter_agg";
    const IGNORES_COPIES: bool = true;
    const PARAMETERS: &'static [(&'static str, DataType)] =
        &[("items", DataType::Int64), ("bits_per_item or fpr", DataType::Float64), ("column", DataType::Utf8)];
    type Settings = SplitBlockLayout;

    fn check_type(argument: &DataType) -> Result<(), Cause> {
        keys::check_type(argument)
    }

    fn settings(parameters: &[ScalarValue]) -> Result<SplitBlockLayout, Cause> {
        let builder = SplitBlockBloom::builder(parameters::items(parameters.first())?);
        let builder = match parameters::precision(parameters.get(1))? {
            None => builder,
            Some(Precision::Rate(fpr)) => builder.fpr(fpr),
            Some(Precision::BitsPerItem(bits)) => builder.bits_per_key(bits),
        };
        let builder = match parameters.get(2) {
            None => builder,
            Some(column) => builder.column(physical_type(column)?),
        };
        Ok(builder.layout()?)
    }

    fn add(layout: &SplitBlockLayout, slots: &mut Slots<Self>, values: &dyn Array, rows: &Rows) -> Result<(), Cause> {
        add_keys(layout, slots, values, rows)
    }

    fn merge(layout: &SplitBlockLayout, slot: &mut Option<Self>, partial: &[u8]) -> Result<(), Cause> {
        slot.get_or_insert_with(|| BloomOfKeys(Growing::empty())).0.merge(layout, partial)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn partial(&mut self) -> Result<Vec<u8>, Cause> {
        Ok(self.0.partial())
    }

    fn result(&mut self, layout: &SplitBlockLayout) -> Result<Vec<u8>, Cause> {
        self.0.result(layout)
    }
}

impl OfKeys for BloomOfKeys {
    fn empty() -> Self {
        BloomOfKeys(Growing::empty())
    }

    fn insert<K: Key + Copy>(&mut self, layout: &SplitBlockLayout, key: K) -> Result<(), Cause> {
        self.0.insert(layout, key)
    }

    fn insert_bulk<K: Key + Copy>(&mut self, layout: &SplitBlockLayout, keys: &[K]) -> Result<(), Cause> {
        self.0.insert_bulk(layout, keys)
    }
}

/// A Parquet column's type by its name there.
fn physical_type(column: &ScalarValue) -> Result<PhysicalType, Cause> {
    const NAME: &str = "column";
    let ScalarValue::Utf8(Some(name)) = column else {
        return Err(Cause::NotLiteral { parameter: NAME });
    };
    match name.to_ascii_uppercase().as_str() {
        "INT32" => Ok(PhysicalType::Int32),
        "INT64" => Ok(PhysicalType::Int64),
        "BYTE_ARRAY" => Ok(PhysicalType::ByteArray),
        "FIXED_LEN_BYTE_ARRAY" => Ok(PhysicalType::FixedLenByteArray),
        _ => Err(Cause::InvalidParameter {
            parameter: NAME,
            found: name.clone(),
            allowed: "INT32, INT64, BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY",
        }),
    }
}

/// `bloom_filter_merge(filter)`.
#[derive(Debug)]
pub(crate) struct BloomOfBlooms(SplitBlockBloom);

impl Gather for BloomOfBlooms {
    const NAME: &'static str = "bloom_filter_merge";
    const IGNORES_COPIES: bool = true;
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
            Some(BloomOfBlooms(filter)) => filter.merge_saved(partial)?,
            None => *slot = Some(BloomOfBlooms(Filter::open(partial)?)),
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        Filter::memory_bytes(&self.0)
    }

    fn partial(&mut self) -> Result<Vec<u8>, Cause> {
        Ok(self.0.to_bytes())
    }

    fn result(&mut self, (): &()) -> Result<Vec<u8>, Cause> {
        Ok(self.0.to_bytes())
    }
}

//! `bloom_filter_agg`, `bloom_filter_merge`: Parquet's split-block filters of a column.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::filter::Insert;
use warpset_base::key::Key;
use warpset_bloom::{Hashed, Layout as _, PhysicalType, SplitBlockBloom, SplitBlockLayout, View, as_hashed};

use crate::blobs;
use crate::error::Cause;
use crate::growing::Filter;
use crate::parameters::{self, Precision};

impl Filter for SplitBlockBloom {
    const OF_KEYS: &'static str = "bloom_filter_agg";
    const OF_FILTERS: &'static str = "bloom_filter_merge";
    const IGNORES_COPIES: bool = true;
    const GATHERS: bool = false;
    const PARAMETERS: &'static [(&'static str, DataType)] =
        &[("items", DataType::Int64), ("bits_per_item or fpr", DataType::Float64), ("column", DataType::Utf8)];
    type Layout = SplitBlockLayout;

    fn layout(parameters: &[ScalarValue]) -> Result<SplitBlockLayout, Cause> {
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
            items => Insert::insert_bulk(self, as_hashed(items))?,
        }
        Ok(())
    }

    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Cause> {
        Ok(Insert::insert_bulk(self, keys)?)
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

/// Parses the name of a Parquet physical type.
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

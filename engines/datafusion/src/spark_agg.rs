//! `spark_bloom_filter_agg`: the filter of Spark's `bloom_filter_agg`, byte for byte.
//!
//! A group is a list of hashes until they exceed a quarter of the filter's memory. A partial result is a tag and the
//! list, or Spark's bytes.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;
use warpset_bloom::{SparkBloom, SparkBloomView, SparkBuilder, SparkHash, SparkVersion};

use crate::error::Cause;
use crate::gather::{Gather, Slots};
use crate::parameters;
use crate::rows::Rows;
use crate::spark::key_type;

/// Start of a partial result that is a list; Spark's bytes start with 0.
const TAG: [u8; 8] = *b"SPARKFEW";
/// Spark's default limits, which replace larger numbers.
const MOST_ITEMS: u64 = 4_000_000;
const MOST_BITS: u64 = 67_108_864;
/// Bits of a filter if neither items nor bits are given.
const DEFAULT_BITS: u64 = 8_388_608;
/// Bits per item if only items are given.
const BITS_PER_ITEM: u64 = 8;

/// State of `spark_bloom_filter_agg(x [, items [, bits [, version]]])`.
#[derive(Debug)]
pub(crate) enum SparkFilter {
    Few(Vec<u64>),
    Many(SparkBloom),
}

/// Parameters of a call.
#[derive(Debug)]
pub(crate) struct Filters {
    builder: SparkBuilder,
    version: SparkVersion,
    /// Most hashes of a list.
    most: usize,
}

impl SparkFilter {
    fn empty() -> SparkFilter {
        SparkFilter::Few(Vec::new())
    }

    fn insert(&mut self, filters: &Filters, hash: SparkHash) -> Result<(), Cause> {
        match self {
            SparkFilter::Few(hashes) if hashes.len() < filters.most => hashes.push(hash.0),
            _ => self.filter(filters)?.insert_hash(hash),
        }
        Ok(())
    }

    /// Inserts all hashes of the list into the filter, and returns it.
    fn filter(&mut self, filters: &Filters) -> Result<&mut SparkBloom, Cause> {
        if let SparkFilter::Few(hashes) = self {
            let mut filter = filters.builder.build()?;
            hashes.iter().for_each(|&hash| filter.insert_hash(SparkHash(hash)));
            *self = SparkFilter::Many(filter);
        }
        match self {
            SparkFilter::Many(filter) => Ok(filter),
            SparkFilter::Few(_) => unreachable!("replaced above"),
        }
    }
}

impl Gather for SparkFilter {
    const NAME: &'static str = "spark_bloom_filter_agg";
    const IGNORES_COPIES: bool = true;
    const PARAMETERS: &'static [(&'static str, DataType)] =
        &[("items", DataType::Int64), ("bits", DataType::Int64), ("version", DataType::Int64)];
    type Settings = Filters;

    fn check_type(argument: &DataType) -> Result<(), Cause> {
        key_type(argument).map(|_| ())
    }

    fn settings(parameters: &[ScalarValue]) -> Result<Filters, Cause> {
        let wrong = |parameter, found: i64, allowed| {
            Err(Cause::InvalidParameter { parameter, found: found.to_string(), allowed })
        };
        let items = parameters::items(parameters.first())?;
        let bits = match parameters.get(1) {
            None if parameters.is_empty() => DEFAULT_BITS,
            None => items.saturating_mul(BITS_PER_ITEM),
            Some(ScalarValue::Int64(Some(bits @ 1..))) => *bits as u64,
            Some(ScalarValue::Int64(Some(bits))) => return wrong("bits", *bits, "above 0"),
            Some(_) => return Err(Cause::NotLiteral { parameter: "bits" }),
        };
        let version = match parameters.get(2) {
            None | Some(ScalarValue::Int64(Some(1))) => SparkVersion::V1,
            Some(ScalarValue::Int64(Some(2))) => SparkVersion::V2 { seed: 0 },
            Some(ScalarValue::Int64(Some(version))) => return wrong("version", *version, "1 or 2"),
            Some(_) => return Err(Cause::NotLiteral { parameter: "version" }),
        };
        let bits = bits.min(MOST_BITS);
        let builder = SparkBloom::builder(items.min(MOST_ITEMS)).bits(bits).version(version);
        Ok(Filters { builder, version, most: (bits / 64 / 4) as usize })
    }

    fn add(filters: &Filters, slots: &mut Slots<Self>, values: &dyn Array, rows: &Rows) -> Result<(), Cause> {
        let keys = cast(values, &key_type(values.data_type())?).map_err(|_| {
            // Unreachable: `key_type` returns a type that its argument casts to.
            Cause::KeyType { found: values.data_type().clone() }
        })?;
        let hashes: Vec<SparkHash> = if let Some(keys) = keys.as_primitive_opt::<Int64Type>() {
            keys.values().iter().map(|key| filters.version.hash(key)).collect()
        } else {
            let keys = keys.as_binary::<i64>();
            (0..keys.len()).map(|row| filters.version.hash(keys.value(row))).collect()
        };
        if rows.are_grouped() {
            return rows.try_for_each(|row, group| {
                slots.change(group, |slot| slot.get_or_insert_with(Self::empty).insert(filters, hashes[row]))
            });
        }
        match &*rows.select(&hashes) {
            [] => Ok(()),
            hashes => slots.change(0, |slot| {
                let filter = slot.get_or_insert_with(Self::empty);
                hashes.iter().try_for_each(|&hash| filter.insert(filters, hash))
            }),
        }
    }

    fn merge(filters: &Filters, slot: &mut Option<Self>, partial: &[u8]) -> Result<(), Cause> {
        let filter = slot.get_or_insert_with(Self::empty);
        let Some(list) = partial.strip_prefix(&TAG) else {
            return Ok(filter.filter(filters)?.merge(&SparkBloomView::from_bytes(partial)?)?);
        };
        let (hashes, []) = list.as_chunks::<8>() else {
            return Err(Cause::PartialResult { bytes: partial.len() });
        };
        hashes.iter().try_for_each(|&hash| filter.insert(filters, SparkHash(u64::from_le_bytes(hash))))
    }

    fn memory_bytes(&self) -> usize {
        match self {
            SparkFilter::Few(hashes) => hashes.capacity() * size_of::<u64>(),
            SparkFilter::Many(filter) => filter.as_bytes().len(),
        }
    }

    fn partial(&mut self, _: &Filters) -> Result<Vec<u8>, Cause> {
        Ok(match self {
            SparkFilter::Few(hashes) => {
                TAG.into_iter().chain(hashes.iter().flat_map(|hash| hash.to_le_bytes())).collect()
            }
            SparkFilter::Many(filter) => filter.as_bytes().to_vec(),
        })
    }

    fn result(&mut self, filters: &Filters) -> Result<Vec<u8>, Cause> {
        Ok(self.filter(filters)?.as_bytes().to_vec())
    }
}

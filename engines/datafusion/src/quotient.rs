//! `quotient_filter_agg`, `quotient_filter_merge` and their lookups: rank-and-select quotient filters, which count
//! copies.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use warpset_base::filter::{Count, Insert};
use warpset_base::key::Key;
use warpset_quotient::{
    Duplicates, Error, Layout, RankSelectBuilder, RankSelectQuotientFilter, RankSelectQuotientFilterView,
};

use crate::error::Cause;
use crate::growing::Filter;
use crate::lookup::Ask;
use crate::{arguments, blobs, parameters, verified};

/// Applies `change` to the filter; doubles a full filter and retries. A doubled filter keeps the number of bits per
/// fingerprint, so its rate of false positives rises with the number of keys, and its size depends on its contents
/// alone, not on their order.
fn with_room<T>(
    filter: &mut RankSelectQuotientFilter,
    mut change: impl FnMut(&mut RankSelectQuotientFilter) -> Result<T, Error>,
) -> Result<T, Cause> {
    loop {
        match change(filter) {
            Err(Error::Full { .. }) => match filter.double() {
                Err(Error::CannotDouble { .. }) => {
                    return Err(Cause::Saturated { fingerprint_bits: filter.layout().fingerprint_bits() });
                }
                doubled => doubled?,
            },
            changed => return Ok(changed?),
        }
    }
}

/// Adds the contents of another filter. The result has the smaller fingerprints of the two.
fn merge(filter: &mut RankSelectQuotientFilter, other: RankSelectQuotientFilter) -> Result<(), Cause> {
    let mut other = other;
    if other.layout().fingerprint_bits() < filter.layout().fingerprint_bits() {
        std::mem::swap(filter, &mut other);
    }
    with_room(filter, |filter| filter.merge(&other))
}

impl Filter for RankSelectQuotientFilter {
    const OF_KEYS: &'static str = "quotient_filter_agg";
    const OF_FILTERS: &'static str = "quotient_filter_merge";
    const IGNORES_COPIES: bool = false;
    const GATHERS: bool = true;
    const PARAMETERS: &'static [(&'static str, DataType)] = &[("items", DataType::Int64), ("fpr", DataType::Float64)];
    type Layout = Layout;

    fn layout(parameters: &[ScalarValue]) -> Result<Layout, Cause> {
        let builder = RankSelectQuotientFilter::builder(parameters::items(parameters.first())?);
        let builder = match parameters::rate(parameters.get(1))? {
            None => builder,
            Some(fpr) => builder.fpr(fpr),
        };
        Ok(builder.duplicates(Duplicates::Counted).layout()?)
    }

    fn item<K: Key>(layout: &Layout, key: K) -> u64 {
        // Never the default: filters that are not exact have a fingerprint of every key.
        layout.fingerprint(key).unwrap_or_default()
    }

    fn bytes_of(layout: &Layout) -> usize {
        8 * layout.words() as usize
    }

    fn empty(layout: &Layout) -> Result<Self, Cause> {
        Ok(RankSelectBuilder::with_layout(*layout).build()?)
    }

    fn insert_items(&mut self, items: &[u64]) -> Result<(), Cause> {
        with_room(self, |filter| match items {
            [item] => filter.insert_fingerprint(*item).map(|_| ()),
            items => filter.insert_fingerprints_bulk(items).map(|_| ()),
        })
    }

    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Cause> {
        with_room(self, |filter| Insert::insert_bulk(filter, keys).map(|_| ()))
    }

    fn merge_saved(&mut self, saved: &[u8]) -> Result<(), Cause> {
        merge(self, Self::open(saved)?)
    }

    fn open(saved: &[u8]) -> Result<Self, Cause> {
        Ok(RankSelectQuotientFilter::from_bytes(saved)?)
    }

    fn memory_bytes(&self) -> usize {
        RankSelectQuotientFilter::memory_bytes(self) as usize
    }

    fn to_bytes(&self) -> Vec<u8> {
        RankSelectQuotientFilter::to_bytes(self)
    }
}

/// `quotient_filter_count(filter, x)`.
pub(crate) struct QuotientFilterCount;

impl Ask for QuotientFilterCount {
    const NAME: &'static str = "quotient_filter_count";
    const RETURNS: DataType = DataType::Int64;
    type Answer = u64;

    fn ask<K: Key>(&self, saved: &[u8], keys: &[K], answers: &mut [u64]) -> Result<(), Cause> {
        let view = verified::open(
            saved,
            RankSelectQuotientFilterView::from_bytes,
            RankSelectQuotientFilterView::from_bytes_unverified,
        )?;
        Ok(view.count_bulk_into(keys, answers)?)
    }

    fn array(answers: Vec<u64>, nulls: Option<NullBuffer>) -> ArrayRef {
        signed(answers, nulls)
    }
}

/// Builds SQL integers from numbers below 2^63.
pub(crate) fn signed(numbers: Vec<u64>, nulls: Option<NullBuffer>) -> ArrayRef {
    let numbers: Vec<i64> = numbers.into_iter().map(|number| number as i64).collect();
    Arc::new(Int64Array::new(numbers.into(), nulls))
}

/// SQL name of the function of two filters.
const NAME: &str = "approx_intersection_count";

/// `approx_intersection_count(a, b)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ApproxIntersectionCount {
    signature: Signature,
}

/// Returns `approx_intersection_count` in the form that registries take.
pub(crate) fn intersection_count() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(ApproxIntersectionCount { signature: Signature::user_defined(Volatility::Immutable) }))
}

impl ScalarUDFImpl for ApproxIntersectionCount {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        arguments::exactly::<_, 2>(NAME, arguments)?
            .iter()
            .try_for_each(blobs::check_type)
            .map_err(|cause| cause.of(NAME))?;
        Ok(arguments.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let count = |a: Option<&[u8]>, b: Option<&[u8]>| -> Result<Option<i64>, Cause> {
            let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
            let (a, b) = (RankSelectQuotientFilter::from_bytes(a)?, RankSelectQuotientFilter::from_bytes(b)?);
            Ok(Some(a.intersection_count(&b)? as i64))
        };
        let counted = || match &args.args[..] {
            [ColumnarValue::Scalar(a), ColumnarValue::Scalar(b)] => {
                let count = count(blobs::of_scalar(a)?, blobs::of_scalar(b)?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::Int64(count)))
            }
            args_of_rows => {
                let columns: Vec<blobs::Argument> =
                    args_of_rows.iter().map(blobs::Argument::of).collect::<Result<_, Cause>>()?;
                let rows = 0..args.number_rows;
                let counts: Int64Array =
                    rows.map(|row| count(columns[0].get(row), columns[1].get(row))).collect::<Result<_, Cause>>()?;
                Ok(ColumnarValue::Array(Arc::new(counts)))
            }
        };
        counted().map_err(|cause: Cause| cause.of(NAME))
    }
}

//! `spark_might_contain`: lookups in Spark's own Bloom filters, in place.
//!
//! Such columns come from Spark's `bloom_filter_agg`, and from engines that run its plans, such as Comet and Gluten.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use warpset_bloom::{SparkBloomView, SparkKey};

use crate::error::Cause;
use crate::{arguments, blobs};

const NAME: &str = "spark_might_contain";

/// `spark_might_contain(filter, x)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SparkMightContain {
    signature: Signature,
}

/// Returns the function in the form that registries take.
pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(SparkMightContain { signature: Signature::user_defined(Volatility::Immutable) }))
}

/// Returns Spark's type for a column: `long`, or bytes.
pub(crate) fn key_type(column: &DataType) -> Result<DataType, Cause> {
    use DataType::*;
    match column {
        Null | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 => Ok(Int64),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => Ok(LargeBinary),
        Dictionary(_, values) if !matches!(**values, Dictionary(..)) => key_type(values),
        other => Err(Cause::KeyType { found: other.clone() }),
    }
}

impl ScalarUDFImpl for SparkMightContain {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [filter, key] = arguments::exactly(NAME, arguments)?;
        let check = || blobs::check_type(filter).and_then(|()| key_type(key));
        check().map_err(|cause| cause.of(NAME))?;
        Ok(arguments.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [filter, key] = arguments::exactly(NAME, &args.args)?;
        let both_scalar = matches!((filter, key), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let keys = key.to_array(if both_scalar { 1 } else { args.number_rows })?;
        let kind = key_type(keys.data_type()).map_err(|cause| cause.of(NAME))?;
        let keys = cast(&keys, &kind)?;
        let answer = || -> Result<BooleanArray, Cause> {
            let filters = blobs::Argument::of(filter)?;
            if kind == DataType::Int64 {
                return answers(&filters, keys.as_primitive::<Int64Type>().values(), keys.nulls());
            }
            let bytes = keys.as_binary::<i64>();
            let values: Vec<&[u8]> = (0..bytes.len()).map(|row| bytes.value(row)).collect();
            answers(&filters, &values, keys.nulls())
        };
        arguments::answer(Arc::new(answer().map_err(|cause| cause.of(NAME))?), both_scalar)
    }
}

/// Looks up one key per row; null if the filter or the key is.
fn answers<K: SparkKey>(
    filters: &blobs::Argument<'_>,
    keys: &[K],
    nulls: Option<&NullBuffer>,
) -> Result<BooleanArray, Cause> {
    let mut answers = vec![false; keys.len()];
    let missing = filters.try_for_each(keys.len(), |rows, saved| -> Result<(), Cause> {
        Ok(SparkBloomView::from_bytes(saved)?.contains_bulk_into(&keys[rows.clone()], &mut answers[rows])?)
    })?;
    let nulls = NullBuffer::union(missing.as_ref(), nulls);
    Ok(BooleanArray::new(BooleanBuffer::from(answers), nulls))
}

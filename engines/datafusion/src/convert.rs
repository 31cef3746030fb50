//! Saved Bloom filters in the forms of other engines.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BinaryBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use warpset_bloom::{PhysicalType, SplitBlockBloom, View};

use crate::error::Cause;
use crate::{arguments, blobs};

/// Target format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Encoding {
    /// Parquet's header and bitset.
    Parquet,
    /// Velox's blocks.
    Presto,
}

/// Conversion of a filter to one format.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Convert {
    form: Encoding,
    signature: Signature,
}

/// Returns the functions of this module.
pub(crate) fn functions() -> [Arc<ScalarUDF>; 2] {
    [Encoding::Parquet, Encoding::Presto].map(|form| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Convert { form, signature }))
    })
}

impl Encoding {
    fn name(self) -> &'static str {
        match self {
            Encoding::Parquet => "bloom_filter_to_parquet",
            Encoding::Presto => "bloom_filter_to_presto",
        }
    }

    fn convert(self, saved: &[u8]) -> Result<Vec<u8>, Cause> {
        match self {
            Encoding::Parquet => {
                let filter = SplitBlockBloom::from_bytes(saved)?;
                let column = if filter.layout().is_int32() { PhysicalType::Int32 } else { PhysicalType::Int64 };
                let mut converted = Vec::with_capacity(saved.len());
                filter.write_parquet(&mut converted, column)?;
                Ok(converted)
            }
            Encoding::Presto => {
                let saved = blobs::aligned(saved);
                Ok(View::from_bytes(saved.bytes())?.velox_bitset())
            }
        }
    }
}

impl ScalarUDFImpl for Convert {
    fn name(&self) -> &str {
        self.form.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [filter] = arguments::exactly(self.form.name(), arguments)?;
        blobs::check_type(filter).map_err(|cause| cause.of(self.form.name()))?;
        Ok(arguments.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let convert = |saved: Option<&[u8]>| saved.map(|saved| self.form.convert(saved)).transpose();
        let converted = || match &args.args[0] {
            ColumnarValue::Scalar(filter) => {
                let converted = convert(blobs::of_scalar(filter)?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::Binary(converted)))
            }
            ColumnarValue::Array(filters) => {
                let column = blobs::Column::of(filters)?;
                let converted = (0..filters.len()).map(|row| convert(column.get(row)));
                Ok(ColumnarValue::Array(binary(&converted.collect::<Result<Vec<_>, Cause>>()?)?))
            }
        };
        converted().map_err(|cause: Cause| cause.of(self.form.name()))
    }
}

/// Builds an array of binaries.
fn binary(blobs: &[Option<Vec<u8>>]) -> Result<ArrayRef, Cause> {
    let bytes: u64 = blobs.iter().flatten().map(|blob| blob.len() as u64).sum();
    if bytes > i32::MAX as u64 {
        return Err(Cause::ResultTooLarge { groups: blobs.len(), bytes });
    }
    let mut builder = BinaryBuilder::with_capacity(blobs.len(), bytes as usize);
    blobs.iter().for_each(|blob| builder.append_option(blob.as_deref()));
    Ok(Arc::new(builder.finish()))
}

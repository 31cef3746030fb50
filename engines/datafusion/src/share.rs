//! `shared_filter`: a saved structure that the engine passes on without a copy.
//!
//! The engine's scalars own their bytes. Where an expression contains the result of a subquery, each batch of rows gets
//! a copy, and copying a filter of 100 MB costs more than looking up a batch. A struct scalar is a reference to an
//! array, so a structure inside a struct is never copied. The field is a dictionary, because joins repeat the fields of
//! a struct row by row.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::Cause;
use crate::{arguments, blobs};

const NAME: &str = "shared_filter";

/// `shared_filter(structure)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SharedFilter {
    signature: Signature,
}

/// Returns the function in the form that registries take.
pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(SharedFilter { signature: Signature::user_defined(Volatility::Immutable) }))
}

fn fields() -> Fields {
    Fields::from(vec![Field::new("filter", blobs::result_type(), true)])
}

impl ScalarUDFImpl for SharedFilter {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [structure] = arguments::exactly(NAME, arguments)?;
        if matches!(structure, DataType::Struct(_)) {
            return Err(Cause::BlobType { found: structure.clone() }.of(NAME));
        }
        blobs::check_type(structure).map_err(|cause| cause.of(NAME))?;
        Ok(vec![blobs::result_type()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let wrap = |structures: ArrayRef| StructArray::new(fields(), vec![structures], None);
        Ok(match &args.args[0] {
            ColumnarValue::Scalar(structure) => {
                ColumnarValue::Scalar(ScalarValue::Struct(Arc::new(wrap(structure.to_array()?))))
            }
            ColumnarValue::Array(structures) => ColumnarValue::Array(Arc::new(wrap(structures.clone()))),
        })
    }
}

//! `key_hash`: one number per row of a join's key columns, for joins on several columns.

use std::sync::Arc;

use datafusion::arrow::array::UInt64Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::hash_rows::hash_rows;
use crate::error::Cause;
use crate::keys::check_type;

const NAME: &str = "key_hash";
/// The most arguments of a call.
const MOST_KEYS: usize = 64;

/// `key_hash(x [, ...])`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct KeyHash {
    signature: Signature,
}

/// Returns the function in the form that registries take.
pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(KeyHash { signature: Signature::user_defined(Volatility::Immutable) }))
}

impl ScalarUDFImpl for KeyHash {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let arguments = crate::arguments::between(NAME, arguments, 1, MOST_KEYS)?;
        arguments.iter().try_for_each(check_type).map_err(|cause| cause.of(NAME))?;
        Ok(arguments.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let rows = hash_rows(&columns, NullEquality::NullEqualsNothing).map_err(|cause: Cause| cause.of(NAME))?;
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::new(rows.hashes.into(), rows.valid))))
    }
}

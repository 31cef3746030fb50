//! `quotient_filter_contains`: a count compared with a bound, in one function.
//!
//! `quotient_filter_count(filter, x) >= copies` is equivalent, but costs seconds as a condition on a Parquet table:
//! DataFusion 55 evaluates each comparison against the statistics of each file, three times. Where that fails, it
//! formats an error with all bytes of the filter in hexadecimal and drops it. A function that is a condition by itself
//! is skipped.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply_cmp;

use crate::arguments;
use crate::lookup::{answers, check_types};
use crate::quotient::QuotientFilterCount;

const NAME: &str = "quotient_filter_contains";

/// `quotient_filter_contains(filter, x [, copies])`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct QuotientFilterContains {
    signature: Signature,
}

/// Returns the function in the form that registries take.
pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(QuotientFilterContains { signature: Signature::user_defined(Volatility::Immutable) }))
}

impl ScalarUDFImpl for QuotientFilterContains {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let arguments = arguments::between(NAME, arguments, 2, 3)?;
        check_types(&arguments[0], &arguments[1]).map_err(|cause| cause.of(NAME))?;
        let mut coerced = arguments.to_vec();
        coerced.iter_mut().skip(2).for_each(|copies| *copies = DataType::Int64);
        Ok(coerced)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let once = ColumnarValue::Scalar(ScalarValue::Int64(Some(1)));
        let given = arguments::between(NAME, &args.args, 2, 3)?;
        let counts = answers(&QuotientFilterCount, NAME, &given[0], &given[1], args.number_rows)?;
        apply_cmp(Operator::GtEq, &counts, given.get(2).unwrap_or(&once))
    }
}

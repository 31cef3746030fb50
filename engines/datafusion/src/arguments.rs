//! Checks of the number of arguments, and the form of answers.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

use crate::error::Cause;

/// Returns the arguments of a function that takes `N`.
pub(crate) fn exactly<'a, T, const N: usize>(function: &'static str, arguments: &'a [T]) -> Result<&'a [T; N]> {
    between(function, arguments, N, N)?;
    // Never an error: `between` has counted them.
    arguments.first_chunk().ok_or_else(|| wrong(function, arguments, N, N))
}

/// Returns the arguments of a function that takes `least` to `most`.
pub(crate) fn between<'a, T>(function: &'static str, arguments: &'a [T], least: usize, most: usize) -> Result<&'a [T]> {
    if (least..=most).contains(&arguments.len()) { Ok(arguments) } else { Err(wrong(function, arguments, least, most)) }
}

/// Returns the answers of a function; one value if all of its arguments are.
pub(crate) fn answer(answers: ArrayRef, scalar: bool) -> Result<ColumnarValue> {
    Ok(if scalar {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&answers, 0)?)
    } else {
        ColumnarValue::Array(answers)
    })
}

fn wrong<T>(function: &'static str, arguments: &[T], least: usize, most: usize) -> datafusion::error::DataFusionError {
    Cause::ArgumentCount { found: arguments.len(), least, most }.of(function)
}

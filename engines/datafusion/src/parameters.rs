//! Literal arguments of aggregates: number of keys and precision.

use datafusion::common::ScalarValue;

use crate::error::Cause;

/// Number of keys if the call gives none.
pub(crate) const DEFAULT_ITEMS: u64 = 1_000_000;

/// Parameter that determines a filter's size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Precision {
    /// The rate of false positives.
    Rate(f64),
    /// Bits of memory per key.
    BitsPerItem(f64),
}

/// Parses the number of keys.
pub(crate) fn items(parameter: Option<&ScalarValue>) -> Result<u64, Cause> {
    const NAME: &str = "items";
    match parameter {
        None => Ok(DEFAULT_ITEMS),
        Some(ScalarValue::Int64(Some(items))) if *items > 0 => Ok(*items as u64),
        Some(ScalarValue::Int64(Some(items))) => {
            Err(Cause::InvalidParameter { parameter: NAME, found: items.to_string(), allowed: "above 0" })
        }
        Some(_) => Err(Cause::NotLiteral { parameter: NAME }),
    }
}

/// Parses the precision: bits per key from 1 on, a rate below.
pub(crate) fn precision(parameter: Option<&ScalarValue>) -> Result<Option<Precision>, Cause> {
    const NAME: &str = "bits_per_item or fpr";
    match parameter {
        None => Ok(None),
        Some(ScalarValue::Float64(Some(value))) if *value > 0.0 && *value < 1.0 => Ok(Some(Precision::Rate(*value))),
        Some(ScalarValue::Float64(Some(value))) if *value >= 1.0 && *value <= 1024.0 => {
            Ok(Some(Precision::BitsPerItem(*value)))
        }
        Some(ScalarValue::Float64(Some(value))) => Err(Cause::InvalidParameter {
            parameter: NAME,
            found: value.to_string(),
            allowed: "a rate between 0 and 1, or 1 to 1024 bits",
        }),
        Some(_) => Err(Cause::NotLiteral { parameter: NAME }),
    }
}

/// Parses a rate of false positives.
pub(crate) fn rate(parameter: Option<&ScalarValue>) -> Result<Option<f64>, Cause> {
    match precision(parameter)? {
        None => Ok(None),
        Some(Precision::Rate(rate)) => Ok(Some(rate)),
        Some(Precision::BitsPerItem(found)) => Err(Cause::InvalidParameter {
            parameter: "fpr",
            found: found.to_string(),
            allowed: "a rate between 0 and 1",
        }),
    }
}

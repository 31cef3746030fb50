//! `range_may_contain`: whether a saved range filter may have a key between two values.
//!
//! The engine casts all layouts of columns to one form before the call. Integers are compared by their value, so bounds
//! of any width suit filters of any width. Types like dates and decimals are the stored integer, as in
//! [`keys`](crate::keys).

use std::ops::{Bound, Range, RangeBounds, RangeInclusive};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, new_null_array};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use warpset_range::{Error, KeyOf, RangeFilterView, RangeKey};

use crate::error::Cause;
use crate::{arguments, blobs, verified};

const NAME: &str = "range_may_contain";

/// `range_may_contain(filter, low, high)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RangeMayContain {
    signature: Signature,
}

/// Returns the function in the form that registries take.
pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(RangeMayContain { signature: Signature::user_defined(Volatility::Immutable) }))
}

impl ScalarUDFImpl for RangeMayContain {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [filter, low, high] = arguments::exactly(NAME, arguments)?;
        let coerced = || {
            blobs::check_type(filter)?;
            let forms = vec![filter.clone(), form(low)?, form(high)?];
            if !have_one_unit(low, high) {
                return Err(Cause::BoundUnits { low: low.clone(), high: high.clone() });
            }
            Ok(forms)
        };
        coerced().map_err(|cause: Cause| cause.of(NAME))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [filter, low, high] = arguments::exactly(NAME, &args.args)?;
        let scalar = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let (low, high) = (low.to_array(rows)?, high.to_array(rows)?);
        if low.null_count() == rows || high.null_count() == rows {
            return arguments::answer(new_null_array(&DataType::Boolean, rows), scalar);
        }
        let answer = || -> Result<BooleanArray, Cause> {
            let other = |keys| Cause::BoundType { keys, low: low.data_type().clone(), high: high.data_type().clone() };
            let ranges = Ranges::of(&low, &high).ok_or_else(|| other("any"))?;
            let mut answers = vec![false; rows];
            let missing = blobs::Argument::of(filter)?.try_for_each(rows, |rows, saved| {
                match ranges.ask(blobs::aligned(saved).bytes(), rows.clone(), &mut answers[rows]) {
                    Err(Error::OtherKeys { found, .. }) => Err(other(found)),
                    asked => Ok(asked?),
                }
            })?;
            let nulls = NullBuffer::union(low.logical_nulls().as_ref(), high.logical_nulls().as_ref());
            let nulls = NullBuffer::union(missing.as_ref(), nulls.as_ref());
            Ok(BooleanArray::new(BooleanBuffer::from(answers), nulls))
        };
        arguments::answer(Arc::new(answer().map_err(|cause| cause.of(NAME))?), scalar)
    }
}

/// Returns the type that bounds of this type are cast to.
fn form(column: &DataType) -> Result<DataType, Cause> {
    use DataType::*;
    Ok(match column {
        Null | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 => Int64,
        Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) => Int64,
        UInt64 => Decimal128(20, 0),
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) => Decimal128(38, *scale),
        Float32 | Float64 => column.clone(),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => BinaryView,
        Dictionary(_, values) if !matches!(**values, Dictionary(..)) => form(values)?,
        _ => return Err(Cause::KeyType { found: column.clone() }),
    })
}

/// Whether the stored integers of two types have one unit: the same scale, and the same unit of time. A plain integer
/// has that of the other bound unless it has a scale.
fn have_one_unit(low: &DataType, high: &DataType) -> bool {
    use DataType::*;
    let scale = |column: &DataType| match column {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) => *scale,
        _ => 0,
    };
    match (low, high) {
        (Null, _) | (_, Null) => true,
        (Dictionary(_, one), other) | (other, Dictionary(_, one)) => have_one_unit(one, other),
        (Timestamp(low, _), Timestamp(high, _)) => low == high,
        (low, high) if low.is_temporal() && high.is_temporal() => low == high,
        (low, high) => scale(low) == scale(high),
    }
}

/// One range per row, with arbitrary bounds where one is null.
enum Ranges<'a> {
    Integers(Vec<(i128, i128)>),
    Singles(Vec<RangeInclusive<f32>>),
    Doubles(Vec<RangeInclusive<f64>>),
    Strings(Vec<RangeInclusive<&'a [u8]>>),
}

impl<'a> Ranges<'a> {
    /// Pairs bounds of the types that [`form`] returns; `None` if they have no common order.
    fn of(low: &'a ArrayRef, high: &'a ArrayRef) -> Option<Ranges<'a>> {
        fn pairs<T: ArrowPrimitiveType>(low: &ArrayRef, high: &ArrayRef) -> Vec<RangeInclusive<T::Native>> {
            let ends = |array: &ArrayRef| array.as_primitive::<T>().values().to_vec();
            ends(low).into_iter().zip(ends(high)).map(|(low, high)| low..=high).collect()
        }
        Some(match (low.data_type(), high.data_type()) {
            (DataType::Float32, DataType::Float32) => Ranges::Singles(pairs::<Float32Type>(low, high)),
            (DataType::Float64, DataType::Float64) => Ranges::Doubles(pairs::<Float64Type>(low, high)),
            (DataType::BinaryView, DataType::BinaryView) => {
                let ends = |array: &'a ArrayRef| array.as_binary_view().iter().map(Option::unwrap_or_default);
                Ranges::Strings(ends(low).zip(ends(high)).map(|(low, high)| low..=high).collect())
            }
            _ => Ranges::Integers(integers(low)?.into_iter().zip(integers(high)?).collect()),
        })
    }

    /// Asks a saved filter for some of the rows.
    fn ask(&self, saved: &[u8], rows: Range<usize>, answers: &mut [bool]) -> Result<(), Error> {
        match self {
            Ranges::Integers(ranges) => ask_integers(saved, &ranges[rows], answers),
            Ranges::Singles(ranges) => ask::<f32, _, _>(saved, &ranges[rows], answers),
            Ranges::Doubles(ranges) => ask::<f64, _, _>(saved, &ranges[rows], answers),
            Ranges::Strings(ranges) => ask::<[u8], _, _>(saved, &ranges[rows], answers),
        }
    }
}

/// Returns integers of either form; `None` for other columns.
fn integers(array: &ArrayRef) -> Option<Vec<i128>> {
    match array.as_primitive_opt::<Int64Type>() {
        Some(narrow) => Some(narrow.values().iter().map(|&value| value.into()).collect()),
        None => array.as_primitive_opt::<Decimal128Type>().map(|wide| wide.values().to_vec()),
    }
}

/// Asks a filter of keys of type `K`.
fn ask<K, Q, R>(saved: &[u8], ranges: &[R], answers: &mut [bool]) -> Result<(), Error>
where
    K: RangeKey + ?Sized,
    Q: KeyOf<K>,
    R: RangeBounds<Q> + Sync,
{
    let open = RangeFilterView::<K>::from_bytes_unverified;
    verified::open(saved, RangeFilterView::<K>::from_bytes, open)?.may_contain_bulk_into(ranges, answers)
}

/// Asks a filter of integers of any width.
fn ask_integers(saved: &[u8], ranges: &[(i128, i128)], answers: &mut [bool]) -> Result<(), Error> {
    let keys = match RangeFilterView::<i64>::from_bytes_unverified(saved) {
        Err(Error::OtherKeys { found, .. }) => found,
        _ => "i64",
    };
    macro_rules! by_name {
        ($($key:ident)*) => {
            match keys {
                $(stringify!($key) => ask::<$key, _, _>(saved, &narrowed::<$key>(ranges), answers),)*
                _ => ask::<i64, _, _>(saved, &narrowed::<i64>(ranges), answers),
            }
        };
    }
    by_name!(u8 u16 u32 u64 u128 i8 i16 i32 i128)
}

/// Narrows ranges to the values of a type.
fn narrowed<K: TryFrom<i128> + Default>(ranges: &[(i128, i128)]) -> Vec<(Bound<K>, Bound<K>)> {
    let narrow = |&(low, high): &(i128, i128)| match (K::try_from(low), K::try_from(high)) {
        // Every type has 0, so a bound that does not fit is beyond the end on its side of 0.
        (Err(_), _) if low > 0 => (Bound::Excluded(K::default()), Bound::Excluded(K::default())),
        (_, Err(_)) if high < 0 => (Bound::Excluded(K::default()), Bound::Excluded(K::default())),
        (low, high) => (low.map_or(Bound::Unbounded, Bound::Included), high.map_or(Bound::Unbounded, Bound::Included)),
    };
    ranges.iter().map(narrow).collect()
}

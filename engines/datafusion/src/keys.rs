//! Arrow arrays as slices of keys.
//!
//! | column | key |
//! | --- | --- |
//! | integers of 8 to 64 bits | the integer |
//! | dates, times, timestamps, durations | the stored integer: days, or the column's unit since its epoch |
//! | decimals of 32, 64 and 128 bits | the stored integer: the value without its point |
//! | decimals of 256 bits | 32 little-endian bytes of that integer |
//! | strings and binaries of all layouts | the bytes |
//! | dictionaries of any of these | the value |
//!
//! Integers hash by their value, so that a filter of an `INT` column answers for a `BIGINT` column. Units and scales
//! are not stored: a timestamp in seconds and one in milliseconds are different keys, as are `1.5` and `1.50` as
//! decimals; cast one.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType, Int8Type, Int16Type,
    Int32Type, Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use warpset_base::key::Key;

use crate::error::Cause;

/// Function over the keys of an array, one per row; a null row has an arbitrary key.
pub(crate) trait Visitor {
    /// Result of the visit.
    type Output;
    /// Visits the keys; called once.
    fn visit<K: Key + Copy>(self, keys: &[K]) -> Self::Output;
}

/// Whether columns of this type have keys.
pub(crate) fn check_type(column: &DataType) -> Result<(), Cause> {
    use DataType::*;
    match column {
        Null | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => Ok(()),
        Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) => Ok(()),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Ok(()),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Ok(()),
        Dictionary(_, values) if !matches!(**values, Dictionary(..)) => check_type(values),
        _ => Err(Cause::KeyType { found: column.clone() }),
    }
}

/// Hands the keys of an array to the visitor.
pub(crate) fn visit<V: Visitor>(array: &dyn Array, visitor: V) -> Result<V::Output, Cause> {
    let Some(dictionary) = array.as_any_dictionary_opt() else {
        return visit_plain(array, visitor);
    };
    let values = dictionary.values();
    if values.is_empty() {
        return Ok(visitor.visit(&vec![0u64; array.len()]));
    }
    visit_plain(values.as_ref(), OfDictionary { rows: dictionary.normalized_keys(), visitor })
}

/// Makes one key per row from one per value of a dictionary.
struct OfDictionary<V> {
    rows: Vec<usize>,
    visitor: V,
}

impl<V: Visitor> Visitor for OfDictionary<V> {
    type Output = V::Output;

    fn visit<K: Key + Copy>(self, keys: &[K]) -> V::Output {
        // The index of a null row is arbitrary.
        let keys: Vec<K> = self.rows.iter().map(|&row| keys[row.min(keys.len() - 1)]).collect();
        self.visitor.visit(&keys)
    }
}

fn visit_plain<V: Visitor>(array: &dyn Array, visitor: V) -> Result<V::Output, Cause> {
    fn primitive<T: ArrowPrimitiveType<Native: Key + Copy>, V: Visitor>(array: &dyn Array, visitor: V) -> V::Output {
        visitor.visit(array.as_primitive::<T>().values())
    }
    /// Visits the bytes of the rows that are not null; the others may be invalid.
    fn bytes<'a, V: Visitor>(array: &'a dyn Array, visitor: V, value: impl Fn(usize) -> &'a [u8]) -> V::Output {
        let value = |row| if array.is_valid(row) { value(row) } else { &[][..] };
        let keys: Vec<&[u8]> = (0..array.len()).map(value).collect();
        visitor.visit(&keys)
    }
    use DataType::*;
    Ok(match array.data_type() {
        Null => visitor.visit(&vec![0u64; array.len()]),
        Int8 => primitive::<Int8Type, V>(array, visitor),
        Int16 => primitive::<Int16Type, V>(array, visitor),
        Int32 => primitive::<Int32Type, V>(array, visitor),
        Int64 => primitive::<Int64Type, V>(array, visitor),
        UInt8 => primitive::<UInt8Type, V>(array, visitor),
        UInt16 => primitive::<UInt16Type, V>(array, visitor),
        UInt32 => primitive::<UInt32Type, V>(array, visitor),
        UInt64 => primitive::<UInt64Type, V>(array, visitor),
        Date32 => primitive::<Date32Type, V>(array, visitor),
        Date64 => primitive::<Date64Type, V>(array, visitor),
        Time32(TimeUnit::Second) => primitive::<Time32SecondType, V>(array, visitor),
        Time32(_) => primitive::<Time32MillisecondType, V>(array, visitor),
        Time64(TimeUnit::Microsecond) => primitive::<Time64MicrosecondType, V>(array, visitor),
        Time64(_) => primitive::<Time64NanosecondType, V>(array, visitor),
        Timestamp(TimeUnit::Second, _) => primitive::<TimestampSecondType, V>(array, visitor),
        Timestamp(TimeUnit::Millisecond, _) => primitive::<TimestampMillisecondType, V>(array, visitor),
        Timestamp(TimeUnit::Microsecond, _) => primitive::<TimestampMicrosecondType, V>(array, visitor),
        Timestamp(TimeUnit::Nanosecond, _) => primitive::<TimestampNanosecondType, V>(array, visitor),
        Duration(TimeUnit::Second) => primitive::<DurationSecondType, V>(array, visitor),
        Duration(TimeUnit::Millisecond) => primitive::<DurationMillisecondType, V>(array, visitor),
        Duration(TimeUnit::Microsecond) => primitive::<DurationMicrosecondType, V>(array, visitor),
        Duration(TimeUnit::Nanosecond) => primitive::<DurationNanosecondType, V>(array, visitor),
        Decimal32(..) => primitive::<Decimal32Type, V>(array, visitor),
        Decimal64(..) => primitive::<Decimal64Type, V>(array, visitor),
        Decimal128(..) => primitive::<Decimal128Type, V>(array, visitor),
        Decimal256(..) => {
            let values = array.as_primitive::<Decimal256Type>().values();
            let keys: Vec<[u8; 32]> = values.iter().map(|value| value.to_le_bytes()).collect();
            visitor.visit(&keys)
        }
        Utf8 => bytes(array, visitor, |row| array.as_string::<i32>().value(row).as_bytes()),
        LargeUtf8 => bytes(array, visitor, |row| array.as_string::<i64>().value(row).as_bytes()),
        Utf8View => bytes(array, visitor, |row| array.as_string_view().value(row).as_bytes()),
        Binary => bytes(array, visitor, |row| array.as_binary::<i32>().value(row)),
        LargeBinary => bytes(array, visitor, |row| array.as_binary::<i64>().value(row)),
        BinaryView => bytes(array, visitor, |row| array.as_binary_view().value(row)),
        FixedSizeBinary(_) => bytes(array, visitor, |row| array.as_fixed_size_binary().value(row)),
        other => return Err(Cause::KeyType { found: other.clone() }),
    })
}

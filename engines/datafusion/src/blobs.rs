//! Columns of saved structures: reading and building.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, DictionaryArray, Int32Array, LargeBinaryArray,
    LargeBinaryBuilder,
};
use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use crate::error::Cause;

/// Returns the type of results: a dictionary, so the engine copies a key of four bytes where it copies a row.
pub(crate) fn result_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Binary))
}

/// Whether columns of this type can hold saved structures.
pub(crate) fn check_type(column: &DataType) -> Result<(), Cause> {
    match column {
        DataType::Dictionary(_, values) => check_plain_type(values),
        DataType::Struct(fields) => match &fields[..] {
            [field] if *field.data_type() == result_type() => Ok(()),
            _ => Err(Cause::BlobType { found: column.clone() }),
        },
        column => check_plain_type(column),
    }
}

/// Checks the type of a column that is neither a dictionary nor shared.
fn check_plain_type(column: &DataType) -> Result<(), Cause> {
    match column {
        DataType::Null | DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(()),
        _ => Err(Cause::BlobType { found: column.clone() }),
    }
}

/// Wraps one result in the engine's scalar.
pub(crate) fn scalar(bytes: Option<Vec<u8>>) -> ScalarValue {
    ScalarValue::Dictionary(Box::new(DataType::Int32), Box::new(ScalarValue::Binary(bytes)))
}

/// Builds an array of [`result_type`] from results.
pub(crate) fn results(blobs: Vec<Option<Vec<u8>>>) -> Result<ArrayRef, Cause> {
    let bytes: u64 = blobs.iter().flatten().map(|blob| blob.len() as u64).sum();
    if bytes > i32::MAX as u64 {
        return Err(Cause::ResultTooLarge { groups: blobs.len(), bytes });
    }
    let mut number = 0;
    let keys: Int32Array = blobs
        .iter()
        .map(|blob| {
            blob.as_ref().map(|_| {
                number += 1;
                number - 1
            })
        })
        .collect();
    let values = BinaryArray::from_iter_values(blobs.iter().flatten());
    Ok(Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(values))))
}

/// Builds an array of partial results.
pub(crate) fn partial_results(blobs: Vec<Option<Vec<u8>>>) -> ArrayRef {
    // A single blob is moved, not copied: partial results without groups are the large ones.
    if let [Some(_)] = blobs[..] {
        let Some(Some(blob)) = blobs.into_iter().next() else { unreachable!("matched above") };
        let offsets = OffsetBuffer::from_lengths([blob.len()]);
        return Arc::new(LargeBinaryArray::new(offsets, Buffer::from_vec(blob), None::<NullBuffer>));
    }
    let bytes = blobs.iter().flatten().map(Vec::len).sum();
    let mut builder = LargeBinaryBuilder::with_capacity(blobs.len(), bytes);
    blobs.iter().for_each(|blob| builder.append_option(blob.as_deref()));
    Arc::new(builder.finish())
}

/// Borrows the saved structure of a scalar.
pub(crate) fn of_scalar(scalar: &ScalarValue) -> Result<Option<&[u8]>, Cause> {
    match scalar {
        ScalarValue::Null => Ok(None),
        ScalarValue::Binary(bytes) | ScalarValue::LargeBinary(bytes) | ScalarValue::BinaryView(bytes) => {
            Ok(bytes.as_deref())
        }
        ScalarValue::Dictionary(_, value) => of_scalar(value),
        ScalarValue::Struct(shared) => Ok(Column::of(shared.as_ref())?.get(0)),
        other => Err(Cause::BlobType { found: other.data_type() }),
    }
}

/// A column of saved structures.
pub(crate) struct Column<'a> {
    values: Values<'a>,
    /// Dictionary array, and the index into `values` of each row; `None` if the column is no dictionary.
    dictionary: Option<(&'a dyn Array, Vec<usize>)>,
}

enum Values<'a> {
    Nulls,
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
    View(&'a BinaryViewArray),
}

impl<'a> Values<'a> {
    fn of(array: &'a dyn Array) -> Result<Values<'a>, Cause> {
        Ok(match array.data_type() {
            DataType::Null => Values::Nulls,
            DataType::Binary => Values::Small(array.as_binary()),
            DataType::LargeBinary => Values::Large(array.as_binary()),
            DataType::BinaryView => Values::View(array.as_binary_view()),
            other => return Err(Cause::BlobType { found: other.clone() }),
        })
    }

    fn get(&self, i: usize) -> Option<&'a [u8]> {
        match *self {
            Values::Nulls => None,
            Values::Small(array) => array.is_valid(i).then(|| array.value(i)),
            Values::Large(array) => array.is_valid(i).then(|| array.value(i)),
            Values::View(array) => array.is_valid(i).then(|| array.value(i)),
        }
    }
}

impl<'a> Column<'a> {
    /// Opens an array of a type that [`check_type`] accepts.
    pub(crate) fn of(array: &'a dyn Array) -> Result<Column<'a>, Cause> {
        let array = match array.as_struct_opt() {
            // A struct by `shared_filter`, which has no nulls of its own.
            Some(shared) if shared.num_columns() == 1 => shared.column(0).as_ref(),
            _ => array,
        };
        match array.as_any_dictionary_opt() {
            None => Ok(Column { values: Values::of(array)?, dictionary: None }),
            Some(dictionary) => {
                let values = Values::of(dictionary.values().as_ref())?;
                // Keys of null rows are never used, and without values there is no valid key.
                let keys =
                    if dictionary.values().is_empty() { vec![0; array.len()] } else { dictionary.normalized_keys() };
                Ok(Column { values, dictionary: Some((array, keys)) })
            }
        }
    }

    /// Returns the saved structure of a row.
    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match &self.dictionary {
            None => self.values.get(row),
            Some((array, keys)) => array.is_valid(row).then(|| self.values.get(keys[row])).flatten(),
        }
    }

    /// Splits rows `0..len` into runs with the same address, so that each structure is opened once per run.
    pub(crate) fn runs(&self, len: usize) -> impl Iterator<Item = (Range<usize>, Option<&'a [u8]>)> + '_ {
        let same = |a: Option<&[u8]>, b: Option<&[u8]>| match (a, b) {
            (Some(a), Some(b)) => std::ptr::eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let mut start = 0;
        std::iter::from_fn(move || {
            if start == len {
                return None;
            }
            let blob = self.get(start);
            let end = (start + 1..len).find(|&row| !same(self.get(row), blob)).unwrap_or(len);
            let run = start..end;
            start = end;
            Some((run, blob))
        })
    }
}

/// Borrows bytes at an address that is a multiple of 8, or copies them to one.
pub(crate) fn aligned(bytes: &[u8]) -> Aligned<'_> {
    if bytes.as_ptr().cast::<u64>().is_aligned() {
        return Aligned { words: None, bytes };
    }
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
    Aligned { words: Some(words), bytes }
}

/// Bytes at an address that is a multiple of 8.
pub(crate) struct Aligned<'a> {
    words: Option<Vec<u64>>,
    bytes: &'a [u8],
}

impl Aligned<'_> {
    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.words {
            None => self.bytes,
            Some(words) => &bytemuck::cast_slice(words)[..self.bytes.len()],
        }
    }
}

/// The saved structures of an argument: one for all rows, or one per row.
pub(crate) enum Argument<'a> {
    One(Option<&'a [u8]>),
    Each(Column<'a>),
}

impl<'a> Argument<'a> {
    /// Opens an argument of a type that [`check_type`] accepts.
    pub(crate) fn of(argument: &'a ColumnarValue) -> Result<Argument<'a>, Cause> {
        Ok(match argument {
            ColumnarValue::Scalar(scalar) => Argument::One(of_scalar(scalar)?),
            ColumnarValue::Array(array) => Argument::Each(Column::of(array)?),
        })
    }

    /// Calls `ask` with each structure and its rows, of `len`; returns the rows without a structure as nulls.
    pub(crate) fn try_for_each<E>(
        &self,
        len: usize,
        mut ask: impl FnMut(Range<usize>, &'a [u8]) -> Result<(), E>,
    ) -> Result<Option<NullBuffer>, E> {
        match self {
            Argument::One(None) => Ok(Some(NullBuffer::new_null(len))),
            Argument::One(Some(saved)) => {
                if len > 0 {
                    ask(0..len, saved)?;
                }
                Ok(None)
            }
            Argument::Each(column) => {
                let mut there = vec![true; len];
                for (rows, saved) in column.runs(len) {
                    match saved {
                        None => there[rows].fill(false),
                        Some(saved) => ask(rows, saved)?,
                    }
                }
                Ok(Some(NullBuffer::from(there)))
            }
        }
    }

    /// Returns the structure of a row.
    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Argument::One(saved) => *saved,
            Argument::Each(column) => column.get(row),
        }
    }
}

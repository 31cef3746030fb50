//! Sets of ordered keys that answer for ranges: keys, lookups and methods that both classes share.

use std::borrow::Cow;
use std::ops::Bound as End;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList};

use crate::error::Result;
use crate::keys::{Batch, Piece, is_null, wrong_key};
use crate::kinds::{Either, Kinds};
use crate::output::{Answers, TypeName};
use crate::sorted_map::call::{column, host_pieces, ranges};
use crate::structure::{Nowhere, Object, Structure};
use crate::threads::Threads;
use crate::{anywhere, either};

/// Types of filters by their keys, in the order of [`TYPES`].
pub type OfTypes<Unsigned, Signed, Floats, Strings> = Kinds<Kinds<Unsigned, Signed>, Kinds<Floats, Strings>>;

/// Names of the types of keys.
pub const TYPES: [&str; 4] = ["uint64", "int64", "float64", "bytes"];
/// Index of floats in [`TYPES`].
pub const FLOATS: usize = 2;

/// Returns the index in [`TYPES`] of a type with this name.
pub fn type_named(key: &TypeName) -> PyResult<usize> {
    TYPES.iter().position(|name| *name == key.0).ok_or_else(|| {
        let why = format!("key={:?}: there are \"uint64\", \"int64\", \"float64\" and \"bytes\"", key.0);
        PyValueError::new_err(why)
    })
}

/// Use of a key.
#[derive(Clone, Copy)]
pub enum Use {
    Member,
    First,
    Last,
}

/// Type of keys as slices have it.
pub trait Ordered<'a>: Copy + Default + 'a {
    /// Index in [`TYPES`].
    const TYPE: usize;

    /// Reads the keys of pieces, without nulls.
    fn column(pieces: &[Piece<'a>], used: Use) -> Result<Cow<'a, [Self]>>;
}

impl<'a> Ordered<'a> for u64 {
    const TYPE: usize = 0;

    fn column(pieces: &[Piece<'a>], _: Use) -> Result<Cow<'a, [u64]>> {
        column(pieces)
    }
}

impl<'a> Ordered<'a> for i64 {
    const TYPE: usize = 1;

    fn column(pieces: &[Piece<'a>], _: Use) -> Result<Cow<'a, [i64]>> {
        column(pieces)
    }
}

impl<'a> Ordered<'a> for f64 {
    const TYPE: usize = FLOATS;

    /// Reads the keys without NaNs; a range with a NaN as an end becomes empty, and one that ends at either zero
    /// contains both.
    fn column(pieces: &[Piece<'a>], used: Use) -> Result<Cow<'a, [f64]>> {
        let bits = column::<u64>(pieces)?;
        let keys = bits.iter().map(|&bits| f64::from_bits(bits));
        Ok(match used {
            // Negative zero becomes zero, so that either removes the other.
            Use::Member => keys.filter(|key| !key.is_nan()).map(|key| key + 0.0).collect(),
            Use::First => keys.map(|key| end(key, f64::from_bits(u64::MAX >> 1), -0.0)).collect(),
            Use::Last => keys.map(|key| end(key, f64::from_bits(u64::MAX), 0.0)).collect(),
        })
    }
}

/// Returns an end of a range, with replacements of NaNs and of zeros.
fn end(key: f64, nan: f64, zero: f64) -> f64 {
    match key {
        _ if key.is_nan() => nan,
        0.0 => zero,
        _ => key,
    }
}

impl<'a> Ordered<'a> for &'a [u8] {
    const TYPE: usize = 3;

    fn column(pieces: &[Piece<'a>], _: Use) -> Result<Cow<'a, [&'a [u8]]>> {
        match pieces {
            [piece] => Ok(piece.keys().strings()?.into()),
            _ => Ok(pieces.iter().map(|piece| piece.keys().strings()).collect::<Result<Vec<_>>>()?.concat().into()),
        }
    }
}

/// Reads keys of the type with this index in [`TYPES`]. Floats become their bits.
pub fn batch_of(key: usize, keys: &Bound<'_, PyAny>) -> PyResult<Batch> {
    if key != FLOATS {
        return Batch::of(keys);
    }
    let py = keys.py();
    let floats = py.import(intern!(py, "numpy.ma"))?.call_method1(intern!(py, "asarray"), (keys, "float64"))?;
    let filled = floats.call_method1(intern!(py, "filled"), (f64::NAN,))?;
    Batch::of(&filled.call_method1(intern!(py, "view"), ("uint64",))?)
}

/// Ranges of a call.
pub struct Asked<'a> {
    pub firsts: &'a Batch,
    pub lasts: &'a Batch,
    /// Whether all ranges have no first or last key.
    pub open: (bool, bool),
}

impl<'a> Asked<'a> {
    /// Returns the ranges by keys of one type.
    pub fn ranges<K: Ordered<'a>>(&self) -> Result<Vec<(End<K>, End<K>)>> {
        let (firsts, lasts) = (host_pieces(self.firsts)?, host_pieces(self.lasts)?);
        let keys = (K::column(&firsts, Use::First)?, K::column(&lasts, Use::Last)?);
        let mut ranges = ranges((&firsts, &keys.0), (&lasts, &keys.1))?;
        for (first, last) in &mut ranges {
            *first = if self.open.0 { End::Unbounded } else { *first };
            *last = if self.open.1 { End::Unbounded } else { *last };
        }
        Ok(ranges)
    }
}

/// Lookups of ranges, whatever the type of keys.
pub trait Lookups {
    /// Returns the index in [`TYPES`] of the keys.
    fn key(&self) -> usize;
    /// Whether there are no keys.
    fn is_empty(&self) -> bool;
    /// Returns a bound of the rate of wrong answers for ranges of `length` keys.
    fn fpr_of(&self, length: u64) -> f64;
    /// Writes whether each range may have a key, as bytes 0 and 1.
    fn may_contain(&self, asked: &Asked<'_>, answers: &mut [u8]) -> Result<()>;
}

/// Lookups in filters with keys of a type; those on a device can fail.
#[macro_export]
macro_rules! lookups {
    ($($filter:ty, $key:ty $(, $fallible:tt)?;)*) => {$(
        impl $crate::ranges::Lookups for $filter {
            fn key(&self) -> usize {
                <$key as $crate::ranges::Ordered<'_>>::TYPE
            }

            fn is_empty(&self) -> bool {
                self.is_empty()
            }

            fn fpr_of(&self, length: u64) -> f64 {
                self.fpr_of(length)
            }

            fn may_contain(&self, asked: &$crate::ranges::Asked<'_>, answers: &mut [u8]) -> $crate::error::Result<()> {
                let bits = self.may_contain_bitmap_bulk::<$key, _>(&asked.ranges::<$key>()?)$($fallible)?;
                warpset_base::bitmap::bits_to::<u8>(answers, bits.as_words());
                Ok(())
            }
        }
    )*};
}

impl Lookups for Nowhere {
    fn key(&self) -> usize {
        match *self {}
    }

    fn is_empty(&self) -> bool {
        match *self {}
    }

    fn fpr_of(&self, _: u64) -> f64 {
        match *self {}
    }

    fn may_contain(&self, _: &Asked<'_>, _: &mut [u8]) -> Result<()> {
        match *self {}
    }
}

impl<A: Lookups, B: Lookups> Lookups for Either<A, B> {
    fn key(&self) -> usize {
        either!(self, |filter| filter.key())
    }

    fn is_empty(&self) -> bool {
        either!(self, |filter| filter.is_empty())
    }

    fn fpr_of(&self, length: u64) -> f64 {
        either!(self, |filter| filter.fpr_of(length))
    }

    fn may_contain(&self, asked: &Asked<'_>, answers: &mut [u8]) -> Result<()> {
        either!(self, |filter| filter.may_contain(asked, answers))
    }
}

/// Filter with lookups of ranges in all forms.
pub trait Ranged: Structure<Host: Lookups, Mapped: Lookups, Device: Lookups> {}
impl<S: Structure<Host: Lookups, Mapped: Lookups, Device: Lookups>> Ranged for S {}

/// Reads keys of the filter's type.
pub fn batch<S: Ranged>(object: &Object<S>, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Batch> {
    batch_of(object.read(py, None, 1, |filter| Ok(anywhere!(filter, |filter| filter.key())))?, keys)
}

/// Reads one key of the filter's type. A null is refused; the float `nan` is a key that no filter has.
pub fn one<S: Ranged>(object: &Object<S>, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Batch> {
    if is_null(key)? && !key.is_instance_of::<PyFloat>() {
        return Err(wrong_key(key));
    }
    batch(object, py, PyList::new(py, [key])?.as_any())
}

/// Returns whether each range may have a key.
pub fn answers<S: Ranged>(
    object: &Object<S>,
    py: Python<'_>,
    (firsts, lasts): (&Batch, &Batch),
    form: &str,
    out: Option<&Bound<'_, PyAny>>,
    threads: Option<Threads>,
) -> PyResult<Py<PyAny>> {
    let asked = Asked { firsts, lasts, open: (false, false) };
    let mut answers = Answers::new(py, firsts.len(), form, out)?;
    let items = answers.items();
    object.read(py, threads, firsts.len(), |filter| anywhere!(filter, |filter| filter.may_contain(&asked, items)))?;
    answers.finish(py)
}

/// Returns whether there may be a key between two ends. A range has no end where that is `None`.
pub fn any_in<S: Ranged>(
    object: &Object<S>,
    py: Python<'_>,
    first: Option<&Bound<'_, PyAny>>,
    last: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    // An end that is not used is a copy of the other one.
    let (Some(low), Some(high)) = (first.or(last), last.or(first)) else {
        return Ok(object.read(py, None, 1, |filter| Ok(anywhere!(filter, |filter| !filter.is_empty())))?);
    };
    let (firsts, lasts) = (one(object, py, low)?, one(object, py, high)?);
    let asked = Asked { firsts: &firsts, lasts: &lasts, open: (first.is_none(), last.is_none()) };
    let mut answer = [0];
    object.read(py, None, 1, |filter| anywhere!(filter, |filter| filter.may_contain(&asked, &mut answer)))?;
    Ok(answer == [1])
}

//! Range filters: sets of ordered keys that answer for ranges.

use std::borrow::Cow;
use std::ops::Bound as End;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use warpset::range::{self, KeyOf, Layout, RangeKey};
use warpset_base::bitmap::bits_to;

use crate::device::Location;
use crate::error::Result;
use crate::keys::{Batch, Piece};
use crate::kinds::{Either, Kinds};
use crate::output::{Answers, Output, TypeName};
use crate::sorted_map::call::{column, host_pieces, ranges};
use crate::structure::{Nowhere, Structure, Where, length};
use crate::threads::{Shared, Threads, run_watched};
use crate::{anywhere, ask, class, either, structure};

structure!(Unsigned: range::RangeFilter<u64>, range::MappedRangeFilter<u64>, range::gpu::RangeFilter<u64>);
structure!(Signed: range::RangeFilter<i64>, range::MappedRangeFilter<i64>, range::gpu::RangeFilter<i64>);
structure!(Floats: range::RangeFilter<f64>, range::MappedRangeFilter<f64>, range::gpu::RangeFilter<f64>);
structure!(Strings: range::RangeFilter<[u8]>, range::MappedRangeFilter<[u8]>, Nowhere);

/// Types of filters, by their keys, in the order of [`TYPES`].
pub type Filter = Kinds<Kinds<Unsigned, Signed>, Kinds<Floats, Strings>>;

/// Names of the types of keys.
const TYPES: [&str; 4] = ["uint64", "int64", "float64", "bytes"];
/// Index of floats in [`TYPES`].
const FLOATS: usize = 2;

/// Returns the index in [`TYPES`] of a filter's keys.
fn type_of(value: &Where<Filter>) -> usize {
    anywhere!(value, |filter| match filter {
        Either::First(integers) => usize::from(matches!(integers, Either::Second(_))),
        Either::Second(others) => 2 + usize::from(matches!(others, Either::Second(_))),
    })
}

impl Structure for Filter {
    const NAME: &'static str = "RangeFilter";

    fn describe(value: &Where<Self>) -> Result<String> {
        let (layout, fpr) = anywhere!(value, |filter| (filter.layout(), filter.fpr_of(1)));
        let (keys, bytes) = (layout.keys(), 8 * layout.words());
        Ok(format!("{keys} keys of {}, {bytes} bytes, fpr={fpr:.2e}", TYPES[type_of(value)]))
    }
}

/// Use of a key.
#[derive(Clone, Copy)]
enum Use {
    Member,
    First,
    Last,
}

/// Type of keys as slices have it.
trait Ordered<'a>: Copy + Default + 'a {
    /// Reads the keys of pieces, without nulls.
    fn column(pieces: &[Piece<'a>], used: Use) -> Result<Cow<'a, [Self]>>;
}

impl<'a> Ordered<'a> for u64 {
    fn column(pieces: &[Piece<'a>], _: Use) -> Result<Cow<'a, [u64]>> {
        column(pieces)
    }
}

impl<'a> Ordered<'a> for i64 {
    fn column(pieces: &[Piece<'a>], _: Use) -> Result<Cow<'a, [i64]>> {
        column(pieces)
    }
}

impl<'a> Ordered<'a> for f64 {
    /// Reads the keys without NaNs; a range with a NaN as an end becomes empty, and one that ends at either zero
    /// contains both.
    fn column(pieces: &[Piece<'a>], used: Use) -> Result<Cow<'a, [f64]>> {
        let bits = column::<u64>(pieces)?;
        let keys = bits.iter().map(|&bits| f64::from_bits(bits));
        Ok(match used {
            Use::Member => keys.filter(|key| !key.is_nan()).collect(),
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
    fn column(pieces: &[Piece<'a>], _: Use) -> Result<Cow<'a, [&'a [u8]]>> {
        match pieces {
            [piece] => Ok(piece.keys().strings()?.into()),
            _ => Ok(pieces.iter().map(|piece| piece.keys().strings()).collect::<Result<Vec<_>>>()?.concat().into()),
        }
    }
}

/// Reads keys of the type with this index in [`TYPES`]. Floats become their bits.
fn batch_of(key: usize, keys: &Bound<'_, PyAny>) -> PyResult<Batch> {
    if key != FLOATS {
        return Batch::of(keys);
    }
    let py = keys.py();
    let floats = py.import(intern!(py, "numpy.ma"))?.call_method1(intern!(py, "asarray"), (keys, "float64"))?;
    let filled = floats.call_method1(intern!(py, "filled"), (f64::NAN,))?;
    Batch::of(&filled.call_method1(intern!(py, "view"), ("uint64",))?)
}

/// Ranges of a call.
struct Asked<'a> {
    firsts: &'a Batch,
    lasts: &'a Batch,
    /// Whether all ranges have no first or last key.
    open: (bool, bool),
}

impl<'a> Asked<'a> {
    /// Returns the ranges by keys of one type.
    fn ranges<K: Ordered<'a>>(&self) -> Result<Vec<(End<K>, End<K>)>> {
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
trait Lookups {
    /// Returns the parameters.
    fn layout(&self) -> &Layout;
    /// Returns a bound of the rate of wrong answers for ranges of `length` keys.
    fn fpr_of(&self, length: u64) -> f64;
    /// Writes whether each range may have a key, as bytes 0 and 1.
    fn may_contain(&self, asked: &Asked<'_>, answers: &mut [u8]) -> Result<()>;
    /// Returns a bound of the number of keys in each range.
    fn count_at_most(&self, asked: &Asked<'_>) -> Result<Vec<u64>>;
}

macro_rules! lookups {
    ($($filter:ty, $key:ty $(, $fallible:tt)?;)*) => {$(
        impl Lookups for $filter {
            fn layout(&self) -> &Layout {
                self.layout()
            }

            fn fpr_of(&self, length: u64) -> f64 {
                self.fpr_of(length)
            }

            fn may_contain(&self, asked: &Asked<'_>, answers: &mut [u8]) -> Result<()> {
                let bits = self.may_contain_bitmap_bulk::<$key, _>(&asked.ranges::<$key>()?)$($fallible)?;
                bits_to::<u8>(answers, bits.as_words());
                Ok(())
            }

            fn count_at_most(&self, asked: &Asked<'_>) -> Result<Vec<u64>> {
                Ok(self.count_at_most_bulk::<$key, _>(&asked.ranges::<$key>()?)$($fallible)?)
            }
        }
    )*};
}
lookups! {
    range::RangeFilter<u64>, u64;
    range::RangeFilter<i64>, i64;
    range::RangeFilter<f64>, f64;
    range::RangeFilter<[u8]>, &[u8];
    range::MappedRangeFilter<u64>, u64;
    range::MappedRangeFilter<i64>, i64;
    range::MappedRangeFilter<f64>, f64;
    range::MappedRangeFilter<[u8]>, &[u8];
    range::gpu::RangeFilter<u64>, u64, ?;
    range::gpu::RangeFilter<i64>, i64, ?;
    range::gpu::RangeFilter<f64>, f64, ?;
}

impl Lookups for Nowhere {
    fn layout(&self) -> &Layout {
        match *self {}
    }

    fn fpr_of(&self, _: u64) -> f64 {
        match *self {}
    }

    fn may_contain(&self, _: &Asked<'_>, _: &mut [u8]) -> Result<()> {
        match *self {}
    }

    fn count_at_most(&self, _: &Asked<'_>) -> Result<Vec<u64>> {
        match *self {}
    }
}

impl<A: Lookups, B: Lookups> Lookups for Either<A, B> {
    fn layout(&self) -> &Layout {
        either!(self, |filter| filter.layout())
    }

    fn fpr_of(&self, length: u64) -> f64 {
        either!(self, |filter| filter.fpr_of(length))
    }

    fn may_contain(&self, asked: &Asked<'_>, answers: &mut [u8]) -> Result<()> {
        either!(self, |filter| filter.may_contain(asked, answers))
    }

    fn count_at_most(&self, asked: &Asked<'_>) -> Result<Vec<u64>> {
        either!(self, |filter| filter.count_at_most(asked))
    }
}

/// Settings of filters.
#[derive(Clone, Copy)]
struct Settings {
    bits_per_key: Option<f64>,
    fpr_at: Option<(f64, u64)>,
    seed: u64,
}

impl Settings {
    /// Builds a filter of keys in host memory.
    fn build<'a, K, Q>(&self, keys: &'a Batch) -> Result<range::RangeFilter<K>>
    where
        K: RangeKey + ?Sized + 'a,
        Q: Ordered<'a> + KeyOf<K>,
    {
        let mut builder = range::RangeFilter::<K>::builder().seed(self.seed);
        if let Some(bits) = self.bits_per_key {
            builder = builder.bits_per_key(bits);
        }
        if let Some((fpr, length)) = self.fpr_at {
            builder = builder.fpr_at(fpr, length);
        }
        Ok(builder.build_from(&Q::column(&host_pieces(keys)?, Use::Member)?)?)
    }
}

class! {
    /// Range filter: a set of known keys that answers whether any of them lies in a range, without the keys. A "no" is
    /// certain.
    ///
    /// `keys` is an array or a list; equal keys count once, nulls and NaNs are ignored.
    ///
    /// - `key` is their type: `"uint64"`, `"int64"` or `"float64"`, to which other numbers are converted, or `"bytes"`
    ///   for `str` and `bytes`. Strings count by their first 16 bytes.
    /// - `bits_per_key`, 3 to 60, by default 16: a range of `l` keys without a key of the filter gets a wrong "yes" at
    ///   a rate of at most `l / 2**(bits_per_key - 2)`. `fpr_at=(rate, l)` chooses the bits by this rate instead.
    /// - `seed` changes which other ranges get a "yes".
    /// - `device` is the place of the filter, which takes arrays of the host there too. A filter of `"bytes"` is on the
    ///   host. `threads` limits the number of threads of the build.
    ///
    /// Both ends of a range are included. A range with a null or a NaN as an end is empty, as is one that ends before
    /// it begins.
    ///
    /// >>> import warpset
    /// >>> squares = warpset.RangeFilter([i * i * 1000 for i in range(1000)], fpr_at=(0.01, 100))
    /// >>> squares.may_contain([8_900, 9_000, 10**9], [9_100, 9_000, 10**10]).tolist()
    /// [True, True, False]
    /// >>> squares.any_in(last=999), 4_000 in squares, squares.fpr_of(100) <= 0.01
    /// (True, True, True)
    RangeFilter(Filter), other {
        #[new]
        #[pyo3(
            signature = (
                keys, *, key=TypeName::default(), bits_per_key=None, fpr_at=None, seed=None, device=None, threads=None
            ),
            text_signature =
                "(keys, *, key='uint64', bits_per_key=None, fpr_at=None, seed=None, device=None, threads=None)"
        )]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            key: TypeName,
            bits_per_key: Option<f64>,
            fpr_at: Option<(f64, u64)>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Self> {
            let Some(key) = TYPES.iter().position(|name| *name == key.0) else {
                let why = format!("key={:?}: there are \"uint64\", \"int64\", \"float64\" and \"bytes\"", key.0);
                return Err(PyValueError::new_err(why));
            };
            if bits_per_key.is_some() && fpr_at.is_some() {
                return Err(PyValueError::new_err("bits_per_key and fpr_at: give one of them"));
            }
            let settings = Settings { bits_per_key, fpr_at, seed: seed.unwrap_or_default() };
            let (place, keys) = (Location::of(device)?, batch_of(key, keys)?);
            let built = run_watched(py, threads, None, move |_| Where::at(match key {
                0 => Either::First(Either::First(settings.build::<_, u64>(&keys)?)),
                1 => Either::First(Either::Second(settings.build::<_, i64>(&keys)?)),
                FLOATS => Either::Second(Either::First(settings.build::<_, f64>(&keys)?)),
                _ => Either::Second(Either::Second(settings.build::<_, &[u8]>(&keys)?)),
            }, &place))?;
            Ok(Self(Shared::new(built)))
        }

        /// Returns whether each range from one of `firsts` to one of `lasts` may have a key: an array of booleans, or
        /// `out`, filled. `form` as in `contains`.
        #[pyo3(signature = (firsts, lasts, /, *, form="bool", out=None, threads=None))]
        fn may_contain(
            &self,
            py: Python<'_>,
            firsts: &Bound<'_, PyAny>,
            lasts: &Bound<'_, PyAny>,
            form: &str,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            let (firsts, lasts) = (self.batch(py, firsts)?, self.batch(py, lasts)?);
            self.answers(py, &firsts, &lasts, form, out, threads)
        }

        /// Returns whether each key may be in the filter: an array of booleans, or `out`, filled. Nulls are in none.
        ///
        /// `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an Arrow
        /// array.
        #[pyo3(signature = (keys, /, *, form="bool", out=None, threads=None))]
        fn contains(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            form: &str,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            let keys = self.batch(py, keys)?;
            self.answers(py, &keys, &keys, form, out, threads)
        }

        /// Returns an upper bound of the number of different keys in each range from one of `firsts` to one of `lasts`,
        /// as an array of `uint64`, or `out`, filled. Each other key counts too at the rate of wrong answers.
        #[pyo3(signature = (firsts, lasts, /, *, out=None, threads=None))]
        fn count_at_most(
            &self,
            py: Python<'_>,
            firsts: &Bound<'_, PyAny>,
            lasts: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            let (firsts, lasts) = (self.batch(py, firsts)?, self.batch(py, lasts)?);
            let asked = Asked { firsts: &firsts, lasts: &lasts, open: (false, false) };
            let mut counts = Output::<u64>::new(py, firsts.len(), out)?;
            let found = self.0.read(py, threads, firsts.len(), |filter| {
                anywhere!(filter, |filter| filter.count_at_most(&asked))
            })?;
            counts.items().copy_from_slice(&found);
            Ok(counts.finish())
        }

        /// Returns whether there may be a key from `first` to `last`. A range has no end where that is `None`.
        #[pyo3(signature = (first=None, last=None))]
        fn any_in(
            &self,
            py: Python<'_>,
            first: Option<&Bound<'_, PyAny>>,
            last: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<bool> {
            // An end that is not used is a copy of the other one.
            let (Some(low), Some(high)) = (first.or(last), last.or(first)) else { return Ok(self.__len__(py)? > 0) };
            let one = |key: &Bound<'_, PyAny>| self.batch(py, PyList::new(py, [key])?.as_any());
            let (firsts, lasts) = (one(low)?, one(high)?);
            let asked = Asked { firsts: &firsts, lasts: &lasts, open: (first.is_none(), last.is_none()) };
            let mut answer = [0];
            self.0.read(py, None, 1, |filter| anywhere!(filter, |filter| filter.may_contain(&asked, &mut answer)))?;
            Ok(answer == [1])
        }

        fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            self.any_in(py, Some(key), Some(key))
        }

        /// Returns the number of different keys.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            ask!(self.0, py, |filter| length(filter.layout().keys()))
        }

        /// Returns the bytes of memory.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |filter| 8 * filter.layout().words())
        }

        /// Returns the bits of memory per key.
        #[getter]
        fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
            Ok(8.0 * self.nbytes(py)? as f64 / self.__len__(py)?.max(1) as f64)
        }

        /// Returns the rate at which single keys get a wrong "yes".
        #[getter]
        fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
            self.fpr_of(py, 1)
        }

        /// Returns a bound of the rate at which ranges of `length` keys get a wrong "yes".
        #[pyo3(signature = (length, /))]
        fn fpr_of(&self, py: Python<'_>, length: u64) -> PyResult<f64> {
            ask!(self.0, py, |filter| filter.fpr_of(length))
        }

        /// Whether no answer is wrong, because the keys are dense.
        #[getter]
        fn is_exact(&self, py: Python<'_>) -> PyResult<bool> {
            ask!(self.0, py, |filter| filter.layout().is_exact())
        }
    }
}

impl RangeFilter {
    /// Reads keys of the filter's type.
    fn batch(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Batch> {
        batch_of(self.0.read(py, None, 1, |filter| Ok(type_of(filter)))?, keys)
    }

    /// Returns whether each range may have a key.
    fn answers(
        &self,
        py: Python<'_>,
        firsts: &Batch,
        lasts: &Batch,
        form: &str,
        out: Option<&Bound<'_, PyAny>>,
        threads: Option<Threads>,
    ) -> PyResult<Py<PyAny>> {
        let asked = Asked { firsts, lasts, open: (false, false) };
        let mut answers = Answers::new(py, firsts.len(), form, out)?;
        let items = answers.items();
        self.0
            .read(py, threads, firsts.len(), |filter| anywhere!(filter, |filter| filter.may_contain(&asked, items)))?;
        answers.finish(py)
    }
}

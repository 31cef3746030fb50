//! Range filters of known keys.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpset::range::{self, KeyOf, Layout, RangeKey};

use crate::device::Location;
use crate::error::Result;
use crate::keys::Batch;
use crate::kinds::Either;
use crate::output::{Output, TypeName};
use crate::ranges::{Asked, FLOATS, Lookups, OfTypes, Ordered, TYPES, Use, batch, batch_of, type_named};
use crate::sorted_map::call::host_pieces;
use crate::structure::{Nowhere, Structure, Where, length};
use crate::threads::{Shared, Threads, run_watched};
use crate::{anywhere, ask, class, either, lookups, structure};

structure!(Unsigned: range::RangeFilter<u64>, range::MappedRangeFilter<u64>, range::gpu::RangeFilter<u64>);
structure!(Signed: range::RangeFilter<i64>, range::MappedRangeFilter<i64>, range::gpu::RangeFilter<i64>);
structure!(Floats: range::RangeFilter<f64>, range::MappedRangeFilter<f64>, range::gpu::RangeFilter<f64>);
structure!(Strings: range::RangeFilter<[u8]>, range::MappedRangeFilter<[u8]>, Nowhere);

/// Types of filters by their keys.
pub type Filter = OfTypes<Unsigned, Signed, Floats, Strings>;

impl Structure for Filter {
    const NAME: &'static str = "RangeFilter";

    fn describe(value: &Where<Self>) -> Result<String> {
        let (layout, of, fpr) = anywhere!(value, |filter| (filter.layout(), TYPES[filter.key()], filter.fpr_of(1)));
        let (keys, bytes) = (layout.keys(), 8 * layout.words());
        Ok(format!("{keys} keys of {of}, {bytes} bytes, fpr={fpr:.2e}"))
    }
}

/// Parameters and counts, whatever the type of keys.
trait Counts {
    /// Returns the parameters.
    fn layout(&self) -> &Layout;
    /// Returns a bound of the number of keys in each range.
    fn count_at_most(&self, asked: &Asked<'_>) -> Result<Vec<u64>>;
}

macro_rules! counts {
    ($($filter:ty, $key:ty $(, $fallible:tt)?;)*) => {$(
        lookups! { $filter, $key $(, $fallible)?; }

        impl Counts for $filter {
            fn layout(&self) -> &Layout {
                self.layout()
            }

            fn count_at_most(&self, asked: &Asked<'_>) -> Result<Vec<u64>> {
                Ok(self.count_at_most_bulk::<$key, _>(&asked.ranges::<$key>()?)$($fallible)?)
            }
        }
    )*};
}
counts! {
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

impl Counts for Nowhere {
    fn layout(&self) -> &Layout {
        match *self {}
    }

    fn count_at_most(&self, _: &Asked<'_>) -> Result<Vec<u64>> {
        match *self {}
    }
}

impl<A: Counts, B: Counts> Counts for Either<A, B> {
    fn layout(&self) -> &Layout {
        either!(self, |filter| filter.layout())
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
    RangeFilter(Filter), ranges {
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
            let key = type_named(&key)?;
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
            let (firsts, lasts) = (batch(&self.0, py, firsts)?, batch(&self.0, py, lasts)?);
            let asked = Asked { firsts: &firsts, lasts: &lasts, open: (false, false) };
            let mut counts = Output::<u64>::new(py, firsts.len(), out)?;
            let found = self.0.read(py, threads, firsts.len(), |filter| {
                anywhere!(filter, |filter| filter.count_at_most(&asked))
            })?;
            counts.items().copy_from_slice(&found);
            Ok(counts.finish())
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

        /// Whether no answer is wrong, because the keys are dense.
        #[getter]
        fn is_exact(&self, py: Python<'_>) -> PyResult<bool> {
            ask!(self.0, py, |filter| filter.layout().is_exact())
        }
    }
}

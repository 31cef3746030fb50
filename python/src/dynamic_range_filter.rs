//! Range filters with keys that are inserted and removed.

use pyo3::prelude::*;
use warpset::range::{self, DynamicBuilder, RangeKey};

use crate::device::Location;
use crate::error::{Failure, Result};
use crate::keys::Batch;
use crate::kinds::Either;
use crate::output::TypeName;
use crate::ranges::{FLOATS, Lookups, OfTypes, Ordered, TYPES, Use, batch, one, type_named};
use crate::sorted_map::call::host_pieces;
use crate::structure::{ALL_OF_IT, Nowhere, Structure, Where, combine, length};
use crate::threads::{Shared, Threads, run};
use crate::{anywhere, ask, changing, class, either, lookups, structure};

structure!(Unsigned: range::DynamicRangeFilter<u64>, range::MappedDynamicRangeFilter<u64>,
    range::gpu::DynamicRangeFilter<u64>);
structure!(Signed: range::DynamicRangeFilter<i64>, range::MappedDynamicRangeFilter<i64>,
    range::gpu::DynamicRangeFilter<i64>);
structure!(Floats: range::DynamicRangeFilter<f64>, range::MappedDynamicRangeFilter<f64>,
    range::gpu::DynamicRangeFilter<f64>);
structure!(Strings: range::DynamicRangeFilter<[u8]>, range::MappedDynamicRangeFilter<[u8]>, Nowhere);

/// Types of filters by their keys.
pub type Filter = OfTypes<Unsigned, Signed, Floats, Strings>;

impl Structure for Filter {
    const NAME: &'static str = "DynamicRangeFilter";

    fn describe(value: &Where<Self>) -> Result<String> {
        let (of, Slots { keys, capacity, bytes, .. }) =
            anywhere!(value, |filter| (TYPES[filter.key()], filter.slots()));
        Ok(format!("{keys} of {capacity} keys of {of}, {bytes} bytes"))
    }
}

/// Numbers of the slots of a filter.
struct Slots {
    keys: u64,
    capacity: u64,
    bytes: u64,
    load_factor: f64,
}

/// Numbers of the slots, whatever the type of keys.
trait Slotted {
    fn slots(&self) -> Slots;
}

/// Changes, whatever the type of keys.
trait Changes {
    /// Inserts keys.
    fn insert(&mut self, keys: &Batch) -> Result<()>;
    /// Removes keys; returns the number of removed ones.
    fn remove(&mut self, keys: &Batch) -> Result<u64>;
    /// Adds the keys of another filter.
    fn unite(&mut self, other: &Self) -> Result<()>;
    /// Removes all keys.
    fn clear(&mut self) -> Result<()>;
    /// Doubles the number of slots, or halves it.
    fn resize(&mut self, doubles: bool) -> Result<()>;
}

macro_rules! slotted {
    ($($filter:ty, $key:ty $(, $fallible:tt)?;)*) => {$(
        lookups! { $filter, $key $(, $fallible)?; }

        impl Slotted for $filter {
            fn slots(&self) -> Slots {
                Slots {
                    keys: self.len(),
                    capacity: self.layout().limit(),
                    bytes: self.memory_bytes(),
                    load_factor: self.load_factor(),
                }
            }
        }
    )*};
}

macro_rules! changes {
    ($($filter:ty, $key:ty $(, $fallible:tt)?;)*) => {$(
        slotted! { $filter, $key $(, $fallible)?; }

        impl Changes for $filter {
            fn insert(&mut self, keys: &Batch) -> Result<()> {
                Ok(self.insert_bulk::<$key>(&<$key>::column(&host_pieces(keys)?, Use::Member)?)?)
            }

            fn remove(&mut self, keys: &Batch) -> Result<u64> {
                Ok(self.remove_bulk::<$key>(&<$key>::column(&host_pieces(keys)?, Use::Member)?)?)
            }

            fn unite(&mut self, other: &Self) -> Result<()> {
                Ok(self.merge(other)?)
            }

            fn clear(&mut self) -> Result<()> {
                self.clear()$($fallible)?;
                Ok(())
            }

            fn resize(&mut self, doubles: bool) -> Result<()> {
                Ok(if doubles { self.double() } else { self.halve() }?)
            }
        }
    )*};
}

slotted! {
    range::MappedDynamicRangeFilter<u64>, u64;
    range::MappedDynamicRangeFilter<i64>, i64;
    range::MappedDynamicRangeFilter<f64>, f64;
    range::MappedDynamicRangeFilter<[u8]>, &[u8];
}
changes! {
    range::DynamicRangeFilter<u64>, u64;
    range::DynamicRangeFilter<i64>, i64;
    range::DynamicRangeFilter<f64>, f64;
    range::DynamicRangeFilter<[u8]>, &[u8];
    range::gpu::DynamicRangeFilter<u64>, u64, ?;
    range::gpu::DynamicRangeFilter<i64>, i64, ?;
    range::gpu::DynamicRangeFilter<f64>, f64, ?;
}

impl Slotted for Nowhere {
    fn slots(&self) -> Slots {
        match *self {}
    }
}

impl Changes for Nowhere {
    fn insert(&mut self, _: &Batch) -> Result<()> {
        match *self {}
    }

    fn remove(&mut self, _: &Batch) -> Result<u64> {
        match *self {}
    }

    fn unite(&mut self, _: &Self) -> Result<()> {
        match *self {}
    }

    fn clear(&mut self) -> Result<()> {
        match *self {}
    }

    fn resize(&mut self, _: bool) -> Result<()> {
        match *self {}
    }
}

impl<A: Slotted, B: Slotted> Slotted for Either<A, B> {
    fn slots(&self) -> Slots {
        either!(self, |filter| filter.slots())
    }
}

impl<A: Changes, B: Changes> Changes for Either<A, B> {
    fn insert(&mut self, keys: &Batch) -> Result<()> {
        either!(self, |filter| filter.insert(keys))
    }

    fn remove(&mut self, keys: &Batch) -> Result<u64> {
        either!(self, |filter| filter.remove(keys))
    }

    fn unite(&mut self, other: &Self) -> Result<()> {
        match (self, other) {
            (Either::First(here), Either::First(there)) => here.unite(there),
            (Either::Second(here), Either::Second(there)) => here.unite(there),
            _ => Err(Failure::value("the two filters have keys of different types: make both with the same `key`")),
        }
    }

    fn clear(&mut self) -> Result<()> {
        either!(self, |filter| filter.clear())
    }

    fn resize(&mut self, doubles: bool) -> Result<()> {
        either!(self, |filter| filter.resize(doubles))
    }
}

/// Settings of filters.
#[derive(Clone, Copy)]
struct Settings {
    n: u64,
    fpr_at: Option<(f64, u64)>,
    max_load: Option<f64>,
    seed: u64,
}

impl Settings {
    /// Builds an empty filter in host memory.
    fn build<K: RangeKey + ?Sized>(&self) -> Result<range::DynamicRangeFilter<K>> {
        let mut builder: DynamicBuilder<K> = range::DynamicRangeFilter::builder(self.n).seed(self.seed);
        if let Some((fpr, length)) = self.fpr_at {
            builder = builder.fpr_at(fpr, length);
        }
        if let Some(max_load) = self.max_load {
            builder = builder.max_load(max_load);
        }
        Ok(builder.build()?)
    }
}

class! {
    /// Range filter with keys that are added and removed: answers whether any of its keys lies in a range, without the
    /// keys. A "no" is certain.
    ///
    /// `n` is the expected number of keys; of equal keys each takes a slot. Adding to a full filter raises `FullError`
    /// and leaves it unchanged; `double()` makes room. Nulls and NaNs are no keys.
    ///
    /// - `key` is the type of keys: `"uint64"`, `"int64"` or `"float64"`, to which other numbers are converted, or
    ///   `"bytes"` for `str` and `bytes`. Strings count by their first 16 bytes.
    /// - `fpr_at=(rate, l)`, by default `(0.01, 100)`: a range of `l` keys without a key of the filter gets a wrong
    ///   "yes" at a rate of at most `rate` while the filter has `n` keys.
    /// - `max_load` is the largest share of used slots, 0.95 by default. `seed` changes which other ranges get a "yes".
    /// - `device` is the place of the filter, which takes arrays of the host there too. A filter of `"bytes"` is on the
    ///   host.
    ///
    /// Both ends of a range are included. A range with a null or a NaN as an end is empty, as is one that ends before
    /// it begins.
    ///
    /// >>> import warpset
    /// >>> times = warpset.DynamicRangeFilter(1000, fpr_at=(0.001, 60))
    /// >>> times.update([10_000, 20_000, 20_030])
    /// >>> times.may_contain([9_990, 20_010, 10**9], [10_049, 20_050, 10**9]).tolist()
    /// [True, True, False]
    /// >>> times.remove([20_030]), times.any_in(20_010, 20_050), 20_000 in times, len(times)
    /// (1, False, True, 2)
    DynamicRangeFilter(Filter), ranges {
        #[new]
        #[pyo3(
            signature = (n, *, key=TypeName::default(), fpr_at=None, max_load=None, seed=None, device=None),
            text_signature = "(n, *, key='uint64', fpr_at=None, max_load=None, seed=None, device=None)"
        )]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            n: u64,
            key: TypeName,
            fpr_at: Option<(f64, u64)>,
            max_load: Option<f64>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let settings = Settings { n, fpr_at, max_load, seed: seed.unwrap_or_default() };
            let (place, key) = (Location::of(device)?, type_named(&key)?);
            let built = run(py, None, ALL_OF_IT, || Where::at(match key {
                0 => Either::First(Either::First(settings.build()?)),
                1 => Either::First(Either::Second(settings.build()?)),
                FLOATS => Either::Second(Either::First(settings.build()?)),
                _ => Either::Second(Either::Second(settings.build()?)),
            }, &place))?;
            Ok(Self(Shared::new(built)))
        }

        /// Adds one key.
        fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
            let key = one(&self.0, py, key)?;
            Ok(self.0.write(py, None, 1, |filter| changing!(filter, |filter| filter.insert(&key)))?)
        }

        /// Adds the keys of an array or a list: all of them, or none if they do not fit.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn update(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<()> {
            let keys = batch(&self.0, py, keys)?;
            Ok(self.0.write(py, threads, keys.len(), |filter| changing!(filter, |filter| filter.insert(&keys)))?)
        }

        /// Removes one key, one of equal ones; returns whether there was one.
        fn discard(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            let key = one(&self.0, py, key)?;
            Ok(self.0.write(py, None, 1, |filter| changing!(filter, |filter| filter.remove(&key)))? > 0)
        }

        /// Removes one of each key; returns the number of keys removed.
        ///
        /// Remove only keys that were added: a key that was not may have the fingerprint of another key, and remove
        /// that.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn remove(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<u64> {
            let keys = batch(&self.0, py, keys)?;
            Ok(self.0.write(py, threads, keys.len(), |filter| changing!(filter, |filter| filter.remove(&keys)))?)
        }

        /// Removes all keys and keeps the memory.
        fn clear(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |filter| changing!(filter, |filter| filter.clear()))?)
        }

        /// Adds the keys of another filter of the same type of keys and seed, made for the same lengths of ranges, and
        /// for at least as low a rate or as many keys.
        fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
            combine(&self.0, &other.0, py, Changes::unite, Changes::unite)
        }

        /// Doubles the memory, for twice as many keys at the same rate for each number of them.
        fn double(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |filter| changing!(filter, |filter| filter.resize(true)))?)
        }

        /// Halves the memory, if the keys fit into it.
        fn halve(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |filter| changing!(filter, |filter| filter.resize(false)))?)
        }

        /// Returns the number of keys, repetitions included.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            ask!(self.0, py, |filter| length(filter.slots().keys))
        }

        /// Returns the most keys that fit.
        #[getter]
        fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |filter| filter.slots().capacity)
        }

        /// Returns the share of slots in use.
        #[getter]
        fn load_factor(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |filter| filter.slots().load_factor)
        }

        /// Returns the bytes of memory of the slots.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |filter| filter.slots().bytes)
        }
    }
}

//! Quotient filters: both kinds in one class.

use pyo3::prelude::*;
use warpset::prelude::{Count, Remove};
use warpset::quotient::gpu::DeviceSlotKind;
use warpset::quotient::{self, Builder, Duplicates};

use crate::device::Location;
use crate::error::{Failure, Result};
use crate::filter::numbers;
use crate::keys::{Batch, each_group, one_key};
use crate::kinds::{Either, Kinds, kind_of, no_kind};
use crate::structure::{ALL_OF_IT, Forms, Object, Structure, Where, keys_elsewhere, length};
use crate::threads::{ON_DEVICE, Shared, Threads, run};
use crate::{anywhere, ask, changing, class, either, structure, with_device_keys, with_key, with_keys};

structure!(RankSelect: quotient::RankSelectQuotientFilter, quotient::MappedRankSelectQuotientFilter,
    quotient::gpu::RankSelectQuotientFilter);
structure!(Standard: quotient::StandardQuotientFilter, quotient::MappedStandardQuotientFilter,
    quotient::gpu::StandardQuotientFilter);

/// Types of the class.
pub type Quotient = Kinds<RankSelect, Standard>;
type Host = <Quotient as Forms>::Host;
type OnDevice = <Quotient as Forms>::Device;

const KINDS: [&str; 2] = ["rank-select", "standard"];

impl Structure for Quotient {
    const NAME: &'static str = "QuotientFilter";

    fn describe(value: &Where<Self>) -> Result<String> {
        let (kind, duplicates) = (kind_of(value, KINDS), duplicates_of(value));
        let bytes = anywhere!(value, |filter| either!(filter, |filter| filter.memory_bytes()));
        Ok(format!("{bytes} bytes, fpr={:.2e}, kind={kind:?}, duplicates={duplicates:?}", fpr(value)?))
    }

    /// Whether all keys surely fit, since a copy takes at most one slot.
    fn has_room(value: &Where<Self>, keys: u64) -> bool {
        anywhere!(value, |filter| either!(filter, |filter| filter.len().saturating_add(keys)
            <= filter.layout().limit()))
    }
}

/// Treatments of duplicates, with their names.
const DUPLICATES: [(&str, Duplicates); 3] =
    [("dropped", Duplicates::Dropped), ("kept", Duplicates::Kept), ("counted", Duplicates::Counted)];

/// Returns the name of a treatment of duplicates.
pub fn name_of(duplicates: Duplicates) -> &'static str {
    DUPLICATES.iter().find(|named| named.1 == duplicates).map_or("?", |named| named.0)
}

fn duplicates_of(value: &Where<Quotient>) -> &'static str {
    name_of(anywhere!(value, |filter| either!(filter, |filter| filter.layout().duplicates())))
}

fn fpr(value: &Where<Quotient>) -> Result<f64> {
    Ok(match value {
        Where::Host(filter) => either!(filter, |filter| filter.fpr()),
        Where::Mapped(filter, _) => either!(filter, |filter| filter.fpr()),
        Where::Device(filter) => either!(filter, |filter| filter.fpr()?),
    })
}

/// Settings of any kind of slots.
pub struct Settings {
    n: u64,
    fpr: Option<f64>,
    duplicates: Duplicates,
    key_bits: Option<u32>,
    max_load: Option<f64>,
    seed: Option<u64>,
}

impl Settings {
    /// Checks the name of the treatment of duplicates.
    pub fn new(
        n: u64,
        fpr: Option<f64>,
        duplicates: &str,
        key_bits: Option<u32>,
        max_load: Option<f64>,
        seed: Option<u64>,
    ) -> Result<Settings> {
        let named = DUPLICATES.iter().find(|named| named.0 == duplicates).ok_or_else(|| {
            Failure::value(format!("duplicates={duplicates:?}: there are \"dropped\", \"kept\" and \"counted\""))
        })?;
        Ok(Settings { n, fpr, duplicates: named.1, key_bits, max_load, seed })
    }

    /// Returns the builder of filters with slots of one kind.
    pub fn builder<K: DeviceSlotKind>(&self) -> Builder<K> {
        let mut builder = Builder::<K>::with_capacity(self.n).duplicates(self.duplicates);
        if let Some(fpr) = self.fpr {
            builder = builder.fpr(fpr);
        }
        if let Some(bits) = self.key_bits {
            builder = builder.exact(bits);
        }
        if let Some(max_load) = self.max_load {
            builder = builder.max_load(max_load);
        }
        if let Some(seed) = self.seed {
            builder = builder.seed(seed);
        }
        builder
    }

    /// Builds an empty filter with slots of one kind.
    fn build<K: DeviceSlotKind>(
        &self,
        place: &Location,
        host: fn(quotient::QuotientFilter<K>) -> Host,
        on_device: fn(quotient::gpu::QuotientFilter<K>) -> OnDevice,
    ) -> Result<Where<Quotient>> {
        let builder = self.builder::<K>();
        Ok(match place {
            Location::Cpu => Where::Host(host(builder.build()?)),
            Location::On(device) => Where::Device(on_device(builder.on(device).build()?)),
        })
    }
}

/// Removes one copy of each key; returns the number of copies removed.
fn remove(object: &Object<Quotient>, py: Python<'_>, batch: &Batch, threads: Option<Threads>) -> PyResult<u64> {
    Ok(match batch {
        Batch::Host(parts) => {
            let mut removed = 0;
            each_group(py, parts, |group, places| {
                removed += object.write(py, threads, places.len(), |filter| {
                    group.iter().try_fold(0, |removed, piece| {
                        let more = changing!(&mut *filter, |filter| either!(filter, |filter| with_keys!(
                            piece.keys(),
                            |keys| { Remove::remove_bulk(filter, keys).map_err(Failure::from) }
                        )))?;
                        Ok(removed + more)
                    })
                })?;
                Ok(())
            })?;
            removed
        }
        Batch::Device(keys) => object.write(py, threads, ON_DEVICE, |filter| {
            let Where::Device(filter) = filter else { return Err(keys_elsewhere("in host memory")) };
            let adopted = keys.adopt(Quotient::device(filter))?;
            Ok(either!(filter, |filter| with_device_keys!(&adopted, |keys| filter.remove_device(keys))?))
        })?,
    })
}

class! {
    /// Quotient filter: a set or multiset of keys with counts, removal, merging and growth.
    ///
    /// `n` is the expected number of different keys, or of copies if `duplicates="kept"`. `fpr` is the rate of false
    /// positives, 0.01 by default. Adding to a full filter raises `FullError` and leaves it unchanged; `double()` makes
    /// room.
    ///
    /// - `kind`: `"rank-select"` has lookups of the same cost at any load; `"standard"` is for large batches into
    ///   half-empty filters on a GPU.
    /// - `duplicates`: `"dropped"` ignores further copies of a key, so the filter is a set. `"kept"` stores each copy.
    ///   `"counted"` stores counts in little memory, with `"rank-select"` only.
    /// - `key_bits` makes the filter exact for integers from 0 to `2**key_bits - 1`, without false positives; `fpr` is
    ///   ignored.
    /// - `max_load` is the largest share of used slots. `seed` changes which other keys are false positives.
    ///
    /// Keys are `int`, `str` and `bytes`; equal values are equal keys, whatever array they come from. `len` is the
    /// number of stored copies.
    ///
    /// >>> import warpset
    /// >>> words = warpset.QuotientFilter(1000, fpr=1e-6, duplicates="counted")
    /// >>> words.update(["ash", "birch", "ash"])
    /// >>> words.count(["ash", "birch", "fir"]).tolist()
    /// [2, 1, 0]
    /// >>> words.remove(["ash", "fir"])
    /// 1
    /// >>> len(words), "ash" in words, words.discard("fir")
    /// (2, True, False)
    QuotientFilter(Quotient), filter {
        #[new]
        #[pyo3(signature = (
            n, *, fpr=None, kind="rank-select", duplicates="dropped", key_bits=None, max_load=None, seed=None, device=None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            n: u64,
            fpr: Option<f64>,
            kind: &str,
            duplicates: &str,
            key_bits: Option<u32>,
            max_load: Option<f64>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let place = Location::of(device)?;
            let settings = Settings::new(n, fpr, duplicates, key_bits, max_load, seed)?;
            let built = run(py, None, ALL_OF_IT, || match kind {
                "rank-select" => settings.build(&place, Either::First, Either::First),
                "standard" => settings.build(&place, Either::Second, Either::Second),
                _ => Err(no_kind(kind, &KINDS)),
            });
            Ok(Self(Shared::new(built?)))
        }

        /// Returns the number of stored copies of each key as an array of `uint64`, or `out`, filled. It is never less
        /// than the number added, and 0 or 1 if duplicates are dropped. Nulls have 0. For keys on a device the counts
        /// are on the device.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn count(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            numbers(&self.0, py, keys, out, threads, 0, |filter, keys, counts| {
                anywhere!(filter, |filter| either!(filter, |filter| {
                    Ok(with_keys!(keys, |keys| filter.count_bulk_into(keys, counts))?)
                }))
            }, |filter, keys, counts| {
                either!(filter, |filter| with_device_keys!(keys, |keys| filter.count_device(keys, counts))?);
                Ok(())
            })
        }

        /// Returns the number of stored copies of one key, which is never less than the number added.
        fn count_one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
            let (key, mut count) = (one_key(key)?, [0]);
            self.0.read(py, None, 1, |filter| {
                anywhere!(filter, |filter| either!(filter, |filter| {
                    Ok(with_key!(&key, |key| filter.count_bulk_into(&[key], &mut count))?)
                }))
            })?;
            Ok(count[0])
        }

        /// Removes one copy of each key; returns the number of copies removed.
        ///
        /// Remove only keys that were added: a key that was not may have the fingerprint of another key, and remove
        /// that.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn remove(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<u64> {
            remove(&self.0, py, &Batch::of(keys)?, threads)
        }

        /// Removes one copy of one key; returns whether there was one.
        fn discard(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            let key = one_key(key)?;
            let removed = self.0.write(py, None, 1, |filter| {
                changing!(filter, |filter| either!(filter, |filter| {
                    Ok(with_key!(&key, |key| Remove::remove_bulk(filter, &[key]))?)
                }))
            })?;
            Ok(removed > 0)
        }

        /// Doubles the memory, for twice as many keys at the same rate of false positives per key.
        fn double(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |filter| {
                changing!(filter, |filter| either!(filter, |filter| Ok(filter.double()?)))
            })?)
        }

        /// Halves the memory, if the keys fit into it.
        fn halve(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |filter| {
                changing!(filter, |filter| either!(filter, |filter| Ok(filter.halve()?)))
            })?)
        }

        /// Returns the number of stored copies; of equal keys one, if duplicates are dropped.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            ask!(self.0, py, |filter| length(either!(filter, |filter| filter.len())))
        }

        /// Returns the share of slots in use.
        #[getter]
        fn load_factor(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |filter| either!(filter, |filter| filter.load_factor()))
        }

        /// Returns the most slots for keys: different keys if duplicates are dropped, copies if they are kept.
        #[getter]
        fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |filter| either!(filter, |filter| filter.layout().limit()))
        }

        /// Returns the bytes of memory of the slots.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |filter| either!(filter, |filter| filter.memory_bytes()))
        }

        /// Returns the current rate of false positives.
        #[getter]
        fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
            Ok(self.0.read(py, None, ALL_OF_IT, fpr)?)
        }

        /// Returns `"rank-select"` or `"standard"`.
        #[getter]
        fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
            Ok(self.0.read(py, None, 1, |filter| Ok(kind_of(filter, KINDS)))?)
        }

        /// Returns `"dropped"`, `"kept"` or `"counted"`.
        #[getter]
        fn duplicates(&self, py: Python<'_>) -> PyResult<&'static str> {
            Ok(self.0.read(py, None, 1, |filter| Ok(duplicates_of(filter)))?)
        }
    }
}

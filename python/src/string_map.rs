//! Exact maps from strings to integers that never change.

use pyo3::prelude::*;
use warpset::mphf::{self, ConsensusKind, HashKind, PlacementKind, RecSplitKind, StoredFunction, Strings};
use warpset_base::bitmap::options_to;

use crate::error::Result;
use crate::keys::{Batch, OneKey, no_strings};
use crate::kinds::{Either, Kinds};
use crate::recsplit::{HashKinds, Settings, any_kind, as_one, kind_of};
use crate::sorted_map::call::{host_parts, host_pieces, values_of};
use crate::static_sets::lookups::{Values, value_of_one};
use crate::structure::{Nowhere, Structure, Where, length};
use crate::threads::{Shared, Threads, run_watched};
use crate::{anywhere, ask, class, structure};

structure!(RecSplitMap: mphf::StringMap<RecSplitKind>, mphf::MappedStringMap<RecSplitKind>, Nowhere);
structure!(ConsensusMap: mphf::StringMap<ConsensusKind>, mphf::MappedStringMap<ConsensusKind>, Nowhere);
structure!(PlacementMap: mphf::StringMap, mphf::MappedStringMap, Nowhere);

/// Types of maps, by the kinds of their functions.
pub type Map = Kinds<RecSplitMap, Kinds<ConsensusMap, PlacementMap>>;

impl Structure for Map {
    const NAME: &'static str = "StringMap";

    fn describe(value: &Where<Self>) -> Result<String> {
        let kind = kind_of(value);
        Ok(anywhere!(value, |map| any_kind!(map, |map| format!(
            "{} keys, kind={kind:?}, {} bytes",
            map.len(),
            map.memory_bytes()
        ))))
    }
}

/// Lookups of a map of any kind.
trait Lookups {
    /// Returns the number of keys.
    fn len(&self) -> u64;
    /// Returns the bytes of memory.
    fn memory_bytes(&self) -> u64;
    /// Returns the value of each key.
    fn get_bulk(&self, keys: &[&[u8]]) -> Vec<Option<u64>>;
}

impl<M: HashKind, W: AsRef<[u64]>> Lookups for StoredFunction<Strings<M>, W> {
    fn len(&self) -> u64 {
        self.len()
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn get_bulk(&self, keys: &[&[u8]]) -> Vec<Option<u64>> {
        self.get_bulk(keys)
    }
}

impl Lookups for Nowhere {
    fn len(&self) -> u64 {
        match *self {}
    }

    fn memory_bytes(&self) -> u64 {
        match *self {}
    }

    fn get_bulk(&self, _: &[&[u8]]) -> Vec<Option<u64>> {
        match *self {}
    }
}

/// Returns the value of each key.
fn look_up(map: &Where<Map>, keys: &[&[u8]]) -> Vec<Option<u64>> {
    anywhere!(map, |map| any_kind!(map, |map| map.get_bulk(keys)))
}

class! {
    /// String map: an exact map from known strings, or any bytes, to integers that never changes: the keys' bytes, a
    /// perfect hash function, and 16 bytes per key.
    ///
    /// `keys` is an array or a list of different `str` and `bytes`, with one of `values` per key: integers from 0 to
    /// `2**64 - 1`. A repeated key raises `DuplicateKeyError`. Keys that are null are ignored with their values.
    ///
    /// - `kind` of the function: `"placement"`, which is asked fastest, `"consensus"` or `"recsplit"`, as in
    ///   `PerfectHash`. `seed` changes the order of the keys in memory.
    /// - `threads` limits the number of threads of the build, and `progress` is called now and then as `progress(done,
    ///   keys)`.
    ///
    /// The map is in host memory or in a mapped file, not on devices.
    ///
    /// >>> import warpset
    /// >>> heights = warpset.StringMap(["ash", "birch", "fir", "oak"], [35, 25, 60, 40])
    /// >>> heights.get("fir"), heights.get("rose"), "oak" in heights, len(heights)
    /// (60, None, True, 4)
    /// >>> values, found = heights.get_many(["oak", "rose"], default=7)
    /// >>> values.tolist(), found.tolist()
    /// ([40, 7], [True, False])
    StringMap(Map), other {
        #[new]
        #[pyo3(signature = (keys, values, *, kind="placement", seed=None, threads=None, progress=None))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            values: &Bound<'_, PyAny>,
            kind: &str,
            seed: Option<u64>,
            threads: Option<Threads>,
            progress: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let settings = Settings::new(kind, None, None, None, None, seed)?;
            let (keys, values) = (Batch::of(keys)?, Batch::of(values)?);
            let built = run_watched(py, threads, progress, move |watch| {
                let values = values_of::<u64>(&host_pieces(&keys)?, &host_pieces(&values)?)?;
                as_one(host_parts(&keys)?, |keys| {
                    let keys = keys.strings()?;
                    macro_rules! built {
                        ($kind:expr) => {
                            settings.of(mphf::StringMap::builder_of_kind($kind), watch).build_from(keys, &values)?
                        };
                    }
                    Ok(Where::Host(match settings.kind {
                        HashKinds::RecSplit => Either::First(built!(RecSplitKind)),
                        HashKinds::Consensus => Either::Second(Either::First(built!(ConsensusKind))),
                        HashKinds::Placement => Either::Second(Either::Second(built!(PlacementKind))),
                    }))
                })
            })?;
            Ok(Self(Shared::new(built)))
        }

        /// Returns the number of keys.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            ask!(self.0, py, |map| length(any_kind!(map, |map| map.len())))
        }

        /// Returns the bytes of memory, those of the keys among them.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |map| any_kind!(map, |map| map.memory_bytes()))
        }

        /// Returns `"recsplit"`, `"consensus"` or `"placement"`.
        #[getter]
        fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
            Ok(self.0.read(py, None, 1, |value| Ok(kind_of(value)))?)
        }

        /// Returns the values of keys as an array of `uint64`, `default` for other keys and nulls, and whether each key
        /// has one: new arrays, or `out` and `found`, filled.
        #[pyo3(signature = (keys, /, default=0, *, out=None, found=None, threads=None))]
        fn get_many(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            default: i128,
            out: Option<&Bound<'_, PyAny>>,
            found: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
            let call = Values { map: &self.0, py, threads, default };
            call.of::<u64>(&Batch::of(keys)?, out, found, |map, keys, values, flags| {
                options_to(values, flags, look_up(map, keys.strings()?));
                Ok(())
            }, |map, _, _| any_kind!(map, |map| match *map {}))
        }

        /// Returns the value of a key, a `str` or `bytes`; or `default` if it has none.
        #[pyo3(signature = (key, /, default=None))]
        fn get(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            value_of_one(&self.0, py, key, default, |map, key| match key {
                OneKey::Bytes(bytes) => Ok(look_up(map, &[bytes])[0]),
                OneKey::Word(_) => Err(no_strings()),
            })
        }

        fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            Ok(self.get(py, key, None)?.is_some())
        }
    }
}

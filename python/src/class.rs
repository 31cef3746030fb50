//! Methods shared by classes.

/// Class of structures that can be saved: the methods of every such class, those of filters if the kind is `filter`,
/// of filters for ranges if it is `ranges`, and those in the block.
#[macro_export]
macro_rules! class {
    (
        $(#[$doc:meta])*
        $class:ident($family:ty), $kind:ident { $($own:tt)* }
    ) => {
        $crate::class! { @methods $kind [$(#[$doc])*] $class $family { $($own)* } }
    };
    (@methods filter [$($doc:tt)*] $class:ident $family:ty { $($own:tt)* }) => {
        $crate::class! { @class [$($doc)*] $class $family {
            /// Adds one key: an `int`, `str` or `bytes`.
            fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::filter::add::<$family>(&self.0, py, key)
            }

            /// Adds the keys of an array, or of an iterable of keys or of arrays, which is read piece by piece.
            ///
            /// Nulls are ignored. If an array does not fit, none of its keys are added; earlier arrays of an iterable,
            /// a chunked array or a stream are. Ctrl-C stops a long call after some of its keys. `threads` limits the
            /// number of threads (default: all of the machine).
            #[pyo3(signature = (keys, /, *, threads=None))]
            fn update(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<$crate::threads::Threads>) -> PyResult<()> {
                $crate::filter::update::<$family>(&self.0, py, keys, threads)
            }

            /// Adds keys and returns which of them were new; of equal keys at most the first is. `form` and `out` as in
            /// `contains`.
            #[pyo3(signature = (keys, /, *, form="bool", out=None, threads=None))]
            fn test_and_add(
                &self,
                py: Python<'_>,
                keys: &Bound<'_, PyAny>,
                form: &str,
                out: Option<&Bound<'_, PyAny>>,
                threads: Option<$crate::threads::Threads>,
            ) -> PyResult<Py<PyAny>> {
                $crate::filter::test_and_add::<$family>(&self.0, py, keys, form, out, threads)
            }

            /// Removes all keys and keeps the memory.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                Ok(self.0.write(py, None, $crate::structure::ALL_OF_IT, |filter| {
                    $crate::changing!(filter, |filter| $crate::filter::Changes::remove_all(filter))
                })?)
            }

            /// Adds the contents of another filter with the same parameters; quotient filters may differ in size.
            fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                use $crate::filter::Changes;
                $crate::structure::combine(&self.0, &other.0, py, Changes::unite, Changes::unite)
            }

            fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
                let both = Self($crate::structure::copy(&self.0, py, None)?);
                both.merge(py, other)?;
                Ok(both)
            }

            fn __ior__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                self.merge(py, other)
            }

            $($own)*
        } lookups }
    };
    (@methods static_filter [$($doc:tt)*] $class:ident $family:ty { $($own:tt)* }) => {
        $crate::class! { @class [$($doc)*] $class $family { $($own)* } lookups }
    };
    (@methods ranges [$($doc:tt)*] $class:ident $family:ty { $($own:tt)* }) => {
        $crate::class! { @whole [$($doc)*] [] $class $family {
            /// Returns whether each range from one of `firsts` to one of `lasts` may have a key: an array of booleans,
            /// or `out`, filled. `form` as in `contains`.
            #[pyo3(signature = (firsts, lasts, /, *, form="bool", out=None, threads=None))]
            fn may_contain(
                &self,
                py: Python<'_>,
                firsts: &Bound<'_, PyAny>,
                lasts: &Bound<'_, PyAny>,
                form: &str,
                out: Option<&Bound<'_, PyAny>>,
                threads: Option<$crate::threads::Threads>,
            ) -> PyResult<Py<PyAny>> {
                let batch = |keys| $crate::ranges::batch::<$family>(&self.0, py, keys);
                $crate::ranges::answers::<$family>(&self.0, py, (&batch(firsts)?, &batch(lasts)?), form, out, threads)
            }

            /// Returns whether each key may be in the filter: an array of booleans, or `out`, filled. Nulls are in
            /// none.
            ///
            /// `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
            /// Arrow array.
            #[pyo3(signature = (keys, /, *, form="bool", out=None, threads=None))]
            fn contains(
                &self,
                py: Python<'_>,
                keys: &Bound<'_, PyAny>,
                form: &str,
                out: Option<&Bound<'_, PyAny>>,
                threads: Option<$crate::threads::Threads>,
            ) -> PyResult<Py<PyAny>> {
                let keys = $crate::ranges::batch::<$family>(&self.0, py, keys)?;
                $crate::ranges::answers::<$family>(&self.0, py, (&keys, &keys), form, out, threads)
            }

            /// Returns whether there may be a key from `first` to `last`. A range has no end where that is `None`.
            #[pyo3(signature = (first=None, last=None))]
            fn any_in(
                &self,
                py: Python<'_>,
                first: Option<&Bound<'_, PyAny>>,
                last: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<bool> {
                $crate::ranges::any_in::<$family>(&self.0, py, first, last)
            }

            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                self.any_in(py, Some(key), Some(key))
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
                $crate::ask!(self.0, py, |filter| $crate::ranges::Lookups::fpr_of(filter, length))
            }

            $($own)*
        } }
    };
    (@methods other [$($doc:tt)*] $class:ident $family:ty { $($own:tt)* }) => {
        $crate::class! { @whole [$($doc)*] [] $class $family { $($own)* } }
    };
    (@methods mapping [$($doc:tt)*] $class:ident $family:ty { $($own:tt)* }) => {
        $crate::class! { @whole [$($doc)*] [mapping] $class $family { $($own)* } }
    };
    (@class [$($doc:tt)*] $class:ident $family:ty { $($own:tt)* } lookups) => {
        $crate::class! { @whole [$($doc)*] [] $class $family {
            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                $crate::filter::contains_one::<$family>(&self.0, py, key)
            }

            /// Returns whether each key is in the set or map, or may be in the filter: an array of booleans, or `out`,
            /// filled. Nulls are in none.
            ///
            /// `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
            /// Arrow array. For keys on a device the answers are booleans on the device.
            #[pyo3(signature = (keys, /, *, form="bool", out=None, threads=None))]
            fn contains(
                &self,
                py: Python<'_>,
                keys: &Bound<'_, PyAny>,
                form: &str,
                out: Option<&Bound<'_, PyAny>>,
                threads: Option<$crate::threads::Threads>,
            ) -> PyResult<Py<PyAny>> {
                $crate::filter::contains::<$family>(&self.0, py, keys, form, out, threads)
            }

            /// Counts the keys that are in the set or map, or may be in the filter.
            #[pyo3(signature = (keys, /, *, threads=None))]
            fn count_contained(
                &self,
                py: Python<'_>,
                keys: &Bound<'_, PyAny>,
                threads: Option<$crate::threads::Threads>,
            ) -> PyResult<usize> {
                $crate::filter::count_contained::<$family>(&self.0, py, keys, threads)
            }

            $($own)*
        } }
    };
    (@whole [$($doc:tt)*] [$($option:ident)*] $class:ident $family:ty { $($own:tt)* }) => {
        $($doc)*
        #[pyclass(frozen, weakref, module = "warpset" $(, $option)*)]
        pub struct $class(pub $crate::structure::Object<$family>);

        #[pymethods]
        impl $class {
            /// Writes a file that Warpset reads in every language and on every backend.
            fn save(&self, py: Python<'_>, path: $crate::files::FilePath) -> PyResult<()> {
                $crate::structure::save(&self.0, py, &path.0)
            }

            /// Reads a file that `save` wrote.
            #[staticmethod]
            #[pyo3(signature = (path, /, *, device=None))]
            fn load(
                py: Python<'_>,
                path: $crate::files::FilePath,
                device: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                $crate::structure::load(py, &path.0, device).map(Self)
            }

            /// Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
            /// `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
            /// may replace it. `pickle` stores the file's name.
            #[staticmethod]
            fn mmap(py: Python<'_>, path: $crate::files::FilePath) -> PyResult<Self> {
                $crate::structure::map(py, path.0).map(Self)
            }

            /// Reads `bytes(…)` of such a structure.
            #[staticmethod]
            #[pyo3(signature = (data, /, *, device=None))]
            fn from_bytes(py: Python<'_>, data: &Bound<'_, PyAny>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
                $crate::structure::from_bytes(py, data, device).map(Self)
            }

            fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
                $crate::structure::to_bytes(&self.0, py)
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                $crate::structure::reduce(&slf.get().0, slf.as_any())
            }

            /// Copies the structure, into host memory if it is in a mapped file.
            fn copy(&self, py: Python<'_>) -> PyResult<Self> {
                $crate::structure::copy(&self.0, py, None).map(Self)
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
                self.copy(py)
            }

            fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
                self.copy(py)
            }

            /// Copies the structure to another device, or to the host with `"cpu"`.
            fn to(&self, py: Python<'_>, device: &Bound<'_, PyAny>) -> PyResult<Self> {
                let place = $crate::device::Location::of(Some(device))?;
                $crate::structure::copy(&self.0, py, Some(&place)).map(Self)
            }

            /// Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on.
            #[getter]
            fn device(&self, py: Python<'_>) -> PyResult<String> {
                Ok(self.0.read(py, None, 1, |value| Ok(value.place()))?)
            }

            fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
                match other.cast::<Self>() {
                    Ok(other) => $crate::structure::equal(&self.0, &other.get().0, py),
                    Err(_) => Ok(false),
                }
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                $crate::structure::describe(&self.0, py)
            }

            $($own)*
        }
    };
}

//! Warpset for Python: the module `warpset._warpset`, re-exported by the package `warpset`.
//!
//! This crate contains no algorithm. Its classes convert arguments to slices, on the host or on a device, and call the
//! other crates.

mod arrow;
mod bloom;
mod class;
mod device;
mod dynamic_range_filter;
mod error;
mod files;
mod filter;
mod fuse;
mod keys;
mod kinds;
mod kmers;
mod maplet;
mod output;
mod quotient;
mod range_filter;
mod ranges;
mod recsplit;
mod sequence_filter;
mod sequences;
mod sorted_map;
mod static_function;
mod static_sets;
mod string_map;
mod structure;
mod threads;

/// Sets, filters, dictionaries and perfect hash functions on CPUs and NVIDIA GPUs.
#[pyo3::pymodule(gil_used = false)]
mod _warpset {
    #[pymodule_export]
    use super::arrow::BooleanArray;
    #[pymodule_export]
    use super::bloom::{BlockedBloom, SplitBlockBloom};
    #[pymodule_export]
    use super::device::{Device, DeviceArray, devices};
    #[pymodule_export]
    use super::dynamic_range_filter::DynamicRangeFilter;
    #[pymodule_export]
    use super::error::{DeviceError, DuplicateKeyError, FileError, FullError, OutOfMemoryError};
    #[pymodule_export]
    use super::files::load;
    #[pymodule_export]
    use super::fuse::BinaryFuse;
    #[pymodule_export]
    use super::kmers::{KmerCounter, KmerIterator};
    #[pymodule_export]
    use super::maplet::Maplet;
    #[pymodule_export]
    use super::quotient::QuotientFilter;
    #[pymodule_export]
    use super::range_filter::RangeFilter;
    #[pymodule_export]
    use super::recsplit::{PerfectHash, StaticFilter};
    #[pymodule_export]
    use super::sequence_filter::SequenceFilter;
    #[pymodule_export]
    use super::sequences::minimizers;
    #[pymodule_export]
    use super::sorted_map::SortedMap;
    #[pymodule_export]
    use super::static_function::StaticFunction;
    #[pymodule_export]
    use super::static_sets::{StaticMap, StaticSet};
    #[pymodule_export]
    use super::string_map::StringMap;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyAnyMethods;
        module.setattr("__version__", env!("CARGO_PKG_VERSION"))?;
        super::threads::hear_of_forks(module.py())
    }
}

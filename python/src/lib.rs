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
    use super::{
        arrow::BooleanArray,
        bloom::{BlockedBloom, SplitBlockBloom},
        device::{Device, DeviceArray, devices},
        dynamic_range_filter::DynamicRangeFilter,
        error::{DeviceError, DuplicateKeyError, FileError, FullError, OutOfMemoryError},
        files::load,
        fuse::BinaryFuse,
        kmers::{KmerCounter, KmerIterator},
        maplet::Maplet,
        quotient::QuotientFilter,
        range_filter::RangeFilter,
        recsplit::{PerfectHash, StaticFilter},
        sequence_filter::SequenceFilter,
        sequences::minimizers,
        sorted_map::SortedMap,
        static_function::StaticFunction,
        static_sets::{StaticMap, StaticSet},
        string_map::StringMap,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyAnyMethods;
        module.setattr("__version__", env!("CARGO_PKG_VERSION"))?;
        super::threads::hear_of_forks(module.py())
    }
}

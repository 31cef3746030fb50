//! Bloom filters.

use pyo3::prelude::*;
use warpset::bloom::{self, BlockedBuilder, SplitBlockBuilder};

use crate::device::Location;
use crate::error::{Failure, Result};
use crate::structure::{ALL_OF_IT, Where};
use crate::threads::{Shared, run};
use crate::{anywhere, class, structure};

/// Closure for `repr`: size and rate.
macro_rules! size_and_rate {
    () => {
        |value: &Where<Self>| {
            let (bytes, fpr) = match value {
                Where::Host(filter) => (filter.memory_bytes(), filter.fpr()),
                Where::Mapped(filter, _) => (filter.memory_bytes(), filter.fpr()),
                Where::Device(filter) => (filter.memory_bytes(), filter.fpr()?),
            };
            Ok(format!("{bytes} bytes, fpr={fpr:.2e}"))
        }
    };
}

structure!(SplitBlock = "SplitBlockBloom":
    bloom::SplitBlockBloom, bloom::MappedSplitBlockBloom, bloom::gpu::SplitBlockBloom; size_and_rate!());
structure!(Blocked = "BlockedBloom":
    bloom::BlockedBloom, bloom::MappedBlockedBloom, bloom::gpu::BlockedBloom; size_and_rate!());

/// Class of a Bloom filter: shared properties and operators, with the class's own constructor.
macro_rules! bloom_filter {
    ($(#[$doc:meta])* $class:ident($family:ty) { $($own:tt)* }) => {
        class! {
            $(#[$doc])*
            $class($family), filter {
                /// Keeps the keys that may be in both filters. The rate of false positives is at most the larger one.
                fn intersect(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                    crate::structure::combine(&self.0, &other.0, py, |filter, other| Ok(filter.intersect(other)?),
                        |filter, other| Ok(filter.intersect(other)?))
                }

                fn __and__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
                    let both = Self(crate::structure::copy(&self.0, py, None)?);
                    both.intersect(py, other)?;
                    Ok(both)
                }

                fn __iand__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                    self.intersect(py, other)
                }

                /// Estimates the number of different keys from the share of set bits; `OverflowError` if all bits are
                /// set.
                fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                    let len: f64 = self.0.read(py, None, ALL_OF_IT, |filter| Ok(match filter {
                        Where::Host(filter) => filter.estimated_len(),
                        Where::Mapped(filter, _) => filter.estimated_len(),
                        Where::Device(filter) => filter.estimated_len()?,
                    }))?;
                    if !len.is_finite() {
                        let why = "all bits of the filter are set, which any number of keys may have done: make a larger one";
                        return Err(Failure::overflow(why).into());
                    }
                    Ok(len.round() as usize)
                }

                fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
                    Ok(self.0.read(py, None, ALL_OF_IT, |filter| Ok(match filter {
                        Where::Host(filter) => filter.count_ones() > 0,
                        Where::Mapped(filter, _) => filter.count_ones() > 0,
                        Where::Device(filter) => filter.count_ones()? > 0,
                    }))?)
                }

                /// Returns the bytes of memory of the bits.
                #[getter]
                fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
                    Ok(self.0.read(py, None, 1, |filter| Ok(anywhere!(filter, |filter| filter.memory_bytes())))?)
                }

                /// Returns the current rate of false positives.
                #[getter]
                fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
                    Ok(self.0.read(py, None, ALL_OF_IT, |filter| Ok(match filter {
                        Where::Host(filter) => filter.fpr(),
                        Where::Mapped(filter, _) => filter.fpr(),
                        Where::Device(filter) => filter.fpr()?,
                    }))?)
                }

                $($own)*
            }
        }
    };
}

bloom_filter! {
    /// Apache Parquet's split-block Bloom filter: fast, with about 1 % or 0.1 % false positives.
    ///
    /// `n` is the expected number of different keys. The size follows from the rate of false positives `fpr`, 0.01 by
    /// default, or from `bits_per_key`. Keys are `int`, `str` and `bytes`; equal values are equal keys, whatever array
    /// they come from.
    ///
    /// >>> import warpset
    /// >>> seen = warpset.SplitBlockBloom(1_000_000, fpr=0.01)
    /// >>> seen.update(["ash", "birch"])
    /// >>> "ash" in seen, "oak" in seen
    /// (True, False)
    /// >>> seen.contains(["birch", "fir"]).tolist()
    /// [True, False]
    SplitBlockBloom(SplitBlock) {
        #[new]
        #[pyo3(signature = (n, *, fpr=None, bits_per_key=None, device=None))]
        fn new(
            py: Python<'_>,
            n: u64,
            fpr: Option<f64>,
            bits_per_key: Option<f64>,
            device: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let place = Location::of(device)?;
            let builder = sized(SplitBlockBuilder::new(n), fpr, bits_per_key)?;
            let build = || {
                Ok(match &place {
                    Location::Cpu => Where::Host(builder.build()?),
                    Location::On(device) => Where::Device(builder.on(device).build()?),
                })
            };
            Ok(Self(Shared::new(run(py, None, ALL_OF_IT, build)?)))
        }
    }
}

bloom_filter! {
    /// Bloom filter of blocks of 64 to 1024 bits: fewer bits per key than a split-block filter at rates far from 1 %.
    ///
    /// `n` is the expected number of different keys. The size follows from the rate of false positives `fpr`, 0.01 by
    /// default, or from `bits_per_key`. `block_bits` is 64, 128, 256, 512 or 1024. `hashes` is the number of bits set
    /// per key, by default chosen for the rate. `seed` changes which other keys are false positives.
    ///
    /// >>> import warpset
    /// >>> known = warpset.BlockedBloom(1000, fpr=0.0001, block_bits=512)
    /// >>> known.add(7)
    /// >>> 7 in known, 8 in known
    /// (True, False)
    BlockedBloom(Blocked) {
        #[new]
        #[pyo3(signature = (n, *, fpr=None, bits_per_key=None, block_bits=None, hashes=None, seed=None, device=None))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            n: u64,
            fpr: Option<f64>,
            bits_per_key: Option<f64>,
            block_bits: Option<u32>,
            hashes: Option<u32>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let place = Location::of(device)?;
            let mut builder = sized(BlockedBuilder::new(n), fpr, bits_per_key)?;
            if let Some(bits) = block_bits {
                builder = builder.block_bits(bits);
            }
            if let Some(hashes) = hashes {
                builder = builder.hashes(hashes);
            }
            if let Some(seed) = seed {
                builder = builder.seed(seed);
            }
            let build = || {
                Ok(match &place {
                    Location::Cpu => Where::Host(builder.build()?),
                    Location::On(device) => Where::Device(builder.on(device).build()?),
                })
            };
            Ok(Self(Shared::new(run(py, None, ALL_OF_IT, build)?)))
        }
    }
}

/// Builder of a filter with a size.
trait Sized {
    fn fpr(self, fpr: f64) -> Self;
    fn bits_per_key(self, bits: f64) -> Self;
}
macro_rules! sized_builders {
    ($($builder:ty;)*) => {$(
        impl Sized for $builder {
            fn fpr(self, fpr: f64) -> Self {
                self.fpr(fpr)
            }
            fn bits_per_key(self, bits: f64) -> Self {
                self.bits_per_key(bits)
            }
        }
    )*};
}
sized_builders! {
    SplitBlockBuilder;
    BlockedBuilder;
}

/// Sets the size that the caller gave.
fn sized<B: Sized>(builder: B, fpr: Option<f64>, bits_per_key: Option<f64>) -> Result<B> {
    match (fpr, bits_per_key) {
        (Some(_), Some(_)) => Err(Failure::value("fpr and bits_per_key both say how large the filter is: give one")),
        (Some(fpr), None) => Ok(builder.fpr(fpr)),
        (None, Some(bits)) => Ok(builder.bits_per_key(bits)),
        (None, None) => Ok(builder),
    }
}

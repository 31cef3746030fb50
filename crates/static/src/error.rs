//! Errors of builds, lookups and files.

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::words::OutOfMemory;

/// Reason why an operation on a set or map failed; nothing was changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are more keys than a set can have.
    #[error("{keys} keys, and a static set takes at most {most}: split them by a hash into several sets")]
    TooManyKeys {
        /// Different keys.
        keys: u64,
        /// The most that a set can have.
        most: u64,
    },
    /// Some keys found no place under any seed that was tried.
    #[error(
        "no place for some of {keys} keys under any of {attempts} seeds from {seed} on, as happens to keys that were \
         chosen against these seeds: choose another `seed`"
    )]
    NoSeed {
        /// Different keys.
        keys: u64,
        /// The first seed.
        seed: u64,
        /// Number of seeds tried.
        attempts: u32,
    },
    /// Slices differ in length.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// Memory could not be allocated.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The bytes are not such a set, or could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bytes have the form of a set, but a key where no lookup would find it.
    #[error("{what} in bucket {bucket}: the bytes are damaged, copy or build them again")]
    Invalid {
        /// Kind of the fault.
        what: &'static str,
        /// Bucket of the fault.
        bucket: u64,
    },
    /// The driver or the device failed.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// A primitive rejected its arguments.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);

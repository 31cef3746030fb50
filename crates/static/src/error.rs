//! Errors of builds, lookups and files.

use warpset_base::words::OutOfMemory;

warpset_base::structure_error!(
    /// Reason why an operation on a set or map failed; nothing was changed.
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
            "no place for some of {keys} keys under any of {attempts} seeds from {seed} on, as happens to keys that \
             were chosen against these seeds: choose another `seed`"
        )]
        NoSeed {
            /// Different keys.
            keys: u64,
            /// The first seed.
            seed: u64,
            /// Number of seeds tried.
            attempts: u32,
        },
        /// Memory could not be allocated.
        #[error(transparent)]
        OutOfMemory(#[from] OutOfMemory),
        /// The bytes have the form of a set, but a key where no lookup would find it.
        #[error("{what} in bucket {bucket}: the bytes are damaged, copy or build them again")]
        Invalid {
            /// Kind of the fault.
            what: &'static str,
            /// Bucket of the fault.
            bucket: u64,
        },
    }
);

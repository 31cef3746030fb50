//! What went wrong, as exceptions of Python: the message is the one of the Rust crate, with its causes.

use std::fmt::Write;

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpset::gpu::GpuError;
use warpset::{bloom, fuse, lsm, quotient, recsplit, sequence, static_sets};

create_exception!(warpset, FullError, PyValueError, "A structure has no room for the keys; it is as it was before.");
create_exception!(warpset, DuplicateKeyError, PyValueError, "A key is there twice, where all have to differ.");
create_exception!(
    warpset,
    FileError,
    PyOSError,
    "A file or saved bytes cannot be read: they are damaged, end early, or hold something else."
);
create_exception!(warpset, DeviceError, PyOSError, "There is no such device, or it failed.");
create_exception!(
    warpset,
    OutOfMemoryError,
    PyMemoryError,
    "Memory of the machine or of a device is not there; the structure is as it was before."
);

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Value,
    Type,
    Overflow,
    Full,
    Duplicate,
    Memory,
    File,
    /// A file that holds another structure.
    OtherFile,
    Device,
    Internal,
}

/// Result of everything that a method of a class does.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// An argument that cannot be used, and what can be.
    pub fn value(message: impl Into<String>) -> Failure {
        Failure { kind: Kind::Value, message: message.into() }
    }

    /// An argument of a type that cannot be used, and what can be.
    pub fn wrong_type(message: impl Into<String>) -> Failure {
        Failure { kind: Kind::Type, message: message.into() }
    }

    /// A number out of range, and the range.
    pub fn overflow(message: impl Into<String>) -> Failure {
        Failure { kind: Kind::Overflow, message: message.into() }
    }

    /// A defect of this library.
    pub fn internal(message: impl Into<String>) -> Failure {
        Failure { kind: Kind::Internal, message: message.into() }
    }

    /// Whether a file or bytes hold another structure than the one that was asked for.
    pub fn is_another_structure(&self) -> bool {
        matches!(self.kind, Kind::OtherFile)
    }

    fn of(kind: Kind, error: &dyn std::error::Error) -> Failure {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                let _ = write!(message, ": {text}");
            }
            source = cause.source();
        }
        Failure { kind, message }
    }
}

fn kind_of_gpu(error: &GpuError) -> Kind {
    match error {
        GpuError::OutOfMemory { .. } => Kind::Memory,
        GpuError::LengthMismatch(_)
        | GpuError::ForeignArray { .. }
        | GpuError::InvalidCast { .. }
        | GpuError::TooLarge { .. }
        | GpuError::OtherDevice { .. }
        | GpuError::EmptyDeviceList
        | GpuError::SameDeviceTwice { .. }
        | GpuError::MissingOffsets => Kind::Value,
        _ => Kind::Device,
    }
}

fn kind_of_file(error: &lsm::FileError) -> Kind {
    if matches!(error.reason(), lsm::FileError::WrongStructure { .. }) { Kind::OtherFile } else { Kind::File }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Failure {
        Failure::of(kind_of_gpu(&error), &error)
    }
}

/// The kinds that the errors of all structures share, and those of one.
macro_rules! kinds {
    ($($error:ty { $($pattern:pat => $kind:ident,)* })*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                use $error as Error;
                let kind = match &error {
                    Error::OutOfMemory(_) => Kind::Memory,
                    Error::File(cause) => kind_of_file(cause),
                    Error::Gpu(cause) => kind_of_gpu(cause),
                    Error::Primitive(_) => Kind::Device,
                    $($pattern => Kind::$kind,)*
                    _ => Kind::Value,
                };
                Failure::of(kind, &error)
            }
        }
    )*};
}
kinds! {
    bloom::Error { Error::BucketOverflow { .. } => Full, Error::OverMemoryLimit { .. } => Memory, }
    quotient::Error {
        Error::Full { .. } | Error::OverflowRegionFull { .. } => Full, Error::OverMemoryLimit { .. } => Memory,
    }
    lsm::Error {}
    static_sets::Error {}
    fuse::Error {}
    sequence::Error {}
}
impl From<warpset_kmers::Error> for Failure {
    fn from(error: warpset_kmers::Error) -> Failure {
        use warpset_kmers::Error;
        let kind = match error {
            // They say all of it.
            Error::Table(cause) | Error::Filter(cause) => return (*cause).into(),
            Error::Device(cause) => return (*cause).into(),
            Error::Primitives(_) => Kind::Device,
            Error::Read { .. }
            | Error::Write { .. }
            | Error::NotSequence { .. }
            | Error::NotTable { .. }
            | Error::OtherKind { .. } => Kind::File,
            Error::BudgetTooSmall { .. } | Error::OverBudget { .. } => Kind::Memory,
            Error::TooManyKmers { .. } => Kind::Full,
            _ => Kind::Value,
        };
        Failure::of(kind, &error)
    }
}
impl From<recsplit::Error> for Failure {
    fn from(error: recsplit::Error) -> Failure {
        use recsplit::Error;
        let kind = match &error {
            Error::DuplicateKey { .. } => Kind::Duplicate,
            Error::File(cause) => kind_of_file(cause),
            Error::Io(_) => Kind::File,
            Error::Gpu(cause) => kind_of_gpu(cause),
            Error::Primitive(_) => Kind::Device,
            _ => Kind::Value,
        };
        Failure::of(kind, &error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let message = failure.message;
        match failure.kind {
            Kind::Value => PyValueError::new_err(message),
            Kind::Type => PyTypeError::new_err(message),
            Kind::Overflow => PyOverflowError::new_err(message),
            Kind::Full => FullError::new_err(message),
            Kind::Duplicate => DuplicateKeyError::new_err(message),
            Kind::Memory => OutOfMemoryError::new_err(message),
            Kind::File | Kind::OtherFile => FileError::new_err(message),
            Kind::Device => DeviceError::new_err(message),
            Kind::Internal => PyRuntimeError::new_err(message),
        }
    }
}

//! Errors as Python exceptions: the message of the Rust crate with its causes, in the words of this package.

use std::ffi::OsString;
use std::fmt::Write;
use std::io;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpset::gpu::GpuError;
use warpset::{bloom, fuse, lsm, mphf, quotient, range, sequence, static_sets};
use warpset_base::file::{FileKind, SavedType};

create_exception!(warpset, FullError, PyValueError, "A structure has no room for the keys; it is unchanged.");
create_exception!(warpset, DuplicateKeyError, PyValueError, "A key occurs twice where all keys have to differ.");
create_exception!(
    warpset,
    FileError,
    PyOSError,
    "A file or saved bytes are damaged, truncated or of another kind. If the system refuses access to a file, the error is \
     its `OSError`, such as `FileNotFoundError`, with `errno` and `filename`."
);
create_exception!(warpset, DeviceError, PyOSError, "There is no such device, or it failed.");
create_exception!(
    warpset,
    OutOfMemoryError,
    PyMemoryError,
    "Not enough memory on the machine or a device; the structure is unchanged."
);

/// Error of a call.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
    /// Number of the error and name of the file, if the system refused access.
    refused: Option<(i32, OsString)>,
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
    OtherFile(SavedType),
    Device,
    Internal,
}

/// Result of a method of a class.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    fn new(kind: Kind, message: String) -> Failure {
        Failure { kind, message, refused: None }
    }

    /// Returns the error for a file that the system refuses to read, write or map.
    pub fn system(doing: &str, path: &Path, error: io::Error) -> Failure {
        let message = match error.raw_os_error() {
            Some(_) => error.to_string(),
            None => format!("cannot {doing} {}: {error}", path.display()),
        };
        // The exception shows the number itself.
        let message = message.split(" (os error").next().unwrap_or_default().to_string();
        let refused = error.raw_os_error().map(|number| (number, path.into()));
        Failure { refused, ..Failure::new(Kind::File, in_python(message)) }
    }

    /// Returns the error for an unusable argument; `message` names usable ones.
    pub fn value(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Value, message.into())
    }

    /// Returns the error for an argument of the wrong type; `message` names usable ones.
    pub fn wrong_type(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Type, message.into())
    }

    /// Returns the error for a number out of range; `message` names the range.
    pub fn overflow(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Overflow, message.into())
    }

    /// Returns the error for a defect of this library.
    pub fn internal(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Internal, message.into())
    }

    /// Returns the structure found in a file or bytes, if another one was expected.
    pub fn other_structure(&self) -> Option<SavedType> {
        if let Kind::OtherFile(found) = self.kind { Some(found) } else { None }
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
        Failure::new(kind, in_python(message))
    }

    /// Converts an error of a file or of saved bytes.
    fn of_file(error: lsm::FileError) -> Failure {
        match error {
            lsm::FileError::At { path, doing, reason } => match *reason {
                lsm::FileError::Io(error) => Failure::system(doing, &path, error),
                reason @ (lsm::FileError::WrongStructure { .. } | lsm::FileError::Refused(_)) => {
                    let other = Failure::of_file(reason);
                    Failure { message: format!("cannot {doing} {}: {}", path.display(), other.message), ..other }
                }
                reason => Failure::of(Kind::File, &lsm::FileError::At { path, doing, reason: Box::new(reason) }),
            },
            lsm::FileError::WrongStructure { found, .. } => {
                let message = match class_of(found) {
                    Some(class) => format!("this is a saved {class}: read it with `{class}.load` or `from_bytes`"),
                    None => format!("this is a saved `{found}`, which has no class in this package"),
                };
                Failure::new(Kind::OtherFile(found), message)
            }
            lsm::FileError::Refused(cause) if matches!(cause.downcast_ref(), Some(range::Error::OtherKeys { .. })) => {
                Failure::of(Kind::OtherFile(RANGE_FILTER), &*cause)
            }
            error => Failure::of(Kind::File, &error),
        }
    }
}

/// A range filter with keys of any type.
const RANGE_FILTER: SavedType = SavedType { number: FileKind::RANGE_FILTER.number, elements: None };

/// Returns the class that reads a saved structure.
pub fn class_of(found: SavedType) -> Option<&'static str> {
    let has_values = !matches!(found.elements, Some([_, 0]));
    let number = |structure: FileKind| structure.number == found.number;
    Some(match () {
        () if number(FileKind::SPLIT_BLOCK_BLOOM) => "SplitBlockBloom",
        () if number(FileKind::BLOCKED_BLOOM) => "BlockedBloom",
        () if number(FileKind::RECSPLIT) || number(FileKind::CONSENSUS) || number(FileKind::PLACEMENT) => "PerfectHash",
        () if number(FileKind::STATIC_FILTER) => "StaticFilter",
        () if number(FileKind::STANDARD_QUOTIENT_FILTER) => "QuotientFilter",
        () if number(FileKind::RANK_SELECT_QUOTIENT_FILTER) => "QuotientFilter",
        () if number(FileKind::LSM) => "SortedMap",
        () if number(FileKind::BINARY_FUSE_8) => "BinaryFuse",
        () if number(FileKind::BINARY_FUSE_16) || number(FileKind::BINARY_FUSE_32) => "BinaryFuse",
        () if number(FileKind::MAPLET) => "Maplet",
        () if number(FileKind::STATIC_FUNCTION) => "StaticFunction",
        () if number(FileKind::STATIC_MAP) => {
            if has_values {
                "StaticMap"
            } else {
                "StaticSet"
            }
        }
        () if number(FileKind::SEQUENCE_FILTER) => "SequenceFilter",
        () if number(FileKind::RANGE_FILTER) => "RangeFilter",
        () if number(FileKind::DYNAMIC_RANGE_FILTER) => "DynamicRangeFilter",
        () if number(FileKind::STRING_MAP) => "StringMap",
        () => return None,
    })
}

/// Words of Rust in messages, with those of this package.
const WORDS: &[(&str, &str)] = &[
    (" or the CPU backend", ", or leave `device` away"),
    ("use the CPU backend", "leave `device` away"),
    ("go on with the CPU backend", "go on without `device`"),
    ("pass what `save`, `write_to` or `to_bytes` wrote", "pass what `save` wrote or `bytes` gave"),
    ("read it with `load` or `read_from`", "read it with `load`"),
    ("pass a slice of that length", "pass an array of that length"),
    ("what `kmers count` or `kmers merge` wrote", "what `KmerCounter.save` or `kmers count` wrote"),
    ("a higher --min-count", "a higher `min_count`"),
    ("(`Form::Sharded`)", "(`sharded=True`)"),
    ("`builder(keys).fpr(rate)`", "by `n` and `fpr` alone"),
    ("`builder(keys).exact(bits)`", "by `n` and `key_bits` alone"),
    ("build it with `exact`", "build it with `key_bits`"),
    ("build it with `values` of", "build it with `value_bits` of"),
    ("build a `RankSelectQuotientFilter` with", "build one of `kind=\"rank-select\"` with"),
    ("`Duplicates::Dropped`", "`duplicates=\"dropped\"`"),
    ("`Duplicates::Kept`", "`duplicates=\"kept\"`"),
    ("`Duplicates::Counted`", "`duplicates=\"counted\"`"),
    ("`other.merge(&this)`", "`other.merge(this)`"),
    (", where [u8] was expected: load it as a `", ", which only Rust reads: as a `"),
];

/// Translates a message into the words of this package.
fn in_python(message: String) -> String {
    WORDS.iter().fold(message, |message, (rust, python)| message.replace(rust, python))
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

impl From<lsm::FileError> for Failure {
    fn from(error: lsm::FileError) -> Failure {
        Failure::of_file(error)
    }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Failure {
        Failure::of(kind_of_gpu(&error), &error)
    }
}

/// Conversions of the errors of all structures, with the kinds they share.
macro_rules! kinds {
    ($($error:ty { $($pattern:pat $(if $guard:expr)? => $kind:ident $(($found:expr))?,)* })*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                use $error as Error;
                let error = match error {
                    Error::File(cause) => return cause.into(),
                    error => error,
                };
                let kind = match &error {
                    Error::Gpu(cause) => kind_of_gpu(cause),
                    Error::Primitive(_) => Kind::Device,
                    $($pattern $(if $guard)? => Kind::$kind $(($found))?,)*
                    _ => Kind::Value,
                };
                Failure::of(kind, &error)
            }
        }
    )*};
}
kinds! {
    bloom::Error {
        Error::BucketOverflow { .. } => Full,
        Error::OutOfMemory(_) | Error::OverMemoryLimit { .. } => Memory,
    }
    quotient::Error {
        Error::Full { .. } | Error::OverflowRegionFull { .. } => Full,
        Error::OutOfMemory(_) | Error::OverMemoryLimit { .. } => Memory,
    }
    lsm::Error { Error::OutOfMemory(_) => Memory, }
    static_sets::Error { Error::OutOfMemory(_) => Memory, }
    fuse::Error { Error::TwoValues { .. } => Duplicate, Error::OutOfMemory(_) => Memory, }
    sequence::Error { Error::OutOfMemory(_) => Memory, }
    range::Error {
        Error::OutOfMemory(_) => Memory,
        Error::OtherKeys { .. } => OtherFile(RANGE_FILTER),
        Error::Slots(cause) if matches!(**cause, quotient::Error::Full { .. } | quotient::Error::OverflowRegionFull { .. }) => Full,
    }
    mphf::Error { Error::DuplicateKey { .. } => Duplicate, Error::Io(_) => File, }
}

impl From<warpset_kmers::Error> for Failure {
    fn from(error: warpset_kmers::Error) -> Failure {
        use warpset_kmers::Error;
        let kind = match error {
            // The cause is the whole message.
            Error::Table(cause) | Error::Filter(cause) => return (*cause).into(),
            Error::Device(cause) => return (*cause).into(),
            Error::Read { path, source } if source.raw_os_error().is_some() => {
                return Failure::system("read", &path, source);
            }
            Error::Write { path, source } if source.raw_os_error().is_some() => {
                return Failure::system("write", &path, source);
            }
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
impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let message = failure.message;
        if let Some((number, path)) = failure.refused {
            // Python chooses the subclass for this number.
            return PyOSError::new_err((number, message, path));
        }
        match failure.kind {
            Kind::Value => PyValueError::new_err(message),
            Kind::Type => PyTypeError::new_err(message),
            Kind::Overflow => PyOverflowError::new_err(message),
            Kind::Full => FullError::new_err(message),
            Kind::Duplicate => DuplicateKeyError::new_err(message),
            Kind::Memory => OutOfMemoryError::new_err(message),
            Kind::File | Kind::OtherFile(_) => FileError::new_err(message),
            Kind::Device => DeviceError::new_err(message),
            Kind::Internal => PyRuntimeError::new_err(message),
        }
    }
}

//! Errors of reading and writing saved structures.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use super::SavedType;
use crate::words::OutOfMemory;

/// Reason why bytes could not be read as a structure, or written. Messages contain the whole cause, and
/// [`source`](Error::source) repeats none of it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file with a name could not be read, written or mapped.
    #[error("cannot {doing} {}: {}", path.display(), within_file(reason))]
    At {
        /// The file, as it was named.
        path: PathBuf,
        /// "read", "write" or "map".
        doing: &'static str,
        /// The reason; not another `At`.
        reason: Box<FileError>,
    },
    /// The bytes end too early.
    #[error("{needed} bytes needed, {found} found: the file was cut short")]
    Truncated {
        /// Bytes that the header announces.
        needed: u64,
        /// Bytes there are.
        found: u64,
    },
    /// More bytes than the header announces.
    #[error("{extra} bytes after the end of the structure: pass its bytes alone")]
    TrailingBytes {
        /// Bytes too many.
        extra: u64,
    },
    /// The bytes do not start with Warpset's magic.
    #[error("not a Warpset file: pass what `save`, `write_to` or `to_bytes` wrote")]
    BadMagic,
    /// The bytes are of the expected structure, in a version of its format that this build does not read.
    #[error(
        "version {found} of the structure's format; this build reads version {supported}: read the file with the release that \
         wrote it"
    )]
    UnsupportedVersion {
        /// The version in the header.
        found: u16,
        /// The version that this build reads.
        supported: u16,
    },
    /// The bytes hold another structure, or one with other types of keys and values.
    #[error("this is a saved {}, where a `{expected}` was expected: {}", found.quoted(), found.remedy())]
    WrongStructure {
        /// The type that was to be read.
        expected: SavedType,
        /// The type in the header.
        found: SavedType,
    },
    /// The checksum does not match.
    #[error("checksum {found:#018x} instead of {expected:#018x}: the file is damaged, copy or build it again")]
    Corrupted {
        /// The checksum in the header.
        expected: u64,
        /// The checksum of the bytes.
        found: u64,
    },
    /// A header field has a value that no structure has.
    #[error("header: {field} cannot be {value}; the file is damaged, copy or build it again")]
    InvalidHeader {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// The structure refuses the contents of a file with a right checksum.
    #[error("{0}")]
    Refused(Box<dyn Error + Send + Sync>),
    /// The bytes cannot be viewed in place because their address is not aligned.
    #[error("the words start at an address that is not a multiple of {alignment}: copy the bytes to one that is")]
    Misaligned {
        /// The alignment needed.
        alignment: usize,
    },
    /// There is no memory for the contents of the file.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Reading or writing failed.
    #[error("input or output failed: {0}")]
    Io(io::Error),
}

crate::debug_as_display!(FileError);

/// Formats a reason after the path of its file.
fn within_file(reason: &FileError) -> String {
    match reason {
        FileError::Io(error) => error.to_string(),
        reason => reason.to_string(),
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::Io(error)
    }
}

impl FileError {
    /// Returns the reason, with or without a file name: any variant but [`FileError::At`].
    pub fn reason(&self) -> &FileError {
        match self {
            FileError::At { reason, .. } => reason,
            reason => reason,
        }
    }
}

/// Error of a structure that can be saved; one variant holds a [`FileError`].
pub trait SavedError: From<FileError> + Error + Send + Sync + 'static {
    /// Converts the error into that of a file: [`FileError::Refused`], unless it is a `FileError` already.
    fn into_file(self) -> FileError;
}

impl SavedError for FileError {
    fn into_file(self) -> FileError {
        self
    }
}

/// Implements [`SavedError`] for an enumeration with a variant `File` for a [`FileError`].
#[doc(hidden)]
#[macro_export]
macro_rules! saved_error {
    ($error:ty) => {
        impl $crate::file::SavedError for $error {
            fn into_file(self) -> $crate::file::FileError {
                match self {
                    Self::File(error) => error,
                    other => $crate::file::FileError::Refused(Box::new(other)),
                }
            }
        }
    };
}

/// Lets `run` do something to a file, and names the file in its error.
///
/// # Errors
/// The error of `run`, with the path: [`FileError::At`].
pub fn at_path<T, E: SavedError>(path: &Path, doing: &'static str, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    run().map_err(|error| FileError::At { path: path.into(), doing, reason: Box::new(error.into_file()) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let failed: Result<(), FileError> =
            at_path(Path::new("/x/y.warpset"), "read", || Err(io::Error::from(io::ErrorKind::NotFound).into()));
        let error = failed.unwrap_err();
        assert_eq!(error.to_string(), "cannot read /x/y.warpset: entity not found");
        assert!(error.source().is_none());
        assert!(matches!(error.reason(), FileError::Io(error) if error.kind() == io::ErrorKind::NotFound));
        assert_eq!(error.reason().to_string(), "input or output failed: entity not found");
        assert!(error.reason().source().is_none());
    }
}

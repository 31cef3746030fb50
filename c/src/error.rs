//! Errors as a status and a message of the thread, and the boundary that no panic crosses.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use warpset::lsm::FileError;
use warpset::{bloom, fuse, lsm, mphf, quotient, range, sequence, static_sets};
use warpset_base::file::SavedType;

/// Result of a function. Every function of this library returns one, with the few exceptions that say so. After an
/// error, outputs and structures are unchanged, and `warpset_last_error` describes the cause and the remedy.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "name in C")]
pub enum warpset_status {
    Ok = 0,
    /// A pointer is NULL where memory or a handle is needed.
    NullPointer = 1,
    /// A pointer has the wrong alignment for its items.
    Misaligned = 2,
    /// A handle is of another type, or has been freed.
    WrongHandle = 3,
    /// The structure has no such operation.
    Unsupported = 4,
    /// An argument has a value that cannot be used.
    InvalidValue = 5,
    /// An array is longer than memory, or two arrays differ in length.
    InvalidLength = 6,
    /// The structure takes keys or values of another type.
    WrongType = 7,
    /// The structure has no space for the keys.
    Full = 8,
    /// A key occurs twice where all keys must differ.
    DuplicateKey = 9,
    /// Not enough memory on the machine or the device.
    OutOfMemory = 10,
    /// The system refuses to read or write a file.
    Io = 11,
    /// A file or saved bytes are damaged, or of another structure.
    InvalidFile = 12,
    /// The structure is mapped from a file, so it cannot change: change a copy of it.
    ReadOnly = 13,
    /// There is no such device, or it failed, or the library was built without devices.
    Device = 14,
    /// A defect of this library. A structure that was being changed cannot be used any more, only freed.
    Internal = 15,
}

use warpset_status as Status;

/// Error of a call.
#[derive(Debug)]
pub struct Failure {
    pub status: Status,
    message: String,
    /// Structure of a file or of saved bytes, if another one was expected.
    pub found: Option<SavedType>,
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub fn new(status: Status, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), found: None }
    }

    pub fn value(message: impl Into<String>) -> Failure {
        Failure::new(Status::InvalidValue, message)
    }

    /// Returns an error with the messages of all causes.
    fn of(status: Status, error: &dyn Error) -> Failure {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                let _ = write!(message, ": {text}");
            }
            source = cause.source();
        }
        Failure::new(status, message)
    }

    fn record(self) -> Status {
        // A message without its zero bytes is a C string, so this conversion cannot fail.
        let message = CString::new(self.message.replace('\0', "?")).unwrap_or_default();
        // Without thread-local memory, at the end of a thread, the message is lost and the status remains.
        let _ = LAST.try_with(|last| *last.borrow_mut() = message);
        self.status
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        let (mut cause, mut found) = (&error, None);
        let status = loop {
            match cause {
                FileError::At { reason, .. } => cause = reason,
                FileError::WrongStructure { found: other, .. } => {
                    found = Some(*other);
                    break Status::InvalidFile;
                }
                FileError::Io(_) => break Status::Io,
                _ => break Status::InvalidFile,
            }
        };
        Failure { found, ..Failure::of(status, &error) }
    }
}

#[cfg(feature = "gpu")]
fn status_of_gpu(error: &warpset::gpu::GpuError) -> Status {
    use warpset::gpu::GpuError;
    match error {
        GpuError::OutOfMemory { .. } => Status::OutOfMemory,
        GpuError::LengthMismatch(_) => Status::InvalidLength,
        GpuError::InvalidCast { .. } => Status::Misaligned,
        GpuError::TooLarge { .. }
        | GpuError::OtherDevice { .. }
        | GpuError::EmptyDeviceList
        | GpuError::SameDeviceTwice { .. } => Status::InvalidValue,
        _ => Status::Device,
    }
}

#[cfg(feature = "gpu")]
impl From<warpset::gpu::GpuError> for Failure {
    fn from(error: warpset::gpu::GpuError) -> Failure {
        Failure::of(status_of_gpu(&error), &error)
    }
}

/// Conversions of the errors of all structures, with the statuses they share.
macro_rules! statuses {
    ($($error:ty { $($pattern:pat $(if $guard:expr)? => $status:ident,)* })*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                use $error as Error;
                let error = match error {
                    Error::File(cause) => return cause.into(),
                    error => error,
                };
                let status = match &error {
                    #[cfg(feature = "gpu")]
                    Error::Gpu(cause) => status_of_gpu(cause),
                    #[cfg(feature = "gpu")]
                    Error::Primitive(_) => Status::Device,
                    Error::LengthMismatch(_) => Status::InvalidLength,
                    $($pattern $(if $guard)? => Status::$status,)*
                    _ => Status::InvalidValue,
                };
                Failure::of(status, &error)
            }
        }
    )*};
}
statuses! {
    bloom::Error {
        Error::BucketOverflow { .. } => Full,
        Error::OutOfMemory(_) | Error::OverMemoryLimit { .. } => OutOfMemory,
    }
    quotient::Error {
        Error::Full { .. } | Error::OverflowRegionFull { .. } => Full,
        Error::OutOfMemory(_) | Error::OverMemoryLimit { .. } => OutOfMemory,
    }
    lsm::Error { Error::OutOfMemory(_) => OutOfMemory, }
    static_sets::Error { Error::OutOfMemory(_) => OutOfMemory, }
    fuse::Error { Error::TwoValues { .. } => DuplicateKey, Error::OutOfMemory(_) => OutOfMemory, }
    range::Error {
        Error::OutOfMemory(_) => OutOfMemory,
        Error::Slots(cause)
            if matches!(**cause, quotient::Error::Full { .. } | quotient::Error::OverflowRegionFull { .. }) => Full,
    }
    sequence::Error { Error::OutOfMemory(_) => OutOfMemory, }
    mphf::Error { Error::DuplicateKey { .. } => DuplicateKey, Error::Io(_) => Io, }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Calls `work` and converts its error, or its panic, to a status.
pub fn guard(work: impl FnOnce() -> Result<()>) -> warpset_status {
    let guarded = || {
        #[cfg(test)]
        tests::panic_if_asked();
        work()
    };
    match catch_unwind(AssertUnwindSafe(guarded)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(failure)) => failure.record(),
        Err(panic) => internal(&*panic),
    }
}

#[cold]
fn internal(panic: &(dyn Any + Send)) -> Status {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message");
    Failure::new(Status::Internal, format!("a defect of this library, please report it: {text}")).record()
}

/// Returns the message of the last error on this thread, valid until the next one; empty before the first. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn warpset_last_error() -> *const c_char {
    const EMPTY: &CStr = c"";
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(EMPTY.as_ptr())
}

#[cfg(test)]
pub mod tests {
    use std::cell::Cell;

    thread_local! {
        static PANICS: Cell<bool> = const { Cell::new(false) };
    }

    /// Makes the next guarded call on this thread panic.
    pub fn ask_for_panic() {
        PANICS.set(true);
    }

    pub fn panic_if_asked() {
        assert!(!PANICS.take(), "asked for");
    }
}

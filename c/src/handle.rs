//! Handles: pointers to objects of this library, checked on every use.

use std::mem;

use crate::error::{Failure, Result, warpset_status as Status};

/// Type of a handle in C. Behind the pointer is an [`Object`].
pub trait Handle: Sized {
    /// Number at the start of an object, different for each type.
    const MAGIC: u64;
    /// Name of the type in C.
    const NAME: &'static str;
    /// Content of an object.
    type Content: Send + Sync;
}

/// Object behind a handle.
#[repr(C)]
struct Object<T> {
    magic: u64,
    content: T,
}

/// Declares the types of handles, opaque in C.
macro_rules! handles {
    ($($handle:ty: $magic:literal, $content:ty;)*) => {$(
        impl $crate::handle::Handle for $handle {
            const MAGIC: u64 = u64::from_le_bytes(*$magic);
            const NAME: &'static str = stringify!($handle);
            type Content = $content;
        }
    )*};
}
pub(crate) use handles;

/// Returns the error for a pointer that is NULL; `name` is that of the argument.
pub fn null(name: &str) -> Failure {
    Failure::new(Status::NullPointer, format!("{name} is NULL"))
}

/// Checks that a pointer is neither NULL nor misaligned.
pub fn check<T>(pointer: *const T, name: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() {
        let bytes = align_of::<T>();
        return Err(Failure::new(Status::Misaligned, format!("{name} = {pointer:p} is no multiple of {bytes}")));
    }
    Ok(())
}

/// Writes a result to the caller's memory.
///
/// # Safety
/// A pointer that is not NULL is valid for writing a `T`, if it is aligned.
pub unsafe fn give<T>(out: *mut T, name: &str, value: T) -> Result<()> {
    check(out, name)?;
    // SAFETY: checked for NULL and alignment; the caller guarantees that it is valid for writing.
    unsafe { out.write(value) };
    Ok(())
}

/// Moves `content` into an object, and writes its handle to the caller's memory. The content is made after `out` has
/// been checked.
///
/// # Safety
/// As [`give`].
pub unsafe fn hand_out<H: Handle>(out: *mut *mut H, content: impl FnOnce() -> Result<H::Content>) -> Result<()> {
    check(out, "out")?;
    let object = Box::new(Object { magic: H::MAGIC, content: content()? });
    // SAFETY: checked for NULL and alignment; the caller guarantees that it is valid for writing.
    unsafe { out.write(Box::into_raw(object).cast()) };
    Ok(())
}

/// Returns the object behind a handle.
///
/// # Safety
/// A pointer that is neither NULL nor misaligned is readable for eight bytes, and if these are the magic number of `H`,
/// it is a handle that no thread frees during `'a`.
unsafe fn object<'a, H: Handle>(handle: *const H) -> Result<&'a Object<H::Content>> {
    check(handle.cast::<Object<H::Content>>(), H::NAME)?;
    // SAFETY: not NULL, aligned, and readable for eight bytes, as the caller guarantees.
    let magic = unsafe { handle.cast::<u64>().read() };
    if magic != H::MAGIC {
        let why = format!("{handle:p} is no {}: it is a handle of another type, or has been freed", H::NAME);
        return Err(Failure::new(Status::WrongHandle, why));
    }
    // SAFETY: the magic number is that of `H`, so the caller guarantees that this is a live object of `hand_out`.
    Ok(unsafe { &*handle.cast() })
}

/// Returns the content of a handle.
///
/// # Safety
/// As [`object`].
pub unsafe fn content<'a, H: Handle>(handle: *const H) -> Result<&'a H::Content> {
    // SAFETY: the contract of this function.
    unsafe { object(handle) }.map(|object| &object.content)
}

/// Frees a handle; NULL is no error.
///
/// # Safety
/// As [`object`], and no thread uses the handle during the call or afterwards.
pub unsafe fn free<H: Handle>(handle: *mut H) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    // SAFETY: the contract of this function.
    unsafe { object(handle) }?;
    // SAFETY: `object` found a live object of `hand_out`, which no other thread uses.
    let mut object = unsafe { Box::from_raw(handle.cast::<Object<H::Content>>()) };
    // A volatile write stays, so that most uses of a freed handle are noticed.
    // SAFETY: a valid reference.
    unsafe { (&raw mut object.magic).write_volatile(0) };
    mem::drop(object);
    Ok(())
}

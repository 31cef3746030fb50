//! Operations of all structures: files, copies, sizes.

use std::ffi::{CStr, c_char};
use std::path::Path;

use warpset_base::file::MappedWords;

use crate::device::{Place, warpset_device};
use crate::error::{Result, guard, warpset_status};
use crate::handle::{self, check, content, give, hand_out, handles};
use crate::keys::array;
use crate::object::{Held, Object, warpset_kind, warpset_structure};
use crate::opening;

/// Bytes of this library's memory.
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_bytes {
    _private: [u8; 0],
}

handles! { warpset_bytes: b"wsbytes\x01", Vec<u8>; }

/// Returns the path in a C string.
///
/// # Safety
/// As [`array`], for the bytes up to the first zero.
unsafe fn c_path<'a>(path: *const c_char) -> Result<&'a Path> {
    check(path, "path")?;
    // SAFETY: not NULL; the caller guarantees a C string.
    let path = unsafe { CStr::from_ptr(path) };
    #[cfg(unix)]
    return Ok(Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path.to_bytes())));
    #[cfg(not(unix))]
    match path.to_str() {
        Ok(path) => Ok(Path::new(path)),
        Err(_) => Err(crate::error::Failure::value("the path is not UTF-8")),
    }
}

/// Reads a file that any structure saved, in any language. `device` is the place of the structure; NULL is host memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_open(
    path: *const c_char,
    device: *const warpset_device,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (path, place) = (c_path(path)?, Place::of(device)?);
        hand_out(out, || Ok(Held::new(place.take(opening::load(path)?)?)))
    })
}

/// Maps a file that any structure saved. Processes that map it share its memory. The structure is read-only. No process
/// may write into the file meanwhile; `warpset_structure_save` may replace it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_map(
    path: *const c_char,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header, which forbids changes of the file.
    guard(|| unsafe {
        let path = c_path(path)?;
        hand_out(out, || {
            let (object, kind) = opening::map(path)?;
            let mut held = Held::new(object);
            (held.kind, held.file) = (kind, Some(MappedWords::open(path)?));
            Ok(held)
        })
    })
}

/// Reads the bytes of `warpset_structure_to_bytes`, or of a file. They are copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_from_bytes(
    data: *const u8,
    len: usize,
    device: *const warpset_device,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (bytes, place) = (array(data, len, "data")?, Place::of(device)?);
        hand_out(out, || Ok(Held::new(place.take(opening::from_bytes(bytes)?)?)))
    })
}

/// Writes a file, replacing an older one at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_save(
    structure: *const warpset_structure,
    path: *const c_char,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, path) = (content(structure)?, c_path(path)?);
        match &held.file {
            Some(_) => held.unmapped()?.save(path),
            None => held.read()?.save(path),
        }
    })
}

/// Returns the saved form.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_to_bytes(
    structure: *const warpset_structure,
    out: *mut *mut warpset_bytes,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let held = content(structure)?;
        hand_out(out, || match &held.file {
            Some(file) => Ok(file.bytes().to_vec()),
            None => held.read()?.to_bytes(),
        })
    })
}

/// Returns the first byte of `bytes`, and their number. The bytes are valid until `warpset_bytes_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_bytes_data(
    bytes: *const warpset_bytes,
    data: *mut *const u8,
    len: *mut usize,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let bytes = content(bytes)?;
        check(len, "len")?;
        give(data, "data", bytes.as_ptr())?;
        give(len, "len", bytes.len())
    })
}

/// Frees bytes; NULL is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_bytes_free(bytes: *mut warpset_bytes) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { handle::free(bytes) })
}

/// Copies a structure to `device`; NULL is host memory. A copy of a mapped structure can change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_copy(
    structure: *const warpset_structure,
    device: *const warpset_device,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, place) = (content(structure)?, Place::of(device)?);
        hand_out(out, || Ok(Held::new(held.copy_to(&place)?)))
    })
}

/// Frees a structure; NULL is no error. No other call may use it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_free(structure: *mut warpset_structure) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { handle::free(structure) })
}

/// Returns the kind of a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_kind(
    structure: *const warpset_structure,
    kind: *mut warpset_kind,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { give(kind, "kind", content(structure)?.kind) })
}

/// Returns the number of keys, with repetitions where they are kept or counted; an estimate for Bloom filters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_len(structure: *const warpset_structure, len: *mut u64) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { give(len, "len", content(structure)?.read()?.len()?) })
}

/// Returns the bytes of memory that a structure takes, on the host or on its device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_memory_bytes(
    structure: *const warpset_structure,
    bytes: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { give(bytes, "bytes", content(structure)?.read()?.memory_bytes()) })
}

/// Returns the false-positive rate of a filter as it is filled now. 0 of exact structures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_fpr(structure: *const warpset_structure, fpr: *mut f64) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { give(fpr, "fpr", content(structure)?.read()?.fpr()?) })
}

/// Removes all keys and keeps the memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_clear(structure: *const warpset_structure) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { content(structure)?.write()?.clear() })
}

/// Adds the contents of `other`: a filter with the same settings (quotient filters may differ in size), or a dictionary
/// of the same types. `other` is unchanged, and may be in another place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_merge(
    structure: *const warpset_structure,
    other: *const warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { combine(content(structure)?, content(other)?, |object, other| object.merge(other)) })
}

/// Keeps the keys that are in `other` too: Bloom filters with the same settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_intersect(
    structure: *const warpset_structure,
    other: *const warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { combine(content(structure)?, content(other)?, |object, other| object.intersect(other)) })
}

/// Doubles the slots of a quotient or dynamic range filter, or a maplet; halves them if `doubles` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_structure_resize(structure: *const warpset_structure, doubles: i32) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { content(structure)?.write()?.resize(doubles != 0) })
}

impl Held {
    /// Returns a copy of a mapped structure in host memory.
    fn unmapped(&self) -> Result<Box<dyn Object>> {
        match &self.file {
            Some(file) => opening::from_bytes(file.bytes()),
            None => self.read()?.copy(),
        }
    }

    fn copy_to(&self, place: &Place) -> Result<Box<dyn Object>> {
        #[cfg(feature = "gpu")]
        if self.file.is_none() {
            let object = self.read()?;
            return match place {
                Place::Host if object.is_on_device() => object.to_host(),
                Place::Host => object.copy(),
                Place::On(devices) if object.is_on_device() => object.to_host()?.to_device(devices),
                Place::On(devices) => object.to_device(devices),
            };
        }
        place.take(self.unmapped()?)
    }
}

/// Changes a structure by another one. Two threads that combine two structures in both directions do not wait for each
/// other, because the other one is copied before the lock is taken, unless it is in the same place and fixed.
fn combine(held: &Held, other: &Held, change: impl FnOnce(&mut dyn Object, &dyn Object) -> Result<()>) -> Result<()> {
    let place = Place::of_object(&*held.read()?)?;
    let other = other.copy_to(&place)?;
    change(&mut **held.write()?, &*other)
}

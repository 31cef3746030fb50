//! Calls as a program in C makes them.

mod arrows;
mod calls;
#[cfg(feature = "emulator")]
mod devices;
mod fuzzed;
mod inputs;
mod ranges;
mod structures;

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

pub use crate::arrow::*;
pub use crate::building::*;
pub use crate::device::*;
pub use crate::error::{warpset_last_error, warpset_status};
pub use crate::filter::*;
pub use crate::function::*;
pub use crate::handle::hand_out;
pub use crate::keys::{warpset_key_type, warpset_keys, warpset_string};
pub use crate::map::*;
pub use crate::object::{warpset_kind, warpset_structure};
pub use crate::options::warpset_options;
pub use crate::range::*;
pub use crate::rows::{warpset_row_arrays, warpset_rows, warpset_rows_arrays, warpset_rows_free};
pub use crate::sequence::*;
pub use crate::structure::*;
pub use crate::{warpset_abi_version, warpset_set_threads, warpset_version};

/// Returns the message of the last error.
pub fn last_error() -> String {
    // SAFETY: the function returns a C string.
    unsafe { CStr::from_ptr(warpset_last_error()) }.to_string_lossy().into_owned()
}

/// Asserts that a call succeeds.
#[track_caller]
pub fn ok(status: warpset_status) {
    assert_eq!(status, warpset_status::Ok, "{}", last_error());
}

/// Returns the value that a successful call writes.
#[track_caller]
pub fn got<T: Default>(call: impl FnOnce(*mut T) -> warpset_status) -> T {
    let mut value = T::default();
    ok(call(&mut value));
    value
}

/// Returns the handle that a successful call writes.
#[track_caller]
pub fn made<H>(call: impl FnOnce(*mut *mut H) -> warpset_status) -> *mut H {
    let mut handle = null_mut();
    ok(call(&mut handle));
    assert!(!handle.is_null());
    handle
}

/// Describes integers of 64 bits.
pub fn words(keys: &[u64]) -> warpset_keys {
    described(warpset_key_type::U64, keys.as_ptr().cast(), keys.len())
}

/// Describes keys of a type.
pub fn described(key_type: warpset_key_type, data: *const u8, len: usize) -> warpset_keys {
    warpset_keys {
        key_type: key_type as u32,
        width: 0,
        data,
        len,
        stride: 0,
        offsets: null(),
        validity: null(),
        validity_offset: 0,
    }
}

/// Returns the default settings.
pub fn defaults() -> warpset_options {
    warpset_options { struct_size: size_of::<warpset_options>(), ..Default::default() }
}

/// Returns an empty filter.
pub fn small() -> *mut warpset_structure {
    // SAFETY: the contract of the header.
    made(|out| unsafe { warpset_split_block_bloom_build(100, null(), out) })
}

/// Returns a path as a C string.
pub fn c_string(path: &Path) -> CString {
    CString::new(path.to_str().expect("a path of this test")).expect("no zero")
}

//! Pairs of keys and values that a structure lists.

use crate::error::{Result, guard, warpset_status};
use crate::handle::{self, content, give, handles};

/// Lists of keys and values: one list per range or key that was asked for.
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_rows {
    _private: [u8; 0],
}

handles! { warpset_rows: b"wsrows\0\x01", Rows; }

/// Lists of keys and values.
#[derive(Default)]
pub struct Rows {
    /// Begin of each list, and the end of the last one.
    pub offsets: Vec<u64>,
    pub keys: Vec<u64>,
    /// Keys of 16 bytes, in place of `keys`: integers, or strings in the order of memory.
    pub wide_keys: Vec<u128>,
    pub values: Vec<u64>,
}

/// Arrays of a `warpset_rows`, valid until it is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_row_arrays {
    /// Number of lists.
    pub lists: usize,
    /// `lists + 1` offsets: list `i` has the items from `offsets[i]` to `offsets[i + 1]`.
    pub offsets: *const u64,
    /// Number of items of all lists.
    pub len: usize,
    /// Keys; NULL if they have 16 bytes.
    pub keys: *const u64,
    /// Keys of 16 bytes, integers with the low half first, or strings; NULL if they have fewer.
    pub wide_keys: *const u64,
    pub values: *const u64,
}

/// Returns the arrays of a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_rows_arrays(
    rows: *const warpset_rows,
    out: *mut warpset_row_arrays,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let rows: &Rows = content(rows)?;
        let is_wide = !rows.wide_keys.is_empty();
        let arrays = warpset_row_arrays {
            lists: rows.offsets.len().saturating_sub(1),
            offsets: rows.offsets.as_ptr(),
            len: rows.values.len(),
            keys: if is_wide { std::ptr::null() } else { rows.keys.as_ptr() },
            wide_keys: if is_wide { rows.wide_keys.as_ptr().cast() } else { std::ptr::null() },
            values: rows.values.as_ptr(),
        };
        give(out, "out", arrays)
    })
}

/// Frees a result; NULL is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_rows_free(rows: *mut warpset_rows) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| -> Result<()> { unsafe { handle::free(rows) } })
}

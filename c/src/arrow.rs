//! The Arrow C data interface: keys from Arrow arrays, answers as Arrow arrays.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, null_mut};

use crate::error::{Failure, Result, guard, warpset_status, warpset_status as Status};
use crate::handle::{check, content, give};
use crate::keys::{array, warpset_key_type, warpset_keys};
use crate::rows::{Rows, warpset_rows};

/// `ArrowSchema` of the Arrow C data interface.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `ArrowArray` of the Arrow C data interface.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// Describes the keys of an Arrow array in place: integers, dates and times, strings, binary and fixed-size binary,
/// decimals of 128 bits. The array stays the caller's, and must live as long as the description is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_keys_from_arrow(
    schema: *const ArrowSchema,
    array: *const ArrowArray,
    out: *mut warpset_keys,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        check(schema, "schema")?;
        check(array, "array")?;
        check(out, "out")?;
        let (schema, array) = (&*schema, &*array);
        if schema.release.is_none() || array.release.is_none() {
            return Err(Failure::new(Status::WrongHandle, "the schema or the array has been released"));
        }
        check(schema.format, "schema->format")?;
        give(out, "out", described(CStr::from_ptr(schema.format).to_bytes(), schema, array)?)
    })
}

/// Returns the description of an array.
///
/// # Safety
/// The array is one of the Arrow C data interface with this format.
unsafe fn described(format: &[u8], schema: &ArrowSchema, array: &ArrowArray) -> Result<warpset_keys> {
    use warpset_key_type::*;
    let unknown = || {
        let format = String::from_utf8_lossy(format);
        let why = format!("Arrow format \"{format}\": keys are integers, doubles, strings or binary; cast the array");
        Failure::new(Status::WrongType, why)
    };
    if !schema.dictionary.is_null() {
        return Err(Failure::new(Status::WrongType, "a dictionary-encoded array: decode it first"));
    }
    let (key_type, width) = match format {
        b"c" => (I8, 1),
        b"C" => (U8, 1),
        b"s" => (I16, 2),
        b"S" => (U16, 2),
        b"i" | b"tdD" | b"tts" | b"ttm" => (I32, 4),
        b"I" => (U32, 4),
        b"l" | b"tdm" | b"ttu" | b"ttn" | b"tDs" | b"tDm" | b"tDu" | b"tDn" => (I64, 8),
        b"L" => (U64, 8),
        b"g" => (F64, 8),
        b"u" | b"z" => (Strings32, 4),
        b"U" | b"Z" => (Strings64, 8),
        _ if format.starts_with(b"ts") => (I64, 8),
        _ if format.starts_with(b"w:") => {
            let width = std::str::from_utf8(&format[2..]).ok().and_then(|width| width.parse().ok());
            (FixedStrings, width.ok_or_else(unknown)?)
        }
        _ if format.starts_with(b"d:") && format.iter().filter(|&&byte| byte == b',').count() == 1 => (I128, 16),
        _ => return Err(unknown()),
    };
    let number =
        |number: i64| usize::try_from(number).map_err(|_| Failure::value("a negative number in an Arrow array"));
    let (len, offset) = (number(array.length)?, number(array.offset)?);
    let has_offsets = matches!(key_type, Strings32 | Strings64);
    let needed = if has_offsets { 3 } else { 2 };
    if number(array.n_buffers)? != needed {
        return Err(Failure::value(format!("an Arrow array of {} buffers instead of {needed}", array.n_buffers)));
    }
    // SAFETY: an Arrow array has `n_buffers` pointers to buffers.
    let buffers = unsafe { self::array(array.buffers, needed, "buffers") }?;
    let skipped = offset.checked_mul(width as usize).filter(|&bytes| bytes <= isize::MAX as usize);
    let skipped = skipped.ok_or_else(|| Failure::new(Status::InvalidLength, "an offset longer than memory"))?;
    let after = |buffer: *const c_void| buffer.cast::<u8>().wrapping_add(if buffer.is_null() { 0 } else { skipped });
    Ok(warpset_keys {
        key_type: key_type as u32,
        width: if matches!(key_type, FixedStrings) { width } else { 0 },
        data: if has_offsets { buffers[2].cast() } else { after(buffers[1]) },
        len,
        stride: 0,
        offsets: if has_offsets { after(buffers[1]) } else { ptr::null() },
        validity: if array.null_count == 0 { ptr::null() } else { buffers[0].cast() },
        validity_offset: offset,
    })
}

/// Buffers of an exported array, and its children.
struct Exported {
    buffers: [*const c_void; 2],
    children: Vec<*mut ArrowArray>,
    #[allow(dead_code, reason = "owns what `buffers` points to, until `release_array` drops it")]
    memory: Vec<u64>,
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the consumer passes an array of `exported` once, whose private data are a boxed `Exported`; the children
    // are boxed arrays of `exported`, unless the consumer has moved them away, which clears their `release`.
    unsafe {
        let held = Box::from_raw((*array).private_data.cast::<Exported>());
        for &child in &held.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

/// Schema of an exported array: pointers to the schemas of its children.
type ExportedSchema = Vec<*mut ArrowSchema>;

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: as in `release_array`, for the private data of `schema`.
    unsafe {
        let children = Box::from_raw((*schema).private_data.cast::<ExportedSchema>());
        for &child in &*children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

/// Wraps memory as an Arrow array of `len` items; without memory, as one of structures.
fn exported(len: usize, memory: Option<Vec<u64>>, children: Vec<ArrowArray>) -> ArrowArray {
    let n_buffers = 1 + i64::from(memory.is_some());
    let memory = memory.unwrap_or_default();
    let children: Vec<_> = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let mut held = Box::new(Exported { buffers: [ptr::null(), memory.as_ptr().cast()], children, memory });
    ArrowArray {
        length: len as i64,
        null_count: 0,
        offset: 0,
        n_buffers,
        n_children: held.children.len() as i64,
        buffers: held.buffers.as_mut_ptr(),
        children: held.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(held).cast(),
    }
}

fn schema(format: &'static CStr, name: &'static CStr, children: Vec<ArrowSchema>) -> ArrowSchema {
    let mut children: Box<ExportedSchema> =
        Box::new(children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect());
    ArrowSchema {
        format: format.as_ptr(),
        name: name.as_ptr(),
        metadata: ptr::null(),
        flags: 0,
        n_children: children.len() as i64,
        children: children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(children).cast(),
    }
}

/// Writes an Arrow array and its schema to the caller's memory.
///
/// # Safety
/// Both pointers are valid for writing, if they are neither NULL nor misaligned.
unsafe fn export(
    schemas: *mut ArrowSchema,
    arrays: *mut ArrowArray,
    make: impl FnOnce() -> Result<(ArrowSchema, ArrowArray)>,
) -> Result<()> {
    check(schemas, "out_schema")?;
    check(arrays, "out_array")?;
    let (schema, array) = make()?;
    // SAFETY: checked for NULL and alignment; the caller guarantees that they are valid for writing.
    unsafe {
        schemas.write(schema);
        arrays.write(array);
    }
    Ok(())
}

/// Copies answers (bytes 0 and 1) to an Arrow array of booleans.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_arrow_from_answers(
    answers: *const u8,
    len: usize,
    out_schema: *mut ArrowSchema,
    out_array: *mut ArrowArray,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let answers = array(answers, len, "answers")?;
        export(out_schema, out_array, || {
            let word =
                |answers: &[u8]| answers.iter().rev().fold(0, |word, &answer| word << 1 | u64::from(answer != 0));
            let words = answers.chunks(64).map(word).collect();
            Ok((schema(c"b", c"", Vec::new()), exported(len, Some(words), Vec::new())))
        })
    })
}

/// Copies numbers, counts or values to an Arrow array of `uint64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_arrow_from_numbers(
    numbers: *const u64,
    len: usize,
    out_schema: *mut ArrowSchema,
    out_array: *mut ArrowArray,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let numbers = array(numbers, len, "numbers")?;
        export(out_schema, out_array, || {
            Ok((schema(c"L", c"", Vec::new()), exported(len, Some(numbers.to_vec()), Vec::new())))
        })
    })
}

/// Copies the pairs of a result, keys of at most 64 bits, to an Arrow array of structures: children `key` and `value`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_arrow_from_rows(
    rows: *const warpset_rows,
    out_schema: *mut ArrowSchema,
    out_array: *mut ArrowArray,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let rows: &Rows = content(rows)?;
        if !rows.wide_keys.is_empty() {
            return Err(Failure::new(Status::WrongType, "keys of 16 bytes: use warpset_rows_arrays"));
        }
        export(out_schema, out_array, || {
            let child = |items: &[u64]| exported(items.len(), Some(items.to_vec()), Vec::new());
            let fields = vec![schema(c"L", c"key", Vec::new()), schema(c"L", c"value", Vec::new())];
            let children = vec![child(&rows.keys), child(&rows.values)];
            Ok((schema(c"+s", c"", fields), exported(rows.values.len(), None, children)))
        })
    })
}

#[cfg(test)]
impl ArrowSchema {
    /// Releases the schema, as a consumer does.
    pub unsafe fn released(&mut self) {
        // SAFETY: the schema was exported here and has not been released.
        unsafe { self.release.expect("once")(self) };
    }
}

#[cfg(test)]
impl ArrowArray {
    /// Releases the array, as a consumer does.
    pub unsafe fn released(&mut self) {
        // SAFETY: the array was exported here and has not been released.
        unsafe { self.release.expect("once")(self) };
    }

    /// Returns the children of an array of structures, with two items of 64 bits each.
    pub unsafe fn columns(&self) -> [[u64; 2]; 2] {
        // SAFETY: the array was exported with two children, whose second buffers have two words.
        std::array::from_fn(|i| unsafe { *(*(*(*self.children.add(i))).buffers.add(1)).cast() })
    }
}

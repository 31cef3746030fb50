//! Keys that Python gives: one, or a batch of them in whatever holds them.
//!
//! | argument | keys |
//! | --- | --- |
//! | NumPy arrays and other buffers of integers of 32 and 64 bits | where they are |
//! | those of 8 and 16 bits; arrays with gaps, misaligned ones | copied |
//! | arrays of fixed byte strings (`S`) | where they are; zeros at the end do not count |
//! | Arrow arrays and streams (`arrow`) | where they are; integers among nulls, or of 8 and 16 bits, copied |
//! | `__cuda_array_interface__` and DLPack (`device`) | where they are |
//! | lists and other iterables of `int`, or of `str` and `bytes`; other strings of NumPy | copied |

use std::slice;

use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyFloat, PyInt, PyString};

use crate::arrow;
use crate::device::{self, DeviceKeys};

/// Keys of one type in host memory. Integers of 64 bits count by their bits, so that one kind serves both signs.
#[derive(Clone, Copy)]
pub enum HostKeys<'a> {
    /// Unsigned integers of 32 bits.
    U32(&'a [u32]),
    /// Signed integers of 32 bits.
    I32(&'a [i32]),
    /// Integers of 64 bits.
    U64(&'a [u64]),
    /// Byte strings.
    Strings(&'a [&'a [u8]]),
}

/// Runs `$body` with the slice of keys under the name `$keys`, whatever their type.
#[macro_export]
macro_rules! with_keys {
    ($batch:expr, |$keys:ident| $body:expr) => {
        match $batch {
            $crate::keys::HostKeys::U32($keys) => $body,
            $crate::keys::HostKeys::I32($keys) => $body,
            $crate::keys::HostKeys::U64($keys) => $body,
            $crate::keys::HostKeys::Strings($keys) => $body,
        }
    };
}

/// What the words of integers of 64 bits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Numbers from 0 to 2^64 - 1.
    Unsigned,
    /// Numbers from -2^63 to 2^63 - 1.
    Signed,
    /// A list has numbers below 0 and others above 2^63 - 1.
    Mixed,
}

/// Where keys are; as long as the owner of the [`ArrayKeys`] is there.
enum Items {
    U32(&'static [u32]),
    I32(&'static [i32]),
    U64(&'static [u64]),
    Strings(Vec<&'static [u8]>),
}

/// What keeps keys alive.
pub enum Owner {
    /// A buffer of Python.
    Buffer(#[allow(dead_code, reason = "held, not read")] PyUntypedBuffer),
    /// An array of Arrow.
    Arrow(#[allow(dead_code, reason = "held, not read")] arrow_array::ArrayRef),
    /// Our copy, in words for their alignment.
    Words(#[allow(dead_code, reason = "held, not read")] Vec<u64>),
}

/// Keys of one array.
pub struct ArrayKeys {
    items: Items,
    #[allow(dead_code, reason = "held, not read: the items are there")]
    owner: Owner,
    /// Which of the array's places hold a key; all of them unless it has nulls.
    present: Option<Vec<bool>>,
    sign: Sign,
}

impl ArrayKeys {
    /// The keys that are there.
    pub fn keys(&self) -> HostKeys<'_> {
        match &self.items {
            Items::U32(keys) => HostKeys::U32(keys),
            Items::I32(keys) => HostKeys::I32(keys),
            Items::U64(keys) => HostKeys::U64(keys),
            Items::Strings(keys) => HostKeys::Strings(keys),
        }
    }

    /// How many keys are there.
    pub fn count(&self) -> usize {
        with_keys!(self.keys(), |keys| keys.len())
    }

    /// How many places the array has: keys and nulls.
    pub fn len(&self) -> usize {
        self.present.as_ref().map_or(self.count(), Vec::len)
    }

    /// Which places hold a key, if there are nulls.
    pub fn present(&self) -> Option<&[bool]> {
        self.present.as_deref()
    }

    /// How integers of 64 bits are read where they are more than bits.
    pub fn sign(&self) -> Sign {
        self.sign
    }

    /// Byte strings; `present` says where nulls were, which are not among them.
    ///
    /// # Safety
    /// The strings stay where they are and as they are as long as `owner` lives.
    pub unsafe fn strings(strings: Vec<&'static [u8]>, owner: Owner, present: Option<Vec<bool>>) -> ArrayKeys {
        ArrayKeys { items: Items::Strings(strings), owner, present, sign: Sign::Unsigned }
    }

    /// Integers in memory of another owner, copied if they have to be.
    ///
    /// # Safety
    /// - `memory` stays as it is as long as `owner` lives.
    pub unsafe fn integers(memory: &Integers, owner: Owner, present: Option<Vec<bool>>) -> ArrayKeys {
        let is_in_place = memory.stride == memory.size as isize
            && memory.size >= 4
            && memory.address.addr().is_multiple_of(memory.size)
            && present.as_deref().is_none_or(|present| present.iter().all(|&is_there| is_there));
        let sign = if memory.is_signed { Sign::Signed } else { Sign::Unsigned };
        if memory.len == 0 {
            return ArrayKeys { items: Items::U64(&[]), owner: Owner::Words(Vec::new()), present, sign };
        }
        if is_in_place {
            // SAFETY: that many aligned integers of this size; they live as long as `owner`, which moves into the part.
            let items = unsafe {
                match (memory.size, memory.is_signed) {
                    (4, false) => Items::U32(slice::from_raw_parts(memory.address.cast(), memory.len)),
                    (4, true) => Items::I32(slice::from_raw_parts(memory.address.cast(), memory.len)),
                    _ => Items::U64(slice::from_raw_parts(memory.address.cast(), memory.len)),
                }
            };
            return ArrayKeys { items, owner, present: None, sign };
        }
        let words = (0..memory.len)
            .filter(|&place| present.as_deref().is_none_or(|present| present[place]))
            // SAFETY: `place` is one of the array's.
            .map(|place| unsafe { memory.word(place) })
            .collect();
        let present = present.filter(|present| present.contains(&false));
        ArrayKeys::words(words, present, sign)
    }

    /// Integers by their words of 64 bits.
    fn words(words: Vec<u64>, present: Option<Vec<bool>>, sign: Sign) -> ArrayKeys {
        // SAFETY: the vector moves into the part, and its memory stays where it is.
        let items = Items::U64(unsafe { slice::from_raw_parts(words.as_ptr(), words.len()) });
        ArrayKeys { items, owner: Owner::Words(words), present, sign }
    }

    /// Byte strings that lie one after the other in `bytes`, and end at `ends`.
    fn copied_strings(bytes: Vec<u8>, ends: &[usize]) -> ArrayKeys {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        let mut begin = 0;
        let strings = ends
            .iter()
            .map(|&end| {
                // SAFETY: in the vector, which moves into the part.
                let string = unsafe { slice::from_raw_parts(words.as_ptr().cast::<u8>().add(begin), end - begin) };
                begin = end;
                string
            })
            .collect();
        ArrayKeys { items: Items::Strings(strings), owner: Owner::Words(words), present: None, sign: Sign::Unsigned }
    }
}

/// Integers in memory, with the distance from one to the next.
pub struct Integers {
    /// The first one.
    pub address: *const u8,
    /// How many.
    pub len: usize,
    /// Bytes of one: 1, 2, 4 or 8.
    pub size: usize,
    /// Bytes from one to the next.
    pub stride: isize,
    /// Whether they have a sign.
    pub is_signed: bool,
}

impl Integers {
    /// The word that a key of this value has.
    ///
    /// # Safety
    /// `place` is below `len`, and the memory is readable.
    unsafe fn word(&self, place: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            let item = self.address.offset(self.stride * place as isize);
            match (self.size, self.is_signed) {
                (1, false) => u64::from(*item),
                (1, true) => *item.cast::<i8>() as u64,
                (2, false) => u64::from(item.cast::<u16>().read_unaligned()),
                (2, true) => item.cast::<i16>().read_unaligned() as u64,
                (4, false) => u64::from(item.cast::<u32>().read_unaligned()),
                (4, true) => item.cast::<i32>().read_unaligned() as u64,
                _ => item.cast::<u64>().read_unaligned(),
            }
        }
    }
}

/// Whether two slices share memory.
pub fn overlap<A, B>(one: &[A], other: &[B]) -> bool {
    let (one, other) = (one.as_ptr_range(), other.as_ptr_range());
    one.start.addr() < other.end.addr() && other.start.addr() < one.end.addr()
}

/// One key.
pub enum OneKey<'py> {
    /// An integer, as its word of 64 bits.
    Word(u64),
    /// The bytes of a `bytes` or `str`, and their owner.
    Bytes(&'py [u8]),
}

/// Runs `$body` with one key under the name `$key`, whatever its type.
#[macro_export]
macro_rules! with_key {
    ($one:expr, |$key:ident| $body:expr) => {
        match $one {
            $crate::keys::OneKey::Word($key) => $body,
            $crate::keys::OneKey::Bytes($key) => $body,
        }
    };
}

/// The word of an `int`, and whether it is negative: such ones count as their two's complement, as in columns of 64
/// bits.
fn word_of(int: &Bound<'_, PyAny>) -> PyResult<(u64, bool)> {
    // SAFETY: an object, of any type; the interpreter is attached.
    let word = unsafe { ffi::PyLong_AsUnsignedLongLong(int.as_ptr()) };
    if word < u64::MAX || !PyErr::occurred(int.py()) {
        return Ok((word, false));
    }
    let _ = PyErr::take(int.py());
    int.extract::<i64>().map(|word| (word as u64, true)).map_err(|error| {
        let why = "an integer below -2**63 or above 2**64 - 1 is no key: pass its bytes, as by `int.to_bytes`";
        if error.is_instance_of::<PyOverflowError>(int.py()) { PyOverflowError::new_err(why) } else { error }
    })
}

fn wrong_key(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("a key is an `int`, `str` or `bytes`, not `{name}`"))
}

/// The key that an object is.
pub fn one_key<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<OneKey<'a>> {
    if object.is_instance_of::<PyInt>() {
        return Ok(OneKey::Word(word_of(object)?.0));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(OneKey::Bytes(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(OneKey::Bytes(bytes.as_bytes()));
    }
    // Integers of NumPy and others; those of a float have no index.
    match object.call_method0(intern!(object.py(), "__index__")) {
        Ok(int) => Ok(OneKey::Word(word_of(&int)?.0)),
        Err(_) => Err(wrong_key(object)),
    }
}

/// Whether an object is one key, and no batch of them.
pub fn is_one_key(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyInt>() || object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>()
}

/// A batch of keys, as Python gives it.
pub enum Batch {
    /// In host memory; the parts of a chunked array one after the other.
    Host(Vec<ArrayKeys>),
    /// On a device.
    Device(DeviceKeys),
}

impl Batch {
    /// The keys in an array, a list or whatever else holds them all at a time.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Batch> {
        match Batch::of_array(object)? {
            Some(batch) => Ok(batch),
            None => {
                let mut gathered = Gathered::default();
                for key in object.try_iter().map_err(|_| no_batch(object))? {
                    gathered.push(&key?)?;
                }
                Ok(Batch::Host(vec![gathered.take()]))
            }
        }
    }

    /// The keys of an array; `None` if the object is none.
    pub fn of_array(object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
        if is_one_key(object) || object.is_instance_of::<PyByteArray>() {
            return Err(PyTypeError::new_err(
                "one key where many are expected: use `key in …` or `add(key)`, or pass a list or an array",
            ));
        }
        // Lists and tuples have none of the protocols below.
        if object.is_instance_of::<pyo3::types::PyList>() || object.is_instance_of::<pyo3::types::PyTuple>() {
            return Ok(None);
        }
        if let Ok(buffer) = PyUntypedBuffer::get(object) {
            if buffer.dimensions() == 0 {
                return Err(wrong_key(object)); // a number of NumPy
            }
            // Text of a fixed length, and objects, are the list that they make.
            if !buffer.format().to_bytes().ends_with(b"w") && !buffer.format().to_bytes().ends_with(b"O") {
                return of_buffer(buffer).map(|part| Some(Batch::Host(vec![part])));
            }
        }
        if let Some(parts) = arrow::parts(object)? {
            return Ok(Some(Batch::Host(parts.collect::<PyResult<_>>()?)));
        }
        if let Some(keys) = device::keys(object)? {
            return Ok(Some(keys));
        }
        match arrow::other_array(object)? {
            Some(array) => of_array_of_objects(object, &array).map(Some),
            None => Ok(None),
        }
    }

    /// How many keys and nulls there are.
    pub fn len(&self) -> usize {
        match self {
            Batch::Host(parts) => parts.iter().map(ArrayKeys::len).sum(),
            Batch::Device(keys) => keys.len(),
        }
    }
}

fn no_batch(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "`{name}` holds no keys: pass an array of integers or strings (NumPy, Arrow, CuPy, PyTorch), or an iterable of \
         `int`, `str` or `bytes`"
    ))
}

/// The keys in an array that NumPy made of an object.
fn of_array_of_objects(object: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<Batch> {
    let py = object.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
    match kind.as_str() {
        _ if dimensions == 0 => Err(wrong_key(object)),
        "U" | "T" | "O" if dimensions == 1 => {
            let (mut gathered, mut present) = (Gathered::default(), Vec::new());
            for item in array.call_method0(intern!(py, "tolist"))?.try_iter()? {
                let item = item?;
                present.push(!is_missing(&item)?);
                if present.ends_with(&[true]) {
                    gathered.push(&item)?;
                }
            }
            let mut part = gathered.take();
            part.present = present.contains(&false).then_some(present);
            Ok(Batch::Host(vec![part]))
        }
        "i" | "u" | "S" if !array.is(object) => Ok(Batch::Host(vec![of_buffer(PyUntypedBuffer::get(array)?)?])),
        _ => Err(PyTypeError::new_err(format!(
            "an array of {dtype} holds no keys: pass integers of 8 to 64 bits (`.astype`), the bits of other numbers \
             (`.view(numpy.uint64)`), or strings"
        ))),
    }
}

/// Whether an item of an array of objects stands for none: `None`, the float `nan`, and what pandas has for it.
fn is_missing(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_nan = || item.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
    Ok(item.is_none() || is_nan() || item.get_type().name()? == "NAType")
}

/// The type of a buffer's items; unknown if their bytes are in another order than the machine's.
pub fn element_type(buffer: &PyUntypedBuffer) -> ElementType {
    let other_order = if cfg!(target_endian = "little") { [b'>', b'!'] } else { [b'<', b'<'] };
    match buffer.format().to_bytes() {
        [order, size, ..] if other_order.contains(order) && *size != b'B' && *size != b'b' => ElementType::Unknown,
        _ => ElementType::from_format(buffer.format()),
    }
}

/// The keys in a buffer.
fn of_buffer(buffer: PyUntypedBuffer) -> PyResult<ArrayKeys> {
    if buffer.dimensions() != 1 {
        let shape = buffer.shape();
        let why = format!("keys in {} dimensions (shape {shape:?}): pass a flat array, as by `.ravel()`", shape.len());
        return Err(PyValueError::new_err(why));
    }
    let format = buffer.format().to_string_lossy().into_owned();
    let (len, size) = (buffer.shape()[0], buffer.item_size());
    let address = buffer.buf_ptr().cast_const().cast::<u8>();
    let stride = if len > 1 { buffer.strides()[0] } else { size as isize };
    let is_signed = match element_type(&buffer) {
        ElementType::SignedInteger { .. } => true,
        ElementType::UnsignedInteger { .. } => false,
        _ if format.ends_with('s') && format[..format.len() - 1].bytes().all(|b| b.is_ascii_digit()) => {
            let strings = (0..len)
                .map(|place| {
                    // SAFETY: item `place` of the buffer, which the part holds.
                    let item = unsafe { slice::from_raw_parts(address.offset(stride * place as isize), size) };
                    &item[..item.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
                })
                .collect();
            // SAFETY: the buffer stays where it is; Python code that writes it meanwhile changes which keys there are,
            // as with NumPy's own functions.
            return Ok(unsafe { ArrayKeys::strings(strings, Owner::Buffer(buffer), None) });
        }
        _ => {
            return Err(PyTypeError::new_err(format!(
                "an array with items of format `{format}` holds no keys: pass integers of 8 to 64 bits in the machine's \
                 byte order (`.astype`), the bits of other numbers (`.view(numpy.uint64)`), or byte strings"
            )));
        }
    };
    if !matches!(size, 1 | 2 | 4 | 8) {
        return Err(PyTypeError::new_err(format!("integers of {size} bytes: pass ones of 8 to 64 bits")));
    }
    let memory = Integers { address, len, size, stride, is_signed };
    // SAFETY: the buffer keeps its memory where it is; Python code that writes it meanwhile changes which keys there
    // are, as with NumPy's own functions.
    Ok(unsafe { ArrayKeys::integers(&memory, Owner::Buffer(buffer), None) })
}

/// Keys that come one by one.
#[derive(Default)]
pub struct Gathered {
    words: Vec<u64>,
    has_negative: bool,
    has_large: bool,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Gathered {
    /// Adds a key.
    pub fn push(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        // The most frequent, at once.
        if object.is_instance_of::<PyInt>() && self.ends.is_empty() {
            let (word, is_negative) = word_of(object)?;
            self.words.push(word);
            self.has_negative |= is_negative;
            self.has_large |= !is_negative && word >> 63 == 1;
            return Ok(());
        }
        let is_word = match one_key(object)? {
            OneKey::Word(word) => {
                self.words.push(word);
                if word >> 63 == 1 {
                    *(if object.lt(0)? { &mut self.has_negative } else { &mut self.has_large }) = true;
                }
                true
            }
            OneKey::Bytes(bytes) => {
                self.bytes.extend_from_slice(bytes);
                self.ends.push(self.bytes.len());
                false
            }
        };
        let is_mixed = if is_word { !self.ends.is_empty() } else { !self.words.is_empty() };
        if is_mixed {
            let place = self.len() - 1;
            let why =
                format!("keys of one call are all `int`, or all `str` and `bytes`; item {place} is of the other kind");
            return Err(PyTypeError::new_err(why));
        }
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.words.len() + self.ends.len()
    }

    /// All of them; none is left.
    pub fn take(&mut self) -> ArrayKeys {
        if self.ends.is_empty() {
            let sign = match (std::mem::take(&mut self.has_negative), std::mem::take(&mut self.has_large)) {
                (false, _) => Sign::Unsigned,
                (true, false) => Sign::Signed,
                (true, true) => Sign::Mixed,
            };
            return ArrayKeys::words(std::mem::take(&mut self.words), None, sign);
        }
        ArrayKeys::copied_strings(std::mem::take(&mut self.bytes), &std::mem::take(&mut self.ends))
    }
}

/// Bytes that Python gives, such as `bytes` or a mapped file.
pub struct Bytes(PyUntypedBuffer);

impl Bytes {
    /// The bytes of a buffer.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("bytes with gaps: pass `bytes`, or a contiguous array of them"));
        }
        Ok(Bytes(buffer))
    }

    /// All of them.
    pub fn get(&self) -> &[u8] {
        match self.0.len_bytes() {
            0 => &[],
            // SAFETY: contiguous bytes, which the buffer keeps; Python code that writes them meanwhile damages what is
            // read, which every reader of saved forms takes for damaged or for others.
            len => unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), len) },
        }
    }
}

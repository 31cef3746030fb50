//! Keys that Python gives: one, or a batch of them in whatever holds them.
//!
//! | argument | keys |
//! | --- | --- |
//! | NumPy arrays and other buffers of integers of 32 and 64 bits | where they are |
//! | those of 8 and 16 bits; arrays with gaps, misaligned ones | copied |
//! | arrays of fixed byte strings (`S`) | where they are; zeros at the end do not count |
//! | arrays of fixed bytes (`V`) | where they are; all bytes count |
//! | masked arrays of NumPy | copied without what the mask hides |
//! | Arrow arrays and streams (`arrow`) | where they are; integers among nulls, or of 8 and 16 bits, copied |
//! | `__cuda_array_interface__` and DLPack (`device`) | where they are |
//! | lists and other iterables of `int`, or of `str` and `bytes`; other strings of NumPy | copied |
//!
//! A null is `None`, the float `nan` or pandas' `NA` among objects, a null of Arrow, a hidden item of a masked array. It
//! is no key.

use std::borrow::Cow;
use std::ops::Range;
use std::slice;

use pyo3::IntoPyObjectExt;
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyByteArray, PyBytes, PyFloat, PyInt, PyIterator, PyString};

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

impl<'a> HostKeys<'a> {
    /// Keys in a range of places.
    fn within(self, range: Range<usize>) -> HostKeys<'a> {
        match self {
            HostKeys::U32(keys) => HostKeys::U32(&keys[range]),
            HostKeys::I32(keys) => HostKeys::I32(&keys[range]),
            HostKeys::U64(keys) => HostKeys::U64(&keys[range]),
            HostKeys::Strings(keys) => HostKeys::Strings(&keys[range]),
        }
    }
}

/// Keys and nulls at consecutive places of an array.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    keys: HostKeys<'a>,
    /// Which of the places hold a key; all of them unless there are nulls.
    present: Option<&'a [bool]>,
    sign: Sign,
}

impl<'a> Piece<'a> {
    /// The keys that are there.
    pub fn keys(&self) -> HostKeys<'a> {
        self.keys
    }

    /// How many keys are there.
    pub fn count(&self) -> usize {
        with_keys!(self.keys, |keys| keys.len())
    }

    /// How many places there are: keys and nulls.
    pub fn len(&self) -> usize {
        self.present.map_or(self.count(), <[bool]>::len)
    }

    /// Whether there are nulls.
    pub fn has_nulls(&self) -> bool {
        self.len() > self.count()
    }

    /// Whether each place holds a key.
    pub fn places(&self) -> impl Iterator<Item = bool> + 'a {
        let present = self.present;
        (0..self.len()).map(move |place| present.is_none_or(|present| present[place]))
    }

    /// How integers of 64 bits are read where they are more than bits.
    pub fn sign(&self) -> Sign {
        self.sign
    }

    /// Writes the items of the keys to their places, and `absent` to those of nulls.
    pub fn spread<T: Copy>(&self, items: &[T], places: &mut [T], absent: T) {
        let Some(present) = self.present else { return places.copy_from_slice(items) };
        let mut items = items.iter();
        for (place, &is_there) in places.iter_mut().zip(present) {
            *place = if is_there { items.next().copied().unwrap_or(absent) } else { absent };
        }
    }
}

/// Places of arrays that are worked on between two looks at signals.
pub const AT_ONCE: usize = 1 << 20;

/// Calls `work` with the pieces of arrays, so many at a time, and the range of their places among all. In between
/// signals are heard, such as Ctrl-C.
pub fn each_group<'a>(
    py: Python<'_>,
    parts: &'a [ArrayKeys],
    mut work: impl FnMut(&[Piece<'a>], Range<usize>) -> PyResult<()>,
) -> PyResult<()> {
    let (mut group, mut begin, mut len) = (Vec::new(), 0, 0);
    for piece in parts.iter().flat_map(ArrayKeys::pieces) {
        if len > 0 && len + piece.len() > AT_ONCE {
            work(&group, begin..begin + len)?;
            py.check_signals()?;
            group.clear();
            (begin, len) = (begin + len, 0);
        }
        len += piece.len();
        group.push(piece);
    }
    work(&group, begin..begin + len)
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

    /// All of it.
    pub fn piece(&self) -> Piece<'_> {
        Piece { keys: self.keys(), present: self.present(), sign: self.sign }
    }

    /// Pieces of at most [`AT_ONCE`] places; one at least.
    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let (all, mut before) = (self.piece(), 0);
        (0..all.len().max(1)).step_by(AT_ONCE).map(move |begin| {
            let places = begin..all.len().min(begin + AT_ONCE);
            let present = all.present.map(|present| &present[places.clone()]);
            let count = present.map_or(places.len(), |present| present.iter().filter(|&&is_there| is_there).count());
            before += count;
            Piece { keys: all.keys.within(before - count..before), present, ..all }
        })
    }

    /// Nulls alone.
    pub fn nulls(len: usize) -> ArrayKeys {
        ArrayKeys::words(Vec::new(), (len > 0).then(|| vec![false; len]), Sign::Unsigned)
    }

    /// Keys with these numbers among the present ones; `present` tells the places of nulls between them.
    pub fn picked(self, picks: impl Iterator<Item = usize>, present: Option<Vec<bool>>) -> ArrayKeys {
        let words = match &self.items {
            Items::Strings(strings) => {
                let items = Items::Strings(picks.map(|pick| strings[pick]).collect());
                return ArrayKeys { items, present, ..self };
            }
            Items::U32(keys) => picks.map(|pick| u64::from(keys[pick])).collect(),
            Items::I32(keys) => picks.map(|pick| keys[pick] as u64).collect(),
            Items::U64(keys) => picks.map(|pick| keys[pick]).collect(),
        };
        ArrayKeys::words(words, present, self.sign)
    }

    /// Keys at the places where `is_shown` is true; the other places become nulls.
    pub fn shown(self, is_shown: &[bool]) -> ArrayKeys {
        if !is_shown.contains(&false) {
            return self;
        }
        let before = self.present.clone().unwrap_or_else(|| vec![true; self.count()]);
        let of_keys: Vec<bool> = before.iter().zip(is_shown).filter(|both| *both.0).map(|both| *both.1).collect();
        let picks = of_keys.into_iter().enumerate().filter(|key| key.1).map(|key| key.0);
        let present = before.iter().zip(is_shown).map(|(&is_key, &is_shown)| is_key && is_shown).collect();
        self.picked(picks, Some(present))
    }

    /// Byte strings; `present` says where nulls were, which are not among them.
    ///
    /// # Safety
    /// The strings stay where they are and as they are as long as `owner` lives.
    pub unsafe fn strings(strings: Vec<&'static [u8]>, owner: Owner, present: Option<Vec<bool>>) -> ArrayKeys {
        if strings.is_empty() {
            return ArrayKeys { present, ..ArrayKeys::nulls(0) }; // nothing, of any type
        }
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
    /// The bytes of a `bytes` or `str`.
    Bytes(Cow<'py, [u8]>),
}

/// Runs `$body` with a reference to one key under the name `$key`, whatever its type.
#[macro_export]
macro_rules! with_key {
    ($one:expr, |$key:ident| $body:expr) => {
        match $one {
            $crate::keys::OneKey::Word($key) => $body,
            $crate::keys::OneKey::Bytes(bytes) => {
                let bytes: &[u8] = bytes;
                let $key = &bytes;
                $body
            }
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
        return Ok(OneKey::Bytes(text.to_str()?.as_bytes().into()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(OneKey::Bytes(bytes.as_bytes().into()));
    }
    if let Some(value) = arrow::scalar(object)? {
        return match one_key(&value)? {
            OneKey::Word(word) => Ok(OneKey::Word(word)),
            OneKey::Bytes(bytes) => Ok(OneKey::Bytes(bytes.into_owned().into())),
        };
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
                for key in items(object)? {
                    gathered.push(&key?)?;
                }
                Ok(Batch::Host(vec![gathered.take()]))
            }
        }
    }

    /// The keys of an array; `None` if the object is none.
    pub fn of_array(object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
        if is_one_key(object) || object.is_instance_of::<PyByteArray>() {
            return Err(one_for_many());
        }
        // Lists and tuples have none of the protocols below.
        if object.is_instance_of::<pyo3::types::PyList>() || object.is_instance_of::<pyo3::types::PyTuple>() {
            return Ok(None);
        }
        if let Some(batch) = unmasked(object, Batch::of)? {
            return Ok(Some(batch));
        }
        if let Ok(buffer) = PyUntypedBuffer::get(object) {
            if buffer.dimensions() == 0 {
                return Err(wrong_key(object)); // a number of NumPy
            }
            // Text of a fixed length, and objects, are the list that they make. A scalar of Arrow may give its bytes.
            let format = buffer.format().to_bytes();
            let is_scalar = matches!(format, b"b" | b"B") && arrow::scalar(object)?.is_some();
            if !format.ends_with(b"w") && !format.ends_with(b"O") && !is_scalar {
                return of_buffer(buffer).map(|part| Some(Batch::Host(vec![part])));
            }
        }
        if let Some(parts) = arrow::parts(object)? {
            return Ok(Some(Batch::Host(parts.collect::<PyResult<_>>()?)));
        }
        if let Some(keys) = device::keys(object)? {
            return Ok(Some(keys));
        }
        if let Some(value) = arrow::scalar(object)? {
            let is_one = value.is_none() || one_key(&value).is_ok();
            return if is_one { Err(one_for_many()) } else { Batch::of(&value).map(Some) };
        }
        match arrow::other_array(object)? {
            Some(array) => of_array_of_objects(object, &array).map(|part| Some(Batch::Host(vec![part]))),
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

/// The items of an iterable.
pub fn items<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    if object.hasattr(intern!(object.py(), "collect"))? && object.hasattr(intern!(object.py(), "explain"))? {
        return Err(PyTypeError::new_err("a query that has not run holds no keys: pass a column of its `.collect()`"));
    }
    object.try_iter().map_err(|_| no_batch(object))
}

fn one_for_many() -> PyErr {
    PyTypeError::new_err("one key where many are expected: use `key in …` or `add(key)`, or pass a list or an array")
}

static MASKED_ARRAY: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();

/// Whether an object is a masked array of NumPy.
pub fn is_masked(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let find = || py.import("numpy.ma").and_then(|ma| ma.getattr("MaskedArray")).ok().map(Bound::unbind);
    MASKED_ARRAY.get_or_init(py, find).as_ref().map_or(Ok(false), |class| object.is_instance(class.bind(py)))
}

/// The batch that `of` makes of the data of a masked array, with nulls where its mask hides them; `None` if the object
/// is none.
pub fn unmasked(
    object: &Bound<'_, PyAny>,
    of: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Batch>,
) -> PyResult<Option<Batch>> {
    let py = object.py();
    if !is_masked(object)? {
        return Ok(None);
    }
    let batch = of(&object.getattr(intern!(py, "data"))?)?;
    let hidden = py.import(intern!(py, "numpy.ma"))?.call_method1(intern!(py, "getmaskarray"), (object,))?;
    let is_shown = unset(&hidden)?;
    let Batch::Host(parts) = batch else { return Err(no_batch(object)) };
    Ok(Some(Batch::Host(parts.into_iter().map(|part| part.shown(&is_shown)).collect())))
}

/// Where an array of booleans is false.
fn unset(flags: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    let bytes = Bytes::of(&flags.call_method0(intern!(flags.py(), "copy"))?)?;
    if bytes.0.dimensions() != 1 || bytes.0.item_size() != 1 {
        return Err(PyTypeError::new_err("a mask with several flags per item: fill the array, as by `.filled()`"));
    }
    Ok(bytes.get().iter().map(|&flag| flag == 0).collect())
}

fn no_batch(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "`{name}` holds no keys: pass an array of integers or strings (NumPy, Arrow, CuPy, PyTorch), or an iterable of \
         `int`, `str` or `bytes`"
    ))
}

/// The keys in an array that NumPy made of an object.
fn of_array_of_objects(object: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<ArrayKeys> {
    let py = object.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
    match kind.as_str() {
        _ if dimensions == 0 => Err(wrong_key(object)),
        "U" | "T" | "O" if dimensions == 1 => {
            let mut gathered = Gathered::default();
            for item in array.call_method0(intern!(py, "tolist"))?.try_iter()? {
                gathered.push(&item?)?;
            }
            Ok(gathered.take())
        }
        "i" | "u" | "S" if !array.is(object) => of_buffer(PyUntypedBuffer::get(array)?),
        // Integers with nulls, of which NumPy makes floats.
        "f" if !array.is(object) && object.hasattr(intern!(py, "isna"))? => of_nullable(object),
        _ => Err(PyTypeError::new_err(format!(
            "an array of {dtype} holds no keys: pass integers of 8 to 64 bits (`.astype`), the bits of other numbers \
             (`.view(numpy.uint64)`), or strings"
        ))),
    }
}

/// The keys in an array or index of pandas that may have nulls.
fn of_nullable(object: &Bound<'_, PyAny>) -> PyResult<ArrayKeys> {
    let py = object.py();
    let dtype = object.getattr(intern!(py, "dtype"))?.getattr_opt(intern!(py, "numpy_dtype"))?;
    let has_integers = match &dtype {
        Some(dtype) => ["i", "u"].contains(&dtype.getattr(intern!(py, "kind"))?.extract::<&str>()?),
        None => false,
    };
    let Some(dtype) = dtype.filter(|_| has_integers) else {
        let mut gathered = Gathered::default();
        for item in object.try_iter()? {
            gathered.push(&item?)?;
        }
        return Ok(gathered.take());
    };
    let arguments = [("dtype", dtype), ("na_value", 0i32.into_bound_py_any(py)?)].into_py_dict(py)?;
    let data = object.call_method(intern!(py, "to_numpy"), (), Some(&arguments))?;
    let hidden = object.call_method0(intern!(py, "isna"))?;
    Ok(of_buffer(PyUntypedBuffer::get(&data)?)?.shown(&unset(&hidden)?))
}

/// Whether an object among others is a null: `None`, the float `nan`, what pandas and Arrow have for it.
pub fn is_null(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    if is_one_key(item) {
        return Ok(false); // the most frequent, at once
    }
    let is_nan = || item.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
    if item.is_none() || is_nan() {
        return Ok(true);
    }
    let name = item.get_type().name()?;
    Ok(name == "NAType" || name == "NaTType" || arrow::scalar(item)?.is_some_and(|value| value.is_none()))
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
        _ if format.ends_with(['s', 'x']) && format[..format.len() - 1].bytes().all(|b| b.is_ascii_digit()) => {
            // NumPy fills shorter strings of `S` with zeros; items of `V` have all their bytes.
            let is_filled = format.ends_with('s');
            let strings = (0..len)
                .map(|place| {
                    // SAFETY: item `place` of the buffer, which the part holds.
                    let item = unsafe { slice::from_raw_parts(address.offset(stride * place as isize), size) };
                    let last = || item.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                    if is_filled { &item[..last()] } else { item }
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
    /// Places of nulls, ascending.
    nulls: Vec<usize>,
}

impl Gathered {
    /// Adds a key or a null.
    pub fn push(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        if (self.len() + 1).is_multiple_of(1 << 16) {
            object.py().check_signals()?;
        }
        // The most frequent, at once.
        if object.is_instance_of::<PyInt>() && self.ends.is_empty() {
            let (word, is_negative) = word_of(object)?;
            self.words.push(word);
            self.has_negative |= is_negative;
            self.has_large |= !is_negative && word >> 63 == 1;
            return Ok(());
        }
        let key = match one_key(object) {
            Ok(key) => key,
            Err(error) => {
                if !is_null(object)? {
                    return Err(error);
                }
                self.nulls.push(self.len());
                return Ok(());
            }
        };
        let is_word = match key {
            OneKey::Word(word) => {
                self.words.push(word);
                if word >> 63 == 1 {
                    let is_negative = match arrow::scalar(object)? {
                        Some(value) => value.lt(0)?,
                        None => object.lt(0)?,
                    };
                    *(if is_negative { &mut self.has_negative } else { &mut self.has_large }) = true;
                }
                true
            }
            OneKey::Bytes(bytes) => {
                self.bytes.extend_from_slice(&bytes);
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

    /// How many keys and nulls there are.
    pub fn len(&self) -> usize {
        self.words.len() + self.ends.len() + self.nulls.len()
    }

    /// All of them; none is left.
    pub fn take(&mut self) -> ArrayKeys {
        let mut present = vec![true; self.len()];
        let nulls = std::mem::take(&mut self.nulls);
        nulls.iter().for_each(|&place| present[place] = false);
        ArrayKeys { present: Some(present).filter(|_| !nulls.is_empty()), ..self.take_keys() }
    }

    fn take_keys(&mut self) -> ArrayKeys {
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

//! Keys from Python: one key, or a batch in any container.
//!
//! | argument | keys |
//! | --- | --- |
//! | NumPy arrays and other buffers of integers of 32 and 64 bits | read in place |
//! | those of 8 and 16 bits; arrays with gaps, misaligned arrays | copied |
//! | arrays of fixed byte strings (`S`) | read in place, without zeros at the end |
//! | arrays of fixed bytes (`V`) | read in place, all bytes |
//! | masked arrays of NumPy | copied without hidden items |
//! | Arrow arrays and streams (`arrow`) | read in place; integers among nulls, or of 8 and 16 bits, copied |
//! | `__cuda_array_interface__` and DLPack (`device`) | read in place |
//! | lists and other iterables of `int`, or of `str` and `bytes`; other strings of NumPy | copied |
//!
//! A null is no key. Nulls are `None`, the float `nan` and pandas' `NA` among objects, nulls of Arrow, and hidden items
//! of masked arrays.

mod batch;
mod gathered;
mod one;

use std::ops::Range;
use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use crate::error::{Failure, Result};

pub use batch::{Batch, Bytes, element_type, is_masked, items, unmasked};
pub use gathered::Gathered;
pub use one::{OneKey, is_null, is_one_key, one_key, wrong_key};

/// Keys of one type in host memory. Integers of 64 bits are compared by their bits, so one variant has both signs.
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
    /// Returns byte strings; integers are an error.
    pub fn strings(self) -> Result<&'a [&'a [u8]]> {
        match self {
            HostKeys::Strings(strings) => Ok(strings),
            _ if with_keys!(self, |keys| keys.is_empty()) => Ok(&[]),
            _ => Err(no_strings()),
        }
    }

    /// Returns the keys in a range.
    fn within(self, range: Range<usize>) -> HostKeys<'a> {
        match self {
            HostKeys::U32(keys) => HostKeys::U32(&keys[range]),
            HostKeys::I32(keys) => HostKeys::I32(&keys[range]),
            HostKeys::U64(keys) => HostKeys::U64(&keys[range]),
            HostKeys::Strings(keys) => HostKeys::Strings(&keys[range]),
        }
    }
}

/// Returns the error for integers in place of strings.
pub fn no_strings() -> Failure {
    Failure::wrong_type("integers: keys of this structure are strings and bytes")
}

/// Keys and nulls at consecutive places of an array.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    keys: HostKeys<'a>,
    /// Whether each place has a key; `None` without nulls.
    present: Option<&'a [bool]>,
    sign: Sign,
}

impl<'a> Piece<'a> {
    /// Returns the keys, without nulls.
    pub fn keys(&self) -> HostKeys<'a> {
        self.keys
    }

    /// Returns the number of keys.
    pub fn count(&self) -> usize {
        with_keys!(self.keys, |keys| keys.len())
    }

    /// Returns the number of places, keys and nulls.
    pub fn len(&self) -> usize {
        self.present.map_or(self.count(), <[bool]>::len)
    }

    /// Whether there are nulls.
    pub fn has_nulls(&self) -> bool {
        self.len() > self.count()
    }

    /// Returns whether each place has a key.
    pub fn places(&self) -> impl Iterator<Item = bool> + 'a {
        let present = self.present;
        (0..self.len()).map(move |place| present.is_none_or(|present| present[place]))
    }

    /// Returns the sign of integers of 64 bits, for uses beyond comparing bits.
    pub fn sign(&self) -> Sign {
        self.sign
    }

    /// Writes the items of keys to their places, and `absent` to the places of nulls.
    pub fn spread<T: Copy>(&self, items: &[T], places: &mut [T], absent: T) {
        let Some(present) = self.present else { return places.copy_from_slice(items) };
        let mut items = items.iter();
        for (place, &is_there) in places.iter_mut().zip(present) {
            *place = if is_there { items.next().copied().unwrap_or(absent) } else { absent };
        }
    }
}

/// Places of arrays between two checks of signals.
pub const AT_ONCE: usize = 1 << 20;

/// Calls `work` with groups of pieces of at most [`AT_ONCE`] places, and their range among all places. Between two
/// groups, signals such as Ctrl-C are handled.
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

/// Sign of integers of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Numbers from 0 to 2^64 - 1.
    Unsigned,
    /// Numbers from -2^63 to 2^63 - 1.
    Signed,
    /// A list contains both numbers below 0 and numbers above 2^63 - 1.
    Mixed,
}

/// Slices of keys, valid as long as the owner of the [`ArrayKeys`].
enum Items {
    U32(&'static [u32]),
    I32(&'static [i32]),
    U64(&'static [u64]),
    Strings(Vec<&'static [u8]>),
}

/// Owner of the memory of keys.
pub enum Owner {
    /// A buffer of Python.
    Buffer(#[allow(dead_code, reason = "held, not read")] PyUntypedBuffer),
    /// An array of Arrow.
    Arrow(#[allow(dead_code, reason = "held, not read")] arrow_array::ArrayRef),
    /// Our copy, in words for alignment.
    Words(#[allow(dead_code, reason = "held, not read")] Vec<u64>),
}

/// Keys of one array.
pub struct ArrayKeys {
    items: Items,
    #[allow(dead_code, reason = "held, not read: the items are there")]
    owner: Owner,
    /// Whether each place has a key; `None` without nulls.
    present: Option<Vec<bool>>,
    sign: Sign,
}

impl ArrayKeys {
    /// Returns the keys, without nulls.
    pub fn keys(&self) -> HostKeys<'_> {
        match &self.items {
            Items::U32(keys) => HostKeys::U32(keys),
            Items::I32(keys) => HostKeys::I32(keys),
            Items::U64(keys) => HostKeys::U64(keys),
            Items::Strings(keys) => HostKeys::Strings(keys),
        }
    }

    /// Returns the number of keys.
    pub fn count(&self) -> usize {
        with_keys!(self.keys(), |keys| keys.len())
    }

    /// Returns the number of places, keys and nulls.
    pub fn len(&self) -> usize {
        self.present.as_ref().map_or(self.count(), Vec::len)
    }

    /// Returns whether each place has a key; `None` without nulls.
    pub fn present(&self) -> Option<&[bool]> {
        self.present.as_deref()
    }

    /// Returns the whole array as one piece.
    pub fn piece(&self) -> Piece<'_> {
        Piece { keys: self.keys(), present: self.present(), sign: self.sign }
    }

    /// Returns pieces of at most [`AT_ONCE`] places, and at least one piece.
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

    /// Returns `len` nulls.
    pub fn nulls(len: usize) -> ArrayKeys {
        ArrayKeys::words(Vec::new(), (len > 0).then(|| vec![false; len]), Sign::Unsigned)
    }

    /// Returns the keys with these indices; `present` gives the new places of nulls.
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

    /// Turns the places where `is_shown` is false into nulls.
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

    /// Wraps byte strings without nulls; `present` gives the places of nulls.
    ///
    /// # Safety
    /// The strings stay in place and unchanged as long as `owner` lives.
    pub unsafe fn strings(strings: Vec<&'static [u8]>, owner: Owner, present: Option<Vec<bool>>) -> ArrayKeys {
        if strings.is_empty() {
            return ArrayKeys { present, ..ArrayKeys::nulls(0) }; // nothing, of any type
        }
        ArrayKeys { items: Items::Strings(strings), owner, present, sign: Sign::Unsigned }
    }

    /// Wraps integers in the memory of `owner`, or copies them if their type, alignment or nulls require it.
    ///
    /// # Safety
    /// `memory` stays in place as long as `owner` lives.
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
            // SAFETY: `is_in_place` holds, so these are `len` aligned integers of `size` bytes. They live as long as
            // `owner`, which moves into the result.
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
            // SAFETY: `place < memory.len`, by the range.
            .map(|place| unsafe { memory.word(place) })
            .collect();
        let present = present.filter(|present| present.contains(&false));
        ArrayKeys::words(words, present, sign)
    }

    /// Wraps integers given as words of 64 bits.
    fn words(words: Vec<u64>, present: Option<Vec<bool>>, sign: Sign) -> ArrayKeys {
        // SAFETY: the vector moves into the result, which does not move its heap memory.
        let items = Items::U64(unsafe { slice::from_raw_parts(words.as_ptr(), words.len()) });
        ArrayKeys { items, owner: Owner::Words(words), present, sign }
    }

    /// Wraps byte strings stored one after the other in `bytes`; `ends` are their ends.
    fn copied_strings(bytes: Vec<u8>, ends: &[usize]) -> ArrayKeys {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        let mut begin = 0;
        let strings = ends
            .iter()
            .map(|&end| {
                // SAFETY: `begin..end` is within `bytes`, copied to `words`. The vector moves into the result, not its
                // heap memory.
                let string = unsafe { slice::from_raw_parts(words.as_ptr().cast::<u8>().add(begin), end - begin) };
                begin = end;
                string
            })
            .collect();
        ArrayKeys { items: Items::Strings(strings), owner: Owner::Words(words), present: None, sign: Sign::Unsigned }
    }
}

/// Integers in memory at a constant distance.
pub struct Integers {
    /// The first integer.
    pub address: *const u8,
    /// The number of integers.
    pub len: usize,
    /// Bytes of an integer: 1, 2, 4 or 8.
    pub size: usize,
    /// Bytes from one integer to the next.
    pub stride: isize,
    /// Whether they are signed.
    pub is_signed: bool,
}

impl Integers {
    /// Reads an integer as a word of 64 bits, sign-extended if signed.
    ///
    /// # Safety
    /// `place < len`, and the memory is readable.
    unsafe fn word(&self, place: usize) -> u64 {
        // SAFETY: the caller guarantees that item `place` is readable; reads of more than one byte are unaligned ones.
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

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

mod batch;
mod gathered;
mod one;

use std::ops::Range;
use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

pub use batch::{Batch, Bytes, element_type, is_masked, items, unmasked};
pub use gathered::Gathered;
pub use one::{OneKey, is_null, is_one_key, one_key};

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

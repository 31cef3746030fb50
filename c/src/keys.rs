//! Keys from C: integers at a constant distance, and strings, with or without nulls.

use std::borrow::Cow;
use std::{ptr, slice};

use crate::error::{Failure, Result, warpset_status as Status};
use crate::handle::{check, null};

/// Types of keys. Equal integers are equal keys, whatever their type: 7 is one key in all of them, and a negative
/// integer is the key of its 64 bits. An integer never equals a string.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "name in C")]
pub enum warpset_key_type {
    U8 = 1,
    I8 = 2,
    U16 = 3,
    I16 = 4,
    U32 = 5,
    I32 = 6,
    U64 = 7,
    I64 = 8,
    /// Unsigned integers of 16 bytes, the low half first.
    U128 = 9,
    /// Strings one after the other: `data` points to all bytes, and `offsets` to `len + 1` offsets of type `int32_t`
    /// (Arrow's `utf8` and `binary`). String `i` has the bytes from `offsets[i]` to `offsets[i + 1]`.
    Strings32 = 10,
    /// Strings like those, with offsets of type `int64_t` (Arrow's `large_utf8` and `large_binary`).
    Strings64 = 11,
    /// Strings anywhere: `data` points to items of type `warpset_string`.
    StringPointers = 12,
    /// Strings of equal length: `data` points to the first, and `width` is their length.
    FixedStrings = 13,
    /// Signed integers of 16 bytes, the low half first: a negative one is the key of its 128 bits.
    I128 = 14,
    /// `double`: the key of its 64 bits. Range filters order numbers by IEEE 754's totalOrder, -0.0 before 0.0.
    F64 = 15,
    /// Uniform hashes of 64 bits in place of keys. Perfect hash functions and static filters take them as integers.
    Hashes = 16,
}

/// Order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Order of unsigned integers.
    Unsigned,
    /// Order of signed integers.
    Signed,
    /// Order of floating-point numbers.
    Float,
    /// Lexicographic order of strings.
    Lexicographic,
}

impl warpset_key_type {
    /// Returns the type with this number.
    pub fn of(number: u32) -> Result<warpset_key_type> {
        use warpset_key_type::*;
        let all = [
            U8,
            I8,
            U16,
            I16,
            U32,
            I32,
            U64,
            I64,
            U128,
            Strings32,
            Strings64,
            StringPointers,
            FixedStrings,
            I128,
            F64,
            Hashes,
        ];
        all.into_iter().find(|&known| known as u32 == number).ok_or_else(|| {
            Failure::value(format!(
                "key_type = {number} is no warpset_key_type: fill in warpset_keys by warpset_keys_*"
            ))
        })
    }

    /// Returns the order of keys of this type, if they have one.
    pub fn order(self) -> Option<Order> {
        use warpset_key_type::*;
        match self {
            U8 | U16 | U32 | U64 | U128 => Some(Order::Unsigned),
            I8 | I16 | I32 | I64 | I128 => Some(Order::Signed),
            F64 => Some(Order::Float),
            Strings32 | Strings64 | StringPointers | FixedStrings => Some(Order::Lexicographic),
            Hashes => None,
        }
    }
}

/// Bytes of a string. Zeros are bytes like others, and no zero is needed at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_string {
    /// First byte. NULL if `len` is 0.
    pub data: *const u8,
    pub len: usize,
}

/// Description of an array of keys in the caller's memory. The functions `warpset_keys_*` below fill it in; unused
/// fields are zero.
///
/// Nulls are no keys: insertions skip them, and lookups answer 0, or UINT64_MAX where numbers are asked for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_keys {
    /// Type of the keys, a `warpset_key_type`.
    pub key_type: u32,
    /// Length of each string, for `WARPSET_KEY_TYPE_FIXED_STRINGS`.
    pub width: u32,
    /// First key, or first byte of strings with offsets. NULL if `len` is 0.
    pub data: *const u8,
    /// Number of keys, with nulls.
    pub len: usize,
    /// Bytes from one key to the next, which may be negative. 0 if the keys are adjacent. Not for strings with offsets.
    pub stride: isize,
    /// Offsets of strings, for `WARPSET_KEY_TYPE_STRINGS32` and `WARPSET_KEY_TYPE_STRINGS64`.
    pub offsets: *const u8,
    /// Bitmap with a 1 for each key and a 0 for each null, lowest bit first. NULL if there are no nulls.
    pub validity: *const u8,
    /// Bit of the first key in `validity`.
    pub validity_offset: usize,
}

/// Keys of one type. Integers of up to 64 bits are words, sign-extended if signed.
#[derive(Clone, Copy)]
pub enum HostKeys<'a> {
    /// Integers of up to 64 bits.
    Words(&'a [u64]),
    /// Integers of 128 bits.
    Wide(&'a [u128]),
    /// Strings.
    Strings(&'a [&'a [u8]]),
    /// Hashes in place of keys.
    Hashes(&'a [u64]),
}

/// Runs `$body` with the slice of keys under the name `$keys`, whatever their type.
macro_rules! with_keys {
    ($batch:expr, |$keys:ident| $body:expr) => {
        match $batch {
            $crate::keys::HostKeys::Words($keys) => $body,
            $crate::keys::HostKeys::Wide($keys) => $body,
            $crate::keys::HostKeys::Strings($keys) => $body,
            $crate::keys::HostKeys::Hashes(hashes) => {
                let $keys = warpset_base::key::as_hashed(hashes);
                $body
            }
        }
    };
}
pub(crate) use with_keys;

/// [`with_keys`] for structures to which a hash is the integer of its bits, without a copy of generic code for hashes.
macro_rules! with_function_keys {
    ($batch:expr, |$keys:ident| $body:expr) => {
        match $batch {
            $crate::keys::HostKeys::Words($keys) | $crate::keys::HostKeys::Hashes($keys) => $body,
            $crate::keys::HostKeys::Wide($keys) => $body,
            $crate::keys::HostKeys::Strings($keys) => $body,
        }
    };
}
pub(crate) use with_function_keys;

impl HostKeys<'_> {
    pub fn len(&self) -> usize {
        with_function_keys!(self, |keys| keys.len())
    }
}

/// Keys read from a description, without its nulls.
pub struct Batch<'a> {
    pub key_type: warpset_key_type,
    items: Items<'a>,
    /// Whether each place has a key; `None` without nulls.
    present: Option<Vec<bool>>,
}

enum Items<'a> {
    Words(Cow<'a, [u64]>),
    Wide(Cow<'a, [u128]>),
    Strings(Vec<&'a [u8]>),
    Hashes(Cow<'a, [u64]>),
}

/// Bytes of the address space of a process: no array is longer.
const MOST_BYTES: usize = 1 << 48;

pub fn too_long(what: &str, len: usize) -> Failure {
    Failure::new(Status::InvalidLength, format!("{what}: {len} items are more than memory has; check the length"))
}

/// Collects items; memory that is missing is an error.
fn collected<T>(len: usize, items: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut all = reserved(len)?;
    all.extend(items);
    Ok(all)
}

/// Returns an empty vector with memory for `len` items; memory that is missing is an error.
pub fn reserved<T>(len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    let failed = |_| Failure::new(Status::OutOfMemory, format!("no memory for {len} items: use smaller batches"));
    all.try_reserve_exact(len).map_err(failed)?;
    Ok(all)
}

/// Returns a slice of the caller's memory.
///
/// # Safety
/// If `len > 0` and the pointer is not NULL and aligned, `len` items there are readable and do not change during `'a`.
pub unsafe fn array<'a, T>(data: *const T, len: usize, name: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    check(data, name)?;
    if len > MOST_BYTES / size_of::<T>().max(1) {
        return Err(too_long(name, len));
    }
    // SAFETY: not NULL, aligned, at most `MOST_BYTES`, and readable, as the caller guarantees.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// Returns a slice of the caller's memory for writing.
///
/// # Safety
/// As [`array`], for reading and writing, and no other thread accesses the items.
pub unsafe fn array_mut<'a, T>(data: *mut T, len: usize, name: &str) -> Result<&'a mut [T]> {
    // SAFETY: the contract of this function; the shared slice only checks, and is dropped at once.
    unsafe { array(data, len, name) }?;
    // SAFETY: `array` has checked pointer and length; the caller guarantees exclusive access.
    Ok(if len == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(data, len) } })
}

/// Returns a string of the caller.
///
/// # Safety
/// As [`array`].
pub unsafe fn string<'a>(data: *const u8, len: usize) -> Result<&'a [u8]> {
    // SAFETY: the contract of this function.
    unsafe { array(data, len, "string") }
}

impl warpset_keys {
    /// Returns the stride of items of `size` bytes, after checking that all of them are within one allocation.
    fn stride_of(&self, size: usize) -> Result<isize> {
        let stride = if self.stride == 0 { size as isize } else { self.stride };
        let fits = (self.len - 1).checked_mul(stride.unsigned_abs()).and_then(|bytes| bytes.checked_add(size));
        match fits {
            Some(bytes) if bytes <= MOST_BYTES => Ok(stride),
            _ => Err(too_long("keys", self.len)),
        }
    }

    /// Returns the keys as items of type `T`, copied and converted if they are no aligned array of it.
    ///
    /// # Safety
    /// As [`read`], for keys that are integers of type `S`.
    unsafe fn integers<'a, S: Copy, T: Copy>(&self, in_place: bool, convert: impl Fn(S) -> T) -> Result<Cow<'a, [T]>> {
        let stride = self.stride_of(size_of::<S>())?;
        if in_place && stride == size_of::<S>() as isize && self.data.cast::<T>().is_aligned() {
            // SAFETY: the caller states that `S` and `T` are the same but for the sign. The pointer is aligned and not
            // NULL, the items are adjacent, at most `MOST_BYTES`, and readable.
            return Ok(Cow::Borrowed(unsafe { slice::from_raw_parts(self.data.cast(), self.len) }));
        }
        let item = |i: usize| {
            // SAFETY: `i < len`, so the item is readable, as the caller guarantees, and its distance from the first
            // does not overflow, as `stride_of` has checked; the read is unaligned.
            unsafe { self.data.offset(stride * i as isize).cast::<S>().read_unaligned() }
        };
        Ok(Cow::Owned(collected(self.len, (0..self.len).map(|i| convert(item(i))))?))
    }

    /// Returns strings with offsets of type `T`.
    ///
    /// # Safety
    /// As [`read`].
    unsafe fn strings_by_offsets<'a, T: Copy + PartialOrd + Into<i64> + 'a>(&self) -> Result<Vec<&'a [u8]>> {
        if self.len == usize::MAX {
            return Err(too_long("keys", self.len));
        }
        // SAFETY: there are `len + 1` offsets, as the caller guarantees.
        let offsets = unsafe { array(self.offsets.cast::<T>(), self.len + 1, "offsets") }?;
        for i in [0, self.len] {
            if !(0..=MOST_BYTES as i64).contains(&offsets[i].into()) {
                return Err(Failure::value(format!("offsets[{i}] is negative or longer than memory")));
            }
        }
        // All of them are compared, because a loop without an exit is vectorised.
        if offsets.windows(2).fold(false, |falls, ends| falls | (ends[0] > ends[1])) {
            let i = offsets.windows(2).position(|ends| ends[0] > ends[1]).unwrap_or(0);
            return Err(Failure::value(format!("offsets[{}] is below the one before it", i + 1)));
        }
        if self.data.is_null() && offsets[self.len] > offsets[0] {
            return Err(null("data"));
        }
        let end: i64 = offsets[self.len].into();
        if self.data.addr().checked_add(end as usize).is_none() {
            return Err(Failure::value("data and the last offset reach past the end of memory"));
        }
        let base = if self.data.is_null() { ptr::dangling() } else { self.data };
        let strings = offsets.windows(2).map(|ends| {
            let [begin, end]: [i64; 2] = [ends[0].into(), ends[1].into()];
            // SAFETY: offsets ascend from one that is not negative, and no address up to the last one wraps to NULL.
            // The bytes up to it are readable, as the caller guarantees; without `data` every string is empty.
            unsafe { slice::from_raw_parts(base.wrapping_add(begin as usize), (end - begin) as usize) }
        });
        collected(self.len, strings)
    }

    /// Reads the description of a caller; copies keys that cannot be used in place.
    ///
    /// # Safety
    /// All keys, strings and offsets that the description tells of are readable, and do not change during `'a`.
    unsafe fn items<'a>(&self, key_type: warpset_key_type) -> Result<Items<'a>> {
        if self.len == 0 {
            return Ok(Items::Words(Cow::Borrowed(&[])));
        }
        if self.data.is_null() && !matches!(key_type, warpset_key_type::Strings32 | warpset_key_type::Strings64) {
            return Err(null("data"));
        }
        // SAFETY: the contract of this function, and the type of the items is that of the description.
        unsafe {
            Ok(match key_type {
                warpset_key_type::U8 => Items::Words(self.integers(false, |key: u8| key.into())?),
                warpset_key_type::I8 => Items::Words(self.integers(false, |key: i8| key as u64)?),
                warpset_key_type::U16 => Items::Words(self.integers(false, |key: u16| key.into())?),
                warpset_key_type::I16 => Items::Words(self.integers(false, |key: i16| key as u64)?),
                warpset_key_type::U32 => Items::Words(self.integers(false, |key: u32| key.into())?),
                warpset_key_type::I32 => Items::Words(self.integers(false, |key: i32| key as u64)?),
                warpset_key_type::U64 | warpset_key_type::I64 | warpset_key_type::F64 => {
                    Items::Words(self.integers(true, |key: u64| key)?)
                }
                warpset_key_type::Hashes => Items::Hashes(self.integers(true, |hash: u64| hash)?),
                warpset_key_type::U128 | warpset_key_type::I128 => Items::Wide(self.integers(true, |key: u128| key)?),
                warpset_key_type::Strings32 => Items::Strings(self.strings_by_offsets::<i32>()?),
                warpset_key_type::Strings64 => Items::Strings(self.strings_by_offsets::<i64>()?),
                warpset_key_type::StringPointers => {
                    let strings = self.integers(false, |string: warpset_string| string)?;
                    let mut all = reserved(strings.len())?;
                    for string in &*strings {
                        all.push(array(string.data, string.len, "a string's data")?);
                    }
                    Items::Strings(all)
                }
                warpset_key_type::FixedStrings => {
                    let (width, data) = (self.width as usize, self.data);
                    let stride = self.stride_of(width)?;
                    let string = |i: usize| slice::from_raw_parts(data.offset(stride * i as isize), width);
                    Items::Strings(collected(self.len, (0..self.len).map(string))?)
                }
            })
        }
    }

    /// Returns whether each place has a key, or `None` without nulls.
    ///
    /// # Safety
    /// The bits of the bitmap, if there is one, are readable and do not change during the call.
    unsafe fn present(&self) -> Result<Option<Vec<bool>>> {
        if self.validity.is_null() || self.len == 0 {
            return Ok(None);
        }
        let end = self.validity_offset.checked_add(self.len).ok_or_else(|| too_long("keys", self.len))?;
        // SAFETY: the caller guarantees the bits from `validity_offset` on; the bytes before are of the same array.
        let bytes = unsafe { array(self.validity, end.div_ceil(8), "validity") }?;
        let present: Vec<bool> = (self.validity_offset..end).map(|bit| bytes[bit / 8] >> (bit % 8) & 1 != 0).collect();
        Ok(present.contains(&false).then_some(present))
    }
}

/// Reads the description of a caller.
///
/// # Safety
/// If `keys` is neither NULL nor misaligned, it points to a description, and the arrays that it describes are readable
/// and do not change during `'a`.
pub unsafe fn read<'a>(keys: *const warpset_keys) -> Result<Batch<'a>> {
    check(keys, "keys")?;
    // SAFETY: checked for NULL and alignment; the caller guarantees that it points to a description.
    let keys = unsafe { *keys };
    let key_type = warpset_key_type::of(keys.key_type)?;
    // SAFETY: the contract of this function.
    let (items, present) = unsafe { (keys.items(key_type)?, keys.present()?) };
    let Some(present) = present else { return Ok(Batch { key_type, items, present }) };
    fn picked<T: Copy>(items: &[T], present: &[bool]) -> Vec<T> {
        items.iter().zip(present).filter(|(_, is_there)| **is_there).map(|(item, _)| *item).collect()
    }
    let items = match items {
        Items::Words(items) => Items::Words(picked(&items, &present).into()),
        Items::Wide(items) => Items::Wide(picked(&items, &present).into()),
        Items::Strings(items) => Items::Strings(picked(&items, &present)),
        Items::Hashes(items) => Items::Hashes(picked(&items, &present).into()),
    };
    Ok(Batch { key_type, items, present: Some(present) })
}

impl Batch<'_> {
    /// Returns the keys, without nulls.
    pub fn keys(&self) -> HostKeys<'_> {
        match &self.items {
            Items::Words(keys) => HostKeys::Words(keys),
            Items::Wide(keys) => HostKeys::Wide(keys),
            Items::Strings(keys) => HostKeys::Strings(keys),
            Items::Hashes(hashes) => HostKeys::Hashes(hashes),
        }
    }

    /// Returns the number of places, keys and nulls.
    pub fn len(&self) -> usize {
        self.present.as_ref().map_or_else(|| self.keys().len(), Vec::len)
    }

    /// Fills `answers`, one per place: `work` gets the keys and one answer per key; nulls have `absent`.
    pub fn answer<T: Copy>(
        &self,
        answers: &mut [T],
        absent: T,
        work: impl FnOnce(HostKeys<'_>, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let Some(present) = &self.present else { return work(self.keys(), answers) };
        let mut found = vec![absent; self.keys().len()];
        work(self.keys(), &mut found)?;
        let mut found = found.into_iter();
        for (answer, &is_there) in answers.iter_mut().zip(present) {
            *answer = if is_there { found.next().unwrap_or(absent) } else { absent };
        }
        Ok(())
    }

    /// Returns one item per key of an array with one item per place.
    pub fn of_keys<'a, T: Copy>(&self, places: &'a [T]) -> Cow<'a, [T]> {
        match &self.present {
            None => places.into(),
            Some(present) => places.iter().zip(present).filter(|item| *item.1).map(|item| *item.0).collect(),
        }
    }
}

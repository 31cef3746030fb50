//! Keys and values of maps: integers of several widths, and strings of 16 bytes.

use std::borrow::Cow;

use warpset::lsm::{Bitmap, OrderedKey};
use warpset_base::bitmap::bits_to;

use crate::error::{Failure, Result, warpset_status as Status};
use crate::keys::HostKeys;
use crate::object::OneKey;
use crate::rows::Rows;

/// Key of a map.
pub trait MapKey: OrderedKey {
    /// Converts an integer of 128 bits, if it is in range.
    fn of_integer(integer: u128) -> Result<Option<Self>>;
    /// Converts a string, if it has the right length.
    fn of_string(_: &[u8]) -> Result<Option<Self>> {
        Err(wrong_type("the keys of this structure are integers: pass one of the integer types"))
    }
    /// Returns a slice of the same type without a copy, if the keys are one.
    fn borrowed(keys: HostKeys<'_>) -> Option<&[Self]>;
    /// Appends keys to a result.
    fn list(rows: &mut Rows, keys: &[Self]);

    /// Converts one key, if it is in range.
    fn of_one(key: OneKey<'_>) -> Result<Option<Self>> {
        match key {
            OneKey::Word(word) => Self::of_integer(word.into()),
            OneKey::String(string) => Self::of_string(string),
        }
    }

    /// Converts keys; those out of range are `None`.
    fn each(keys: HostKeys<'_>) -> Result<Vec<Option<Self>>> {
        match keys {
            HostKeys::Words(keys) => keys.iter().map(|&key| Self::of_integer(key.into())).collect(),
            HostKeys::Wide(keys) => keys.iter().map(|&key| Self::of_integer(key)).collect(),
            HostKeys::Strings(keys) => keys.iter().map(|key| Self::of_string(key)).collect(),
            HostKeys::Hashes(_) => Err(wrong_type("this structure takes no hashes in place of keys")),
        }
    }

    /// Converts keys that must be in range.
    fn all(keys: HostKeys<'_>) -> Result<Cow<'_, [Self]>> {
        if let Some(keys) = Self::borrowed(keys) {
            return Ok(keys.into());
        }
        let out_of_range =
            || Failure::value(format!("a key does not have the {} bits of this structure", 8 * size_of::<Self>()));
        Self::each(keys)?.into_iter().map(|key| key.ok_or_else(out_of_range)).collect()
    }

    /// Answers keys: `work` writes answers for keys in range; others have the default.
    fn answered<T: Clone + Default>(
        keys: HostKeys<'_>,
        answers: &mut [T],
        work: impl FnOnce(&[Self], &mut [T]) -> Result<()>,
    ) -> Result<()> {
        if let Some(keys) = Self::borrowed(keys) {
            return work(keys, answers);
        }
        let each = Self::each(keys)?;
        let known: Vec<Self> = each.iter().flatten().copied().collect();
        let mut found = vec![T::default(); known.len()];
        work(&known, &mut found)?;
        let mut found = found.into_iter();
        for (answer, key) in answers.iter_mut().zip(&each) {
            *answer = key.and_then(|_| found.next()).unwrap_or_default();
        }
        Ok(())
    }
}

#[cold]
fn wrong_type(why: &str) -> Failure {
    Failure::new(Status::WrongType, why)
}

macro_rules! keys {
    ($($key:ty: |$keys:ident| $borrowed:expr, |$rows:ident, $items:ident| $list:expr;)*) => {$(
        impl MapKey for $key {
            fn of_integer(integer: u128) -> Result<Option<Self>> {
                Ok(integer.try_into().ok())
            }
            fn borrowed($keys: HostKeys<'_>) -> Option<&[Self]> {
                $borrowed
            }
            fn list($rows: &mut Rows, $items: &[Self]) {
                $list
            }
        }
    )*};
}
keys! {
    u32: |_keys| None, |rows, items| rows.keys.extend(items.iter().map(|&key| u64::from(key)));
    u64: |keys| if let HostKeys::Words(keys) = keys { Some(keys) } else { None },
        |rows, items| rows.keys.extend_from_slice(items);
    u128: |keys| if let HostKeys::Wide(keys) = keys { Some(keys) } else { None },
        |rows, items| rows.wide_keys.extend_from_slice(items);
}

impl MapKey for [u8; 16] {
    fn of_integer(_: u128) -> Result<Option<Self>> {
        Err(wrong_type("the keys of this dictionary are strings of 16 bytes: pass one of the string types"))
    }
    fn of_string(string: &[u8]) -> Result<Option<Self>> {
        Ok(string.try_into().ok())
    }
    fn borrowed(_: HostKeys<'_>) -> Option<&[Self]> {
        None
    }
    fn list(rows: &mut Rows, keys: &[Self]) {
        rows.wide_keys.extend(keys.iter().map(|&key| u128::from_ne_bytes(key)));
    }
}

/// Value of a map.
pub trait MapValue: Copy + Default {
    /// Widens a value.
    fn wide(self) -> u64;
    /// Converts values that must be in range.
    fn all(values: &[u64]) -> Result<Cow<'_, [Self]>>;
    /// Fills `values` by `work`, which returns the bits of those found, and writes these as bytes 0 and 1.
    fn filled(values: &mut [u64], found: &mut [u8], work: impl FnOnce(&mut [Self]) -> Result<Bitmap>) -> Result<()>;
}

impl MapValue for u64 {
    fn wide(self) -> u64 {
        self
    }
    fn all(values: &[u64]) -> Result<Cow<'_, [u64]>> {
        Ok(values.into())
    }
    fn filled(values: &mut [u64], found: &mut [u8], work: impl FnOnce(&mut [u64]) -> Result<Bitmap>) -> Result<()> {
        bits_to(found, work(values)?.as_words());
        Ok(())
    }
}

impl MapValue for u32 {
    fn wide(self) -> u64 {
        self.into()
    }
    fn all(values: &[u64]) -> Result<Cow<'_, [u32]>> {
        let narrow = |value: &u64| {
            u32::try_from(*value)
                .map_err(|_| Failure::value(format!("value {value}: this structure has 32 bits for it")))
        };
        values.iter().map(narrow).collect()
    }
    fn filled(values: &mut [u64], found: &mut [u8], work: impl FnOnce(&mut [u32]) -> Result<Bitmap>) -> Result<()> {
        let mut narrow = vec![0; values.len()];
        bits_to(found, work(&mut narrow)?.as_words());
        values.iter_mut().zip(narrow).for_each(|(value, narrow)| *value = narrow.into());
        Ok(())
    }
}

/// Looks up keys that may be out of range, with values and flags.
pub fn get<K: MapKey, V: MapValue>(
    keys: HostKeys<'_>,
    values: &mut [u64],
    found: &mut [u8],
    work: impl Fn(&[K], &mut [V]) -> Result<Bitmap>,
) -> Result<()> {
    if let Some(keys) = K::borrowed(keys) {
        return V::filled(values, found, |values| work(keys, values));
    }
    let mut pairs = vec![(0, 0); keys.len()];
    K::answered(keys, &mut pairs, |keys, pairs| {
        let (mut values, mut found) = (vec![0; keys.len()], vec![0; keys.len()]);
        V::filled(&mut values, &mut found, |values| work(keys, values))?;
        pairs.iter_mut().zip(values.into_iter().zip(found)).for_each(|(pair, found)| *pair = found);
        Ok(())
    })?;
    for ((value, found), pair) in values.iter_mut().zip(found).zip(pairs) {
        (*value, *found) = pair;
    }
    Ok(())
}

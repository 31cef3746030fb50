//! Values of keys: static functions, maplets, string maps, static maps, dictionaries.

use crate::error::{Failure, Result, guard, warpset_status, warpset_status as Status};
use crate::handle::{check, content, give, hand_out};
use crate::keys::{Batch, array, array_mut, read, string, warpset_keys};
use crate::object::{Combine, OneKey, warpset_structure};
use crate::rows::warpset_rows;

#[cfg(feature = "gpu")]
use crate::device::Address;
use crate::device::{on_device, warpset_device_keys};

/// Operators that combine the value of a key with a new one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "name in C")]
pub enum warpset_operator {
    /// The new value replaces the old one. In a maplet, both stay.
    Replace = 0,
    /// Sum, modulo 2 to the bits of a value.
    Sum = 1,
    Min = 2,
    Max = 3,
    Or = 4,
}

impl warpset_operator {
    fn of(number: u32) -> Result<Combine> {
        use warpset_operator as Operator;
        let all = [
            (Operator::Replace, Combine::Replace),
            (Operator::Sum, Combine::Sum),
            (Operator::Min, Combine::Min),
            (Operator::Max, Combine::Max),
            (Operator::Or, Combine::Or),
        ];
        let found = all.into_iter().find(|known| known.0 as u32 == number);
        found.map(|known| known.1).ok_or_else(|| Failure::value(format!("by = {number} is no warpset_operator")))
    }
}

/// Writes the value of each key to `values[i]`, and 1 or 0 to `found[i]`, which tells whether there is a value. Keys
/// without one have the value 0. `found` may be NULL. A maplet returns one of the values of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_get(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    values: *mut u64,
    found: *mut u8,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let values = array_mut(values, batch.len(), "values")?;
        let mut unused = Vec::new();
        let found = match found.is_null() {
            true => {
                unused.resize(batch.len(), 0);
                &mut unused[..]
            }
            false => array_mut(found, batch.len(), "found")?,
        };
        let object = held.read()?;
        batch.answer(found, 0, |keys, found| {
            batch.answer(values, 0, |_, values| {
                object.get(keys, values, found)?;
                values.iter_mut().zip(&*found).filter(|item| *item.1 == 0).for_each(|(value, _)| *value = 0);
                Ok(())
            })
        })
    })
}

/// Returns the value of one integer. `found` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_get_u64(
    structure: *const warpset_structure,
    key: u64,
    value: *mut u64,
    found: *mut bool,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { get_one(structure, OneKey::Word(key), value, found) })
}

/// Returns the value of one string. `found` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_get_string(
    structure: *const warpset_structure,
    data: *const u8,
    len: usize,
    value: *mut u64,
    found: *mut bool,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { get_one(structure, OneKey::String(string(data, len)?), value, found) })
}

/// Writes the value of one key.
///
/// # Safety
/// The contract of the header.
unsafe fn get_one(
    structure: *const warpset_structure,
    key: OneKey<'_>,
    value: *mut u64,
    found: *mut bool,
) -> Result<()> {
    // SAFETY: the contract of this function.
    unsafe {
        let result = content(structure)?.read()?.get_one(key)?;
        check(value, "value")?;
        if !found.is_null() {
            give(found, "found", result.is_some())?;
        }
        give(value, "value", result.unwrap_or(0))
    }
}

/// Inserts keys with `keys->len` values; the values of nulls are ignored. `by` is a `warpset_operator` for keys that
/// have a value, and for repeated keys. On an error no pair is inserted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_insert(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    values: *const u64,
    by: u32,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let values = array(values, batch.len(), "values")?;
        let by = warpset_operator::of(by)?;
        held.write()?.insert_values(batch.keys(), &batch.of_keys(values), by)
    })
}

/// Removes stale pairs of a dictionary now. It is done by itself as `stale_share` tells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_cleanup(structure: *const warpset_structure) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { content(structure)?.write()?.cleanup() })
}

/// Checks that ranges have both bounds.
pub fn one_high_per_low(lows: usize, highs: usize) -> Result<()> {
    if lows != highs {
        let why = format!("{lows} lows and {highs} highs: pass one high for each low");
        return Err(Failure::new(Status::InvalidLength, why));
    }
    Ok(())
}

/// Reads the bounds of ranges.
///
/// # Safety
/// The contract of the header.
pub unsafe fn bounds<'a>(lows: *const warpset_keys, highs: *const warpset_keys) -> Result<(Batch<'a>, Batch<'a>)> {
    // SAFETY: the contract of this function.
    let (lows, highs) = unsafe { (read(lows)?, read(highs)?) };
    one_high_per_low(lows.len(), highs.len())?;
    if lows.len() != lows.keys().len() || highs.len() != highs.keys().len() {
        return Err(Failure::value("bounds of ranges cannot be null"));
    }
    Ok((lows, highs))
}

/// Writes the number of pairs with keys from `lows` to `highs`, both included, to `counts[i]`. Dictionaries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_count_ranges(
    structure: *const warpset_structure,
    lows: *const warpset_keys,
    highs: *const warpset_keys,
    counts: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, (lows, highs)) = (content(structure)?, bounds(lows, highs)?);
        let counts = array_mut(counts, lows.len(), "counts")?;
        held.read()?.count_ranges(lows.keys(), highs.keys(), counts)
    })
}

/// Lists the pairs of a dictionary with keys from `lows` to `highs`, both included, in order: one list per range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_ranges(
    structure: *const warpset_structure,
    lows: *const warpset_keys,
    highs: *const warpset_keys,
    out: *mut *mut warpset_rows,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, (lows, highs)) = (content(structure)?, bounds(lows, highs)?);
        hand_out(out, || held.read()?.ranges(lows.keys(), highs.keys()))
    })
}

/// Lists the pair with the smallest key at or above each key, or the largest at or below it if `is_above` is 0: a list
/// of one pair or none per key. Dictionaries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_neighbours(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    is_above: i32,
    out: *mut *mut warpset_rows,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, (keys, _)) = (content(structure)?, bounds(keys, keys)?);
        hand_out(out, || held.read()?.neighbours(keys.keys(), is_above != 0))
    })
}

/// Does the work of `warpset_map_get` with keys, values (`uint64_t`) and `found` in device memory, and waits. `found`
/// gets one bit per key, in `(keys->len + 63) / 64` words of 64 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_get_device(
    structure: *const warpset_structure,
    keys: *const warpset_device_keys,
    values: u64,
    found: u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, keys) = (content(structure)?.read()?, warpset_device_keys::read(keys)?);
        on_device!(
            (object, keys, values, found),
            object.get_on_device(
                &keys.adopt(object.devices()?.first())?,
                Address::new(values, keys.len),
                Address::new(found, keys.len.div_ceil(64)),
            )
        )
    })
}

/// Inserts keys in device memory with values (`uint64_t`) there into a dictionary, replacing older ones, and waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_insert_device(
    structure: *const warpset_structure,
    keys: *const warpset_device_keys,
    values: u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, keys) = (content(structure)?, warpset_device_keys::read(keys)?);
        on_device!((held, keys, values), {
            let mut object = held.write()?;
            let adopted = keys.adopt(object.devices()?.first())?;
            object.insert_values_on_device(&adopted, Address::new(values, keys.len))
        })
    })
}

/// Does the work of `warpset_map_count_ranges` with keys and counts (`uint64_t`) in device memory, and waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_count_ranges_device(
    structure: *const warpset_structure,
    lows: *const warpset_device_keys,
    highs: *const warpset_device_keys,
    counts: u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, (lows, highs)) = (content(structure)?.read()?, warpset_device_keys::bounds(lows, highs)?);
        on_device!((object, lows, highs, counts), {
            let device = object.devices()?;
            object.count_ranges_on_device(
                &lows.adopt(device.first())?,
                &highs.adopt(device.first())?,
                Address::new(counts, lows.len),
            )
        })
    })
}

/// Lists pairs as `warpset_map_ranges` does, in device memory, and waits: `lows->len + 1` offsets and up to `capacity`
/// keys and values, all of them `uint64_t`. More pairs are `WARPSET_STATUS_INVALID_LENGTH`: count them before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_map_ranges_device(
    structure: *const warpset_structure,
    lows: *const warpset_device_keys,
    highs: *const warpset_device_keys,
    offsets: u64,
    keys: u64,
    values: u64,
    capacity: usize,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, (lows, highs)) = (content(structure)?.read()?, warpset_device_keys::bounds(lows, highs)?);
        on_device!((object, lows, highs, offsets, keys, values, capacity), {
            let device = object.devices()?;
            object.ranges_on_device(
                &lows.adopt(device.first())?,
                &highs.adopt(device.first())?,
                Address::new(offsets, lows.len.saturating_add(1)),
                Address::new(keys, capacity),
                Address::new(values, capacity),
            )
        })
    })
}

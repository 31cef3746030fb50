//! Membership: Bloom, quotient, fuse and static filters, maplets, static sets and maps, dictionaries.

use crate::error::{Result, guard, warpset_status};
use crate::handle::{check, content, give};
use crate::keys::{array_mut, read, string, warpset_keys};
use crate::object::{OneKey, warpset_structure};

#[cfg(feature = "gpu")]
use crate::device::Address;
use crate::device::{on_device, warpset_device_keys, warpset_stream};

/// Writes whether each key may be in the structure: `answers[i]` is 1 or 0, for `keys->len` keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_contains(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    answers: *mut u8,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let answers = array_mut(answers, batch.len(), "answers")?;
        let object = held.read()?;
        object.takes(batch.key_type)?;
        batch.answer(answers, 0, |keys, answers| object.contains(keys, answers))
    })
}

/// Writes whether each key may be in the structure as bits, lowest first, and zeros: `(keys->len + 7) / 8` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_contains_bits(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    bits: *mut u8,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let bits = array_mut(bits, batch.len().div_ceil(8), "bits")?;
        let mut answers = vec![0; batch.len()];
        let object = held.read()?;
        object.takes(batch.key_type)?;
        batch.answer(&mut answers, 0, |keys, answers| object.contains(keys, answers))?;
        for (byte, answers) in bits.iter_mut().zip(answers.chunks(8)) {
            *byte = answers.iter().rev().fold(0, |byte, answer| byte << 1 | answer);
        }
        Ok(())
    })
}

/// Counts the keys that may be in the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_count_contained(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    count: *mut usize,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let object = held.read()?;
        object.takes(batch.key_type)?;
        give(count, "count", object.count_contained(batch.keys())?)
    })
}

/// Whether one integer may be in the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_contains_u64(
    structure: *const warpset_structure,
    key: u64,
    answer: *mut bool,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { give(answer, "answer", content(structure)?.read()?.contains_one(OneKey::Word(key))?) })
}

/// Whether one string may be in the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_contains_string(
    structure: *const warpset_structure,
    data: *const u8,
    len: usize,
    answer: *mut bool,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let key = OneKey::String(string(data, len)?);
        give(answer, "answer", content(structure)?.read()?.contains_one(key)?)
    })
}

/// Inserts keys into a Bloom, quotient or dynamic range filter. If they do not fit into it, none is inserted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_insert(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let mut object = held.write()?;
        object.takes(batch.key_type)?;
        object.insert(batch.keys())
    })
}

/// Inserts one integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_insert_u64(structure: *const warpset_structure, key: u64) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { content(structure)?.write()?.insert_one(OneKey::Word(key)) })
}

/// Inserts one string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_insert_string(
    structure: *const warpset_structure,
    data: *const u8,
    len: usize,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { content(structure)?.write()?.insert_one(OneKey::String(string(data, len)?)) })
}

/// Inserts keys, and writes which of them were new: `is_new[i]` is 1 or 0. Of equal keys at most the first is new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_test_and_insert(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    is_new: *mut u8,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let is_new = array_mut(is_new, batch.len(), "is_new")?;
        let mut object = held.write()?;
        batch.answer(is_new, 0, |keys, is_new| object.test_and_insert(keys, is_new))
    })
}

/// Removes one copy of each key from a quotient or dynamic range filter, or all values of each from a maplet or
/// dictionary. `removed` gets the number of removed copies, if it is not NULL; of keys for a dictionary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_remove(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    removed: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let mut object = held.write()?;
        object.takes(batch.key_type)?;
        give_some(removed, "removed", || object.remove(batch.keys()))
    })
}

/// Writes the number of copies of each key in a quotient filter: `counts[i]`, never fewer than were inserted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_counts(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    counts: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let counts = array_mut(counts, batch.len(), "counts")?;
        let object = held.read()?;
        batch.answer(counts, 0, |keys, counts| object.counts(keys, counts))
    })
}

/// Writes a result to the caller's memory, unless the pointer is NULL.
///
/// # Safety
/// As [`give`].
unsafe fn give_some<T>(out: *mut T, name: &str, work: impl FnOnce() -> Result<T>) -> Result<()> {
    if out.is_null() {
        return work().map(|_| ());
    }
    check(out, name)?;
    // SAFETY: the contract of this function.
    unsafe { give(out, name, work()?) }
}

/// Does the work of `warpset_filter_contains` with keys and answers (bytes 1 and 0) in the memory of the structure's
/// device. With a stream the work is queued there, and structure, keys and answers must stay until it is done;
/// otherwise the call waits for all work on the device, before and after.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_contains_device(
    structure: *const warpset_structure,
    keys: *const warpset_device_keys,
    answers: u64,
    stream: *const warpset_stream,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, keys) = (content(structure)?.read()?, warpset_device_keys::read(keys)?);
        on_device!(
            (object, keys, answers, stream),
            object.contains_on_device(
                &keys.adopt(object.devices()?.first())?,
                Address::new(answers, keys.len),
                (!stream.is_null()).then(|| content(stream)).transpose()?,
            )
        )
    })
}

/// Counts the keys in device memory that may be in the structure, and waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_count_contained_device(
    structure: *const warpset_structure,
    keys: *const warpset_device_keys,
    count: *mut usize,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, keys) = (content(structure)?.read()?, warpset_device_keys::read(keys)?);
        on_device!(
            (object, keys, count),
            give(count, "count", object.count_contained_on_device(&keys.adopt(object.devices()?.first())?)?)
        )
    })
}

/// Inserts keys in device memory, and waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_insert_device(
    structure: *const warpset_structure,
    keys: *const warpset_device_keys,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, keys) = (content(structure)?, warpset_device_keys::read(keys)?);
        on_device!((held, keys), {
            let mut object = held.write()?;
            let keys = keys.adopt(object.devices()?.first())?;
            object.insert_on_device(&keys)
        })
    })
}

/// Removes keys in device memory as `warpset_filter_remove` does, and waits. `removed` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_remove_device(
    structure: *const warpset_structure,
    keys: *const warpset_device_keys,
    removed: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, keys) = (content(structure)?, warpset_device_keys::read(keys)?);
        on_device!(
            (held, keys, removed),
            give_some(removed, "removed", || {
                let mut object = held.write()?;
                let keys = keys.adopt(object.devices()?.first())?;
                object.remove_on_device(&keys)
            })
        )
    })
}

/// Writes the number of copies of each key in device memory to `counts`, `uint64_t` items there, and waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_filter_counts_device(
    structure: *const warpset_structure,
    keys: *const warpset_device_keys,
    counts: u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, keys) = (content(structure)?.read()?, warpset_device_keys::read(keys)?);
        on_device!(
            (object, keys, counts),
            object.counts_on_device(&keys.adopt(object.devices()?.first())?, Address::new(counts, keys.len))
        )
    })
}

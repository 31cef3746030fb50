//! Numbers of keys: perfect hash functions, static filters, static sets and maps.

use crate::error::{guard, warpset_status};
use crate::handle::{content, give};
use crate::keys::{array_mut, read, string, warpset_keys};
use crate::object::{OneKey, warpset_structure};

#[cfg(feature = "gpu")]
use crate::device::Address;
use crate::device::{on_device, warpset_device_keys, warpset_stream};

/// Writes the number of each key. Keys of the build have numbers below `warpset_function_bound`, and different ones,
/// but for RecSplit with several keys per number. Another key has UINT64_MAX in a static set or map, most often
/// UINT64_MAX in a static filter, and any number in a perfect hash function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_function_numbers(
    structure: *const warpset_structure,
    keys: *const warpset_keys,
    numbers: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(keys)?);
        let numbers = array_mut(numbers, batch.len(), "numbers")?;
        let object = held.read()?;
        batch.answer(numbers, u64::MAX, |keys, numbers| object.numbers(keys, numbers))
    })
}

/// Returns the number of one integer, as `warpset_function_numbers` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_function_number_u64(
    structure: *const warpset_structure,
    key: u64,
    number: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let found = content(structure)?.read()?.number_one(OneKey::Word(key))?;
        give(number, "number", found.unwrap_or(u64::MAX))
    })
}

/// Returns the number of one string, as `warpset_function_numbers` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_function_number_string(
    structure: *const warpset_structure,
    data: *const u8,
    len: usize,
    number: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let found = content(structure)?.read()?.number_one(OneKey::String(string(data, len)?))?;
        give(number, "number", found.unwrap_or(u64::MAX))
    })
}

/// Returns the length of an array that has an item for each number: all numbers of keys are below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_function_bound(
    structure: *const warpset_structure,
    bound: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { give(bound, "bound", content(structure)?.read()?.number_bound()?) })
}

/// Does the work of `warpset_function_numbers` for a perfect hash function with keys and numbers (`uint64_t`) in the
/// memory of its device. The stream is as in `warpset_filter_contains_device`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_function_numbers_device(
    structure: *const warpset_structure,
    keys: *const warpset_device_keys,
    numbers: u64,
    stream: *const warpset_stream,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, keys) = (content(structure)?.read()?, warpset_device_keys::read(keys)?);
        on_device!(
            (object, keys, numbers, stream),
            object.numbers_on_device(
                &keys.adopt(object.devices()?.first())?,
                Address::new(numbers, keys.len),
                (!stream.is_null()).then(|| content(stream)).transpose()?,
            )
        )
    })
}

//! Ranges in range filters.

#[cfg(feature = "gpu")]
use crate::device::Address;
use crate::device::{on_device, warpset_device_keys, warpset_stream};
use crate::error::{guard, warpset_status};
use crate::handle::content;
use crate::keys::{array_mut, warpset_keys};
use crate::map::bounds;
use crate::object::warpset_structure;

/// Writes whether any key of a range filter may lie from `firsts` to `lasts`, both included: `answers[i]` is 1 or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_range_filter_may_contain(
    structure: *const warpset_structure,
    firsts: *const warpset_keys,
    lasts: *const warpset_keys,
    answers: *mut u8,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, (firsts, lasts)) = (content(structure)?, bounds(firsts, lasts)?);
        let answers = array_mut(answers, firsts.len(), "answers")?;
        held.read()?.may_contain_ranges(&firsts, &lasts, answers)
    })
}

/// Writes bounds of the numbers of keys from `firsts` to `lasts`, both included, to `counts`. Not of dynamic filters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_range_filter_count_at_most(
    structure: *const warpset_structure,
    firsts: *const warpset_keys,
    lasts: *const warpset_keys,
    counts: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, (firsts, lasts)) = (content(structure)?, bounds(firsts, lasts)?);
        let counts = array_mut(counts, firsts.len(), "counts")?;
        held.read()?.count_ranges_at_most(&firsts, &lasts, counts)
    })
}

/// Does the work of `warpset_range_filter_may_contain` with keys of the filter's type in device memory. `found` gets
/// one bit per range, as in `warpset_map_get_device`; the stream is as in `warpset_filter_contains_device`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_range_filter_may_contain_device(
    structure: *const warpset_structure,
    firsts: *const warpset_device_keys,
    lasts: *const warpset_device_keys,
    found: u64,
    stream: *const warpset_stream,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, (firsts, lasts)) = (content(structure)?.read()?, warpset_device_keys::bounds(firsts, lasts)?);
        on_device!((object, firsts, lasts, found, stream), {
            let device = object.devices()?;
            object.may_contain_ranges_on_device(
                &firsts.adopt(device.first())?,
                &lasts.adopt(device.first())?,
                Address::new(found, firsts.len.div_ceil(64)),
                (!stream.is_null()).then(|| content(stream)).transpose()?,
            )
        })
    })
}

/// Does the work of `warpset_range_filter_count_at_most` so, with counts (`uint64_t`) in device memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_range_filter_count_at_most_device(
    structure: *const warpset_structure,
    firsts: *const warpset_device_keys,
    lasts: *const warpset_device_keys,
    counts: u64,
    stream: *const warpset_stream,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, (firsts, lasts)) = (content(structure)?.read()?, warpset_device_keys::bounds(firsts, lasts)?);
        on_device!((object, firsts, lasts, counts, stream), {
            let device = object.devices()?;
            object.count_ranges_at_most_on_device(
                &firsts.adopt(device.first())?,
                &lasts.adopt(device.first())?,
                Address::new(counts, firsts.len),
                (!stream.is_null()).then(|| content(stream)).transpose()?,
            )
        })
    })
}

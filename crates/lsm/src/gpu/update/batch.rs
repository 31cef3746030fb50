//! Sort of a batch on the device, in the order of `crate::batch`, queued without waiting.

use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::lsm::batch::{BLOCK, INSERTION, lsm_gather, lsm_ones, lsm_order, lsm_take};
use warpset_primitives::Error::TooLong;
use warpset_primitives::sort::{By, sort_keys_in_place_async, sort_pairs_async, sort_pairs_in_place_async};
use warpset_simt::LaunchConfig;

use crate::Error;
use crate::gpu::device_run::DeviceElements;
use crate::gpu::wide_values;
use crate::gpu::{DeviceValue, StoredKey};

/// Largest number of elements of a mixed batch: places share a word with a flag.
const MOST_MIXED: usize = INSERTION as usize;
/// Largest number of blocks of grid-stride launches.
const MOST_BLOCKS: usize = 1 << 16;

fn covering(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize).clamp(1, MOST_BLOCKS) as u32, BLOCK)
}

/// Queues insertions, at least one, with one value per key.
///
/// # Safety
/// Until `stream` has passed this work, keys and values stay allocated and unchanged.
pub(in crate::gpu) unsafe fn insertions<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V::Stored>,
) -> Result<DeviceElements<K, V>, Error> {
    let n = keys.len();
    let mut sorted = DeviceElements::<K, V>::uninit(stream, n, false)?;
    // SAFETY: there is one place per key; the memory is new; the rest is the contract of this function.
    unsafe {
        V::sort(stream, keys, values, &mut sorted)?;
    }
    Ok(sorted)
}

/// Elements without their values, and the addresses of the values, unless the elements have addresses themselves.
pub(in crate::gpu) type Ordered<K, V> = (DeviceElements<K, V>, Option<DeviceVec<u64>>);

/// Queues insertions with values from address `first` on that may arrive later: sorts the keys, and returns the address
/// of each value for [`fetch`]. There is at least one.
///
/// # Safety
/// `keys` stay allocated and are not written until `stream` has passed this work.
pub(in crate::gpu) unsafe fn order<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    first: u64,
) -> Result<Ordered<K, V>, Error> {
    let n = keys.len();
    let mut sorted = DeviceElements::<K, V>::uninit(stream, n, false)?;
    let mut addresses = stream.alloc_uninit::<u64>(n)?;
    // Elements with values in rows keep the addresses themselves.
    let mut order = if V::IN_ROWS { None } else { Some(stream.alloc_uninit::<u64>(n)?) };
    // SAFETY: there is one place per key; the memory is new, and scratch is freed in stream order; the rest is the
    // contract of this function.
    unsafe {
        wide_values::write_progression(stream, first, size_of::<V::Stored>() as u64, addresses.as_mut_slice())?;
        let (by, addresses) = (By::ascending().last_first(), addresses.as_slice());
        match &mut order {
            Some(order) => sort_pairs_async(stream, keys, addresses, &mut sorted.keys, order, by)?,
            None => {
                let (to_keys, to_addresses, _) = sorted.parts_mut::<u64>()?;
                sort_pairs_async(stream, keys, addresses, to_keys, to_addresses, by)?;
            }
        }
    }
    Ok((sorted, order))
}

/// Queues the copy of values, which start at address `first`, to the places of [`order`].
///
/// # Safety
/// When `stream` reaches this work, the values have arrived; they stay allocated and unchanged until it has passed.
pub(in crate::gpu) unsafe fn fetch<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    order: Option<DeviceVec<u64>>,
    first: u64,
    sorted: &mut DeviceElements<K, V>,
) -> Result<(), Error> {
    // SAFETY: `order` has one address of a value per element, written by [`order`], and is freed in stream order; the
    // values have arrived and are unchanged, by the contract.
    unsafe {
        match order {
            Some(order) => wide_values::copy(stream, order.as_slice(), first, sorted.values.as_mut_slice())?,
            None => sorted.settle(stream, first)?,
        }
    }
    Ok(())
}

/// Queues removals, at least one.
///
/// # Safety
/// The contract of [`insertions`].
pub(in crate::gpu) unsafe fn removals<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
) -> Result<DeviceElements<K, V>, Error> {
    let n = keys.len();
    let mut sorted = DeviceElements::<K, V>::uninit(stream, n, true)?;
    stream.copy(&mut sorted.keys, keys)?;
    if V::WORDS != 0 {
        stream.fill_bytes(&mut sorted.values, 0)?;
        stream.fill_bytes(sorted.carried_mut::<u32>()?, 0)?;
    }
    // SAFETY: the memory is new; the bitmap has a bit for each key.
    unsafe {
        sort_keys_in_place_async(stream, &mut sorted.keys, By::ascending())?;
        if let Some(bitmap) = &mut sorted.tombstones {
            lsm_ones { words: bitmap.global_mut(), n }.launch(stream, covering(n.div_ceil(32)))?;
        }
    }
    Ok(sorted)
}

/// Queues removals where `removed` is not zero, and insertions elsewhere; there is at least one element.
///
/// # Safety
/// The contract of [`insertions`], for the flags too.
pub(in crate::gpu) unsafe fn mixed<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V::Stored>,
    removed: DeviceSlice<'_, u8>,
) -> Result<DeviceElements<K, V>, Error> {
    let n = keys.len();
    if n > MOST_MIXED {
        return Err(TooLong { len: n, max: MOST_MIXED }.into());
    }
    let mut sorted = DeviceElements::<K, V>::uninit(stream, n, true)?;
    let mut words = stream.alloc_uninit::<u32>(n)?;
    // SAFETY: there is one place per key; the memory is new, and scratch is freed in stream order; the rest is the
    // contract of this function.
    unsafe {
        lsm_order { removed: removed.global(), n, words: words.global_mut() }.launch(stream, covering(n))?;
        sort_keys_in_place_async(stream, &mut words, By::ascending().bits(31..32))?;
        let out = sorted.keys.global_mut();
        lsm_gather { keys: keys.global(), words: words.global(), n, out }.launch(stream, covering(n))?;
        sort_pairs_in_place_async(stream, &mut sorted.keys, &mut words, By::ascending())?;
        let addresses = if V::IN_ROWS { Some(wide_values::addresses(stream, values)?) } else { None };
        let carried = addresses.as_ref().map_or_else(|| values.global().cast(), |addresses| addresses.global().cast());
        if let (_, mut out, Some(mut bitmap)) = sorted.parts_mut::<u32>()? {
            lsm_take {
                values: carried,
                value_words: V::WORDS,
                words: words.global(),
                n,
                out_values: out.global_mut(),
                tombstones: bitmap.global_mut(),
            }
            .launch(stream, covering(n))?;
        }
        sorted.settle(stream, wide_values::address_of(values))?;
    }
    Ok(sorted)
}

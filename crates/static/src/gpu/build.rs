//! Builds on a device: hashes are sorted, and one thread block builds each shard.

use std::ops::Range;

use bytemuck::Pod;
use warpset_gpu::batch::{DeviceKey, Hashing};
use warpset_gpu::{Device, DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::static_set::build::{
    BLOCK, HASH_BLOCK, LARGE_BLOCK, shared_bytes, static_set_build, static_set_hash,
};
use warpset_simt::EntryOf;

use super::element::sealed::{Distinct, Sorted};
use super::{DeviceStaticKey, DeviceValue, StaticMap};
use crate::build::ATTEMPTS;
use crate::{Error, Layout};
use warpset_core::static_set::{MOST_KEYS, spread};

/// The most blocks that hash.
const MOST_BLOCKS: usize = 1 << 16;

/// Builds a map of keys with one value each, or none for a set.
pub(super) fn build<K: DeviceStaticKey, V: DeviceValue>(
    device: &Device,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V::Stored>,
    seed: u64,
) -> Result<StaticMap<K, V>, Error> {
    device.expect_all_here([keys.device(), values.device()], "the build of a static set")?;
    expect_few(keys.len())?;
    let mut distinct = 0;
    for attempt in 0..ATTEMPTS {
        let seed = seed.wrapping_add(attempt.into());
        let built = attempt_build(device, keys, values, seed, &mut distinct)?;
        if let Some(map) = built {
            return Ok(map);
        }
    }
    Err(Error::NoSeed { keys: distinct, seed, attempts: ATTEMPTS })
}

/// Refuses more keys than a build takes, with repetitions.
pub(super) fn expect_few(keys: usize) -> Result<(), Error> {
    if keys as u64 > MOST_KEYS << 8 {
        return Err(Error::TooManyKeys { keys: keys as u64, most: MOST_KEYS });
    }
    Ok(())
}

/// Builds the map under this seed, unless a shard finds no pilots; also returns the number of different keys.
fn attempt_build<K: DeviceStaticKey, V: DeviceValue>(
    device: &Device,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V::Stored>,
    seed: u64,
    keys_counted: &mut u64,
) -> Result<Option<StaticMap<K, V>>, Error> {
    device.waiting(|stream| {
        // SAFETY: keys and values are borrowed until the stream has been waited for.
        let distinct = unsafe { distinct::<K, V>(stream, keys, values, seed)? };
        *keys_counted = distinct.len as u64;
        let layout = Layout::<K, V>::new(distinct.len as u64, seed)?;
        let shards = 0..layout.shape().shards();
        let words = words_of_shards(stream, &layout, &shards, &distinct)?;
        Ok(words.map(|words| StaticMap::from_parts(device, layout, words)))
    })
}

/// Returns the different hashes of keys with their values, ascending; of equal keys the last one counts. Waits for
/// their number.
///
/// # Safety
/// Until `stream` has passed this work keys and values stay allocated, and nothing writes them.
pub(super) unsafe fn distinct<K: DeviceKey, S: Sorted>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, S::Stored>,
    seed: u64,
) -> Result<Distinct<S::Stored>, Error> {
    let n = keys.len();
    let mut hashes = stream.alloc_uninit::<u64>(n)?;
    if n > 0 {
        let slice = Hashing::seeded(seed).key_slice(K::CLASS, keys.global());
        let blocks = n.div_ceil(HASH_BLOCK as usize).min(MOST_BLOCKS) as u32;
        let kernel = static_set_hash {
            keys: slice.keys,
            kind: slice.kind,
            spread: spread(seed),
            n,
            hashes: hashes.global_mut(),
        };
        // SAFETY: there are places for all hashes; the rest is this function's contract.
        unsafe { kernel.launch(stream, LaunchConfig::new(blocks, HASH_BLOCK))? };
    }
    // SAFETY: this function's contract.
    unsafe { S::distinct(stream, hashes, values) }
}

/// Returns the words of some shards, of these hashes and no others, unless one finds no pilots. Waits.
pub(super) fn words_of_shards<K: DeviceStaticKey, V: DeviceValue, T: Pod>(
    stream: &Stream,
    layout: &Layout<K, V>,
    shards: &Range<u64>,
    Distinct { hashes, values, len }: &Distinct<T>,
) -> Result<Option<DeviceVec<u64>>, Error> {
    let (count, shape) = (shards.end - shards.start, layout.shape());
    let [pilots_at, keys_at, values_at] = layout.places_of(count);
    let mut words: DeviceVec<u64> = stream.device().alloc_uninit(values_at.end)?;
    // The kernel writes the keys of all slots, but only the values and pilots that there are.
    let zeros = if V::WORDS == 0 { pilots_at.end } else { words.len() };
    stream.fill_bytes(words.slice_mut(..zeros), 0)?;
    if layout.is_empty() {
        return Ok(Some(words));
    }
    let mut failed = stream.alloc_zeroed::<u32>(1)?;
    let all = words.global_mut();
    let kernel = static_set_build::<K> {
        hashes: hashes.global(),
        n: *len,
        first: shards.start,
        shape,
        spread: layout.spread(),
        values: values.global().cast(),
        value_words: V::WORDS,
        stride: size_of::<T>() as u32 / 4,
        pilots: all.cast(),
        keys: all.at(keys_at.start).cast(),
        out_values: all.at(values_at.start).cast(),
        failed: failed.global_mut(),
    };
    let is_few = count <= 2 * u64::from(stream.device().properties().multiprocessors);
    let threads = if is_few { LARGE_BLOCK } else { BLOCK };
    let config = LaunchConfig::new(count as u32, threads).shared(shared_bytes(shape));
    // SAFETY: hashes ascend and differ, and each has a value, if there are any; the words have all parts of these
    // shards and are zero; they and the distinct keys are here until the download has waited for the stream.
    unsafe { <K as EntryOf<static_set_build<K>>>::launch(kernel, stream, config)? };
    let is_failed = stream.download_first(&failed)? != 0;
    Ok((!is_failed).then_some(words))
}

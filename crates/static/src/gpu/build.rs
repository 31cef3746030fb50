//! Builds on a device: hashes are sorted, and one thread block builds each shard.

use warpset_gpu::batch::{DeviceKey, Hashing};
use warpset_gpu::{Device, DeviceSlice, DeviceVec, LaunchConfig};
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
    if keys.len() as u64 > MOST_KEYS << 8 {
        return Err(Error::TooManyKeys { keys: keys.len() as u64, most: MOST_KEYS });
    }
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

/// Builds the map under this seed, unless a shard finds no pilots; also returns the number of different keys.
fn attempt_build<K: DeviceStaticKey, V: DeviceValue>(
    device: &Device,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V::Stored>,
    seed: u64,
    keys_counted: &mut u64,
) -> Result<Option<StaticMap<K, V>>, Error> {
    device.waiting(|stream| {
        let n = keys.len();
        let mut hashes = stream.alloc_uninit::<u64>(n)?;
        if n > 0 {
            let slice = Hashing::seeded(seed).key_slice(<K as DeviceKey>::CLASS, keys.global());
            let blocks = n.div_ceil(HASH_BLOCK as usize).min(MOST_BLOCKS) as u32;
            let kernel = static_set_hash {
                keys: slice.keys,
                kind: slice.kind,
                spread: spread(seed),
                n,
                hashes: hashes.global_mut(),
            };
            // SAFETY: there are places for all hashes; keys are borrowed until the stream has been waited for.
            unsafe { kernel.launch(stream, LaunchConfig::new(blocks, HASH_BLOCK))? };
        }
        // SAFETY: values are borrowed until the stream has been waited for.
        let Distinct { hashes, values, len } = unsafe { <V as Sorted>::distinct(stream, hashes, values)? };
        *keys_counted = len as u64;
        let layout = Layout::<K, V>::new(len as u64, seed)?;
        let mut words: DeviceVec<u64> = device.alloc_uninit(layout.words() as usize)?;
        let keys_at = layout.keys_at();
        // The kernel writes the keys of all slots, but only the values and pilots that there are.
        let zeros = if V::WORDS == 0 { keys_at.start } else { words.len() };
        stream.fill_bytes(words.slice_mut(..zeros), 0)?;
        if len == 0 {
            return Ok(Some(StaticMap::from_parts(device, layout, words)));
        }
        let mut failed = stream.alloc_zeroed::<u32>(1)?;
        let all = words.global_mut();
        let shape = layout.shape();
        let kernel = static_set_build::<K> {
            hashes: hashes.global(),
            n: len,
            shape,
            spread: layout.spread(),
            values: values.global().cast(),
            value_words: V::WORDS,
            pilots: all.cast(),
            keys: all.at(keys_at.start).cast(),
            out_values: all.at(keys_at.end).cast(),
            failed: failed.global_mut(),
        };
        let is_few = shape.shards() <= 2 * u64::from(device.properties().multiprocessors);
        let threads = if is_few { LARGE_BLOCK } else { BLOCK };
        let config = LaunchConfig::new(shape.shards() as u32, threads).shared(shared_bytes(shape));
        // SAFETY: hashes ascend and differ, and each has a value, if there are any; the words have all parts of this
        // shape and are zero; this function owns both until the stream has been waited for.
        unsafe { <K as EntryOf<static_set_build<K>>>::launch(kernel, stream, config)? };
        let is_failed = stream.download_first(&failed)? != 0;
        Ok((!is_failed).then(|| StaticMap::from_parts(device, layout, words)))
    })
}

//! Builds on several devices: words of keys to the owners of their hashes, then each device builds its own shards.
//!
//! Equal keys have one owner, which finds them. The number of shards follows from the number of different keys, so a
//! division by all keys may be that of more shards; the keys are then sent once more.

use std::marker::PhantomData;
use std::ops::Range;

use warpset_base::filter::LengthMismatch;
use warpset_core::static_set::MOST_KEYS;
use warpset_gpu::{DeviceSlice, Devices};
use warpset_primitives::sharded::{self, NO_VALUES, Received, Sharded};

use super::{ShardedStaticMap, ShardedStaticSet, divided};
use crate::build::ATTEMPTS;
use crate::gpu::build::{distinct, expect_few, words_of_shards};
use crate::gpu::{DeviceMapValue, DeviceStaticKey, DeviceValue, StaticMap};
use crate::{Builder, Error, Layout, StaticKey, Value};

/// Bytes of a device's memory that a build takes for each key that the device owns, beside its shards.
const BYTES_OF_KEY: u64 = 32;
/// These bytes for a key with a value.
const BYTES_OF_PAIR: u64 = 64;

/// Shards of a device, and the words of their keys.
type Part = (Range<u64>, Received);

/// Keeps the words of keys that a part owns.
fn take(part: &mut Part, words: DeviceSlice<'_, u64>, values: DeviceSlice<'_, u64>) -> Result<(), Error> {
    Ok(part.1.take(words, values)?)
}

/// [`Builder`] of sets and maps that several devices build and hold, made by [`Builder::sharded_on`].
///
/// ```
/// use warpset_gpu::{Device, Devices};
/// use warpset_static::StaticMap;
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let (keys, values): (Vec<u64>, Vec<u32>) = (0..20_000).map(|i| (i * i, i as u32)).unzip();
/// let builder = StaticMap::<u64, u32>::builder();
/// let map = builder.sharded_on(&devices).build_from(&keys, &values)?;
/// assert_eq!(map.get_bulk(&[49, 50])?, [Some(7), None]);
/// assert!(map.to_host()? == builder.build_from(&keys, &values)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct ShardedBuilder<K, V> {
    seed: u64,
    devices: Devices,
    elements: PhantomData<fn() -> (K, V)>,
}

impl<K: StaticKey, V: Value> Builder<K, V> {
    /// Returns a builder with these settings of a set or map that is divided among `devices`.
    pub fn sharded_on(&self, devices: &Devices) -> ShardedBuilder<K, V> {
        ShardedBuilder { seed: self.seed, devices: devices.clone(), elements: PhantomData }
    }
}

impl<K: DeviceStaticKey> ShardedBuilder<K, ()> {
    /// Returns a set of these keys, whose copy in host memory has the same bytes as if it had been built there; equal
    /// keys count once. Each device brings an equal share of the keys over its own bus.
    ///
    /// Memory of a device for a time: 32 bytes for each key that it owns, and that of an exchange.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Gpu`] if a device fails or has too little memory.
    pub fn build_from(&self, keys: &[K]) -> Result<ShardedStaticSet<K>, Error> {
        self.build(keys.len(), |parts| parts.change_bulk(keys, NO_VALUES, take))
    }

    /// Builds a set of batches of keys, each on one of the devices; see [`build_from`](Self::build_from).
    ///
    /// # Errors
    /// The errors of [`build_from`](Self::build_from); memory of a device that has no part.
    pub fn build_from_each_device(&self, batches: &[DeviceSlice<'_, K>]) -> Result<ShardedStaticSet<K>, Error> {
        let count = batches.iter().map(|keys| keys.len()).sum();
        self.build(count, |parts| parts.change_each(batches, &[], take))
    }
}

impl<K: DeviceStaticKey, V: DeviceMapValue> ShardedBuilder<K, V> {
    /// Returns a map of these keys, one value per key, whose copy in host memory has the same bytes as if it had been
    /// built there: of equal keys the last one counts. Each device brings an equal share over its own bus.
    ///
    /// Memory of a device for a time: 64 bytes for each key that it owns, and that of an exchange.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Gpu`] if a device fails or has too little memory.
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<ShardedStaticMap<K, V>, Error> {
        LengthMismatch::unless_equal("values for keys", keys.len(), values.len())?;
        self.build(keys.len(), |parts| parts.change_bulk(keys, values, take))
    }

    /// Builds a map of batches of keys, each on one of the devices with its values; see
    /// [`build_from`](Self::build_from). Of equal keys that of the last batch counts.
    ///
    /// # Errors
    /// The errors of [`build_from`](Self::build_from); [`Error::LengthMismatch`] unless there is a value per key;
    /// memory of a device that has no part.
    pub fn build_from_each_device(
        &self,
        batches: &[DeviceSlice<'_, K>],
        values: &[DeviceSlice<'_, V>],
    ) -> Result<ShardedStaticMap<K, V>, Error> {
        LengthMismatch::unless_equal("batches of values", batches.len(), values.len())?;
        let words = values.iter().map(|&values| sharded::words_of(values)).collect::<Result<Vec<_>, _>>()?;
        let words: Vec<_> = words.iter().map(|words| words.as_slice()).collect();
        self.build(batches.iter().map(|keys| keys.len()).sum(), |parts| {
            // One after the other: a round of all batches would bring later keys of the first after those of the last.
            let mut pairs = batches.iter().zip(&words);
            pairs.try_for_each(|(&keys, &values)| parts.change_each(&[keys], &[values], take))
        })
    }
}

impl<K: DeviceStaticKey, V: DeviceValue> ShardedBuilder<K, V> {
    /// Builds of `count` keys, which `send` brings to their owners, in their order if they have values.
    fn build(
        &self,
        count: usize,
        send: impl Fn(&mut Sharded<Part>) -> Result<(), Error>,
    ) -> Result<ShardedStaticMap<K, V>, Error> {
        expect_few(count)?;
        let (mut keys, mut attempt) = ((count as u64).min(MOST_KEYS), 0);
        while attempt < ATTEMPTS {
            let seed = self.seed.wrapping_add(attempt.into());
            let all = Layout::<K, V>::new(keys, seed)?;
            let bytes_per_key = if V::WORDS == 0 { BYTES_OF_KEY } else { BYTES_OF_PAIR };
            let more = bytes_per_key * keys / all.shape().shards();
            let mut parts = divided(&self.devices, &all, more, |_, shards| Ok((shards, Received::default())))?;
            // A round costs nothing beside its words, and grouping overlaps with the copies of the round before.
            parts.set_chunk_keys(1 << 25);
            send(&mut parts)?;
            let owners = parts.devices().clone();
            let found = parts.each_mut(|place, (_, received)| {
                let device = &owners.all()[place];
                let (words, values) = device.waiting(|stream| std::mem::take(received).joined(stream))?;
                // SAFETY: words and values are borrowed until the stream has been waited for.
                device.waiting(|stream| unsafe {
                    distinct::<u64, V::Wide>(stream, words.as_slice(), values.as_slice(), seed)
                })
            })?;
            keys = found.iter().map(|found| found.len as u64).sum();
            let layout = Layout::new(keys, seed)?;
            if layout.shape().shard_bits != all.shape().shard_bits {
                continue;
            }
            let built = parts.each(|place, (shards, _)| {
                owners.all()[place].waiting(|stream| words_of_shards(stream, &layout, shards, &found[place]))
            })?;
            if let Some(built) = built.into_iter().collect::<Option<Vec<_>>>() {
                let mut built = built.into_iter().zip(owners.all());
                let shards = parts.map(|(shards, _)| {
                    let (words, device) = built.next().expect("each part is built");
                    StaticMap { shards, ..StaticMap::from_parts(device, layout, words) }
                });
                return Ok(ShardedStaticMap { layout, shards });
            }
            attempt += 1;
        }
        Err(Error::NoSeed { keys, seed: self.seed, attempts: ATTEMPTS })
    }
}

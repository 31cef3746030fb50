//! Builds on several devices: words of keys to the owners of their hashes, then each device builds its own graphs.
//!
//! The seed of an attempt chooses the owners, so each attempt exchanges all keys. Equal keys have one owner, which
//! finds them; the different ones then stay on the devices, and further attempts exchange those.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use warpset_base::filter::same_length;
use warpset_gpu::{DeviceSlice, DeviceVec, Devices};
use warpset_primitives::sharded::{self, NO_VALUES, Received, Sharded};

use super::{ShardedBinaryFuse, ShardedStaticFunction, divided};
use crate::build::{Failure, Settings, attempts};
use crate::gpu::build::{DeviceSource, Distinct, Share, Values, attempt};
use crate::gpu::{BinaryFuse, DeviceFunctionValue, DeviceKeys, DeviceWidth, StaticFunction};
use crate::width::Width;
use crate::{Builder, Error, FunctionBuilder, FunctionValue, Key, Layout};

/// Bytes of a device's memory that a build takes for each key that the device owns: the word, its hash and scratch of
/// the sort, with values beside the first and the last.
const BYTES_PER_KEY: u64 = 40;

/// Graphs of a device, and the words of their keys.
type Part = (Range<u64>, Received);

/// Keeps the words of keys that a part owns.
fn take(part: &mut Part, words: DeviceSlice<'_, u64>, values: DeviceSlice<'_, u64>) -> Result<(), Error> {
    Ok(part.1.take(words, values)?)
}

/// Graphs of a device, and their words.
type Built = (Range<u64>, DeviceVec<u64>);

/// Returns the layout of a structure of `count` keys, and for each device its graphs and their words. `send` brings
/// all keys, with their values if there are any, to their owners.
fn build<F: DeviceWidth>(
    devices: &Devices,
    settings: &Settings,
    (count, with_values): (usize, bool),
    send: impl Fn(&mut Sharded<Part>) -> Result<(), Error>,
) -> Result<(Layout, Sharded<Built>), Error> {
    let distinct: RefCell<Option<Vec<Distinct>>> = RefCell::new(None);
    let attempt_by = |layout: &Layout, are_distinct| -> Result<_, Failure> {
        let bytes = 8 * layout.shard_words() + BYTES_PER_KEY * layout.keys / layout.graphs();
        let mut received = divided(devices, layout, bytes, |_, graphs| Ok((graphs, Received::default())))?;
        // A round costs nothing beside its words, and grouping overlaps with the copies of the round before.
        received.set_chunk_keys(1 << 25);
        let owners = received.devices().clone();
        match &mut *distinct.borrow_mut() {
            None => send(&mut received)?,
            Some(parts) => {
                // Fewer keys may have fewer owners.
                for Distinct { words, values, count } in parts.iter_mut().skip(owners.all().len()) {
                    for vector in [Some(words), values.as_mut()].into_iter().flatten() {
                        *vector = sharded::copied(vector.slice(..*count), owners.first())?;
                    }
                }
                let keys: Vec<_> = parts.iter().map(|part| part.words.slice(..part.count)).collect();
                let values = parts.iter().flat_map(|part| part.values.as_ref().map(|all| all.slice(..part.count)));
                received.change_each(&keys, &values.collect::<Vec<_>>(), take)?;
            }
        }
        let built = received.each_mut(|place, (graphs, part)| {
            let stream = owners.all()[place].new_stream()?;
            let (words, values) = std::mem::take(part).joined(&stream)?;
            let (own, count) = (RefCell::new(None), words.len());
            let share = Share { layout: Layout { keys: count as u64, ..*layout }, graphs: graphs.clone() };
            let given = with_values.then(|| Values { values: values.global(), width: 8 });
            let built = attempt::<F>(&stream, &share, &DeviceSource(words.as_slice()), given, &own, are_distinct);
            stream.synchronize()?;
            let all = || Distinct { words, values: with_values.then_some(values), count };
            match built {
                Err(Failure::Error(error)) => Err(error),
                built => Ok((built, own.into_inner().unwrap_or_else(all))),
            }
        })?;
        let (built, all): (Vec<_>, Vec<_>) = built.into_iter().unzip();
        if built.iter().any(|built| matches!(built, Err(Failure::Duplicates))) {
            *distinct.borrow_mut() = Some(all);
            return Err(Failure::Duplicates);
        }
        let mut built = built.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
        Ok((*layout, received.map(|(graphs, _)| (graphs, built.next().expect("each part is built")))))
    };
    attempts(settings, count as u64, attempt_by, || {
        Ok(distinct.borrow().iter().flatten().map(|part| part.count as u64).sum())
    })
}

/// [`Builder`] of filters that several devices build and hold, made by [`Builder::sharded_on`].
///
/// ```
/// use warpset_fuse::{BinaryFuse8, Filter};
/// use warpset_gpu::{Device, Devices};
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let keys: Vec<u64> = (0..30_000).collect();
/// let builder = BinaryFuse8::builder().for_build();
/// let filter = builder.sharded_on(&devices).build_from(&keys)?;
/// assert_eq!(filter.count_contained_bulk(&keys)?, 30_000);
/// assert!(filter.to_host()? == builder.build_from(&keys)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct ShardedBuilder<F> {
    settings: Builder<F>,
    devices: Devices,
}

/// [`FunctionBuilder`] of functions that several devices build and hold, made by [`FunctionBuilder::sharded_on`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct ShardedFunctionBuilder<V> {
    settings: FunctionBuilder<V>,
    devices: Devices,
}

impl<F: DeviceWidth> Builder<F> {
    /// Returns a builder with these settings of a filter that is divided among `devices`. A filter of one graph is
    /// built by the first one: set [`for_build`](Builder::for_build).
    pub fn sharded_on(&self, devices: &Devices) -> ShardedBuilder<F> {
        ShardedBuilder { settings: *self, devices: devices.clone() }
    }
}

impl<V: DeviceFunctionValue> FunctionBuilder<V> {
    /// Returns a builder with these settings of a function that is divided among `devices`. A function of one graph is
    /// built by the first one: set [`for_build`](FunctionBuilder::for_build).
    pub fn sharded_on(&self, devices: &Devices) -> ShardedFunctionBuilder<V> {
        ShardedFunctionBuilder { settings: *self, devices: devices.clone() }
    }
}

impl<F: DeviceWidth> ShardedBuilder<F> {
    /// Returns a filter of these keys, whose copy in host memory has the same bytes as if it had been built there;
    /// equal keys count once. Each device brings an equal share of the keys over its own bus, once per attempt.
    ///
    /// Memory of a device for a time: 24 bytes for each key that it owns, and that of an exchange.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Gpu`] if a device fails or has too little memory.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<ShardedBinaryFuse<F>, Error> {
        self.build(keys.len(), |parts| parts.change_bulk(keys, NO_VALUES, take))
    }

    /// Builds a filter of batches of keys, each on one of the devices; see [`build_from`](Self::build_from).
    ///
    /// # Errors
    /// The errors of [`build_from`](Self::build_from); memory of a device that has no part.
    pub fn build_from_each_device<K: DeviceKeys>(&self, batches: &[K]) -> Result<ShardedBinaryFuse<F>, Error> {
        let count = batches.iter().map(|keys| keys.count()).sum();
        self.build(count, |parts| parts.change_each(batches, &[], take))
    }

    fn build(
        &self,
        count: usize,
        send: impl Fn(&mut Sharded<Part>) -> Result<(), Error>,
    ) -> Result<ShardedBinaryFuse<F>, Error> {
        let (layout, built) = build::<F>(&self.devices, &self.settings.settings()?, (count, false), send)?;
        let part = |(graphs, words): (_, DeviceVec<u64>)| {
            BinaryFuse::of_graphs(&words.device().clone(), layout, graphs, words)
        };
        Ok(ShardedBinaryFuse { layout, shards: built.map(part) })
    }
}

impl<V: DeviceFunctionValue> ShardedFunctionBuilder<V> {
    /// Returns a function of these keys and values, whose copy in host memory has the same bytes as if it had been
    /// built there. Each device brings an equal share of them over its own bus, once per attempt.
    ///
    /// Memory of a device for a time: 40 bytes for each key that it owns, and that of an exchange.
    ///
    /// # Errors
    /// The errors of [`FunctionBuilder::build_from`]; [`Error::Gpu`] if a device fails or has too little memory.
    pub fn build_from<K: Key>(&self, keys: &[K], values: &[V]) -> Result<ShardedStaticFunction<V>, Error> {
        same_length(keys.len(), values.len())?;
        self.build(keys.len(), |parts| parts.change_bulk(keys, values, take))
    }

    /// Builds a function of batches of keys, each on one of the devices with its values; see
    /// [`build_from`](Self::build_from).
    ///
    /// # Errors
    /// The errors of [`build_from`](Self::build_from); [`Error::LengthMismatch`] unless there is a value per key;
    /// memory of a device that has no part.
    pub fn build_from_each_device<K: DeviceKeys>(
        &self,
        batches: &[K],
        values: &[DeviceSlice<'_, V>],
    ) -> Result<ShardedStaticFunction<V>, Error> {
        same_length(batches.len(), values.len())?;
        let words = values.iter().map(|&values| sharded::words_of(values)).collect::<Result<Vec<_>, _>>()?;
        let words: Vec<_> = words.iter().map(|words| words.as_slice()).collect();
        let count = batches.iter().map(|keys| keys.count()).sum();
        self.build(count, |parts| parts.change_each(batches, &words, take))
    }

    fn build(
        &self,
        count: usize,
        send: impl Fn(&mut Sharded<Part>) -> Result<(), Error>,
    ) -> Result<ShardedStaticFunction<V>, Error> {
        let (layout, built) = build::<u32>(&self.devices, &self.settings.settings()?, (count, true), send)?;
        let part = |(graphs, words): (_, DeviceVec<u64>)| {
            StaticFunction::of_graphs(&words.device().clone(), layout, graphs, words)
        };
        Ok(ShardedStaticFunction { layout, shards: built.map(part) })
    }
}

impl<F: Width> fmt::Debug for ShardedBuilder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedBuilder").field("settings", &self.settings).field("devices", &self.devices).finish()
    }
}

impl<V: FunctionValue> fmt::Debug for ShardedFunctionBuilder<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("ShardedFunctionBuilder");
        f.field("settings", &self.settings).field("devices", &self.devices).finish()
    }
}

//! Dictionaries on several devices: each device owns a range of keys, in a dictionary of its own.
//!
//! Keys of a change are sorted on the device where they lie, and cut at the first keys of the owners' ranges. An owner
//! copies the pieces that it owns, which are sorted runs, and merges them with its levels. Keys of a lookup are grouped
//! by owner, as hashes are, if they have 8 bytes; others are sorted with their numbers, and each owner looks up
//! ascending keys. The exchange of answers is that of all structures ([`warpset_primitives::sharded`]).

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Range, RangeBounds, RangeInclusive};
use std::sync::PoisonError;

use warpset_base::filter::LengthMismatch;
use warpset_base::words::{in_huge_pages, zeroed_vec};
use warpset_gpu::batch::Answers;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Devices, Stream};
use warpset_kernels::lsm::lookup::{self, lsm_places};
use warpset_primitives::KeyMask;
use warpset_primitives::search::lower_bound_async;
use warpset_primitives::sharded::{Replies, Routed, Sharded};
use warpset_primitives::sort::{By, sort_pairs_async};
use warpset_simt::LaunchConfig;

use crate::element::units;
use crate::error::one_per_key;
use crate::gpu::host_transfer::Batch;
use crate::gpu::wide_values::AnswerBuffer;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, StoredKey};
use crate::policy::{ArrayPolicy, MergePolicy, TreePolicy};
use crate::query::range::ends;
use crate::run::Elements;
use crate::{Bitmap, Builder, Error, Ranges, SortedArrayBuilder, cpu};

mod change;

/// Keys of the host that a device brings and looks up at a time; a multiple of 64.
const HOST_CHUNK: usize = if cfg!(test) { 128 } else { 1 << 24 };

/// Dictionary divided among devices, by its merge policy: each device owns a range of keys. For dictionaries larger
/// than one device's memory and for the bandwidth of all devices.
///
/// The ranges come from a sample of the first batch. When a device holds more than 1.5 times its share, the bounds move
/// at the end of the change: all devices clean up, and copy pieces of sorted runs to their new owners. If they have too
/// little memory for that, the next change tries again.
///
/// Methods on host slices give each device an equal share to sort; methods that end in `_each_device` take batches on
/// any of the devices. A later batch counts as newer. After an error the elements are unchanged, on all devices:
/// until a change is complete the devices keep the levels that it replaces. Levels are unchanged, too, except by
/// `cleanup` and `balance`. An error of a move that follows a change is not reported; the next change tries again.
///
/// ```
/// use warpset_gpu::{Device, Devices};
/// use warpset_lsm::Lsm;
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let builder = Lsm::<u32, u64>::builder();
/// let mut prices = builder.sharded_on(&devices).build_from(&[30, 10, 20], &[300, 100, 200])?;
/// prices.remove_bulk(&[20])?;
/// assert_eq!(prices.get_bulk(&[10, 20, 30])?, [Some(100), None, Some(300)]);
/// assert_eq!(prices.count_range_bulk(&[5..=15, 0..=99])?, [1, 2]);
/// assert!(prices.to_host()? == builder.build_from(&[10, 30], &[100, 300])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedDictionary<K: DeviceKey, V: DeviceValue, P> {
    policy: P,
    /// The router is the least key of each part but the first.
    shards: Sharded<Dictionary<K, V, P>, Vec<K>>,
}

/// [`Lsm`](crate::Lsm) divided among devices, made by [`Builder::sharded_on`].
pub type ShardedLsm<K, V> = ShardedDictionary<K, V, TreePolicy>;

/// [`SortedArray`](crate::SortedArray) divided among devices, made by [`SortedArrayBuilder::sharded_on`].
pub type ShardedSortedArray<K, V> = ShardedDictionary<K, V, ArrayPolicy>;

/// Builder of dictionaries divided among devices, made by [`Builder::sharded_on`] and
/// [`SortedArrayBuilder::sharded_on`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ShardedBuilder<K, V, P = TreePolicy> {
    policy: P,
    devices: Devices,
    elements: PhantomData<(K, V)>,
}

impl<K: DeviceKey, V: DeviceValue> Builder<K, V> {
    /// Returns a builder of trees with these settings that are divided among `devices`.
    pub fn sharded_on(&self, devices: &Devices) -> ShardedBuilder<K, V> {
        ShardedBuilder { policy: TreePolicy::new(self.settings), devices: devices.clone(), elements: PhantomData }
    }
}

impl<K: DeviceKey, V: DeviceValue> SortedArrayBuilder<K, V> {
    /// Returns a builder of arrays that are divided among `devices`.
    pub fn sharded_on(&self, devices: &Devices) -> ShardedBuilder<K, V, ArrayPolicy> {
        ShardedBuilder { policy: ArrayPolicy, devices: devices.clone(), elements: PhantomData }
    }
}

impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> ShardedBuilder<K, V, P> {
    /// Checks every setting and returns an empty dictionary.
    ///
    /// # Errors
    /// [`Error::InvalidBatchSize`], [`Error::InvalidStaleShare`], [`Error::NoBatches`], [`Error::Gpu`].
    pub fn build(&self) -> Result<ShardedDictionary<K, V, P>, Error> {
        let policy = self.policy.checked()?;
        let made = self.devices.each(|_, device| Dictionary::empty(device, policy));
        // Any bounds are valid until there are elements.
        let bounds = vec![K::MAX; made.len() - 1];
        let parts = made.into_iter().collect::<Result<_, Error>>()?;
        Ok(ShardedDictionary { policy, shards: Sharded::with_parts(&self.devices, bounds, parts) })
    }

    /// Builds a dictionary from one value per key. The last one of equal keys counts.
    ///
    /// # Errors
    /// The errors of [`ShardedBuilder::build`]; [`Error::LengthMismatch`].
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<ShardedDictionary<K, V, P>, Error> {
        let mut made = self.build()?;
        made.insert_bulk(keys, values)?;
        Ok(made)
    }

    /// Builds as [`ShardedBuilder::build_from`] does, from keys and values on one of the devices.
    ///
    /// # Errors
    /// The errors of [`ShardedBuilder::build_from`]; [`Error::Gpu`] for memory of another device.
    pub fn build_from_device(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
    ) -> Result<ShardedDictionary<K, V, P>, Error> {
        let mut made = self.build()?;
        made.insert_each_device(&[keys], &[values])?;
        Ok(made)
    }
}

/// Copies, and sizes.
impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> ShardedDictionary<K, V, P> {
    /// Copies the live elements of a dictionary in host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`], [`Error::OutOfMemory`].
    pub fn from_host(devices: &Devices, dictionary: &cpu::Dictionary<K, V, P>) -> Result<Self, Error> {
        let all = dictionary.range_bulk(&[K::MIN..=K::MAX])?;
        let (mut policy, devices) = (dictionary.policy, devices.clone());
        policy.note_cleanup(0);
        ShardedBuilder { policy, devices, elements: PhantomData }.build_from(&all.keys, &all.values)
    }

    /// Copies the live elements to one dictionary in host memory, with the bytes that a dictionary on one device has
    /// after [`cleanup`](Dictionary::cleanup). Waits for all work on the devices.
    ///
    /// # Errors
    /// [`Error::Gpu`], [`Error::OutOfMemory`].
    pub fn to_host(&self) -> Result<cpu::Dictionary<K, V, P>, Error> {
        let parts: Vec<Elements<K, V>> = self.shards.each(|_, part| {
            let run = part.live_run()?;
            part.waiting(|stream| run.to_host(stream))
        })?;
        let mut all = Elements::zeroed(parts.iter().map(Elements::len).sum(), false)?;
        let mut first = 0;
        for part in parts {
            let places = first..first + part.len();
            first = places.end;
            all.keys.as_mut_slice()[places.clone()].copy_from_slice(part.keys.as_slice());
            all.values[places].copy_from_slice(&part.values);
        }
        Ok(cpu::Dictionary::from_live(self.policy, all))
    }

    /// Returns the devices, one per part.
    pub fn devices(&self) -> &Devices {
        self.shards.devices()
    }

    /// Returns the least key of each device's range but the first.
    pub fn bounds(&self) -> &[K] {
        &self.shards.router
    }

    /// Returns the number of stored elements of each device: live ones, tombstones and stale ones.
    pub fn resident_lens(&self) -> Vec<u64> {
        self.shards.parts().iter().map(Dictionary::resident_len).collect()
    }

    /// Returns the number of stored elements, on all devices together.
    pub fn resident_len(&self) -> u64 {
        self.resident_lens().iter().sum()
    }

    /// Returns the bytes of device memory of elements and search data, on all devices together.
    pub fn memory_bytes(&self) -> u64 {
        self.shards.parts().iter().map(Dictionary::memory_bytes).sum()
    }

    /// Counts the keys that have a value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.shards.each(|_, part| part.len())?.iter().sum())
    }

    /// Whether no key has a value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.shards.each(|_, part| part.is_empty())?.iter().all(|&is_empty| is_empty))
    }

    /// Sets the number of keys in device memory that a lookup exchanges at a time. Default and most: 64 Mi, and 128 Mi
    /// divided by the number of devices, less if one has under 64 GiB. Rounded up to a multiple of 64.
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.shards.set_chunk_keys(keys);
    }
}

/// Lookups.
impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> ShardedDictionary<K, V, P> {
    /// Returns the values of keys, in the order of the keys.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        let mut values = in_huge_pages(vec![V::NONE; keys.len()]);
        let found = self.get_bulk_into(keys, &mut values)?;
        Ok(found.options(&values))
    }

    /// Writes values as [`Dictionary::get_bulk_into`] does.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn get_bulk_into(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap, Error> {
        one_per_key(keys.len(), "places for values", values.len())?;
        self.look_up_bulk(keys, V::stored_mut(values))
    }

    /// Whether each key has a value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        Ok(self.look_up_bulk(keys, &mut [])?.iter().collect())
    }

    /// Looks up keys on any one of the devices, as [`Dictionary::get_device`] does: `values` has a place per key, and
    /// `found` a bit. For values `()`, or to ask only whether keys have values, pass an empty slice.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; memory of a device that has no part, or not of the keys' device.
    pub fn get_device(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSliceMut<'_, V::Stored>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        if !values.is_empty() {
            LengthMismatch::unless_room("places for values", keys.len(), values.len())?;
        }
        match self.shards.parts() {
            [only] if values.is_empty() => only.contains_bitmap_device(keys, found),
            [only] => only.get_device(keys, values, found),
            _ => keys.device().waiting(|stream| self.look_up(stream, keys, values, found)),
        }
    }

    /// Looks up batches that lie on all devices, one batch per device in their order, as
    /// [`get_device`](Self::get_device) does; answers are on the device of their keys.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is a batch per device, with places for its answers; [`Error::Gpu`].
    pub fn get_each_device(
        &self,
        batches: &[DeviceSlice<'_, K::Stored>],
        answers: Vec<(DeviceSliceMut<'_, V::Stored>, DeviceSliceMut<'_, u64>)>,
    ) -> Result<(), Error> {
        self.shards.ask_each(batches, answers, |keys, (values, found)| self.get_device(keys, values, found))
    }

    /// Looks up keys of the host: each device brings an equal share.
    fn look_up_bulk(&self, keys: &[K], values: &mut [V::Stored]) -> Result<Bitmap, Error> {
        if let [only] = self.shards.parts() {
            let mut words = vec![0; keys.len().div_ceil(64)];
            only.look_up(keys, values, &mut words)?;
            return Ok(Bitmap::from_words(words, keys.len()));
        }
        let mut found = vec![0; keys.len().div_ceil(64)];
        let shares = self.shards.answer_shares(keys, values, &mut found);
        let answered = self.devices().each(|place, device| {
            let mut share = shares[place].lock().unwrap_or_else(PoisonError::into_inner);
            let (keys, values, words) = &mut *share;
            let mut values = values.chunks_mut(HOST_CHUNK);
            for (keys, words) in keys.chunks(HOST_CHUNK).zip(words.chunks_mut(HOST_CHUNK / 64)) {
                let (values, mut brought) = (values.next().unwrap_or_default(), Batch::default());
                device.waiting(|stream| {
                    let (keys, _) = brought.bring::<K, ()>(stream, keys, units(0))?;
                    let mut out = stream.alloc_uninit::<V::Stored>(values.len())?;
                    let mut found = stream.alloc_uninit::<u64>(words.len())?;
                    self.look_up(stream, keys, out.as_mut_slice(), found.as_mut_slice())?;
                    stream.download(&found, words)?;
                    Ok::<_, Error>(stream.download(&out, values)?)
                })?;
            }
            Ok::<_, Error>(())
        });
        answered.into_iter().collect::<Result<(), _>>()?;
        drop(shares);
        Ok(Bitmap::from_words(found, keys.len()))
    }

    /// Queues a lookup on the stream of a call that waits for it. All memory is allocated, and borrowed, until then.
    fn look_up(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        mut values: DeviceSliceMut<'_, V::Stored>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let there: [Device; 3] = [keys.device(), values.device(), found.device()].map(Device::clone);
        let found = Answers::bits(found, keys.len())?;
        let to = match values.len() {
            0 => Replies::found(found),
            _ => Replies::values(values.global_mut(), Some(found)),
        };
        let (n, bounds) = (keys.len(), stream.from_slice(&K::stored(&self.shards.router))?);
        // SAFETY: there are a place per value and a bit; the callers borrow keys and answers, and this the dictionary,
        // until `stream` has been waited for; the bounds are freed in its order. Keys are grouped, or sorted with their
        // numbers, and `ask` writes an answer per key, all on the stream that they get; what `ask` prepares is waited
        // for.
        unsafe {
            if size_of::<K::Stored>() == size_of::<u64>() {
                let (keys, bounds) = (keys.cast::<u64>()?, bounds.as_slice().cast::<u64>()?);
                let route = |_, stream: &Stream, range: Range<usize>| {
                    Ok::<_, Error>(Routed::by_value(stream, keys.slice(range), bounds)?)
                };
                self.shards.reply_by(stream, n, &there.each_ref(), to, route, |part, stream, keys, found, values| {
                    ask(part, stream, keys.cast()?, false, found, values)
                })
            } else {
                let route =
                    |_, stream: &Stream, range: Range<usize>| grouped(stream, keys.slice(range), bounds.as_slice());
                self.shards.reply_by(stream, n, &there.each_ref(), to, route, |part, stream, keys, found, values| {
                    ask(part, stream, keys, true, found, values)
                })
            }
        }
    }
}

/// Queues the sort of keys with their numbers, and the search for the bounds.
fn grouped<K: StoredKey>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    bounds: DeviceSlice<'_, K>,
) -> Result<Routed<K>, Error> {
    let n = keys.len();
    let (mut words, mut numbers) = (stream.alloc_uninit(n)?, stream.alloc_uninit(n)?);
    let mut places = stream.alloc_uninit::<u32>(n)?;
    // SAFETY: scratch is new, has a place per key and is freed in stream order; the callers keep the keys.
    unsafe {
        lsm_places { out: places.global_mut(), n }.launch(stream, LaunchConfig::covering(n, lookup::BLOCK))?;
        sort_pairs_async(stream, keys, places.as_slice(), &mut words, &mut numbers, By::ascending())?;
    }
    let starts = starts(stream, words.as_slice(), bounds)?;
    // SAFETY: the sort permutes the numbers, and bounds ascend; all is queued on this stream and freed in its order.
    Ok(unsafe { Routed::sorted(stream, words, numbers.as_slice(), starts)? })
}

/// Queues the search for the first place of each part but the first in sorted keys.
fn starts<K: StoredKey>(
    stream: &Stream,
    sorted: DeviceSlice<'_, K>,
    bounds: DeviceSlice<'_, K>,
) -> Result<DeviceVec<u64>, Error> {
    let mut starts = stream.alloc_uninit(bounds.len())?;
    // SAFETY: there is a place per bound; the callers keep keys and bounds until the stream has passed.
    unsafe { lower_bound_async(stream, sorted, bounds, KeyMask::all(), &mut starts)? };
    Ok(starts)
}

/// Queues the lookup of keys in a part: a bit per key, and a value if `values` is not empty.
fn ask<K: DeviceKey, V: DeviceValue, P>(
    part: &Dictionary<K, V, P>,
    stream: &Stream,
    keys: DeviceSlice<'_, K::Stored>,
    ascend: bool,
    mut found: DeviceSliceMut<'_, u64>,
    values: DeviceSliceMut<'_, u64>,
) -> Result<(), Error> {
    let n = keys.len();
    let method = part.method_for(n, || Ok(ascend))?;
    // SAFETY: there are a bit and a place per key, which the exchange keeps until the stream has passed.
    unsafe {
        if values.is_empty() {
            let nowhere = found.global_mut().cast();
            return part.queue_lookup(stream, method, keys, nowhere, 0, found);
        }
        let mut values = values.cast::<u8>()?;
        let values = values.slice_mut(..n * size_of::<V::Stored>()).cast::<V::Stored>()?;
        let mut answers = AnswerBuffer::<V>::new(stream, values)?;
        part.queue_lookup(stream, method, keys, answers.global_mut(), V::WORDS, found)?;
        Ok(answers.finish(stream)?)
    }
}

/// Ranges of keys, and neighbours: asked of their owners by the host.
impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> ShardedDictionary<K, V, P> {
    /// Counts the keys of each range that have a value; none if its end is below its start.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error> {
        let counts = self.shards.each(|place, part| {
            let (numbers, own) = self.owned_parts(place, ranges);
            Ok::<_, Error>((numbers, part.count_range_bulk(&own)?))
        })?;
        let mut all = vec![0; ranges.len()];
        for (numbers, counts) in counts {
            numbers.iter().zip(counts).for_each(|(&number, count)| all[number] += count);
        }
        Ok(all)
    }

    /// Returns the keys of each range that have a value, with their values, in one piece of host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`]; [`Error::OutOfMemory`] if the host has not enough memory.
    pub fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        let found = self.shards.each(|place, part| {
            let (numbers, own) = self.owned_parts(place, ranges);
            Ok::<_, Error>((numbers, part.range_bulk(&own)?))
        })?;
        let mut offsets = vec![0; ranges.len() + 1];
        for (numbers, found) in &found {
            for (i, number) in numbers.iter().enumerate() {
                offsets[number + 1] += found.get(i).0.len() as u64;
            }
        }
        (1..offsets.len()).for_each(|i| offsets[i] += offsets[i - 1]);
        let total = offsets[ranges.len()];
        let (mut keys, mut values) = (zeroed_vec::<K>(total)?, V::zeroed_vec(total as usize)?);
        let mut next: Vec<usize> = offsets.iter().map(|&offset| offset as usize).collect();
        for (numbers, found) in &found {
            for (i, &number) in numbers.iter().enumerate() {
                let (some, theirs) = found.get(i);
                let places = next[number]..next[number] + some.len();
                next[number] = places.end;
                keys[places.clone()].copy_from_slice(some);
                values[places].copy_from_slice(theirs);
            }
        }
        Ok(Ranges { offsets, keys, values })
    }

    /// Returns the smallest key above each of `keys` that has a value, with its value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn successor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> {
        self.neighbours(keys, Dictionary::successor_bulk, Dictionary::first_key_value, |firsts, own| {
            firsts[own + 1..].iter().find_map(|first| *first)
        })
    }

    /// Returns the largest key below each of `keys` that has a value, with its value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn predecessor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> {
        self.neighbours(keys, Dictionary::predecessor_bulk, Dictionary::last_key_value, |lasts, own| {
            lasts[..own].iter().rev().find_map(|last| *last)
        })
    }

    /// Returns the smallest key that has a value, with its value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn first_key_value(&self) -> Result<Option<(K, V)>, Error> {
        Ok(self.shards.each(|_, part| part.first_key_value())?.into_iter().flatten().next())
    }

    /// Returns the largest key that has a value, with its value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn last_key_value(&self) -> Result<Option<(K, V)>, Error> {
        Ok(self.shards.each(|_, part| part.last_key_value())?.into_iter().flatten().next_back())
    }

    /// Asks the owner of each key for its neighbour; where there is none, `beyond` chooses one from the end of each
    /// part.
    fn neighbours(
        &self,
        keys: &[K],
        ask: impl Fn(&Dictionary<K, V, P>, &[K]) -> Result<Vec<Option<(K, V)>>, Error> + Sync,
        end: impl Fn(&Dictionary<K, V, P>) -> Result<Option<(K, V)>, Error> + Sync,
        beyond: impl Fn(&[Option<(K, V)>], usize) -> Option<(K, V)>,
    ) -> Result<Vec<Option<(K, V)>>, Error> {
        let bounds = self.bounds();
        let mut numbers = vec![Vec::new(); bounds.len() + 1];
        for (number, key) in keys.iter().enumerate() {
            numbers[bounds.partition_point(|bound| bound <= key)].push(number);
        }
        let found = self.shards.each(|place, part| {
            let own: Vec<K> = numbers[place].iter().map(|&number| keys[number]).collect();
            Ok::<_, Error>((ask(part, &own)?, end(part)?))
        })?;
        let (found, ends): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let mut all = vec![None; keys.len()];
        for (place, found) in found.into_iter().enumerate() {
            for (&number, found) in numbers[place].iter().zip(found) {
                all[number] = found.or_else(|| beyond(&ends, place));
            }
        }
        Ok(all)
    }

    /// Returns the ranges that have keys of a part, by their numbers, cut to these keys.
    fn owned_parts<R: RangeBounds<K>>(&self, place: usize, ranges: &[R]) -> (Vec<usize>, Vec<RangeInclusive<K>>) {
        let bounds = self.bounds();
        let least = if place == 0 { K::MIN } else { bounds[place - 1] };
        let Some(largest) = bounds.get(place).map_or(Some(K::MAX), |bound| bound.below()) else {
            return Default::default();
        };
        let cut = ranges.iter().enumerate().filter_map(|(number, range)| {
            let (low, high) = ends(range)?;
            let (low, high) = (low.max(least), high.min(largest));
            (low <= high).then_some((number, low..=high))
        });
        cut.unzip()
    }
}

impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> fmt::Debug for ShardedDictionary<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedDictionary")
            .field("policy", &self.policy)
            .field("devices", self.devices())
            .field("resident_lens", &self.resident_lens())
            .finish()
    }
}

#[cfg(test)]
mod tests;

//! Sets and maps with shards on several devices.
//!
//! Each device has a range of the shards, and so a range of the hashes. Kernels address the shards of the whole, so
//! the pilots, buckets and values of all parts together are its words. Owners compare keys, so these travel. Batches
//! are exchanged by [`Sharded`].

use std::fmt;
use std::ops::Range;

use warpset_base::filter::{Filter, Take};
use warpset_base::key::Key;
use warpset_base::words::AlignedWords;
use warpset_gpu::batch::{Answers, Hashing};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Devices, Stream};
use warpset_primitives::DeviceFilter;
use warpset_primitives::sharded::{self, By, Replies, Route, Sharded};
use warpset_simt::GlobalMut;

use super::filter::AnswerAny;
use super::lookup::Wanted;
use super::{DeviceMapValue, DeviceStaticKey, StaticMap};
use crate::{Error, Layout, StaticKey, Value};

/// [`StaticMap`] divided among several devices, for maps larger than one device's memory and for the bandwidth of all
/// devices.
///
/// Keys come from the host or from any of the devices. Methods that end in `_each_device` take a batch on every
/// device.
///
/// ```
/// use warpset_gpu::{Device, Devices};
/// use warpset_static::StaticMap;
/// use warpset_static::gpu::ShardedStaticMap;
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let (keys, values): (Vec<u64>, Vec<u32>) = (0..20_000).map(|i| (i * i, i as u32)).unzip();
/// let map = StaticMap::<u64, u32>::builder().build_from(&keys, &values)?;
/// let divided = ShardedStaticMap::from_host(&devices, &map)?;
/// assert_eq!(divided.get_bulk(&[49, 50])?, [Some(7), None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedStaticMap<K: StaticKey, V: Value> {
    layout: Layout<K, V>,
    shards: Sharded<StaticMap<K, V>>,
}

/// [`StaticSet`](super::StaticSet) divided among several devices.
pub type ShardedStaticSet<K> = ShardedStaticMap<K, ()>;

/// Divides the shards of a layout, which take `more` bytes each beside their words, and makes each part of its shards
/// on its device.
fn divided<K: StaticKey, V: Value, T: Send>(
    devices: &Devices,
    layout: &Layout<K, V>,
    more: u64,
    make: impl Fn(&Device, Range<u64>) -> Result<T, Error> + Sync,
) -> Result<Sharded<T>, Error> {
    let count = layout.shape().shards();
    let devices = sharded::owners(devices, count);
    let ranges = sharded::divide(&devices, count, 8 * layout.words() / count + more)?;
    let bounds: Vec<u64> = ranges[1..].iter().map(|range| range.start << (64 - layout.shape().shard_bits)).collect();
    let route = Route::new(By::StaticHash, layout.spread());
    Sharded::new(&devices, Hashing::word(), route, &bounds, |place, device| make(device, ranges[place].clone()))
}

/// Returns the words of some shards, of those of a set or map in host memory, on a device.
fn words_on<K: StaticKey, V: Value>(
    device: &Device,
    host: &crate::StaticMap<K, V>,
    shards: &Range<u64>,
) -> Result<DeviceVec<u64>, Error> {
    let (layout, count) = (host.layout(), shards.end - shards.start);
    let (first, all, groups) = (shards.start as usize, layout.shape().shards(), layout.shape().groups as usize);
    let [pilots, own_keys, own_values] = layout.places_of(count);
    let mut own_pilots = vec![0u64; pilots.len()];
    let bytes = &bytemuck::cast_slice(host.words())[first * groups..][..count as usize * groups];
    bytemuck::cast_slice_mut::<_, u8>(&mut own_pilots)[..bytes.len()].copy_from_slice(bytes);
    let (stream, mut words) = (device.new_stream()?, device.alloc_uninit(own_values.end)?);
    stream.upload(words.slice_mut(pilots), &own_pilots)?;
    let [_, keys, values] = layout.places_of(all);
    for (of_all, own) in [(keys, own_keys), (values, own_values)] {
        let from = of_all.start + of_all.len() / all as usize * first;
        stream.upload(words.slice_mut(own.clone()), &host.words()[from..][..own.len()])?;
    }
    Ok(words)
}

impl<K: StaticKey, V: Value> ShardedStaticMap<K, V> {
    /// Divides a set or map in host memory: each device gets an equal share of the shards, or a smaller one if its
    /// memory is short.
    ///
    /// # Errors
    /// [`Error::Gpu`], for example if device memory is too small.
    pub fn from_host(devices: &Devices, host: &crate::StaticMap<K, V>) -> Result<Self, Error> {
        let layout = *host.layout();
        let shards = divided(devices, &layout, 0, |device, shards| {
            let words = words_on(device, host, &shards)?;
            Ok(StaticMap { shards, ..StaticMap::from_parts(device, layout, words) })
        })?;
        Ok(Self { layout, shards })
    }

    /// Copies the set or map to host memory. Waits for all work on the devices.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Gpu`].
    pub fn to_host(&self) -> Result<crate::StaticMap<K, V>, Error> {
        let mut words = AlignedWords::zeroed(self.layout.words())?.in_huge_pages();
        let [_, keys, values] = self.layout.places_of(self.layout.shape().shards());
        let (pilots, rest) = words.as_mut_slice().split_at_mut(keys.start);
        let pilots = &mut bytemuck::cast_slice_mut(pilots)[..self.layout.shape().all_groups() as usize];
        self.shards.download(pilots, |part| part.sections().0)?;
        let (keys, values) = rest[..values.end - keys.start].split_at_mut(keys.len());
        self.shards.download(keys, |part| part.sections().1)?;
        self.shards.download(values, |part| part.sections().2)?;
        crate::StaticMap::from_parts(self.layout, words)
    }

    /// Returns the parameters of the whole.
    pub fn layout(&self) -> &Layout<K, V> {
        &self.layout
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.layout.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns the bytes of device memory of all parts.
    pub fn memory_bytes(&self) -> u64 {
        self.shards.parts().iter().map(|part| 8 * part.words.len() as u64).sum()
    }

    /// Tests batches that lie on all devices, one batch per device in their order, as
    /// [`DeviceFilter::contains_device`] does: `answers` are on the device of their keys.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is a batch per device, with answers; the errors of a lookup.
    pub fn contains_each_device<Q: DeviceStaticKey>(
        &self,
        batches: &[DeviceSlice<'_, Q>],
        answers: Vec<DeviceSliceMut<'_, u8>>,
    ) -> Result<(), Error> {
        self.shards.ask_each(batches, answers, |keys, answers| self.contains_device(keys, answers))
    }

    /// Returns the lookup of words in a part, with this output.
    fn look_up(
        wanted: fn(GlobalMut<u64>) -> Wanted,
    ) -> impl Fn(&StaticMap<K, V>, &Stream, DeviceSlice<'_, u64>, Replies) -> Result<(), Error> + Sync {
        move |part, stream, words, to| {
            let Some(found) = to.found else { return Ok(()) };
            // SAFETY: the callers' contract: there are places per word, and memory outlives the stream's work.
            unsafe { part.look_up_async(stream, words, &[], found, wanted(to.values)) }
        }
    }
}

warpset_primitives::divided_structure! { [K: StaticKey, V: Value] ShardedStaticMap<K, V> }
warpset_primitives::divided_values! {
    [K: DeviceStaticKey, V: Value] ShardedStaticMap<K, V>, Error, "number", u64, Self::look_up(Wanted::Numbers),
    [] DeviceSlice<'_, K>, [] K,
    number_device number_async number_each_device number_bulk number_bulk_into
}
warpset_primitives::divided_values! {
    [K: DeviceStaticKey, V: DeviceMapValue] ShardedStaticMap<K, V>, Error, "value", V,
    Self::look_up(|out| Wanted::Values(V::WANTED, out)),
    [] DeviceSlice<'_, K>, [] K,
    get_device get_async get_each_device get_bulk get_bulk_into
}

/// Accepts keys of any type, as [`StaticMap`] does.
impl<K: StaticKey, V: Value> Filter for ShardedStaticMap<K, V> {
    type Error = Error;

    fn answer_bulk<Q: Key>(&self, keys: &[Q], take: &mut Take<'_>) -> Result<(), Error> {
        self.answer_any(keys, take)
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl<K: StaticKey, V: Value> AnswerAny<K> for ShardedStaticMap<K, V> {
    fn answer_integers<Q: Key>(&self, keys: &[Q], take: &mut Take<'_>) -> Result<(), Error> {
        if let [only] = self.shards.parts() {
            return only.answer_integers(keys, take);
        }
        let look_up = Self::look_up(|_| Wanted::Nothing);
        let mut found = vec![0; keys.len().div_ceil(64)];
        // SAFETY: the lookup queues all work on its stream, and writes a bit per key.
        unsafe { self.shards.reply_bulk::<_, u8, _>(keys, &mut [], &mut found, look_up)? };
        if !found.is_empty() {
            take(0, &found);
        }
        Ok(())
    }
}

/// Accepts keys of the types of sets.
impl<K: StaticKey, V: Value, Q: DeviceStaticKey> DeviceFilter<DeviceSlice<'_, Q>> for ShardedStaticMap<K, V> {
    unsafe fn answer_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, Q>,
        others: &[&Device],
        answers: Answers,
    ) -> Result<(), Error> {
        if let [only] = self.shards.parts() {
            // SAFETY: this function's contract.
            return unsafe { only.answer_async(stream, keys, others, answers) };
        }
        let look_up = Self::look_up(|_| Wanted::Nothing);
        // SAFETY: this function's contract, and the lookup queues all work on its stream.
        unsafe { self.shards.reply_async(stream, keys, others, Replies::found(answers), look_up) }
    }
}

impl<K: StaticKey, V: Value> fmt::Debug for ShardedStaticMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedStaticMap").field("layout", &self.layout).field("devices", self.devices()).finish()
    }
}

mod build;

pub use build::ShardedBuilder;

#[cfg(test)]
mod tests {
    use warpset_base::key::Hashed;
    use warpset_core::hash::mix;
    use warpset_gpu::GpuError;
    use warpset_gpu::testing::{deferred, fail_each, several_cuda, unequal, unequal_lists};

    use super::*;
    use crate::{Bitmap, StaticSet};

    /// Compares bytes, numbers and values with those of the host's map, for keys everywhere.
    fn behaves_as_on_the_host<K: DeviceStaticKey, V: DeviceMapValue + PartialEq + std::fmt::Debug>(
        devices: &Devices,
        keys: &[K],
        value: fn(u64) -> V,
    ) {
        let values: Vec<V> = (0..keys.len() as u64 - 500).map(value).collect();
        let host = crate::StaticMap::<K, V>::builder().build_from(&keys[500..], &values).unwrap();
        let mut map = ShardedStaticMap::from_host(devices, &host).unwrap();
        assert_eq!(map.devices().all().len() as u64, (devices.all().len() as u64).min(host.layout().shape().shards()));
        assert!(map.to_host().unwrap() == host);
        let asked = &keys[..1_000];
        let one = StaticMap::from_host(devices.first(), &host).unwrap();
        let (expected, numbers) = (one.get_bulk(asked).unwrap(), one.number_bulk(asked).unwrap());
        assert_eq!(expected.iter().filter(|value| value.is_some()).count(), 500);
        for chunk in [1 << 20, 192] {
            map.set_chunk_keys(chunk);
            assert_eq!(map.get_bulk(asked).unwrap(), expected);
            assert_eq!(map.number_bulk(asked).unwrap(), numbers);
            assert!(map.contains_bulk(asked).unwrap().into_iter().eq(expected.iter().map(Option::is_some)));
            let (mut there, mut answers, mut of_numbers, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for device in map.devices().all() {
                there.push(device.from_slice(asked).unwrap());
                let found = || device.alloc_zeroed::<u64>(asked.len().div_ceil(64)).unwrap();
                answers.push((device.alloc_zeroed::<V>(asked.len()).unwrap(), found()));
                of_numbers.push((device.alloc_zeroed::<u64>(asked.len()).unwrap(), found()));
                bytes.push(device.alloc_zeroed::<u8>(asked.len()).unwrap());
            }
            let batches: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
            map.contains_each_device(&batches, bytes.iter_mut().map(|bytes| bytes.as_mut_slice()).collect()).unwrap();
            for bytes in bytes {
                let yes = expected.iter().map(|value| u8::from(value.is_some()));
                assert!(bytes.to_vec().unwrap().into_iter().eq(yes));
            }
            let to = of_numbers.iter_mut().map(|(numbers, found)| (numbers.as_mut_slice(), found.as_mut_slice()));
            map.number_each_device(&batches, to.collect()).unwrap();
            for (of_numbers, found) in of_numbers {
                let found = Bitmap::from_words(found.to_vec().unwrap(), asked.len());
                let of_numbers = found.iter().zip(of_numbers.to_vec().unwrap());
                assert!(of_numbers.map(|(found, number)| found.then_some(number)).eq(numbers.iter().copied()));
            }
            let to = answers.iter_mut().map(|(values, found)| (values.as_mut_slice(), found.as_mut_slice()));
            map.get_each_device(&batches, to.collect()).unwrap();
            for (values, found) in answers {
                let found = Bitmap::from_words(found.to_vec().unwrap(), asked.len());
                let values = found.iter().zip(values.to_vec().unwrap()).map(|(found, value)| found.then_some(value));
                assert!(values.eq(expected.iter().copied()));
            }
        }
    }

    #[test]
    fn the_map_of_the_host_on_any_number_of_devices() {
        let keys: Vec<u64> = (0..100_000).map(|i| mix(i, 1)).collect();
        let narrow: Vec<u32> = (0..40_000).map(|i: u32| i.wrapping_mul(0x9e37_79b1)).collect();
        for devices in &unequal_lists() {
            behaves_as_on_the_host(devices, &keys, |i| i as u32);
        }
        let devices = &unequal(3);
        behaves_as_on_the_host(devices, &keys[..40_000], |i| i * i);
        behaves_as_on_the_host(devices, &keys[..2_000], |i| i as u32);
        behaves_as_on_the_host(devices, &narrow, |i| i as u32);
    }

    #[test]
    fn other_keys_and_failures() {
        let devices = Devices::new((0..2).map(deferred)).unwrap();
        let keys: Vec<u64> = (0..20_000).map(|i| i * 3).collect();
        let host = StaticSet::<u64>::builder().build_from(&keys).unwrap();
        let mut set = ShardedStaticSet::from_host(&devices, &host).unwrap();
        assert_eq!(set.contains_bulk(&[3i64, -3, 4]).unwrap(), [true, false, false]);
        assert_eq!(set.contains_bulk(&["3", "4"]).unwrap(), [false, false]);
        assert_eq!(set.contains_bulk(&[Hashed(3), Hashed(4)]).unwrap(), [false, false]);
        assert_eq!(set.contains_bulk(&[3u8, 4]).unwrap(), [true, false]);
        let there = devices.all()[1].from_slice(&keys).unwrap();
        assert_eq!(set.count_contained_device(there.as_slice()).unwrap(), keys.len());
        let failed = fail_each(
            &mut set,
            |set| set.number_bulk(&keys[..200]),
            |set, _| assert_eq!(set.count_contained_bulk(&keys[..200]).unwrap(), 200),
        );
        assert!(failed > 8);
        let elsewhere = deferred(9).from_slice(&keys[..10]).unwrap();
        let refused = set.count_contained_device(elsewhere.as_slice());
        assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");
        let empty = StaticSet::<u64>::builder().build_from(&[]).unwrap();
        let empty = ShardedStaticSet::from_host(&devices, &empty).unwrap();
        assert_eq!(empty.contains_bulk(&[1u64]).unwrap(), [false]);
    }

    /// Compares the bytes of structures that several devices build with those of the host's: a set from the host, and a
    /// map from batches of unequal lengths on the last device with a part and the first one.
    fn builds_have_the_bytes_of_the_host<K: DeviceStaticKey, V: DeviceMapValue>(
        devices: &Devices,
        keys: &[K],
        value: fn(u64) -> V,
    ) {
        let values: Vec<V> = (0..keys.len() as u64).map(value).collect();
        let builder = crate::StaticMap::<K, V>::builder().seed(9);
        let expected = builder.build_from(keys, &values).unwrap();
        let owners = (expected.layout().shape().shards() as usize).min(devices.all().len());
        let of_device = |place: usize, range: Range<usize>| {
            let device = &devices.all()[place];
            (device.from_slice(&keys[range.clone()]).unwrap(), device.from_slice(&values[range]).unwrap())
        };
        let third = keys.len() / 3;
        let there = [of_device(owners - 1, 0..third), of_device(0, third..keys.len())];
        let (batches, of_batches): (Vec<_>, Vec<_>) =
            there.iter().map(|(keys, values)| (keys.as_slice(), values.as_slice())).unzip();
        let built = builder.sharded_on(devices).build_from_each_device(&batches, &of_batches).unwrap();
        assert!(built.to_host().unwrap() == expected, "{:?}", expected.layout());
        assert_eq!((built.devices().all().len(), built.len()), (owners, expected.len()));
        let asked = &keys[..keys.len().min(200)];
        assert_eq!(built.get_bulk(asked).unwrap(), expected.get_bulk(asked));
        let builder = StaticSet::<K>::builder();
        let built = builder.sharded_on(devices).build_from(keys).unwrap();
        assert!(built.to_host().unwrap() == builder.build_from(keys).unwrap());
    }

    #[test]
    fn builds_on_any_number_of_devices() {
        let keys: Vec<u64> = (0..33_000).map(|i| mix(i, 1)).collect();
        let narrow: Vec<u32> = (0..17_000).map(|i: u32| i.wrapping_mul(0x9e37_79b1)).collect();
        builds_have_the_bytes_of_the_host(&unequal(1), &keys[..1_000], |i| i * i);
        builds_have_the_bytes_of_the_host(&unequal(2), &narrow, |i| i * i);
        for devices in [unequal(3), unequal(8)].iter().chain(&several_cuda()) {
            builds_have_the_bytes_of_the_host(devices, &keys, |i| i as u32);
        }
        builds_have_the_bytes_of_the_host(&unequal(8), &narrow[..2_000], |i| i as u32);
        for n in [0, 1] {
            builds_have_the_bytes_of_the_host(&unequal(3), &keys[..n], |i| i as u32);
        }
    }

    /// Leaves fewer shards, and another division, once repetitions are gone.
    #[test]
    fn builds_keep_the_last_of_equal_keys() {
        let devices = unequal(3);
        let keys: Vec<u64> = (0..17_000).map(|i| mix(i % 5_000, 1)).collect();
        let shards = |n| Layout::<u64, u32>::new(n, 0).unwrap().shape().shards();
        assert!(shards(17_000) > shards(5_000));
        builds_have_the_bytes_of_the_host(&devices, &keys, |i| i as u32);
        builds_have_the_bytes_of_the_host(&devices, &vec![7u64; 1_000], |i| i as u32);
    }

    #[test]
    fn failures_and_wrong_lengths_of_builds_are_errors() {
        let devices = Devices::new((0..2).map(deferred)).unwrap();
        let (keys, values): (Vec<u64>, Vec<u32>) = (0..17_000).map(|i| (mix(i, 1), i as u32)).unzip();
        let builder = crate::StaticMap::<u64, u32>::builder();
        let on_both = builder.sharded_on(&devices);
        let set = StaticSet::<u64>::builder();
        let failed = fail_each(&mut (), |()| set.sharded_on(&devices).build_from(&keys), |(), _| {});
        assert!(failed > 8);
        let refused = on_both.build_from(&keys, &values[1..]);
        assert!(matches!(refused, Err(Error::LengthMismatch(_))), "{refused:?}");
        let stray = deferred(9);
        let (stray, of_stray) = (stray.from_slice(&keys).unwrap(), stray.from_slice(&values).unwrap());
        let refused = on_both.build_from_each_device(&[stray.as_slice()], &[of_stray.as_slice()]);
        assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");
        let refused = on_both.build_from_each_device(&[stray.as_slice()], &[]);
        assert!(matches!(refused, Err(Error::LengthMismatch(_))), "{refused:?}");
    }
}

//! Sets and maps in device memory: the bytes and answers of those in host memory, on the emulator and on CUDA.

use warpset_core::static_set;
use warpset_gpu::testing::{cuda, devices, fail_each, is_sanitized};
use warpset_gpu::{Device, GpuError};
use warpset_primitives::DeviceFilter;
use warpset_static::gpu::{self, DeviceMapValue, DeviceStaticKey};
use warpset_static::{Error, Filter, StaticMap, StaticSet};

fn mixed(i: u64) -> u64 {
    warpset_core::hash::mix(i, 77)
}

fn keys_of<K>(of: impl Fn(u64) -> K, n: usize) -> Vec<K> {
    (0..n as u64).map(of).collect()
}

/// Builds the set on the host and on all devices, and checks that bytes and answers are equal.
fn set_everywhere<K: DeviceStaticKey>(keys: &[K], others: &[K], seed: u64, devices: &[Device]) -> StaticSet<K> {
    let builder = StaticSet::<K>::builder().seed(seed);
    let host = builder.build_from(keys).unwrap();
    let asked: Vec<K> = keys.iter().step_by(keys.len() / 3000 + 1).chain(others).copied().collect();
    let wanted = host.contains_bulk(&asked).unwrap();
    for device in devices {
        let set = builder.on(device).build_from(keys).unwrap();
        assert!(set.to_host().unwrap() == host, "{} keys on {device}", keys.len());
        assert_eq!((set.len(), set.seed(), set.slots()), (host.len(), host.seed(), host.slots()));
        assert_eq!(set.memory_bytes(), 8 * host.layout().words());
        assert_eq!(set.load_factor(), host.load_factor());
        assert_eq!(set.contains_bulk(&asked).unwrap(), wanted);
        assert_eq!(set.number_bulk(&asked).unwrap(), host.number_bulk(&asked));
        let there = device.from_slice(&asked).unwrap();
        let mut bytes = device.alloc_zeroed::<u8>(asked.len()).unwrap();
        set.contains_device(there.as_slice(), bytes.as_mut_slice()).unwrap();
        assert!(bytes.to_vec().unwrap().iter().zip(&wanted).all(|(&byte, &wanted)| byte == u8::from(wanted)));
        let count = set.count_contained_device(there.as_slice()).unwrap();
        assert_eq!(count, wanted.iter().filter(|&&wanted| wanted).count());
        let copied = host.to_device(device).unwrap();
        assert_eq!(copied.contains_bitmap_bulk(&asked).unwrap(), host.contains_bitmap_bulk(&asked).unwrap());
        assert!(copied.to_host().unwrap() == host);
    }
    host
}

fn map_everywhere<K: DeviceStaticKey, V: DeviceMapValue>(keys: &[K], values: &[V], others: &[K], devices: &[Device]) {
    let builder = StaticMap::<K, V>::builder();
    let host = builder.build_from(keys, values).unwrap();
    let asked: Vec<K> = keys.iter().step_by(keys.len() / 3000 + 1).chain(others).copied().collect();
    for device in devices {
        let mut map = builder.on(device).build_from(keys, values).unwrap();
        assert!(map.to_host().unwrap() == host, "{} keys on {device}", keys.len());
        assert_eq!(map.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
        map.set_chunk_keys(100);
        assert_eq!(map.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
        assert_eq!(map.contains_bulk(&asked).unwrap(), host.contains_bulk(&asked).unwrap());
    }
}

/// Sizes around those of buckets, warps, blocks and shards.
const SIZES: &[usize] = &[0, 1, 2, 8, 9, 31, 33, 64, 255, 257, 1000, 16_384, 16_385];

#[test]
fn devices_build_the_bytes_of_the_host() {
    for &n in SIZES {
        let (keys, others) = (keys_of(mixed, n), keys_of(|i| mixed(i + n as u64), 100));
        set_everywhere(&keys, &others, 0, &devices(n as u64));
        let keys: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
        set_everywhere(&keys, &others.iter().map(|&key| key as u32).collect::<Vec<_>>(), 3, &devices(n as u64 + 1));
    }
    if let Some(device) = cuda().filter(|_| !is_sanitized()) {
        for n in [100_000, 3_000_000, 20_000_000] {
            set_everywhere(&keys_of(mixed, n), &keys_of(|i| mixed(!i), 1000), 0, std::slice::from_ref(&device));
            set_everywhere(
                &keys_of(|i| mixed(i) as u32, n),
                &keys_of(|i| i as u32, 1000),
                0,
                std::slice::from_ref(&device),
            );
        }
    }
}

#[test]
fn devices_build_the_maps_of_the_host() {
    for n in [0, 1, 20, 700, 5000] {
        // Most keys occur twice, with other values: the last one counts.
        let keys = keys_of(|i| mixed(i % (n as u64 / 2 + 1)), n);
        let others = keys_of(|i| mixed(i + n as u64), 60);
        let values = keys_of(|i| !i, n);
        let (narrow_keys, narrow_others) =
            (keys_of(|i| keys[i as usize] as u32, n), keys_of(|i| others[i as usize] as u32, 60));
        let narrow_values = keys_of(|i| i as u32, n);
        map_everywhere(&keys, &values, &others, &devices(1));
        map_everywhere(&keys, &narrow_values, &others, &devices(2));
        map_everywhere(&narrow_keys, &values, &narrow_others, &devices(3));
        map_everywhere(&narrow_keys, &narrow_values, &narrow_others, &devices(4));
    }
}

#[test]
fn patterns_and_equal_keys_build_the_same_everywhere() {
    let patterns: [fn(u64) -> u64; 5] = [|i| i, |i| i << 32, |i| i << 50 | i, |i| !i, |_| 0];
    for (at, pattern) in patterns.into_iter().enumerate() {
        let (keys, others) = (keys_of(pattern, 3000), keys_of(|i| pattern(i + 3000), 100));
        set_everywhere(&keys, &others, at as u64, &devices(at as u64));
    }
}

/// Checks keys whose hashes under the first seed are close together, so that one group has them all.
#[test]
fn keys_against_a_seed_get_the_same_one_everywhere() {
    let against = |seed: u64| (0..200).map(move |hash| static_set::key(hash, static_set::spread(seed)));
    let keys: Vec<u64> = against(5).chain(against(6)).chain((0..400).map(mixed)).collect();
    let set = set_everywhere(&keys, &[1, 2, 3], 5, &devices(9));
    assert_eq!(set.seed(), 7);
    let keys: Vec<u64> = (0..8u64).flat_map(against).collect();
    for device in devices(9) {
        let refused = StaticSet::<u64>::builder().on(&device).build_from(&keys);
        assert!(matches!(refused, Err(Error::NoSeed { keys: 1600, attempts: 8, seed: 0 })), "{refused:?}");
    }
}

#[test]
fn many_schedules_build_the_same_bytes() {
    let keys = keys_of(mixed, 700);
    let host = StaticSet::<u64>::builder().build_from(&keys).unwrap();
    for seed in 0..20 {
        let device = warpset_gpu::testing::deferred(seed);
        assert!(
            StaticSet::<u64>::builder().on(&device).build_from(&keys).unwrap().to_host().unwrap() == host,
            "{seed}"
        );
    }
}

#[test]
fn keys_of_any_type_are_asked_by_their_value() {
    for device in devices(3) {
        let set = StaticSet::<u64>::builder().on(&device).build_from(&[7, u64::MAX]).unwrap();
        assert_eq!(set.contains_bulk(&[7u8, 8]).unwrap(), [true, false]);
        assert_eq!(set.contains_bulk(&[7i32, -1]).unwrap(), [true, true]);
        assert_eq!(set.contains_bulk(&[7u128, 1 << 64 | 7]).unwrap(), [true, false]);
        assert_eq!(set.contains_bulk(&["7", "seven"]).unwrap(), [false, false]);
        assert_eq!(set.contains_bulk(&[warpset_gpu_hashed(7)]).unwrap(), [false]);
        let many: Vec<u16> = (0..200).collect();
        assert_eq!(set.contains_bitmap_bulk(&many).unwrap().iter().position(|found| found), Some(7));
        let narrow = StaticSet::<u32>::builder().on(&device).build_from(&[0, 7, u32::MAX]).unwrap();
        let words = device.from_slice(&[7u64, 1 << 32 | 7, 1 << 32, u64::MAX]).unwrap();
        let mut found = device.alloc_uninit::<u8>(4).unwrap();
        narrow.contains_device(words.as_slice(), found.as_mut_slice()).unwrap();
        assert_eq!(found.to_vec().unwrap(), [1, 0, 0, 0]);
        let stencil = device.from_slice(&[0b1110u64]).unwrap();
        let asked = device.from_slice(&[7u32, 7, 0, 8]).unwrap();
        narrow.contains_if_device(asked.as_slice(), &stencil, found.as_mut_slice()).unwrap();
        assert_eq!(found.to_vec().unwrap(), [0, 1, 1, 0]);
        let mut retained = device.alloc_uninit::<u32>(4).unwrap();
        assert_eq!(narrow.retain_contained_device(asked.as_slice(), retained.as_mut_slice()).unwrap(), 3);
        assert_eq!(retained.slice(..3).to_vec().unwrap(), [7, 7, 0]);
    }
}

fn warpset_gpu_hashed(hash: u64) -> warpset_base::key::Hashed {
    warpset_base::key::Hashed(hash)
}

#[test]
fn an_empty_set_holds_nothing() {
    for device in devices(3) {
        let map = StaticMap::<u64, u64>::builder().on(&device).build_from(&[], &[]).unwrap();
        assert_eq!((map.len(), map.slots(), map.memory_bytes()), (0, 0, 0));
        assert_eq!(map.contains_bulk(&[0u64, 1]).unwrap(), [false; 2]);
        assert_eq!(map.get_bulk(&[0, 1]).unwrap(), [None; 2]);
        assert_eq!(map.number_bulk(&[0]).unwrap(), [None]);
        assert!(map.to_host().unwrap().is_empty());
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let [device, other] = [1, 2].map(warpset_gpu::testing::deferred);
    let map = StaticMap::<u64, u32>::builder().on(&device).build_from(&[1, 2], &[3, 4]).unwrap();
    let keys = other.from_slice(&[1u64]).unwrap();
    let elsewhere = StaticSet::<u64>::builder().on(&device).build_from_device(keys.as_slice());
    assert!(matches!(elsewhere, Err(Error::Gpu(GpuError::OtherDevice { .. }))));
    let mut bytes = device.alloc_zeroed::<u8>(1).unwrap();
    let refused = map.contains_device(keys.as_slice(), bytes.as_mut_slice());
    assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))));
    let keys = device.from_slice(&[1u64, 2]).unwrap();
    assert!(matches!(map.contains_device(keys.as_slice(), bytes.as_mut_slice()), Err(Error::LengthMismatch(_))));
    let (mut values, mut found) = (device.alloc_zeroed::<u32>(1).unwrap(), device.alloc_zeroed::<u64>(1).unwrap());
    let refused = map.get_device(keys.as_slice(), values.as_mut_slice(), found.as_mut_slice());
    assert!(matches!(refused, Err(Error::LengthMismatch(_))));
    let values = device.from_slice(&[1u32]).unwrap();
    let builder = StaticMap::<u64, u32>::builder().on(&device);
    assert!(matches!(builder.build_from_device(keys.as_slice(), values.as_slice()), Err(Error::LengthMismatch(_))));
    assert!(matches!(builder.build_from(&[1], &[]), Err(Error::LengthMismatch(_))));
}

/// Fails each allocation and launch once.
#[test]
fn failures_leave_nothing_behind() {
    let (keys, values) = (keys_of(mixed, 3000), keys_of(|i| i, 3000));
    let host = StaticMap::<u64, u64>::builder().build_from(&keys, &values).unwrap();
    for device in devices(5) {
        let builder = StaticMap::<u64, u64>::builder().on(&device);
        let is_whole = |map: &gpu::StaticMap<u64, u64>| map.to_host().unwrap() == host;
        let failed = fail_each(
            &mut (),
            |()| builder.build_from(&keys, &values),
            |(), result| {
                if let Ok(map) = result {
                    assert!(is_whole(&map));
                }
            },
        );
        assert!(failed >= 10, "{failed}");
        let mut map = builder.build_from(&keys, &values).unwrap();
        fail_each(&mut map, |map| map.get_bulk(&keys[..100]), |map, _| assert!(is_whole(map)));
        fail_each(&mut map, |map| map.contains_bulk(&keys[..100]), |map, _| assert!(is_whole(map)));
        fail_each(&mut map, |map| map.to_host(), |map, _| assert!(is_whole(map)));
        fail_each(&mut (), |()| host.to_device(&device), |(), _| ());
        let set = StaticSet::<u64>::builder().on(&device);
        fail_each(&mut (), |()| set.build_from(&keys), |(), _| ());
    }
}

/// Builds from 2^31 keys: takes 60 GB of device memory.
#[test]
#[ignore = "takes 60 GB of device memory"]
fn two_billion_keys() {
    use warpset_primitives::DeviceFilter;
    let Some(device) = cuda() else { return };
    let n = 1usize << 31;
    // Different keys: a multiplication by an odd number is a bijection.
    let key = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut keys = device.alloc_uninit::<u64>(n).unwrap();
    let part = 1 << 26;
    let mut first = 0;
    while first < n {
        let some: Vec<u64> = (first..first + part).map(|i| key(i as u64)).collect();
        device.new_stream().unwrap().upload(keys.slice_mut(first..first + part), &some).unwrap();
        first += part;
    }
    let set = StaticSet::<u64>::builder().on(&device).build_from_device(keys.as_slice()).unwrap();
    assert_eq!(set.len(), n as u64);
    assert_eq!(set.count_contained_device(keys.as_slice()).unwrap(), n);
    let absent: Vec<u64> = (0..1u64 << 24).map(|i| key(i + n as u64)).collect();
    assert_eq!(set.count_contained_bulk(&absent).unwrap(), 0);
}

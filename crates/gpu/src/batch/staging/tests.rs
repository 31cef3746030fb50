use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use warpset_base::key::sealed::Sealed;
use warpset_base::key::{Bytes, Hashed, as_hashed};
use warpset_core::hash::string::StringHash;
use warpset_kernels::batch::keys::{KeyKind, mix_at};
use warpset_simt::{kernel, thread};

use super::*;
use crate::{EmulatorOptions, LaunchConfig};

kernel! {
    /// Hashes `n` keys, and adds their string hashes unless `strings` is zero.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size.
    /// - `keys`, `kind` and `spread` are `n` keys of a `KeySlice`; `string_hashes` has `n` places if `strings` is not
    ///   zero.
    /// - `to`: room for `n` words; nothing else accesses them while the kernel runs.
    pub unsafe fn hash_keys(
        keys: Global<u64>, kind: KeyKind, spread: u64, string_hashes: Global<u32>, strings: u32, n: usize, to: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and each `i` belongs to one thread.
            unsafe {
                let string = if strings != 0 { string_hashes.read(i) as u64 } else { 0 };
                to.write(i, mix_at(keys, kind, spread, i) ^ string << 17);
            }
        }
    }

    /// Sets `to[i] = first + i`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size.
    /// - `to`: room for `n` words; nothing else accesses them while the kernel runs.
    pub unsafe fn number_words(first: u64, n: usize, to: GlobalMut<u64>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and each `i` belongs to one thread.
            unsafe { to.write(i, first + i as u64) };
        }
    }
}

fn device() -> Device {
    Device::emulator(Default::default())
}

/// Returns the expected result of [`hash_keys`] for a key.
fn expected<K: Key>(hashing: &Hashing, key: &K) -> u64 {
    hashing.of(key) ^ hashing.string_hash().map_or(0, |function| (key.string_hash(function) as u64) << 17)
}

/// Queues [`hash_keys`] on a chunk.
fn hash_chunk(chunk: &Chunk<'_>) -> Result<()> {
    let KeySlice { keys, kind, spread, .. } = chunk.keys;
    let (n, strings) = (chunk.range.len(), chunk.string_hashes.is_some() as u32);
    let string_hashes = chunk.string_hashes.unwrap_or(Global::from_raw_parts(std::ptr::null(), 0));
    let config = LaunchConfig::covering(n, 64);
    // SAFETY: a chunk holds its keys, and has room for a reply to each.
    unsafe {
        hash_keys { keys, kind, spread, string_hashes, strings, n, to: chunk.replies }.launch(chunk.stream, config)
    }
}

/// Hashes keys on the device. Replies come in the order of the keys.
fn hashed<K: Key>(staging: &Staging<'_>, keys: &[K]) -> Result<Vec<u64>> {
    let mut hashes = vec![0; keys.len()];
    let mut next = 0;
    staging.run(keys, Reply::WORDS, hash_chunk, |range, words| {
        assert_eq!(range.start, std::mem::replace(&mut next, range.end), "chunks in the order of the keys");
        hashes[range].copy_from_slice(words);
    })?;
    Ok(hashes)
}

fn agrees<K: Key>(device: &Device, make: impl Fn(u64) -> K) {
    let plain = Hashing::seeded(7);
    for hashing in [plain, plain.with_string_hash(StringHash::Bkdr)] {
        for chunk_keys in [64, 128, 4096] {
            let staging = Staging::new(device, hashing).chunk_keys(chunk_keys);
            for n in [0, 1, 63, 64, 65, 127, 128, 129, 300, 4095, 4097] {
                let keys: Vec<K> = (0..n).map(&make).collect();
                let right: Vec<u64> = keys.iter().map(|key| expected(&hashing, key)).collect();
                assert!(hashed(&staging, &keys).unwrap() == right, "{n} keys in chunks of {chunk_keys}");
            }
        }
    }
}

#[test]
fn every_key_arrives_once_whatever_the_chunks() {
    let device = device();
    agrees(&device, |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    agrees(&device, |i| -(i as i32));
    agrees(&device, |i| i as u16);
    agrees(&device, Hashed);
    agrees(&device, |i| i as usize);
    agrees(&device, |i| u128::from(i) << 70 | 5);
    agrees(&device, |i| format!("key {i}"));
}

#[test]
fn bits_come_back_in_their_places() {
    let device = device();
    let keys: Vec<u64> = (0..1000).collect();
    for chunk_keys in [64, 192, 1 << 20] {
        let mut answers = vec![0; keys.len().div_ceil(64)];
        let staging = Staging::new(&device, Hashing::seeded(1)).chunk_keys(chunk_keys);
        let work = |chunk: &Chunk<'_>| {
            assert_eq!(chunk.range.start % 64, 0);
            let (n, first) = (chunk.range.len().div_ceil(64), (chunk.range.start / 64) as u64);
            // SAFETY: the chunk has room for these words.
            unsafe { number_words { first, n, to: chunk.replies }.launch(chunk.stream, LaunchConfig::covering(n, 64)) }
        };
        staging
            .run(&keys, Reply::BITS, work, |range, words| {
                answers[range.start / 64..][..words.len()].copy_from_slice(words)
            })
            .unwrap();
        assert!(answers.iter().enumerate().all(|(i, &word)| word == i as u64), "{chunk_keys}");
    }
}

#[test]
fn gathered_keys_lie_side_by_side() {
    let device = device();
    let hashing = Hashing::seeded(3).with_string_hash(StringHash::Djb);
    for n in [0u32, 1, 2, 63, 64, 65, 129, 1001] {
        let narrow: Vec<u32> = (0..n).map(|i| i.wrapping_mul(77_777)).collect();
        let words: Vec<String> = narrow.iter().map(|i| i.to_string()).collect();
        let stream = device.new_stream().unwrap();
        let staging = Staging::new(&device, hashing).chunk_keys(64);
        let mut to = device.alloc_uninit::<u64>(n as usize).unwrap();
        let mut strings = device.alloc_uninit::<u32>(n as usize).unwrap();
        let gathered = staging.gather(&narrow, &mut to).unwrap();
        // SAFETY: the keys have just been gathered; everything lives until the stream has been waited for.
        unsafe { staging.gather_string_hashes(&stream, &narrow, gathered, &mut strings).unwrap() };
        let there = to.to_vec().unwrap();
        assert!(bytemuck::cast_slice::<u64, u32>(&there)[..n as usize] == narrow);
        let right: Vec<u32> = narrow.iter().map(|key| key.string_hash(StringHash::Djb)).collect();
        assert!(strings.to_vec().unwrap() == right);
        staging.gather(&words, &mut to).unwrap();
        assert!(to.to_vec().unwrap().iter().zip(&words).all(|(hash, word)| *hash == hashing.of(word)));
    }
}

#[test]
fn the_second_structure_finds_the_memory_of_the_first() {
    let device = device();
    let keys: Vec<u64> = (0..100_000).collect();
    hashed(&Staging::new(&device, Hashing::seeded(1)).chunk_keys(8192), &keys).unwrap();
    let kept = device.pinned_pool().idle_words();
    assert!(kept > 0);
    hashed(&Staging::new(&device, Hashing::xxh64()).chunk_keys(8192), as_hashed(&keys)).unwrap();
    hashed(&Staging::new(&device, Hashing::seeded(2)).chunk_keys(4096), &keys[..5000]).unwrap();
    assert_eq!(device.pinned_pool().idle_words(), kept);
    device.trim().unwrap();
    assert_eq!(device.pinned_pool().idle_words(), 0);
}

#[test]
fn threads_share_what_a_device_keeps() {
    let device = device();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let device = &device;
            scope.spawn(move || {
                let hashing = Hashing::seeded(seed);
                let staging = Staging::new(device, hashing).chunk_keys(256);
                for n in [1000, 10, 3000] {
                    let keys: Vec<u64> = (0..n).collect();
                    assert!(
                        hashed(&staging, &keys).unwrap().iter().zip(&keys).all(|(hash, key)| *hash == hashing.of(key))
                    );
                }
            });
        }
    });
    let words = Parts::new(KeyClass::U64, false, Reply::WORDS, 256).words;
    assert!(device.pinned_pool().idle_words() <= 12 * words);
}

#[test]
fn a_key_that_panics_leaves_everything_usable() {
    static ARMED: AtomicBool = AtomicBool::new(true);
    #[derive(Clone)]
    struct Bomb(Vec<u8>);
    impl AsRef<[u8]> for Bomb {
        fn as_ref(&self) -> &[u8] {
            assert!(self.0 != [200] || !ARMED.load(Ordering::Relaxed), "a key that cannot be hashed");
            &self.0
        }
    }
    let device = device();
    let keys: Vec<Bytes<Bomb>> = (0..=255).map(|i| Bytes(Bomb(vec![i]))).collect();
    let staging = Staging::new(&device, Hashing::seeded(5)).chunk_keys(64);
    let mut taken = 0;
    let caught = catch_unwind(AssertUnwindSafe(|| {
        staging.run(&keys, Reply::WORDS, hash_chunk, |range, _| taken += range.len())
    }));
    assert!(caught.is_err() && taken < 200);
    let kept = device.pinned_pool().idle_words();
    assert!(kept > 0, "the lanes gave their memory back");
    ARMED.store(false, Ordering::Relaxed);
    let hashes = hashed(&staging, &keys).unwrap();
    assert!(hashes.iter().zip(&keys).all(|(hash, key)| *hash == Hashing::seeded(5).of(key)));
    assert_eq!(device.pinned_pool().idle_words(), kept);
}

#[test]
fn one_lane_is_enough_where_memory_is_short() {
    let keys: Vec<u64> = (0..10_000).collect();
    let hashing = Hashing::seeded(1);
    let lane = 8 * Parts::new(KeyClass::U64, false, Reply::WORDS, 4096).words;
    for (bytes, works) in [(4 * lane, true), (3 * lane - lane / 2, true), (lane + lane / 2, true), (lane / 2, false)] {
        let device = Device::emulator_with(EmulatorOptions::default().memory_bytes(bytes));
        let staging = Staging::new(&device, hashing).chunk_keys(4096);
        let result = hashed(&staging, &keys).and_then(|_| hashed(&staging, &keys));
        match result {
            Ok(hashes) => assert!(works && hashes.iter().zip(&keys).all(|(hash, key)| *hash == hashing.of(key))),
            Err(error) => assert!(!works && error.is_out_of_memory(), "{error}"),
        }
        assert_eq!(device.memory_info().unwrap().free, bytes, "lanes keep no device memory");
    }
}

#[test]
fn an_error_ends_the_run_and_nothing_else() {
    let device = device();
    let staging = Staging::new(&device, Hashing::seeded(1)).chunk_keys(64);
    let keys: Vec<u64> = (0..1000).collect();
    let mut chunks = 0;
    let result: Result<(), GpuError> = staging.run(
        &keys,
        Reply::WORDS,
        |chunk| {
            chunks += 1;
            if chunk.range.start >= 300 { Err(GpuError::MissingOffsets) } else { hash_chunk(chunk) }
        },
        |_, _| {},
    );
    assert!(matches!(result, Err(GpuError::MissingOffsets)) && chunks == 6);
    assert_eq!(hashed(&staging, &keys).unwrap().len(), 1000);
}

/// Checks that no deadlock occurs where the only thread of a pool waits for keys that the pool hashes.
#[test]
fn a_thread_of_a_pool_may_wait_for_keys_that_the_pool_hashes() {
    let keys: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
    let (device, hashing) = (device(), Hashing::seeded(2));
    let staging = Staging::new(&device, hashing).chunk_keys(4096);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let hashes = pool.install(|| hashed(&staging, &keys)).unwrap();
    assert!(hashes.iter().zip(&keys).all(|(hash, key)| *hash == hashing.of(key)));
}

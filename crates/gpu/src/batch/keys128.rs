//! Keys in device memory by their hashes of 128 bits, for functions that number keys.

use warpset_base::key::{Hash128, Key};
use warpset_kernels::batch::keys::{HashFunction, KeyClass, KeyKind, KeySlice};
use warpset_simt::Global;

use super::{DeviceKey, DeviceStrings, Hashing};
use crate::error::Result;
use crate::{DeviceSlice, DeviceVec, GpuError, Stream};

/// Keys in device memory for functions that number their keys: slices of [`DeviceKey`], [`DeviceStrings`], and
/// ready-made hashes of 128 bits as pairs of words, the high half first, like the host's `Hash128`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no batch of keys in device memory",
    note = "pass a `DeviceSlice` of keys or of `Hash128`, or `DeviceStrings`"
)]
pub trait DeviceKeys128: Copy + Send + Sync + sealed::DeviceKeys128 {}

impl<K: DeviceKey> DeviceKeys128 for DeviceSlice<'_, K> {}
impl DeviceKeys128 for DeviceStrings<'_> {}
impl DeviceKeys128 for DeviceSlice<'_, [u64; 2]> {}

/// Number of strings hashed at a time, for scratch memory of 512 MiB.
const HASHED_AT_A_TIME: usize = 1 << 25;

/// Keys in the form that kernels take for `hash128_at`, with the memory of their hashes.
pub struct KernelKeys128 {
    /// The keys.
    pub keys: KeySlice,
    /// Memory that `keys` points to, if the keys had to be hashed.
    _hashes: Option<DeviceVec<u64>>,
}

/// Hashes of 128 bits, to be hashed under a seed; seed 0 leaves them unchanged.
fn ready_made<T>(hashes: Global<T>, seed: u64) -> KeySlice {
    KeySlice { seed, ..KeySlice::new(hashes, KeyKind::new(KeyClass::Hashes128, HashFunction::Wide)) }
}

pub(super) mod sealed {
    use super::super::keys::sealed::OnDevice;
    use super::*;

    pub trait DeviceKeys128: OnDevice {
        /// Type of a key on the host.
        type Host: Key;
        /// Brings key `at` to the host. Waits for the device.
        fn fetch(&self, at: usize) -> Result<Self::Host>;
        /// Returns the number of keys to give to [`DeviceKeys128::kernel_keys`] at a time: a multiple of 64, or all.
        fn at_a_time(&self) -> usize;
        /// Queues what kernels need besides the keys themselves. Scratch memory is freed in the order of the stream.
        ///
        /// # Safety
        /// The keys stay allocated until `stream` has passed this work, and nothing writes them before.
        unsafe fn kernel_keys(&self, hashing: &Hashing, stream: &Stream) -> Result<KernelKeys128>;
        /// Gives `work` the keys part after part, in the form that kernels take: the number of a part's first key, a
        /// multiple of 64, the keys, and their number.
        ///
        /// # Safety
        /// That of [`DeviceKeys128::kernel_keys`].
        unsafe fn for_each_chunk<E: From<GpuError>>(
            &self,
            hashing: &Hashing,
            stream: &Stream,
            mut work: impl FnMut(usize, &KernelKeys128, usize) -> Result<(), E>,
        ) -> Result<(), E> {
            let (n, at_a_time) = (self.count(), self.at_a_time());
            for first in (0..n).step_by(at_a_time) {
                let part = self.part(first..n.min(first.saturating_add(at_a_time)));
                // SAFETY: these keys are a part of all keys, which stay allocated by this function's contract.
                let hashed = unsafe { part.kernel_keys(hashing, stream)? };
                work(first, &hashed, part.count())?;
            }
            Ok(())
        }
    }
}

impl<K: DeviceKey> sealed::DeviceKeys128 for DeviceSlice<'_, K> {
    type Host = K;

    fn fetch(&self, at: usize) -> Result<K> {
        let mut key = [K::zeroed()];
        self.slice(at..at + 1).copy_to_slice(&mut key)?;
        Ok(key[0])
    }
    fn at_a_time(&self) -> usize {
        self.len().max(1)
    }
    unsafe fn kernel_keys(&self, hashing: &Hashing, _stream: &Stream) -> Result<KernelKeys128> {
        Ok(KernelKeys128 { keys: hashing.key_slice(K::CLASS, self.global()), _hashes: None })
    }
}

impl sealed::DeviceKeys128 for DeviceSlice<'_, [u64; 2]> {
    type Host = Hash128;

    fn fetch(&self, at: usize) -> Result<Hash128> {
        let mut halves = [[0; 2]];
        self.slice(at..at + 1).copy_to_slice(&mut halves)?;
        let [[high, low]] = halves;
        Ok(Hash128 { high, low })
    }
    fn at_a_time(&self) -> usize {
        self.len().max(1)
    }
    unsafe fn kernel_keys(&self, hashing: &Hashing, stream: &Stream) -> Result<KernelKeys128> {
        let pairs = self.global();
        if pairs.as_ptr().addr().is_multiple_of(16) {
            return Ok(KernelKeys128 { keys: ready_made(pairs, hashing.bytes_seed()), _hashes: None });
        }
        // Adopted memory may begin at any word.
        let mut hashes = stream.alloc_uninit::<u64>(2 * self.len())?;
        stream.copy(hashes.as_mut_slice(), self.cast::<u64>()?)?;
        let keys = ready_made(hashes.global(), hashing.bytes_seed());
        Ok(KernelKeys128 { keys, _hashes: Some(hashes) })
    }
}

impl sealed::DeviceKeys128 for DeviceStrings<'_> {
    type Host = Vec<u8>;

    fn fetch(&self, at: usize) -> Result<Vec<u8>> {
        self.to_host(at)
    }
    fn at_a_time(&self) -> usize {
        HASHED_AT_A_TIME
    }
    unsafe fn kernel_keys(&self, hashing: &Hashing, stream: &Stream) -> Result<KernelKeys128> {
        let mut hashes = stream.alloc_uninit::<u64>(2 * self.len())?;
        // SAFETY: there is a place for each string; the scratch is freed in the order of the stream; the rest is the
        // caller's promise.
        unsafe { self.hash128(stream, hashing.bytes_seed(), hashes.global_mut())? };
        // They are hashed under the seed already.
        let keys = ready_made(Global::from(hashes.global_mut()), 0);
        Ok(KernelKeys128 { keys, _hashes: Some(hashes) })
    }
}

#[cfg(test)]
mod tests {
    use warpset_base::key::{Bytes, Hashed};
    use warpset_kernels::batch::hash128::hash128_at;
    use warpset_simt::{GlobalMut, kernel, thread};

    use super::super::{Reply, Staging, StringVec};
    use super::*;
    use crate::{Device, GpuError, LaunchConfig};

    kernel! {
        /// Mixes the halves of the hashes of `n` keys to one word per key.
        ///
        /// # Safety
        /// - Launch: 1-D, any grid and block size.
        /// - `keys`, `kind` and `seed` are `n` keys of a `KeySlice`.
        /// - `to`: room for `n` words; nothing else accesses them while the kernel runs.
        pub unsafe fn hash_keys128(keys: Global<u64>, kind: KeyKind, seed: u64, n: usize, to: GlobalMut<u64>) {
            for i in thread::grid_stride(n) {
                // SAFETY: `i < n`, and each `i` belongs to one thread.
                unsafe {
                    let hash = hash128_at(keys, kind, seed, i);
                    to.write(i, hash.high.rotate_left(1) ^ hash.low);
                }
            }
        }
    }

    fn queue(stream: &Stream, keys: KeySlice, n: usize, to: GlobalMut<u64>) -> Result<()> {
        let KeySlice { keys, kind, seed, .. } = keys;
        // SAFETY: both callers have `n` keys and `n` places.
        unsafe { hash_keys128 { keys, kind, seed, n, to }.launch(stream, LaunchConfig::covering(n, 64)) }
    }

    fn expected<K: Key>(keys: &[K], hashing: Hashing) -> Vec<u64> {
        keys.iter().map(|key| hashing.of128(key)).map(|hash| hash.high.rotate_left(1) ^ hash.low).collect()
    }

    fn from_host<K: Key>(device: &Device, keys: &[K], hashing: Hashing) {
        let mut hashes = vec![0; keys.len()];
        let staging = Staging::new(device, hashing).chunk_keys(128);
        let work = |chunk: &super::super::Chunk<'_>| -> Result<(), GpuError> {
            queue(chunk.stream, chunk.keys, chunk.range.len(), chunk.replies)
        };
        staging.run(keys, Reply::WORDS, work, |range, words| hashes[range].copy_from_slice(words)).unwrap();
        assert!(hashes == expected(keys, hashing));
    }

    fn from_device<K: Key>(keys: impl DeviceKeys128, same: &[K], hashing: Hashing) {
        let device = keys.device().clone();
        let stream = device.new_stream().unwrap();
        let mut hashes = device.alloc_uninit::<u64>(same.len()).unwrap();
        // SAFETY: keys and hashes stay until the stream has been waited for.
        let hashed = unsafe { keys.kernel_keys(&hashing, &stream).unwrap() };
        queue(&stream, hashed.keys, keys.count(), hashes.global_mut()).unwrap();
        stream.synchronize().unwrap();
        assert!(hashes.to_vec().unwrap() == expected(same, hashing));
    }

    #[test]
    fn every_kind_of_key_has_the_hashes_of_the_host() {
        let device = Device::emulator(Default::default());
        let words: Vec<u64> = (0..5_000).map(|i| warpset_core::hash::mix(i, 3)).collect();
        let strings: Vec<String> = (0..600).map(|i| "warp".repeat(i / 3) + &"x".repeat(i % 5)).collect();
        let pairs: Vec<Hash128> = words.iter().map(|&low| Hash128 { high: !low, low }).collect();
        for hashing in [Hashing::wide(0), Hashing::wide(7), Hashing::wide_short(0), Hashing::wide_short(7)] {
            from_host(&device, &words, hashing);
            from_host(&device, &words.iter().map(|&x| x as i32).collect::<Vec<_>>(), hashing);
            from_host(&device, &words.iter().map(|&x| x as u16).collect::<Vec<_>>(), hashing);
            from_host(&device, &words.iter().map(|&x| Hashed(x)).collect::<Vec<_>>(), hashing);
            from_host(&device, &words.iter().map(|&x| u128::from(x) << 32).collect::<Vec<_>>(), hashing);
            from_host(&device, &pairs, hashing);
            from_host(&device, &strings, hashing);

            from_device(device.from_slice(&words).unwrap().as_slice(), &words, hashing);
            let narrow: Vec<i32> = words.iter().map(|&x| x as i32).collect();
            from_device(device.from_slice(&narrow).unwrap().as_slice(), &narrow, hashing);
            let halves: Vec<[u64; 2]> = pairs.iter().map(|hash| [hash.high, hash.low]).collect();
            from_device(device.from_slice(&halves).unwrap().as_slice(), &pairs, hashing);
            let vec = StringVec::from_slice(&device, &strings).unwrap();
            from_device(vec.as_strings(), &strings, hashing);
            from_device(vec.as_strings().slice(64..300), &strings[64..300], hashing);
        }
        from_host::<Bytes<&[u8]>>(&device, &[], Hashing::wide(0));
    }
}

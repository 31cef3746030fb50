//! Builds of whole dictionaries: one radix sort, one level.

use warpset_gpu::{Device, DeviceSlice, Stream};
use warpset_kernels::lsm::copies::{self, lsm_copies};
use warpset_simt::LaunchConfig;

use crate::Error;
use crate::error::one_per_key;
use crate::gpu::device_run::DeviceElements;
use crate::gpu::host_transfer::Batch;
use crate::gpu::update::batch;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, StoredKey};
use crate::policy::MergePolicy;

/// Blocks per multiprocessor of the launch that looks for copies of keys; grid-stride.
const BLOCKS: u32 = 8;

impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> Dictionary<K, V, P> {
    /// Builds from host memory.
    pub(crate) fn build_from_slices(device: &Device, policy: P, keys: &[K], values: &[V]) -> Result<Self, Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let empty = Dictionary::empty(device, policy)?;
        let mut brought = Batch::default();
        empty.filled(keys.len(), |stream| brought.insertions(stream, keys, values))
    }

    /// Builds from device memory.
    pub(crate) fn build_from_device(
        device: &Device,
        policy: P,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
    ) -> Result<Self, Error> {
        let empty = Dictionary::empty(device, policy)?;
        empty.check_batch(keys, values)?;
        // SAFETY: keys and values are borrowed until the work has finished.
        empty.filled(keys.len(), |stream| unsafe { batch::insertions(stream, keys, values) })
    }

    /// Fills an empty dictionary with the `len` elements that `queue` sorts.
    fn filled(
        mut self,
        len: usize,
        queue: impl FnOnce(&Stream) -> Result<DeviceElements<K::Stored, V>, Error>,
    ) -> Result<Self, Error> {
        if len > 0 {
            let live = self.waiting(|stream| {
                let sorted = queue(stream)?;
                if has_copies(stream, &sorted)? { self.merged_live(stream, Some(&sorted)) } else { Ok(sorted) }
            })?;
            self.set_live(live)?;
        }
        Ok(self)
    }
}

/// Whether a key occurs more than once in the run, which is not empty. Waits for the stream.
fn has_copies<K: StoredKey, V: DeviceValue>(stream: &Stream, sorted: &DeviceElements<K, V>) -> Result<bool, Error> {
    let mut copies = stream.alloc_zeroed::<u64>(1)?;
    let most = (stream.device().properties().multiprocessors * BLOCKS) as usize;
    let config = LaunchConfig::new(sorted.len.div_ceil(copies::BLOCK as usize).min(most) as u32, copies::BLOCK);
    // SAFETY: the run has this number of keys, which nothing writes; the word is new.
    unsafe {
        lsm_copies { keys: sorted.keys().global(), n: sorted.len, copies: copies.global_mut() }
            .launch(stream, config)?;
    }
    let mut found = [0];
    stream.download(&copies, &mut found)?;
    Ok(found[0] > 0)
}

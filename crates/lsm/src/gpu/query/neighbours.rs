//! Neighbours in the order of the keys, on the device.

use warpset_base::filter::LengthMismatch;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};
use warpset_kernels::lsm::neighbours::{self, lsm_neighbours};
use warpset_simt::LaunchConfig;

use crate::Error;
use crate::gpu::wide_values::AnswerBuffer;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, LookupMethod};

/// Blocks per multiprocessor; grid-stride.
const BLOCKS: u32 = 8;

/// Kind of neighbour.
#[derive(Clone, Copy)]
struct Sought {
    /// The nearest key above; otherwise the nearest key below.
    upwards: bool,
    /// Whether the key itself counts.
    inclusive: bool,
}

const SUCCESSOR: Sought = Sought { upwards: true, inclusive: false };
const PREDECESSOR: Sought = Sought { upwards: false, inclusive: false };
const FIRST_FROM: Sought = Sought { upwards: true, inclusive: true };
const LAST_TO: Sought = Sought { upwards: false, inclusive: true };

/// Output of neighbour queries in device memory, such as [`Dictionary::successor_device`].
///
/// Bit `i % 64` of word `i / 64` of `found` is set if key `i` has a neighbour, which is key `i` of `keys` with value
/// `i` of `values`; otherwise both are zero. For values `()` pass an empty slice.
#[derive(Debug)]
pub struct NeighboursMut<'a, K: DeviceKey, V: DeviceValue> {
    /// One place per query.
    pub keys: DeviceSliceMut<'a, K::Stored>,
    /// One place per query.
    pub values: DeviceSliceMut<'a, V::Stored>,
    /// One bit per query, in whole words.
    pub found: DeviceSliceMut<'a, u64>,
}

/// Neighbours.
impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Returns the smallest key above each of `keys` that has a value, with its value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn successor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> {
        self.neighbours_of(keys, SUCCESSOR)
    }

    /// Returns the largest key below each of `keys` that has a value, with its value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn predecessor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> {
        self.neighbours_of(keys, PREDECESSOR)
    }

    /// Returns the smallest key that has a value, with its value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn first_key_value(&self) -> Result<Option<(K, V)>, Error> {
        Ok(self.neighbours_of(&[K::MIN], FIRST_FROM)?.pop().flatten())
    }

    /// Returns the largest key that has a value, with its value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn last_key_value(&self) -> Result<Option<(K, V)>, Error> {
        Ok(self.neighbours_of(&[K::MAX], LAST_TO)?.pop().flatten())
    }

    /// Finds neighbours as [`Dictionary::successor_bulk`] does, keys on the device. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; memory of another device is refused.
    pub fn successor_device(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        out: NeighboursMut<'_, K, V>,
    ) -> Result<(), Error> {
        self.prepare_for(keys.len())?;
        // SAFETY: all memory is borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.successor_async(stream, keys, out) })
    }

    /// Finds neighbours as [`Dictionary::predecessor_bulk`] does, keys on the device. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; memory of another device is refused.
    pub fn predecessor_device(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        out: NeighboursMut<'_, K, V>,
    ) -> Result<(), Error> {
        self.prepare_for(keys.len())?;
        // SAFETY: all memory is borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.predecessor_async(stream, keys, out) })
    }

    /// Queues the work of [`Dictionary::successor_device`].
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`], for all parts of `out`.
    ///
    /// # Errors
    /// The errors of [`Dictionary::successor_device`].
    pub unsafe fn successor_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        out: NeighboursMut<'_, K, V>,
    ) -> Result<(), Error> {
        // SAFETY: the contract of this function.
        unsafe { self.queue_neighbours(stream, keys, out, SUCCESSOR) }
    }

    /// Queues the work of [`Dictionary::predecessor_device`].
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`], for all parts of `out`.
    ///
    /// # Errors
    /// The errors of [`Dictionary::predecessor_device`].
    pub unsafe fn predecessor_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        out: NeighboursMut<'_, K, V>,
    ) -> Result<(), Error> {
        // SAFETY: the contract of this function.
        unsafe { self.queue_neighbours(stream, keys, out, PREDECESSOR) }
    }

    fn neighbours_of(&self, asked: &[K], sought: Sought) -> Result<Vec<Option<(K, V)>>, Error> {
        if asked.is_empty() || self.levels.is_empty() {
            return Ok(vec![None; asked.len()]);
        }
        self.prepare_for(asked.len())?;
        let values_len = if V::WORDS == 0 { 0 } else { asked.len() };
        let mut found = vec![0u64; asked.len().div_ceil(64)];
        let (mut keys, mut values) = (vec![K::zeroed(); asked.len()], vec![V::NONE; asked.len()]);
        let queries = K::stored(asked);
        self.waiting(|stream| {
            // SAFETY: the slice is borrowed until the work has finished.
            let queries = unsafe { stream.from_slice_async(&queries)? };
            let mut out_keys = stream.alloc_uninit::<K::Stored>(asked.len())?;
            let mut out_values = stream.alloc_uninit::<V::Stored>(values_len)?;
            let mut out_found = stream.alloc_uninit::<u64>(found.len())?;
            let out = NeighboursMut {
                keys: out_keys.as_mut_slice(),
                values: out_values.as_mut_slice(),
                found: out_found.as_mut_slice(),
            };
            // SAFETY: the memory is freed in stream order, which is waited for.
            unsafe { self.queue_neighbours(stream, queries.as_slice(), out, sought)? };
            K::download(stream, out_keys.as_slice(), &mut keys)?;
            stream.download(&out_values, V::stored_mut(&mut values))?;
            Ok(stream.download(&out_found, &mut found)?)
        })?;
        let elements = keys.into_iter().zip(values).enumerate();
        Ok(elements.map(|(i, element)| (found[i / 64] >> (i % 64) & 1 == 1).then_some(element)).collect())
    }

    /// Queues a search for neighbours.
    ///
    /// # Safety
    /// The contract of [`Dictionary::successor_async`].
    unsafe fn queue_neighbours(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        mut out: NeighboursMut<'_, K, V>,
        sought: Sought,
    ) -> Result<(), Error> {
        let n = keys.len();
        let words = n.div_ceil(64);
        LengthMismatch::unless_room("places for keys", n, out.keys.len())?;
        LengthMismatch::unless_room("places for values", if V::WORDS == 0 { 0 } else { n }, out.values.len())?;
        LengthMismatch::unless_room("words of answers", words, out.found.len())?;
        for device in [keys.device(), out.keys.device(), out.values.device(), out.found.device(), stream.device()] {
            self.device.expect_same(device, "neighbours in a dictionary")?;
        }
        if n == 0 {
            return Ok(());
        }
        stream.fill_bytes(out.found.slice_mut(..words), 0)?;
        let levels = self.levels.len() as u32;
        let queries_per_block = (32 / levels.max(1).next_power_of_two() * neighbours::WARPS) as usize;
        let most = (self.device.properties().multiprocessors * BLOCKS) as usize;
        let values = if V::WORDS == 0 { 0 } else { n };
        let mut answers = AnswerBuffer::<V>::new(stream, out.values.slice_mut(..values))?;
        let kernel = lsm_neighbours {
            table: self.table(LookupMethod::Auto).global(),
            levels,
            queries: keys.global(),
            n,
            upwards: sought.upwards.into(),
            inclusive: sought.inclusive.into(),
            out_keys: out.keys.global_mut(),
            out_values: answers.global_mut(),
            value_words: V::WORDS,
            found: out.found.global_mut(),
        };
        let config = LaunchConfig::new(n.div_ceil(queries_per_block).min(most) as u32, neighbours::BLOCK);
        // SAFETY: the table is of these levels; lengths were checked; the bits are zero; the rest is the contract of
        // this function.
        unsafe {
            kernel.launch(stream, config)?;
            Ok(answers.finish(stream)?)
        }
    }
}

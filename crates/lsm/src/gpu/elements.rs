//! Sorted runs in device memory, and the table of their addresses.

use std::sync::{Arc, OnceLock};

use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::lsm::lookup::lsm_publish;
use warpset_kernels::lsm::table::{Addresses, LEVELS, TABLE_WORDS, word};
use warpset_kernels::lsm::visibility::PER_WORD;
use warpset_primitives::Error::TooManyRuns;
use warpset_simt::LaunchConfig;

use super::derived::Derived;
use super::{DeviceKey, DeviceValue};
use crate::Error;
use crate::level::LevelIndex;
use crate::run::Elements;

/// Elements on the device, sorted as a run is. The arrays may be longer than `len`.
pub struct DeviceElements<K, V: DeviceValue> {
    pub(crate) len: usize,
    pub(crate) keys: DeviceVec<K>,
    pub(crate) values: DeviceVec<V::Stored>,
    /// Whole words. Absent if no element is a tombstone; an update with flags on the device may leave one without any.
    pub(crate) tombstones: Option<DeviceVec<u32>>,
    /// Once it has been built.
    pub(super) derived: OnceLock<Derived>,
}

impl<K: DeviceKey, V: DeviceValue> DeviceElements<K, V> {
    /// Room for `len` elements, of any content, with a bitmap if asked for.
    pub(super) fn uninit(stream: &Stream, len: usize, tombstones: bool) -> Result<Self, Error> {
        Ok(DeviceElements {
            len,
            keys: stream.alloc_uninit(len)?,
            values: stream.alloc_uninit(if V::WORDS == 0 { 0 } else { len })?,
            tombstones: if tombstones { Some(stream.alloc_uninit(len.div_ceil(32))?) } else { None },
            derived: OnceLock::new(),
        })
    }

    pub(super) fn from_host(stream: &Stream, elements: &Elements<K, V>) -> Result<Self, Error> {
        let bitmap = elements.tombstones.as_ref().map(|words| stream.from_slice(words));
        Ok(DeviceElements {
            len: elements.len(),
            keys: stream.from_slice(elements.keys.as_slice())?,
            values: stream.from_slice(V::stored(&elements.values))?,
            tombstones: bitmap.transpose()?,
            derived: OnceLock::new(),
        })
    }

    /// A copy on the host, which has a bitmap only if there is a tombstone.
    pub(super) fn to_host(&self, stream: &Stream) -> Result<Elements<K, V>, Error> {
        let mut elements = Elements::zeroed(self.len, self.tombstones.is_some())?;
        stream.download(self.keys(), elements.keys.as_mut_slice())?;
        let mut values = vec![V::Stored::default(); self.values().len()];
        stream.download(self.values(), &mut values)?;
        elements.values = V::from_stored(&values, self.len);
        if let (Some(words), Some(bitmap)) = (&mut elements.tombstones, self.tombstones()) {
            stream.download(bitmap, words)?;
        }
        elements.tombstones = elements.tombstones.filter(|words| words.iter().any(|&word| word != 0));
        Ok(elements)
    }

    pub(super) fn keys(&self) -> DeviceSlice<'_, K> {
        self.keys.slice(..self.len)
    }

    pub(super) fn values(&self) -> DeviceSlice<'_, V::Stored> {
        self.values.slice(..if V::WORDS == 0 { 0 } else { self.len })
    }

    pub(super) fn tombstones(&self) -> Option<DeviceSlice<'_, u32>> {
        self.tombstones.as_ref().map(DeviceVec::as_slice)
    }

    /// Whether all its memory is freed in the order of `stream`.
    pub(super) fn follows(&self, stream: &Stream) -> bool {
        let bitmap = self.tombstones.as_ref().is_none_or(|words| words.follows(stream));
        let derived = self.derived.get().is_none_or(|derived| derived.follows(stream));
        self.keys.follows(stream) && (V::WORDS == 0 || self.values.follows(stream)) && bitmap && derived
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let bitmap = self.tombstones.as_ref().map_or(0, DeviceVec::byte_len);
        let derived = self.derived.get().map_or(0, Derived::memory_bytes);
        (self.keys.byte_len() + self.values.byte_len() + bitmap + derived) as u64
    }
}

/// Queues the writing of the table of these levels, by a kernel, which takes them by value: nothing is waited for.
pub(super) fn publish<K: DeviceKey, V: DeviceValue>(
    stream: &Stream,
    levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
) -> Result<DeviceVec<u64>, Error> {
    let levels = addresses(levels)?;
    let mut table = stream.alloc_uninit(TABLE_WORDS)?;
    // SAFETY: the table has a place for each level, and no other code has its address yet.
    unsafe { lsm_publish { levels, table: table.global_mut() }.launch(stream, LaunchConfig::new(1, 32))? };
    Ok(table)
}

/// The same table, copied from the host: for calls that wait, which then need no kernel for it.
pub(super) fn upload_table<K: DeviceKey, V: DeviceValue>(
    stream: &Stream,
    levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
) -> Result<DeviceVec<u64>, Error> {
    let Addresses { keys, values, tombstones, lengths, filters, filter_words, indexes, first_visible } =
        addresses(levels)?;
    let mut words = [0; TABLE_WORDS];
    let arrays = [
        (word::KEYS, keys),
        (word::VALUES, values),
        (word::TOMBSTONES, tombstones),
        (word::LEN, lengths),
        (word::FILTER, filters),
        (word::FILTER_WORDS, filter_words),
        (word::INDEX, indexes),
        (word::FIRST_VISIBLE, first_visible),
    ];
    for (at, array) in arrays {
        words[at * LEVELS..(at + 1) * LEVELS].copy_from_slice(&array);
    }
    Ok(stream.from_slice(&words)?)
}

fn addresses<K: DeviceKey, V: DeviceValue>(
    levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
) -> Result<Addresses, Error> {
    if levels.len() > LEVELS {
        return Err(TooManyRuns { runs: levels.len(), max: LEVELS }.into());
    }
    let mut of = Addresses::NONE;
    let mut first_visible = 0;
    for (i, (_, elements)) in levels.iter().enumerate() {
        of.keys[i] = elements.keys.global().as_ptr().expose_provenance() as u64;
        of.values[i] = elements.values.global().as_ptr().expose_provenance() as u64;
        of.tombstones[i] =
            elements.tombstones.as_ref().map_or(0, |words| words.global().as_ptr().expose_provenance() as u64);
        of.lengths[i] = elements.len as u64;
        of.first_visible[i] = first_visible;
        first_visible += elements.len.div_ceil(PER_WORD) as u64;
        if let Some(Derived { filter, index }) = elements.derived.get() {
            of.filters[i] = filter.global().as_ptr().expose_provenance() as u64;
            of.filter_words[i] = filter.len() as u64;
            of.indexes[i] = index.global().as_ptr().expose_provenance() as u64;
        }
    }
    of.first_visible[levels.len()..].fill(first_visible);
    Ok(of)
}

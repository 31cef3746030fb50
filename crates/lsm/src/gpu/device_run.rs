//! Sorted runs in device memory, and the table of their addresses.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;
use warpset_gpu::arena::Arena;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, GpuError, Stream};
use warpset_kernels::lsm::lookup::lsm_publish;
use warpset_kernels::lsm::table::{Addresses, LEVELS, TABLE_WORDS, word};
use warpset_kernels::lsm::visibility::PER_WORD;
use warpset_primitives::Error as PrimitiveError;
use warpset_simt::LaunchConfig;

use crate::Error;
use crate::gpu::index::search_index::SearchIndex;
use crate::gpu::wide_values;
use crate::gpu::{DeviceKey, DeviceValue, StoredKey};
use crate::level::LevelIndex;
use crate::run::Elements;

/// Sorted elements on the device, as in a run. The arrays may be longer than `len`.
pub struct DeviceElements<K, V: DeviceValue> {
    pub(crate) len: usize,
    pub(crate) keys: DeviceVec<K>,
    pub(crate) values: DeviceVec<V::Stored>,
    /// Addresses of values in rows, which kernels carry in place of the values.
    addresses: Option<DeviceVec<u64>>,
    /// Bitmap in whole words. Absent if no element is a tombstone; after an update with flags on the device it may be
    /// all zero.
    pub(crate) tombstones: Option<DeviceVec<u32>>,
    /// Search index, once built.
    pub(super) search_index: OnceLock<SearchIndex>,
}

impl<K: StoredKey, V: DeviceValue> DeviceElements<K, V> {
    /// Allocates `len` elements of unspecified content, with a bitmap if `tombstones`.
    pub(super) fn uninit(stream: &Stream, len: usize, tombstones: bool) -> Result<Self, Error> {
        Ok(DeviceElements {
            len,
            keys: stream.alloc_uninit(len)?,
            values: stream.alloc_uninit(if V::WORDS == 0 { 0 } else { len })?,
            addresses: if V::IN_ROWS { Some(stream.alloc_uninit(len)?) } else { None },
            tombstones: if tombstones { Some(stream.alloc_uninit(len.div_ceil(32))?) } else { None },
            search_index: OnceLock::new(),
        })
    }

    /// Returns the bytes of an [`Arena`] that [`within`](Self::within) takes.
    pub(super) fn arena_bytes(len: usize, tombstones: bool) -> Result<usize, Error> {
        let values = Arena::bytes_of::<V::Stored>(if V::WORDS == 0 { 0 } else { len })?;
        let addresses = Arena::bytes_of::<u64>(if V::IN_ROWS { len } else { 0 })?;
        let bitmap = Arena::bytes_of::<u32>(if tombstones { len.div_ceil(32) } else { 0 })?;
        Ok(Arena::bytes_of::<K>(len)?.saturating_add(values).saturating_add(addresses).saturating_add(bitmap))
    }

    /// Allocates elements as [`uninit`](Self::uninit) does, in an arena: keys, values, their addresses and the bitmap,
    /// one after the other.
    pub(super) fn within(arena: &mut Arena, len: usize, tombstones: bool) -> Result<Self, Error> {
        Ok(DeviceElements {
            len,
            keys: arena.take(len)?,
            values: arena.take(if V::WORDS == 0 { 0 } else { len })?,
            addresses: if V::IN_ROWS { Some(arena.take(len)?) } else { None },
            tombstones: if tombstones { Some(arena.take(len.div_ceil(32))?) } else { None },
            search_index: OnceLock::new(),
        })
    }

    /// Returns elements with distinct keys and without tombstones; their values are not in rows.
    pub(super) fn of_distinct(keys: DeviceVec<K>, values: DeviceVec<V::Stored>) -> Self {
        let (addresses, search_index) = (None, OnceLock::new());
        DeviceElements { len: keys.len(), keys, values, addresses, tombstones: None, search_index }
    }

    /// Queues copies of pieces of runs, one after the other, also from other devices; tombstones are not copied.
    pub(super) fn gathered(stream: &Stream, pieces: &[Piece<'_, K, V>]) -> Result<Self, Error> {
        let mut all = Self::uninit(stream, pieces.iter().map(|(_, range)| range.len()).sum(), false)?;
        let mut first = 0;
        for (run, range) in pieces {
            let to = first..first + range.len();
            first = to.end;
            stream.copy(all.keys.slice_mut(to.clone()), run.keys.slice(range.clone()))?;
            if V::WORDS != 0 {
                stream.copy(all.values.slice_mut(to), run.values.slice(range.clone()))?;
            }
        }
        if let Some(addresses) = &mut all.addresses {
            // SAFETY: the memory is new and has a place for the address of each row.
            unsafe { wide_values::write_addresses(stream, all.values.as_slice(), addresses.as_mut_slice())? };
        }
        Ok(all)
    }

    /// Queues the merge of runs without tombstones, the newest first.
    pub(super) fn merged(stream: &Stream, mut runs: Vec<Self>) -> Result<Self, Error> {
        if runs.len() == 1 {
            return Ok(runs.remove(0));
        }
        let mut all = Self::uninit(stream, runs.iter().map(|run| run.len).sum(), false)?;
        let runs: Vec<&Self> = runs.iter().collect();
        // SAFETY: the output is new and as long as all runs, which are freed in stream order.
        unsafe { V::merge(stream, &runs, &mut all)? };
        Ok(all)
    }

    pub(super) fn from_host(
        stream: &Stream,
        elements: &Elements<impl DeviceKey<Stored = K>, V>,
    ) -> Result<Self, Error> {
        let bitmap = elements.tombstones.as_ref().map(|words| stream.from_slice(words));
        let values = stream.from_slice(V::stored(&elements.values))?;
        Ok(DeviceElements {
            len: elements.len(),
            keys: stream.from_slice(&DeviceKey::stored(elements.keys.as_slice()))?,
            addresses: if V::IN_ROWS { Some(wide_values::addresses(stream, values.as_slice())?) } else { None },
            values,
            tombstones: bitmap.transpose()?,
            search_index: OnceLock::new(),
        })
    }

    /// Copies the elements to the host, with a bitmap only if there is a tombstone.
    pub(super) fn to_host<H: DeviceKey<Stored = K>>(&self, stream: &Stream) -> Result<Elements<H, V>, Error> {
        let mut elements = Elements::<H, V>::zeroed(self.len, self.tombstones.is_some())?;
        H::download(stream, self.keys(), elements.keys.as_mut_slice())?;
        stream.download(self.values(), V::stored_mut(&mut elements.values))?;
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

    /// Returns the words that kernels carry for the values, one `T` each.
    pub(super) fn carried<T: Pod>(&self) -> Result<DeviceSlice<'_, T>, GpuError> {
        match &self.addresses {
            Some(addresses) => addresses.slice(..self.len).cast(),
            None => self.values().cast(),
        }
    }

    /// Returns [`carried`](Self::carried) for writing.
    pub(super) fn carried_mut<T: Pod>(&mut self) -> Result<DeviceSliceMut<'_, T>, GpuError> {
        carried_mut(&mut self.values, &mut self.addresses)
    }

    /// Returns keys, carried words and bits of tombstones for writing.
    pub(super) fn parts_mut<T: Pod>(&mut self) -> Result<PartsMut<'_, K, T>, GpuError> {
        let DeviceElements { keys, values, addresses, tombstones, .. } = self;
        let tombstones = tombstones.as_mut().map(DeviceVec::as_mut_slice);
        Ok((keys.as_mut_slice(), carried_mut(values, addresses)?, tombstones))
    }

    /// Queues the copy of rows into the elements' own, once the addresses are those of other rows, placed as
    /// [`wide_values::copy`] requires. Values that are not in rows are already in place.
    ///
    /// # Safety
    /// The contract of [`wide_values::copy`]. The elements stay allocated until `stream` has passed this work.
    pub(super) unsafe fn settle(&mut self, stream: &Stream, first: u64) -> Result<(), PrimitiveError> {
        let Some(addresses) = &mut self.addresses else { return Ok(()) };
        // SAFETY: the contract of this function; there is one place per row and per address.
        unsafe {
            wide_values::copy(stream, addresses.slice(..self.len), first, self.values.slice_mut(..self.len))?;
            wide_values::write_addresses(stream, self.values.slice(..self.len), addresses.slice_mut(..self.len))
        }
    }

    pub(super) fn tombstones(&self) -> Option<DeviceSlice<'_, u32>> {
        self.tombstones.as_ref().map(DeviceVec::as_slice)
    }

    /// Whether all memory of the elements is freed in the order of `stream`.
    pub(super) fn follows(&self, stream: &Stream) -> bool {
        let bitmap = self.tombstones.as_ref().is_none_or(|words| words.follows(stream));
        let search_index = self.search_index.get().is_none_or(|search_index| search_index.follows(stream));
        let values = V::WORDS == 0 || self.values.follows(stream);
        let addresses = self.addresses.as_ref().is_none_or(|addresses| addresses.follows(stream));
        self.keys.follows(stream) && values && addresses && bitmap && search_index
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let bitmap = self.tombstones.as_ref().map_or(0, DeviceVec::byte_len);
        let search_index = self.search_index.get().map_or(0, SearchIndex::memory_bytes);
        let addresses = self.addresses.as_ref().map_or(0, DeviceVec::byte_len);
        (self.keys.byte_len() + self.values.byte_len() + addresses + bitmap + search_index) as u64
    }
}

/// Elements of a run at some of its places.
pub(super) type Piece<'a, K, V> = (&'a DeviceElements<K, V>, Range<usize>);

/// Result of [`DeviceElements::parts_mut`].
pub(super) type PartsMut<'a, K, T> = (DeviceSliceMut<'a, K>, DeviceSliceMut<'a, T>, Option<DeviceSliceMut<'a, u32>>);

fn carried_mut<'a, S: Pod, T: Pod>(
    values: &'a mut DeviceVec<S>,
    addresses: &'a mut Option<DeviceVec<u64>>,
) -> Result<DeviceSliceMut<'a, T>, GpuError> {
    match addresses {
        Some(addresses) => addresses.as_mut_slice().cast(),
        None => values.as_mut_slice().cast(),
    }
}

/// Queues the writing of the table of these levels, by a kernel that takes them by value, without waiting. A single
/// level gets no filter: its search is as fast.
pub(super) fn publish<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
) -> Result<DeviceVec<u64>, Error> {
    publish_with(stream, levels, levels.len() > 1)
}

/// Queues the table as [`publish`] does, with or without filters.
pub(super) fn publish_with<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
    with_filters: bool,
) -> Result<DeviceVec<u64>, Error> {
    let levels = addresses(levels, with_filters)?;
    let mut table = stream.alloc_uninit(TABLE_WORDS)?;
    // SAFETY: the table has a place for each level, and no other code has its address yet.
    unsafe { lsm_publish { levels, table: table.global_mut() }.launch(stream, LaunchConfig::new(1, 32))? };
    Ok(table)
}

/// Copies the table of these levels from the host: for calls that wait, which then need no kernel for it.
pub(super) fn upload_table<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
) -> Result<DeviceVec<u64>, Error> {
    Ok(stream.from_slice(&table_words(levels)?)?)
}

/// Returns the table of these levels.
pub(super) fn table_words<K: StoredKey, V: DeviceValue>(
    levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
) -> Result<[u64; TABLE_WORDS], Error> {
    let Addresses { keys, values, tombstones, lengths, filters, filter_words, indexes, first_visible } =
        addresses(levels, levels.len() > 1)?;
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
    Ok(words)
}

fn addresses<K: StoredKey, V: DeviceValue>(
    levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
    with_filters: bool,
) -> Result<Addresses, Error> {
    if levels.len() > LEVELS {
        return Err(PrimitiveError::TooManyRuns { runs: levels.len(), max: LEVELS }.into());
    }
    let mut of = Addresses::NONE;
    let mut first_visible = 0;
    for (i, (_, elements)) in levels.iter().enumerate() {
        of.keys[i] = elements.keys.global().as_ptr().expose_provenance() as u64;
        of.values[i] = match &elements.addresses {
            Some(addresses) => addresses.global().as_ptr().expose_provenance(),
            None => elements.values.global().as_ptr().expose_provenance(),
        } as u64;
        of.tombstones[i] =
            elements.tombstones.as_ref().map_or(0, |words| words.global().as_ptr().expose_provenance() as u64);
        of.lengths[i] = elements.len as u64;
        of.first_visible[i] = first_visible;
        first_visible += elements.len.div_ceil(PER_WORD) as u64;
        if let Some(SearchIndex { filter, index }) = elements.search_index.get() {
            if let Some(filter) = filter.get().filter(|_| with_filters) {
                of.filters[i] = filter.global().as_ptr().expose_provenance() as u64;
                of.filter_words[i] = filter.len() as u64;
            }
            of.indexes[i] = index.global().as_ptr().expose_provenance() as u64;
        }
    }
    of.first_visible[levels.len()..].fill(first_visible);
    Ok(of)
}

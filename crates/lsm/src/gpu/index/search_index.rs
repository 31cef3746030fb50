//! Search data of trees on devices, derived from the elements.
//!
//! Each level has a filter and an index of its keys, shared by all trees that share the level. Each tree has the
//! visibility of its elements. They are built once enough keys have been looked up in the tree, and never saved.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use warpset_core::lsm::filter_words;
use warpset_core::lsm::index::bucket_count;
use warpset_core::scan::{Max, Sum};
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::lsm::derive::{BLOCK, lsm_derive, lsm_index_head};
use warpset_kernels::lsm::nodes::{EQUAL_KEYS, INDEX_HEAD};
use warpset_kernels::lsm::short;
use warpset_kernels::lsm::visibility::{self, PER_WORD};
use warpset_kernels::lsm::visible::{self, lsm_visible_counts, lsm_visible_hide, lsm_visible_own, lsm_visible_words};
use warpset_primitives::scan::{exclusive_in_place_async, inclusive_in_place_async};
use warpset_simt::{Global, LaunchConfig};

use crate::Error;
use crate::gpu::device_run::{DeviceElements, upload_table};
use crate::gpu::index::interleaving::Interleaving;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, StoredKey};
use crate::level::LevelIndex;

/// Fewest elements of a level with an index; smaller ones are searched by halving.
const LEAST: usize = 256;
/// Elements of a tree per query that pays for its search data: one query per 32 elements saves about the cost of
/// building them.
const ELEMENTS_PER_QUERY: u64 = 32;

/// Index of a level, and its filter if the level was ever one of several.
pub(crate) struct SearchIndex {
    pub(in crate::gpu) filter: OnceLock<DeviceVec<u64>>,
    pub(in crate::gpu) index: DeviceVec<u64>,
}

impl SearchIndex {
    /// Queues the construction for these keys, which ascend; there is at least one and fewer than 2^32.
    pub(in crate::gpu) fn new<K: StoredKey>(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        with_filter: bool,
    ) -> Result<Self, Error> {
        let n = keys.len();
        let words = if with_filter { filter_words(n as u64) } else { 0 };
        let entries = bucket_count(n as u64) as usize + 1;
        let mut filter = stream.alloc_zeroed(words as usize)?;
        let mut index = stream.alloc_zeroed::<u64>(INDEX_HEAD + entries.div_ceil(2))?;
        // SAFETY: both are new and long enough for what the kernels write: the head, then one entry of 32 bits per
        // bucket and one more. The second launch reads what the first has written.
        unsafe {
            lsm_index_head { keys: keys.global(), n, index: index.global_mut() }
                .launch(stream, LaunchConfig::new(1, 1))?;
            let kernel = lsm_derive {
                keys: keys.global(),
                n,
                filter: filter.global_mut(),
                filter_words: words,
                index: index.global(),
                equal_keys: index.global_mut().at(EQUAL_KEYS),
                entries: index.global_mut().cast::<u32>().at(2 * INDEX_HEAD),
            };
            kernel.launch(stream, LaunchConfig::covering(n, BLOCK))?;
            let mut all = index.as_mut_slice().cast::<u32>()?;
            inclusive_in_place_async::<Max<u32>>(stream, all.slice_mut(2 * INDEX_HEAD..2 * INDEX_HEAD + entries))?;
        }
        Ok(SearchIndex { filter: if with_filter { OnceLock::from(filter) } else { OnceLock::new() }, index })
    }

    pub(in crate::gpu) fn follows(&self, stream: &Stream) -> bool {
        self.filter.get().is_none_or(|filter| filter.follows(stream)) && self.index.follows(stream)
    }

    pub(in crate::gpu) fn memory_bytes(&self) -> usize {
        self.filter.get().map_or(0, DeviceVec::byte_len) + self.index.byte_len()
    }
}

/// Search data of a tree.
pub(crate) struct TreeIndex {
    /// Addresses of its levels, with their filters and indexes.
    table: DeviceVec<u64>,
    pub(in crate::gpu) visible: Visible,
    /// Interleaving order of its levels, once enough ranges have been found without it.
    pub(in crate::gpu) order: OnceLock<Interleaving>,
    /// Work that would have used the order: short ranges, and elements of long ones. The order is built once this is
    /// large enough.
    pub(in crate::gpu) candidates: AtomicU64,
}

/// Visibility of the elements of a tree.
pub(in crate::gpu) enum Visible {
    /// Unknown.
    Unknown,
    /// All elements are visible: none is a tombstone or hidden by a newer one.
    All,
    /// The [words](warpset_kernels::lsm::visibility) of all levels.
    Words(DeviceVec<u64>),
}

impl TreeIndex {
    /// Whether its memory is freed in the order of `stream`.
    pub(in crate::gpu) fn follows(&self, stream: &Stream) -> bool {
        let words = match &self.visible {
            Visible::Words(words) => words.follows(stream),
            Visible::All | Visible::Unknown => true,
        };
        let order = self.order.get().is_none_or(|order| order.follows(stream));
        words && order && self.table.follows(stream)
    }

    /// Returns the bytes of the tree's data, without those of its levels.
    pub(in crate::gpu) fn memory_bytes(&self) -> usize {
        let words = match &self.visible {
            Visible::Words(words) => words.byte_len(),
            Visible::All | Visible::Unknown => 0,
        };
        words + self.order.get().map_or(0, Interleaving::memory_bytes)
    }
}

impl Visible {
    /// Finds the visibility of the elements of these levels, and the number of visible ones. `table` describes the
    /// levels, which have `resident` elements. Waits for the stream.
    fn new<K: StoredKey, V: DeviceValue>(
        stream: &Stream,
        levels: &[(LevelIndex, Arc<DeviceElements<K, V>>)],
        table: &DeviceVec<u64>,
    ) -> Result<(Self, u64), Error> {
        let words_of = |(_, elements): &(LevelIndex, Arc<DeviceElements<K, V>>)| elements.len.div_ceil(PER_WORD);
        let words: usize = levels.iter().map(words_of).sum();
        let oldest = levels.last().map_or(0, words_of);
        let mut bits = stream.alloc_uninit::<u32>(words)?;
        let (table, count) = (table.global(), levels.len() as u32);
        let most = stream.device().properties().multiprocessors as usize * 64;
        let config = |words: usize| {
            LaunchConfig::new((words * 32).div_ceil(visible::BLOCK as usize).clamp(1, most) as u32, visible::BLOCK)
        };
        // SAFETY: the table is of these levels; there is a word for every 32 elements of each level, and the words of
        // all levels but the oldest come before those of the oldest.
        unsafe {
            if let Some((_, newest)) = levels.first() {
                let (_keys, levels) = (newest.keys.global(), count);
                lsm_visible_own { table, levels, _keys, bits: bits.global_mut(), words }
                    .launch(stream, config(words))?;
                let words = words - oldest;
                lsm_visible_hide { table, levels, _keys, bits: bits.global_mut(), words }
                    .launch(stream, config(words))?;
            }
        }
        let before = bits_before(stream, &bits)?;
        let mut live = [0];
        stream.download(before.slice(words..), &mut live)?;
        let live = u64::from(live[0]);
        if live == levels.iter().map(|(_, elements)| elements.len as u64).sum::<u64>() {
            return Ok((Visible::All, live));
        }
        let packed = packed_words(stream, &bits, &before)?;
        stream.synchronize()?;
        Ok((Visible::Words(packed), live))
    }
}

/// Queues prefix sums of bits: the number of set bits before each word, and their total.
fn bits_before(stream: &Stream, bits: &DeviceVec<u32>) -> Result<DeviceVec<u32>, Error> {
    let words = bits.len();
    let mut before = stream.alloc_zeroed::<u32>(words + 1)?;
    // SAFETY: the counts are new; the scan has one word more than there are counts.
    unsafe {
        lsm_visible_counts { bits: bits.global(), counts: before.global_mut(), words }
            .launch(stream, LaunchConfig::covering(words.max(1), visible::BLOCK))?;
        exclusive_in_place_async::<Sum<u32>>(stream, before.as_mut_slice())?;
    }
    Ok(before)
}

/// Queues the [words](warpset_kernels::lsm::visibility) of these bits.
fn packed_words(stream: &Stream, bits: &DeviceVec<u32>, before: &DeviceVec<u32>) -> Result<DeviceVec<u64>, Error> {
    let words = bits.len();
    let mut packed = stream.alloc_uninit::<u64>(words + 1)?;
    // SAFETY: there are the words of the kernel's contract.
    unsafe {
        lsm_visible_words { bits: bits.global(), before: before.global(), words, out: packed.global_mut() }
            .launch(stream, LaunchConfig::covering(words + 1, visible::BLOCK))?;
    }
    Ok(packed)
}

/// Queues the [`packed_words`] of bits without prefix sums.
pub(in crate::gpu) fn visible_words(stream: &Stream, bits: &DeviceVec<u32>) -> Result<DeviceVec<u64>, Error> {
    packed_words(stream, bits, &bits_before(stream, bits)?)
}

/// Levels as queries for ranges use them.
pub(in crate::gpu) struct Sight<'a> {
    pub(in crate::gpu) table: Global<u64>,
    pub(in crate::gpu) levels: u32,
    /// Words of visibility, or [unknown](visibility::UNKNOWN).
    pub(in crate::gpu) visible: Global<u64>,
    pub(in crate::gpu) known: u32,
    pub(in crate::gpu) order: Option<&'a Interleaving>,
}

impl Sight<'_> {
    /// Whether the visibility of the elements is known.
    pub(in crate::gpu) fn is_known(&self) -> bool {
        self.known != visibility::UNKNOWN
    }

    /// Returns the way in which long ranges are listed.
    pub(in crate::gpu) fn listing(&self) -> u32 {
        let has_order = self.order.is_some() || self.levels == 1;
        if self.is_known() && has_order { short::BY_TASKS } else { short::BY_QUERIES }
    }
}

/// Method of a lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupMethod {
    /// Uses filters and indexes once they have been built, by [`Dictionary::prepare`] or by calls that wait, after
    /// enough lookups; halving before that. Searches a dictionary of one level by its index alone. Sorts millions of
    /// queries to a large dictionary of several levels, as `Sorted` does, if memory suffices. Calls that wait detect
    /// whether many queries ascend, and then use `Flipped`.
    #[default]
    Auto,
    /// `Auto` without sorting. In a dictionary of one level, which `Auto` searches at once, tests the filter
    /// first: for keys that are mostly absent. Calls that wait build missing parts of the filter, 1.5 bytes per
    /// element.
    Filtered,
    /// Halves each level, as the paper does (section IV-B).
    Halving,
    /// Sorts the queries by their 16 highest bits first, so that neighbours access the same sectors; the answers have
    /// the order of the queries. Takes memory for the queries again and for two words of 32 bits each. Equals `Auto`
    /// for a dictionary that is not [prepared](Dictionary::prepare).
    Sorted,
    /// For queries that are sorted, or nearly: the elements of the levels search for their queries, instead of queries
    /// for their elements (FliX, arXiv 2604.16725), so that each element is read once and in order. In levels that are
    /// too long for that, and for queries that are far apart, queries search. Answers do not depend on the order of the
    /// queries. Equals `Auto` for a dictionary that is not [prepared](Dictionary::prepare).
    Flipped,
}

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Builds missing data that make lookups, counts and ranges fast. Waits. Answers do not change.
    ///
    /// - Per level: an index of an eighth of a byte per element and, if there are several levels, a filter of 1.5 bytes
    ///   per element.
    /// - Per tree, unless all its elements are visible: their visibility, a quarter of a byte per element.
    /// - Per tree of several levels: the interleaving of the levels, about three bytes per element, by which ranges are
    ///   counted and listed.
    ///
    /// Calls that wait do this by themselves, after one key, range or element of a range per 32 elements of the tree;
    /// the interleaving only for ranges. Queued calls use existing data.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn prepare(&self) -> Result<(), Error> {
        self.prepare_lookups()?;
        self.prepare_order()
    }

    /// Builds the data of [`Dictionary::prepare`], except the data that only ranges need.
    pub(in crate::gpu) fn prepare_lookups(&self) -> Result<(), Error> {
        if self.indexed.get().is_some() {
            return Ok(());
        }
        self.prepare_levels(self.levels.len() > 1)?;
        let indexed = self.waiting(|stream| {
            let table = upload_table(stream, &self.levels)?;
            let visible = if self.all_visible() {
                Visible::All
            } else if self.resident_len() < u64::from(u32::MAX) {
                let (visible, live) = Visible::new(stream, &self.levels, &table)?;
                let _ = self.live.set(live); // or it was known
                visible
            } else {
                Visible::Unknown
            };
            Ok(TreeIndex { table, visible, order: OnceLock::new(), candidates: AtomicU64::new(0) })
        })?;
        let _ = self.indexed.set(Arc::new(indexed));
        Ok(())
    }

    /// Builds missing indexes and, if `with_filters`, filters of the levels. Waits.
    pub(in crate::gpu) fn prepare_levels(&self, with_filters: bool) -> Result<(), Error> {
        self.waiting(|stream| {
            for (_, elements) in &self.levels {
                let lacks_filter = |index: &SearchIndex| with_filters && index.filter.get().is_none();
                if !elements.lacks_index() && !elements.search_index.get().is_some_and(lacks_filter) {
                    continue;
                }
                let search_index = SearchIndex::new(stream, elements.keys(), with_filters)?;
                stream.synchronize()?; // others may use it from now on
                // Another thread was faster, or the level had an index already.
                if let (Err(made), Some(there)) = (elements.search_index.set(search_index), elements.search_index.get())
                    && let Some(filter) = made.filter.into_inner()
                {
                    let _ = there.filter.set(filter);
                }
            }
            Ok(())
        })
    }

    /// Notes `queries` keys of a call that waits, and prepares the tree if that pays off.
    pub(in crate::gpu) fn prepare_for(&self, queries: usize) -> Result<(), Error> {
        let asked = self.asked.fetch_add(queries as u64, Ordering::Relaxed) + queries as u64;
        let missing: usize = self.levels.iter().filter(|(_, l)| l.lacks_index()).map(|(_, l)| l.len).sum();
        let pays = self.indexed.get().is_none() && asked.saturating_mul(ELEMENTS_PER_QUERY) >= missing as u64;
        match if pays { self.prepare_lookups() } else { Ok(()) } {
            // Answers do not depend on the search data.
            Err(Error::Gpu(error)) if error.is_out_of_memory() => Ok(()),
            done => done,
        }
    }

    /// Returns the table of the levels, with filters and indexes if they have been built and the method uses them.
    pub(in crate::gpu) fn table(&self, method: LookupMethod) -> &DeviceVec<u64> {
        match (method, self.indexed.get()) {
            (LookupMethod::Halving, _) | (_, None) => &self.table,
            (_, Some(indexed)) => &indexed.table,
        }
    }

    /// Whether each element is known, without a test, to be live and the only one of its key.
    fn all_visible(&self) -> bool {
        let resident = self.resident_len();
        resident < u64::from(u32::MAX) && self.live.get() == Some(&resident)
    }

    /// Returns the levels as queries for ranges use them.
    pub(in crate::gpu) fn sight(&self) -> Sight<'_> {
        let table = self.table(LookupMethod::Auto).global();
        let indexed = self.indexed.get();
        let (visible, known) = match indexed.map(|indexed| &indexed.visible) {
            Some(Visible::Words(words)) => (words.global(), visibility::WORDS),
            Some(Visible::All) => (table, visibility::ALL),
            None if self.all_visible() => (table, visibility::ALL),
            Some(Visible::Unknown) | None => (table, visibility::UNKNOWN),
        };
        let order = indexed.and_then(|indexed| indexed.order.get());
        Sight { table, levels: self.levels.len() as u32, visible, known, order }
    }
}

impl<K: StoredKey, V: DeviceValue> DeviceElements<K, V> {
    /// Whether a possible filter or index is missing.
    fn lacks_index(&self) -> bool {
        self.len >= LEAST && self.len < u32::MAX as usize && self.search_index.get().is_none()
    }
}

//! Interleaving order of the levels of a tree on a device.
//!
//! A range has elements in every level of a tree. Without further data, each range searches every level, and merges
//! what it finds by comparing keys. The *interleaving order* answers both in advance: it lists all elements of all
//! levels in ascending order of keys, the newest of equal keys first. A list entry has 16 bits and contains no key,
//! only the number of the level and the rank within it:
//!
//! ```text
//! level 0   3     7                  order   1  3  3  5  7  8  9
//! level 1   1  3     8               level   1  0  1  2  0  1  2
//! level 2   5     9                  place   0  0  1  0  1  2  1
//! ```
//!
//! One search in the order finds a range in all levels, and the entries then give its elements without comparing keys.
//! Consecutive entries of one level have consecutive places, so an entry stores the place relative to a *strip* of 32
//! elements, and each strip relative to a *piece* of 1024 ([`warpset_kernels::lsm::order`] describes the format).
//! Together with the first key of each strip and their index, this takes about three bytes per element.
//!
//! The order is made by one merge of all levels with their numbers as values, and never saved. It is built when ranges
//! have done enough work without it ([`ELEMENTS_PER_CANDIDATE`]); an update of the tree drops it. The idea is this
//! project's own.

use std::sync::atomic::Ordering;

use warpset_core::scan::Sum;
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::lsm::groups::{BLOCK, WARPS};
use warpset_kernels::lsm::order::{OrderTable, PIECE, STRIP};
use warpset_kernels::lsm::ordering::{lsm_order, lsm_order_splits};
use warpset_primitives::KeyMask;
use warpset_primitives::merge::{Pairs, WithStatus, merge_many_pairs_async, merge_many_pairs_with_status_async};
use warpset_primitives::scan::exclusive_in_place_async;
use warpset_simt::LaunchConfig;

use crate::Error;
use crate::gpu::index::search_index::{SearchIndex, Visible, visible_words};
use crate::gpu::wide_values::address_of;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, Placed, StoredKey};

/// Elements of a tree per candidate that pays for an order: one short range, or one element of a long range, per 32
/// elements saves about the cost of building it.
const ELEMENTS_PER_CANDIDATE: u64 = 32;

/// [Interleaving order](warpset_kernels::lsm::order) of a tree's elements.
pub(in crate::gpu) struct Interleaving {
    /// Addresses of the memory below.
    pub(in crate::gpu) table: OrderTable,
    entries: DeviceVec<u16>,
    rows: DeviceVec<u16>,
    splits: DeviceVec<u32>,
    /// Keys of any type.
    firsts: DeviceVec<u8>,
    index: SearchIndex,
    visible: Option<DeviceVec<u64>>,
}

impl Interleaving {
    /// Queues the construction for these levels, which have at least one and fewer than 2^32 elements. `all_visible`
    /// states that every element is visible.
    fn new<K: StoredKey, V: DeviceValue>(
        stream: &Stream,
        levels: &[Placed<K, V>],
        all_visible: bool,
    ) -> Result<Self, Error> {
        let n = levels.iter().map(|(_, elements)| elements.len).sum::<usize>();
        let (strips, pieces) = (n.div_ceil(STRIP), n.div_ceil(PIECE));
        let mut numbers = stream.alloc_uninit::<u32>(n)?;
        let (mut keys, mut merged) = (stream.alloc_uninit::<K>(n)?, stream.alloc_uninit::<u32>(n)?);
        let mut begin = 0;
        for (number, (_, elements)) in levels.iter().enumerate() {
            // Every byte of the word is set; only the lowest one counts.
            stream.fill_bytes(numbers.slice_mut(begin..begin + elements.len), number as u8)?;
            begin += elements.len;
        }
        let mut begin = 0;
        let runs = levels.iter().map(|(_, elements)| {
            let numbers = numbers.slice(begin..begin + elements.len);
            begin += elements.len;
            WithStatus::new(Pairs::new(elements.keys(), numbers), elements.tombstones())
        });
        let runs: Vec<_> = runs.collect();
        let has_removed = runs.iter().any(|run| run.status.is_some());
        let mut removed = stream.alloc_uninit::<u32>(if has_removed { n.div_ceil(32) } else { 0 })?;
        let mut table = OrderTable::new(n as u64, levels.len() as u32);
        let width = table.width();
        let mut entries = stream.alloc_uninit::<u16>(strips * STRIP)?;
        let mut rows = stream.alloc_uninit::<u16>(strips * width)?;
        let mut splits = stream.alloc_uninit::<u32>(pieces * width)?;
        let mut counts = stream.alloc_uninit::<u32>(pieces * levels.len())?;
        let mut firsts = stream.alloc_uninit::<u8>((strips + 1) * size_of::<K>())?;
        let mut bits = stream.alloc_uninit::<u32>(if all_visible { 0 } else { strips })?;
        // SAFETY: the merge's outputs are new, as long as all runs, and freed in stream order; so are the other
        // outputs, which have the sizes of the kernels' contracts.
        unsafe {
            if has_removed {
                merge_many_pairs_with_status_async(
                    stream,
                    &runs,
                    KeyMask::all(),
                    &mut keys,
                    &mut merged,
                    &mut removed,
                )?;
            } else {
                let runs: Vec<_> = runs.iter().map(|run| run.run).collect();
                merge_many_pairs_async(stream, &runs, KeyMask::all(), &mut keys, &mut merged)?;
            }
            let kernel = lsm_order {
                table,
                keys: keys.global(),
                numbers: merged.global(),
                removed: removed.global(),
                has_removed: has_removed.into(),
                entries: entries.global_mut(),
                rows: rows.global_mut(),
                firsts: firsts.as_mut_slice().cast::<K>()?.global_mut(),
                counts: counts.global_mut(),
                all: all_visible.into(),
                visible: bits.global_mut(),
            };
            kernel.launch(stream, LaunchConfig::new(pieces.div_ceil(WARPS as usize) as u32, BLOCK))?;
            exclusive_in_place_async::<Sum<u32>>(stream, counts.as_mut_slice())?;
            let (counts, levels, splits) = (counts.global(), levels.len() as u32, splits.global_mut());
            lsm_order_splits { counts, pieces, levels, width, splits }
                .launch(stream, LaunchConfig::covering(pieces * width, BLOCK))?;
        }
        let first_keys: DeviceSlice<'_, K> = firsts.as_slice().cast()?;
        let index = SearchIndex::new(stream, first_keys.slice(..strips), false)?;
        let visible = if all_visible { None } else { Some(visible_words(stream, &bits)?) };
        (table.entries, table.rows) = (address_of(entries.as_slice()), address_of(rows.as_slice()));
        (table.splits, table.firsts) = (address_of(splits.as_slice()), address_of(firsts.as_slice()));
        table.index = address_of(index.index.as_slice());
        table.visible = visible.as_ref().map_or(0, |words| address_of(words.as_slice()));
        Ok(Interleaving { table, entries, rows, splits, firsts, index, visible })
    }

    pub(in crate::gpu) fn follows(&self, stream: &Stream) -> bool {
        let Interleaving { entries, rows, splits, firsts, index, visible, .. } = self;
        let others = splits.follows(stream) && firsts.follows(stream) && index.follows(stream);
        let words = visible.as_ref().is_none_or(|words| words.follows(stream));
        entries.follows(stream) && rows.follows(stream) && others && words
    }

    pub(in crate::gpu) fn memory_bytes(&self) -> usize {
        let Interleaving { entries, rows, splits, firsts, index, visible, .. } = self;
        let words = visible.as_ref().map_or(0, DeviceVec::byte_len);
        entries.byte_len() + rows.byte_len() + splits.byte_len() + firsts.byte_len() + index.memory_bytes() + words
    }
}

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Builds the order of a tree that is prepared for lookups, if it has several levels, the visibility of its
    /// elements is known, and there is no order yet. Waits.
    pub(in crate::gpu) fn prepare_order(&self) -> Result<(), Error> {
        let Some(indexed) = self.indexed.get() else { return Ok(()) };
        let is_open = self.levels.len() > 1 && indexed.order.get().is_none();
        if is_open && !matches!(indexed.visible, Visible::Unknown) {
            let all_visible = matches!(indexed.visible, Visible::All);
            let order = self.waiting(|stream| Interleaving::new(stream, &self.levels, all_visible))?;
            let _ = indexed.order.set(order); // or another thread was faster
        }
        Ok(())
    }

    /// Notes that `candidates` short ranges, or elements of long ones, are found without an order, and builds one if
    /// that pays off. Returns whether there is one now.
    pub(in crate::gpu) fn prepare_order_for(&self, candidates: u64) -> Result<bool, Error> {
        let Some(indexed) = self.indexed.get() else { return Ok(false) };
        if indexed.order.get().is_some() {
            return Ok(true);
        }
        let asked = indexed.candidates.fetch_add(candidates, Ordering::Relaxed) + candidates;
        if asked.saturating_mul(ELEMENTS_PER_CANDIDATE) >= self.resident_len() {
            match self.prepare_order() {
                // Answers do not depend on the order.
                Err(Error::Gpu(error)) if error.is_out_of_memory() => {}
                done => done?,
            }
        }
        Ok(indexed.order.get().is_some())
    }
}

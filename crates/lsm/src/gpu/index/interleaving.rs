//! The order of a tree's elements, which ranges are found and listed by: made from one merge of all levels, never
//! saved.

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

/// Making an order takes about as long as it saves for one element of long ranges, or one short range, in as many
/// elements of the tree.
const ELEMENTS_PER_CANDIDATE: u64 = 32;

/// The [order](warpset_kernels::lsm::order) of a tree's elements.
pub(in crate::gpu) struct Interleaving {
    /// Where the memory below begins.
    pub(in crate::gpu) table: OrderTable,
    entries: DeviceVec<u16>,
    rows: DeviceVec<u16>,
    splits: DeviceVec<u32>,
    /// Keys, whatever their type.
    firsts: DeviceVec<u8>,
    index: SearchIndex,
    visible: Option<DeviceVec<u64>>,
}

impl Interleaving {
    /// Queues the making for these levels, which have at least one and fewer than 2^32 elements; `all_visible` says
    /// that every element is visible.
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
            // In each byte of the word, of which the lowest counts.
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
        // SAFETY: what is merged into is new, as long as all runs, and freed in the order of the stream; so are the
        // outputs, which have room for what the contracts say.
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
    /// Makes the order of a tree that is prepared for lookups, if it has several levels, it is known which elements are
    /// visible, and there is none yet. Waits.
    pub(in crate::gpu) fn prepare_order(&self) -> Result<(), Error> {
        let Some(indexed) = self.indexed.get() else { return Ok(()) };
        let is_open = self.levels.len() > 1 && indexed.order.get().is_none();
        if is_open && !matches!(indexed.visible, Visible::Unknown) {
            let order = self.waiting(|stream| {
                let order = Interleaving::new(stream, &self.levels, matches!(indexed.visible, Visible::All))?;
                stream.synchronize()?; // others may use it from now on
                Ok(order)
            })?;
            let _ = indexed.order.set(order); // or another thread was faster
        }
        Ok(())
    }

    /// Notes that short ranges, or the elements of long ones, as many as `candidates`, are found without an order, and
    /// makes one if that pays. Says if there is one now.
    pub(in crate::gpu) fn prepare_order_for(&self, candidates: u64) -> Result<bool, Error> {
        let Some(indexed) = self.indexed.get() else { return Ok(false) };
        if indexed.order.get().is_some() {
            return Ok(true);
        }
        let asked = indexed.candidates.fetch_add(candidates, Ordering::Relaxed) + candidates;
        if asked.saturating_mul(ELEMENTS_PER_CANDIDATE) >= self.resident_len() {
            match self.prepare_order() {
                // Answers do not need it.
                Err(Error::Gpu(error)) if error.is_out_of_memory() => {}
                done => done?,
            }
        }
        Ok(indexed.order.get().is_some())
    }
}

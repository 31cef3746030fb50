//! The order of a tree's elements, which ranges are listed by: made from one merge of all levels, never saved.

use std::sync::atomic::Ordering;

use warpset_core::scan::Sum;
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::lsm::groups;
use warpset_kernels::lsm::order::PIECE;
use warpset_kernels::lsm::ordering::{self, lsm_order};
use warpset_primitives::KeyMask;
use warpset_primitives::merge::{Pairs, WithStatus, merge_many_pairs_async, merge_many_pairs_with_status_async};
use warpset_primitives::scan::exclusive_in_place_async;
use warpset_simt::LaunchConfig;

use super::search_index::Visible;
use super::{DeviceKey, DeviceValue, Dictionary, Placed, StoredKey};
use crate::Error;

/// Making an order takes about as long as finding that of one element in as many among single queries.
const ELEMENTS_PER_CANDIDATE: u64 = 32;

/// The [order](warpset_kernels::lsm::order) of a tree's elements, and the splits of its pieces.
pub(super) struct Order {
    /// One byte per element, in whole words.
    pub(super) bytes: DeviceVec<u32>,
    pub(super) splits: DeviceVec<u32>,
    pub(super) pieces: u32,
}

impl Order {
    /// Queues the making for these levels, which have fewer than 2^32 elements.
    fn new<K: StoredKey, V: DeviceValue>(stream: &Stream, levels: &[Placed<K, V>]) -> Result<Self, Error> {
        let n = levels.iter().map(|(_, elements)| elements.len).sum::<usize>();
        let pieces = n.div_ceil(PIECE);
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
        let mut bytes = stream.alloc_uninit::<u32>(n.div_ceil(4))?;
        let mut splits = stream.alloc_uninit::<u32>(levels.len() * pieces)?;
        // SAFETY: what is merged into is new, as long as all runs, and freed in the order of the stream; so are the
        // outputs, with a byte per element, and a word per level and piece.
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
                keys: keys.global(),
                numbers: merged.global(),
                removed: removed.global(),
                has_removed: has_removed.into(),
                n,
                levels: levels.len() as u32,
                pieces: pieces as u32,
                order: bytes.global_mut(),
                counts: splits.global_mut(),
            };
            let config = LaunchConfig::new(pieces as u32, groups::BLOCK);
            kernel.launch(stream, config.shared(ordering::SHARED_BYTES))?;
            exclusive_in_place_async::<Sum<u32>>(stream, splits.as_mut_slice())?;
        }
        Ok(Order { bytes, splits, pieces: pieces as u32 })
    }

    pub(super) fn follows(&self, stream: &Stream) -> bool {
        self.bytes.follows(stream) && self.splits.follows(stream)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.byte_len() + self.splits.byte_len()
    }
}

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Makes the order of a tree that is prepared for lookups, if it has several levels, it is known which elements are
    /// visible, and there is none yet. Waits.
    pub(super) fn prepare_order(&self) -> Result<(), Error> {
        let Some(indexed) = self.indexed.get() else { return Ok(()) };
        let is_open = self.levels.len() > 1 && indexed.order.get().is_none();
        if is_open && !matches!(indexed.visible, Visible::Unknown) {
            let order = self.waiting(|stream| {
                let order = Order::new(stream, &self.levels)?;
                stream.synchronize()?; // others may use it from now on
                Ok(order)
            })?;
            let _ = indexed.order.set(order); // or another thread was faster
        }
        Ok(())
    }

    /// Notes that long ranges of `candidates` elements are listed without an order, and makes one if that pays. Says if
    /// there is one now.
    pub(super) fn prepare_order_for(&self, candidates: u64) -> Result<bool, Error> {
        let Some(indexed) = self.indexed.get() else { return Ok(false) };
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

//! Updates on the device, with one-pass cascades of insertions.
//!
//! An insertion that finds full levels cascades. In the paper (section III-B, figure 3) the batch is merged with level
//! 0, the result with level 1, and so on, so an element moves once per full level. Here the batch and all levels that
//! it fills up are merged in one pass:
//!
//! ```text
//! paper   batch + L0 -> t1    t1 + L1 -> t2    t2 + L2 -> L3     2b + 4b + 8b elements written
//! here    batch + L0 + L1 + L2 -> L3                             8b
//! ```
//!
//! A cascade through `k` levels writes `2^k b` elements instead of `(2^(k+1) - 2) b`, with two launches instead of `k`
//! merges, and reads each element once.
//! [`merge_many_keys_with_status_async`](warpset_primitives::merge::merge_many_keys_with_status_async) and its
//! relatives merge up to 32 runs this way; the newest run comes first, so of equal keys the newest element stays first.
//! The levels are immutable: the new level is complete before the list of levels changes.

pub(super) mod batch;
pub(super) mod cleanup;
pub(super) mod short_inserts;
pub(super) mod upsert;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use warpset_base::filter::LengthMismatch;

use warpset_gpu::{DeviceSlice, Stream};

use crate::Error;
use crate::element::units;
use crate::error::one_per_key;
use crate::gpu::device_run::{DeviceElements, publish};
use crate::gpu::host_transfer::Batch;
use crate::gpu::wide_values;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, Retired};
use crate::level::LevelIndex;
use crate::policy::MergePolicy;

/// Result of an update: made by [`Dictionary::queue`], stored by [`Dictionary::take`].
pub(super) struct Made<K, V: DeviceValue> {
    pub(super) levels: Vec<(LevelIndex, Arc<DeviceElements<K, V>>)>,
    pub(super) table: warpset_gpu::DeviceVec<u64>,
}

/// Updates from host memory.
impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> Dictionary<K, V, P> {
    /// Inserts one value per key and replaces existing values. The last one of equal keys counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        if self.insert_short(keys, values)? {
            return Ok(());
        }
        let mut brought = Batch::default();
        self.update(keys.len(), |_, stream| brought.insertions(stream, keys, values))
    }

    /// Removes keys, whether or not they have values.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        let mut brought = Batch::default();
        self.update(keys.len(), |_, stream| {
            let (keys, _) = brought.bring(stream, keys, units(0))?;
            // SAFETY: the transferred batch stays allocated until the work has finished.
            unsafe { batch::removals(stream, keys) }
        })
    }

    /// Removes the keys with a flag in `removed`, and inserts the others with their values. A key that is both removed
    /// and inserted is removed, wherever in the batch.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless all three are of one length; [`Error::Gpu`].
    pub fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        one_per_key(keys.len(), "flags", removed.len())?;
        if !removed.contains(&true) {
            return self.insert_bulk(keys, values);
        }
        let flags: &[u8] = bytemuck::cast_slice(removed);
        let mut brought = Batch::default();
        self.update(keys.len(), |_, stream| {
            let (keys, values) = brought.bring(stream, keys, values)?;
            // SAFETY: the flags are borrowed until the work has finished, and the transferred batch stays allocated as
            // long; device memory is freed in stream order.
            unsafe {
                let flags = stream.from_slice_async(flags)?;
                batch::mixed(stream, keys, values, flags.as_slice())
            }
        })
    }
}

/// Updates from device memory, which wait unless their names end in `_async`. For values `()` pass an empty slice.
impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> Dictionary<K, V, P> {
    /// Inserts as [`Dictionary::insert_bulk`] does, keys and values on the device.
    ///
    /// # Errors
    /// The errors of [`Dictionary::insert_bulk`]; memory of another device is refused.
    pub fn insert_device(
        &mut self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
    ) -> Result<(), Error> {
        self.check_batch(keys, values)?;
        // SAFETY: keys and values are borrowed until the work has finished.
        self.update(keys.len(), |_, stream| unsafe { batch::insertions(stream, keys, values) })
    }

    /// Removes as [`Dictionary::remove_bulk`] does, keys on the device.
    ///
    /// # Errors
    /// The errors of [`Dictionary::remove_bulk`]; memory of another device is refused.
    pub fn remove_device(&mut self, keys: DeviceSlice<'_, K::Stored>) -> Result<(), Error> {
        self.device.expect_same(keys.device(), "a removal from a dictionary")?;
        // SAFETY: keys are borrowed until the work has finished.
        self.update(keys.len(), |_, stream| unsafe { batch::removals(stream, keys) })
    }

    /// Updates as [`Dictionary::update_bulk`] does, with keys, values and flags on the device; a flag is set if it is
    /// not zero.
    ///
    /// # Errors
    /// The errors of [`Dictionary::update_bulk`]; memory of another device is refused.
    pub fn update_device(
        &mut self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
        removed: DeviceSlice<'_, u8>,
    ) -> Result<(), Error> {
        self.check_flags(keys, values, removed)?;
        // SAFETY: all three are borrowed until the work has finished.
        self.update(keys.len(), |_, stream| unsafe { batch::mixed(stream, keys, values, removed) })
    }

    /// Queues an insertion without waiting. Automatic cleanups happen only in later calls that wait.
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - keys and values stay allocated, and nothing writes them;
    /// - the dictionary is neither dropped nor queried, except by later work on the stream.
    ///
    /// # Errors
    /// The errors of [`Dictionary::insert_device`].
    pub unsafe fn insert_async(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
    ) -> Result<(), Error> {
        self.check_batch(keys, values)?;
        // SAFETY: the contract of this function.
        unsafe { self.update_on(stream, keys.len(), |stream| batch::insertions(stream, keys, values)) }
    }

    /// Queues a removal, as [`Dictionary::insert_async`] queues an insertion.
    ///
    /// # Safety
    /// The contract of [`Dictionary::insert_async`].
    ///
    /// # Errors
    /// The errors of [`Dictionary::remove_device`].
    pub unsafe fn remove_async(&mut self, stream: &Stream, keys: DeviceSlice<'_, K::Stored>) -> Result<(), Error> {
        self.device.expect_same(keys.device(), "a removal from a dictionary")?;
        // SAFETY: the contract of this function.
        unsafe { self.update_on(stream, keys.len(), |stream| batch::removals(stream, keys)) }
    }

    /// Queues insertions and removals, as [`Dictionary::insert_async`] queues insertions; a flag is set if it is not
    /// zero.
    ///
    /// # Safety
    /// The contract of [`Dictionary::insert_async`], for the flags too.
    ///
    /// # Errors
    /// The errors of [`Dictionary::update_device`].
    pub unsafe fn update_async(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
        removed: DeviceSlice<'_, u8>,
    ) -> Result<(), Error> {
        self.check_flags(keys, values, removed)?;
        // SAFETY: the contract of this function.
        unsafe { self.update_on(stream, keys.len(), |stream| batch::mixed(stream, keys, values, removed)) }
    }

    fn check_flags(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
        removed: DeviceSlice<'_, u8>,
    ) -> Result<(), Error> {
        self.check_batch(keys, values)?;
        one_per_key(keys.len(), "flags", removed.len())?;
        Ok(self.device.expect_same(removed.device(), "an update of a dictionary")?)
    }

    pub(super) fn check_batch(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
    ) -> Result<(), Error> {
        let values_needed = if V::WORDS == 0 { 0 } else { keys.len() };
        if values.len() != values_needed {
            return Err(LengthMismatch { what: "values", needed: keys.len(), found: values.len() }.into());
        }
        self.device.expect_same(keys.device(), "an insertion into a dictionary")?;
        self.device.expect_same(values.device(), "an insertion into a dictionary")?;
        Ok(wide_values::check_alignment::<V>(values)?)
    }

    /// Adds the batch that `queue` makes of `len` elements on its stream, waits, and cleans up if a cleanup is due. All
    /// memory of the batch must be allocated on that stream, because it is freed in its order.
    pub(super) fn update(
        &mut self,
        len: usize,
        queue: impl FnOnce(&Self, &Stream) -> Result<DeviceElements<K::Stored, V>, Error>,
    ) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        if P::ALWAYS_CLEAN {
            let live = self.waiting(|stream| {
                let batch = queue(self, stream)?;
                if batch.len == 0 { Ok(None) } else { self.merged_live(stream, Some(&batch)).map(Some) }
            })?;
            return live.map_or(Ok(()), |live| self.set_live(live));
        }
        let made = self.waiting(|stream| {
            let batch = queue(self, stream)?;
            if batch.len == 0 { Ok(None) } else { self.queue(stream, batch).map(Some) }
        })?;
        let Some(made) = made else { return Ok(()) };
        drop(self.take(made));
        self.retired.clear();
        self.clean_up_if_due();
        Ok(())
    }

    /// Cleans up at the end of a call that waits, if a cleanup is due.
    pub(super) fn clean_up_if_due(&mut self) {
        if self.policy.is_due(self.resident_len()) {
            // If memory runs out, the next update tries again.
            let _ = self.cleanup();
        }
    }

    /// Queues the addition of the batch of `len` elements that `queue` sorts, without waiting.
    ///
    /// # Safety
    /// The contract of [`Dictionary::insert_async`].
    unsafe fn update_on(
        &mut self,
        stream: &Stream,
        len: usize,
        queue: impl FnOnce(&Stream) -> Result<DeviceElements<K::Stored, V>, Error>,
    ) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        self.device.expect_same(stream.device(), "an update of a dictionary")?;
        let batch = queue(stream)?;
        // Memory that is freed in the order of this stream may be dropped at once.
        let passed = if self.follows(stream) { None } else { Some(self.device.new_event()?) };
        let made = self.queue(stream, batch)?;
        let replaced = self.take(made);
        while self.retired.front().is_some_and(|(passed, _)| passed.is_done().unwrap_or(false)) {
            self.retired.pop_front();
        }
        let Some(passed) = passed else { return Ok(()) };
        if let Err(error) = passed.record(stream) {
            // Without an event for the stream, this waits before replaced memory is dropped.
            self.device.synchronize()?;
            return Err(error.into());
        }
        self.retired.push_back((passed, replaced));
        Ok(())
    }

    /// Whether all memory that an update may replace is freed in the order of `stream`.
    fn follows(&self, stream: &Stream) -> bool {
        let indexed = self.indexed.get().is_none_or(|table| table.follows(stream));
        indexed && self.table.follows(stream) && self.levels.iter().all(|(_, elements)| elements.follows(stream))
    }

    /// Queues the merge of a sorted batch with the levels that it fills up.
    fn queue(&self, stream: &Stream, batch: DeviceElements<K::Stored, V>) -> Result<Made<K::Stored, V>, Error> {
        let lengths = self.levels.iter().map(|(index, elements)| (*index, elements.len));
        let (index, merged) = self.policy.place_for(batch.len, lengths);
        let (newer, older) = self.levels.split_at(merged);
        let elements = if newer.is_empty() {
            batch
        } else {
            let mut runs: Vec<&DeviceElements<K::Stored, V>> = vec![&batch];
            runs.extend(newer.iter().map(|(_, elements)| &**elements));
            let tombstones = runs.iter().any(|run| run.tombstones.is_some());
            let mut out = DeviceElements::uninit(stream, runs.iter().map(|run| run.len).sum(), tombstones)?;
            // SAFETY: the output is new; levels are never written, and `take` keeps replaced ones until the stream has
            // passed; the batch is freed in stream order.
            unsafe { V::merge(stream, &runs, &mut out)? };
            out
        };
        let mut levels = vec![(index, Arc::new(elements))];
        levels.extend(older.iter().cloned());
        let table = publish(stream, &levels)?;
        Ok(Made { levels, table })
    }

    /// Stores the result of an update; returns the replaced memory, which queued work may still read.
    pub(super) fn take(&mut self, made: Made<K::Stored, V>) -> Retired<K::Stored, V> {
        let levels = std::mem::replace(&mut self.levels, made.levels);
        let table = std::mem::replace(&mut self.table, Arc::new(made.table));
        let indexed = self.indexed.take();
        self.asked = AtomicU64::new(0);
        self.live = OnceLock::new();
        self.policy.note_update();
        Retired { levels, table, indexed }
    }
}

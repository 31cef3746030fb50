//! Short batches of insertions from host slices.
//!
//! Their cost is the fixed cost of driver calls: a microsecond per allocation and two to four per copy or launch. So
//! the host sorts the batch, one copy transfers it with the new table, one allocation holds everything, and the merge
//! with the newest levels is the only launch.

use std::sync::Arc;

use warpset_gpu::arena::Arena;
use warpset_gpu::lane::Lane;
use warpset_kernels::lsm::table::TABLE_WORDS;

use crate::gpu::device_run::{DeviceElements, table_words};
use crate::gpu::update::Made;
use crate::gpu::wide_values;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, StoredKey};
use crate::level::LevelIndex;
use crate::policy::MergePolicy;
use crate::run::Elements;
use crate::{Error, batch};

/// Largest number of elements that the host sorts faster than a launch starts; also limits their bytes.
const MOST: usize = if cfg!(test) { 64 } else { 1 << 10 };
const MOST_BYTES: usize = 1 << 15;

impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> Dictionary<K, V, P> {
    /// Inserts a short batch that is merged with a level, one value per key; returns false, and does nothing, for other
    /// batches.
    pub(in crate::gpu) fn insert_short(&mut self, keys: &[K], values: &[V]) -> Result<bool, Error> {
        let n = keys.len();
        if P::ALWAYS_CLEAN || n == 0 || n > MOST || n * (size_of::<K>() + size_of::<V>()) > MOST_BYTES {
            return Ok(false);
        }
        let lengths = self.levels.iter().map(|(index, elements)| (*index, elements.len));
        let (index, merged) = self.policy.place_for(n, lengths);
        if merged == 0 {
            return Ok(false);
        }
        let sorted = batch::insertions(keys, values)?;
        self.device.synchronize()?;
        // A lane that ends early waits for queued work.
        let mut lane = Lane::new(&self.device, Sent::of::<K::Stored, V>(n)?.end.div_ceil(8), 0)?;
        let made = self.queue_short(&mut lane, &sorted, index, merged)?;
        let replaced = self.take(made);
        #[cfg(test)]
        let replaced = crate::gpu::tests::streams::planted(replaced);
        // The merge reads the replaced levels, and runs on another stream than the one in whose order they are freed.
        lane.wait()?;
        drop(replaced);
        self.retired.clear();
        self.clean_up_if_due();
        Ok(true)
    }

    /// Queues the merge of a sorted batch and the `merged` newest levels into level `index`, and the table with it.
    fn queue_short(
        &self,
        lane: &mut Lane,
        sorted: &Elements<K, V>,
        index: LevelIndex,
        merged: usize,
    ) -> Result<Made<K::Stored, V>, Error> {
        let stream = lane.stream().clone();
        let (newer, older) = self.levels.split_at(merged);
        let n = sorted.len();
        let len = n + newer.iter().map(|(_, elements)| elements.len).sum::<usize>();
        let tombstones = newer.iter().any(|(_, elements)| elements.tombstones.is_some());
        let sent = Sent::of::<K::Stored, V>(n)?;
        let bytes = DeviceElements::<K::Stored, V>::arena_bytes(len, tombstones)?.saturating_add(sent.end);
        let mut arena = Arena::new(&stream, bytes)?;
        let out = DeviceElements::<K::Stored, V>::within(&mut arena, len, tombstones)?;
        let mut levels = vec![(index, Arc::new(out))];
        levels.extend(older.iter().cloned());

        let host = lane.host()?;
        host[..8 * TABLE_WORDS].copy_from_slice(bytemuck::cast_slice(&table_words(&levels)?));
        let values = V::stored(&sorted.values);
        K::store(sorted.keys.as_slice(), bytemuck::cast_slice_mut(&mut host[sent.keys..][..n * size_of::<K>()]));
        host[sent.values..][..size_of_val(values)].copy_from_slice(bytemuck::cast_slice(values));
        let mut there = arena.rest();
        if V::IN_ROWS {
            let first = wide_values::address_of(there.slice(sent.values..));
            let addresses = bytemuck::cast_slice_mut::<u8, u64>(&mut host[sent.addresses..][..8 * n]);
            for (i, address) in addresses.iter_mut().enumerate() {
                *address = first + (i * size_of::<V>()) as u64;
            }
        }
        lane.send_to(there.slice_mut(..sent.end))?;

        let table = arena.take::<u64>(TABLE_WORDS)?;
        let batch = DeviceElements::<K::Stored, V>::within(&mut arena, n, false)?;
        let runs: Vec<_> = std::iter::once(&batch).chain(newer.iter().map(|(_, elements)| &**elements)).collect();
        let Some(out) = Arc::get_mut(&mut levels[0].1) else { unreachable!("no one else has it yet") };
        // SAFETY: the output is new; levels are never written, and the caller keeps replaced ones until it has waited
        // for the stream; the arena, with batch and table, is freed in stream order.
        unsafe { V::merge(&stream, &runs, out)? };
        Ok(Made { levels, table })
    }
}

/// Places of the transferred parts: the table, then a batch as [`DeviceElements::within`] lays it out.
struct Sent {
    keys: usize,
    values: usize,
    addresses: usize,
    end: usize,
}

impl Sent {
    /// Returns the places for `n` elements.
    fn of<K: StoredKey, V: DeviceValue>(n: usize) -> Result<Sent, Error> {
        let keys = Arena::bytes_of::<u64>(TABLE_WORDS)?;
        let values = keys + Arena::bytes_of::<K>(n)?;
        let addresses = values + Arena::bytes_of::<V::Stored>(if V::WORDS == 0 { 0 } else { n })?;
        let end = addresses + Arena::bytes_of::<u64>(if V::IN_ROWS { n } else { 0 })?;
        Ok(Sent { keys, values, addresses, end })
    }
}

//! Rao's filter on a device: batch after batch, assigned, grouped, built in shared memory, merged.
//!
//! The rule of assignment is that of [`cpu::RaoBloom`](crate::cpu::RaoBloom), with the same bits: one choice in any
//! order; two choices in rounds, in which every key sees the filter of the round's start. Queries may come between
//! insertions.

use warpset_core::bloom::rao::{round_keys, spread_attempt};
use warpset_gpu::batch::{Answers, Hashing};
use warpset_gpu::{DeviceSlice, DeviceVec, GpuError, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::bloom::rao::{self as kernels, BLOCK, MAX_BLOCK, MAX_COUNTED_HERE, Parameters};
use warpset_simt::Global;

use super::kernels::{Batch, RateOf, one_thread_each};
use super::{DeviceKeys, DeviceLayout, RaoBloom};
use crate::{Error, FirstLevel, Layout, RaoLayout};

mod insert;
mod test_and_insert;
mod undo;

pub use undo::RaoInsertion;

/// The fewest keys of one batch where their order does not matter.
const BATCH: usize = 1 << 24;
/// The most.
const LARGEST_BATCH: usize = 1 << 27;
/// Bytes of filter per key of a batch; with fewer keys, reading and writing the buckets costs more than building them.
const BYTES_PER_KEY: usize = 16;
/// The most keys that kernels can count in a batch.
const MAX_BATCH: u64 = u32::MAX as u64;
/// The most keys that one thread assigns and groups.
const KEYS_PER_THREAD: usize = 16;
/// Buckets that kernels can number, one number being taken.
const MAX_BUCKETS: u64 = u32::MAX as u64;

/// Returns the parameters of a layout that kernels take.
fn parameters(layout: &RaoLayout) -> Parameters {
    let first_level = match layout.first_level() {
        FirstLevel::Mixed => kernels::MIXED,
        FirstLevel::String(_) if layout.attempt() == 0 => kernels::STRING,
        FirstLevel::String(_) => kernels::STRING_MIXED,
    };
    Parameters {
        buckets: layout.blocks(),
        attempt_spread: spread_attempt(layout.attempt()),
        shape: layout.shape(),
        choices: layout.choices(),
        first_level,
        reserved: 0,
    }
}

/// Returns an argument for kernels that do not read it.
fn no_string_hashes() -> Global<u32> {
    Global::from_raw_parts(std::ptr::null(), 0)
}

impl DeviceLayout for RaoLayout {
    fn hashing(&self) -> Hashing {
        match self.first_level() {
            FirstLevel::Mixed => Hashing::seeded(self.seed()),
            FirstLevel::String(function) => Hashing::seeded(self.seed()).with_string_hash(function),
        }
    }

    fn rate_of(&self) -> RateOf {
        RateOf::Bucket(self.shape())
    }

    fn check_device_limits(&self) -> Result<(), Error> {
        let blocks = self.blocks();
        // The keys of a round are counted in 32 bits.
        let of_a_round = (MAX_BATCH + 1) * 64 / u64::from(self.bucket_capacity());
        let limit = if self.choices() == 2 { of_a_round.min(MAX_BUCKETS) } else { MAX_BUCKETS } - 1;
        let bytes = |buckets: u64| buckets.saturating_mul(4 * u64::from(self.shape().bucket_words));
        if blocks <= limit { Ok(()) } else { Err(Error::TooLarge { bytes: bytes(blocks), limit: bytes(limit) }) }
    }

    unsafe fn launch_contains(&self, batch: Batch<'_>, words: Global<u32>, answers: Answers) -> Result<(), GpuError> {
        let Batch { stream, keys: KeySlice { keys, kind, spread, .. }, string_hashes, n } = batch;
        let (config, parameters) = (one_thread_each(n), parameters(self));
        let string_hashes = string_hashes.unwrap_or_else(no_string_hashes);
        let Answers { words: out, form } = answers;
        // SAFETY: this function's contract includes that of the kernel.
        unsafe {
            kernels::rao_contains { words, parameters, keys, kind, spread, string_hashes, n, form, out }
                .launch(stream, config)
        }
    }
}

/// Number of live keys of a batch, if only the device has the number.
#[derive(Clone, Copy)]
struct LiveKeys {
    /// One word.
    count: Global<u64>,
    /// The place of the batch's first key among those counted.
    first: usize,
}

/// Device memory for one batch at a time, allocated and freed in the order of a stream.
struct BatchScratch<'s> {
    stream: &'s Stream,
    batch: usize,
    assigned: DeviceVec<u32>,
    grouped: DeviceVec<u64>,
    counts: DeviceVec<u32>,
}

impl RaoBloom {
    /// Returns the number of keys per batch when `n` are inserted: with two choices, a round.
    fn batch_of(&self, n: usize) -> usize {
        let batch = match self.layout.choices() {
            1 => (self.words.byte_len() / BYTES_PER_KEY).clamp(BATCH, LARGEST_BATCH),
            // Below `MAX_BATCH`, see `check_device_limits`.
            _ => round_keys(self.layout.blocks(), self.layout.bucket_capacity()) as usize,
        };
        batch.min(n)
    }

    /// Allocates memory for insertions of `n` keys on `stream`.
    fn scratch<'s>(&self, stream: &'s Stream, n: usize) -> Result<BatchScratch<'s>, Error> {
        let batch = self.batch_of(n);
        Ok(BatchScratch {
            stream,
            batch,
            assigned: stream.alloc_uninit(batch)?,
            grouped: stream.alloc_uninit(batch)?,
            counts: stream.alloc_uninit(self.layout.blocks() as usize)?,
        })
    }

    /// Queues one batch: assign, group, build.
    ///
    /// # Safety
    /// - `keys` are `n` keys of their kind, at most a batch; keys past `live` are not read.
    /// - `string_hashes` are `n`, if the layout wants them.
    /// - Until the scratch's stream has passed this work, keys and filter stay allocated, and nothing else accesses the
    ///   filter.
    unsafe fn insert_batch(
        &mut self,
        scratch: &mut BatchScratch<'_>,
        keys: KeySlice,
        string_hashes: Option<Global<u32>>,
        n: usize,
        live: Option<LiveKeys>,
    ) -> Result<(), Error> {
        let BatchScratch { stream, assigned, grouped, counts, .. } = scratch;
        let string_hashes = string_hashes.unwrap_or_else(no_string_hashes);
        let (count, first) = match live {
            Some(LiveKeys { count, first }) => (count, first as u64),
            None => (Global::from_raw_parts(std::ptr::null(), 0), kernels::ALL),
        };
        let (parameters, buckets) = (parameters(&self.layout), self.layout.blocks());
        let multiprocessors = self.device.properties().multiprocessors;
        let KeySlice { keys, kind, spread, .. } = keys;
        // A thread takes several keys if there are enough for all; then few buckets are counted in shared memory, where
        // otherwise the atomics of all threads would meet in the same words.
        let per_thread = n.div_ceil((multiprocessors * 8 * BLOCK) as usize).clamp(1, KEYS_PER_THREAD);
        let tile = per_thread * BLOCK as usize;
        let counted_here = buckets <= MAX_COUNTED_HERE && 2 * buckets <= tile as u64;
        let shared_bytes = if counted_here { 4 * buckets as u32 } else { 0 };
        let tiles = LaunchConfig::new(n.div_ceil(tile) as u32, BLOCK).shared(shared_bytes);
        let (tile, counted_here) = (tile as u32, u32::from(counted_here));
        stream.fill_bytes(&mut *counts, 0)?;
        let (words, ones) = (self.words.global(), self.bucket_ones.global());
        // SAFETY: the scratch has room for a batch and a count per bucket; launches run in order; the rest is the
        // caller's promise.
        unsafe {
            kernels::rao_assign {
                words,
                ones,
                parameters,
                keys,
                kind,
                spread,
                string_hashes,
                n,
                live: count,
                first,
                tile,
                counted_here,
                assigned: assigned.global_mut(),
                counts: counts.global_mut(),
            }
            .launch(*stream, tiles)?;
            let threads = (buckets.min(u64::from(MAX_BLOCK)) as u32).next_power_of_two().max(32);
            let config = LaunchConfig::new(1, threads).shared(128);
            kernels::rao_scan { counts: counts.global_mut(), n: buckets as usize }.launch(*stream, config)?;
            kernels::rao_group {
                keys,
                kind,
                spread,
                n,
                live: count,
                first,
                tile,
                counted_here,
                buckets: buckets as u32,
                assigned: assigned.global(),
                starts: counts.global_mut(),
                grouped: grouped.global_mut(),
            }
            .launch(*stream, tiles)?;
            // Few buckets take all threads that a multiprocessor has; small buckets have no work for that many.
            let most = if buckets <= 4 * u64::from(multiprocessors) { MAX_BLOCK } else { MAX_BLOCK / 2 };
            let threads = (parameters.shape.bucket_words / 8).next_power_of_two().clamp(64, most);
            let grid = (buckets as u32).min(multiprocessors * 8);
            let config = LaunchConfig::new(grid, threads).shared(parameters.shape.bucket_words * 4 + 128);
            kernels::rao_build {
                words: self.words.global_mut(),
                ones: self.bucket_ones.global_mut(),
                buckets: parameters.buckets,
                shape: parameters.shape,
                grouped: grouped.global(),
                ends: counts.global(),
            }
            .launch(*stream, config)?;
        }
        Ok(())
    }

    /// Queues the insertion of keys on the device, batch by batch.
    ///
    /// # Safety
    /// That of [`RaoBloom::insert_batch`], for all keys.
    unsafe fn insert_batches<K: DeviceKeys>(&mut self, scratch: &mut BatchScratch<'_>, keys: K) -> Result<(), Error> {
        let n = keys.count();
        for first in (0..n).step_by(scratch.batch.max(1)) {
            let batch = keys.part(first..n.min(first + scratch.batch));
            // SAFETY: this function's contract; scratch is freed in the order of the scratch's stream.
            unsafe {
                let hashed = batch.kernel_keys(&self.layout.hashing(), scratch.stream)?;
                self.insert_batch(scratch, hashed.keys, hashed.string_hashes(), batch.count(), None)?;
            }
        }
        Ok(())
    }

    /// Returns the number of set bits of each bucket, on the device.
    pub fn bucket_ones(&self) -> DeviceSlice<'_, u32> {
        self.bucket_ones.as_slice()
    }
}

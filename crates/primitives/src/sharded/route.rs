//! Grouping of a batch's keys by the owners of their hashes.

use std::ops::Range;

use bytemuck::Pod;
use warpset_gpu::batch::Hashing;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::primitives::exchange::{self as kernels, BLOCK, Route, Routing, TILE};
use warpset_simt::Global;

use crate::Result;
use crate::scan::{self, Sum};

/// Owners of hashes.
pub struct Router {
    pub(super) hashing: Hashing,
    /// Hash that chooses the owner, and the word that travels.
    pub(super) route: Route,
    /// First hash of each part but the first, in the memory of each device.
    pub(super) bounds: Vec<DeviceVec<u64>>,
}

/// Keys of a round on their device, grouped by owner.
pub struct Routed<W = u64> {
    /// Stream that groups them.
    pub stream: Stream,
    /// Words that travel, one per key.
    pub words: DeviceVec<W>,
    /// One per key, or none.
    pub values: DeviceVec<u64>,
    /// Number of each key in its round.
    pub numbers: DeviceVec<u32>,
    /// First place of each owner but the first.
    pub starts: DeviceVec<u64>,
}

impl Router {
    /// Queues the grouping of `n` keys on the device at `place`, and of their values if there are any.
    ///
    /// # Safety
    /// `keys` are `n` keys of this hashing, `0 < n <= ROUND`, and `values` as many values; until `stream` has passed
    /// this work they stay allocated, and nothing writes them.
    pub(super) unsafe fn route(
        &self,
        stream: &Stream,
        place: usize,
        keys: KeySlice,
        n: usize,
        values: Option<Global<u64>>,
    ) -> Result<Routed> {
        let bounds = &self.bounds[place];
        let (owners, tiles) = (bounds.len() + 1, n.div_ceil(TILE));
        let mut counts = stream.alloc_uninit::<u32>(owners * tiles)?;
        let mut routed = Routed {
            stream: stream.clone(),
            words: stream.alloc_uninit(n)?,
            values: stream.alloc_uninit(values.map_or(0, |_| n))?,
            numbers: stream.alloc_uninit(n)?,
            starts: stream.alloc_uninit(owners - 1)?,
        };
        let KeySlice { keys, kind, spread, .. } = keys;
        let of = Routing { kind, spread, n, owners, route: self.route };
        let config = LaunchConfig::covering(tiles * 32, BLOCK);
        // SAFETY: there is a place for each key and each count, and `owners <= MAX_OWNERS`; scratch is freed in the
        // order of the stream; the rest is this function's contract.
        unsafe {
            let bounds = bounds.global();
            kernels::exchange_count { of, keys, bounds, counts: counts.global_mut() }.launch(stream, config)?;
            scan::exclusive_in_place_async::<Sum<u32>>(stream, counts.as_mut_slice())?;
            let (words, numbers) = (routed.words.global_mut(), routed.numbers.global_mut());
            let (places, starts) = (counts.global(), routed.starts.global_mut());
            kernels::exchange_move { of, keys, bounds, places, words, numbers, starts }.launch(stream, config)?;
            if let Some(values) = values {
                let (numbers, out) = (routed.numbers.global(), routed.values.global_mut());
                kernels::exchange_gather { values, numbers, n, out }.launch(stream, covering(stream, n))?;
            }
        }
        Ok(routed)
    }
}

impl<W: Pod> Routed<W> {
    /// Waits for the grouping, and returns the places of each owner's keys.
    pub(super) fn ranges(&self) -> Result<Vec<Range<usize>>> {
        ranges(&self.stream, &self.starts, self.words.len())
    }
}

/// Waits for the stream, and returns the ranges of `len` places that begin at zero and at `starts`.
///
/// # Errors
/// A failed copy.
pub fn ranges(stream: &Stream, starts: &DeviceVec<u64>, len: usize) -> Result<Vec<Range<usize>>> {
    let mut found = vec![0; starts.len()];
    stream.download(starts, &mut found)?;
    let ends = found.iter().map(|&start| start as usize).chain([len]);
    let mut start = 0;
    Ok(ends.map(|end| std::mem::replace(&mut start, end)..end).collect())
}

/// Returns a launch of at most the blocks that fit at once, for kernels that walk by grid stride.
pub(super) fn covering(stream: &Stream, n: usize) -> LaunchConfig {
    let resident = stream.device().properties().multiprocessors * 8;
    LaunchConfig::new(LaunchConfig::covering(n, BLOCK).grid.x.min(resident), BLOCK)
}

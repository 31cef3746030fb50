//! Grouping of a batch's keys by the owners of their hashes.

use std::ops::Range;

use bytemuck::Pod;
use warpset_gpu::batch::Hashing;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::primitives::exchange::{self as kernels, BLOCK, NUMBER_BITS, Route};
use warpset_simt::Global;

use crate::sort::{self, By};
use crate::{KeyMask, Result, search};

/// Owners of hashes.
pub struct Router {
    pub(super) hashing: Hashing,
    /// Hash that chooses the owner, and the word that travels.
    pub(super) route: Route,
    /// One per device.
    pub(super) tables: Vec<Table>,
}

/// Owners of hashes, in the memory of a device.
pub(super) struct Table {
    /// First hash of each part but the first.
    pub(super) bounds: DeviceVec<u64>,
    /// Least number of each owner but the first, with the owner in the high bits.
    pub(super) firsts: DeviceVec<u32>,
}

/// Keys of a round on their device, grouped by owner.
pub struct Routed<W = u64> {
    /// Stream that groups them.
    pub stream: Stream,
    /// Words that travel, one per key.
    pub words: DeviceVec<W>,
    /// One per key, or none.
    pub values: DeviceVec<u64>,
    /// Number of each key in its round, in the lowest bits; the bits above are ignored.
    pub owners: DeviceVec<u32>,
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
        let Table { bounds, firsts } = &self.tables[place];
        let (mut words, mut owners) = (stream.alloc_uninit(n)?, stream.alloc_uninit(n)?);
        let mut routed = Routed {
            stream: stream.clone(),
            words: stream.alloc_uninit(n)?,
            values: stream.alloc_uninit(values.map_or(0, |_| n))?,
            owners: stream.alloc_uninit(n)?,
            starts: stream.alloc_uninit(bounds.len())?,
        };
        let KeySlice { keys, kind, spread, .. } = keys;
        let (count, route) = (bounds.len() as u32, self.route);
        let bits = NUMBER_BITS..NUMBER_BITS + (u32::BITS - count.leading_zeros()).max(1);
        // SAFETY: there is a place for each key, and `count < MAX_OWNERS`; scratch is freed in the order of the stream;
        // the rest is this function's contract.
        unsafe {
            let (to, bounds) = ((words.global_mut(), owners.global_mut()), bounds.global());
            kernels::exchange_route { keys, kind, spread, n, bounds, count, route, words: to.0, owners: to.1 }
                .launch(stream, covering(stream, n))?;
            let (from, to) = ((owners.as_slice(), words.as_slice()), (&mut routed.owners, &mut routed.words));
            sort::sort_pairs_by_digits_async(stream, from.0, from.1, to.0, to.1, By::ascending().bits(bits))?;
            let (sorted, firsts) = (routed.owners.as_slice(), firsts.as_slice());
            search::lower_bound_async(stream, sorted, firsts, KeyMask::all(), &mut routed.starts)?;
            if let Some(values) = values {
                let (owners, out) = (routed.owners.global(), routed.values.global_mut());
                kernels::exchange_gather { values, owners, n, out }.launch(stream, covering(stream, n))?;
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

//! Grouping of a batch's keys by the owners of their hashes.

use std::ops::Range;

use bytemuck::Pod;
use warpset_gpu::batch::Hashing;
use warpset_gpu::{DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::primitives::exchange::{self as kernels, BLOCK, By, GROUP_BLOCK, Route, Routing, TILE};
use warpset_simt::Global;

use crate::Result;
use crate::look_back::LookBack;

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
    stream: Stream,
    /// Words that travel.
    pub(super) words: DeviceVec<W>,
    /// One at the place of each word, or none.
    values: DeviceVec<u64>,
    /// Place of the answer to each key, or none.
    pub(super) places: DeviceVec<u32>,
    /// Places of each owner's words.
    spans: Spans,
}

/// Ranges of words, which the device computes.
enum Spans {
    /// Number of words of each owner, from a multiple of the stride on.
    Lengths(LookBack),
    /// First place of each owner but the first, one after the other.
    Starts(DeviceVec<u64>),
}

/// Result of a grouping beside the words.
#[derive(Clone, Copy)]
pub(super) enum Beside {
    /// The place of each key, for answers.
    Places,
    /// The keys' values, grouped like the words.
    Values(Global<u64>),
    /// Nothing.
    Nothing,
}

impl Router {
    /// Queues the grouping of `n` keys on the device at `place`.
    ///
    /// # Safety
    /// `keys` are `n` keys of this hashing, `0 < n <= ROUND`, and values as many; until `stream` has passed this work
    /// they stay allocated, and nothing writes them.
    pub(super) unsafe fn route(
        &self,
        stream: &Stream,
        place: usize,
        keys: KeySlice,
        n: usize,
        beside: Beside,
    ) -> Result<Routed> {
        // SAFETY: this function's contract.
        unsafe { Routed::grouped(stream, self.route, self.bounds[place].as_slice(), keys, n, beside) }
    }
}

impl Routed {
    /// Queues the grouping of keys whose owners follow from their values, for a lookup: `bounds` are the least keys of
    /// the owners but the first.
    ///
    /// # Errors
    /// A failed allocation or launch.
    ///
    /// # Safety
    /// There are 1 to 2^26 keys, and bounds ascend, at most 31. Until `stream` has passed this work both stay
    /// allocated, and nothing writes them.
    pub unsafe fn by_value(stream: &Stream, keys: DeviceSlice<'_, u64>, bounds: DeviceSlice<'_, u64>) -> Result<Self> {
        let slice = KeySlice::hashes(keys.global());
        let route = Route { by: By::Hash, parameter: 0 };
        // SAFETY: this function's contract; hashes stay as they are.
        unsafe { Self::grouped(stream, route, bounds, slice, keys.len(), Beside::Places) }
    }

    /// Queues the grouping of `n` keys by owners of the hashes between `bounds`.
    ///
    /// # Safety
    /// The contract of [`Router::route`], also for the bounds.
    unsafe fn grouped(
        stream: &Stream,
        route: Route,
        bounds: DeviceSlice<'_, u64>,
        keys: KeySlice,
        n: usize,
        beside: Beside,
    ) -> Result<Self> {
        let owners = bounds.len() + 1;
        let room = owners * kernels::stride(n);
        let (values, has_places) = match beside {
            Beside::Places => (None, true),
            Beside::Values(values) => (Some(values), false),
            Beside::Nothing => (None, false),
        };
        let columns = values.map_or(0, |_| owners * kernels::column_words(n));
        let mut look_back = LookBack::with_results(stream, columns, owners)?;
        let (columns, ticket, lengths) = (look_back.words(), look_back.ticket(), look_back.results());
        let mut routed = Routed {
            stream: stream.clone(),
            words: stream.alloc_uninit(room)?,
            values: stream.alloc_uninit(values.map_or(0, |_| room))?,
            places: stream.alloc_uninit(if has_places { n } else { 0 })?,
            spans: Spans::Lengths(look_back),
        };
        let KeySlice { keys, kind, spread, .. } = keys;
        let group = kernels::exchange_group {
            of: Routing { kind, spread, n, owners, route },
            keys,
            bounds: bounds.global(),
            has_values: values.is_some().into(),
            values: values.unwrap_or(keys),
            has_places: has_places.into(),
            look_back: columns,
            ticket,
            words: routed.words.global_mut(),
            out_values: routed.values.global_mut(),
            places: routed.places.global_mut(),
            lengths,
        };
        let config = LaunchConfig::covering(n.div_ceil(TILE) * GROUP_BLOCK as usize, GROUP_BLOCK);
        // SAFETY: there is a place for each key, and `owners <= MAX_OWNERS`; the rest is this function's contract.
        unsafe { group.launch(stream, config.shared(kernels::GROUP_SHARED_BYTES))? };
        Ok(routed)
    }
}

impl<W: Pod> Routed<W> {
    /// Queues the places of answers for keys that are sorted, with their numbers; `starts` has the first place of each
    /// owner but the first.
    ///
    /// # Errors
    /// A failed allocation or launch.
    ///
    /// # Safety
    /// - `numbers` is a permutation of the numbers below that of `words`, at most 2^26; `starts` ascend, at most 31,
    ///   and none exceeds the number of words.
    /// - All are written by work that `stream` holds, and freed in its order.
    pub unsafe fn sorted(
        stream: &Stream,
        words: DeviceVec<W>,
        numbers: DeviceSlice<'_, u32>,
        starts: DeviceVec<u64>,
    ) -> Result<Self> {
        let n = words.len();
        let mut places = stream.alloc_uninit(n)?;
        let order = kernels::exchange_places {
            numbers: numbers.global(),
            starts: starts.global(),
            owners: starts.len() + 1,
            n,
            places: places.global_mut(),
        };
        // SAFETY: this function's contract.
        unsafe { order.launch(stream, covering(stream, n))? };
        let (stream, values, spans) = (stream.clone(), stream.alloc_uninit(0)?, Spans::Starts(starts));
        Ok(Self { stream, words, values, places, spans })
    }

    /// Returns the values at these places; none if there are none.
    pub(super) fn values(&self, range: &Range<usize>) -> DeviceSlice<'_, u64> {
        self.values.slice(if self.values.is_empty() { 0..0 } else { range.clone() })
    }

    /// Waits for the grouping, and returns the places of each owner's words. There are `owners`.
    pub(super) fn ranges(&self, owners: usize) -> Result<Vec<Range<usize>>> {
        match &self.spans {
            Spans::Starts(starts) => ranges(&self.stream, starts, self.words.len()),
            Spans::Lengths(counted) => {
                let mut lengths = vec![0; owners];
                counted.download_results(&self.stream, &mut lengths)?;
                let stride = self.words.len() / owners;
                Ok(lengths.iter().enumerate().map(|(i, &n)| i * stride..i * stride + n as usize).collect())
            }
        }
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

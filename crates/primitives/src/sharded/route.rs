//! Grouping of a batch's keys by the owners of their hashes.

use std::ops::Range;

use bytemuck::Pod;
use warpset_gpu::batch::Hashing;
use warpset_gpu::{DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::primitives::exchange::{self as kernels, BLOCK, GROUP_BLOCK, Route, Routing, TILE};
use warpset_simt::Global;

use crate::Result;
use crate::look_back::LookBack;
use crate::radix::{self, Digit};

/// Owners of hashes.
pub struct Router {
    pub(super) hashing: Hashing,
    /// Hash that chooses the owner, and the word that travels.
    pub(super) route: Route,
    /// First hash of each part but the first.
    pub(super) bounds: Vec<u64>,
    /// These hashes in the memory of each device.
    pub(super) bounds_there: Vec<DeviceVec<u64>>,
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
    /// First place of each region: hashes with the same highest bits, as many as these.
    Regions(DeviceVec<u64>, u32),
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
    /// `keys` are `n` keys of this hashing, `0 < n <= 2^26`, or 2^31 without places, and values as many; until `stream`
    /// has passed this work they stay allocated, and nothing writes them.
    pub(super) unsafe fn route(
        &self,
        stream: &Stream,
        place: usize,
        keys: KeySlice,
        n: usize,
        beside: Beside,
    ) -> Result<Routed> {
        // SAFETY: this function's contract.
        unsafe { Routed::grouped(stream, self.route, self.bounds_there[place].as_slice(), keys, n, beside) }
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
        // SAFETY: this function's contract; hashes stay as they are.
        unsafe { Self::grouped(stream, Route::HASH, bounds, slice, keys.len(), Beside::Places) }
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

impl Routed {
    /// Queues the grouping of `n` keys by the `bits` highest bits of their hashes, which are the words that travel.
    ///
    /// # Safety
    /// The contract of [`Router::route`]; `n` is at most 2^31, and the keys are of a kind that can be grouped.
    pub(super) unsafe fn by_region(stream: &Stream, keys: KeySlice, n: usize, bits: u32) -> Result<Self> {
        let mut words = stream.alloc_uninit(n)?;
        // SAFETY: this function's contract; the words are freed in the order of the stream.
        let starts = unsafe { radix::group_async(stream, keys, n, Digit::top(bits)?, words.as_mut_slice())? };
        let (values, places) = (stream.alloc_uninit(0)?, stream.alloc_uninit(0)?);
        Ok(Self { stream: stream.clone(), words, values, places, spans: Spans::Regions(starts, bits) })
    }

    /// Whether the words are grouped by regions.
    pub(super) fn has_regions(&self) -> bool {
        matches!(self.spans, Spans::Regions(..))
    }

    /// Waits for the grouping, and returns the places of each owner's words. Words of a region with several owners are
    /// not among them, but grouped by their owners once more.
    pub(super) fn ranges_apart(&self, router: &Router, owners: usize) -> Result<(Vec<Range<usize>>, Vec<Self>)> {
        let Spans::Regions(starts, bits) = &self.spans else { return Ok((self.ranges(owners)?, Vec::new())) };
        let mut begins = vec![self.words.len() as u64; 1 + (1 << bits)];
        self.stream.download(starts, &mut begins[..1 << bits])?;
        let (own, shared) = owners_of_regions(&begins, &router.bounds);
        let place = router.bounds_there.iter().position(|bounds| bounds.device() == self.words.device());
        let bounds = &router.bounds_there[place.expect("words are on the device of a part")];
        let again = shared.into_iter().map(|range| {
            let (n, words) = (range.len(), KeySlice::hashes(self.words.slice(range).global()));
            // SAFETY: words are freed in the order of the stream, and bounds stay as long as the parts.
            unsafe { Self::grouped(&self.stream, Route::HASH, bounds.as_slice(), words, n, Beside::Nothing) }
        });
        Ok((own, again.collect::<Result<_>>()?))
    }
}

/// Returns the places of the words of each owner, and of each region with several owners, if it has words. Regions
/// begin at `begins`, and the last entry is the end; the words of owners begin at `bounds`.
fn owners_of_regions(begins: &[u64], bounds: &[u64]) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let shift = 64 - (begins.len() - 1).trailing_zeros();
    let places = |regions: Range<u64>| begins[regions.start as usize] as usize..begins[regions.end as usize] as usize;
    let is_shared = |bound: u64| bound & !(!0 << shift) != 0;
    let first = |bound: u64| (bound >> shift) + u64::from(is_shared(bound));
    let begin = [0].into_iter().chain(bounds.iter().map(|&bound| first(bound)));
    let end = bounds.iter().map(|&bound| bound >> shift).chain([begins.len() as u64 - 1]);
    let own = begin.zip(end).map(|(begin, end)| places(begin..end.max(begin))).collect();
    let mut shared: Vec<u64> = bounds.iter().filter(|&&bound| is_shared(bound)).map(|&bound| bound >> shift).collect();
    shared.dedup();
    (own, shared.into_iter().map(|region| places(region..region + 1)).filter(|range| !range.is_empty()).collect())
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
            Spans::Regions(..) => unreachable!("regions have no owners"),
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

#[cfg(test)]
mod tests {
    use warpset_core::hash;

    use super::*;

    #[test]
    fn regions_are_divided_among_owners() {
        let bound_lists = [
            vec![],
            vec![1 << 63],
            vec![(1 << 63) + 1],
            vec![1, 2, u64::MAX],
            vec![1 << 61, (1 << 61) + 5, 1 << 62, 3 << 62],
            (1..8).map(|i| i * (u64::MAX / 8)).collect(),
        ];
        for (bounds, bits, n) in bound_lists.iter().flat_map(|bounds| [1, 3, 8].map(|bits| (bounds, bits, 1_000))) {
            let near = bounds.iter().flat_map(|&bound| [bound - 1, bound]);
            let mut hashes: Vec<u64> = (0..n).map(|i| hash::mix(i, bits)).chain(near).collect();
            hashes.sort_unstable();
            let begins: Vec<u64> = (0..=1u128 << bits)
                .map(|region| hashes.partition_point(|&hash| u128::from(hash) < region << (64 - bits)) as u64)
                .collect();
            let (own, shared) = owners_of_regions(&begins, bounds);
            assert_eq!(own.len(), bounds.len() + 1);
            let owner = |hash: u64| bounds.partition_point(|&bound| bound <= hash);
            for (i, range) in own.iter().enumerate() {
                assert!(hashes[range.clone()].iter().all(|&hash| owner(hash) == i), "{bounds:x?}, {bits}: {own:?}");
            }
            let mut places: Vec<usize> = own.iter().chain(&shared).cloned().flatten().collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..hashes.len()), "{bounds:x?}, {bits}: {own:?}, {shared:?}");
        }
    }
}

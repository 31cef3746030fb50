//! Counts and lists of ranges on devices.
//!
//! The kernels depend on the available search data: an interleaving order, the visibility of elements, or neither.
//! First the elements of each range are counted, then all are listed.

use warpset_core::scan::Sum;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::lsm::count::{self, lsm_count};
use warpset_kernels::lsm::groups;
use warpset_kernels::lsm::list::{lsm_list, lsm_list_located, lsm_list_long, lsm_list_tasks, lsm_owners};
use warpset_kernels::lsm::order::LONG_WORDS;
use warpset_kernels::lsm::ordering::lsm_order_queries;
use warpset_kernels::lsm::spans::{lsm_locate, lsm_spans};
use warpset_kernels::lsm::visibility;
use warpset_primitives::scan::exclusive_in_place_async;
use warpset_simt::LaunchConfig;

use crate::Error;
use crate::gpu::index::search_index::Sight;
use crate::gpu::query::DeviceRanges;
use crate::gpu::query::range_chunks::room_for;
use crate::gpu::wide_values::AnswerBuffer;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary};

/// Fewest elements of a tree for which the lengths of ranges are examined.
const FEW: u64 = 1 << 16;
/// Elements of a range that a warp scans in about the time of a lookup.
const ELEMENTS_PER_LOOKUP: usize = 8;
/// Blocks per multiprocessor of kernels for ranges; grid-stride.
const BLOCKS: u32 = 8;
/// Largest number of words in which counting keeps its results for listing.
const MOST_KEPT: usize = 1 << 26;
/// Place in [`Kept::totals`] of the number of long queries and of their tasks. Their elements follow; the number of all
/// results comes before.
const LONG_COUNT: usize = 1;

/// Results of counting that listing uses.
pub(in crate::gpu) struct Kept {
    /// With an order, one word per query; otherwise one per query and level, unless that would be too many.
    spans: Option<DeviceVec<u64>>,
    /// Queries with more elements than a warp has lanes.
    long: DeviceVec<u64>,
    /// Numbers that the host needs.
    totals: DeviceVec<u64>,
}

/// Counts of queries, and the data that listing needs besides.
struct Counted {
    /// Prefix sums of the counts, with the number of all elements at the end.
    offsets: DeviceVec<u64>,
    kept: Kept,
    totals: [u64; 3],
}

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Notes these ranges of a call that waits, and prepares the tree if that pays off: for many ranges, or many
    /// elements in them. A range whose elements are not known to be visible is processed by one warp, however long it
    /// is.
    pub(in crate::gpu) fn prepare_for_ranges(
        &self,
        stream: &Stream,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
    ) -> Result<(), Error> {
        let n = lows.len();
        self.prepare_for(n)?;
        self.prepare_order_for(n as u64)?;
        let sight = self.sight();
        let is_open = n > 0 && !sight.is_known() && self.indexed.get().is_none() && self.resident_len() >= FEW;
        if !is_open {
            return Ok(());
        }
        for device in [lows.device(), highs.device()] {
            self.device.expect_same(device, "ranges in a dictionary")?;
        }
        let mut counts = stream.alloc_uninit::<u64>(n + 1)?;
        let mut total = [0];
        stream.fill_bytes(counts.slice_mut(n..), 0)?;
        let (lows, highs, out) = (lows.global(), highs.global(), counts.global_mut());
        // SAFETY: the table is of these levels, and there are as many ends and counts as ranges; nothing is kept.
        unsafe {
            let Sight { table, levels, .. } = sight;
            #[rustfmt::skip]
            let kernel = lsm_spans {
                table, levels, visible: table, all: 1, lows, highs, n, counts: out, keep: 0, spans: out, list: 0, long: out,
                long_count: out,
            };
            kernel.launch(stream, self.warps_for(n))?;
            exclusive_in_place_async::<Sum<u64>>(stream, counts.as_mut_slice())?;
        }
        stream.download(counts.slice(n..), &mut total)?;
        self.prepare_for(total[0] as usize / ELEMENTS_PER_LOOKUP)
    }

    /// Queues counting by the available search data; `kept` takes the results that a list needs besides.
    ///
    /// # Safety
    /// The contract of [`Dictionary::count_range_async`], with checked lengths; the memory of `kept` suffices for these
    /// queries.
    pub(in crate::gpu) unsafe fn queue_count(
        &self,
        stream: &Stream,
        sight: &Sight<'_>,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
        mut counts: DeviceSliceMut<'_, u64>,
        kept: Option<&mut Kept>,
    ) -> Result<(), Error> {
        let n = lows.len();
        if n == 0 {
            return Ok(());
        }
        let Sight { table, levels, visible, known, .. } = *sight;
        let counts = counts.global_mut();
        // Without `kept`, nothing is written to these.
        let (mut list, mut keep, mut spans, mut long, mut long_count) = (0, 0, counts, counts, counts);
        if let Some(kept) = kept {
            list = sight.listing();
            (long, long_count) = (kept.long.global_mut(), kept.totals.global_mut().at(LONG_COUNT));
            if let Some(kept) = &mut kept.spans {
                (keep, spans) = (1, kept.global_mut());
            }
        }
        let (lows, highs) = (lows.global(), highs.global());
        // SAFETY: the table and the order are those of these levels; the rest is the contract of this function.
        unsafe {
            if let Some(order) = sight.order {
                let (order, located) = (order.table, spans);
                #[rustfmt::skip]
                let kernel = lsm_locate {
                    table, order, lows, highs, n, counts, keep, located, list, long, long_count,
                };
                kernel.launch(stream, self.threads_for(n))?;
            } else if sight.is_known() {
                let all = (known == visibility::ALL).into();
                #[rustfmt::skip]
                let kernel = lsm_spans {
                    table, levels, visible, all, lows, highs, n, counts, keep, spans, list, long, long_count,
                };
                kernel.launch(stream, self.warps_for(n))?;
            } else {
                #[rustfmt::skip]
                let kernel = lsm_count {
                    table, levels, lows, highs, n, counts, spans, keep, list, long, long_count,
                };
                kernel.launch(stream, self.warps_for(n).shared(count::SHARED_BYTES))?;
            }
        }
        Ok(())
    }

    /// Counts, and computes prefix sums. Waits for the stream.
    ///
    /// # Safety
    /// The contract of [`Dictionary::list`].
    unsafe fn counted(
        &self,
        stream: &Stream,
        sight: &Sight<'_>,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
    ) -> Result<Counted, Error> {
        let n = lows.len();
        let words = if sight.order.is_some() { n } else { n * self.levels.len() };
        let is_kept = sight.order.is_some() || words <= MOST_KEPT;
        let mut offsets = stream.alloc_uninit::<u64>(n + 1)?;
        let mut kept = Kept {
            spans: if is_kept { Some(stream.alloc_uninit(words)?) } else { None },
            long: stream.alloc_uninit(n * LONG_WORDS)?,
            totals: stream.alloc_zeroed(3)?,
        };
        stream.fill_bytes(offsets.slice_mut(n..), 0)?;
        // SAFETY: the offsets are new, with a place for each count and one more; the rest is the contract of this
        // function.
        unsafe {
            self.queue_count(stream, sight, lows, highs, offsets.slice_mut(..n), Some(&mut kept))?;
            exclusive_in_place_async::<Sum<u64>>(stream, offsets.as_mut_slice())?;
        }
        stream.copy(kept.totals.slice_mut(..LONG_COUNT), offsets.slice(n..))?;
        let mut totals = [0; 3];
        stream.download(&kept.totals, &mut totals)?;
        Ok(Counted { offsets, kept, totals })
    }

    /// Counts, computes prefix sums, and queues the listing. Waits for the stream in between.
    ///
    /// # Safety
    /// The contract of [`Dictionary::count_range_async`], with checked lengths; nothing else accesses the result before
    /// the stream has passed.
    pub(in crate::gpu) unsafe fn list(
        &self,
        stream: &Stream,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
    ) -> Result<DeviceRanges<K, V>, Error> {
        let n = lows.len();
        let mut sight = self.sight();
        // SAFETY: the contract of this function.
        let mut counted = unsafe { self.counted(stream, &sight, lows, highs)? };
        if counted.totals[2] != 0 && self.prepare_order_for(counted.totals[2])? {
            sight = self.sight();
            // SAFETY: as above.
            counted = unsafe { self.counted(stream, &sight, lows, highs)? };
        }
        let Counted { offsets, kept, totals } = counted;
        let total = totals[0] as usize;
        let (long_len, tasks) = ((totals[LONG_COUNT] >> 32) as u32, totals[LONG_COUNT] as u32);
        let (mut to_keys, mut to_values) = room_for::<K::Stored, V>(stream, total)?;
        if total != 0 {
            let Sight { table, levels, visible, known, order } = sight;
            let (lows, highs) = (lows.global(), highs.global());
            let mut answers = AnswerBuffer::<V>::new(stream, to_values.as_mut_slice())?;
            let (keys, values, value_words) = (to_keys.global_mut(), answers.global_mut(), V::WORDS);
            // Without kept spans, nothing is read from these.
            let (spans, long) = (kept.spans.as_ref().unwrap_or(&offsets).global(), kept.long.global());
            let (kept, offsets) = (kept.spans.is_some().into(), offsets.global());
            let mut owners = stream.alloc_uninit::<u32>(if tasks == long_len { 0 } else { tasks as usize })?;
            let mut own = stream.alloc_uninit::<u64>(if tasks == 0 { totals[2] as usize } else { 0 })?;
            let long_config = self.warps_for(if tasks == 0 { long_len } else { tasks } as usize);
            // SAFETY: the outputs are new and have the length of the summed counts. An order is that of the tree, or
            // made for these queries, with a word for each of their elements. The rest is the contract of this
            // function.
            unsafe {
                if tasks > long_len {
                    lsm_owners { long, long_len, tasks, owners: owners.global_mut() }
                        .launch(stream, LaunchConfig::covering(long_len as usize * 32, groups::BLOCK))?;
                }
                let owners = owners.global();
                if let Some(order) = order {
                    let (order, located) = (order.table, spans);
                    lsm_list_located { table, order, located, n, offsets, keys, values, value_words }
                        .launch(stream, self.threads_for(n))?;
                    if long_len != 0 {
                        #[rustfmt::skip]
                        let kernel = lsm_list_tasks {
                            table, order, located, long, long_len, tasks, owners, offsets, keys, values, value_words,
                        };
                        kernel.launch(stream, long_config)?;
                    }
                } else {
                    #[rustfmt::skip]
                    let kernel = lsm_list {
                        table, levels, visible, known, lows, highs, n, spans, kept, offsets, keys, values, value_words,
                    };
                    kernel.launch(stream, self.warps_for(n))?;
                    if tasks == 0 && long_len != 0 {
                        let order = own.global_mut();
                        #[rustfmt::skip]
                        let kernel = lsm_order_queries {
                            table, levels, visible, known, lows, highs, spans, kept, long, long_len, order,
                        };
                        kernel.launch(stream, long_config)?;
                    }
                    if long_len != 0 {
                        let order = own.global();
                        #[rustfmt::skip]
                        let kernel = lsm_list_long {
                            table, levels, visible, known, lows, highs, spans, kept, long, long_len, tasks, owners, order,
                            offsets, keys, values, value_words,
                        };
                        kernel.launch(stream, long_config)?;
                    }
                }
                answers.finish(stream)?;
            }
        }
        Ok(DeviceRanges { offsets, keys: to_keys, values: to_values })
    }

    /// Returns a launch of one thread for each of `n` queries.
    fn threads_for(&self, n: usize) -> LaunchConfig {
        self.warps_for(n.div_ceil(32))
    }

    /// Returns a launch of one warp for each of `n` queries.
    fn warps_for(&self, n: usize) -> LaunchConfig {
        let most = self.device.properties().multiprocessors * BLOCKS;
        LaunchConfig::new(n.div_ceil(groups::WARPS as usize).min(most as usize) as u32, groups::BLOCK)
    }
}

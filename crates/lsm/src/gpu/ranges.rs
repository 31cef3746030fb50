//! How ranges are counted and listed: by what is known of the tree, first how many elements each has, then all of them.

use warpset_core::scan::Sum;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::lsm::groups;
use warpset_kernels::lsm::list::{self, lsm_list, lsm_list_parts};
use warpset_kernels::lsm::parts::LONG_WORDS;
use warpset_kernels::lsm::range::{self, lsm_count, lsm_range};
use warpset_kernels::lsm::spans::lsm_spans;
use warpset_primitives::scan::exclusive_in_place_async;
use warpset_simt::LaunchConfig;

use super::pieces::room_for;
use super::query::DeviceRanges;
use super::rows::Answers;
use super::search_index::Sight;
use super::{DeviceKey, DeviceValue, Dictionary};
use crate::Error;

/// A tree of fewer elements is not looked into for long ranges.
const FEW: u64 = 1 << 16;
/// A warp goes through that many elements of a range about as fast as a lookup takes.
const ELEMENTS_PER_LOOKUP: usize = 8;
/// Blocks of [`lsm_count`] and [`lsm_range`] for each multiprocessor; they go on in strides.
const BLOCKS: u32 = 8;
/// What counting finds of the levels is kept for listing, if it takes no more words than this.
const MOST_KEPT: usize = 1 << 26;
/// Where [`Kept::totals`] has the number of long queries and that of their parts; before it, that of all results.
const LONG_COUNT: usize = 1;

/// What counting finds, for listing.
pub(super) struct Kept {
    /// One word for each query and level, unless that would be too many.
    spans: Option<DeviceVec<u64>>,
    /// The queries that are listed by parts.
    long: DeviceVec<u64>,
    /// Numbers that the host needs.
    totals: DeviceVec<u64>,
}

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Notes that a call that waits asks for these ranges, and prepares the tree if that pays: if there are many
    /// ranges, or many elements in them. One warp goes through a range whose elements are not known to be visible,
    /// however long it is.
    pub(super) fn prepare_for_ranges(
        &self,
        stream: &Stream,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
    ) -> Result<(), Error> {
        let n = lows.len();
        self.prepare_for(n)?;
        let Sight { table, visible, .. } = self.sight();
        let is_open = n > 0 && visible.is_none() && self.indexed.get().is_none() && self.resident_len() >= FEW;
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
            #[rustfmt::skip]
            let kernel = lsm_spans {
                table, levels: self.levels.len() as u32, visible: table, all: 1, lows, highs, n,
                counts: out, keep: 0, spans: out, list: 0, long: out, long_count: out,
            };
            kernel.launch(stream, self.warps_for(n))?;
            exclusive_in_place_async::<Sum<u64>>(stream, counts.as_mut_slice())?;
        }
        stream.download(counts.slice(n..), &mut total)?;
        self.prepare_for(total[0] as usize / ELEMENTS_PER_LOOKUP)
    }

    /// Counts by what is known of the tree; `kept` takes what a list needs besides.
    ///
    /// # Safety
    /// As for [`Dictionary::count_range_async`], lengths checked; what is kept has room for these queries.
    pub(super) unsafe fn queue_count(
        &self,
        stream: &Stream,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
        mut counts: DeviceSliceMut<'_, u64>,
        kept: Option<&mut Kept>,
    ) -> Result<(), Error> {
        let n = lows.len();
        if n == 0 {
            return Ok(());
        }
        let Sight { table, visible, .. } = self.sight();
        let (counts, levels) = (counts.global_mut(), self.levels.len() as u32);
        let list = kept.is_some().into();
        // Nothing is written there if nothing is kept.
        let (mut keep, mut spans, mut long, mut long_count) = (0, counts, counts, counts);
        if let Some(kept) = kept {
            (long, long_count) = (kept.long.global_mut(), kept.totals.global_mut().at(LONG_COUNT));
            if let Some(kept) = &mut kept.spans {
                (keep, spans) = (1, kept.global_mut());
            }
        }
        let (lows, highs) = (lows.global(), highs.global());
        // SAFETY: the table is of these levels; the caller answers for the rest.
        unsafe {
            match visible {
                Some((visible, all)) => {
                    let all = all.into();
                    #[rustfmt::skip]
                    let kernel = lsm_spans {
                        table, levels, visible, all, lows, highs, n, counts, keep, spans, list, long, long_count,
                    };
                    kernel.launch(stream, self.warps_for(n))?;
                }
                None => {
                    let kernel = lsm_count { table, levels, lows, highs, n, counts, spans, keep };
                    kernel.launch(stream, self.warps_for(n).shared(range::COUNT_SHARED_BYTES))?;
                }
            }
        }
        Ok(())
    }

    /// Counts, adds up, and lists. Waits for the stream in between.
    ///
    /// # Safety
    /// As for [`Dictionary::count_range_async`], lengths checked; nothing else is done with the result before the
    /// stream has passed.
    pub(super) unsafe fn list(
        &self,
        stream: &Stream,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
    ) -> Result<DeviceRanges<K, V>, Error> {
        let n = lows.len();
        let mut offsets = stream.alloc_uninit::<u64>(n + 1)?;
        let Sight { table, visible, .. } = self.sight();
        let words = n * self.levels.len();
        let mut kept = Kept {
            spans: if words <= MOST_KEPT { Some(stream.alloc_uninit(words)?) } else { None },
            long: stream.alloc_uninit(if visible.is_some() { n * LONG_WORDS } else { 0 })?,
            totals: stream.alloc_zeroed(2)?,
        };
        stream.fill_bytes(offsets.slice_mut(n..), 0)?;
        // SAFETY: the offsets are new, with a place for each count and one more; the caller answers for the rest.
        unsafe {
            self.queue_count(stream, lows, highs, offsets.slice_mut(..n), Some(&mut kept))?;
            exclusive_in_place_async::<Sum<u64>>(stream, offsets.as_mut_slice())?;
        }
        stream.copy(kept.totals.slice_mut(..LONG_COUNT), offsets.slice(n..))?;
        let mut totals = [0; 2];
        stream.download(&kept.totals, &mut totals)?;
        let (total, long) = (totals[0] as usize, totals[LONG_COUNT]);
        let (mut keys, mut values) = room_for::<K::Stored, V>(stream, total)?;
        if total != 0 {
            let levels = self.levels.len() as u32;
            let (lows, highs) = (lows.global(), highs.global());
            // Nothing is read there if none are kept.
            let (is_kept, spans) = (kept.spans.is_some().into(), kept.spans.as_ref().unwrap_or(&offsets).global());
            let mut answers = Answers::<V>::new(stream, values.as_mut_slice())?;
            let (to_keys, to_values, value_words) = (keys.global_mut(), answers.global_mut(), V::WORDS);
            let offsets = offsets.global();
            // SAFETY: the outputs are new and as long as the counts add up to; the caller answers for the rest.
            unsafe {
                let (keys, values) = (to_keys, to_values);
                let (kept, long_list) = (is_kept, &kept.long);
                if let Some((visible, all)) = visible {
                    let all = all.into();
                    let (long_len, parts) = ((long >> 32) as u32, long as u32);
                    #[rustfmt::skip]
                    let kernel = lsm_list {
                        table, levels, visible, all, lows, highs, n, spans, kept, offsets, keys, values, value_words,
                    };
                    kernel.launch(stream, self.warps_for(n))?;
                    if parts != 0 {
                        let long = long_list.global();
                        #[rustfmt::skip]
                        let kernel = lsm_list_parts {
                            table, levels, visible, all, lows, highs, spans, kept, long, long_len, parts, offsets, keys, values,
                            value_words,
                        };
                        kernel
                            .launch(stream, self.warps_for(parts as usize).shared(list::shared_bytes::<K::Stored>()))?;
                    }
                } else {
                    #[rustfmt::skip]
                    let kernel = lsm_range {
                        table, levels, lows, highs, n, spans, kept, offsets, keys, values, value_words,
                    };
                    kernel.launch(stream, self.warps_for(n).shared(range::range_shared_bytes::<K::Stored>()))?;
                }
                answers.finish(stream)?;
            }
        }
        Ok(DeviceRanges { offsets, keys, values })
    }

    /// Warps for `n` queries.
    fn warps_for(&self, n: usize) -> LaunchConfig {
        let most = self.device.properties().multiprocessors * BLOCKS;
        LaunchConfig::new(n.div_ceil(groups::WARPS as usize).min(most as usize) as u32, groups::BLOCK)
    }
}

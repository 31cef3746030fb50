//! Fingerprints with their numbers of copies, on a device: input and output of filters with counters.
//!
//! Batches, set operations and bounds on counts go the same way: stored fingerprints are extracted, combined with
//! ascending others, and laid out again. A fingerprint is one item, however many copies it has.

use warpset_gpu::{DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::counts::{
    BLOCK, Saturating, TOTAL_SHARED_BYTES, histogram_shared_bytes, quotient_counts_bound, quotient_counts_check,
    quotient_counts_combine, quotient_counts_histogram, quotient_counts_repeat, quotient_counts_total,
};
use warpset_primitives::merge::Pairs;
use warpset_primitives::reduce::{Sum, reduce_by_key_async, run_length_encode_async};
use warpset_primitives::{KeyMask, merge, scan, sort};

use super::fingerprints::{Fingerprints, with_width, with_widths};
use super::launch::grid;
use crate::{Error, Layout};

pub(crate) use warpset_kernels::quotient::counts::{DIFFERENCE, SMALLER};

/// Ascending fingerprints, each once, with their copies. A fingerprint with zero copies is absent.
pub struct CountedFingerprints {
    /// Fingerprints; the vector may be longer.
    pub fingerprints: Fingerprints,
    /// Copies of each.
    pub copies: DeviceVec<u64>,
    /// Number of fingerprints.
    pub len: usize,
}

impl CountedFingerprints {
    /// Counts equal neighbours of ascending fingerprints. Waits.
    pub(crate) fn of_sorted(
        layout: &Layout,
        stream: &Stream,
        sorted: &Fingerprints,
    ) -> Result<CountedFingerprints, Error> {
        let n = sorted.len();
        let mut fingerprints = Fingerprints::alloc(layout, stream, n)?;
        let mut copies = stream.alloc_uninit::<u64>(n)?;
        let mut runs = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: all vectors are apart, and freed in the order of the stream.
        with_widths!((sorted, &mut fingerprints), |items, out| unsafe {
            let (copies, runs) = (copies.as_mut_slice(), runs.as_mut_slice());
            run_length_encode_async(stream, items.as_slice(), out.as_mut_slice(), copies, runs)?;
        });
        CountedFingerprints { fingerprints, copies, len: n }.truncated(stream, &runs)
    }

    /// Combines fingerprints in any order with copies of each; equal ones are added up. Waits.
    pub(crate) fn of_pairs(
        layout: &Layout,
        stream: &Stream,
        mut fingerprints: Fingerprints,
        mut copies: DeviceVec<u64>,
    ) -> Result<CountedFingerprints, Error> {
        let len = fingerprints.len();
        if len > 0 {
            let by = sort::By::ascending().bits(0..layout.fingerprint_bits());
            // SAFETY: the vectors are this call's to change, and freed in the order of the stream.
            with_width!(&mut fingerprints, |items| unsafe {
                sort::sort_pairs_in_place_async(stream, items.as_mut_slice(), copies.as_mut_slice(), by)
            })?;
        }
        CountedFingerprints { fingerprints, copies, len }.reduced(layout, stream)
    }

    /// Checks fingerprints on the device that the caller has counted. Waits.
    ///
    /// # Errors
    /// [`Error::NotAscending`] if they do not ascend, or one has no copies.
    pub(crate) fn given(
        layout: &Layout,
        stream: &Stream,
        fingerprints: DeviceSlice<'_, u64>,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<CountedFingerprints, Error> {
        let n = fingerprints.len();
        let mut checked = Fingerprints::alloc(layout, stream, n)?;
        let mut own = stream.alloc_uninit::<u64>(n)?;
        if n > 0 {
            stream.copy(&mut own, copies)?;
            let mut broken = stream.from_slice(&[u64::MAX])?;
            let (last, first) = (layout.last_fingerprint(), broken.global_mut());
            // SAFETY: there is a place for each; the caller's slices are borrowed until the result has been waited for.
            with_width!(&mut checked, |out| unsafe {
                let (fingerprints, copies, out) = (fingerprints.global(), copies.global(), out.global_mut());
                quotient_counts_check { fingerprints, copies, n, last, out, broken: first }.launch(stream, grid(n))?;
            });
            let mut place = [0];
            stream.download(&broken, &mut place)?;
            if place[0] != u64::MAX {
                let (at, mut fingerprint) = (place[0] as usize, [0]);
                stream.download(fingerprints.slice(at..at + 1), &mut fingerprint)?;
                return Err(Error::NotAscending { fingerprint: fingerprint[0] });
            }
        }
        Ok(CountedFingerprints { fingerprints: checked, copies: own, len: n })
    }

    /// Combines equal neighbours. Waits.
    pub(crate) fn reduced(&self, layout: &Layout, stream: &Stream) -> Result<CountedFingerprints, Error> {
        let n = self.len;
        let mut fingerprints = Fingerprints::alloc(layout, stream, n)?;
        let mut copies = stream.alloc_uninit::<u64>(n)?;
        let mut runs = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: all vectors are apart, and freed in the order of the stream.
        with_widths!((&self.fingerprints, &mut fingerprints), |items, out| unsafe {
            reduce_by_key_async::<Saturating, _>(
                stream,
                items.slice(..n),
                self.copies.slice(..n),
                out.as_mut_slice(),
                copies.as_mut_slice(),
                runs.as_mut_slice(),
            )?;
        });
        CountedFingerprints { fingerprints, copies, len: n }.truncated(stream, &runs)
    }

    /// Truncates to the length in `runs`. Waits.
    pub(crate) fn truncated(self, stream: &Stream, runs: &DeviceVec<u64>) -> Result<CountedFingerprints, Error> {
        let mut len = [0];
        stream.download(runs, &mut len)?;
        Ok(CountedFingerprints { len: (len[0] as usize).min(self.len), ..self })
    }

    /// Merges two lists and adds their copies. Waits.
    pub(crate) fn merged(
        &self,
        other: &CountedFingerprints,
        layout: &Layout,
        stream: &Stream,
    ) -> Result<CountedFingerprints, Error> {
        let (n, m) = (self.len, other.len);
        let mut fingerprints = Fingerprints::alloc(layout, stream, n + m)?;
        let mut copies = stream.alloc_uninit::<u64>(n + m)?;
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        with_widths!((&self.fingerprints, &other.fingerprints, &mut fingerprints), |a, b, out| unsafe {
            let a = Pairs::new(a.slice(..n), self.copies.slice(..n));
            let b = Pairs::new(b.slice(..m), other.copies.slice(..m));
            merge::merge_pairs_async(stream, a, b, KeyMask::all(), out.as_mut_slice(), copies.as_mut_slice())?;
        });
        CountedFingerprints { fingerprints, copies, len: n + m }.reduced(layout, stream)
    }

    /// Queues the combination of these and others by [`DIFFERENCE`] or [`SMALLER`].
    pub(crate) fn combine(
        &mut self,
        stream: &Stream,
        others: &CountedFingerprints,
        combination: u32,
    ) -> Result<(), Error> {
        let (n, m, of_others) = (self.len, others.len, others.copies.global());
        if n > 0 {
            let copies = self.copies.global_mut();
            // SAFETY: both ascend, and are freed in the order of the stream; the copies are this call's to change.
            with_widths!((&self.fingerprints, &others.fingerprints), |ours, theirs| unsafe {
                let (fingerprints, others) = (ours.global(), theirs.global());
                quotient_counts_combine { fingerprints, copies, n, others, of_others, m, combination }
                    .launch(stream, grid(n))?;
            });
        }
        Ok(())
    }

    /// Queues the removal of fingerprints with fewer copies than `least`, and of all copies above `most`.
    pub(crate) fn bound(&mut self, stream: &Stream, least: u64, most: u64) -> Result<(), Error> {
        let n = self.len;
        if n > 0 {
            // SAFETY: the copies are this call's to change, and freed in the order of the stream.
            unsafe {
                quotient_counts_bound { copies: self.copies.global_mut(), n, least, most }.launch(stream, grid(n))?;
            }
        }
        Ok(())
    }

    /// Returns the number of all copies. Waits.
    pub(crate) fn total(&self, stream: &Stream) -> Result<u128, Error> {
        total(stream, self.copies.slice(..self.len))
    }

    /// Repeats each fingerprint as often as it has copies, in words of its width, `total` together. Waits.
    pub(crate) fn repeated(&self, layout: &Layout, stream: &Stream, total: usize) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, total)?;
        with_widths!((&self.fingerprints, &mut all), |items, out| {
            if total > 0 {
                let mut before = stream.alloc_uninit::<u64>(self.len)?;
                // SAFETY: there are that many copies, and as many places; all vectors are freed in the order of the
                // stream.
                unsafe {
                    scan::exclusive_async::<Sum<u64>>(stream, self.copies.slice(..self.len), before.as_mut_slice())?;
                    let (fingerprints, runs, out) = (items.global(), self.len, out.global_mut());
                    quotient_counts_repeat { fingerprints, before: before.global(), runs, out, n: total }
                        .launch(stream, grid(total))?;
                }
            }
        });
        Ok(all)
    }

    /// Adds the numbers of fingerprints by number of copies to zeros; the last entry also counts those with more.
    /// Waits.
    pub(crate) fn histogram(&self, stream: &Stream, counted: &mut [u64]) -> Result<(), Error> {
        let entries = counted.len();
        if self.len > 0 {
            let mut histogram = stream.alloc_zeroed::<u64>(entries)?;
            let shared = histogram_shared_bytes(entries.min(1 << 20) as u32);
            let (copies, n, entries) = (self.copies.global(), self.len, entries as u64);
            // SAFETY: entries are zero and this launch's own; both vectors live until the copy has been waited for.
            unsafe {
                quotient_counts_histogram { copies, n, histogram: histogram.global_mut(), entries }
                    .launch(stream, few_blocks(stream, n).shared(shared))?;
            }
            stream.download(&histogram, counted)?;
        }
        Ok(())
    }
}

/// Sums numbers of copies. Waits.
pub(crate) fn total(stream: &Stream, copies: DeviceSlice<'_, u64>) -> Result<u128, Error> {
    let mut halves = [0; 2];
    let n = copies.len();
    if n > 0 {
        let mut sums = stream.alloc_zeroed::<u64>(2)?;
        // SAFETY: the sums are zero and this launch's own; the copies are borrowed until they have been waited for.
        unsafe {
            quotient_counts_total { copies: copies.global(), n, sums: sums.global_mut() }
                .launch(stream, few_blocks(stream, n).shared(TOTAL_SHARED_BYTES))?;
        }
        stream.download(&sums, &mut halves)?;
    }
    Ok(halves_of(halves[0], halves[1]))
}

/// Combines the sums of the low and of the high halves of numbers.
pub(crate) fn halves_of(low: u64, high: u64) -> u128 {
    low as u128 + ((high as u128) << 32)
}

/// Returns as many thread blocks as are busy at a time, or fewer; threads take several of `n` items.
fn few_blocks(stream: &Stream, n: usize) -> LaunchConfig {
    let most = stream.device().properties().multiprocessors as usize * 8;
    LaunchConfig::new(n.div_ceil(BLOCK as usize).min(most) as u32, BLOCK)
}

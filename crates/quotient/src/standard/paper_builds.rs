//! Ways to build a filter, and the paper's own, step by step: the definitions that the device's kernels are held to.
//!
//! Source: section IV-C, algorithms 4, 5 and 6 of Geil, Farach-Colton, Owens, IPDPS 2018. Loops over threads are loops
//! here; that is slower than [`BuildMethod::Scan`], and gives the same bytes.

use warpset_base::words::AlignedWords;
use warpset_core::quotient::slots::Appender;
use warpset_core::quotient::standard as core;
use warpset_kernels::quotient::papers::builds::segments;

use crate::cpu::fingerprints::sorted_fingerprints;
use crate::cpu::rewrite::{check_fit, lay_out};
use crate::cpu::source::Sorted;
use crate::{Error, Key, Layout, StandardBuilder, StandardQuotientFilter};

/// How a filter is built from keys, after they were hashed and sorted. All give the same bytes.
///
/// Measured rates of each on a GPU are in `docs/performance/quotient.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuildMethod {
    /// Ours: what some items do to the first free slot is a function, such functions compose, and an associative scan
    /// of them gives each item its slot in one pass.
    #[default]
    Scan,
    /// Algorithm 4: segments, at first one per run, are merged in pairs until there is one.
    ParallelMerging,
    /// Algorithm 5: each run that the one before it reaches into moves, until there is none.
    SequentialShifting,
    /// Algorithm 6: segments of `q` slots are laid out on their own, and again after what reached into them, until
    /// nothing changes.
    SegmentedLayouts,
    /// Algorithm 3 from an empty filter: in each round one fingerprint is inserted into each supercluster; on the host,
    /// one after the other. Filters of 2^32 slots and more are built by [`BuildMethod::Scan`] instead.
    SuperclusterInserts,
}

impl BuildMethod {
    /// All build methods.
    pub const ALL: [BuildMethod; 5] = [
        BuildMethod::Scan,
        BuildMethod::ParallelMerging,
        BuildMethod::SequentialShifting,
        BuildMethod::SegmentedLayouts,
        BuildMethod::SuperclusterInserts,
    ];
}

impl StandardBuilder {
    /// [`Builder::build_from`](crate::Builder::build_from) by a method of choice; all give the same bytes. The paper's
    /// are executed step by step, on this thread.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`](crate::Builder::build_from).
    pub fn build_from_with<K: Key>(&self, keys: &[K], method: BuildMethod) -> Result<StandardQuotientFilter, Error> {
        let layout = self.layout()?;
        let mut sorted = sorted_fingerprints(&layout, keys)?;
        if method == BuildMethod::Scan {
            return lay_out(layout, &Sorted(&sorted));
        }
        if !layout.keeps_duplicates() {
            sorted.dedup();
        }
        let after = |free, &fingerprint: &u64| core::place(free, layout.split.quotient(fingerprint)) + 1;
        check_fit(&layout, sorted.len() as u64, sorted.iter().fold(0, after))?;
        if method == BuildMethod::SuperclusterInserts {
            let mut filter = StandardQuotientFilter::with_layout(layout)?;
            for fingerprint in sorted {
                filter.insert_fingerprint(fingerprint)?;
            }
            return Ok(filter);
        }
        write(method, layout, &sorted)
    }
}

/// A filter of ascending fingerprints, which fit: slots are found first, and then written.
fn write(method: BuildMethod, layout: Layout, sorted: &[u64]) -> Result<StandardQuotientFilter, Error> {
    let split = layout.split;
    let quotients: Vec<u64> = sorted.iter().map(|&fingerprint| split.quotient(fingerprint)).collect();
    let slots = match method {
        BuildMethod::ParallelMerging => parallel_merging(&quotients),
        BuildMethod::SequentialShifting => sequential_shifting(&quotients),
        _ => segmented_layouts(&quotients, layout.quotient_bits()),
    };
    let mut words = AlignedWords::zeroed(layout.words())?;
    let mut target = Appender::new(words.as_mut_slice(), layout.container, split.remainder_bits);
    for (i, (&quotient, &slot)) in quotients.iter().zip(&slots).enumerate() {
        let follows = i > 0 && quotients[i - 1] == quotient;
        if !follows {
            target.occupy(quotient);
        }
        target.item(slot, core::item_metadata(slot, quotient, follows), split.remainder(sorted[i]));
    }
    target.finish();
    Ok(StandardQuotientFilter::from_parts(layout, words, sorted.len() as u64))
}

/// Where each run begins, and the slots of the items if nothing stood before their runs.
fn unshifted(quotients: &[u64]) -> (Vec<usize>, Vec<u64>) {
    let mut starts = Vec::new();
    let mut slots = Vec::with_capacity(quotients.len());
    for (i, &quotient) in quotients.iter().enumerate() {
        if i == 0 || quotients[i - 1] != quotient {
            starts.push(i);
        }
        slots.push(quotient + (i - starts[starts.len() - 1]) as u64);
    }
    (starts, slots)
}

/// Algorithm 4.
fn parallel_merging(quotients: &[u64]) -> Vec<u64> {
    let (starts, mut slots) = unshifted(quotients);
    let n = quotients.len();
    let mut labels = vec![0; n];
    for (label, &start) in starts.iter().enumerate() {
        labels[start..].fill(label);
    }
    let mut credits = vec![0i64; n];
    let mut offsets = vec![0i64; starts.len()];
    let mut carries = vec![0i64; starts.len()];
    for _ in 0..starts.len().next_power_of_two().trailing_zeros() {
        // CALCOFFSETS: at the heads of odd segments.
        for i in 1..n {
            let segment = labels[i];
            if segment != labels[i - 1] && segment % 2 == 1 {
                offsets[segment] = slots[i - 1] as i64 - slots[i] as i64 + 1;
                carries[segment] = credits[i - 1];
            }
        }
        // SHIFTITEMS: items of odd segments move, or keep what room is before them as credit.
        for i in 0..n {
            let segment = labels[i];
            if segment % 2 == 1 {
                let overlap = offsets[segment] - credits[i];
                let mut empties = 0;
                if overlap > 0 {
                    slots[i] += overlap as u64;
                } else {
                    empties = -overlap;
                }
                credits[i] = empties + carries[segment];
            }
            labels[i] /= 2;
        }
    }
    slots
}

/// Algorithm 5.
fn sequential_shifting(quotients: &[u64]) -> Vec<u64> {
    let (mut starts, mut slots) = unshifted(quotients);
    starts.push(quotients.len());
    loop {
        let mut change = false;
        for run in starts.windows(2).skip(1) {
            let (start, end) = (run[0], run[1]);
            let after = slots[start - 1] + 1;
            if after > slots[start] {
                let shift = after - slots[start];
                slots[start..end].iter_mut().for_each(|slot| *slot += shift);
                change = true;
            }
        }
        if !change {
            return slots;
        }
    }
}

/// Algorithm 6; an empty segment passes on what reaches through it.
fn segmented_layouts(quotients: &[u64], quotient_bits: u32) -> Vec<u64> {
    let count = segments::count(quotient_bits) as usize;
    let mut slots = vec![0; quotients.len()];
    let mut overflows = vec![0u64; count];
    loop {
        let shifts = overflows.clone();
        for segment in 0..count {
            let (first_slot, end_slot) = segments::range(quotient_bits, segment as u64);
            let at = |slot: u64| quotients.partition_point(|&quotient| quotient < slot);
            let mut free = first_slot + if segment > 0 { shifts[segment - 1] } else { 0 };
            for i in at(first_slot)..at(end_slot) {
                slots[i] = core::place(free, quotients[i]);
                free = slots[i] + 1;
            }
            overflows[segment] = free.saturating_sub(end_slot);
        }
        if overflows == shifts {
            return slots;
        }
    }
}

//! The paper's layouts step by step: the definitions for the kernels.
//!
//! Source: section IV-C, algorithms 4, 5 and 6. Loops over threads are loops here.

use papers_kernels::quotient::builds::segments;
use warpset_core::quotient::standard as core;

use crate::StandardBuild;

/// Returns the slots of items with these ascending quotients of `quotient_bits` bits. Methods that are no layout of
/// the paper, [`StandardBuild::Scan`] and [`StandardBuild::SuperclusterInserts`], are taken from their definition: an
/// item lies after the one before it, and not before its quotient.
pub fn slots(method: StandardBuild, quotients: &[u64], quotient_bits: u32) -> Vec<u64> {
    match method {
        StandardBuild::ParallelMerging => parallel_merging(quotients),
        StandardBuild::SequentialShifting => sequential_shifting(quotients),
        StandardBuild::SegmentedLayouts => segmented_layouts(quotients, quotient_bits),
        StandardBuild::Scan | StandardBuild::SuperclusterInserts => {
            let mut free = 0;
            let place = |&quotient: &u64| {
                let slot = core::place(free, quotient);
                free = slot + 1;
                slot
            };
            quotients.iter().map(place).collect()
        }
    }
}

/// Returns the start of each run, and the slots of the items if there were none before their runs.
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

/// Finds slots by algorithm 4.
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
        // SHIFTITEMS: items of odd segments move, or keep the free slots before them as credit.
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

/// Finds slots by algorithm 5.
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

/// Finds slots by algorithm 6; an empty segment passes on items that reach through it.
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

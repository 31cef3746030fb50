//! Which keys go to which part of the filter, and to which of its buckets.

use rayon::prelude::*;
use warpset_core::bloom::rao::emptier;

use crate::Key;
use crate::cpu::RaoBloom;
use crate::layout::BATCH;
use crate::layout::engine::Engine;
use crate::layout::rao::RaoProbe;
use crate::layout::rao::probing::Placed;

/// Parts a thread, so that unequal parts even out.
const PARTS_PER_THREAD: usize = 4;

/// A key of a round in the bucket that it goes to, which is counted from the first of its part.
#[derive(Clone, Copy, Default)]
pub(super) struct Assigned {
    pub(super) hash: u64,
    pub(super) bucket: u32,
    pub(super) place: u32,
}

impl Placed for Assigned {
    #[inline(always)]
    fn bucket(&self) -> u32 {
        self.bucket
    }
    #[inline(always)]
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// Of each part, what the shares hold for it.
pub(super) fn by_part(shares: Vec<Vec<Vec<Assigned>>>) -> Vec<Vec<Vec<Assigned>>> {
    let mut parts: Vec<Vec<Vec<Assigned>>> = Vec::new();
    for share in shares {
        parts.resize_with(share.len(), Vec::new);
        parts.iter_mut().zip(share).for_each(|(part, keys)| part.push(keys));
    }
    parts
}

/// How a filter is cut: bucket `b` is in part `b >> shift`.
pub(super) struct Dealing {
    shift: u32,
    parts: usize,
    pub(super) part_buckets: usize,
}

impl Dealing {
    pub(super) fn new(buckets: u64, serial: bool) -> Dealing {
        let wanted = if serial { 1 } else { PARTS_PER_THREAD * rayon::current_num_threads() } as u64;
        let shift = if serial { 32 } else { (buckets / wanted).checked_ilog2().unwrap_or(0) };
        let part_buckets = (1u64 << shift).min(buckets) as usize;
        Dealing { shift, parts: ((buckets - 1) >> shift) as usize + 1, part_buckets }
    }

    /// Each thread's share of the keys, by part, in their order.
    pub(super) fn deal<K: Key>(&self, filter: &RaoBloom, keys: &[K]) -> Vec<Vec<Vec<Assigned>>> {
        if self.parts == 1 {
            return vec![self.deal_share(filter, keys, 0)];
        }
        let share = keys.len().div_ceil(rayon::current_num_threads());
        let shares = keys.par_chunks(share).enumerate();
        shares.map(|(i, keys)| self.deal_share(filter, keys, i * share)).collect()
    }

    /// The keys of one share, whose first has the place `first`. With two choices, those that are there are left out, and
    /// the others go to the emptier of their buckets.
    fn deal_share<K: Key>(&self, filter: &RaoBloom, keys: &[K], first: usize) -> Vec<Vec<Assigned>> {
        let (layout, words) = (filter.layout, filter.words.as_slice());
        let mut probes = [RaoProbe::default(); BATCH];
        if layout.choices() == 1 && self.parts == 1 {
            let mut all = Vec::with_capacity(keys.len());
            for (i, batch) in keys.chunks(BATCH).enumerate() {
                let probes = &mut probes[..batch.len()];
                layout.probe_batch(batch, probes);
                all.extend(probes.iter().zip(first + i * BATCH..).map(|(probe, place)| Assigned {
                    hash: probe.hash,
                    bucket: probe.buckets[0],
                    place: place as u32,
                }));
            }
            return vec![all];
        }
        let share = keys.len() / self.parts;
        let mut parts: Vec<Vec<Assigned>> =
            (0..self.parts).map(|_| Vec::with_capacity(share + share / 8 + BATCH)).collect();
        for (i, batch) in keys.chunks(BATCH).enumerate() {
            let probes = &mut probes[..batch.len()];
            layout.probe_batch(batch, probes);
            let mut found = 0;
            if layout.choices() == 2 {
                layout.prefetch_batch(words, probes);
                found = layout.contains_batch(words, probes);
            }
            for (j, probe) in probes.iter().enumerate().filter(|(j, _)| found >> j & 1 == 0) {
                let [mut bucket, _] = probe.buckets;
                if layout.choices() == 2 {
                    bucket = choose(&filter.bucket_ones, probe);
                }
                let part = u64::from(bucket) >> self.shift;
                let bucket = (u64::from(bucket) - (part << self.shift)) as u32;
                let place = (first + i * BATCH + j) as u32;
                parts[part as usize].push(Assigned { hash: probe.hash, bucket, place });
            }
        }
        parts
    }
}

/// The bucket that a key goes to.
#[inline]
pub(super) fn choose(ones: &[u32], probe: &RaoProbe) -> u32 {
    let [a, b] = probe.buckets;
    probe.buckets[emptier([ones[a as usize], ones[b as usize]])]
}

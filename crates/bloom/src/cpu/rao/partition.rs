//! Distribution of keys to parts of the filter, and to buckets.

use warpset_base::parallel;
use warpset_core::bloom::rao::emptier;

use crate::Key;
use crate::cpu::RaoBloom;
use crate::cpu::insert::for_each_one;
use crate::layout::BATCH;
use crate::layout::engine::Engine;
use crate::layout::rao::RaoProbe;
use crate::layout::rao::probing::Placed;

/// Parts per thread, so that unequal parts even out.
const PARTS_PER_THREAD: usize = 4;

/// A key of a round with its bucket, counted from the first of its part.
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

/// Regroups the shares: for each part, the keys that every share holds for it.
pub(super) fn by_part(shares: Vec<Vec<Vec<Assigned>>>) -> Vec<Vec<Vec<Assigned>>> {
    let mut parts: Vec<Vec<Vec<Assigned>>> = Vec::new();
    for share in shares {
        parts.resize_with(share.len(), Vec::new);
        parts.iter_mut().zip(share).for_each(|(part, keys)| part.push(keys));
    }
    parts
}

/// Division of a filter: bucket `b` is in part `b >> shift`.
pub(super) struct Partition {
    shift: u32,
    parts: usize,
    threads: usize,
    pub(super) part_buckets: usize,
}

impl Partition {
    pub(super) fn new(buckets: u64, threads: usize) -> Partition {
        let wanted = (PARTS_PER_THREAD * threads) as u64;
        let shift = if threads == 1 { 32 } else { (buckets / wanted).checked_ilog2().unwrap_or(0) };
        let part_buckets = (1u64 << shift).min(buckets) as usize;
        Partition { shift, parts: ((buckets - 1) >> shift) as usize + 1, threads, part_buckets }
    }

    /// Sorts each thread's share of the keys by part, in their order; `only_absent` leaves out contained keys.
    pub(super) fn assign<K: Key>(&self, filter: &RaoBloom, keys: &[K], only_absent: bool) -> Vec<Vec<Vec<Assigned>>> {
        if self.parts == 1 {
            return vec![self.assign_share(filter, keys, 0, only_absent)];
        }
        let share = keys.len().div_ceil(self.threads);
        let shares = keys.chunks(share).enumerate();
        parallel::map(shares, |(i, keys)| self.assign_share(filter, keys, i * share, only_absent))
    }

    /// Assigns the keys of one share; its first key has the place `first`. With two choices a key goes to the emptier
    /// of its buckets.
    fn assign_share<K: Key>(
        &self,
        filter: &RaoBloom,
        keys: &[K],
        first: usize,
        only_absent: bool,
    ) -> Vec<Vec<Assigned>> {
        let layout = filter.layout;
        let share = if only_absent { keys.len() / self.parts / 2 } else { keys.len() / self.parts };
        let mut parts: Vec<Vec<Assigned>> =
            (0..self.parts).map(|_| Vec::with_capacity(share + share / 8 + BATCH)).collect();
        let mut push = |probe: &RaoProbe, place: usize| {
            let bucket = if layout.choices() == 1 { probe.buckets[0] } else { choose(&filter.bucket_ones, probe) };
            let part = u64::from(bucket) >> self.shift;
            let in_part = (u64::from(bucket) - (part << self.shift)) as u32;
            parts[part as usize].push(Assigned { hash: probe.hash, bucket: in_part, place: place as u32 });
        };
        if only_absent {
            filter.view().answer(keys, |i, found, probes| {
                for_each_one(!found & u64::MAX >> (BATCH - probes.len()), |j| push(&probes[j], first + i * BATCH + j));
            });
            return parts;
        }
        let mut probes = [RaoProbe::default(); BATCH];
        for (i, batch) in keys.chunks(BATCH).enumerate() {
            let probes = &mut probes[..batch.len()];
            layout.probe_batch(batch, probes);
            probes.iter().enumerate().for_each(|(j, probe)| push(probe, first + i * BATCH + j));
        }
        parts
    }
}

/// Returns the bucket of a key.
#[inline]
pub(super) fn choose(ones: &[u32], probe: &RaoProbe) -> u32 {
    let [a, b] = probe.buckets;
    probe.buckets[emptier([ones[a as usize], ones[b as usize]])]
}

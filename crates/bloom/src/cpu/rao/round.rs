//! One round of a bulk insertion: the keys are sorted by bucket, then each bucket is built on its own.
//!
//! A bucket stays in the first-level cache while it is built, and no two threads write one bucket: with
//! several threads the keys are dealt to parts of the filter first, and each part is one task.

use std::ops::Range;

use rayon::prelude::*;
use warpset_core::bloom::rao::emptier;

use super::super::by_hash::ByHash;
use super::undo::{Saved, Undo, keep};
use crate::cpu::RaoBloom;
use crate::layout::BATCH;
use crate::layout::engine::Engine;
use crate::layout::rao::probing::{self, Placed};
use crate::layout::rao::{RaoLayout, RaoProbe};
use crate::view::{PREFETCH_BYTES, is_serial};
use crate::{Error, Key, Layout};

/// Parts a thread, so that unequal parts even out.
const PARTS_PER_THREAD: usize = 4;
/// Words up to this size are taken to be in a near cache.
const NEAR_BYTES: usize = 1 << 18;
/// Keys that are tested or inserted between requests for the cache lines of as many others.
const AHEAD: usize = 16;

/// What a round is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Set the keys' bits.
    Insert,
    /// Set them and say which keys were new; one choice only.
    TestAndInsert,
}

/// A key of a round in the bucket that it goes to, which is counted from the first of its part.
#[derive(Clone, Copy, Default)]
struct Assigned {
    hash: u64,
    bucket: u32,
    place: u32,
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

impl RaoBloom {
    /// Inserts the keys of one round. Returns the places of the new ones if that was the task.
    ///
    /// `undo` learns what the round is about to change, except where that cannot be wanted: in an operation's last round
    /// the buckets that might overflow come first, and if one does the others are left alone. It is for the caller to
    /// look for overflows afterwards.
    pub(super) fn insert_round<K: Key>(
        &mut self,
        keys: &[K],
        task: Task,
        is_last: bool,
        undo: &mut Undo,
    ) -> Result<Vec<u32>, Error> {
        let layout = self.layout;
        let Undo { was_empty, saved, copies, .. } = undo;
        let serial = is_serial(keys.len());
        if serial && task == Task::Insert && layout.choices() == 1 && is_near(layout, self.words.as_slice(), keys.len())
        {
            self.insert_near(keys, undo)?;
            return Ok(Vec::new());
        }
        let in_order = is_last && !*was_empty;
        let dealing = Dealing::new(layout.blocks(), serial);
        let shares = dealing.deal(self, keys);
        let part_buckets = dealing.part_buckets;
        let words = self.words.as_mut_slice().chunks_mut(part_buckets * layout.words_per_block());
        let state = self.bucket_ones.chunks_mut(part_buckets).zip(saved.chunks_mut(part_buckets));
        let parts = words.zip(state).zip(by_part(shares)).enumerate();
        let mut parts: Vec<Part> = parts
            .map(|(i, ((words, (ones, saved)), shares))| {
                let first = (i * part_buckets) as u32;
                Part {
                    layout,
                    first,
                    words,
                    ones,
                    saved,
                    shares,
                    keys: Keys::default(),
                    new: Vec::new(),
                    missing: Vec::new(),
                }
            })
            .collect();

        if !in_order {
            keep(each(&mut parts, |part| part.arrange().build(Group::Any, task, !*was_empty)), copies)?;
        } else {
            keep(each(&mut parts, |part| part.arrange().build(Group::MayOverflow, task, true)), copies)?;
            let limit = layout.shape().most_ones();
            if parts.iter().all(|part| part.ones.iter().all(|&ones| ones <= limit)) {
                keep(each(&mut parts, |part| part.build(Group::Fits, task, false)), copies)?;
            }
        }
        Ok(parts.into_iter().flat_map(|part| part.new).collect())
    }

    /// Inserts many keys into a small filter, on one thread, as they come.
    fn insert_near<K: Key>(&mut self, keys: &[K], undo: &mut Undo) -> Result<(), Error> {
        let (layout, shape) = (self.layout, self.layout.shape());
        let bucket_words = shape.bucket_words as usize;
        let words = self.words.as_mut_slice();
        if !undo.was_empty {
            let buckets: Vec<u32> = (0..self.bucket_ones.len() as u32).collect();
            undo.copies.push(Saved::copy(0, words, bucket_words, &buckets, &mut undo.saved)?);
        }
        let mut probes = [RaoProbe::default(); BATCH];
        for batch in keys.chunks(BATCH) {
            for (probe, key) in probes.iter_mut().zip(batch) {
                *probe = layout.probe(key);
            }
            probing::insert_all(shape, words, &probes[..batch.len()]);
        }
        let buckets = words.chunks(bucket_words);
        self.bucket_ones.iter_mut().zip(buckets).for_each(|(ones, bucket)| *ones = probing::count_ones(bucket));
        Ok(())
    }
}

/// Whether words are in a near cache and get so many keys that it costs little to copy and to count all of them. Then the
/// keys need not be sorted.
fn is_near(layout: RaoLayout, words: &[u32], keys: usize) -> bool {
    size_of_val(words) <= NEAR_BYTES && keys * layout.shape().hashes as usize >= words.len()
}

/// Calls `work` with each part, on all threads if there are several.
fn each<R: Send>(parts: &mut [Part], work: impl Fn(&mut Part) -> R + Send + Sync) -> Vec<R> {
    match parts {
        [part] => vec![work(part)],
        _ => parts.par_iter_mut().map(work).collect(),
    }
}

/// Of each part, what the shares hold for it.
fn by_part(shares: Vec<Vec<Vec<Assigned>>>) -> Vec<Vec<Vec<Assigned>>> {
    let mut parts: Vec<Vec<Vec<Assigned>>> = Vec::new();
    for share in shares {
        parts.resize_with(share.len(), Vec::new);
        parts.iter_mut().zip(share).for_each(|(part, keys)| part.push(keys));
    }
    parts
}

/// How a filter is cut: bucket `b` is in part `b >> shift`.
struct Dealing {
    shift: u32,
    parts: usize,
    part_buckets: usize,
}

impl Dealing {
    fn new(buckets: u64, serial: bool) -> Dealing {
        let wanted = if serial { 1 } else { PARTS_PER_THREAD * rayon::current_num_threads() } as u64;
        let shift = if serial { 32 } else { (buckets / wanted).checked_ilog2().unwrap_or(0) };
        let part_buckets = (1u64 << shift).min(buckets) as usize;
        Dealing { shift, parts: ((buckets - 1) >> shift) as usize + 1, part_buckets }
    }

    /// Each thread's share of the keys, by part, in their order.
    fn deal<K: Key>(&self, filter: &RaoBloom, keys: &[K]) -> Vec<Vec<Vec<Assigned>>> {
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
        if layout.choices() == 1 && self.parts == 1 {
            let assign = |(i, key)| {
                let RaoProbe { hash, buckets: [bucket, _] } = layout.probe(key);
                Assigned { hash, bucket, place: (first + i) as u32 }
            };
            return vec![keys.iter().enumerate().map(assign).collect()];
        }
        let share = keys.len() / self.parts;
        let mut parts: Vec<Vec<Assigned>> =
            (0..self.parts).map(|_| Vec::with_capacity(share + share / 8 + BATCH)).collect();
        let mut push = |probe: &RaoProbe, bucket: u32, place: usize| {
            let part = u64::from(bucket) >> self.shift;
            let bucket = (u64::from(bucket) - (part << self.shift)) as u32;
            parts[part as usize].push(Assigned { hash: probe.hash, bucket, place: place as u32 });
        };
        if layout.choices() == 1 {
            for (i, key) in keys.iter().enumerate() {
                let probe = layout.probe(key);
                push(&probe, probe.buckets[0], first + i);
            }
            return parts;
        }
        let mut probes = [RaoProbe::default(); BATCH];
        for (i, batch) in keys.chunks(BATCH).enumerate() {
            for (probe, key) in probes.iter_mut().zip(batch) {
                *probe = layout.probe(key);
                layout.prefetch(words, probe);
            }
            let probes = &probes[..batch.len()];
            let found = layout.contains_batch(words, probes);
            for (j, probe) in probes.iter().enumerate().filter(|(j, _)| found >> j & 1 == 0) {
                push(probe, choose(&filter.bucket_ones, probe), first + i * BATCH + j);
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

/// Which buckets to build: a bucket may overflow if its keys could set more bits than there is room for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Any,
    MayOverflow,
    Fits,
}

/// The keys of a part.
#[derive(Default)]
struct Keys {
    keys: Vec<Assigned>,
    /// By bucket, those of one bucket in their order; else in their order.
    are_sorted: bool,
}

/// A part of the filter and the keys that go there.
struct Part<'a> {
    layout: RaoLayout,
    /// The first bucket's number.
    first: u32,
    words: &'a mut [u32],
    ones: &'a mut [u32],
    saved: &'a mut [u32],
    shares: Vec<Vec<Assigned>>,
    keys: Keys,
    /// The places of the keys that were new.
    new: Vec<u32>,
    missing: Vec<u32>,
}

impl Part<'_> {
    /// Whether so many keys could set more bits of the bucket than there is room for.
    fn may_overflow(&self, bucket: u32, keys: usize) -> bool {
        let shape = self.layout.shape();
        u64::from(self.ones[bucket as usize]) + keys as u64 * u64::from(shape.hashes) > u64::from(shape.most_ones())
    }

    /// Brings the keys of all shares together, sorted unless the part [is near](is_near).
    fn arrange(&mut self) -> &mut Self {
        let mut shares = std::mem::take(&mut self.shares);
        let (count, buckets) = (shares.iter().map(Vec::len).sum::<usize>(), self.ones.len());
        let are_sorted = !is_near(self.layout, self.words, count);
        let mut keys;
        if !are_sorted || count < buckets / 8 {
            keys = if shares.len() == 1 { shares.swap_remove(0) } else { shares.concat() };
            if are_sorted {
                keys.sort_by_key(|key| key.bucket);
            }
        } else {
            let mut starts = vec![0usize; buckets];
            shares.iter().flatten().for_each(|key| starts[key.bucket as usize] += 1);
            let mut sum = 0;
            starts.iter_mut().for_each(|start| sum += std::mem::replace(start, sum));
            keys = vec![Assigned::default(); count];
            for key in shares.iter().flatten() {
                let at = &mut starts[key.bucket as usize];
                keys[*at] = *key;
                *at += 1;
            }
        }
        self.keys = Keys { keys, are_sorted };
        self
    }

    /// Builds the buckets of one kind. With `saves`, returns what they were.
    fn build(&mut self, kind: Group, task: Task, saves: bool) -> Result<Saved, Error> {
        let Keys { keys, are_sorted } = std::mem::take(&mut self.keys);
        let result = if are_sorted {
            self.build_sorted(&keys, kind, task, saves)
        } else {
            // It is not known which buckets may overflow, so all are said to.
            match kind {
                Group::Fits => Ok(Saved::default()),
                _ => self.build_near(&keys, task, saves),
            }
        };
        self.keys = Keys { keys, are_sorted };
        result
    }

    fn build_near(&mut self, keys: &[Assigned], task: Task, saves: bool) -> Result<Saved, Error> {
        let mut saved = Saved::default();
        if saves {
            let buckets: Vec<u32> = (0..self.ones.len() as u32).collect();
            saved = Saved::copy(self.first, self.words, self.layout.words_per_block(), &buckets, self.saved)?;
        }
        self.insert(keys, 0..keys.len(), 0..self.ones.len(), task);
        Ok(saved)
    }

    fn build_sorted(&mut self, keys: &[Assigned], kind: Group, task: Task, saves: bool) -> Result<Saved, Error> {
        let shape = self.layout.shape();
        let groups = || keys.chunk_by(|a, b| a.bucket == b.bucket);
        let is_meant = |part: &Part, group: &[Assigned]| {
            kind == Group::Any || (kind == Group::MayOverflow) == part.may_overflow(group[0].bucket, group.len())
        };
        let mut saved = Saved::default();
        if saves {
            let meant: Vec<u32> = groups().filter(|group| is_meant(self, group)).map(|group| group[0].bucket).collect();
            saved = Saved::copy(self.first, self.words, shape.bucket_words as usize, &meant, self.saved)?;
        }
        let mut groups = groups().peekable();
        let mut end = 0;
        while let Some(group) = groups.next() {
            let start = end;
            end += group.len();
            if !is_meant(self, group) {
                continue;
            }
            // Buckets with few keys go together.
            while let Some(next) = groups.next_if(|next| end - start + next.len() <= BATCH && is_meant(self, next)) {
                end += next.len();
            }
            let buckets = keys[start].bucket as usize..keys[end - 1].bucket as usize + 1;
            self.insert(keys, start..end, buckets, task);
        }
        Ok(saved)
    }

    /// Inserts some of the keys, which go to these buckets, and to which no others go.
    fn insert(&mut self, keys: &[Assigned], some: Range<usize>, buckets: Range<usize>, task: Task) {
        let shape = self.layout.shape();
        let bucket_words = shape.bucket_words as usize;
        let many = some.len() * shape.hashes as usize >= buckets.len() * bucket_words;
        if many && task == Task::Insert {
            // Counting anew costs about an instruction a word, counting along two a bit.
            probing::insert_all(shape, self.words, &keys[some]);
            let words = self.words.chunks(bucket_words).skip(buckets.start);
            self.ones[buckets].iter_mut().zip(words).for_each(|(ones, words)| *ones = probing::count_ones(words));
            return;
        }
        // Where there are many keys, one finds the lines of another in the cache.
        let far = !many && size_of_val(self.words) > PREFETCH_BYTES;
        let mut absent = Vec::with_capacity(if task == Task::Insert { 0 } else { some.len() });
        for start in some.clone().step_by(AHEAD) {
            let end = some.end.min(start + AHEAD);
            if far {
                for key in &keys[keys.len().min(end + AHEAD)..keys.len().min(end + 2 * AHEAD)] {
                    probing::prefetch_bits(shape, self.words, key, 0);
                }
            }
            let batch = &keys[start..end];
            match task {
                Task::Insert => self.insert_counting(batch),
                Task::TestAndInsert => {
                    let found = probing::contained(shape, self.words, batch, false);
                    absent.extend(batch.iter().enumerate().filter(|(i, _)| found >> i & 1 == 0).map(|(_, key)| *key));
                }
            }
        }
        if task == Task::TestAndInsert {
            self.insert_absent(&absent);
        }
    }

    /// Inserts keys; `missing` gets for each how many of its bits were not set.
    fn insert_counting(&mut self, keys: &[Assigned]) {
        probing::insert_each(self.layout.shape(), self.words, keys, &mut self.missing);
        keys.iter().zip(&self.missing).for_each(|(key, missing)| self.ones[key.bucket as usize] += missing);
    }

    /// Inserts keys that were not contained, and notes the places of the new ones. All keys of a bucket are among them.
    ///
    /// If its insertion changes a bit, a key is new: an equal hash before it would have set all its bits. If it changes
    /// nothing, either an equal hash went before, or others happened to set its bits; only those few are looked up by
    /// hash.
    fn insert_absent(&mut self, absent: &[Assigned]) {
        self.insert_counting(absent);
        let mut undecided = ByHash::default();
        for (key, missing) in absent.iter().zip(&self.missing) {
            if *missing > 0 {
                self.new.push(key.place);
            } else {
                undecided.entry(key.hash).or_insert(key.place);
            }
        }
        if !undecided.is_empty() {
            for (key, _) in absent.iter().zip(&self.missing).filter(|(_, missing)| **missing > 0) {
                undecided.remove(&key.hash);
            }
            self.new.extend(undecided.into_values());
        }
    }
}

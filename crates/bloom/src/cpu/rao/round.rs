//! One round of a bulk insertion: the keys are sorted by bucket, then each bucket is built on its own.
//!
//! A bucket stays in the first-level cache while it is built, and no two threads write one bucket: with
//! several threads the keys are distributed to parts of the filter first, and each part is one task.

use std::ops::Range;

use warpset_base::parallel;

use super::super::by_hash::ByHash;
use super::partition::{Assigned, Partition, by_part};
use super::undo::{Saved, Undo, keep};
use crate::cpu::RaoBloom;
use crate::cpu::insert::{for_each_one, threads_for};
use crate::layout::BATCH;
use crate::layout::engine::Engine;
use crate::layout::rao::probing::{self, Ahead};
use crate::layout::rao::{RaoLayout, RaoProbe};
use crate::{Error, Key, Layout};

/// Largest size of words that are taken to be in a cache of their core.
const CACHED_BYTES: usize = 1 << 19;
/// Most words per set bit for which all cache lines are read in order, not one by one: a bit per two lines.
const STREAMED: usize = 32;
/// Nanoseconds per key of an insertion; fewer than they are, because a division takes them twice.
const KEY_NS: f64 = 5.0;
/// Keys per step of an insertion that counts missing bits.
const COUNTED: usize = 1 << 10;

/// Task of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Set the keys' bits.
    Insert,
    /// Sets them and reports which keys were new; one choice only.
    TestAndInsert,
}

impl RaoBloom {
    /// Inserts the keys of one round. Returns the places of the new ones if that was the task.
    ///
    /// `undo` saves the buckets that the round will change, unless no undo is possible: in an operation's last round,
    /// buckets that might overflow come first, and if one does, the others are unchanged. The caller checks for
    /// overflows afterwards.
    pub(super) fn insert_round<K: Key>(
        &mut self,
        keys: &[K],
        task: Task,
        is_last: bool,
        undo: &mut Undo,
    ) -> Result<Vec<Vec<u32>>, Error> {
        let layout = self.layout;
        let threads = threads_for(keys.len(), KEY_NS);
        let serial = threads == 1;
        if serial
            && task == Task::Insert
            && layout.choices() == 1
            && is_cached_and_busy(layout, self.words.as_slice(), keys.len())
        {
            self.insert_in_cache(keys, is_last, undo)?;
            return Ok(Vec::new());
        }
        let Undo { was_empty, saved, copies, .. } = undo;
        let partition = Partition::new(layout.blocks(), threads);
        // A contained key is not new, and with two choices it is not inserted again. In a larger filter with one
        // choice, lookups are cheaper after sorting.
        let is_cached = size_of_val(self.words.as_slice()) <= CACHED_BYTES;
        let only_absent = layout.choices() == 2 || task == Task::TestAndInsert && is_cached;
        let shares = partition.assign(self, keys, only_absent);
        let part_buckets = partition.part_buckets;
        let words = self.words.as_mut_slice().chunks_mut(part_buckets * layout.words_per_block());
        let state = self.bucket_ones.chunks_mut(part_buckets).zip(saved.chunks_mut(part_buckets));
        let parts = words.zip(state).zip(by_part(shares)).enumerate();
        let mut parts: Vec<FilterPart> = parts
            .map(|(i, ((words, (ones, saved)), shares))| {
                let first = (i * part_buckets) as u32;
                FilterPart {
                    layout,
                    first,
                    words,
                    ones,
                    saved,
                    shares,
                    keys: Vec::new(),
                    are_absent: only_absent,
                    are_sorted: false,
                    counts: Vec::new(),
                    new: Vec::new(),
                    missing: Vec::new(),
                    fetched: None,
                }
            })
            .collect();

        if !is_last || *was_empty {
            keep(each(&mut parts, |part| part.arrange(false).build(Group::Any, task, !*was_empty)), copies)?;
        } else {
            keep(each(&mut parts, |part| part.arrange(true).build(Group::MayOverflow, task, true)), copies)?;
            let limit = layout.most_ones();
            if parts.iter().all(|part| part.ones.iter().all(|&ones| ones <= limit)) {
                keep(each(&mut parts, |part| part.build(Group::Fits, task, false)), copies)?;
            }
        }
        Ok(parts.into_iter().map(|part| part.new).collect())
    }

    /// Inserts many keys into a small filter, on one thread, in their order.
    ///
    /// If the insertion may have to be undone, keys are first hashed and counted by bucket, until the remaining keys
    /// cannot overfill any bucket. The filter is copied only if that takes all keys.
    fn insert_in_cache<K: Key>(&mut self, keys: &[K], is_last: bool, undo: &mut Undo) -> Result<(), Error> {
        let (layout, shape) = (self.layout, self.layout.shape());
        let bucket_words = shape.bucket_words as usize;
        let words = self.words.as_mut_slice();
        let (mut hashed, mut rest) = (Vec::new(), keys);
        let mut probes = [RaoProbe::default(); BATCH];
        if !undo.was_empty {
            let mut counts = vec![0; self.bucket_ones.len()];
            let fits = |counts: &[usize], others: usize| {
                self.bucket_ones.iter().zip(counts).all(|(&ones, keys)| !may_overflow(layout, ones, keys + others))
            };
            while is_last && !rest.is_empty() && !fits(&counts, rest.len()) {
                let (some, others) = rest.split_at(rest.len().min(counts.len().max(BATCH)));
                for batch in some.chunks(BATCH) {
                    let probes = &mut probes[..batch.len()];
                    layout.probe_batch(batch, probes);
                    probes.iter().for_each(|probe| counts[probe.buckets[0] as usize] += 1);
                    hashed.extend_from_slice(probes);
                }
                rest = others;
            }
            if !is_last || !fits(&counts, rest.len()) {
                let buckets: Vec<u32> = (0..self.bucket_ones.len() as u32).collect();
                undo.copies.push(Saved::copy(0, words, bucket_words, &buckets, &mut undo.saved)?);
            }
        }
        probing::insert_all(shape, words, &hashed, false);
        for batch in rest.chunks(BATCH) {
            let probes = &mut probes[..batch.len()];
            layout.probe_batch(batch, probes);
            probing::insert_all(shape, words, probes, false);
        }
        let buckets = words.chunks(bucket_words);
        self.bucket_ones.iter_mut().zip(buckets).for_each(|(ones, bucket)| *ones = probing::count_ones(bucket));
        Ok(())
    }
}

/// Whether insertions of `keys` into a bucket with `ones` set bits could set more than it has space for.
#[inline]
fn may_overflow(layout: RaoLayout, ones: u32, keys: usize) -> bool {
    let shape = layout.shape();
    u64::from(ones) + keys as u64 * u64::from(shape.hashes) > u64::from(layout.most_ones())
}

/// Whether the words are cached and get enough keys that counting all set bits costs little in comparison.
fn is_cached_and_busy(layout: RaoLayout, words: &[u32], keys: usize) -> bool {
    size_of_val(words) <= CACHED_BYTES && keys * layout.shape().hashes as usize >= words.len()
}

/// Calls `work` with each part, on all threads if there are several.
fn each<R: Send>(parts: &mut [FilterPart], work: impl Fn(&mut FilterPart) -> R + Send + Sync) -> Vec<R> {
    parallel::map(parts, work)
}

/// Buckets to build: a bucket may overflow if its keys could set more bits than it has free.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Any,
    MayOverflow,
    Fits,
}

/// A part of the filter and the keys that go there.
struct FilterPart<'a> {
    layout: RaoLayout,
    /// The first bucket's number.
    first: u32,
    words: &'a mut [u32],
    ones: &'a mut [u32],
    saved: &'a mut [u32],
    shares: Vec<Vec<Assigned>>,
    keys: Vec<Assigned>,
    /// Whether contained keys were left out.
    are_absent: bool,
    /// Whether `keys` are sorted by bucket, those of one bucket in their order; else they are in their order.
    are_sorted: bool,
    /// Keys per bucket.
    counts: Vec<usize>,
    /// Places of the new keys.
    new: Vec<u32>,
    missing: Vec<u32>,
    /// The bucket with prefetched cache lines.
    fetched: Option<usize>,
}

impl FilterPart<'_> {
    fn may_overflow(&self, bucket: usize) -> bool {
        may_overflow(self.layout, self.ones[bucket], self.counts[bucket])
    }

    /// Joins the keys of all shares. They are sorted where that pays, and, with `foresee`, where a bucket may overflow.
    fn arrange(&mut self, foresee: bool) -> &mut Self {
        let mut shares = std::mem::take(&mut self.shares);
        self.counts = vec![0; self.ones.len()];
        shares.iter().flatten().for_each(|key| self.counts[key.bucket as usize] += 1);
        let count = shares.iter().map(Vec::len).sum::<usize>();
        self.are_sorted = size_of_val(self.words) > CACHED_BYTES
            || foresee && (0..self.ones.len()).any(|bucket| self.may_overflow(bucket));
        if !self.are_sorted {
            self.keys = if shares.len() == 1 { shares.swap_remove(0) } else { shares.concat() };
            return self;
        }
        let mut starts = self.counts.clone();
        let mut sum = 0;
        starts.iter_mut().for_each(|start| sum += std::mem::replace(start, sum));
        self.keys = vec![Assigned::default(); count];
        for key in shares.iter().flatten() {
            let at = &mut starts[key.bucket as usize];
            self.keys[*at] = *key;
            *at += 1;
        }
        self
    }

    /// Builds the buckets of one kind. With `saves`, returns their old contents.
    fn build(&mut self, kind: Group, task: Task, saves: bool) -> Result<Saved, Error> {
        let is_meant = |part: &FilterPart, bucket: usize| {
            part.counts[bucket] > 0 && (kind == Group::Any || (kind == Group::MayOverflow) == part.may_overflow(bucket))
        };
        let mut saved = Saved::default();
        if saves {
            let meant: Vec<u32> =
                (0..self.ones.len()).filter(|&bucket| is_meant(self, bucket)).map(|bucket| bucket as u32).collect();
            saved = Saved::copy(self.first, self.words, self.layout.words_per_block(), &meant, self.saved)?;
        }
        let keys = std::mem::take(&mut self.keys);
        if self.are_sorted {
            self.build_sorted(&keys, is_meant, task);
        } else if kind != Group::MayOverflow {
            // Either all buckets are built, or none may overflow.
            self.insert(&keys, 0..self.ones.len(), task);
        }
        self.keys = keys;
        Ok(saved)
    }

    fn build_sorted(&mut self, keys: &[Assigned], is_meant: impl Fn(&FilterPart, usize) -> bool, task: Task) {
        let (mut bucket, mut end) = (0, 0);
        while bucket < self.ones.len() {
            let (first, start) = (bucket, end);
            end += self.counts[bucket];
            bucket += 1;
            if !is_meant(self, first) {
                continue;
            }
            // Buckets with few keys go together.
            while end - start <= COUNTED
                && !self.is_streamed(end - start, bucket - first)
                && bucket < self.ones.len()
                && is_meant(self, bucket)
            {
                end += self.counts[bucket];
                bucket += 1;
            }
            self.insert(&keys[start..end], first..bucket, task);
        }
    }

    /// Whether `keys` set bits in enough cache lines of these buckets that reading all lines in order pays.
    fn is_streamed(&self, keys: usize, buckets: usize) -> bool {
        let shape = self.layout.shape();
        STREAMED * keys * shape.hashes as usize >= buckets * shape.bucket_words as usize
    }

    /// Inserts all keys of these buckets.
    fn insert(&mut self, keys: &[Assigned], buckets: Range<usize>, task: Task) {
        let shape = self.layout.shape();
        let bucket_words = shape.bucket_words as usize;
        let many = keys.len() * shape.hashes as usize >= buckets.len() * bucket_words;
        // With many keys, a key finds lines in the cache that others have brought.
        let mut far = !many && size_of_val(self.words) > CACHED_BYTES;
        let mut ahead = Ahead::default();
        if far && self.is_streamed(keys.len(), buckets.len()) {
            if self.fetched != Some(buckets.start) {
                probing::prefetch_all(&self.words[buckets.start * bucket_words..buckets.end * bucket_words]);
            }
            // The next bucket is prefetched while this one is built.
            self.fetched = Some(buckets.end);
            ahead = Ahead { word: buckets.end * bucket_words, lines: bucket_words.div_ceil(16 * keys.len()) };
            far = false;
        }
        match task {
            Task::Insert if many => {
                // Counting all bits again costs about one instruction per word, counting while bits are set three per
                // bit.
                probing::insert_all(shape, self.words, keys, far);
                let words = self.words.chunks(bucket_words).skip(buckets.start);
                self.ones[buckets].iter_mut().zip(words).for_each(|(ones, words)| *ones = probing::count_ones(words));
            }
            Task::Insert => {
                for keys in keys.chunks(COUNTED) {
                    self.insert_counting(keys, far, std::mem::take(&mut ahead));
                }
            }
            Task::TestAndInsert if self.are_absent => self.insert_absent(keys, far, ahead),
            Task::TestAndInsert => {
                let absent = self.absent(keys, far);
                self.insert_absent(&absent, far, ahead);
            }
        }
    }

    /// Returns the keys that are not contained.
    fn absent(&self, keys: &[Assigned], far: bool) -> Vec<Assigned> {
        let shape = self.layout.shape();
        let mut absent = Vec::with_capacity(keys.len());
        let mut next = keys.chunks(BATCH).skip(1);
        for batch in keys.chunks(BATCH) {
            if far {
                probing::prefetch_first(shape, self.words, next.next().unwrap_or(&[]));
            }
            let found = probing::contained(shape, self.words, batch, far);
            for_each_one(!found & u64::MAX >> (BATCH - batch.len()), |i| absent.push(batch[i]));
        }
        absent
    }

    /// Inserts keys; `missing` gets, for each, the number of its bits that were not set.
    fn insert_counting(&mut self, keys: &[Assigned], far: bool, ahead: Ahead) {
        probing::insert_each(self.layout.shape(), self.words, keys, far, ahead, &mut self.missing);
        keys.iter().zip(&self.missing).for_each(|(key, missing)| self.ones[key.bucket as usize] += missing);
    }

    /// Inserts all absent keys of some buckets, and records the places of the new ones.
    ///
    /// If its insertion changes a bit, a key is new: an equal hash before it would have set all its bits. If it changes
    /// nothing, either an equal hash precedes it, or other keys set its bits; only these few keys are looked up by
    /// hash.
    fn insert_absent(&mut self, absent: &[Assigned], far: bool, ahead: Ahead) {
        self.insert_counting(absent, far, ahead);
        let mut undecided = ByHash::default();
        self.new.reserve(absent.len());
        for (key, missing) in absent.iter().zip(&self.missing) {
            if *missing == 0 {
                undecided.entry(key.hash).or_insert(key.place);
            }
        }
        let changed = absent.iter().zip(&self.missing).filter(|(_, missing)| **missing > 0);
        if undecided.is_empty() {
            return self.new.extend(absent.iter().map(|key| key.place));
        }
        for (key, _) in changed {
            undecided.remove(&key.hash);
            self.new.push(key.place);
        }
        self.new.extend(undecided.into_values());
    }
}

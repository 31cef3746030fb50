//! Rao's filter: the two-level build and its overflow.
//!
//! Bulk insertion follows section 4.4: keys are partitioned into buckets by the first-level hash (with two choices, to
//! the emptier), each bucket's filter is built on its own (on the CPU: by one task, in a private copy that fits the
//! cache, as the paper has it in shared memory), and merged by OR. If a bucket overflows, an empty filter starts again
//! with another first-level hash.
//!
//! Departures, with their reasons in [`warpset_core::bloom::rao`]: the load of a bucket is the number of its set bits;
//! two-choice assignment goes in rounds; a key that one of its buckets already contains is not inserted again.

use std::collections::HashSet;

use rayon::prelude::*;
use warpset_core::bloom::TEST_AND_INSERT_BATCH;
use warpset_core::bloom::rao::{emptier, round_keys};

use super::RaoBloom;
use crate::key::as_hashed;
use crate::layout::BATCH;
use crate::layout::engine::Engine;
use crate::layout::rao::RaoProbe;
use crate::view::{TASK, is_serial, same_length};
use crate::words::Words;
use crate::{Error, Hashed, Key, Layout, RaoBuilder, RaoLayout};

/// First-level hashes that a bulk insertion into an empty filter tries.
pub const MAX_ATTEMPTS: u32 = 16;

impl RaoBloom {
    /// Inserts a key; an error, and no change, if its bucket (with two choices: both) is full.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<(), Error> {
        self.test_and_insert(key).map(|_| ())
    }

    /// Inserts a hash.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), Error> {
        self.insert(Hashed(hash))
    }

    /// Inserts the key; true if that changed a bit, hence if the key surely was not there.
    pub fn test_and_insert(&mut self, key: impl Key) -> Result<bool, Error> {
        let probe = self.layout.probe(&key);
        let limit = self.layout.shape().most_ones();
        self.insert_one(&probe, limit).map_err(|ones| Error::BucketOverflow { attempts: 1, limit, ones })
    }

    /// Inserts a key into the emptier of its buckets unless one contains it; true if a bit changed, an error (the number
    /// of bits that it would have) if the bucket would have more than `limit` bits set.
    fn insert_one(&mut self, probe: &RaoProbe, limit: u32) -> Result<bool, u32> {
        let layout = self.layout;
        if layout.contains(self.words.as_slice(), probe) {
            return Ok(false);
        }
        let bucket = choose(&self.bucket_ones, probe);
        let (start, len) = (layout.bucket_start(bucket), layout.shape().bucket_words as usize);
        let words = &mut self.words.as_mut_slice()[start..start + len];
        let ones = self.bucket_ones[bucket as usize] + layout.bucket_missing(words, probe.hash);
        if ones > limit {
            return Err(ones);
        }
        self.bucket_ones[bucket as usize] = ones;
        layout.bucket_insert(words, probe.hash);
        Ok(true)
    }

    /// The number of set bits of each bucket.
    pub fn bucket_ones(&self) -> &[u32] {
        &self.bucket_ones
    }

    /// Inserts all keys by the two-level build.
    ///
    /// If a bucket overflows while the filter was empty, the build starts again with another first-level hash, 16 of
    /// them at most. If keys were there already, their buckets are fixed and the overflow is an error at once. On an
    /// error the filter is as it was.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.all_or_nothing(|filter, undo| filter.insert_undoable(keys, undo))
    }

    /// Runs a bulk insertion, and takes back what it did if it fails.
    fn all_or_nothing(
        &mut self,
        insert: impl FnOnce(&mut RaoBloom, &mut Undo) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut undo = Undo::new(self)?;
        let result = insert(self, &mut undo);
        if result.is_err() {
            undo.roll_back(self);
        }
        result
    }

    /// [`RaoBloom::insert_bulk`], but an error leaves the filter as far as it came.
    fn insert_undoable<K: Key>(&mut self, keys: &[K], undo: &mut Undo) -> Result<(), Error> {
        let empty = self.bucket_ones.iter().all(|&ones| ones == 0);
        let limit = self.layout.shape().most_ones();
        let first = self.layout.attempt();
        let mut attempts = 1;
        loop {
            self.insert_unlimited(keys, undo)?;
            let ones = self.bucket_ones.iter().copied().max().unwrap_or(0);
            if ones <= limit {
                return Ok(());
            }
            if !empty || attempts == MAX_ATTEMPTS {
                return Err(Error::BucketOverflow { attempts, limit, ones });
            }
            self.clear();
            self.layout = self.layout.at_attempt(first.wrapping_add(attempts));
            attempts += 1;
        }
    }

    /// Inserts all hashes.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Error> {
        self.insert_bulk(as_hashed(hashes))
    }

    /// One attempt at the build, without a look at overflows.
    fn insert_unlimited<K: Key>(&mut self, keys: &[K], undo: &mut Undo) -> Result<(), Error> {
        let layout = self.layout;
        let round = match layout.choices() {
            1 => keys.len().max(1),
            _ => usize::try_from(round_keys(layout.blocks(), layout.bucket_capacity())).unwrap_or(usize::MAX),
        };
        keys.chunks(round).try_for_each(|keys| self.insert_round(keys, undo))
    }

    /// One round: partition by the filter as it is now, then each bucket alone.
    fn insert_round<K: Key>(&mut self, keys: &[K], undo: &mut Undo) -> Result<(), Error> {
        let layout = self.layout;
        let (words, ones) = (self.words.as_slice(), &self.bucket_ones);
        let assign = |keys: &[K]| -> Vec<(u32, u64)> {
            let mut assigned = Vec::with_capacity(keys.len());
            let mut probes = [RaoProbe::default(); BATCH];
            for batch in keys.chunks(BATCH) {
                for (probe, key) in probes.iter_mut().zip(batch) {
                    *probe = layout.probe(key);
                    if layout.choices() == 2 {
                        layout.prefetch(words, probe);
                    }
                }
                for probe in &probes[..batch.len()] {
                    if layout.choices() == 1 {
                        assigned.push((probe.buckets[0], probe.hash));
                    } else if !layout.contains(words, probe) {
                        assigned.push((choose(ones, probe), probe.hash));
                    }
                }
            }
            assigned
        };
        let serial = is_serial(keys.len());
        let assigned: Vec<Vec<(u32, u64)>> =
            if serial { vec![assign(keys)] } else { keys.par_chunks(TASK).map(assign).collect() };

        // A counting sort of the hashes by bucket; `ends[b]` becomes the end of bucket `b`.
        let mut ends = vec![0usize; layout.blocks() as usize];
        for (bucket, _) in assigned.iter().flatten() {
            ends[*bucket as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut hashes = vec![0u64; sum];
        for (bucket, hash) in assigned.into_iter().flatten() {
            let at = &mut ends[bucket as usize];
            hashes[*at] = hash;
            *at += 1;
        }
        undo.save(self, &ends)?;

        let (hashes, ends) = (&hashes, &ends);
        let build = |(bucket, (words, ones)): (usize, (&mut [u32], &mut u32))| {
            let keys = &hashes[if bucket == 0 { 0 } else { ends[bucket - 1] }..ends[bucket]];
            if !keys.is_empty() {
                keys.iter().for_each(|&hash| layout.bucket_insert(words, hash));
                *ones = words.iter().map(|word| word.count_ones()).sum();
            }
        };
        let bucket_words = layout.shape().bucket_words as usize;
        let words = self.words.as_mut_slice();
        if serial {
            words.chunks_mut(bucket_words).zip(&mut self.bucket_ones).enumerate().for_each(build);
        } else {
            words.par_chunks_mut(bucket_words).zip(&mut self.bucket_ones).enumerate().for_each(build);
        }
        Ok(())
    }

    /// Inserts all keys and says which were new; the rule is that of
    /// [`SplitBlockBloom::test_and_insert_bulk`](crate::SplitBlockBloom::test_and_insert_bulk).
    ///
    /// An error, and no change, if a bucket overflows.
    pub fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let mut new = vec![false; keys.len()];
        self.test_and_insert_bulk_into(keys, &mut new)?;
        Ok(new)
    }

    /// [`RaoBloom::test_and_insert_bulk`] into a slice of the same length, which holds nothing of use after an error.
    pub fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        self.all_or_nothing(|filter, undo| {
            let batches = keys.chunks(TEST_AND_INSERT_BATCH).zip(new.chunks_mut(TEST_AND_INSERT_BATCH));
            for (keys, new) in batches {
                filter.contains_bulk_into(keys, new)?;
                let mut seen = HashSet::new();
                let mut fresh = Vec::new();
                for (key, new) in keys.iter().zip(new) {
                    let hash = filter.layout.probe(key).hash;
                    *new = !*new && seen.insert(hash);
                    if *new {
                        fresh.push(key);
                    }
                }
                filter.insert_undoable(&fresh, undo)?;
            }
            Ok(())
        })
    }

    /// [`RaoBloom::test_and_insert_bulk`] for hashes.
    pub fn test_and_insert_hashes(&mut self, hashes: &[u64]) -> Result<Vec<bool>, Error> {
        self.test_and_insert_bulk(as_hashed(hashes))
    }
}

/// What takes a bulk insertion back: nothing for an empty filter, else the buckets that it wrote to as they were.
struct Undo {
    layout: RaoLayout,
    was_empty: bool,
    /// The buckets in `copies`, one bit each.
    saved: Vec<u32>,
    /// Of every round, the buckets that it was the first to write to, and their words.
    copies: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Undo {
    fn new(filter: &RaoBloom) -> Result<Undo, Error> {
        let was_empty = filter.bucket_ones.iter().all(|&ones| ones == 0);
        let buckets = if was_empty { 0 } else { filter.bucket_ones.len() as u64 };
        let saved = Words::zeroed_vec(buckets.div_ceil(32))?;
        Ok(Undo { layout: filter.layout, was_empty, saved, copies: Vec::new() })
    }

    /// Copies the buckets that get keys and have not been copied; bucket `b` gets those up to `ends[b]`.
    fn save(&mut self, filter: &RaoBloom, ends: &[usize]) -> Result<(), Error> {
        if self.was_empty {
            return Ok(());
        }
        let saved = &self.saved;
        let is_saved = |bucket: usize| saved[bucket / 32] >> (bucket % 32) & 1 == 1;
        let gets_keys = |bucket: usize| ends[bucket] > if bucket == 0 { 0 } else { ends[bucket - 1] };
        let buckets = || (0..ends.len()).filter(|&bucket| gets_keys(bucket) && !is_saved(bucket));
        let bucket_words = filter.layout.shape().bucket_words as usize;
        let count = buckets().count() as u64;
        let mut numbers = Words::zeroed_vec(count)?;
        let mut words = Words::zeroed_vec(count * bucket_words as u64)?;
        numbers.iter_mut().zip(buckets()).for_each(|(number, bucket)| *number = bucket as u32);
        words.par_chunks_mut(bucket_words).zip(&numbers).for_each(|(to, &bucket)| {
            let start = filter.layout.bucket_start(bucket);
            to.copy_from_slice(&filter.words.as_slice()[start..start + bucket_words]);
        });
        numbers.iter().for_each(|&bucket| self.saved[bucket as usize / 32] |= 1 << (bucket % 32));
        self.copies.push((numbers, words));
        Ok(())
    }

    fn roll_back(self, filter: &mut RaoBloom) {
        filter.layout = self.layout;
        if self.was_empty {
            filter.clear();
        }
        let bucket_words = self.layout.shape().bucket_words as usize;
        for (numbers, words) in &self.copies {
            for (&bucket, from) in numbers.iter().zip(words.chunks(bucket_words)) {
                let start = self.layout.bucket_start(bucket);
                filter.words.as_mut_slice()[start..start + bucket_words].copy_from_slice(from);
                filter.bucket_ones[bucket as usize] = from.iter().map(|word| word.count_ones()).sum();
            }
        }
    }
}

/// The bucket that a key goes to.
#[inline]
fn choose(ones: &[u32], probe: &RaoProbe) -> u32 {
    let [a, b] = probe.buckets;
    probe.buckets[emptier([ones[a as usize], ones[b as usize]])]
}

/// Keys that find their buckets full go in all the same, as in a classic filter: the rate of false positives rises.
impl<K: Key> Extend<K> for RaoBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            let probe = self.layout.probe(&key);
            // With no limit there is no overflow.
            let _ = self.insert_one(&probe, u32::MAX);
        }
    }
}

/// A filter for 1% false positives, with defaults, of the size that the keys need.
impl<K: Key> FromIterator<K> for RaoBloom {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> RaoBloom {
        let hashes: Vec<Hashed> =
            keys.into_iter().map(|key| Hashed(key.seeded_hash(0, warpset_core::hash::spread_seed(0)))).collect();
        let mut filter = crate::builder::for_iterator(RaoBuilder::new(hashes.len().max(1) as u64).build());
        filter.extend(hashes);
        filter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FirstLevel, rates};
    use warpset_core::bloom::rao;
    use warpset_core::hash::string::StringHash;

    #[test]
    fn both_builds_contain_all_keys_and_count_them() {
        let keys: Vec<u64> = (0..50_000).collect();
        for choices in [1, 2] {
            let mut filter = RaoBloom::builder(50_000).choices(choices).bucket_words(256).build().unwrap();
            filter.insert_bulk(&keys[..20_000]).unwrap();
            filter.insert_bulk(&keys).unwrap();
            assert_eq!(filter.count_contained(&keys), keys.len());
            let estimate = filter.estimated_cardinality();
            assert!((49_000.0..51_000.0).contains(&estimate), "{estimate}");
            assert_eq!(filter.bucket_ones().iter().map(|&n| n as u64).sum::<u64>(), filter.count_ones());
            assert!(filter.bucket_ones().iter().all(|&n| n <= filter.layout().shape().most_ones()));
        }
    }

    #[test]
    fn one_choice_gives_the_same_bytes_key_by_key() {
        let keys: Vec<u64> = (0..40_000).collect();
        let mut bulk = RaoBloom::builder(50_000).choices(1).bucket_words(300).build().unwrap();
        let mut single = bulk.clone();
        bulk.insert_bulk(&keys).unwrap();
        for key in &keys {
            single.insert(key).unwrap();
        }
        assert!(bulk == single);
    }

    #[test]
    fn one_key_many_times_does_not_overflow() {
        for choices in [1, 2] {
            let mut filter = RaoBloom::builder(100).choices(choices).bucket_words(8).build().unwrap();
            filter.insert_bulk(&vec!["same"; 100_000]).unwrap();
            assert_eq!(filter.count_ones(), filter.layout().hashes() as u64);
        }
    }

    #[test]
    fn overflow_ends_in_a_typed_error_and_changes_nothing() {
        let keys: Vec<u64> = (0..10_000).collect();
        for choices in [1, 2] {
            let mut filter = RaoBloom::builder(1000).choices(choices).bucket_words(64).build().unwrap();
            let empty = filter.clone();
            assert!(matches!(filter.insert_bulk(&keys), Err(Error::BucketOverflow { attempts: MAX_ATTEMPTS, .. })));
            assert!(filter == empty && filter.layout() == empty.layout());
            assert!(matches!(filter.test_and_insert_bulk(&keys), Err(Error::BucketOverflow { .. })));
            assert!(filter == empty && filter.bucket_ones() == empty.bucket_ones());
            filter.insert_bulk(&keys[..900]).unwrap();
            let before = filter.clone();
            assert!(matches!(filter.insert_bulk(&keys), Err(Error::BucketOverflow { attempts: 1, .. })));
            assert!(matches!(filter.test_and_insert_bulk(&keys), Err(Error::BucketOverflow { .. })));
            assert!(filter == before && filter.bucket_ones() == before.bucket_ones());
            let mut i = 1000;
            while filter.insert(i as u64).is_ok() {
                i += 1;
            }
            filter.extend(keys.iter());
            assert_eq!(filter.count_contained(&keys), keys.len());
        }
    }

    #[test]
    fn a_batch_costs_copies_of_the_buckets_that_it_writes_to() {
        let mut filter = RaoBloom::builder(4000).choices(1).bucket_words(64).build().unwrap();
        let mut undo = Undo::new(&filter).unwrap();
        filter.insert_undoable(&(0..2000u64).collect::<Vec<_>>(), &mut undo).unwrap();
        assert!(undo.copies.is_empty());
        let before = filter.clone();
        let mut undo = Undo::new(&filter).unwrap();
        filter.insert_undoable(&[2000u64; 100], &mut undo).unwrap();
        filter.insert_undoable(&[2000u64; 100], &mut undo).unwrap();
        assert_eq!(undo.copies.iter().map(|(buckets, words)| (buckets.len(), words.len())).max(), Some((1, 64)));
        assert_eq!(undo.copies.iter().map(|(buckets, _)| buckets.len()).sum::<usize>(), 1);
        assert!(filter != before);
        undo.roll_back(&mut filter);
        assert!(filter == before && filter.bucket_ones() == before.bucket_ones());
    }

    #[test]
    fn restarts_find_a_first_level_hash() {
        // Thirty buckets filled to their capacity on average: many an attempt overflows.
        let shape = rao::Shape::new(320, 7).unwrap();
        let keys: Vec<u64> = (0..30 * rates::rao_bucket_capacity(shape) as u64).collect();
        let mut restarted = 0;
        for seed in 0..10 {
            let layout = RaoLayout::new(30, shape, 1, FirstLevel::Mixed, seed).unwrap();
            let mut filter = RaoBloom::with_layout(layout).unwrap();
            filter.insert_bulk(&keys).unwrap();
            restarted += (filter.layout().attempt() > 0) as u32;
            assert_eq!(filter.count_contained(&keys), keys.len());
        }
        assert!(restarted > 0);
    }

    #[test]
    fn string_functions_of_table_1_as_first_level() {
        let keys: Vec<String> = (0..5000).map(|i| format!("key number {i}")).collect();
        for function in [StringHash::Bkdr, StringHash::Djb, StringHash::Fnv, StringHash::Rs] {
            for choices in [1, 2] {
                let mut filter = RaoBloom::builder(5000)
                    .choices(choices)
                    .first_level(FirstLevel::String(function))
                    .load_factor(0.6)
                    .bucket_words(256)
                    .build()
                    .unwrap();
                filter.insert_bulk(&keys).unwrap();
                assert_eq!(filter.count_contained(&keys), keys.len());
            }
        }
    }

    #[test]
    fn test_and_insert_follows_its_rule() {
        for choices in [1, 2] {
            let mut filter = RaoBloom::builder(4000).choices(choices).bucket_words(128).build().unwrap();
            filter.insert_bulk(&(0..500u64).collect::<Vec<_>>()).unwrap();
            let before = filter.clone();
            let keys: Vec<u64> = (0..6000).map(|i| i % 2500).collect();
            let mut seen = std::collections::HashSet::new();
            let expected: Vec<bool> = keys.iter().map(|k| seen.insert(*k) && !before.contains(*k)).collect();
            assert_eq!(filter.test_and_insert_bulk(&keys).unwrap(), expected);
            assert_eq!(filter.count_contained(&keys), keys.len());
        }
    }
}

//! Rao's filter: the two-level build and its overflow.
//!
//! Bulk insertion follows section 4.4: keys are partitioned into buckets by the first-level hash (with two choices, to
//! the emptier), and each bucket's filter is built on its own (on the CPU: in place, by one task, while the bucket is
//! in the cache, as the paper has it in shared memory). If a bucket overflows, an empty filter starts again with
//! another first-level hash.
//!
//! Departures, with their reasons in [`warpset_core::bloom::rao`]: the load of a bucket is the number of its set bits;
//! two-choice assignment goes in rounds; a key that one of its buckets already contains is not inserted again.

use warpset_base::filter::same_length;
use warpset_core::bloom::TEST_AND_INSERT_BATCH;
use warpset_core::bloom::rao::round_keys;

use super::RaoBloom;
use super::by_hash::ByHash;
use crate::layout::engine::Engine;
use crate::layout::rao::{RaoProbe, probing};
use crate::{Error, Filter, Insert, Key, Layout, TestAndInsert};

mod partition;
mod round;
mod undo;

use partition::choose;
use round::Task;
use undo::Undo;

/// Keys that a round of an insertion with one choice takes at least; bounds the memory that sorting them needs. The
/// more buckets, the larger a round, so that saving the buckets that it writes to stays in proportion to the keys.
const ROUND: usize = 1 << 22;
/// See [`ROUND`].
const ROUND_KEYS_A_BUCKET: usize = 256;

/// First-level hashes that a bulk insertion into an empty filter tries.
pub const MAX_ATTEMPTS: u32 = 16;

/// On an error the filter is unchanged.
impl Insert for RaoBloom {
    type Inserted = ();

    /// Inserts all keys by the two-level build.
    ///
    /// If a bucket of a filter that was empty overflows, the build starts again with another first-level hash, at most
    /// 16 times. In a filter with keys the buckets of these are fixed, and an overflow is an error at
    /// once.
    ///
    /// # Errors
    /// [`Error::BucketOverflow`], [`Error::OutOfMemory`].
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.all_or_nothing(|filter, undo| filter.insert_undoable(keys, true, undo))
    }
    fn clear(&mut self) -> Result<(), Error> {
        self.reset();
        Ok(())
    }
    warpset_base::by_inherent! {
        fn insert(&mut self, key: impl Key) -> Result<(), Error>;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl TestAndInsert for RaoBloom {
    /// Inserts all keys and reports which were new. On an error the filter is unchanged and `new` has unspecified
    /// values.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::BucketOverflow`], [`Error::OutOfMemory`].
    fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        self.all_or_nothing(|filter, undo| {
            let last = keys.len().div_ceil(TEST_AND_INSERT_BATCH);
            let batches = keys.chunks(TEST_AND_INSERT_BATCH).zip(new.chunks_mut(TEST_AND_INSERT_BATCH));
            for (i, (keys, new)) in batches.enumerate() {
                filter.test_and_insert_step(keys, new, i + 1 == last, undo)?;
            }
            Ok(())
        })
    }
}

impl RaoBloom {
    /// Inserts a key; an error, and no change, if its bucket (with two choices: both) is full.
    ///
    /// # Errors
    /// [`Error::BucketOverflow`].
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<(), Error> {
        self.test_and_insert(key).map(|_| ())
    }

    /// Inserts the key; true if that changed a bit, hence if the key surely was not there.
    ///
    /// # Errors
    /// [`Error::BucketOverflow`].
    #[inline]
    pub fn test_and_insert(&mut self, key: impl Key) -> Result<bool, Error> {
        let probe = self.layout.probe(&key);
        let limit = self.layout.most_ones();
        self.insert_one(&probe, limit).map_err(|ones| Error::BucketOverflow { attempts: 1, limit, ones })
    }

    /// Inserts a key into the emptier of its buckets unless one contains it; true if a bit changed, an error (the
    /// number of bits that it would have) if the bucket would have more than `limit` bits set.
    #[inline]
    fn insert_one(&mut self, probe: &RaoProbe, limit: u32) -> Result<bool, u32> {
        let layout = self.layout;
        let mut bucket = probe.buckets[0];
        if layout.choices() == 2 {
            if layout.contains(self.words.as_slice(), probe) {
                return Ok(false);
            }
            bucket = choose(&self.bucket_ones, probe);
        }
        let shape = layout.shape();
        let (start, ones) = (layout.bucket_start(bucket), &mut self.bucket_ones[bucket as usize]);
        let words = &mut self.words.as_mut_slice()[start..start + shape.bucket_words as usize];
        if *ones > limit.saturating_sub(shape.hashes) {
            let missing = layout.bucket_missing(words, probe.hash);
            if missing > 0 && *ones + missing > limit {
                return Err(*ones + missing);
            }
        }
        let missing = probing::insert(shape, words, probe.hash);
        *ones += missing;
        Ok(missing > 0)
    }

    /// Returns the number of set bits of each bucket.
    pub fn bucket_ones(&self) -> &[u32] {
        &self.bucket_ones
    }

    /// Runs a bulk insertion, and undoes it if it fails.
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

    /// Inserts keys; on an error a part of them may be inserted. `is_last` marks the last insertion of the operation.
    /// See [`Insert::insert_bulk`].
    fn insert_undoable<K: Key>(&mut self, keys: &[K], is_last: bool, undo: &mut Undo) -> Result<(), Error> {
        let layout = self.layout;
        let round = match layout.choices() {
            1 => ROUND.max(ROUND_KEYS_A_BUCKET.saturating_mul(self.bucket_ones.len())),
            _ => usize::try_from(round_keys(layout.blocks(), layout.bucket_capacity())).unwrap_or(usize::MAX),
        };
        let rounds = keys.len().div_ceil(round);
        self.until_it_fits(|filter| {
            keys.chunks(round).enumerate().try_for_each(|(i, keys)| {
                filter.insert_round(keys, Task::Insert, is_last && i + 1 == rounds, undo).map(|_| ())
            })
        })
    }

    /// Runs an insertion that does not look at overflows: again with another first-level hash each time if the filter
    /// was empty, until no bucket overflows.
    fn until_it_fits<R>(&mut self, mut insert: impl FnMut(&mut RaoBloom) -> Result<R, Error>) -> Result<R, Error> {
        let empty = self.bucket_ones.iter().all(|&ones| ones == 0);
        let limit = self.layout.most_ones();
        let first = self.layout.attempt();
        let mut attempts = 1;
        loop {
            let result = insert(self)?;
            let ones = self.bucket_ones.iter().copied().max().unwrap_or(0);
            if ones <= limit {
                return Ok(result);
            }
            if !empty || attempts == MAX_ATTEMPTS {
                return Err(Error::BucketOverflow { attempts, limit, ones });
            }
            self.reset();
            self.layout = self.layout.at_attempt(first.wrapping_add(attempts));
            attempts += 1;
        }
    }

    /// Runs one step of [`TestAndInsert::test_and_insert_bulk`]. With one choice it is a round, which tells keys apart
    /// in their buckets; with two the buckets are unknown before the rounds of insertion.
    fn test_and_insert_step<K: Key>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
        is_last: bool,
        undo: &mut Undo,
    ) -> Result<(), Error> {
        if self.layout.choices() == 1 {
            let places = self.until_it_fits(|filter| filter.insert_round(keys, Task::TestAndInsert, is_last, undo))?;
            new.fill(false);
            places.iter().flatten().for_each(|place| new[*place as usize] = true);
            return Ok(());
        }
        self.contains_bulk_into(keys, new)?;
        let mut seen = ByHash::default();
        let mut fresh = Vec::new();
        for (key, new) in keys.iter().zip(new) {
            let hash = self.layout.probe(key).hash;
            *new = !*new && seen.insert(hash, ()).is_none();
            if *new {
                fresh.push(key);
            }
        }
        self.insert_undoable(&fresh, is_last, undo)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FirstLevel, RaoLayout, rates};
    use warpset_core::bloom::rao;
    use warpset_core::hash::string::StringHash;

    #[test]
    fn both_builds_contain_all_keys_and_count_them() {
        let keys: Vec<u64> = (0..50_000).collect();
        for choices in [1, 2] {
            let mut filter = RaoBloom::builder(50_000).choices(choices).bucket_words(256).build().unwrap();
            filter.insert_bulk(&keys[..20_000]).unwrap();
            filter.insert_bulk(&keys).unwrap();
            assert_eq!(filter.count_contained_bulk(&keys).unwrap(), keys.len());
            let estimate = filter.estimated_len();
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
            assert_eq!(filter.count_contained_bulk(&keys).unwrap(), keys.len());
        }
    }

    #[test]
    fn a_batch_costs_copies_of_the_buckets_that_it_writes_to() {
        let mut filter = RaoBloom::builder(4000).choices(1).bucket_words(64).build().unwrap();
        let mut undo = Undo::new(&filter).unwrap();
        filter.insert_undoable(&(0..2000u64).collect::<Vec<_>>(), false, &mut undo).unwrap();
        assert!(undo.copies.iter().all(|saved| saved.buckets.is_empty()));
        let before = filter.clone();
        let mut undo = Undo::new(&filter).unwrap();
        filter.insert_undoable(&[2000u64; 100], false, &mut undo).unwrap();
        filter.insert_undoable(&[2000u64; 100], false, &mut undo).unwrap();
        let copies = || undo.copies.iter().map(|saved| (saved.buckets.len(), saved.words.len()));
        assert_eq!(copies().max(), Some((1, 64)));
        assert_eq!(copies().map(|(buckets, _)| buckets).sum::<usize>(), 1);
        assert!(filter != before);
        undo.roll_back(&mut filter);
        assert!(filter == before && filter.bucket_ones() == before.bucket_ones());
    }

    #[test]
    fn restarts_find_a_first_level_hash() {
        // Thirty buckets filled to their capacity on average: many attempts overflow.
        let shape = rao::BucketShape::new(320, 7).unwrap();
        let keys: Vec<u64> = (0..30 * rates::rao_bucket_capacity(shape) as u64).collect();
        let mut restarted = 0;
        for seed in 0..10 {
            let layout = RaoLayout::new(30, shape, 1, FirstLevel::Mixed, seed).unwrap();
            let mut filter = RaoBloom::with_layout(layout).unwrap();
            filter.insert_bulk(&keys).unwrap();
            restarted += (filter.layout().attempt() > 0) as u32;
            assert_eq!(filter.count_contained_bulk(&keys).unwrap(), keys.len());
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
                assert_eq!(filter.count_contained_bulk(&keys).unwrap(), keys.len());
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
            assert_eq!(filter.count_contained_bulk(&keys).unwrap(), keys.len());
        }
    }

    fn on_threads<R: Send>(threads: usize, run: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
    }

    /// Compares every way to sort keys (unsorted, by counting, by comparing) with single insertions, for small and
    /// large filters with few and many buckets, on one thread and on several.
    #[test]
    fn every_way_to_sort_keys_gives_the_same_filter_and_answers() {
        for (buckets, bucket_words) in [(1u64, 4096), (5, 64), (9, 16_384), (40, 8192), (3000, 128)] {
            let shape = rao::BucketShape::new(bucket_words, 3).unwrap();
            let layout = RaoLayout::new(buckets, shape, 1, FirstLevel::Mixed, 1).unwrap();
            let capacity = (buckets * rates::rao_bucket_capacity(shape) as u64).min(150_000) as usize;
            for n in [3, 300, capacity / 4] {
                let before: Vec<u64> = (0..n as u64 / 3).collect();
                let keys: Vec<u64> = (0..n as u64).map(|i| i * 7 % (n as u64 / 2 + 1)).collect();
                let mut start = RaoBloom::with_layout(layout).unwrap();
                start.insert_bulk(&before).unwrap();
                let mut single = start.clone();
                keys.iter().for_each(|key| single.insert(*key).unwrap());
                let mut seen = std::collections::HashSet::new();
                let new: Vec<bool> = keys.iter().map(|key| seen.insert(*key) && !start.contains(*key)).collect();
                for threads in [1, 5] {
                    let (mut bulk, mut tested) = (start.clone(), start.clone());
                    on_threads(threads, || bulk.insert_bulk(&keys)).unwrap();
                    assert!(bulk == single && bulk.bucket_ones() == single.bucket_ones(), "{layout:?} {n} {threads}");
                    let answers = on_threads(threads, || tested.test_and_insert_bulk(&keys)).unwrap();
                    assert!(answers == new, "{layout:?} {n} {threads}");
                    assert!(tested == single && tested.bucket_ones() == single.bucket_ones());
                }
            }
        }
    }

    #[test]
    fn an_overflow_anywhere_changes_nothing() {
        for (buckets, bucket_words) in [(2u64, 512), (40, 8192)] {
            let shape = rao::BucketShape::new(bucket_words, 7).unwrap();
            let layout = RaoLayout::new(buckets, shape, 1, FirstLevel::Mixed, 1).unwrap();
            let capacity = buckets * rates::rao_bucket_capacity(shape) as u64;
            let mut filter = RaoBloom::with_layout(layout).unwrap();
            filter.insert_bulk(&(0..capacity * 9 / 10).collect::<Vec<_>>()).unwrap();
            let before = filter.clone();
            for (n, threads) in [(capacity / 2, 1), (capacity / 2, 5)] {
                let keys: Vec<u64> = (capacity..capacity + n).collect();
                let errors = on_threads(threads, || {
                    [filter.insert_bulk(&keys).unwrap_err(), filter.test_and_insert_bulk(&keys).unwrap_err()]
                });
                assert!(errors.iter().all(|error| matches!(error, Error::BucketOverflow { attempts: 1, .. })));
                assert!(filter == before && filter.bucket_ones() == before.bucket_ones());
            }
            // One bucket alone: its keys fill it up, the others stay as they are.
            let crowd: Vec<u64> =
                (capacity..).filter(|key| layout.probe(key).buckets[0] == 1).take(capacity as usize / 4).collect();
            let mixed: Vec<u64> = (2 * capacity..2 * capacity + 100).chain(crowd).collect();
            if buckets == 40 {
                assert!(filter.insert_bulk(&mixed).is_err() && filter.test_and_insert_bulk(&mixed).is_err());
            }
            assert!(filter == before && filter.bucket_ones() == before.bucket_ones());
        }
    }
}

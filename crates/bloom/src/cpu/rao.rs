//! Rao's filter: the two-level build and its overflow.
//!
//! Bulk insertion follows section 4.4: keys are partitioned into buckets by the first-level hash (with two choices, to
//! the emptier), each bucket's filter is built on its own (on the CPU: by one task, in a private copy that fits the
//! cache, as the paper has it in shared memory), and merged by OR. A bucket that would hold more than `m ln 2 / k` keys
//! overflows, and an empty filter starts again with another first-level hash.
//!
//! Departures: a key counts towards its bucket's load only if it sets a new bit, so that a key given many times cannot
//! overflow a bucket; with two choices, a key that either bucket already contains is not inserted again.

use rayon::prelude::*;
use warpset_core::bloom::TEST_AND_INSERT_BATCH;

use super::RaoBloom;
use crate::key::as_hashed;
use crate::layout::engine::Engine;
use crate::layout::rao::RaoProbe;
use crate::view::{TASK, is_serial, same_length};
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
        let layout = self.layout;
        insert_one(&layout, self.words.as_mut_slice(), &mut self.bucket_keys, &probe, layout.bucket_capacity())
            .map_err(|keys| overflow(&layout, 1, keys))
    }

    /// Inserts all keys by the two-level build.
    ///
    /// If a bucket overflows while the filter was empty, the build starts again with another first-level hash, 16 of
    /// them at most. If keys were there already, their buckets are fixed and the overflow is an error at once. On an
    /// error the filter is as it was.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let empty = self.bucket_keys.iter().all(|&n| n == 0);
        let first = self.layout.attempt();
        let mut last = None;
        for attempt in 0..if empty { MAX_ATTEMPTS } else { 1 } {
            let layout = self.layout.at_attempt(first.wrapping_add(attempt));
            match self.build(&layout, keys) {
                Ok(()) => {
                    self.layout = layout;
                    return Ok(());
                }
                Err(fullest) => last = Some(overflow(&layout, attempt + 1, fullest)),
            }
        }
        last.map_or(Ok(()), Err)
    }

    /// Inserts all hashes.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Error> {
        self.insert_bulk(as_hashed(hashes))
    }

    /// One attempt at the build; the error is the load of an overflowing bucket.
    fn build<K: Key>(&mut self, layout: &RaoLayout, keys: &[K]) -> Result<(), u64> {
        let probes: Vec<RaoProbe> = if is_serial(keys.len()) {
            keys.iter().map(|key| layout.probe(key)).collect()
        } else {
            keys.par_iter().with_min_len(TASK).map(|key| layout.probe(key)).collect()
        };
        if layout.choices() == 2 {
            self.build_by_choice(layout, &probes)
        } else {
            self.build_by_bucket(layout, &probes)
        }
    }

    /// Two choices: where a key goes depends on the keys before it, so keys go in one after the other.
    fn build_by_choice(&mut self, layout: &RaoLayout, probes: &[RaoProbe]) -> Result<(), u64> {
        let (mut words, mut loads) = (self.words.clone(), self.bucket_keys.clone());
        let to = words.as_mut_slice();
        let mut before: &[RaoProbe] = &[];
        for batch in probes.chunks(16).chain([&[][..]]) {
            batch.iter().for_each(|probe| layout.prefetch(to, probe));
            for probe in before {
                insert_one(layout, to, &mut loads, probe, layout.bucket_capacity())?;
            }
            before = batch;
        }
        self.words = words;
        self.bucket_keys = loads;
        Ok(())
    }

    /// One choice: partition, then each bucket alone.
    fn build_by_bucket(&mut self, layout: &RaoLayout, probes: &[RaoProbe]) -> Result<(), u64> {
        // A counting sort of the hashes by bucket; `ends[b]` becomes the end of bucket `b`.
        let mut ends = vec![0usize; layout.blocks() as usize];
        for probe in probes {
            ends[probe.buckets[0] as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut hashes = vec![0u64; probes.len()];
        for probe in probes {
            let at = &mut ends[probe.buckets[0] as usize];
            hashes[*at] = probe.hash;
            *at += 1;
        }
        let (hashes, ends) = (&hashes, &ends);
        let build = |(bucket, load): (usize, &u32)| -> Result<Option<(Vec<u32>, u32)>, u64> {
            let keys = &hashes[if bucket == 0 { 0 } else { ends[bucket - 1] }..ends[bucket]];
            if keys.is_empty() {
                return Ok(None);
            }
            let mut private = layout.bucket(self.words.as_slice(), bucket as u32).to_vec();
            let fresh = keys.iter().filter(|&&hash| layout.bucket_insert(&mut private, hash)).count() as u64;
            let load = *load as u64 + fresh;
            if load > layout.bucket_capacity() as u64 { Err(load) } else { Ok(Some((private, load as u32))) }
        };
        let built: Vec<_> = if is_serial(probes.len()) {
            self.bucket_keys.iter().enumerate().map(build).collect::<Result<_, _>>()?
        } else {
            self.bucket_keys.par_iter().enumerate().map(build).collect::<Result<_, _>>()?
        };
        for (bucket, built) in built.into_iter().enumerate() {
            if let Some((private, load)) = built {
                let start = layout.bucket_start(bucket as u32);
                self.words.as_mut_slice()[start..start + private.len()].copy_from_slice(&private);
                self.bucket_keys[bucket] = load;
            }
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

    /// [`RaoBloom::test_and_insert_bulk`] into a slice of the same length.
    pub fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        let mut next = self.clone();
        for (keys, new) in keys.chunks(TEST_AND_INSERT_BATCH).zip(new.chunks_mut(TEST_AND_INSERT_BATCH)) {
            next.contains_bulk_into(keys, new)?;
            new.iter_mut().for_each(|contained| *contained = !*contained);
            let mut seen = std::collections::HashSet::with_capacity(new.iter().filter(|n| **n).count());
            for (key, new) in keys.iter().zip(new.iter_mut()) {
                if *new {
                    let probe = next.layout.probe(key);
                    *new = seen.insert(probe.hash);
                    if *new {
                        next.test_and_insert(key)?;
                    }
                }
            }
        }
        *self = next;
        Ok(())
    }

    /// [`RaoBloom::test_and_insert_bulk`] for hashes.
    pub fn test_and_insert_hashes(&mut self, hashes: &[u64]) -> Result<Vec<bool>, Error> {
        self.test_and_insert_bulk(as_hashed(hashes))
    }
}

fn overflow(layout: &RaoLayout, attempts: u32, keys: u64) -> Error {
    Error::BucketOverflow { attempts, bucket_capacity: layout.bucket_capacity(), keys }
}

/// Inserts a key into the emptier of its buckets unless one contains it; true if a bit changed, an error (the load that
/// it would have) if both hold `capacity` keys.
fn insert_one(
    layout: &RaoLayout,
    words: &mut [u32],
    loads: &mut [u32],
    probe: &RaoProbe,
    capacity: u32,
) -> Result<bool, u64> {
    if layout.contains(words, probe) {
        return Ok(false);
    }
    let [a, b] = probe.buckets;
    let bucket = if loads[b as usize] < loads[a as usize] { b } else { a };
    let load = &mut loads[bucket as usize];
    if *load >= capacity {
        return Err(*load as u64 + 1);
    }
    *load += 1;
    let start = layout.bucket_start(bucket);
    layout.bucket_insert(&mut words[start..start + layout.shape().bucket_words as usize], probe.hash);
    Ok(true)
}

/// Keys that find their buckets full go in all the same, as in a classic filter: the rate of false positives rises.
impl<K: Key> Extend<K> for RaoBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let layout = self.layout;
        for key in keys {
            let probe = layout.probe(&key);
            // With no limit there is no overflow.
            let _ = insert_one(&layout, self.words.as_mut_slice(), &mut self.bucket_keys, &probe, u32::MAX);
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
    use crate::FirstLevel;
    use warpset_core::hash::string::StringHash;

    #[test]
    fn both_builds_contain_all_keys_and_count_them() {
        let keys: Vec<u64> = (0..50_000).collect();
        for choices in [1, 2] {
            let mut filter = RaoBloom::builder(50_000).choices(choices).bucket_words(256).build().unwrap();
            filter.insert_bulk(&keys[..20_000]).unwrap();
            filter.insert_bulk(&keys).unwrap();
            assert_eq!(filter.count_contained(&keys), keys.len());
            let counted: u32 = filter.bucket_keys().iter().sum();
            assert!((49_000..=50_000).contains(&counted), "{counted}");
            assert!(filter.bucket_keys().iter().all(|&n| n <= filter.layout().bucket_capacity()));
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
            assert_eq!(filter.bucket_keys().iter().sum::<u32>(), 1);
        }
    }

    #[test]
    fn overflow_ends_in_a_typed_error_and_changes_nothing() {
        let keys: Vec<u64> = (0..10_000).collect();
        for choices in [1, 2] {
            let mut filter = RaoBloom::builder(1000).choices(choices).bucket_words(64).build().unwrap();
            let empty = filter.clone();
            assert!(matches!(filter.insert_bulk(&keys), Err(Error::BucketOverflow { attempts: MAX_ATTEMPTS, .. })));
            assert!(filter == empty);
            filter.insert_bulk(&keys[..900]).unwrap();
            let before = filter.clone();
            assert!(matches!(filter.insert_bulk(&keys), Err(Error::BucketOverflow { attempts: 1, .. })));
            assert!(matches!(filter.test_and_insert_bulk(&keys), Err(Error::BucketOverflow { .. })));
            assert!(filter == before);
            let mut i = 1000;
            while filter.insert(i as u64).is_ok() {
                i += 1;
            }
            filter.extend(keys.iter());
            assert_eq!(filter.count_contained(&keys), keys.len());
        }
    }

    #[test]
    fn restarts_find_a_first_level_hash() {
        // Buckets of 1013 keys filled to 960 on average: one attempt in five overflows.
        let mut restarted = 0;
        for seed in 0..20 {
            let keys: Vec<u64> = (0..4800).collect();
            let mut filter =
                RaoBloom::builder(4800).choices(1).load_factor(0.95).bucket_words(320).seed(seed).build().unwrap();
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

//! Colliding keys: equal ones are an error, others need another seed.

use crate::Error;
use warpset_base::key::{Hash128, Key};

/// Returns the positions of the keys with this bucket and this low half of their hash.
pub(crate) fn positions_of(hashes: impl Iterator<Item = Hash128>, bucket: u64, low: u64, buckets: u64) -> Vec<u64> {
    use warpset_core::recsplit::hash::bucket_of;
    let hits = hashes.enumerate().filter(|(_, hash)| hash.low == low && bucket_of(hash.high, buckets) == bucket);
    hits.map(|(position, _)| position as u64).collect()
}

/// Fails if two of the colliding keys are equal; otherwise another seed helps.
pub(crate) fn check_duplicates<K: Key>(mut colliding: impl Iterator<Item = (u64, K)>) -> Result<(), Error> {
    let mut duplicates = Duplicates::default();
    colliding.try_for_each(|(position, key)| duplicates.see(position, &key))
}

/// Colliding keys. They count as equal if their 128-bit hashes are equal under two more seeds.
#[derive(Default)]
pub(crate) struct Duplicates {
    seen: Vec<((Hash128, Hash128), u64)>,
}

impl Duplicates {
    /// Adds a key; fails if an equal one was added before.
    pub(crate) fn see<K: Key + ?Sized>(&mut self, position: u64, key: &K) -> Result<(), Error> {
        let identity = (key.hash128(0x5bd1_e995_9d1b_54a3), key.hash128(0x2545_f491_4f6c_dd1d));
        if let Some(&(_, first)) = self.seen.iter().find(|(other, _)| *other == identity) {
            return Err(Error::DuplicateKey { first, second: position, key: key.describe() });
        }
        self.seen.push((identity, position));
        Ok(())
    }
}

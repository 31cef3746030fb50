//! Lookups of many keys, on all threads and in batches.

use crate::batch::BATCH;
use crate::function::Lookup;
use crate::{HashKind, Number};
use warpset_base::key::{Hash128, Key};
use warpset_base::parallel;

/// Nanoseconds per key.
const LOOKUP_NS: f64 = 25.0;

/// Runs `work` for all keys, on the threads of the current pool. It gets some keys and the places of their answers, one
/// place per `PER` keys; `answers` has `keys.len().div_ceil(PER)` places.
pub(crate) fn in_chunks<const PER: usize, K: Sync, A: Send>(
    keys: &[K],
    answers: &mut [A],
    work: impl Fn(&[K], &mut [A]) + Sync,
) {
    const { assert!(64 % PER == 0) };
    parallel::answer(keys, answers, (LOOKUP_NS, PER), work);
}

impl<M: HashKind> Lookup<'_, M> {
    /// Looks up many keys on the calling thread; the slices have equal lengths.
    pub(crate) fn get_here<K: Key, N: Number>(self, keys: &[K], numbers: &mut [N]) {
        M::get_many(self, keys, numbers);
    }

    /// Hashes many keys and looks them up on the calling thread; the slices have equal lengths.
    pub(crate) fn hash_and_get<K: Key, N: Number>(self, keys: &[K], numbers: &mut [N]) {
        let seed = self.parameters.header.seed;
        for (keys, numbers) in keys.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            let (mut hashes, mut found) = ([Hash128::default(); BATCH], [0; BATCH]);
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = M::hash(key, seed);
            }
            M::get_batch(self, &hashes[..keys.len()], &mut found[..keys.len()]);
            numbers.iter_mut().zip(found).for_each(|(number, found)| *number = N::narrow(found));
        }
    }

    /// Looks up many keys by their hashes, on the calling thread; the slices have equal lengths.
    pub(crate) fn get_hashes(self, hashes: &[Hash128], numbers: &mut [u64]) {
        for (hashes, numbers) in hashes.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            M::get_batch(self, hashes, numbers);
        }
    }
}

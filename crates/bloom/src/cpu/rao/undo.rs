//! Undoing a bulk insertion.

use crate::cpu::RaoBloom;
use crate::{Error, RaoLayout};
use warpset_base::words::zeroed_vec;

/// Data to restore a filter: none if it was empty, else copies of the buckets that were written.
pub(super) struct Undo {
    layout: RaoLayout,
    pub(super) was_empty: bool,
    /// 1 for each bucket that is in `copies`.
    pub(super) saved: Vec<u32>,
    pub(super) copies: Vec<Saved>,
}

impl Undo {
    pub(super) fn new(filter: &RaoBloom) -> Result<Undo, Error> {
        let was_empty = filter.bucket_ones.iter().all(|&ones| ones == 0);
        let saved = zeroed_vec(filter.bucket_ones.len() as u64)?;
        Ok(Undo { layout: filter.layout, was_empty, saved, copies: Vec::new() })
    }

    pub(super) fn roll_back(self, filter: &mut RaoBloom) {
        filter.layout = self.layout;
        if self.was_empty {
            filter.reset();
        }
        let bucket_words = self.layout.shape().bucket_words as usize;
        for Saved { buckets, words } in &self.copies {
            for (&bucket, from) in buckets.iter().zip(words.chunks(bucket_words)) {
                let start = self.layout.bucket_start(bucket);
                filter.words.as_mut_slice()[start..start + bucket_words].copy_from_slice(from);
                filter.bucket_ones[bucket as usize] = from.iter().map(|word| word.count_ones()).sum();
            }
        }
    }
}

/// Adds the buckets that the parts of a round saved to `copies`; returns the first error, if any.
pub(super) fn keep(saved: Vec<Result<Saved, Error>>, copies: &mut Vec<Saved>) -> Result<(), Error> {
    let mut result = Ok(());
    for saved in saved {
        match saved {
            Ok(saved) => copies.push(saved),
            Err(error) => result = result.and(Err(error)),
        }
    }
    result
}

/// Old contents of buckets, one after the other.
#[derive(Default)]
pub(super) struct Saved {
    pub(super) buckets: Vec<u32>,
    pub(super) words: Vec<u32>,
}

impl Saved {
    /// Copies those of `buckets` that are not marked in `saved`, and marks them. They are counted from bucket `first`,
    /// where `words` begin.
    pub(super) fn copy(
        first: u32,
        words: &[u32],
        bucket_words: usize,
        buckets: &[u32],
        saved: &mut [u32],
    ) -> Result<Saved, Error> {
        let buckets: Vec<u32> = buckets.iter().copied().filter(|&bucket| saved[bucket as usize] == 0).collect();
        let mut copy = zeroed_vec(buckets.len() as u64 * bucket_words as u64)?;
        for (&bucket, to) in buckets.iter().zip(copy.chunks_mut(bucket_words)) {
            to.copy_from_slice(&words[bucket as usize * bucket_words..][..bucket_words]);
            saved[bucket as usize] = 1;
        }
        Ok(Saved { buckets: buckets.into_iter().map(|bucket| first + bucket).collect(), words: copy })
    }
}

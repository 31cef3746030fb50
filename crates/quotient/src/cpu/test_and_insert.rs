//! Insertion that reports which keys were new.

use warpset_base::bitmap::Bitmap;
use warpset_base::sort::sort_by_rank;

use super::QuotientFilter;
use crate::slot_kind::SlotKind;
use crate::{Error, Key, Layout};

impl<S: SlotKind> QuotientFilter<S> {
    /// Inserts a key as [`insert`](QuotientFilter::insert) does. Returns `true` if the key's fingerprint was not there,
    /// and so the key certainly was not, whatever the setting for duplicates.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert`].
    pub fn test_and_insert(&mut self, key: impl Key) -> Result<bool, Error> {
        let fingerprint = self.layout.expect_fingerprint(self.layout.fingerprint(key))?;
        let is_new = !self.contains_fingerprint(fingerprint);
        self.insert_fingerprint(fingerprint)?;
        Ok(is_new)
    }
}

/// Reports which keys are new to a filter that held the keys set in `there`: the first of equal fingerprints is.
pub(crate) fn new_keys<K: Key>(layout: &Layout, keys: &[K], there: &Bitmap, new: &mut [bool]) {
    let of = layout.fingerprints_of();
    let absent = keys.iter().zip(there.iter()).enumerate().filter(|(_, (_, there))| !there);
    let mut absent: Vec<(u64, usize)> = absent.filter_map(|(i, (key, _))| Some((of.of(key)?, i))).collect();
    // The sort is stable, so equal fingerprints keep the order of the batch.
    sort_by_rank(&mut absent, layout.fingerprint_bits(), |(fingerprint, _)| fingerprint);
    new.fill(false);
    absent.chunk_by(|a, b| a.0 == b.0).for_each(|equal| new[equal[0].1] = true);
}

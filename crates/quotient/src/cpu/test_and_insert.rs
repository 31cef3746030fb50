//! Insertion that says which keys were new.

use warpset_base::bitmap::Bitmap;
use warpset_base::sort::sort_by_rank;

use super::QuotientFilter;
use crate::slot_kind::SlotKind;
use crate::{Error, Key, Layout};

impl<S: SlotKind> QuotientFilter<S> {
    /// [`insert`](QuotientFilter::insert), whatever is done with duplicates; true if the key's fingerprint was not
    /// there, hence if the key surely was not.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert`].
    pub fn test_and_insert(&mut self, key: impl Key) -> Result<bool, Error> {
        let fingerprint = self.layout.expect_fingerprint(self.layout.fingerprint(key))?;
        let is_new = !self.contains_fingerprint(fingerprint);
        self.insert_fingerprint(fingerprint)?;
        Ok(is_new)
    }

    /// [`insert_bulk`](QuotientFilter::insert_bulk), and which keys were new: those whose fingerprint was not there, of
    /// equal fingerprints in the batch the first. A lookup and an insertion of the batch, and a sort of what was not
    /// there.
    ///
    /// ```
    /// use warpset_quotient::StandardQuotientFilter;
    ///
    /// let mut seen = StandardQuotientFilter::builder(1000).build_from(&["a"])?;
    /// assert_eq!(seen.test_and_insert_bulk(&["a", "b", "b"])?, [false, true, false]);
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_bulk`]; nothing has been changed then.
    pub fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let there = self.contains_bitmap_bulk(keys);
        self.insert_bulk(keys)?;
        Ok(new_keys(&self.layout, keys, &there))
    }
}

/// Which of the keys are new to a filter that held those that `there` names: of equal fingerprints the first.
pub(crate) fn new_keys<K: Key>(layout: &Layout, keys: &[K], there: &Bitmap) -> Vec<bool> {
    let of = layout.fingerprints_of();
    let absent = keys.iter().zip(there.iter()).enumerate().filter(|(_, (_, there))| !there);
    let mut absent: Vec<(u64, usize)> = absent.filter_map(|(i, (key, _))| Some((of.of(key)?, i))).collect();
    // Stable, so that equal ones stay in the order of the batch.
    sort_by_rank(&mut absent, layout.fingerprint_bits(), |(fingerprint, _)| fingerprint);
    let mut new = vec![false; keys.len()];
    absent.chunk_by(|a, b| a.0 == b.0).for_each(|equal| new[equal[0].1] = true);
    new
}

//! Finished filter of a build side's keys.

use std::hash::{Hash, Hasher};

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::common::NullEquality;
use datafusion::execution::memory_pool::MemoryReservation;
use warpset_base::key::Key;
use warpset_bloom::{Error, Filter, SplitBlockBloom, as_hashed};

use super::bitmap::KeyBitmap;
use super::hash_rows::hash_rows;
use super::usefulness::Usefulness;
use crate::error::Cause;
use crate::keys::{Visitor, visit};

/// Keys of a build side.
#[derive(Debug)]
pub(crate) enum Keys {
    /// Keys of one column of integers without NULL.
    Exact(KeyBitmap),
    Hashed(SplitBlockBloom),
}

/// Finished filter; equal to itself alone.
#[derive(Debug)]
pub(crate) struct KeyFilter {
    pub(crate) keys: Keys,
    pub(crate) nulls: NullEquality,
    pub(crate) usefulness: Usefulness,
    /// Accounts for the filter's memory until the last reference is dropped.
    pub(crate) _reservation: MemoryReservation,
}

impl KeyFilter {
    /// Returns the rows that may have a partner; `None` if all may, or if the filter was skipped.
    pub(crate) fn ask(&self, keys: &[ArrayRef]) -> Result<Option<BooleanArray>, Cause> {
        let rows = keys.first().map_or(0, |keys| keys.len());
        if rows == 0 || !self.usefulness.asks(rows) {
            return Ok(None);
        }
        let (answers, valid) = self.answers(keys)?;
        let mut kept = BooleanBuffer::new(Buffer::from_vec(answers), 0, rows);
        if let Some(valid) = valid {
            kept = &kept & valid.inner();
        }
        let dropped = rows - kept.count_set_bits();
        self.usefulness.record(rows, dropped);
        Ok((dropped > 0).then(|| BooleanArray::new(kept, None)))
    }

    /// Returns the filter's answer for each row as one bit, and the rows that can have a partner at all.
    fn answers(&self, keys: &[ArrayRef]) -> Result<(Vec<u64>, Option<NullBuffer>), Cause> {
        if let [keys] = keys {
            let nulls = keys.logical_nulls().filter(|nulls| nulls.null_count() > 0);
            if nulls.is_none() || self.nulls == NullEquality::NullEqualsNothing {
                // With one column, no hashes are stored.
                return Ok((visit(keys, Lookup(&self.keys))??, nulls));
            }
        }
        let rows = hash_rows(keys, self.nulls)?;
        Ok((Lookup(&self.keys).visit(as_hashed(&rows.hashes))?, rows.valid))
    }
}

struct Lookup<'a>(&'a Keys);

impl Visitor for Lookup<'_> {
    type Output = Result<Vec<u64>, Error>;

    fn visit<K: Key + Copy>(self, keys: &[K]) -> Result<Vec<u64>, Error> {
        match self.0 {
            Keys::Exact(bitmap) => Ok(bitmap.contains_bulk(keys)),
            Keys::Hashed(filter) => Ok(filter.contains_bitmap_bulk(keys)?.into_words()),
        }
    }
}

impl PartialEq for KeyFilter {
    fn eq(&self, other: &KeyFilter) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for KeyFilter {}
impl Hash for KeyFilter {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        std::ptr::from_ref(self).hash(hasher);
    }
}

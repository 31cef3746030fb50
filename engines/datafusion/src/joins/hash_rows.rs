//! One hash per row of a join's key columns.
//!
//! The hash of one column is the hash of its split-block filter, so `might_contain` and the filters inside Parquet
//! files agree with it. Each further column is combined by the hash of a pair. If NULL equals NULL, it has a hash of
//! its own.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::common::NullEquality;
use warpset_base::key::{Hashed, Key};
use warpset_bloom::SplitBlockLayout;
use warpset_fuse::word_of;

use crate::error::Cause;
use crate::keys::{self, Visitor};

/// Hash of NULL where NULL equals NULL. The value is arbitrary: another key with it is a false positive.
const NULL: Hashed = Hashed(0x6e75_6c6c_2069_7320);

/// The hashes of rows.
pub(crate) struct RowHashes {
    /// One per row; arbitrary for invalid rows.
    pub(crate) hashes: Vec<u64>,
    /// Rows with a hash; `None` for all.
    pub(crate) valid: Option<NullBuffer>,
}

/// Hashes rows of at least one key column, of types that [`keys::check_type`] accepts.
pub(crate) fn hash_rows(columns: &[ArrayRef], nulls: NullEquality) -> Result<RowHashes, Cause> {
    let layout = SplitBlockLayout::new(1)?;
    let mut hashes = Vec::new();
    let mut valid: Option<NullBuffer> = None;
    for column in columns {
        let null_rows = column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let of_nulls = null_rows.as_ref().filter(|_| nulls == NullEquality::NullEqualsNull);
        if hashes.is_empty() {
            hashes.reserve_exact(column.len());
            keys::visit(column, First { layout, hashes: &mut hashes })?;
            for row in null_indices(of_nulls) {
                hashes[row] = NULL.0;
            }
        } else {
            let before: Vec<(usize, u64)> = null_indices(of_nulls).map(|row| (row, hashes[row])).collect();
            keys::visit(column, Next { layout, hashes: &mut hashes })?;
            for (row, hash) in before {
                hashes[row] = layout.hash((Hashed(hash), NULL)).0;
            }
        }
        if nulls == NullEquality::NullEqualsNothing {
            valid = NullBuffer::union(valid.as_ref(), null_rows.as_ref());
        }
    }
    Ok(RowHashes { hashes, valid })
}

/// Returns one integer per row of a column in place of its hash: its value, sign-extended to 64 bits.
pub(crate) fn integers(column: &ArrayRef) -> Result<RowHashes, Cause> {
    let mut hashes = Vec::new();
    keys::visit(column, Integers(&mut hashes))?;
    Ok(RowHashes { hashes, valid: column.logical_nulls().filter(|nulls| nulls.null_count() > 0) })
}

struct Integers<'a>(&'a mut Vec<u64>);

impl Visitor for Integers<'_> {
    type Output = ();

    fn visit<K: Key + Copy>(self, keys: &[K]) {
        self.0.extend(keys.iter().map(word_of));
    }
}

fn null_indices(nulls: Option<&NullBuffer>) -> impl Iterator<Item = usize> + '_ {
    nulls.into_iter().flat_map(|nulls| (0..nulls.len()).filter(|&row| nulls.is_null(row)))
}

struct First<'a> {
    layout: SplitBlockLayout,
    hashes: &'a mut Vec<u64>,
}

impl Visitor for First<'_> {
    type Output = ();

    fn visit<K: Key + Copy>(self, keys: &[K]) {
        self.hashes.extend(keys.iter().map(|key| self.layout.hash(*key).0));
    }
}

struct Next<'a> {
    layout: SplitBlockLayout,
    hashes: &'a mut Vec<u64>,
}

impl Visitor for Next<'_> {
    type Output = ();

    fn visit<K: Key + Copy>(self, keys: &[K]) {
        for (hash, key) in self.hashes.iter_mut().zip(keys) {
            *hash = self.layout.hash((Hashed(*hash), *key)).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, Int64Array, StringArray, StringViewArray};

    use super::*;

    fn hashes(columns: &[ArrayRef], nulls: NullEquality) -> Vec<Option<u64>> {
        let rows = hash_rows(columns, nulls).unwrap();
        let valid = |row| rows.valid.as_ref().is_none_or(|valid| valid.is_valid(row));
        rows.hashes.iter().enumerate().map(|(row, &hash)| valid(row).then_some(hash)).collect()
    }

    #[test]
    fn rows_without_a_partner_have_no_hash() {
        let a: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), None]));
        let b: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some("x"), None, None]));
        let found = hashes(&[a.clone(), b.clone()], NullEquality::NullEqualsNothing);
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false, false]);
        let found = hashes(&[a, b], NullEquality::NullEqualsNull);
        let mut different: Vec<u64> = found.into_iter().flatten().collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 4);
    }

    #[test]
    fn one_column_hashes_as_its_filter_does_and_layouts_of_a_type_agree() {
        let layout = SplitBlockLayout::new(1).unwrap();
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![-7]));
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![-7]));
        let expected = vec![Some(layout.hash(-7i64).0)];
        assert_eq!(hashes(&[narrow], NullEquality::NullEqualsNothing), expected);
        assert_eq!(hashes(std::slice::from_ref(&wide), NullEquality::NullEqualsNull), expected);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["warp"]));
        let view: ArrayRef = Arc::new(StringViewArray::from(vec!["warp"]));
        let both = |text| hashes(&[wide.clone(), text], NullEquality::NullEqualsNothing);
        assert_eq!(both(text), both(view));
        let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
        assert_eq!(hashes(&[none.clone(), none], NullEquality::NullEqualsNull), []);
    }
}

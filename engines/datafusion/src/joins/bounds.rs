//! Bounds of the build keys, for pruning: smallest and largest key, and the keys themselves while they are few.
//!
//! The engine compares the bounds with the statistics of files, row groups and pages, and looks listed keys up in the
//! Bloom filters of row groups.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{NullEquality, Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, InListExpr, lit};
use datafusion_functions_aggregate_common::min_max::{max_batch, min_batch};

/// Most distinct keys of a list.
const MOST_LISTED: usize = 128;
/// Most rows of one partition that are considered for the list.
const MOST_ROWS: usize = 4096;

/// Smallest and largest value of a column; null while empty.
#[derive(Debug, Clone)]
struct Range {
    least: ScalarValue,
    most: ScalarValue,
}

/// Bounds of the build keys of one partition.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// Per key column; `None` if the column cannot be pruned by.
    columns: Vec<Option<Range>>,
    /// Keys of a join on one column, while there are few rows.
    listed: Option<Vec<ArrayRef>>,
}

impl Bounds {
    /// Returns empty bounds for columns of these types.
    pub(crate) fn new(types: &[DataType]) -> Bounds {
        let range = |column: &DataType| {
            let null = ScalarValue::try_from(column).ok()?;
            let ordered = !matches!(column, DataType::Null | DataType::Dictionary(..));
            ordered.then(|| Range { least: null.clone(), most: null })
        };
        let columns: Vec<Option<Range>> = types.iter().map(range).collect();
        let listed = matches!(&columns[..], [Some(_)]).then(Vec::new);
        Bounds { columns, listed }
    }

    /// Widens the bounds.
    pub(crate) fn add(&mut self, keys: &[ArrayRef], nulls: NullEquality) {
        for (bounds, keys) in self.columns.iter_mut().zip(keys) {
            let Some(range) = bounds else { continue };
            // NULL is outside of every range.
            let null_is_a_key = nulls == NullEquality::NullEqualsNull && keys.logical_null_count() > 0;
            let added = min_batch(keys).and_then(|least| Ok(Range { least, most: max_batch(keys)? }));
            if null_is_a_key || !added.is_ok_and(|added| range.widen(added)) {
                *bounds = None;
            }
        }
        if self.columns[0].is_none() {
            self.listed = None;
        }
        if let (Some(listed), [keys]) = (&mut self.listed, keys) {
            listed.push(keys.clone());
            if listed.iter().map(|keys| keys.len()).sum::<usize>() > MOST_ROWS {
                self.listed = None;
            }
        }
    }

    /// Adds the bounds of another partition.
    pub(crate) fn merge(&mut self, other: Bounds) {
        for (bounds, other) in self.columns.iter_mut().zip(other.columns) {
            let widened = bounds.as_mut().zip(other).is_some_and(|(range, other)| range.widen(other));
            if !widened {
                *bounds = None;
            }
        }
        self.listed = self.listed.take().zip(other.listed).map(|(mut all, other)| {
            all.extend(other);
            all
        });
    }

    /// Returns conditions that hold for every row of `schema` with `keys` among the added keys.
    pub(crate) fn conditions(
        &self,
        keys: &[Arc<dyn PhysicalExpr>],
        schema: &Schema,
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let mut conditions: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
        for (range, key) in self.columns.iter().zip(keys) {
            if let Some(Range { least, most }) = range
                && !least.is_null()
            {
                conditions.push(Arc::new(BinaryExpr::new(key.clone(), Operator::GtEq, lit(least.clone()))));
                conditions.push(Arc::new(BinaryExpr::new(key.clone(), Operator::LtEq, lit(most.clone()))));
            }
        }
        if let ([key], Some(list)) = (keys, self.list()?) {
            conditions.push(Arc::new(InListExpr::try_new_from_array(key.clone(), list, false, schema)?));
        }
        Ok(conditions)
    }

    /// Returns the distinct keys if they are few.
    fn list(&self) -> Result<Option<ArrayRef>> {
        let mut different = HashSet::new();
        for keys in self.listed.iter().flatten() {
            for row in (0..keys.len()).filter(|&row| keys.is_valid(row)) {
                different.insert(ScalarValue::try_from_array(keys, row)?);
                if different.len() > MOST_LISTED {
                    return Ok(None);
                }
            }
        }
        if different.is_empty() { Ok(None) } else { ScalarValue::iter_to_array(different).map(Some) }
    }
}

impl Range {
    /// Extends the range by another one; false if they cannot be compared.
    fn widen(&mut self, other: Range) -> bool {
        if other.least.is_null() {
            return true;
        }
        if self.least.is_null() {
            *self = other;
            return true;
        }
        let (Some(least), Some(most)) = (other.least.partial_cmp(&self.least), other.most.partial_cmp(&self.most))
        else {
            return false;
        };
        if least == Ordering::Less {
            self.least = other.least;
        }
        if most == Ordering::Greater {
            self.most = other.most;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::Column;

    use super::*;

    fn integers(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    fn conditions(bounds: &Bounds, types: &[DataType]) -> String {
        let fields: Vec<Field> = types.iter().map(|kind| Field::new("k", kind.clone(), true)).collect();
        let keys: Vec<Arc<dyn PhysicalExpr>> = (0..types.len()).map(|i| Arc::new(Column::new("k", i)) as _).collect();
        let conditions = bounds.conditions(&keys, &Schema::new(fields)).unwrap();
        conditions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" AND ")
    }

    #[test]
    fn ranges_and_lists() {
        let types = [DataType::Int64];
        let mut bounds = Bounds::new(&types);
        assert_eq!(conditions(&bounds, &types), "");
        bounds.add(&[integers(&[Some(5), None])], NullEquality::NullEqualsNothing);
        let mut other = Bounds::new(&types);
        other.add(&[integers(&[Some(5)])], NullEquality::NullEqualsNothing);
        bounds.merge(other);
        assert_eq!(conditions(&bounds, &types), "k@0 >= 5 AND k@0 <= 5 AND k@0 IN (SET) ([5])");
        let many: Vec<Option<i64>> = (0..200).map(Some).collect();
        bounds.add(&[integers(&many)], NullEquality::NullEqualsNothing);
        assert_eq!(conditions(&bounds, &types), "k@0 >= 0 AND k@0 <= 199");
        bounds.add(&[integers(&[None])], NullEquality::NullEqualsNull);
        assert_eq!(conditions(&bounds, &types), "");
    }

    #[test]
    fn several_columns_have_ranges_of_their_own() {
        let types = [DataType::Int64, DataType::Utf8];
        let mut bounds = Bounds::new(&types);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["b", "a"]));
        bounds.add(&[integers(&[None, Some(3)]), text], NullEquality::NullEqualsNull);
        assert_eq!(conditions(&bounds, &types), "k@1 >= a AND k@1 <= b");
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        assert!(Bounds::new(&[dictionary]).listed.is_none());
    }
}

//! Rows of a batch that an aggregate takes, with their groups.

use std::borrow::Cow;

use datafusion::arrow::array::{Array, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;

/// Rows of a batch that an aggregate takes.
pub(crate) struct Rows<'a> {
    len: usize,
    /// One group per row; `None` if all rows belong to group 0.
    groups: Option<&'a [usize]>,
    /// Rows that are neither null nor filtered out; `None` for all.
    taken: Option<BooleanBuffer>,
}

impl<'a> Rows<'a> {
    /// Selects the rows of `values` that are not null and pass the aggregate's `FILTER`, if there is one.
    pub(crate) fn of(values: &dyn Array, groups: Option<&'a [usize]>, filter: Option<&BooleanArray>) -> Rows<'a> {
        let valid = values.logical_nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| nulls.into_inner());
        let holds = filter.map(|filter| match filter.nulls() {
            Some(nulls) => filter.values() & nulls.inner(),
            None => filter.values().clone(),
        });
        let taken = match (valid, holds) {
            (Some(valid), Some(holds)) => Some(&valid & &holds),
            (valid, holds) => valid.or(holds),
        };
        Rows { len: values.len(), groups, taken }
    }

    /// Whether rows have groups.
    pub(crate) fn are_grouped(&self) -> bool {
        self.groups.is_some()
    }

    /// Calls `take` with each row and its group.
    pub(crate) fn try_for_each<E>(&self, mut take: impl FnMut(usize, usize) -> Result<(), E>) -> Result<(), E> {
        let group = |row: usize| self.groups.map_or(0, |groups| groups[row]);
        match &self.taken {
            None => (0..self.len).try_for_each(|row| take(row, group(row))),
            Some(taken) => taken.set_indices().try_for_each(|row| take(row, group(row))),
        }
    }

    /// Returns the items of the rows, as a copy if some rows are left out.
    pub(crate) fn select<'k, K: Copy>(&self, items: &'k [K]) -> Cow<'k, [K]> {
        match &self.taken {
            None => items.into(),
            Some(taken) => taken.set_indices().map(|row| items[row]).collect::<Vec<K>>().into(),
        }
    }
}

//! Condition of the probe side: the row may have a partner.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use super::key_filter::KeyFilter;

/// Name in plans and errors.
const NAME: &str = "keys_may_match";

/// Condition that a row's keys may be among the build keys. [`FilterBuildExec`] writes it into the engine's dynamic
/// filter once its filter is finished.
///
/// [`FilterBuildExec`]: super::FilterBuildExec
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct KeysMayMatch {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    filter: Arc<KeyFilter>,
}

impl KeysMayMatch {
    pub(crate) fn new(keys: Vec<Arc<dyn PhysicalExpr>>, filter: Arc<KeyFilter>) -> KeysMayMatch {
        KeysMayMatch { keys, filter }
    }

    /// Returns the rows of a batch that may match; `None` for all.
    pub(crate) fn ask(&self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        let evaluate = |key: &Arc<dyn PhysicalExpr>| key.evaluate(batch)?.into_array(batch.num_rows());
        let keys: Vec<ArrayRef> = self.keys.iter().map(evaluate).collect::<Result<_>>()?;
        self.filter.ask(&keys).map_err(|cause| cause.of(NAME))
    }
}

impl fmt::Display for KeysMayMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}(")?;
        for (i, key) in self.keys.iter().enumerate() {
            write!(f, "{}{key}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, ")")
    }
}

impl PhysicalExpr for KeysMayMatch {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        Ok(match self.ask(batch)? {
            Some(kept) => ColumnarValue::Array(Arc::new(kept)),
            None => ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))),
        })
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.keys.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, keys: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(KeysMayMatch { keys, filter: self.filter.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

//! `lookup_or_null`: values of keys in a saved static function.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::datatypes::DataType;
use warpset_base::key::Key;
use warpset_fuse::StaticFunctionView;

use crate::error::Cause;
use crate::lookup::Ask;
use crate::verified;

/// `lookup_or_null(function, x)`.
pub(crate) struct LookupOrNull;

impl Ask for LookupOrNull {
    const NAME: &'static str = "lookup_or_null";
    const RETURNS: DataType = DataType::UInt64;
    type Answer = Option<u64>;

    fn ask<K: Key>(&self, saved: &[u8], keys: &[K], answers: &mut [Option<u64>]) -> Result<(), Cause> {
        let view = verified::open(
            saved,
            StaticFunctionView::<u64>::from_bytes,
            StaticFunctionView::<u64>::from_bytes_unverified,
        )?;
        answers.copy_from_slice(&view.get_bulk(keys));
        Ok(())
    }

    fn array(answers: Vec<Option<u64>>, nulls: Option<NullBuffer>) -> ArrayRef {
        let found = NullBuffer::new(BooleanBuffer::from_iter(answers.iter().map(Option::is_some)));
        let values: Vec<u64> = answers.into_iter().map(Option::unwrap_or_default).collect();
        Arc::new(UInt64Array::new(values.into(), NullBuffer::union(Some(&found), nulls.as_ref())))
    }
}

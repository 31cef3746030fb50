//! Functions of a saved structure and a key: `might_contain`, `quotient_filter_count`, `perfect_hash_index`,
//! `lookup_or_null`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use warpset_base::file::FileError;
use warpset_base::key::Key;
use warpset_bloom::{Error, Filter, SplitBlockLayout, View};

use crate::error::Cause;
use crate::keys::{self, Visitor};
use crate::{arguments, blobs, fuse, verified};

/// A structure that answers for keys.
pub(crate) trait Ask: Send + Sync + 'static {
    /// SQL name of the function.
    const NAME: &'static str;
    /// SQL type of answers.
    const RETURNS: DataType;
    /// An answer.
    type Answer: Copy + Default + Send + Sync;

    /// Looks keys up in a saved structure; its bytes start at a multiple of 8.
    fn ask<K: Key>(&self, saved: &[u8], keys: &[K], answers: &mut [Self::Answer]) -> Result<(), Cause>;
    /// Builds an array of answers.
    fn array(answers: Vec<Self::Answer>, nulls: Option<NullBuffer>) -> ArrayRef;
}

/// `might_contain(filter, x)`: lookup in a Bloom filter or a binary fuse filter.
pub(crate) struct MightContain;

impl Ask for MightContain {
    const NAME: &'static str = "might_contain";
    const RETURNS: DataType = DataType::Boolean;
    type Answer = bool;

    fn ask<K: Key>(&self, saved: &[u8], keys: &[K], answers: &mut [bool]) -> Result<(), Cause> {
        let opened: Result<View<'_, SplitBlockLayout>, Error> =
            verified::open(saved, View::from_bytes, View::from_bytes_unverified);
        if let Err(Error::File(FileError::WrongStructure { found, .. })) = &opened
            && let Some(ask) = fuse::asker(found.number)
        {
            return ask(saved, keys, answers);
        }
        Ok(opened?.contains_bulk_into(keys, answers)?)
    }

    fn array(answers: Vec<bool>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(BooleanArray::new(BooleanBuffer::from(answers), nulls))
    }
}

/// Function that looks keys up in `A`.
pub(crate) struct Lookup<A> {
    signature: Signature,
    asker: A,
}

impl<A: Ask> Lookup<A> {
    /// Returns the function in the form that registries take.
    pub(crate) fn function(asker: A) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Lookup { signature, asker }))
    }
}

/// Lookup of a batch of keys; records the rows without a structure.
struct Batch<'a, A> {
    structures: blobs::Argument<'a>,
    asker: &'a A,
}

impl<A: Ask> Visitor for Batch<'_, A> {
    type Output = Result<(Vec<A::Answer>, Option<NullBuffer>), Cause>;

    fn visit<K: Key + Copy>(self, keys: &[K]) -> Self::Output {
        let mut answers = vec![A::Answer::default(); keys.len()];
        let nulls = self.structures.try_for_each(keys.len(), |rows, saved| {
            self.asker.ask(blobs::aligned(saved).bytes(), &keys[rows.clone()], &mut answers[rows])
        })?;
        Ok((answers, nulls))
    }
}

impl<A: Ask> ScalarUDFImpl for Lookup<A> {
    fn name(&self) -> &str {
        A::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [structure, key] = arguments::exactly(A::NAME, arguments)?;
        check_types(structure, key).map_err(|cause| cause.of(A::NAME))?;
        Ok(arguments.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(A::RETURNS)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [structure, key] = arguments::exactly(A::NAME, &args.args)?;
        answers(&self.asker, A::NAME, structure, key, args.number_rows)
    }
}

/// Whether the arguments can be a structure and a key.
pub(crate) fn check_types(structure: &DataType, key: &DataType) -> Result<(), Cause> {
    blobs::check_type(structure).and_then(|()| keys::check_type(key))
}

/// Looks up one key per row, in one structure or one per row; `function` is the name in errors.
pub(crate) fn answers<A: Ask>(
    asker: &A,
    function: &'static str,
    structure: &ColumnarValue,
    key: &ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let both_scalar = matches!((structure, key), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
    let keys = key.to_array(if both_scalar { 1 } else { rows })?;
    let answer = || -> Result<ArrayRef, Cause> {
        let structures = blobs::Argument::of(structure)?;
        let (answers, nulls) = keys::visit(&keys, Batch { structures, asker })??;
        Ok(A::array(answers, NullBuffer::union(nulls.as_ref(), keys.logical_nulls().as_ref())))
    };
    arguments::answer(answer().map_err(|cause| cause.of(function))?, both_scalar)
}

impl<A: Ask> fmt::Debug for Lookup<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lookup").field(&A::NAME).finish()
    }
}

// Functions are equal if their names are.
impl<A> PartialEq for Lookup<A> {
    fn eq(&self, _: &Lookup<A>) -> bool {
        true
    }
}
impl<A> Eq for Lookup<A> {}
impl<A: Ask> Hash for Lookup<A> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        A::NAME.hash(hasher);
    }
}

//! Adapter from [`Gather`] to the engine's aggregates.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use crate::error::Cause;
use crate::gather::{Gather, ManyGroups, OneGroup};
use crate::{arguments, blobs};

/// The aggregate that gathers `G`.
pub(crate) struct Aggregate<G> {
    signature: Signature,
    gather: PhantomData<fn() -> G>,
}

impl<G: Gather> Aggregate<G> {
    /// Returns the aggregate in the form that registries take.
    pub(crate) fn function() -> Arc<AggregateUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::from(Aggregate::<G> { signature, gather: PhantomData }))
    }

    /// Reads the parameters of a call.
    fn settings(args: &AccumulatorArgs) -> Result<G::Settings> {
        if args.is_distinct && !G::IGNORES_COPIES {
            return Err(Cause::Distinct.of(G::NAME));
        }
        let rows = RecordBatch::new_empty(Arc::new(args.schema.clone()));
        let given = args.exprs.iter().skip(1).zip(G::PARAMETERS);
        let parameters: Vec<ScalarValue> = given
            .map(|(expression, (parameter, kind))| match expression.evaluate(&rows) {
                Ok(ColumnarValue::Scalar(value)) if !value.is_null() => value.cast_to(kind),
                _ => Err(Cause::NotLiteral { parameter }.of(G::NAME)),
            })
            .collect::<Result<_>>()?;
        G::settings(&parameters).map_err(|cause| cause.of(G::NAME))
    }
}

impl<G: Gather> AggregateUDFImpl for Aggregate<G> {
    fn name(&self) -> &str {
        G::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let arguments = arguments::between(G::NAME, arguments, 1, 1 + G::PARAMETERS.len())?;
        let first = &arguments[0];
        G::check_type(first).map_err(|cause| cause.of(G::NAME))?;
        let parameters = G::PARAMETERS.iter().take(arguments.len() - 1).map(|(_, kind)| kind.clone());
        Ok([first.clone()].into_iter().chain(parameters).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(blobs::result_type())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "partial"), DataType::LargeBinary, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup::<G>::new(Self::settings(&args)?)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(ManyGroups::<G>::new(Self::settings(&args)?)))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

impl<G: Gather> fmt::Debug for Aggregate<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Aggregate").field(&G::NAME).finish()
    }
}

// Aggregates are equal if their names are.
impl<G> PartialEq for Aggregate<G> {
    fn eq(&self, _: &Aggregate<G>) -> bool {
        true
    }
}
impl<G> Eq for Aggregate<G> {}
impl<G: Gather> Hash for Aggregate<G> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        G::NAME.hash(hasher);
    }
}

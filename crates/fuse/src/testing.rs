//! Shapes of filters and functions for tests.

use crate::{Arity, Form};

pub(crate) const ARITIES: [Arity; 2] = [Arity::Three, Arity::Four];
pub(crate) const FORMS: [Form; 2] = [Form::OneGraph, Form::Sharded];

/// Runs `body` for every combination of arity and form.
pub(crate) fn each_form(mut body: impl FnMut(Arity, Form)) {
    ARITIES.into_iter().for_each(|arity| FORMS.into_iter().for_each(|form| body(arity, form)));
}

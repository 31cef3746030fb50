//! Properties of nodes and of the shape that lookups need (the table of section 4.4.3).

use crate::recsplit::shape_tables::{Tables, shared};
use std::sync::{Arc, Mutex};
use warpset_core::recsplit::TreeShape;
pub(super) use warpset_core::recsplit::lookup::row::{Levels, Row};

/// Rows by shape and number of keys.
static ROWS: Tables<Row> = Mutex::new(None);

/// Returns the properties of this shape, with rows for nodes of up to `largest` keys, or more.
pub(super) fn rows(shape: &TreeShape, largest: u32) -> (Levels, Arc<[Row]>) {
    let nodes = crate::recsplit::shape_tables::nodes(shape, largest);
    (Levels::of(shape, &nodes), shared(&ROWS, shape, largest, |keys, _| Row::of(shape, keys, &nodes)))
}

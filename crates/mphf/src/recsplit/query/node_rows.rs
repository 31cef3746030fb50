//! What lookups need to know of nodes and of the shape (the table of section 4.4.3).

use crate::recsplit::shape_tables::{Tables, shared};
use std::sync::{Arc, Mutex};
use warpset_core::recsplit::TreeShape;
pub(super) use warpset_core::recsplit::lookup::row::{Levels, Row};

/// Rows by shape and number of keys.
static ROWS: Tables<Row> = Mutex::new(None);

/// What lookups in functions of this shape need, with rows for nodes of up to `largest` keys, and maybe more.
pub(super) fn rows(shape: &TreeShape, largest: u32) -> (Levels, Arc<[Row]>) {
    let nodes = crate::recsplit::shape_tables::nodes(shape, largest);
    (Levels::of(shape, &nodes), shared(&ROWS, shape, largest, |keys, _| Row::of(shape, keys, &nodes)))
}

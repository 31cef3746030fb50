//! The table of nodes by number of keys (section 4.4.3), shared by all functions of one shape.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use warpset_core::recsplit::{Node, Shape};

static TABLES: Mutex<Option<HashMap<Shape, Weak<[Node]>>>> = Mutex::new(None);

/// Rows for nodes of up to `largest` keys, and maybe more. At least the children of every row are there.
pub(crate) fn nodes(shape: &Shape, largest: u32) -> Arc<[Node]> {
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let tables = tables.get_or_insert_default();
    let known = tables.get(shape).and_then(Weak::upgrade);
    if let Some(known) = &known
        && known.len() > largest as usize
    {
        return known.clone();
    }
    let mut rows = known.map_or(Vec::new(), |rows| rows.to_vec());
    for keys in rows.len() as u32..=largest {
        let row = shape.node(keys, &rows);
        rows.push(row);
    }
    let rows: Arc<[Node]> = rows.into();
    tables.retain(|_, table| table.strong_count() > 0);
    tables.insert(*shape, Arc::downgrade(&rows));
    rows
}

//! Tables of nodes by number of keys (section 4.4.3), shared by all functions of one shape.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use warpset_core::recsplit::{Node, TreeShape};

pub(crate) type Tables<R> = Mutex<Option<HashMap<TreeShape, Weak<[R]>>>>;
static NODES: Tables<Node> = Mutex::new(None);

/// Returns the nodes of up to `largest` keys, or more; they include the children of every node.
pub(crate) fn nodes(shape: &TreeShape, largest: u32) -> Arc<[Node]> {
    shared(&NODES, shape, largest, |keys, rows| shape.node(keys, rows))
}

/// Returns the table of a shape with rows for up to `largest` keys; `row` computes each from those before it.
pub(crate) fn shared<R: Copy>(
    tables: &Tables<R>,
    shape: &TreeShape,
    largest: u32,
    row: impl Fn(u32, &[R]) -> R,
) -> Arc<[R]> {
    let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
    let tables = tables.get_or_insert_default();
    let known = tables.get(shape).and_then(Weak::upgrade);
    if let Some(known) = &known
        && known.len() > largest as usize
    {
        return known.clone();
    }
    let mut rows = known.map_or(Vec::new(), |rows| rows.to_vec());
    for keys in rows.len() as u32..=largest {
        let row = row(keys, &rows);
        rows.push(row);
    }
    let rows: Arc<[R]> = rows.into();
    tables.retain(|_, table| table.strong_count() > 0);
    tables.insert(*shape, Arc::downgrade(&rows));
    rows
}

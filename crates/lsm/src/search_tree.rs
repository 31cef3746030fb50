//! Implicit search tree over the keys of a level, with nodes of one cache line.

mod node;
mod tree;

pub(crate) use node::{Compare, Portable, by_best, each};
pub(crate) use tree::SearchTree;

//! Table of nodes for encoding kernels.

use warpset_core::recsplit::Level;
use warpset_core::recsplit::place::CodeRow;
use warpset_gpu::{DeviceVec, Stream};
use warpset_simt::Global;

use crate::Error;
use crate::recsplit::find::Trees;

/// Rows by number of keys, up to that of the largest bucket, four words each.
pub(super) struct Rows(DeviceVec<u32>);

impl Rows {
    pub(super) fn new(stream: &Stream, trees: &Trees) -> Result<Self, Error> {
        let is_higher = |keys| trees.shape.level(keys as u32) == Level::Higher;
        let row = |(keys, node)| CodeRow::new(node, is_higher(keys)).to_words();
        let rows: Vec<u32> = trees.nodes().iter().enumerate().flat_map(row).collect();
        Ok(Self(stream.from_slice(&rows)?))
    }

    pub(super) fn global(&self) -> Global<u32> {
        self.0.global()
    }

    /// Returns the largest number of keys with a row.
    pub(super) fn largest(&self) -> u32 {
        self.0.len() as u32 / 4 - 1
    }
}

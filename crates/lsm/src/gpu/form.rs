//! What the forms of a dictionary differ in: which levels a batch is merged with, and when what does not live is dropped.

use std::fmt;

use crate::Error;
use crate::level::LevelIndex;

/// A form that takes updates: [`Tree`](super::Tree) or [`Array`](super::Array). Sealed.
pub trait Form: fmt::Debug + Copy + rules::Rules {}

/// The form of a [`Snapshot`](super::Snapshot), which takes no updates.
#[derive(Clone, Copy, Debug)]
pub struct Frozen;

pub(crate) mod rules {
    use super::*;

    /// The rules of a form.
    pub trait Rules: Sized {
        /// Whether calls that wait leave live elements only.
        const ALWAYS_CLEAN: bool;

        /// The form with its settings checked.
        fn checked(self) -> Result<Self, Error>;

        /// Where a batch of `len` elements goes, and how many of the levels, which are the occupied ones with their lengths,
        /// are merged with it.
        fn place_for(&self, len: usize, levels: impl Iterator<Item = (LevelIndex, usize)>) -> (LevelIndex, usize);

        /// The level for `len` elements that all live.
        fn level_for(&self, len: usize) -> LevelIndex;

        /// Notes an update.
        fn note_update(&mut self);

        /// Notes that `live` elements are all there is.
        fn note_cleanup(&mut self, live: u64);

        /// Whether to clean up now, with this many elements.
        fn is_due(&self, resident: u64) -> bool;
    }
}

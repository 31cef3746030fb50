//! What trees and sorted arrays differ in, on every backend: which levels a batch is merged with, and when what does
//! not live is dropped.

use std::fmt;

use crate::Error;
use crate::level::{LevelIndex, place_for};
use crate::settings::Settings;

/// Which levels a batch is merged with, and when what does not live is dropped: [`TreePolicy`] or [`ArrayPolicy`]. Sealed.
pub trait MergePolicy: fmt::Debug + Copy + PartialEq + rules::Rules {}

/// The policy of an [`Lsm`](crate::Lsm): each level is twice as large as the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TreePolicy {
    pub(crate) settings: Settings,
    /// What the automatic cleanup goes by.
    pub(crate) history: History,
}

/// The policy of a [`SortedArray`](crate::SortedArray): one level, which a call that waits leaves with live elements
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArrayPolicy;

/// The policy of what takes no updates: a [`Snapshot`](crate::Snapshot), with the policy `P` of its dictionary, or a
/// [`View`](crate::View).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadOnlyPolicy<P = ()>(pub(crate) P);

/// What has happened since the last cleanup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Elements that lived then.
    pub live_at_cleanup: u64,
    /// Updates since then.
    pub updates: u64,
}

impl TreePolicy {
    /// With settings that have not been checked yet.
    pub(crate) fn new(settings: Settings) -> Self {
        TreePolicy { settings, history: History::default() }
    }
}

pub(crate) mod rules {
    use super::*;

    /// What a policy decides.
    pub trait Rules: Sized {
        /// Whether calls that wait leave live elements only.
        const ALWAYS_CLEAN: bool;

        /// The policy with its settings checked.
        fn checked(self) -> Result<Self, Error>;

        /// Where a batch of `len` elements goes, and how many of the levels, which are the occupied ones with their
        /// lengths, are merged with it.
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

impl MergePolicy for TreePolicy {}

impl rules::Rules for TreePolicy {
    const ALWAYS_CLEAN: bool = false;

    fn checked(self) -> Result<Self, Error> {
        Ok(TreePolicy { settings: self.settings.check()?, ..self })
    }

    fn place_for(&self, len: usize, levels: impl Iterator<Item = (LevelIndex, usize)>) -> (LevelIndex, usize) {
        place_for(self.settings.batch_size, len, levels)
    }

    fn level_for(&self, len: usize) -> LevelIndex {
        LevelIndex::holding(self.settings.batch_size, len)
    }

    fn note_update(&mut self) {
        // A saved tree may claim any number.
        self.history.updates = self.history.updates.saturating_add(1);
    }

    fn note_cleanup(&mut self, live: u64) {
        self.history = History { live_at_cleanup: live, updates: 0 };
    }

    fn is_due(&self, resident: u64) -> bool {
        let History { live_at_cleanup, updates } = self.history;
        self.settings.is_due(resident, live_at_cleanup, updates)
    }
}

impl MergePolicy for ArrayPolicy {}

impl rules::Rules for ArrayPolicy {
    const ALWAYS_CLEAN: bool = true;

    fn checked(self) -> Result<Self, Error> {
        Ok(self)
    }

    fn place_for(&self, _: usize, levels: impl Iterator<Item = (LevelIndex, usize)>) -> (LevelIndex, usize) {
        (LevelIndex(0), levels.count())
    }

    fn level_for(&self, _: usize) -> LevelIndex {
        LevelIndex(0)
    }

    fn note_update(&mut self) {}

    fn note_cleanup(&mut self, _: u64) {}

    fn is_due(&self, _: u64) -> bool {
        false
    }
}

//! Differences between trees and sorted arrays, on every backend: the levels that a batch is merged with, and the time
//! at which dead elements are dropped.

use std::fmt;

use crate::Error;
use crate::level::{LevelIndex, place_for};
use crate::settings::Settings;

/// Rule for merging batches with levels and for dropping dead elements: [`TreePolicy`] or [`ArrayPolicy`]. Sealed.
pub trait MergePolicy: fmt::Debug + Copy + PartialEq + Send + Sync + rules::Rules {}

/// Policy of an [`Lsm`](crate::Lsm): each level is twice as large as the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TreePolicy {
    pub(crate) settings: Settings,
    /// Input of the rule for automatic cleanups.
    pub(crate) history: History,
}

/// Policy of a [`SortedArray`](crate::SortedArray): one level; every call that waits leaves only live elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArrayPolicy;

/// Policy of a dictionary without updates: a [`Snapshot`](crate::Snapshot), with the policy `P` of its dictionary, or a
/// [`View`](crate::View).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadOnlyPolicy<P = ()>(pub(crate) P);

/// Events since the last cleanup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Elements that were live at the last cleanup.
    pub live_at_cleanup: u64,
    /// Updates since the last cleanup.
    pub updates: u64,
}

impl TreePolicy {
    /// Returns a policy with settings that are still to be checked.
    pub(crate) fn new(settings: Settings) -> Self {
        TreePolicy { settings, history: History::default() }
    }
}

pub(crate) mod rules {
    use super::*;

    /// Decisions of a policy.
    pub trait Rules: Sized {
        /// Whether calls that wait leave only live elements.
        const ALWAYS_CLEAN: bool;

        /// Checks the settings.
        fn checked(self) -> Result<Self, Error>;

        /// Returns the level for a batch of `len` elements, and the number of `levels` that are merged with it.
        /// `levels` lists the occupied levels with their lengths.
        fn place_for(&self, len: usize, levels: impl Iterator<Item = (LevelIndex, usize)>) -> (LevelIndex, usize);

        /// Returns the level for `len` live elements.
        fn level_for(&self, len: usize) -> LevelIndex;

        /// Notes an update.
        fn note_update(&mut self);

        /// Notes that the dictionary consists of `live` live elements.
        fn note_cleanup(&mut self, live: u64);

        /// Whether a cleanup is due with this number of elements.
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
        // A saved tree may contain any number.
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

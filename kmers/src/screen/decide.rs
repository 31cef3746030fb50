//! Who decides which reads match: the one place where a rule, and what is looked up, become decisions.
//!
//! A [`Decider`] is shared by all threads; each of them has a [`Worker`], with buffers of its own, to which it gives
//! one batch after another. So two threads keep a device busy with one batch while another is on its way.

use super::batch::Batch;
use crate::Error;

/// What came of a read, or of a pair of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) matches: bool,
    /// Different minimizers that the index has, or windows that the table has; unless counts are asked for, it may be
    /// fewer of them.
    pub(crate) hits: u64,
    /// All different minimizers, or windows; unless counts are asked for, equal ones may count more than once.
    pub(crate) total: u64,
}

/// Decides by a rule, for several threads.
pub(crate) trait Decider: Sync {
    /// Batches that a worker may hold back before it hands over the first of them.
    fn most_held(&self) -> usize {
        0
    }

    /// What one thread decides with. Unless `keeps_text`, batches that are handed over need not have their text.
    ///
    /// # Errors
    /// If there is no memory for it, or no device.
    fn worker(&self, keeps_text: bool) -> Result<Box<dyn Worker + '_>, Error>;
}

/// What is done with a batch, of that number, that has been decided: one decision per [unit](Batch::units).
pub(crate) type Done<'d> = dyn FnMut(u64, &mut Batch, &[Decision]) -> Result<(), Failure> + 'd;

/// Which batch failed, and why.
pub(crate) type Failure = (u64, Error);

/// Decides batches, one after another, on one thread.
pub(crate) trait Worker {
    /// A batch to be filled, in memory that may have been used before.
    fn empty(&mut self) -> Batch;

    /// Takes the batch with this number, and hands over those that are decided by now, this one or earlier ones, in the
    /// order in which they came.
    ///
    /// # Errors
    /// Errors of the device, and those of `done`.
    fn decide(&mut self, number: u64, batch: Batch, done: &mut Done<'_>) -> Result<(), Failure>;

    /// Hands over what it still has.
    ///
    /// # Errors
    /// The errors of [`decide`](Worker::decide).
    fn finish(&mut self, _: &mut Done<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A way to decide a batch at once.
pub(crate) trait AtOnce {
    /// Puts one decision per [unit](Batch::units) into `decisions`, which is empty.
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>);
}

/// A worker that holds nothing back.
pub(crate) struct Immediate<D> {
    by: D,
    spare: Batch,
    decisions: Vec<Decision>,
}

impl<D: AtOnce> Immediate<D> {
    pub(crate) fn new(by: D) -> Immediate<D> {
        Immediate { by, spare: Batch::default(), decisions: Vec::new() }
    }
}

impl<D: AtOnce> Worker for Immediate<D> {
    fn empty(&mut self) -> Batch {
        std::mem::take(&mut self.spare)
    }

    fn decide(&mut self, number: u64, mut batch: Batch, done: &mut Done<'_>) -> Result<(), Failure> {
        self.decisions.clear();
        self.by.decide(&batch, &mut self.decisions);
        let decided = done(number, &mut batch, &self.decisions);
        self.spare = batch;
        decided
    }
}

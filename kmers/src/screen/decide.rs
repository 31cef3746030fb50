//! Interface between threads and the ways to decide reads: rules and lookups become decisions only behind it.
//!
//! All threads share a [`Decider`]. Each has its own [`Worker`] with buffers, to which it gives one batch after
//! another. So two threads keep a device busy with one batch while another is in transfer.

use super::batch::Batch;
use crate::Error;

/// Decision on a read, or on a pair of reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) matches: bool,
    /// Different minimizers in the index, or windows in the table. Unless counts are requested, it may be fewer of
    /// them.
    pub(crate) hits: u64,
    /// All different minimizers, or windows. Unless counts are requested, equal ones may count more than once.
    pub(crate) total: u64,
    /// Fields of the line of counts after the name, if they are others than `hits`, `total` and `matches`.
    pub(crate) fields: String,
}

impl Decision {
    /// Creates a decision with the usual fields.
    pub(crate) fn new(matches: bool, hits: u64, total: u64) -> Decision {
        Decision { matches, hits, total, fields: String::new() }
    }
}

/// Way to decide reads by a rule, shared by threads.
pub(crate) trait Decider: Sync {
    /// Returns the number of batches that a worker may hold back before it hands over the first of them.
    fn most_held(&self) -> usize {
        0
    }

    /// Creates the worker of one thread. Unless `keeps_text`, the worker may hand over batches without their text.
    ///
    /// # Errors
    /// Errors of missing memory, or of the device.
    fn worker(&self, keeps_text: bool) -> Result<Box<dyn Worker + '_>, Error>;
}

/// Receiver of a decided batch with its number: one decision per [unit](Batch::units).
pub(crate) type Done<'d> = dyn FnMut(u64, &mut Batch, &[Decision]) -> Result<(), Failure> + 'd;

/// Number of a batch that failed, and its error.
pub(crate) type Failure = (u64, Error);

/// Decides batches, one after another, on one thread.
pub(crate) trait Worker {
    /// Returns a batch to be filled, with reused memory if possible.
    fn empty(&mut self) -> Batch;

    /// Takes the batch with this number, and hands over the batches that are decided by now, in the order of their
    /// arrival.
    ///
    /// # Errors
    /// Errors of the device, and those of `done`.
    fn decide(&mut self, number: u64, batch: Batch, done: &mut Done<'_>) -> Result<(), Failure>;

    /// Hands over the remaining batches.
    ///
    /// # Errors
    /// The errors of [`decide`](Worker::decide).
    fn finish(&mut self, _: &mut Done<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// Way to decide a batch at once.
pub(crate) trait AtOnce {
    /// Puts one decision per [unit](Batch::units) into `decisions`, which is empty.
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>);
}

/// Worker that holds nothing back.
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

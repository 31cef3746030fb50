//! Who decides which reads match: the one place where a rule, and what is looked up, become decisions.
//!
//! A [`Decider`] is shared by all threads; each of them has a [`Worker`], with buffers of its own, to which it gives one
//! batch after another. So two threads keep a device busy with one batch while another is on its way.

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
    /// Bytes of text per batch that suit it.
    fn batch_bytes(&self) -> usize {
        1 << 20
    }

    /// What one thread decides with.
    ///
    /// # Errors
    /// If there is no memory for it, or no device.
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Error>;
}

/// Decides batches, one after another, on one thread.
pub(crate) trait Worker {
    /// Puts one decision per [unit](Batch::units) into `decisions`, which is empty.
    ///
    /// # Errors
    /// Those of a device.
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>) -> Result<(), Error>;
}

//! Decisions by all k-mers, of which a sequence filter has some, on the CPU and on a GPU.
//!
//! Every window of `k` bases counts, as with a table, so a k-mer that repeats counts each time.

use warpset_gpu::Device;
use warpset_sequence::{Hits, SequenceFilterView, gpu};

use super::batch::Batch;
use super::decide::{Decider, Decision, Worker};
use super::rule::Rule;
use crate::{Error, Index};

/// Bytes of text per batch for a device: enough to be worth its launches.
const DEVICE_BATCH: usize = 8 << 20;

/// Decides by a sequence filter in host memory.
pub(crate) struct BySequences<'a> {
    pub(crate) filter: SequenceFilterView<'a>,
    pub(crate) rule: Rule,
    /// Bases of each read that are looked at.
    pub(crate) prefix: usize,
}

/// Decides by a sequence filter in device memory.
pub(crate) struct BySequencesOnDevice {
    filter: gpu::SequenceFilter,
    rule: Rule,
    prefix: usize,
}

impl BySequencesOnDevice {
    /// Copies the filter of an index to a device.
    ///
    /// # Errors
    /// [`Error::IndexTooLarge`] if the device has less memory than the index; [`Error::Device`], [`Error::Sequence`].
    pub(crate) fn new(
        index: &Index,
        filter: SequenceFilterView<'_>,
        device: &Device,
        (rule, prefix): (Rule, usize),
    ) -> Result<BySequencesOnDevice, Error> {
        let (bytes, free) = (index.memory_bytes(), device.memory_info()?.free as u64);
        let too_large = || Error::IndexTooLarge { bytes, free };
        if bytes > free {
            return Err(too_large());
        }
        match filter.to_device(device).map_err(Error::from) {
            Err(Error::Device(why)) if why.is_out_of_memory() => Err(too_large()),
            filter => Ok(BySequencesOnDevice { filter: filter?, rule, prefix }),
        }
    }
}

/// The letters of all records that are looked at, in their order.
fn letters_of(batch: &Batch, prefix: usize) -> Vec<&[u8]> {
    let records = (0..batch.len()).map(|record| batch.letters(record));
    records.map(|letters| &letters[..letters.len().min(prefix)]).collect()
}

/// The decision for each unit, from the hits of its records.
fn decide(batch: &Batch, hits: &[Hits], rule: Rule, decisions: &mut Vec<Decision>) {
    decisions.extend(hits.chunks_exact(batch.mates()).map(|mates| {
        let (hits, total) = mates.iter().fold((0, 0), |sum, mate| (sum.0 + mate.found, sum.1 + mate.kmers));
        Decision { matches: rule.matches(hits, total), hits, total }
    }));
}

impl Decider for BySequences<'_> {
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Error> {
        Ok(Box::new(OnHost(self)))
    }
}

impl Decider for BySequencesOnDevice {
    fn batch_bytes(&self) -> usize {
        DEVICE_BATCH
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Error> {
        Ok(Box::new(OnDevice(self)))
    }
}

struct OnHost<'a>(&'a BySequences<'a>);
struct OnDevice<'a>(&'a BySequencesOnDevice);

impl Worker for OnHost<'_> {
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>) -> Result<(), Error> {
        let hits = self.0.filter.count_bulk(&letters_of(batch, self.0.prefix));
        self::decide(batch, &hits, self.0.rule, decisions);
        Ok(())
    }
}

impl Worker for OnDevice<'_> {
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>) -> Result<(), Error> {
        let hits = self.0.filter.count_bulk(&letters_of(batch, self.0.prefix))?;
        self::decide(batch, &hits, self.0.rule, decisions);
        Ok(())
    }
}

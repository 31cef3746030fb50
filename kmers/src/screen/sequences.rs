//! Decisions by all k-mers of a sequence filter, on the CPU and on a GPU.
//!
//! Every window of `k` bases counts, as with a table, so repeated k-mers count each time.

use warpset_gpu::Device;
use warpset_sequence::{Hits, SequenceFilterView, gpu};

use super::batch::Batch;
use super::decide::{AtOnce, Decider, Decision, Done, Failure, Immediate, Worker};
use super::rule::Rule;
use crate::{Error, Index};

/// Bytes of text per launch: enough to hide its latency.
const ENOUGH: usize = if cfg!(test) { 1 << 14 } else { 8 << 20 };
/// Most batches per launch.
const MOST_TOGETHER: usize = 16;

/// Decider by a sequence filter in host memory.
pub(crate) struct BySequences<'a> {
    pub(crate) filter: SequenceFilterView<'a>,
    pub(crate) rule: Rule,
    /// Number of bases of each read to look at.
    pub(crate) prefix: usize,
}

/// Decider by a sequence filter in device memory.
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

/// Returns the letters to look at of all records, in order.
fn letters_of(batch: &Batch, prefix: usize) -> impl Iterator<Item = &[u8]> {
    let letters = (0..batch.len()).map(|record| batch.letters(record));
    letters.map(move |letters| &letters[..letters.len().min(prefix)])
}

/// Appends the decision for each unit, from the hits of its records.
fn decide(batch: &Batch, hits: &[Hits], rule: Rule, decisions: &mut Vec<Decision>) {
    decisions.extend(hits.chunks_exact(batch.mates()).map(|mates| {
        let (hits, total) = mates.iter().fold((0, 0), |sum, mate| (sum.0 + mate.found, sum.1 + mate.kmers));
        Decision::new(rule.matches(hits, total), hits, total)
    }));
}

impl Decider for BySequences<'_> {
    fn worker(&self, _: bool) -> Result<Box<dyn Worker + '_>, Error> {
        Ok(Box::new(Immediate::new(OnHost(self))))
    }
}

struct OnHost<'a>(&'a BySequences<'a>);

impl AtOnce for OnHost<'_> {
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>) {
        let letters: Vec<&[u8]> = letters_of(batch, self.0.prefix).collect();
        let hits = self.0.filter.count_bulk(&letters).expect("lookups in host memory do not fail");
        self::decide(batch, &hits, self.0.rule, decisions);
    }
}

impl Decider for BySequencesOnDevice {
    fn most_held(&self) -> usize {
        MOST_TOGETHER
    }

    fn worker(&self, _: bool) -> Result<Box<dyn Worker + '_>, Error> {
        Ok(Box::new(Together { by: self, held: Vec::new(), bytes: 0, spare: Vec::new(), decisions: Vec::new() }))
    }
}

/// Worker that sends several batches to the device together.
struct Together<'a> {
    by: &'a BySequencesOnDevice,
    held: Vec<(u64, Batch)>,
    /// Bytes of their text.
    bytes: usize,
    spare: Vec<Batch>,
    decisions: Vec<Decision>,
}

impl Worker for Together<'_> {
    fn empty(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    fn decide(&mut self, number: u64, batch: Batch, done: &mut Done<'_>) -> Result<(), Failure> {
        self.bytes += batch.text().len();
        self.held.push((number, batch));
        if self.bytes < ENOUGH && self.held.len() < MOST_TOGETHER {
            return Ok(());
        }
        self.finish(done)
    }

    fn finish(&mut self, done: &mut Done<'_>) -> Result<(), Failure> {
        let Together { by, held, bytes, spare, decisions } = self;
        let letters: Vec<&[u8]> = held.iter().flat_map(|(_, batch)| letters_of(batch, by.prefix)).collect();
        let first = held.first().map_or(u64::MAX, |(number, _)| *number);
        let hits = by.filter.count_bulk(&letters).map_err(|error| (first, error.into()))?;
        let mut rest = &hits[..];
        for (number, mut batch) in held.drain(..) {
            let (hits, others) = rest.split_at(batch.len());
            rest = others;
            decisions.clear();
            self::decide(&batch, hits, by.rule, decisions);
            done(number, &mut batch, decisions)?;
            spare.push(batch);
        }
        *bytes = 0;
        Ok(())
    }
}

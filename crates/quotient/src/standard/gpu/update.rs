//! Batches of insertions and removals.

use warpset_gpu::{DeviceVec, Stream};

use super::standard_word::StandardWord;
use super::{Filter, crossover};
use crate::Error;
use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::slot_kind::Change;

mod fit;
mod in_place;
mod kernels;
mod rebuild;
mod superclusters;

use in_place::change_in_place;
use rebuild::rebuilt;
use superclusters::change_by_superclusters;
pub(super) use superclusters::fill_by_superclusters;

/// How a batch is inserted into a standard quotient filter on a device, or removed from it. All give the same bytes. Batches
/// of 2^32 keys and filters of 2^32 slots are always rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpdateMethod {
    /// One of the others, by the size of the batch and of the filter and by its load, as measured
    /// (see `docs/performance-log.md`).
    #[default]
    Automatic,
    /// The paper's (algorithms 3 and 7): in rounds, each a pass over the filter that labels its superclusters, and one
    /// fingerprint inserted or removed in each. As many rounds as fingerprints belong to one supercluster.
    Superclusters,
    /// In rounds too, but the batch is sorted and walks to its superclusters, so that a round costs as much as the batch
    /// is large. A removal takes one round; what an insertion has left after 24 rounds is merged.
    InPlace,
    /// The filter is rewritten from its own fingerprints and the sorted batch, in one pass.
    Rebuild,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    /// Fingerprints stored, or removed.
    pub(super) done: u64,
    /// Fingerprints for which there was no slot.
    pub(super) failed: u64,
}

impl Changed {
    /// Waits for the two counts of a kernel.
    fn wait(stream: &Stream, counts: &DeviceVec<u64>) -> Result<Changed, Error> {
        let mut words = [0; 2];
        stream.download(counts, &mut words)?;
        Ok(Changed { done: words[0], failed: words[1] })
    }
}

impl Filter {
    /// See [`DeviceSlotKind::update`](crate::gpu::DeviceSlotKind::update).
    pub(super) fn update_by(
        &mut self,
        stream: &Stream,
        n: usize,
        batch: impl Fn(&Stream) -> Result<Fingerprints, Error>,
        change: Change,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        let method = self.method_for(n, change, method);
        let all = kernels::of_update(&self.layout, n, change, method);
        let changed = stream.device().with_kernels(&all, || {
            let unsorted = batch(stream)?;
            match method {
                UpdateMethod::Superclusters => {
                    with_width!(unsorted, |batch| self.update_by_superclusters(stream, batch, change))
                }
                UpdateMethod::InPlace => {
                    let sorted = unsorted.sorted(&self.layout, stream)?;
                    with_width!(sorted, |batch| self.update_in_place(stream, batch, change))
                }
                _ => self.rebuild(stream, &unsorted.sorted(&self.layout, stream)?, change).map(Some),
            }
        })?;
        match changed {
            Some(changed) => Ok(changed),
            // Rebuilding says why it does not fit.
            None => self.rebuild(stream, &batch(stream)?.sorted(&self.layout, stream)?, change),
        }
    }

    /// The method that is taken: the fastest where none is asked for, and one that can count that far.
    fn method_for(&self, keys: usize, change: Change, asked: UpdateMethod) -> UpdateMethod {
        // Threads, and labels of superclusters, are counted in 32 bits.
        if keys >= 1 << 32 || self.layout.slots() >= 1 << 32 {
            return UpdateMethod::Rebuild;
        }
        match asked {
            UpdateMethod::Automatic => {
                let removes = change == Change::Remove;
                crossover::update_method(keys as u64, self.layout.slots(), self.load_factor(), removes)
            }
            other => other,
        }
    }

    /// [`UpdateMethod::Rebuild`]; the batch is ascending.
    fn rebuild(&mut self, stream: &Stream, batch: &Fingerprints, change: Change) -> Result<u64, Error> {
        let before = self.items;
        let rebuilt = with_width!(batch, |batch| rebuilt(stream, &self.layout, &self.words, batch.as_slice(), change)?);
        (self.words, self.items) = rebuilt;
        Ok(self.items.abs_diff(before))
    }

    /// [`UpdateMethod::Superclusters`]; `None` if the batch does not fit, and nothing has been written, but not why.
    fn update_by_superclusters<W: StandardWord>(
        &mut self,
        stream: &Stream,
        batch: DeviceVec<W>,
        change: Change,
    ) -> Result<Option<u64>, Error> {
        let (layout, before) = (self.layout, self.items);
        self.change_words(stream, batch.len(), change, |words| {
            let Changed { done, failed } = change_by_superclusters(stream, &layout, words, batch, change)?;
            Ok(match change {
                Change::Remove => Some(before - done),
                Change::Insert => (failed == 0).then_some(before + done),
            })
        })
    }

    /// [`UpdateMethod::InPlace`]; the batch is ascending. `None` if it does not fit, and nothing has been written, but not
    /// why.
    fn update_in_place<W: StandardWord>(
        &mut self,
        stream: &Stream,
        batch: DeviceVec<W>,
        change: Change,
    ) -> Result<Option<u64>, Error> {
        let (layout, before) = (self.layout, self.items);
        self.change_words(stream, batch.len(), change, |words| {
            let (Changed { done, failed }, left) = change_in_place(stream, &layout, words, batch, change)?;
            if change == Change::Remove {
                return Ok(Some(before - done));
            }
            if failed > 0 {
                return Ok(None);
            }
            let mut items = before + done;
            if let Some((left, n)) = left {
                (*words, items) = rebuilt(stream, &layout, words, left.slice(..n), change)?;
            }
            Ok(Some(items))
        })
    }

    /// Lets `work` change the words in place, or a copy of them if the batch may turn out not to fit. It returns how many
    /// fingerprints there are then, or `None` if the batch does not fit. Returns by how many they changed.
    fn change_words(
        &mut self,
        stream: &Stream,
        keys: usize,
        change: Change,
        work: impl FnOnce(&mut DeviceVec<u64>) -> Result<Option<u64>, Error>,
    ) -> Result<Option<u64>, Error> {
        let before = self.items;
        let is_copy = change == Change::Insert && !self.surely_fits(stream, keys as u64)?;
        if !is_copy {
            let Some(items) = work(&mut self.words)? else { return Ok(None) };
            self.items = items;
            return Ok(Some(items.abs_diff(before)));
        }
        let mut words = stream.alloc_uninit::<u64>(self.words.len())?;
        stream.copy(&mut words, &self.words)?;
        match work(&mut words)? {
            Some(items) if items <= self.layout.limit => {
                (self.words, self.items) = (words, items);
                Ok(Some(items.abs_diff(before)))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(all(test, not(warpset_host_tests)))]
mod tests;

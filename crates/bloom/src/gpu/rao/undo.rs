//! All or nothing: overflows, restarts, and how insertions are undone.

use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::bloom::rao as kernels;

use super::super::RaoBloom;
use crate::cpu::rao::MAX_ATTEMPTS;
use crate::{Error, RaoLayout};

/// A copy of a filter's words and loads, from before an insertion.
pub(super) struct Undo {
    words: DeviceVec<u32>,
    ones: DeviceVec<u32>,
}

impl Undo {
    /// Queues the copy.
    pub(super) fn of(filter: &RaoBloom, stream: &Stream) -> Result<Undo, Error> {
        let mut words = stream.alloc_uninit(filter.words.len())?;
        let mut ones = stream.alloc_uninit(filter.bucket_ones.len())?;
        stream.copy(&mut words, &filter.words)?;
        stream.copy(&mut ones, &filter.bucket_ones)?;
        Ok(Undo { words, ones })
    }

    /// Queues the restoration.
    pub(super) fn put_back(&self, filter: &mut RaoBloom, stream: &Stream) -> Result<(), Error> {
        stream.copy(&mut filter.words, &self.words)?;
        stream.copy(&mut filter.bucket_ones, &self.ones)?;
        Ok(())
    }
}

/// Outcome of an insertion that was queued on a stream.
///
/// If a bucket has overflowed, the insertion has been undone on the device: work queued after it finds the old filter.
/// Dropping this value loses the outcome, nothing more.
#[derive(Debug)]
#[must_use = "only `finish` tells whether the keys are in the filter"]
pub struct RaoInsertion {
    /// One word, or none if there were no keys.
    fullest: DeviceVec<u32>,
    limit: u32,
}

impl RaoInsertion {
    /// Returns the insertion of no keys.
    pub(super) fn nothing(filter: &RaoBloom, stream: &Stream) -> Result<RaoInsertion, Error> {
        Ok(RaoInsertion { fullest: stream.alloc_uninit(0)?, limit: filter.layout.shape().most_ones() })
    }

    /// Returns, in device memory, the number of set bits of the fullest bucket: one word, or none if there were no
    /// keys. The insertion has been undone if the number is above [`RaoInsertion::limit`].
    pub fn fullest(&self) -> DeviceSlice<'_, u32> {
        self.fullest.as_slice()
    }

    /// Returns the most bits that a bucket may have set.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::BucketOverflow`] if the insertion has been undone.
    pub fn finish(self) -> Result<(), Error> {
        match self.fullest.to_vec()?.first() {
            Some(&ones) if ones > self.limit => Err(Error::BucketOverflow { attempts: 1, limit: self.limit, ones }),
            _ => Ok(()),
        }
    }
}

impl RaoBloom {
    /// Queues the search for the fullest bucket's number of set bits.
    ///
    /// # Safety
    /// Until `stream` has passed, the filter stays allocated and unwritten.
    unsafe fn most_ones_async(&self, stream: &Stream) -> Result<DeviceVec<u32>, Error> {
        let mut most = stream.alloc_zeroed::<u32>(1)?;
        let n = self.bucket_ones.len();
        let (config, ones) = (self.covering(n), self.bucket_ones.global());
        // SAFETY: `most` is freed in the order of the stream; the rest is this function's contract.
        unsafe { kernels::rao_most { values: ones, n, most: most.global_mut() }.launch(stream, config)? };
        Ok(most)
    }

    /// Returns the fullest bucket's number of set bits. Waits for the stream.
    pub(super) fn most_ones(&self, stream: &Stream) -> Result<u32, Error> {
        // SAFETY: the filter is borrowed until the stream has been waited for, in `download`.
        let on_device = unsafe { self.most_ones_async(stream)? };
        let mut most = [0];
        stream.download(&on_device, &mut most)?;
        Ok(most[0])
    }

    /// Queues what `insert` queues, and after it what undoes it should a bucket overflow.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter and what `insert` borrows stay allocated, and nothing else
    /// accesses the filter.
    pub(super) unsafe fn undoable(
        &mut self,
        stream: &Stream,
        insert: impl FnOnce(&mut RaoBloom) -> Result<(), Error>,
    ) -> Result<RaoInsertion, Error> {
        let limit = self.layout.shape().most_ones();
        let undo = Undo::of(self, stream)?;
        // SAFETY: this function's contract; the copy is as long as the filter, and freed in the order of the stream.
        let queued = insert(self).and_then(|()| unsafe {
            let fullest = self.most_ones_async(stream)?;
            let (n, buckets) = (self.words.len(), self.bucket_ones.len());
            let (words, ones) = (self.words.global_mut(), self.bucket_ones.global_mut());
            let (saved, saved_ones) = (undo.words.global(), undo.ones.global());
            let (config, most) = (self.covering(n), fullest.global());
            kernels::rao_restore { words, saved_words: saved, n, ones, saved_ones, buckets, most, limit }
                .launch(stream, config)?;
            Ok(RaoInsertion { fullest, limit })
        });
        if queued.is_err() {
            // Some of it may have been queued. If this fails too the device is lost, and the filter with it.
            let _ = undo.put_back(self, stream);
        }
        queued
    }

    /// Runs `insert`, which learns whether the filter is empty, all or nothing. Waits.
    pub(super) fn all_or_nothing(
        &mut self,
        stream: &Stream,
        insert: impl FnOnce(&mut RaoBloom, bool) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before: RaoLayout = self.layout;
        let empty = self.most_ones(stream)? == 0;
        let undo = if empty { None } else { Some(Undo::of(self, stream)?) };
        let result = insert(self, empty);
        if result.is_err() {
            self.layout = before;
            // If this fails too the device is lost, and the filter with it; the first error says more.
            let _ = match &undo {
                Some(undo) => undo.put_back(self, stream),
                // SAFETY: the filter is borrowed until the stream has been waited for, below.
                None => unsafe { self.clear_async(stream) },
            };
        }
        let waited = stream.synchronize();
        result.and(waited.map_err(Error::from))
    }

    /// Runs `insert_all` until no bucket overflows: with another first-level hash each time if the filter is empty. On
    /// an error a part of the keys may be inserted.
    pub(super) fn attempt(
        &mut self,
        stream: &Stream,
        empty: bool,
        mut insert_all: impl FnMut(&mut RaoBloom) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (before, limit) = (self.layout, self.layout.shape().most_ones());
        let mut attempts = 1;
        loop {
            insert_all(self)?;
            let ones = self.most_ones(stream)?;
            if ones <= limit {
                return Ok(());
            }
            if !empty || attempts == MAX_ATTEMPTS {
                return Err(Error::BucketOverflow { attempts, limit, ones });
            }
            // SAFETY: the filter is borrowed until the stream has been waited for, in `most_ones` or by the caller.
            unsafe { self.clear_async(stream)? };
            self.layout = before.at_attempt(before.attempt().wrapping_add(attempts));
            attempts += 1;
        }
    }
}

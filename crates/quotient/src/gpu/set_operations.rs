//! Two filters on one device: merged, intersected, subtracted, and counted against each other.

use warpset_gpu::Stream;
use warpset_gpu::batch::Answers;

use super::counted_fingerprints::{CountedFingerprints, SMALLER};
use super::fingerprints::Fingerprints;
use super::{DeviceSlotKind, QuotientFilter};
use crate::Error;
use crate::slot_kind::Change;

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Adds all fingerprints of another filter on the same device: as a set, or with all copies if both keep
    /// duplicates.
    ///
    /// The other filter may have any number of slots, container and load limit. Its fingerprints must be at least as
    /// long as this filter's; excess bits are dropped. So the filter with shorter fingerprints takes the other in. In
    /// the other direction the rate of this filter would change.
    ///
    /// # Errors
    /// [`Error::FewerBits`] if the other's fingerprints are shorter; [`Error::Incompatible`],
    /// [`Error::DifferentDuplicates`] or [`Error::DifferentKeyBits`] for other differences; [`Error::Full`] or
    /// [`Error::OverflowRegionFull`] if they do not all fit; a filter of another device is refused; [`Error::Gpu`] if
    /// the device fails or has too little memory.
    pub fn merge(&mut self, other: &QuotientFilter<S>) -> Result<(), Error> {
        self.combine(other, Change::Insert)
    }

    /// Keeps only fingerprints of the other filter; in multisets, each with the smaller of the two numbers of copies.
    ///
    /// The other filter is subject to the conditions of [`QuotientFilter::merge`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::merge`].
    pub fn intersect(&mut self, other: &QuotientFilter<S>) -> Result<(), Error> {
        if self.layout.is_counted() {
            let (stream, theirs) = self.extract_other_counts(other)?;
            let mut common = self.extract_counts(&stream)?;
            common.combine(&stream, &theirs, SMALLER)?;
            *self = QuotientFilter::from_counts(&stream, self.layout, common)?;
            return Ok(());
        }
        let (stream, theirs) = self.extract_other(other)?;
        let common = self.selected(&stream, &theirs, true)?;
        *self = QuotientFilter::lay_out(&stream, self.layout, &common)?;
        Ok(())
    }

    /// Removes the fingerprints of another filter on the same device: each cancels one equal copy.
    ///
    /// The other filter is subject to the conditions of [`QuotientFilter::merge`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::merge`].
    pub fn subtract(&mut self, other: &QuotientFilter<S>) -> Result<(), Error> {
        self.combine(other, Change::Remove)
    }

    fn combine(&mut self, other: &QuotientFilter<S>, change: Change) -> Result<(), Error> {
        if self.layout.is_counted() {
            let (stream, theirs) = self.extract_other_counts(other)?;
            self.recount(&stream, &theirs, change)?;
            return Ok(());
        }
        let (stream, theirs) = self.extract_other(other)?;
        *self = self.rewritten_with(&stream, &theirs, change)?;
        Ok(())
    }

    /// Counts the fingerprints in both filters; in multisets, with the smaller of the two numbers of copies.
    ///
    /// Longer fingerprints lose their excess bits.
    ///
    /// # Errors
    /// [`Error::Incompatible`], [`Error::DifferentDuplicates`] or [`Error::DifferentKeyBits`] if the filters cannot be
    /// compared; a filter of another device is refused; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn intersection_count(&self, other: &QuotientFilter<S>) -> Result<u64, Error> {
        Ok(self.counts(other)?.common)
    }

    /// Counts the fingerprints in at least one of the filters; in multisets, with the larger of the two numbers of
    /// copies.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::intersection_count`].
    pub fn union_count(&self, other: &QuotientFilter<S>) -> Result<u64, Error> {
        let Overlap { common, ours, theirs } = self.counts(other)?;
        Ok(ours + theirs - common)
    }

    fn counts(&self, other: &QuotientFilter<S>) -> Result<Overlap, Error> {
        if self.layout.fingerprint_bits() > other.layout.fingerprint_bits() {
            return other.counts(self);
        }
        if self.layout.is_counted() {
            let (stream, theirs) = self.extract_other_counts(other)?;
            let mut common = self.extract_counts(&stream)?;
            common.combine(&stream, &theirs, SMALLER)?;
            let common = common.total(&stream)? as u64;
            return Ok(Overlap { common, ours: self.items, theirs: other.items });
        }
        let (stream, mut theirs) = self.extract_other(other)?;
        if other.layout.fingerprint_bits() > self.layout.fingerprint_bits() && !self.layout.keeps_duplicates() {
            // Different fingerprints can become equal when they lose bits.
            theirs = theirs.unique(&self.layout, &stream)?;
        }
        let ours = self.extract(&stream)?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        ours.compare(&stream, &theirs, true, Answers::count(count.as_mut_slice())?)?;
        let mut common = [0];
        stream.download(&count, &mut common)?;
        Ok(Overlap { common: common[0], ours: ours.len() as u64, theirs: theirs.len() as u64 })
    }

    /// Makes a stream, and extracts the other's fingerprints as this filter's, ascending.
    fn extract_other(&self, other: &QuotientFilter<S>) -> Result<(Stream, Fingerprints), Error> {
        self.device.expect_same(&other.device, "two quotient filters")?;
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        let stream = self.ready_stream()?;
        let theirs = other.extract_for(&self.layout, &stream, dropped)?;
        Ok((stream, theirs))
    }

    /// Makes a stream, and extracts the other's fingerprints as this filter's, with their copies.
    fn extract_other_counts(&self, other: &QuotientFilter<S>) -> Result<(Stream, CountedFingerprints), Error> {
        self.device.expect_same(&other.device, "two quotient filters")?;
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        let stream = self.ready_stream()?;
        let theirs = other.extract_counts_for(&self.layout, &stream, dropped)?;
        Ok((stream, theirs))
    }

    /// Selects this filter's fingerprints that have an equal among ascending others, one for one, or that have none.
    fn selected(&self, stream: &Stream, others: &Fingerprints, equal: bool) -> Result<Fingerprints, Error> {
        let ours = self.extract(stream)?;
        let mut bits = stream.alloc_uninit::<u64>(ours.len().div_ceil(64))?;
        ours.compare(stream, others, equal, Answers::bits(bits.as_mut_slice(), ours.len())?)?;
        ours.selected(stream, bits.as_slice())
    }

    /// Builds a filter of these fingerprints with or without ascending ones: extracts, combines, and lays out. Waits.
    pub(crate) fn rewritten_with(
        &self,
        stream: &Stream,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<QuotientFilter<S>, Error> {
        let all = match change {
            Change::Insert => self.extract(stream)?.merged(batch, &self.layout, stream)?,
            Change::Remove => self.selected(stream, batch, false)?,
        };
        QuotientFilter::lay_out(stream, self.layout, &all)
    }
}

/// Numbers of fingerprints in both of two filters, and in each.
struct Overlap {
    common: u64,
    ours: u64,
    theirs: u64,
}

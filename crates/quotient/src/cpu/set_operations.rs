//! Two filters merged, intersected, subtracted, and counted against each other.

use warpset_core::quotient::combine::Combination;

use super::QuotientFilter;
use super::fingerprint_source::{self, BothStored, Combined, Item};
use super::rewrite::lay_out;
use crate::Error;
use crate::slot_kind::{Copies, SlotKind};

impl<S: SlotKind> QuotientFilter<S> {
    /// Adds all fingerprints of another filter: as a set, or with all copies in a multiset.
    ///
    /// The other filter may have any number of slots, container and load limit. Its fingerprints must be at least as
    /// long as this filter's; excess bits are dropped. So the filter with shorter fingerprints takes the other in. In
    /// the other direction the rate of this filter would change.
    ///
    /// # Errors
    /// [`Error::FewerBits`] if the other's fingerprints are shorter; [`Error::Incompatible`],
    /// [`Error::DifferentDuplicates`] or [`Error::DifferentKeyBits`] for other differences; [`Error::Full`] or
    /// [`Error::OverflowRegionFull`] if they do not all fit, [`Error::TooManyCopies`], [`Error::OutOfMemory`]. The
    /// filter is unchanged then.
    pub fn merge(&mut self, other: &QuotientFilter<S>) -> Result<(), Error> {
        self.combine(Combination::Sum, other)
    }

    /// Keeps only fingerprints of the other filter; in multisets, each with the smaller of the two numbers of copies.
    ///
    /// The other filter is subject to the conditions of [`QuotientFilter::merge`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::merge`].
    pub fn intersect(&mut self, other: &QuotientFilter<S>) -> Result<(), Error> {
        self.combine(Combination::Intersection, other)
    }

    /// Removes the fingerprints of another filter: each cancels one equal copy.
    ///
    /// The other filter is subject to the conditions of [`QuotientFilter::merge`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::merge`].
    pub fn subtract(&mut self, other: &QuotientFilter<S>) -> Result<(), Error> {
        self.combine(Combination::Difference, other)
    }

    fn combine(&mut self, combination: Combination, other: &QuotientFilter<S>) -> Result<(), Error> {
        *self = if self.layout.is_counted() {
            lay_out(self.layout, &self.combined::<Copies>(combination, other)?)?
        } else {
            lay_out(self.layout, &self.combined::<u64>(combination, other)?)?
        };
        Ok(())
    }

    /// Builds the combination of the two, as fingerprints of this filter.
    fn combined<'a, T: Item>(
        &'a self,
        combination: Combination,
        other: &'a QuotientFilter<S>,
    ) -> Result<BothStored<'a, S, T>, Error> {
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        let (first, second) =
            (fingerprint_source::stored(self.view(), 0), fingerprint_source::stored(other.view(), dropped));
        Ok(Combined { combination, first, second })
    }

    /// Counts the fingerprints in both filters; in multisets, with the smaller of the two numbers of copies.
    ///
    /// Longer fingerprints lose their excess bits.
    ///
    /// # Errors
    /// [`Error::Incompatible`], [`Error::DifferentDuplicates`] or [`Error::DifferentKeyBits`] if the filters cannot be
    /// compared.
    pub fn intersection_count(&self, other: &QuotientFilter<S>) -> Result<u64, Error> {
        if self.layout.fingerprint_bits() > other.layout.fingerprint_bits() {
            return other.intersection_count(self);
        }
        let last = self.layout.last_fingerprint();
        Ok(if self.layout.is_counted() {
            fingerprint_source::count(&self.combined::<Copies>(Combination::Intersection, other)?, last)
        } else {
            fingerprint_source::count(&self.combined::<u64>(Combination::Intersection, other)?, last)
        })
    }

    /// Counts the fingerprints in at least one of the filters; in multisets, with the larger of the two numbers of
    /// copies.
    ///
    /// # Errors
    /// [`Error::Incompatible`], [`Error::DifferentDuplicates`] or [`Error::DifferentKeyBits`] if the filters cannot be
    /// compared.
    pub fn union_count(&self, other: &QuotientFilter<S>) -> Result<u64, Error> {
        if self.layout.fingerprint_bits() > other.layout.fingerprint_bits() {
            return other.union_count(self);
        }
        let common = self.intersection_count(other)?;
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        // Different fingerprints can become equal when they lose bits.
        let theirs = if dropped == 0 || self.layout.keeps_duplicates() {
            other.held.copies
        } else {
            fingerprint_source::count_distinct(
                &fingerprint_source::stored::<S, Copies>(other.view(), dropped),
                self.layout.last_fingerprint(),
            )
        };
        Ok(self.held.copies + theirs - common)
    }
}

//! Parameters of a filter.

use warpset_core::bits::lowest;
use warpset_core::hash::permute;
use warpset_core::quotient::Split;
use warpset_core::quotient::slots::{BLOCK_SLOTS, Container};

use crate::key::{Key, Seed};
use crate::{Error, FileError, rates};

/// Effect of a second copy of a fingerprint. In all three cases `count` is the number of copies of one fingerprint,
/// `len` of all, and `distinct` the number of different fingerprints.
///
/// ```
/// use warpset_quotient::{Duplicates, StandardQuotientFilter};
///
/// let mut set = StandardQuotientFilter::builder(100).build()?;
/// assert!(set.insert(7u64)? && !set.insert(7u64)? && set.count(7u64) == 1);
/// let mut multiset = StandardQuotientFilter::builder(100).duplicates(Duplicates::Kept).build()?;
/// assert!(multiset.insert(7u64)? && multiset.insert(7u64)? && multiset.count(7u64) == 2);
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// A second copy does nothing: the filter is a set. Removing a key removes its fingerprint, and with it every other
    /// key with that fingerprint.
    #[default]
    Dropped,
    /// A second copy takes another slot: the filter is a multiset. Removing a key removes one copy, so keys that were
    /// inserted can be removed without losing others.
    Kept,
    /// A second copy is counted. Answers are those of `Kept`, in space that grows with the logarithm of the number of
    /// copies, for one more bit per slot. For filters with rank and select.
    Counted,
}

/// Parameters of a filter. Two filters with the same parameters and the same fingerprints have the same bytes.
///
/// ```
/// use warpset_quotient::StandardBuilder;
///
/// let layout = StandardBuilder::with_bits(23, 5).max_load(0.95).layout()?; // the paper's filter
/// assert_eq!((layout.quotients(), layout.limit()), (1 << 23, 7_969_177));
/// assert_eq!(layout.slots() - layout.quotients(), 640); // the overflow region
/// assert_eq!(layout.words() * 64, layout.slots() * (5 + 3));
/// assert!(layout.fingerprint(7u64).is_some_and(|fingerprint| fingerprint < 1 << 28));
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub(crate) split: Split,
    pub(crate) container: Container,
    pub(crate) duplicates: Duplicates,
    pub(crate) seed: Seed,
    /// Whether a fingerprint is a bijection of its key, an integer with as many bits.
    pub(crate) exact: bool,
    /// Most fingerprints that may be stored.
    pub(crate) limit: u64,
    /// Blocks of 64 slots.
    pub(crate) blocks: u64,
    /// Lowest bits of a fingerprint, of its remainder, that are not of a hash.
    pub(crate) ordered_bits: u32,
}

/// Function from keys to fingerprints.
#[derive(Clone, Copy)]
pub(crate) struct FingerprintOf {
    split: Split,
    seed: Seed,
    exact: bool,
    spread: u64,
}

impl FingerprintOf {
    /// Returns the fingerprint of a key, if it has one.
    #[inline(always)]
    pub(crate) fn of<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        if !self.exact {
            return Some(self.split.fingerprint(self.seed.hash(key)));
        }
        let bits = self.split.fingerprint_bits();
        let word = key.word().filter(|&word| word <= lowest(bits))?;
        Some(permute::permute(word, bits, self.spread))
    }

    /// Returns a fingerprint for batches of lookups. A key without one gets the number after the last fingerprint; its
    /// quotient is the first slot after those of the quotients, and has no run. Exact filters of 64 bits have no such
    /// number; callers ask them one key at a time.
    #[inline(always)]
    pub(crate) fn or_none<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.of(key).unwrap_or(lowest(self.split.fingerprint_bits()).wrapping_add(1))
    }
}

/// Returns the limit on fingerprints in that many quotients.
fn limit_at(split: Split, max_load: f64) -> u64 {
    ((split.quotients() as f64 * max_load) as u64).max(1)
}

/// Fields of the header, one word each.
pub(crate) const FIELDS: usize = 8;

impl Layout {
    /// Makes parameters, with an overflow region for the limit.
    pub(crate) fn new(
        quotient_bits: u32,
        remainder_bits: u32,
        max_load: f64,
        container: Container,
        duplicates: Duplicates,
        seed: u64,
        exact: bool,
    ) -> Result<Layout, Error> {
        if !(max_load > 0.0 && max_load <= 0.99) {
            return Err(Error::InvalidMaxLoad { max_load });
        }
        let split =
            Split::new(quotient_bits, remainder_bits).ok_or(Error::InvalidBits { quotient_bits, remainder_bits })?;
        Ok(Layout::with_limit(split, limit_at(split, max_load), container, duplicates, seed, exact, 0))
    }

    /// Returns this layout for fingerprints with lowest bits that are not of a hash, such as those of ordered keys; up
    /// to `2^bits` of them may share all others. `None` if a remainder has fewer bits.
    #[doc(hidden)]
    pub fn with_ordered_bits(&self, bits: u32) -> Option<Layout> {
        let &Layout { split, limit, container, duplicates, exact, .. } = self;
        let of = || Layout::with_limit(split, limit, container, duplicates, self.seed(), exact, bits);
        (bits <= split.remainder_bits).then(of)
    }

    /// Returns the lowest bits of fingerprints that are not of a hash.
    #[doc(hidden)]
    pub fn ordered_bits(&self) -> u32 {
        self.ordered_bits
    }

    /// Returns the load limit as far as the rounded number of slots tells: the `usual` one, or else a whole per cent if
    /// that gives the number.
    fn max_load(&self, usual: f64) -> f64 {
        let share = self.limit as f64 / self.quotients() as f64;
        let asked = [usual, (100.0 * share).ceil() / 100.0].into_iter();
        asked.filter(|&load| load <= 0.99).find(|&load| limit_at(self.split, load) == self.limit).unwrap_or(share)
    }

    /// Makes parameters, with an overflow region for this limit, which is below the number of quotients.
    fn with_limit(
        split: Split,
        limit: u64,
        container: Container,
        duplicates: Duplicates,
        seed: u64,
        exact: bool,
        ordered_bits: u32,
    ) -> Layout {
        let load = limit as f64 / split.quotients() as f64;
        // Small filters have overflow slots for the worst case, all items in the last quotient.
        let overflow = limit.min(rates::overflow_bound(split.quotient_bits, load, ordered_bits));
        // One more slot stays empty, so that every walk ends.
        let blocks = (split.quotients() + overflow + 1).div_ceil(BLOCK_SLOTS);
        Layout { split, container, duplicates, seed: Seed::new(seed), exact, limit, blocks, ordered_bits }
    }

    /// Returns this layout for twice as many keys, with fingerprints of the same length.
    pub(crate) fn doubled(&self, usual_load: f64) -> Result<Layout, Error> {
        let doubled = self.with_quotient_bits(self.quotient_bits() + 1, usual_load);
        doubled.map_err(|_| Error::CannotDouble { limit: self.limit })
    }

    /// Returns this layout for half as many keys, with fingerprints of the same length.
    pub(crate) fn halved(&self, usual_load: f64) -> Result<Layout, Error> {
        let halved = self.with_quotient_bits(self.quotient_bits() - 1, usual_load);
        halved.map_err(|_| Error::CannotHalve { limit: self.limit })
    }

    /// Returns the layout of a part of this filter: the fingerprints with the same `bits` highest bits, without them. A
    /// part of several takes hashes, also of an exact filter.
    #[cfg(feature = "gpu")]
    pub(crate) fn part(&self, bits: u32) -> Layout {
        if bits == 0 {
            return *self;
        }
        let split = Split { quotient_bits: self.quotient_bits() - bits, ..self.split };
        let limit = (self.limit >> bits).max(1);
        Layout::with_limit(split, limit, self.container, self.duplicates, self.seed(), false, self.ordered_bits)
    }

    /// Returns this layout for quotients of another width. Fingerprints keep their length, so one more quotient bit is
    /// one remainder bit less. A filter built at that size gets the same layout, if the load limit is the `usual_load`
    /// of its kind of slots, or a whole per cent of at least 2^7 slots.
    pub(crate) fn with_quotient_bits(&self, quotient_bits: u32, usual_load: f64) -> Result<Layout, Error> {
        let remainder_bits = self.split.fingerprint_bits().saturating_sub(quotient_bits);
        let split =
            Split::new(quotient_bits, remainder_bits).ok_or(Error::InvalidBits { quotient_bits, remainder_bits })?;
        let limit = limit_at(split, self.max_load(usual_load));
        let layout = Layout::with_limit(split, limit, self.container, self.duplicates, self.seed(), self.exact, 0);
        layout.with_ordered_bits(self.ordered_bits).ok_or(Error::InvalidBits { quotient_bits, remainder_bits })
    }

    /// Returns the bits of a quotient.
    pub fn quotient_bits(&self) -> u32 {
        self.split.quotient_bits
    }

    /// Returns the bits of a remainder.
    pub fn remainder_bits(&self) -> u32 {
        self.split.remainder_bits
    }

    /// Returns the bits of a fingerprint: quotient and remainder.
    pub fn fingerprint_bits(&self) -> u32 {
        self.split.fingerprint_bits()
    }

    /// Returns the memory layout of slots.
    pub fn container(&self) -> Container {
        self.container
    }

    /// Returns the effect of a second copy of a fingerprint.
    pub fn duplicates(&self) -> Duplicates {
        self.duplicates
    }

    /// Returns the seed of the keys' hash.
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// Returns the most fingerprints that may be stored; with counters, the most slots that they may take.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the number of quotients: slots without the overflow region.
    pub fn quotients(&self) -> u64 {
        self.split.quotients()
    }

    /// Returns the number of slots, with the overflow region.
    pub fn slots(&self) -> u64 {
        self.blocks * BLOCK_SLOTS
    }

    /// Returns the number of 64-bit words of all slots.
    pub fn words(&self) -> u64 {
        self.blocks * self.block_words()
    }

    pub(crate) fn block_words(&self) -> u64 {
        self.container.block_words(self.split.remainder_bits) + self.is_counted() as u64
    }

    /// Whether a filter holds copies, in slots or as counters.
    pub(crate) fn keeps_duplicates(&self) -> bool {
        self.duplicates != Duplicates::Dropped
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.duplicates == Duplicates::Counted
    }

    /// Whether the filter is exact: a fingerprint is a bijection of its key, an integer of as many bits.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns the fingerprint of a key: the high bits of its hash or, in an exact filter, a bijection of the key.
    /// `None` if the filter is exact and the key is no integer of [`fingerprint_bits`](Layout::fingerprint_bits).
    #[inline]
    pub fn fingerprint(&self, key: impl Key) -> Option<u64> {
        self.fingerprints_of().of(&key)
    }

    /// Returns the function from keys to fingerprints.
    #[inline(always)]
    pub(crate) fn fingerprints_of(&self) -> FingerprintOf {
        let spread = if self.exact { permute::spread_of(self.seed()) } else { 0 };
        FingerprintOf { split: self.split, seed: self.seed, exact: self.exact, spread }
    }

    /// Returns the key of a fingerprint of an exact filter.
    pub(crate) fn key_of(&self, fingerprint: u64) -> u64 {
        permute::unpermute(fingerprint, self.fingerprint_bits(), permute::spread_of(self.seed()))
    }

    /// Returns the fingerprint, or the error for a key without one.
    #[inline]
    pub(crate) fn expect_fingerprint(&self, fingerprint: Option<u64>) -> Result<u64, Error> {
        fingerprint.ok_or(Error::KeyTooWide { bits: self.fingerprint_bits() })
    }

    /// Returns the number of low bits that fingerprints of another filter lose when they are combined with this
    /// filter's.
    pub(crate) fn bits_to_drop(&self, other: &Layout) -> Result<u32, Error> {
        let (left, right) = (self.fingerprint_bits(), other.fingerprint_bits());
        if self.seed != other.seed {
            return Err(Error::Incompatible { field: "seed", left: self.seed(), right: other.seed() });
        }
        if self.exact != other.exact || self.exact && left != right {
            return Err(Error::DifferentKeyBits {
                left: self.exact.then_some(left),
                right: other.exact.then_some(right),
            });
        }
        if self.duplicates != other.duplicates {
            return Err(Error::DifferentDuplicates { left: self.duplicates, right: other.duplicates });
        }
        if self.ordered_bits != other.ordered_bits {
            let (left, right) = (self.ordered_bits.into(), other.ordered_bits.into());
            return Err(Error::Incompatible { field: "ordered bits", left, right });
        }
        if self.ordered_bits > 0 && left < right {
            let (left, right) = (left.into(), right.into());
            return Err(Error::Incompatible { field: "bits of fingerprints", left, right });
        }
        right.checked_sub(left).ok_or(Error::FewerBits { left, right })
    }

    /// Returns the largest fingerprint.
    pub(crate) fn last_fingerprint(&self) -> u64 {
        !0 >> (64 - self.fingerprint_bits())
    }

    /// Returns the error for more items than the limit.
    pub(crate) fn full(&self, items: u64) -> Error {
        Error::Full { items, limit: self.limit, duplicates: self.duplicates }
    }

    /// Returns the error for a fingerprint that has no slot up to the last one.
    pub(crate) fn no_slot(&self) -> Error {
        let last = self.slots() - 1;
        Error::OverflowRegionFull { slot: last, limit: last }
    }

    /// Refuses a fingerprint with too many bits.
    pub(crate) fn check_fingerprint(&self, fingerprint: u64) -> Result<(), Error> {
        if fingerprint > self.last_fingerprint() {
            return Err(Error::InvalidFingerprint { fingerprint, bits: self.fingerprint_bits() });
        }
        Ok(())
    }

    /// Refuses fingerprints with too many bits.
    pub(crate) fn check_fingerprints(&self, fingerprints: &[u64]) -> Result<(), Error> {
        let last = self.last_fingerprint();
        let wrong = fingerprints.iter().find(|fingerprint| **fingerprint > last);
        wrong.map_or(Ok(()), |&fingerprint| self.check_fingerprint(fingerprint))
    }

    pub(crate) fn to_fields(self) -> [u64; FIELDS] {
        let form = self.container as u64
            | (self.duplicates as u64) << 8
            | (self.exact as u64) << 16
            | u64::from(self.ordered_bits) << 24;
        [
            self.split.quotient_bits as u64,
            self.split.remainder_bits as u64,
            form,
            self.seed(),
            self.limit,
            self.blocks,
            0,
            0,
        ]
    }

    /// Reads the parameters of a header; field 6 is none.
    pub(crate) fn from_fields(fields: [u64; FIELDS]) -> Result<Layout, Error> {
        let [quotient_bits, remainder_bits, form, seed, limit, blocks, _, _] = fields;
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).min(1 << 16);
        let Some(split) = Split::new(small(quotient_bits), small(remainder_bits)) else {
            return invalid("quotient bits beside the remainder bits", quotient_bits);
        };
        let Some(container) = Container::from_index(form & 0xff) else {
            return invalid("container", form & 0xff);
        };
        let ordered_bits = small(form >> 24);
        if ordered_bits > split.remainder_bits {
            return invalid("ordered bits", ordered_bits.into());
        }
        let exact = match form >> 16 & 0xff {
            0 => false,
            1 => true,
            other => return invalid("exact", other),
        };
        let duplicates = match form >> 8 & 0xff {
            0 => Duplicates::Dropped,
            1 => Duplicates::Kept,
            2 => Duplicates::Counted,
            other => return invalid("duplicates", other),
        };
        if limit == 0 || limit >= split.quotients().max(2) {
            return invalid("limit", limit);
        }
        // At least one more slot than quotients, and no more than the worst case takes.
        let least = (split.quotients() + 2).div_ceil(BLOCK_SLOTS);
        let most = (split.quotients() + limit + 1).div_ceil(BLOCK_SLOTS);
        if blocks < least || blocks > most {
            return invalid("blocks", blocks);
        }
        Ok(Layout { split, container, duplicates, seed: Seed::new(seed), exact, limit, blocks, ordered_bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(q: u32, r: u32, load: f64) -> Layout {
        Layout::new(q, r, load, Container::Packed, Duplicates::Dropped, 7, false).unwrap()
    }

    #[test]
    fn fields_and_back() {
        for (q, r, load) in [(1, 1, 0.1), (1, 61, 0.99), (6, 5, 0.95), (23, 5, 0.9), (30, 34, 0.5)] {
            let mut layout = layout(q, r, load);
            layout.duplicates = Duplicates::Kept;
            layout.container = Container::Bytes;
            layout.exact = q == 6;
            assert_eq!(Layout::from_fields(layout.to_fields()).unwrap(), layout);
        }
        assert_eq!(layout(23, 5, 0.95).slots() - (1 << 23), 640);
    }

    /// Checks that filters of the same keys are equal, whatever resizes they went through.
    #[test]
    fn resized_layouts_are_those_of_their_size() {
        for percent in 1..=99 {
            let load = f64::from(percent) / 100.0;
            for q in 7..20 {
                for other in [q + 1, q + 7, 48, 7] {
                    assert_eq!(
                        layout(q, 52 - q, load).with_quotient_bits(other, 0.9).unwrap(),
                        layout(other, 52 - other, load)
                    );
                }
            }
        }
        for (q, load) in (1..7).flat_map(|q| [(q, 0.95), (q, 0.9), (q, 0.123)]) {
            let resized = layout(q, 52 - q, load).with_quotient_bits(20, load).unwrap();
            assert_eq!(resized, layout(20, 32, load));
        }
        // Others keep the share of the slots.
        let layout = layout(20, 20, 0.123_456_7);
        assert_eq!(layout.with_quotient_bits(25, 0.9).unwrap().limit(), 32 * layout.limit());
        assert_eq!(layout.with_quotient_bits(15, 0.9).unwrap().limit(), layout.limit() / 32);
    }

    #[test]
    fn other_quotients_same_fingerprints() {
        let small = layout(10, 10, 0.9);
        let large = small.with_quotient_bits(11, 0.9).unwrap();
        assert_eq!((large.fingerprint_bits(), large.remainder_bits()), (20, 9));
        assert_eq!((small.limit(), large.limit()), (921, 1843));
        assert_eq!(large.with_quotient_bits(10, 0.9).unwrap(), small);
        assert!(matches!(small.with_quotient_bits(20, 0.9), Err(Error::InvalidBits { .. })));
    }
}

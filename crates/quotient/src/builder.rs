//! From what a user wants to a layout: capacity with a rate, or the bits themselves.

use std::fmt;
use std::marker::PhantomData;

use warpset_core::quotient::slots::Container;

use crate::key::Seed;
use crate::slot_kind::SlotKind;
use crate::standard::Standard;
use crate::{Duplicates, Error, Key, Layout, QuotientFilter};

mod device;

pub use device::DeviceBuilder;

/// The rate unless the user asks for another.
pub const DEFAULT_FPR: f64 = 0.01;

/// What the user said about the size.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Capacity(u64),
    Bits { quotient_bits: u32, remainder_bits: u32 },
    Layout(Layout),
}

/// Settings of a [`QuotientFilter`]; each setter states its default.
///
/// ```
/// use warpset_quotient::{StandardBuilder, StandardQuotientFilter};
///
/// let filter = StandardQuotientFilter::builder(1_000_000).fpr(0.001).build()?;
/// assert_eq!(filter.layout().quotient_bits(), 21);
/// assert!(filter.expected_fpr(1_000_000) <= 0.001);
///
/// let filter = StandardBuilder::with_bits(23, 5).max_load(0.95).build()?; // the paper's filter
/// assert!(filter.layout().limit() > 7_900_000);
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S> {
    size: Size,
    fpr: f64,
    max_load: f64,
    container: Container,
    duplicates: Duplicates,
    seed: u64,
    exact: Option<u32>,
    slots: PhantomData<S>,
}

impl<S: SlotKind> Builder<S> {
    fn new(size: Size) -> Builder<S> {
        Builder {
            size,
            fpr: DEFAULT_FPR,
            max_load: S::MAX_LOAD,
            container: Container::Packed,
            duplicates: Duplicates::Dropped,
            seed: 0,
            exact: None,
            slots: PhantomData,
        }
    }

    /// For `keys` different keys (for a multiset: keys with their repetitions): the smallest power of two of slots that
    /// holds them within the load limit.
    pub fn with_capacity(keys: u64) -> Builder<S> {
        Builder::new(Size::Capacity(keys))
    }

    /// For `2^quotient_bits` slots with remainders of `remainder_bits`, as in the paper.
    pub fn with_bits(quotient_bits: u32, remainder_bits: u32) -> Builder<S> {
        Builder::new(Size::Bits { quotient_bits, remainder_bits })
    }

    /// For a layout that is known already: that of another filter, for example. Rate and load limit are the layout's.
    pub fn with_layout(layout: Layout) -> Builder<S> {
        let Layout { container, duplicates, .. } = layout;
        let exact = layout.exact.then(|| layout.fingerprint_bits());
        Builder { container, duplicates, seed: layout.seed(), exact, ..Builder::new(Size::Layout(layout)) }
    }

    /// The rate of false positives at capacity, at most; without effect where bits or layout are given. Default: 0.01.
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.fpr = fpr;
        self
    }

    /// The share of slots that may be used, above 0 and at most 0.99; without effect where a layout is given. Default: 0.9
    /// for standard slots, 0.95 for those with rank and select.
    pub fn max_load(mut self, max_load: f64) -> Self {
        self.max_load = max_load;
        self
    }

    /// What a second copy of a fingerprint does. Default: [`Duplicates::Dropped`].
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// The seed of the keys' hash. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes the filter exact, for keys that are integers of `key_bits` bits, 2 to 64: a fingerprint is then as long as a key
    /// and a bijection of it. No key is taken for another, counts are those of keys, and keys can be listed; the rate of false
    /// positives is without effect.
    ///
    /// ```
    /// use warpset_quotient::{Duplicates, RankSelectQuotientFilter};
    ///
    /// let builder = RankSelectQuotientFilter::builder(1000).duplicates(Duplicates::Counted).exact(40);
    /// let filter = builder.build_from(&[7u64, 9, 7, 1 << 39])?;
    /// let mut counts: Vec<(u64, u64)> = filter.key_counts()?.collect();
    /// counts.sort();
    /// assert_eq!(counts, [(7, 2), (9, 1), (1 << 39, 1)]);
    /// assert!(!filter.contains(8u64) && !filter.contains(1u64 << 40) && filter.fpr() == 0.0);
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    pub fn exact(mut self, key_bits: u32) -> Self {
        self.exact = Some(key_bits);
        self
    }

    /// Checks every setting.
    pub fn layout(&self) -> Result<Layout, Error> {
        if self.duplicates == Duplicates::Counted && !S::COUNTS {
            return Err(Error::NoCounters { structure: S::NAME });
        }
        let (quotient_bits, remainder_bits) = match self.size {
            Size::Bits { quotient_bits, remainder_bits } => (quotient_bits, remainder_bits),
            Size::Capacity(keys) => self.bits_for(keys)?,
            Size::Layout(layout) => {
                let Builder { container, duplicates, exact, .. } = *self;
                let seed = Seed::new(self.seed);
                let bits = layout.fingerprint_bits();
                if exact.is_some_and(|exact| exact != bits) {
                    return Err(Error::KeyTooWide { bits });
                }
                return Ok(Layout { container, duplicates, seed, exact: exact.is_some(), ..layout });
            }
        };
        let is_exact = self.exact.is_some();
        if self.exact.is_some_and(|exact| exact != quotient_bits.saturating_add(remainder_bits)) {
            return Err(Error::InvalidBits { quotient_bits, remainder_bits });
        }
        Layout::new(quotient_bits, remainder_bits, self.max_load, self.container, self.duplicates, self.seed, is_exact)
    }

    fn bits_for(&self, keys: u64) -> Result<(u32, u32), Error> {
        if keys == 0 {
            return Err(Error::ZeroCapacity);
        }
        let fpr = self.fpr;
        if self.exact.is_none() && !(fpr > 0.0 && fpr < 1.0) {
            return Err(Error::InvalidFpr { fpr });
        }
        if !(self.max_load > 0.0 && self.max_load <= 0.99) {
            return Err(Error::InvalidMaxLoad { max_load: self.max_load });
        }
        let holds = |bits: u32| ((2f64.powi(bits as i32) * self.max_load) as u64).max(1) >= keys;
        let quotient_bits = (1..=64).find(|&bits| holds(bits)).unwrap_or(u32::MAX);
        if let Some(key_bits) = self.exact {
            let remainder_bits = key_bits.saturating_sub(quotient_bits);
            return Ok((quotient_bits, remainder_bits));
        }
        // The share of fingerprints in use is at most keys / 2^p.
        let fingerprint_bits = (keys as f64 / fpr).log2().ceil() as u32;
        let remainder_bits = fingerprint_bits.saturating_sub(quotient_bits).max(1);
        if remainder_bits > 61 || quotient_bits.saturating_add(remainder_bits) > 64 {
            return Err(Error::UnreachableFpr { keys, fpr });
        }
        Ok((quotient_bits, remainder_bits))
    }

    /// An empty filter. Checks every setting, then allocates.
    pub fn build(&self) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::with_layout(self.layout()?)
    }

    /// A filter of these keys, built at once: hashed, sorted, laid out.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_keys(self.layout()?, keys)
    }

    /// A filter of these fingerprints, in any order.
    pub fn build_from_fingerprints(&self, fingerprints: &[u64]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_fingerprints(self.layout()?, fingerprints)
    }

    /// A filter of what [`fingerprint_counts`](QuotientFilter::fingerprint_counts) lists: fingerprints with how many copies
    /// there are of each. `from(first)` gives those that are at least `first`, in ascending order, each once. All threads
    /// read, each its parts, and each part twice unless there is one thread; nothing is stored between, so the pairs may lie
    /// in whatever form takes the least memory.
    ///
    /// ```
    /// use warpset_quotient::{Duplicates, RankSelectBuilder};
    ///
    /// let pairs = [(3u64, 1u64), (700, 1_000_000), (90_000, 2)];
    /// let filter = RankSelectBuilder::with_bits(10, 10)
    ///     .duplicates(Duplicates::Counted)
    ///     .build_from_fingerprint_counts(|first| pairs.iter().copied().filter(move |pair| pair.0 >= first))?;
    /// assert_eq!((filter.distinct(), filter.count_fingerprint(700)), (3, 1_000_000));
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAscending`] if the pairs are not as said, [`Error::Full`] if they do not fit.
    ///
    /// # Panics
    /// Possibly, if `from` gives other pairs the second time.
    pub fn build_from_fingerprint_counts<F, I>(&self, from: F) -> Result<QuotientFilter<S>, Error>
    where
        F: Fn(u64) -> I + Sync,
        I: Iterator<Item = (u64, u64)>,
    {
        QuotientFilter::from_given(self.layout()?, from)
    }
}

impl Builder<Standard> {
    /// How slots lie in memory. Default: [`Container::Packed`].
    pub fn container(mut self, container: Container) -> Self {
        self.container = container;
        self
    }
}

impl<S: SlotKind> QuotientFilter<S> {
    /// A filter for `keys` different keys; 1% false positives unless told otherwise.
    pub fn builder(keys: u64) -> Builder<S> {
        Builder::with_capacity(keys)
    }
}

impl<S: SlotKind> fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("slots", &S::NAME)
            .field("size", &self.size)
            .field("fpr", &self.fpr)
            .field("max_load", &self.max_load)
            .field("container", &self.container)
            .field("duplicates", &self.duplicates)
            .field("seed", &self.seed)
            .field("exact", &self.exact)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StandardBuilder, rates};

    #[test]
    fn capacity_and_rate_hold() {
        for keys in [1, 2, 57, 58, 1000, 943_718, 943_719, 1 << 30, 1 << 40] {
            for fpr in [0.5, 0.01, 1e-6] {
                let layout = StandardBuilder::with_capacity(keys).fpr(fpr).layout().unwrap();
                assert!(layout.limit() >= keys, "{keys}: {layout:?}");
                assert!(rates::expected(keys, layout.fingerprint_bits()) <= fpr, "{keys} {fpr}: {layout:?}");
                assert!(layout.quotient_bits() == 1 || layout.quotients() as f64 * 0.45 <= keys as f64 + 1.0);
            }
        }
    }

    #[test]
    fn settings_are_checked() {
        assert!(matches!(StandardBuilder::with_capacity(0).layout(), Err(Error::ZeroCapacity)));
        for fpr in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(matches!(StandardBuilder::with_capacity(9).fpr(fpr).layout(), Err(Error::InvalidFpr { .. })));
        }
        for load in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(matches!(
                StandardBuilder::with_capacity(9).max_load(load).layout(),
                Err(Error::InvalidMaxLoad { .. })
            ));
            assert!(matches!(
                StandardBuilder::with_bits(9, 9).max_load(load).layout(),
                Err(Error::InvalidMaxLoad { .. })
            ));
        }
        assert!(matches!(StandardBuilder::with_bits(0, 9).layout(), Err(Error::InvalidBits { .. })));
        assert!(matches!(StandardBuilder::with_bits(9, 62).layout(), Err(Error::InvalidBits { .. })));
        assert!(matches!(
            StandardBuilder::with_capacity(1 << 30).fpr(1e-300).layout(),
            Err(error @ Error::UnreachableFpr { .. }) if error.to_string().contains(" 1e-300 ")
        ));
        assert!(matches!(
            StandardBuilder::with_capacity(1 << 30).fpr(1e-12).layout(),
            Err(Error::UnreachableFpr { .. })
        ));
        assert!(matches!(StandardBuilder::with_capacity(u64::MAX).layout(), Err(Error::UnreachableFpr { .. })));
        let huge = StandardBuilder::with_bits(48, 16).build();
        assert!(matches!(huge, Err(Error::OutOfMemory(_))), "{huge:?}");
    }
}

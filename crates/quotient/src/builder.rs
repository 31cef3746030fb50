//! Settings and the layouts that follow from them: a capacity with a rate, or numbers of bits.

use std::fmt;
use std::marker::PhantomData;

use warpset_core::quotient::slots::Container;
use warpset_core::quotient::{MAX_QUOTIENT_BITS, MAX_REMAINDER_BITS};

use crate::key::Seed;
use crate::maplet::words_with_values;
use crate::slot_kind::SlotKind;
use crate::standard::Standard;
use crate::{Duplicates, Error, Key, Layout, QuotientFilter};

/// Default rate of false positives.
pub const DEFAULT_FPR: f64 = 0.01;

/// Size as the user gave it.
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
    fpr: Option<f64>,
    memory_limit: Option<u64>,
    max_load: f64,
    container: Container,
    duplicates: Duplicates,
    seed: u64,
    exact: Option<u32>,
    /// Bits of a value beside each fingerprint, in maplets.
    pub(crate) value_bits: u32,
    slots: PhantomData<S>,
}

impl<S: SlotKind> Builder<S> {
    fn new(size: Size) -> Builder<S> {
        Builder {
            size,
            fpr: None,
            memory_limit: None,
            max_load: S::MAX_LOAD,
            container: Container::Packed,
            duplicates: Duplicates::Dropped,
            seed: 0,
            exact: None,
            value_bits: 0,
            slots: PhantomData,
        }
    }

    /// Makes a builder for `keys` keys: the smallest power of two of slots that holds them within the load limit. Under
    /// [`Duplicates::Kept`] repetitions count as keys; otherwise only different keys do.
    ///
    /// Under [`Duplicates::Counted`] a key that comes once takes one slot. Each further slot of a key holds a digit of
    /// its count, of `r` bits, the bits of a remainder. There is room for `2 + 4 / r` slots per key, which suffices for
    /// any counts with a geometric mean of at most 16. In a stream in which most keys come once or twice, keys take
    /// fewer than two slots on average, so means of hundreds fit.
    pub fn with_capacity(keys: u64) -> Builder<S> {
        Builder::new(Size::Capacity(keys.max(1)))
    }

    /// Makes a builder for `2^quotient_bits` slots with remainders of `remainder_bits`, as in the paper.
    pub fn with_bits(quotient_bits: u32, remainder_bits: u32) -> Builder<S> {
        Builder::new(Size::Bits { quotient_bits, remainder_bits })
    }

    /// Makes a builder for a known layout, such as that of another filter. Rate and load limit are the layout's.
    pub fn with_layout(layout: Layout) -> Builder<S> {
        let Layout { container, duplicates, .. } = layout;
        let exact = layout.exact.then(|| layout.fingerprint_bits());
        Builder { container, duplicates, seed: layout.seed(), exact, ..Builder::new(Size::Layout(layout)) }
    }

    /// Sets the highest rate of false positives at capacity. It has no effect where bits or a layout are given.
    /// Default: 0.01, or the lowest rate within the memory limit.
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.fpr = Some(fpr);
        self
    }

    /// Sets the most bytes of memory. Without other sizes the filter gets the longest remainders that fit, and so the
    /// lowest rate. With a rate, bits or a layout, it is an error if they do not fit.
    ///
    /// ```
    /// use warpset_quotient::RankSelectQuotientFilter;
    ///
    /// let filter = RankSelectQuotientFilter::builder(1_000_000).memory_limit(4 << 20).build()?;
    /// assert!(filter.memory_bytes() <= 4 << 20 && filter.expected_fpr(1_000_000) < 0.0002);
    /// let refused = RankSelectQuotientFilter::builder(1_000_000).memory_limit(1 << 19).build().unwrap_err();
    /// assert!(refused.to_string().contains("524288"), "{refused}");
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Sets the share of slots that may be used, above 0 and at most 0.99. It has no effect where a layout is given.
    /// Default: 0.9 for standard slots, 0.95 for those with rank and select.
    pub fn max_load(mut self, max_load: f64) -> Self {
        self.max_load = max_load;
        self
    }

    /// Sets the effect of a second copy of a fingerprint. Default: [`Duplicates::Dropped`].
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// Sets the seed of the keys' hash. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes the filter exact, for keys that are integers of `key_bits` bits, 2 to 64: a fingerprint is a bijection of
    /// its key and as long. No key is taken for another, counts are those of keys, and keys can be listed. A rate of
    /// false positives has no effect.
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

    /// Checks every setting and returns the layout.
    ///
    /// # Errors
    /// For settings that no filter has: [`Error::TooManyKeys`], [`Error::InvalidFpr`],
    /// [`Error::UnreachableFpr`], [`Error::InvalidMaxLoad`], [`Error::InvalidBits`], [`Error::InvalidKeyBits`],
    /// [`Error::TooManyExactKeys`]. For settings that exclude each other: [`Error::OtherKeyBits`] if an exact filter's
    /// keys have other bits than the layout, [`Error::NoCounters`] and [`Error::WrongContainer`] if this kind of slots
    /// has no counters or not the container of the layout. [`Error::OverMemoryLimit`] if the filter would take more
    /// memory than it may.
    pub fn layout(&self) -> Result<Layout, Error> {
        let layout = self.unlimited_layout()?;
        let Some(limit) = self.memory_limit else { return Ok(layout) };
        let is_open = self.fpr.is_none() && self.exact.is_none() && matches!(self.size, Size::Capacity(_));
        let words = |layout: &Layout| words_with_values(layout, self.value_bits);
        let fits = |layout: &Layout| words(layout).is_some_and(|words| 8 * words <= limit);
        let over = |least: &Layout| match words(least) {
            Some(words) => Error::OverMemoryLimit { needed: 8 * words, limit },
            None => Error::no_value_bits(least, self.value_bits),
        };
        if !is_open {
            return if fits(&layout) { Ok(layout) } else { Err(over(&layout)) };
        }
        let quotient_bits = layout.quotient_bits();
        let of =
            |remainder_bits| Builder { size: Size::Bits { quotient_bits, remainder_bits }, ..*self }.unlimited_layout();
        let longest = (1..=64 - quotient_bits).rev().find_map(|bits| of(bits).ok().filter(fits));
        match longest {
            Some(longest) => Ok(longest),
            None => Err(over(&of(1)?)),
        }
    }

    fn unlimited_layout(&self) -> Result<Layout, Error> {
        if self.duplicates == Duplicates::Counted && !S::COUNTS {
            return Err(Error::NoCounters { structure: S::NAME });
        }
        if let Some(key_bits) = self.exact
            && !(2..=64).contains(&key_bits)
        {
            return Err(Error::InvalidKeyBits { key_bits });
        }
        if !S::lies_in(self.container) {
            return Err(Error::WrongContainer { structure: S::NAME, container: self.container });
        }
        let (quotient_bits, remainder_bits) = match self.size {
            Size::Bits { quotient_bits, remainder_bits } => (quotient_bits, remainder_bits),
            Size::Capacity(keys) => self.bits_for(keys)?,
            Size::Layout(layout) => (layout.quotient_bits(), layout.remainder_bits()),
        };
        let Builder { container, duplicates, seed, exact, max_load, .. } = *self;
        let bits = quotient_bits.saturating_add(remainder_bits);
        if let Some(key_bits) = exact
            && key_bits != bits
        {
            return Err(Error::OtherKeyBits { key_bits, bits });
        }
        if let Size::Layout(layout) = self.size {
            return Ok(Layout { container, duplicates, seed: Seed::new(seed), exact: exact.is_some(), ..layout });
        }
        Layout::new(quotient_bits, remainder_bits, max_load, container, duplicates, seed, exact.is_some())
    }

    /// Returns the bits of quotient and remainder for that many keys.
    fn bits_for(&self, keys: u64) -> Result<(u32, u32), Error> {
        let Builder { fpr, max_load, .. } = *self;
        let fpr = fpr.unwrap_or(DEFAULT_FPR);
        if self.exact.is_none() && !(fpr > 0.0 && fpr < 1.0) {
            return Err(Error::InvalidFpr { fpr });
        }
        if !(max_load > 0.0 && max_load <= 0.99) {
            return Err(Error::InvalidMaxLoad { max_load });
        }
        // The share of fingerprints in use is at most keys / 2^bits.
        let hashed = (keys as f64 / fpr).log2().ceil() as u32;
        let bits_at = |quotient_bits: u32| self.exact.unwrap_or(hashed.max(quotient_bits + 1));
        // Returns the number of keys that fit.
        let most = |quotient_bits: u32| {
            let limit = (((1u64 << quotient_bits) as f64 * max_load) as u64).max(1);
            let remainder_bits = u64::from((bits_at(quotient_bits) - quotient_bits).min(MAX_REMAINDER_BITS));
            match self.duplicates {
                Duplicates::Counted => limit * remainder_bits / (2 * remainder_bits + 4),
                Duplicates::Dropped | Duplicates::Kept => limit,
            }
        };
        let widest = MAX_QUOTIENT_BITS.min(self.exact.map_or(u32::MAX, |key_bits| key_bits - 1));
        let Some(quotient_bits) = (1..=widest).find(|&bits| most(bits) >= keys) else {
            let most = (1..=widest).map(most).max().unwrap_or(0);
            return Err(match self.exact {
                Some(key_bits) if widest < MAX_QUOTIENT_BITS => Error::TooManyExactKeys { keys, key_bits, most },
                _ => Error::TooManyKeys { keys, most },
            });
        };
        let bits = bits_at(quotient_bits);
        if bits > 64 {
            return Err(Error::UnreachableFpr { keys, fpr, least: keys as f64 * 0.5f64.powi(64) });
        }
        let quotient_bits = quotient_bits.max(bits.saturating_sub(MAX_REMAINDER_BITS));
        Ok((quotient_bits, bits - quotient_bits))
    }

    /// Checks every setting, then allocates an empty filter.
    ///
    /// # Errors
    /// The errors of [`Builder::layout`]; [`Error::OutOfMemory`].
    pub fn build(&self) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::with_layout(self.layout()?)
    }

    /// Builds a filter of these keys: they are hashed, sorted and laid out.
    ///
    /// # Errors
    /// The errors of [`Builder::build`]; [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not all fit;
    /// [`Error::KeyTooWide`] if the filter is exact and a key has too many bits.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_keys(self.layout()?, keys)
    }

    /// Builds a filter of these fingerprints, in any order.
    ///
    /// # Errors
    /// The errors of [`Builder::build`]; [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not all fit;
    /// [`Error::InvalidFingerprint`] if one has too many bits.
    pub fn build_from_fingerprints(&self, fingerprints: &[u64]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_fingerprints(self.layout()?, fingerprints)
    }

    /// Builds a filter of the pairs that [`fingerprint_counts`](QuotientFilter::fingerprint_counts) lists: fingerprints
    /// with their numbers of copies. `from(first)` yields the pairs with fingerprints of at least `first`, in ascending
    /// order, each once. Every thread reads its own parts, twice unless there is one thread. Nothing is stored in
    /// between, so the pairs may be kept in any form.
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
    /// [`Error::NotAscending`] if fingerprints do not ascend or have no copies, [`Error::Full`] if they do not fit.
    ///
    /// # Panics
    /// May panic if `from` yields other pairs the second time.
    pub fn build_from_fingerprint_counts<F, I>(&self, from: F) -> Result<QuotientFilter<S>, Error>
    where
        F: Fn(u64) -> I + Sync,
        I: Iterator<Item = (u64, u64)>,
    {
        QuotientFilter::from_given(self.layout()?, from)
    }
}

impl Builder<Standard> {
    /// Sets the memory layout of slots. Default: [`Container::Packed`].
    pub fn container(mut self, container: Container) -> Self {
        self.container = container;
        self
    }
}

impl<S: SlotKind> QuotientFilter<S> {
    /// Makes a builder for `keys` different keys, with room for their counts if they are counted
    /// ([`Builder::with_capacity`]); 1% false positives unless set otherwise.
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
            .field("memory_limit", &self.memory_limit)
            .field("max_load", &self.max_load)
            .field("container", &self.container)
            .field("duplicates", &self.duplicates)
            .field("seed", &self.seed)
            .field("exact", &self.exact)
            .field("value_bits", &self.value_bits)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RankSelectBuilder, StandardBuilder, rates};

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
    fn memory_limits_hold() {
        for keys in [1, 1000, 1_000_000] {
            for limit in [1 << 10, 1 << 16, 3 << 20, 1 << 40] {
                let builder = StandardBuilder::with_capacity(keys).memory_limit(limit);
                match builder.layout() {
                    Ok(layout) => {
                        assert!(8 * layout.words() <= limit && layout.limit() >= keys);
                        let longer = StandardBuilder::with_bits(layout.quotient_bits(), layout.remainder_bits() + 1);
                        assert!(longer.layout().map_or(true, |longer| 8 * longer.words() > limit), "{keys} {limit}");
                        // With a rate, the memory limit only refuses.
                        let asked = StandardBuilder::with_capacity(keys).fpr(0.1);
                        assert_eq!(asked.memory_limit(limit).layout().unwrap(), asked.layout().unwrap());
                    }
                    Err(Error::OverMemoryLimit { needed, limit: told }) => assert!(needed > told && told == limit),
                    Err(other) => panic!("{other}"),
                }
            }
        }
        let layout = StandardBuilder::with_bits(10, 6).layout().unwrap();
        let bytes = 8 * layout.words();
        for builder in [StandardBuilder::with_bits(10, 6), StandardBuilder::with_layout(layout)] {
            assert_eq!(builder.memory_limit(bytes).layout().unwrap(), layout);
            assert!(matches!(builder.memory_limit(bytes - 1).layout(), Err(Error::OverMemoryLimit { .. })));
        }
        let exact = StandardBuilder::with_capacity(1000).exact(32);
        assert!(matches!(exact.memory_limit(100).layout(), Err(Error::OverMemoryLimit { .. })));
    }

    #[test]
    fn settings_are_checked() {
        assert_eq!(
            StandardBuilder::with_capacity(0).layout().unwrap(),
            StandardBuilder::with_capacity(1).layout().unwrap()
        );
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
        for keys in [1 << 48, 1 << 50, u64::MAX] {
            let error = StandardBuilder::with_capacity(keys).fpr(0.9999).layout().unwrap_err();
            let Error::TooManyKeys { most, .. } = error else { panic!("{keys}: {error}") };
            assert_eq!(StandardBuilder::with_capacity(most).fpr(0.5).layout().unwrap().limit(), most);
            assert!(StandardBuilder::with_capacity(most + 1).fpr(0.5).layout().is_err());
        }
        for (keys, fpr) in [(1 << 30, 1e-300), (1 << 30, 1e-12), (3, 1e-20)] {
            let error = StandardBuilder::with_capacity(keys).fpr(fpr).layout().unwrap_err();
            let Error::UnreachableFpr { least, .. } = error else { panic!("{keys} {fpr}: {error}") };
            assert!(error.to_string().contains(&format!("{fpr:e}")), "{error}");
            let layout = StandardBuilder::with_capacity(keys).fpr(least).layout().unwrap();
            assert_eq!(layout.fingerprint_bits(), 64);
        }
        let huge = StandardBuilder::with_bits(48, 16).build();
        assert!(matches!(huge, Err(Error::OutOfMemory(_))), "{huge:?}");
    }
    #[test]
    fn exact_filters_take_as_many_keys_as_pay() {
        let exact = |keys, bits| StandardBuilder::with_capacity(keys).exact(bits).layout();
        for bits in [0, 1, 65, u32::MAX] {
            assert!(matches!(exact(100, bits), Err(Error::InvalidKeyBits { key_bits }) if key_bits == bits));
        }
        for (keys, bits) in [(60_000, 16), (1 << 30, 20), (2, 2)] {
            let Err(Error::TooManyExactKeys { most, .. }) = exact(keys, bits) else { panic!("{keys} {bits}") };
            assert_eq!(exact(most, bits).unwrap().fingerprint_bits(), bits);
            assert!(exact(most + 1, bits).is_err());
        }
        assert_eq!(exact(1, 64).unwrap().fingerprint_bits(), 64);
        let bits = StandardBuilder::with_bits(10, 5);
        assert!(matches!(bits.exact(16).layout(), Err(Error::OtherKeyBits { key_bits: 16, bits: 15 })));
        let layout = bits.layout().unwrap();
        let other = StandardBuilder::with_layout(layout).exact(16).layout();
        assert!(matches!(other, Err(Error::OtherKeyBits { .. })));
        assert!(StandardBuilder::with_layout(layout).exact(15).layout().unwrap().is_exact());
    }

    /// Checks that there are twice as many slots as keys, and more where digits have few bits.
    #[test]
    fn counted_keys_have_room_for_digits() {
        let counted = |keys| RankSelectBuilder::with_capacity(keys).duplicates(Duplicates::Counted);
        let words = counted(100_000).exact(32).build().unwrap();
        assert!(words.memory_bytes() < 1_000_000 && words.layout().limit() >= 200_000);
        for keys in [1, 10, 1000, 1 << 20, 1 << 30] {
            for fpr in [0.5, 0.01, 1e-9] {
                let layout = counted(keys).fpr(fpr).layout().unwrap();
                let r = layout.remainder_bits() as f64;
                assert!(layout.limit() as f64 >= keys as f64 * (2.0 + 4.0 / r), "{keys} {fpr} {layout:?}");
                assert!(rates::expected(keys, layout.fingerprint_bits()) <= fpr);
            }
        }
        let most = |error| match error {
            Error::TooManyKeys { most, .. } | Error::TooManyExactKeys { most, .. } => most,
            other => panic!("{other}"),
        };
        let exact = most(counted(200).exact(8).layout().unwrap_err());
        assert!(counted(exact).exact(8).layout().is_ok() && counted(exact + 1).exact(8).layout().is_err());
        assert!(most(counted(1 << 48).layout().unwrap_err()) < 1 << 47);
    }

    /// Checks which layouts of one kind of slots the other kind accepts.
    #[test]
    fn layouts_are_of_the_kind_of_slots() {
        let bytes = StandardBuilder::with_bits(10, 6).container(Container::Bytes).layout().unwrap();
        let refused = RankSelectBuilder::with_layout(bytes).layout().unwrap_err();
        assert!(matches!(refused, Error::WrongContainer { container: Container::Bytes, .. }), "{refused}");
        assert!(matches!(RankSelectBuilder::with_layout(bytes).build(), Err(Error::WrongContainer { .. })));
        let packed = StandardBuilder::with_bits(10, 6).layout().unwrap();
        assert_eq!(RankSelectBuilder::with_layout(packed).layout().unwrap(), packed);

        let counted = RankSelectBuilder::with_bits(10, 6).duplicates(Duplicates::Counted).layout().unwrap();
        assert!(matches!(StandardBuilder::with_layout(counted).layout(), Err(Error::NoCounters { .. })));
        let kept = StandardBuilder::with_layout(counted).duplicates(Duplicates::Kept).container(Container::Bytes);
        assert!(kept.layout().is_ok());
    }

    #[test]
    fn only_so_often_doubled_or_halved() {
        let mut filter = StandardBuilder::with_bits(2, 2).build_from(&[7u64]).unwrap();
        filter.double().unwrap();
        let before = filter.clone();
        assert!(matches!(filter.double(), Err(Error::CannotDouble { limit: 7 })));
        assert!(filter == before);
        filter.halve().unwrap();
        filter.halve().unwrap();
        assert!(matches!(filter.halve(), Err(Error::CannotHalve { limit: 1 })));
        assert!(filter.contains(7u64));
    }
}

//! The filter in host memory.

use std::fmt;
use std::marker::PhantomData;

use warpset_base::words::AlignedWords;

use crate::{Builder, Error, Layout, RangeFilterView, RangeKey};

/// A range filter in host memory: answers whether any of its keys lies in a range, without storing keys.
///
/// "No" is certain. A wrong "yes" for a range of `l` keys has a probability of at most `l / 2^(B-2)` at `B` bits per
/// key, for every range and every set of keys that do not depend on the seed.
///
/// - **Space**: [`bits_per_key`](Builder::bits_per_key), and 0.2 bits more; less if keys are dense. If that is enough
///   to give each possible key between the least and the largest a code of its own, the filter is
///   [exact](RangeFilterView::is_exact) and takes `log2(span / keys) + 2` bits.
/// - **Cost**: a lookup reads two cache lines, and two places of small tables.
/// - **Limits**: nothing can be changed; 2^40 keys, 2^62 codes.
///
/// ```
/// use warpset_range::RangeFilter;
///
/// let times: Vec<i64> = vec![-86_400_000, 1_000, 2_000, 1_764_000_000_000];
/// let filter = RangeFilter::<i64>::builder().fpr_at(0.001, 1_000).build_from(&times)?;
/// assert!(filter.may_contain(1_500..=2_000) && filter.contains(1_000));
/// assert!(!filter.may_contain(2_000_000_000_000..)); // beyond the largest key
/// assert!(!filter.may_contain(7..7)); // no key is in an empty range
/// assert!(filter.count_at_most(0..5_000) >= 2);
/// # Ok::<(), warpset_range::Error>(())
/// ```
pub struct RangeFilter<K: ?Sized> {
    layout: Layout,
    words: AlignedWords<u64>,
    keys: PhantomData<fn() -> K>,
}

impl<K: RangeKey + ?Sized> RangeFilter<K> {
    /// Returns settings for a filter; [`Builder::build_from`] takes the keys.
    pub fn builder() -> Builder<K> {
        Builder::new()
    }

    /// Joins the words and the layout that they were made for.
    pub(crate) fn from_parts(layout: Layout, words: AlignedWords<u64>) -> Result<RangeFilter<K>, Error> {
        debug_assert_eq!(words.as_slice().len() as u64, layout.words());
        Ok(RangeFilter { layout, words, keys: PhantomData })
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the words, the memory image that every backend shares.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Returns a borrow that answers queries.
    #[inline]
    pub fn view(&self) -> RangeFilterView<'_, K> {
        RangeFilterView::new(self.layout, self.words())
    }
}

impl<K: ?Sized> Clone for RangeFilter<K> {
    fn clone(&self) -> Self {
        RangeFilter { layout: self.layout, words: self.words.clone(), keys: PhantomData }
    }
}

/// Equal parameters, equal bytes.
impl<K: RangeKey + ?Sized> PartialEq for RangeFilter<K> {
    fn eq(&self, other: &RangeFilter<K>) -> bool {
        self.layout == other.layout && self.words() == other.words()
    }
}
impl<K: RangeKey + ?Sized> Eq for RangeFilter<K> {}

impl<K: ?Sized> fmt::Debug for RangeFilter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeFilter").field("layout", &self.layout).finish_non_exhaustive()
    }
}

//! Queries of a filter, in memory of any owner.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use warpset_base::bitmap::{Bitmap, bits_to};
use warpset_base::filter::same_length;
use warpset_base::words::in_huge_pages;

use crate::{Error, KeyOf, Layout, RangeFilter, RangeKey};

/// A filter's parameters and a borrow of its words: answers queries, owns nothing.
///
/// ```
/// use warpset_range::{RangeFilter, RangeFilterView};
///
/// let saved = RangeFilter::<u32>::builder().build_from(&[3, 1_000])?.to_bytes();
/// let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved); // at a multiple of 8
/// let view = RangeFilterView::<u32>::from_bytes(bytemuck::cast_slice(&words))?;
/// assert!(view.may_contain(500..=1_000) && !view.may_contain(1_001..));
/// # Ok::<(), warpset_range::Error>(())
/// ```
pub struct RangeFilterView<'a, K: ?Sized> {
    pub(crate) layout: Layout,
    pub(crate) words: &'a [u64],
    keys: PhantomData<fn() -> K>,
}

impl<K: ?Sized> Clone for RangeFilterView<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: ?Sized> Copy for RangeFilterView<'_, K> {}

impl<'a, K: RangeKey + ?Sized> RangeFilterView<'a, K> {
    /// Joins the words and the layout that they were made for.
    #[inline]
    pub(crate) fn new(layout: Layout, words: &'a [u64]) -> RangeFilterView<'a, K> {
        RangeFilterView { layout, words, keys: PhantomData }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the words, the memory image that every backend shares.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }
}

/// Defines queries for the view, and for the types that lend one.
macro_rules! queries {
    ($view:ident, $filter:ident, $mapped:ident; $($(#[$doc:meta])* fn $name:ident $([$($generics:tt)*])? ($self:ident $(, $arg:ident: $ty:ty)*) -> $ret:ty $body:block)*) => {
        impl<K: RangeKey + ?Sized> $view<'_, K> {$(
            $(#[$doc])*
            #[inline]
            pub fn $name $(<$($generics)*>)? (&$self $(, $arg: $ty)*) -> $ret $body
        )*}

        /// Queries, those of the view.
        impl<K: RangeKey + ?Sized> $filter<K> {$(
            $(#[$doc])*
            #[inline]
            pub fn $name $(<$($generics)*>)? (&self $(, $arg: $ty)*) -> $ret {
                self.view().$name($($arg),*)
            }
        )*}

        /// Queries, those of the view.
        #[cfg(feature = "mmap")]
        impl<K: RangeKey + ?Sized> crate::$mapped<K> {$(
            $(#[$doc])*
            #[inline]
            pub fn $name $(<$($generics)*>)? (&self $(, $arg: $ty)*) -> $ret {
                self.view().$name($($arg),*)
            }
        )*}
    };
}
pub(crate) use queries;

/// Defines the queries for keys that lie in ranges, by a view's `any_of` and `answer`.
macro_rules! membership {
    ($view:ident, $filter:ident, $mapped:ident) => {
        $crate::view::queries! {
            $view, $filter, $mapped;
            /// Whether the key may be in the filter; see [`may_contain`](Self::may_contain).
            fn contains[Q: KeyOf<K>](self, key: Q) -> bool {
                let word = key.word();
                self.any_of(Some((word, word)))
            }

            /// Whether any key of the filter may lie in the range. Bounds are of any kind; for an empty or inverted
            /// range the answer is `false`.
            fn may_contain[Q: KeyOf<K>](self, range: impl RangeBounds<Q>) -> bool {
                self.any_of(crate::key::words_of(range.start_bound(), range.end_bound()))
            }

            /// Whether each key may be in the filter, on all threads of the current rayon pool.
            fn contains_bulk[Q: KeyOf<K>](self, keys: &[Q]) -> Vec<bool> {
                bools(&self.contains_bitmap_bulk(keys))
            }

            /// Writes the answers of [`contains_bulk`](Self::contains_bulk) to a slice of the same length.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`].
            fn contains_bulk_into[Q: KeyOf<K>](self, keys: &[Q], answers: &mut [bool]) -> Result<(), Error> {
                same_length(keys.len(), answers.len())?;
                bits_to(answers, self.contains_bitmap_bulk(keys).as_words());
                Ok(())
            }

            /// Does the work of [`contains_bulk`](Self::contains_bulk) and returns one bit per key.
            fn contains_bitmap_bulk[Q: KeyOf<K>](self, keys: &[Q]) -> Bitmap {
                self.answer(keys, |key| {
                    let word = key.word();
                    Some((word, word))
                })
            }

            /// Whether any key of the filter may lie in each range, on all threads of the current rayon pool.
            fn may_contain_bulk[Q: KeyOf<K>, R: RangeBounds<Q> + Sync](self, ranges: &[R]) -> Vec<bool> {
                bools(&self.may_contain_bitmap_bulk(ranges))
            }

            /// Writes the answers of [`may_contain_bulk`](Self::may_contain_bulk) to a slice of the same length.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`].
            fn may_contain_bulk_into[Q: KeyOf<K>, R: RangeBounds<Q> + Sync](
                self,
                ranges: &[R],
                answers: &mut [bool]
            ) -> Result<(), Error> {
                same_length(ranges.len(), answers.len())?;
                bits_to(answers, self.may_contain_bitmap_bulk(ranges).as_words());
                Ok(())
            }

            /// Does the work of [`may_contain_bulk`](Self::may_contain_bulk) and returns one bit per range.
            fn may_contain_bitmap_bulk[Q: KeyOf<K>, R: RangeBounds<Q> + Sync](self, ranges: &[R]) -> Bitmap {
                self.answer(ranges, |range| crate::key::words_of(range.start_bound(), range.end_bound()))
            }
        }
    };
}
pub(crate) use membership;

membership!(RangeFilterView, RangeFilter, MappedRangeFilter);

queries! {
    RangeFilterView, RangeFilter, MappedRangeFilter;
    /// Returns the number of different keys that the filter was built from.
    fn len(self) -> u64 {
        self.layout.keys()
    }

    /// Whether the filter was built from no keys.
    fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether no answer is wrong, because each possible key between the least and the largest has a code of its own.
    fn is_exact(self) -> bool {
        self.layout.is_exact()
    }

    /// Returns the size of the words in bytes.
    fn memory_bytes(self) -> u64 {
        8 * self.layout.words()
    }

    /// Returns the bits of memory per key.
    fn bits_per_key(self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.len().max(1) as f64
    }

    /// Returns the probability that a key gets a wrong "yes".
    fn fpr(self) -> f64 {
        self.fpr_of(1)
    }

    /// Returns a bound of the probability that a range of `length` keys gets a wrong "yes": the number of its keys
    /// times [`fpr`](Self::fpr), at most 1.
    fn fpr_of(self, length: u64) -> f64 {
        self.layout.fpr_of(length)
    }

    /// Returns an upper bound of the number of different keys in the range: each other key of the filter adds to it
    /// with the probability of a false positive. The bound is [`len`](Self::len) for a range of more keys than there
    /// are codes, and the number itself if the filter [is exact](Self::is_exact).
    fn count_at_most[Q: KeyOf<K>](self, range: impl RangeBounds<Q>) -> u64 {
        self.count_of(crate::key::words_of(range.start_bound(), range.end_bound()))
    }

    /// Returns the bound of [`count_at_most`](Self::count_at_most) for each range, on all threads of the current rayon
    /// pool.
    fn count_at_most_bulk[Q: KeyOf<K>, R: RangeBounds<Q> + Sync](self, ranges: &[R]) -> Vec<u64> {
        let mut counts = in_huge_pages(vec![0; ranges.len()]);
        self.counts(ranges, &mut counts);
        counts
    }

    /// Writes the bounds of [`count_at_most_bulk`](Self::count_at_most_bulk) to a slice of the same length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    fn count_at_most_bulk_into[Q: KeyOf<K>, R: RangeBounds<Q> + Sync](
        self,
        ranges: &[R],
        counts: &mut [u64]
    ) -> Result<(), Error> {
        same_length(ranges.len(), counts.len())?;
        self.counts(ranges, counts);
        Ok(())
    }
}

/// Returns the bits as booleans.
pub(crate) fn bools(answers: &Bitmap) -> Vec<bool> {
    let mut bools = vec![false; answers.len()];
    bits_to(&mut bools, answers.as_words());
    bools
}

impl<K: ?Sized> fmt::Debug for RangeFilterView<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeFilterView").field("layout", &self.layout).finish_non_exhaustive()
    }
}

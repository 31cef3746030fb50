//! A borrowed filter, and the methods that all forms of a filter share.

use super::lookup::{Lookup, Parameters};
use crate::borrowed::borrowed;

borrowed! {
    /// A filter that borrows its words: lent by [`StaticFilter::view`](crate::StaticFilter::view) and by
    /// [`MappedStaticFilter::view`](crate::MappedStaticFilter::view), or opened in bytes without copying them.
    StaticFilterView, Parameters, Lookup
}

/// The methods that all forms of a filter share. `lookup` gives their [`Lookup`].
macro_rules! filter_methods {
    ([$($generics:tt)*] $filter:ty) => {
        $crate::borrowed::size_methods!([$($generics)*] $filter);

        impl<$($generics)*> $filter {
            /// Bits of a fingerprint.
            pub fn width(&self) -> u32 {
                self.lookup().parameters.width
            }

            /// The probability that a key that is no member looks like one: 2^-width, and 0 for an empty filter.
            pub fn fpr(&self) -> f64 {
                if self.is_empty() { 0.0 } else { (-f64::from(self.width())).exp2() }
            }

            /// The function that numbers the members.
            pub fn function(&self) -> $crate::View<'_> {
                let function = self.lookup().function();
                $crate::View::of(function.words, function.parameters)
            }

            /// Whether `key` is a member, or looks like one.
            #[inline]
            pub fn contains(&self, key: impl $crate::Key) -> bool {
                self.lookup().get(&key).is_some()
            }

            /// The number of `key`, below `len`, unless it is certain that it is no member.
            #[inline]
            pub fn get(&self, key: impl $crate::Key) -> Option<u64> {
                self.lookup().get(&key)
            }

            /// Whether each key is a member, or looks like one, on all threads of the current rayon pool; a few thousand
            /// keys stay on the calling thread. Several times faster than one by one where there is AVX-512.
            pub fn contains_bulk<K: $crate::Key>(&self, keys: &[K]) -> Vec<bool> {
                let mut answers = vec![false; keys.len()];
                self.lookup().contains_bulk(keys, &mut answers);
                answers
            }

            /// `contains_bulk` into a slice of the same length.
            pub fn contains_bulk_into<K: $crate::Key>(
                &self,
                keys: &[K],
                answers: &mut [bool],
            ) -> Result<(), $crate::Error> {
                warpset_base::filter::same_length(keys.len(), answers.len())?;
                self.lookup().contains_bulk(keys, answers);
                Ok(())
            }

            /// `contains_bulk` as one bit per key.
            pub fn contains_bitmap_bulk<K: $crate::Key>(&self, keys: &[K]) -> $crate::Bitmap {
                self.lookup().contains_bitmap_bulk(keys)
            }

            /// How many of the keys are members, or look like one.
            pub fn count_contained_bulk<K: $crate::Key>(&self, keys: &[K]) -> usize {
                self.contains_bitmap_bulk(keys).count_ones()
            }
        }

        impl<$($generics)*> warpset_base::filter::Filter for $filter {
            type Error = $crate::Error;

            fn contains_bulk_into<K: $crate::Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), $crate::Error> {
                <$filter>::contains_bulk_into(self, keys, answers)
            }

            fn contains_bitmap_bulk<K: $crate::Key>(&self, keys: &[K]) -> Result<$crate::Bitmap, $crate::Error> {
                Ok(<$filter>::contains_bitmap_bulk(self, keys))
            }

            fn memory_bytes(&self) -> u64 {
                <$filter>::memory_bytes(self)
            }
        }

        impl<$($generics)*> std::fmt::Debug for $filter {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut f = f.debug_struct(stringify!($filter));
                f.field("len", &self.len()).field("width", &self.width()).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use filter_methods;

filter_methods!(['a] StaticFilterView<'a>);

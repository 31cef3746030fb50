//! A borrowed function, which answers all queries; owners lend it.

use crate::borrowed::borrowed;
use crate::query::{Lookup, Parameters};

borrowed! {
    /// A function that borrows its words: lent by [`RecSplit::view`](crate::RecSplit::view) and by
    /// [`MappedRecSplit::view`](crate::MappedRecSplit::view), or opened in bytes without copying them.
    ///
    /// ```
    /// use warpset_recsplit::{RecSplit, View};
    ///
    /// let function = RecSplit::builder().build_from(&["one", "two", "three"])?;
    /// let view = View::from_words(function.words())?;
    /// assert_eq!(view.get("two"), function.get("two"));
    /// # Ok::<(), warpset_recsplit::Error>(())
    /// ```
    View, Parameters, Lookup
}

/// The methods that all forms of a function share. `lookup` gives their [`Lookup`].
macro_rules! function_methods {
    ([$($generics:tt)*] $function:ty) => {
        $crate::borrowed::size_methods!([$($generics)*] $function);

        impl<$($generics)*> $function {
            /// All numbers are below this: `len` for a minimal function, more for one built with
            /// [`Builder::load_factor`](crate::Builder::load_factor), fewer with
            /// [`Builder::keys_per_value`](crate::Builder::keys_per_value).
            pub fn values(&self) -> u64 {
                self.lookup().parameters.values()
            }

            /// Bits of the splitting trees and of the lists of bucket positions.
            pub fn space(&self) -> $crate::Space {
                self.lookup().parameters.space()
            }

            /// The shape of the splitting trees.
            pub fn shape(&self) -> $crate::TreeShape {
                self.lookup().parameters.header.shape
            }

            /// Seed of the keys' hash.
            pub fn seed(&self) -> u64 {
                self.lookup().parameters.header.seed
            }

            /// The number of `key`, below `values`; 0 if there are no keys.
            #[inline]
            pub fn get(&self, key: impl $crate::Key) -> u64 {
                let lookup = self.lookup();
                lookup.get(key.hash128(lookup.parameters.header.seed))
            }

            /// The numbers of many keys, as `get` gives them, on all threads of the current rayon pool; a few thousand
            /// stay on the calling thread.
            ///
            /// The lookups of a batch wait for memory together and go down their trees together: on one thread two and a
            /// half to four times faster than one by one where the processor has AVX-512, or where the function is larger
            /// than its caches; 1.4 to 1.7 times with AVX2, a little without.
            pub fn get_bulk<K: $crate::Key>(&self, keys: &[K]) -> Vec<u64> {
                let mut numbers = vec![0; keys.len()];
                self.lookup().get_bulk(keys, &mut numbers);
                numbers
            }

            /// `get_bulk` into a slice of the same length.
            pub fn get_bulk_into<K: $crate::Key>(&self, keys: &[K], numbers: &mut [u64]) -> Result<(), $crate::Error> {
                warpset_base::filter::same_length(keys.len(), numbers.len())?;
                self.lookup().get_bulk(keys, numbers);
                Ok(())
            }
        }

        impl<$($generics)*> std::fmt::Debug for $function {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut f = f.debug_struct(stringify!($function));
                f.field("len", &self.len()).field("shape", &self.shape()).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use function_methods;

function_methods!(['a] View<'a>);

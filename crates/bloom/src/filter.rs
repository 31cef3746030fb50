//! What filters have in common on every backend.

use crate::key::as_hashed;
use crate::{Bitmap, BlockedLayout, Error, Key, Layout, RaoLayout, SplitBlockLayout, cpu::Bloom};

/// A Bloom filter on some backend: the bulk operations, which all return `Result` because a device can fail.
///
/// The types in [`cpu`](crate::cpu) have inherent methods of the same names, most of which cannot fail; use the trait
/// for code that is generic over backends.
///
/// ```
/// use warpset_bloom::{Error, Filter, SplitBlockBloom};
///
/// fn new_keys(filter: &mut impl Filter, keys: &[u64]) -> Result<usize, Error> {
///     Ok(filter.test_and_insert_bulk(keys)?.into_iter().filter(|new| *new).count())
/// }
/// let mut filter = SplitBlockBloom::builder(100).build()?;
/// assert_eq!(new_keys(&mut filter, &[1, 2, 1])?, 2);
/// # Ok::<(), Error>(())
/// ```
pub trait Filter: Sized {
    /// The parameters' type.
    type Layout: Layout;

    /// The parameters.
    fn layout(&self) -> &Self::Layout;

    /// Inserts all keys.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error>;
    /// Inserts all keys and says which were new; the rule is that of
    /// [`Bloom::test_and_insert_bulk`](crate::cpu::Bloom::test_and_insert_bulk), the same on every backend.
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error>;
    /// One answer a key, one bit each.
    fn contains_bitmap<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Error>;
    /// Adds all keys of a filter with the same parameters.
    fn union(&mut self, other: &Self) -> Result<(), Error>;
    /// Keeps the bits that are set in `other` too.
    fn intersect(&mut self, other: &Self) -> Result<(), Error>;
    /// Removes all keys.
    fn clear(&mut self) -> Result<(), Error>;
    /// Divides the number of blocks by `factor`.
    fn fold(&mut self, factor: u64) -> Result<(), Error>;
    /// How many bits are set.
    fn count_ones(&self) -> Result<u64, Error>;
    /// The rate of false positives of the filter as it is now.
    fn estimated_fpr(&self) -> Result<f64, Error>;
    /// The fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
    fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error>;
    /// Halves the filter as often as its rate stays at or below `fpr`; says how often.
    fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error>;
    /// The same filter in host memory.
    fn to_cpu(&self) -> Result<Bloom<Self::Layout>, Error>;

    /// One answer a key, in the order of the keys.
    fn contains_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        Ok(self.contains_bitmap(keys)?.iter().collect())
    }
    /// How many of the keys may be in the filter.
    fn count_contained<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        Ok(self.contains_bitmap(keys)?.count_ones())
    }
    /// Whether at least one of the keys may be in the filter.
    fn any_contained<K: Key>(&self, keys: &[K]) -> Result<bool, Error> {
        Ok(self.count_contained(keys)? > 0)
    }
    /// Drops the keys that are surely not in the filter; the others keep their order.
    fn retain_contained<K: Key>(&self, keys: &mut Vec<K>) -> Result<(), Error> {
        let answers = self.contains_bitmap(keys)?;
        let mut answers = answers.iter();
        keys.retain(|_| answers.next() == Some(true));
        Ok(())
    }
    /// [`Filter::insert_bulk`] for hashes.
    fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Error> {
        self.insert_bulk(as_hashed(hashes))
    }
    /// [`Filter::contains_bulk`] for hashes.
    fn contains_hashes(&self, hashes: &[u64]) -> Result<Vec<bool>, Error> {
        self.contains_bulk(as_hashed(hashes))
    }
    /// [`Filter::test_and_insert_bulk`] for hashes.
    fn test_and_insert_hashes(&mut self, hashes: &[u64]) -> Result<Vec<bool>, Error> {
        self.test_and_insert_bulk(as_hashed(hashes))
    }
    /// The fraction of bits that are set.
    fn fill_ratio(&self) -> Result<f64, Error> {
        Ok(self.count_ones()? as f64 / self.layout().bits() as f64)
    }
    /// How many different keys the filter holds, estimated from the number of set bits.
    fn estimated_cardinality(&self) -> Result<f64, Error> {
        use crate::layout::engine::Engine;
        Ok(self.layout().cardinality(self.count_ones()?))
    }
    /// The rate of false positives in theory, were `keys` different keys in the filter.
    fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout().expected_fpr(keys)
    }
}

macro_rules! filter_on_cpu {
    ($layout:ty, |$insert:ident| $inserted:expr) => {
        impl Filter for Bloom<$layout> {
            type Layout = $layout;

            fn layout(&self) -> &Self::Layout {
                self.layout()
            }
            fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
                let $insert = self.insert_bulk(keys);
                $inserted
            }
            fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
                let $insert = self.test_and_insert_bulk(keys);
                $inserted
            }
            fn contains_bitmap<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Error> {
                Ok(self.contains_bitmap(keys))
            }
            fn union(&mut self, other: &Self) -> Result<(), Error> {
                self.union(other)
            }
            fn intersect(&mut self, other: &Self) -> Result<(), Error> {
                self.intersect(other)
            }
            fn clear(&mut self) -> Result<(), Error> {
                self.clear();
                Ok(())
            }
            fn fold(&mut self, factor: u64) -> Result<(), Error> {
                self.fold(factor)
            }
            fn count_ones(&self) -> Result<u64, Error> {
                Ok(self.count_ones())
            }
            fn estimated_fpr(&self) -> Result<f64, Error> {
                Ok(self.estimated_fpr())
            }
            fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> {
                Ok(self.measured_fpr(samples, seed))
            }
            fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error> {
                self.shrink_to_fpr(fpr)
            }
            fn to_cpu(&self) -> Result<Bloom<Self::Layout>, Error> {
                Ok(self.clone())
            }
            fn any_contained<K: Key>(&self, keys: &[K]) -> Result<bool, Error> {
                Ok(self.any_contained(keys))
            }
        }
    };
}

filter_on_cpu!(SplitBlockLayout, |done| Ok(done));
filter_on_cpu!(BlockedLayout, |done| Ok(done));
filter_on_cpu!(RaoLayout, |done| done);

//! Trait of Bloom filters on every backend, for generic code.

use crate::cpu::Bloom;
use crate::{Error, Layout, TestAndInsert};

/// A Bloom filter on some backend: its operations beside [`Filter`](crate::Filter), [`Insert`](crate::Insert) and
/// [`TestAndInsert`].
///
/// All methods return `Result`, because a device can fail. The types have inherent methods of the same names; most of
/// them cannot fail on the host.
///
/// ```
/// use warpset_bloom::{BloomFilter, Error, SplitBlockBloom};
///
/// fn new_keys(filter: &mut impl BloomFilter, keys: &[u64]) -> Result<usize, Error> {
///     Ok(filter.test_and_insert_bulk(keys)?.into_iter().filter(|new| *new).count())
/// }
/// let mut filter = SplitBlockBloom::builder(100).build()?;
/// assert_eq!(new_keys(&mut filter, &[1, 2, 1])?, 2);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no Bloom filter",
    note = "use `SplitBlockBloom`, `BlockedBloom` or `RaoBloom`"
)]
pub trait BloomFilter: TestAndInsert<Error = Error> + Sized {
    /// The parameters' type.
    type Layout: Layout;

    /// Returns the parameters.
    fn layout(&self) -> &Self::Layout;
    /// Keeps the bits that are set in `other` too.
    ///
    /// # Errors
    /// [`Error::Incompatible`], [`Error::NoIntersection`], and the errors of the backend.
    fn intersect(&mut self, other: &Self) -> Result<(), Error>;
    /// Divides the number of blocks by `factor`.
    ///
    /// # Errors
    /// [`Error::CannotFold`], [`Error::OutOfMemory`], and the errors of the backend.
    fn fold(&mut self, factor: u64) -> Result<(), Error>;
    /// Halves the filter while its rate stays at or below `fpr`; returns the number of halvings.
    ///
    /// # Errors
    /// [`Error::InvalidFpr`], [`Error::OutOfMemory`], and the errors of the backend.
    fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error>;
    /// Counts the set bits.
    ///
    /// # Errors
    /// The errors of the backend.
    fn count_ones(&self) -> Result<u64, Error>;
    /// Returns the current rate of false positives.
    ///
    /// # Errors
    /// The errors of the backend.
    fn fpr(&self) -> Result<f64, Error>;
    /// Returns the fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
    ///
    /// # Errors
    /// The errors of the backend.
    fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error>;
    /// Copies the filter to host memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and the errors of the backend.
    fn to_host(&self) -> Result<Bloom<Self::Layout>, Error>;

    /// Returns the fraction of bits that are set.
    ///
    /// # Errors
    /// The errors of the backend.
    fn fill_ratio(&self) -> Result<f64, Error> {
        Ok(self.count_ones()? as f64 / self.layout().settable_bits() as f64)
    }
    /// Estimates the number of different keys in the filter from the number of set bits.
    ///
    /// # Errors
    /// The errors of the backend.
    fn estimated_len(&self) -> Result<f64, Error> {
        use crate::layout::engine::Engine;
        Ok(self.layout().cardinality(self.count_ones()?))
    }
    /// Returns the rate of false positives in theory with `keys` different keys.
    fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout().expected_fpr(keys)
    }
    /// Returns the fraction of bits that theory expects to be set with `keys` different keys in the filter.
    fn predicted_fill(&self, keys: u64) -> f64 {
        self.layout().predicted_fill(keys)
    }
}

impl<L: Layout> BloomFilter for Bloom<L>
where
    Bloom<L>: TestAndInsert<Error = Error>,
{
    type Layout = L;

    warpset_base::by_inherent! {
        fn layout(&self) -> &L;
        fn intersect(&mut self, other: &Self) -> Result<(), Error>;
        fn fold(&mut self, factor: u64) -> Result<(), Error>;
        fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error>;
        fn count_ones(&self) -> Result<u64, Error> as Ok;
        fn fpr(&self) -> Result<f64, Error> as Ok;
        fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> as Ok;
    }
    fn to_host(&self) -> Result<Bloom<L>, Error> {
        Ok(self.clone())
    }
}

//! A static filter: fingerprints next to a minimal perfect hash function.
//!
//! Source: introduction of the thesis. A key is taken for a member if the fingerprint at its number is its own, which a
//! key that is no member passes with probability 2^-w, for fingerprints of `w` bits.

mod build;
mod format;
mod lookup;
mod view;

pub(crate) use format::fingerprint_words;
pub(crate) use lookup::{Lookup, Parameters};
pub use view::StaticFilterView;
pub(crate) use view::filter_methods;

use crate::borrowed::of_words;
use crate::storage::saving;
use crate::{Builder, Error};

/// A set that cannot change, of which `contains` is sometimes wrong: it never denies a member, and takes a key that is no
/// member for one with probability 2^-w.
///
/// ```
/// use warpset_recsplit::StaticFilter;
///
/// let filter = StaticFilter::builder(16).leaf_size(8).build_from(&["one", "two", "three"])?;
/// assert!(filter.contains("one") && filter.contains("three"));
/// assert!(filter.get("two").is_some_and(|number| number < 3));
/// # Ok::<(), warpset_recsplit::Error>(())
/// ```
///
/// Space: `w` bits per key and those of the function, 1.5 to 3. Queries: one of the function, and one more cache miss for
/// large filters.
#[derive(Clone)]
pub struct StaticFilter {
    words: Vec<u64>,
    parameters: Parameters,
}

impl StaticFilter {
    /// Settings for building a filter with fingerprints of `width` bits, 1 to 32: for the function, the default ones.
    pub fn builder(width: u32) -> Builder<Self> {
        Builder::new(width)
    }

    /// Takes over words that [`StaticFilter::words`] gave, checked as in [`View::from_words`](crate::View::from_words).
    pub fn from_words(words: Vec<u64>) -> Result<Self, Error> {
        let parameters = of_words(Parameters::of(&words), words.len())?;
        Ok(Self { words, parameters })
    }

    /// As `from_words`, for words that are known to be right.
    pub(crate) fn trusted(words: Vec<u64>, parameters: Parameters) -> Self {
        Self { words, parameters }
    }

    /// The filter, borrowed.
    pub fn view(&self) -> StaticFilterView<'_> {
        StaticFilterView::of(&self.words, &self.parameters)
    }

    /// The words, in the saved form.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline(always)]
    fn lookup(&self) -> Lookup<'_> {
        Lookup { words: &self.words, parameters: &self.parameters }
    }
}

filter_methods!([] StaticFilter);
saving!(StaticFilter, format::STRUCTURE, "static filter");

/// Whether both are the same filter, bit for bit.
impl PartialEq for StaticFilter {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

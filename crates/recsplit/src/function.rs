//! The finished function: one array of words.
//!
//! Source: sections 4.2, 4.5.2. The words are the saved form (`docs/formats.md`), so that a function can be opened from a
//! memory-mapped file without copying.

use crate::borrowed::of_words;
use crate::format::Header;
use crate::query::{Lookup, Parameters};
use crate::storage::saving;
use crate::view::function_methods;
use crate::{Builder, Error, View, format};

/// A minimal perfect hash function: maps the `n` keys that it was built from to `0..n`, each to its own number.
///
/// Other keys map to any number below `n`: the function does not know its keys. See [`crate::StaticFilter`] for that.
///
/// ```
/// use warpset_recsplit::RecSplit;
///
/// let keys = ["Alpha", "Beta", "Gamma", "Delta"];
/// let function = RecSplit::builder().build_from(&keys)?;
/// let mut seen = [false; 4];
/// for key in keys {
///     seen[function.get(key) as usize] = true;
/// }
/// assert_eq!(seen, [true; 4]);
/// # Ok::<(), warpset_recsplit::Error>(())
/// ```
///
/// Space: 1.50 to 3 bits per key, see [`Builder`]. Queries: two cache misses for large functions, then a walk down the
/// splitting tree of one bucket.
#[derive(Clone)]
pub struct RecSplit {
    words: Vec<u64>,
    parameters: Parameters,
}

impl RecSplit {
    /// Settings for building a function, the default ones.
    pub fn builder() -> Builder {
        Builder::new(0)
    }

    /// Takes over words that [`RecSplit::words`] gave, checked as in [`View::from_words`].
    pub fn from_words(words: Vec<u64>) -> Result<Self, Error> {
        let parameters = of_words(Parameters::of(&words), words.len())?;
        Ok(Self { words, parameters })
    }

    /// As `from_words`, for words whose header is known to be right.
    pub(crate) fn trusted(words: Vec<u64>, header: Header) -> Self {
        Self { words, parameters: Parameters::trusted(header) }
    }

    pub(crate) fn into_parts(self) -> (Vec<u64>, Parameters) {
        (self.words, self.parameters)
    }

    /// The function, borrowed.
    pub fn view(&self) -> View<'_> {
        View::of(&self.words, &self.parameters)
    }

    /// The words, in the saved form.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline(always)]
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup { words: &self.words, parameters: &self.parameters }
    }
}

function_methods!([] RecSplit);
saving!(RecSplit, format::STRUCTURE, "RecSplit function");

/// Whether both are the same function, bit for bit.
impl PartialEq for RecSplit {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

/// Where the space of a function goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bits of splittings and bijections.
    pub trees: u64,
    /// Bits of the positions of buckets (double Elias-Fano).
    pub buckets: u64,
}

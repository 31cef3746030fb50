//! What functions and filters have in common: borrowed forms, and how large they are.

use crate::Error;
use warpset_base::file::FileError;

/// What parsing says of `found` words that a user passed as a whole structure: no file has to do with it.
pub(crate) fn of_words<T>(parsed: Result<T, FileError>, found: usize) -> Result<T, Error> {
    let found = found as u64;
    parsed.map_err(|error| match error {
        FileError::Truncated { needed, .. } => Error::WordCount { needed: needed / 8, found },
        FileError::TrailingBytes { extra } => Error::WordCount { needed: found - extra / 8, found },
        other => other.into(),
    })
}

/// A borrowed form: its documentation and name, its parameters, and what its lookups take.
macro_rules! borrowed {
    ($(#[$doc:meta])* $view:ident, $parameters:ty, $lookup:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $view<'a> {
            words: &'a [u64],
            parameters: std::borrow::Cow<'a, $parameters>,
        }

        impl<'a> $view<'a> {
            /// Opens words that `words` of any form gave, without copying them. They are checked: damaged or foreign words are
            /// an error, and even words that were made to pass the checks can only give wrong numbers, below those that are
            /// possible.
            pub fn from_words(words: &'a [u64]) -> Result<Self, $crate::Error> {
                $crate::borrowed::of_words(Self::open(words), words.len())
            }

            /// Opens the bytes of the saved form without copying them; they are checked as in `from_words`. They must lie at
            /// an address that is a multiple of 8.
            pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, $crate::Error> {
                Ok(Self::open($crate::storage::as_words(bytes)?)?)
            }

            fn open(words: &'a [u64]) -> Result<Self, warpset_base::file::FileError> {
                Ok(Self { words, parameters: std::borrow::Cow::Owned(<$parameters>::of(words)?) })
            }

            pub(crate) fn of(words: &'a [u64], parameters: &'a $parameters) -> Self {
                Self { words, parameters: std::borrow::Cow::Borrowed(parameters) }
            }

            #[inline(always)]
            pub(crate) fn lookup(&self) -> $lookup<'_> {
                $lookup { words: self.words, parameters: &self.parameters }
            }

            /// The words, in the saved form.
            pub fn words(&self) -> &'a [u64] {
                self.words
            }
        }

        /// Whether both are the same, bit for bit.
        impl PartialEq for $view<'_> {
            fn eq(&self, other: &Self) -> bool {
                self.words == other.words
            }
        }
    };
}
pub(crate) use borrowed;

/// The sizes of any form that has `lookup`.
macro_rules! size_methods {
    ([$($generics:tt)*] $form:ty) => {
        impl<$($generics)*> $form {
            /// Number of keys.
            pub fn len(&self) -> u64 {
                self.lookup().parameters.keys()
            }

            /// Whether there are no keys.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Bytes of the words: all but the table that functions of one shape share in memory.
            pub fn memory_bytes(&self) -> u64 {
                size_of_val(self.lookup().words) as u64
            }

            /// Bits of the words for each key.
            pub fn bits_per_key(&self) -> f64 {
                self.memory_bytes() as f64 * 8.0 / self.len().max(1) as f64
            }
        }
    };
}
pub(crate) use size_methods;

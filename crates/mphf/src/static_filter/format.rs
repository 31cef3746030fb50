//! Saved form: the header of every structure, the whole words of the function, and the fingerprints, one after the
//! other.

use super::lookup::Parameters;
use crate::HashKind;
use crate::format::{self, COMMON_WORDS};
use crate::function;
use std::ops::RangeInclusive;
use warpset_base::file::{FileError, FileKind};

/// Number in headers, with the version of the format.
pub(crate) const STRUCTURE: FileKind = FileKind::STATIC_FILTER;
/// Valid widths of a fingerprint.
pub(super) const WIDTHS: RangeInclusive<u32> = 1..=32;

/// Returns the words of the fingerprints, plus one, so that reading two words is always valid.
pub(crate) fn fingerprint_words(keys: u64, width: u32) -> u128 {
    (u128::from(keys) * u128::from(width)).div_ceil(64) + 1
}

/// Writes header and checksum around the words of the function and the fingerprints.
pub(super) fn seal<M: HashKind>(words: &mut [u64], parameters: &Parameters<M>) {
    words[..COMMON_WORDS].copy_from_slice(&parameters.header_words());
    words[COMMON_WORDS - 1] = format::checksum(words);
}

impl<M: HashKind> Parameters<M> {
    /// Returns the first words, without the checksum.
    pub(crate) fn header_words(&self) -> [u64; COMMON_WORDS] {
        // The filter is in memory, so its fingerprints fit a `u64`.
        let payload = self.function_words as u64 + fingerprint_words(self.keys(), self.width) as u64;
        let fields = [self.width.into(), self.function_words as u64, 0, 0, 0, 0, 0, 0];
        format::common(STRUCTURE, payload, fields)
    }

    /// Parses the parameters of a filter that fills these words. Checks everything but the checksum.
    pub(super) fn of(words: &[u64]) -> Result<Self, FileError> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
        let [width, function_words, unused @ ..] = format::parse_whole(words, STRUCTURE)?.fields;
        let Some(width) = u32::try_from(width).ok().filter(|width| WIDTHS.contains(width)) else {
            return invalid("bits of a fingerprint", width);
        };
        if let Some(&value) = unused.iter().find(|&&value| value != 0) {
            return invalid("unused parameters", value);
        }
        let payload = &words[COMMON_WORDS..];
        if function_words > payload.len() as u64 {
            return invalid("words of the function", function_words);
        }
        let (function, fingerprints) = payload.split_at(function_words as usize);
        let function = function::Parameters::trusted(format::parse(function)?, function);
        let expected = fingerprint_words(function.header.keys, width);
        if !M::is_minimal(&function.header.code) || expected != fingerprints.len() as u128 {
            return invalid("words of the function", function_words);
        }
        Ok(Self { function, function_words: function_words as usize, width })
    }
}

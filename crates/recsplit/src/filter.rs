//! A static filter: fingerprints beside a minimal perfect hash function.
//!
//! Source: introduction of the thesis. A key is taken for a member if the fingerprint at its number is its own, which a
//! key that is no member passes with probability 2^-w, for fingerprints of `w` bits.

use crate::bits::shared;
use crate::format::{self, COMMON_WORDS};
use crate::key::{Hash128, Key};
use crate::store::{read_words, write_words};
use crate::{Builder, Error, RecSplit};
use rayon::prelude::*;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use warpset_base::file::{self, FileError};
use warpset_core::bits::field;

/// The number of this structure.
const STRUCTURE: u16 = 17;
/// Keys whose numbers are looked up together.
const CHUNK: usize = 256;

/// A set that cannot change, of which `contains` is sometimes wrong: it never denies a member, and takes a key that is no
/// member for one with probability 2^-w.
///
/// ```
/// use warpset_recsplit::{Builder, StaticFilter};
///
/// let filter = StaticFilter::build(&Builder::new().leaf_size(8), &["one", "two", "three"], 16)?;
/// assert!(filter.contains("one") && filter.contains("three"));
/// assert_eq!(filter.get("two"), filter.get("two"));
/// # Ok::<(), warpset_recsplit::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StaticFilter {
    function: RecSplit,
    fingerprints: Vec<u64>,
    width: u32,
}

/// The fingerprint of a key: unrelated to all trial hashes, since it also uses the half that picks the bucket.
#[inline]
fn fingerprint(hash: Hash128, width: u32) -> u64 {
    let mixed = (hash.low ^ hash.high.rotate_left(32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed >> (64 - width)
}

impl StaticFilter {
    /// Builds the filter of `keys` with fingerprints of `width` bits, 1 to 32.
    pub fn build<K: Key + Sync>(builder: &Builder, keys: &[K], width: u32) -> Result<Self, Error> {
        if !(1..=32).contains(&width) {
            let value = f64::from(width);
            return Err(Error::InvalidParameter { what: "fingerprint width", value, allowed: "1 to 32" });
        }
        let function = builder.build(keys)?;
        if !function.shape().is_minimal() {
            let value = function.values() as f64;
            let what = "number of values of the function";
            return Err(Error::InvalidParameter { what, value, allowed: "the number of keys, as a filter needs" });
        }
        let words = (keys.len() as u64 * u64::from(width)).div_ceil(64) as usize + 1;
        let fingerprints = builder.run(|| {
            let mut all = rayon::iter::repeat_n(0, words).collect::<Vec<u64>>();
            let fingerprints = shared(&mut all);
            keys.par_chunks(CHUNK).for_each(|keys| {
                let hashes: Vec<Hash128> = keys.iter().map(|key| key.hash128(function.seed())).collect();
                let mut numbers = vec![0; hashes.len()];
                function.get_many_hashes(&hashes, &mut numbers);
                for (hash, number) in hashes.into_iter().zip(numbers) {
                    let at = number * u64::from(width);
                    let (word, shift) = ((at / 64) as usize, at % 64);
                    let bits = u128::from(fingerprint(hash, width)) << shift;
                    fingerprints[word].fetch_or(bits as u64, Ordering::Relaxed);
                    fingerprints[word + 1].fetch_or((bits >> 64) as u64, Ordering::Relaxed);
                }
            });
            all
        })?;
        Ok(Self { function, fingerprints, width })
    }

    /// Answers [`StaticFilter::contains`] for many keys, several times faster than one by one where there is AVX-512.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn contains_many<K: Key>(&self, keys: &[K], answers: &mut [bool]) {
        assert_eq!(keys.len(), answers.len(), "one answer for each key");
        if self.function.is_empty() {
            answers.fill(false);
            return;
        }
        let mut numbers = [0; CHUNK];
        for (keys, answers) in keys.chunks(CHUNK).zip(answers.chunks_mut(CHUNK)) {
            let hashes: Vec<Hash128> = keys.iter().map(|key| key.hash128(self.function.seed())).collect();
            let numbers = &mut numbers[..keys.len()];
            self.function.get_many_hashes(&hashes, numbers);
            for ((answer, hash), number) in answers.iter_mut().zip(hashes).zip(numbers) {
                *answer = self.has(hash, *number);
            }
        }
    }

    /// Whether the fingerprint of the member with this number is that of the hash.
    #[inline]
    fn has(&self, hash: Hash128, number: u64) -> bool {
        field(&self.fingerprints, number * u64::from(self.width), self.width) == fingerprint(hash, self.width)
    }

    /// Whether `key` is a member, or looks like one.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The number of `key`, unless it is certain that it is no member.
    #[inline]
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        if self.function.is_empty() {
            return None;
        }
        let hash = key.hash128(self.function.seed());
        let number = self.function.get_hash(hash);
        self.has(hash, number).then_some(number)
    }

    /// The function that numbers the members.
    pub fn function(&self) -> &RecSplit {
        &self.function
    }

    /// Bits of a fingerprint.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Bits for each member, function and fingerprints together.
    pub fn bits_per_key(&self) -> f64 {
        (self.function.bits() + self.fingerprints.len() as u64 * 64) as f64 / self.function.len().max(1) as f64
    }
}

/// Saving and loading.
impl StaticFilter {
    /// The saved form, as words.
    fn to_words(&self) -> Vec<u64> {
        let function = self.function.as_words();
        let payload = function.len() + self.fingerprints.len();
        let fields = [self.width.into(), function.len() as u64, 0, 0, 0, 0, 0, 0];
        let mut words = Vec::with_capacity(COMMON_WORDS + payload);
        words.extend(format::common(STRUCTURE, payload as u64, fields));
        words.extend_from_slice(function);
        words.extend_from_slice(&self.fingerprints);
        words[COMMON_WORDS - 1] = format::checksum(&words);
        words
    }

    /// The filter in these words, and nothing behind it.
    fn from_words(words: &[u64]) -> Result<Self, Error> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
        let [width, function_words, unused @ ..] = format::parse_whole(words, STRUCTURE)?.fields;
        format::verify(words)?;
        if !(1..=32).contains(&width) {
            return invalid("bits of a fingerprint", width);
        }
        if let Some(&value) = unused.iter().find(|&&value| value != 0) {
            return invalid("unused parameters", value);
        }
        let payload = &words[COMMON_WORDS..];
        if function_words > payload.len() as u64 {
            return invalid("words of the function", function_words);
        }
        let (function, fingerprints) = payload.split_at(function_words as usize);
        let function = RecSplit::from_words(function.to_vec())?;
        let expected = u128::from(function.len()) * u128::from(width);
        if !function.shape().is_minimal() || expected.div_ceil(64) + 1 != fingerprints.len() as u128 {
            return invalid("words of the function", function_words);
        }
        Ok(Self { function, fingerprints: fingerprints.to_vec(), width: width as u32 })
    }

    /// Writes the filter in the form that `docs/formats.md` describes.
    pub fn write_to(&self, to: impl Write) -> Result<(), Error> {
        write_words(&self.to_words(), to)
    }

    /// The saved form in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytemuck::cast_slice(&self.to_words()).to_vec()
    }

    /// Reads what [`StaticFilter::write_to`] wrote, and not a byte more. Memory grows with what arrives, whatever the header
    /// claims.
    pub fn read_from(from: impl Read) -> Result<Self, Error> {
        Self::from_words(&read_words(from, STRUCTURE)?)
    }

    /// Writes a file: under another name first, then renamed, so that a reader never sees half of it.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        file::replace(path.as_ref(), |file| self.write_to(file))
    }

    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        file::whole(path.as_ref(), |file, _| Self::read_from(file))
    }
}

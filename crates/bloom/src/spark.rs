//! Apache Spark's Bloom filter, in the bytes that `bloom_filter_agg` returns and `might_contain` takes: queried and
//! filled in place.
//!
//! A classic filter: `k` bits per key anywhere in it, from two hashes by MurmurHash3 of 32 bits. All numbers are
//! big-endian.
//!
//! ```text
//! version 1                        version 2 (Spark 4.1 and later)
//! 0   4  1                         0   4  2
//! 4   4  k                         4   4  k
//!                                  8   4  seed
//! 8   4  number of words           12  4  number of words
//! 12     words of 64 bits          16     words of 64 bits
//! ```
//!
//! Source: the classes `BloomFilterImpl` and `BloomFilterImplV2` of Spark's `common/sketch`, by their description; the
//! tests have bytes that Spark 4.3.0 wrote. Version 1 combines the hashes in 32 bits, so that beyond some 2^31 bits it
//! does not get better.

use std::num::NonZeroU64;

use warpset_base::filter::same_length;
use warpset_base::parallel;

use crate::{Error, rates};

mod murmur3;

/// Nanoseconds to look a key up.
const KEY_NS: f64 = 20.0;
/// Most bits per key of a filter; a file that says more is damaged.
const MOST_HASHES: u32 = 255;
/// Most words of Java's arrays, and so of Spark's filters.
const MOST_WORDS: u64 = i32::MAX as u64;
/// The default rate of Spark's filters.
const DEFAULT_FPR: f64 = 0.03;

/// Version of Spark's filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SparkVersion {
    /// Spark 2.0 to 4.0.
    V1,
    /// Spark 4.1 and later, which read version 1 too.
    V2 {
        /// The seed of the hashes; 0 unless the filter was made with another.
        seed: i32,
    },
}

impl SparkVersion {
    /// Hashes a key for filters of this version.
    #[inline]
    pub fn hash(self, key: impl SparkKey) -> SparkHash {
        let seed = match self {
            SparkVersion::V1 => 0,
            SparkVersion::V2 { seed } => seed as u32,
        };
        let first = key.hash(seed);
        SparkHash(u64::from(first) << 32 | u64::from(key.hash(first)))
    }

    /// Returns the number of bytes before the words.
    fn header_bytes(self) -> usize {
        match self {
            SparkVersion::V1 => 12,
            SparkVersion::V2 { .. } => 16,
        }
    }
}

/// Two 32-bit hashes of a key for Spark's filters, the first one in the upper half.
///
/// ```
/// use warpset_bloom::{SparkBloom, SparkVersion};
///
/// let mut filter = SparkBloom::builder(100).build()?;
/// filter.insert_hash(SparkVersion::V2 { seed: 0 }.hash("warpset"));
/// assert!(filter.contains("warpset"));
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SparkHash(pub u64);

/// A key as Spark hashes it: integers of up to 64 bits as a `long`, strings and binaries by their bytes.
///
/// Spark's own joins put `xxhash64(column)` with seed 42 into their filters, which is a `long`, not the column's value.
pub trait SparkKey: Sync + sealed::Hash {}

mod sealed {
    pub trait Hash {
        fn hash(&self, seed: u32) -> u32;
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl SparkKey for $integer {}
        impl sealed::Hash for $integer {
            fn hash(&self, seed: u32) -> u32 {
                murmur3::long(i64::from(*self), seed)
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 u8 u16 u32);

macro_rules! strings {
    ($($string:ty)*) => {$(
        impl SparkKey for $string {}
        impl sealed::Hash for $string {
            fn hash(&self, seed: u32) -> u32 {
                let bytes: &[u8] = self.as_ref();
                murmur3::bytes(bytes, seed)
            }
        }
    )*};
}
strings!(str String [u8] Vec<u8>);

impl<K: SparkKey + ?Sized> SparkKey for &K {}
impl<K: SparkKey + ?Sized> sealed::Hash for &K {
    fn hash(&self, seed: u32) -> u32 {
        (**self).hash(seed)
    }
}

/// The parameters of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parameters {
    version: SparkVersion,
    hashes: u32,
    bits: NonZeroU64,
}

impl Parameters {
    /// Reads the header, and finds the words.
    fn of(bytes: &[u8]) -> Result<(Parameters, &[[u8; 8]]), Error> {
        let wrong = |what| Error::Spark { what };
        let field = |i: usize| {
            let field = bytes.as_chunks::<4>().0.get(i).ok_or(wrong("it ends within its header"))?;
            Ok::<u32, Error>(u32::from_be_bytes(*field))
        };
        let version = match field(0)? {
            1 => SparkVersion::V1,
            2 => SparkVersion::V2 { seed: field(2)? as i32 },
            _ => return Err(wrong("its version is neither 1 nor 2")),
        };
        let hashes = field(1)?;
        if !(1..=MOST_HASHES).contains(&hashes) {
            return Err(wrong("it has no bits per key, or more than 255"));
        }
        let words = u64::from(field(version.header_bytes() / 4 - 1)?);
        let bits = NonZeroU64::new(64 * words).filter(|_| words <= MOST_WORDS);
        let bits = bits.ok_or(wrong("it has no words, or more than Java's arrays hold"))?;
        match bytes[version.header_bytes()..].as_chunks::<8>() {
            (found, []) if found.len() as u64 == words => Ok((Parameters { version, hashes, bits }, found)),
            _ => Err(wrong("it has more or fewer words than its header says")),
        }
    }

    /// Calls `bit` with the place of each bit of a key while it returns true; returns whether it always did.
    #[inline]
    fn all_bits(&self, SparkHash(hash): SparkHash, mut bit: impl FnMut(u64) -> bool) -> bool {
        let (first, second) = ((hash >> 32) as i32, hash as i32);
        match self.version {
            SparkVersion::V1 => (1..=self.hashes as i32).all(|i| {
                let hash = first.wrapping_add(i.wrapping_mul(second));
                bit((if hash < 0 { !hash } else { hash }) as u64 % self.bits)
            }),
            SparkVersion::V2 { .. } => {
                let start = i64::from(first) * i64::from(i32::MAX);
                (1..=i64::from(self.hashes)).all(|i| {
                    // Below 2^63 in magnitude.
                    let hash = start + i * i64::from(second);
                    bit((if hash < 0 { !hash } else { hash }) as u64 % self.bits)
                })
            }
        }
    }
}

/// Spark's Bloom filter in borrowed bytes, such as a column of a table: queried in place, at any address.
///
/// ```
/// use warpset_bloom::{SparkBloom, SparkBloomView};
///
/// let mut filter = SparkBloom::builder(100).build()?;
/// filter.insert(7i64);
/// let view = SparkBloomView::from_bytes(filter.as_bytes())?;
/// assert!(view.contains(7i32) && !view.contains(8i64));
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SparkBloomView<'a> {
    parameters: Parameters,
    words: &'a [[u8; 8]],
}

impl<'a> SparkBloomView<'a> {
    /// Opens bytes that Spark, or [`SparkBloom::as_bytes`], gave. O(1). There is no checksum: damaged words make wrong
    /// answers, nothing worse.
    ///
    /// # Errors
    /// [`Error::Spark`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<SparkBloomView<'a>, Error> {
        let (parameters, words) = Parameters::of(bytes)?;
        Ok(SparkBloomView { parameters, words })
    }

    /// Returns the version of the filter.
    pub fn version(&self) -> SparkVersion {
        self.parameters.version
    }

    /// Returns the number of bits per key, `k`.
    pub fn hashes(&self) -> u32 {
        self.parameters.hashes
    }

    /// Returns the size of the bits in bytes.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.words.len() as u64
    }

    /// Whether the key may be in the filter. Never false for a key that was inserted.
    pub fn contains(&self, key: impl SparkKey) -> bool {
        let bit = |bit: u64| self.words[(bit / 64) as usize][7 - bit as usize % 64 / 8] >> (bit % 8) & 1 == 1;
        self.parameters.all_bits(self.parameters.version.hash(key), bit)
    }

    /// Looks up many keys: one answer per key, in their order.
    pub fn contains_bulk<K: SparkKey>(&self, keys: &[K]) -> Vec<bool> {
        let mut answers = vec![false; keys.len()];
        self.answer(keys, &mut answers);
        answers
    }

    /// Looks up many keys, into a slice of the same length; see [`SparkBloomView::contains_bulk`].
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn contains_bulk_into<K: SparkKey>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), answers.len())?;
        self.answer(keys, answers);
        Ok(())
    }

    fn answer<K: SparkKey>(&self, keys: &[K], answers: &mut [bool]) {
        parallel::answer(keys, answers, (KEY_NS, 1), |keys, answers| {
            answers.iter_mut().zip(keys).for_each(|(answer, key)| *answer = self.contains(key));
        });
    }

    /// Returns the current rate of false positives: the fraction of set bits to the power of `k`.
    pub fn fpr(&self) -> f64 {
        let ones: u64 = self.words.iter().map(|word| u64::from(u64::from_be_bytes(*word).count_ones())).sum();
        (ones as f64 / self.parameters.bits.get() as f64).powi(self.parameters.hashes as i32)
    }
}

/// Spark's Bloom filter, kept as the bytes that Spark reads.
///
/// For filters exchanged with Spark, Comet or Gluten. It is slower than a split-block filter, by a cache miss per bit,
/// and a third larger at 1%; otherwise use [`SplitBlockBloom`](crate::SplitBlockBloom).
///
/// ```
/// use warpset_bloom::{SparkBloom, SparkVersion};
///
/// let mut filter = SparkBloom::builder(1_000).fpr(0.01).version(SparkVersion::V1).build()?;
/// filter.extend(["a", "b"]);
/// let bytes = filter.into_bytes(); // for `might_contain` in Spark
/// assert!(SparkBloom::from_bytes(bytes)?.contains("a"));
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkBloom {
    parameters: Parameters,
    bytes: Vec<u8>,
}

impl SparkBloom {
    /// Starts the settings of a filter for `keys` different keys.
    pub fn builder(keys: u64) -> SparkBuilder {
        SparkBuilder { keys: keys.max(1), fpr: DEFAULT_FPR, bits: None, version: SparkVersion::V2 { seed: 0 } }
    }

    /// Takes over bytes that Spark gave. [`SparkBloomView`] borrows them.
    ///
    /// # Errors
    /// [`Error::Spark`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<SparkBloom, Error> {
        let (parameters, _) = Parameters::of(&bytes)?;
        Ok(SparkBloom { parameters, bytes })
    }

    /// Returns the bytes, as Spark reads them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns a borrow that can answer queries.
    pub fn view(&self) -> SparkBloomView<'_> {
        let words = self.bytes[self.parameters.version.header_bytes()..].as_chunks::<8>().0;
        SparkBloomView { parameters: self.parameters, words }
    }

    /// Inserts a key.
    pub fn insert(&mut self, key: impl SparkKey) {
        self.insert_hash(self.parameters.version.hash(key));
    }

    /// Inserts a key by its hashes, which a filter of the same version gave ([`SparkVersion::hash`]).
    pub fn insert_hash(&mut self, hash: SparkHash) {
        let words = self.bytes[self.parameters.version.header_bytes()..].as_chunks_mut::<8>().0;
        self.parameters.all_bits(hash, |bit| {
            words[(bit / 64) as usize][7 - bit as usize % 64 / 8] |= 1 << (bit % 8);
            true
        });
    }

    /// Whether the key may be in the filter. Never false for a key that was inserted.
    pub fn contains(&self, key: impl SparkKey) -> bool {
        self.view().contains(key)
    }

    /// Adds all keys of `other`, a filter with the same parameters.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub fn merge(&mut self, other: &SparkBloomView<'_>) -> Result<(), Error> {
        let fields = |of: &Parameters| {
            let (version, seed) = match of.version {
                SparkVersion::V1 => (1, 0),
                SparkVersion::V2 { seed } => (2, u64::from(seed as u32)),
            };
            [("version", version), ("seed", seed), ("hashes", of.hashes.into()), ("bits", of.bits.get())]
        };
        for ((field, left), (_, right)) in fields(&self.parameters).into_iter().zip(fields(&other.parameters)) {
            if left != right {
                return Err(Error::Incompatible { field, left, right });
            }
        }
        let words = self.bytes[self.parameters.version.header_bytes()..].as_chunks_mut::<8>().0;
        for (word, other) in words.iter_mut().zip(other.words) {
            *word = (u64::from_ne_bytes(*word) | u64::from_ne_bytes(*other)).to_ne_bytes();
        }
        Ok(())
    }
}

impl<K: SparkKey> Extend<K> for SparkBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

/// Settings of a [`SparkBloom`]; each setter states its default.
///
/// ```
/// use warpset_bloom::SparkBloom;
///
/// let filter = SparkBloom::builder(1_000_000).build()?;
/// assert_eq!((filter.view().hashes(), filter.view().memory_bytes()), (5, 912_312)); // as Spark sizes it
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct SparkBuilder {
    keys: u64,
    fpr: f64,
    bits: Option<u64>,
    version: SparkVersion,
}

impl SparkBuilder {
    /// Sets the rate of false positives with all keys inserted. Default: 0.03, as in Spark.
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.fpr = fpr;
        self
    }

    /// Sets the bits of the filter in place of a rate: the last argument of Spark's `bloom_filter_agg(x, keys, bits)`.
    /// Rounded up to words of 64 bits, at least one. Default: the bits that the rate requires.
    pub fn bits(mut self, bits: u64) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Sets the version of the filter. Default: version 2 with seed 0; Spark before 4.1 reads version 1 only.
    pub fn version(mut self, version: SparkVersion) -> Self {
        self.version = version;
        self
    }

    /// Checks every setting, then allocates: the size that Spark gives a filter of its own.
    ///
    /// # Errors
    /// [`Error::InvalidFpr`], [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn build(self) -> Result<SparkBloom, Error> {
        rates::check_fpr(self.fpr)?;
        let ln2 = std::f64::consts::LN_2;
        let by_rate = (-(self.keys as f64) * self.fpr.ln() / (ln2 * ln2)) as u64;
        let wanted = self.bits.unwrap_or(by_rate);
        let words = wanted.div_ceil(64).max(1);
        if words > MOST_WORDS {
            return Err(Error::TooLarge { bytes: words.saturating_mul(8), limit: 8 * MOST_WORDS });
        }
        // The ratio is that of the requested bits, which rounding changes.
        let hashes = ((wanted as f64 / self.keys as f64 * ln2).round() as u32).clamp(1, MOST_HASHES);
        let header = self.version.header_bytes();
        let mut bytes = warpset_base::words::zeroed_vec::<u8>(header as u64 + 8 * words)?;
        let fields = match self.version {
            SparkVersion::V1 => [1, hashes, words as u32, 0],
            SparkVersion::V2 { seed } => [2, hashes, seed as u32, words as u32],
        };
        for (place, field) in bytes[..header].as_chunks_mut::<4>().0.iter_mut().zip(fields) {
            *place = field.to_be_bytes();
        }
        SparkBloom::from_bytes(bytes)
    }
}

#[cfg(test)]
mod tests;

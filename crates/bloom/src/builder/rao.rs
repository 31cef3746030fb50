//! Rao's filter: buckets, choices, and how full they may get.

use warpset_core::bloom::rao;

use super::{Goal, Size};
use crate::{Error, FirstLevel, RaoLayout, rates};

/// Settings of a [`RaoBloom`](crate::RaoBloom); each setter states its default.
///
/// ```
/// use warpset_bloom::RaoBloom;
///
/// // Section 5.2 of the paper: 5 KB per bucket, 1%, m = 40949, k = 7, 4054 keys per bucket, buckets filled to 90%.
/// let filter = RaoBloom::builder(175_132).fpr(0.01).choices(1).bucket_words(1280).load_factor(0.9).build()?;
/// let layout = filter.layout();
/// assert_eq!((layout.shape().bits, layout.shape().hashes, layout.bucket_capacity()), (40_949, 7, 4054));
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct RaoBuilder {
    size: Size,
    choices: u32,
    bucket_words: Option<u32>,
    load_factor: Option<f64>,
    hashes: Option<u32>,
    first_level: FirstLevel,
    seed: u64,
}

impl RaoBuilder {
    /// Returns a builder of a filter for `keys` different keys.
    pub fn new(keys: u64) -> RaoBuilder {
        RaoBuilder {
            size: Size::new(keys),
            choices: 1,
            bucket_words: None,
            load_factor: None,
            hashes: None,
            first_level: FirstLevel::Mixed,
            seed: 0,
        }
    }

    size_setters!();

    /// Sets the number of candidate buckets per key: 1, or 2 for the power of two choices. Default: 1.
    ///
    /// With two, a query reads both buckets, so each bucket needs about half the rate: 1.44 bits per key more.
    pub fn choices(mut self, choices: u32) -> Self {
        self.choices = choices;
        self
    }

    /// Sets the number of 32-bit words in a bucket, 2 to 16384. Default: 8192 (32 KiB), fewer if one smaller bucket is
    /// enough.
    pub fn bucket_words(mut self, bucket_words: u32) -> Self {
        self.bucket_words = Some(bucket_words);
        self
    }

    /// Sets the intended fill of the buckets, as a fraction of `m ln 2 / k`. Default: the largest fill at which an
    /// overflow is improbable, at most 0.95.
    pub fn load_factor(mut self, load_factor: f64) -> Self {
        self.load_factor = Some(load_factor);
        self
    }

    /// Hashes per key, 1 to 64. Default: by the paper's formula, `fpr = 1 / 2^k` for each bucket.
    pub fn hashes(mut self, hashes: u32) -> Self {
        self.hashes = Some(hashes);
        self
    }

    /// Sets the hash that sends keys to buckets. Default: [`FirstLevel::Mixed`].
    pub fn first_level(mut self, first_level: FirstLevel) -> Self {
        self.first_level = first_level;
        self
    }

    /// Sets the seed of the keys' hash. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Returns the intended number of keys of a bucket of capacity `capacity`.
    fn keys_in_bucket(&self, capacity: f64) -> f64 {
        let mean = match (self.load_factor, self.choices) {
            (Some(load_factor), _) => return (capacity * load_factor).max(1.0),
            // Six standard deviations below the capacity: mean + 6 sqrt(mean) = capacity.
            (None, 1) => ((9.0 + capacity).sqrt() - 3.0).powi(2),
            // The fullest bucket exceeds the mean by a few keys whatever the mean.
            (None, _) => capacity - 8.0,
        };
        mean.clamp(1.0, (0.95 * capacity).max(1.0))
    }

    fn shape(&self, bucket_words: u32, hashes: u32) -> Result<rao::BucketShape, Error> {
        rao::BucketShape::new(bucket_words, hashes).ok_or(Error::InvalidBucket { bucket_words, hashes })
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that no filter has, or settings that no filter has together.
    pub fn layout(&self) -> Result<RaoLayout, Error> {
        if !(1..=2).contains(&self.choices) {
            return Err(Error::InvalidChoices { choices: self.choices });
        }
        if let Some(load_factor) = self.load_factor
            && !(load_factor > 0.0 && load_factor <= 1.0)
        {
            return Err(Error::InvalidLoadFactor { load_factor });
        }
        let words = self.bucket_words.unwrap_or(rao::DEFAULT_BUCKET_WORDS);
        let keys = self.size.keys;
        let (shape, buckets) = match self.size.goal()? {
            Goal::Fpr(fpr) => {
                let bucket_fpr = rates::rao_bucket_fpr(fpr, self.choices);
                if bucket_fpr < 0.5f64.powi(rao::MAX_HASHES as i32) {
                    return Err(Error::UnreachableFpr { keys, fpr });
                }
                let hashes = self.hashes.unwrap_or_else(|| rates::rao_hashes(bucket_fpr));
                let mut shape = self.shape(words, hashes)?;
                if self.bucket_words.is_none() && keys <= rates::rao_bucket_capacity(shape) as u64 {
                    // One bucket, as small as holds the keys; it cannot be filled unevenly.
                    let bits = keys as f64 * hashes as f64 / std::f64::consts::LN_2;
                    let mut least = ((bits / 32.0) as u32).max(rao::MIN_BUCKET_WORDS);
                    while rao::BucketShape::new(least, hashes)
                        .is_none_or(|s| (rates::rao_bucket_capacity(s) as u64) < keys)
                    {
                        least += 1;
                    }
                    shape = self.shape(least.min(words), hashes)?;
                    (shape, 1)
                } else {
                    let mean = self.keys_in_bucket(rates::rao_bucket_capacity(shape) as f64);
                    (shape, (keys as f64 / mean).ceil() as u64)
                }
            }
            Goal::Bytes(bytes) => {
                let words = if self.bucket_words.is_none() && bytes < 4.0 * words as f64 {
                    ((bytes / 4.0) as u32).max(rao::MIN_BUCKET_WORDS)
                } else {
                    words
                };
                let buckets = self.size.blocks(&Goal::Bytes(bytes), 4.0 * words as f64, |_| 0.0)?;
                // The most hashes at which the keys still fit their buckets, k = m ln 2 / n.
                let bits = previous_prime_of(words)? as f64;
                let mean = keys as f64 / buckets as f64;
                let capacity = if buckets == 1 { mean } else { mean / (self.keys_in_bucket(mean) / mean) };
                let optimal = (bits * std::f64::consts::LN_2 / capacity).floor();
                let hashes = self.hashes.unwrap_or((optimal as u32).clamp(1, rao::MAX_HASHES));
                (self.shape(words, hashes)?, buckets)
            }
        };
        self.size.check_limit(RaoLayout::new(buckets, shape, self.choices, self.first_level, self.seed)?)
    }
}

fn previous_prime_of(words: u32) -> Result<u32, Error> {
    rao::BucketShape::new(words, 1).map(|s| s.bits).ok_or(Error::InvalidBucket { bucket_words: words, hashes: 1 })
}

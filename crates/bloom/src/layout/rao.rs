//! Rao's two-level layout on the CPU.

use warpset_base::file::FileKind;
use warpset_core::bloom::rao::{self, BucketShape, Positions};
use warpset_core::hash::{self, string::StringHash};

use super::Layout;
use super::engine::Engine;
use super::split_block::fold_blocks;
use crate::view::PREFETCH_BYTES;
use crate::{Error, FileError, Key, rates};

mod hashing;
pub(crate) mod probing;
use probing::Placed;

/// The hash that sends a key to its bucket (sections 4.2 and 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FirstLevel {
    /// A second, seeded mix of the key's 64-bit hash. Good for every kind of key.
    #[default]
    Mixed,
    /// A string hash of Table 1 over the key's bytes, modulo the number of buckets; after an overflow, a mix of it.
    String(StringHash),
}

impl FirstLevel {
    fn number(self) -> u64 {
        match self {
            FirstLevel::Mixed => 0,
            FirstLevel::String(function) => 1 + function as u64,
        }
    }
}

/// Parameters of a [`RaoBloom`](crate::RaoBloom).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RaoLayout {
    buckets: u64,
    shape: BucketShape,
    choices: u32,
    first_level: FirstLevel,
    attempt: u32,
    seed: u64,
    bucket_capacity: u32,
    most_ones: u32,
    seed_spread: u64,
    attempt_spread: u64,
}

impl RaoLayout {
    /// Returns a layout of `buckets` buckets of this shape; `choices` is 1 or 2.
    ///
    /// # Errors
    /// [`Error::ZeroCapacity`], [`Error::TooLarge`], [`Error::InvalidBucket`].
    pub fn new(
        buckets: u64,
        shape: BucketShape,
        choices: u32,
        first_level: FirstLevel,
        seed: u64,
    ) -> Result<RaoLayout, Error> {
        if buckets == 0 {
            return Err(Error::ZeroCapacity);
        }
        if buckets > rao::MAX_BUCKETS {
            let bytes = |buckets: u64| buckets.saturating_mul(4 * shape.bucket_words as u64);
            return Err(Error::TooLarge { bytes: bytes(buckets), limit: bytes(rao::MAX_BUCKETS) });
        }
        let shape = BucketShape::new(shape.bucket_words, shape.hashes)
            .ok_or(Error::InvalidBucket { bucket_words: shape.bucket_words, hashes: shape.hashes })?;
        let layout = RaoLayout {
            buckets,
            shape,
            choices: choices.clamp(1, 2),
            first_level,
            attempt: 0,
            seed,
            bucket_capacity: rates::rao_bucket_capacity(shape).max(1),
            most_ones: shape.most_ones(),
            seed_spread: hash::spread_seed(seed),
            attempt_spread: 0,
        };
        Ok(layout.at_attempt(0))
    }

    /// Returns this layout with another first-level hash: that of the given attempt.
    pub fn at_attempt(self, attempt: u32) -> RaoLayout {
        RaoLayout { attempt, attempt_spread: rao::spread_attempt(attempt), ..self }
    }

    /// Returns the parameters of one bucket: `m`, `k`, words.
    pub fn shape(&self) -> BucketShape {
        self.shape
    }
    /// Returns the number of candidate buckets per key: 1, or 2 for the power of two choices.
    pub fn choices(&self) -> u32 {
        self.choices
    }
    /// Returns the hash that sends keys to buckets.
    pub fn first_level(&self) -> FirstLevel {
        self.first_level
    }
    /// Returns the number of changes of the first-level hash.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
    /// Returns the seed of the keys' hash.
    pub fn seed(&self) -> u64 {
        self.seed
    }
    /// Returns the number of bits of a bucket that may be set, [`BucketShape::most_ones`], which takes a square root.
    #[inline(always)]
    pub(crate) fn most_ones(&self) -> u32 {
        self.most_ones
    }
    /// Returns the number of keys that a bucket may hold, `m ln 2 / k`.
    pub fn bucket_capacity(&self) -> u32 {
        self.bucket_capacity
    }

    /// Returns the two buckets of a key; with one choice only the first counts.
    #[inline(always)]
    fn buckets_of(&self, hash: u64, string_hash: u32) -> [u32; 2] {
        let [a, b] = match self.first_level {
            FirstLevel::Mixed => rao::choices_spread(hash, self.attempt_spread, self.buckets),
            FirstLevel::String(_) if self.attempt == 0 => rao::choices_of_string_hash(string_hash, self.buckets),
            FirstLevel::String(_) => rao::choices_of_string_hash(
                hash::mix_spread(string_hash as u64, self.attempt_spread) as u32,
                self.buckets,
            ),
        };
        [a as u32, if self.choices == 2 { b } else { a } as u32]
    }

    /// Returns the start of a bucket's words.
    #[inline(always)]
    pub(crate) fn bucket_start(&self, bucket: u32) -> usize {
        bucket as usize * self.shape.bucket_words as usize
    }

    /// Counts the bits of `hash` that are not set in `bucket`'s words.
    #[inline]
    pub(crate) fn bucket_missing(&self, bucket: &[u32], hash: u64) -> u32 {
        Positions::of(hash, self.shape).map(|p| !bucket[(p / 32) as usize] >> (p % 32) & 1).sum()
    }

    /// Returns a bucket's words.
    #[inline(always)]
    pub(crate) fn bucket<'a>(&self, words: &'a [u32], bucket: u32) -> &'a [u32] {
        &words[self.bucket_start(bucket)..][..self.shape.bucket_words as usize]
    }
}

/// Probe of a key: its hash and its buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RaoProbe {
    /// The key's 64-bit hash; its halves are `h1` and `h2`.
    pub hash: u64,
    /// The buckets that it may go to.
    pub buckets: [u32; 2],
}

impl Placed for RaoProbe {
    #[inline(always)]
    fn bucket(&self) -> u32 {
        self.buckets[0]
    }
    #[inline(always)]
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// A probe in the second of its buckets.
#[derive(Clone, Copy, bytemuck::TransparentWrapper)]
#[repr(transparent)]
struct SecondChoice(RaoProbe);

fn second_choices(probes: &[RaoProbe]) -> &[SecondChoice] {
    bytemuck::TransparentWrapper::wrap_slice(probes)
}

impl Placed for SecondChoice {
    #[inline(always)]
    fn bucket(&self) -> u32 {
        self.0.buckets[1]
    }
    #[inline(always)]
    fn hash(&self) -> u64 {
        self.0.hash
    }
}

impl Layout for RaoLayout {
    const STRUCTURE: FileKind = FileKind::RAO_BLOOM;
    const NAME: &'static str = "RaoBloom";

    fn blocks(&self) -> u64 {
        self.buckets
    }
    fn words_per_block(&self) -> usize {
        self.shape.bucket_words as usize
    }
    fn bits_per_block(&self) -> u64 {
        self.shape.bits as u64
    }
    fn hashes(&self) -> u32 {
        self.shape.hashes
    }
    fn expected_fpr(&self, keys: u64) -> f64 {
        let mean = keys as f64 / self.buckets as f64;
        self.query_rate(rates::classic_fpr(self.shape.bits as f64, self.shape.hashes, mean))
    }
    fn predicted_fill(&self, keys: u64) -> f64 {
        rates::classic_fill(self.shape.bits as f64, self.shape.hashes, keys as f64 / self.buckets as f64)
    }
}

impl Engine for RaoLayout {
    type Probe = RaoProbe;
    type Word = u32;
    const COUNTS_ONES: bool = true;
    const LOOKUP_NS: f64 = 15.0;

    #[inline(always)]
    fn probe<K: Key + ?Sized>(&self, key: &K) -> RaoProbe {
        let hash = key.seeded_hash(self.seed, self.seed_spread);
        let string_hash = match self.first_level {
            FirstLevel::Mixed => 0,
            FirstLevel::String(function) => key.string_hash(function),
        };
        RaoProbe { hash, buckets: self.buckets_of(hash, string_hash) }
    }
    #[inline]
    fn probe_batch<K: Key>(&self, keys: &[K], probes: &mut [RaoProbe]) {
        hashing::probe_batch(self, keys, probes);
    }
    #[inline(always)]
    fn hash_of(probe: &RaoProbe) -> u64 {
        probe.hash
    }
    #[inline]
    fn prefetch(&self, words: &[u32], probe: &RaoProbe) {
        self.prefetch_batch(words, std::slice::from_ref(probe));
    }
    #[inline]
    fn prefetch_batch(&self, words: &[u32], probes: &[RaoProbe]) {
        probing::prefetch_first(self.shape, words, probes);
        if self.choices == 2 {
            probing::prefetch_first(self.shape, words, second_choices(probes));
        }
    }
    #[inline]
    fn contains(&self, words: &[u32], probe: &RaoProbe) -> bool {
        let [a, b] = probe.buckets;
        let is_in = |bucket| probing::contains(self.shape, self.bucket(words, bucket), probe.hash);
        // Table 2: either bucket says yes. (With one choice no branch depends on the answer.)
        if self.choices == 1 { is_in(a) } else { is_in(a) || (b != a && is_in(b)) }
    }
    fn contains_batch(&self, words: &[u32], probes: &[RaoProbe]) -> u64 {
        let far = size_of_val(words) > PREFETCH_BYTES;
        let found = probing::contained(self.shape, words, probes, far);
        match self.choices {
            1 => found,
            _ => found | probing::contained(self.shape, words, second_choices(probes), far),
        }
    }
    fn folded(&self, factor: u64) -> Result<Self, Error> {
        fold_blocks(self.buckets, factor).map(|buckets| RaoLayout { buckets, ..*self })
    }
    fn folded_from(&self, new: u64, part: u64, factor: u64) -> u64 {
        match self.first_level {
            // A multiply-shift: neighbours fall together.
            FirstLevel::Mixed => new * factor + part,
            // A remainder: remainders that agree modulo the new number fall together.
            FirstLevel::String(_) => new + part * (self.buckets / factor),
        }
    }
    fn block_rate(&self, block: &[u32]) -> f64 {
        let ones: u32 = block.iter().map(|w| w.count_ones()).sum();
        (ones as f64 / self.shape.bits as f64).powi(self.shape.hashes as i32)
    }
    fn cardinality(&self, ones: u64) -> f64 {
        let fill = ones as f64 / self.settable_bits() as f64;
        let mean = (-fill).ln_1p() / (-(self.shape.hashes as f64) / self.shape.bits as f64).ln_1p();
        self.buckets as f64 * mean
    }
    fn query_rate(&self, mean_block_rate: f64) -> f64 {
        rates::rao_query_fpr(mean_block_rate, self.choices)
    }
    fn check_intersection(&self) -> Result<(), Error> {
        if self.choices == 2 { Err(Error::NoIntersection) } else { Ok(()) }
    }
    fn difference(&self, other: &Self) -> Option<(&'static str, u64, u64)> {
        [
            ("words of a bucket", self.shape.bucket_words as u64, other.shape.bucket_words as u64),
            ("hashes", self.shape.hashes as u64, other.shape.hashes as u64),
            ("choices", self.choices as u64, other.choices as u64),
            ("the hash that chooses a bucket", self.first_level.number(), other.first_level.number()),
            ("attempts at placing all keys", self.attempt as u64, other.attempt as u64),
            ("seed", self.seed, other.seed),
            ("bytes", 4 * self.words(), 4 * other.words()),
        ]
        .into_iter()
        .find(|(_, left, right)| left != right)
    }
    fn to_fields(&self) -> [u64; 8] {
        [
            self.buckets,
            self.shape.bucket_words as u64,
            self.shape.hashes as u64,
            self.choices as u64,
            self.first_level.number(),
            self.attempt as u64,
            self.seed,
            0,
        ]
    }
    fn from_fields(fields: [u64; 8]) -> Result<Self, Error> {
        super::zero_fields(&fields[7..])?;
        let [buckets, bucket_words, hashes, choices, first_level, attempt, seed, _] = fields;
        let small = |value: u64, field| u32::try_from(value).map_err(|_| FileError::InvalidHeader { field, value });
        let shape = BucketShape::new(small(bucket_words, "bucket words")?, small(hashes, "hashes")?)
            .ok_or(FileError::InvalidHeader { field: "bucket words and hashes", value: bucket_words })?;
        if !(1..=2).contains(&choices) {
            return Err(FileError::InvalidHeader { field: "choices", value: choices }.into());
        }
        let first_level = match first_level {
            0 => FirstLevel::Mixed,
            1..=11 => match StringHash::from_index(first_level as u8 - 1) {
                Some(function) => FirstLevel::String(function),
                None => {
                    return Err(FileError::InvalidHeader { field: "first-level function", value: first_level }.into());
                }
            },
            value => return Err(FileError::InvalidHeader { field: "first-level function", value }.into()),
        };
        let attempt = small(attempt, "first-level attempt")?;
        RaoLayout::new(buckets, shape, choices as u32, first_level, seed)
            .map(|layout| layout.at_attempt(attempt))
            .map_err(|_| FileError::InvalidHeader { field: "buckets", value: buckets }.into())
    }
}

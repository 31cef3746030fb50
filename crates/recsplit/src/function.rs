//! The finished function: one array of words, and queries on it.
//!
//! Source: sections 4.2, 4.5.2. The words are the saved form (`docs/formats.md`), so that a function can be opened from a
//! memory-mapped file without copying.

use crate::elias_fano::Lists;
use crate::format::{self, Header};
use crate::key::{Hash128, Key};
use crate::query::batch::BATCH;
use crate::query::{Levels, Row};
use crate::read::{Portable, Select};
use crate::{Error, table};
use std::sync::Arc;
use warpset_core::recsplit::{Remix, Shape};

/// Where the words of a function are: `Vec<u64>`, `&[u64]`, [`crate::Mapped`], or anything else that derefs to words and
/// keeps them as they are.
pub trait Words {
    /// The words.
    fn words(&self) -> &[u64];
}

impl Words for Vec<u64> {
    #[inline]
    fn words(&self) -> &[u64] {
        self
    }
}

impl Words for &[u64] {
    #[inline]
    fn words(&self) -> &[u64] {
        self
    }
}

/// A minimal perfect hash function: maps the `n` keys that it was built from to `0..n`, each to its own number.
///
/// Other keys map to any number below `n`: the function does not know its keys. See [`crate::StaticFilter`] for that.
///
/// ```
/// use warpset_recsplit::{Builder, RecSplit};
///
/// let keys = ["Alpha", "Beta", "Gamma", "Delta"];
/// let function: RecSplit = Builder::new().build(&keys)?;
/// let mut seen = [false; 4];
/// for key in &keys {
///     seen[function.get(key) as usize] = true;
/// }
/// assert_eq!(seen, [true; 4]);
/// # Ok::<(), warpset_recsplit::Error>(())
/// ```
///
/// Space: 1.50 to 3 bits a key, see [`Builder`](crate::Builder). Queries: two cache misses for large functions, then a
/// walk down the splitting tree of one bucket.
#[derive(Clone)]
pub struct RecSplit<W = Vec<u64>> {
    pub(crate) words: W,
    pub(crate) header: Header,
    pub(crate) lists: Lists,
    /// First bit of the trees within the words.
    pub(crate) trees: u64,
    /// All values are below.
    pub(crate) values: u64,
    pub(crate) levels: Levels,
    /// Rows for up to the largest bucket.
    pub(crate) rows: Arc<[Row]>,
}

impl<W> std::fmt::Debug for RecSplit<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecSplit")
            .field("keys", &self.header.keys)
            .field("shape", &self.header.shape)
            .finish_non_exhaustive()
    }
}

impl<A: Words, B: Words> PartialEq<RecSplit<B>> for RecSplit<A> {
    /// Whether both are the same function, bit for bit.
    fn eq(&self, other: &RecSplit<B>) -> bool {
        self.words.words() == other.words.words()
    }
}

impl RecSplit {
    /// Settings for building a function, the default ones: [`Builder::new`](crate::Builder::new).
    pub fn builder() -> crate::Builder {
        crate::Builder::new()
    }
}

impl<W: Words> RecSplit<W> {
    /// Opens words that [`RecSplit::as_words`] gave, without copying them. They are checked: damaged or foreign words are
    /// an error, and even words that were made to pass the checks can only give wrong numbers below the number of keys.
    pub fn from_words(words: W) -> Result<Self, Error> {
        let header = format::parse(words.words())?;
        Ok(Self::trusted(words, header))
    }

    /// As `from_words`, for words whose header is known to be right.
    pub(crate) fn trusted(words: W, header: Header) -> Self {
        let lists = Lists::at(header.layout, format::HEADER_WORDS + header.tree_bits.div_ceil(64));
        let (levels, rows) = table::rows(&header.shape, header.largest_bucket);
        let values = header.shape.base(header.keys, header.layout.buckets);
        Self { words, header, lists, trees: format::HEADER_WORDS * 64, values, levels, rows }
    }

    /// The saved form.
    pub fn as_words(&self) -> &[u64] {
        self.words.words()
    }

    /// Number of keys that the function was built from.
    pub fn len(&self) -> u64 {
        self.header.keys
    }

    /// All values are below this: [`RecSplit::len`] for a minimal function, more for one built with
    /// [`Builder::load_factor`](crate::Builder::load_factor), fewer with
    /// [`Builder::keys_per_value`](crate::Builder::keys_per_value).
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.header.keys == 0
    }

    /// Size of the function in bits, all but the table that functions of one shape share in memory.
    pub fn bits(&self) -> u64 {
        self.as_words().len() as u64 * 64
    }

    /// [`RecSplit::bits`] for each key.
    pub fn bits_per_key(&self) -> f64 {
        self.bits() as f64 / self.len().max(1) as f64
    }

    /// Bits of the splitting trees and of the lists of bucket positions.
    pub fn space(&self) -> Space {
        Space { trees: self.header.tree_bits, buckets: self.header.layout.words() * 64 }
    }

    /// The shape of the splitting trees.
    pub fn shape(&self) -> Shape {
        self.header.shape
    }

    /// Seed of the initial hash, for [`Key::hash128`].
    pub fn seed(&self) -> u64 {
        self.header.seed
    }

    /// The number of `key`, below [`RecSplit::values`]; 0 if there are no keys.
    #[inline]
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.get_hash(key.hash128(self.header.seed))
    }

    /// The number of the key with this hash, which is [`Key::hash128`] with [`RecSplit::seed`].
    #[inline]
    pub fn get_hash(&self, hash: Hash128) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if crate::read::known_fast_bmi2() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.get_bmi2(hash) };
        }
        self.get_elsewhere(hash)
    }

    /// [`RecSplit::get_hash`] before it is known what the processor has, and without special instructions. A function of its
    /// own, so that the other way has no registers to save.
    #[cold]
    #[inline(never)]
    fn get_elsewhere(&self, hash: Hash128) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if crate::read::fast_bmi2() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.get_bmi2(hash) };
        }
        self.get_with(hash, Portable)
    }

    /// [`RecSplit::get_hash`] with `pdep` for selection.
    ///
    /// # Safety
    /// The processor must have BMI1, BMI2, LZCNT and POPCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn get_bmi2(&self, hash: Hash128) -> u64 {
        // SAFETY: the caller says so.
        self.get_with(hash, unsafe { crate::read::Bmi2::new() })
    }

    #[inline(always)]
    fn get_with(&self, hash: Hash128, select: impl Select) -> u64 {
        // The remix is a constant in each arm.
        match self.header.remix {
            Remix::Bits32 => self.get_one(hash, Remix::Bits32, select),
            Remix::Bits64 => self.get_one(hash, Remix::Bits64, select),
        }
    }

    /// The numbers of many keys, as [`RecSplit::get`] gives them, in `numbers`. The look-ups of a batch wait for memory
    /// together and go down their trees together: two and a half to four times faster than one by one where the processor has
    /// AVX-512, or where the function is larger than its caches; 1.4 to 1.7 times with AVX2, a little without.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn get_many<K: Key>(&self, keys: &[K], numbers: &mut [u64]) {
        assert_eq!(keys.len(), numbers.len(), "one number for each key");
        let seed = self.header.seed;
        for (keys, numbers) in keys.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            let mut hashes = [Hash128::default(); BATCH];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = key.hash128(seed);
            }
            self.get_hashes(&hashes[..keys.len()], numbers);
        }
    }

    /// The numbers of many keys by their hashes, as [`RecSplit::get_hash`] gives them.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn get_many_hashes(&self, hashes: &[Hash128], numbers: &mut [u64]) {
        assert_eq!(hashes.len(), numbers.len(), "one number for each key");
        for (hashes, numbers) in hashes.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            self.get_hashes(hashes, numbers);
        }
    }

    /// As `get_many_hashes`, for at most `BATCH` of them.
    fn get_hashes(&self, hashes: &[Hash128], numbers: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if crate::read::fast_bmi2() {
            let wide = self.header.remix == Remix::Bits32 && self.header.keys > 0;
            // SAFETY: the processor has the instructions.
            unsafe {
                match wide {
                    true if crate::read::has_avx512() => self.get_hashes_avx512(hashes, numbers),
                    true => self.get_hashes_avx2(hashes, numbers),
                    false => self.get_hashes_bmi2(hashes, numbers),
                }
            }
            return;
        }
        self.get_hashes_with(hashes, numbers, Portable);
    }

    /// [`RecSplit::get_hashes`] with `pdep` for selection.
    ///
    /// # Safety
    /// The processor must have AVX2, BMI1, BMI2, LZCNT and POPCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn get_hashes_bmi2(&self, hashes: &[Hash128], numbers: &mut [u64]) {
        // SAFETY: the caller says so.
        self.get_hashes_with(hashes, numbers, unsafe { crate::read::Bmi2::new() });
    }

    /// [`RecSplit::get_hashes`] in vectors of AVX2.
    ///
    /// # Safety
    /// As for [`RecSplit::get_hashes_bmi2`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn get_hashes_avx2(&self, hashes: &[Hash128], numbers: &mut [u64]) {
        // SAFETY: the caller says so.
        self.get_wide(hashes, numbers, unsafe { crate::query::avx2::Avx2::new() });
    }

    /// [`RecSplit::get_hashes`] in vectors of AVX-512.
    ///
    /// # Safety
    /// As for [`RecSplit::get_hashes_bmi2`], and the processor must have the named parts of AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn get_hashes_avx512(&self, hashes: &[Hash128], numbers: &mut [u64]) {
        // SAFETY: the caller says so.
        self.get_wide(hashes, numbers, unsafe { crate::query::avx512::Avx512::new() });
    }

    #[inline(always)]
    fn get_hashes_with(&self, hashes: &[Hash128], numbers: &mut [u64], select: impl Select) {
        match self.header.remix {
            Remix::Bits32 => self.get_batch(hashes, numbers, Remix::Bits32, select),
            Remix::Bits64 => self.get_batch(hashes, numbers, Remix::Bits64, select),
        }
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

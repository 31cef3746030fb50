//! Exact map of strings: keys and values in the order of a minimal perfect hash function.
//!
//! A lookup reads the function, the record at the key's number, and the bytes there, which it compares with the key.
//!
//! ```text
//! words of the function | n × (start of the key's bytes, value) | end of the bytes | bytes of all keys, zeros to a word
//! ```

#[cfg(test)]
mod tests;

use crate::batch::BATCH;
use crate::bulk::in_chunks;
use crate::format::{self, COMMON_WORDS};
use crate::function::{self, Lookup, PerfectHash};
use crate::stored::{self, StoredFunction, StoredParts};
use crate::windows::prefetch;
use crate::{Builder, Error, HashKind, PlacementKind};
use std::fmt;
use std::marker::PhantomData;
use warpset_base::file::{FileError, FileKind};
use warpset_base::filter::same_length;
use warpset_base::key::{Bytes, Hash128};
use warpset_base::words::in_huge_pages;

/// Parts of a [`StringMap`]: strings and values next to a function of the kind `M`.
pub struct Strings<M>(PhantomData<M>);

/// Immutable, exact map from strings, or any bytes, to integers, on top of a perfect hash function of the kind `M`.
///
/// ```
/// use warpset_mphf::StringMap;
///
/// let map = StringMap::builder().build_from(&["ash", "birch", "oak"], &[30, 25, 40])?;
/// assert_eq!((map.get("oak"), map.get("rose")), (Some(40), None));
/// assert_eq!(map.get_bulk(&["rose", "ash"]), [None, Some(30)]);
/// assert_eq!(map.iter().map(|(key, value)| key.len() as u64 * value).sum::<u64>(), 30 * 3 + 25 * 5 + 40 * 3);
///
/// let copy: StringMap = StringMap::from_bytes(&map.to_bytes())?;
/// assert!(copy == map);
/// # Ok::<(), warpset_mphf::Error>(())
/// ```
///
/// Space: the bytes of the keys, 16 bytes per key, and the function's: 2 bits for the default kind. Lookups: three
/// cache misses in large maps, which overlap in [`get_bulk`](StringMap::get_bulk).
pub type StringMap<M = PlacementKind> = StoredFunction<Strings<M>>;

/// String map that borrows its words: lent by [`StringMap::view`], or opened in bytes without a copy.
pub type StringMapView<'a, M = PlacementKind> = StoredFunction<Strings<M>, &'a [u64]>;

/// String map in a memory-mapped file, made by [`StringMap::map`].
#[cfg(feature = "mmap")]
pub type MappedStringMap<M = PlacementKind> = StoredFunction<Strings<M>, stored::Mapped>;

/// Fields of a map's header.
#[derive(Clone)]
pub struct Parameters<M: HashKind> {
    function: function::Parameters<M>,
    /// Words of the function, which follows the header.
    function_words: usize,
}

/// Words of a record.
const RECORD: usize = 2;

impl<M: HashKind> StoredParts for Strings<M> {}

impl<M: HashKind> stored::sealed::StoredParts for Strings<M> {
    const STRUCTURE: FileKind = FileKind::STRING_MAP;
    const NAME: &'static str = "string map";
    type Parameters = Parameters<M>;

    fn parse(words: &[u64]) -> Result<Parameters<M>, FileError> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
        let [function_words, unused @ ..] = format::parse_whole(words, Self::STRUCTURE)?.fields;
        if let Some(&value) = unused.iter().find(|&&value| value != 0) {
            return invalid("unused parameters", value);
        }
        let payload = &words[COMMON_WORDS..];
        if function_words > payload.len() as u64 {
            return invalid("words of the function", function_words);
        }
        let (function, strings) = payload.split_at(function_words as usize);
        let function = function::Parameters::trusted(format::parse(function)?, function);
        let records = u128::from(function.header.keys) * RECORD as u128 + 1;
        let end = usize::try_from(records - 1).ok().and_then(|end| strings.get(end).copied());
        let expected = end.map(|bytes| records + u128::from(bytes.div_ceil(8)));
        if !M::is_minimal(&function.header.code) || expected != Some(strings.len() as u128) {
            return invalid("words of the function", function_words);
        }
        Ok(Parameters { function, function_words: function_words as usize })
    }

    fn keys(parameters: &Parameters<M>) -> u64 {
        parameters.function.header.keys
    }

    fn seed(parameters: &Parameters<M>) -> u64 {
        parameters.function.header.seed
    }

    fn debug(_: &Parameters<M>, _: &mut fmt::DebugStruct<'_, '_>) {}
}

impl StringMap {
    /// Returns the default settings; [`build_from`](crate::Builder::build_from) takes keys and values.
    pub fn builder() -> Builder<PlacementKind, Self> {
        Builder::new()
    }
}

impl<M: HashKind> StringMap<M> {
    /// Returns the default settings of a map on a function of this kind.
    pub fn builder_of_kind(_: M) -> Builder<M, Self> {
        Builder::new()
    }
}

impl<M: HashKind> Builder<M, StringMap<M>> {
    /// Builds the map of `keys`, which must be distinct, to one value per key.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`] for functions; [`Error::LengthMismatch`].
    pub fn build_from<K: AsRef<[u8]> + Sync>(&self, keys: &[K], values: &[u64]) -> Result<StringMap<M>, Error> {
        same_length(keys.len(), values.len())?;
        let keys: Vec<Bytes<&[u8]>> = keys.iter().map(|key| Bytes(key.as_ref())).collect();
        let function = self.function_from(&keys)?;
        let mut order = vec![0; keys.len()];
        for (at, number) in self.run(keys.len() as u64, || function.get_bulk(&keys))?.into_iter().enumerate() {
            order[number as usize] = at;
        }
        let (function_words, function) = function.into_parts();
        let bytes: usize = keys.iter().map(|key| key.0.len()).sum();
        let records = COMMON_WORDS + function_words.len();
        let strings = records + RECORD * keys.len() + 1;
        let mut words = vec![0; strings + bytes.div_ceil(8)];
        words[COMMON_WORDS..records].copy_from_slice(&function_words);
        let mut end = 0;
        let (head, to) = words.split_at_mut(strings);
        let to = bytemuck::cast_slice_mut::<u64, u8>(to);
        for (record, &at) in head[records..].chunks_exact_mut(RECORD).zip(&order) {
            let key = keys[at].0;
            record.copy_from_slice(&[end as u64, values[at]]);
            to[end..end + key.len()].copy_from_slice(key);
            end += key.len();
        }
        words[strings - 1] = end as u64;
        let payload = (words.len() - COMMON_WORDS) as u64;
        let fields = [function_words.len() as u64, 0, 0, 0, 0, 0, 0, 0];
        words[..COMMON_WORDS].copy_from_slice(&format::common(FileKind::STRING_MAP, payload, fields));
        words[COMMON_WORDS - 1] = format::checksum(&words);
        Ok(StringMap::trusted(words, Parameters { function, function_words: function_words.len() }))
    }
}

impl<M: HashKind, W: AsRef<[u64]>> StoredFunction<Strings<M>, W> {
    fn entries(&self) -> Entries<'_, M> {
        let Parameters { function, function_words } = self.parameters();
        let (words, strings) = self.words()[COMMON_WORDS..].split_at(*function_words);
        let (records, bytes) = strings.split_at(RECORD * function.header.keys as usize + 1);
        Entries { function: Lookup { words, parameters: function }, records, bytes }
    }

    /// Returns the function that numbers the keys.
    pub fn function(&self) -> PerfectHash<M, &[u64]> {
        let function = self.entries().function;
        PerfectHash::trusted(function.words, function.parameters.clone())
    }

    /// Whether `key` is in the map.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.get(key).is_some()
    }

    /// Returns the value of `key`.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<u64> {
        let (entries, key) = (self.entries(), Bytes(key.as_ref()));
        if self.is_empty() {
            return None;
        }
        entries.value(M::get(entries.function, M::hash(&key, self.seed())), key.0)
    }

    /// Returns the value of each key, on all threads of the current rayon pool; a few thousand keys stay on the calling
    /// thread. The cache misses of a batch overlap.
    pub fn get_bulk<K: AsRef<[u8]> + Sync>(&self, keys: &[K]) -> Vec<Option<u64>> {
        let mut values = in_huge_pages(vec![None; keys.len()]);
        if self.is_empty() {
            return values;
        }
        let (entries, seed) = (self.entries(), self.seed());
        in_chunks::<1, _, _>(keys, &mut values, |keys, values| {
            for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
                let (mut hashes, mut numbers) = ([Hash128::default(); BATCH], [0; BATCH]);
                let (hashes, numbers) = (&mut hashes[..keys.len()], &mut numbers[..keys.len()]);
                hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = M::hash(&Bytes(key), seed));
                M::get_batch(entries.function, hashes, numbers);
                numbers.iter().for_each(|&number| prefetch(entries.records, RECORD as u64 * number));
                numbers.iter().for_each(|&number| prefetch(entries.bytes, entries.record(number)[0] / 8));
                for ((value, key), &number) in values.iter_mut().zip(keys).zip(&*numbers) {
                    *value = entries.value(number, key.as_ref());
                }
            }
        });
        values
    }

    /// Returns all keys with their values, in the order of the keys' numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        let entries = self.entries();
        (0..self.len() as usize).map(move |number| (entries.key(number as u64), entries.record(number as u64)[1]))
    }
}

/// Contents of a map.
#[derive(Clone, Copy)]
struct Entries<'a, M: HashKind> {
    function: Lookup<'a, M>,
    records: &'a [u64],
    bytes: &'a [u64],
}

impl<'a, M: HashKind> Entries<'a, M> {
    /// Returns a record, which begins with the start of the key's bytes. `number` is below the number of keys.
    #[inline(always)]
    fn record(&self, number: u64) -> [u64; RECORD] {
        let at = RECORD * number as usize;
        [self.records[at], self.records[at + 1]]
    }

    /// Returns the key with this number, or no bytes if the map is damaged.
    #[inline(always)]
    fn key(&self, number: u64) -> &'a [u8] {
        let [start, end] = [0, RECORD].map(|skip| self.records[RECORD * number as usize + skip] as usize);
        bytemuck::cast_slice(self.bytes).get(start..end).unwrap_or_default()
    }

    /// Returns the value of the key with this number if it is `key`.
    #[inline(always)]
    fn value(&self, number: u64, key: &[u8]) -> Option<u64> {
        (self.key(number) == key).then(|| self.record(number)[1])
    }
}

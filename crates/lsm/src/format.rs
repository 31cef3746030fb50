//! Saved dictionaries: the header of [`warpset_base::file`], then a directory of the levels, then their arrays as they lie in
//! memory. Byte for byte in `docs/formats.md`.
//!
//! A loader checks the invariants of the levels too, not only the checksum: no bytes make a dictionary that breaks them.

use std::io::{Read, Write};
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use warpset_base::file::{self, FIELDS, FileError, Saved};
use warpset_base::words::{AlignedWords, OutOfMemory};

use crate::builder::Settings;
use crate::cpu::History;
use crate::invariants::{check_places, check_run};
use crate::level::{Level, LevelIndex};
use crate::run::{Elements, Run};
use crate::{CleanupPolicy, Error, Lsm, OrderedKey, SortedArray, Value};

#[cfg(feature = "serde")]
mod serde;

/// The numbers of the structures in headers.
pub(crate) const LSM: u16 = 32;
pub(crate) const SORTED_ARRAY: u16 = 33;
/// Arrays begin at multiples of this many words, so of 64 bytes.
const ALIGNMENT: usize = 8;
/// Levels that there can be at most.
const MAX_LEVELS: u64 = 80;
/// In an entry of the directory: the level has a bitmap of tombstones.
const HAS_TOMBSTONES: u64 = 1 << 32;

/// The saved words of a dictionary, or those that are to be saved.
pub(crate) struct Image<K, V, const STRUCTURE: u16> {
    fields: [u64; FIELDS],
    words: AlignedWords<u64>,
    elements: PhantomData<(K, V)>,
}

impl<K: OrderedKey, V: Value, const STRUCTURE: u16> Saved for Image<K, V, STRUCTURE> {
    const STRUCTURE: u16 = STRUCTURE;
    const NAME: &'static str = if STRUCTURE == LSM { "log-structured merge tree" } else { "sorted array" };
    type Word = u64;
    type Layout = [u64; FIELDS];
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<[u64; FIELDS], Error> {
        let [key_bytes, value_bytes, ..] = fields;
        let (expected_key_bytes, expected_value_bytes) = (size_of::<K>() as u64, size_of::<V>() as u64);
        if (key_bytes, value_bytes) != (expected_key_bytes, expected_value_bytes) {
            let (known_key, known_value) = (matches!(key_bytes, 4 | 8), matches!(value_bytes, 0 | 4 | 8));
            return Err(match (known_key, known_value) {
                (false, _) => FileError::InvalidHeader { field: "bytes of a key", value: key_bytes }.into(),
                (_, false) => FileError::InvalidHeader { field: "bytes of a value", value: value_bytes }.into(),
                _ => Error::OtherElements { key_bytes, value_bytes, expected_key_bytes, expected_value_bytes },
            });
        }
        if STRUCTURE == LSM {
            settings_of(&fields)?;
        } else if let Some(&value) = fields[2..FIELDS - 1].iter().find(|&&field| field != 0) {
            return Err(FileError::InvalidHeader { field: "unused parameters", value }.into());
        }
        Ok(fields)
    }

    fn words_of(fields: &[u64; FIELDS]) -> u64 {
        fields[FIELDS - 1]
    }

    fn fields(&self) -> [u64; FIELDS] {
        self.fields
    }

    fn saved_words(&self) -> &[u64] {
        self.words.as_slice()
    }

    fn check(fields: &[u64; FIELDS], words: &[u64]) -> Result<(), Error> {
        let places = directory::<K, V>(words)?;
        for place in &places {
            let bitmap = place.bitmap(words);
            check_run(place.index, &place.run::<K, V>(words), bitmap)?;
            if place.padding::<K, V>(words).any(|word| word != 0) {
                return Err(Error::Invalid {
                    level: place.index.0,
                    what: "the padding is not zero after",
                    place: place.len as u64,
                });
            }
        }
        if STRUCTURE == LSM {
            let settings = settings_of(fields)?;
            return check_places(settings.batch_size, places.iter().map(|place| (place.index, place.len)));
        }
        match &places[..] {
            [] => Ok(()),
            [place] if place.index.0 == 0 && place.len > 0 && place.tombstones.is_none() => {
                match place.run::<K, V>(words).keys.windows(2).position(|two| two[0] == two[1]) {
                    Some(at) => Err(Error::Invalid { level: 0, what: "there is a copy of", place: at as u64 }),
                    None => Ok(()),
                }
            }
            _ => Err(FileError::InvalidHeader { field: "levels", value: places.len() as u64 }.into()),
        }
    }

    fn from_saved(fields: [u64; FIELDS], words: AlignedWords<u64>) -> Self {
        Image { fields, words, elements: PhantomData }
    }
}

/// The settings in the parameters of a tree.
fn settings_of(fields: &[u64; FIELDS]) -> Result<Settings, Error> {
    let &[_, _, batch_size, policy, number, live, ..] = fields;
    let cleanup = match policy {
        0 if number == 0 => CleanupPolicy::Manual,
        1 => CleanupPolicy::StaleShare(f64::from_bits(number)),
        2 => CleanupPolicy::EveryBatches(number),
        _ => return Err(FileError::InvalidHeader { field: "cleanup policy", value: policy }.into()),
    };
    if live > isize::MAX as u64 {
        return Err(FileError::InvalidHeader { field: "elements at the last cleanup", value: live }.into());
    }
    Settings { batch_size, cleanup }.check()
}

/// Where a level is in the words.
pub(crate) struct Place {
    pub index: LevelIndex,
    pub len: usize,
    keys: Range<usize>,
    values: Range<usize>,
    tombstones: Option<Range<usize>>,
}

impl Place {
    pub fn run<'a, K: OrderedKey, V: Value>(&self, words: &'a [u64]) -> Run<'a, K, V> {
        let keys = &bytemuck::cast_slice(&words[self.keys.clone()])[..self.len];
        let values = V::from_bytes(bytemuck::cast_slice(&words[self.values.clone()]), self.len);
        Run::new(keys, values, self.bitmap(words))
    }

    fn bitmap<'a>(&self, words: &'a [u64]) -> Option<&'a [u32]> {
        let words = &words[self.tombstones.clone()?];
        Some(&bytemuck::cast_slice(words)[..self.len.div_ceil(32)])
    }

    /// The bytes after each array up to the next one.
    fn padding<'a, K, V>(&self, words: &'a [u64]) -> impl Iterator<Item = u8> + 'a {
        let arrays = [
            (self.keys.clone(), self.len * size_of::<K>()),
            (self.values.clone(), self.len * size_of::<V>()),
            (self.tombstones.clone().unwrap_or_default(), 4 * self.len.div_ceil(32)),
        ];
        arrays.into_iter().flat_map(|(array, used)| {
            let bytes: &[u8] = bytemuck::cast_slice(&words[array]);
            bytes.get(used..).unwrap_or_default().iter().copied()
        })
    }
}

/// Words of an array of this many bytes.
fn array_words(bytes: usize) -> usize {
    bytes.div_ceil(8).next_multiple_of(ALIGNMENT)
}

/// Words of the directory of this many levels.
fn directory_words(levels: usize) -> usize {
    (1 + 2 * levels).next_multiple_of(ALIGNMENT)
}

/// Reads where the levels are. Whatever the words say, the places are within them.
pub(crate) fn directory<K: OrderedKey, V: Value>(words: &[u64]) -> Result<Vec<Place>, Error> {
    let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
    let levels = words.first().copied().unwrap_or(u64::MAX);
    if levels > MAX_LEVELS || directory_words(levels as usize) > words.len() {
        return invalid("levels", levels);
    }
    let levels = levels as usize;
    let mut at = directory_words(levels);
    if let Some(&value) = words[1 + 2 * levels..at].iter().find(|&&word| word != 0) {
        return invalid("padding", value);
    }
    let mut places = Vec::with_capacity(levels);
    for entry in words[1..1 + 2 * levels].chunks_exact(2) {
        let (index, len) = (entry[0], entry[1]);
        // Each element takes four bytes at least, so lengths that pass cannot overflow below.
        if len / 2 > words.len() as u64 {
            return invalid("length of a level", len);
        }
        if index & !HAS_TOMBSTONES >= MAX_LEVELS {
            return invalid("index of a level", index);
        }
        let len = len as usize;
        let mut array = |bytes: usize| {
            let begin = at;
            at += array_words(bytes);
            begin..at
        };
        let keys = array(len * size_of::<K>());
        let values = array(len * size_of::<V>());
        let tombstones = (index & HAS_TOMBSTONES != 0).then(|| array(4 * len.div_ceil(32)));
        if at > words.len() {
            return invalid("length of a level", len as u64);
        }
        places.push(Place { index: LevelIndex(index as u32), len, keys, values, tombstones });
    }
    if at != words.len() {
        return invalid("payload bytes", 8 * words.len() as u64);
    }
    Ok(places)
}

impl<K: OrderedKey, V: Value, const STRUCTURE: u16> Image<K, V, STRUCTURE> {
    /// The image of levels, with all parameters but the first two and the last.
    fn new(levels: &[Arc<Level<K, V>>], middle: [u64; FIELDS - 3]) -> Result<Self, OutOfMemory> {
        let levels: Vec<&Level<K, V>> =
            levels.iter().map(|level| &**level).filter(|level| level.elements.len() > 0).collect();
        let arrays = |elements: &Elements<K, V>| {
            let len = elements.len();
            let bitmap = elements.tombstones.as_ref().map_or(0, |words| 4 * words.len());
            [len * size_of::<K>(), len * size_of::<V>(), bitmap].map(array_words)
        };
        let payload: usize = levels.iter().flat_map(|level| arrays(&level.elements)).sum();
        let directory = directory_words(levels.len());
        let mut words = AlignedWords::zeroed((directory + payload) as u64)?;
        let (head, mut rest) = words.as_mut_slice().split_at_mut(directory);
        head[0] = levels.len() as u64;
        for (level, entry) in levels.iter().zip(head[1..].chunks_exact_mut(2)) {
            let Elements { keys, values, tombstones } = &level.elements;
            let flag = if tombstones.is_some() { HAS_TOMBSTONES } else { 0 };
            entry.copy_from_slice(&[u64::from(level.index.0) | flag, values.len() as u64]);
            let bytes: [&[u8]; 3] = [
                bytemuck::cast_slice(keys.as_slice()),
                bytes_of(values),
                bytemuck::cast_slice(tombstones.as_deref().unwrap_or_default()),
            ];
            for (bytes, words) in bytes.into_iter().zip(arrays(&level.elements)) {
                let (array, after) = rest.split_at_mut(words);
                bytemuck::cast_slice_mut(array)[..bytes.len()].copy_from_slice(bytes);
                rest = after;
            }
        }
        let mut fields = [0; FIELDS];
        fields[..2].copy_from_slice(&[size_of::<K>() as u64, size_of::<V>() as u64]);
        fields[2..FIELDS - 1].copy_from_slice(&middle);
        fields[FIELDS - 1] = (directory + payload) as u64;
        Ok(Image { fields, words, elements: PhantomData })
    }

    /// Levels with memory of their own; the image has been checked.
    fn levels(&self) -> Result<Vec<Arc<Level<K, V>>>, Error> {
        let words = self.words.as_slice();
        let level = |place: Place| {
            let run = place.run::<K, V>(words);
            let bitmap = place.bitmap(words);
            let mut elements = Elements::zeroed(run.len(), bitmap.is_some())?;
            elements.keys.as_mut_slice().copy_from_slice(run.keys);
            elements.values.copy_from_slice(run.values);
            if let (Some(to), Some(bitmap)) = (&mut elements.tombstones, bitmap) {
                to.copy_from_slice(bitmap);
            }
            Ok(Arc::new(Level::new(place.index, elements)))
        };
        directory::<K, V>(words)?.into_iter().map(level).collect()
    }
}

/// The bytes of values; none of units.
fn bytes_of<V: Value>(values: &[V]) -> &[u8] {
    if size_of::<V>() == 0 { &[] } else { bytemuck::cast_slice(values) }
}

/// A type with an image.
pub(crate) trait Imaged: Sized {
    type Image: Saved<Word = u64, Error = Error>;
    fn image(&self) -> Result<Self::Image, OutOfMemory>;
    fn from_image(image: Self::Image) -> Result<Self, Error>;
}

impl<K: OrderedKey, V: Value> Imaged for Lsm<K, V> {
    type Image = Image<K, V, LSM>;

    fn image(&self) -> Result<Self::Image, OutOfMemory> {
        let (policy, number) = match self.cleanup_policy() {
            CleanupPolicy::Manual => (0, 0),
            CleanupPolicy::StaleShare(share) => (1, share.to_bits()),
            CleanupPolicy::EveryBatches(every) => (2, every),
        };
        let History { live_at_cleanup, updates } = self.history;
        Image::new(self.levels(), [self.batch_size(), policy, number, live_at_cleanup, updates])
    }

    fn from_image(image: Self::Image) -> Result<Self, Error> {
        let settings = settings_of(&image.fields)?;
        let history = History { live_at_cleanup: image.fields[5], updates: image.fields[6] };
        Ok(Lsm::from_levels(settings, image.levels()?, history))
    }
}

impl<K: OrderedKey, V: Value> Imaged for SortedArray<K, V> {
    type Image = Image<K, V, SORTED_ARRAY>;

    fn image(&self) -> Result<Self::Image, OutOfMemory> {
        Image::new(self.levels(), [0; FIELDS - 3])
    }

    fn from_image(image: Self::Image) -> Result<Self, Error> {
        let level = image.levels()?.into_iter().next();
        let elements = level.and_then(Arc::into_inner).map(|level| level.elements);
        Ok(SortedArray::from_live(elements.map_or_else(|| Elements::zeroed(0, false), Ok)?))
    }
}

macro_rules! saved {
    ($type:ident) => {
        /// Saving and loading.
        impl<K: OrderedKey, V: Value> $type<K, V> {
            /// Writes header and payload.
            ///
            /// # Errors
            /// What the writer says, and [`Error::OutOfMemory`]: the payload is put together in memory first.
            pub fn write_to<W: Write>(&self, mut writer: W) -> Result<(), Error> {
                file::write_to(&self.image()?, &mut writer)
            }

            /// Reads what `write_to` wrote, and not a byte more. Memory grows with what arrives, whatever the header claims.
            ///
            /// # Errors
            /// [`Error::File`], [`Error::OtherElements`], [`Error::Invalid`].
            pub fn read_from<R: Read>(mut reader: R) -> Result<Self, Error> {
                Self::from_image(file::read_from(&mut reader, 0)?)
            }

            /// The saved form in memory.
            ///
            /// # Errors
            /// [`Error::OutOfMemory`].
            pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
                Ok(file::to_bytes(&self.image()?))
            }

            /// Reads the saved form; bytes after its end are an error.
            ///
            /// # Errors
            /// As for `read_from`.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
                Self::from_image(file::from_bytes(bytes)?)
            }

            /// Writes a file: under another name first, then renamed, so that a reader never sees half of it.
            ///
            /// # Errors
            /// As for `write_to`.
            pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
                file::save(&self.image()?, path.as_ref())
            }

            /// Reads a file.
            ///
            /// # Errors
            /// As for `read_from`.
            pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
                Self::from_image(file::load(path.as_ref())?)
            }
        }
    };
}
saved!(Lsm);
saved!(SortedArray);

/// The words of a saved tree or array in bytes, without a copy; checked, or but for what is needed to find the levels.
pub(crate) fn view<K: OrderedKey, V: Value>(bytes: &[u8], verified: bool) -> Result<&[u64], Error> {
    fn words_of<S: Saved<Word = u64>>(bytes: &[u8], verified: bool) -> Result<&[u64], S::Error> {
        let (_, words) = if verified { file::view::<S>(bytes)? } else { file::view_unverified::<S>(bytes)? };
        Ok(words)
    }
    match words_of::<Image<K, V, LSM>>(bytes, verified) {
        Err(Error::File(FileError::WrongStructure { found: SORTED_ARRAY, .. })) => {
            words_of::<Image<K, V, SORTED_ARRAY>>(bytes, verified)
        }
        result => result,
    }
}

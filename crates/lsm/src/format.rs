//! Saved dictionaries: the header of [`warpset_base::file`], then a directory of the levels, then their arrays as they lie in
//! memory. Byte for byte in `docs/formats.md`.
//!
//! A loader checks the invariants of the levels too, not only the checksum: no bytes make a dictionary that breaks them.

use std::io::{Read, Write};
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use warpset_base::file::{self, FIELDS, FileError, HEADER_BYTES, Payload, Saved};
use warpset_base::words::{AlignedWords, OutOfMemory};

use crate::cpu::Ordered;
use crate::form::{Array, Tree};
use crate::invariants::check_run;
use crate::level::{Level, LevelIndex};
use crate::run::{Elements, Run};
use crate::{Error, OrderedKey, Value};

mod form;
mod parts;
#[cfg(feature = "serde")]
mod serde;

pub use form::SavedForm;
use parts::Parts;

/// The numbers of the structures in headers.
pub(crate) const LSM: u16 = 32;
pub(crate) const SORTED_ARRAY: u16 = 33;
/// Arrays begin at multiples of this many words, so of 64 bytes.
const ALIGNMENT: usize = 8;
/// Levels that there can be at most.
const MAX_LEVELS: u64 = 80;
/// In an entry of the directory: the level has a bitmap of tombstones.
const HAS_TOMBSTONES: u64 = 1 << 32;

/// The saved words of a dictionary.
pub(crate) struct Image<K, V, F> {
    fields: [u64; FIELDS],
    words: AlignedWords<u64>,
    elements: PhantomData<(K, V, F)>,
}

impl<K: OrderedKey, V: Value, F: SavedForm> Saved for Image<K, V, F> {
    const STRUCTURE: u16 = F::STRUCTURE;
    const NAME: &'static str = F::NAME;
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
        F::of(&fields)?;
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
        F::of(fields)?.check::<K, V>(&places, words)
    }

    fn from_saved(fields: [u64; FIELDS], words: AlignedWords<u64>) -> Self {
        Image { fields, words, elements: PhantomData }
    }
}

/// Where a level is in the words.
pub struct Place {
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

    /// Whether the level has a bitmap of tombstones.
    pub fn has_tombstones(&self) -> bool {
        self.tombstones.is_some()
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

/// A level with memory of its own.
type OwnLevel<K, V> = (LevelIndex, Elements<K, V>);

impl<K: OrderedKey, V: Value, F> Image<K, V, F> {
    /// Levels with memory of their own; the image has been checked.
    fn levels(&self) -> Result<Vec<OwnLevel<K, V>>, Error> {
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
            Ok((place.index, elements))
        };
        directory::<K, V>(words)?.into_iter().map(level).collect()
    }
}

/// The bytes of values; none of units.
fn bytes_of<V: Value>(values: &[V]) -> &[u8] {
    if size_of::<V>() == 0 { &[] } else { bytemuck::cast_slice(values) }
}

/// Saving and loading.
impl<K: OrderedKey, V: Value, F: SavedForm> Ordered<K, V, F> {
    /// Writes header and payload, each level from where it is.
    ///
    /// # Errors
    /// [`Error::File`] with what the writer says.
    pub fn write_to<W: Write>(&self, mut writer: W) -> Result<(), Error> {
        let parts = Parts::of(self.levels());
        let fields = parts.fields::<K, V>(self.form.parameters());
        Ok(file::write_payload_to(F::STRUCTURE, fields, &parts, &mut writer)?)
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
        let mut bytes = Vec::new();
        let len = HEADER_BYTES + Parts::of(self.levels()).bytes() as usize;
        bytes.try_reserve_exact(len).map_err(|_| OutOfMemory { bytes: len as u64 })?;
        self.write_to(&mut bytes)?;
        Ok(bytes)
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
        let parts = Parts::of(self.levels());
        let fields = parts.fields::<K, V>(self.form.parameters());
        Ok(file::save_payload(F::STRUCTURE, fields, &parts, path.as_ref())?)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As for `read_from`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_image(file::load(path.as_ref())?)
    }

    fn from_image(image: Image<K, V, F>) -> Result<Self, Error> {
        let (form, mut levels) = (F::of(&image.fields)?, image.levels()?);
        if F::ALWAYS_CLEAN {
            let only = levels.pop().map(|(_, elements)| Ordered::from_live(form, elements));
            return Ok(only.unwrap_or_else(|| Ordered::empty(form)));
        }
        let levels = levels.into_iter().map(|(index, elements)| Arc::new(Level::new(index, elements)));
        Ok(Ordered::from_levels(form, levels.collect()))
    }
}

/// The words of a saved tree or array in bytes, without a copy; checked, or but for what is needed to find the levels.
pub(crate) fn view<K: OrderedKey, V: Value>(bytes: &[u8], verified: bool) -> Result<&[u64], Error> {
    fn words_of<S: Saved<Word = u64>>(bytes: &[u8], verified: bool) -> Result<&[u64], S::Error> {
        let (_, words) = if verified { file::view::<S>(bytes)? } else { file::view_unverified::<S>(bytes)? };
        Ok(words)
    }
    match words_of::<Image<K, V, Tree>>(bytes, verified) {
        Err(Error::File(FileError::WrongStructure { found: SORTED_ARRAY, .. })) => {
            words_of::<Image<K, V, Array>>(bytes, verified)
        }
        result => result,
    }
}

//! Saved dictionaries: the header of [`warpset_base::file`], then a directory of the levels, then their arrays as in
//! memory. Every byte is described in `docs/formats.md`.
//!
//! A loader checks the checksum and the invariants of the levels: no bytes load as a dictionary that breaks them.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use warpset_base::file::{
    self, BYTE_STRING, FIELDS, FileError, FileKind, Payload, PayloadReader, SIGNED, Saved, SavedType,
};
use warpset_base::words::{AlignedWords, OutOfMemory};

use crate::cpu::{Dictionary, Snapshot};
use crate::element::MOST_VALUE_BYTES;
use crate::invariants::check_run;
use crate::level::{Level, LevelIndex};
use crate::policy::{ArrayPolicy, TreePolicy};
use crate::run::{Elements, Run};
use crate::{Error, OrderedKey, Value};

mod parts;
mod policy;

use parts::Parts;
pub use policy::SavedPolicy;

/// Alignment of arrays, in words: 64 bytes.
const ALIGNMENT: usize = 8;
/// Largest number of levels.
const MAX_LEVELS: u64 = 80;
/// Flag of a directory entry: the level has a bitmap of tombstones.
const HAS_TOMBSTONES: u64 = 1 << 32;

/// Returns the type of the keys as stored in the header.
fn key_field<K: OrderedKey>() -> u64 {
    size_of::<K>() as u64 | K::KIND
}

/// Returns the type of the values as stored in the header.
fn value_field<V: Value>() -> u64 {
    size_of::<V>() as u64
}

impl<K: OrderedKey, V: Value, P: SavedPolicy> Saved for Dictionary<K, V, P> {
    const STRUCTURE: FileKind = P::STRUCTURE;
    const NAME: &'static str = P::NAME;
    type Word = u64;
    type Layout = [u64; FIELDS];
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<[u64; FIELDS], Error> {
        let [key, value, ..] = fields;
        let numbers = [4, 8, 16];
        let is_number = numbers.contains(&key) || numbers.map(|bytes| SIGNED | bytes).contains(&key);
        if !is_number && !(BYTE_STRING | 1..=BYTE_STRING | 16).contains(&key) {
            return Err(FileError::InvalidHeader { field: "bytes of a key", value: key }.into());
        }
        if value > MOST_VALUE_BYTES as u64 {
            return Err(FileError::InvalidHeader { field: "bytes of a value", value }.into());
        }
        let saved = |elements| SavedType { number: P::STRUCTURE.number, elements: Some(elements) };
        let (expected, found) = (saved([key_field::<K>(), value_field::<V>()]), saved([key, value]));
        if found != expected {
            return Err(FileError::WrongStructure { expected, found }.into());
        }
        P::of(&fields)?;
        Ok(fields)
    }

    fn words_of(fields: &[u64; FIELDS]) -> u64 {
        fields[FIELDS - 1]
    }

    fn fields(&self) -> [u64; FIELDS] {
        Parts::of(self.levels()).fields::<K, V>(self.policy.parameters())
    }

    fn payload(&self) -> impl Payload + '_ {
        Parts::of(self.levels())
    }

    fn check(fields: &[u64; FIELDS], words: &[u64]) -> Result<(), Error> {
        let places = directory::<K, V>(words)?;
        for place in &places {
            let bitmap = place.bitmap(words);
            check_run(place.index, &place.run::<K, V>(words), bitmap)?;
            if place.padding::<K, V>(words).any(|word| word != 0) {
                return Err(padding_is_not_zero(place));
            }
        }
        let keys_of_first = places.first().map_or(&[][..], |place| place.run::<K, V>(words).keys);
        P::of(fields)?.check(&places, keys_of_first)
    }

    fn from_saved(fields: [u64; FIELDS], words: AlignedWords<u64>) -> Result<Self, Error> {
        let words = words.as_slice();
        let places = directory::<K, V>(words)?;
        let levels = places.iter().map(|place| Ok((place.index, place.elements(words)?)));
        Ok(of_levels(P::of(&fields)?, levels.collect::<Result<_, Error>>()?))
    }

    fn read(fields: [u64; FIELDS], payload: &mut PayloadReader<'_>) -> Result<Self, Error> {
        let (places, levels) = match read_levels::<K, V>(payload) {
            // The contents are judged only after the checksum.
            Err(error @ (Error::Invalid { .. } | Error::File(FileError::InvalidHeader { .. }))) => {
                payload.verify()?;
                return Err(error);
            }
            read => read?,
        };
        payload.verify()?;
        for (index, elements) in &levels {
            check_run(*index, &elements.run(), elements.tombstones.as_deref())?;
        }
        let policy = P::of(&fields)?;
        policy.check(&places, levels.first().map_or(&[], |(_, elements)| elements.keys.as_slice()))?;
        Ok(of_levels(policy, levels))
    }
}

/// Returns a dictionary of these levels, which have been checked.
fn of_levels<K: OrderedKey, V: Value, P: SavedPolicy>(
    policy: P,
    levels: Vec<(LevelIndex, Elements<K, V>)>,
) -> Dictionary<K, V, P> {
    let mut levels = levels.into_iter();
    if P::ALWAYS_CLEAN {
        let only = levels.next().map(|(_, elements)| Dictionary::from_live(policy, elements));
        return only.unwrap_or_else(|| Dictionary::empty(policy));
    }
    Dictionary::from_levels(policy, levels.map(|(index, elements)| Arc::new(Level::new(index, elements))).collect())
}

/// Result of [`read_levels`].
type ReadLevels<K, V> = (Vec<LevelExtent>, Vec<(LevelIndex, Elements<K, V>)>);

/// Reads the levels into their final memory, without data derived from them.
fn read_levels<K: OrderedKey, V: Value>(payload: &mut PayloadReader<'_>) -> Result<ReadLevels<K, V>, Error> {
    let words = payload.left() / 8;
    let mut head = payload.items::<u64>(words.min(ALIGNMENT as u64))?;
    let levels = head.first().map_or(0, |&levels| levels.min(MAX_LEVELS));
    let more = words.min(directory_words(levels as usize) as u64) - head.len() as u64;
    head.extend(payload.items::<u64>(more)?);
    let places = directory_within::<K, V>(&head, words as usize)?;
    let mut read = Vec::with_capacity(places.len());
    for place in &places {
        let keys = payload.words::<K>(place.len as u64)?;
        skip_padding(payload, place, place.len * size_of::<K>())?;
        let values = if size_of::<V>() == 0 { V::zeroed_vec(place.len)? } else { payload.items(place.len as u64)? };
        skip_padding(payload, place, place.len * size_of::<V>())?;
        let bitmap_words = place.len.div_ceil(32);
        let tombstones = match place.has_tombstones() {
            true => Some(payload.items::<u32>(bitmap_words as u64)?),
            false => None,
        };
        skip_padding(payload, place, tombstones.as_ref().map_or(0, |words| 4 * words.len()))?;
        read.push((place.index, Elements { keys, values, tombstones }));
    }
    Ok((places, read))
}

/// Reads the zeros between an array of `bytes` bytes and the next one.
fn skip_padding(payload: &mut PayloadReader<'_>, place: &LevelExtent, bytes: usize) -> Result<(), Error> {
    let mut padding = [0; 8 * ALIGNMENT];
    let padding = &mut padding[..8 * array_words(bytes) - bytes];
    payload.bytes(padding)?;
    if padding.iter().any(|&byte| byte != 0) {
        return Err(padding_is_not_zero(place));
    }
    Ok(())
}

fn padding_is_not_zero(place: &LevelExtent) -> Error {
    Error::Invalid { level: place.index.0, what: "the padding is not zero after", place: place.len as u64 }
}

warpset_base::saved_methods! {
    [K: OrderedKey, V: Value, P: SavedPolicy] Dictionary<K, V, P>, Error;
}

/// Saving.
impl<K: OrderedKey, V: Value, P: SavedPolicy> Snapshot<K, V, P> {
    /// Returns the dictionary at the time of the snapshot.
    fn dictionary(&self) -> Dictionary<K, V, P> {
        self.with_policy(self.policy.0)
    }

    /// Writes header and payload, as the dictionary does.
    ///
    /// # Errors
    /// [`FileError::Io`] with the writer's error.
    pub fn write_to<W: io::Write>(&self, writer: W) -> Result<(), Error> {
        self.dictionary().write_to(writer)
    }

    /// Returns the saved form.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.dictionary().to_bytes()
    }

    /// Writes a file, as the dictionary does.
    ///
    /// # Errors
    /// [`FileError::At`] with the path and the system's error.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.dictionary().save(path)
    }
}

/// Place of a level in the words.
pub struct LevelExtent {
    pub index: LevelIndex,
    pub len: usize,
    keys: Range<usize>,
    values: Range<usize>,
    tombstones: Option<Range<usize>>,
}

impl LevelExtent {
    pub fn run<'a, K: OrderedKey, V: Value>(&self, words: &'a [u64]) -> Run<'a, K, V> {
        let keys: &[u8] = bytemuck::cast_slice(&words[self.keys.clone()]);
        let keys = bytemuck::cast_slice(&keys[..self.len * size_of::<K>()]);
        let values = V::from_bytes(bytemuck::cast_slice(&words[self.values.clone()]), self.len);
        Run::new(keys, values, self.bitmap(words))
    }

    /// Copies the level's elements; the words have been checked.
    fn elements<K: OrderedKey, V: Value>(&self, words: &[u64]) -> Result<Elements<K, V>, OutOfMemory> {
        let (run, bitmap) = (self.run::<K, V>(words), self.bitmap(words));
        let mut elements = Elements::zeroed(run.len(), bitmap.is_some())?;
        elements.keys.as_mut_slice().copy_from_slice(run.keys);
        elements.values.copy_from_slice(run.values);
        if let (Some(to), Some(bitmap)) = (&mut elements.tombstones, bitmap) {
            to.copy_from_slice(bitmap);
        }
        Ok(elements)
    }

    /// Whether the level has a bitmap of tombstones.
    pub fn has_tombstones(&self) -> bool {
        self.tombstones.is_some()
    }

    fn bitmap<'a>(&self, words: &'a [u64]) -> Option<&'a [u32]> {
        let words = &words[self.tombstones.clone()?];
        Some(&bytemuck::cast_slice(words)[..self.len.div_ceil(32)])
    }

    /// Returns the bytes between each array and the next one.
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

/// Returns the number of words of an array of `bytes` bytes.
fn array_words(bytes: usize) -> usize {
    bytes.div_ceil(8).next_multiple_of(ALIGNMENT)
}

/// Returns the number of words of the directory of `levels` levels.
fn directory_words(levels: usize) -> usize {
    (1 + 2 * levels).next_multiple_of(ALIGNMENT)
}

/// Reads the places of the levels. They are within the words, whatever the words contain.
pub(crate) fn directory<K: OrderedKey, V: Value>(words: &[u64]) -> Result<Vec<LevelExtent>, Error> {
    directory_within::<K, V>(words, words.len())
}

/// Reads the [`directory`] of a payload of `in_all` words; `words` contains at least the directory.
fn directory_within<K: OrderedKey, V: Value>(words: &[u64], in_all: usize) -> Result<Vec<LevelExtent>, Error> {
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
        // Each element takes at least one byte, so lengths that pass this check cannot overflow below.
        if len / 8 > in_all as u64 {
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
        if at > in_all {
            return invalid("length of a level", len as u64);
        }
        places.push(LevelExtent { index: LevelIndex(index as u32), len, keys, values, tombstones });
    }
    if at != in_all {
        return invalid("payload bytes", 8 * in_all as u64);
    }
    Ok(places)
}

/// Returns the words of a saved tree or array in `bytes`, without a copy: fully checked if `verified`, otherwise only
/// as far as needed to find the levels.
pub(crate) fn view<K: OrderedKey, V: Value>(bytes: &[u8], verified: bool) -> Result<&[u64], Error> {
    fn words_of<S: Saved<Word = u64>>(bytes: &[u8], verified: bool) -> Result<&[u64], S::Error> {
        let (_, words) = if verified { file::view::<S>(bytes)? } else { file::view_unverified::<S>(bytes)? };
        Ok(words)
    }
    // The words follow the header, which is a multiple of any alignment long, so aligned bytes have aligned words.
    let alignment = align_of::<K>().max(align_of::<V>());
    if alignment > align_of::<u64>() && !bytes.as_ptr().addr().is_multiple_of(alignment) {
        return Err(FileError::Misaligned { alignment }.into());
    }
    match words_of::<Dictionary<K, V, TreePolicy>>(bytes, verified) {
        Err(Error::File(FileError::WrongStructure { found, .. })) if found.number == FileKind::SORTED_ARRAY.number => {
            words_of::<Dictionary<K, V, ArrayPolicy>>(bytes, verified)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Lsm, SortedArray};

    #[test]
    fn snapshots_save_the_dictionary_of_their_time() {
        let mut lsm = Lsm::<u32, u64>::builder().build().unwrap();
        let mut array = SortedArray::<u32, u64>::builder().build_from(&[3, 1], &[30, 10]).unwrap();
        for keys in [[1, 2], [2, 9]] {
            lsm.insert_bulk(&keys, &[5, 7]).unwrap();
        }
        let (tree_before, array_before) = (lsm.clone(), array.clone());
        let (tree_then, array_then) = (lsm.snapshot(), array.snapshot());
        lsm.remove_bulk(&[1, 2]).unwrap();
        array.insert_bulk(&[7], &[70]).unwrap();
        assert!(lsm != tree_before && array != array_before);
        assert_eq!(tree_then.to_bytes(), tree_before.to_bytes());
        assert_eq!(array_then.to_bytes(), array_before.to_bytes());

        let path = std::env::temp_dir().join(format!("warpset-snapshot-{}", std::process::id()));
        tree_then.save(&path).unwrap();
        assert!(Lsm::<u32, u64>::load(&path).unwrap() == tree_before);
        std::fs::remove_file(&path).unwrap();
        let mut written = Vec::new();
        array_then.write_to(&mut written).unwrap();
        assert!(SortedArray::<u32, u64>::from_bytes(&written).unwrap() == array_before);
    }
}

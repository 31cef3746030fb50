//! Saved form of the levels of a dictionary, written without copying them.

use std::io;
use std::sync::Arc;

use warpset_base::file::{FIELDS, Payload};

use super::{ALIGNMENT, HAS_TOMBSTONES, array_words, key_field, value_field};
use crate::element::bytes_of;
use crate::level::Level;
use crate::run::Elements;
use crate::{OrderedKey, Value};

/// Saved form of the levels of a dictionary, borrowed from it.
pub(super) struct Parts<'a> {
    directory: Vec<u64>,
    /// Arrays of all levels.
    arrays: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    pub(super) fn of<K: OrderedKey, V: Value>(levels: &'a [Arc<Level<K, V>>]) -> Self {
        let levels = levels.iter().filter(|level| level.elements.len() > 0);
        let mut directory = vec![levels.clone().count() as u64];
        let mut arrays = Vec::new();
        for level in levels {
            let Elements { keys, values, tombstones } = &level.elements;
            let flag = if tombstones.is_some() { HAS_TOMBSTONES } else { 0 };
            directory.extend([u64::from(level.index.0) | flag, values.len() as u64]);
            arrays.extend([bytemuck::cast_slice(keys.as_slice()), bytes_of(values)]);
            arrays.extend(tombstones.as_deref().map(bytemuck::cast_slice::<u32, u8>));
        }
        directory.resize(directory.len().next_multiple_of(ALIGNMENT), 0);
        Parts { directory, arrays }
    }

    /// Returns the parameters of the header; `middle` are all except the first two and the last.
    pub(super) fn fields<K: OrderedKey, V: Value>(&self, middle: [u64; FIELDS - 3]) -> [u64; FIELDS] {
        let mut fields = [0; FIELDS];
        fields[..2].copy_from_slice(&[key_field::<K>(), value_field::<V>()]);
        fields[2..FIELDS - 1].copy_from_slice(&middle);
        fields[FIELDS - 1] = self.bytes() / 8;
        fields
    }
}

impl Payload for Parts<'_> {
    fn bytes(&self) -> u64 {
        let words: usize = self.arrays.iter().map(|array| array_words(array.len())).sum();
        8 * (self.directory.len() + words) as u64
    }

    fn each(&self, to: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        to(bytemuck::cast_slice(&self.directory))?;
        self.arrays.iter().try_for_each(|array| {
            to(array)?;
            to(&[0; 8 * ALIGNMENT][..8 * array_words(array.len()) - array.len()])
        })
    }
}

//! The payload of a saved structure as it arrives, part by part, with its checksum.

use std::io::Read;

use bytemuck::Pod;
use xxhash_rust::xxh3::Xxh3;

use super::{CHECKSUM_AT, FIRST_READ_BYTES, FileError, HEADER_BYTES, Header, HeaderBytes, read_exact, read_words};
use crate::words::{AlignedWords, OutOfMemory, zeroed_vec};

/// Chunk size for skipping.
const SKIPPED: usize = 1 << 16;

/// Payload of a saved structure, read part by part; all bytes read go into the checksum.
pub struct PayloadReader<'r> {
    reader: &'r mut dyn Read,
    hasher: Xxh3,
    expected: u64,
    /// Bytes read, the header's included, and bytes in all.
    read: u64,
    needed: u64,
    /// Bytes of the payload that are surely there.
    available: u64,
}

impl<'r> PayloadReader<'r> {
    pub(super) fn new(reader: &'r mut dyn Read, bytes: &HeaderBytes, header: &Header, available: u64) -> Self {
        let mut hasher = Xxh3::new();
        hasher.update(&bytes[..CHECKSUM_AT]);
        let (read, needed) = (HEADER_BYTES as u64, HEADER_BYTES as u64 + header.payload_bytes);
        PayloadReader { reader, hasher, expected: header.checksum, read, needed, available }
    }

    /// Returns the bytes that have not been read.
    pub fn left(&self) -> u64 {
        self.needed - self.read
    }

    /// Reads the next `len` items, which are within the payload, and allocates memory as bytes arrive.
    ///
    /// # Errors
    /// [`FileError::Truncated`], [`FileError::OutOfMemory`], [`FileError::Io`].
    pub fn words<T: Pod>(&mut self, len: u64) -> Result<AlignedWords<T>, FileError> {
        let bytes = len * size_of::<T>() as u64;
        let words = read_words(self.reader, len, self.available, self.read).map_err(|error| self.in_all(error))?;
        self.note(bytemuck::cast_slice(words.as_slice()), bytes);
        Ok(words)
    }

    /// Reads like [`words`](Self::words), into memory of any alignment.
    ///
    /// # Errors
    /// The errors of [`words`](Self::words).
    pub fn items<T: Pod>(&mut self, len: u64) -> Result<Vec<T>, FileError> {
        let size = size_of::<T>() as u64;
        let mut items: Vec<T> = zeroed_vec(len.min(self.available.max(FIRST_READ_BYTES) / size))?;
        let mut filled = 0;
        loop {
            let free = bytemuck::cast_slice_mut(&mut items[filled..]);
            let before = self.read + size * filled as u64;
            read_exact(self.reader, free, before, self.needed)?;
            filled = items.len();
            if filled as u64 == len {
                self.note(bytemuck::cast_slice(&items), size * len);
                return Ok(items);
            }
            let more = len.min(2 * filled as u64) as usize - filled;
            items.try_reserve_exact(more).map_err(|_| OutOfMemory { bytes: size * (filled + more) as u64 })?;
            items.resize(filled + more, T::zeroed());
        }
    }

    /// Reads the next bytes into memory of the caller.
    ///
    /// # Errors
    /// [`FileError::Truncated`], [`FileError::Io`].
    pub fn bytes(&mut self, to: &mut [u8]) -> Result<(), FileError> {
        read_exact(self.reader, to, self.read, self.needed)?;
        self.note(to, to.len() as u64);
        Ok(())
    }

    /// Reads the remaining bytes, and compares the checksum.
    ///
    /// # Errors
    /// [`FileError::Corrupted`], [`FileError::Truncated`], [`FileError::Io`].
    pub fn verify(&mut self) -> Result<(), FileError> {
        let mut skipped = [0; SKIPPED];
        while self.left() > 0 {
            let len = self.left().min(SKIPPED as u64) as usize;
            self.bytes(&mut skipped[..len])?;
        }
        match self.hasher.digest() {
            found if found == self.expected => Ok(()),
            found => Err(FileError::Corrupted { expected: self.expected, found }),
        }
    }

    fn note(&mut self, bytes: &[u8], len: u64) {
        self.hasher.update(bytes);
        self.read += len;
        self.available = self.available.saturating_sub(len);
    }

    /// Converts an error about missing bytes of a part into one about the whole file.
    fn in_all(&self, error: FileError) -> FileError {
        match error {
            FileError::Truncated { found, .. } => FileError::Truncated { needed: self.needed, found },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "minutes: megabytes, so that memory grows while they are read")]
    fn parts_come_whole_whatever_is_known_to_be_there() {
        let payload: Vec<u8> = (0..3_000_003u32).map(|i| ((i * 7) >> 3) as u8).collect();
        let bytes = [0; HEADER_BYTES];
        let checksum = Header::checksum_of(&bytes, &payload);
        let header = Header { payload_bytes: payload.len() as u64, fields: [0; 8], checksum };
        for available in [0, 1 << 21, payload.len() as u64] {
            let mut source = &payload[..];
            let mut reader = PayloadReader::new(&mut source, &bytes, &header, available);
            assert!(
                bytemuck::cast_slice::<u16, u8>(reader.words::<u16>(700_000).unwrap().as_slice())
                    == &payload[..1_400_000]
            );
            assert!(reader.items::<[u8; 3]>(500_000).unwrap().as_flattened() == &payload[1_400_000..2_900_000]);
            assert_eq!(reader.left(), 100_003);
            let mut two = [0; 2];
            reader.bytes(&mut two).unwrap();
            assert_eq!(two, payload[2_900_000..2_900_002]);
            reader.verify().unwrap();
            let mut short = &payload[..2_000_000];
            let mut reader = PayloadReader::new(&mut short, &bytes, &header, available);
            let cut = reader.items::<u64>(300_000).unwrap_err();
            let all = HEADER_BYTES as u64;
            assert!(
                matches!(cut, FileError::Truncated { needed, found } if needed == all + 3_000_003 && found == all + 2_000_000)
            );
        }
        let mut source = &payload[..];
        let damaged = Header { checksum: checksum ^ 1, ..header };
        let mut reader = PayloadReader::new(&mut source, &bytes, &damaged, 0);
        assert!(matches!(reader.verify(), Err(FileError::Corrupted { .. })));
    }
}

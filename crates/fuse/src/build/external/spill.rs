//! Hashes on disk, alone or with values, spread over ranges by their high bits. One temporary file takes pieces of all
//! ranges in the order in which their buffers fill up; the places of the pieces stay in memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::Error;
use crate::build::item::Item;

/// Bits of a hash that say its range.
const RANGE_BITS: u32 = 8;
/// Hashes in a buffer, at least and at most.
const BUFFER: std::ops::RangeInclusive<u64> = 1 << 8..=1 << 15;

/// Hashes, first in buffers, then in a file.
pub(super) struct Spill<T> {
    /// The seed of the hashes.
    pub seed: u64,
    file: File,
    /// Hashes in the file.
    written: u64,
    /// Hashes in a buffer.
    room: usize,
    ranges: Vec<Range<T>>,
    len: u64,
}

struct Range<T> {
    buffer: Vec<T>,
    /// The first hash of each piece in the file, and how many there are.
    pieces: Vec<(u64, u32)>,
}

impl<T: Item> Spill<T> {
    /// Returns a spill with buffers of about `memory` bytes.
    pub(super) fn new(folder: &Path, memory: u64, seed: u64) -> Result<Spill<T>, Error> {
        let room = ((memory / size_of::<T>() as u64) >> RANGE_BITS).clamp(*BUFFER.start(), *BUFFER.end()) as usize;
        Ok(Spill {
            seed,
            file: tempfile::tempfile_in(folder)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?,
            written: 0,
            room,
            ranges: (0..1 << RANGE_BITS).map(|_| Range { buffer: Vec::new(), pieces: Vec::new() }).collect(),
            len: 0,
        })
    }

    /// Hashes in all ranges.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Adds a hash.
    #[inline]
    pub(super) fn push(&mut self, item: T) -> Result<(), Error> {
        let index = (item.hash() >> (64 - RANGE_BITS)) as usize;
        let buffer = &mut self.ranges[index].buffer;
        if buffer.capacity() == 0 {
            buffer.reserve_exact(self.room);
        }
        buffer.push(item);
        self.len += 1;
        if buffer.len() == self.room { self.write(index) } else { Ok(()) }
    }

    fn write(&mut self, index: usize) -> Result<(), Error> {
        let Range { buffer, pieces } = &mut self.ranges[index];
        self.file.write_all(bytemuck::cast_slice(buffer))?;
        pieces.push((self.written, buffer.len() as u32));
        self.written += buffer.len() as u64;
        buffer.clear();
        Ok(())
    }

    /// Writes what is left in the buffers and gives their memory back.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        for index in 0..self.ranges.len() {
            if !self.ranges[index].buffer.is_empty() {
                self.write(index)?;
            }
            self.ranges[index].buffer = Vec::new();
        }
        Ok(())
    }

    /// Gives the hashes from `first` to `last` of a finished spill to `take`, piece by piece, until it says no.
    pub(super) fn read(
        &mut self,
        first: u64,
        last: u64,
        take: &mut dyn FnMut(&[T]) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut hashes = Vec::new();
        let ranges = (first >> (64 - RANGE_BITS)) as usize..=(last >> (64 - RANGE_BITS)) as usize;
        for range in &self.ranges[ranges] {
            for &(begin, len) in &range.pieces {
                hashes.resize(len as usize, T::zeroed());
                self.file.seek(SeekFrom::Start(size_of::<T>() as u64 * begin))?;
                self.file.read_exact(bytemuck::cast_slice_mut(&mut hashes))?;
                hashes.retain(|item| (first..=last).contains(&item.hash()));
                if !take(&hashes)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::hash::finalise;

    #[test]
    fn ranges_give_back_what_went_in() {
        for n in [0, 1, 1000, 200_000u64] {
            let mut spill = Spill::new(&std::env::temp_dir(), 1 << 18, 3).unwrap();
            (0..n).for_each(|i| spill.push(finalise(i)).unwrap());
            spill.finish().unwrap();
            assert_eq!(spill.len(), n);
            for (first, last) in [(0, u64::MAX), (0, 1 << 62), (7 << 50, 9 << 58), (1 << 63, 1 << 63)] {
                let mut back = Vec::new();
                let mut take = |hashes: &[u64]| {
                    back.extend_from_slice(hashes);
                    Ok(true)
                };
                spill.read(first, last, &mut take).unwrap();
                back.sort_unstable();
                let mut expected: Vec<u64> =
                    (0..n).map(finalise).filter(|hash| (first..=last).contains(hash)).collect();
                expected.sort_unstable();
                assert!(back == expected);
            }
        }
    }
}

//! Hashes on disk, divided into ranges of their high half.
//!
//! One temporary file takes blocks of all ranges in the order in which they fill up; the positions of each range's
//! blocks stay in memory. A file per range would need too many open files. Few hashes stay in the buffers.

use crate::Error;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use warpset_base::key::Hash128;

/// The most ranges: more would make the blocks of a typical buffer too small for a disk.
const MOST_RANGES: u64 = 1024;
/// Least hashes in a block: 16 KiB.
const LEAST_BLOCK: usize = 1 << 10;
/// Most hashes in a block: 256 KiB.
const LARGEST_BLOCK: usize = 1 << 14;

/// Hashes, first in buffers, then in a file.
pub(super) struct Spill {
    file: File,
    /// Blocks in the file.
    blocks: u64,
    /// Hashes in a block.
    block: usize,
    buffers: Vec<Range>,
    /// The high half at which the first range begins.
    first: u64,
    /// Bits of the high half that vary within a range.
    shift: u32,
    /// Bits of the high half that vary within all ranges together.
    bits: u32,
    len: u64,
}

#[derive(Default)]
struct Range {
    buffer: Vec<[u64; 2]>,
    /// Full blocks in the file.
    blocks: Vec<u32>,
    /// Hashes in a last block that is not full, and the number of that block.
    last: Option<(u32, usize)>,
}

impl Spill {
    /// Makes a spill for hashes with any high half; `bits` is 64. The buffers use at most half of `memory`.
    pub(super) fn new(folder: &Path, memory: u64, bits: u32) -> Result<Self, Error> {
        Self::over(folder, memory, 0, bits)
    }

    fn over(folder: &Path, memory: u64, first: u64, bits: u32) -> Result<Self, Error> {
        let buffers = memory / 2 / size_of::<Hash128>() as u64;
        let ranges = (buffers / LEAST_BLOCK as u64).clamp(2, MOST_RANGES.min(1 << bits.min(63)));
        let log_ranges = ranges.ilog2();
        let block = ((buffers >> log_ranges) as usize).clamp(LEAST_BLOCK, LARGEST_BLOCK);
        Ok(Self {
            file: tempfile::tempfile_in(folder)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?,
            blocks: 0,
            block,
            buffers: (0..1 << log_ranges).map(|_| Range::default()).collect(),
            first,
            shift: bits - log_ranges,
            bits,
            len: 0,
        })
    }

    /// Makes a spill for the hashes of one range.
    pub(super) fn finer(&self, folder: &Path, memory: u64, range: usize) -> Result<Self, Error> {
        Self::over(folder, memory, self.limits(range).0, self.shift)
    }

    /// Whether these are all hashes and not those of one range.
    pub(super) fn is_everything(&self) -> bool {
        self.bits == 64
    }

    /// Returns the number of hashes in all ranges.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Adds a hash, which must belong to one of the ranges.
    #[inline]
    pub(super) fn push(&mut self, hash: Hash128) -> Result<(), Error> {
        let index = ((hash.high - self.first) >> self.shift) as usize;
        let buffer = &mut self.buffers[index].buffer;
        if buffer.capacity() == 0 {
            buffer.reserve_exact(self.block);
        }
        buffer.push([hash.high, hash.low]);
        self.len += 1;
        if buffer.len() == self.block {
            let block = self.write(index)?;
            self.buffers[index].blocks.push(block);
        }
        Ok(())
    }

    /// Appends a range's buffer to the file, as one block, and empties it. The missing part of a block is a hole.
    fn write(&mut self, index: usize) -> Result<u32, Error> {
        let block = u32::try_from(self.blocks).map_err(|_| std::io::Error::from(std::io::ErrorKind::FileTooLarge))?;
        let range = &mut self.buffers[index];
        let missing = (self.block - range.buffer.len()) * size_of::<[u64; 2]>();
        self.file.write_all(bytemuck::cast_slice(&range.buffer))?;
        if missing > 0 {
            self.file.seek(SeekFrom::Current(missing as i64))?;
        }
        range.buffer.clear();
        self.blocks += 1;
        Ok(block)
    }

    /// Writes the rest of the buffers and frees their memory, unless they are to be kept.
    pub(super) fn finish(&mut self, keep: bool) -> Result<(), Error> {
        if keep {
            return Ok(());
        }
        for index in 0..self.buffers.len() {
            let count = self.buffers[index].buffer.len();
            if count > 0 {
                let block = self.write(index)?;
                self.buffers[index].last = Some((block, count));
            }
            self.buffers[index].buffer = Vec::new();
        }
        Ok(())
    }

    /// Returns the number of ranges.
    pub(super) fn ranges(&self) -> usize {
        self.buffers.len()
    }

    /// Returns the least and the largest high half of a range.
    pub(super) fn limits(&self, range: usize) -> (u64, u64) {
        let first = self.first + ((range as u64) << self.shift);
        (first, first + ((1 << self.shift) - 1))
    }

    /// Returns the number of hashes in a range, once finished.
    pub(super) fn count(&self, range: usize) -> u64 {
        let range = &self.buffers[range];
        let last = range.last.map_or(range.buffer.len(), |(_, count)| count);
        range.blocks.len() as u64 * self.block as u64 + last as u64
    }

    /// Passes on the hashes of a finished range, block by block.
    pub(super) fn read(
        &mut self,
        range: usize,
        mut take: impl FnMut(&[Hash128]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let range = &self.buffers[range];
        let mut words = Vec::new();
        let mut hashes = Vec::new();
        let mut give = |words: &[[u64; 2]]| {
            hashes.clear();
            hashes.extend(words.iter().map(|&[high, low]| Hash128 { high, low }));
            take(&hashes)
        };
        let full = range.blocks.iter().map(|&block| (block, self.block));
        for (block, count) in full.chain(range.last) {
            let bytes = (self.block * size_of::<[u64; 2]>()) as u64;
            words.resize(count, [0; 2]);
            self.file.seek(SeekFrom::Start(u64::from(block) * bytes))?;
            self.file.read_exact(bytemuck::cast_slice_mut(&mut words))?;
            give(&words)?;
        }
        give(&range.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(n: u64) -> Vec<Hash128> {
        (0..n).map(|i| Hash128 { high: i.wrapping_mul(0x9e37_79b9_7f4a_7c15), low: i }).collect()
    }

    #[test]
    fn ranges_give_back_what_went_in() {
        let folder = std::env::temp_dir();
        for (n, keep) in [0, 1, 1000, 300_000].into_iter().flat_map(|n| [(n, false), (n, true)]) {
            let mut spill = Spill::new(&folder, 1 << 18, 64).unwrap();
            spread(n).iter().for_each(|hash| spill.push(*hash).unwrap());
            spill.finish(keep).unwrap();
            let mut back = Vec::new();
            for range in 0..spill.ranges() {
                let (limits, from) = (spill.limits(range), back.len());
                spill
                    .read(range, |hashes| {
                        back.extend_from_slice(hashes);
                        Ok(())
                    })
                    .unwrap();
                assert_eq!((back.len() - from) as u64, spill.count(range));
                assert!(back[from..].iter().all(|hash| (limits.0..=limits.1).contains(&hash.high)));
            }
            back.sort_unstable_by_key(|hash| hash.low);
            assert!(back == spread(n));
        }
    }

    #[test]
    fn a_range_is_spread_again_until_nothing_is_left_to_tell_hashes_apart() {
        let folder = std::env::temp_dir();
        let mut spill = Spill::new(&folder, 1 << 18, 64).unwrap();
        let mut last = 64;
        while spill.shift > 0 {
            let range = spill.ranges() - 1;
            spill = spill.finer(&folder, 1 << 18, range).unwrap();
            assert!(spill.shift < last && !spill.is_everything());
            last = spill.shift;
            spill.push(Hash128 { high: u64::MAX, low: 0 }).unwrap();
            spill.finish(false).unwrap();
            assert_eq!(spill.count(spill.ranges() - 1), 1);
        }
    }
}

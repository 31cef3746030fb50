//! The blocks of a split-block filter as Velox, and with it Presto, keeps them.
//!
//! Hash, choice of the block and bits are Parquet's; the eight words of a block are in another order, because Velox
//! lists the salts in ascending order. Source: Velox, `velox/common/base/SplitBlockBloomFilter.h` (`makeSaltsVec`), on
//! processors with registers of 256 bits; with registers of 128 bits its blocks have half of the salts and are not
//! supported.

use warpset_core::bloom::split_block::{BLOCK_BYTES, SALT, WORDS_PER_BLOCK};

use crate::layout::engine::Word;
use crate::{Error, PhysicalType, SplitBlockBloom, SplitBlockLayout, View};

/// Word `i` of a block there is word `ORDER[i]` here.
const ORDER: [usize; WORDS_PER_BLOCK] = [5, 1, 0, 7, 4, 2, 6, 3];

// The salts ascend in that order.
const _: () = {
    let mut i = 1;
    while i < WORDS_PER_BLOCK {
        assert!(SALT[ORDER[i - 1]] < SALT[ORDER[i]]);
        i += 1;
    }
};

impl View<'_, SplitBlockLayout> {
    /// Returns the blocks in Velox's order of words, little-endian, without any header.
    ///
    /// ```
    /// use warpset_bloom::{PhysicalType, SplitBlockBloom};
    ///
    /// let filter: SplitBlockBloom = ["a", "b"].into_iter().collect();
    /// let blocks = filter.view().velox_bitset();
    /// assert_eq!(SplitBlockBloom::from_velox_bitset(&blocks, PhysicalType::ByteArray)?, filter);
    /// # Ok::<(), warpset_bloom::Error>(())
    /// ```
    pub fn velox_bitset(&self) -> Vec<u8> {
        let (blocks, _) = self.words().as_chunks::<WORDS_PER_BLOCK>();
        blocks.iter().flat_map(|block| ORDER.map(|word| block[word].get().to_le_bytes())).flatten().collect()
    }
}

impl SplitBlockBloom {
    /// Returns a filter from blocks in Velox's order of words; their length must be a multiple of 32 bytes. `column`
    /// tells how integers hash: Velox hashes none itself, so this depends on the writer of the filter.
    ///
    /// # Errors
    /// [`Error::Parquet`] for a length that no filter has.
    pub fn from_velox_bitset(blocks: &[u8], column: PhysicalType) -> Result<SplitBlockBloom, Error> {
        let mut bitset = blocks.to_vec();
        let (theirs, _) = blocks.as_chunks::<BLOCK_BYTES>();
        for (block, theirs) in bitset.as_chunks_mut::<BLOCK_BYTES>().0.iter_mut().zip(theirs) {
            for (word, bytes) in ORDER.into_iter().zip(theirs.as_chunks::<4>().0) {
                block[4 * word..][..4].copy_from_slice(bytes);
            }
        }
        SplitBlockBloom::from_bitset(&bitset, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Velox's salts, as its header lists them.
    const VELOX_SALTS: [u32; 8] =
        [0x2df1_424b, 0x4497_4d91, 0x47b6_137b, 0x5c6b_fb31, 0x7054_95c7, 0x8824_ad5b, 0x9efc_4947, 0xa2b7_289d];

    /// Inserts a hash as the definition of `SplitBlockBloomFilter::insert` does.
    fn insert(blocks: &mut [[u32; 8]], hash: u64) {
        let block = ((hash >> 32) * blocks.len() as u64) >> 32;
        for (word, salt) in blocks[block as usize].iter_mut().zip(VELOX_SALTS) {
            *word |= 1 << (salt.wrapping_mul(hash as u32) >> 27);
        }
    }

    #[test]
    fn the_blocks_are_those_that_velox_fills() {
        let layout = SplitBlockLayout::new(77).unwrap();
        let mut filter = crate::Builder::with_layout(layout).build().unwrap();
        let mut blocks = [[0u32; 8]; 77];
        for key in 0..5000u64 {
            filter.insert(key);
            insert(&mut blocks, layout.hash(key).0);
        }
        let theirs: Vec<u8> = blocks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        assert!(filter.view().velox_bitset() == theirs);
        assert!(SplitBlockBloom::from_velox_bitset(&theirs, PhysicalType::Int64).unwrap() == filter);
    }

    #[test]
    fn wrong_lengths_are_typed_errors() {
        for bytes in [0, 1, 31, 33] {
            let blocks = vec![0; bytes];
            let read = SplitBlockBloom::from_velox_bitset(&blocks, PhysicalType::Int64);
            assert!(matches!(read, Err(Error::Parquet { .. })), "{bytes}");
        }
    }
}

//! Parquet's split-block layout on the CPU: one AVX2 register per block.

use warpset_base::file::FileKind;
use warpset_base::processor::Avx512;
use warpset_core::bloom::{split_block, split_block::WORDS_PER_BLOCK};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::Layout;
use super::engine::{Engine, OneBlock, Word};
use crate::{Error, FileError, Hashed, Key, PhysicalType, rates};
use warpset_base::processor::prefetch;

/// Parameters of a [`SplitBlockBloom`](crate::SplitBlockBloom): the number of 256-bit blocks, and how integers hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SplitBlockLayout {
    blocks: u64,
    int32: bool,
}

impl SplitBlockLayout {
    /// Returns a filter of `blocks` blocks of 32 bytes, 1 to 2^32 of them. Integers hash by their value in eight bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::ZeroCapacity`].
    pub fn new(blocks: u64) -> Result<SplitBlockLayout, Error> {
        match blocks {
            0 => Err(Error::ZeroCapacity),
            1..=split_block::MAX_BLOCKS => Ok(SplitBlockLayout { blocks, int32: false }),
            _ => {
                let bytes = |blocks: u64| blocks.saturating_mul(split_block::BLOCK_BYTES as u64);
                Err(Error::TooLarge { bytes: bytes(blocks), limit: bytes(split_block::MAX_BLOCKS) })
            }
        }
    }

    /// Returns this layout for the keys of a Parquet column: for one of type INT32, integers of any type hash as four
    /// bytes.
    pub fn for_column(self, column: PhysicalType) -> SplitBlockLayout {
        SplitBlockLayout { int32: column == PhysicalType::Int32, ..self }
    }

    /// Whether integers hash as those of a Parquet column of type INT32.
    pub fn is_int32(&self) -> bool {
        self.int32
    }

    /// Returns the hash of a key for these filters. [`Hashed`] keys pass unchanged, so inserting or looking up this
    /// hash equals inserting or looking up the key: hash once for many filters, or keep hashes until there are enough
    /// for a filter.
    ///
    /// ```
    /// use warpset_bloom::{SplitBlockBloom, SplitBlockLayout};
    ///
    /// let layout = SplitBlockLayout::new(100)?;
    /// let filter: SplitBlockBloom = ["a", "b"].into_iter().collect();
    /// assert!(filter.contains(layout.hash("a")));
    /// # Ok::<(), warpset_bloom::Error>(())
    /// ```
    #[inline]
    pub fn hash(&self, key: impl Key) -> Hashed {
        Hashed(self.probe(&key))
    }

    /// Refuses a column that hashes integers in another way.
    pub(crate) fn check_column(&self, column: PhysicalType) -> Result<(), Error> {
        match column {
            PhysicalType::Int32 if !self.int32 => Err(Error::ColumnMismatch { column, bytes: 8 }),
            PhysicalType::Int64 if self.int32 => Err(Error::ColumnMismatch { column, bytes: 4 }),
            _ => Ok(()),
        }
    }
}

impl Layout for SplitBlockLayout {
    const STRUCTURE: FileKind = FileKind::SPLIT_BLOCK_BLOOM;
    const NAME: &'static str = "SplitBlockBloom";

    fn blocks(&self) -> u64 {
        self.blocks
    }
    fn words_per_block(&self) -> usize {
        WORDS_PER_BLOCK
    }
    fn bits_per_block(&self) -> u64 {
        256
    }
    fn hashes(&self) -> u32 {
        8
    }
    fn expected_fpr(&self, keys: u64) -> f64 {
        rates::split_block_fpr(self.blocks, keys)
    }
    fn predicted_fill(&self, keys: u64) -> f64 {
        rates::blocked_fill(rates::SPLIT_BLOCK, keys as f64 / self.blocks as f64)
    }
}

/// A word of a bitset, which in a Parquet file lies at any address.
type Unaligned = [u8; 4];

/// Returns a block's words.
#[inline(always)]
fn block_at(words: &[Unaligned], block: usize) -> [u32; WORDS_PER_BLOCK] {
    words.as_chunks::<WORDS_PER_BLOCK>().0[block].map(Word::get)
}

impl Engine for SplitBlockLayout {
    type Probe = u64;
    type Word = Unaligned;
    const LOOKUP_NS: f64 = 4.0;

    #[inline(always)]
    fn probe<K: Key + ?Sized>(&self, key: &K) -> u64 {
        if self.int32 { key.int32_hash() } else { key.xxh64() }
    }
    #[inline(always)]
    fn probe_batch<K: Key>(&self, keys: &[K], probes: &mut [u64]) {
        match Avx512::detect() {
            // Integers: XXH64 takes five multiplications of 64 bits, which are done eight at a time there.
            Some(avx512) if K::CHEAP => avx512.run(|| self.probe_each(keys, probes)),
            _ => self.probe_each(keys, probes),
        }
    }
    #[inline(always)]
    fn hash_of(probe: &u64) -> u64 {
        *probe
    }
    #[inline(always)]
    fn prefetch(&self, words: &[Unaligned], probe: &u64) {
        prefetch(words, self.block_of(probe) as usize * WORDS_PER_BLOCK);
    }
    #[inline]
    fn contains(&self, words: &[Unaligned], probe: &u64) -> bool {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was just detected.
            return unsafe { avx2::contains(words, self.blocks, *probe) };
        }
        split_block::covers(&block_at(words, self.block_of(probe) as usize), &split_block::block_mask(*probe))
    }
    #[inline]
    fn contains_batch(&self, words: &[Unaligned], probes: &[u64]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if Avx512::detect().is_some() {
            // SAFETY: the processor has what an `Avx512` is a proof of.
            return unsafe { avx512::contains_batch(words, self.blocks, probes, &[]) };
        }
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was just detected.
            return unsafe { avx2::contains_batch(words, self.blocks, probes) };
        }
        self.contains_batch_portable(words, probes)
    }
    #[inline]
    fn contains_batch_before(&self, words: &[Unaligned], probes: &[u64], next: &[u64]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if Avx512::detect().is_some() {
            // SAFETY: the processor has what an `Avx512` is a proof of.
            return unsafe { avx512::contains_batch(words, self.blocks, probes, next) };
        }
        self.prefetch_batch(words, next);
        self.contains_batch(words, probes)
    }
    fn folded(&self, factor: u64) -> Result<Self, Error> {
        fold_blocks(self.blocks, factor).map(|blocks| SplitBlockLayout { blocks, ..*self })
    }
    fn folded_from(&self, new: u64, part: u64, factor: u64) -> u64 {
        new * factor + part
    }
    fn block_rate(&self, block: &[Unaligned]) -> f64 {
        block.iter().map(|w| w.get().count_ones() as f64 / 32.0).product()
    }
    fn cardinality(&self, ones: u64) -> f64 {
        let shape = warpset_core::bloom::blocked::BlockShape::of::<256, 32, 8>();
        self.blocks as f64 * rates::blocked_mean_at_fill(shape, ones as f64 / self.settable_bits() as f64)
    }
    fn difference(&self, other: &Self) -> Option<(&'static str, u64, u64)> {
        let fields = [
            ("bytes", 4 * self.words(), 4 * other.words()),
            ("bytes hashed of an integer", self.integer_bytes(), other.integer_bytes()),
        ];
        fields.into_iter().find(|(_, left, right)| left != right)
    }
    fn to_fields(&self) -> [u64; 8] {
        [self.blocks, self.int32.into(), 0, 0, 0, 0, 0, 0]
    }
    fn from_fields(fields: [u64; 8]) -> Result<Self, Error> {
        let [blocks, int32, unused @ ..] = fields;
        super::zero_fields(&unused)?;
        let invalid = |field, value| Error::from(FileError::InvalidHeader { field, value });
        let layout = SplitBlockLayout::new(blocks).map_err(|_| invalid("blocks", blocks))?;
        match int32 {
            0 | 1 => Ok(SplitBlockLayout { int32: int32 == 1, ..layout }),
            _ => Err(invalid("hash of integers", int32)),
        }
    }
}

impl SplitBlockLayout {
    /// Returns the number of bytes of an integer that are hashed.
    fn integer_bytes(&self) -> u64 {
        if self.int32 { 4 } else { 8 }
    }

    /// Hashes keys one after the other. Inlined, so that it is compiled for the instructions of its caller.
    #[inline(always)]
    fn probe_each<K: Key>(&self, keys: &[K], probes: &mut [u64]) {
        if self.int32 {
            for (probe, key) in probes.iter_mut().zip(keys) {
                *probe = key.int32_hash();
            }
        } else {
            for (probe, key) in probes.iter_mut().zip(keys) {
                *probe = key.xxh64();
            }
        }
    }

    /// Looks probes up on machines without AVX2; see [`Engine::contains_batch`].
    fn contains_batch_portable(&self, words: &[Unaligned], probes: &[u64]) -> u64 {
        let mut bits = 0;
        for (i, probe) in probes.iter().enumerate() {
            let block = block_at(words, self.block_of(probe) as usize);
            bits |= (split_block::covers(&block, &split_block::block_mask(*probe)) as u64) << i;
        }
        bits
    }

    /// Inserts probes on machines without AVX2; see [`OneBlock::insert_and_tell`].
    fn insert_and_tell_portable(&self, words: &mut [u32], first_block: u64, probes: &[u64]) -> u64 {
        let mut changed = 0;
        for (i, probe) in probes.iter().enumerate() {
            changed |= (self.insert_portable(words, first_block, *probe) as u64) << i;
        }
        changed
    }

    /// Inserts a probe on machines without AVX2; see [`OneBlock::insert`].
    #[inline(always)]
    fn insert_portable(&self, words: &mut [u32], first_block: u64, probe: u64) -> bool {
        let index = (self.block_of(&probe) - first_block) as usize;
        let block = &mut words.as_chunks_mut::<WORDS_PER_BLOCK>().0[index];
        let mask = split_block::block_mask(probe);
        let changed = !split_block::covers(block, &mask);
        for (word, bit) in block.iter_mut().zip(mask) {
            *word |= bit;
        }
        changed
    }
}

impl OneBlock for SplitBlockLayout {
    #[inline(always)]
    fn block_of(&self, probe: &u64) -> u64 {
        split_block::block_of(*probe, self.blocks)
    }
    #[inline]
    fn insert(&self, words: &mut [u32], first_block: u64, probe: &u64) -> bool {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was just detected.
            return unsafe { avx2::insert(words, first_block, self.blocks, *probe) };
        }
        self.insert_portable(words, first_block, *probe)
    }
    #[inline]
    fn insert_batch(&self, words: &mut [u32], first_block: u64, probes: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was just detected.
            return unsafe { avx2::insert_batch(words, first_block, self.blocks, probes) };
        }
        for probe in probes {
            self.insert_portable(words, first_block, *probe);
        }
    }
    #[inline]
    fn insert_and_tell(&self, words: &mut [u32], first_block: u64, probes: &[u64]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was just detected.
            return unsafe { avx2::insert_and_tell(words, first_block, self.blocks, probes) };
        }
        self.insert_and_tell_portable(words, first_block, probes)
    }
}

/// Returns the block count after folding by `factor`.
pub(crate) fn fold_blocks(blocks: u64, factor: u64) -> Result<u64, Error> {
    if factor == 0 || !blocks.is_multiple_of(factor) {
        return Err(Error::CannotFold { blocks, factor });
    }
    Ok(blocks / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_and_portable_code_set_and_see_the_same_bits() {
        let layout = SplitBlockLayout::new(13).unwrap();
        let (mut vector, mut portable) = (vec![0u32; 13 * 8], vec![0u32; 13 * 8]);
        let hashes: Vec<u64> = (0..64).map(warpset_core::hash::finalise).collect();
        layout.insert_batch(&mut vector, 0, &hashes[..40]);
        for hash in &hashes[..40] {
            layout.insert_portable(&mut portable, 0, *hash);
        }
        assert_eq!(vector, portable);
        let vector: &[Unaligned] = bytemuck::cast_slice(&vector);
        for length in (0..=64).step_by(if cfg!(miri) { 16 } else { 1 }) {
            let hashes = &hashes[..length];
            let expected = layout.contains_batch_portable(vector, hashes);
            assert_eq!(layout.contains_batch(vector, hashes), expected, "{length}");
            assert_eq!(layout.contains_batch_before(vector, hashes, &hashes[length / 2..]), expected, "{length}");
            #[cfg(target_arch = "x86_64")]
            if std::is_x86_feature_detected!("avx2") {
                // SAFETY: AVX2 was just detected.
                assert_eq!(unsafe { avx2::contains_batch(vector, 13, hashes) }, expected, "{length}");
            }
        }
        for (i, hash) in hashes.iter().enumerate() {
            assert_eq!(layout.contains(vector, hash), layout.contains_batch(vector, &hashes) >> i & 1 == 1);
        }
    }

    #[test]
    fn hashes_of_a_batch_are_those_of_its_keys() {
        for int32 in [false, true] {
            let layout = SplitBlockLayout { blocks: 1, int32 };
            let keys: Vec<i64> = (0..64u64).map(|i| warpset_core::hash::finalise(i) as i64 >> (i % 60)).collect();
            let mut probes = vec![0; 64];
            layout.probe_batch(&keys, &mut probes);
            assert_eq!(probes, keys.iter().map(|key| layout.probe(key)).collect::<Vec<_>>());
            let narrow: Vec<i32> = keys.iter().map(|&key| key as i32).collect();
            layout.probe_batch(&narrow[..13], &mut probes[..13]);
            assert_eq!(probes[..13], narrow[..13].iter().map(|key| layout.probe(key)).collect::<Vec<_>>());
        }
    }
}

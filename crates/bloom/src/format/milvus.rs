//! The envelope in which Milvus takes split-block filters: `MBF1`, for its expression `bloom_match(field, {filter})`.
//!
//! Hash, blocks and bits are Parquet's. All numbers are little-endian. Source: the description in Milvus' Go client
//! (`client/sbbf`) and its golden vectors, which the tests have.
//!
//! ```text
//! offset  bytes
//!      0      4  "MBF1"
//!      4      2  version, 1
//!      6      2  algorithm, 1: split blocks, XXH64 with seed 0
//!      8      8  number of keys, as declared
//!     16      8  rate of false positives (f64), as declared
//!     24      4  number of blocks: a power of two, up to 128 MiB of blocks
//!     28      1  kinds of keys that are in the filter: bit 0 integers, bit 1 strings
//!     29      3  zero
//!     32         blocks
//! ```

use warpset_core::bloom::split_block::BLOCK_BYTES;

use crate::layout::engine::Word;
use crate::{Error, Layout, PhysicalType, SplitBlockBloom, SplitBlockLayout, View, rates};

const MAGIC: &[u8; 4] = b"MBF1";
/// The version, then the algorithm.
const VERSION: [u8; 4] = [1, 0, 1, 0];
const HEADER: usize = 32;
/// The most blocks of a filter.
const MOST_BLOCKS: u64 = (128 << 20) / BLOCK_BYTES as u64;
const INTEGERS: u8 = 1;
const STRINGS: u8 = 2;

/// Header fields of a Milvus filter beside its size.
///
/// Milvus queries a filter for a field only if the field's type of keys is declared: a filter that declares neither
/// type matches nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MilvusHeader {
    /// Number of keys in the filter; Milvus shows it and does not rely on it.
    pub keys: u64,
    /// The rate of false positives that it was made for; Milvus shows it, and does not rely on it.
    pub fpr: f64,
    /// Whether integers are among the keys.
    pub integers: bool,
    /// Whether strings are among the keys.
    pub strings: bool,
}

fn wrong(what: &'static str) -> Error {
    Error::Milvus { what }
}

/// Refuses a number of blocks that no Milvus filter has.
fn check_blocks(blocks: u64) -> Result<(), Error> {
    if blocks.is_power_of_two() && blocks <= MOST_BLOCKS {
        Ok(())
    } else {
        Err(wrong("its number of blocks is not a power of two up to 2^22"))
    }
}

impl SplitBlockLayout {
    /// Returns the layout that Milvus' own clients choose for this many keys and this rate, 0.0001 to 0.05: a power of
    /// two of blocks. With it, [`View::to_milvus`] gives their bytes; but Milvus takes every power of two.
    ///
    /// ```
    /// use warpset_bloom::{Builder, Layout, MilvusHeader, SplitBlockLayout};
    ///
    /// let keys: Vec<i64> = (0..1000).collect();
    /// let filter = Builder::with_layout(SplitBlockLayout::for_milvus(1000, 0.005)?).build_from(&keys)?;
    /// let header = MilvusHeader { keys: 1000, fpr: 0.005, integers: true, strings: false };
    /// let bytes = filter.view().to_milvus(header)?;
    /// assert_eq!(bytes.len() as u64, 32 + filter.memory_bytes());
    /// # Ok::<(), warpset_bloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidFpr`] for a rate that is not one; [`Error::Milvus`] for one that Milvus refuses.
    pub fn for_milvus(keys: u64, fpr: f64) -> Result<SplitBlockLayout, Error> {
        rates::check_fpr(fpr)?;
        if !(0.0001..=0.05).contains(&fpr) {
            return Err(wrong("its rate of false positives is not between 0.0001 and 0.05"));
        }
        // Eight classic filters of an eighth of the bits, as Arrow sizes them.
        let bits = -8.0 * keys as f64 / (1.0 - fpr.powf(0.125)).ln();
        let most = 8 * BLOCK_BYTES as u64 * MOST_BLOCKS;
        let bits = (bits as u64).clamp(8 * BLOCK_BYTES as u64, most).next_power_of_two();
        SplitBlockLayout::new(bits / 8 / BLOCK_BYTES as u64)
    }
}

impl<'a> View<'a, SplitBlockLayout> {
    /// Returns the filter in Milvus' envelope.
    ///
    /// Build it with [`SplitBlockBuilder::power_of_two`](crate::SplitBlockBuilder::power_of_two) or
    /// [`SplitBlockLayout::for_milvus`]; integers must hash as eight bytes, the default.
    ///
    /// # Errors
    /// [`Error::Milvus`] for a number of blocks that Milvus refuses, [`Error::ColumnMismatch`] for integers that hash
    /// as four bytes.
    pub fn to_milvus(&self, header: MilvusHeader) -> Result<Vec<u8>, Error> {
        check_blocks(self.layout().blocks())?;
        self.layout().check_column(PhysicalType::Int64)?;
        let mut bytes = Vec::with_capacity(HEADER + 4 * self.words().len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION);
        bytes.extend(header.keys.to_le_bytes());
        bytes.extend(header.fpr.to_le_bytes());
        bytes.extend((self.layout().blocks() as u32).to_le_bytes());
        let kinds = (if header.integers { INTEGERS } else { 0 }) | (if header.strings { STRINGS } else { 0 });
        bytes.extend([kinds, 0, 0, 0]);
        bytes.extend(self.words().iter().flat_map(|word| word.get().to_le_bytes()));
        Ok(bytes)
    }

    /// Returns a view of the blocks in Milvus' envelope, at any address and without a copy, and the header.
    ///
    /// # Errors
    /// [`Error::Milvus`] for bytes that Milvus would refuse.
    pub fn from_milvus(bytes: &'a [u8]) -> Result<(View<'a, SplitBlockLayout>, MilvusHeader), Error> {
        let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(wrong("it has fewer than 32 bytes"))?;
        let (fields, _) = header.as_chunks::<8>();
        let [start, keys, fpr, end] = [fields[0], fields[1], fields[2], fields[3]];
        if start[..4] != *MAGIC {
            return Err(wrong("it does not begin with MBF1"));
        }
        if start[4..] != VERSION {
            return Err(wrong("its version or its algorithm is not 1"));
        }
        let (blocks, rest) = (u32::from_le_bytes([end[0], end[1], end[2], end[3]]), &end[4..]);
        if rest[0] & !(INTEGERS | STRINGS) != 0 || rest[1..] != [0; 3] {
            return Err(wrong("it declares kinds of keys other than integers and strings"));
        }
        check_blocks(blocks.into())?;
        if body.len() as u64 != u64::from(blocks) * BLOCK_BYTES as u64 {
            return Err(wrong("it has more or fewer blocks than its header says"));
        }
        let header = MilvusHeader {
            keys: u64::from_le_bytes(keys),
            fpr: f64::from_le_bytes(fpr),
            integers: rest[0] & INTEGERS != 0,
            strings: rest[0] & STRINGS != 0,
        };
        Ok((View::from_bitset(body, PhysicalType::Int64)?, header))
    }
}

impl SplitBlockBloom {
    /// Returns a filter from Milvus' envelope, and the header. [`View::from_milvus`] reads it in place.
    ///
    /// # Errors
    /// [`Error::Milvus`] for bytes that Milvus would refuse, [`Error::OutOfMemory`].
    pub fn from_milvus(bytes: &[u8]) -> Result<(SplitBlockBloom, MilvusHeader), Error> {
        let (_, header) = View::from_milvus(bytes)?;
        Ok((SplitBlockBloom::from_bitset(&bytes[HEADER..], PhysicalType::Int64)?, header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Filter, Key};

    /// From Milvus' own tests (`golden_vectors.json`, `test_bloom_filter.py`).
    const INTEGERS_8: &str = "4d424631010001000800000000000000fca9f1d24d62503f0100000001000000\
        0117100a804845062834804200440612100448a40680089c4040542838410046";
    const STRINGS_7: &str = "4d424631010001000700000000000000fca9f1d24d62503f0100000002000000\
        10002c24010e020492110042181000b08a40860000284209010114a8015410c0";
    /// Strings of 31, 32 and 33 letters `a`: one filter each.
    const OF_LENGTHS: [&str; 3] = [
        "0000000200100000000080000004000000000200000008002000000000000200",
        "0000800020000000020000000000020002000000000080000000800000000080",
        "0000800000000001000000040001000020000000000020000800000040000000",
    ];
    /// 100 integers and 100 strings, without the header.
    const MIXED_200: &str = "8b0e5453af3c940cc35a82ae1ae35d40adb67448579c407a6e23b083dadec8a1c7ceaacd948e57ad6d3e27897d93bc03\
        7eafc435718477d4c854779ed2f6c42f3a4dd247eedd533a3f66c8d0e982a37a06b873747ed53da91ee72d64b299bb5a\
        0e8c939c2e0811f6de0f6981d534735812e62d5c6e0be23bcbd8e95430cdb4ceddf73cda2fbdb73bfb6f4bb7b7cc9eff\
        b6617f57677bbdecbbbf1eadee9b89fbe1abbe8af846956ebbd05f86b94a3aa9e1c9e84afa126753305a564ec2613ca3\
        1a750a8244f1241dc6a515f04cf56332c0ed70190e3397c00c8a3e1a091de1e2f5dadf3dd41effa96f276c5d3b89353d\
        37b9dbf0c536a2ee3aae1eb7a3a57987";

    fn hex(text: &str) -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    fn filter<K: Key>(keys: &[K], fpr: f64) -> SplitBlockBloom {
        let layout = SplitBlockLayout::for_milvus(keys.len() as u64, fpr).unwrap();
        Builder::with_layout(layout).build_from(keys).unwrap()
    }

    #[test]
    fn bytes_are_those_of_milvus_clients() {
        let integers = [i64::MIN, -1, 0, 1, 2, 42, 1_000_000_007, i64::MAX];
        let header = MilvusHeader { keys: 8, fpr: 0.001, integers: true, strings: false };
        assert_eq!(filter(&integers, 0.001).view().to_milvus(header).unwrap(), hex(INTEGERS_8));
        let strings = ["", "a", "milvus", "bloom", "日本語", "🚀🚀", "hello world"];
        let header = MilvusHeader { keys: 7, fpr: 0.001, integers: false, strings: true };
        assert_eq!(filter(&strings, 0.001).view().to_milvus(header).unwrap(), hex(STRINGS_7));
        for (len, expected) in (31..).zip(OF_LENGTHS) {
            let bytes = filter(&["a".repeat(len)], 0.001).view().to_milvus(header).unwrap();
            assert_eq!(bytes[HEADER..], hex(expected), "{len}");
        }
        let layout = SplitBlockLayout::for_milvus(200, 0.01).unwrap();
        let mut mixed = Builder::with_layout(layout).build().unwrap();
        mixed.extend((0..100i64).map(|i| 2_654_435_761 * i * i - i));
        mixed.extend((0..100).map(|i| format!("key-{i:03}")));
        let header = MilvusHeader { keys: 200, fpr: 0.01, integers: true, strings: true };
        let bytes = mixed.view().to_milvus(header).unwrap();
        assert_eq!((bytes.len(), bytes[28]), (HEADER + 256, 3));
        assert_eq!(bytes[HEADER..], hex(MIXED_200));
    }

    #[test]
    fn what_is_written_is_read_in_place_at_any_address() {
        let keys: Vec<i64> = (0..10_000).collect();
        let written = filter(&keys, 0.005);
        let header = MilvusHeader { keys: 10_000, fpr: 0.005, integers: true, strings: false };
        let bytes = written.view().to_milvus(header).unwrap();
        assert_eq!(SplitBlockBloom::from_milvus(&bytes).unwrap(), (written.clone(), header));
        let shifted = [&[0], &bytes[..]].concat();
        let (view, read) = View::from_milvus(&shifted[1..]).unwrap();
        assert_eq!((view.count_contained_bulk(&keys).unwrap(), read), (keys.len(), header));
        assert_eq!(view.to_milvus(header).unwrap(), bytes);
    }

    #[test]
    fn sizes_are_those_of_milvus_clients() {
        let blocks = |keys, fpr| SplitBlockLayout::for_milvus(keys, fpr).unwrap().blocks();
        assert_eq!([blocks(0, 0.05), blocks(1, 0.0001), blocks(200, 0.01)], [1, 1, 8]);
        // A body of 64 MiB holds 48.6 million keys at 0.005, says the Go client.
        assert_eq!([blocks(48_500_000, 0.005), blocks(48_800_000, 0.005)], [1 << 21, 1 << 22]);
        assert_eq!(blocks(u64::MAX, 0.0001), MOST_BLOCKS);
        for fpr in [0.00009, 0.051] {
            assert!(matches!(SplitBlockLayout::for_milvus(1, fpr), Err(Error::Milvus { .. })));
        }
        assert!(matches!(SplitBlockLayout::for_milvus(1, f64::NAN), Err(Error::InvalidFpr { .. })));
    }

    #[test]
    fn other_bytes_and_other_filters_are_typed_errors() {
        let good = hex(INTEGERS_8);
        let refused = |bytes: &[u8]| matches!(View::from_milvus(bytes), Err(Error::Milvus { .. }));
        assert!((0..good.len()).all(|len| refused(&good[..len])));
        assert!(refused(&[&good[..], &[0]].concat()));
        // Magic, version, algorithm, number of blocks, kinds, zeros.
        for place in [0, 3, 4, 5, 6, 7, 24, 25, 26, 27, 29, 30, 31] {
            let mut bytes = good.clone();
            bytes[place] ^= 4;
            assert!(refused(&bytes), "{place}");
        }
        for (place, value) in [(24, 0), (24, 3), (27, 255), (28, 4)] {
            let mut bytes = good.clone();
            bytes[place] = value;
            assert!(refused(&bytes), "{place}");
        }
        let header = MilvusHeader { keys: 1, fpr: 0.01, integers: true, strings: false };
        let three = Builder::with_layout(SplitBlockLayout::new(3).unwrap()).build().unwrap();
        assert!(matches!(three.view().to_milvus(header), Err(Error::Milvus { .. })));
        let narrow = SplitBlockBloom::builder(1).power_of_two(true).column(PhysicalType::Int32).build().unwrap();
        assert!(matches!(narrow.view().to_milvus(header), Err(Error::ColumnMismatch { .. })));
    }
}

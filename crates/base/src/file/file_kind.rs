//! The structures that can be saved: numbers in headers, versions of formats, and the types that save and load them.
//! One table, so that a file of any of them can be named.

use std::fmt;

use super::{FIELDS, FileError};

/// Added to the bytes of a key in headers of structures with elements: keys are signed.
pub const SIGNED: u64 = 1 << 32;
/// Marks keys that are byte strings: added to the length of a key in the headers of structures with elements.
pub const BYTE_STRING: u64 = 1 << 33;
/// Marks keys that are floating-point numbers, in the headers of range filters.
pub const FLOAT: u64 = 1 << 34;

/// Kind of a structure and version of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// The structure's number in headers.
    pub number: u16,
    /// The version that this build writes, and the only one that it reads.
    pub version: u16,
    /// The type that saves and loads it, without parameters.
    pub name: &'static str,
    /// Whether the first two parameters of its headers are the types of keys and values, as bytes of one; of a key with
    /// [`SIGNED`] or [`BYTE_STRING`], or neither.
    pub has_elements: bool,
}

impl FileKind {
    /// `SplitBlockBloom`.
    pub const SPLIT_BLOCK_BLOOM: FileKind = FileKind::new(1, 1, "SplitBlockBloom");
    /// `BlockedBloom`.
    pub const BLOCKED_BLOOM: FileKind = FileKind::new(2, 1, "BlockedBloom");
    /// `RaoBloom`.
    pub const RAO_BLOOM: FileKind = FileKind::new(3, 1, "RaoBloom");
    /// `RecSplit`.
    pub const RECSPLIT: FileKind = FileKind::new(16, 1, "RecSplit");
    /// `StaticFilter`.
    pub const STATIC_FILTER: FileKind = FileKind::new(17, 1, "StaticFilter");
    /// `Consensus`.
    pub const CONSENSUS: FileKind = FileKind::new(18, 1, "Consensus");
    /// `Placement`.
    pub const PLACEMENT: FileKind = FileKind::new(19, 2, "Placement");
    /// `StringMap`.
    pub const STRING_MAP: FileKind = FileKind::new(20, 1, "StringMap");
    /// `StandardQuotientFilter`.
    pub const STANDARD_QUOTIENT_FILTER: FileKind = FileKind::new(24, 1, "StandardQuotientFilter");
    /// `RankSelectQuotientFilter`.
    pub const RANK_SELECT_QUOTIENT_FILTER: FileKind = FileKind::new(25, 1, "RankSelectQuotientFilter");
    /// `Maplet`.
    pub const MAPLET: FileKind = FileKind::new(26, 1, "Maplet");
    /// `Lsm`.
    pub const LSM: FileKind = FileKind { has_elements: true, ..FileKind::new(32, 1, "Lsm") };
    /// `SortedArray`.
    pub const SORTED_ARRAY: FileKind = FileKind { has_elements: true, ..FileKind::new(33, 1, "SortedArray") };
    /// `BinaryFuse8`.
    pub const BINARY_FUSE_8: FileKind = FileKind::new(40, 1, "BinaryFuse8");
    /// `BinaryFuse16`.
    pub const BINARY_FUSE_16: FileKind = FileKind::new(41, 1, "BinaryFuse16");
    /// `BinaryFuse32`.
    pub const BINARY_FUSE_32: FileKind = FileKind::new(42, 1, "BinaryFuse32");
    /// `StaticFunction`.
    pub const STATIC_FUNCTION: FileKind = FileKind::new(43, 1, "StaticFunction");

    /// `RangeFilter`.
    pub const RANGE_FILTER: FileKind = FileKind::new(44, 1, "RangeFilter");
    /// `DynamicRangeFilter`.
    pub const DYNAMIC_RANGE_FILTER: FileKind = FileKind::new(45, 1, "DynamicRangeFilter");

    /// `StaticMap`, and with values of no size `StaticSet`.
    pub const STATIC_MAP: FileKind = FileKind { has_elements: true, ..FileKind::new(48, 1, "StaticMap") };

    /// `SequenceFilter`.
    pub const SEQUENCE_FILTER: FileKind = FileKind::new(56, 1, "SequenceFilter");

    /// `warpset_kmers::Index`: a header without a payload, then the set or filter.
    pub const KMERS_INDEX: FileKind = FileKind::new(64, 1, "warpset_kmers::Index");

    /// `warpset_kmers::Labels`: a header with names and numbers, then the function.
    pub const KMERS_LABELS: FileKind = FileKind::new(65, 1, "warpset_kmers::Labels");

    /// `warpset_kmers`: k-mers of more than 32 bases with their copies.
    pub const KMERS_LONG: FileKind = FileKind::new(66, 1, "warpset_kmers::Table of long k-mers");

    /// All structures, in the order of their numbers.
    pub const ALL: &[FileKind] = &[
        FileKind::SPLIT_BLOCK_BLOOM,
        FileKind::BLOCKED_BLOOM,
        FileKind::RAO_BLOOM,
        FileKind::RECSPLIT,
        FileKind::STATIC_FILTER,
        FileKind::CONSENSUS,
        FileKind::PLACEMENT,
        FileKind::STRING_MAP,
        FileKind::STANDARD_QUOTIENT_FILTER,
        FileKind::RANK_SELECT_QUOTIENT_FILTER,
        FileKind::MAPLET,
        FileKind::LSM,
        FileKind::SORTED_ARRAY,
        FileKind::BINARY_FUSE_8,
        FileKind::BINARY_FUSE_16,
        FileKind::BINARY_FUSE_32,
        FileKind::STATIC_FUNCTION,
        FileKind::RANGE_FILTER,
        FileKind::DYNAMIC_RANGE_FILTER,
        FileKind::STATIC_MAP,
        FileKind::SEQUENCE_FILTER,
        FileKind::KMERS_INDEX,
        FileKind::KMERS_LABELS,
        FileKind::KMERS_LONG,
    ];

    /// Describes a structure without elements.
    pub const fn new(number: u16, version: u16, name: &'static str) -> FileKind {
        FileKind { number, version, name, has_elements: false }
    }

    /// Returns the error for a header of another structure than `expected`.
    pub(super) fn mismatch(expected: FileKind, found: u16, fields: [u64; FIELDS]) -> FileError {
        let known = FileKind::ALL.iter().find(|known| known.number == found);
        let elements = known.filter(|known| known.has_elements).map(|_| [fields[0], fields[1]]);
        let found = SavedType { number: found, elements };
        FileError::WrongStructure { expected: SavedType { number: expected.number, elements: None }, found }
    }
}

/// The type that saves and loads a structure, as users write it: `Lsm<u32, u64>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedType {
    /// The structure's number in headers.
    pub number: u16,
    /// The parameters for the types of keys and values, where the structure has them and they are known.
    pub elements: Option<[u64; 2]>,
}

impl SavedType {
    /// Formats the name for messages.
    pub(super) fn quoted(self) -> String {
        if self.name().is_some() { format!("`{self}`") } else { self.to_string() }
    }

    /// Returns the end of a message that has named this type as the one found.
    pub(super) fn remedy(self) -> String {
        match self.name() {
            Some(_) => {
                let path = self.to_string().replacen('<', "::<", 1);
                format!("load it with `{path}::load` or `from_bytes`")
            }
            None => "read it with the release that wrote it".into(),
        }
    }

    fn name(self) -> Option<&'static str> {
        FileKind::ALL.iter().find(|known| known.number == self.number).map(|known| known.name)
    }
}

impl fmt::Display for SavedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(name) = self.name() else {
            return write!(f, "structure of number {}", self.number);
        };
        match self.elements {
            Some([key, value]) => {
                let key = if key == 16 { "u128".into() } else { type_of(key) };
                match value {
                    0 if self.number == FileKind::STATIC_MAP.number => write!(f, "StaticSet<{key}>"),
                    _ => write!(f, "{name}<{key}, {}>", type_of(value)),
                }
            }
            None => f.write_str(name),
        }
    }
}

/// Names the type that a parameter denotes. Values are stored as bytes only, so the most common type of that size is
/// returned.
fn type_of(parameter: u64) -> String {
    let bytes = parameter & !(SIGNED | BYTE_STRING);
    match (parameter & (SIGNED | BYTE_STRING), bytes) {
        (0, 0) => "()".into(),
        (0, 4 | 8) => format!("u{}", 8 * bytes),
        (SIGNED, 4 | 8 | 16) => format!("i{}", 8 * bytes),
        (0 | BYTE_STRING, 1..=32) => format!("[u8; {bytes}]"),
        _ => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_ascend_and_differ() {
        assert!(FileKind::ALL.windows(2).all(|two| two[0].number < two[1].number && two[0].name != two[1].name));
    }

    #[test]
    fn what_bytes_hold_is_told_as_the_type_to_load_it_with() {
        let told = |found, fields| FileKind::mismatch(FileKind::SPLIT_BLOCK_BLOOM, found, fields).to_string();
        let mut fields = [0; FIELDS];
        assert_eq!(
            told(17, fields),
            "this is a saved `StaticFilter`, where a `SplitBlockBloom` was expected: load it with \
             `StaticFilter::load` or `from_bytes`"
        );
        fields[0] = 8;
        assert_eq!(
            told(32, fields),
            "this is a saved `Lsm<u64, ()>`, where a `SplitBlockBloom` was expected: load it with \
             `Lsm::<u64, ()>::load` or `from_bytes`"
        );
        fields[0] |= SIGNED;
        assert!(told(33, fields).contains("`SortedArray::<i64, ()>::load`"));
        fields[..2].copy_from_slice(&[BYTE_STRING | 16, 12]);
        assert!(told(32, fields).contains("`Lsm<[u8; 16], [u8; 12]>`"));
        fields[..2].copy_from_slice(&[16, 16]);
        assert!(told(32, fields).contains("`Lsm<u128, [u8; 16]>`"));
        fields[..2].copy_from_slice(&[4, 0]);
        let set = told(FileKind::STATIC_MAP.number, fields);
        assert!(set.contains("`StaticSet<u32>`") && set.contains("`StaticSet::<u32>::load`"), "{set}");
        fields[..2].copy_from_slice(&[99, u64::MAX]);
        assert!(told(32, fields).contains("`Lsm<?, ?>`"));
        assert_eq!(
            told(77, fields),
            "this is a saved structure of number 77, where a `SplitBlockBloom` was expected: read it with the release that \
             wrote it"
        );
    }
}

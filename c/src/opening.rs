//! Saved structures of any kind.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use warpset::mphf::{ConsensusKind, PlacementKind, RecSplitKind};
use warpset::{bloom, fuse, lsm, mphf, quotient, range, sequence, static_sets};
use warpset_base::file::{BYTE_STRING, FLOAT, FileKind, Header, HeaderBytes, SIGNED, SavedType};

use crate::error::{Failure, Result, warpset_status as Status};
use crate::object::{Object, warpset_kind as Kind};

// Types of keys in headers, besides unsigned integers.
const I32: u64 = 4 | SIGNED;
const I64: u64 = 8 | SIGNED;
const I128: u64 = 16 | SIGNED;
const F64: u64 = 8 | FLOAT;
const STRINGS: u64 = 16 | BYTE_STRING;

/// Functions that read one type.
struct Opener {
    kind: Kind,
    load: fn(&Path) -> Result<Box<dyn Object>>,
    from_bytes: fn(&[u8]) -> Result<Box<dyn Object>>,
    /// Safe to call if no process changes the file while it is mapped.
    map: unsafe fn(&Path) -> Result<Box<dyn Object>>,
}

/// Returns the structure whose saved form begins with these bytes.
fn saved_type(header: &HeaderBytes) -> Result<SavedType> {
    // No structure has the number 0, so the error names the one of the header.
    let failure = match Header::parse(header, FileKind::new(0, 0, "a structure of Warpset")) {
        Ok(_) => Failure::new(Status::InvalidFile, "this is no saved structure of Warpset"),
        Err(error) => error.into(),
    };
    failure.found.ok_or(failure)
}

/// Returns the functions that read a structure; of several, the first one that knows the file.
fn openers(header: &HeaderBytes) -> Result<Vec<Opener>> {
    let found = saved_type(header)?;
    macro_rules! openers {
        ($($kind:ident: $type:ty),*) => {
            vec![$(Opener {
                kind: Kind::$kind,
                load: |path| Ok(Box::new(<$type>::load(path)?)),
                from_bytes: |bytes| Ok(Box::new(<$type>::from_bytes(bytes)?)),
                // SAFETY: the caller guarantees that no process changes the file.
                map: |path| Ok(Box::new(unsafe { <$type>::map(path) }?)),
            }),*]
        };
    }
    let known = FileKind::ALL.iter().find(|known| known.number == found.number);
    let elements = match known {
        Some(&FileKind::RANGE_FILTER) => Some([Header::parse(header, FileKind::RANGE_FILTER)?.fields[0], 0]),
        // Above the settings of the slots.
        Some(&FileKind::DYNAMIC_RANGE_FILTER) => {
            Some([Header::parse(header, FileKind::DYNAMIC_RANGE_FILTER)?.fields[1] >> 8, 0])
        }
        _ => found.elements,
    };
    let openers = match (known.copied(), elements) {
        (Some(FileKind::SPLIT_BLOCK_BLOOM), _) => openers!(SplitBlockBloom: bloom::SplitBlockBloom),
        (Some(FileKind::BLOCKED_BLOOM), _) => openers!(BlockedBloom: bloom::BlockedBloom),
        (Some(FileKind::RAO_BLOOM), _) => openers!(RaoBloom: bloom::RaoBloom),
        (Some(FileKind::RECSPLIT), _) => openers!(Recsplit: mphf::RecSplit),
        (Some(FileKind::CONSENSUS), _) => openers!(Consensus: mphf::Consensus),
        (Some(FileKind::PLACEMENT), _) => openers!(Placement: mphf::Placement),
        (Some(FileKind::STATIC_FILTER), _) => openers!(
            StaticFilter: mphf::StaticFilter<ConsensusKind>,
            StaticFilter: mphf::StaticFilter<RecSplitKind>,
            StaticFilter: mphf::StaticFilter<PlacementKind>
        ),
        (Some(FileKind::STRING_MAP), _) => openers!(StringMap: mphf::StringMap),
        (Some(FileKind::STANDARD_QUOTIENT_FILTER), _) => {
            openers!(StandardQuotientFilter: quotient::StandardQuotientFilter)
        }
        (Some(FileKind::RANK_SELECT_QUOTIENT_FILTER), _) => {
            openers!(RankSelectQuotientFilter: quotient::RankSelectQuotientFilter)
        }
        (Some(FileKind::MAPLET), _) => openers!(Maplet: quotient::Maplet),
        (Some(FileKind::BINARY_FUSE_8), _) => openers!(BinaryFuse8: fuse::BinaryFuse8),
        (Some(FileKind::BINARY_FUSE_16), _) => openers!(BinaryFuse16: fuse::BinaryFuse16),
        (Some(FileKind::BINARY_FUSE_32), _) => openers!(BinaryFuse32: fuse::BinaryFuse32),
        (Some(FileKind::STATIC_FUNCTION), _) => openers!(StaticFunction: fuse::StaticFunction<u64>),
        (Some(FileKind::RANGE_FILTER), Some([4, _])) => openers!(RangeFilter: range::RangeFilter<u32>),
        (Some(FileKind::RANGE_FILTER), Some([8, _])) => openers!(RangeFilter: range::RangeFilter<u64>),
        (Some(FileKind::RANGE_FILTER), Some([16, _])) => openers!(RangeFilter: range::RangeFilter<u128>),
        (Some(FileKind::RANGE_FILTER), Some([I32, _])) => openers!(RangeFilter: range::RangeFilter<i32>),
        (Some(FileKind::RANGE_FILTER), Some([I64, _])) => openers!(RangeFilter: range::RangeFilter<i64>),
        (Some(FileKind::RANGE_FILTER), Some([I128, _])) => openers!(RangeFilter: range::RangeFilter<i128>),
        (Some(FileKind::RANGE_FILTER), Some([F64, _])) => openers!(RangeFilter: range::RangeFilter<f64>),
        (Some(FileKind::RANGE_FILTER), Some([STRINGS, _])) => openers!(RangeFilter: range::RangeFilter<[u8]>),
        (Some(FileKind::DYNAMIC_RANGE_FILTER), Some([8, _])) => {
            openers!(DynamicRangeFilter: range::DynamicRangeFilter<u64>)
        }
        (Some(FileKind::DYNAMIC_RANGE_FILTER), Some([16, _])) => {
            openers!(DynamicRangeFilter: range::DynamicRangeFilter<u128>)
        }
        (Some(FileKind::DYNAMIC_RANGE_FILTER), Some([I64, _])) => {
            openers!(DynamicRangeFilter: range::DynamicRangeFilter<i64>)
        }
        (Some(FileKind::DYNAMIC_RANGE_FILTER), Some([I128, _])) => {
            openers!(DynamicRangeFilter: range::DynamicRangeFilter<i128>)
        }
        (Some(FileKind::DYNAMIC_RANGE_FILTER), Some([F64, _])) => {
            openers!(DynamicRangeFilter: range::DynamicRangeFilter<f64>)
        }
        (Some(FileKind::DYNAMIC_RANGE_FILTER), Some([STRINGS, _])) => {
            openers!(DynamicRangeFilter: range::DynamicRangeFilter<[u8]>)
        }
        (Some(FileKind::SEQUENCE_FILTER), _) => openers!(SequenceFilter: sequence::SequenceFilter),
        (Some(FileKind::LSM), Some([4, 4])) => openers!(Lsm: lsm::Lsm<u32, u32>),
        (Some(FileKind::LSM), Some([8, 8])) => openers!(Lsm: lsm::Lsm<u64, u64>),
        (Some(FileKind::LSM), Some([16, 8])) => openers!(Lsm: lsm::Lsm<u128, u64>),
        (Some(FileKind::LSM), Some([STRINGS, 8])) => openers!(Lsm: lsm::Lsm<[u8; 16], u64>),
        (Some(FileKind::SORTED_ARRAY), Some([4, 4])) => openers!(SortedArray: lsm::SortedArray<u32, u32>),
        (Some(FileKind::SORTED_ARRAY), Some([8, 8])) => openers!(SortedArray: lsm::SortedArray<u64, u64>),
        (Some(FileKind::SORTED_ARRAY), Some([16, 8])) => openers!(SortedArray: lsm::SortedArray<u128, u64>),
        (Some(FileKind::SORTED_ARRAY), Some([STRINGS, 8])) => openers!(SortedArray: lsm::SortedArray<[u8; 16], u64>),
        (Some(FileKind::STATIC_MAP), Some([4, 0])) => openers!(StaticSet: static_sets::StaticSet<u32>),
        (Some(FileKind::STATIC_MAP), Some([8, 0])) => openers!(StaticSet: static_sets::StaticSet<u64>),
        (Some(FileKind::STATIC_MAP), Some([4, 4])) => openers!(StaticMap: static_sets::StaticMap<u32, u32>),
        (Some(FileKind::STATIC_MAP), Some([4, 8])) => openers!(StaticMap: static_sets::StaticMap<u32, u64>),
        (Some(FileKind::STATIC_MAP), Some([8, 4])) => openers!(StaticMap: static_sets::StaticMap<u64, u32>),
        (Some(FileKind::STATIC_MAP), Some([8, 8])) => openers!(StaticMap: static_sets::StaticMap<u64, u64>),
        _ => {
            let why = format!("this is a saved `{found}`, whose keys or values have types that this library lacks");
            return Err(Failure::new(Status::InvalidFile, why));
        }
    };
    Ok(openers)
}

/// Reads by the first of some functions that knows the structure.
fn opened<T>(openers: &[Opener], read: impl Fn(&Opener) -> Result<T>) -> Result<(T, &Opener)> {
    let mut failure = None;
    for opener in openers {
        match read(opener) {
            Ok(object) => return Ok((object, opener)),
            Err(other) if other.found.is_some() => failure = Some(other),
            Err(error) => return Err(error),
        }
    }
    Err(failure.unwrap_or_else(|| Failure::new(Status::Internal, "a structure without a type")))
}

fn openers_of_file(path: &Path) -> Result<Vec<Opener>> {
    let mut header: HeaderBytes = [0; size_of::<HeaderBytes>()];
    let failed = |error: std::io::Error| {
        let status = if error.kind() == ErrorKind::UnexpectedEof { Status::InvalidFile } else { Status::Io };
        Failure::new(status, format!("cannot read {}: {error}", path.display()))
    };
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).map_err(failed)?;
    openers(&header)
}

/// Reads a file.
pub fn load(path: &Path) -> Result<Box<dyn Object>> {
    Ok(opened(&openers_of_file(path)?, |opener| (opener.load)(path))?.0)
}

/// Maps a file, and returns its structure and the kind.
///
/// # Safety
/// No process changes the file as long as it is mapped.
pub unsafe fn map(path: &Path) -> Result<(Box<dyn Object>, Kind)> {
    let openers = openers_of_file(path)?;
    // SAFETY: the contract of this function.
    let (object, opener) = opened(&openers, |opener| unsafe { (opener.map)(path) })?;
    Ok((object, opener.kind))
}

/// Reads the saved form.
pub fn from_bytes(bytes: &[u8]) -> Result<Box<dyn Object>> {
    let Some(header) = bytes.first_chunk() else {
        let why = format!("{} bytes are no saved structure: its header alone has more", bytes.len());
        return Err(Failure::new(Status::InvalidFile, why));
    };
    Ok(opened(&openers(header)?, |opener| (opener.from_bytes)(bytes))?.0)
}

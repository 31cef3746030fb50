//! Properties of the saved form of every structure: fixtures, cuts, flipped bits, absurd sizes.

use std::path::PathBuf;

use warpset_base::file::{self, FileError, HEADER_BYTES, Header, Saved, SavedError};

fn reason<T, E: SavedError>(result: Result<T, E>) -> FileError {
    result.err().expect("these bytes are refused").into_file()
}

/// Compares the structure with the file `name` in `data`, bit for bit. With `WARPSET_WRITE_FIXTURES` set, writes the
/// file.
pub fn fixture<S: Saved + PartialEq>(name: &str, structure: &S) {
    // At run time: packed tests run elsewhere than they were built.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let path = PathBuf::from(package).join("data").join(name);
    if std::env::var_os("WARPSET_WRITE_FIXTURES").is_some() {
        file::save(structure, &path).unwrap();
    }
    assert!(file::load::<S>(&path).unwrap() == *structure, "{name}: hashes, words or header changed");
    assert_eq!(std::fs::read(&path).unwrap(), file::to_bytes(structure), "{name}");
}

/// Returns the words that begin with these bytes, so that the bytes are aligned.
pub fn to_words(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Corrects the checksum of the bytes.
pub fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let (head, payload) = bytes.split_first_chunk_mut::<HEADER_BYTES>().expect("there is a header");
    let checksum = Header::checksum_of(head, payload);
    head[120..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Checks that the saved form is rejected for the right reason, read or viewed: cut anywhere, with bytes too many, and
/// with any of these bits of any byte flipped. `visit` gets each damaged form with a right checksum, as an attacker
/// would write it.
pub fn damage<S: Saved + PartialEq>(structure: &S, bits: impl Fn(usize) -> Vec<u32>, visit: impl Fn(&[u8], &str)) {
    let good = file::to_bytes(structure);
    assert!(file::from_bytes::<S>(&good).unwrap() == *structure);
    let read = |bytes: &[u8]| {
        let words = to_words(bytes);
        let viewed = reason(file::view::<S>(&bytemuck::cast_slice(&words)[..bytes.len()]));
        let read = reason(file::from_bytes::<S>(bytes));
        assert_eq!(std::mem::discriminant(&viewed), std::mem::discriminant(&read), "{viewed}; {read}");
        read
    };
    for len in 0..good.len() {
        assert!(matches!(read(&good[..len]), FileError::Truncated { .. }), "cut at {len}");
    }
    // The length comes before the checksum.
    let mut long = [&good[..], &[0; 4]].concat();
    assert!(matches!(read(&long), FileError::TrailingBytes { extra: 4 }));
    long[good.len() - 1] ^= 1;
    assert!(matches!(read(&long), FileError::TrailingBytes { extra: 4 }));
    assert!(matches!(read(&[0; 1000]), FileError::BadMagic));
    // Streams have one structure after another.
    let stream = [&good[..], &good, b"rest"].concat();
    let mut rest = &stream[..];
    for _ in 0..2 {
        assert!(file::read_from::<S>(&mut rest, 0).is_ok_and(|read| read == *structure));
    }
    assert_eq!(rest, b"rest");
    for at in 0..good.len() {
        for bit in bits(at) {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let (error, place) = (read(&bad), format!("bit {bit} of byte {at}"));
            match at {
                0..8 => assert!(matches!(error, FileError::BadMagic), "{place}: {error}"),
                8..10 => assert!(matches!(error, FileError::UnsupportedVersion { .. }), "{place}: {error}"),
                10..12 => assert!(matches!(error, FileError::WrongStructure { .. }), "{place}: {error}"),
                120.. => assert!(matches!(error, FileError::Corrupted { .. }), "{place}: {error}"),
                _ => {}
            }
            visit(&resealed(bad), &place);
        }
    }
}

/// Checks that a form whose fields announce more than there is, is an error, and that no memory is allocated for it.
pub fn announces_too_much<S: Saved>(bytes: &[u8]) {
    assert!(matches!(reason(file::from_bytes::<S>(bytes)), FileError::Truncated { .. }));
    assert!(matches!(reason(file::read_from::<S>(&mut &*bytes, 0)), FileError::Truncated { .. }));
    let words = to_words(bytes);
    assert!(matches!(reason(file::view::<S>(bytemuck::cast_slice(&words))), FileError::Truncated { .. }));
}

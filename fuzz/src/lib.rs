//! Steps of every target that loads saved structures.

use warpset_base::file::{self, FileError, HEADER_BYTES, Header, Saved, SavedError};

/// Loads a structure from any bytes: no panic, no memory that the bytes do not justify. `use_it` gets a structure that
/// loads, after a check that it saves to the same bytes. `view` gets the bytes at an address that is a multiple of 8,
/// to open them without checks.
///
/// Checksums keep a fuzzer out, so a wrong one is made right. Returns the error of the bytes with a right checksum.
pub fn load<S: Saved>(bytes: &[u8], use_it: impl Fn(S), view: impl Fn(&[u8])) -> Option<FileError> {
    let read = |bytes: &[u8]| file::from_bytes::<S>(bytes).map_err(SavedError::into_file);
    let mut whole = bytes.to_vec();
    let mut loaded = read(bytes);
    let is_mended = matches!(loaded, Err(FileError::Corrupted { .. }));
    if let Err(FileError::Corrupted { found, .. }) = loaded {
        whole[HEADER_BYTES - 8..HEADER_BYTES].copy_from_slice(&found.to_le_bytes());
        loaded = read(&whole);
    }
    let refused = match loaded {
        Ok(structure) => {
            assert_eq!(file::to_bytes(&structure), whole);
            use_it(structure);
            None
        }
        Err(error) => Some(error).filter(|_| is_mended),
    };
    let _ = file::read_from::<S>(&mut &*bytes, 0);
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    let aligned = &mut bytemuck::cast_slice_mut(&mut words)[..bytes.len()];
    aligned.copy_from_slice(bytes);
    view(aligned);
    refused
}

/// Builds a file: `bytes` from the fourth word on, after the first words and with the checksum of a saved structure.
pub fn with_header(structure: u16, bytes: &[u8]) -> Vec<u8> {
    let mut all = [&[0; 24], bytes].concat();
    all.resize(all.len().next_multiple_of(8).max(HEADER_BYTES), 0);
    let payload = (all.len() - HEADER_BYTES) as u64;
    all[..8].copy_from_slice(b"WARPSET\0");
    all[8..10].copy_from_slice(&1u16.to_le_bytes());
    all[10..12].copy_from_slice(&structure.to_le_bytes());
    all[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
    all[16..24].copy_from_slice(&payload.to_le_bytes());
    let (head, payload) = all.split_first_chunk_mut::<HEADER_BYTES>().expect("there is a header");
    let checksum = Header::checksum_of(head, payload);
    head[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    all
}

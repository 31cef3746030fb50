//! Damaged files of indexes, and their errors.

use std::fs;
use std::path::Path;

use warpset_kmers::{Error, Index};

/// Returns the error of loading these bytes.
pub fn refused(path: &Path, bytes: &[u8]) -> Error {
    fs::write(path, bytes).unwrap();
    let error = Index::load(path).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    error
}

/// Checks that the saved index at `path` is refused if it ends early, goes on, or has a byte changed anywhere in its
/// first 256 or at many places after them; a mapped index may answer anything, and does not panic. Leaves a damaged
/// file.
pub fn is_refused_when_damaged(path: &Path) {
    let bytes = fs::read(path).unwrap();
    for len in [0, 1, 10, 127, 128, 200, 256, bytes.len() / 2, bytes.len() - 1] {
        refused(path, &bytes[..len.min(bytes.len() - 1)]);
    }
    refused(path, &[&bytes[..], b"x"].concat());
    for at in (0..256).chain((256..bytes.len()).step_by(101)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x11;
        refused(path, &damaged);
        // SAFETY: nothing changes the file while it is mapped.
        if let Ok(mapped) = unsafe { Index::map(path) } {
            mapped.contains_bulk(&[1, 2, 3]);
        }
    }
}

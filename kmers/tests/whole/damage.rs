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

/// Returns saved bytes that end early, go on, or have a byte changed in their first 256 or at many places after
/// them.
pub fn damaged(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cuts = [0, 1, 10, 127, 128, 200, 256, bytes.len() / 2, bytes.len() - 1];
    let cut = cuts.into_iter().map(|len| bytes[..len.min(bytes.len() - 1)].to_vec());
    let changed = (0..256).chain((256..bytes.len()).step_by(101)).map(|at| {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 0x11;
        damaged
    });
    cut.chain([[bytes, b"x"].concat()]).chain(changed)
}

/// Checks that the saved index at `path` is refused with any [damage](damaged); a mapped index may answer anything, and
/// does not panic. Leaves a damaged file.
pub fn is_refused_when_damaged(path: &Path) {
    for damaged in damaged(&fs::read(path).unwrap()) {
        refused(path, &damaged);
        // SAFETY: nothing changes the file while it is mapped.
        if let Ok(mapped) = unsafe { Index::map(path) } {
            mapped.contains_bulk(&[1u64, 2, 3]);
            mapped.contains_bulk(&[1u128, 2, 3]);
        }
    }
}

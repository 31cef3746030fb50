//! Input of `cargo xtask bench`.
//!
//! - [`keys`]: generated keys, the same on every machine, distinct by construction.
//! - [`genome`]: genomes in FASTA, cut into canonical k-mers.
//! - [`text`]: one key per line, of any length.
//! - [`shipped`]: the real input in `data/`, part of the executable.
//!
//! [`read_maybe_gzip`] opens all files: gzip is detected by content, not by name.

pub mod genome;
pub mod keys;
pub mod shipped;
pub mod text;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

/// Reason why an input could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file could not be opened or read, or its gzip stream is damaged.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the system or the decompressor.
        source: io::Error,
    },
    /// The file is neither FASTA nor FASTQ, or breaks off within a record.
    #[error("{} is not FASTA or FASTQ: {reason}", path.display())]
    NotSequence {
        /// The file.
        path: PathBuf,
        /// Error of the parser.
        reason: String,
    },
    /// The file holds no key at all.
    #[error("{} holds no keys ({wanted})", path.display())]
    NoKeys {
        /// The file.
        path: PathBuf,
        /// Expected form of one key.
        wanted: &'static str,
    },
}

/// Opens a reader over `input` that decompresses it if it starts with gzip's magic bytes.
pub fn maybe_gzip<'a>(input: impl Read + Send + 'a) -> io::Result<Box<dyn BufRead + Send + 'a>> {
    let mut input = BufReader::with_capacity(1 << 17, input);
    // One look at the buffer is enough: files and slices give both bytes of the magic at once.
    if input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        Ok(Box::new(BufReader::with_capacity(1 << 17, MultiGzDecoder::new(input))))
    } else {
        Ok(Box::new(input))
    }
}

/// Opens a file, plain or gzip.
pub fn read_maybe_gzip(path: &Path) -> Result<Box<dyn BufRead + Send>, InputError> {
    let failed = |source| InputError::Read { path: path.to_owned(), source };
    maybe_gzip(File::open(path).map_err(failed)?).map_err(failed)
}

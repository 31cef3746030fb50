//! Compressed files: their recognition, unpacking, and packing by several threads.
//!
//! | file | read | written |
//! | --- | --- | --- |
//! | gzip | one thread; blocked gzip by several | as blocked gzip (`bgzip`), by several threads |
//! | Zstandard | one thread | in frames of a megabyte, by several threads |
//!
//! Blocked gzip is the form of the SAM specification, section 4.1: gzip members of at most 64 KiB, each with its size
//! in its header, and an empty one at the end. Every program that reads gzip reads it.

mod blocked;
mod unpack;

use std::io::{self, Write};
use std::path::Path;

use flate2::Crc;
use flate2::write::DeflateEncoder;
use ruzstd::encoding::CompressionLevel;

use crate::Error;

pub(crate) use unpack::{Text, unpacked};

/// Form of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Bytes without compression.
    Plain,
    /// Blocked gzip.
    Gzip,
    /// Frames of Zstandard.
    Zstd,
}

/// Bytes of text per member of blocked gzip, which has at most 64 KiB.
const MEMBER_TEXT: usize = 0xff00;
/// Header of a member of blocked gzip, without the last two bytes, which are its size minus one.
const MEMBER_HEADER: [u8; 16] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0];
/// Empty member that ends a file.
const LAST_MEMBER: [u8; 28] =
    [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 0x1b, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Endings of files in other compressed forms, or without text.
const OTHER_ENDINGS: [&str; 20] = [
    "xz", "lzma", "bz2", "bz3", "lz4", "lz", "lzo", "br", "z", "sz", "zip", "7z", "rar", "tar", "tgz", "bam", "cram",
    "sam", "sra", "2bit",
];

impl Packing {
    /// Returns the form for the ending of a file's name.
    ///
    /// # Errors
    /// [`Error::WrongEnding`] for endings of forms that are not written.
    pub fn of_name(path: &Path) -> Result<Packing, Error> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "gz" | "bgz" | "gzip" => Ok(Packing::Gzip),
            "zst" | "zstd" => Ok(Packing::Zstd),
            ending if OTHER_ENDINGS.contains(&ending) => {
                let (path, ending) = (path.to_owned(), ending.to_owned());
                Err(Error::WrongEnding { path, ending, written: "text is written plain, as .gz or as .zst" })
            }
            _ => Ok(Packing::Plain),
        }
    }

    /// Packs text. The packed forms of several texts, one after the other, are a packed form of all of them.
    pub(crate) fn pack(self, text: Vec<u8>, level: u32) -> io::Result<Vec<u8>> {
        match self {
            Packing::Plain => Ok(text),
            Packing::Gzip => {
                let mut packed = Vec::with_capacity(text.len() / 2);
                text.chunks(MEMBER_TEXT).try_for_each(|text| member(text, level, &mut packed))?;
                Ok(packed)
            }
            Packing::Zstd if text.is_empty() => Ok(text),
            Packing::Zstd => Ok(ruzstd::encoding::compress_to_vec(&text[..], CompressionLevel::Fastest)),
        }
    }

    /// Returns the bytes that end a file.
    pub(crate) fn end(self, is_empty: bool) -> Vec<u8> {
        match self {
            Packing::Gzip => LAST_MEMBER.to_vec(),
            // A file of no bytes would not be Zstandard.
            Packing::Zstd if is_empty => ruzstd::encoding::compress_to_vec(&[][..], CompressionLevel::Fastest),
            Packing::Plain | Packing::Zstd => Vec::new(),
        }
    }
}

/// Appends a member of blocked gzip.
fn member(text: &[u8], level: u32, packed: &mut Vec<u8>) -> io::Result<()> {
    let begin = packed.len();
    packed.extend_from_slice(&MEMBER_HEADER);
    packed.extend_from_slice(&[0; 2]);
    let mut deflate = DeflateEncoder::new(packed, flate2::Compression::new(level));
    deflate.write_all(text)?;
    let packed = deflate.finish()?;
    let mut crc = Crc::new();
    crc.update(text);
    packed.extend_from_slice(&crc.sum().to_le_bytes());
    packed.extend_from_slice(&(text.len() as u32).to_le_bytes());
    let Ok(size) = u16::try_from(packed.len() - begin - 1) else {
        // Text that does not compress at all.
        packed.truncate(begin);
        let (first, second) = text.split_at(text.len() / 2);
        return member(first, level, packed).and_then(|()| member(second, level, packed));
    };
    packed[begin + 16..begin + 18].copy_from_slice(&size.to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Generates letters like those of reads, and bytes that do not compress.
    fn texts() -> Vec<Vec<u8>> {
        let hash = |i: u64| warpset_core::hash::finalise(i);
        let letters = (0..400_000).map(|i| b"ACGT"[(hash(i) & 3) as usize]).collect();
        let noise = (0..300_000).map(|i| hash(i) as u8).collect();
        vec![Vec::new(), b"@a\nACGT\n+\nIIII\n".to_vec(), letters, noise]
    }

    fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        unpacked(bytes, 3)?.read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn what_is_packed_in_parts_is_unpacked() {
        for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
            for level in [1, 2, 6, 9] {
                let mut packed = Vec::new();
                for text in texts() {
                    packed.extend(packing.pack(text, level).unwrap());
                }
                packed.extend(packing.end(false));
                assert!(unpack(&packed).unwrap() == texts().concat(), "{packing:?}");
            }
            if packing != Packing::Plain {
                assert_eq!(unpack(&packing.end(true)).unwrap(), b"");
            }
        }
    }

    #[test]
    fn packed_files_are_known_by_their_names() {
        for (name, packing) in [
            ("a.fq", Packing::Plain),
            ("a.fq.gz", Packing::Gzip),
            ("A.FQ.GZ", Packing::Gzip),
            ("a.bgz", Packing::Gzip),
            ("a.zst", Packing::Zstd),
            ("gz", Packing::Plain),
        ] {
            assert_eq!(Packing::of_name(Path::new(name)).unwrap(), packing, "{name}");
        }
        for name in ["a.fq.xz", "a.BZ2", "a.lz4", "a.zip", "a.bam"] {
            assert!(matches!(Packing::of_name(Path::new(name)), Err(Error::WrongEnding { .. })), "{name}");
        }
    }

    /// Checks that packed files with cuts or changes anywhere give errors or the same text, and never panic.
    #[test]
    fn damage_is_an_error() {
        let text = &texts()[2][..100_000];
        for packing in [Packing::Gzip, Packing::Zstd] {
            let mut packed = packing.pack(text.to_vec(), 2).unwrap();
            if packing == Packing::Gzip {
                packed.extend(LAST_MEMBER);
            }
            for len in (4..packed.len()).step_by(997).chain(packed.len() - 30..packed.len()) {
                let unpacked = unpack(&packed[..len]);
                let is_whole = packing == Packing::Gzip && len == packed.len() - LAST_MEMBER.len();
                assert!(unpacked.is_err() || is_whole, "{packing:?} {len}");
            }
            for at in (0..packed.len()).step_by(313) {
                let mut damaged = packed.clone();
                damaged[at] ^= 0x10;
                let _ = unpack(&damaged);
            }
        }
    }
}

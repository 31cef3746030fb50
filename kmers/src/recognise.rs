//! Kinds of files by their first bytes, and checksums of tables and indexes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use warpset_base::file::{FileKind, HEADER_BYTES};
use xxhash_rust::xxh3::Xxh3;

use crate::Error;
use crate::roll::is_white;

/// Bytes at the start of a file that show its kind.
pub(crate) const HEAD: usize = 1 << 12;

/// Kinds of files by first bytes, with a name and its article, and a remedy if sequences are needed.
const KINDS: [(&[u8], &str, &str); 23] = [
    (b"BAM\x01", "BAM", "pass the output of `samtools fastq` as the standard input"),
    (b"CRAM", "CRAM", "pass the output of `samtools fastq` as the standard input"),
    (b"@HD\t", "SAM", "pass the output of `samtools fastq` as the standard input"),
    (b"@SQ\t", "SAM", "pass the output of `samtools fastq` as the standard input"),
    (b"@RG\t", "SAM", "pass the output of `samtools fastq` as the standard input"),
    (b"@PG\t", "SAM", "pass the output of `samtools fastq` as the standard input"),
    (b"NCBI.sra", "an archive of SRA", "pass the output of `fasterq-dump --stdout` as the standard input"),
    (b"PK\x03\x04", "a zip archive", "pass the output of `unzip -p` as the standard input"),
    (b"7z\xbc\xaf", "a 7z archive", "pass the output of `7z x -so` as the standard input"),
    (b"\xfd7zXZ", "xz", "pass the output of `xz -dc` as the standard input"),
    (b"BZh", "bzip2", "pass the output of `bzip2 -dc` as the standard input"),
    (b"\x04\x22\x4d\x18", "lz4", "pass the output of `lz4 -dc` as the standard input"),
    (b"LZIP", "lzip", "pass the output of `lzip -dc` as the standard input"),
    (b"\xef\xbb\xbf", "text with a byte-order mark", "remove its first three bytes, as `tail -c +4` does"),
    (b"\xff\xfe", "text in UTF-16", "convert it, as `iconv -f UTF-16 -t ASCII` does"),
    (b"\xfe\xff", "text in UTF-16", "convert it, as `iconv -f UTF-16 -t ASCII` does"),
    (b"<", "a page of HTML or XML, as servers send instead of a file", "fetch the file again"),
    (b"DBF", "an index of Deacon", "pass the sequences that it was made of"),
    (b">", "FASTA", ""),
    (b";", "FASTA", ""),
    (b"@", "FASTQ", ""),
    (b"\x1f\x8b", "a file compressed by gzip", "unpack it once more"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by Zstandard", "unpack it once more"),
];

/// Returns the kind of file that begins with these bytes, and a remedy if sequences are needed; `None` for others.
pub(crate) fn recognise(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if let Some(rest) = head.strip_prefix(b"WARPSET\0") {
        let number = rest.get(2..4).map(|number| u16::from_le_bytes([number[0], number[1]]));
        let what = match number {
            Some(number) if number == FileKind::KMERS_INDEX.number => "an index",
            Some(number) if number == FileKind::KMERS_LABELS.number => "labels",
            Some(number) if is_table(number) => "a table",
            _ => "a saved structure of Warpset, and no table, index or labels",
        };
        return Some((what, "pass the sequences that it was made of"));
    }
    if is_sequence_text(head) {
        let is_lone = |two: &[u8]| two[0] == b'\r' && two[1] != b'\n';
        if !head.contains(&b'\n') && head.windows(2).any(is_lone) {
            return Some(("text whose lines end in CR alone", "convert it, as `tr '\\r' '\\n'` does"));
        }
        if are_proteins(head) {
            return Some(("a file of proteins", "pass sequences of DNA or RNA"));
        }
    }
    KINDS.into_iter().find(|(magic, ..)| head.starts_with(magic)).map(|(_, what, remedy)| (what, remedy))
}

/// Whether files with this number of a structure are tables.
pub(crate) fn is_table(number: u16) -> bool {
    [FileKind::RANK_SELECT_QUOTIENT_FILTER, FileKind::KMERS_LONG].iter().any(|kind| kind.number == number)
}

/// Whether a text begins with the mark of FASTA or FASTQ, or with a comment of FASTA.
fn is_sequence_text(head: &[u8]) -> bool {
    matches!(head.first(), Some(b'>' | b';' | b'@'))
}

/// Whether FASTA begins with proteins: more than a tenth of the letters are E, F, I, L, P or Q, which are no codes of
/// bases; among amino acids they are a third.
fn are_proteins(head: &[u8]) -> bool {
    let lines = head.split(|&byte| byte == b'\n').filter(|line| !matches!(line.first(), Some(b'>' | b';')));
    let letters = lines.flatten().filter(|letter| letter.is_ascii_alphabetic());
    let is_amino = |letter: &u8| b"EFILPQ".contains(&letter.to_ascii_uppercase());
    let (amino, all) = letters.fold((0, 0), |(amino, all), letter| (amino + u32::from(is_amino(letter)), all + 1));
    head.first() != Some(&b'@') && amino >= 2 && 10 * amino > all
}

/// Returns the first byte of FASTA or FASTQ; `None` for other texts.
pub(crate) fn mark_of(head: &[u8]) -> Option<u8> {
    recognise(head).filter(|(what, _)| what.starts_with("FAST")).and_then(|_| head.first().copied())
}

/// Whether a text with these first [`HEAD`] bytes contains nothing.
pub(crate) fn is_empty(head: &[u8]) -> bool {
    head.len() < HEAD && head.iter().all(|&byte| is_white(byte))
}

/// Returns the error for a file that starts with these bytes and is no FASTA or FASTQ.
pub(crate) fn no_sequences(path: &Path, head: &[u8]) -> Error {
    let path = path.to_owned();
    match (recognise(head), head.first()) {
        (Some((found, remedy)), _) => {
            Error::OtherKind { path, found, needed: format!("FASTA or FASTQ is needed: {remedy}") }
        }
        (None, first) => {
            let first = char::from(first.copied().unwrap_or(0));
            Error::NotSequence { path, reason: format!("it begins with {first:?}, not with `>` or `@`") }
        }
    }
}

/// Reads the first bytes of a file.
pub(crate) fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns a checksum that identifies a table or an index: the checksums in the headers of our own files, which are not
/// computed again, or XXH3-64 of all bytes of another file.
///
/// # Errors
/// [`Error::Read`].
pub fn checksum(path: &Path) -> Result<String, Error> {
    let read = || {
        let mut file = File::open(path)?;
        let mut text = String::new();
        loop {
            let mut header = [0; HEADER_BYTES];
            let is_ours = file.read_exact(&mut header).is_ok() && header.starts_with(b"WARPSET\0");
            if !is_ours {
                break;
            }
            let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
            text += &format!("{:016x}", u64_at(HEADER_BYTES - 8));
            file.seek(SeekFrom::Current(i64::try_from(u64_at(16)).unwrap_or(i64::MAX)))?;
        }
        if text.is_empty() {
            file.rewind()?;
            let (mut hasher, mut buffer) = (Xxh3::new(), vec![0; 1 << 20]);
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    read => hasher.update(&buffer[..read]),
                }
            }
            text = format!("{:016x}", hasher.digest());
        }
        Ok(text)
    };
    read().map_err(|source| Error::Read { path: path.to_owned(), source })
}

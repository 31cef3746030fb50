//! Saved form: words of 64 bits, little-endian in files.
//!
//! The header is that of every saved structure (`docs/formats.md`), here in words:
//!
//! ```text
//! word   0  magic "WARPSET\0"
//!        1  version (16 bits), structure (16 bits), header bytes (32 bits)
//!        2  payload bytes
//!        3  n, number of keys
//!        4  number of buckets
//!        5  seed of the initial hash
//!        6  bytes: leaf size, first fanout, second fanout, method, remix, log2 of the jump stride, low bits of keys,
//!           low bits of tree positions
//!        7  largest bucket (low 32 bits), expected bucket size (high 32 bits)
//!        8  bits of the line for each key × 2^16 (signed)
//!        9  least number of keys in a bucket
//!       10  bits of the line for each bucket × 2^16 (signed)
//!       11… zero
//!       15  XXH3-64 of words 0 to 14 and of the payload
//!       16  bits of the trees
//!       17  words of the upper bits of keys
//!       18  words of the upper bits of tree positions
//!       19  positions of a full leaf
//!       20… trees, lower bits, upper bits of keys, upper bits of tree positions, jump array
//! ```

use crate::HashKind;
use crate::elias_fano::{LOG_STRIDES, Layout};
use crate::kind::sealed;
use bytemuck::{cast, cast_slice};
use warpset_base::file::{self, FileError, FileKind, HEADER_BYTES};
use warpset_core::recsplit::shape::MAX_BUCKET;

/// Words before the codes.
pub(crate) const HEADER_WORDS: u64 = 20;
/// Words of the header of every structure, the checksum last.
pub(crate) const COMMON_WORDS: usize = HEADER_BYTES / 8;

/// Returns the first words of a saved structure, without the checksum.
pub(crate) fn common(structure: FileKind, payload_words: u64, fields: [u64; file::FIELDS]) -> [u64; COMMON_WORDS] {
    cast(file::Header { payload_bytes: payload_words * 8, fields, checksum: 0 }.to_bytes(structure))
}

/// Parses the fields that every header begins with, from at least `COMMON_WORDS` words.
pub(crate) fn parse_common(words: &[u64], structure: FileKind) -> Result<file::Header, FileError> {
    let needed = HEADER_BYTES as u64;
    let head = cast_slice(words).first_chunk();
    let header = file::Header::parse(head.ok_or(FileError::Truncated { needed, found: bytes(words) })?, structure)?;
    let value = header.payload_bytes;
    if !value.is_multiple_of(8) || value > i64::MAX as u64 {
        return Err(FileError::InvalidHeader { field: "payload bytes", value });
    }
    Ok(header)
}

/// Parses like [`parse_common`], for a whole structure, and compares its length.
pub(crate) fn parse_whole(words: &[u64], structure: FileKind) -> Result<file::Header, FileError> {
    let header = parse_common(words, structure)?;
    let (needed, found) = (HEADER_BYTES as u64 + header.payload_bytes, bytes(words));
    if found < needed {
        return Err(FileError::Truncated { needed, found });
    }
    if found > needed {
        return Err(FileError::TrailingBytes { extra: found - needed });
    }
    Ok(header)
}

fn bytes(words: &[u64]) -> u64 {
    size_of_val(words) as u64
}

/// Computes the checksum of a whole structure.
pub(crate) fn checksum(words: &[u64]) -> u64 {
    let (head, payload) = words.split_at(COMMON_WORDS);
    cast_slice(head).first_chunk().map_or(0, |head| file::Header::checksum_of(head, payload))
}

/// Checks the checksum of a whole structure.
pub(crate) fn verify(words: &[u64]) -> Result<(), FileError> {
    let (expected, found) = (words[COMMON_WORDS - 1], checksum(words));
    if found != expected {
        return Err(FileError::Corrupted { expected, found });
    }
    Ok(())
}

/// Fields of the first words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<M: sealed::HashKind> {
    pub(crate) keys: u64,
    pub(crate) seed: u64,
    /// Parameters of the kind's codes.
    pub(crate) code: M::CodeParameters,
    pub(crate) largest_bucket: u32,
    pub(crate) bucket_size: u32,
    /// Bits of the codes of all buckets.
    pub(crate) code_bits: u64,
    pub(crate) layout: Layout,
}

impl<M: HashKind> Header<M> {
    /// Returns the words of the whole function.
    pub(crate) fn words(&self) -> u64 {
        self.lists_at() + self.layout.words()
    }

    /// Returns the position of the lists' first word.
    pub(crate) fn lists_at(&self) -> u64 {
        HEADER_WORDS + self.code_bits.div_ceil(64)
    }

    /// Returns the first words.
    pub(crate) fn to_words(self) -> [u64; HEADER_WORDS as usize] {
        let layout = &self.layout;
        let ([a, b, c, d, e], word) = M::to_fields(&self.code);
        let bytes = [a, b, c, d, e, layout.log_stride as u8, layout.low_keys as u8, layout.low_bits as u8];
        let fields = [
            self.keys,
            layout.buckets,
            self.seed,
            u64::from_le_bytes(bytes),
            u64::from(self.largest_bucket) | u64::from(self.bucket_size) << 32,
            layout.key_slope as u64,
            layout.least_keys,
            layout.bucket_slope as u64,
        ];
        let mut words = [0; HEADER_WORDS as usize];
        let (head, rest) = words.split_at_mut(COMMON_WORDS);
        head.copy_from_slice(&common(M::KIND.structure(), self.words() - COMMON_WORDS as u64, fields));
        rest.copy_from_slice(&[self.code_bits, layout.upper_keys_words, layout.upper_bits_words, word]);
        words
    }
}

/// Checks all of a function's words but the checksum, and parses their header. Never panics and allocates nothing.
pub(crate) fn parse<M: HashKind>(words: &[u64]) -> Result<Header<M>, FileError> {
    let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
    let file::Header { payload_bytes, fields, .. } = parse_whole(words, M::KIND.structure())?;
    let [keys, buckets, seed, bytes, sizes, key_slope, least_keys, bucket_slope] = fields;
    let &[code_bits, upper_keys_words, upper_bits_words, word, ..] = &words[COMMON_WORDS..] else {
        return invalid("payload bytes", payload_bytes);
    };
    let [a, b, c, d, e, log_stride, low_keys, low_bits] = bytes.to_le_bytes();
    let header = Header {
        keys,
        seed,
        code: M::from_fields([a, b, c, d, e], word, bytes)?,
        largest_bucket: sizes as u32,
        bucket_size: (sizes >> 32) as u32,
        code_bits,
        layout: Layout {
            buckets,
            key_slope: key_slope as i64,
            least_keys,
            bucket_slope: bucket_slope as i64,
            low_keys: low_keys.into(),
            low_bits: low_bits.into(),
            log_stride: log_stride.into(),
            upper_keys_words,
            upper_bits_words,
        },
    };
    let layout = &header.layout;
    let limit = words.len() as u64;
    if layout.low_keys > 62 || layout.low_bits > 62 || !LOG_STRIDES.contains(&layout.log_stride) {
        return invalid("list parameters", bytes);
    }
    // Bounds that keep every sum below from overflowing; the upper bits have a one per bucket.
    if upper_keys_words > limit || buckets >= upper_keys_words * 64 {
        return invalid("words of the upper bits of keys", upper_keys_words);
    }
    if upper_bits_words > limit || buckets >= upper_bits_words * 64 {
        return invalid("words of the upper bits of tree positions", upper_bits_words);
    }
    if code_bits / 64 > limit {
        return invalid("bits of the trees", code_bits);
    }
    if header.words() != limit {
        return invalid("payload bytes", payload_bytes);
    }
    if header.largest_bucket as usize > MAX_BUCKET
        || u64::from(header.largest_bucket) > keys
        || (keys > 0) != (buckets > 0)
        || u128::from(keys) > u128::from(buckets) * u128::from(header.largest_bucket)
        || !M::is_possible(&header)
    {
        return invalid("largest bucket", sizes);
    }
    Ok(header)
}

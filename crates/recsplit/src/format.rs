//! The saved form: words of 64 bits, little-endian in files.
//!
//! The header is the one of every saved structure (`docs/formats.md`), here in words:
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

use crate::Error;
use crate::elias_fano::{LOG_STRIDES, Layout};
use warpset_core::recsplit::shape::MAX_BUCKET;
use warpset_core::recsplit::{Method, Remix, Shape};
use xxhash_rust::xxh3::Xxh3;

/// Words before the trees.
pub(crate) const HEADER_WORDS: u64 = 20;
/// Words of the header that every structure has, with its checksum as the last one.
pub(crate) const COMMON_WORDS: usize = 16;
/// The number of this structure.
pub(crate) const STRUCTURE: u16 = 16;
/// The version that this library writes and reads.
const VERSION: u16 = 1;

const MAGIC: u64 = u64::from_le_bytes(*b"WARPSET\0");

/// The first three words of a saved structure.
pub(crate) fn preamble(structure: u16, payload_words: u64) -> [u64; 3] {
    let kind = u64::from(VERSION) | u64::from(structure) << 16 | (COMMON_WORDS as u64 * 8) << 32;
    [MAGIC, kind, payload_words * 8]
}

/// Checks the first words, `COMMON_WORDS` of them or more; gives the words of the payload.
pub(crate) fn check_preamble(words: &[u64], structure: u16) -> Result<u64, Error> {
    let invalid = |what| Err(Error::InvalidFormat(what));
    if words.len() < COMMON_WORDS {
        return invalid("shorter than a header");
    }
    if words[0] != MAGIC {
        return invalid("it does not begin with the magic bytes");
    }
    if words[1] as u16 != VERSION {
        return Err(Error::UnsupportedVersion { found: words[1] as u32 & 0xffff, supported: VERSION.into() });
    }
    if words[1] != preamble(structure, 0)[1] {
        return invalid("it is another structure");
    }
    if !words[2].is_multiple_of(8) {
        return invalid("no whole number of words");
    }
    Ok(words[2] / 8)
}

/// XXH3-64 of all words but the checksum, as little-endian bytes.
pub(crate) fn checksum(words: &[u64]) -> u64 {
    let mut hasher = Xxh3::new();
    for part in [&words[..COMMON_WORDS - 1], &words[COMMON_WORDS..]] {
        if cfg!(target_endian = "little") {
            hasher.update(bytemuck::cast_slice(part));
        } else {
            part.iter().for_each(|word| hasher.update(&word.to_le_bytes()));
        }
    }
    hasher.digest()
}

/// What the first words say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub keys: u64,
    pub seed: u64,
    pub shape: Shape,
    pub remix: Remix,
    pub largest_bucket: u32,
    pub bucket_size: u32,
    pub tree_bits: u64,
    pub layout: Layout,
}

impl Header {
    /// Words of the whole function.
    pub(crate) fn words(&self) -> u64 {
        HEADER_WORDS + self.tree_bits.div_ceil(64) + self.layout.words()
    }

    /// The first words.
    pub(crate) fn to_words(self) -> [u64; HEADER_WORDS as usize] {
        let layout = &self.layout;
        let bytes = [
            self.shape.leaf() as u8,
            self.shape.first_fanout() as u8,
            self.shape.second_fanout() as u8,
            self.shape.method() as u8,
            self.remix as u8,
            layout.log_stride as u8,
            layout.low_keys as u8,
            layout.low_bits as u8,
        ];
        let [magic, kind, payload] = preamble(STRUCTURE, self.words() - COMMON_WORDS as u64);
        [
            magic,
            kind,
            payload,
            self.keys,
            layout.buckets,
            self.seed,
            u64::from_le_bytes(bytes),
            u64::from(self.largest_bucket) | u64::from(self.bucket_size) << 32,
            layout.key_slope as u64,
            layout.least_keys,
            layout.bucket_slope as u64,
            0,
            0,
            0,
            0,
            0,
            self.tree_bits,
            layout.upper_keys_words,
            layout.upper_bits_words,
            self.shape.positions().into(),
        ]
    }
}

/// Checks words and reads their header. Never panics and allocates nothing.
pub(crate) fn parse(words: &[u64]) -> Result<Header, Error> {
    let invalid = |what| Err(Error::InvalidFormat(what));
    let payload = check_preamble(words, STRUCTURE)?;
    let Some(head) = words.first_chunk::<{ HEADER_WORDS as usize }>() else {
        return invalid("shorter than a header");
    };
    if payload != (words.len() - COMMON_WORDS) as u64 || head[11..15] != [0; 4] {
        return invalid("lengths do not fit");
    }
    let [leaf, first, second, method, remix, log_stride, low_keys, low_bits] = head[6].to_le_bytes();
    let method = match method {
        0 => Method::BruteForce,
        1 => Method::Rotation,
        2 => Method::Grouped,
        _ => return invalid("unknown search method"),
    };
    let remix = match remix {
        0 => Remix::Bits32,
        1 => Remix::Bits64,
        _ => return invalid("unknown remix"),
    };
    let shape = Shape::new(leaf.into(), first.into(), second.into(), method);
    let Some(shape) = shape.and_then(|shape| shape.with_positions(u32::try_from(head[19]).ok()?)) else {
        return invalid("no such shape");
    };
    let header = Header {
        keys: head[3],
        seed: head[5],
        shape,
        remix,
        largest_bucket: head[7] as u32,
        bucket_size: (head[7] >> 32) as u32,
        tree_bits: head[16],
        layout: Layout {
            buckets: head[4],
            key_slope: head[8] as i64,
            least_keys: head[9],
            bucket_slope: head[10] as i64,
            low_keys: low_keys.into(),
            low_bits: low_bits.into(),
            log_stride: log_stride.into(),
            upper_keys_words: head[17],
            upper_bits_words: head[18],
        },
    };
    let layout = &header.layout;
    let limit = words.len() as u64;
    if layout.low_keys > 62 || layout.low_bits > 62 || !LOG_STRIDES.contains(&layout.log_stride) {
        return invalid("list parameters out of range");
    }
    // Bounds that keep every sum below from overflowing; there is a one for every bucket in the upper bits.
    if layout.upper_keys_words > limit
        || layout.upper_bits_words > limit
        || header.tree_bits / 64 > limit
        || layout.buckets >= layout.upper_keys_words * 64
        || layout.buckets >= layout.upper_bits_words * 64
        || header.words() != limit
    {
        return invalid("lengths do not fit");
    }
    if header.largest_bucket as usize > MAX_BUCKET
        || u64::from(header.largest_bucket) > header.keys
        || u64::from(header.largest_bucket) > (header.tree_bits + 1) * u64::from(leaf)
        || (header.keys > 0) != (layout.buckets > 0)
        || u128::from(header.keys) > u128::from(layout.buckets) * u128::from(header.largest_bucket)
    {
        return invalid("numbers of keys and buckets do not fit");
    }
    if checksum(words) != head[COMMON_WORDS - 1] {
        return invalid("the checksum is wrong");
    }
    Ok(header)
}

//! The saved form: words of 64 bits, little-endian in files.
//!
//! ```text
//! word   0  magic "WSRECSPL"
//!        1  version (low 32 bits), positions of a full leaf (high 32 bits)
//!        2  n, number of keys
//!        3  number of buckets
//!        4  seed of the initial hash
//!        5  bytes: leaf size, first fanout, second fanout, method, remix, log2 of the jump stride, low bits of keys,
//!           low bits of positions
//!        6  largest bucket (low 32 bits), expected bucket size (high 32 bits)
//!        7  slope: bits a key × 2^32
//!        8  least number of keys in a bucket
//!        9  least difference of positions above the slope (signed)
//!       10  bits of the trees
//!       11  words of the upper bits of keys
//!       12  words of the upper bits of positions
//!       13… trees, lower bits, upper bits of keys, upper bits of positions, jump array
//!     last  XXH3-64 of all words before, as little-endian bytes
//! ```

use crate::Error;
use crate::elias_fano::Layout;
use warpset_core::recsplit::shape::MAX_BUCKET;
use warpset_core::recsplit::{Method, Remix, Shape};
use xxhash_rust::xxh3::Xxh3;

/// Words before the trees.
pub(crate) const HEADER_WORDS: u64 = 13;
/// The version that this library writes and reads.
pub(crate) const VERSION: u32 = 1;

const MAGIC: u64 = u64::from_le_bytes(*b"WSRECSPL");

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
        HEADER_WORDS + self.tree_bits.div_ceil(64) + self.layout.words() + 1
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
        [
            MAGIC,
            u64::from(VERSION) | u64::from(self.shape.positions()) << 32,
            self.keys,
            layout.buckets,
            self.seed,
            u64::from_le_bytes(bytes),
            u64::from(self.largest_bucket) | u64::from(self.bucket_size) << 32,
            layout.slope,
            layout.least_keys,
            layout.least_bits as u64,
            self.tree_bits,
            layout.upper_keys_words,
            layout.upper_bits_words,
        ]
    }
}

/// XXH3-64 of words as little-endian bytes.
pub(crate) fn checksum(words: &[u64]) -> u64 {
    if cfg!(target_endian = "little") {
        return xxhash_rust::xxh3::xxh3_64(bytemuck::cast_slice(words));
    }
    let mut hasher = Xxh3::new();
    for word in words {
        hasher.update(&word.to_le_bytes());
    }
    hasher.digest()
}

/// Words of the whole function whose first words are `head`.
pub(crate) fn words_of(head: &[u64]) -> Result<u64, Error> {
    let invalid = Err(Error::InvalidFormat("it does not begin with the header of a function"));
    let Some(head) = head.first_chunk::<{ HEADER_WORDS as usize }>() else { return invalid };
    if head[0] != MAGIC {
        return invalid;
    }
    let [.., log_stride, low_keys, low_bits] = head[5].to_le_bytes();
    // Far beyond any memory, far below an overflow.
    let limit = 1 << 50;
    if [head[3], head[10], head[11], head[12]].iter().any(|&length| length > limit)
        || low_keys > 63
        || low_bits > 63
        || !(4..=8).contains(&log_stride)
    {
        return Err(Error::InvalidFormat("lengths do not fit"));
    }
    let layout = Layout {
        buckets: head[3],
        slope: 0,
        least_keys: 0,
        least_bits: 0,
        low_keys: low_keys.into(),
        low_bits: low_bits.into(),
        log_stride: log_stride.into(),
        upper_keys_words: head[11],
        upper_bits_words: head[12],
    };
    Ok(HEADER_WORDS + head[10].div_ceil(64) + layout.words() + 1)
}

/// Checks words and reads their header. Never panics and allocates nothing.
pub(crate) fn parse(words: &[u64]) -> Result<Header, Error> {
    let invalid = |what| Err(Error::InvalidFormat(what));
    let Some(head) = words.first_chunk::<{ HEADER_WORDS as usize }>() else {
        return invalid("shorter than a header");
    };
    if head[0] != MAGIC {
        return invalid("it does not begin with the magic bytes");
    }
    if head[1] as u32 != VERSION {
        return Err(Error::UnsupportedVersion { found: head[1] as u32, supported: VERSION });
    }
    let [leaf, first, second, method, remix, log_stride, low_keys, low_bits] = head[5].to_le_bytes();
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
    let Some(shape) = shape.and_then(|shape| shape.with_positions((head[1] >> 32) as u32)) else {
        return invalid("no such shape");
    };
    let header = Header {
        keys: head[2],
        seed: head[4],
        shape,
        remix,
        largest_bucket: head[6] as u32,
        bucket_size: (head[6] >> 32) as u32,
        tree_bits: head[10],
        layout: Layout {
            buckets: head[3],
            slope: head[7],
            least_keys: head[8],
            least_bits: head[9] as i64,
            low_keys: low_keys.into(),
            low_bits: low_bits.into(),
            log_stride: log_stride.into(),
            upper_keys_words: head[11],
            upper_bits_words: head[12],
        },
    };
    let layout = &header.layout;
    let limit = words.len() as u64;
    if layout.low_keys > 62 || layout.low_bits > 62 || !(4..=8).contains(&layout.log_stride) {
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
    let (checked, sum) = words.split_at(words.len() - 1);
    if checksum(checked) != sum[0] {
        return invalid("the checksum is wrong");
    }
    Ok(header)
}

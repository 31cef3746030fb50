//! MurmurHash3 (x86, 32 bits) as Apache Spark computes it.
//!
//! Source: Austin Appleby's MurmurHash3, public domain. Departure, which is Spark's: each byte after the last whole
//! word is a block of its own, with its sign.

fn mix_block(hash: u32, block: u32) -> u32 {
    let block = block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ block).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

fn finish(hash: u32, bytes: u32) -> u32 {
    let hash = hash ^ bytes;
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// Returns the hash of an integer's eight bytes.
pub(super) fn long(value: i64, seed: u32) -> u32 {
    let hash = mix_block(seed, value as u32);
    finish(mix_block(hash, (value >> 32) as u32), 8)
}

/// Returns the hash of a byte string.
pub(super) fn bytes(value: &[u8], seed: u32) -> u32 {
    let (words, rest) = value.as_chunks::<4>();
    let hash = words.iter().fold(seed, |hash, word| mix_block(hash, u32::from_le_bytes(*word)));
    let hash = rest.iter().fold(hash, |hash, &byte| mix_block(hash, i32::from(byte as i8) as u32));
    finish(hash, value.len() as u32)
}

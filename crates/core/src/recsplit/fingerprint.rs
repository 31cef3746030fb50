//! Fingerprints of static filters (introduction of the thesis).

use super::Hash128;

/// Returns the fingerprint of a key, `width` bits, 1 to 32. It is independent of all trial hashes, since it also uses
/// the half that picks the bucket.
#[inline]
pub const fn fingerprint(hash: Hash128, width: u32) -> u64 {
    let mixed = (hash.low ^ hash.high.rotate_left(32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed >> (64 - width)
}

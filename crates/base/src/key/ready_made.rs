//! Hashes that users bring, as keys.

use warpset_core::hash::string::StringHash;

use super::sealed::{Raw, Sealed};
use super::{Hash128, Key};

/// 64-bit hash in place of a key; a filter uses it unchanged.
///
/// All 64 bits should be uniform: in a Bloom filter the high ones choose the block and the low ones the bits; in a
/// quotient filter the high ones are the fingerprint.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    bytemuck::TransparentWrapper,
    bytemuck::Pod,
    bytemuck::Zeroable,
)]
#[repr(transparent)]
pub struct Hashed(pub u64);

/// Views hashes as keys, without a copy.
pub fn as_hashed(hashes: &[u64]) -> &[Hashed] {
    bytemuck::TransparentWrapper::wrap_slice(hashes)
}

impl Key for Hashed {}
impl Sealed for Hashed {
    const CHEAP: bool = true;
    #[inline]
    fn xxh64(&self) -> u64 {
        self.0
    }
    #[inline]
    fn seeded_hash(&self, _seed: u64, _spread: u64) -> u64 {
        self.0
    }
    #[inline]
    fn hash128(&self, seed: u64) -> Hash128 {
        Hash128::of_integer(self.0, seed)
    }
    #[inline(always)]
    fn short_hash128(&self, seed: u64) -> Hash128 {
        Hash128::of_integer_short(self.0, seed)
    }
    #[inline]
    fn string_hash(&self, function: StringHash) -> u32 {
        function.hash_bytes(&self.0.to_le_bytes())
    }
    fn describe(&self) -> String {
        format!("{:016x}", self.0)
    }
    #[inline]
    fn raw(keys: &[Self]) -> Raw<'_> {
        Raw::Hashes(bytemuck::cast_slice(keys))
    }
}

/// A structure with 128-bit hashes uses it unchanged under seed 0. Other seeds, which are tried after a collision, mix
/// its halves. A filter uses the low half.
impl Key for Hash128 {}
impl Sealed for Hash128 {
    const CHEAP: bool = true;
    #[inline]
    fn xxh64(&self) -> u64 {
        self.low
    }
    #[inline]
    fn seeded_hash(&self, _seed: u64, _spread: u64) -> u64 {
        self.low
    }
    #[inline]
    fn hash128(&self, seed: u64) -> Hash128 {
        self.under(seed)
    }
    #[inline]
    fn string_hash(&self, function: StringHash) -> u32 {
        function.hash_bytes(&((self.high as u128) << 64 | self.low as u128).to_le_bytes())
    }
    fn describe(&self) -> String {
        format!("{:016x}{:016x}", self.high, self.low)
    }
}

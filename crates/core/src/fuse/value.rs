//! Contents of the slots of static functions: a value, and above it a fingerprint of the key's hash.

use super::hash::fingerprint;
use crate::bits::lowest;

/// Returns the content of a key with this hash and value. Bits above those of a slot are arbitrary.
#[inline(always)]
pub const fn content(hash: u64, value: u64, value_bits: u32) -> u64 {
    value | (fingerprint(hash) as u64).unbounded_shl(value_bits)
}

/// Returns the value in the exclusive or of a key's slots, which have `bits` bits, unless the fingerprint is that of
/// another key. Bits of `content` above those of a slot are ignored; a fingerprint has at most 32 bits.
#[inline(always)]
pub const fn value_in(content: u64, hash: u64, bits: u32, value_bits: u32) -> Option<u64> {
    let wrong = content.unbounded_shr(value_bits) ^ fingerprint(hash) as u64;
    if wrong & ((1 << (bits - value_bits)) - 1) == 0 { Some(content & lowest(value_bits)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::hash::mix;
    use super::*;

    #[test]
    fn values_come_back_and_other_hashes_are_noticed() {
        for value_bits in 1..=64 {
            for bits in value_bits..=64.min(value_bits + 32) {
                let (hash, value) = (mix(bits.into(), 5), mix(value_bits.into(), 6) & lowest(value_bits));
                let content = content(hash, value, value_bits);
                assert_eq!(value_in(content, hash, bits, value_bits), Some(value), "{bits} {value_bits}");
                let other = value_in(content ^ (lowest(bits) ^ lowest(value_bits)), hash, bits, value_bits);
                assert_eq!(other, (bits == value_bits).then_some(value));
            }
        }
    }
}

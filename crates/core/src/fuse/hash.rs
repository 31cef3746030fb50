//! The hash of a key under the seed of a filter, and under that of its shard.

/// The first multiplier of MurmurHash3's finaliser for 64 bits.
const FIRST: u64 = 0xff51_afd7_ed55_8ccd;
/// The second one.
const SECOND: u64 = 0xc4ce_b9fe_1a85_ec53;
/// Modulo 2^64, the inverse of [`FIRST`].
const FIRST_INVERSE: u64 = inverse(FIRST);
/// Modulo 2^64, the inverse of [`SECOND`].
const SECOND_INVERSE: u64 = inverse(SECOND);
/// 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the inverse of an odd number modulo 2^64, by Newton's method: each step doubles the correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

/// Returns the hash of a key's word under a seed: MurmurHash3's finaliser of their sum. For each seed a bijection.
#[inline(always)]
pub const fn mix(word: u64, seed: u64) -> u64 {
    let mut hash = word.wrapping_add(seed);
    hash = (hash ^ hash >> 33).wrapping_mul(FIRST);
    hash = (hash ^ hash >> 33).wrapping_mul(SECOND);
    hash ^ hash >> 33
}

/// Returns the word that [`mix`] makes this hash of.
#[inline(always)]
pub const fn unmix(hash: u64, seed: u64) -> u64 {
    // A shift by more than half of the bits undoes itself.
    let mut word = (hash ^ hash >> 33).wrapping_mul(SECOND_INVERSE);
    word = (word ^ word >> 33).wrapping_mul(FIRST_INVERSE);
    (word ^ word >> 33).wrapping_sub(seed)
}

/// Returns the fingerprint of a hash; the filter stores its low bits.
#[inline(always)]
pub const fn fingerprint(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

/// Returns the shard of a hash, below `shards <= 2^32`, by a multiplication that keeps the order of hashes. It reads
/// the high half alone, so sorting by that half suffices.
#[inline(always)]
pub const fn shard_of(hash: u64, shards: u64) -> u64 {
    ((hash >> 32) * shards) >> 32
}

/// Returns the least hash of a shard; of shard `shards`, which does not exist, `None`.
#[inline]
pub const fn least_of_shard(shard: u64, shards: u64) -> Option<u64> {
    let high = (shard << 32).div_ceil(shards);
    if high >> 32 == 0 { Some(high << 32) } else { None }
}

/// Returns the hash of a key within its shard, of its hash and the shard's own seed.
#[inline(always)]
pub const fn within_shard(hash: u64, shard_seed: u8) -> u64 {
    mix(hash, GOLDEN.wrapping_mul(shard_seed as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_published_filters() {
        // Values of MurmurHash3's fmix64 as its reference implementation gives them.
        assert_eq!(mix(0, 0), 0);
        assert_eq!(mix(1, 0), 0xb456_bcfc_34c2_cb2c);
        assert_eq!(mix(0, 1), mix(1, 0));
        assert_eq!(mix(u64::MAX, 2), mix(1, 0));
    }

    #[test]
    fn words_come_back() {
        for i in 0..2000u64 {
            let (word, seed) = (mix(i, 7), mix(i, 8));
            assert_eq!(unmix(mix(word, seed), seed), word);
            assert_eq!(unmix(mix(i, i), i), i);
        }
    }

    #[test]
    fn shards_ascend_with_hashes() {
        assert_eq!([0, u64::MAX / 2, u64::MAX].map(|hash| shard_of(hash, 3)), [0, 1, 2]);
        assert_eq!((shard_of(u64::MAX, 1), shard_of(u64::MAX, 1 << 32)), (0, u32::MAX.into()));
        for shards in [1, 2, 3, 1000, (1 << 24) - 1, 1 << 24] {
            for shard in [0, 1, shards / 2, shards - 1].into_iter().filter(|&shard| shard < shards) {
                let least = least_of_shard(shard, shards).unwrap();
                assert_eq!(shard_of(least, shards), shard);
                assert!(least == 0 || shard_of(least - 1, shards) == shard - 1, "{shard} of {shards}");
            }
            assert_eq!(least_of_shard(shards, shards), None);
        }
    }
}

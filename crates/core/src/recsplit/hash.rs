//! Hash values of a key: its bucket, its trial hashes, and the child or leaf position that a trial hash picks.
//!
//! Source: sections 4.1, 4.2, 5.2 and 5.3. Departures:
//! - The high bits of a trial hash of 32 bits are used. MurmurHash3's 32-bit finaliser has two multiplications and
//!   three xor-shifts; high bits need only the xor-shift between the multiplications, a third less work. The numbers of
//!   trials stay within their standard error of the model (`docs/recsplit.md`).
//! - Start seeds are xor-ed onto the folded sum instead of being added to the key. One three-input logic instruction
//!   does both, and the numbers of trials stay those of the model. The trial number itself is added before the fold,
//!   for the reason given in section 5.3 (the carry differs from key to key).
//! - A splitting in two compares the hash with a threshold. A splitting in more parts multiplies by the number of units
//!   as a fixed-point number. Neither needs the division by the unit of section 5.6.1.

/// The initial 128-bit hash of a key, the only input of RecSplit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(C)]
pub struct Hash128 {
    /// Determines the bucket.
    pub high: u64,
    /// Determines everything inside the bucket.
    pub low: u64,
}

const _: () = assert!(size_of::<Hash128>() == 16);

impl Hash128 {
    /// Hashes an integer of up to 64 bits. The low half is a bijection of the integer, so different integers never
    /// collide.
    #[inline]
    pub const fn of_integer(x: u64, seed: u64) -> Self {
        let x = x ^ seed;
        Self { high: mix_high(x.wrapping_add(0x9e37_79b9_7f4a_7c15)), low: mix_low(x) }
    }

    /// Hashes an integer of up to 64 bits with half of the work of [`of_integer`](Self::of_integer), for placement.
    /// Both halves are bijections of the integer. The high half, which picks the segment, is known first.
    #[inline(always)]
    pub const fn of_integer_short(x: u64, seed: u64) -> Self {
        let high = mix_low(x ^ seed);
        Self { high, low: high.wrapping_mul(SHORT) }
    }

    /// Returns a ready-made hash under a seed. Seed 0 keeps it unchanged; the other seeds, tried after a collision, mix
    /// its halves.
    #[inline]
    pub const fn under(self, seed: u64) -> Self {
        if seed == 0 {
            return self;
        }
        // Two rounds of a Feistel network: a bijection of all 128 bits in which each half depends on both.
        let high = self.high ^ mix_high(self.low ^ seed);
        let low = self.low ^ mix_low(high ^ seed);
        Self { high: mix_high(high), low: mix_low(low) }
    }
}

/// Multipliers of the low half of an integer's hash.
pub const MIX_LOW: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];
/// Multiplier that makes the low half of [`Hash128::of_integer_short`] from the high half.
pub const SHORT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Applies Stafford's variant 13 of MurmurHash3's finaliser, a bijection.
#[inline]
const fn mix_low(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(MIX_LOW[0]);
    x = (x ^ (x >> 27)).wrapping_mul(MIX_LOW[1]);
    x ^ (x >> 31)
}

/// Applies MurmurHash3's finaliser, a bijection.
#[inline]
const fn mix_high(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Returns the bucket of a key among `buckets`, from the high half of its hash (section 4.2).
#[inline]
pub const fn bucket_of(high: u64, buckets: u64) -> u64 {
    ((high as u128 * buckets as u128) >> 64) as u64
}

/// Finaliser of trial hashes. The 32-bit one is the default; the 64-bit one is for comparison (section 6.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Remix {
    /// Two 32-bit multiplications of the folded sum.
    #[default]
    Bits32 = 0,
    /// Two 64-bit multiplications of the unfolded sum.
    Bits64 = 1,
}

/// First multiplier of MurmurHash3's 32-bit finaliser.
pub const MULTIPLIER_1: u32 = 0x85eb_ca6b;
/// Second multiplier of MurmurHash3's 32-bit finaliser.
pub const MULTIPLIER_2: u32 = 0xc2b2_ae35;

/// Mixes 32 bits; use the high bits of the result.
#[inline]
pub const fn remix32(mut x: u32) -> u32 {
    x = x.wrapping_mul(MULTIPLIER_1);
    x ^= x >> 15;
    x.wrapping_mul(MULTIPLIER_2)
}

/// Returns the high half of MurmurHash3's 64-bit finaliser with Stafford's constants (variant 13).
#[inline]
pub const fn remix64(mut x: u64) -> u32 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 32) as u32
}

/// Returns a word that differs between levels of the tree, so that a key's trial hashes on different levels are
/// independent (section 5.2).
#[inline]
pub const fn start_seed(level: u32) -> u32 {
    0x9e37_79b9_u32.wrapping_mul(level + 1)
}

/// Level number of all leaves for [`start_seed`].
pub const LEVEL_LEAF: u32 = 0;
/// Level number of all splittings of the first aggregation level.
pub const LEVEL_FIRST: u32 = 1;
/// Level number of all splittings of the second aggregation level.
pub const LEVEL_SECOND: u32 = 2;
/// Level number of a bucket's root when it is above the aggregation levels; its children's levels count up from it.
pub const LEVEL_ROOT: u32 = 3;

/// Returns trial hash number `trial` of a key with the given low half, on a level with the given start seed.
#[inline]
pub const fn trial_hash(remix: Remix, low: u64, start: u32, trial: u64) -> u32 {
    let sum = low.wrapping_add(trial);
    match remix {
        Remix::Bits32 => remix32((sum >> 32) as u32 ^ sum as u32 ^ start),
        Remix::Bits64 => remix64(sum ^ ((start as u64) << 32)),
    }
}

/// Returns the key's contribution to the trial hashes from `trial` on, for [`trial_hash_near`].
#[inline]
pub const fn trial_sum(low: u64, start: u32, trial: u64) -> u64 {
    low.wrapping_add(trial) ^ ((start as u64) << 32)
}

/// Whether [`trial_hash_near`] returns the right hashes for offsets below 32.
#[inline]
pub const fn is_near(sum: u64) -> bool {
    sum as u32 <= u32::MAX - 31
}

/// Returns `trial_hash(remix, low, start, trial + offset)` from the [`trial_sum`] of `low`, `start` and `trial`, which
/// saves an addition. If the low half overflows, the hash is a different one; [`is_near`] excludes that.
#[inline]
pub const fn trial_hash_near(remix: Remix, sum: u64, offset: u32) -> u32 {
    let (high, low) = ((sum >> 32) as u32, (sum as u32).wrapping_add(offset));
    match remix {
        Remix::Bits32 => remix32(high ^ low),
        Remix::Bits64 => remix64((high as u64) << 32 | low as u64),
    }
}

/// Returns the rotation group of a key of a splitting among `groups` (1 to 256). It is monotone in the lowest byte of
/// `low`, so keys sorted by that byte are sorted by group for every number of groups.
#[inline]
pub const fn group_of(low: u64, groups: u32) -> u32 {
    ((low as u32 & 0xff) * groups) >> 8
}

/// Trials after which the groups of a leaf's keys change; every search's vector length divides it.
pub const REGROUP: u64 = 16;

/// Returns the multiplier of [`leaf_group_of`] for the trials from `trial / REGROUP * REGROUP` on.
#[inline]
pub const fn leaf_group_multiplier(trial: u64) -> u32 {
    0x9e37_79b9_u32.wrapping_mul(2 * (trial / REGROUP) as u32 + 1)
}

/// Returns the rotation group of a key of a leaf among `groups` (1 to 256). A leaf has few keys, so a group may stay
/// empty, which wastes its rotations. Groups that change every [`REGROUP`] trials spread the waste evenly over all
/// leaves, and searches skip trials with an empty group.
#[inline]
pub const fn leaf_group_of(low: u64, multiplier: u32, groups: u32) -> u32 {
    (((low as u32).wrapping_mul(multiplier) >> 24) * groups) >> 8
}

/// Returns the leaf position, below `keys` (at most 2^16), that a trial hash picks.
#[inline]
pub const fn leaf_position(hash: u32, keys: u32) -> u32 {
    ((hash >> 16) * keys) >> 16
}

/// Returns the threshold of a splitting in two: hashes below it go left. `unit` of `keys` keys go left, `unit < keys`.
#[inline]
pub const fn threshold(unit: u32, keys: u32) -> u32 {
    (((unit as u64) << 32) / keys as u64) as u32
}

/// Returns the multiplier of [`child_of`] for a splitting of `keys` keys in children of `unit` keys: `keys / unit` with
/// 12 fractional bits. Needs `keys <= 15 * unit`.
#[inline]
pub const fn child_scale(unit: u32, keys: u32) -> u32 {
    (keys << 12) / unit
}

/// Returns the child that a trial hash picks in a splitting in more than two parts.
#[inline]
pub const fn child_of(hash: u32, scale: u32) -> u32 {
    ((hash >> 16) * scale) >> 28
}

/// `ceil(2^64 / radix^digit)` by `[radix][digit]`, and 0 for digit 0: extracts digits without divisions.
pub static RECIPROCALS: [[u64; 6]; 25] = {
    let mut table = [[0; 6]; 25];
    let mut radix = 2;
    while radix < 25 {
        let mut power = 1_u128;
        let mut digit = 1;
        while digit < 6 {
            power *= radix as u128;
            table[radix][digit] = (1_u128 << 64).div_ceil(power) as u64;
            digit += 1;
        }
        radix += 1;
    }
    table
};

const fn multiply_high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// Returns the trial of a stored number with `groups > 1` groups of `radix` rotations, `number / radix^(groups - 1)`.
/// Exact for numbers below 2^41, far above any result of a search.
#[inline]
pub fn trial_of(number: u64, radix: u32, groups: u32) -> u64 {
    multiply_high(number, RECIPROCALS[radix as usize][groups as usize - 1])
}

/// Returns the rotation of `group`: digit `group - 1` of an index below 2^23 in base `radix`, 0 for group 0.
#[inline]
pub fn rotation_of(index: u32, radix: u32, group: u32) -> u32 {
    // The fraction of `index / radix^group`, times the radix.
    let fraction = (index as u64).wrapping_mul(RECIPROCALS[radix as usize][group as usize]);
    multiply_high(fraction, radix as u64) as u32
}

/// Rotates the low `width` bits of `word` left by `by < width`; the others are zero.
#[inline]
pub const fn rotate(word: u32, by: u32, width: u32) -> u32 {
    if by == 0 {
        return word;
    }
    let mask = if width == 32 { u32::MAX } else { (1 << width) - 1 };
    ((word << by) | (word >> (width - by))) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_stay_below_the_fanout() {
        for unit in 1..300_u32 {
            for keys in unit + 1..=9 * unit {
                let fanout = keys.div_ceil(unit);
                assert!(child_of(u32::MAX, child_scale(unit, keys)) < fanout, "{unit} of {keys}");
                assert_eq!(child_of(0, child_scale(unit, keys)), 0);
            }
        }
    }

    #[test]
    fn leaf_positions_cover_the_range() {
        for keys in 1..=32 {
            assert_eq!(leaf_position(u32::MAX, keys), keys - 1);
        }
    }

    #[test]
    fn hashes_of_near_trials() {
        for remix in [Remix::Bits32, Remix::Bits64] {
            for low in [0, 5, u64::MAX, 0x1234_5678_ffff_ff00, 0xffff_ffff_0000_0000] {
                for trial in [0, 32, 0xe0, 1 << 33] {
                    let sum = trial_sum(low, 0xdead_beef, trial);
                    let is_right = |offset| {
                        trial_hash_near(remix, sum, offset)
                            == trial_hash(remix, low, 0xdead_beef, trial + u64::from(offset))
                    };
                    assert_eq!(is_near(sum), (0..32).all(is_right), "{low:x} {trial}");
                }
            }
        }
    }

    #[test]
    fn numbers_come_apart_without_divisions() {
        for radix in 2..=24_u32 {
            for groups in 2..=6_u32 {
                let candidates = u64::from(radix).pow(groups - 1);
                for base in [0, 1, 77, (1 << 41) / candidates - 2] {
                    for index in [0, 1, candidates / 2, candidates - 1] {
                        let number = base * candidates + index;
                        assert_eq!(trial_of(number, radix, groups), base, "{radix} {groups} {number}");
                        for group in 0..groups {
                            let digit =
                                if group == 0 { 0 } else { index / u64::from(radix).pow(group - 1) % u64::from(radix) };
                            assert_eq!(u64::from(rotation_of(index as u32, radix, group)), digit);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rotation_is_cyclic() {
        for width in 1..=32u32 {
            let word = 0x5a5a_1234 & (u32::MAX >> (32 - width));
            let mut turned = word;
            for by in 0..width {
                assert_eq!(rotate(word, by, width), turned, "{width} {by}");
                turned = if width == 1 { turned } else { rotate(turned, 1, width) };
            }
            assert_eq!(turned, word);
        }
    }
}

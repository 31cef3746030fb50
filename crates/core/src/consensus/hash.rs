//! Seeds, and what they make of a key.

/// Bits of a seed: the last ones of the string of bits when a task's own are added.
pub const SEED_BITS: u32 = 32;

/// The multiplier of a task on `level` with this seed.
///
/// Two multiplications. With one, which visits no more tasks on average, multipliers of seeds that differ in a few bits
/// alone would too: some pairs of keys would have nearly equal hashes under all seeds that a small bucket has.
#[inline(always)]
pub const fn multiplier(seed: u32, level: u32) -> u32 {
    let x = seed ^ level.wrapping_mul(LEVEL_FACTOR);
    let x = (x ^ x >> 16).wrapping_mul(FACTORS[0]);
    (x ^ x >> 15).wrapping_mul(FACTORS[1])
}

/// What levels differ by in [`multiplier`].
pub const LEVEL_FACTOR: u32 = 0x9e37_79b9;
/// The factors of [`multiplier`].
pub const FACTORS: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

/// The hash of the key with this low half of its hash. One multiplication: keys are random already.
#[inline(always)]
pub const fn task_hash(low: u64, multiplier: u32) -> u32 {
    (low as u32).wrapping_mul(multiplier).wrapping_add((low >> 32) as u32)
}

/// The position in a leaf of `keys` keys.
#[inline(always)]
pub const fn leaf_position(hash: u32, keys: u32) -> u32 {
    ((hash >> 16) * keys) >> 16
}

/// The seed after `bits` bits, up to 32, with `value` were added to the string that ended with `seed`.
#[inline(always)]
pub const fn next_seed(seed: u32, value: u32, bits: u32) -> u32 {
    ((seed as u64 | (value as u64) << 32) >> bits) as u32
}

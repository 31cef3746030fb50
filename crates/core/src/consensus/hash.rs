//! Seeds, and the hashes of keys under them.

/// Bits of a seed: the last ones of the string of bits, a task's own included.
pub const SEED_BITS: u32 = 32;

/// Returns the multiplier of a task on `level` with this seed.
///
/// Two multiplications. With one, which visits no more tasks on average, seeds that differ in few bits would have
/// multipliers that differ in few bits: some pairs of keys would have nearly equal hashes under all seeds of a small
/// bucket.
#[inline(always)]
pub const fn multiplier(seed: u32, level: u32) -> u32 {
    let x = seed ^ level.wrapping_mul(LEVEL_FACTOR);
    let x = (x ^ x >> 16).wrapping_mul(FACTORS[0]);
    (x ^ x >> 15).wrapping_mul(FACTORS[1])
}

/// Factor that separates levels in [`multiplier`].
pub const LEVEL_FACTOR: u32 = 0x9e37_79b9;
/// The factors of [`multiplier`].
pub const FACTORS: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

/// Returns the hash of the key with this low half of its hash. One multiplication suffices: keys are random already.
#[inline(always)]
pub const fn task_hash(low: u64, multiplier: u32) -> u32 {
    (low as u32).wrapping_mul(multiplier).wrapping_add((low >> 32) as u32)
}

/// Returns the position in a leaf of `keys` keys.
#[inline(always)]
pub const fn leaf_position(hash: u32, keys: u32) -> u32 {
    ((hash >> 16) * keys) >> 16
}

/// Returns the seed after `bits` bits, up to 32, with `value` were appended to the string that ended with `seed`.
#[inline(always)]
pub const fn next_seed(seed: u32, value: u32, bits: u32) -> u32 {
    ((seed as u64 | (value as u64) << 32) >> bits) as u32
}

//! Bijections of integers of any number of bits: fingerprints from which the key can be recovered.

use super::finalise;
use crate::bits::lowest;

/// Odd, so that multiplication has an inverse; those of [`finalise`].
const FACTORS: [u64; 2] = [0x3c79_ac49_2ba7_b653, 0x1c69_b3f7_4ac4_ae35];

/// Returns the inverse of an odd number modulo 2^64: each step of Newton's method doubles the number of correct bits,
/// of which the number itself has three.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

const INVERSES: [u64; 2] = [inverse(FACTORS[0]), inverse(FACTORS[1])];

/// Permutes the integers of `bits` bits, 2 to 64; `spread` is [`spread_of`] a seed. The steps are those of
/// [`finalise`], with shifts by half of the bits, and modulo 2^bits.
#[inline(always)]
pub const fn permute(value: u64, bits: u32, spread: u64) -> u64 {
    let (mask, half) = (lowest(bits), bits.div_ceil(2));
    let mut x = (value ^ spread) & mask;
    x ^= x >> half;
    x = x.wrapping_mul(FACTORS[0]) & mask;
    x ^= x >> half;
    x = x.wrapping_mul(FACTORS[1]) & mask;
    x ^ x >> half
}

/// Inverts [`permute`].
#[inline(always)]
pub const fn unpermute(permuted: u64, bits: u32, spread: u64) -> u64 {
    let (mask, half) = (lowest(bits), bits.div_ceil(2));
    // A shift by at least half of the bits, taken twice, gives zero: the step is its own inverse.
    let mut x = permuted ^ permuted >> half;
    x = x.wrapping_mul(INVERSES[1]) & mask;
    x ^= x >> half;
    x = x.wrapping_mul(INVERSES[0]) & mask;
    x ^= x >> half;
    (x ^ spread) & mask
}

/// Prepares a seed that chooses another permutation.
#[inline(always)]
pub const fn spread_of(seed: u64) -> u64 {
    finalise(seed ^ FACTORS[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bijections_of_every_width() {
        for bits in 2..=64 {
            for seed in [0, 1, 99] {
                let spread = spread_of(seed);
                let mut seen = [false; 1 << 10];
                for i in 0..1 << 10 {
                    let value = if bits <= 10 { i & lowest(bits) } else { finalise(i) & lowest(bits) };
                    let permuted = permute(value, bits, spread);
                    assert!(permuted <= lowest(bits));
                    assert_eq!(unpermute(permuted, bits, spread), value, "{bits}");
                    if bits <= 10 {
                        seen[permuted as usize] = true;
                    }
                }
                assert!(bits > 10 || seen[..1 << bits].iter().all(|seen| *seen), "{bits}");
            }
        }
    }

    /// Checks that a dense range of keys fills all quotients alike, for any number of bits.
    #[test]
    fn dense_keys_spread() {
        for bits in [16, 20, 31, 32, 40, 62, 64] {
            for step in [1, 2, 1 << (bits - 12)] {
                let mut counts = [0u32; 256];
                for i in 0..1 << 12 {
                    counts[(permute((i * step) & lowest(bits), bits, spread_of(7)) >> (bits - 8)) as usize] += 1;
                }
                assert!(counts.iter().all(|&count| (1..48).contains(&count)), "{bits} {step} {counts:?}");
            }
        }
    }
}

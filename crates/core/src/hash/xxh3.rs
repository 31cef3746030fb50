//! XXH3 of 128 bits, from its specification ("xxHash fast digest algorithm", version 0.2.0, and the reference's
//! handling of seeds), over any [`ByteSource`]: plain loops, for devices. Hosts have faster ones.

use super::ByteSource;

const P32_1: u64 = 0x9e37_79b1;
const P32_2: u64 = 0x85eb_ca77;
const P32_3: u64 = 0xc2b2_ae3d;
const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;
/// A multiplier of Pelle Evensen's `rrmxmx`.
const RRMXMX: u64 = 0x9fb2_1c65_1e98_df25;

/// The default secret, in little-endian words.
static SECRET: [u64; 24] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
    0xcb00_c391_bb52_283c,
    0xa32e_531b_8b65_d088,
    0x4ef9_0da2_9748_6471,
    0xd8ac_dea9_46ef_1938,
    0x3f34_9ce3_3f76_faa8,
    0x1d4f_0bc7_c7bb_dcf9,
    0x3159_b4cd_4be0_518a,
    0x6473_78d9_c97e_9fc8,
    0xc3eb_d334_83ac_c5ea,
    0xeb63_13fa_ffa0_81c5,
    0x49da_f0b7_51dd_0d17,
    0x9e68_d429_2655_16d3,
    0xfca1_477d_58be_162b,
    0xce31_d07a_d1b8_f88f,
    0x2804_1695_8f3a_cb45,
    0x7e40_4bbb_cafb_d7af,
];
/// Bytes of the secret.
const SECRET_BYTES: usize = 192;
/// The least bytes that a secret of one's own may have.
const SECRET_LEAST: usize = 136;
/// Bytes of a stripe.
const STRIPE: usize = 64;
/// Stripes between two scrambles.
const STRIPES: usize = (SECRET_BYTES - STRIPE) / 8;

/// Returns eight bytes from `offset` of a seed's secret; the default secret is that of seed 0.
#[inline(always)]
fn secret(offset: usize, seed: u64) -> u64 {
    let word = |i: usize| {
        let plus = if i.is_multiple_of(2) { seed } else { seed.wrapping_neg() };
        SECRET[i].wrapping_add(plus)
    };
    let (index, shift) = (offset / 8, offset as u32 % 8 * 8);
    let low = word(index) >> shift;
    // If the offset is a multiple of 8, the next word may not exist.
    if shift == 0 { low } else { low | word(index + 1) << (64 - shift) }
}

#[inline(always)]
const fn avalanche(mut x: u64) -> u64 {
    x ^= x >> 37;
    x = x.wrapping_mul(0x1656_6791_9e37_79f9);
    x ^ (x >> 32)
}

#[inline(always)]
const fn avalanche64(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(P2);
    x ^= x >> 29;
    x = x.wrapping_mul(P3);
    x ^ (x >> 32)
}

#[inline(always)]
const fn product(a: u64, b: u64) -> (u64, u64) {
    let product = a as u128 * b as u128;
    (product as u64, (product >> 64) as u64)
}

#[inline(always)]
const fn folded(a: u64, b: u64) -> u64 {
    let (low, high) = product(a, b);
    low ^ high
}

#[inline(always)]
const fn joined(low: u64, high: u64) -> u128 {
    (high as u128) << 64 | low as u128
}

/// Computes XXH3-128 of `bytes`.
///
/// ```
/// assert_eq!(warpset_core::hash::xxh3_128(&b""[..], 0), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
/// ```
#[inline(always)]
pub fn xxh3_128<B: ByteSource + ?Sized>(bytes: &B, seed: u64) -> u128 {
    match bytes.len() {
        0 => {
            joined(avalanche64(seed ^ secret(64, 0) ^ secret(72, 0)), avalanche64(seed ^ secret(80, 0) ^ secret(88, 0)))
        }
        1..=3 => up_to_3(bytes, seed),
        4..=8 => up_to_8(bytes, seed),
        9..=16 => up_to_16(bytes, seed),
        17..=240 => up_to_240(bytes, seed),
        _ => long(bytes, seed),
    }
}

#[inline(always)]
fn up_to_3<B: ByteSource + ?Sized>(bytes: &B, seed: u64) -> u128 {
    let len = bytes.len();
    let [first, middle, last] = [bytes.byte(0), bytes.byte(len / 2), bytes.byte(len - 1)].map(u32::from);
    let low = first << 16 | middle << 24 | last | (len as u32) << 8;
    let high = low.swap_bytes().rotate_left(13);
    let (a, b) = (secret(0, 0), secret(8, 0));
    let low_flip = ((a ^ (a >> 32)) & 0xffff_ffff).wrapping_add(seed);
    let high_flip = ((b ^ (b >> 32)) & 0xffff_ffff).wrapping_sub(seed);
    joined(avalanche64(u64::from(low) ^ low_flip), avalanche64(u64::from(high) ^ high_flip))
}

#[inline(always)]
fn up_to_8<B: ByteSource + ?Sized>(bytes: &B, seed: u64) -> u128 {
    let len = bytes.len();
    let seed = seed ^ u64::from((seed as u32).swap_bytes()) << 32;
    let word = u64::from(bytes.word32(0)) | u64::from(bytes.word32(len - 4)) << 32;
    let keyed = word ^ (secret(16, 0) ^ secret(24, 0)).wrapping_add(seed);
    let (mut low, mut high) = product(keyed, P1.wrapping_add((len as u64) << 2));
    high = high.wrapping_add(low << 1);
    low ^= high >> 3;
    low = (low ^ (low >> 35)).wrapping_mul(RRMXMX);
    joined(low ^ (low >> 28), avalanche(high))
}

#[inline(always)]
fn up_to_16<B: ByteSource + ?Sized>(bytes: &B, seed: u64) -> u128 {
    let len = bytes.len();
    let low_flip = (secret(32, 0) ^ secret(40, 0)).wrapping_sub(seed);
    let high_flip = (secret(48, 0) ^ secret(56, 0)).wrapping_add(seed);
    let (first, last) = (bytes.word64(0), bytes.word64(len - 8));
    let (mut low, mut high) = product(first ^ last ^ low_flip, P1);
    low = low.wrapping_add((len as u64 - 1) << 54);
    let last = last ^ high_flip;
    high = high.wrapping_add(last.wrapping_add((last & 0xffff_ffff).wrapping_mul(P32_2 - 1)));
    low ^= high.swap_bytes();
    let (result, above) = product(low, P2);
    joined(avalanche(result), avalanche(above.wrapping_add(high.wrapping_mul(P2))))
}

/// State for lengths from 17 to 240: two sums, into which 32 bytes are folded at a time.
struct Sums {
    low: u64,
    high: u64,
}

impl Sums {
    /// Takes 16 bytes from each of two places, with 32 bytes of the secret from `key` on.
    #[inline(always)]
    fn take<B: ByteSource + ?Sized>(&mut self, bytes: &B, first: usize, second: usize, key: usize, seed: u64) {
        let [a, b, c, d] = [first, first + 8, second, second + 8].map(|at| bytes.word64(at));
        let mixed = |x: u64, y: u64, key: usize| {
            folded(x ^ secret(key, 0).wrapping_add(seed), y ^ secret(key + 8, 0).wrapping_sub(seed))
        };
        self.low = self.low.wrapping_add(mixed(a, b, key)) ^ c.wrapping_add(d);
        self.high = self.high.wrapping_add(mixed(c, d, key + 16)) ^ a.wrapping_add(b);
    }
}

#[inline(always)]
fn up_to_240<B: ByteSource + ?Sized>(bytes: &B, seed: u64) -> u128 {
    let len = bytes.len();
    let mut sums = Sums { low: (len as u64).wrapping_mul(P1), high: 0 };
    // Up to 128 bytes: pairs of 16 bytes from the middle to the ends. Above: 32 bytes after 32 bytes, and the last 32.
    // One loop for both, because its body is a large part of the code that a device has to compile.
    let (is_short, steps) = (len <= 128, if len <= 128 { (len - 1) / 32 + 1 } else { len / 32 + 1 });
    for step in 0..steps {
        if !is_short && step == 4 {
            sums = Sums { low: avalanche(sums.low), high: avalanche(sums.high) };
        }
        let is_last = step + 1 == steps;
        let i = if is_short { steps - 1 - step } else { step };
        let (first, second, key, seed) = match (is_short, is_last) {
            (true, _) => (16 * i, len - 16 * (i + 1), 32 * i, seed),
            (false, true) => (len - 16, len - 32, SECRET_LEAST - 17 - 16, seed.wrapping_neg()),
            (false, false) if i < 4 => (32 * i, 32 * i + 16, 32 * i, seed),
            (false, false) => (32 * i, 32 * i + 16, 3 + 32 * (i - 4), seed),
        };
        sums.take(bytes, first, second, key, seed);
    }
    let Sums { low, high } = sums;
    let tail = (len as u64).wrapping_sub(seed).wrapping_mul(P2);
    let mixed = low.wrapping_mul(P1).wrapping_add(high.wrapping_mul(P4)).wrapping_add(tail);
    joined(avalanche(low.wrapping_add(high)), avalanche(mixed).wrapping_neg())
}

/// Returns the sums of lanes `2 * pair` and `2 * pair + 1` over all stripes. They are independent of the other lanes.
#[inline(always)]
fn lanes<B: ByteSource + ?Sized>(bytes: &B, pair: usize, seed: u64) -> [u64; 2] {
    let len = bytes.len();
    let (mut a, mut b) = match pair {
        0 => (P32_3, P1),
        1 => (P2, P3),
        2 => (P4, P32_2),
        _ => (P5, P32_1),
    };
    let stripes = (len - 1) / STRIPE;
    for stripe in 0..stripes + 1 {
        // The last one ends with the bytes.
        let (at, key) = if stripe == stripes {
            (len - STRIPE, SECRET_BYTES - STRIPE - 7)
        } else {
            (STRIPE * stripe, 8 * (stripe % STRIPES))
        };
        let (x, y) = (bytes.word64(at + 16 * pair), bytes.word64(at + 16 * pair + 8));
        let (keyed_x, keyed_y) = (x ^ secret(key + 16 * pair, seed), y ^ secret(key + 16 * pair + 8, seed));
        a = a.wrapping_add((keyed_x & 0xffff_ffff) * (keyed_x >> 32)).wrapping_add(y);
        b = b.wrapping_add((keyed_y & 0xffff_ffff) * (keyed_y >> 32)).wrapping_add(x);
        if stripe < stripes && stripe % STRIPES == STRIPES - 1 {
            let scrambled = |sum: u64, offset: usize| {
                (sum ^ (sum >> 47) ^ secret(SECRET_BYTES - STRIPE + 16 * pair + offset, seed)).wrapping_mul(P32_1)
            };
            (a, b) = (scrambled(a, 0), scrambled(b, 8));
        }
    }
    [a, b]
}

#[inline(always)]
fn long<B: ByteSource + ?Sized>(bytes: &B, seed: u64) -> u128 {
    let len = bytes.len();
    let (mut low, mut high) = ((len as u64).wrapping_mul(P1), !(len as u64).wrapping_mul(P2));
    for pair in 0..4 {
        let [a, b] = lanes(bytes, pair, seed);
        let merged = |key: usize| folded(a ^ secret(key + 16 * pair, seed), b ^ secret(key + 16 * pair + 8, seed));
        low = low.wrapping_add(merged(11));
        high = high.wrapping_add(merged(SECRET_BYTES - STRIPE - 11));
    }
    joined(avalanche(low), avalanche(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_another_implementation() {
        let bytes: [u8; 4_000] = core::array::from_fn(|i| (i as u32).wrapping_mul(0x9e37_79b1).to_be_bytes()[0]);
        for len in (0..300).chain([511, 512, 513, 1023, 1024, 1025, 1026, 1088, 2047, 2048, 2049, 2050, 3073, 4000]) {
            for seed in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
                let bytes = &bytes[..len];
                assert_eq!(xxh3_128(bytes, seed), xxhash_rust::xxh3::xxh3_128_with_seed(bytes, seed), "{len} {seed}");
            }
        }
    }
}

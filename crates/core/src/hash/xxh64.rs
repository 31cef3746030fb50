//! XXH64, from its specification ("xxHash fast digest algorithm", version 0.1.1), with closed forms for integers.

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

/// Bytes that [`xxh64`] can read: a slice, or a string in device memory.
///
/// Offsets are any, aligned or not; the caller stays below `len`.
pub trait ByteSource {
    /// Returns the number of bytes.
    fn len(&self) -> usize;
    /// Whether there are none.
    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the byte at `offset`.
    fn byte(&self, offset: usize) -> u8;
    /// Returns four bytes from `offset`, little-endian.
    #[inline]
    fn word32(&self, offset: usize) -> u32 {
        let mut value = 0;
        let mut i = 0;
        while i < 4 {
            value |= (self.byte(offset + i) as u32) << (8 * i);
            i += 1;
        }
        value
    }
    /// Returns eight bytes from `offset`, little-endian.
    #[inline]
    fn word64(&self, offset: usize) -> u64 {
        self.word32(offset) as u64 | (self.word32(offset + 4) as u64) << 32
    }
}

impl ByteSource for [u8] {
    #[inline]
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }
    #[inline]
    fn byte(&self, offset: usize) -> u8 {
        self[offset]
    }
    #[inline]
    fn word32(&self, offset: usize) -> u32 {
        let bytes = &self[offset..offset + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

#[inline]
const fn round(acc: u64, lane: u64) -> u64 {
    acc.wrapping_add(lane.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

#[inline]
const fn merge(acc: u64, lane: u64) -> u64 {
    (acc ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4)
}

#[inline]
const fn eight(acc: u64, value: u64) -> u64 {
    (acc ^ round(0, value)).rotate_left(27).wrapping_mul(P1).wrapping_add(P4)
}

#[inline]
const fn four(acc: u64, value: u32) -> u64 {
    (acc ^ (value as u64).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3)
}

#[inline]
const fn avalanche(mut acc: u64) -> u64 {
    acc ^= acc >> 33;
    acc = acc.wrapping_mul(P2);
    acc ^= acc >> 29;
    acc = acc.wrapping_mul(P3);
    acc ^ (acc >> 32)
}

/// Computes XXH64 of the four little-endian bytes of `value`.
#[inline]
pub const fn xxh64_u32(value: u32, seed: u64) -> u64 {
    avalanche(four(seed.wrapping_add(P5).wrapping_add(4), value))
}

/// Computes XXH64 of the eight little-endian bytes of `value`.
#[inline]
pub const fn xxh64_u64(value: u64, seed: u64) -> u64 {
    avalanche(eight(seed.wrapping_add(P5).wrapping_add(8), value))
}

/// Hashes an integer for the filter of a Parquet column of type INT32: XXH64 with seed 0 of the four little-endian
/// bytes of its value. `word` is the value, extended to 64 bits with its sign or with zeros.
///
/// No such column holds a value below -2^31 or from 2^32 on (unsigned ones are stored as their bits): it is hashed as
/// [`xxh64_u64`], so that it meets the column's values only by chance.
#[inline]
pub const fn xxh64_int32(word: u64) -> u64 {
    if word.wrapping_add(1 << 31) < 3 << 31 { xxh64_u32(word as u32, 0) } else { xxh64_u64(word, 0) }
}

/// Computes XXH64 of `bytes`.
///
/// ```
/// assert_eq!(warpset_core::hash::xxh64(&b""[..], 0), 0xef46_db37_51d8_e999);
/// ```
#[inline]
pub fn xxh64<B: ByteSource + ?Sized>(bytes: &B, seed: u64) -> u64 {
    let len = bytes.len();
    let mut at = 0;
    let mut acc = if len >= 32 {
        let mut lanes = [seed.wrapping_add(P1).wrapping_add(P2), seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
        while len - at >= 32 {
            lanes[0] = round(lanes[0], bytes.word64(at));
            lanes[1] = round(lanes[1], bytes.word64(at + 8));
            lanes[2] = round(lanes[2], bytes.word64(at + 16));
            lanes[3] = round(lanes[3], bytes.word64(at + 24));
            at += 32;
        }
        let acc = lanes[0]
            .rotate_left(1)
            .wrapping_add(lanes[1].rotate_left(7))
            .wrapping_add(lanes[2].rotate_left(12))
            .wrapping_add(lanes[3].rotate_left(18));
        merge(merge(merge(merge(acc, lanes[0]), lanes[1]), lanes[2]), lanes[3])
    } else {
        seed.wrapping_add(P5)
    };
    acc = acc.wrapping_add(len as u64);
    while len - at >= 8 {
        acc = eight(acc, bytes.word64(at));
        at += 8;
    }
    if len - at >= 4 {
        acc = four(acc, bytes.word32(at));
        at += 4;
    }
    while at < len {
        acc = (acc ^ (bytes.byte(at) as u64).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
        at += 1;
    }
    avalanche(acc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh64::xxh64 as reference;

    /// Reads single bytes only, as a string in device memory may.
    struct Bytewise<'a>(&'a [u8]);
    impl ByteSource for Bytewise<'_> {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn byte(&self, offset: usize) -> u8 {
            self.0[offset]
        }
    }

    #[test]
    fn agrees_with_the_reference_at_every_length() {
        let mut bytes = [0u8; 300];
        for (i, b) in bytes.iter_mut().enumerate() {
            *b = (i * 131 + 7) as u8;
        }
        for len in 0..bytes.len() {
            for seed in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
                let expected = reference(&bytes[..len], seed);
                assert_eq!(xxh64(&bytes[..len], seed), expected, "length {len}");
                assert_eq!(xxh64(&Bytewise(&bytes[..len]), seed), expected, "length {len}, bytewise");
            }
        }
    }

    #[test]
    fn an_int32_is_four_bytes_and_no_other_value_is() {
        for value in [0, 1, -1, i64::from(i32::MAX), i64::from(i32::MIN), i64::from(u32::MAX)] {
            assert_eq!(xxh64_int32(value as u64), reference(&(value as i32).to_le_bytes(), 0), "{value}");
        }
        for value in [i64::from(i32::MIN) - 1, 1 << 32, i64::MIN, i64::MAX] {
            assert_eq!(xxh64_int32(value as u64), reference(&value.to_le_bytes(), 0), "{value}");
        }
    }

    #[test]
    fn closed_forms_agree_with_the_reference() {
        for i in 0..1000u64 {
            let key = crate::hash::finalise(i);
            for seed in [0, 1, u64::MAX] {
                assert_eq!(xxh64_u64(key, seed), reference(&key.to_le_bytes(), seed));
                assert_eq!(xxh64_u32(key as u32, seed), reference(&(key as u32).to_le_bytes(), seed));
            }
        }
    }
}

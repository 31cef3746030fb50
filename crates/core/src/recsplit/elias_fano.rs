//! Elias-Fano lists (section 4.5.1): the split of a value into high and low bits, and the values of the two lists.

/// Returns the number of low bits that a list of `count > 0` values up to `last` keeps verbatim.
#[inline]
pub const fn elias_fano_low_bits(last: u64, count: u64) -> u32 {
    let quotient = if last == u64::MAX { last / count } else { (last + 1) / count };
    if quotient == 0 { 0 } else { 63 - quotient.leading_zeros() }
}

/// Entries of one block of the jump array.
pub const JUMP_BLOCK: u64 = 1 << 14;
/// Fractional bits of the line's coefficients.
pub const POINT: u32 = 16;

/// Parameters that determine the entries of both lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ListValues {
    /// Bits of the line per key, times 2^16.
    pub key_slope: i64,
    /// Bits of the line per bucket, times 2^16.
    pub bucket_slope: i64,
    /// The least number of keys in a bucket.
    pub least_keys: u64,
    /// Low bits of a number of keys, kept verbatim.
    pub low_keys: u32,
    /// Low bits of a tree position, kept verbatim.
    pub low_bits: u32,
}

const _: () = assert!(size_of::<ListValues>() == 32);

impl ListValues {
    /// Returns the line's position of the tree that begins after `keys` keys in `bucket` buckets.
    #[inline(always)]
    pub const fn line(&self, keys: u64, bucket: u64) -> u64 {
        let keys = self.key_slope.wrapping_mul(keys as i64);
        (keys.wrapping_add(self.bucket_slope.wrapping_mul(bucket as i64)) >> POINT) as u64
    }

    /// Returns both lists' values of entry `index`: keys above the least possible number, bits above the line.
    #[inline(always)]
    pub const fn values(&self, index: u64, (keys, bits): (u64, u64)) -> [u64; 2] {
        [keys.wrapping_sub(index.wrapping_mul(self.least_keys)), bits.wrapping_sub(self.line(keys, index))]
    }

    /// Returns the positions of an entry's ones in the upper bits of both lists.
    #[inline(always)]
    pub const fn ones(&self, index: u64, values: [u64; 2]) -> [u64; 2] {
        [(values[0] >> self.low_keys).wrapping_add(index), (values[1] >> self.low_bits).wrapping_add(index)]
    }
}

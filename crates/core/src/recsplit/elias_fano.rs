//! Elias-Fano lists (section 4.5.1): the split of a value into high and low bits.

/// The number of low bits that a list of `count > 0` values up to `last` keeps verbatim.
#[inline]
pub const fn elias_fano_low_bits(last: u64, count: u64) -> u32 {
    let quotient = if last == u64::MAX { last / count } else { (last + 1) / count };
    if quotient == 0 { 0 } else { 63 - quotient.leading_zeros() }
}

//! Reads of unaligned bits, and scans for the ones after them: one load or a few words at a time.
//!
//! [`bits_from`] and [`scan`] do the same as `window` and `select_from` of `warpset_core::bits`, but faster: a lookup
//! is a chain of them. Reads past the end give zeros.

use warpset_core::bits::{Portable, Select, field, word};
use warpset_core::recsplit::lookup::Words;

/// Words in host memory, as lookups read them.
#[derive(Clone, Copy)]
pub struct HostWords<'a>(pub(crate) &'a [u64]);

impl Words for HostWords<'_> {
    #[inline(always)]
    fn len(self) -> u64 {
        self.0.len() as u64
    }
    #[inline(always)]
    fn word(self, index: u64) -> u64 {
        word(self.0, index as usize)
    }
    #[cfg(target_endian = "little")]
    #[inline(always)]
    fn byte(self, index: u64) -> u8 {
        let bytes: &[u8] = bytemuck::cast_slice(self.0);
        bytes.get(index as usize).copied().unwrap_or(0)
    }
    #[inline(always)]
    fn bits_from(self, at: u64) -> u64 {
        bits_from(self.0, at)
    }
    #[inline(always)]
    fn field(self, at: u64, width: u32) -> u64 {
        field(self.0, at, width)
    }
    #[inline(always)]
    fn scan<const N: usize>(self, from: u64, rank: u32, select: impl Select) -> u64 {
        scan::<N>(self.0, from, rank, select)
    }
    #[inline(always)]
    fn far_unary_part(self, at: u64, skip: u32) -> (u64, u64) {
        far_unary_part(self.0, at, skip)
    }
}

/// Computes [`Words::far_unary_part`], out of line.
#[cold]
#[inline(never)]
pub(crate) fn far_unary_part(words: &[u64], at: u64, skip: u32) -> (u64, u64) {
    let begin = if skip == 0 { at } else { scan::<1>(words, at, skip - 1, Portable).wrapping_add(1) };
    let end = scan::<1>(words, begin, 0, Portable);
    // Damaged words can make it begin past the end.
    (end.saturating_sub(begin), end.wrapping_add(1))
}

/// Returns at least 57 bits from position `at` on, zeros above: one unaligned load. Within the last 8 bytes of `words`,
/// which belong to a jump array, it returns zeros.
#[inline(always)]
pub(crate) fn bits_from(words: &[u64], at: u64) -> u64 {
    if at / 64 + 1 < words.len() as u64 {
        // SAFETY: a word follows the one with position `at`, so the eight bytes from that position's byte on are within
        // `words`.
        let low = unsafe { words.as_ptr().cast::<u8>().add((at / 8) as usize).cast::<u64>().read_unaligned() };
        low >> (at % 8)
    } else {
        0
    }
}

/// Returns the position of the one with `rank` ones between it and position `from`; a position at the end if there is
/// none. Takes `N` words at a time, with no branch among them.
#[inline(always)]
pub(crate) fn scan<const N: usize>(words: &[u64], from: u64, mut rank: u32, select: impl Select) -> u64 {
    let mut index = (from / 64) as usize;
    let mut mask = u64::MAX << (from % 64);
    while let Some(some) = words.get(index..).and_then(|rest| rest.first_chunk::<N>()) {
        let (mut sum, mut before, mut at) = (0, 0, 0);
        for (i, word) in some.iter().enumerate() {
            let word = if i == 0 { word & mask } else { *word };
            sum += word.count_ones();
            let past = sum <= rank;
            before = if past { sum } else { before };
            at += usize::from(past);
        }
        if at < N {
            let word = if at == 0 { some[0] & mask } else { some[at] };
            return (index + at) as u64 * 64 + u64::from(select.pair(word, rank - before).trailing_zeros());
        }
        rank -= sum;
        index += N;
        mask = u64::MAX;
    }
    // The last few words.
    while index < words.len() {
        let word = word(words, index) & mask;
        let ones = word.count_ones();
        if rank < ones {
            return index as u64 * 64 + u64::from(select.pair(word, rank).trailing_zeros());
        }
        rank -= ones;
        index += 1;
        mask = u64::MAX;
    }
    words.len() as u64 * 64
}

/// Prefetches the word at `index` into the cache.
#[inline(always)]
pub(crate) fn prefetch(words: &[u64], index: u64) {
    warpset_base::processor::prefetch(words, index as usize);
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_base::processor::Pdep;
    use warpset_core::bits::Portable;

    #[test]
    fn scans_to_every_one() {
        let words: Vec<u64> = (0..40_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (i << 60 | 0xff0f)).collect();
        let ones: Vec<u64> = (0..40 * 64).filter(|at| words[*at as usize / 64] >> (at % 64) & 1 == 1).collect();
        let step = if cfg!(miri) { 100 } else { 1 };
        for from in (0..40 * 64).step_by(7 * step) {
            let first = ones.partition_point(|&at| at < from);
            for rank in (0..ones.len() - first + 3).step_by(step) {
                let expected = ones.get(first + rank).copied().unwrap_or(40 * 64);
                assert_eq!(scan::<1>(&words, from, rank as u32, Portable), expected);
                assert_eq!(scan::<6>(&words, from, rank as u32, Portable), expected);
                if let Some(pdep) = Pdep::detect() {
                    assert_eq!(scan::<8>(&words, from, rank as u32, pdep), expected);
                }
            }
        }
        assert_eq!(scan::<8>(&[], 100, 3, Portable), 0);
    }

    #[test]
    fn windows_end_in_zeros() {
        let words = [u64::MAX; 3];
        assert_eq!(bits_from(&words, 0), u64::MAX);
        assert_eq!(bits_from(&words, 13), u64::MAX >> 5);
        assert_eq!(bits_from(&words, 192), 0);
        assert_eq!(bits_from(&words, u64::MAX), 0);
        assert_eq!(bits_from(&[], 0), 0);
    }
}

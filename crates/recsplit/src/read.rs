//! Reading bits fast: unaligned windows, selection with `pdep`, prefetching.
//!
//! Reads past the end give zeros, as in `warpset_core::bits`, whose functions are the portable fallback.

#[cfg(target_arch = "x86_64")]
use warpset_base::processor::has_bit_instructions;
use warpset_core::bits::{select, word};

/// A way to select ones of a word.
pub(crate) trait Select: Copy {
    /// The ones of `word` that have `rank` and `rank + 1` ones below them, those that there are; `rank` is below 64.
    fn pair(self, word: u64, rank: u32) -> u64;
}

/// Selection without special instructions.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Select for Portable {
    #[inline(always)]
    fn pair(self, word: u64, rank: u32) -> u64 {
        let one = |rank| 1_u64.checked_shl(select(word, rank)).unwrap_or(0);
        one(rank) | one(rank + 1)
    }
}

/// Selection with `pdep`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Bmi2(());

#[cfg(target_arch = "x86_64")]
impl Bmi2 {
    /// # Safety
    /// The processor must have BMI2.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Self(())
    }
}

#[cfg(target_arch = "x86_64")]
impl Select for Bmi2 {
    #[inline(always)]
    fn pair(self, word: u64, rank: u32) -> u64 {
        // SAFETY: whoever made `self` said that the processor has the instruction.
        unsafe { std::arch::x86_64::_pdep_u64(3 << rank, word) }
    }
}

/// What [`fast_bmi2`] has found out: 0 before the first call, 2 if it is true.
#[cfg(target_arch = "x86_64")]
static FAST_BMI2: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Whether [`fast_bmi2`] is known to be true.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn known_fast_bmi2() -> bool {
    FAST_BMI2.load(std::sync::atomic::Ordering::Relaxed) == 2
}

/// Whether the processor has instructions for bits and AVX2, and is fast at `pdep`, which AMD's before Zen 3 are not.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn fast_bmi2() -> bool {
    use std::sync::atomic::Ordering;

    #[cold]
    fn find_out() -> bool {
        // Unsafe to call in the oldest Rust that is supported, safe in later ones.
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 processor has the instruction.
        let (vendor, signature) = unsafe { (std::arch::x86_64::__cpuid(0), std::arch::x86_64::__cpuid(1).eax) };
        let amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD";
        let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
        let fast = has_bit_instructions() && is_x86_feature_detected!("avx2") && !(amd && family < 0x19);
        FAST_BMI2.store(1 + u8::from(fast), Ordering::Relaxed);
        fast
    }
    match FAST_BMI2.load(Ordering::Relaxed) {
        0 => find_out(),
        known => known == 2,
    }
}

/// Whether the processor has the parts of AVX-512 that look-ups and searches use.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vpopcntdq")
}

/// At least 57 bits from position `at` on, zeros above: one unaligned load. Within the last 8 bytes of `words` they are
/// all zeros; what is read so stands before a jump array.
#[inline(always)]
pub(crate) fn bits_from(words: &[u64], at: u64) -> u64 {
    if at / 64 + 1 < words.len() as u64 {
        // SAFETY: there is a word after the one with position `at`, so that eight bytes from that position's on are within the words.
        let low = unsafe { words.as_ptr().cast::<u8>().add((at / 8) as usize).cast::<u64>().read_unaligned() };
        low >> (at % 8)
    } else {
        0
    }
}

/// Position of the one with `rank` ones between it and position `from`; some position at the end if there is none. Takes
/// `N` words at a time without a branch among them.
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

/// Brings the word at `index` into the cache.
#[inline(always)]
pub(crate) fn prefetch(words: &[u64], index: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching any address is harmless, and nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().wrapping_add(index as usize).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, index);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_to_every_one() {
        let words: Vec<u64> = (0..40_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (i << 60 | 0xff0f)).collect();
        let ones: Vec<u64> = (0..40 * 64).filter(|at| words[*at as usize / 64] >> (at % 64) & 1 == 1).collect();
        for from in (0..40 * 64).step_by(7) {
            let first = ones.partition_point(|&at| at < from);
            for rank in 0..ones.len() - first + 3 {
                let expected = ones.get(first + rank).copied().unwrap_or(40 * 64);
                assert_eq!(scan::<1>(&words, from, rank as u32, Portable), expected);
                assert_eq!(scan::<6>(&words, from, rank as u32, Portable), expected);
                #[cfg(target_arch = "x86_64")]
                if has_bit_instructions() {
                    // SAFETY: it has.
                    assert_eq!(scan::<8>(&words, from, rank as u32, unsafe { Bmi2::new() }), expected);
                }
            }
        }
        assert_eq!(scan::<8>(&[], 100, 3, Portable), 0);
    }

    #[test]
    fn pairs_are_the_same_both_ways() {
        for word in [0, 1, 5, 1 << 63, u64::MAX, 0x8000_0000_0000_0001, 0x1234_5678_9abc_def0] {
            for rank in 0..64 {
                let pair = Portable.pair(word, rank);
                assert_eq!(pair & !word, 0);
                assert_eq!(pair.count_ones(), word.count_ones().saturating_sub(rank).min(2));
                #[cfg(target_arch = "x86_64")]
                if has_bit_instructions() {
                    // SAFETY: it has.
                    assert_eq!(unsafe { Bmi2::new() }.pair(word, rank), pair);
                }
            }
        }
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

//! Instructions that searches and lookups may use.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{has_avx2, has_avx512, has_fast_pdep, known_fast_pdep};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::sync::atomic::{AtomicU8, Ordering};
    use warpset_base::processor::{Pdep, has_bit_instructions};

    /// Result of [`has_fast_pdep`]: 0 before the first call, 2 if true.
    static FAST_PDEP: AtomicU8 = AtomicU8::new(0);

    /// Whether [`has_fast_pdep`] is known to be true.
    #[inline(always)]
    pub(crate) fn known_fast_pdep() -> bool {
        FAST_PDEP.load(Ordering::Relaxed) == 2
    }

    /// Whether the processor has AVX2, BMI1, BMI2, LZCNT and POPCNT, and a fast `pdep`, which AMD's processors before
    /// Zen 3 lack.
    #[inline]
    pub(crate) fn has_fast_pdep() -> bool {
        match FAST_PDEP.load(Ordering::Relaxed) {
            0 => find_out(),
            known => known == 2,
        }
    }

    #[cold]
    fn find_out() -> bool {
        let fast = has_avx2() && Pdep::detect().is_some();
        FAST_PDEP.store(1 + u8::from(fast), Ordering::Relaxed);
        fast
    }

    /// Whether the processor has AVX2, BMI1, BMI2, LZCNT and POPCNT.
    pub(crate) fn has_avx2() -> bool {
        // Miri interprets portable code.
        !cfg!(miri) && is_x86_feature_detected!("avx2") && has_bit_instructions()
    }

    /// Whether the processor has AVX2 as [`has_avx2`] requires it, and the parts of AVX-512 that lookups and searches
    /// use.
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
            && has_avx2()
    }
}

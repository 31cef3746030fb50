//! Processor features beyond the minimum of the architecture.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

use warpset_core::bits::Select;

/// Whether counting, scanning and shifting bits take one instruction each: BMI1, BMI2, LZCNT and POPCNT. Costs one
/// load, so that lookups of single keys can call it.
#[inline]
pub fn has_bit_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static KNOWN: AtomicU8 = AtomicU8::new(0);

        #[cold]
        fn find_out() -> bool {
            let has = is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            KNOWN.store(1 + u8::from(has), Ordering::Relaxed);
            has
        }
        match KNOWN.load(Ordering::Relaxed) {
            0 => find_out(),
            known => known == 2,
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Prefetches the cache line of `items[index]`, which may lie outside of them: a hint, which reads nothing.
#[inline(always)]
pub fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch accesses no memory in the sense of the language, whatever the address; x86-64 has SSE.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Selection of ones by `pdep`: a value of this type exists only where [`has_bit_instructions`] holds and `pdep` is
/// fast, which it is not on AMD's processors before Zen 3.
///
/// ```
/// use warpset_base::processor::Pdep;
/// use warpset_core::bits::{Portable, Select};
///
/// fn places(words: &[u64], select: impl Select) -> Vec<u32> {
///     words.iter().map(|&word| select.select(word, 2)).collect()
/// }
/// // Once per batch.
/// let places = match Pdep::detect() {
///     Some(pdep) => pdep.run(|| places(&[0b1011, 0b1], pdep)),
///     None => places(&[0b1011, 0b1], Portable),
/// };
/// assert_eq!(places, [3, 64]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pdep(Proof);

#[cfg(target_arch = "x86_64")]
type Proof = ();
/// No other architecture has the instruction, so no value exists.
#[cfg(not(target_arch = "x86_64"))]
type Proof = std::convert::Infallible;

#[cfg(target_arch = "x86_64")]
impl Pdep {
    /// Returns the form if this processor has it. After the first call this is one load.
    #[inline]
    pub fn detect() -> Option<Pdep> {
        static KNOWN: AtomicU8 = AtomicU8::new(0);

        #[cold]
        fn find_out() -> bool {
            // In this order, as an interpreter that has no such instructions has no `cpuid` either.
            let fast = has_bit_instructions() && !is_slow();
            KNOWN.store(1 + u8::from(fast), Ordering::Relaxed);
            fast
        }
        fn is_slow() -> bool {
            // Unsafe to call in the oldest Rust that is supported, safe in later ones.
            #[allow(unused_unsafe)]
            // SAFETY: every x86-64 processor has the instruction.
            let (vendor, signature) = unsafe { (std::arch::x86_64::__cpuid(0), std::arch::x86_64::__cpuid(1).eax) };
            let amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD";
            let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
            amd && family < 0x19
        }
        let fast = match KNOWN.load(Ordering::Relaxed) {
            0 => find_out(),
            known => known == 2,
        };
        fast.then_some(Pdep(()))
    }

    /// Returns the form without asking the processor.
    ///
    /// # Safety
    /// The processor has BMI1, BMI2, LZCNT and POPCNT.
    #[inline(always)]
    pub const unsafe fn assume() -> Pdep {
        Pdep(())
    }

    /// Runs `work`, compiled for a processor with these instructions as far as it is inlined here, so its callees need
    /// `#[inline(always)]`.
    #[inline]
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
        fn fast<T>(work: impl FnOnce() -> T) -> T {
            work()
        }
        // SAFETY: `self` exists only where the processor has these instructions.
        unsafe { fast(work) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Select for Pdep {
    #[inline(always)]
    fn one(self, word: u64, rank: u32) -> u64 {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { std::arch::x86_64::_pdep_u64(1u64.wrapping_shl(rank), word) }
    }

    #[inline(always)]
    fn pair(self, word: u64, rank: u32) -> u64 {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { std::arch::x86_64::_pdep_u64(3u64.wrapping_shl(rank), word) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Pdep {
    /// Returns the form if this processor has it.
    #[inline(always)]
    pub fn detect() -> Option<Pdep> {
        None
    }

    /// Runs `work`.
    #[inline(always)]
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let _ = work;
        match self.0 {}
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Select for Pdep {
    #[inline(always)]
    fn one(self, _: u64, _: u32) -> u64 {
        match self.0 {}
    }
}

macro_rules! vectors {
    ($(#[$doc:meta])* $name:ident: $features:literal, [$($feature:tt),*])  => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(Proof);

        impl $name {
            /// Returns the form if this processor has it. After the first call this is one load.
            #[inline]
            pub fn detect() -> Option<$name> {
                #[cfg(target_arch = "x86_64")]
                {
                    static KNOWN: AtomicU8 = AtomicU8::new(0);

                    #[cold]
                    fn find_out() -> bool {
                        // Miri interprets portable code.
                        let has = !cfg!(miri) && has_bit_instructions() $(&& is_x86_feature_detected!($feature))*;
                        KNOWN.store(1 + u8::from(has), Ordering::Relaxed);
                        has
                    }
                    let has = match KNOWN.load(Ordering::Relaxed) {
                        0 => find_out(),
                        known => known == 2,
                    };
                    has.then_some($name(()))
                }
                #[cfg(not(target_arch = "x86_64"))]
                None
            }

            /// Runs `work`, compiled for a processor with these instructions as far as it is inlined here, so its
            /// callees need `#[inline(always)]`.
            #[cfg(target_arch = "x86_64")]
            #[inline]
            pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
                #[target_feature(enable = $features)]
                fn fast<T>(work: impl FnOnce() -> T) -> T {
                    work()
                }
                // SAFETY: `self` exists only where the processor has these instructions.
                unsafe { fast(work) }
            }

            /// Runs `work`.
            #[cfg(not(target_arch = "x86_64"))]
            #[inline(always)]
            pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
                let _ = work;
                match self.0 {}
            }
        }
    };
}
vectors! {
    /// Vectors of 256 bits: a value of this type exists only if the processor has AVX2 and the instructions of
    /// [`has_bit_instructions`].
    Avx2: "avx2,bmi1,bmi2,lzcnt,popcnt", ["avx2"]
}
vectors! {
    /// Vectors of 512 bits with masks: a value of this type exists only if the processor has AVX-512 F, BW, DQ and VL,
    /// AVX2 and the instructions of [`has_bit_instructions`].
    ///
    /// ```
    /// use warpset_base::processor::Avx512;
    ///
    /// #[inline(always)]
    /// fn sum(words: &[u32]) -> u32 {
    ///     words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
    /// }
    /// // Once per batch; the compiler chooses the instructions.
    /// let words = [1, 2, 3];
    /// let found = match Avx512::detect() {
    ///     Some(avx512) => avx512.run(|| sum(&words)),
    ///     None => sum(&words),
    /// };
    /// assert_eq!(found, 6);
    /// ```
    Avx512: "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt",
        ["avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"]
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::bits::Portable;

    #[test]
    fn pdep_selects_as_portable_code_does() {
        let Some(pdep) = Pdep::detect() else { return };
        assert!(has_bit_instructions());
        let mut state = 1;
        let words = (0..20_000u64).map(|i| {
            state = warpset_core::hash::finalise(state);
            [i, i << 48, state, state & state.rotate_left(17), state | state.rotate_left(31)][i as usize % 5]
        });
        for word in words.chain([0, !0, 1 << 63]) {
            for rank in 0..64 {
                assert_eq!(pdep.one(word, rank), Portable.one(word, rank), "{word:x} {rank}");
                assert_eq!(pdep.pair(word, rank), Portable.pair(word, rank), "{word:x} {rank}");
                assert_eq!(pdep.select(word, rank), Portable.select(word, rank), "{word:x} {rank}");
            }
        }
        assert_eq!(pdep.run(|| pdep.select(0b1010, 1)), 3);
    }
}

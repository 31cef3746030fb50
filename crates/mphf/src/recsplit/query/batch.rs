//! Lookups of a batch of keys with the processor's instructions.

use super::Lookup;
#[cfg(target_arch = "x86_64")]
use super::Parameters;
#[cfg(target_arch = "x86_64")]
use crate::batch::u64_vector::{avx2::Avx2, avx512::Avx512};
use warpset_base::key::Hash128;
use warpset_core::bits::{Portable, Select};
use warpset_core::recsplit::Remix;

impl Lookup<'_> {
    /// Looks up at most `BATCH` keys by their hashes.
    pub(in crate::recsplit) fn get_batch_of(self, hashes: &[Hash128], numbers: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if crate::processor::has_fast_pdep() {
            let Self { words, parameters } = self;
            let in_vectors = parameters.header.code.remix == Remix::Bits32 && parameters.header.keys > 0;
            // SAFETY: the processor has the instructions.
            unsafe {
                match in_vectors {
                    true if crate::processor::has_avx512() => batch_avx512(words, parameters, hashes, numbers),
                    true => batch_avx2(words, parameters, hashes, numbers),
                    false => batch_pdep(words, parameters, hashes, numbers),
                }
            }
            return;
        }
        self.get_batch_with(hashes, numbers, Portable);
    }

    #[inline(always)]
    fn get_batch_with(self, hashes: &[Hash128], numbers: &mut [u64], select: impl Select) {
        // The remix is a constant in each arm.
        match self.parameters.header.code.remix {
            Remix::Bits32 => self.get_batch(hashes, numbers, Remix::Bits32, select),
            Remix::Bits64 => self.get_batch(hashes, numbers, Remix::Bits64, select),
        }
    }
}

/// Runs [`Lookup::get_batch_of`] with `pdep` for selection.
///
/// # Safety
/// - The processor has AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn batch_pdep(words: &[u64], parameters: &Parameters, hashes: &[Hash128], numbers: &mut [u64]) {
    // SAFETY: this function's contract.
    Lookup { words, parameters }.get_batch_with(hashes, numbers, unsafe { warpset_base::processor::Pdep::assume() });
}

/// Runs [`Lookup::get_batch_of`] in vectors of AVX2.
///
/// # Safety
/// - The processor has AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn batch_avx2(words: &[u64], parameters: &Parameters, hashes: &[Hash128], numbers: &mut [u64]) {
    // SAFETY: this function's contract.
    Lookup { words, parameters }.get_batch_simd(hashes, numbers, unsafe { Avx2::new() });
}

/// Runs [`Lookup::get_batch_of`] in vectors of AVX-512.
///
/// # Safety
/// - The processor has AVX2, BMI1, BMI2, LZCNT and POPCNT, and the parts of AVX-512 that are named here.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn batch_avx512(words: &[u64], parameters: &Parameters, hashes: &[Hash128], numbers: &mut [u64]) {
    // SAFETY: this function's contract.
    Lookup { words, parameters }.get_batch_simd(hashes, numbers, unsafe { Avx512::new() });
}

//! Lookup of one key with the processor's instructions.

use super::{Lookup, Parameters};
use warpset_base::key::Hash128;
use warpset_core::bits::{Portable, Select};
use warpset_core::recsplit::Remix;
use warpset_core::recsplit::lookup::Function;

impl Lookup<'_> {
    /// Returns the number of the key with this hash under the function's seed.
    #[inline(always)]
    pub(in crate::recsplit) fn get(self, hash: Hash128) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if crate::processor::known_fast_pdep() {
            // SAFETY: the processor has the instructions.
            return unsafe { get_pdep(self.words, self.parameters, hash) };
        }
        get_elsewhere(self.words, self.parameters, hash)
    }

    #[inline(always)]
    fn get_with(self, hash: Hash128, select: impl Select) -> u64 {
        // The remix is a constant in each arm.
        match self.parameters.header.code.remix {
            Remix::Bits32 => self.value_of(hash, Remix::Bits32, select),
            Remix::Bits64 => self.value_of(hash, Remix::Bits64, select),
        }
    }
}

/// Runs [`Lookup::get`] with `pdep` for selection. The arguments travel in registers.
///
/// # Safety
/// - The processor has BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
unsafe fn get_pdep(words: &[u64], parameters: &Parameters, hash: Hash128) -> u64 {
    // SAFETY: this function's contract.
    Lookup { words, parameters }.get_with(hash, unsafe { warpset_base::processor::Pdep::assume() })
}

/// Runs [`Lookup::get`] before the processor's features are known, and without special instructions. A separate
/// function, so the other path has no registers to save.
#[cold]
#[inline(never)]
fn get_elsewhere(words: &[u64], parameters: &Parameters, hash: Hash128) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if crate::processor::has_fast_pdep() {
        // SAFETY: the processor has the instructions.
        return unsafe { get_pdep(words, parameters, hash) };
    }
    Lookup { words, parameters }.get_with(hash, Portable)
}

//! Lookups of single fingerprints, compiled for the processor's bit instructions.

#[cfg(target_arch = "x86_64")]
use warpset_base::processor::{Pdep, has_bit_instructions};
use warpset_core::bits::{Portable, Select};
use warpset_core::quotient::Split;

/// Question about a fingerprint whose quotient has a run.
pub(crate) trait Ask {
    /// Answer to the question.
    type Answer;

    /// Answers from the words of a filter. An implementation is `#[inline(always)]`.
    fn ask(words: &[u64], split: Split, fingerprint: u64, select: impl Select) -> Self::Answer;
}

/// Answers with the processor's instructions. It passes on at most as many arguments as there are registers.
#[inline]
pub(crate) fn ask<A: Ask>(words: &[u64], split: Split, fingerprint: u64) -> A::Answer {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
        fn fast<A: Ask>(words: &[u64], split: Split, fingerprint: u64, select: impl Select) -> A::Answer {
            A::ask(words, split, fingerprint, select)
        }
        if let Some(pdep) = Pdep::detect() {
            // SAFETY: a `Pdep` exists only where the processor has these instructions.
            return unsafe { fast::<A>(words, split, fingerprint, pdep) };
        }
        if has_bit_instructions() {
            // SAFETY: the processor has these instructions.
            return unsafe { fast::<A>(words, split, fingerprint, Portable) };
        }
    }
    #[inline(never)]
    fn portable<A: Ask>(words: &[u64], split: Split, fingerprint: u64) -> A::Answer {
        A::ask(words, split, fingerprint, Portable)
    }
    portable::<A>(words, split, fingerprint)
}

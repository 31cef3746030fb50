//! Prefetch of words.

/// Keys whose cache lines are prefetched before the first of them is looked up.
pub(crate) const BATCH: usize = 32;

/// Prefetches the cache line of a word.
#[inline(always)]
pub(crate) fn prefetch(words: &[u64], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which may name any address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, index);
}

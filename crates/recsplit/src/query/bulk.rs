//! Lookups of many keys: batches on all threads, with the instructions that there are.

use super::Lookup;
#[cfg(target_arch = "x86_64")]
use super::Parameters;
use crate::batch::BATCH;
#[cfg(target_arch = "x86_64")]
use crate::batch::u64_vector::{avx2::Avx2, avx512::Avx512};
use rayon::prelude::*;
use warpset_base::key::{Hash128, Key};
use warpset_core::bits::{Portable, Select};
use warpset_core::recsplit::Remix;

/// Keys that a thread takes at a time: some 100 microseconds of work. Fewer stay on the calling thread.
const CHUNK: usize = 1 << 12;

/// Lets `work` answer for all keys, on the threads of the current pool: it gets some keys, and the places of their answers, one
/// place for `PER` keys. There are as many places as that takes.
pub(crate) fn in_chunks<const PER: usize, K: Sync, A: Send>(
    keys: &[K],
    answers: &mut [A],
    work: impl Fn(&[K], &mut [A]) + Sync,
) {
    const { assert!(CHUNK.is_multiple_of(PER)) };
    if keys.len() < 2 * CHUNK || rayon::current_num_threads() == 1 {
        return work(keys, answers);
    }
    let chunks = keys.par_chunks(CHUNK).zip(answers.par_chunks_mut(CHUNK / PER));
    chunks.for_each(|(keys, answers)| work(keys, answers));
}

impl Lookup<'_> {
    /// The numbers of many keys on all threads; the slices have the same length.
    pub(crate) fn get_bulk<K: Key>(self, keys: &[K], numbers: &mut [u64]) {
        in_chunks::<1, _, _>(keys, numbers, |keys, numbers| self.get_here(keys, numbers));
    }

    /// The numbers of many keys on the calling thread; the slices have the same length.
    fn get_here<K: Key>(self, keys: &[K], numbers: &mut [u64]) {
        let seed = self.parameters.header.seed;
        for (keys, numbers) in keys.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            let mut hashes = [Hash128::default(); BATCH];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = key.hash128(seed);
            }
            self.get_batch_of(&hashes[..keys.len()], numbers);
        }
    }

    /// The numbers of keys by their hashes, on the calling thread; the slices have the same length.
    pub(crate) fn get_hashes(self, hashes: &[Hash128], numbers: &mut [u64]) {
        for (hashes, numbers) in hashes.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            self.get_batch_of(hashes, numbers);
        }
    }

    /// The numbers of at most `BATCH` keys by their hashes.
    fn get_batch_of(self, hashes: &[Hash128], numbers: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if crate::processor::has_fast_pdep() {
            let Self { words, parameters } = self;
            let in_vectors = parameters.header.remix == Remix::Bits32 && parameters.header.keys > 0;
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
        match self.parameters.header.remix {
            Remix::Bits32 => self.get_batch(hashes, numbers, Remix::Bits32, select),
            Remix::Bits64 => self.get_batch(hashes, numbers, Remix::Bits64, select),
        }
    }
}

/// [`Lookup::get_batch_of`] with `pdep` for selection.
///
/// # Safety
/// - The processor has AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn batch_pdep(words: &[u64], parameters: &Parameters, hashes: &[Hash128], numbers: &mut [u64]) {
    // SAFETY: the caller says so.
    Lookup { words, parameters }.get_batch_with(hashes, numbers, unsafe { warpset_base::processor::Pdep::assume() });
}

/// [`Lookup::get_batch_of`] in vectors of AVX2.
///
/// # Safety
/// - The processor has AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn batch_avx2(words: &[u64], parameters: &Parameters, hashes: &[Hash128], numbers: &mut [u64]) {
    // SAFETY: the caller says so.
    Lookup { words, parameters }.get_batch_simd(hashes, numbers, unsafe { Avx2::new() });
}

/// [`Lookup::get_batch_of`] in vectors of AVX-512.
///
/// # Safety
/// - The processor has AVX2, BMI1, BMI2, LZCNT and POPCNT, and the parts of AVX-512 that are named here.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn batch_avx512(words: &[u64], parameters: &Parameters, hashes: &[Hash128], numbers: &mut [u64]) {
    // SAFETY: the caller says so.
    Lookup { words, parameters }.get_batch_simd(hashes, numbers, unsafe { Avx512::new() });
}

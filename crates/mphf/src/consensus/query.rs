//! Lookups of one key or many.
//!
//! The walk is that of `warpset_core::consensus::lookup`, which devices share.

#[cfg(target_arch = "x86_64")]
mod batch_simd;

use super::ConsensusKind;
use super::budget::Rows;
use crate::batch::BATCH;
#[cfg(target_arch = "x86_64")]
use crate::batch::u64_vector::{avx2::Avx2, avx512::Avx512};
use crate::elias_fano::Lists;
use crate::format::{self, Header};
use crate::windows::{HostWords, prefetch};
use std::sync::Arc;
use warpset_base::key::Hash128;
use warpset_core::bits::{Portable, Select};
use warpset_core::consensus::lookup::{Function, Plan, Walk};
use warpset_core::consensus::tree::{Row, depth};
use warpset_core::recsplit::hash::bucket_of;
use warpset_core::recsplit::lookup::lists::Jump;

/// A function to look keys up in.
pub(crate) type Lookup<'a> = crate::function::Lookup<'a, ConsensusKind>;
/// Fields of a function's header, and tables derived from them.
pub(crate) type Parameters = crate::function::Parameters<ConsensusKind>;

/// Plan of lookups, and the rows of levels.
#[derive(Clone)]
pub struct Tables {
    plan: Plan,
    rows: Arc<Rows>,
}

impl Tables {
    pub(super) fn new(header: &Header<ConsensusKind>, lists: &Lists) -> Self {
        let plan = Plan {
            keys: header.keys,
            buckets: header.layout.buckets,
            codes: format::HEADER_WORDS * 64,
            lists: lists.places,
            rows: header.largest_bucket + 1,
            root_bits: header.code.root_bits,
        };
        Self { plan, rows: Arc::new(Rows::new(header.largest_bucket, header.code.slack)) }
    }

    /// Returns the plan of lookups.
    #[cfg(feature = "gpu")]
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the words of the rows of all levels.
    #[cfg(feature = "gpu")]
    pub(super) fn rows(&self) -> &[[u64; 2]] {
        self.rows.words()
    }
}

impl<'a> Function for Lookup<'a> {
    type Words = HostWords<'a>;

    #[inline(always)]
    fn words(&self) -> HostWords<'a> {
        HostWords(self.words)
    }
    #[inline(always)]
    fn plan(&self) -> &Plan {
        &self.parameters.tables.plan
    }
    #[inline(always)]
    fn row(&self, place: u32) -> Row {
        Row::from_words(self.parameters.tables.rows.words()[place as usize])
    }
}

impl Lookup<'_> {
    /// Returns the number of the key with this hash under the function's seed.
    #[inline(always)]
    pub(super) fn get(self, hash: Hash128) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if crate::processor::known_fast_pdep() {
            // SAFETY: the processor has the instructions.
            return unsafe { get_pdep(self.words, self.parameters, hash) };
        }
        get_elsewhere(self.words, self.parameters, hash)
    }

    /// Looks up at most `BATCH` keys by their hashes.
    pub(super) fn get_batch_of(self, hashes: &[Hash128], numbers: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if crate::processor::has_fast_pdep() {
            let Self { words, parameters } = self;
            // SAFETY: the processor has the instructions.
            unsafe {
                match parameters.header.keys {
                    0 => numbers.fill(0),
                    _ if crate::processor::has_avx512() => batch_avx512(words, parameters, hashes, numbers),
                    _ => batch_avx2(words, parameters, hashes, numbers),
                }
            }
            return;
        }
        self.get_batch_with(hashes, numbers, Portable);
    }

    /// Looks up at most `BATCH` keys, stage by stage, so that their loads and chains overlap.
    #[inline(always)]
    fn get_batch_with(self, hashes: &[Hash128], numbers: &mut [u64], select: impl Select) {
        let (words, plan) = (self.words, self.plan());
        if plan.keys == 0 {
            return numbers.fill(0);
        }
        let lists = &self.parameters.lists;
        let mut buckets = [0; BATCH];
        for (bucket, hash) in buckets.iter_mut().zip(hashes) {
            *bucket = bucket_of(hash.high, plan.buckets);
            lists.prefetch_first(words, *bucket);
        }
        let mut jumps = [Jump::default(); BATCH];
        for (jump, &bucket) in jumps.iter_mut().zip(&buckets[..hashes.len()]) {
            *jump = plan.lists.jump_to(self.words(), bucket);
            lists.prefetch_second(words, *jump);
        }
        let mut walks = [Walk::default(); BATCH];
        let walks = &mut walks[..hashes.len().min(BATCH)];
        let mut deepest = 0;
        for (((walk, &jump), bucket), hash) in walks.iter_mut().zip(&jumps).zip(buckets).zip(hashes) {
            *walk = self.enter(plan.lists.get(self.words(), bucket, jump, select), hash.low);
            deepest = deepest.max(depth(walk.keys));
            // A code has one and a half bits per key, and a line 512.
            for line in 0..=u64::from(walk.keys) * 3 / 1024 {
                prefetch(words, walk.start / 64 + line * 8);
            }
        }
        for level in 0..deepest {
            for walk in walks.iter_mut() {
                if level < depth(walk.keys) {
                    self.split(walk, level);
                }
            }
        }
        for (number, walk) in numbers.iter_mut().zip(walks) {
            *number = self.finish(walk, depth(walk.keys));
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
    Lookup { words, parameters }.value_of(hash, unsafe { warpset_base::processor::Pdep::assume() })
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
    Lookup { words, parameters }.value_of(hash, Portable)
}

/// Runs [`Lookup::get_batch_of`] in vectors of AVX2; the function has keys.
///
/// # Safety
/// - The processor has AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn batch_avx2(words: &[u64], parameters: &Parameters, hashes: &[Hash128], numbers: &mut [u64]) {
    // SAFETY: this function's contract.
    Lookup { words, parameters }.get_batch_simd(hashes, numbers, unsafe { Avx2::new() });
}

/// Runs [`Lookup::get_batch_of`] in vectors of AVX-512; the function has keys.
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

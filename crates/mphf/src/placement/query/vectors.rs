//! Lookups of batches in vectors of eight lanes: those of `warpset_core::placement::lookup`, in the same order.

use super::{LARGE, Lookup, PlacementKind};
use crate::Number;
use crate::batch::BATCH;
use crate::batch::reads::{Keys, LOW, keys_of, next_key};
use crate::batch::u64_vector::avx512::Avx512;
use crate::batch::u64_vector::{LANES, Lanes, VECTORS, Vector, Vectors};
use crate::kind::sealed::HashKind;
use crate::windows::prefetch;
use warpset_base::key::{Hash128, Key};
use warpset_core::placement::lookup::Segment;
use warpset_core::placement::{FIELD_BITS, LAYOUTS, POINT, SLICE, STEP};
use warpset_core::recsplit::hash::{MIX_LOW, SHORT};

/// Batches after which the keys without a number are looked up, all of them together: their mispredicted branches are
/// then resolved at once.
const GROUP: usize = 32;
/// Words of a segment.
const SEGMENT_WORDS: u32 = (size_of::<Segment>() / 8) as u32;
/// Base-2 logarithm of the slots between two rotations.
const LOG_STEP: u32 = STEP.ilog2();
const _: () = assert!(SEGMENT_WORDS == 4 && STEP == 2 * LAYOUTS && FIELD_BITS == 8 && LAYOUTS == 4);

/// Looks up many keys on the calling thread; the slices have equal lengths.
///
/// # Safety
/// - The processor has the instructions that [`crate::processor::has_avx512`] tests.
#[target_feature(
    enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq"
)]
pub(super) unsafe fn get_many_avx512<K: Key, N: Number>(lookup: Lookup<'_>, keys: &[K], numbers: &mut [N]) {
    // SAFETY: this function's contract.
    let vectors = unsafe { Avx512::new() };
    let ((batches, rest), (places, rest_places)) = (keys.as_chunks::<BATCH>(), numbers.as_chunks_mut::<BATCH>());
    let seed = lookup.parameters.header.seed;
    for (batches, places) in batches.chunks(GROUP).zip(places.chunks_mut(GROUP)) {
        let mut unplaced = [0; GROUP];
        for at in 0..batches.len() {
            unplaced[at] = get_batch(vectors, lookup, &batches[at], &mut places[at]);
        }
        // Keys that are bumped, and those whose seed is within the last bytes of damaged words.
        for at in 0..batches.len() {
            while let Some(key) = next_key(&mut unplaced[at]) {
                places[at][key] = N::narrow(lookup.get(PlacementKind::hash(&batches[at][key], seed)));
            }
        }
    }
    lookup.hash_and_get(rest, rest_places);
}

/// Looks up a batch of keys, and returns those without a number.
#[inline(always)]
fn get_batch<T: Vectors, K: Key, N: Number>(
    vectors: T,
    lookup: Lookup<'_>,
    keys: &[K; BATCH],
    numbers: &mut [N; BATCH],
) -> Keys {
    let seed = lookup.parameters.header.seed;
    let segments = segment_words(&lookup.parameters.tables.segments);
    let buckets = vectors.splat(lookup.parameters.tables.buckets.into());
    let count = vectors.splat((segments.len() / SEGMENT_WORDS as usize) as u64);
    let (mut lows, mut places, mut starts) = (Lanes::ZERO, Lanes::ZERO, Lanes::ZERO);
    for v in 0..VECTORS {
        let (high, low) = hashes(vectors, &keys[v * LANES..][..LANES], seed);
        // The segment by a product of 96 bits: there are fewer than 2^32.
        let carry = (high & vectors.splat(LOW)).times(count).shr::<32>();
        let row = (high.shr::<32>().times(count) + carry).shr::<32>().shl::<2>();
        let column = |of: u64| vectors.words(segments, row + vectors.splat(of));
        let (base, code, pace) = (column(0), column(1), column(2).shr::<32>());
        let bucket = low.shr::<32>().times(buckets).shr::<32>();
        lows.set(v, low);
        places.set(v, code + bucket);
        starts.set(v, base + bucket.times(pace).shl::<32>().shr::<{ 32 + POINT }>().shl::<LOG_STEP>());
    }
    if lookup.words.len() > LARGE {
        for &place in &*places {
            prefetch(lookup.words, place / 8);
        }
    }
    let mut unplaced: Keys = 0;
    let last = vectors.splat(lookup.parameters.header.keys.saturating_sub(1));
    for v in 0..VECTORS {
        let seed = vectors.bytes(lookup.words, places.get(vectors, v)) & vectors.splat(0xff);
        let shift = (seed & vectors.splat(u64::from(LAYOUTS - 1))).shl::<3>();
        let distance = (lows.get(vectors, v).shr_by(shift) + seed.shl::<1>()) & vectors.splat(u64::from(SLICE - 1));
        let number = starts.get(vectors, v) + distance;
        starts.set(v, number.or_else(number.below(last), last));
        unplaced |= keys_of(seed.equals(vectors.splat(0)), v);
    }
    let found: &[u64] = &starts;
    for at in 0..BATCH {
        numbers[at] = N::narrow(found[at]);
    }
    unplaced
}

/// Hashes eight keys: returns the high and the low halves.
#[inline(always)]
fn hashes<T: Vectors, K: Key>(vectors: T, keys: &[K], seed: u64) -> (T::V, T::V) {
    if K::HAS_WORD {
        let mut words = [0; LANES];
        // Loops without closures, which are not inlined here.
        for lane in 0..LANES {
            words[lane] = keys[lane].word().unwrap_or_default();
        }
        let mut high = vectors.load(&words) ^ vectors.splat(seed);
        high = (high ^ high.shr::<30>()).times_all(vectors.splat(MIX_LOW[0]));
        high = (high ^ high.shr::<27>()).times_all(vectors.splat(MIX_LOW[1]));
        high = high ^ high.shr::<31>();
        return (high, high.times_all(vectors.splat(SHORT)));
    }
    let mut hashes = [Hash128::default(); LANES];
    for lane in 0..LANES {
        hashes[lane] = PlacementKind::hash(&keys[lane], seed);
    }
    vectors.hashes(&hashes)
}

/// Casts segments to words. Buckets and pace share one, the buckets in its low half.
#[inline(always)]
fn segment_words(segments: &[Segment]) -> &[u64] {
    // SAFETY: a segment is four words without padding, aligned like them.
    unsafe { std::slice::from_raw_parts(segments.as_ptr().cast(), segments.len() * SEGMENT_WORDS as usize) }
}

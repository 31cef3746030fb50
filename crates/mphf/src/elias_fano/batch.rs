//! Lookups in the lists for all keys of a batch, in vectors ([`crate::query::batch_simd`]).

use super::{BLOCK, Lists};
use crate::batch::reads::{Keys, Reader, Starts, Within, keys_of, next_key, windows_of, words_of};
use crate::batch::u64_vector::{Lanes, VECTORS, Vector, Vectors};
use crate::windows::{HostWords, prefetch};

/// Fields of [`warpset_core::recsplit::lookup::lists::Entry`] in lanes.
pub(crate) struct Entries {
    pub keys_before: Lanes,
    pub keys: Lanes,
    pub bits_before: Lanes,
}

/// Loads the windows that usually contain the ones of `two_ones`: one window up to a stride of 16, one of two windows
/// above.
#[inline(always)]
fn near_words<T: Vectors>(reader: Reader<T>, from: &Lanes, ranks: &Lanes, stride: u64, within: &mut Within) {
    windows_of(reader, from, ranks, within);
    if stride > 16 {
        let vectors = reader.vectors;
        let half = vectors.splat(32);
        for v in 0..VECTORS {
            // Window after the lower half of the first, for the ones that are not in that half. Always loaded, since a
            // branch would be unpredictable.
            let (from, rank, word) = (from.get(vectors, v), ranks.get(vectors, v), within.words.get(vectors, v));
            let further = reader.bits_from(from + half);
            let before = word.shl::<32>().count_ones();
            let here = rank.below(before);
            within.words.set(v, word.or_else(here, further));
            within.ranks.set(v, rank.or_else(here, rank - before));
            within.starts.set(v, from.or_else(here, from + half));
        }
    }
}

/// Range of signed numbers of 32 bits.
const SMALL: std::ops::Range<i64> = -(1 << 31)..1 << 31;

/// Returns `x` times `by`; `small` if both are signed numbers of 32 bits.
#[inline(always)]
fn product<T: Vectors>(vectors: T, x: T::V, by: u64, small: bool) -> T::V {
    if small { x.times_signed(vectors.splat(by)) } else { x.times_all(vectors.splat(by)) }
}

impl Lists {
    /// Returns the entries of `buckets`; `small` if [`Lists::is_small`], `far` if the reads should be prefetched.
    #[inline(always)]
    pub(crate) fn get_batch<T: Vectors>(&self, reader: Reader<T>, buckets: &Lanes, small: bool, far: bool) -> Entries {
        if far {
            buckets.iter().for_each(|&bucket| self.prefetch_first(reader.words, bucket));
        }
        let vectors = reader.vectors;
        let layout = &self.layout;
        let stride = 1 << layout.log_stride;
        let halves = vectors.splat(0xffff);
        let [mut phi, mut chi, mut ranks]: [Lanes; 3] = [Lanes::ZERO; 3];
        for v in 0..VECTORS {
            // Like `jump_to`.
            let bucket = buckets.get(vectors, v);
            let block = bucket.shr::<{ BLOCK.ilog2() }>().times(vectors.splat(layout.block_words()));
            let block = block + vectors.splat(self.places.jumps);
            let pair = (bucket & vectors.splat(BLOCK - 1)).shr_by(vectors.splat(layout.log_stride.into()));
            let pair = vectors.halves(reader.words, block.shl::<1>() + vectors.splat(4) + pair);
            phi.set(v, reader.word(block) + vectors.splat(self.places.upper_keys) + (pair & halves));
            chi.set(
                v,
                reader.word(block + vectors.splat(1)) + vectors.splat(self.places.upper_bits) + pair.shr::<16>(),
            );
            ranks.set(v, bucket & vectors.splat(stride - 1));
        }
        if far {
            for (phi, chi) in phi.iter().zip(chi.iter()) {
                // About half a stride further.
                let ahead = stride * 9 / 8;
                prefetch(reader.words, phi.wrapping_add(ahead) / 64);
                prefetch(reader.words, chi.wrapping_add(ahead) / 64);
            }
        }
        let [mut near_phi, mut near_chi] = [Within::NOTHING; 2];
        // One list after the other, so no load waits for a store just before it.
        if stride <= 32 {
            near_words(reader, &phi, &ranks, stride, &mut near_phi);
            near_words(reader, &chi, &ranks, stride, &mut near_chi);
        } else {
            let [mut phi_starts, mut chi_starts] = [Starts::NOWHERE; 2];
            phi_starts.set::<1, _>(reader, &phi, &ranks);
            chi_starts.set::<1, _>(reader, &chi, &ranks);
            words_of::<1, _>(reader, &phi_starts, &mut near_phi);
            words_of::<1, _>(reader, &chi_starts, &mut near_chi);
        }
        let (phi, chi) = (near_phi.ones(vectors), near_chi.ones(vectors));
        self.entries(reader, buckets, small, (&near_phi, &phi), (&near_chi, &chi))
    }

    /// Whether all factors of the lists of that many keys are signed numbers of 32 bits.
    #[inline(always)]
    pub(crate) fn is_small(&self, keys: u64) -> bool {
        let layout = &self.layout;
        [keys, layout.buckets, layout.least_keys].iter().all(|&number| number < SMALL.end as u64)
            && SMALL.contains(&layout.key_slope)
            && SMALL.contains(&layout.bucket_slope)
    }

    /// Computes [`super::Places::get`] from the ones of the upper bits.
    #[inline(always)]
    fn entries<T: Vectors>(
        &self,
        reader: Reader<T>,
        buckets: &Lanes,
        small: bool,
        (phi, phi_ones): (&Within, &Lanes),
        (chi, chi_ones): (&Within, &Lanes),
    ) -> Entries {
        let vectors = reader.vectors;
        let layout = &self.layout;
        let (low_keys, low_bits) = (u64::from(layout.low_keys), u64::from(layout.low_bits));
        let width = low_keys + low_bits;
        let (one, zero) = (vectors.splat(1), vectors.splat(0));
        let (keys_mask, bits_mask) = (vectors.splat((1 << low_keys) - 1), vectors.splat((1 << low_bits) - 1));
        let (low_keys, low_bits) = (vectors.splat(low_keys), vectors.splat(low_bits));
        let mut entries = Entries { keys_before: Lanes::ZERO, keys: Lanes::ZERO, bits_before: Lanes::ZERO };
        let mut missing: Keys = phi.missing | chi.missing;
        let most = vectors.splat(if small { SMALL.end as u64 - 1 } else { u64::MAX });
        for v in 0..VECTORS {
            let bucket = buckets.get(vectors, v);
            let (phi_one, chi_one) = (phi_ones.get(vectors, v), chi_ones.get(vectors, v));
            let phi_at = phi.starts.get(vectors, v) + phi_one.trailing_zeros(one);
            let chi_at = chi.starts.get(vectors, v) + chi_one.trailing_zeros(one);
            // The next one is usually near.
            let rest = reader.bits_from(phi_at + one);
            let zeros = rest.trailing_zeros(one);
            missing |= keys_of(phi_one.equals(zero) | chi_one.equals(zero) | rest.equals(zero), v);

            let low = reader.bits_from(product(vectors, bucket, width, small) + vectors.splat(self.places.lower));
            let low_phi = low & keys_mask;
            let low_chi = low.shr_by(low_keys) & bits_mask;
            let next_low_phi = low.shr_by(vectors.splat(width)) & keys_mask;
            let upper_phi = phi_at - vectors.splat(self.places.upper_keys) - bucket;
            let upper_chi = chi_at - vectors.splat(self.places.upper_bits) - bucket;
            let least = vectors.splat(layout.least_keys);
            let keys_before =
                (upper_phi.shl_by(low_keys) | low_phi) + product(vectors, bucket, layout.least_keys, small);
            // Only damaged words give more.
            missing |= keys_of(most.below(keys_before), v);
            let line = product(vectors, keys_before, layout.key_slope as u64, small)
                + product(vectors, bucket, layout.bucket_slope as u64, small);
            entries.keys_before.set(v, keys_before);
            entries.keys.set(v, zeros.shl_by(low_keys) + next_low_phi - low_phi + least);
            entries.bits_before.set(v, (upper_chi.shl_by(low_bits) | low_chi) + line.shr_signed::<{ super::POINT }>());
        }
        // Whether one load may miss low bits is the same for all entries.
        if layout.low_keys * 2 + layout.low_bits > 57 {
            missing = Keys::MAX;
        }
        while let Some(i) = next_key(&mut missing) {
            let words = HostWords(reader.words);
            let jump = self.places.jump_to(words, buckets[i]);
            let entry = self.places.get(words, buckets[i], jump, vectors.select());
            (entries.keys_before[i], entries.keys[i], entries.bits_before[i]) =
                (entry.keys_before, entry.keys, entry.bits_before);
        }
        entries
    }
}

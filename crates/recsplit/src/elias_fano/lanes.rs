//! Look-ups in the lists for all keys of a batch, in loops that become vectors ([`crate::query::wide`]).

use super::{BLOCK, Lists};
use crate::query::batch::BATCH;
use crate::query::lanes::{Lane, Memory, nth_one, select};
use crate::read::{Portable, prefetch};

/// [`super::Entry`] in lanes.
pub(crate) struct Entries {
    pub keys_before: Lane,
    pub keys: Lane,
    pub bits_before: Lane,
}

/// Positions of the ones of [`super::two_ones`], and whether they were found.
#[inline(always)]
fn two_ones<const NARROW: bool>(memory: Memory, from: u64, rank: u64) -> (u64, u64, bool) {
    if NARROW {
        let bits = memory.bits_from(from);
        let first = select(bits, rank);
        let rest = bits >> (first & 63) >> 1;
        let zeros = u64::from((!rest & rest.wrapping_sub(1)).count_ones());
        let first = from.wrapping_add(first);
        (first, first.wrapping_add(zeros + 1), rank + 1 < u64::from(bits.count_ones()))
    } else {
        let (first, found) = nth_one::<6>(memory, from, rank);
        let rest = memory.bits_from(first.wrapping_add(1));
        let zeros = u64::from((!rest & rest.wrapping_sub(1)).count_ones());
        (first, first.wrapping_add(zeros + 1), found & (rest != 0))
    }
}

impl Lists {
    /// The entries of `buckets`; `far` if what is read should be prefetched.
    #[inline(always)]
    pub(crate) fn lanes(&self, memory: Memory, buckets: &Lane, far: bool) -> Entries {
        if far {
            buckets.iter().for_each(|&bucket| self.prefetch_first(memory.words, bucket));
        }
        let layout = &self.layout;
        let block_words = layout.block_words();
        let [mut phi, mut chi]: [Lane; 2] = [[0; BATCH]; 2];
        for i in 0..BATCH {
            // As in `near`.
            let block = self.jumps.wrapping_add((buckets[i] / BLOCK).wrapping_mul(block_words));
            let pair = (buckets[i] % BLOCK) >> layout.log_stride;
            let pair_word = memory.word(block + 2 + pair / 2) >> (32 * (pair % 2));
            phi[i] = self.upper_keys.wrapping_add(memory.word(block)).wrapping_add(pair_word & 0xffff);
            chi[i] = self.upper_bits.wrapping_add(memory.word(block + 1)).wrapping_add(pair_word >> 16 & 0xffff);
        }
        if far {
            for (phi, chi) in phi.iter().zip(&chi) {
                // About half a stride on.
                let ahead = (1 << layout.log_stride) * 9 / 8;
                prefetch(memory.words, phi.wrapping_add(ahead) / 64);
                prefetch(memory.words, chi.wrapping_add(ahead) / 64);
            }
        }
        if layout.log_stride <= 5 {
            self.search::<true>(memory, buckets, &phi, &chi)
        } else {
            self.search::<false>(memory, buckets, &phi, &chi)
        }
    }

    /// [`Lists::get`] from the positions that the jump array gives.
    #[inline(always)]
    fn search<const NARROW: bool>(&self, memory: Memory, buckets: &Lane, phi: &Lane, chi: &Lane) -> Entries {
        let layout = self.layout;
        let (low_keys, low_bits) = (u64::from(layout.low_keys), u64::from(layout.low_bits));
        let width = low_keys + low_bits;
        let stride = (1 << layout.log_stride) - 1;
        let mut entries = Entries { keys_before: [0; BATCH], keys: [0; BATCH], bits_before: [0; BATCH] };
        let [mut keys_before, mut keys, mut bits_before]: [Lane; 3] = [[0; BATCH]; 3];
        let mut missing = [0_u8; BATCH];
        for i in 0..BATCH {
            let bucket = buckets[i];
            let low = memory.bits_from(self.lower.wrapping_add(bucket.wrapping_mul(width)));
            let mask = (1_u64 << low_keys) - 1;
            let low_phi = low & mask;
            let low_chi = low >> low_keys & ((1_u64 << low_bits) - 1);
            let next_low_phi = low >> (width & 63) & mask;
            let rank = bucket & stride;
            let (phi_at, next_at, phi_found) = two_ones::<NARROW>(memory, phi[i], rank);
            let (chi_at, _, chi_found) = two_ones::<NARROW>(memory, chi[i], rank);
            let phi = (phi_at.wrapping_sub(self.upper_keys).wrapping_sub(bucket)) << low_keys | low_phi;
            let more = next_at.wrapping_sub(phi_at).wrapping_sub(1) << low_keys;
            let chi = (chi_at.wrapping_sub(self.upper_bits).wrapping_sub(bucket)) << low_bits | low_chi;
            keys_before[i] = phi.wrapping_add(bucket.wrapping_mul(layout.least_keys));
            keys[i] = more.wrapping_add(next_low_phi).wrapping_sub(low_phi).wrapping_add(layout.least_keys);
            bits_before[i] = chi.wrapping_add(layout.line(keys_before[i], bucket));
            missing[i] = u8::from(!(phi_found & chi_found));
        }
        (entries.keys_before, entries.keys, entries.bits_before) = (keys_before, keys, bits_before);
        // Low bits that one load may not reach are a property of all entries.
        let all = width + low_keys > 57;
        if all || missing != [0; BATCH] {
            for i in (0..BATCH).filter(|&i| all || missing[i] != 0) {
                let near = self.near(memory.words, buckets[i]);
                let entry = self.get(memory.words, buckets[i], near, Portable);
                (entries.keys_before[i], entries.keys[i], entries.bits_before[i]) =
                    (entry.keys_before, entry.keys, entry.bits_before);
            }
        }
        entries
    }
}

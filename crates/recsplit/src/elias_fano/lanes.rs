//! Look-ups in the lists for all keys of a batch, in loops that become vectors ([`crate::query::wide`]).

use super::{BLOCK, Lists};
use crate::query::batch::BATCH;
use crate::query::lanes::{Lane, Memory, Within, pairs, windows_of, words_of};
use crate::read::{Portable, Select, prefetch};

/// [`super::Entry`] in lanes.
pub(crate) struct Entries {
    pub keys_before: Lane,
    pub keys: Lane,
    pub bits_before: Lane,
}

/// Positions of ones of a list, and whether they were found.
struct Ones {
    at: Lane,
    found: [u8; BATCH],
}

/// Windows in which the ones of [`super::two_ones`] are as a rule: one up to a stride of 16, or one of two.
#[inline(always)]
fn near_words(memory: Memory, from: &Lane, ranks: &Lane, stride: u64) -> Within {
    let mut within = windows_of(memory, from, ranks);
    if stride > 16 {
        let [mut bits, mut further, mut rests, mut starts]: [Lane; 4] = [Lane::ZERO; 4];
        // Always loaded: nobody could predict a branch.
        for i in 0..BATCH {
            further[i] = memory.bits_from(from[i].wrapping_add(32));
        }
        for i in 0..BATCH {
            // The window of what is not in the lower half of the first.
            let before = u64::from((within.words[i] as u32).count_ones());
            let beyond = ranks[i] >= before;
            starts[i] = from[i].wrapping_add(if beyond { 32 } else { 0 });
            bits[i] = if beyond { further[i] } else { within.words[i] };
            rests[i] = if beyond { ranks[i] - before } else { ranks[i] };
        }
        (within.words, within.ranks, within.starts) = (bits, rests, starts);
    }
    within
}

/// Words in which the ones are as a rule. No closure: it would be a function of its own, without the caller's instructions.
#[inline(always)]
fn near_or_far_words(memory: Memory, from: &Lane, ranks: &Lane, stride: u64, select: impl Select) -> Within {
    match stride {
        ..=32 => near_words(memory, from, ranks, stride),
        _ => words_of::<1>(memory, from, ranks, select),
    }
}

/// The ones in their words.
#[inline(always)]
fn ones_of(within: &Within, pairs: &Lane) -> Ones {
    let mut at = Lane::ZERO;
    let mut found = [0; BATCH];
    for i in 0..BATCH {
        let lowest = pairs[i] & pairs[i].wrapping_neg();
        at[i] = within.starts[i].wrapping_add(u64::from(lowest.wrapping_sub(1).count_ones()));
        found[i] = within.found[i] & u8::from(pairs[i] != 0);
    }
    Ones { at, found }
}

/// The next ones after those that were found, which must not be far either.
#[inline(always)]
fn next_ones(memory: Memory, ones: &mut Ones) -> Lane {
    let mut next = Lane::ZERO;
    let mut found = [0; BATCH];
    for i in 0..BATCH {
        let rest = memory.bits_from(ones.at[i].wrapping_add(1));
        let zeros = u64::from((!rest & rest.wrapping_sub(1)).count_ones());
        next[i] = ones.at[i].wrapping_add(zeros + 1);
        found[i] = ones.found[i] & u8::from(rest != 0);
    }
    ones.found = found;
    next
}

impl Lists {
    /// The entries of `buckets`; `far` if what is read should be prefetched.
    #[inline(always)]
    pub(crate) fn lanes(&self, memory: Memory, buckets: &Lane, far: bool, select: impl Select) -> Entries {
        if far {
            buckets.iter().for_each(|&bucket| self.prefetch_first(memory.words, bucket));
        }
        let layout = &self.layout;
        let stride = 1 << layout.log_stride;
        let block_words = layout.block_words();
        let [mut phi, mut chi, mut ranks]: [Lane; 3] = [Lane::ZERO; 3];
        for i in 0..BATCH {
            // As in `near`.
            let block = self.jumps.wrapping_add((buckets[i] / BLOCK).wrapping_mul(block_words));
            let pair = (buckets[i] % BLOCK) >> layout.log_stride;
            let pair_word = memory.word(block + 2 + pair / 2) >> (32 * (pair % 2));
            phi[i] = self.upper_keys.wrapping_add(memory.word(block)).wrapping_add(pair_word & 0xffff);
            chi[i] = self.upper_bits.wrapping_add(memory.word(block + 1)).wrapping_add(pair_word >> 16 & 0xffff);
            ranks[i] = buckets[i] & (stride - 1);
        }
        if far {
            for (phi, chi) in phi.iter().zip(chi.iter()) {
                // About half a stride on.
                let ahead = stride * 9 / 8;
                prefetch(memory.words, phi.wrapping_add(ahead) / 64);
                prefetch(memory.words, chi.wrapping_add(ahead) / 64);
            }
        }
        let phi = near_or_far_words(memory, &phi, &ranks, stride, select);
        let chi = near_or_far_words(memory, &chi, &ranks, stride, select);
        // One list after the other, so that nothing waits for what was just stored.
        let phi_ones = pairs(&phi.words, &phi.ranks, select);
        let chi_ones = pairs(&chi.words, &chi.ranks, select);
        let (mut phi, chi) = (ones_of(&phi, &phi_ones), ones_of(&chi, &chi_ones));
        let next = next_ones(memory, &mut phi);
        self.entries(memory, buckets, &phi, &next, &chi)
    }

    /// [`Lists::get`] from the ones of the upper bits.
    #[inline(always)]
    fn entries(&self, memory: Memory, buckets: &Lane, phi: &Ones, next: &Lane, chi: &Ones) -> Entries {
        let layout = self.layout;
        let (low_keys, low_bits) = (u64::from(layout.low_keys), u64::from(layout.low_bits));
        let width = low_keys + low_bits;
        let mask = (1_u64 << low_keys) - 1;
        let mut entries = Entries { keys_before: Lane::ZERO, keys: Lane::ZERO, bits_before: Lane::ZERO };
        let [mut keys_before, mut keys, mut bits_before]: [Lane; 3] = [Lane::ZERO; 3];
        let mut missing = [0_u8; BATCH];
        for i in 0..BATCH {
            let bucket = buckets[i];
            let low = memory.bits_from(self.lower.wrapping_add(bucket.wrapping_mul(width)));
            let low_phi = low & mask;
            let low_chi = low >> low_keys & ((1_u64 << low_bits) - 1);
            let next_low_phi = low >> (width & 63) & mask;
            let upper_phi = phi.at[i].wrapping_sub(self.upper_keys).wrapping_sub(bucket);
            let upper_chi = chi.at[i].wrapping_sub(self.upper_bits).wrapping_sub(bucket);
            let more = next[i].wrapping_sub(phi.at[i]).wrapping_sub(1) << low_keys;
            keys_before[i] = (upper_phi << low_keys | low_phi).wrapping_add(bucket.wrapping_mul(layout.least_keys));
            keys[i] = more.wrapping_add(next_low_phi).wrapping_sub(low_phi).wrapping_add(layout.least_keys);
            bits_before[i] = (upper_chi << low_bits | low_chi).wrapping_add(layout.line(keys_before[i], bucket));
            missing[i] = !(phi.found[i] & chi.found[i]) & 1;
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

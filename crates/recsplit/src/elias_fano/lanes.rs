//! Look-ups in the lists for all keys of a batch, in loops that become vectors ([`crate::query::wide`]).

use super::{BLOCK, Lists};
use crate::query::batch::BATCH;
use crate::query::lanes::{Lane, Memory, Pair, pairs, words_of};
use crate::read::{Portable, Select, prefetch};

/// [`super::Entry`] in lanes.
pub(crate) struct Entries {
    pub keys_before: Lane,
    pub keys: Lane,
    pub bits_before: Lane,
}

/// Positions of ones of a list and of those after them, and whether they were found.
struct Ones {
    first: Lane,
    next: Lane,
    found: [u8; BATCH],
}

/// The ones of [`super::two_ones`], whose ranks are below 32 so that two windows of bits have them as a rule.
#[inline(always)]
fn near_ones(memory: Memory, from: &Lane, ranks: &Lane, stride: u64, select: impl Select) -> Ones {
    let [mut bits, mut rests, mut starts]: [Lane; 3] = [Lane::ZERO; 3];
    for i in 0..BATCH {
        bits[i] = memory.bits_from(from[i]);
        (rests[i], starts[i]) = (ranks[i], from[i]);
    }
    if stride > 16 {
        for i in 0..BATCH {
            // The window of what is not in the lower half of the first.
            let before = u64::from((bits[i] as u32).count_ones());
            let beyond = ranks[i] >= before;
            starts[i] = from[i].wrapping_add(if beyond { 32 } else { 0 });
            bits[i] = if beyond { memory.bits_from(from[i].wrapping_add(32)) } else { bits[i] };
            rests[i] = if beyond { ranks[i] - before } else { ranks[i] };
        }
    }
    let both = pairs(&bits, &rests, select);
    let mut ones = Ones { first: Lane::ZERO, next: Lane::ZERO, found: [0; BATCH] };
    let [mut first, mut next]: [Lane; 2] = [Lane::ZERO; 2];
    let mut found = [0; BATCH];
    for i in 0..BATCH {
        let pair = Pair::of(both[i]);
        next[i] = starts[i].wrapping_add(pair.second);
        first[i] = next[i].wrapping_sub(pair.zeros).wrapping_sub(1);
        found[i] = u8::from(pair.found);
    }
    (ones.first, ones.next, ones.found) = (first, next, found);
    ones
}

/// The ones of [`super::two_ones`] among the next `N` words.
#[inline(always)]
fn far_ones<const N: usize>(memory: Memory, from: &Lane, ranks: &Lane, select: impl Select) -> Ones {
    let within = words_of::<N>(memory, from, ranks);
    let both = pairs(&within.words, &within.ranks, select);
    let mut ones = Ones { first: Lane::ZERO, next: Lane::ZERO, found: [0; BATCH] };
    let [mut first, mut next]: [Lane; 2] = [Lane::ZERO; 2];
    let mut found = [0; BATCH];
    for i in 0..BATCH {
        let lowest = both[i] & both[i].wrapping_neg();
        let at = within.starts[i].wrapping_add(u64::from(lowest.wrapping_sub(1).count_ones()));
        let rest = memory.bits_from(at.wrapping_add(1));
        let zeros = u64::from((!rest & rest.wrapping_sub(1)).count_ones());
        (first[i], next[i]) = (at, at.wrapping_add(zeros + 1));
        found[i] = within.found[i] & u8::from(rest != 0);
    }
    (ones.first, ones.next, ones.found) = (first, next, found);
    ones
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
        let phi = self.ones(memory, &phi, &ranks, select);
        let chi = self.ones(memory, &chi, &ranks, select);
        self.entries(memory, buckets, &phi, &chi)
    }

    /// The ones of [`super::two_ones`].
    #[inline(always)]
    fn ones(&self, memory: Memory, from: &Lane, ranks: &Lane, select: impl Select) -> Ones {
        match self.layout.log_stride {
            ..=5 => near_ones(memory, from, ranks, 1 << self.layout.log_stride, select),
            6 => far_ones::<4>(memory, from, ranks, select),
            _ => far_ones::<6>(memory, from, ranks, select),
        }
    }

    /// [`Lists::get`] from the ones of the upper bits.
    #[inline(always)]
    fn entries(&self, memory: Memory, buckets: &Lane, phi: &Ones, chi: &Ones) -> Entries {
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
            let upper_phi = phi.first[i].wrapping_sub(self.upper_keys).wrapping_sub(bucket);
            let upper_chi = chi.first[i].wrapping_sub(self.upper_bits).wrapping_sub(bucket);
            let more = phi.next[i].wrapping_sub(phi.first[i]).wrapping_sub(1) << low_keys;
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

//! Sorting fingerprints by as many bits as they have.
//!
//! By digits of eight bits, the lowest first; large inputs by their highest digit before, on all threads, so that the rest
//! stays in the caches.

use rayon::prelude::*;

/// Fingerprints that are sorted by comparing them.
const FEW: usize = 128;
/// Fingerprints from which on the highest digit comes first.
const MANY: usize = 1 << 16;
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts fingerprints below `2^bits`.
pub(super) fn sort(fingerprints: &mut Vec<u64>, bits: u32) {
    if fingerprints.len() < FEW {
        return fingerprints.sort_unstable();
    }
    let mut spare = vec![0; fingerprints.len()];
    if fingerprints.len() < MANY || bits <= DIGIT_BITS {
        return by_digits(fingerprints, &mut spare, bits);
    }
    let shift = bits - DIGIT_BITS;
    let ends = split(fingerprints, &mut spare, shift);
    let parts = |words| parts(words, ends.iter().scan(0, |last, &end| Some(end - std::mem::replace(last, end))));
    parts(&mut spare[..])
        .into_par_iter()
        .zip(parts(fingerprints))
        .for_each(|(part, spare)| by_digits(part, spare, shift));
    *fingerprints = spare;
}

/// Cuts words into parts of these lengths.
fn parts(mut words: &mut [u64], lengths: impl Iterator<Item = usize>) -> Vec<&mut [u64]> {
    let mut cut = Vec::with_capacity(DIGITS);
    for len in lengths {
        let (part, rest) = words.split_at_mut(len);
        cut.push(part);
        words = rest;
    }
    cut
}

/// How many have each digit.
fn counts(fingerprints: &[u64], shift: u32) -> [usize; DIGITS] {
    let mut counts = [0; DIGITS];
    for &fingerprint in fingerprints {
        counts[digit(fingerprint, shift)] += 1;
    }
    counts
}

#[inline(always)]
fn digit(fingerprint: u64, shift: u32) -> usize {
    (fingerprint >> shift) as usize % DIGITS
}

/// Writes the fingerprints in the order of their highest digit; says where each digit ends.
fn split(fingerprints: &[u64], into: &mut [u64], shift: u32) -> Vec<usize> {
    let share = fingerprints.len().div_ceil(rayon::current_num_threads());
    let counts: Vec<[usize; DIGITS]> = fingerprints.par_chunks(share).map(|share| counts(share, shift)).collect();
    // The places of each digit: those of the first share, of the second, and so on.
    let mut places: Vec<Vec<&mut [u64]>> = counts.iter().map(|_| Vec::with_capacity(DIGITS)).collect();
    let mut rest = into;
    let mut ends = Vec::with_capacity(DIGITS);
    let mut end = 0;
    for digit in 0..DIGITS {
        for (counts, places) in counts.iter().zip(&mut places) {
            let (place, after) = rest.split_at_mut(counts[digit]);
            places.push(place);
            (rest, end) = (after, end + counts[digit]);
        }
        ends.push(end);
    }
    fingerprints.par_chunks(share).zip(places).for_each(|(share, mut places)| {
        let mut next = [0; DIGITS];
        for &fingerprint in share {
            let digit = digit(fingerprint, shift);
            places[digit][next[digit]] = fingerprint;
            next[digit] += 1;
        }
    });
    ends
}

/// Sorts by the lowest `bits`, on this thread.
fn by_digits(fingerprints: &mut [u64], spare: &mut [u64], bits: u32) {
    if fingerprints.len() < FEW {
        return fingerprints.sort_unstable();
    }
    let (mut from, mut to) = (&mut *fingerprints, spare);
    let mut swapped = false;
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        let mut next = counts(from, shift);
        if next.contains(&from.len()) {
            continue; // all alike
        }
        let mut begin = 0;
        for count in &mut next {
            begin += std::mem::replace(count, begin);
        }
        for &fingerprint in &*from {
            let place = &mut next[digit(fingerprint, shift)];
            to[*place] = fingerprint;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
    }
    if swapped {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_whatever_their_number_and_width() {
        let mut state = 7;
        for len in [0, 1, FEW - 1, FEW, 5000, MANY - 1, MANY, 3 * MANY + 5] {
            for (bits, crowd) in [(2, 0), (8, 0), (9, 0), (23, 0), (28, 0), (28, 20), (64, 0), (64, 63)] {
                let mut fingerprints: Vec<u64> = (0..len)
                    .map(|_| {
                        state = warpset_core::hash::finalise(state + 1);
                        // Crowded: equal in their high bits.
                        let fingerprint = state >> (64 - bits);
                        if crowd > 0 { fingerprint >> crowd | 1 << (bits - 1) } else { fingerprint }
                    })
                    .collect();
                let mut wanted = fingerprints.clone();
                wanted.sort_unstable();
                sort(&mut fingerprints, bits);
                assert!(fingerprints == wanted, "{len} of {bits} bits, crowded by {crowd}");
            }
        }
    }
}

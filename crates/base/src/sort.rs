//! Stable radix sort of host slices, by digits of eight bits, on the threads of the current pool.
//!
//! A large slice is split by its highest digit, on all threads, into parts that fit in the caches. Each part is then
//! sorted on one thread, by the lowest digit first.

use std::ops::{BitOr, BitXor};

use bytemuck::Zeroable;

use crate::parallel;
use crate::words::{OutOfMemory, advise_huge_pages};

/// Parts shorter than this are sorted by [`few`]: counting digits would cost more.
const FEW: usize = 2048;
/// Parts shorter than this are sorted by comparisons alone.
const VERY_FEW: usize = 24;
/// Most items that [`few`] sends to one place: if there are more, it sorts by comparisons instead.
const CROWD: u16 = 12;
/// Only slices of at least this length are split by their highest digit.
const MANY: usize = 1 << 16;
/// Items in which a task looks for bits that differ.
const PART: usize = 1 << 15;
/// Most hashes per part, about, which fit in a core's caches twice.
const HASHES: usize = if cfg!(test) { 1 << 10 } else { 1 << 15 };
/// Most bits that choose a part of hashes: writes to more parts at once would miss the caches.
const MOST_PART_BITS: u32 = 14;
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sort key of an item: `u64` or `u128`.
pub trait Rank: Copy + Ord + Send + Sync + BitOr<Output = Self> + BitXor<Output = Self> {
    /// Bits of a rank.
    const BITS: u32;
    /// The least.
    const ZERO: Self;
    /// Returns the bits from `shift` on, as far as a `usize` holds them.
    fn above_bit(self, shift: u32) -> usize;
    /// Returns the eight bits from `shift` on.
    #[inline(always)]
    fn digit(self, shift: u32) -> usize {
        self.above_bit(shift) % DIGITS
    }
    /// Returns the number of bits up to the highest set bit.
    fn significant_bits(self) -> u32;
}

macro_rules! ranks {
    ($($rank:ty)*) => {$(
        impl Rank for $rank {
            const BITS: u32 = <$rank>::BITS;
            const ZERO: Self = 0;
            #[inline(always)]
            fn above_bit(self, shift: u32) -> usize {
                (self >> shift) as usize
            }
            #[inline(always)]
            fn significant_bits(self) -> u32 {
                <$rank>::BITS - self.leading_zeros()
            }
        }
    )*};
}
ranks! { u64 u128 }

/// Sorts items of any kind in place, stable, by ranks below `2^bits`. May compute the rank of an item several times.
/// Allocates memory for `items.len()` items.
///
/// # Panics
/// If `bits` is more than a rank has.
pub fn sort_by_rank<T, R>(items: &mut [T], bits: u32, rank: impl Fn(T) -> R + Sync)
where
    T: Copy + Send + Sync,
    R: Rank,
{
    assert!(bits <= R::BITS, "a rank has {} bits", R::BITS);
    let mut spare = Vec::with_capacity(items.len());
    parallel::fill(&mut spare, items.len(), MANY, |i| items[i]);
    // Parts up to this length stay on one thread: a longer one, as of items that are mostly alike, is split again.
    let alone = (items.len() / (2 * rayon::current_num_threads())).max(MANY - 1);
    sort_within(items, &mut spare, bits, alone, Home::Here, &rank);
}

/// Items in ascending order.
pub struct Sorted<T> {
    /// All items; of equal ranks the first ones come first.
    pub items: Vec<T>,
    /// Whether two items have equal ranks.
    pub has_repeats: bool,
}

/// Makes an item of each source, the sources in lists that follow each other, and sorts them by ranks that are spread
/// over all 64 bits, as hashes are. May make an item several times; `make` gets its position among all sources.
///
/// Items go to their part at once, by the highest bits, and each part is sorted in the caches. So this takes less time
/// than [`sort_by_rank`], and no memory besides the result.
///
/// # Errors
/// [`OutOfMemory`].
pub fn sorted_by_hash<S, T>(
    lists: &[&[S]],
    make: impl Fn(usize, &S) -> T + Sync,
    rank: impl Fn(T) -> u64 + Sync,
) -> Result<Sorted<T>, OutOfMemory>
where
    S: Sync,
    T: Copy + Zeroable + Send + Sync,
{
    let len: usize = lists.iter().map(|list| list.len()).sum();
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    let mut items = bytemuck::allocation::try_zeroed_vec(len).map_err(|()| OutOfMemory { bytes })?;
    advise_huge_pages(&mut items);
    let part_bits = len.div_ceil(HASHES).next_power_of_two().trailing_zeros().min(MOST_PART_BITS);
    let shift = u64::BITS - part_bits;
    let part_of = |item: T| rank(item).checked_shr(shift).unwrap_or(0) as usize;
    let shares = shares(lists, len.div_ceil(rayon::current_num_threads()).max(HASHES));
    let ends = scatter(&shares, &mut items, 1 << part_bits, |position, source| {
        let item = make(position, source);
        (part_of(item), item)
    });
    let parts = parts(&mut items, &ends);
    let usual = HASHES.max(len >> part_bits);
    if parts.iter().any(|part| part.len() > 2 * usual) {
        // Many ranks are equal.
        sort_by_rank(&mut items, u64::BITS, &rank);
        let has_repeats = items.windows(2).any(|two| rank(two[0]) == rank(two[1]));
        return Ok(Sorted { items, has_repeats });
    }
    let repeats = parallel::map_with(Vec::new, parts, |spare, part| hashes(part, spare, part_bits, &rank));
    Ok(Sorted { items, has_repeats: repeats.contains(&true) })
}

/// Consecutive pieces of lists, each with its position among all sources.
type Share<'a, S> = Vec<(usize, &'a [S])>;

/// Cuts lists into shares of `len` sources.
fn shares<'a, S>(lists: &[&'a [S]], len: usize) -> Vec<Share<'a, S>> {
    let (mut shares, mut position) = (vec![Share::new()], 0);
    let mut room = len;
    for mut list in lists.iter().copied() {
        while !list.is_empty() {
            if room == 0 {
                shares.push(Share::new());
                room = len;
            }
            let piece = list.split_off(..room.min(list.len())).unwrap_or_default();
            shares.last_mut().expect("one share or more").push((position, piece));
            (position, room) = (position + piece.len(), room - piece.len());
        }
    }
    shares
}

/// Writes the item of each source to its part, the sources of a part in their order; returns the end of each part.
fn scatter<S: Sync, T: Copy + Send>(
    shares: &[Share<'_, S>],
    into: &mut [T],
    parts: usize,
    make: impl Fn(usize, &S) -> (usize, T) + Sync,
) -> Vec<usize> {
    let counts = parallel::map(shares, |share| {
        let mut counts = vec![0; parts];
        for &(position, piece) in share {
            for (i, source) in piece.iter().enumerate() {
                counts[make(position + i, source).0] += 1;
            }
        }
        counts
    });
    let (ends, places) = places(&counts, into);
    parallel::for_each(shares.iter().zip(places), |(share, mut places)| {
        for &(position, piece) in share {
            for (i, source) in piece.iter().enumerate() {
                let (part, item) = make(position + i, source);
                // The rest of the place, without its first item.
                if let Some(place) = places[part].split_off_first_mut() {
                    *place = item;
                }
            }
        }
    });
    ends
}

/// Gives each share its places of each part, those of the first share before those of the second, and so on; also
/// returns the end of each part.
fn places<'a, T>(counts: &[impl AsRef<[usize]>], mut into: &'a mut [T]) -> (Vec<usize>, Vec<Vec<&'a mut [T]>>) {
    let parts = counts.first().map_or(0, |counts| counts.as_ref().len());
    let mut places: Vec<Vec<&mut [T]>> = counts.iter().map(|_| Vec::with_capacity(parts)).collect();
    let (mut ends, mut end) = (Vec::with_capacity(parts), 0);
    for part in 0..parts {
        for (counts, places) in counts.iter().zip(&mut places) {
            let count = counts.as_ref()[part];
            let (place, after) = into.split_at_mut(count);
            places.push(place);
            (into, end) = (after, end + count);
        }
        ends.push(end);
    }
    (ends, places)
}

/// Sorts items whose ranks are equal in their `known` highest bits and spread in the others, on this thread; returns
/// whether two ranks are equal. The next bits choose an item's place, about one place per item; an insertion sort then
/// orders neighbours, which brings the items back.
fn hashes<T: Copy>(items: &mut [T], spare: &mut Vec<T>, known: u32, rank: &impl Fn(T) -> u64) -> bool {
    let Some(&first) = items.first() else { return false };
    spare.resize(spare.len().max(items.len()), first);
    let spare = &mut spare[..items.len()];
    let place_bits = items.len().next_power_of_two().trailing_zeros().max(1);
    let place = |item: T| ((rank(item) << known) >> (u64::BITS - place_bits)) as usize;
    let mut next = vec![0u32; 1 << place_bits];
    items.iter().for_each(|&item| next[place(item)] += 1);
    let (mut begin, mut moves) = (0, 0);
    for count in &mut next {
        moves += u64::from(*count) * u64::from(*count);
        begin += std::mem::replace(count, begin);
    }
    if moves > u64::from(CROWD) * items.len() as u64 {
        if by_digits(items, spare, u64::BITS - known, rank) == Home::There {
            items.copy_from_slice(spare);
        }
        return items.windows(2).any(|two| rank(two[0]) == rank(two[1]));
    }
    for &item in &*items {
        let next = &mut next[place(item)];
        spare[*next as usize] = item;
        *next += 1;
    }
    let mut has_repeats = false;
    for (i, &item) in spare.iter().enumerate() {
        let mut to = i;
        while to > 0 && rank(items[to - 1]) > rank(item) {
            items[to] = items[to - 1];
            to -= 1;
        }
        has_repeats |= to > 0 && rank(items[to - 1]) == rank(item);
        items[to] = item;
    }
    has_repeats
}

/// Place of a sort's result.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    Here,
    There,
}

impl Home {
    fn other(self) -> Home {
        if self == Home::Here { Home::There } else { Home::Here }
    }
}

/// Sorts the items in `here`, at most `alone` of them on one thread.
fn sort_within<T, R, F>(here: &mut [T], there: &mut [T], bits: u32, alone: usize, home: Home, rank: &F)
where
    T: Copy + Send + Sync,
    R: Rank,
    F: Fn(T) -> R + Sync,
{
    // Items that are all alike cannot be split.
    if here.len() <= alone || bits == 0 {
        match (by_digits(here, there, bits, rank), home) {
            (Home::Here, Home::There) => there.copy_from_slice(here),
            (Home::There, Home::Here) => here.copy_from_slice(there),
            _ => {}
        }
        return;
    }
    // Bits in which no two ranks differ need no digits.
    let first = rank(here[0]);
    let differing =
        parallel::map(here.chunks(PART), |items| items.iter().fold(R::ZERO, |bits, &item| bits | rank(item) ^ first));
    let differing = differing.into_iter().fold(R::ZERO, |all, bits| all | bits);
    let bits = bits.min(differing.significant_bits());
    let shift = bits.saturating_sub(DIGIT_BITS);
    let ends = split(here, there, shift, rank);
    let parts = parts(there, &ends).into_iter().zip(parts(here, &ends));
    parallel::for_each(parts, |(part, spare)| sort_within(part, spare, shift, alone, home.other(), rank));
}

/// Cuts items at these places.
fn parts<'a, T>(mut items: &'a mut [T], ends: &[usize]) -> Vec<&'a mut [T]> {
    let mut begin = 0;
    let mut cut = Vec::with_capacity(ends.len());
    for &end in ends {
        let (part, rest) = items.split_at_mut(end - begin);
        cut.push(part);
        (items, begin) = (rest, end);
    }
    cut
}

/// Counts the items of each digit.
fn counts<T: Copy, R: Rank>(items: &[T], shift: u32, rank: &impl Fn(T) -> R) -> [usize; DIGITS] {
    let mut counts = [0; DIGITS];
    for &item in items {
        counts[rank(item).digit(shift)] += 1;
    }
    counts
}

/// Writes the items in the order of the digit at `shift`; returns the end of each digit's items.
fn split<T, R, F>(items: &[T], into: &mut [T], shift: u32, rank: &F) -> Vec<usize>
where
    T: Copy + Send + Sync,
    R: Rank,
    F: Fn(T) -> R + Sync,
{
    let share = items.len().div_ceil(rayon::current_num_threads());
    let counts = parallel::map(items.chunks(share), |share| counts(share, shift, rank));
    let (ends, places) = places(&counts, into);
    parallel::for_each(items.chunks(share).zip(places), |(share, mut places)| {
        let mut next = [0; DIGITS];
        for &item in share {
            let digit = rank(item).digit(shift);
            places[digit][next[digit]] = item;
            next[digit] += 1;
        }
    });
    ends
}

/// Sorts by the lowest `bits`, on this thread; returns the place of the result.
fn by_digits<T: Copy, R: Rank>(here: &mut [T], there: &mut [T], bits: u32, rank: &impl Fn(T) -> R) -> Home {
    if here.len() < FEW {
        return few(here, there, rank);
    }
    let (mut from, mut to, mut home) = (here, there, Home::Here);
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        let mut next = counts(from, shift, rank);
        if next.contains(&from.len()) {
            continue; // all alike
        }
        let mut begin = 0;
        for count in &mut next {
            begin += std::mem::replace(count, begin);
        }
        for &item in &*from {
            let place = &mut next[rank(item).digit(shift)];
            to[*place] = item;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        home = home.other();
    }
    home
}

/// Sorts few items, stable, on this thread; returns the place of the result. The highest bits in which ranks differ
/// choose an item's place, about one place per item; an insertion sort then orders the items of each place.
fn few<T: Copy, R: Rank>(here: &mut [T], there: &mut [T], rank: &impl Fn(T) -> R) -> Home {
    let compared = |here: &mut [T]| {
        here.sort_by_key(|&item| rank(item));
        Home::Here
    };
    if here.len() < VERY_FEW {
        return compared(here);
    }
    let first = rank(here[0]);
    let differing = here.iter().fold(R::ZERO, |bits, &item| bits | rank(item) ^ first);
    let places = here.len().next_power_of_two().min(FEW);
    let shift = differing.significant_bits().saturating_sub(places.trailing_zeros());
    let place = |item: T| rank(item).above_bit(shift) & (places - 1);
    let mut next = [0u16; FEW];
    let mut most = 0;
    for &item in &*here {
        let count = &mut next[place(item) % FEW];
        *count += 1;
        most = most.max(*count);
    }
    if most > CROWD {
        return compared(here);
    }
    let mut begin = 0;
    for count in &mut next[..places] {
        begin += std::mem::replace(count, begin);
    }
    for &item in &*here {
        let next = &mut next[place(item) % FEW];
        there[usize::from(*next)] = item;
        *next += 1;
    }
    for i in 1..there.len() {
        let item = there[i];
        let mut to = i;
        while to > 0 && rank(there[to - 1]) > rank(item) {
            there[to] = there[to - 1];
            to -= 1;
        }
        there[to] = item;
    }
    Home::There
}

#[cfg(test)]
mod tests {
    use warpset_core::hash::mix;

    use super::*;

    /// Sorts hashes of few and many different keys, in lists of uneven lengths, beside a stable sort.
    #[test]
    fn hashes_of_lists_are_sorted_and_stable() {
        let lens = [0, 1, 2, 3, 100, HASHES - 1, HASHES, HASHES + 1, 5 * HASHES, 40 * HASHES + 3];
        for &len in if cfg!(miri) { &lens[..5] } else { &lens[..] } {
            for different in [1, 2, len / 14 + 1, len * len + 1] {
                let keys: Vec<usize> = (0..len).map(|i| mix(i as u64, 1) as usize % different).collect();
                let rank = |item: (u64, usize)| item.0;
                let item = |at: usize, key: &usize| (mix(*key as u64, 0), at);
                let mut wanted: Vec<(u64, usize)> = keys.iter().enumerate().map(|(at, key)| item(at, key)).collect();
                wanted.sort_by_key(|item| item.0);
                let has_repeats = wanted.windows(2).any(|two| two[0].0 == two[1].0);
                let (head, tail) = keys.split_at(len / 3);
                for lists in [&[&keys[..]][..], &[&[], head, &[], tail, &[]]] {
                    let sorted = sorted_by_hash(lists, item, rank).unwrap();
                    assert!(sorted.items == wanted, "{len} of {different}");
                    assert_eq!(sorted.has_repeats, has_repeats, "{len} of {different}");
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "the interpreter takes seconds per sort")]
    fn sorted_and_stable_whatever_the_number_and_width() {
        let lens = [0, 1, VERY_FEW, 100, 1024, FEW - 1, FEW, 5000, MANY - 1, MANY, 3 * MANY + 5];
        let bits = [(28, 20), (0, 0), (2, 0), (8, 0), (9, 0), (23, 0), (28, 0), (64, 0), (64, 63)];
        // The interpreter takes seconds for each sort.
        let (lens, bits) = if cfg!(miri) { (&lens[1..4], &bits[6..8]) } else { (&lens[..], &bits[..]) };
        for &len in lens {
            for &(bits, alike) in bits {
                // With `alike`, only every 1000th differs from zero in more than the low bits.
                let value = |i: usize| match mix(i as u64, bits.into()) {
                    _ if bits == 0 => 0,
                    hash if alike > 0 && !i.is_multiple_of(1000) => hash >> (64 - bits) >> alike,
                    hash => hash >> (64 - bits),
                };
                let mut items: Vec<(u64, usize)> = (0..len).map(|i| (value(i), i)).collect();
                let mut wanted = items.clone();
                wanted.sort_by_key(|item| item.0);
                sort_by_rank(&mut items, bits, |item: (u64, usize)| item.0);
                assert!(items == wanted, "{len} of {bits} bits, most below 2^{}", bits - alike);
                // Ranks of 128 bits whose highest bits are the lowest ones of the ranks above.
                items.sort_by_key(|item| item.1);
                let wide = |item: (u64, usize)| u128::from(item.0) << (128 - bits.max(1));
                sort_by_rank(&mut items, 128, wide);
                assert!(items == wanted, "{len} of {bits} bits, the highest of 128");
            }
        }
    }
}

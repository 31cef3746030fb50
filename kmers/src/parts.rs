//! Fingerprints of k-mers, grouped by their high bits, then sorted and counted part by part.
//!
//! The fingerprint of a k-mer is the one that its exact filter stores: a bijection of the k-mer, spread over all bits.
//! A count takes one word ([`Cut`]).
//!
//! Threads write each word once, into their own chunks per part. From time to time all parts are counted: one thread
//! distributes the chunks of a part by the next bits of the fingerprint, so that each place gets a few, sorts these,
//! and merges them into the counts of the part. All of that happens in a core's own cache.

use rayon::prelude::*;
use warpset_base::processor::prefetch;
use warpset_kernels::kmers::cut::Cut;

use crate::word::Word;

/// Words per place before they are sorted, about.
const PER_PLACE: usize = 2;
/// Most bits of a place, so that the ends of places stay in the cache.
const MOST_PLACE_BITS: u32 = 14;

/// Counts of a part, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted<W> {
    words: Vec<W>,
    /// Places in `words`, ascending, of numbers of copies that do not fit into a word, with these numbers.
    many: Vec<(usize, u64)>,
}

impl<W: Word> Counted<W> {
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        (size_of::<W>() * self.words.capacity()) as u64 + 16 * self.many.capacity() as u64
    }

    /// Returns the words, as [`Cut::word`] makes them.
    pub(crate) fn words(&self) -> &[W] {
        &self.words
    }

    /// Returns the places of numbers of copies that do not fit into a word, with these numbers.
    pub(crate) fn many(&self) -> &[(usize, u64)] {
        &self.many
    }

    /// Appends a fingerprint above all others, without the bits of its part.
    #[inline(always)]
    pub(crate) fn push(&mut self, cut: Cut<W>, low: W, copies: u64) {
        let copies = if copies <= cut.most_copies() {
            copies
        } else {
            self.many.push((self.words.len(), copies));
            0
        };
        self.words.push(low << cut.copy_shift() | W::from(copies));
    }

    /// Iterates over the fingerprints of at least `least`, without the bits of their part, with their copies.
    pub(crate) fn from(&self, cut: Cut<W>, least: W) -> impl Iterator<Item = (W, u64)> + '_ {
        let first = self.words.partition_point(|&word| cut.value(word) < least);
        let mut many = self.many[self.many.partition_point(|&(place, _)| place < first)..].iter();
        self.words[first..].iter().map(move |&word| {
            let copies = match cut.copies(word) {
                0 => many.next().map_or(0, |&(_, copies)| copies),
                copies => copies,
            };
            (cut.value(word), copies)
        })
    }

    /// Merges the words of `chunks` into the counts; `join` combines those of equal fingerprints.
    fn with(
        &self,
        cut: Cut<W>,
        chunks: &[&[W]],
        scratch: &mut Scratch<W>,
        join: impl Fn(u64, u64) -> u64 + Copy,
    ) -> Counted<W> {
        let sorted = scratch.sort(cut, chunks);
        let Scratch { counted, words, .. } = scratch;
        if self.many.is_empty()
            && let Some(merged) = merge(cut, &self.words, &words[..sorted], &mut counted.words, join)
        {
            return Counted { words: merged.to_vec(), many: Vec::new() };
        }
        counted.words.clear();
        counted.many.clear();
        let mut old = self.from(cut, W::default());
        let mut next = old.next();
        for run in words[..sorted].chunk_by(|&a, &b| cut.value(a) == cut.value(b)) {
            let (low, mut copies) = (cut.value(run[0]), cut.copies(run[0]));
            copies = run[1..].iter().fold(copies, |copies, &word| join(copies, cut.copies(word)));
            while let Some((before, copies)) = next
                && before < low
            {
                counted.push(cut, before, copies);
                next = old.next();
            }
            if let Some((before, more)) = next
                && before == low
            {
                copies = join(more, copies);
                next = old.next();
            }
            counted.push(cut, low, copies);
        }
        next.into_iter().chain(old).for_each(|(low, copies)| counted.push(cut, low, copies));
        counted.clone() // as long as it has to be
    }

    /// Removes fingerprints with fewer than `least` copies.
    fn keep(&mut self, cut: Cut<W>, least: u64) {
        let mut kept = Counted::default();
        self.from(cut, W::default())
            .filter(|&(_, copies)| copies >= least)
            .for_each(|(low, copies)| kept.push(cut, low, copies));
        kept.words.shrink_to_fit();
        *self = kept;
    }
}

/// Merges ascending words into memory that grows if it has to; `join` combines the copies of equal fingerprints.
/// Returns a word per fingerprint, or `None` if the copies of one do not fit into a word.
///
/// No branch depends on the order of old and new words, which no processor would predict.
#[inline(always)]
fn merge<'m, W: Word>(
    cut: Cut<W>,
    mut old: &[W],
    mut new: &[W],
    memory: &'m mut Vec<W>,
    join: impl Fn(u64, u64) -> u64,
) -> Option<&'m [W]> {
    let most = old.len() + new.len() + 1;
    if memory.len() < most {
        memory.resize(most, W::default());
    }
    let merged = &mut memory[..most];
    let first = old.first().into_iter().chain(new.first()).min().copied().unwrap_or_default();
    // Each word is written once the next one has another fingerprint. The word before the first one has another, too.
    let (mut last, mut len, mut fit) = (!first, 0, true);
    let mut add = |word: W| {
        let equal = cut.value(word) == cut.value(last);
        let copies = join(cut.copies(last), cut.copies(word));
        merged[len] = last;
        len += usize::from(!equal);
        fit &= !equal | (copies <= cut.most_copies());
        last = if equal { cut.value(word) << cut.copy_shift() | W::from(copies) } else { word };
    };
    while let (Some(&one), Some(&other)) = (old.first(), new.first()) {
        let is_old = one <= other;
        add(one.min(other));
        old = &old[usize::from(is_old)..];
        new = &new[usize::from(!is_old)..];
    }
    old.iter().chain(new).for_each(|&word| add(word));
    merged[len] = last;
    fit.then(|| &merged[1..=len])
}

/// Memory of one thread, reused from part to part.
#[derive(Default)]
struct Scratch<W> {
    words: Vec<W>,
    ends: Vec<u32>,
    counted: Counted<W>,
}

impl<W: Word> Scratch<W> {
    /// Writes the words of a part in ascending order to the start of `words`. Returns their number.
    fn sort(&mut self, cut: Cut<W>, chunks: &[&[W]]) -> usize {
        let Scratch { words, ends, .. } = self;
        let len: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        if words.len() < len {
            words.resize(len, W::default());
        }
        // A part of 2^32 words exceeds all but the largest memories; it is sorted in one place.
        let place_bits = if len < u32::MAX as usize { (len / PER_PLACE).checked_ilog2().unwrap_or(0) } else { 0 };
        let place_bits = place_bits.min(MOST_PLACE_BITS).min(cut.low_bits());
        if place_bits == 0 {
            let mut begin = 0;
            for chunk in chunks {
                words[begin..begin + chunk.len()].copy_from_slice(chunk);
                begin += chunk.len();
            }
            words[..len].sort_unstable();
            return len;
        }
        let shift = cut.low_bits() - place_bits + cut.copy_shift();
        let place = |word: W| word.bits_from(shift) as usize;
        ends.clear();
        ends.resize(1 << place_bits, 0);
        for (i, chunk) in chunks.iter().enumerate() {
            // Chunks lie anywhere in memory.
            if let Some(next) = chunks.get(i + 1) {
                (0..next.len()).step_by(64 / size_of::<W>()).for_each(|word| prefetch(next, word));
            }
            chunk.iter().for_each(|&word| ends[place(word)] += 1);
        }
        let mut begin = 0;
        for end in ends.iter_mut() {
            begin += std::mem::replace(end, begin);
        }
        for chunk in chunks {
            for &word in *chunk {
                let next = &mut ends[place(word)];
                words[*next as usize] = word;
                *next += 1;
            }
        }
        let mut begin = 0;
        for &end in ends.iter() {
            sort_few(&mut words[begin..end as usize]);
            begin = end as usize;
        }
        len
    }
}

/// Sorts items that are mostly few.
#[inline(always)]
fn sort_few<W: Word>(items: &mut [W]) {
    if items.len() > 16 {
        return items.sort_unstable();
    }
    for end in 1..items.len() {
        let (item, mut at) = (items[end], end);
        while at > 0 && items[at - 1] > item {
            items[at] = items[at - 1];
            at -= 1;
        }
        items[at] = item;
    }
}

/// Counts of all parts.
#[derive(Debug)]
pub(crate) struct Parts<W> {
    cut: Cut<W>,
    counted: Vec<Counted<W>>,
}

impl<W: Word> Parts<W> {
    pub(crate) fn new(cut: Cut<W>) -> Parts<W> {
        Parts { cut, counted: vec![Counted::default(); cut.parts()] }
    }

    /// Creates parts that `fill` fills, on all threads of the current pool.
    pub(crate) fn filled(cut: Cut<W>, fill: impl Fn(usize, &mut Counted<W>) + Sync) -> Parts<W> {
        let mut parts = Parts::new(cut);
        parts.counted.par_iter_mut().enumerate().for_each(|(part, counted)| fill(part, counted));
        parts
    }

    /// Iterates over the counts of each part.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Counted<W>> {
        self.counted.iter()
    }

    /// Adds the words of each part, given by `of_part` in chunks, to the counts; `join` combines the numbers of equal
    /// fingerprints, in any order.
    pub(crate) fn count<'a>(
        &mut self,
        of_part: impl Fn(usize) -> Vec<&'a [W]> + Sync,
        join: impl Fn(u64, u64) -> u64 + Copy + Sync,
    ) {
        let cut = self.cut;
        let parts = self.counted.par_iter_mut().enumerate();
        parts.with_max_len(8).for_each_init(Scratch::default, |scratch, (part, counted)| {
            let chunks = of_part(part);
            if !chunks.is_empty() {
                *counted = counted.with(cut, &chunks, scratch, join);
            }
        });
    }

    /// Removes fingerprints with fewer than `least` copies.
    pub(crate) fn keep(&mut self, least: u64) {
        let cut = self.cut;
        if least > 1 {
            self.counted.par_iter_mut().for_each(|counted| counted.keep(cut, least));
        }
    }

    /// Returns the number of different fingerprints.
    pub(crate) fn len(&self) -> u64 {
        self.counted.iter().map(|counted| counted.len() as u64).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.counted.iter().map(Counted::bytes).sum()
    }

    /// Iterates over the fingerprints from `first` on in ascending order, with their copies.
    pub(crate) fn from(&self, first: W) -> impl Iterator<Item = (W, u64)> + '_ {
        let cut = self.cut;
        let first_part = cut.part(first);
        (first_part..cut.parts()).flat_map(move |part| {
            let least = if part == first_part { cut.low(first) } else { W::default() };
            self.counted[part].from(cut, least).map(move |(low, copies)| (cut.fingerprint(part, low), copies))
        })
    }

    /// Iterates over all fingerprints in ascending order, with their copies, and frees each part after its last one.
    pub(crate) fn into_all(self) -> impl Iterator<Item = (W, u64)> {
        let cut = self.cut;
        self.counted.into_iter().enumerate().flat_map(move |(part, counted)| {
            let all = counted.from(cut, W::default());
            all.map(|(low, copies)| (cut.fingerprint(part, low), copies)).collect::<Vec<_>>()
        })
    }

    /// Counts the classes `of` the copies of all fingerprints, on all threads.
    pub(crate) fn sum<const N: usize>(&self, of: impl Fn(u64) -> usize + Sync) -> [u64; N] {
        let cut = self.cut;
        let one = |counted: &Counted<W>| {
            let mut sums = [0; N];
            counted.from(cut, W::default()).for_each(|(_, copies)| sums[of(copies)] += 1);
            sums
        };
        let add = |mut a: [u64; N], b: [u64; N]| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        self.counted.par_iter().map(one).reduce(|| [0; N], add)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Compares any number of rounds with a map; few fingerprints, so that copies overflow their bits.
    fn check<W: Word>(bits: u32, rounds: &[Vec<W>], repeats: usize, least: u64) -> Result<(), TestCaseError> {
        let (cut, mask) = (Cut::new(bits), !W::default() >> (W::BITS - bits));
        let (mut parts, mut model) = (Parts::new(cut), BTreeMap::<W, u64>::new());
        for round in rounds {
            let mut chunks = vec![Vec::new(); cut.parts()];
            for (i, fingerprint) in round.iter().map(|&value| value & mask).enumerate() {
                let copies = if i % 7 == 0 { cut.most_copies() } else { 1 + i as u64 % 3 };
                chunks[cut.part(fingerprint)].push(vec![cut.word(fingerprint, copies); repeats]);
                *model.entry(fingerprint).or_default() += copies * repeats as u64;
            }
            parts.count(|part| chunks[part].iter().map(Vec::as_slice).collect(), |one, other| one + other);
            prop_assert!(parts.from(W::default()).eq(model.iter().map(|(&f, &c)| (f, c))));
        }
        let len: usize = rounds.iter().map(Vec::len).sum();
        parts.keep(least);
        model.retain(|_, copies| *copies >= least);
        prop_assert!(parts.from(W::default()).eq(model.iter().map(|(&f, &c)| (f, c))));
        for first in rounds.iter().flatten().step_by(len / 20 + 1).map(|&value| value & mask).chain([W::from(1), mask])
        {
            prop_assert!(parts.from(first).eq(model.range(first..).map(|(&f, &c)| (f, c))), "{first:?}");
        }
        prop_assert_eq!(parts.len(), model.len() as u64);
        prop_assert_eq!(
            parts.sum::<2>(|copies| (copies > 5) as usize)[1],
            model.values().filter(|c| **c > 5).count() as u64
        );
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn rounds_count_like_a_map(
            bits in prop::sample::select(vec![33u32, 34, 62, 64]),
            rounds in prop::collection::vec(prop::collection::vec(prop_oneof![any::<u64>(), 0u64..5], 0..60), 1..4),
            repeats in prop::sample::select(vec![1usize, 2, 1500]),
            least in 1u64..4,
        ) {
            check(bits, &rounds, repeats, least)?;
            let wide = |value: &u64| u128::from(value.rotate_left(32)) << 64 | u128::from(*value);
            let rounds: Vec<Vec<u128>> = rounds.iter().map(|round| round.iter().map(wide).collect()).collect();
            check(bits + 63 - bits % 2, &rounds, repeats, least)?;
        }
    }

    #[test]
    fn large_parts_and_large_counts() {
        let one_part: Vec<u64> = (0..40_000u64).map(|i| warpset_core::hash::finalise(i / 2) >> 14).collect();
        check(62, &[one_part.clone(), one_part], 3, 2).unwrap();
        check(33, &[vec![7u64; 3], vec![7; 3]], 50_000, 1).unwrap();
        check(126, &[vec![7u128; 3], vec![7; 3]], 50_000, 1).unwrap();
    }
}

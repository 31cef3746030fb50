//! Filters on the host compared with a plain model.

use std::collections::HashSet;

use proptest::prelude::*;
use warpset_core::hash::mix;
use warpset_core::minimizer::{Kmer, code, is_base, letter};
use warpset_core::sequence_filter::{Both, MAX_BLOCKS, Span, block_of, mask_of, word_of};

use super::view::{TASK, random_letters};
use crate::{Error, Hits, Layout, PackedSequences, SequenceFilter, SequenceFilterView, Threshold};

/// Model by definition, k-mer by k-mer.
pub(super) struct Model {
    layout: Layout,
    pub kmers: HashSet<u128>,
    pub words: Vec<u64>,
}

/// Returns bases as a number, the first base lowest.
fn number(letters: &[u8]) -> u128 {
    letters.iter().rev().fold(0, |bases, &letter| bases << 2 | u128::from(code(letter)))
}

impl Model {
    pub fn new(layout: Layout) -> Model {
        Model { layout, kmers: HashSet::new(), words: vec![0; layout.words() as usize] }
    }

    /// Returns the k-mer of each window, `None` for windows with a letter that is no base.
    fn windows<'s>(&self, letters: &'s [u8]) -> impl Iterator<Item = Option<&'s [u8]>> + use<'s> {
        letters.windows(self.layout.k() as usize).map(|kmer| kmer.iter().all(|&letter| is_base(letter)).then_some(kmer))
    }

    fn hash(span: Span, letters: &[u8]) -> u32 {
        let at = |i: usize| Both::of((number(letters) >> (2 * i)) as u32);
        span.hash(at(0), at(span.offset() as usize))
    }

    /// Returns the 64-bit words of a k-mer, and the bits in them.
    fn bits(&self, kmer: &[u8]) -> Vec<(usize, u64)> {
        let (layout, shape) = (&self.layout, self.layout.shape());
        let each = kmer.windows(layout.s() as usize).map(|smer| {
            let mmers = smer.windows(layout.m() as usize);
            let least = mmers.map(|mmer| Model::hash(shape.minimizer_span(), mmer)).min().unwrap();
            let hash = Model::hash(shape.smer_span(), smer);
            let word = 8 * block_of(least, layout.blocks()) as usize + word_of(hash) as usize;
            (word / 2, u64::from(mask_of(hash)) << (word % 2 * 32))
        });
        each.collect()
    }

    pub fn insert(&mut self, letters: &[u8]) {
        for kmer in self.windows(letters).flatten() {
            self.kmers.insert(number(kmer).canonical(self.layout.k()));
            self.bits(kmer).into_iter().for_each(|(word, bits)| self.words[word] |= bits);
        }
    }

    pub fn contains_windows(&self, letters: &[u8]) -> Vec<bool> {
        let found = |kmer: &[u8]| self.bits(kmer).into_iter().all(|(word, bits)| self.words[word] & bits == bits);
        let answer = |kmer: Option<&[u8]>| {
            let found = kmer.is_some_and(found);
            assert!(found || kmer.is_none_or(|kmer| !self.kmers.contains(&number(kmer).canonical(self.layout.k()))));
            found
        };
        self.windows(letters).map(answer).collect()
    }

    pub fn count(&self, letters: &[u8]) -> Hits {
        let found = self.contains_windows(letters).iter().filter(|found| **found).count() as u64;
        Hits { found, kmers: self.windows(letters).flatten().count() as u64 }
    }
}

/// Lengths of k-mers, s-mers and minimizers, with the ends of their ranges.
pub(super) const SHAPES: [(u32, u32, u32); 19] = [
    (9, 9, 4),
    (9, 9, 9),
    (9, 5, 4),
    (15, 12, 7),
    (16, 16, 15),
    (17, 17, 17),
    (21, 18, 13),
    (31, 26, 16),
    (31, 26, 19),
    (31, 31, 4),
    (32, 32, 32),
    (32, 4, 4),
    (33, 29, 16),
    (33, 32, 16),
    (36, 5, 4),
    (47, 16, 8),
    (55, 32, 16),
    (61, 30, 19),
    (63, 32, 32),
];

/// Generates reads of random bases, some with other letters, some with parts of others, of lengths around the borders
/// of words and windows.
pub(super) fn reads(count: u64, most: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut reads: Vec<Vec<u8>> = Vec::new();
    for i in 0..count {
        let random = mix(i, seed);
        let mut read = match random % 8 {
            0 => vec![],
            1 => vec![b"ACGTNn"[(random >> 8) as usize % 6]; (random >> 16) as usize % most],
            2 if i > 0 => {
                let other = &reads[(random >> 8) as usize % i as usize];
                other.iter().rev().map(|&base| if is_base(base) { letter(code(base) ^ 2) } else { base }).collect()
            }
            3 => random_letters(random >> 8 & 63, random),
            _ => random_letters((random >> 8) % most as u64, random),
        };
        if random >> 40 & 1 == 1 {
            for (j, letter) in read.iter_mut().enumerate() {
                match mix(j as u64, random) % 97 {
                    0 => *letter = b'N',
                    1..50 => letter.make_ascii_lowercase(),
                    _ => {}
                }
            }
        }
        reads.push(read);
    }
    reads
}

fn is_as_the_model(layout: Layout, stored: &[Vec<u8>], asked: &[Vec<u8>]) {
    let mut model = Model::new(layout);
    stored.iter().for_each(|read| model.insert(read));
    let mut filter = SequenceFilter::with_layout(layout).unwrap();
    filter.insert_bulk(stored).unwrap();
    assert!(filter.words() == model.words, "{layout:?}");
    let mut one_by_one = SequenceFilter::with_layout(layout).unwrap();
    stored.iter().for_each(|read| one_by_one.insert(read));
    assert!(one_by_one == filter);
    let mut packed = PackedSequences::new();
    stored.iter().for_each(|read| packed.push(read));
    let mut from_packed = SequenceFilter::with_layout(layout).unwrap();
    from_packed.insert_bulk(&packed).unwrap();
    assert!(from_packed == filter);
    for reads in [stored, asked] {
        let windows = filter.contains_windows_bulk(reads).unwrap();
        let counts = filter.count_bulk(reads).unwrap();
        let threshold = Threshold::at_least(2).and_fraction(0.5).unwrap();
        let matches = filter.matches_bulk(reads, threshold).unwrap();
        assert_eq!([windows.len(), counts.len(), matches.len()], [reads.len(); 3]);
        for (i, read) in reads.iter().enumerate() {
            assert!(windows[i].iter().eq(model.contains_windows(read)), "{layout:?} {i}");
            assert_eq!(
                (windows[i].len(), counts[i]),
                ((read.len() + 1).saturating_sub(layout.k() as usize), model.count(read))
            );
            assert_eq!(matches.get(i), threshold.is_met(counts[i]));
            assert_eq!(filter.count(read), counts[i]);
            if i % 7 == 0 {
                assert!(
                    filter.contains_windows(read) == windows[i] && filter.matches(read, threshold) == matches.get(i)
                );
            }
        }
    }
}

#[test]
fn filters_are_as_the_model() {
    for (i, (k, s, m)) in SHAPES.into_iter().enumerate() {
        for blocks in [1, 7, 1000] {
            let layout = Layout::new(k, s, m, blocks).unwrap();
            let seed = i as u64 + blocks;
            is_as_the_model(layout, &reads(20, 400, seed), &reads(10, 200, seed + 100));
        }
    }
    let layout = Layout::new(31, 26, 16, 100).unwrap();
    is_as_the_model(layout, &[], &[]);
    is_as_the_model(layout, &[vec![], vec![b'A'; 30]], &[vec![b'A'; 31], vec![b'N'; 100]]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_lengths(
        k in 9u32..=63, parts in any::<(u32, u32)>(), blocks in 1u64..200, seed in any::<u64>(), len in 1usize..1500,
    ) {
        let (least, most) = (4.max(k.saturating_sub(31)), k.min(32));
        let s = least + parts.0 % (most - least + 1);
        let layout = Layout::new(k, s, 4 + parts.1 % (s - 3), blocks).unwrap();
        is_as_the_model(layout, &reads(6, len, seed), &reads(4, len, !seed));
    }
}

/// Checks sequences that are cut into pieces for several threads, at the borders of the pieces.
#[test]
fn long_sequences_on_several_threads() {
    let layout = SequenceFilter::builder(500_000).layout().unwrap();
    let mut sequences: Vec<Vec<u8>> = [TASK - 1, TASK + 29, TASK + 30, TASK + 31, 3 * TASK + 5]
        .map(|len| random_letters(len as u64, len as u64))
        .into();
    sequences[1][TASK + 10] = b'N';
    sequences.extend(reads(2000, 300, 5));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut filter = SequenceFilter::with_layout(layout).unwrap();
            filter.insert_bulk(&sequences).unwrap();
            let counts = filter.count_bulk(&sequences).unwrap();
            (filter.contains_windows_bulk(&sequences).unwrap(), counts, filter)
        })
    };
    let (one, five) = (run(1), run(5));
    assert!(one == five);
    let model = Model::new(layout);
    for ((windows, hits), sequence) in one.0.iter().zip(&one.1).zip(&sequences) {
        // All k-mers of the sequence were inserted.
        let kmers = model.windows(sequence).map(|kmer| kmer.is_some());
        assert!(windows.iter().eq(kmers));
        assert_eq!((hits.found, hits.kmers), (hits.kmers, windows.count_ones() as u64));
    }
}

#[test]
fn single_kmers_of_both_strands() {
    let filter = SequenceFilter::builder(1000).k(9).build_from(&["GATTACACC"]).unwrap();
    assert!(filter.contains("gattacacc").unwrap() && filter.contains("GGTGTAATC").unwrap());
    assert!(!filter.contains("GATTACACG").unwrap());
    for other in ["", "GATTACAC", "GATTACACCA", "GATTACACN"] {
        assert!(matches!(filter.contains(other), Err(Error::NotKmer { k: 9, .. })));
    }
}

#[test]
fn unions() {
    let builder = SequenceFilter::builder(2000);
    let (left, right) = (reads(20, 200, 1), reads(20, 200, 2));
    let (mut filter, other) = (builder.build_from(&left).unwrap(), builder.build_from(&right).unwrap());
    filter.check_compatible(&other).unwrap();
    filter.merge(&other).unwrap();
    assert!(filter == builder.build_from(&[left, right].concat()).unwrap());
    let before = filter.clone();
    for foreign in [builder.k(30), builder.s(25), builder.m(10), builder.bits_per_key(15.0)] {
        let foreign = foreign.build().unwrap();
        assert!(matches!(filter.merge(&foreign), Err(Error::Incompatible { .. })));
        assert!(filter.check_compatible(&foreign).is_err() && filter == before);
    }
    filter.clear();
    assert!(filter == builder.build().unwrap());
}

#[test]
fn saved_and_loaded() {
    let filter = SequenceFilter::builder(3000).k(21).build_from(&reads(20, 300, 3)).unwrap();
    let bytes = filter.to_bytes();
    assert!(SequenceFilter::from_bytes(&bytes).unwrap() == filter);
    let aligned: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes);
    let view = SequenceFilterView::from_bytes(bytemuck::cast_slice(&aligned)).unwrap();
    assert!(view.words() == filter.words() && view.layout() == filter.layout());
    let asked = reads(10, 200, 4);
    assert_eq!(view.count_bulk(&asked).unwrap(), filter.count_bulk(&asked).unwrap());
    // Every parameter that no filter can have, and one changed bit.
    for (at, value) in
        [(24, 0u64), (24, MAX_BLOCKS + 1), (32, 8), (32, 1 << 32), (40, 22), (48, 3), (48, 22), (56, 1), (24, !0)]
    {
        let mut damaged = bytes.clone();
        damaged[at..at + 8].copy_from_slice(&value.to_le_bytes());
        assert!(matches!(SequenceFilter::from_bytes(&damaged), Err(Error::File(_))), "{at} {value}");
    }
    let mut damaged = bytes.clone();
    damaged[200] ^= 1;
    assert!(SequenceFilter::from_bytes(&damaged).is_err() && SequenceFilter::from_bytes(&bytes[..300]).is_err());
    assert!(warpset_base::file::from_bytes::<SequenceFilter>(&bytes).is_ok());
}

#[cfg(feature = "mmap")]
#[test]
fn mapped_files_answer_as_filters() {
    let path = std::env::temp_dir().join(format!("warpset-sequence-{}", std::process::id()));
    let filter = SequenceFilter::builder(3000).build_from(&reads(20, 300, 3)).unwrap();
    filter.save(&path).unwrap();
    // SAFETY: only this test accesses the file.
    let mapped = unsafe { SequenceFilter::map(&path).unwrap() };
    let asked = reads(10, 200, 4);
    assert_eq!(mapped.count_bulk(&asked).unwrap(), filter.count_bulk(&asked).unwrap());
    assert_eq!(mapped.contains_windows_bulk(&asked).unwrap(), filter.contains_windows_bulk(&asked).unwrap());
    assert_eq!((mapped.fpr(), mapped.memory_bytes()), (filter.fpr(), filter.memory_bytes()));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn settings_and_their_limits() {
    let builder = SequenceFilter::builder(1 << 20);
    let layout = builder.layout().unwrap();
    assert_eq!((layout.k(), layout.s(), layout.m(), layout.blocks()), (31, 27, 13, 1 << 16));
    for bits in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(builder.bits_per_key(bits).build(), Err(Error::InvalidBitsPerKey { .. })));
    }
    for foreign in [
        builder.k(8),
        builder.k(64),
        builder.k(63).s(31),
        builder.s(32),
        builder.m(3),
        builder.s(20).m(21),
        builder.k(u32::MAX),
        builder.k(0),
        builder.s(0),
        builder.s(u32::MAX),
    ] {
        assert!(matches!(foreign.layout(), Err(Error::InvalidLengths { .. })), "{foreign:?}");
    }
    // More than 2^32 bits, and the largest filter.
    let large = SequenceFilter::builder(1 << 32).layout().unwrap();
    assert_eq!((large.blocks(), large.words()), (1 << 28, 1 << 30));
    let largest = SequenceFilter::builder(1 << 36).layout().unwrap();
    assert_eq!((largest.blocks(), largest.m()), (MAX_BLOCKS, 20));
    assert!(matches!(SequenceFilter::builder((1 << 36) + 17).layout(), Err(Error::TooLarge { .. })));
    assert!(SequenceFilter::builder(u64::MAX).layout().is_err());
    assert!(matches!(Layout::new(31, 26, 16, 0), Err(Error::ZeroCapacity)));
}

/// Compares theory, the filter's own estimate, and samples.
#[test]
fn rates_of_false_positives() {
    // (k, s, m, bits per k-mer, allowed distance of theory and samples)
    for (k, s, m, bits) in
        [(31, 31, 13, 8.0), (31, 29, 13, 4.0), (31, 28, 16, 4.0), (31, 26, 13, 3.0), (41, 32, 13, 3.0)]
    {
        let n = 300_000;
        let builder = SequenceFilter::builder(n).k(k).s(s).m(m).bits_per_key(bits);
        let filter = builder.build_from(&[random_letters(n + u64::from(k) - 1, 9)]).unwrap();
        let (expected, estimated, measured) = (filter.expected_fpr(n), filter.fpr(), filter.measured_fpr(2_000_000, 4));
        let near = |a: f64, b: f64| (0.6..1.6).contains(&(a / b));
        assert!(near(expected, measured) && near(estimated, measured), "{s} {expected} {estimated} {measured}");
        let fill = filter.fill_ratio();
        assert!((filter.predicted_fill(n) / fill - 1.0).abs() < 0.05, "{fill} {}", filter.predicted_fill(n));
    }
    let empty = SequenceFilter::builder(1000).build().unwrap();
    assert_eq!(
        (empty.fpr(), empty.expected_fpr(0), empty.measured_fpr(1000, 1), empty.fill_ratio()),
        (0.0, 0.0, 0.0, 0.0)
    );
    assert!(empty.expected_fpr(1 << 40) > 0.99 && empty.predicted_fill(1 << 40) > 0.99);
}

//! Block and hash of each s-mer of packed bases, many positions at a time.
//!
//! All loops here run over arrays without branches. The compiler turns them into vector instructions: each function is
//! also compiled for AVX-512 and AVX2, and the processor's best version is called.

use warpset_base::with_vectors;
use warpset_core::sequence_filter::{Both, Shape, Span, block_of, kmers_of, reverse_complement, smers_of};

/// Words of 32 positions per round, so that the arrays stay in the first-level cache.
pub(super) const WORDS: usize = 32;
/// Positions per round.
pub(super) const POSITIONS: usize = 32 * WORDS;
/// M-mers of the s-mers at these positions: one s-mer has at most 29.
const MMERS: usize = POSITIONS + 32;
/// Positions with known 16-base words: the second half of an s-mer of 32 bases begins 16 positions later.
const BASES: usize = MMERS + 32;

/// S-mers of a round of positions.
pub(super) struct Probes {
    /// Block of each position, also where no s-mer begins.
    pub blocks: [u32; POSITIONS],
    /// Hash of each position.
    pub hashes: [u32; POSITIONS],
    /// One bit per position, in words of 32: set if an s-mer of a k-mer begins there.
    pub smers: [u32; WORDS],
    /// One bit per position: set if a k-mer begins there.
    pub kmers: [u32; WORDS],
    words: [u32; BASES],
    others: [u32; BASES],
    least: [[u32; MMERS]; 2],
}

impl Probes {
    pub(super) fn new() -> Box<Probes> {
        Box::new(Probes {
            blocks: [0; POSITIONS],
            hashes: [0; POSITIONS],
            smers: [0; WORDS],
            kmers: [0; WORDS],
            words: [0; BASES],
            others: [0; BASES],
            least: [[0; MMERS]; 2],
        })
    }

    /// Fills the arrays for [`WORDS`] words of packed bases from `first` on, or for the words that are left, as if
    /// positions without a base followed.
    pub(super) fn fill(&mut self, shape: Shape, blocks: u64, bases: &[u64], breaks: &[u32], first: usize) {
        let kmers_at = |i: usize| {
            let at = |i: usize| breaks.get(i).copied().unwrap_or(!0);
            kmers_of([at(i), at(i + 1), at(i + 2)], shape.k())
        };
        let mut before = if first > 0 { kmers_at(first - 1) } else { 0 };
        for i in 0..WORDS {
            self.kmers[i] = kmers_at(first + i);
            self.smers[i] = smers_of(u64::from(before) | u64::from(self.kmers[i]) << 32, shape.smers());
            before = self.kmers[i];
        }
        let bases = &bases[first..];
        let mut own = [0; BASES / 32 + 1];
        let count = own.len().min(bases.len());
        own[..count].copy_from_slice(&bases[..count]);
        let own = &own;
        let probes = self;
        fill(probes, shape, blocks, own);
    }
}

fn fill(probes: &mut Probes, shape: Shape, blocks: u64, bases: &[u64; BASES / 32 + 1]) {
    with_vectors!(fill_all(probes: &mut Probes, shape: Shape, blocks: u64, bases: &[u64; BASES / 32 + 1]))
}

#[inline(always)]
fn fill_all(probes: &mut Probes, shape: Shape, blocks: u64, bases: &[u64; BASES / 32 + 1]) {
    let Probes { blocks: block, hashes, words, others, least, .. } = probes;
    for (i, words) in words.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        // Sixteen positions from each half of a word.
        let (low, high) = (bases[i], bases[i] >> 32 | bases[i + 1] << 32);
        for j in 0..16 {
            words[j] = (low >> (2 * j)) as u32;
            words[16 + j] = (high >> (2 * j)) as u32;
        }
    }
    for i in 0..BASES {
        others[i] = reverse_complement(words[i]);
    }
    let [mut least, mut scratch] = least.each_mut();
    hash_all(shape.minimizer_span(), words, others, least);
    let mut have = 1;
    while 2 * have <= shape.window() as usize {
        least_of_both(least, have, scratch);
        std::mem::swap(&mut least, &mut scratch);
        have *= 2;
    }
    least_of_both(least, shape.window() as usize - have, scratch);
    hash_all(shape.smer_span(), words, others, hashes);
    for (block, &least) in block.iter_mut().zip(&*scratch) {
        *block = block_of(least, blocks) as u32;
    }
}

/// Hashes the spans at the first positions.
#[inline(always)]
fn hash_all(span: Span, words: &[u32; BASES], others: &[u32; BASES], hashes: &mut [u32]) {
    let (n, offset) = (hashes.len(), span.offset() as usize);
    let (first, last) = (&words[..n], &words[offset..][..n]);
    let (first_other, last_other) = (&others[..n], &others[offset..][..n]);
    for i in 0..n {
        let first = Both { word: first[i], other: first_other[i] };
        hashes[i] = span.hash(first, Both { word: last[i], other: last_other[i] });
    }
}

/// Writes the minimum of each value and the one `distance` later; the last `distance` values are not changed.
#[inline(always)]
fn least_of_both(values: &[u32; MMERS], distance: usize, to: &mut [u32; MMERS]) {
    let n = MMERS - distance;
    let (here, later) = (&values[..n], &values[distance..]);
    for ((to, here), later) in to.iter_mut().zip(here).zip(later) {
        *to = Ord::min(*here, *later);
    }
    to[n..].copy_from_slice(&values[n..]);
}

//! What positions of packed bases ask of a filter: the block and the hash of each s-mer, many positions at a time.
//!
//! Everything here is a loop over arrays without branches, which the compiler turns into vector instructions: into
//! those of AVX-512 or AVX2 where the processor has them, as each function is compiled for these too.

use warpset_core::sequence_filter::{Both, Shape, Span, all_of, block_of, reverse_complement, smers_of};

/// Words of 32 positions that are done at a time: their arrays stay in the first cache.
pub(super) const WORDS: usize = 32;
/// Positions that are done at a time.
pub(super) const POSITIONS: usize = 32 * WORDS;
/// M-mers that s-mers at these positions have: at most 29 of one s-mer.
const MMERS: usize = POSITIONS + 32;
/// Positions of which the sixteen bases are known: the second half of a k-mer of 32 begins 16 later.
const BASES: usize = MMERS + 32;

/// Calls a function that is marked `#[inline(always)]`, compiled for the best vector instructions that there are.
macro_rules! with_vectors {
    ($work:ident($($argument:ident: $ty:ty),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512($($argument: $ty),*) {
                $work($($argument),*);
            }
            #[target_feature(enable = "avx2")]
            fn avx2($($argument: $ty),*) {
                $work($($argument),*);
            }
            if std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512vl")
            {
                // SAFETY: these were just detected; each implies AVX-512F.
                return unsafe { avx512($($argument),*) };
            }
            if std::is_x86_feature_detected!("avx2") {
                // SAFETY: AVX2 was just detected.
                return unsafe { avx2($($argument),*) };
            }
        }
        $work($($argument),*)
    }};
}

/// The s-mers of some positions.
pub(super) struct Probes {
    /// The block of each, also where none begins.
    pub blocks: [u32; POSITIONS],
    /// The hash of each.
    pub hashes: [u32; POSITIONS],
    /// A bit per position, in words of 32: whether an s-mer of a k-mer begins there.
    pub smers: [u32; WORDS],
    /// A bit per position: whether a k-mer begins there.
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

    /// Looks at [`WORDS`] words of packed bases from `first` on, or at as many as there are: as if breaks followed.
    pub(super) fn fill(&mut self, shape: Shape, blocks: u64, bases: &[u64], breaks: &[u32], first: usize) {
        let kmers_at = |i: usize| {
            let at = |i: usize| breaks.get(i).copied().unwrap_or(!0);
            all_of(!(u64::from(at(i)) | u64::from(at(i + 1)) << 32), shape.k()) as u32
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
        // Sixteen positions from two halves of words each.
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

/// The hashes of the spans at the first positions.
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

/// Each value, or that `distance` later if it is less; the last ones are left as they are.
#[inline(always)]
fn least_of_both(values: &[u32; MMERS], distance: usize, to: &mut [u32; MMERS]) {
    let n = MMERS - distance;
    let (here, later) = (&values[..n], &values[distance..]);
    for ((to, here), later) in to.iter_mut().zip(here).zip(later) {
        *to = Ord::min(*here, *later);
    }
    to[n..].copy_from_slice(&values[n..]);
}

//! Queries over borrowed words, of a filter in memory or a saved one in a mapped file.

use std::fmt;

use warpset_base::bitmap::Bitmap;
use warpset_base::parallel;
use warpset_core::hash::mix;
use warpset_core::minimizer;
use warpset_core::sequence_filter::{BLOCK_BITS, BLOCK_WORDS, mask_of, word_of};

use super::hits::{Hits, Threshold};
use super::layout::Layout;
use super::packed::PackedSequences;
use super::probes::{POSITIONS, Probes, WORDS};
use super::rates;
use super::sequences::{Piece, Sequences, tasks};
use crate::Error;

/// Positions per task of a parallel operation; a multiple of 32.
pub(super) const TASK: usize = 1 << 14;
/// Bytes of words above which cache lines are prefetched.
const FAR_BYTES: usize = 1 << 20;
/// Letters per random sequence of a measurement.
const SAMPLE_LETTERS: u64 = 1 << 16;

/// Borrowed filter, for queries: parameters, and a borrow of the words.
///
/// Made of saved bytes without a copy ([`SequenceFilterView::from_bytes`]), or of a filter
/// ([`SequenceFilter::view`](crate::SequenceFilter::view)).
///
/// ```
/// use warpset_sequence::SequenceFilter;
///
/// let filter = SequenceFilter::builder(100).k(11).build_from(&["ACGTTGCAACGTACGTTACAG"])?;
/// let view = filter.view(); // may go to other threads, lives as long as the filter
/// assert_eq!(view.count(b"TGCAACGTACGTTA").found, 4);
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct SequenceFilterView<'a> {
    layout: Layout,
    words: &'a [u64],
}

/// Buffers of a thread.
struct Scratch {
    packed: PackedSequences,
    probes: Box<Probes>,
    /// One bit per position: whether a k-mer begins there that may be in the filter (`found`), and whether a k-mer
    /// begins there (`kmers`).
    found: Vec<u32>,
    kmers: Vec<u32>,
}

impl Scratch {
    fn new() -> Scratch {
        Scratch { packed: PackedSequences::new(), probes: Probes::new(), found: Vec::new(), kmers: Vec::new() }
    }
}

/// Prefetches the cache lines of the blocks of s-mers. `words` is the address of `bytes` bytes of blocks; nothing is
/// read.
pub(super) fn prefetch_all(words: *const u64, bytes: usize, probes: &Probes) {
    #[cfg(target_arch = "x86_64")]
    {
        if bytes < FAR_BYTES {
            return;
        }
        let mut last = None;
        for (smers, blocks) in probes.smers.iter().zip(probes.blocks.as_chunks::<32>().0) {
            for &block in if *smers == 0 { &[][..] } else { blocks } {
                if last != Some(block) {
                    let at = words.wrapping_add(block as usize * BLOCK_WORDS);
                    // SAFETY: every x86-64 processor has SSE, and a prefetch accesses no memory, whatever its address.
                    unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast()) };
                    last = Some(block);
                }
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, bytes, probes, FAR_BYTES);
}

/// Returns the first `len` bits of words of 32 as a bitmap.
fn bits_from(words: &[u32], len: usize) -> Bitmap {
    let pairs = words.chunks(2).map(|two| u64::from(two[0]) | u64::from(two.get(1).copied().unwrap_or(0)) << 32);
    Bitmap::from_words(pairs.take(len.div_ceil(64)).collect(), len)
}

impl<'a> SequenceFilterView<'a> {
    /// Creates a view; `words` are exactly the words of `layout`.
    pub(crate) fn new(layout: Layout, words: &'a [u64]) -> SequenceFilterView<'a> {
        debug_assert_eq!(words.len() as u64, layout.words());
        SequenceFilterView { layout, words }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Borrows the words, little-endian, block by block: the memory image of all backends.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns the bytes of the words.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Returns the bits of memory per k-mer if the filter holds `kmers` k-mers.
    pub fn bits_per_key(&self, kmers: u64) -> f64 {
        8.0 * self.memory_bytes() as f64 / kmers as f64
    }

    /// Counts the bits that are set.
    pub fn count_ones(&self) -> u64 {
        let count = |words: &[u64]| words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        parallel::map(self.words.chunks(TASK), count).into_iter().sum()
    }

    /// Returns the fraction of bits that are set.
    pub fn fill_ratio(&self) -> f64 {
        self.count_ones() as f64 / (self.layout.blocks() * BLOCK_BITS) as f64
    }

    /// Estimates the false-positive rate of the present filter from the bits set in each block, for k-mers that share
    /// no s-mer with those in the filter. Takes time proportional to the size of the filter.
    pub fn fpr(&self) -> f64 {
        rates::fpr(&self.layout, self.words)
    }

    /// Returns the theoretical false-positive rate with `kmers` different k-mers of random sequences.
    pub fn expected_fpr(&self, kmers: u64) -> f64 {
        self.layout.expected_fpr(kmers)
    }

    /// Returns the theoretical fraction of bits that are set with `kmers` different k-mers of random sequences.
    pub fn predicted_fill(&self, kmers: u64) -> f64 {
        self.layout.predicted_fill(kmers)
    }

    /// Measures the fraction of about `samples` k-mers of random sequences, drawn with `seed`, that the filter claims
    /// to contain.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> f64 {
        let windows = SAMPLE_LETTERS - u64::from(self.layout.k()) + 1;
        let hits = parallel::map(0..samples.div_ceil(windows), |i| {
            self.count(&random_letters(SAMPLE_LETTERS, seed ^ mix(i, 1)))
        });
        let (found, kmers) = hits.iter().fold((0, 0), |sum, hits| (sum.0 + hits.found, sum.1 + hits.kmers));
        found as f64 / kmers.max(1) as f64
    }

    /// Fills `found` and `kmers` for the packed sequences.
    fn answer(&self, scratch: &mut Scratch) {
        let Scratch { packed, probes, found, kmers } = scratch;
        let words: &[u32] = bytemuck::cast_slice(self.words);
        let shape = self.layout.shape();
        found.clear();
        kmers.clear();
        let mut before = None;
        for first in (0..packed.bases().len()).step_by(WORDS) {
            probes.fill(shape, self.layout.blocks(), packed.bases(), packed.breaks(), first);
            prefetch_all(self.words.as_ptr(), size_of_val(self.words), probes);
            kmers.extend_from_slice(&probes.kmers);
            let positions = probes.blocks.as_chunks::<32>().0.iter().zip(probes.hashes.as_chunks::<32>().0);
            for ((blocks, hashes), &smers) in positions.zip(&probes.smers) {
                let mut hits = 0;
                if smers != 0 {
                    for i in 0..32 {
                        let word = words[blocks[i] as usize * 2 * BLOCK_WORDS + word_of(hashes[i]) as usize];
                        let mask = mask_of(hashes[i]);
                        hits |= u32::from(word & mask == mask) << i;
                    }
                }
                let hits = u64::from(hits & smers);
                if let Some(before) = before {
                    found.push(warpset_core::sequence_filter::all_of(before | hits << 32, shape.smers()) as u32);
                }
                before = Some(hits);
            }
        }
        // The last position has no base, so that no k-mer begins in the last `k - 1` positions of the last word.
        if let Some(before) = before {
            found.push(warpset_core::sequence_filter::all_of(before, shape.smers()) as u32);
        }
    }

    /// Applies `take` to the answers of each piece, and returns its results in the order of pieces. `take` gets one bit
    /// per window for both questions, from the lowest bit on, and must ignore bits past the windows of the piece.
    fn by_piece<S: Sequences + ?Sized, T: Send>(
        &self,
        sequences: &S,
        take: impl Fn(Piece, &[u32], &[u32]) -> T + Sync,
    ) -> (Vec<Piece>, Vec<T>) {
        let k = self.layout.k() as usize;
        let (pieces, ends) = tasks(sequences, k, TASK);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let parts = starts.zip(&ends).map(|(start, &end)| &pieces[start..end]);
        let taken = parallel::map_with(Scratch::new, parts, |scratch, pieces| {
            scratch.packed.clear();
            pieces.iter().for_each(|piece| piece.append(sequences, k, &mut scratch.packed));
            self.answer(scratch);
            let each = pieces.iter().enumerate().map(|(i, &piece)| {
                let first = scratch.packed.first_word(i);
                take(piece, &scratch.found[first..], &scratch.kmers[first..])
            });
            each.collect::<Vec<T>>()
        });
        (pieces, taken.into_iter().flatten().collect())
    }

    /// Tests each window of `k` letters: one bit per window, set if it is a k-mer that may be in the filter. An
    /// inserted k-mer is always found, on either strand; a window with a letter that is no base never is.
    ///
    /// Like all methods for one sequence, this one shares a long sequence among the threads of the current rayon pool.
    pub fn contains_windows(&self, letters: &[u8]) -> Bitmap {
        self.windows(&[letters]).pop().unwrap_or_default()
    }

    /// Tests the windows of many sequences as [`contains_windows`](Self::contains_windows) does: one bitmap per
    /// sequence.
    ///
    /// # Errors
    /// None on the host.
    pub fn contains_windows_bulk<S: Sequences + ?Sized>(&self, sequences: &S) -> Result<Vec<Bitmap>, Error> {
        Ok(self.windows(sequences))
    }

    /// Tests the windows of many sequences.
    fn windows<S: Sequences + ?Sized>(&self, sequences: &S) -> Vec<Bitmap> {
        let (pieces, bits) = self.by_piece(sequences, |piece, found, _| bits_from(found, piece.end - piece.first));
        let mut bitmaps = vec![Bitmap::default(); sequences.count()];
        let mut bits = pieces.iter().zip(bits).peekable();
        while let Some((piece, first)) = bits.next() {
            // Every piece except the last one of a sequence has whole words.
            let (mut words, mut len) = (first.into_words(), piece.end);
            while let Some((more, next)) = bits.next_if(|(next, _)| next.sequence == piece.sequence) {
                words.extend(next.into_words());
                len = more.end;
            }
            bitmaps[piece.sequence] = Bitmap::from_words(words, len);
        }
        bitmaps
    }

    /// Counts the k-mers of a sequence, and those that may be in the filter.
    pub fn count(&self, letters: &[u8]) -> Hits {
        self.counts(&[letters]).pop().unwrap_or_default()
    }

    /// Counts as [`count`](Self::count) does for many sequences: one answer per sequence, in order.
    ///
    /// # Errors
    /// None on the host.
    pub fn count_bulk<S: Sequences + ?Sized>(&self, sequences: &S) -> Result<Vec<Hits>, Error> {
        Ok(self.counts(sequences))
    }

    /// Counts the k-mers of many sequences, and those that may be in the filter.
    fn counts<S: Sequences + ?Sized>(&self, sequences: &S) -> Vec<Hits> {
        let ones = |words: &[u32], len: usize| {
            let whole: u32 = words[..len / 32].iter().map(|word| word.count_ones()).sum();
            let rest = if len.is_multiple_of(32) { 0 } else { (words[len / 32] & !(!0 << (len % 32))).count_ones() };
            u64::from(whole + rest)
        };
        let (pieces, hits) = self.by_piece(sequences, |piece, found, kmers| {
            let len = piece.end - piece.first;
            Hits { found: ones(found, len), kmers: ones(kmers, len) }
        });
        let mut counts = vec![Hits::default(); sequences.count()];
        for (piece, hits) in pieces.iter().zip(hits) {
            let count = &mut counts[piece.sequence];
            *count = Hits { found: count.found + hits.found, kmers: count.kmers + hits.kmers };
        }
        counts
    }

    /// Whether enough k-mers of the sequence may be in the filter.
    pub fn matches(&self, letters: &[u8], threshold: Threshold) -> bool {
        threshold.is_met(self.count(letters))
    }

    /// Tests many sequences as [`matches`](Self::matches) does: one bit per sequence.
    ///
    /// # Errors
    /// None on the host.
    pub fn matches_bulk<S: Sequences + ?Sized>(&self, sequences: &S, threshold: Threshold) -> Result<Bitmap, Error> {
        Ok(matching(&self.counts(sequences), threshold))
    }

    /// Whether one k-mer may be in the filter, in either case and on either strand. An inserted k-mer is always found.
    ///
    /// # Errors
    /// [`Error::NotKmer`] unless these are `k` letters A, C, G or T.
    pub fn contains(&self, kmer: impl AsRef<[u8]>) -> Result<bool, Error> {
        let (kmer, k) = (kmer.as_ref(), self.layout.k());
        if kmer.len() != k as usize || !kmer.iter().all(|&letter| minimizer::is_base(letter)) {
            return Err(Error::NotKmer { kmer: String::from_utf8_lossy(kmer).into(), k });
        }
        Ok(self.count(kmer).found == 1)
    }
}

/// Returns one bit per sequence, set if its hits reach the threshold.
pub(super) fn matching(hits: &[Hits], threshold: Threshold) -> Bitmap {
    let word = |hits: &[Hits]| hits.iter().rev().fold(0, |word, &hits| word << 1 | u64::from(threshold.is_met(hits)));
    Bitmap::from_words(hits.chunks(64).map(word).collect(), hits.len())
}

/// Generates a random sequence.
pub(super) fn random_letters(len: u64, seed: u64) -> Vec<u8> {
    let mut letters = Vec::with_capacity(len as usize + 32);
    for i in 0..len.div_ceil(32) {
        let bases = mix(i, seed);
        letters.extend((0..32).map(|j| minimizer::letter((bases >> (2 * j)) as u8)));
    }
    letters.truncate(len as usize);
    letters
}

impl fmt::Debug for SequenceFilterView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequenceFilterView").field("layout", &self.layout).finish_non_exhaustive()
    }
}

const _: () = assert!(TASK.is_multiple_of(POSITIONS));

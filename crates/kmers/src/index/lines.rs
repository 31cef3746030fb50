//! An exact set of k-mers that is filled as they come: a cache line per lookup.
//!
//! What is saved by Warpset is a [`StaticSet`](warpset_static::StaticSet), which takes less memory but has to know its
//! keys, and twice their memory, to be built. This set takes the keys of an index of Deacon as they are read, on all
//! threads.
//!
//! ```text
//! line    8 words of 64 bits, 64 bytes
//! word    bits 0 to 61: a k-mer of at most 31 bases, or all ones: free
//!         bits 62, 63: two of the line's sixteen marks
//! ```
//!
//! A k-mer belongs to a line and to one of sixteen marks, by its hash. Where its line is full, its mark is set there,
//! and it goes to the next line, and so on. So a lookup ends at the first line that does not have the k-mer's mark.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use warpset_base::words::{AlignedWords, OutOfMemory};
use warpset_core::hash::mix_spread;

use super::front::{prefetch, shared};

/// Words of a line.
const LINE: usize = 8;
/// K-mers per line on average: a load of 7/8.
const PER_LINE: u64 = 7;
/// Bits of a k-mer.
const KEY_BITS: u32 = 62;
/// The bits of a word that hold a k-mer, which are all set in free ones. It is no canonical k-mer: all bases are G.
const FREE: u64 = (1 << KEY_BITS) - 1;
/// K-mers whose lines are asked for before the first of them is read.
const BATCH: usize = 32;

/// An exact set of canonical k-mers of at most 31 bases.
pub(crate) struct Lines {
    words: AlignedWords<u64>,
    lines: u64,
    len: u64,
}

/// A set that is being filled by several threads.
pub(crate) struct Filling<'a> {
    words: &'a [AtomicU64],
    lines: u64,
    len: AtomicUsize,
}

/// The line and the mark of a k-mer.
#[inline(always)]
fn place(kmer: u64, lines: u64) -> (usize, u32) {
    let hash = mix_spread(kmer, 0);
    (((u128::from(hash) * u128::from(lines)) >> 64) as usize, hash as u32 % 16)
}

/// The word of a line and the bit there of a mark.
#[inline(always)]
const fn bit_of(mark: u32) -> (usize, u64) {
    ((mark / 2) as usize, 1 << (KEY_BITS + mark % 2))
}

impl Lines {
    /// A set for `most` k-mers, filled by `fill`.
    pub(crate) fn filled<E: From<OutOfMemory>>(
        most: u64,
        fill: impl FnOnce(&Filling<'_>) -> Result<(), E>,
    ) -> Result<Lines, E> {
        let lines = most / PER_LINE + 1;
        let mut words = AlignedWords::zeroed(lines.saturating_mul(LINE as u64))?.in_huge_pages();
        words.as_mut_slice().fill(FREE);
        let filling = Filling { words: shared(words.as_mut_slice()), lines, len: AtomicUsize::new(0) };
        fill(&filling)?;
        let len = filling.len.into_inner() as u64;
        Ok(Lines { words, lines, len })
    }

    /// Different k-mers.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        8 * self.words.as_slice().len() as u64
    }

    /// All k-mers, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.as_slice().iter().map(|word| word & FREE).filter(|&kmer| kmer != FREE)
    }

    /// Whether the set has each k-mer.
    pub(crate) fn contains_into(&self, kmers: &[u64], found: &mut [bool]) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("bmi2") {
                // SAFETY: the processor has these instructions.
                return unsafe { self.contains_with_avx512(kmers, found) };
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                // SAFETY: the processor has these instructions.
                return unsafe { self.contains_with_avx2(kmers, found) };
            }
        }
        self.contains_any(kmers, found);
    }

    /// # Safety
    /// The processor has AVX-512F and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,bmi2")]
    unsafe fn contains_with_avx512(&self, kmers: &[u64], found: &mut [bool]) {
        self.contains_any(kmers, found);
    }

    /// # Safety
    /// The processor has AVX2 and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn contains_with_avx2(&self, kmers: &[u64], found: &mut [bool]) {
        self.contains_any(kmers, found);
    }

    #[inline(always)]
    fn contains_any(&self, kmers: &[u64], found: &mut [bool]) {
        let words = self.words.as_slice();
        let mut places = [[(0, 0); BATCH]; 2];
        let ask = |places: &mut [(usize, u32); BATCH], kmers: &[u64]| {
            for (place_of, &kmer) in places.iter_mut().zip(kmers) {
                *place_of = place(kmer, self.lines);
                prefetch(words, place_of.0 * LINE);
            }
        };
        ask(&mut places[0], &kmers[..kmers.len().min(BATCH)]);
        for (i, (batch, found)) in kmers.chunks(BATCH).zip(found.chunks_mut(BATCH)).enumerate() {
            if let Some(next) = kmers.get((i + 1) * BATCH..) {
                ask(&mut places[(i + 1) % 2], &next[..next.len().min(BATCH)]);
            }
            for ((found, &kmer), &(line, mark)) in found.iter_mut().zip(batch).zip(&places[i % 2]) {
                *found = self.is_from(line, mark, kmer);
            }
        }
    }

    /// Whether a k-mer is in its line, or in one after it that its mark leads to.
    #[inline(always)]
    fn is_from(&self, mut line: usize, mark: u32, kmer: u64) -> bool {
        let (word, bit) = bit_of(mark);
        // Damaged marks, which no file can bring, would end after one turn.
        for _ in 0..self.lines {
            let Some(words) = self.words.as_slice()[line * LINE..].first_chunk::<LINE>() else { return false };
            let mut equal = 0;
            for word in words {
                equal |= u32::from((word ^ kmer) << 2 == 0);
            }
            if equal != 0 {
                return true;
            }
            if words[word] & bit == 0 {
                return false;
            }
            line = if line + 1 == self.lines as usize { 0 } else { line + 1 };
        }
        false
    }
}

impl Filling<'_> {
    /// Adds k-mers, of which the set has room for as many as it was made for; each is below 2^62 and not all ones.
    pub(crate) fn insert(&self, kmers: &[u64]) {
        let ask = |kmer: u64| prefetch(self.words, place(kmer, self.lines).0 * LINE);
        kmers.iter().take(BATCH).for_each(|&kmer| ask(kmer));
        let mut new = 0;
        for (i, &kmer) in kmers.iter().enumerate() {
            if let Some(&ahead) = kmers.get(i + BATCH) {
                ask(ahead);
            }
            new += usize::from(self.insert_at(place(kmer, self.lines), kmer));
        }
        self.len.fetch_add(new, Ordering::Relaxed);
    }

    /// Whether the k-mer is new. Words of a line are taken in their order and never left, so that two threads with the
    /// same k-mer meet in the same one.
    fn insert_at(&self, (mut line, mark): (usize, u32), kmer: u64) -> bool {
        let (word, bit) = bit_of(mark);
        for _ in 0..self.lines {
            let words = &self.words[line * LINE..][..LINE];
            for slot in words {
                let mut held = slot.load(Ordering::Relaxed);
                loop {
                    if held & FREE == kmer {
                        return false;
                    }
                    if held & FREE != FREE {
                        break;
                    }
                    match slot.compare_exchange_weak(held, (held & !FREE) | kmer, Ordering::Relaxed, Ordering::Relaxed)
                    {
                        Ok(_) => return true,
                        Err(now) => held = now,
                    }
                }
            }
            words[word].fetch_or(bit, Ordering::Relaxed);
            line = if line + 1 == self.lines as usize { 0 } else { line + 1 };
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    fn kmer(i: u64) -> u64 {
        warpset_core::hash::finalise(i) >> 2
    }

    /// Sets of any size, also with many keys more than they were made for lines, filled by several threads that bring the
    /// same keys.
    #[test]
    fn lines_are_sets() {
        for len in [0u64, 1, 2, 7, 8, 9, 100, 5000, 100_000] {
            let keys: Vec<u64> = (0..len).map(kmer).chain([0, 5, 0]).collect();
            let model: HashSet<u64> = keys.iter().copied().collect();
            let set = Lines::filled::<OutOfMemory>(model.len() as u64, |filling| {
                thread::scope(|scope| {
                    for part in 0..3 {
                        let keys = &keys;
                        scope.spawn(move || filling.insert(&keys[keys.len() * part / 4..]));
                    }
                });
                Ok(())
            })
            .unwrap();
            assert_eq!(set.len(), model.len() as u64);
            assert!(set.iter().collect::<HashSet<u64>>() == model);
            let asked: Vec<u64> = keys.iter().copied().chain((len..3 * len + 50).map(kmer)).collect();
            let mut found = vec![false; asked.len()];
            set.contains_into(&asked, &mut found);
            assert!(asked.iter().zip(&found).all(|(kmer, &found)| found == model.contains(kmer)), "{len}");
            let mut plain = vec![true; asked.len()];
            set.contains_any(&asked, &mut plain);
            assert!(plain == found);
        }
    }
}

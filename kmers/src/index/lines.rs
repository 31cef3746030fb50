//! Exact set of k-mers that is filled as they arrive: one cache line per lookup.
//!
//! Warpset saves a [`StaticSet`](warpset_static::StaticSet), which takes less memory, but needs all keys, and twice
//! their memory, to be built. This set takes the keys of an index of Deacon while they are read, on all threads.
//!
//! ```text
//! line    8 words of 64 bits, 64 bytes
//! word    bits 0 to 61: a k-mer of at most 31 bases, all bits inverted, or 0: free
//!         bits 62, 63: two of the line's sixteen marks
//! ```
//!
//! The hash of a k-mer gives it a line and one of sixteen marks. If its line is full, the mark is set there, and the
//! k-mer goes to the next line, and so on. So a lookup ends at the first line without the mark of the k-mer.
//!
//! Lines are in the order of Deacon's hash table, and so of its files: by the lowest bits of `rapidhash` of a k-mer, as
//! many as the smallest table with a load of at most 7/8 has. So a file that is read in sequence fills lines in
//! sequence, and threads that read different parts of it fill different lines. A file in another order, such as one of
//! ours, fills lines at random.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use warpset_base::words::{AlignedWords, OutOfMemory};

use super::front::shared;
use warpset_base::processor::prefetch;

/// Words per line.
const LINE: usize = 8;
/// K-mers per line on average: a load of 7/8.
const PER_LINE: u64 = 7;
/// Bits per k-mer.
const KEY_BITS: u32 = 62;
/// Bits of a word that hold a k-mer, inverted. A free word has none of them set, as for a k-mer that is all G, which no
/// canonical k-mer is.
const KEY: u64 = (1 << KEY_BITS) - 1;
/// Fixed seed and first secret of `rapidhash`, as in Deacon 0.11 to 0.19.
const SEED: u64 = 0x4227_6556_7d8f_bfd6;
const SECRET: u64 = 0x2d35_8dcc_aa6c_78a5;
/// K-mers whose lines are prefetched before the first of them is read.
const BATCH: usize = 32;

/// Exact set of canonical k-mers of at most 31 bases.
pub(crate) struct Lines {
    words: AlignedWords<u64>,
    order: Order,
    len: u64,
}

/// Set while several threads fill it.
pub(crate) struct Filling<'a> {
    words: &'a [AtomicU64],
    order: Order,
    len: AtomicUsize,
}

/// Order of k-mers among the lines.
#[derive(Clone, Copy)]
struct Order {
    lines: u64,
    /// Bits of a hash that give the place of a k-mer in Deacon's table.
    bits: u32,
}

impl Order {
    /// Returns the order of the lines for `kmers` k-mers, in which Deacon's table of that size lists them.
    fn of(kmers: u64) -> Order {
        let places = (kmers.saturating_mul(8) / 7).max(1).checked_next_power_of_two().unwrap_or(1 << 63);
        Order { lines: kmers / PER_LINE + 1, bits: places.ilog2() }
    }

    /// Returns the line and the mark of a k-mer.
    #[inline(always)]
    fn place(self, kmer: u64) -> (usize, u32) {
        let product = u128::from(kmer ^ SEED) * u128::from(SECRET);
        let hash = (product as u64 ^ (product >> 64) as u64).rotate_right(self.bits);
        (((u128::from(hash) * u128::from(self.lines)) >> 64) as usize, hash as u32 % 16)
    }
}

/// Returns the word of a line, and the bit in it, of a mark.
#[inline(always)]
const fn bit_of(mark: u32) -> (usize, u64) {
    ((mark / 2) as usize, 1 << (KEY_BITS + mark % 2))
}

impl Lines {
    /// Creates a set for `most` k-mers, filled by `fill`.
    pub(crate) fn filled<E: From<OutOfMemory>>(
        most: u64,
        fill: impl FnOnce(&Filling<'_>) -> Result<(), E>,
    ) -> Result<Lines, E> {
        let order = Order::of(most);
        let mut words = AlignedWords::zeroed(order.lines.saturating_mul(LINE as u64))?.in_huge_pages();
        let filling = Filling { words: shared(words.as_mut_slice()), order, len: AtomicUsize::new(0) };
        fill(&filling)?;
        let len = filling.len.into_inner() as u64;
        Ok(Lines { words, order, len })
    }

    /// Returns the number of different k-mers.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        8 * self.words.as_slice().len() as u64
    }

    /// Iterates over all k-mers, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.as_slice().iter().map(|word| !word & KEY).filter(|&kmer| kmer != KEY)
    }

    /// Whether the set has each k-mer.
    pub(crate) fn contains_into(&self, kmers: &[u64], found: &mut [bool]) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("bmi2") {
                // SAFETY: the processor has these instructions, detected above.
                return unsafe { self.contains_with_avx512(kmers, found) };
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                // SAFETY: the processor has these instructions, detected above.
                return unsafe { self.contains_with_avx2(kmers, found) };
            }
        }
        self.contains_any(kmers, found);
    }

    /// Looks up k-mers, compiled for AVX-512F and BMI2.
    ///
    /// # Safety
    /// The processor has AVX-512F and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,bmi2")]
    unsafe fn contains_with_avx512(&self, kmers: &[u64], found: &mut [bool]) {
        self.contains_any(kmers, found);
    }

    /// Looks up k-mers, compiled for AVX2 and BMI2.
    ///
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
                *place_of = self.order.place(kmer);
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

    /// Whether a k-mer is in its line, or in a later one to which its mark leads.
    #[inline(always)]
    fn is_from(&self, mut line: usize, mark: u32, kmer: u64) -> bool {
        let (word, bit) = bit_of(mark);
        // The bound ends the search also for damaged marks, which no file can contain.
        for _ in 0..self.order.lines {
            let Some(words) = self.words.as_slice()[line * LINE..].first_chunk::<LINE>() else { return false };
            let mut equal = 0;
            for word in words {
                equal |= u32::from((word ^ !kmer) << 2 == 0);
            }
            if equal != 0 {
                return true;
            }
            if words[word] & bit == 0 {
                return false;
            }
            line = if line + 1 == self.order.lines as usize { 0 } else { line + 1 };
        }
        false
    }
}

impl Filling<'_> {
    /// Adds k-mers, at most as many in all as the set was made for; each is below 2^62 and not all ones.
    pub(crate) fn insert(&self, kmers: &[u64]) {
        let ask = |kmer: u64| prefetch(self.words, self.order.place(kmer).0 * LINE);
        kmers.iter().take(BATCH).for_each(|&kmer| ask(kmer));
        let mut new = 0;
        for (i, &kmer) in kmers.iter().enumerate() {
            if let Some(&ahead) = kmers.get(i + BATCH) {
                ask(ahead);
            }
            new += usize::from(self.insert_at(self.order.place(kmer), kmer));
        }
        self.len.fetch_add(new, Ordering::Relaxed);
    }

    /// Returns the number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.order.lines as usize
    }

    /// Returns the first line of a k-mer.
    pub(crate) fn line_of(&self, kmer: u64) -> usize {
        self.order.place(kmer).0
    }

    /// Adds the k-mers with lines in `own`, which no other thread uses meanwhile, and leaves the others in `kmers`.
    pub(crate) fn insert_own(&self, kmers: &mut Vec<u64>, own: Range<usize>) {
        let (mut new, mut left) = (0, 0);
        // Line of the k-mer before, and its number of used words.
        let (mut line, mut taken) = (usize::MAX, 0);
        for i in 0..kmers.len() {
            let kmer = kmers[i];
            let (here, mark) = self.order.place(kmer);
            if here != line {
                (line, taken) = (here, LINE);
                if own.contains(&here) {
                    let is_taken = |word: &AtomicU64| usize::from(word.load(Ordering::Relaxed) & KEY != 0);
                    taken = self.words[here * LINE..][..LINE].iter().map(is_taken).sum();
                }
            }
            if taken < LINE {
                let Some(words) = self.words[here * LINE..].first_chunk::<LINE>() else { break };
                let mut equal = 0;
                for word in words {
                    equal |= u32::from((word.load(Ordering::Relaxed) ^ !kmer) << 2 == 0);
                }
                if equal == 0 {
                    let word = &words[taken];
                    word.store(word.load(Ordering::Relaxed) | !kmer & KEY, Ordering::Relaxed);
                    (taken, new) = (taken + 1, new + 1);
                }
                continue;
            }
            match self.insert_beyond((here, mark), kmer, &own) {
                Some(is_new) => new += usize::from(is_new),
                None => {
                    kmers[left] = kmer;
                    left += 1;
                }
            }
        }
        kmers.truncate(left);
        self.len.fetch_add(new, Ordering::Relaxed);
    }

    /// Whether a k-mer is new, if its line may be full; `None` if its place is not in `own`.
    fn insert_beyond(&self, (mut line, mark): (usize, u32), kmer: u64, own: &Range<usize>) -> Option<bool> {
        let (word, bit) = bit_of(mark);
        while own.contains(&line) {
            let words = &self.words[line * LINE..][..LINE];
            for slot in words {
                let held = slot.load(Ordering::Relaxed);
                if held & KEY == 0 {
                    slot.store(held | !kmer & KEY, Ordering::Relaxed);
                    return Some(true);
                }
                if held & KEY == !kmer & KEY {
                    return Some(false);
                }
            }
            words[word].store(words[word].load(Ordering::Relaxed) | bit, Ordering::Relaxed);
            line += 1;
        }
        None
    }

    /// Whether the k-mer is new. Words of a line are taken in order and never freed, so that two threads with the same
    /// k-mer meet in one word.
    fn insert_at(&self, (mut line, mark): (usize, u32), kmer: u64) -> bool {
        let (word, bit) = bit_of(mark);
        for _ in 0..self.order.lines {
            let words = &self.words[line * LINE..][..LINE];
            for slot in words {
                let mut held = slot.load(Ordering::Relaxed);
                loop {
                    if held & KEY == !kmer & KEY {
                        return false;
                    }
                    if held & KEY != 0 {
                        break;
                    }
                    let with = held | !kmer & KEY;
                    match slot.compare_exchange_weak(held, with, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => return true,
                        Err(now) => held = now,
                    }
                }
            }
            words[word].fetch_or(bit, Ordering::Relaxed);
            line = if line + 1 == self.order.lines as usize { 0 } else { line + 1 };
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

    /// Checks sets of any size, also with many more keys than lines were made for, filled by several threads with the
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

    /// Fills the set in the order of lines, by threads with their own lines; one thread inserts the rest.
    #[test]
    fn lines_of_their_own() {
        for len in [1u64, 100, 100_000] {
            let mut keys: Vec<u64> = (0..len).map(kmer).collect();
            let order = Order::of(len);
            keys.sort_unstable_by_key(|&kmer| order.place(kmer).0);
            let set = Lines::filled::<OutOfMemory>(len, |filling| {
                let parts: Vec<&[u64]> = keys.chunks(1000).collect();
                let line = |part: usize| parts.get(part).map_or(order.lines as usize, |part| filling.line_of(part[0]));
                thread::scope(|scope| {
                    for (i, part) in parts.iter().enumerate() {
                        let own = if i == 0 { 0 } else { line(i) }..line(i + 1);
                        scope.spawn(move || {
                            let mut rest = part.to_vec();
                            filling.insert_own(&mut rest, own);
                            // K-mers with a line of another thread are left over; there are few.
                            assert!(rest.len() < 50);
                        });
                    }
                });
                parts.iter().for_each(|part| filling.insert(part));
                Ok(())
            })
            .unwrap();
            assert_eq!(set.len(), len);
            let mut found = vec![false; keys.len()];
            set.contains_into(&keys, &mut found);
            assert!(found.iter().all(|&found| found));
        }
    }

    /// Checks the order of lines with a file of Deacon.
    #[test]
    fn lines_are_in_the_order_of_deacons_files() {
        let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
        let file = std::fs::read(std::path::Path::new(&folder).join("tests/data/deacon/k31w15.idx")).unwrap();
        let kmers: Vec<u64> = file[11..].as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let order = Order::of(kmers.len() as u64);
        let lines: Vec<usize> = kmers.iter().map(|&kmer| order.place(kmer).0).collect();
        // A place of the table may lie in two lines; k-mers of one place are in the order of their values.
        assert!(lines.len() > 100 && lines.windows(2).all(|two| two[0] <= two[1] + 1), "{lines:?}");
        assert!(lines.windows(2).filter(|two| two[0] > two[1]).count() < lines.len() / 20, "{lines:?}");
    }
}

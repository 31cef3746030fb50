//! Insertion by several threads into one filter, through shared references.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Bloom;
use crate::Key;
use crate::layout::BATCH;
use crate::layout::engine::OneBlock;
use warpset_base::processor::prefetch;

/// Words of the largest block: 1024 bits.
const MOST_WORDS: usize = 32;

/// A filter that any number of threads insert into and ask at the same time, each through a shared reference: made by
/// [`Bloom::shared`], for as long as the filter is borrowed. The filter ends up with the same bytes as if one thread
/// had
/// inserted all keys.
///
/// The bits of a key are set word by word, each atomically. A lookup at the same time may see some of them; it says yes
/// once the insertion of a key has returned in this thread, or in one that has since synchronised with it, as by a
/// channel or `join`. Of equal keys that several threads insert at the same time, `test_and_insert` may call each new.
///
/// Atomic operations take longer than plain ones. If all keys are available at once,
/// [`insert_bulk`](crate::Insert::insert_bulk) of the filter itself is faster on any number of threads. M keys per
/// processor second into split-block filters of 0.13 and 21 MB (`u64`, two cores of a busy machine):
///
/// | | one thread | two threads, each |
/// | --- | --- | --- |
/// | `insert` | 53, 7 | 53, 7 |
/// | `insert_bulk` | 57, 16 | 53, 15 |
/// | [`Insert::insert_bulk`](crate::Insert::insert_bulk) | 200, 62 | 83, 94 |
///
/// ```
/// use warpset_bloom::SplitBlockBloom;
///
/// let mut filter = SplitBlockBloom::builder(1_000).build()?;
/// let shared = filter.shared();
/// std::thread::scope(|scope| {
///     for thread in 0..4u64 {
///         let shared = &shared;
///         scope.spawn(move || (0..250).for_each(|i| shared.insert(1000 * thread + i)));
///     }
/// });
/// assert!(filter.contains(3249u64) && !filter.contains("others"));
/// # Ok::<(), warpset_bloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SharedBloom<'a, L> {
    layout: L,
    words: &'a [AtomicU32],
}

impl<L: OneBlock> Bloom<L> {
    /// Returns the filter for several threads that insert at the same time.
    pub fn shared(&mut self) -> SharedBloom<'_, L> {
        let words = std::ptr::from_mut(self.words.as_mut_slice());
        // SAFETY: `AtomicU32` has the size and alignment of `u32`, and the mutable borrow, which lasts as long as the
        // result, keeps accesses that are not atomic out.
        let words = unsafe { &*(words as *const [AtomicU32]) };
        SharedBloom { layout: self.layout, words }
    }
}

impl<L: OneBlock> SharedBloom<'_, L> {
    /// Returns the parameters.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Inserts a key.
    #[inline]
    pub fn insert(&self, key: impl Key) {
        self.set(&self.layout.probe(&key));
    }

    /// Inserts the key; true if that changed a bit, hence if the key surely was not there.
    #[inline]
    pub fn test_and_insert(&self, key: impl Key) -> bool {
        self.set(&self.layout.probe(&key))
    }

    /// Inserts all keys on the calling thread; prefetches the cache lines of the next ones.
    pub fn insert_bulk<K: Key>(&self, keys: &[K]) {
        let mut probes = [L::Probe::default(); BATCH];
        for keys in keys.chunks(BATCH) {
            let probes = &mut probes[..keys.len()];
            self.layout.probe_batch(keys, probes);
            for probe in &*probes {
                prefetch(self.words, self.block(probe).0);
            }
            probes.iter().for_each(|probe| _ = self.set(probe));
        }
    }

    /// Whether the key may be in the filter.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        let probe = self.layout.probe(&key);
        let ((first, len), mut pattern) = (self.block(&probe), [0; MOST_WORDS]);
        self.layout.insert(&mut pattern[..len], self.layout.block_of(&probe), &probe);
        let words = &self.words[first..first + len];
        words.iter().zip(pattern).all(|(word, bits)| word.load(Ordering::Relaxed) & bits == bits)
    }

    /// Returns the start and the number of the words of the probe's block.
    #[inline]
    fn block(&self, probe: &L::Probe) -> (usize, usize) {
        let len = self.layout.words_per_block();
        (self.layout.block_of(probe) as usize * len, len)
    }

    /// Sets the bits of a probe; true if that changed one.
    #[inline]
    fn set(&self, probe: &L::Probe) -> bool {
        let ((first, len), mut pattern) = (self.block(probe), [0; MOST_WORDS]);
        self.layout.insert(&mut pattern[..len], self.layout.block_of(probe), probe);
        let mut changed = 0;
        for (word, bits) in self.words[first..first + len].iter().zip(pattern) {
            // A word that has its bits stays with the other threads' caches.
            if word.load(Ordering::Relaxed) & bits != bits {
                changed |= bits & !word.fetch_or(bits, Ordering::Relaxed);
            }
        }
        changed != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockedBloom, BlockedLayout, SplitBlockBloom, SplitBlockLayout};
    use warpset_core::bloom::blocked::BlockShape;

    fn gives_the_same_bytes<L: OneBlock>(layout: L) {
        let n = if cfg!(miri) { 200 } else { 20_000 };
        let keys: Vec<u64> = (0..n).collect();
        let mut one = Bloom::with_layout(layout).unwrap();
        keys.iter().for_each(|&key| one.insert(key));
        let mut all = Bloom::with_layout(layout).unwrap();
        let shared = all.shared();
        std::thread::scope(|scope| {
            for (i, keys) in keys.chunks(keys.len() / 4).enumerate() {
                scope.spawn(move || match i % 2 {
                    0 => shared.insert_bulk(keys),
                    _ => keys.iter().for_each(|&key| {
                        shared.insert(key);
                        assert!(shared.contains(key) && !shared.test_and_insert(key));
                    }),
                });
            }
        });
        assert!(one == all);
        // One thread answers as the filter itself.
        let shared = all.shared();
        for key in n..2 * n {
            assert_eq!(shared.contains(key), one.contains(key));
            assert_eq!(shared.test_and_insert(key), one.test_and_insert(key));
        }
        assert!(one == all);
    }

    #[test]
    fn threads_together_give_the_bytes_of_one() {
        for blocks in [1, 7, 2000] {
            gives_the_same_bytes(SplitBlockLayout::new(blocks).unwrap());
            for (block_bits, word_bits, hashes) in [(64, 32, 3), (64, 64, 5), (512, 64, 11), (1024, 32, 32)] {
                let shape = BlockShape::new(block_bits, word_bits, hashes).unwrap();
                gives_the_same_bytes(BlockedLayout::new(blocks, shape, 3).unwrap());
            }
        }
        let (mut split, mut blocked) =
            (SplitBlockBloom::builder(9).build().unwrap(), BlockedBloom::builder(9).build().unwrap());
        split.shared().insert("a");
        blocked.shared().insert("a");
        assert!(split.contains("a") && blocked.contains("a"));
    }
}

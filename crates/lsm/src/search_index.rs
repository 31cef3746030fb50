//! Search data of a level, derived from its keys: a search tree and a filter. They are built once enough lookups have
//! searched the level, and never saved.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use warpset_base::parallel;
use warpset_base::words::advise_huge_pages;
use warpset_core::lsm::{filter_mask, filter_word, filter_words};

use crate::OrderedKey;
use crate::element::filter_hash;
use crate::search_tree::SearchTree;

/// Fewest elements of a level with a filter; smaller levels fit in the caches.
const LEAST_FILTERED: usize = 1 << 10;
/// Fewest words of a filter that all threads build.
const FEW_WORDS: usize = 1 << 14;
/// Keys per task.
const PART: usize = 1 << 16;

/// Search index of one level.
pub struct SearchIndex<K> {
    tree: OnceLock<SearchTree<K>>,
    filter: OnceLock<Filter>,
    /// Keys that lookups in batches have searched in the level so far.
    asked: AtomicU64,
    /// Whether no two elements have the same key.
    distinct: OnceLock<bool>,
}

impl<K> Default for SearchIndex<K> {
    fn default() -> Self {
        SearchIndex {
            tree: OnceLock::new(),
            filter: OnceLock::new(),
            asked: AtomicU64::new(0),
            distinct: OnceLock::new(),
        }
    }
}

impl<K: OrderedKey> SearchIndex<K> {
    /// Returns the search tree, if it has been built.
    pub(crate) fn tree(&self) -> Option<&SearchTree<K>> {
        self.tree.get()
    }

    /// Returns the filter, if it has been built.
    pub(crate) fn filter(&self) -> Option<&Filter> {
        self.filter.get()
    }

    /// Returns the search tree for a search for one key among `keys`. Until it is built, each such search counts as one
    /// searched key; afterwards searching threads only read.
    #[inline]
    pub(crate) fn tree_for_one(&self, keys: &[K]) -> Option<&SearchTree<K>> {
        self.tree.get().or_else(|| self.prepare(keys, 1, false).0)
    }

    /// Returns search tree and filter for a lookup of one key among `keys`, as [`SearchIndex::tree_for_one`] does.
    #[inline]
    pub(crate) fn both_for_one(&self, keys: &[K]) -> (Option<&SearchTree<K>>, Option<&Filter>) {
        match (self.tree.get(), self.filter.get()) {
            (Some(tree), filter) if filter.is_some() || keys.len() < LEAST_FILTERED => (Some(tree), filter),
            _ => self.prepare(keys, 1, true),
        }
    }

    /// Notes that a batch of `asked` keys will be looked up among `keys`, and builds whatever now pays off: the search
    /// tree after lookups of a sixty-fourth of the number of keys, the filter after a quarter.
    pub(crate) fn prepare(
        &self,
        keys: &[K],
        asked: usize,
        with_filter: bool,
    ) -> (Option<&SearchTree<K>>, Option<&Filter>) {
        let asked = self.asked.fetch_add(asked as u64, Ordering::Relaxed) + asked as u64;
        let len = keys.len() as u64;
        if asked >= len / 64 {
            self.tree.get_or_init(|| SearchTree::new(keys));
        }
        if with_filter && asked >= len / 4 && keys.len() >= LEAST_FILTERED {
            self.filter.get_or_init(|| Filter::new(keys));
        }
        (self.tree.get(), if with_filter { self.filter.get() } else { None })
    }

    /// Whether no two of `keys`, which are the level's, are equal.
    pub(crate) fn is_distinct(&self, keys: &[K]) -> bool {
        *self.distinct.get_or_init(|| {
            let parts = parallel::map((0..keys.len()).step_by(PART), |begin| {
                let part = &keys[begin..keys.len().min(begin + PART + 1)];
                part.windows(2).all(|two| two[0] != two[1])
            });
            parts.into_iter().all(|distinct| distinct)
        })
    }

    /// Marks the keys as distinct without checking.
    pub(crate) fn assume_distinct(self) -> Self {
        SearchIndex { distinct: OnceLock::from(true), ..self }
    }

    /// Returns the bytes of everything built so far.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let tree = self.tree.get().map_or(0, SearchTree::memory_bytes);
        tree + self.filter.get().map_or(0, |filter| 8 * filter.words.len() as u64)
    }
}

/// Blocked Bloom filter of a level's keys: all bits of a key are in one word of 64 bits.
pub(crate) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    fn new<K: OrderedKey>(keys: &[K]) -> Filter {
        let mut words = vec![0; filter_words(keys.len() as u64) as usize];
        advise_huge_pages(&mut words);
        let len = words.len() as u64;
        if words.len() < FEW_WORDS || rayon::current_num_threads() == 1 {
            for &key in keys {
                let hash = filter_hash(key);
                words[filter_word(hash, len) as usize] |= filter_mask(hash);
            }
        } else {
            // SAFETY: `AtomicU64` has the size of `u64` and, on this target, its alignment; the mutable borrow excludes
            // other accesses.
            let words = unsafe { &*(std::ptr::from_mut(&mut words[..]) as *const [AtomicU64]) };
            parallel::for_each(keys.chunks(PART), |keys| {
                for &key in keys {
                    let hash = filter_hash(key);
                    words[filter_word(hash, len) as usize].fetch_or(filter_mask(hash), Ordering::Relaxed);
                }
            });
        }
        Filter { words }
    }

    /// Returns the place of a key's word.
    #[inline]
    pub(crate) fn place(&self, hash: u64) -> usize {
        filter_word(hash, self.words.len() as u64) as usize
    }

    /// Returns the words.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Whether a key with this hash may be in the level.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let mask = filter_mask(hash);
        self.words[self.place(hash)] & mask == mask
    }
}

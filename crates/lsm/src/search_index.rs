//! Search data of a level: a search tree and a filter of its keys, and the gains of its elements. They are built once
//! enough queries have searched the level, and never saved.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use warpset_base::parallel;
use warpset_base::words::advise_huge_pages;
use warpset_core::lsm::{filter_mask, filter_word, filter_words};

use crate::element::filter_hash;
use crate::gains::Gains;
use crate::level::Sorted;
use crate::run::Run;
use crate::search_tree::SearchTree;
use crate::{OrderedKey, Value};

/// Fewest elements of a level with a filter; smaller levels fit in the caches.
const LEAST_FILTERED: usize = 1 << 10;
/// Fewest searches that pay for a search tree, however short the level: single updates replace the shortest levels.
const FEWEST_ASKED: u64 = 8;
/// Fewest words of a filter that all threads build.
const FEW_WORDS: usize = 1 << 14;
/// Keys per task.
const PART: usize = 1 << 16;

/// Part of an index, built by the first thread that asks for it.
///
/// No thread waits for another one. A builder that uses the pool may run a query of its caller's task meanwhile, on the
/// same thread, so a lock would never be released.
struct Lazy<T> {
    built: OnceLock<T>,
    is_claimed: AtomicBool,
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Lazy { built: OnceLock::new(), is_claimed: AtomicBool::new(false) }
    }
}

impl<T> Lazy<T> {
    #[inline]
    fn get(&self) -> Option<&T> {
        self.built.get()
    }

    /// Returns the part, or `None` while another thread builds it.
    fn get_or_build(&self, build: impl FnOnce() -> T) -> Option<&T> {
        if self.get().is_none() && !self.is_claimed.swap(true, Ordering::Relaxed) {
            let _ = self.built.set(build());
        }
        self.get()
    }
}

/// Search index of one level.
pub struct SearchIndex<K> {
    tree: Lazy<SearchTree<K>>,
    filter: Lazy<Filter>,
    gains: Lazy<Gains>,
    /// Keys that have been searched in the level so far.
    asked: AtomicU64,
    /// Elements of the level in counted ranges so far.
    counted: AtomicU64,
    /// Whether no two elements have the same key.
    distinct: OnceLock<bool>,
}

impl<K> Default for SearchIndex<K> {
    fn default() -> Self {
        SearchIndex {
            tree: Lazy::default(),
            filter: Lazy::default(),
            gains: Lazy::default(),
            asked: AtomicU64::new(0),
            counted: AtomicU64::new(0),
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

    /// Returns the search tree for a lookup of one key among `keys` that no filter excludes, as
    /// [`SearchIndex::tree_for_one`] does; counts until the filter is built, too.
    #[inline]
    pub(crate) fn tree_for_get(&self, keys: &[K]) -> Option<&SearchTree<K>> {
        match self.tree.get() {
            Some(tree) if self.filter.get().is_some() || keys.len() < LEAST_FILTERED => Some(tree),
            _ => self.prepare(keys, 1, true).0,
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
        if asked >= (len / 64).max(FEWEST_ASKED) {
            self.tree.get_or_build(|| SearchTree::new(keys));
        }
        if with_filter && asked >= len / 4 && keys.len() >= LEAST_FILTERED {
            self.filter.get_or_build(|| Filter::new(keys));
        }
        (self.tree.get(), if with_filter { self.filter.get() } else { None })
    }

    /// Returns the gains, if they have been built.
    pub(crate) fn gains(&self) -> Option<&Gains> {
        self.gains.get()
    }

    /// Returns the gains of the elements, which are `run`, for a count of `counted` of them, if they have been built.
    /// Builds them after counts of as many elements as the level has: finding the gains of those took as long.
    #[inline]
    pub(crate) fn gains_for<V: Value, S: Sorted<K, V>>(
        &self,
        run: Run<'_, K, V>,
        older: &[S],
        counted: usize,
    ) -> Option<&Gains> {
        self.gains.get().or_else(|| {
            let counted = self.counted.fetch_add(counted as u64, Ordering::Relaxed) + counted as u64;
            if counted < run.len() as u64 { None } else { self.gains.get_or_build(|| Gains::of(run, older)) }
        })
    }

    /// Whether no two of `keys`, which are the level's, are equal.
    pub(crate) fn is_distinct(&self, keys: &[K]) -> bool {
        let check = || {
            let parts = parallel::map((0..keys.len()).step_by(PART), |begin| {
                let part = &keys[begin..keys.len().min(begin + PART + 1)];
                part.windows(2).all(|two| two[0] != two[1])
            });
            parts.into_iter().all(|distinct| distinct)
        };
        // Two threads may both check, as none waits for another one: see `Lazy`.
        self.distinct.get().copied().unwrap_or_else(|| {
            let distinct = check();
            *self.distinct.get_or_init(|| distinct)
        })
    }

    /// Returns the index of an only level in which all elements live.
    pub(crate) fn of_live() -> Self {
        let gains = Lazy { built: OnceLock::from(Gains::Ones), is_claimed: AtomicBool::new(true) };
        SearchIndex { distinct: OnceLock::from(true), gains, ..SearchIndex::default() }
    }

    /// Returns the bytes of everything built so far.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let tree = self.tree.get().map_or(0, SearchTree::memory_bytes);
        let filter = self.filter.get().map_or(0, |filter| 8 * filter.words.len() as u64);
        tree + filter + self.gains.get().map_or(0, Gains::memory_bytes)
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

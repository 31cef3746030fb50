//! Searches in sorted keys by *nodes*: eight neighbouring keys that are read together and compared with the search key
//! at once. A node is a sector of 32 bytes of `u32` keys, 64 bytes of `u64` keys, or a line of `u128` keys.
//!
//! The [index](warpset_core::lsm::index) bounds the place of a key, and interpolation between the bounds gives the
//! first node to read. It is right most of the time. Otherwise the neighbouring node follows, and then the rest is
//! halved, so unevenly distributed keys cost no more nodes than halving takes steps. K-ary search in arrays: Schlegel,
//! Gemulla, Lehner, "k-Ary Search on Modern Processors", DaMoN 2009; on GPUs: "Bigger Is Not Better", arXiv 2506.01576,
//! which reorders the keys. Departures: keys are not reordered, and the index replaces the upper tiers of the tree by
//! one read.

use warpset_core::lsm::Number;
use warpset_core::lsm::index::Buckets;
use warpset_simt::{Global, GlobalMut};

use crate::lsm::levels::{LevelKey, Span, number};
#[cfg(feature = "bodies")]
use crate::lsm::levels::{lower_bound, upper_bound};
use crate::primitives::merge_path::MergeKey;

/// Words of 64 bits at the start of an index: least key, greatest key, shift, multiplier, a flag for equal keys, an
/// unused word, and the upper halves of the least and the greatest key.
pub const INDEX_HEAD: usize = 8;
/// Place of these halves.
const UPPER_HALVES: usize = 6;
/// Place of the word that is not 0 if there are equal keys.
pub const EQUAL_KEYS: usize = 4;

/// Keys per node.
pub const NODE: usize = 8;

/// Keys that are read by nodes.
pub trait NodeKey: MergeKey {
    /// Reads the keys of the node that begins at element `i`, a multiple of [`NODE`].
    ///
    /// # Safety
    /// The keys are valid for reads, not written while the kernel runs, and the keys begin at a multiple of 16 bytes.
    unsafe fn read_node(keys: Global<Self>, i: usize) -> [Self; NODE];

    /// Returns the bucket of a key between the least and the greatest, and its position within the bucket's interval,
    /// in units of 2^-32.
    fn locate(self, buckets: Buckets<Self::Number>) -> (usize, u32)
    where
        Self: LevelKey;
}

impl NodeKey for u32 {
    #[inline(always)]
    #[track_caller]
    unsafe fn read_node(keys: Global<u32>, i: usize) -> [u32; NODE] {
        // SAFETY: the contract of this function.
        let ([a, b, c, d], [e, f, g, h]) = unsafe { (keys.read4_nc(i), keys.read4_nc(i + 4)) };
        [a, b, c, d, e, f, g, h]
    }

    /// Computes with half of the bits, which suffices because the shift is at least 32.
    #[inline(always)]
    fn locate(self, buckets: Buckets<u64>) -> (usize, u32) {
        let shifted = self.wrapping_sub(buckets.least as u32) << (buckets.shift & 31);
        // There are fewer than 2^32 buckets.
        let product = (shifted as u64).wrapping_mul(buckets.multiplier);
        ((product >> 32) as usize, product as u32)
    }
}

impl NodeKey for u64 {
    #[inline(always)]
    #[track_caller]
    unsafe fn read_node(keys: Global<u64>, i: usize) -> [u64; NODE] {
        // SAFETY: the contract of this function.
        let ([a, b], [c, d], [e, f], [g, h]) =
            unsafe { (keys.read2_nc(i), keys.read2_nc(i + 2), keys.read2_nc(i + 4), keys.read2_nc(i + 6)) };
        [a, b, c, d, e, f, g, h]
    }

    #[inline(always)]
    fn locate(self, buckets: Buckets<u64>) -> (usize, u32) {
        let (bucket, fraction) = buckets.locate(self);
        (bucket as usize, fraction)
    }
}

impl NodeKey for u128 {
    #[inline(always)]
    #[track_caller]
    unsafe fn read_node(keys: Global<u128>, i: usize) -> [u128; NODE] {
        let mut node = [0; NODE];
        for u in 0..NODE {
            // SAFETY: the contract of this function.
            node[u] = unsafe { keys.read_nc(i + u) };
        }
        node
    }

    #[inline(always)]
    fn locate(self, buckets: Buckets<u128>) -> (usize, u32) {
        let (bucket, fraction) = buckets.locate(self);
        (bucket as usize, fraction)
    }
}

/// Returns the buckets in the head of an index.
///
/// # Safety
/// `index` starts with the output of [`write_head`] for keys of this type, at a multiple of 16 bytes, and none of these
/// words is written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn read_head<K: LevelKey>(index: Global<u64>) -> Buckets<K::Number> {
    // SAFETY: the contract of this function.
    unsafe {
        let ([least, greatest], [shift, multiplier]) = (index.read2_nc(0), index.read2_nc(2));
        let mut upper = [0; 2];
        if size_of::<K>() > size_of::<u64>() {
            upper = index.read2_nc(UPPER_HALVES);
        }
        Buckets {
            least: Number::from_halves([least, upper[0]]),
            greatest: Number::from_halves([greatest, upper[1]]),
            shift: shift as u32,
            multiplier,
        }
    }
}

/// Writes the head of the index of these buckets, without the flag for equal keys.
///
/// # Safety
/// `index` is valid for [`INDEX_HEAD`] words, which this thread alone accesses.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn write_head<N: Number>(index: GlobalMut<u64>, buckets: Buckets<N>) {
    let (least, greatest) = (buckets.least.halves(), buckets.greatest.halves());
    let words = [least[0], greatest[0], buckets.shift as u64, buckets.multiplier, 0, 0, least[1], greatest[1]];
    for word in 0..INDEX_HEAD {
        // SAFETY: the contract of this function.
        unsafe { index.write(word, words[word]) };
    }
}

/// Sorted keys with their index, if they have one.
#[derive(Clone, Copy)]
pub struct Index<K: LevelKey> {
    keys: Global<K>,
    len: usize,
    address: u64,
    buckets: Buckets<K::Number>,
}

/// State of a search by the index: elements before `low` precede the key, those from `high` on do not.
#[derive(Clone, Copy)]
struct Search {
    low: u32,
    high: u32,
    /// Element of the node that is read next.
    at: u32,
    /// Whether element `high` is known to have the key.
    is_equal: bool,
}

#[cfg(feature = "bodies")]
impl<K: LevelKey> Index<K> {
    /// Returns keys with the index at `address`, which is 0 if there is none.
    ///
    /// # Safety
    /// While it is used: the `len` keys ascend, begin at a multiple of 16 bytes, and no thread writes them; the index
    /// is the output of `lsm_derive` for them.
    #[inline(always)]
    pub unsafe fn new(keys: Global<K>, len: usize, address: u64) -> Self {
        let none = number(K::default());
        let mut buckets = Buckets { least: none, greatest: none, shift: 0, multiplier: 0 };
        if address != 0 {
            // SAFETY: an index begins with its head, at a multiple of 16 bytes.
            buckets = unsafe { read_head::<K>(Global::at_address(address, INDEX_HEAD)) };
        }
        Self { keys, len, address, buckets }
    }

    /// Returns the keys.
    #[inline(always)]
    pub fn keys(self) -> Global<K> {
        self.keys
    }

    /// Starts the search for a key by the index. There are fewer than 2^32 keys.
    #[inline(always)]
    fn start(self, key: K) -> Search {
        if number(key) < self.buckets.least {
            return Search { low: 0, high: 0, at: 0, is_equal: false };
        }
        if number(key) > self.buckets.greatest {
            return Search { low: self.len as u32, high: self.len as u32, at: 0, is_equal: false };
        }
        let (bucket, fraction) = key.locate(self.buckets);
        let entries: Global<u32> = Global::at_address(self.address, 2 * INDEX_HEAD + bucket + 2).at(2 * INDEX_HEAD);
        // SAFETY: the key is among those of the buckets, so its bucket has an entry, and so has the next one.
        let (low, high) = unsafe { (entries.read_nc(bucket), entries.read_nc(bucket + 1)) };
        let guess = low + ((fraction as u64 * (high - low) as u64) >> 32) as u32;
        Search { low, high, at: guess, is_equal: false }
    }

    /// Whether no two keys are known to be equal.
    #[inline(always)]
    fn is_distinct(self) -> bool {
        // SAFETY: the index begins with its head.
        unsafe { Global::<u64>::at_address(self.address, INDEX_HEAD).read_nc(EQUAL_KEYS) == 0 }
    }

    /// Finishes a search for the first element that does not precede `key`; with `OR_EQUAL`, equal ones precede it.
    #[inline(always)]
    fn finish<const OR_EQUAL: bool>(self, mut search: Search, key: K) -> Search {
        let mut has_begun = false;
        while search.low < search.high {
            let first = search.at & !(NODE as u32 - 1);
            let is_whole = first as usize + NODE <= self.len;
            // Elements after the last whole node are read one by one.
            let (first, width) = if is_whole { (first, NODE as u32) } else { (search.at, 1) };
            // SAFETY: an open search is at an element, and a whole node ends inside the keys.
            let node = unsafe {
                if is_whole {
                    K::read_node(self.keys, first as usize)
                } else {
                    [self.keys.read_nc(first as usize); NODE]
                }
            };
            let (mut below, mut has_key) = (0, false);
            for i in 0..NODE {
                below += ((node[i] < key) | (OR_EQUAL & (node[i] == key))) as u32;
                has_key |= node[i] == key;
            }
            let mut neighbour = first + width;
            if below == NODE as u32 {
                search.low = neighbour;
            } else {
                search.high = first + below;
                search.low = if below == 0 { search.low } else { search.high };
                search.is_equal = has_key;
                neighbour = search.high.wrapping_sub(1);
                // The first of equal keys may be in the previous node.
                if !OR_EQUAL && has_key && search.low < search.high && self.is_distinct() {
                    search.low = search.high;
                }
            }
            // The neighbour first; then halves.
            search.at = if has_begun { search.low + (search.high - search.low) / 2 } else { neighbour };
            has_begun = true;
        }
        search
    }

    /// Returns the number of elements with smaller keys, and whether the next one has the key.
    #[inline(always)]
    pub fn find(self, key: K) -> (usize, bool) {
        if self.address == 0 {
            // SAFETY: the keys are valid by the contract of `new`.
            let place = unsafe { lower_bound(self.keys, 0, self.len, key) };
            // SAFETY: the place is below their number where it is read.
            return (place, place < self.len && unsafe { self.keys.read_nc(place) } == key);
        }
        let found = self.finish::<false>(self.start(key), key);
        (found.low as usize, found.is_equal)
    }

    /// Returns the number of elements with smaller keys.
    #[inline(always)]
    pub fn lower_bound(self, key: K) -> usize {
        self.find(key).0
    }

    /// Returns the elements with keys from `first` to `last`, at least `first`.
    #[inline(always)]
    pub fn between(self, first: K, last: K) -> Span {
        if self.address == 0 {
            // SAFETY: the keys are valid by the contract of `new`.
            unsafe {
                let low = lower_bound(self.keys, 0, self.len, first);
                return Span { low, high: upper_bound(self.keys, low, self.len, last) };
            }
        }
        // Both index entries are read before a node, so that the reads overlap.
        let (a, b) = (self.start(first), self.start(last));
        let low = self.finish::<false>(a, first).low as usize;
        Span { low, high: self.finish::<true>(b, last).low as usize }
    }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_bits_give_the_same_place() {
        for (least, greatest) in
            [(0, 0), (5, 6), (0, u32::MAX as u64), (9, 1 << 31), (7, 1 << 20), (1 << 31, u32::MAX as u64)]
        {
            for len in [1, 9, 1000, 1 << 20, 1 << 27, (1 << 32) - 2] {
                let buckets = Buckets::new(least, greatest, len);
                for step in 0..=1000 {
                    let key = least + (greatest - least) * step / 1000;
                    assert_eq!((key as u32).locate(buckets), key.locate(buckets), "{least}..={greatest} {len} {key}");
                }
            }
        }
    }
}

//! Nodes to solve, as lists of items, and what a kernel needs to know of a node.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section
//! 5.10. Departure: the thesis launches a kernel for each node of the higher levels and for each lower level of a
//! bucket. Here the nodes of all buckets stand in lists, one for each level and way of searching, and one launch solves
//! a whole list.

use warpset_core::recsplit::{Node, Remix, hash};
use warpset_simt::{Global, GlobalMut, atomic, multiply_high};

/// Words of an item: where its keys begin, how many there are, where its number stands, and one that is not used.
pub const ITEM_WORDS: usize = 4;
/// The list of nodes that are nothing to solve.
pub const NO_LIST: u32 = u32::MAX;
/// The list of nodes of the higher levels, as the table of lists names it: each depth has its own.
pub const HIGHER: u32 = u32::MAX - 1;
/// What the word of failures holds as long as there is none.
pub const NO_FAILURE: u32 = u32::MAX;

/// A node to solve; one without keys where a node above it has no solution, so that its children are not known.
#[derive(Clone, Copy, Default)]
pub struct Item {
    /// Its first key, within the keys of all buckets.
    pub first: u32,
    /// Number of its keys.
    pub keys: u32,
    /// Where its number stands, within the numbers of all buckets.
    pub place: u32,
}

#[cfg(feature = "bodies")]
impl Item {
    /// Reads item `i`.
    ///
    /// # Safety
    /// `items` is valid for reading item `i`, which nothing writes meanwhile.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read(items: Global<u32>, i: usize) -> Self {
        // SAFETY: the caller's promise; an item begins at a multiple of 16 bytes.
        let [first, keys, place, _] = unsafe { items.read4_nc(i * ITEM_WORDS) };
        Self { first, keys, place }
    }

    /// Writes item `i`.
    ///
    /// # Safety
    /// `items` is valid for writing item `i`, which no other thread accesses meanwhile.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write(self, items: GlobalMut<u32>, i: usize) {
        // SAFETY: the caller's promise; an item begins at a multiple of 16 bytes.
        unsafe { items.write4(i * ITEM_WORDS, [self.first, self.keys, self.place, 0]) }
    }
}

/// The row of nodes of `keys` keys.
///
/// # Safety
/// `nodes` is valid for reading the rows up to that one, which nothing writes meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn node(nodes: Global<u32>, keys: u32) -> Node {
    let at = keys as usize * Node::WORDS;
    // SAFETY: this function's contract.
    let word = |i| unsafe { nodes.read_nc(at + i) };
    Node::from_words([word(0), word(1), word(2), word(3), word(4)])
}

/// Keeps the least of the items that have no solution.
///
/// # Safety
/// `failure` is one word, accessed by atomics alone while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn fail(failure: GlobalMut<u32>, item: Item) {
    // SAFETY: this function's contract.
    unsafe { atomic::reduce_min(failure, item.first) }
}

/// Writes the number of a node; `u64::MAX` stands for a node without a solution, which is a failure.
///
/// # Safety
/// `numbers` is valid for writing at the item's place, which no other thread accesses; `failure` as for [`fail`].
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn put_number(numbers: GlobalMut<u64>, failure: GlobalMut<u32>, item: Item, number: u64) {
    // SAFETY: this function's contract.
    unsafe {
        numbers.write(item.place as usize, number);
        if number == u64::MAX {
            fail(failure, item);
        }
    }
}

/// The position that a trial hash picks among those of a leaf, at most 32, as a bit.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn position_bit(hash: u32, positions: u32) -> u32 {
    // The upper 16 bits times `positions`, from the upper half of a product: one instruction less than with two shifts.
    let position = multiply_high(hash & 0xffff_0000, positions);
    debug_assert_eq!(position, hash::leaf_position(hash, positions));
    // SAFETY: positions are below their number. So the amount of the shift is not masked, which would be another
    // instruction.
    unsafe { core::hint::assert_unchecked(position < 32) };
    1 << position
}

/// A start seed, as a word of the finaliser's width, so that each finaliser has kernels of its own.
pub trait Mix: Copy + 'static {
    /// The finaliser.
    const REMIX: Remix;

    /// The start seed.
    fn seed(self) -> u32;
}

impl Mix for u32 {
    const REMIX: Remix = Remix::Bits32;

    #[inline(always)]
    fn seed(self) -> u32 {
        self
    }
}

impl Mix for u64 {
    const REMIX: Remix = Remix::Bits64;

    #[inline(always)]
    fn seed(self) -> u32 {
        self as u32
    }
}

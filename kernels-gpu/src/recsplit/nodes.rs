//! Nodes to solve, as lists of items, and the properties of a node.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section
//! 5.10. Departure: the thesis launches a kernel for each node of the higher levels and for each lower level of a
//! bucket. Here the nodes of all buckets are in lists, one per level and search method, and one launch solves a whole
//! list.

use warpset_core::recsplit::{Node, Remix, hash};
use warpset_simt::{Global, GlobalMut, atomic, multiply_high};

/// Words of an item: position of its keys, number of its keys, position of its number, and an unused one.
pub const ITEM_WORDS: usize = 4;
/// List of nodes without a search.
pub const NO_LIST: u32 = u32::MAX;
/// List of nodes of the higher levels in the table of lists: each depth has its own.
pub const HIGHER: u32 = u32::MAX - 1;
/// Word of failures while there is none.
pub const NO_FAILURE: u32 = u32::MAX;

/// A node to solve; without keys if a node above it has no solution, so that its children are not known.
#[derive(Clone, Copy, Default)]
pub struct Item {
    /// Its first key, within the keys of all buckets.
    pub first: u32,
    /// Number of its keys.
    pub keys: u32,
    /// Position of its number, within the numbers of all buckets.
    pub place: u32,
}

#[cfg(feature = "bodies")]
impl Item {
    /// Reads item `i`.
    ///
    /// # Safety
    /// `items` is valid for reading item `i`, and nothing writes it meanwhile.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read(items: Global<u32>, i: usize) -> Self {
        // SAFETY: this function's contract; an item begins at a multiple of 16 bytes.
        let [first, keys, place, _] = unsafe { items.read4_nc(i * ITEM_WORDS) };
        Self { first, keys, place }
    }

    /// Writes item `i`.
    ///
    /// # Safety
    /// `items` is valid for writing item `i`, and no other thread accesses it meanwhile.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write(self, items: GlobalMut<u32>, i: usize) {
        // SAFETY: this function's contract; an item begins at a multiple of 16 bytes.
        unsafe { items.write4(i * ITEM_WORDS, [self.first, self.keys, self.place, 0]) }
    }
}

/// Returns the row of nodes of `keys` keys.
///
/// # Safety
/// `nodes` is valid for reading the rows up to that one, and nothing writes them meanwhile.
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

/// Writes the number of a node; `u64::MAX` means a node without a solution, a failure.
///
/// # Safety
/// `numbers` is valid for writing at the item's place, and no other thread accesses it; `failure` as for [`fail`].
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

/// Returns the position that a trial hash picks among those of a leaf, at most 32, as a bit.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn position_bit(hash: u32, positions: u32) -> u32 {
    // The upper 16 bits times `positions`, from the upper half of a product: one instruction less than with two shifts.
    let position = multiply_high(hash & 0xffff_0000, positions);
    debug_assert_eq!(position, hash::leaf_position(hash, positions));
    // SAFETY: positions are below their number, at most 32. With this the compiler does not mask the amount of the
    // shift, which takes another instruction.
    unsafe { core::hint::assert_unchecked(position < 32) };
    1 << position
}

/// A start seed, as a word of the finaliser's width, so that each finaliser has kernels of its own.
pub trait Mix: Copy + 'static {
    /// The finaliser.
    const REMIX: Remix;

    /// Returns the start seed.
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

//! Items of a selection, and the decision which of them are kept.

use warpset_simt::{Global, warp};

use super::Item;
use crate::primitives::predicate::Predicate;

/// Source of the items.
pub(super) trait Input<T>: Copy {
    /// Reads item `i`.
    ///
    /// # Safety
    /// `i` is below the number of items.
    unsafe fn item(self, i: usize) -> T;
    /// Reads items `i` to `i + 3`.
    ///
    /// # Safety
    /// - They are below the number of items.
    /// - If they are in memory, the address of the first is a multiple of 16.
    unsafe fn four(self, i: usize) -> [T; 4];
}

impl<T: Item> Input<T> for Global<T> {
    #[inline(always)]
    #[track_caller]
    unsafe fn item(self, i: usize) -> T {
        // SAFETY: the contract of this function.
        unsafe { self.read_nc(i) }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn four(self, i: usize) -> [T; 4] {
        // SAFETY: the contract of this function.
        unsafe { T::read_four(self, i) }
    }
}

/// Places of items, in place of items.
#[derive(Clone, Copy)]
pub(super) struct Places;

impl Input<u64> for Places {
    #[inline(always)]
    unsafe fn item(self, i: usize) -> u64 {
        i as u64
    }
    #[inline(always)]
    unsafe fn four(self, i: usize) -> [u64; 4] {
        let i = i as u64;
        [i, i + 1, i + 2, i + 3]
    }
}

/// Decision which items are kept.
pub(super) trait Source<T: Item>: Copy {
    /// Whether item `i` is kept.
    ///
    /// # Safety
    /// `i` is below the number of items.
    unsafe fn keeps<I: Input<T>>(self, items: I, i: usize, item: T) -> bool;

    /// Tests items `i` to `i + 3`, where `i` is a multiple of 4: the four lowest bits are set for kept ones.
    ///
    /// # Safety
    /// They are below the number of items, and all lanes of the warp call this together, with consecutive groups.
    #[inline(always)]
    #[track_caller]
    unsafe fn keeps_four<I: Input<T>>(self, items: I, i: usize, four: [T; 4]) -> u32 {
        // SAFETY: the contract of this function.
        unsafe { one_by_one(self, items, i, four) }
    }
}

/// Tests items `i` to `i + 3` one by one: the four lowest bits are set for kept ones.
///
/// # Safety
/// They are below the number of items.
#[inline(always)]
#[track_caller]
unsafe fn one_by_one<T: Item, S: Source<T>, I: Input<T>>(source: S, items: I, i: usize, four: [T; 4]) -> u32 {
    let mut bits = 0;
    for j in 0..4 {
        // SAFETY: the contract of this function.
        bits |= u32::from(unsafe { source.keeps(items, i + j, four[j]) }) << j;
    }
    bits
}

/// Items with a set bit: bit `i % 32` of word `i / 32`.
#[derive(Clone, Copy)]
pub(super) struct Bitmap(pub(super) Global<u32>);

impl<T: Item> Source<T> for Bitmap {
    #[inline(always)]
    #[track_caller]
    unsafe fn keeps<I: Input<T>>(self, _items: I, i: usize, _item: T) -> bool {
        // SAFETY: there is a bit for each item.
        unsafe { self.0.read_nc(i / 32) >> (i % 32) & 1 != 0 }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn keeps_four<I: Input<T>>(self, _items: I, i: usize, _four: [T; 4]) -> u32 {
        // SAFETY: there is a bit for each item, and four bits from a multiple of 4 on are in one word.
        unsafe { self.0.read_nc(i / 32) >> (i % 32) & 15 }
    }
}

/// Items with a flag that is not zero.
#[derive(Clone, Copy)]
pub(super) struct Flags {
    pub(super) flags: Global<u8>,
    pub(super) aligned: bool,
}

impl<T: Item> Source<T> for Flags {
    #[inline(always)]
    #[track_caller]
    unsafe fn keeps<I: Input<T>>(self, _items: I, i: usize, _item: T) -> bool {
        // SAFETY: there is a flag for each item.
        unsafe { self.flags.read_nc(i) != 0 }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn keeps_four<I: Input<T>>(self, items: I, i: usize, four: [T; 4]) -> u32 {
        if self.aligned {
            // SAFETY: there is a flag for each item.
            let bytes = unsafe { self.flags.cast::<u32>().read_nc(i / 4) };
            // The top bit of each byte tells whether one of its bits is set; the product collects the four.
            let set = ((((bytes & 0x7f7f_7f7f) + 0x7f7f_7f7f) | bytes) >> 7) & 0x0101_0101;
            set.wrapping_mul(1 << 24 | 1 << 17 | 1 << 10 | 1 << 3) >> 24 & 15
        } else {
            // SAFETY: the contract of this function.
            unsafe { one_by_one(self, items, i, four) }
        }
    }
}

/// Items that satisfy a predicate.
#[derive(Clone, Copy)]
pub(super) struct If<P>(pub(super) P);

impl<T: Item, P: Predicate<T>> Source<T> for If<P> {
    #[inline(always)]
    unsafe fn keeps<I: Input<T>>(self, _items: I, _i: usize, item: T) -> bool {
        self.0.keep(item)
    }
}

/// First of each group of equal neighbours.
#[derive(Clone, Copy)]
pub(super) struct Unique;

impl<T: Item + warpset_simt::ShuffleWord> Source<T> for Unique {
    #[inline(always)]
    #[track_caller]
    unsafe fn keeps<I: Input<T>>(self, items: I, i: usize, item: T) -> bool {
        // SAFETY: `i > 0`, so the previous item exists.
        i == 0 || unsafe { items.item(i - 1) } != item
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn keeps_four<I: Input<T>>(self, items: I, i: usize, four: [T; 4]) -> u32 {
        // SAFETY: the whole warp calls this; the previous lane has the four previous items, except for lane 0.
        let before = unsafe { warp::shuffle_up(warp::FULL_MASK, four[3], 1) };
        // SAFETY: the contract of this function.
        let differs = if warp::lane_id() == 0 { unsafe { self.keeps(items, i, four[0]) } } else { before != four[0] };
        let mut bits = u32::from(differs);
        for j in 1..4 {
            bits |= u32::from(four[j] != four[j - 1]) << j;
        }
        bits
    }
}

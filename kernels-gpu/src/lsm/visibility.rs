//! Visibility of the elements of a tree. An element is *visible* if it is live and no newer element has its key. The
//! elements that a count adds up and a range lists are the visible ones between two places of each level.
//!
//! One word of 64 bits describes 32 elements of a level: a bit for each, and above them the number of visible elements
//! before these. So one word tells whether an element is visible, and the number of visible elements before it. The
//! words of all levels are consecutive, the newest level first, with counts that continue from level to level; one more
//! word ends them.
//!
//! ```text
//!   63                           32 31                            0
//!  +-------------------------------+-------------------------------+
//!  | visible elements before       | bit i: element i is visible   |
//!  +-------------------------------+-------------------------------+
//! ```
//!
//! If every element is visible, there are no words.

use warpset_simt::Global;

use crate::lsm::levels::Levels;

/// Elements per word.
pub const PER_WORD: usize = 32;

/// Visibility is unknown.
pub const UNKNOWN: u32 = 0;
/// All elements are visible.
pub const ALL: u32 = 1;
/// Visibility is given by words.
pub const WORDS: u32 = 2;

/// Words of visibility of all levels of a tree.
#[derive(Clone, Copy)]
pub struct Visibility {
    words: Global<u64>,
    all: bool,
}

#[cfg(feature = "bodies")]
impl Visibility {
    /// Reads visibility from `words`; with `all`, every element is visible and nothing is read.
    ///
    /// # Safety
    /// Unless `all`, while it is used: `words` are the output of `lsm_visible_words` for the levels that are passed,
    /// and nothing writes them. The levels have fewer than 2^32 elements.
    #[inline(always)]
    pub unsafe fn new(words: Global<u64>, all: bool) -> Self {
        Self { words, all }
    }

    /// Returns [`new`](Self::new) by `known`, or `None` if visibility is unknown.
    ///
    /// # Safety
    /// The contract of [`new`](Self::new), unless `known` is [`UNKNOWN`].
    #[inline(always)]
    pub unsafe fn when_known(words: Global<u64>, known: u32) -> Option<Self> {
        if known == UNKNOWN { None } else { Some(Self { words, all: known == ALL }) }
    }

    /// Whether all elements are visible.
    #[inline(always)]
    pub fn is_all(self) -> bool {
        self.all
    }

    /// Whether an element is visible.
    ///
    /// # Safety
    /// `i` is below the level's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn is_visible(self, levels: Levels, level: u32, i: usize) -> bool {
        // SAFETY: the level has a word for each of its elements.
        self.all || unsafe { self.words.read_nc(levels.first_visible(level) + i / PER_WORD) } >> (i % PER_WORD) & 1 != 0
    }

    /// Returns the number of visible elements before element `i` of the level whose words begin at `first`, relative to
    /// an origin that is the same for the whole level, modulo 2^32: only differences are meaningful.
    ///
    /// # Safety
    /// `i` is at most the level's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn rank(self, first: usize, i: usize) -> u32 {
        if self.all {
            return i as u32;
        }
        // SAFETY: a word follows the last one of the level.
        unsafe { self.rank_and_bit(first, i).0 }
    }

    /// Returns the [`rank`](Self::rank), and whether the element is visible. Must not be called if all are.
    ///
    /// # Safety
    /// The contract of [`rank`](Self::rank).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn rank_and_bit(self, first: usize, i: usize) -> (u32, bool) {
        // SAFETY: a word follows the last one of the level.
        let word = unsafe { self.words.read_nc(first + i / PER_WORD) };
        let (before, bits) = ((word >> 32) as u32, word as u32);
        let bit = 1u32 << (i % PER_WORD);
        (before.wrapping_add((bits & (bit - 1)).count_ones()), bits & bit != 0)
    }
}

//! Which elements of a tree are *visible*: live, and not hidden by a newer element of their key. What a count adds up
//! and a range lists are the visible elements between two places of each level.
//!
//! One word of 64 bits stands for 32 elements of a level: a bit for each, and above them how many elements before these
//! are visible. So one word tells whether an element is visible and how many are before it. The words of all levels lie
//! side by side, the newest level first, and count through; one word more ends them.
//!
//! ```text
//!   63                           32 31                            0
//!  +-------------------------------+-------------------------------+
//!  | visible elements before       | bit i: element i is visible   |
//!  +-------------------------------+-------------------------------+
//! ```
//!
//! Where every element is visible there are no words.

use warpset_simt::Global;

use crate::lsm::levels::Levels;

/// Elements that a word stands for.
pub const PER_WORD: usize = 32;

/// What is known of the visible elements: nothing.
pub const UNKNOWN: u32 = 0;
/// All elements are visible.
pub const ALL: u32 = 1;
/// There are words.
pub const WORDS: u32 = 2;

/// The words of visibility of all levels of a tree.
#[derive(Clone, Copy)]
pub struct Visibility {
    words: Global<u64>,
    all: bool,
}

#[cfg(feature = "bodies")]
impl Visibility {
    /// Reads visibility from `words`; with `all`, every element counts as visible and nothing is read.
    ///
    /// # Safety
    /// While it is used, `words` are as `lsm_visible_words` left them for the levels that are asked about, and nothing
    /// writes them, unless all elements are visible. The levels have fewer than 2^32 elements.
    #[inline(always)]
    pub unsafe fn new(words: Global<u64>, all: bool) -> Self {
        Self { words, all }
    }

    /// [`new`](Self::new) by what is `known`, if anything is.
    ///
    /// # Safety
    /// As [`new`](Self::new), unless `known` is [`UNKNOWN`].
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

    /// The number of visible elements before element `i` of the level whose words begin at `first`, counted from a
    /// place that is the same for the whole level, and modulo 2^32: differences matter.
    ///
    /// # Safety
    /// `i` is at most the level's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn rank(self, first: usize, i: usize) -> u32 {
        if self.all {
            return i as u32;
        }
        // SAFETY: a word comes after the last one of the level.
        unsafe { self.rank_and_bit(first, i).0 }
    }

    /// [`rank`](Self::rank), and whether the element is visible; not where all are.
    ///
    /// # Safety
    /// As [`rank`](Self::rank).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn rank_and_bit(self, first: usize, i: usize) -> (u32, bool) {
        // SAFETY: a word comes after the last one of the level.
        let word = unsafe { self.words.read_nc(first + i / PER_WORD) };
        let (before, bits) = ((word >> 32) as u32, word as u32);
        let bit = 1u32 << (i % PER_WORD);
        (before.wrapping_add((bits & (bit - 1)).count_ones()), bits & bit != 0)
    }
}

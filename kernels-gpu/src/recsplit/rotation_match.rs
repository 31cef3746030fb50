//! Rotation of groups on a device: which rotations of a leaf's groups cover every position? Each lane has a rotation.
//!
//! Two groups are the bijection rotation of D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit",
//! master's thesis, KIT 2022, section 5.5. More groups meet in the middle, as on the CPU (`rotation_match` of
//! `warpset-mphf`, with a drawing): all disjoint unions of the first half of the groups, and of the second half. A pair
//! matches if one's complement is a rotation of the other; a signature that is invariant under rotation finds the
//! pairs.

use warpset_core::recsplit::hash::rotate;
use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK, lane_id, lane_mask_lt};

/// Masks of a leaf's groups.
pub type Masks = [u32; 6];

/// Unions of three groups that wait until they fill a warp.
const WAITING: u32 = 64;
/// The most unions of the three groups of the other half.
const OTHERS: u32 = 24 * 24;

/// Returns the words of shared memory of [`of_warp`], for a warp.
pub const fn rotation_words(groups: u32) -> u32 {
    if groups < 5 { 0 } else { 2 * WAITING + if groups == 6 { 3 * OTHERS } else { 0 } }
}

/// Lanes that match a leaf together: a warp, or half of it.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Lanes<const LANES: u32> {
    /// First of them.
    first: u32,
    /// Rotation of the lane.
    by: u32,
    /// Keys of the leaf.
    keys: u32,
    /// All positions.
    full: u32,
}

#[cfg(feature = "bodies")]
impl<const LANES: u32> Lanes<LANES> {
    #[inline(always)]
    fn new(keys: u32) -> Self {
        let lane = lane_id();
        Self { first: lane / LANES * LANES, by: lane % LANES, keys, full: u32::MAX >> (32 - keys) }
    }

    /// Whether the lane has a rotation.
    #[inline(always)]
    fn has(&self) -> bool {
        self.by < self.keys
    }

    /// Returns `word` rotated by the lane's rotation.
    #[inline(always)]
    fn turn(&self, word: u32) -> u32 {
        // Lanes without a rotation get any word.
        let right = self.keys.wrapping_sub(self.by) % 32;
        (word << self.by | word >> right) & self.full
    }

    /// Returns the lanes, from the first one on, with a true `predicate`.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    unsafe fn ballot(&self, predicate: bool) -> u32 {
        // SAFETY: this function's contract.
        let votes = unsafe { warp::ballot(FULL_MASK, predicate) };
        if LANES == 32 { votes } else { votes >> self.first & ((1 << LANES) - 1) }
    }

    /// Returns the value of the `i`th lane.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    unsafe fn of(&self, value: u32, i: u32) -> u32 {
        // SAFETY: this function's contract.
        unsafe { warp::shuffle_idx(FULL_MASK, value, self.first + i) }
    }

    /// Returns the least value.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    unsafe fn min(&self, mut value: u32) -> u32 {
        // SAFETY: this function's contract.
        unsafe {
            if LANES == 32 {
                return warp::reduce_min(FULL_MASK, value);
            }
            let mut distance = LANES / 2;
            while distance > 0 {
                value = value.min(warp::shuffle_xor(FULL_MASK, value, distance));
                distance /= 2;
            }
        }
        value
    }

    /// Returns the pairs of ones of `word` at distances 1 to 4, which rotations preserve.
    #[inline(always)]
    fn signature(&self, word: u32) -> u32 {
        let mut signature = 0;
        warpset_simt::unroll!(4, i, {
            let distance = i as u32 + 1;
            // Leaves of less than five keys have no groups.
            let turned = word << distance | word >> (self.keys - distance);
            signature = signature << 5 | (word & turned).count_ones();
        });
        signature
    }

    /// Returns the first match of two groups.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    unsafe fn two(&self, masks: &Masks) -> u32 {
        // SAFETY: this function's contract.
        let fits = unsafe { self.ballot(self.has() && self.turn(masks[1]) == self.full ^ masks[0]) };
        if fits == 0 { u32::MAX } else { fits.trailing_zeros() }
    }

    /// Returns the first match of three groups.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    unsafe fn three(&self, masks: &Masks) -> u32 {
        let second = self.turn(masks[1]);
        let third = self.turn(masks[2]);
        let rest = self.full ^ (masks[0] | second);
        let mut best = u32::MAX;
        // SAFETY: this function's contract; the loop ends for the whole warp at once.
        unsafe {
            let mut unions = self.ballot(self.has() && masks[0] & second == 0);
            while warp::any(FULL_MASK, unions != 0) {
                let i = unions.trailing_zeros() % LANES;
                let wanted = self.of(rest, i);
                if unions != 0 && self.has() && third == wanted {
                    best = best.min(i + self.by * self.keys);
                }
                unions &= unions.wrapping_sub(1);
            }
            self.min(best)
        }
    }

    /// Returns the first match of four groups.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    unsafe fn four(&self, masks: &Masks) -> u32 {
        let (second, fourth) = (self.turn(masks[1]), self.turn(masks[3]));
        let is_union = self.has() && masks[0] & second == 0;
        let rest = self.full ^ (masks[0] | second);
        let other = masks[2] | fourth;
        let (of_rest, of_other) = (self.signature(rest), self.signature(other));
        let mut best = u32::MAX;
        // SAFETY: this function's contract; the loops end for the whole warp at once.
        unsafe {
            let mut others = self.ballot(self.has() && masks[2] & fourth == 0);
            if self.ballot(is_union) == 0 {
                others = 0;
            }
            while warp::any(FULL_MASK, others != 0) {
                let j = others.trailing_zeros() % LANES;
                let wanted = self.of(of_other, j);
                let mut alike = self.ballot(others != 0 && is_union && of_rest == wanted);
                if warp::any(FULL_MASK, alike != 0) {
                    let turned = self.turn(self.of(other, j));
                    while warp::any(FULL_MASK, alike != 0) {
                        let i = alike.trailing_zeros() % LANES;
                        let rest = self.of(rest, i);
                        if alike != 0 && self.has() && turned == rest {
                            let digit = (j + self.by) % self.keys;
                            best = best.min(i + (self.by + digit * self.keys) * self.keys);
                        }
                        alike &= alike.wrapping_sub(1);
                    }
                }
                others &= others.wrapping_sub(1);
            }
            self.min(best)
        }
    }
}

/// Returns the first match of a leaf of up to 16 keys in 2 to 4 groups, by half a warp: an index with the rotations as
/// digits; `u32::MAX` if there is none. Each half has a leaf of its own.
///
/// # Safety
/// All lanes of the warp come here together, with the same `groups` and `keys`; those of a half with the same masks.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn of_half(masks: &Masks, groups: u32, keys: u32) -> u32 {
    let lanes = Lanes::<16>::new(keys);
    // SAFETY: this function's contract.
    unsafe {
        match groups {
            2 => lanes.two(masks),
            3 => lanes.three(masks),
            _ => lanes.four(masks),
        }
    }
}

/// Returns the first rotations that make a bijection, for any leaf, by a warp; `u32::MAX` if there are none.
///
/// # Safety
/// All lanes of the warp come here together, with the same arguments; `space` is [`rotation_words`] words of shared
/// memory, and nothing else uses them meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn of_warp(masks: &Masks, groups: u32, keys: u32, space: Shared<u32>) -> u32 {
    let lanes = Lanes::<32>::new(keys);
    // SAFETY: this function's contract.
    unsafe {
        match groups {
            2 => lanes.two(masks),
            3 => lanes.three(masks),
            4 => lanes.four(masks),
            _ => lanes.many(masks, groups, space),
        }
    }
}

/// Unions of the three groups of a half, in shared memory.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Unions {
    masks: Shared<u32>,
    codes: Shared<u32>,
}

#[cfg(feature = "bodies")]
impl Lanes<32> {
    /// Appends the unions of `mask` with the rotations of `turned` that are disjoint from it, one per lane, to the
    /// `len` unions of `unions`; returns their new number.
    ///
    /// # Safety
    /// All lanes of the warp come here together, with the same `mask`, `code` and `len`; there is a place for one union
    /// per rotation.
    #[inline(always)]
    #[track_caller]
    unsafe fn extend(&self, unions: Unions, len: u32, mask: u32, code: u32, turned: u32) -> u32 {
        let fits = self.has() && turned & mask == 0;
        // SAFETY: this function's contract.
        unsafe {
            let all = self.ballot(fits);
            if fits {
                let at = len + (all & lane_mask_lt()).count_ones();
                unions.masks.set(at, mask | turned);
                unions.codes.set(at, code + self.by * self.keys);
            }
            len + all.count_ones()
        }
    }

    /// Returns the first match of five or six groups.
    ///
    /// # Safety
    /// The contract of [`of_warp`].
    #[inline(always)]
    #[track_caller]
    unsafe fn many(&self, masks: &Masks, groups: u32, space: Shared<u32>) -> u32 {
        let keys = self.keys;
        let waiting = Unions { masks: space, codes: space.at(WAITING) };
        let listed = Unions { masks: space.at(2 * WAITING), codes: space.at(2 * WAITING + OTHERS) };
        let signatures = space.at(2 * WAITING + 2 * OTHERS);
        // The other half: of two groups in the lanes, of three in shared memory.
        let second = self.turn(masks[4]);
        let pair = masks[3] | second;
        let of_pair = self.signature(pair);
        let mut best = u32::MAX;
        // SAFETY: this function's contract; all lanes have the same lists and the same numbers of unions, of at most 24
        // rotations each; the warp synchronises between writes and reads of others.
        unsafe {
            let pairs = self.ballot(self.has() && masks[3] & second == 0);
            let mut others = pairs.count_ones();
            if groups == 6 {
                others = 0;
                let third = self.turn(masks[5]);
                let mut left = pairs;
                while left != 0 {
                    let j = left.trailing_zeros();
                    left &= left - 1;
                    others = self.extend(listed, others, self.of(pair, j), j, third);
                }
                warp::sync_warp(FULL_MASK);
                let mut i = lane_id();
                while i < others {
                    signatures.set(i, self.signature(listed.masks.get(i)));
                    i += 32;
                }
                warp::sync_warp(FULL_MASK);
            }
            if others == 0 {
                return u32::MAX;
            }
            let (second, third) = (self.turn(masks[1]), self.turn(masks[2]));
            let union = masks[0] | second;
            let mut left = self.ballot(self.has() && masks[0] & second == 0);
            let mut len = 0;
            loop {
                // Until a warp is full of unions, or all are listed.
                while left != 0 && len < 32 {
                    let i = left.trailing_zeros();
                    left &= left - 1;
                    len = self.extend(waiting, len, self.of(union, i), i, third);
                }
                if len == 0 {
                    break;
                }
                warp::sync_warp(FULL_MASK);
                let own = lane_id();
                let is_union = own < len;
                let mask = if is_union { waiting.masks.get(own) } else { 0 };
                let code = if is_union { waiting.codes.get(own) } else { 0 };
                let (later_mask, later_code) =
                    if own + 32 < len { (waiting.masks.get(own + 32), waiting.codes.get(own + 32)) } else { (0, 0) };
                warp::sync_warp(FULL_MASK);
                if own + 32 < len {
                    waiting.masks.set(own, later_mask);
                    waiting.codes.set(own, later_code);
                }
                len -= len.min(32);
                let rest = self.full ^ mask;
                let of_rest = self.signature(rest);
                let mut lefts = pairs;
                let mut j = 0;
                while j < others {
                    let (other, of_other, digits) = if groups == 6 {
                        (listed.masks.get(j), signatures.get(j), listed.codes.get(j))
                    } else {
                        let lane = lefts.trailing_zeros();
                        lefts &= lefts - 1;
                        (self.of(pair, lane), self.of(of_pair, lane), lane)
                    };
                    if is_union && of_rest == of_other {
                        let mut by = 0;
                        while by < keys {
                            if rotate(other, by, keys) == rest {
                                let one = (digits % keys + by) % keys;
                                let two = if groups == 6 { (digits / keys + by) % keys } else { 0 };
                                let index = code + keys * keys * (by + keys * (one + keys * two));
                                best = best.min(index);
                            }
                            by += 1;
                        }
                    }
                    j += 1;
                }
                warp::sync_warp(FULL_MASK);
            }
            self.min(best)
        }
    }
}

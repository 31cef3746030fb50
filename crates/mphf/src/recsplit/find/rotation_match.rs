//! Rotation of groups: which rotations of a leaf's groups cover every position?
//!
//! **Problem.** A trial hash sends the `M` keys of a leaf to positions. It is a bijection with probability `M! / M^M`,
//! 1 in 18,600 for 12 keys. Each candidate is expensive: all keys are hashed again.
//!
//! **Idea.** Bits of the keys divide them into `g` groups. Each group except the first may be rotated by any amount, so
//! one evaluation of the hash function gives `M^(g-1)` candidates. The positions of a group are a mask of `M` bits, and
//! a solution is a choice of rotations under which the masks partition all positions:
//!
//! ```text
//! group 0   1 . . 1 . . . .            1 . . 1 . . . .
//! group 1   . 1 1 . . . . .   rotate   . . . . . 1 1 .    by 4
//! group 2   1 1 . 1 . . 1 .   rotate   . 1 1 . 1 . . 1    by 1
//! ```
//!
//! **Two groups** are the bijection rotation of section 5.5, with all rotations of the second group in the lanes of a
//! vector. **More groups** meet in the middle: this file lists all disjoint unions of the first half of the groups and
//! of the second half. A pair fits if one's complement is a rotation of the other. A signature that is invariant under
//! rotation (numbers of pairs of ones at small distances) finds the pairs.
//!
//! **Bound.** A half has at most `M^2` unions for up to three groups. A few comparisons of vectors replace `M^(g-1)`
//! tests, so the cost per candidate shrinks as groups are added. `TreeShape::node` chooses `g` such that
//! several trials are still expected: with fewer, one trial would succeed several times, which costs space.

use crate::u32_vector::{U32Vector, lanes_below};
use std::mem::MaybeUninit;
use warpset_core::recsplit::hash::rotate;
use warpset_core::recsplit::shape::MAX_GROUPS;

/// A half has up to three groups, and two of them are rotated: at most 24² unions, and space for one vector after the
/// last.
const CAPACITY: usize = 24 * 24 + 16;

/// Unions of groups, with their rotations as the digits of a number.
struct Unions {
    masks: [MaybeUninit<u32>; CAPACITY],
    codes: [MaybeUninit<u32>; CAPACITY],
    len: usize,
}

impl Unions {
    #[inline(always)]
    fn of(mask: u32) -> Self {
        let mut unions = Self::empty();
        unions.masks[0].write(mask);
        unions.codes[0].write(0);
        unions.len = 1;
        unions
    }

    #[inline(always)]
    fn empty() -> Self {
        Self {
            masks: [const { MaybeUninit::uninit() }; CAPACITY],
            codes: [const { MaybeUninit::uninit() }; CAPACITY],
            len: 0,
        }
    }

    #[inline(always)]
    fn masks(&self) -> &[u32] {
        // SAFETY: the first `len` masks are written, by `of` and by `extend`.
        unsafe { std::slice::from_raw_parts(self.masks.as_ptr().cast(), self.len) }
    }

    #[inline(always)]
    fn codes(&self) -> &[u32] {
        // SAFETY: the first `len` codes are written, by `of` and by `extend`.
        unsafe { std::slice::from_raw_parts(self.codes.as_ptr().cast(), self.len) }
    }

    /// Makes this every union of `from` with every rotation of `group` that is disjoint from it; the rotation is a
    /// digit of weight `weight` in the code.
    ///
    /// # Safety
    /// - The conditions of [`U32Vector`].
    #[inline(always)]
    unsafe fn extend<V: U32Vector, const M: usize>(&mut self, from: &Self, group: u32, weight: u32) {
        self.len = 0;
        // SAFETY: the processor has the instructions, by this function's contract. A union of k groups arises at most
        // M^(k-1) times, k is at most 3 and M at most 24, so `len` stays at most 576, and 16 more words follow.
        unsafe {
            let turned = Rotations::<V>::of::<M>(group);
            for (&mask, &code) in from.masks().iter().zip(from.codes()) {
                let (mask, code) = (V::splat(mask), V::splat(code));
                let mut by = 0;
                for &rotation in turned.vectors(M) {
                    let fits = rotation.and(mask).eq(V::splat(0)) & lanes_below(M - by);
                    rotation.or(mask).compress(fits, self.masks.as_mut_ptr().cast::<u32>().add(self.len));
                    let codes = V::iota().add(V::splat(by as u32)).mul(V::splat(weight)).add(code);
                    codes.compress(fits, self.codes.as_mut_ptr().cast::<u32>().add(self.len));
                    self.len += fits.count_ones() as usize;
                    by += V::N;
                }
            }
            // Zeros for the lanes that a vector at the end of the list loads beyond it.
            V::splat(0).store(self.masks.as_mut_ptr().cast::<u32>().add(self.len));
        }
    }
}

/// All rotations of a group, one per lane.
struct Rotations<V>([V; 3]);

impl<V: U32Vector> Rotations<V> {
    /// Computes the rotations of a group.
    ///
    /// # Safety
    /// - The conditions of [`U32Vector`].
    #[inline(always)]
    unsafe fn of<const M: usize>(group: u32) -> Self {
        // SAFETY: the processor has the instructions, by this function's contract.
        unsafe {
            let word = V::splat(group);
            let mask = V::splat(u32::MAX >> (32 - M));
            let mut vectors = [V::splat(0); 3];
            let mut by = 0;
            for vector in vectors.iter_mut().take(M.div_ceil(V::N)) {
                let left = V::iota().add(V::splat(by));
                // Beyond M the count wraps around and gives zero, in unused lanes.
                let right = V::splat(M as u32).sub(left);
                *vector = word.shlv(left).or(word.shrv(right)).and(mask);
                by += V::N as u32;
            }
            Self(vectors)
        }
    }

    #[inline(always)]
    fn vectors(&self, keys: usize) -> &[V] {
        &self.0[..keys.div_ceil(V::N)]
    }

    /// Finds the smallest rotation that equals `word`.
    ///
    /// # Safety
    /// - The conditions of [`U32Vector`].
    #[inline(always)]
    unsafe fn find<const M: usize>(&self, word: u32) -> Option<u32> {
        let mut by = 0;
        for vector in self.vectors(M) {
            // SAFETY: the processor has the instructions, by this function's contract.
            let equal = unsafe { vector.eq(V::splat(word)) } & lanes_below(M - by);
            if equal != 0 {
                return Some(by as u32 + equal.trailing_zeros());
            }
            by += V::N;
        }
        None
    }
}

/// Counts pairs of ones at distances 1 to 4: equal for all rotations of a word.
///
/// # Safety
/// - The conditions of [`U32Vector`].
#[inline(always)]
unsafe fn signature<V: U32Vector, const M: usize>(word: V) -> V {
    // SAFETY: the processor has the instructions, by this function's contract.
    unsafe {
        let mut signature = V::splat(0);
        for distance in 1..=4 {
            let turned = word.shlv(V::splat(distance)).or(word.shrv(V::splat(M as u32 - distance)));
            signature = signature.shlv(V::splat(5)).add(turned.and(word).count_ones());
        }
        signature
    }
}

/// Finds the smallest index of rotations with which `groups` cover all `M` positions. A group's mask has a one per key,
/// and all masks together have `M` ones.
///
/// # Safety
/// - The conditions of [`U32Vector`].
/// - `groups` has 2 to [`MAX_GROUPS`] entries; with more than two, `M` is more than 4.
#[inline(always)]
pub(super) unsafe fn matching_rotations<V: U32Vector, const M: usize>(groups: &[u32]) -> Option<u32> {
    let full = u32::MAX >> (32 - M);
    debug_assert!(groups.len() as u32 <= MAX_GROUPS && M <= 24);
    // SAFETY: the processor has the instructions, by this function's contract; at most three groups per half keep
    // `extended` within its capacity; loads of signatures stay within arrays that are a vector longer than the unions.
    unsafe {
        if groups.len() == 2 {
            return Rotations::<V>::of::<M>(groups[1]).find::<M>(full ^ groups[0]);
        }
        let keys = M as u32;
        let (left, right) = groups.split_at(groups.len().div_ceil(2));
        // Unions of two groups, and of three if there are three; likewise for the other half below.
        let (one, mut two, mut three) = (Unions::of(left[0]), Unions::empty(), Unions::empty());
        two.extend::<V, M>(&one, left[1], 1);
        let mut weight = keys;
        if left.len() == 3 {
            three.extend::<V, M>(&two, left[2], keys);
            weight *= keys;
        }
        let unions = if left.len() == 3 { &three } else { &two };
        if unions.len == 0 {
            return None;
        }
        if right.len() == 1 {
            let turned = Rotations::<V>::of::<M>(right[0]);
            let mut best = None;
            for (&mask, &code) in unions.masks().iter().zip(unions.codes()) {
                if let Some(by) = turned.find::<M>(full ^ mask) {
                    let index = code + by * weight;
                    best = Some(best.map_or(index, |best: u32| best.min(index)));
                }
            }
            return best;
        }
        // The other half, rotated relative to its own first group.
        let (other_one, mut other_two, mut other_three) = (Unions::of(right[0]), Unions::empty(), Unions::empty());
        other_two.extend::<V, M>(&other_one, right[1], 1);
        if right.len() == 3 {
            other_three.extend::<V, M>(&other_two, right[2], keys);
        }
        let others = if right.len() == 3 { &other_three } else { &other_two };
        if others.len == 0 {
            return None;
        }
        let mut signatures = [const { MaybeUninit::<u32>::uninit() }; CAPACITY];
        let signatures = signatures.as_mut_ptr().cast::<u32>();
        let mut at = 0;
        while at < unions.len {
            let masks = V::load(unions.masks.as_ptr().cast::<u32>().add(at));
            signature::<V, M>(masks.xor(V::splat(full))).store(signatures.add(at));
            at += V::N;
        }
        let mut best: Option<u32> = None;
        let mut other_signatures = [0_u32; 16];
        for (other, (&mask, &code)) in others.masks().iter().zip(others.codes()).enumerate() {
            if other % V::N == 0 {
                let masks = V::load(others.masks.as_ptr().cast::<u32>().add(other));
                signature::<V, M>(masks).store(other_signatures.as_mut_ptr());
            }
            let wanted = V::splat(other_signatures[other % V::N]);
            let mut at = 0;
            while at < unions.len {
                let mut equal = V::load(signatures.add(at)).eq(wanted) & lanes_below(unions.len - at);
                while equal != 0 {
                    let union = at + equal.trailing_zeros() as usize;
                    equal &= equal - 1;
                    let complement = full ^ unions.masks()[union];
                    for by in 0..keys {
                        if rotate(mask, by, keys) == complement {
                            // The first of the right groups rotates by `by`, the others by `by` more than their digit.
                            let mut index = unions.codes()[union] + by * weight;
                            let (mut digits, mut scale) = (code, weight * keys);
                            for _ in 1..right.len() {
                                index += (digits % keys + by) % keys * scale;
                                digits /= keys;
                                scale *= keys;
                            }
                            best = Some(best.map_or(index, |best| best.min(index)));
                        }
                    }
                }
                at += V::N;
            }
        }
        best
    }
}

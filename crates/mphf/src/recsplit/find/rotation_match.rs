//! Fitting rotations: the positions of a leaf's groups are known, each group may be turned on its own; which rotations
//! make all groups together cover every position?
//!
//! Two groups are the bijection rotation of section 5.5, with all rotations of the second group in the lanes of a
//! vector. More groups meet in the middle: all disjoint unions of the first half of the groups, all of the second half,
//! and a pair fits if one's complement is a rotation of the other. Pairs are found by a signature that does not change
//! under rotation, so that a few comparisons of vectors replace `keys^(groups-1)` tests.

use crate::u32_vector::{U32Vector, lanes_below};
use std::mem::MaybeUninit;
use warpset_core::recsplit::hash::rotate;
use warpset_core::recsplit::shape::MAX_GROUPS;

/// A half has up to three groups, two of which are turned: at most 24² unions, and room for one vector after the last.
const CAPACITY: usize = 24 * 24 + 16;

/// Unions of groups, with the rotations that made them as the digits of a number.
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

    /// Makes this every union of `from` with every rotation of `group` that is disjoint from it; the rotation counts
    /// `weight` in the code.
    ///
    /// # Safety
    /// - The conditions of [`U32Vector`].
    #[inline(always)]
    unsafe fn extend<V: U32Vector, const M: usize>(&mut self, from: &Self, group: u32, weight: u32) {
        self.len = 0;
        // SAFETY: the processor has the instructions, by this function's contract. A union of k groups arises at most M^(k-1) times, k is at
        // most 3 and M at most 24, so `len` stays at most 576, and there is room for the 16 words after them.
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
            // What a vector at the end of the list loads beyond it.
            V::splat(0).store(self.masks.as_mut_ptr().cast::<u32>().add(self.len));
        }
    }
}

/// All rotations of a group, one in each lane.
struct Rotations<V>([V; 3]);

impl<V: U32Vector> Rotations<V> {
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
                // Beyond M the count wraps around and gives zero, in lanes that are not used.
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

    /// The smallest rotation that equals `word`.
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

/// Numbers of pairs of ones at distances 1 to 4: equal for all rotations of a word.
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

/// The smallest index of rotations with which `groups` cover all `M` positions. Each group's number of ones is its
/// number of keys, and all together have `M`.
///
/// # Safety
/// - The conditions of [`U32Vector`].
/// - `groups` has 2 to [`MAX_GROUPS`] entries; with more than two, `M` is more than 4.
#[inline(always)]
pub(super) unsafe fn matching_rotations<V: U32Vector, const M: usize>(groups: &[u32]) -> Option<u32> {
    let full = u32::MAX >> (32 - M);
    debug_assert!(groups.len() as u32 <= MAX_GROUPS && M <= 24);
    // SAFETY: the processor has the instructions, by this function's contract; at most three groups a half keep `extended` within its capacity;
    // loads of signatures stay within arrays that are a vector longer than the unions.
    unsafe {
        if groups.len() == 2 {
            return Rotations::<V>::of::<M>(groups[1]).find::<M>(full ^ groups[0]);
        }
        let keys = M as u32;
        let (left, right) = groups.split_at(groups.len().div_ceil(2));
        // Unions of two groups, and of three if there are three; the same for the other half further down.
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
        // The other half, turned against its own first group.
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
                            // The first of the right groups turns by `by`, the others by `by` more than their digit.
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

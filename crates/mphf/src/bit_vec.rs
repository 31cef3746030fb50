//! Writers of bit vectors.

use std::sync::atomic::{AtomicU64, Ordering};

/// A growing vector of bits, least significant bit first.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitVec {
    words: Vec<u64>,
    /// The last, incomplete word.
    open: u64,
    len: u64,
}

impl BitVec {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.open = 0;
        self.len = 0;
    }

    /// Appends the low `width <= 63` bits of `value`.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: u64, width: u32) {
        let value = value & ((1 << width) - 1);
        let used = self.len as u32 % 64;
        self.open |= value << used;
        self.len += u64::from(width);
        if used + width >= 64 {
            self.words.push(self.open);
            // `used` is at least 1 here, since `width` is at most 63.
            self.open = value >> (64 - used);
        }
    }

    /// Appends `zeros` zeros and a one.
    #[inline(always)]
    pub(crate) fn push_unary(&mut self, mut zeros: u64) {
        while zeros >= 62 {
            self.push(0, 62);
            zeros -= 62;
        }
        self.push(1 << zeros, zeros as u32 + 1);
    }

    /// Appends all bits of `other`.
    #[inline(always)]
    pub(crate) fn append(&mut self, other: &BitVec) {
        let used = self.len as u32 % 64;
        if used == 0 {
            self.words.extend_from_slice(&other.words);
            self.open = other.open;
            self.len += other.len;
            return;
        }
        for &word in &other.words {
            self.words.push(self.open | word << used);
            self.open = word >> (64 - used);
        }
        self.len += other.words.len() as u64 * 64;
        let rest = other.len as u32 % 64;
        self.push(other.open, rest);
    }

    /// Writes all bits at position `start` of `to`, which has zeros there. Other threads may write other bits of `to`
    /// at the same time.
    pub(crate) fn copy_to(&self, to: &[AtomicU64], start: u64) {
        if self.len == 0 {
            return;
        }
        let (first, last) = ((start / 64) as usize, ((start + self.len - 1) / 64) as usize);
        let shift = start as u32 % 64;
        let mut carry = 0;
        for (at, &word) in (first..=last).zip(self.words.iter().chain([&self.open, &0])) {
            let moved = carry | word << shift;
            // Two shifts, since a shift by 64 is undefined.
            carry = (word >> 1) >> (63 - shift);
            // Only the first and the last word may hold bits of other threads.
            if at == first || at == last {
                to[at].fetch_or(moved, Ordering::Relaxed);
            } else {
                to[at].store(moved, Ordering::Relaxed);
            }
        }
    }

    /// Returns all words, the last one padded with zeros.
    #[cfg(any(test, feature = "gpu"))]
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let all = self.len.div_ceil(64) as usize;
        (0..all).map(|i| if i < self.words.len() { self.words[i] } else { self.open })
    }
}

/// Casts words to atomic ones, for several threads.
pub(crate) fn shared(words: &mut [u64]) -> &[AtomicU64] {
    // SAFETY: `AtomicU64` has the layout of `u64`, and the exclusive borrow of `words` lasts as long as the result.
    unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast(), words.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::bits::field;

    #[test]
    fn appends_at_every_offset() {
        let step = if cfg!(miri) { 23 } else { 1 };
        for offset in (0..70).step_by(step) {
            for len in (0..200_u32).step_by(step) {
                let mut all = BitVec::default();
                let mut part = BitVec::default();
                (0..offset).for_each(|_| all.push(1, 1));
                (0..len).for_each(|i| part.push(u64::from(i % 3 == 0), 1));
                all.append(&part);
                all.push(5, 3);
                assert_eq!(all.len(), u64::from(offset + len + 3));
                let words: Vec<u64> = all.words().collect();
                for i in 0..len {
                    assert_eq!(field(&words, u64::from(offset + i), 1), u64::from(i % 3 == 0), "{offset} {len} {i}");
                }
                assert_eq!(field(&words, u64::from(offset + len), 3), 5);
            }
        }
    }

    #[test]
    fn copies_to_every_offset_beside_others() {
        for offset in (0..130).step_by(if cfg!(miri) { 63 } else { 1 }) {
            for len in [0, 1, 2, 63, 64, 65, 127, 128, 129, 200] {
                let mut part = BitVec::default();
                (0..len).for_each(|i| part.push(u64::from(i % 3 == 0), 1));
                let mut words = vec![0; 6];
                let whole = u64::MAX;
                words[offset as usize / 64] = !(whole << (offset % 64));
                part.copy_to(shared(&mut words), offset);
                for at in 0..6 * 64_u64 {
                    let inside = at.wrapping_sub(offset);
                    let before = at < offset && at / 64 == offset / 64;
                    let expected = before || at >= offset && inside < len && inside % 3 == 0;
                    assert_eq!(field(&words, at, 1) == 1, expected, "{offset} {len} {at}");
                }
            }
        }
    }

    #[test]
    fn long_unary() {
        let mut bits = BitVec::default();
        for zeros in [0, 61, 62, 63, 64, 200] {
            bits.push_unary(zeros);
        }
        assert_eq!(bits.len(), 61 + 62 + 63 + 64 + 200 + 6);
        assert_eq!(bits.words().map(u64::count_ones).sum::<u32>(), 6);
    }
}

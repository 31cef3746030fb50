//! Exact set of integers that lie close together: one bit per integer of their span.

use warpset_base::key::Key;
use warpset_fuse::word_of;

/// Integers from the least to the largest key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    /// Least key, sign-extended to 64 bits.
    least: u64,
    words: usize,
}

impl Span {
    /// Returns the span of keys, compared as signed integers; `None` without keys, or if a bitmap would take more than
    /// `most_bytes`.
    pub(crate) fn of<'a>(keys: impl Iterator<Item = &'a u64> + Clone, most_bytes: u64) -> Option<Span> {
        let ends = |ends: Option<(i64, i64)>, &key: &u64| {
            let (least, most) = ends.unwrap_or((key as i64, key as i64));
            Some((least.min(key as i64), most.max(key as i64)))
        };
        let (least, most) = keys.fold(None, ends)?;
        let words = most.abs_diff(least) / 64 + 1;
        (words <= most_bytes / 8).then_some(Span { least: least as u64, words: words as usize })
    }

    /// Returns the size of the bitmap.
    pub(crate) fn bytes(self) -> usize {
        8 * self.words
    }
}

/// Exact set of integers of 64 bits.
#[derive(Debug)]
pub(crate) struct KeyBitmap {
    least: u64,
    words: Vec<u64>,
}

impl KeyBitmap {
    /// Builds the set of keys with this span.
    pub(crate) fn of<'a>(Span { least, words }: Span, keys: impl Iterator<Item = &'a u64>) -> KeyBitmap {
        let mut words = vec![0; words];
        for key in keys {
            let bit = key.wrapping_sub(least);
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        KeyBitmap { least, words }
    }

    /// Returns one bit per key: whether the set has it.
    pub(crate) fn contains_bulk<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        let bit = |key: &K| {
            let bit = word_of(key).wrapping_sub(self.least);
            self.words.get((bit / 64) as usize).map_or(0, |word| word >> (bit % 64) & 1)
        };
        let word = |keys: &[K]| keys.iter().enumerate().fold(0, |word, (i, key)| word | bit(key) << i);
        keys.chunks(64).map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_their_neighbours_are_not() {
        for least in [-70i64, 0, i64::MIN, i64::MAX - 6 * 49] {
            let keys: Vec<i64> = (0..50).map(|i| least + 6 * i).collect();
            let words: Vec<u64> = keys.iter().map(|&key| key as u64).collect();
            let span = Span::of(words.iter(), 40).unwrap();
            assert_eq!((span.bytes(), Span::of(words.iter(), 39)), (40, None));
            let set = KeyBitmap::of(span, words.iter());
            assert_eq!(set.contains_bulk(&keys), [(1 << 50) - 1]);
            let asked: Vec<i64> = (-400..700).map(|i| least.wrapping_add(i)).chain([i64::MIN, -1, i64::MAX]).collect();
            let expected = asked.chunks(64).map(|asked| {
                asked.iter().enumerate().fold(0u64, |word, (i, key)| word | u64::from(keys.contains(key)) << i)
            });
            assert_eq!(set.contains_bulk(&asked), expected.collect::<Vec<u64>>());
        }
        assert_eq!(Span::of([0u64, 1 << 63].iter(), 1 << 23), None);
        assert_eq!(Span::of([].iter(), 1 << 23), None);
    }
}

//! Answers of a bulk query, one bit per key.

use crate::parallel;
use crate::words::filled;

/// Nanoseconds to spread a word of answers to bytes, in memory that was just allocated.
const WORD_NS: f64 = 27.0;

/// One bit per key, in words of 64: bit `i % 64` of word `i / 64` answers for key `i`.
///
/// Bits past the last key are zero.
///
/// ```
/// use warpset_base::bitmap::Bitmap;
///
/// let found = Bitmap::from_words(vec![0b101], 3);
/// assert!(found.get(0) && !found.get(1) && found.get(2));
/// assert_eq!((found.len(), found.count_ones()), (3, 2));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// Takes over `words`, one bit per key for `len` keys, or for the number of bits in `words` if that is less; clears
    /// the bits past the last key.
    pub fn from_words(mut words: Vec<u64>, len: usize) -> Bitmap {
        let len = len.min(words.len().saturating_mul(64));
        words.truncate(len.div_ceil(64));
        if let (Some(last), used @ 1..) = (words.last_mut(), len % 64) {
            *last &= (1 << used) - 1;
        }
        Bitmap { words, len }
    }

    /// Packs answers into one bit each.
    pub fn from_bools(answers: &[bool]) -> Bitmap {
        let word = |answers: &[bool]| answers.iter().rev().fold(0, |word, &yes| word << 1 | u64::from(yes));
        Bitmap { words: answers.chunks(64).map(word).collect(), len: answers.len() }
    }

    /// Returns the answer for key `i`.
    ///
    /// # Panics
    /// If there is no key `i`.
    pub fn get(&self, i: usize) -> bool {
        assert!(i < self.len, "key {i} of {}", self.len);
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Counts the answers that are yes.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Returns the words.
    pub fn as_words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the words, without a copy.
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }

    /// Returns `values[i]` for each key `i` whose answer is yes.
    ///
    /// # Panics
    /// If there are fewer values than keys.
    pub fn options<V: Copy + Send + Sync>(&self, values: &[V]) -> Vec<Option<V>> {
        filled(self.len, |i| self.get(i).then_some(values[i]))
    }

    /// Iterates over the answers in the order of the keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.words[i / 64] >> (i % 64) & 1 == 1)
    }
}

/// Returns eight bits as bytes 0 and 1, the lowest bit first.
#[inline(always)]
fn bytes_of(bits: u8) -> [u8; 8] {
    // Each byte keeps its own bit, and the addition carries it to the highest one.
    let own = (u64::from(bits) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    (((own + 0x7f7f_7f7f_7f7f_7f7f) >> 7) & 0x0101_0101_0101_0101).to_le_bytes()
}

/// Converts a word to booleans, or to bytes 0 and 1.
fn word_to<T: From<bool>>(answers: &mut [T; 64], word: u64) {
    for (answers, bits) in answers.as_chunks_mut::<8>().0.iter_mut().zip(word.to_le_bytes()) {
        answers.iter_mut().zip(bytes_of(bits)).for_each(|(answer, byte)| *answer = T::from(byte != 0));
    }
}

/// Writes values, 0 in place of none, and whether there is one, as bytes 0 and 1.
pub fn options_to(values: &mut [u64], flags: &mut [u8], answers: Vec<Option<u64>>) {
    for ((answer, value), flag) in answers.into_iter().zip(values).zip(flags) {
        (*value, *flag) = (answer.unwrap_or(0), answer.is_some().into());
    }
}

/// Converts bits to booleans, or to bytes 0 and 1.
pub fn bits_to<T: Send + From<bool>>(answers: &mut [T], words: &[u64]) {
    let task = parallel::task_len(words.len(), WORD_NS);
    parallel::for_each(answers.chunks_mut(64 * task).zip(words.chunks(task)), |(answers, words)| {
        let (whole, rest) = answers.as_chunks_mut::<64>();
        let mut words = words.iter();
        whole.iter_mut().zip(&mut words).for_each(|(answers, &word)| word_to(answers, word));
        if let Some(&word) = words.next() {
            let mut last = [(); 64].map(|()| T::from(false));
            word_to(&mut last, word);
            rest.iter_mut().zip(last).for_each(|(answer, of_last)| *answer = of_last);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_past_the_end_are_cleared() {
        let map = Bitmap::from_words(vec![u64::MAX, u64::MAX], 70);
        assert_eq!(map.count_ones(), 70);
        assert_eq!(map.as_words(), [u64::MAX, 63]);
        assert_eq!(map.iter().len(), 70);
        assert!(Bitmap::from_words(vec![], 0).is_empty());
        assert_eq!(Bitmap::from_words(vec![1], usize::MAX).len(), 64);
        let answers: Vec<bool> = (0..130).map(|i| i % 3 == 0).collect();
        let map = Bitmap::from_bools(&answers);
        assert!(map.iter().eq(answers) && map.as_words().len() == 3 && Bitmap::from_bools(&[]).is_empty());
    }

    #[test]
    fn values_of_yes_are_options() {
        for len in [0usize, 1, 64, 65, if cfg!(miri) { 300 } else { 8_193 }] {
            let words: Vec<u64> = (0..len.div_ceil(64) as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let (bits, values) = (Bitmap::from_words(words, len), (0..len).collect::<Vec<_>>());
            let expected = bits.iter().zip(&values).map(|(yes, &value)| yes.then_some(value));
            assert!(bits.options(&values).into_iter().eq(expected), "{len}");
        }
    }

    #[test]
    fn bits_become_booleans_and_bytes() {
        let many = if cfg!(miri) { 200 } else { 20_000 };
        let words: Vec<u64> = (0..many as u64).map(warpset_core::hash::finalise).collect();
        let bit = |i: usize| words[i / 64] >> (i % 64) & 1 == 1;
        for len in [0, 1, 64, 100, 64 * many - 57] {
            let mut answers = vec![false; len];
            bits_to(&mut answers, &words[..len.div_ceil(64)]);
            assert!((0..len).all(|i| answers[i] == bit(i)), "{len}");
            let mut bytes = vec![9u8; len];
            bits_to(&mut bytes, &words[..len.div_ceil(64)]);
            assert!((0..len).all(|i| bytes[i] == bit(i) as u8), "{len}");
        }
    }
}

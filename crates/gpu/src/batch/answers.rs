//! Where the answers of a kernel go, and in which form.

use rayon::prelude::*;
use warpset_base::bitmap::Bitmap;
use warpset_base::filter::LengthMismatch;
use warpset_kernels::batch::results;
use warpset_simt::GlobalMut;

use crate::DeviceSliceMut;

/// Words of answers that one task spreads to bytes.
const TASK: usize = 1 << 10;

/// Where the answers of a kernel go: one byte per key, one bit per key, or their number.
#[derive(Clone, Copy)]
pub struct Answers {
    /// The words that hold them.
    pub words: GlobalMut<u64>,
    /// [`warpset_kernels::batch::results::BYTES`], `BITS` or `COUNT`.
    pub form: u32,
}

impl Answers {
    /// One byte per key, 1 or 0.
    ///
    /// # Errors
    /// If there are fewer bytes than keys.
    pub fn bytes(mut to: DeviceSliceMut<'_, u8>, keys: usize) -> Result<Answers, LengthMismatch> {
        expect_room(keys, keys, to.len())?;
        let words = GlobalMut::from_raw_parts(to.global_mut().as_ptr().cast(), keys.div_ceil(8));
        Ok(Answers { words, form: results::BYTES })
    }

    /// One bit per key: bit `i % 64` of word `i / 64` answers for key `i`.
    ///
    /// # Errors
    /// If there are fewer bits than keys.
    pub fn bits(mut to: DeviceSliceMut<'_, u64>, keys: usize) -> Result<Answers, LengthMismatch> {
        expect_room(keys, keys.div_ceil(64), to.len())?;
        Ok(Answers::bits_at(to.global_mut()))
    }

    /// One bit per key; there is room for all of them.
    pub fn bits_at(words: GlobalMut<u64>) -> Answers {
        Answers { words, form: results::BITS }
    }

    /// How many answers are yes, added to the first word.
    ///
    /// # Errors
    /// If there is no word.
    pub fn count(mut to: DeviceSliceMut<'_, u64>, keys: usize) -> Result<Answers, LengthMismatch> {
        expect_room(keys, 1, to.len())?;
        Ok(Answers { words: to.global_mut(), form: results::COUNT })
    }

    /// The same for the keys from `first` on, a multiple of 64.
    #[must_use]
    pub fn from(self, first: usize) -> Answers {
        let words = match self.form {
            results::BYTES => self.words.at(first / 8),
            results::BITS => self.words.at(first / 64),
            _ => self.words,
        };
        Answers { words, ..self }
    }
}

/// An error unless `found` places are enough for the answers of `keys` keys, which take `needed`.
pub fn expect_room(keys: usize, needed: usize, found: usize) -> Result<(), LengthMismatch> {
    if found < needed { Err(LengthMismatch { keys, answers: found }) } else { Ok(()) }
}

/// Bits to booleans, or to bytes 0 and 1.
pub fn bits_to<T: Send + From<bool>>(answers: &mut [T], words: &[u64]) {
    let spread = |(answers, words): (&mut [T], &[u64])| {
        for (answers, word) in answers.chunks_mut(64).zip(words) {
            for (i, answer) in answers.iter_mut().enumerate() {
                *answer = T::from(word >> i & 1 == 1);
            }
        }
    };
    if words.len() <= TASK {
        spread((answers, words));
    } else {
        answers.par_chunks_mut(TASK * 64).zip(words.par_chunks(TASK)).for_each(spread);
    }
}

/// What takes the answers to a batch, a bit per key, as words: from the key of this number on, a multiple of 64; in any order.
pub type Take<'a> = dyn FnMut(usize, &[u64]) + 'a;

/// The answers that `answer` brings, as booleans or bytes in the order of the keys.
pub fn answers_into<T: Send + From<bool>, E>(
    answers: &mut [T],
    answer: impl FnOnce(&mut Take<'_>) -> Result<(), E>,
) -> Result<(), E> {
    answer(&mut |first, words| {
        let end = answers.len().min(first + words.len() * 64);
        bits_to(&mut answers[first..end], words);
    })
}

/// The answers to `keys` keys that `answer` brings, as one bit per key.
pub fn answers_bitmap<E>(keys: usize, answer: impl FnOnce(&mut Take<'_>) -> Result<(), E>) -> Result<Bitmap, E> {
    let mut bitmap = vec![0; keys.div_ceil(64)];
    answer(&mut |first, words| bitmap[first / 64..][..words.len()].copy_from_slice(words))?;
    Ok(Bitmap::from_words(bitmap, keys))
}

/// How many of the answers that `answer` brings are yes.
pub fn answers_count<E>(answer: impl FnOnce(&mut Take<'_>) -> Result<(), E>) -> Result<usize, E> {
    let mut count = 0;
    answer(&mut |_, words| count += words.iter().map(|word| word.count_ones() as usize).sum::<usize>())?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_any_order() {
        let words: Vec<u64> = (0..5).map(warpset_core::hash::finalise).collect();
        let answer = |take: &mut Take<'_>| {
            take(128, &words[2..]);
            take(0, &words[..2]);
            Ok::<(), ()>(())
        };
        let (mut booleans, mut bytes) = ([false; 300], [9u8; 300]);
        answers_into(&mut booleans, answer).unwrap();
        answers_into(&mut bytes, answer).unwrap();
        let bitmap = answers_bitmap(300, answer).unwrap();
        for i in 0..300 {
            let bit = words[i / 64] >> (i % 64) & 1 == 1;
            assert_eq!((booleans[i], bytes[i], bitmap.get(i)), (bit, bit as u8, bit));
        }
        let ones = words.iter().map(|word| word.count_ones() as usize).sum();
        assert_eq!(answers_count(answer), Ok(ones));
        assert_eq!(answers_count(|_| Err(7)), Err(7));
    }

    #[test]
    fn bits_become_booleans_and_bytes() {
        let words: Vec<u64> = (0..3000).map(warpset_core::hash::finalise).collect();
        let bit = |i: usize| words[i / 64] >> (i % 64) & 1 == 1;
        for len in [0, 1, 64, 100, 64 * 1024, 64 * 2999 + 7] {
            let mut answers = vec![false; len];
            bits_to(&mut answers, &words[..len.div_ceil(64)]);
            assert!((0..len).all(|i| answers[i] == bit(i)), "{len}");
            let mut bytes = vec![9u8; len];
            bits_to(&mut bytes, &words[..len.div_ceil(64)]);
            assert!((0..len).all(|i| bytes[i] == bit(i) as u8), "{len}");
        }
    }
}

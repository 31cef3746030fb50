//! Destination and form of a kernel's answers.

use warpset_base::filter::LengthMismatch;
use warpset_kernels::batch::results;
use warpset_simt::GlobalMut;

use crate::DeviceSliceMut;

/// Destination of a kernel's answers: one byte per key, one bit per key, or their number.
#[derive(Clone, Copy)]
pub struct Answers {
    /// The words that hold them.
    pub words: GlobalMut<u64>,
    /// [`warpset_kernels::batch::results::BYTES`], `BITS` or `COUNT`.
    pub form: u32,
}

impl Answers {
    /// Takes answers as one byte per key, 1 or 0.
    ///
    /// # Errors
    /// If there are fewer bytes than keys.
    pub fn bytes(mut to: DeviceSliceMut<'_, u8>, keys: usize) -> Result<Answers, LengthMismatch> {
        expect_room(keys, to.len())?;
        let words = GlobalMut::from_raw_parts(to.global_mut().as_ptr().cast(), keys.div_ceil(8));
        Ok(Answers { words, form: results::BYTES })
    }

    /// Takes answers as one bit per key: bit `i % 64` of word `i / 64` answers for key `i`.
    ///
    /// # Errors
    /// If there are fewer bits than keys.
    pub fn bits(mut to: DeviceSliceMut<'_, u64>, keys: usize) -> Result<Answers, LengthMismatch> {
        expect_room(keys.div_ceil(64), to.len())?;
        Ok(Answers::bits_at(to.global_mut()))
    }

    /// Takes answers as one bit per key, at words with room for all of them.
    pub fn bits_at(words: GlobalMut<u64>) -> Answers {
        Answers { words, form: results::BITS }
    }

    /// Counts the answers that are yes, added to the first word.
    ///
    /// # Errors
    /// If there is no word.
    pub fn count(mut to: DeviceSliceMut<'_, u64>) -> Result<Answers, LengthMismatch> {
        expect_room(1, to.len())?;
        Ok(Answers { words: to.global_mut(), form: results::COUNT })
    }

    /// Returns the destination of the answers to the keys from `first` on, a multiple of 64.
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

/// Reports an error unless `found` places are enough for answers that take `needed`.
///
/// # Errors
/// [`LengthMismatch`].
pub fn expect_room(needed: usize, found: usize) -> Result<(), LengthMismatch> {
    LengthMismatch::unless_room("places for answers", needed, found)
}

//! Keys gathered one by one, in vectors of our own.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::one::word_of;
use super::{ArrayKeys, OneKey, Sign, is_null, one_key};
use crate::arrow;

/// Keys collected one by one.
#[derive(Default)]
pub struct Gathered {
    words: Vec<u64>,
    has_negative: bool,
    has_large: bool,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Places of nulls, ascending.
    nulls: Vec<usize>,
}

impl Gathered {
    /// Adds a key or a null.
    pub fn push(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        if (self.len() + 1).is_multiple_of(1 << 16) {
            object.py().check_signals()?;
        }
        // Fast path of the most frequent type.
        if object.is_instance_of::<PyInt>() && self.ends.is_empty() {
            let (word, is_negative) = word_of(object)?;
            self.words.push(word);
            self.has_negative |= is_negative;
            self.has_large |= !is_negative && word >> 63 == 1;
            return Ok(());
        }
        let key = match one_key(object) {
            Ok(key) => key,
            Err(error) => {
                if !is_null(object)? {
                    return Err(error);
                }
                self.nulls.push(self.len());
                return Ok(());
            }
        };
        let is_word = match key {
            OneKey::Word(word) => {
                self.words.push(word);
                if word >> 63 == 1 {
                    let is_negative = match arrow::scalar(object)? {
                        Some(value) => value.lt(0)?,
                        None => object.lt(0)?,
                    };
                    *(if is_negative { &mut self.has_negative } else { &mut self.has_large }) = true;
                }
                true
            }
            OneKey::Bytes(bytes) => {
                self.bytes.extend_from_slice(&bytes);
                self.ends.push(self.bytes.len());
                false
            }
        };
        let is_mixed = if is_word { !self.ends.is_empty() } else { !self.words.is_empty() };
        if is_mixed {
            let place = self.len() - 1;
            let why =
                format!("keys of one call are all `int`, or all `str` and `bytes`; item {place} is of the other kind");
            return Err(PyTypeError::new_err(why));
        }
        Ok(())
    }

    /// Returns the number of keys and nulls.
    pub fn len(&self) -> usize {
        self.words.len() + self.ends.len() + self.nulls.len()
    }

    /// Returns all keys and nulls, and starts again.
    pub fn take(&mut self) -> ArrayKeys {
        let mut present = vec![true; self.len()];
        let nulls = std::mem::take(&mut self.nulls);
        nulls.iter().for_each(|&place| present[place] = false);
        ArrayKeys { present: Some(present).filter(|_| !nulls.is_empty()), ..self.take_keys() }
    }

    fn take_keys(&mut self) -> ArrayKeys {
        if self.ends.is_empty() {
            let sign = match (std::mem::take(&mut self.has_negative), std::mem::take(&mut self.has_large)) {
                (false, _) => Sign::Unsigned,
                (true, false) => Sign::Signed,
                (true, true) => Sign::Mixed,
            };
            return ArrayKeys::words(std::mem::take(&mut self.words), None, sign);
        }
        ArrayKeys::copied_strings(std::mem::take(&mut self.bytes), &std::mem::take(&mut self.ends))
    }
}

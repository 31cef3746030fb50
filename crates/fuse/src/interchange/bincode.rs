//! Bytes of `xorf`'s filters in the encoding of the crate `bincode`: parameters, then the number of fingerprints, then
//! the fingerprints.

use std::io::Read;

use warpset_base::file::{FileError, read_exact};

use super::{XorfArray, XorfDescriptor};
use crate::width::Width;
use crate::{BinaryFuse, Error};

/// Encoding of integers: the configurations of `bincode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bincode {
    /// `config::standard()` of `bincode` 2: integers below 251 in one byte, others after a byte that says their length.
    #[default]
    Standard,
    /// `config::legacy()`, and `bincode` 1: integers in all of their bytes.
    Legacy,
}

/// The bytes that are left to read.
struct Reader<'a> {
    bytes: &'a [u8],
    form: Bincode,
}

/// The largest value that takes one byte.
const LARGEST_SHORT: u8 = 250;

impl Reader<'_> {
    /// Returns an integer that has `bytes` bytes at full length.
    fn integer(&mut self, bytes: usize) -> Result<u64, Error> {
        let len = match self.form {
            Bincode::Legacy => bytes,
            // Small bytes encode themselves.
            Bincode::Standard if bytes == 1 => 1,
            Bincode::Standard => match self.take(1)? {
                short @ 0..=250 => return Ok(short),
                251 => 2,
                252 => 4,
                253 => 8,
                value => return Err(Error::InvalidArray { what: "the length of an integer", value }),
            },
        };
        let value = self.take(len)?;
        if len > bytes {
            return Err(Error::InvalidArray { what: "an integer", value });
        }
        Ok(value)
    }

    /// Returns a little-endian integer of that many bytes.
    fn take(&mut self, len: usize) -> Result<u64, Error> {
        let Some((first, rest)) = self.bytes.split_at_checked(len) else {
            return Err(Error::InvalidArray {
                what: "the number of missing bytes",
                value: (len - self.bytes.len()) as u64,
            });
        };
        self.bytes = rest;
        Ok(first.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }
}

fn put(to: &mut Vec<u8>, form: Bincode, value: u64, bytes: usize) {
    let all = value.to_le_bytes();
    let (tag, len) = match form {
        Bincode::Legacy => (None, bytes),
        Bincode::Standard if bytes == 1 || value <= LARGEST_SHORT.into() => (None, 1),
        Bincode::Standard if value <= u16::MAX.into() => (Some(251), 2),
        Bincode::Standard if value <= u32::MAX.into() => (Some(252), 4),
        Bincode::Standard => (Some(253), 8),
    };
    to.extend(tag);
    to.extend_from_slice(&all[..len]);
}

impl<F: Width> BinaryFuse<F> {
    /// Writes this filter as a type of `xorf` in the encoding of `bincode`.
    ///
    /// # Errors
    /// [`Error::NotInterchangeable`] if it is four-wise, sharded or empty.
    pub fn to_xorf_bincode(&self, form: Bincode) -> Result<Vec<u8>, Error> {
        let descriptor = self.published()?;
        let fingerprints: &[u8] = bytemuck::cast_slice(self.fingerprints());
        let mut bytes = Vec::with_capacity(40 + fingerprints.len());
        put(&mut bytes, form, descriptor.seed, 8);
        for value in [descriptor.segment_length, descriptor.segment_length_mask, descriptor.segment_count_length] {
            put(&mut bytes, form, value.into(), 4);
        }
        put(&mut bytes, form, self.fingerprints().len() as u64, 8);
        for value in fingerprints.chunks_exact(size_of::<F>()) {
            put(&mut bytes, form, little_endian(value), value.len());
        }
        Ok(bytes)
    }

    /// Reads a filter of `xorf` from its encoding by `bincode`, which is all of the bytes.
    ///
    /// # Errors
    /// [`Error::InvalidArray`] if the bytes are not those of such a filter: too few or too many, or with lengths that
    /// no filter has; [`Error::OutOfMemory`].
    pub fn from_xorf_bincode(bytes: &[u8], form: Bincode) -> Result<BinaryFuse<F>, Error> {
        let mut reader = Reader { bytes, form };
        let seed = reader.integer(8)?;
        let mut next = || Ok::<_, Error>(reader.integer(4)? as u32);
        let descriptor = XorfDescriptor {
            seed,
            segment_length: next()?,
            segment_length_mask: next()?,
            segment_count_length: next()?,
        };
        let len = reader.integer(8)?;
        let least = if form == Bincode::Legacy { size_of::<F>() as u64 } else { 1 };
        if len > reader.bytes.len() as u64 / least {
            return Err(Error::InvalidArray { what: "the number of fingerprints", value: len });
        }
        let layout = descriptor.layout::<F>(len)?;
        let filter = BinaryFuse::with_fingerprints(layout, |slots| {
            for slot in &mut *slots {
                *slot = F::of(reader.integer(size_of::<F>())? as u32);
            }
            // Slots that no key has.
            (slots.len() as u64..len).try_for_each(|_| reader.integer(size_of::<F>()).map(|_| ()))
        })?;
        match reader.bytes.len() as u64 {
            0 => Ok(filter),
            value => Err(Error::InvalidArray { what: "the number of bytes after its end", value }),
        }
    }
}

/// Bytes before the fingerprints where integers have all of their bytes.
const LEGACY_HEAD: usize = 28;

impl<F: Width> BinaryFuse<F> {
    /// Reads a filter of `xorf` from a reader of `bincode`'s bytes, with integers in all of their bytes
    /// ([`Bincode::Legacy`]): the next `bytes` of it. Fingerprints are read into their final place, without a second
    /// copy.
    ///
    /// ```
    /// use warpset_fuse::{BinaryFuse16, Bincode};
    ///
    /// let filter = BinaryFuse16::builder().build_from(&[2u64, 3, 5])?;
    /// let bytes = filter.to_xorf_bincode(Bincode::Legacy)?;
    /// let again = BinaryFuse16::read_xorf_bincode(&bytes[..], bytes.len() as u64)?;
    /// assert!(again.contains(5u64) && again.fingerprints() == filter.fingerprints());
    /// # Ok::<(), warpset_fuse::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArray`] as for [`from_xorf_bincode`](Self::from_xorf_bincode), before memory is taken;
    /// [`Error::OutOfMemory`]; [`Error::File`] if the reader fails or ends early.
    pub fn read_xorf_bincode(mut reader: impl Read, bytes: u64) -> Result<BinaryFuse<F>, Error> {
        let invalid = |what, value| Err(Error::InvalidArray { what, value });
        let Some(rest) = bytes.checked_sub(LEGACY_HEAD as u64) else {
            return invalid("the number of missing bytes", LEGACY_HEAD as u64 - bytes);
        };
        let mut head = [0; LEGACY_HEAD];
        read_exact(&mut reader, &mut head, 0, bytes)?;
        let integer = |at: usize, len: usize| little_endian(&head[at..at + len]);
        let descriptor = XorfDescriptor {
            seed: integer(0, 8),
            segment_length: integer(8, 4) as u32,
            segment_length_mask: integer(12, 4) as u32,
            segment_count_length: integer(16, 4) as u32,
        };
        let len = integer(20, 8);
        if len.checked_mul(size_of::<F>() as u64) != Some(rest) {
            return invalid("the number of fingerprints", len);
        }
        let layout = descriptor.layout::<F>(len)?;
        BinaryFuse::with_fingerprints(layout, |slots| {
            let read = size_of_val(slots);
            read_exact(&mut reader, bytemuck::cast_slice_mut(slots), LEGACY_HEAD as u64, bytes)?;
            // Slots that no key has.
            let mut unused = reader.take(rest - read as u64);
            std::io::copy(&mut unused, &mut std::io::sink()).map_err(FileError::from)?;
            Ok(())
        })
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

impl<F: Width> XorfArray<F> {
    /// Returns the number of fingerprints in the array.
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Whether the array has no fingerprints.
    pub fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }
}

//! The filter's memory: zeroed lazily by the system, aligned to cache lines.

use crate::Error;

/// Words in a cache line.
const LINE: usize = 16;

/// Words of 32 bits that start at a cache line.
///
/// The allocation is plain `u32`s with a line to spare: asked for 64-byte alignment, the system allocator would write
/// the zeros itself and so touch every page.
pub(crate) struct Words {
    memory: Vec<u32>,
    first: usize,
    len: usize,
}

impl Words {
    /// `len` zero words. Large ones cost no physical memory until they are touched.
    pub(crate) fn zeroed(len: u64) -> Result<Words, Error> {
        let out_of_memory = || Error::OutOfMemory { bytes: len.saturating_mul(4) };
        let len = usize::try_from(len).map_err(|_| out_of_memory())?;
        if len > isize::MAX as usize / 8 {
            return Err(out_of_memory());
        }
        let memory = bytemuck::allocation::try_zeroed_vec::<u32>(len + LINE).map_err(|()| out_of_memory())?;
        let first = memory.as_ptr().align_offset(LINE * size_of::<u32>()).min(LINE);
        Ok(Words { memory, first, len })
    }

    /// `len` zeros that need no alignment.
    pub(crate) fn zeroed_vec(len: u64) -> Result<Vec<u32>, Error> {
        usize::try_from(len)
            .ok()
            .and_then(|len| bytemuck::allocation::try_zeroed_vec(len).ok())
            .ok_or(Error::OutOfMemory { bytes: len.saturating_mul(4) })
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.memory[self.first..self.first + self.len]
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u32] {
        &mut self.memory[self.first..self.first + self.len]
    }
}

impl Clone for Words {
    /// Like `Vec::clone`, ends the process when there is no memory.
    fn clone(&self) -> Words {
        let mut memory = vec![0; self.memory.len()];
        let first = memory.as_ptr().align_offset(LINE * size_of::<u32>()).min(LINE);
        memory[first..first + self.len].copy_from_slice(self.as_slice());
        Words { memory, first, len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_and_copies_equal() {
        for len in [0u64, 1, 15, 16, 17, 1000] {
            let mut words = Words::zeroed(len).unwrap();
            assert_eq!(words.as_slice().as_ptr() as usize % 64, 0);
            words.as_mut_slice().iter_mut().enumerate().for_each(|(i, w)| *w = i as u32);
            let copy = words.clone();
            assert_eq!(copy.as_slice(), words.as_slice());
            assert_eq!(copy.as_slice().as_ptr() as usize % 64, 0);
        }
    }

    #[test]
    fn absurd_sizes_are_an_error() {
        for len in [u64::MAX, u64::MAX / 4, 1 << 60, 1 << 50] {
            assert!(matches!(Words::zeroed(len), Err(Error::OutOfMemory { .. })), "{len}");
        }
    }
}

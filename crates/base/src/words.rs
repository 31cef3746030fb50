//! A filter's memory: zeroed lazily by the system, aligned to cache lines.

use bytemuck::Pod;

use crate::number::count;
use crate::parallel;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// The allocator refused.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot allocate {}: free memory, or ask for a smaller structure", count(*bytes, "byte"))]
pub struct OutOfMemory {
    /// Requested bytes.
    pub bytes: u64,
}

crate::debug_as_display!(OutOfMemory);

/// Words that start at a cache line.
///
/// The allocation has plain alignment and one line to spare: for 64-byte alignment, the system allocator would write
/// the zeros itself, and so touch every page.
pub struct AlignedWords<T> {
    memory: Vec<T>,
    first: usize,
    len: usize,
}

impl<T: Pod> AlignedWords<T> {
    /// Words in a cache line.
    const LINE: usize = LINE_BYTES / size_of::<T>();

    /// Allocates `len` zero words. Large allocations cost no physical memory until they are touched.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn zeroed(len: u64) -> Result<AlignedWords<T>, OutOfMemory> {
        let memory = zeroed_vec(len.saturating_add(Self::LINE as u64));
        let memory = memory.map_err(|_| OutOfMemory { bytes: len.saturating_mul(size_of::<T>() as u64) })?;
        let (first, len) = (Self::first_of(&memory), memory.len() - Self::LINE);
        Ok(AlignedWords { memory, first, len })
    }

    /// Asks the system to put large memory that has not been touched yet into huge pages, if Linux supports them:
    /// random accesses then miss fewer address translations. Memory is then allocated in pieces of 2 MiB.
    #[must_use]
    pub fn in_huge_pages(mut self) -> AlignedWords<T> {
        advise_huge_pages(self.as_mut_slice());
        self
    }

    /// Returns the index of the first word that starts a line.
    fn first_of(memory: &[T]) -> usize {
        memory.as_ptr().align_offset(LINE_BYTES).min(Self::LINE)
    }

    /// Returns the words.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.memory[self.first..self.first + self.len]
    }

    /// Returns the words, mutably.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.memory[self.first..self.first + self.len]
    }
}

impl<T: Pod> Clone for AlignedWords<T> {
    /// Clones like `Vec::clone`: ends the process if memory runs out.
    fn clone(&self) -> AlignedWords<T> {
        let mut memory = vec![T::zeroed(); self.memory.len()];
        let first = Self::first_of(&memory);
        memory[first..first + self.len].copy_from_slice(self.as_slice());
        AlignedWords { memory, first, len: self.len }
    }
}

/// Smallest size in bytes for which huge pages pay.
const LARGE_BYTES: usize = 8 << 20;

/// Does the work of [`AlignedWords::in_huge_pages`] for other memory that has not been touched yet.
///
/// ```
/// let mut words = warpset_base::words::zeroed_vec::<u64>(1 << 20)?;
/// warpset_base::words::advise_huge_pages(&mut words);
/// assert_eq!(words[77], 0);
/// # Ok::<(), warpset_base::words::OutOfMemory>(())
/// ```
pub fn advise_huge_pages<T>(memory: &mut [T]) {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    if size_of_val(memory) >= LARGE_BYTES {
        use std::ffi::{c_int, c_void};

        // The system's C library, which the standard library links.
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        /// `MADV_HUGEPAGE` of these architectures.
        const HUGE_PAGES: c_int = 14;
        /// Largest page size that an address may have to be a multiple of.
        const PAGE: usize = 1 << 16;

        let bytes = memory.as_mut_ptr().cast::<u8>();
        let before = bytes.align_offset(PAGE).min(size_of_val(memory));
        let inner = bytes.wrapping_add(before);
        // SAFETY: the range lies in memory that is lent here, and this advice changes no contents. Where the system
        // refuses, pages stay as they are.
        unsafe { madvise(inner.cast(), size_of_val(memory) - before, HUGE_PAGES) };
    }
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    let _ = (memory, LARGE_BYTES);
}

/// Returns the vector, whose memory has not been touched yet, after [`advise_huge_pages`]: the answers to many keys,
/// for example. Of small pages the first writes take longer than a lookup.
pub fn in_huge_pages<T>(mut items: Vec<T>) -> Vec<T> {
    advise_huge_pages(&mut items);
    items
}

/// Returns `len` items, many of them constructed in place by all threads and in huge pages: the first write to fresh
/// memory is what costs.
///
/// ```
/// assert_eq!(warpset_base::words::filled(3, |i| Some(i * i)), [Some(0), Some(1), Some(4)]);
/// ```
pub fn filled<T: Send>(len: usize, make: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    /// Items that a task makes, at least.
    const TOGETHER: usize = 1 << 13;
    let mut items = Vec::with_capacity(len);
    advise_huge_pages(items.spare_capacity_mut());
    parallel::fill(&mut items, len, TOGETHER, make);
    items
}

/// Allocates `len` zeros of any alignment.
///
/// # Errors
/// [`OutOfMemory`].
pub fn zeroed_vec<T: Pod>(len: u64) -> Result<Vec<T>, OutOfMemory> {
    usize::try_from(len)
        .ok()
        .filter(|&len| len <= isize::MAX as usize / 2 / size_of::<T>())
        .and_then(|len| bytemuck::allocation::try_zeroed_vec(len).ok())
        .ok_or(OutOfMemory { bytes: len.saturating_mul(size_of::<T>() as u64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned_and_equal<T: Pod + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        for len in [0u64, 1, 7, 8, 9, 15, 16, 17, 1000] {
            let mut words = AlignedWords::<T>::zeroed(len).unwrap();
            assert_eq!(words.as_slice(), vec![T::zeroed(); len as usize]);
            assert_eq!(words.as_slice().as_ptr() as usize % LINE_BYTES, 0);
            words.as_mut_slice().iter_mut().enumerate().for_each(|(i, w)| *w = value(i));
            let copy = words.clone();
            assert_eq!(copy.as_slice(), words.as_slice());
            assert_eq!(copy.as_slice().as_ptr() as usize % LINE_BYTES, 0);
        }
    }

    #[test]
    fn lines_are_aligned_and_copies_equal() {
        aligned_and_equal(|i| i as u32);
        aligned_and_equal(|i| i as u64);
    }

    #[test]
    fn huge_pages_hold_the_same() {
        let len = if cfg!(miri) { 100 } else { LARGE_BYTES as u64 / 8 + 12_345 };
        let mut words = AlignedWords::<u64>::zeroed(len).unwrap().in_huge_pages();
        assert!(words.as_slice().len() as u64 == len && words.as_slice().iter().all(|&word| word == 0));
        words.as_mut_slice().iter_mut().enumerate().for_each(|(i, word)| *word = i as u64);
        assert!(words.clone().as_slice().iter().enumerate().all(|(i, &word)| word == i as u64));
    }

    #[test]
    fn absurd_sizes_are_an_error() {
        // Miri ends a program that requests more memory than exists.
        let refused_by_the_allocator = (!cfg!(miri)).then_some(1 << 50);
        for len in [u64::MAX, u64::MAX / 4, 1 << 60].into_iter().chain(refused_by_the_allocator) {
            let refused = OutOfMemory { bytes: len.saturating_mul(4) };
            assert_eq!(AlignedWords::<u32>::zeroed(len).map(|_| ()), Err(refused), "{len}");
            assert_eq!(zeroed_vec::<u32>(len), Err(refused), "{len}");
            assert!(AlignedWords::<u64>::zeroed(len).is_err(), "{len}");
        }
    }
}

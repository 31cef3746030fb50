//! Large arrays in huge pages, for the data of every key or bucket in a build.
//!
//! They are the largest allocations of a build, and new each time. With pages of 4 KiB, a fifth of a build on many
//! threads goes into page faults, which the system handles one after the other within a process, and into returning
//! pages. So on Linux huge pages are requested. All threads write to all pages. One thread touches each page first:
//! otherwise many threads fault on it at once, and the system zeroes a page for each of them and keeps one.

use super::work_stealing;
use rayon::prelude::*;
use std::convert::Infallible;
use std::mem::MaybeUninit;

/// Bytes of a huge page. Linux aligns a mapping of whole huge pages to them.
const HUGE: usize = 2 << 20;

/// An array filled in any order.
pub(crate) enum HugeVec<T> {
    /// On the heap.
    Heap(Vec<T>),
    /// In pages of its own, with the number of values.
    #[cfg(target_os = "linux")]
    Pages(memmap2::MmapMut, usize),
}

impl<T: Copy> HugeVec<T> {
    /// Allocates memory for `len` values, all uninitialised.
    pub(crate) fn new(len: usize) -> Self {
        /// Least bytes for which pages pay: those of some huge pages.
        #[cfg(target_os = "linux")]
        const LARGE: usize = 4 << 20;
        const { assert!(align_of::<T>() <= 4096) };
        #[cfg(target_os = "linux")]
        if !cfg!(miri)
            && len.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes >= LARGE)
            && let Ok(pages) = memmap2::MmapMut::map_anon((len * size_of::<T>()).next_multiple_of(HUGE))
        {
            // Without huge pages these are ordinary pages.
            let _ = pages.advise(memmap2::Advice::HugePage);
            return Self::Pages(pages, 0);
        }
        Self::Heap(Vec::with_capacity(len))
    }

    /// Makes the array of the values `value(0)` to `value(len - 1)`.
    pub(crate) fn of(len: usize, value: impl Fn(usize) -> T + Sync) -> Self
    where
        T: Send,
    {
        let mut vec = Self::new(len);
        let Ok(_) = work_stealing::for_each(vec.pages().collect::<Vec<_>>().into_iter(), |(): &mut (), page| {
            page[0] = 0;
            Ok::<_, Infallible>(())
        });
        vec.slots()[..len].par_iter_mut().enumerate().for_each(|(i, slot)| _ = slot.write(value(i)));
        // SAFETY: all `len` values have been written.
        unsafe { vec.set_len(len) };
        vec
    }

    /// Returns the fresh pages, for threads to touch; none if the values are on the heap.
    pub(crate) fn pages(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let pages: &mut [u8] = match self {
            Self::Heap(_) => &mut [],
            #[cfg(target_os = "linux")]
            Self::Pages(pages, 0) => pages,
            #[cfg(target_os = "linux")]
            Self::Pages(..) => &mut [],
        };
        pages.chunks_mut(HUGE)
    }

    /// Returns places for `len` values or more.
    pub(crate) fn slots(&mut self) -> &mut [MaybeUninit<T>] {
        match self {
            Self::Heap(values) => {
                values.clear();
                values.spare_capacity_mut()
            }
            #[cfg(target_os = "linux")]
            Self::Pages(pages, _) => {
                let len = pages.len() / size_of::<T>();
                // SAFETY: that many values fit in the pages, which are aligned for them.
                unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), len) }
            }
        }
    }

    /// Sets the number of values.
    ///
    /// # Safety
    /// - `len` is at most the number of values that the vector was made for.
    /// - The first `len` of [`HugeVec::slots`] were written.
    pub(crate) unsafe fn set_len(&mut self, len: usize) {
        match self {
            // SAFETY: `len` values fit and were written, by this function's contract.
            Self::Heap(values) => unsafe { values.set_len(len) },
            #[cfg(target_os = "linux")]
            Self::Pages(_, written) => *written = len,
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::Heap(values) => values,
            // SAFETY: that many values were written, and pages are aligned for them.
            #[cfg(target_os = "linux")]
            Self::Pages(pages, written) => unsafe { std::slice::from_raw_parts(pages.as_ptr().cast(), *written) },
        }
    }
}

/// Writes `value` to all `slots`.
pub(crate) fn fill<T: Copy>(slots: &mut [MaybeUninit<T>], value: T) -> &mut [T] {
    slots.fill(MaybeUninit::new(value));
    // SAFETY: all were written, and `MaybeUninit<T>` has the layout of `T`.
    unsafe { &mut *(std::ptr::from_mut(slots) as *mut [T]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_written() {
        let large = (4 << 20) / 8;
        for len in [0, 1, 1000, large - 1, large + 1] {
            let mut vec = HugeVec::new(len);
            assert!(vec.as_slice().is_empty());
            for i in (0..len).rev() {
                vec.slots()[i].write(!i as u64);
            }
            // SAFETY: all values have been written.
            unsafe { vec.set_len(len) };
            assert_eq!(vec.as_slice().len(), len);
            assert!(vec.as_slice().iter().enumerate().all(|(i, &value)| value == !i as u64));
            assert!(HugeVec::of(len, |i| !i as u64).as_slice() == vec.as_slice());
        }
    }
}

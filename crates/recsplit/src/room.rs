//! Room for the hashes of all keys.
//!
//! It is the largest allocation of a build, and new each time. In pages of 4 KiB, a fifth of a build on many threads goes into
//! faults, which the threads of a process take in turns, and into giving the pages back; so on Linux it is asked for in
//! huge pages. All threads write to all of it, so each page is touched by one of them first: otherwise many would find it
//! missing at once, and each would make a page of zeros, of which one is taken.

use crate::key::Hash128;
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Bytes of a huge page. Linux puts a mapping of whole huge pages where they begin.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// Hashes that are written in any order.
pub(crate) enum Room {
    /// On the heap.
    Heap(Vec<Hash128>),
    /// In pages of its own, with the number of hashes.
    #[cfg(target_os = "linux")]
    Pages(memmap2::MmapMut, usize),
}

impl Room {
    /// Room for `len` hashes, of which there are none yet.
    pub(crate) fn new(len: usize) -> Self {
        /// Bytes from which on allocators ask the system for new pages as well.
        #[cfg(target_os = "linux")]
        const LARGE: usize = 32 << 20;
        #[cfg(target_os = "linux")]
        if len.checked_mul(size_of::<Hash128>()).is_some_and(|bytes| bytes >= LARGE)
            && let Ok(pages) = memmap2::MmapMut::map_anon((len * size_of::<Hash128>()).next_multiple_of(HUGE))
        {
            // Where there are none, these are pages like others.
            let _ = pages.advise(memmap2::Advice::HugePage);
            return Self::Pages(pages, 0);
        }
        Self::Heap(Vec::with_capacity(len))
    }

    /// The hashes `hash(0)` to `hash(len - 1)`.
    pub(crate) fn of(len: usize, hash: impl Fn(usize) -> Hash128 + Sync) -> Self {
        let mut room = Self::new(len);
        room.touch();
        room.slots()[..len].par_iter_mut().enumerate().for_each(|(i, slot)| _ = slot.write(hash(i)));
        // SAFETY: all were written.
        unsafe { room.set_len(len) };
        room
    }

    /// Has all threads get its pages from the system.
    pub(crate) fn touch(&mut self) {
        #[cfg(target_os = "linux")]
        if let Self::Pages(pages, _) = self {
            pages.par_chunks_mut(HUGE).with_max_len(1).for_each(|page| page[0] = 0);
        }
    }

    /// Places for `len` hashes, and maybe more.
    pub(crate) fn slots(&mut self) -> &mut [MaybeUninit<Hash128>] {
        match self {
            Self::Heap(hashes) => {
                hashes.clear();
                hashes.spare_capacity_mut()
            }
            #[cfg(target_os = "linux")]
            Self::Pages(pages, _) => {
                let len = pages.len() / size_of::<Hash128>();
                // SAFETY: that many fit in the pages, which are aligned for them.
                unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), len) }
            }
        }
    }

    /// # Safety
    /// There is room for `len` hashes, and they were written.
    pub(crate) unsafe fn set_len(&mut self, len: usize) {
        match self {
            // SAFETY: as the caller says.
            Self::Heap(hashes) => unsafe { hashes.set_len(len) },
            #[cfg(target_os = "linux")]
            Self::Pages(_, written) => *written = len,
        }
    }

    pub(crate) fn as_slice(&self) -> &[Hash128] {
        match self {
            Self::Heap(hashes) => hashes,
            // SAFETY: that many hashes were written, and pages are aligned for them.
            #[cfg(target_os = "linux")]
            Self::Pages(pages, written) => unsafe { std::slice::from_raw_parts(pages.as_ptr().cast(), *written) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_written() {
        for len in [0, 1, 1000, (32 << 20) / 16 - 1, (32 << 20) / 16 + 1] {
            let mut room = Room::new(len);
            assert!(room.as_slice().is_empty());
            let of = |i: usize| Hash128 { high: i as u64, low: !i as u64 };
            for i in (0..len).rev() {
                room.slots()[i].write(of(i));
            }
            // SAFETY: all were written.
            unsafe { room.set_len(len) };
            assert_eq!(room.as_slice().len(), len);
            assert!(room.as_slice().iter().enumerate().all(|(i, &hash)| hash == of(i)));
            assert!(Room::of(len, of).as_slice() == room.as_slice());
        }
    }
}

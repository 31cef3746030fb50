//! Pinned memory that a device keeps for host slices on their way to it: allocating such memory takes longer than most
//! calls that need it.

use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Words that a device keeps idle at most: 384 MiB, three lanes of keys and values of 16 bytes.
const MOST_IDLE: usize = 3 << 24;

/// Pinned memory without its device. The code that takes it out of a pool or a vector frees it.
pub(crate) struct RawPinned {
    pub(crate) pointer: NonNull<u64>,
    pub(crate) len: usize,
}

// SAFETY: it owns the memory that it points to; no other pointer to it is in use.
unsafe impl Send for RawPinned {}

/// The idle pinned memory of a device. Threads take from it and give back.
pub(crate) struct PinnedPool(Mutex<Vec<RawPinned>>);

impl PinnedPool {
    pub(crate) const fn new() -> PinnedPool {
        PinnedPool(Mutex::new(Vec::new()))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<RawPinned>> {
        // No operation on the vector leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the smallest idle piece of at least `len` words.
    pub(crate) fn take(&self, len: usize) -> Option<RawPinned> {
        let mut idle = self.idle();
        let fits = idle.iter().enumerate().filter(|(_, piece)| piece.len >= len);
        let (i, _) = fits.min_by_key(|(_, piece)| piece.len)?;
        Some(idle.swap_remove(i))
    }

    /// Keeps a piece. Returns those for which there is no room any more, the smallest first: the caller frees them.
    pub(crate) fn give(&self, piece: RawPinned) -> Vec<RawPinned> {
        let mut idle = self.idle();
        idle.push(piece);
        idle.sort_by_key(|piece| piece.len);
        let mut words: usize = idle.iter().map(|piece| piece.len).sum();
        let surplus = idle.iter().take_while(|piece| {
            let is_surplus = words > MOST_IDLE;
            words -= piece.len;
            is_surplus
        });
        let surplus = surplus.count();
        idle.drain(..surplus).collect()
    }

    /// Takes out all idle pieces; the caller frees them.
    pub(crate) fn drain(&self) -> Vec<RawPinned> {
        std::mem::take(&mut *self.idle())
    }

    /// Counts the idle words.
    #[cfg(test)]
    pub(crate) fn idle_words(&self) -> usize {
        self.idle().iter().map(|piece| piece.len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(len: usize) -> RawPinned {
        RawPinned { pointer: NonNull::dangling(), len }
    }

    #[test]
    fn the_smallest_piece_that_fits_is_taken() {
        let pool = PinnedPool::new();
        for len in [64, 1024, 256] {
            assert!(pool.give(piece(len)).is_empty());
        }
        assert_eq!(pool.take(100).map(|piece| piece.len), Some(256));
        assert_eq!(pool.take(100).map(|piece| piece.len), Some(1024));
        assert!(pool.take(100).is_none());
        assert_eq!(pool.idle_words(), 64);
        assert_eq!(pool.drain().len(), 1);
    }

    #[test]
    fn small_pieces_go_when_there_is_no_room() {
        let pool = PinnedPool::new();
        assert!(pool.give(piece(64)).is_empty());
        assert!(pool.give(piece(MOST_IDLE - 64)).is_empty());
        let surplus: Vec<usize> = pool.give(piece(100)).iter().map(|piece| piece.len).collect();
        assert_eq!(surplus, [64, 100]);
        assert_eq!(pool.idle_words(), MOST_IDLE - 64);
        let surplus: Vec<usize> = pool.give(piece(MOST_IDLE + 1)).iter().map(|piece| piece.len).collect();
        assert_eq!(surplus, [MOST_IDLE - 64, MOST_IDLE + 1]);
    }
}

//! Words of slots in shared memory, to which all threads of a block add bits, in 32-bit arithmetic.

use warpset_simt::shared::Shared;

/// A window's words, of 32 bits.
#[derive(Clone, Copy)]
pub struct Window(pub Shared<u32>);

#[cfg(feature = "bodies")]
impl Window {
    /// Adds bits to a word.
    ///
    /// # Safety
    /// - The word is in the window.
    /// - While threads add to it, there is no other access to it.
    #[inline(always)]
    pub unsafe fn or(self, index: u32, bits: u32) {
        if bits != 0 {
            // SAFETY: the contract is the same.
            unsafe { self.0.reduce_or(index, bits) };
        }
    }
}

/// Bits of a word of a window that are not written yet.
#[derive(Clone, Copy)]
pub struct Pending {
    /// Index of the word.
    pub index: u32,
    /// Bits of the word.
    pub bits: u32,
}

impl Pending {
    /// No bits.
    pub const NONE: Pending = Pending { index: 0, bits: 0 };

    /// Adds bits of a word; pending bits of another word are written first.
    ///
    /// # Safety
    /// The contract of [`Window::or`], for all words to which bits are added.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn add(&mut self, window: Window, index: u32, bits: u32) {
        if index != self.index {
            // SAFETY: the contract is the same.
            unsafe { self.flush(window) };
            *self = Pending { index, bits: 0 };
        }
        self.bits |= bits;
    }

    /// Adds up to 32 bits from bit `at` of the window on.
    ///
    /// # Safety
    /// The contract of [`add`](Self::add).
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn field(&mut self, window: Window, at: u32, width: u32, value: u32) {
        let (index, shift) = (at / 32, at % 32);
        // SAFETY: the contract is the same.
        unsafe {
            self.add(window, index, value << shift);
            if shift + width > 32 {
                self.add(window, index + 1, value >> (32 - shift));
            }
        }
    }

    /// Adds a value of any width.
    ///
    /// # Safety
    /// The contract of [`add`](Self::add).
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn wide_field(&mut self, window: Window, at: u32, width: u32, value: u64) {
        // SAFETY: the contract is the same.
        unsafe {
            self.field(window, at, width.min(32), value as u32);
            if width > 32 {
                self.field(window, at + 32, width - 32, (value >> 32) as u32);
            }
        }
    }

    /// Writes what is pending.
    ///
    /// # Safety
    /// The contract of [`add`](Self::add).
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn flush(&self, window: Window) {
        // SAFETY: the contract is the same.
        unsafe { window.or(self.index, self.bits) };
    }
}

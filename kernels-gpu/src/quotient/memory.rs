//! Quotient filter in kernels: its parameters in one word, its memory, fingerprints, and functions of the first free
//! slot.

use warpset_core::bits::{OrWords, ReadWords, WriteWords};
use warpset_core::quotient::Split;
use warpset_core::quotient::slots::Container;
use warpset_core::scan::{Lift, MaxPlus, Operator};
use warpset_simt::shared::Shared;
use warpset_simt::{Global, GlobalMut, atomic};

use crate::{block, look_back};

/// Parameters of a filter in one word, as kernels take them.
///
/// ```text
///  bits 0..8 quotient bits, 8..16 remainder bits, 16 packed, 17 duplicates are kept
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters(pub u32);

impl Parameters {
    /// Packs these parameters.
    pub const fn new(split: Split, container: Container, keeps_duplicates: bool) -> Parameters {
        let packed = matches!(container, Container::Packed) as u32;
        Parameters(split.quotient_bits | split.remainder_bits << 8 | packed << 16 | (keeps_duplicates as u32) << 17)
    }

    /// Returns the split.
    #[inline(always)]
    pub const fn split(self) -> Split {
        Split { quotient_bits: self.0 & 0xff, remainder_bits: self.0 >> 8 & 0xff }
    }

    /// Returns the container.
    #[inline(always)]
    pub const fn container(self) -> Container {
        if self.0 >> 16 & 1 != 0 { Container::Packed } else { Container::Bytes }
    }

    /// Returns whether duplicates are kept.
    #[inline(always)]
    pub const fn keeps_duplicates(self) -> bool {
        self.0 >> 17 & 1 != 0
    }
}

/// Words of a filter, not written while the kernel runs.
#[derive(Clone, Copy)]
pub struct ReadOnly(pub Global<u64>);

impl ReadWords for ReadOnly {
    #[inline(always)]
    fn word(&self, index: u64) -> u64 {
        // SAFETY: the walks of a sound filter stay within its words; every kernel here requires such a filter.
        unsafe { self.0.read_nc(index as usize) }
    }
}

/// Zero words to which all threads add bits.
#[cfg(feature = "bodies")]
pub struct Shareable(pub GlobalMut<u64>);

#[cfg(feature = "bodies")]
impl OrWords for Shareable {
    #[inline(always)]
    fn or(&mut self, index: u64, bits: u64) {
        // SAFETY: the layout writes slots of the filter only, and its words are accessed by such operations alone.
        unsafe { atomic::reduce_or(self.0.at(index as usize), bits) }
    }
}

/// Words of a filter while several threads change them, each the bits of its own slots.
///
/// A word has slots of different owners. Changes are atomic and flip the owner's bits only. A thread reads of its own
/// slots what it wrote there last, whatever happens to the others.
#[cfg(feature = "bodies")]
pub struct Owned(pub GlobalMut<u64>);

#[cfg(feature = "bodies")]
impl ReadWords for Owned {
    #[inline(always)]
    fn word(&self, index: u64) -> u64 {
        // SAFETY: the walks of a sound filter stay within its words; every kernel here requires such a filter with
        // words that are accessed by such operations alone.
        unsafe { atomic::load_relaxed(self.0.at(index as usize)) }
    }
}

#[cfg(feature = "bodies")]
impl WriteWords for Owned {
    #[inline(always)]
    fn replace(&mut self, index: u64, mask: u64, bits: u64) {
        let change = self.word(index) & mask ^ bits;
        if change != 0 {
            // SAFETY: as above; nothing else changes the bits of the mask.
            unsafe { atomic::reduce_xor(self.0.at(index as usize), change) }
        }
    }
}

/// Adds a thread's counts to the totals.
///
/// # Safety
/// `changed` is three words that are accessed atomically.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn put_counts(changed: GlobalMut<u64>, counts: [u64; 3]) {
    for i in 0..3 {
        if counts[i] != 0 {
            // SAFETY: the contract is the same.
            unsafe { atomic::reduce_add(changed.at(i), counts[i]) };
        }
    }
}

/// Memory that can be read by pairs of words.
pub trait Pairs: ReadWords {
    /// Returns words `index` and `index + 1`; `index` is even.
    fn pair(&self, index: u64) -> [u64; 2];
}

impl Pairs for ReadOnly {
    #[inline(always)]
    fn pair(&self, index: u64) -> [u64; 2] {
        // SAFETY: readers stay within the filter's words; their number is even, and they begin with an allocation.
        unsafe { self.0.read2_nc(index as usize) }
    }
}

/// Fingerprint in the width of sorts: 32 bits where they fit.
pub trait Fingerprint: warpset_simt::Word + Default + Ord {
    /// Makes a fingerprint of the low bits, which are all its bits.
    fn of(bits: u64) -> Self;
    /// Returns the fingerprint as 64 bits.
    fn bits(self) -> u64;
}
macro_rules! fingerprints {
    ($($word:ty)*) => {$(
        impl Fingerprint for $word {
            #[inline(always)]
            fn of(bits: u64) -> Self {
                bits as Self
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}
fingerprints! { u32 u64 }

/// Effect of some items on the first free slot.
#[derive(Clone, Copy, Debug)]
pub struct Fill(pub Lift<u64>);

/// Composition of [`Fill`]s.
pub struct Filling;

impl Operator for Filling {
    type Value = Fill;
    const IDENTITY: Fill = Fill(MaxPlus::<u64>::IDENTITY);
    #[inline(always)]
    fn combine(before: Fill, after: Fill) -> Fill {
        Fill(MaxPlus::<u64>::combine(before.0, after.0))
    }
}

impl block::Value for Fill {
    const SHARED_BYTES: u32 = <Lift<u64> as block::Value>::SHARED_BYTES;
    #[inline(always)]
    #[track_caller]
    unsafe fn shuffle_up(self, delta: u32) -> Fill {
        // SAFETY: the contract is the same.
        Fill(unsafe { self.0.shuffle_up(delta) })
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn shuffle_down(self, delta: u32) -> Fill {
        // SAFETY: the contract is the same.
        Fill(unsafe { self.0.shuffle_down(delta) })
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn shuffle_idx(self, lane: u32) -> Fill {
        // SAFETY: the contract is the same.
        Fill(unsafe { self.0.shuffle_idx(lane) })
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn to_shared(self, at: Shared<u32>) {
        // SAFETY: the contract is the same.
        unsafe { self.0.to_shared(at) }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn from_shared(at: Shared<u32>) -> Fill {
        // SAFETY: the contract is the same.
        Fill(unsafe { <Lift<u64> as block::Value>::from_shared(at) })
    }
}

/// Look-back of [`Fill`]s; slots and items are below 2^62.
impl look_back::Published for Fill {
    type Words = [u64; 2];
    #[inline(always)]
    fn pack(self) -> [u64; 2] {
        [self.0.floor, self.0.add]
    }
    #[inline(always)]
    fn unpack([floor, add]: [u64; 2]) -> Fill {
        Fill(Lift { floor, add })
    }
}

//! Kernels of range filters: codes of keys, the words of a filter from its codes, lookups of keys and ranges; hashes
//! and lookups of dynamic filters.

use warpset_core::bits::{ByHalves, ReadWords, lowest};
use warpset_core::hash::mix_spread;
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::Blocks;
use warpset_core::range::{HINTED, KeyForm, Lines, Shape};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::batch::results;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

/// Returns the place of this thread in a 1-D grid.
#[cfg(feature = "bodies")]
#[inline(always)]
fn own_place() -> usize {
    thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize
}

/// Words of a filter, which nothing writes. Those past the end are zero: damaged words lead nowhere else.
#[cfg(feature = "bodies")]
struct Words {
    words: Global<u64>,
    len: u64,
}

#[cfg(feature = "bodies")]
impl ReadWords for Words {
    #[inline(always)]
    fn word(&self, index: u64) -> u64 {
        // SAFETY: kernels of lookups alone make these, of words that are valid for `len`.
        if index < self.len { unsafe { self.words.read_nc(index as usize) } } else { 0 }
    }
}

#[cfg(feature = "bodies")]
impl Lines for Words {}

/// Returns the number of a key.
///
/// # Safety
/// `keys` is valid for `i` of this form, and not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn number_of(keys: Global<u64>, form: KeyForm, i: usize) -> u64 {
    // SAFETY: this function's contract.
    let bits = unsafe { if form.bits == 32 { keys.cast::<u32>().read_nc(i) as u64 } else { keys.read_nc(i) } };
    form.number(bits)
}

/// Returns the index of the first of `n` ascending codes for which `is_after`.
///
/// # Safety
/// `codes` is valid for `n`, and not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn first_code(codes: Global<u64>, n: usize, is_after: impl Fn(usize, u64) -> bool) -> usize {
    let (mut first, mut end) = (0, n);
    while first < end {
        let middle = first + (end - first) / 2;
        // SAFETY: `middle < n`.
        if is_after(middle, unsafe { codes.read_nc(middle) }) {
            end = middle;
        } else {
            first = middle + 1;
        }
    }
    first
}

/// Writes a field of bits that are zero.
///
/// # Safety
/// `words` is valid for the field, and accessed by atomics alone while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn or_field(words: GlobalMut<u64>, at: u64, width: u32, value: u64) {
    let (index, shift) = ((at / 64) as usize, at as u32 % 64);
    // SAFETY: this function's contract; the second word has a part of the field.
    unsafe {
        atomic::reduce_or(words.at(index), value << shift);
        if shift + width > 64 {
            atomic::reduce_or(words.at(index + 1), value >> (64 - shift));
        }
    }
}

kernel! {
    /// Writes the numbers of keys, which have the order of the keys.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `keys`: `n` keys of `form`, not written while the kernel runs; `numbers`: `n` words, used by this launch
    ///   alone.
    pub unsafe fn range_numbers(keys: Global<u64>, form: KeyForm, n: usize, numbers: GlobalMut<u64>) {
        let i = own_place();
        if i < n {
            // SAFETY: `i < n`.
            unsafe { numbers.write(i, number_of(keys, form, i)) };
        }
    }
}

kernel! {
    /// Writes the codes of keys, given their numbers.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `numbers`: `n` words from `least` on, not written while the kernel runs; `codes`: `n` words, used by this
    ///   launch alone.
    pub unsafe fn range_codes(numbers: Global<u64>, least: u64, shape: Shape, n: usize, codes: GlobalMut<u64>) {
        let i = own_place();
        if i < n {
            // SAFETY: `i < n`.
            unsafe { codes.write(i, shape.code(numbers.read_nc(i) - least)) };
        }
    }
}

kernel! {
    /// Writes upper and lower bits of codes.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per code, [`BLOCK`] threads per block.
    /// - `codes`: `n` ascending codes of the shape, which has `n` keys, not written while the kernel runs.
    /// - `words`: those of the shape, zero before, accessed by atomics alone while the kernel runs.
    pub unsafe fn range_write(codes: Global<u64>, n: usize, shape: Shape, words: GlobalMut<u64>) {
        let i = own_place();
        if i < n {
            // SAFETY: `i < n`, so its one and its lower bits are in the words.
            unsafe {
                let code = codes.read_nc(i);
                or_field(words, shape.one(i as u64, code), 1, 1);
                if shape.low_bits > 0 {
                    or_field(words, shape.low_place(i as u64), shape.low_bits, shape.low_of(code));
                }
            }
        }
    }
}

kernel! {
    /// Writes the number of ones before each block of upper bits, and the hints.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per block of upper bits and per hint, [`BLOCK`] threads per block.
    /// - The contract of [`range_write`].
    pub unsafe fn range_directories(codes: Global<u64>, n: usize, shape: Shape, words: GlobalMut<u64>) {
        let (i, blocks) = (own_place() as u64, shape.blocks());
        // SAFETY: the field is one of the shape's; the rest is this kernel's contract.
        unsafe {
            if i < blocks {
                let begin = shape.upper_place(i);
                let ones = first_code(codes, n, |index, code| shape.one(index as u64, code) >= begin);
                or_field(words, shape.rank_place(i), shape.rank_bits, ones as u64);
            } else if i - blocks < shape.hint_count() {
                let bucket = (i - blocks) * HINTED;
                let before = first_code(codes, n, |_, code| shape.bucket_number(code) >= bucket);
                let block = Ord::min(shape.block_at(bucket + before as u64), blocks - 1);
                or_field(words, shape.hint_place(bucket), shape.hint_bits, block);
            }
        }
    }
}

kernel! {
    /// Looks up ranges from a first to a last key: writes whether any key may lie in each, in the form `form`, or with
    /// `counted` an upper bound of their number.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per range, [`BLOCK`] threads per block.
    /// - `words`: those of the shape, from keys with numbers from `least` to `largest`, not written while the kernel
    ///   runs.
    /// - `firsts` and `lasts`: `n` keys of `form_of_keys`, not written while the kernel runs.
    /// - `answers`: as for [`results::put`], or with `counted` `n` words, used by this launch alone.
    #[launch_bounds(256, 3)]
    pub unsafe fn range_lookup(
        words: Global<u64>, shape: Shape, least: u64, largest: u64, firsts: Global<u64>, lasts: Global<u64>,
        form_of_keys: KeyForm, n: usize, counted: u32, form: u32, answers: GlobalMut<u64>,
    ) {
        let i = own_place();
        let words = Words { words, len: shape.words };
        let (mut any, mut count) = (false, 0);
        // SAFETY: `i < n` where a range is read and counted; all threads arrive at `put`; the rest is this kernel's
        // contract.
        unsafe {
            if i < n && shape.keys > 0 {
                let first = Ord::max(number_of(firsts, form_of_keys, i), least);
                let last = Ord::min(number_of(lasts, form_of_keys, i), largest);
                if first <= last {
                    let (first, last) = (first - least, last - least);
                    if counted != 0 {
                        count = shape.count_between(&words, first, last, ByHalves);
                    } else {
                        any = shape.any_between(&words, first, last, ByHalves);
                    }
                }
            }
            if counted == 0 {
                results::put(form, answers, i, n, any);
            } else if i < n {
                answers.write(i, count);
            }
        }
    }
}

/// Parameters of the fingerprints of a dynamic filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Fingerprints {
    /// Seed of the hash of prefixes, spread.
    pub spread: u64,
    /// Bits of a quotient.
    pub quotient_bits: u32,
    /// Bits of a remainder, which ends in a suffix.
    pub remainder_bits: u32,
    /// Bits of a suffix.
    pub suffix_bits: u32,
    /// Unused; zero.
    pub unused: u32,
}

const _: () = assert!(size_of::<Fingerprints>() == 24);

#[cfg(feature = "bodies")]
impl Fingerprints {
    #[inline(always)]
    fn split(&self) -> Split {
        Split { quotient_bits: self.quotient_bits, remainder_bits: self.remainder_bits }
    }

    /// Returns the fingerprint of a prefix, followed by a suffix.
    #[inline(always)]
    fn of(&self, prefix: u64, suffix: u64) -> u64 {
        self.split().fingerprint(mix_spread(prefix, self.spread)) & !lowest(self.suffix_bits) | suffix
    }

    /// Whether a filter has the fingerprint of a prefix with a suffix between two.
    #[inline(always)]
    fn any_between(&self, blocks: &Blocks<Words>, prefix: u64, (first, last): (u64, u64)) -> bool {
        let (split, fingerprint) = (self.split(), self.of(prefix, first));
        let quotient = split.quotient(fingerprint);
        if !blocks.is_occupied(quotient) {
            return false;
        }
        let start = blocks.find_run_start(quotient, ByHalves);
        if start >= blocks.slots() {
            return false; // only in damaged memory
        }
        // The run ascends.
        let (mut low, mut high) = (start, blocks.run_end(start));
        let least = split.remainder(fingerprint);
        while low < high {
            let middle = low + (high - low) / 2;
            if blocks.remainder(middle) < least {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let found = blocks.remainder(low);
        least <= found && found <= least - first + last
    }
}

kernel! {
    /// Writes hashes of keys that have their fingerprints in a dynamic filter.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `keys`: `n` keys of `form`, not written while the kernel runs; `hashes`: `n` words, used by this launch alone.
    pub unsafe fn range_dynamic_hashes(
        keys: Global<u64>, form: KeyForm, fingerprints: Fingerprints, n: usize, hashes: GlobalMut<u64>,
    ) {
        let i = own_place();
        if i < n {
            let bits = fingerprints.suffix_bits;
            // SAFETY: `i < n`.
            unsafe {
                let number = number_of(keys, form, i);
                let fingerprint = fingerprints.of(number >> bits, number & lowest(bits));
                hashes.write(i, fingerprint << (64 - fingerprints.split().fingerprint_bits()));
            }
        }
    }
}

kernel! {
    /// Looks up ranges from a first to a last key in a dynamic filter: writes whether any key may lie in each, in the
    /// form `form`. Ranges that reach over `most` prefixes or more get a "yes" if there are any `items`.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per range, [`BLOCK`] threads per block.
    /// - `words`: `len` words of `blocks` blocks of a filter without counters, not written while the kernel runs.
    /// - `firsts` and `lasts`: `n` keys of `form_of_keys`, not written while the kernel runs.
    /// - `answers`: as for [`results::put`].
    pub unsafe fn range_dynamic_lookup(
        words: Global<u64>, len: u64, blocks: u64, items: u64, fingerprints: Fingerprints, most: u64,
        firsts: Global<u64>, lasts: Global<u64>, form_of_keys: KeyForm, n: usize, form: u32, answers: GlobalMut<u64>,
    ) {
        let i = own_place();
        let blocks = Blocks::new(Words { words, len }, blocks, fingerprints.remainder_bits);
        let mut any = false;
        // SAFETY: `i < n` where a range is read; all threads arrive at `put`; the rest is this kernel's contract.
        unsafe {
            if i < n && items > 0 {
                let (first, last) = (number_of(firsts, form_of_keys, i), number_of(lasts, form_of_keys, i));
                let bits = fingerprints.suffix_bits;
                if first <= last {
                    let (from, further) = (first >> bits, (last >> bits) - (first >> bits));
                    any = further >= most;
                    let mut prefix = 0;
                    while !any && prefix <= further {
                        let low = if prefix == 0 { first & lowest(bits) } else { 0 };
                        let high = if prefix == further { last & lowest(bits) } else { lowest(bits) };
                        any = fingerprints.any_between(&blocks, from + prefix, (low, high));
                        prefix += 1;
                    }
                }
            }
            results::put(form, answers, i, n, any);
        }
    }
}

//! Hashes of byte strings in device memory, one thread per string.
//!
//! Strings have the layout of Apache Arrow: `n + 1` offsets into one buffer of bytes; string `i` ranges from offset `i`
//! to offset `i + 1`. Rao ("Implementation of the Bloom Filter on GPU using CUDA", 2010) hashes strings on the host and
//! names the time for that as the drawback of his filter; here the device hashes them.

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;
use warpset_core::hash::string::{self, StringHash};
use warpset_core::hash::{ByteSource, xxh3_128, xxh64};
use warpset_simt::{Global, GlobalMut, atomic, thread};

/// Threads per block.
pub const BLOCK: u32 = 256;
/// Number in place of that of a string hash: none is computed.
pub const NO_FUNCTION: u32 = !0;

/// String in device memory.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct DeviceString {
    bytes: Global<u8>,
    /// Words after the first `lead` bytes, which precede the first aligned address.
    words: Global<u32>,
    lead: usize,
    /// Whole words in `words`.
    whole: usize,
    start: usize,
    len: usize,
}

#[cfg(feature = "bodies")]
impl DeviceString {
    /// Returns the first of `N + 1` whole words that contain the `4 N` bytes at `offset`, and the position of the bytes
    /// in them, in bits.
    #[inline(always)]
    fn place<const N: usize>(&self, offset: usize) -> Option<(usize, u32)> {
        let at = (self.start + offset).wrapping_sub(self.lead);
        // Inside the lead `at` wraps around, and is far beyond the last word.
        if at / 4 < self.whole && self.whole - at / 4 > N { Some((at / 4, (at % 4) as u32 * 8)) } else { None }
    }

    /// Iterates over the bytes in order.
    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = u8> {
        (0..self.len).map(move |i| self.byte(i))
    }
}

#[cfg(feature = "bodies")]
impl ByteSource for DeviceString {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn byte(&self, offset: usize) -> u8 {
        // SAFETY: `string_at` keeps the string within the bytes, and callers stay below its length.
        unsafe { self.bytes.read_nc(self.start + offset) }
    }

    #[inline(always)]
    fn word32(&self, offset: usize) -> u32 {
        match self.place::<1>(offset) {
            // SAFETY: both words are whole ones.
            Some((w, shift)) => unsafe {
                let (low, high) = (self.words.read_nc(w), self.words.read_nc(w + 1));
                ((low as u64 | (high as u64) << 32) >> shift) as u32
            },
            None => (0..4).fold(0, |word, i| word | (self.byte(offset + i) as u32) << (8 * i as u32)),
        }
    }

    #[inline(always)]
    fn word64(&self, offset: usize) -> u64 {
        match self.place::<2>(offset) {
            // SAFETY: all three words are whole ones.
            Some((w, shift)) => unsafe {
                let (low, middle) = (self.words.read_nc(w) as u64, self.words.read_nc(w + 1) as u64);
                let high = self.words.read_nc(w + 2) as u64;
                let first = (low | middle << 32) >> shift;
                let second = (middle | high << 32) >> shift;
                first & 0xffff_ffff | second << 32
            },
            None => self.word32(offset) as u64 | (self.word32(offset + 4) as u64) << 32,
        }
    }
}

/// Returns string `i`, truncated to the available bytes.
///
/// # Safety
/// The strings satisfy the contract of [`strings_hash`]; `i` is below their number.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn string_at(
    offsets: Global<u64>,
    narrow: u32,
    bytes: Global<u8>,
    len: usize,
    lead: u32,
    i: usize,
) -> DeviceString {
    let lead = lead as usize;
    // SAFETY: there is one offset more than strings.
    let (start, end) = unsafe { (offset_at(offsets, narrow, i), offset_at(offsets, narrow, i + 1)) };
    let start = start.min(len as u64);
    let end = end.min(len as u64).max(start);
    DeviceString {
        bytes,
        words: bytes.offset(lead).cast::<u32>(),
        lead,
        whole: (len - lead) / 4,
        start: start as usize,
        len: (end - start) as usize,
    }
}

/// Returns offset `i`.
///
/// # Safety
/// There are more than `i` offsets, of 32 bits if `narrow` is not zero.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn offset_at(offsets: Global<u64>, narrow: u32, i: usize) -> u64 {
    // SAFETY: the contract of this function.
    unsafe { if narrow != 0 { offsets.cast::<u32>().read_nc(i) as u64 } else { offsets.read_nc(i) } }
}

/// Computes a string hash of Table 1, given by its number in [`StringHash`], of `len` bytes.
#[cfg(feature = "bodies")]
#[inline(always)]
fn string_hash(function: u32, len: usize, bytes: impl Iterator<Item = u8>) -> u32 {
    const JS: u32 = StringHash::Js as u32;
    const PJW: u32 = StringHash::Pjw as u32;
    const ELF: u32 = StringHash::Elf as u32;
    const BKDR: u32 = StringHash::Bkdr as u32;
    const SDBM: u32 = StringHash::Sdbm as u32;
    const DJB: u32 = StringHash::Djb as u32;
    const DEK: u32 = StringHash::Dek as u32;
    const BP: u32 = StringHash::Bp as u32;
    const FNV: u32 = StringHash::Fnv as u32;
    const AP: u32 = StringHash::Ap as u32;
    match function {
        JS => string::js(bytes),
        PJW | ELF => string::pjw(bytes),
        BKDR => string::bkdr(bytes),
        SDBM => string::sdbm(bytes),
        DJB => string::djb(bytes),
        DEK => string::dek(len, bytes),
        BP => string::bp(bytes),
        FNV => string::fnv(bytes),
        AP => string::ap(bytes),
        _ => string::rs(bytes),
    }
}

kernel! {
    /// Computes XXH64 with `seed` of `n` strings, and also the string hash `function` of Table 1, unless it is
    /// [`NO_FUNCTION`].
    ///
    /// Offsets that descend or exceed the bytes are safe: such a string is truncated to the available bytes.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `offsets`: `n + 1`, of 32 bits if `narrow` is not zero, else of 64.
    /// - `bytes`: valid for `len` reads; `lead`, at most `len` and below 4: the number of bytes before the first
    ///   address that is a multiple of 4.
    /// - `hashes`: valid for `n` writes, used by this launch alone; `string_hashes` likewise, unless `function` is
    ///   [`NO_FUNCTION`].
    /// - Offsets and bytes are not written while the kernel runs.
    pub unsafe fn strings_hash(
        offsets: Global<u64>, narrow: u32, bytes: Global<u8>, len: usize, lead: u32, n: usize, seed: u64,
        hashes: GlobalMut<u64>, function: u32, string_hashes: GlobalMut<u32>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; place `i` belongs to this thread.
            unsafe {
                let text = string_at(offsets, narrow, bytes, len, lead, i);
                hashes.write(i, xxh64(&text, seed));
                if function != NO_FUNCTION {
                    string_hashes.write(i, string_hash(function, text.len, text.iter()));
                }
            }
        }
    }

    /// Computes XXH3-128 with `seed` of `n` strings, two words each, the high half first.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - The strings as for [`strings_hash`].
    /// - `hashes`: valid for `2 * n` writes, at a multiple of 16 bytes, used by this launch alone.
    pub unsafe fn strings_hash128(
        offsets: Global<u64>, narrow: u32, bytes: Global<u8>, len: usize, lead: u32, n: usize, seed: u64,
        hashes: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; the two places from `2 i` on belong to this thread.
            unsafe {
                let hash = xxh3_128(&string_at(offsets, narrow, bytes, len, lead, i), seed);
                hashes.write2(2 * i, [(hash >> 64) as u64, hash as u64]);
            }
        }
    }

    /// Computes the string hash `function` of Table 1 of `n` integers, each as the string of the eight little-endian
    /// bytes of its value.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs.
    /// - `string_hashes`: valid for `n` writes, used by this launch alone.
    pub unsafe fn strings_hash_integers(
        keys: Global<u64>, kind: KeyKind, n: usize, function: u32, string_hashes: GlobalMut<u32>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread.
            unsafe {
                let word = word_at(keys, kind.class, i);
                let bytes = (0..8).map(|byte| (word >> (8 * byte)) as u8);
                string_hashes.write(i, string_hash(function, 8, bytes));
            }
        }
    }

    /// Lowers `first_bad` to the index of the first of `n` strings with offsets that descend or exceed `len` bytes.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `offsets`: as for [`strings_hash`]; `first_bad`: one word, only accessed atomically.
    pub unsafe fn strings_check(
        offsets: Global<u64>, narrow: u32, len: usize, n: usize, first_bad: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and there is one offset more.
            unsafe {
                let (start, end) = (offset_at(offsets, narrow, i), offset_at(offsets, narrow, i + 1));
                if start > end || end > len as u64 {
                    atomic::reduce_min(first_bad, i as u64);
                }
            }
        }
    }
}

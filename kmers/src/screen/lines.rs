//! Search for line ends, and check of letters, 64 or 32 bytes at a time.
//!
//! Lines of reads are short, so a call per line would cost as much as the search. These searches are inlined into the
//! loop over records, which is compiled for the instructions of the processor. They are methods of a value that exists
//! only with these instructions; closures would be compiled without them.

use memchr::memchr;

use crate::odd::is_plain;

/// Search for line ends.
pub(super) trait LineEnds: Copy {
    /// Whether counting line ends is faster than finding them one after the other.
    const COUNTS: bool;

    /// Returns the first line end at `at` or after it.
    fn next(self, text: &[u8], at: usize) -> Option<usize>;

    /// Counts line ends. No step depends on the one before, unlike a search for the next line end.
    fn count(self, text: &[u8]) -> u32;

    /// Whether all letters are A, C, G, T in either case.
    fn is_plain(self, letters: &[u8]) -> bool;
}

/// Search for any processor.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl LineEnds for Portable {
    const COUNTS: bool = false;

    #[inline(always)]
    fn next(self, text: &[u8], at: usize) -> Option<usize> {
        memchr(b'\n', text.get(at..)?).map(|len| at + len)
    }

    #[inline(always)]
    fn count(self, text: &[u8]) -> u32 {
        let mut count = 0;
        for &byte in text {
            count += u32::from(byte == b'\n');
        }
        count
    }

    #[inline(always)]
    fn is_plain(self, letters: &[u8]) -> bool {
        is_plain::<false>(letters)
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::*;

    use super::{LineEnds, Portable, is_plain};

    /// Search by AVX2; a value exists only if the processor has it.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(());

    /// Search by AVX-512 with instructions on bytes; a value exists only if the processor has them.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512(());

    impl Avx2 {
        pub(in super::super) fn detect() -> Option<Avx2> {
            let has = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("popcnt");
            has.then_some(Avx2(()))
        }
    }

    impl Avx512 {
        pub(in super::super) fn detect() -> Option<Avx512> {
            let has = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            has.then_some(Avx512(()))
        }
    }

    impl Avx2 {
        /// Returns one bit per byte, set if it ends a line.
        #[inline(always)]
        fn ends(self, block: &[u8; 32]) -> u32 {
            // SAFETY: `block` is an array of 32 bytes; `self` exists only if the processor has the instructions.
            unsafe {
                let block = _mm256_loadu_si256(block.as_ptr().cast());
                _mm256_movemask_epi8(_mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\n' as i8))) as u32
            }
        }
    }

    impl Avx512 {
        /// Returns one bit for each of the 64 bytes from `at` on, set if it ends a line; bytes past the end have none.
        /// `at` is below the length.
        #[inline(always)]
        fn ends(self, text: &[u8], at: usize) -> u64 {
            let left = text.len() - at;
            let there = if left < 64 { !(!0 << left) } else { !0u64 };
            // SAFETY: the mask leaves out bytes past the end; `self` exists only if the processor has the instructions.
            unsafe {
                let block = _mm512_maskz_loadu_epi8(there, text.as_ptr().add(at).cast());
                _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\n' as i8))
            }
        }
    }

    /// Base with the lower half of its code at each place of a table, in upper case; a byte without that half
    /// elsewhere.
    const BASES: [i8; 16] = [1, b'A' as i8, 0, b'C' as i8, b'T' as i8, 0, 0, b'G' as i8, 0, 0, 0, 0, 0, 0, 0, 0];

    impl Avx2 {
        /// Returns one bit per letter, set if it is none of A, C, G, T.
        #[inline(always)]
        fn odd(self, block: &[u8; 32]) -> u32 {
            // SAFETY: `block` is an array of 32 bytes, `BASES` one of 16; `self` exists only if the processor has the
            // instructions.
            unsafe {
                let letters = _mm256_loadu_si256(block.as_ptr().cast());
                let bases = _mm256_broadcastsi128_si256(_mm_loadu_si128(BASES.as_ptr().cast()));
                let upper = _mm256_and_si256(letters, _mm256_set1_epi8(!0x20));
                !_mm256_movemask_epi8(_mm256_cmpeq_epi8(upper, _mm256_shuffle_epi8(bases, letters))) as u32
            }
        }
    }

    impl LineEnds for Avx2 {
        const COUNTS: bool = true;

        #[inline(always)]
        fn next(self, text: &[u8], mut at: usize) -> Option<usize> {
            while let Some(block) = text.get(at..).and_then(|rest| rest.first_chunk::<32>()) {
                let ends = self.ends(block);
                if ends != 0 {
                    return Some(at + ends.trailing_zeros() as usize);
                }
                at += 32;
            }
            Portable.next(text, at)
        }

        #[inline(always)]
        fn count(self, text: &[u8]) -> u32 {
            let (blocks, rest) = text.as_chunks::<32>();
            let mut count = Portable.count(rest);
            for block in blocks {
                count += self.ends(block).count_ones();
            }
            count
        }

        #[inline(always)]
        fn is_plain(self, letters: &[u8]) -> bool {
            // The last block overlaps the one before.
            let Some(last) = letters.last_chunk::<32>() else { return is_plain::<false>(letters) };
            let mut odd = self.odd(last);
            for block in letters.as_chunks::<32>().0 {
                odd |= self.odd(block);
            }
            odd == 0
        }
    }

    impl LineEnds for Avx512 {
        const COUNTS: bool = true;

        #[inline(always)]
        fn next(self, text: &[u8], mut at: usize) -> Option<usize> {
            while at < text.len() {
                let ends = self.ends(text, at);
                if ends != 0 {
                    return Some(at + ends.trailing_zeros() as usize);
                }
                at += 64;
            }
            None
        }

        #[inline(always)]
        fn count(self, text: &[u8]) -> u32 {
            let (mut count, mut at) = (0, 0);
            while at < text.len() {
                count += self.ends(text, at).count_ones();
                at += 64;
            }
            count
        }

        #[inline(always)]
        fn is_plain(self, letters: &[u8]) -> bool {
            let (mut odd, mut at) = (0, 0);
            while at < letters.len() {
                let left = letters.len() - at;
                let there = if left < 64 { !(!0 << left) } else { !0u64 };
                // SAFETY: the mask leaves out bytes past the end, and `BASES` is an array of 16 bytes; `self` exists
                // only if the processor has the instructions.
                odd |= unsafe {
                    let block = _mm512_maskz_loadu_epi8(there, letters.as_ptr().add(at).cast());
                    let bases = _mm512_broadcast_i32x4(_mm_loadu_si128(BASES.as_ptr().cast()));
                    let upper = _mm512_and_si512(block, _mm512_set1_epi8(!0x20));
                    _mm512_mask_cmpneq_epi8_mask(there, upper, _mm512_shuffle_epi8(bases, block))
                };
                at += 64;
            }
            odd == 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: impl LineEnds) {
        for len in [0, 1, 31, 32, 33, 63, 64, 65, 100, 150, 300] {
            let mut letters: Vec<u8> = b"ACGTacgt".iter().copied().cycle().take(len).collect();
            assert!(lines.is_plain(&letters), "{len}");
            for place in 0..len {
                let base = letters[place];
                for letter in
                    [0, 1, b'\n', b' ', b'!', b'@', b'B', b'N', b'U', b'Q', b'S', b'W', b'0', 0x61 | 0x80, 0xff]
                {
                    letters[place] = letter;
                    assert!(!lines.is_plain(&letters), "{len} {place} {letter}");
                }
                letters[place] = base;
            }
        }
        let mut text = vec![b'A'; 300];
        for place in [0, 1, 31, 32, 63, 64, 65, 127, 128, 200, 298, 299] {
            text[place] = b'\n';
            for len in [place, place + 1, 300] {
                for at in [0, 1, 30, 64, place, place + 1, 299, 300, 301] {
                    let wanted = (at..len).find(|&i| text[i] == b'\n');
                    assert_eq!(lines.next(&text[..len], at), wanted, "{place} {len} {at}");
                    let count = text[at.min(len)..len].iter().filter(|&&byte| byte == b'\n').count();
                    assert_eq!(lines.count(&text[at.min(len)..len]), count as u32, "{place} {len} {at}");
                }
            }
            if place % 2 == 0 {
                text[place] = b'\x0b';
            }
        }
    }

    #[test]
    fn line_ends_are_found() {
        check(Portable);
        #[cfg(target_arch = "x86_64")]
        {
            x86::Avx2::detect().into_iter().for_each(check);
            x86::Avx512::detect().into_iter().for_each(check);
        }
    }
}

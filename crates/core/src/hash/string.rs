//! The eleven string hashes that Rao tried as first-level functions (Table 1 of the paper).
//!
//! Source: Arash Partow, "General Purpose Hash Function Algorithms" (the classic collection with these names), on
//! 32-bit unsigned integers. The paper does not print the functions. Characters are taken as unsigned bytes.

/// One of the string hashes of Rao's Table 1, in the order of that table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StringHash {
    /// Robert Sedgewick, "Algorithms in C".
    Rs = 0,
    /// Justin Sobel.
    Js = 1,
    /// Peter J. Weinberger.
    Pjw = 2,
    /// The hash of the ELF object format.
    Elf = 3,
    /// Brian Kernighan and Dennis Ritchie, "The C Programming Language", with the factor 131. The paper's choice.
    Bkdr = 4,
    /// The hash of the SDBM database.
    Sdbm = 5,
    /// Daniel J. Bernstein.
    Djb = 6,
    /// Donald E. Knuth, "The Art of Computer Programming", volume 3.
    Dek = 7,
    /// Bruno R. Preiss (the collection gives only the letters BP).
    Bp = 8,
    /// Fowler, Noll, Vo; this collection starts from zero.
    Fnv = 9,
    /// Arash Partow.
    Ap = 10,
}

impl StringHash {
    /// All of them, in the order of Table 1.
    pub const ALL: [StringHash; 11] = [
        StringHash::Rs,
        StringHash::Js,
        StringHash::Pjw,
        StringHash::Elf,
        StringHash::Bkdr,
        StringHash::Sdbm,
        StringHash::Djb,
        StringHash::Dek,
        StringHash::Bp,
        StringHash::Fnv,
        StringHash::Ap,
    ];

    /// Returns the function with this number, as stored in files.
    #[inline]
    pub const fn from_index(index: u8) -> Option<StringHash> {
        if (index as usize) < Self::ALL.len() { Some(Self::ALL[index as usize]) } else { None }
    }

    /// Returns the name in Table 1.
    pub const fn name(self) -> &'static str {
        match self {
            StringHash::Rs => "RSHash",
            StringHash::Js => "JSHash",
            StringHash::Pjw => "PJWHash",
            StringHash::Elf => "ELFHash",
            StringHash::Bkdr => "BKDRHash",
            StringHash::Sdbm => "SDBMHash",
            StringHash::Djb => "DJBHash",
            StringHash::Dek => "DEKHash",
            StringHash::Bp => "BPHash",
            StringHash::Fnv => "FNVHash",
            StringHash::Ap => "APHash",
        }
    }

    /// Hashes a string of `len` bytes ([`StringHash::Dek`] starts from the length).
    #[inline]
    pub fn hash(self, len: usize, bytes: impl Iterator<Item = u8>) -> u32 {
        match self {
            StringHash::Rs => rs(bytes),
            StringHash::Js => js(bytes),
            StringHash::Pjw => pjw(bytes),
            StringHash::Elf => elf(bytes),
            StringHash::Bkdr => bkdr(bytes),
            StringHash::Sdbm => sdbm(bytes),
            StringHash::Djb => djb(bytes),
            StringHash::Dek => dek(len, bytes),
            StringHash::Bp => bp(bytes),
            StringHash::Fnv => fnv(bytes),
            StringHash::Ap => ap(bytes),
        }
    }

    /// Hashes a slice like [`StringHash::hash`].
    #[inline]
    pub fn hash_bytes(self, bytes: &[u8]) -> u32 {
        self.hash(bytes.len(), bytes.iter().copied())
    }
}

/// Computes [`StringHash::Rs`].
#[inline]
pub fn rs(bytes: impl Iterator<Item = u8>) -> u32 {
    let mut factor = 63_689u32;
    bytes.fold(0u32, |hash, c| {
        let hash = hash.wrapping_mul(factor).wrapping_add(c as u32);
        factor = factor.wrapping_mul(378_551);
        hash
    })
}

/// Computes [`StringHash::Js`].
#[inline]
pub fn js(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(1_315_423_911, |hash: u32, c| hash ^ (hash << 5).wrapping_add(c as u32).wrapping_add(hash >> 2))
}

/// Computes [`StringHash::Pjw`].
#[inline]
pub fn pjw(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0, |hash: u32, c| {
        let hash = (hash << 4).wrapping_add(c as u32);
        let high = hash & 0xf000_0000;
        if high != 0 { (hash ^ (high >> 24)) & 0x0fff_ffff } else { hash }
    })
}

/// Computes [`StringHash::Elf`]: the same values as [`pjw`], written differently in the collection too.
#[inline]
pub fn elf(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0, |hash: u32, c| {
        let hash = (hash << 4).wrapping_add(c as u32);
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// Computes [`StringHash::Bkdr`].
#[inline]
pub fn bkdr(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0, |hash: u32, c| hash.wrapping_mul(131).wrapping_add(c as u32))
}

/// Computes [`StringHash::Sdbm`].
#[inline]
pub fn sdbm(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0, |hash: u32, c| (c as u32).wrapping_add(hash << 6).wrapping_add(hash << 16).wrapping_sub(hash))
}

/// Computes [`StringHash::Djb`].
#[inline]
pub fn djb(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(5381, |hash: u32, c| hash.wrapping_mul(33).wrapping_add(c as u32))
}

/// Computes [`StringHash::Dek`].
#[inline]
pub fn dek(len: usize, bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(len as u32, |hash, c| hash.rotate_left(5) ^ c as u32)
}

/// Computes [`StringHash::Bp`].
#[inline]
pub fn bp(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0, |hash: u32, c| (hash << 7) ^ c as u32)
}

/// Computes [`StringHash::Fnv`].
#[inline]
pub fn fnv(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0, |hash: u32, c| hash.wrapping_mul(0x811c_9dc5) ^ c as u32)
}

/// Computes [`StringHash::Ap`].
#[inline]
pub fn ap(bytes: impl Iterator<Item = u8>) -> u32 {
    let mut odd = false;
    bytes.fold(0xaaaa_aaaa, |hash: u32, c| {
        let step = if odd {
            !(hash << 11).wrapping_add(c as u32 ^ (hash >> 5))
        } else {
            (hash << 7) ^ (c as u32).wrapping_mul(hash >> 3)
        };
        odd = !odd;
        hash ^ step
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_by_hand() {
        assert_eq!(StringHash::Bkdr.hash_bytes(b"ab"), 97 * 131 + 98);
        assert_eq!(StringHash::Djb.hash_bytes(b"a"), 5381 * 33 + 97);
        assert_eq!(StringHash::Sdbm.hash_bytes(b"ab"), 97 * 65_599 + 98);
        assert_eq!(StringHash::Dek.hash_bytes(b"a"), 32 ^ 97);
        assert_eq!(StringHash::Bp.hash_bytes(b"ab"), (97 << 7) ^ 98);
        assert_eq!(StringHash::Rs.hash_bytes(b"a"), 97);
        assert_eq!(StringHash::Fnv.hash_bytes(b"a"), 97);
        assert_eq!(StringHash::Js.hash_bytes(b""), 1_315_423_911);
        assert_eq!(StringHash::Ap.hash_bytes(b""), 0xaaaa_aaaa);
    }

    #[test]
    fn elf_and_pjw_are_one_function() {
        for len in 0..41 {
            let bytes: [u8; 41] = core::array::from_fn(|i| (i * 37 + len) as u8);
            assert_eq!(StringHash::Elf.hash_bytes(&bytes[..len]), StringHash::Pjw.hash_bytes(&bytes[..len]));
        }
    }

    #[test]
    fn numbers_name_the_functions() {
        for (i, f) in StringHash::ALL.into_iter().enumerate() {
            assert_eq!(f as usize, i);
            assert_eq!(StringHash::from_index(i as u8), Some(f));
        }
        assert_eq!(StringHash::from_index(11), None);
    }
}

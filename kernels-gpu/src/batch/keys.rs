//! Hash of the i-th key in a kernel.
//!
//! [`KeyKind`] is a launch argument and not a version of the kernel: the branch is uniform and costs two or three
//! instructions, while every further version costs code.

use warpset_core::hash;
use warpset_simt::Global;

/// Type of a key in memory. Integers of any width are hashed by their value in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum KeyClass {
    /// Unsigned integers of 32 bits.
    U32,
    /// Signed integers of 32 bits.
    I32,
    /// Integers of 64 bits; signed ones have the same words.
    U64,
    /// 64-bit hashes.
    Hashes,
    /// Hashes of 128 bits: two words per key, the high half first.
    Hashes128,
}

impl KeyClass {
    /// Returns the bytes of a key.
    pub const fn bytes(self) -> usize {
        match self {
            KeyClass::U32 | KeyClass::I32 => 4,
            KeyClass::U64 | KeyClass::Hashes => 8,
            KeyClass::Hashes128 => 16,
        }
    }

    /// Returns the words of 64 bits that hold `keys` keys.
    pub const fn words(self, keys: usize) -> usize {
        (keys * self.bytes()).div_ceil(8)
    }

    /// Whether keys take 32 bits.
    #[inline(always)]
    const fn is_narrow(self) -> bool {
        matches!(self, KeyClass::U32 | KeyClass::I32)
    }

    /// Returns the mask for [`widened`]: all bits set for a class whose sign is extended to 64 bits, otherwise zero.
    #[inline(always)]
    const fn sign(self) -> u32 {
        if matches!(self, KeyClass::I32) { !0 } else { 0 }
    }
}

/// Hash function of a structure. A new one requires a variant here, and an arm in every `match` that the compiler then
/// rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HashFunction {
    /// XXH64 with seed 0 of the eight bytes of an integer.
    Xxh64,
    /// XXH64 of four bytes, as Parquet hashes a column of type INT32.
    Int32,
    /// The seeded finaliser; kernels take the spread seed.
    Seeded,
    /// The hash of 128 bits; kernels take the seed. [`KeyClass::Hashes`] are hashed again, by their value.
    Wide,
    /// The hash of 128 bits that takes half of the work for integers; otherwise as [`HashFunction::Wide`].
    WideShort,
    /// The bijection of exact quotient filters; kernels take the spread of the bijections. Only for integers.
    Permutation,
}

/// Type of a key and its hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct KeyKind {
    /// Type of the keys.
    pub class: KeyClass,
    /// Hash function of the structure.
    pub function: HashFunction,
}

const _: () = assert!(size_of::<KeyKind>() == 8);

impl KeyKind {
    /// 64-bit hashes that are used unchanged.
    pub const HASHES: KeyKind = KeyKind::new(KeyClass::Hashes, HashFunction::Seeded);

    /// Returns keys of a class for a structure's function.
    pub const fn new(class: KeyClass, function: HashFunction) -> KeyKind {
        KeyKind { class, function }
    }
}

/// Widens a 32-bit integer to 64 bits; `sign` has all bits set if its sign is extended, otherwise none.
#[inline(always)]
const fn widened(value: u32, sign: u32) -> u64 {
    let high = ((value as i32) >> 31) as u32 & sign;
    (high as u64) << 32 | value as u64
}

/// Reads key `i` as 64 bits: an integer's value, or a hash.
///
/// # Safety
/// `keys` points to more than `i` keys of that class, which is not [`KeyClass::Hashes128`].
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn word_at(keys: Global<u64>, class: KeyClass, i: usize) -> u64 {
    // SAFETY: `keys` points to keys of this class, by the contract of this function.
    unsafe {
        if class.is_narrow() {
            return widened(keys.cast::<u32>().read_nc(i), class.sign());
        }
        keys.read_nc(i)
    }
}

/// Hash function that is known at compile time; `S` is the spread seed, if the function has one.
pub trait Hasher: Copy {
    /// Returns the hash of key `i`.
    ///
    /// # Safety
    /// `i` is below the number of keys.
    unsafe fn hash(self, i: usize) -> u64;
}

macro_rules! hashers {
    ($($name:ident($key:ty $(, $field:ident: $type:ty)*): |$value:ident| $hash:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name {
            keys: Global<$key>,
            $($field: $type,)*
        }
        impl Hasher for $name {
            #[inline(always)]
            unsafe fn hash(self, i: usize) -> u64 {
                // SAFETY: `i` is in range, by the contract of this function.
                let $value = unsafe { self.keys.read_nc(i) };
                $(let $field = self.$field;)*
                $hash
            }
        }
    )*};
}
hashers! {
    Plain(u64): |value| value;
    Xxh64Wide(u64): |value| hash::xxh64_u64(value, 0);
    Xxh64Narrow(u32, sign: u32): |value| hash::xxh64_u64(widened(value, sign), 0);
    MixWide(u64, spread: u64): |value| hash::mix_spread(value, spread);
    MixNarrow(u32, sign: u32, spread: u64): |value| hash::mix_spread(widened(value, sign), spread);
}

/// Work that is generic over the hash function.
#[cfg(feature = "bodies")]
pub trait WithHasher {
    /// Runs with `hasher`.
    ///
    /// # Safety
    /// The contract that `work` had when it was passed to [`with_hasher`].
    unsafe fn run<H: Hasher>(self, hasher: H);
}

/// Branches once on the kind of key, so that loops inside `work` contain no branch. Only for functions whose hosts can
/// group keys (`Hashing::can_group`): the kernels are short of registers, and two more functions would spill some.
///
/// # Safety
/// `keys` points to keys of that kind, as many as `work` reads; the class is not [`KeyClass::Hashes128`], and the
/// function is [`HashFunction::Xxh64`] or [`HashFunction::Seeded`].
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn with_hasher(keys: Global<u64>, kind: KeyKind, spread: u64, work: impl WithHasher) {
    use {HashFunction::*, KeyClass::*};
    // SAFETY: `keys` points to keys of this kind, by the contract of this function.
    unsafe {
        let sign = kind.class.sign();
        match (kind.class, kind.function) {
            (U64, Xxh64) => work.run(Xxh64Wide { keys }),
            (U32 | I32, Xxh64) => work.run(Xxh64Narrow { keys: keys.cast(), sign }),
            (U64, Seeded) => work.run(MixWide { keys, spread }),
            (U32 | I32, Seeded) => work.run(MixNarrow { keys: keys.cast(), sign, spread }),
            (Hashes | Hashes128, _) | (_, Int32 | Wide | WideShort | Permutation) => work.run(Plain { keys }),
        }
    }
}

/// Returns the hash of key `i` for Parquet's filter.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind; the class is not [`KeyClass::Hashes128`], and the function is
/// [`HashFunction::Xxh64`] or [`HashFunction::Int32`], unless the class is [`KeyClass::Hashes`].
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn xxh64_at(keys: Global<u64>, kind: KeyKind, i: usize) -> u64 {
    use {HashFunction::*, KeyClass::*};
    // SAFETY: `keys` points to keys of this kind, by the contract of this function.
    let word = unsafe { word_at(keys, kind.class, i) };
    match (kind.class, kind.function) {
        (Hashes | Hashes128, _) => word,
        (_, Int32) => hash::xxh64_int32(word),
        (_, Xxh64 | Seeded | Wide | WideShort | Permutation) => hash::xxh64_u64(word, 0),
    }
}

/// Returns the hash of key `i` for filters with a seeded function.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind; the class is not [`KeyClass::Hashes128`], and the function is
/// [`HashFunction::Seeded`], unless the class is [`KeyClass::Hashes`].
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn mix_at(keys: Global<u64>, kind: KeyKind, spread: u64, i: usize) -> u64 {
    use {HashFunction::*, KeyClass::*};
    // SAFETY: `keys` points to keys of this kind, by the contract of this function.
    let word = unsafe { word_at(keys, kind.class, i) };
    match (kind.class, kind.function) {
        (Hashes | Hashes128, _) => word,
        (_, Seeded | Xxh64 | Int32 | Wide | WideShort | Permutation) => hash::mix_spread(word, spread),
    }
}

/// Keys as the host passes them to a kernel.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub struct KeySlice {
    /// Memory of the keys.
    pub keys: Global<u64>,
    /// Type and hash function of the keys.
    pub kind: KeyKind,
    /// The spread seed of [`HashFunction::Seeded`] and [`HashFunction::Permutation`]; 0 for others.
    pub spread: u64,
    /// The seed of [`HashFunction::Wide`] and [`HashFunction::WideShort`]; 0 for others, and for hashes that already
    /// depend on the seed.
    pub seed: u64,
}

#[cfg(not(target_arch = "nvptx64"))]
impl KeySlice {
    /// Returns keys of this kind, with a spread and a seed of 0; rounds the length up where two `u32` keys share a
    /// word.
    pub fn new<T>(keys: Global<T>, kind: KeyKind) -> KeySlice {
        let words = (keys.len() * size_of::<T>()).div_ceil(8);
        KeySlice { keys: Global::from_raw_parts(keys.as_ptr().cast(), words), kind, spread: 0, seed: 0 }
    }

    /// Returns 64-bit hashes that are used unchanged.
    pub fn hashes(hashes: Global<u64>) -> KeySlice {
        KeySlice::new(hashes, KeyKind::HASHES)
    }
}

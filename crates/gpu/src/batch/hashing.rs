//! A structure's hash function for keys, on either side of the bus.

use rayon::prelude::*;
use warpset_base::key::sealed::Raw;
use warpset_base::key::{Hash128, Key, Seed};
use warpset_core::hash::string::StringHash;
use warpset_kernels::batch::keys::{HashFunction, KeyKind, KeySlice};
use warpset_simt::Global;

use super::KeyClass;

/// A structure's hash function for keys. Integers and hashes go to kernels unchanged, and kernels hash them; other keys
/// of the host are hashed there, because then 8 bytes per key cross the bus instead of the whole key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    function: Function,
    strings: Option<StringHash>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Xxh64,
    Int32,
    Seeded(Seed),
    /// The hash of 128 bits.
    Wide(u64),
    /// The hash of 128 bits that is short for integers.
    WideShort(u64),
    /// The value of an integer, and XXH64 with seed 0 of other keys; kernels hash it again.
    Word,
}

/// Keys that one task copies or hashes on the host.
const TASK: usize = 1 << 15;
/// Number of keys that are hashed on the calling thread: waking others takes longer.
const FEW: usize = 1 << 10;

impl Hashing {
    /// Hashes keys by XXH64 with seed 0, integers by their value in eight bytes.
    pub const fn xxh64() -> Hashing {
        Hashing { function: Function::Xxh64, strings: None }
    }

    /// Hashes keys by XXH64 with seed 0, integers as four bytes, as in a Parquet column of type INT32.
    pub const fn int32() -> Hashing {
        Hashing { function: Function::Int32, strings: None }
    }

    /// Hashes keys by the seeded hash of 64 bits.
    pub const fn seeded(seed: u64) -> Hashing {
        Hashing { function: Function::Seeded(Seed::new(seed)), strings: None }
    }

    /// Hashes keys by the seeded hash of 128 bits, for functions that number keys.
    pub const fn wide(seed: u64) -> Hashing {
        Hashing { function: Function::Wide(seed), strings: None }
    }

    /// Hashes keys by the seeded hash of 128 bits that takes half of the work for integers.
    pub const fn wide_short(seed: u64) -> Hashing {
        Hashing { function: Function::WideShort(seed), strings: None }
    }

    /// Hashes one key to 128 bits; functions of 64 bits give 0 and their hash.
    #[inline]
    pub fn of128<K: Key + ?Sized>(&self, key: &K) -> Hash128 {
        match self.function {
            Function::Wide(seed) => key.hash128(seed),
            Function::WideShort(seed) => key.short_hash128(seed),
            _ => Hash128 { high: 0, low: self.of(key) },
        }
    }

    /// Converts integers to their value in 64 bits and other keys by XXH64 with seed 0, for structures with kernels
    /// that hash that word again.
    pub const fn word() -> Hashing {
        Hashing { function: Function::Word, strings: None }
    }

    /// Adds a string hash of 32 bits, which kernels get beside each key.
    pub const fn with_string_hash(self, function: StringHash) -> Hashing {
        Hashing { strings: Some(function), ..self }
    }

    /// Returns the string hash that kernels get beside every key, if there is one.
    pub const fn string_hash(&self) -> Option<StringHash> {
        self.strings
    }

    /// Hashes one key; of a hash of 128 bits, returns the low half.
    #[inline]
    pub fn of<K: Key + ?Sized>(&self, key: &K) -> u64 {
        match self.function {
            Function::Xxh64 => key.xxh64(),
            Function::Int32 => key.int32_hash(),
            Function::Seeded(seed) => seed.hash(key),
            Function::Wide(_) | Function::WideShort(_) => self.of128(key).low,
            Function::Word => word_of(key),
        }
    }

    /// Describes keys of a class for the kernels that hash them.
    pub fn key_slice<T>(&self, class: KeyClass, keys: Global<T>) -> KeySlice {
        let (function, spread, seed) = match self.function {
            // Kernels of structures that take words do not use the function.
            Function::Xxh64 | Function::Word => (HashFunction::Xxh64, 0, 0),
            Function::Int32 => (HashFunction::Int32, 0, 0),
            Function::Seeded(seed) => (HashFunction::Seeded, seed.spread(), 0),
            // The host applies the seed to the hashes of 128 bits that it passes on.
            Function::Wide(seed) => (HashFunction::Wide, 0, if class == KeyClass::Hashes128 { 0 } else { seed }),
            Function::WideShort(seed) => {
                (HashFunction::WideShort, 0, if class == KeyClass::Hashes128 { 0 } else { seed })
            }
        };
        KeySlice { spread, seed, ..KeySlice::new(keys, KeyKind::new(class, function)) }
    }

    /// Whether the kernels that group keys by hash support this function.
    pub const fn can_group(&self) -> bool {
        !matches!(self.function, Function::Int32 | Function::Wide(_) | Function::WideShort(_) | Function::Word)
    }

    /// Chooses how keys of the host travel: unchanged, or as hashes made there.
    pub(super) fn class_of<K: Key>(&self, keys: &[K]) -> KeyClass {
        match K::raw(keys) {
            Raw::U32(_) => KeyClass::U32,
            Raw::I32(_) => KeyClass::I32,
            Raw::U64(_) => KeyClass::U64,
            Raw::Other if matches!(self.function, Function::Wide(_) | Function::WideShort(_)) => KeyClass::Hashes128,
            Raw::Hashes(_) | Raw::Other => KeyClass::Hashes,
        }
    }

    /// Returns the seed of byte strings.
    pub(super) const fn bytes_seed(&self) -> u64 {
        match self.function {
            Function::Xxh64 | Function::Int32 | Function::Word => 0,
            Function::Seeded(seed) => seed.get(),
            Function::Wide(seed) | Function::WideShort(seed) => seed,
        }
    }

    /// Writes keys in the form of their transfer: integers and hashes unchanged, of other keys their hashes. `to` has
    /// room for them.
    pub(super) fn write<K: Key>(&self, keys: &[K], to: &mut [u64]) {
        match K::raw(keys) {
            Raw::U32(keys) | Raw::I32(keys) => copy_many(&mut bytemuck::cast_slice_mut(to)[..keys.len()], keys),
            Raw::U64(keys) | Raw::Hashes(keys) => copy_many(&mut to[..keys.len()], keys),
            Raw::Other => match self.function {
                Function::Xxh64 => each(keys, to, |key| key.xxh64()),
                Function::Int32 => each(keys, to, |key| key.int32_hash()),
                Function::Seeded(seed) => each(keys, to, |key| seed.hash(key)),
                Function::Word => each(keys, to, |key| word_of(key)),
                Function::Wide(_) | Function::WideShort(_) => {
                    each(keys, bytemuck::cast_slice_mut::<u64, [u64; 2]>(to), |key| {
                        let hash = self.of128(key);
                        [hash.high, hash.low]
                    });
                }
            },
        }
    }
}

/// Returns the value of an integer, and XXH64 with seed 0 of another key.
#[inline]
fn word_of<K: Key + ?Sized>(key: &K) -> u64 {
    key.word().unwrap_or_else(|| key.xxh64())
}

/// Writes the result of `of` for each key. The calling thread alone handles few keys.
pub(super) fn each<K: Key, T: Send>(keys: &[K], to: &mut [T], of: impl Fn(&K) -> T + Sync) {
    if keys.len() <= FEW {
        to.iter_mut().zip(keys).for_each(|(to, key)| *to = of(key));
    } else {
        to.par_iter_mut().with_min_len(TASK / 64).zip(keys).for_each(|(to, key)| *to = of(key));
    }
}

/// Copies between slices of the same length, on enough threads to keep up with the bus.
///
/// # Panics
/// If they differ in length.
pub fn copy_many<T: Copy + Send + Sync>(to: &mut [T], from: &[T]) {
    assert_eq!(from.len(), to.len(), "a copy between slices");
    if from.len() <= TASK {
        to.copy_from_slice(from);
    } else {
        to.par_chunks_mut(TASK).zip(from.par_chunks(TASK)).for_each(|(to, from)| to.copy_from_slice(from));
    }
}

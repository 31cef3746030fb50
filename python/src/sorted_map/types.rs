//! Types of keys and values of dictionaries, chosen by name at run time.

use std::path::Path;

use warpset::gpu::Device;
use warpset::lsm::{self, Bitmap, FileError, MappedLsm, OrderedKey, gpu};
use warpset_base::file::{BYTE_STRING, SIGNED};

use super::cell::{Cell, Key, Value};
use crate::anywhere;
use crate::error::{Failure, Result};
use crate::structure::{Forms, Structure, Where};

/// End of a range; `pyo3::Bound` is unrelated.
pub use std::ops::Bound as End;

/// Call of the macro `$then` with its arguments and all pairs of types. Each pair costs a copy of all code for host and
/// device, so other types use a pair that has space for them.
macro_rules! each_pair {
    ($then:ident!($($arguments:tt)*)) => {
        $then! { ($($arguments)*)
            U64ToU64(u64, u64) U64ToU32(u64, u32) U64Set(u64, ())
            U32ToU32(u32, u32)
            I64ToU64(i64, u64) I64Set(i64, ())
            U64ToV16(u64, [u8; 16]) U64ToV32(u64, [u8; 32])
            S8ToU64([u8; 8], u64) S8ToV16([u8; 8], [u8; 16])
            V16ToU64([u8; 16], u64)
        }
    };
}

/// Runs `$body` with the name `$types` for the types of a pair.
macro_rules! by_pair {
    ($pair:expr, |$types:ident| $body:expr) => {
        $crate::sorted_map::types::each_pair!(match_pair!($pair, |$types| $body))
    };
}
macro_rules! match_pair {
    (($pair:expr, |$types:ident| $body:expr) $($name:ident($key:ty, $value:ty))*) => {
        match $pair {
            $($crate::sorted_map::types::Pair::$name => {
                type $types = ($key, $value);
                $body
            })*
        }
    };
}
pub(super) use {by_pair, each_pair, match_pair};

/// Types of keys and values.
pub trait Types: 'static {
    /// The type of keys.
    type K: Key;
    /// The type of values.
    type V: Value;

    /// Returns the dictionary with these types, if it has them.
    fn of<F: Family>(typed: &Typed<F>) -> Result<&F::Of<Self::K, Self::V>>;
    /// Returns the dictionary with these types for changes, if it has them.
    fn of_mut<F: Family>(typed: &mut Typed<F>) -> Result<&mut F::Of<Self::K, Self::V>>;
    /// Wraps a dictionary with these types.
    fn wrap<F: Family>(map: F::Of<Self::K, Self::V>) -> Typed<F>;
}

/// Place of dictionaries.
pub trait Family: 'static {
    /// Dictionary in this place.
    type Of<K: Key, V: Value>: Send + Sync;
}

macro_rules! typed {
    (() $($name:ident($key:ty, $value:ty))*) => {
        /// Pair of types.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Pair { $($name,)* }

        impl Pair {
            /// All pairs.
            pub const ALL: &[Pair] = &[$(Pair::$name,)*];
        }

        /// A dictionary with some pair of types.
        pub enum Typed<F: Family> { $($name(F::Of<$key, $value>),)* }

        impl<F: Family> Typed<F> {
            /// Returns the pair of types.
            pub fn pair(&self) -> Pair {
                match self { $(Typed::$name(_) => Pair::$name,)* }
            }
        }

        impl Clone for Typed<OnHost> {
            fn clone(&self) -> Self {
                match self { $(Typed::$name(map) => Typed::$name(map.clone()),)* }
            }
        }

        impl Typed<OnDevice> {
            fn device(&self) -> &Device {
                match self { $(Typed::$name(map) => map.device(),)* }
            }
        }

        $(impl Types for ($key, $value) {
            type K = $key;
            type V = $value;

            fn of<F: Family>(typed: &Typed<F>) -> Result<&F::Of<$key, $value>> {
                match typed {
                    Typed::$name(map) => Ok(map),
                    other => Err(other_types(Pair::$name, other.pair())),
                }
            }

            fn of_mut<F: Family>(typed: &mut Typed<F>) -> Result<&mut F::Of<$key, $value>> {
                match typed {
                    Typed::$name(map) => Ok(map),
                    other => Err(other_types(Pair::$name, other.pair())),
                }
            }

            fn wrap<F: Family>(map: F::Of<$key, $value>) -> Typed<F> {
                Typed::$name(map)
            }
        })*
    };
}
each_pair!(typed!());

fn other_types(here: Pair, there: Pair) -> Failure {
    Failure::value(format!(
        "a map of {} and one of {}: make both with the same `key=` and `value=`",
        here.describe(),
        there.describe()
    ))
}

impl Pair {
    /// Returns the names of the types.
    pub fn names(self) -> (&'static str, Option<&'static str>) {
        by_pair!(self, |T| (<<T as Types>::K as Cell>::DTYPE.unwrap_or_default(), <<T as Types>::V as Cell>::DTYPE))
    }

    /// Returns the pair with these names.
    pub fn named(key: &str, value: Option<&str>) -> Result<Pair> {
        Pair::ALL.iter().copied().find(|pair| pair.names() == (key, value)).ok_or_else(|| {
            let known: Vec<String> = Pair::ALL.iter().map(|pair| pair.describe()).collect();
            let value = value.unwrap_or("None");
            Failure::value(format!("no map from {key} to {value}: there are maps from {}", known.join(", ")))
        })
    }

    /// Formats the names for messages.
    pub fn describe(self) -> String {
        let (key, value) = self.names();
        format!("{key} to {}", value.unwrap_or("None"))
    }

    /// Returns the types as in headers of files.
    fn saved(self) -> [u64; 2] {
        fn of<T: Types>() -> [u64; 2] {
            let kind = match T::K::IS_ROW {
                true => BYTE_STRING,
                false if T::K::MIN == T::K::default() => 0,
                false => SIGNED,
            };
            [size_of::<T::K>() as u64 | kind, size_of::<T::V>() as u64]
        }
        by_pair!(self, |T| of::<T>())
    }

    /// Reads a saved dictionary by `read`, with the types in its header.
    fn of_saved<R>(mut read: impl FnMut(Pair) -> Result<R, lsm::Error>) -> Result<R> {
        let first = read(Pair::U64ToU64);
        match first.as_ref().err().and_then(Pair::in_header) {
            Some(pair) => Ok(read(pair)?),
            None => Ok(first?),
        }
    }

    fn in_header(error: &lsm::Error) -> Option<Pair> {
        let lsm::Error::File(error) = error else { return None };
        let FileError::WrongStructure { expected, found } = error.reason() else { return None };
        let elements = found.elements.filter(|_| found.number == expected.number)?;
        Pair::ALL.iter().copied().find(|pair| pair.saved() == elements)
    }
}

/// Answer of the host, or of a device, which may fail.
pub trait Settled {
    /// The answer.
    type Answer;
    /// Returns the answer, or its error.
    fn settled(self) -> Result<Self::Answer>;
}

impl<T> Settled for Result<T, lsm::Error> {
    type Answer = T;
    fn settled(self) -> Result<T> {
        Ok(self?)
    }
}

macro_rules! settled {
    ($([$($item:ident)?] $answer:ty;)*) => {$(
        impl$(<$item>)? Settled for $answer {
            type Answer = $answer;
            fn settled(self) -> Result<$answer> {
                Ok(self)
            }
        }
    )*};
}
settled! {
    [] u64;
    [] Bitmap;
    [T] Vec<T>;
    [T] Option<T>;
}

/// In host memory.
pub struct OnHost;
impl Family for OnHost {
    type Of<K: Key, V: Value> = lsm::Lsm<K, V>;
}

/// In a mapped file.
pub struct InFile;
impl Family for InFile {
    type Of<K: Key, V: Value> = MappedLsm<K, V>;
}

/// On a device.
pub struct OnDevice;
impl Family for OnDevice {
    type Of<K: Key, V: Value> = gpu::Lsm<K, V>;
}

/// Compares types, keys and values.
impl PartialEq for Typed<OnHost> {
    fn eq(&self, other: &Self) -> bool {
        by_pair!(self.pair(), |T| match (T::of(self), T::of(other)) {
            (Ok(here), Ok(there)) => here.iter().eq(there.iter()),
            _ => false,
        })
    }
}

/// Types of the class.
pub struct Sorted;

impl Forms for Sorted {
    type Host = Typed<OnHost>;
    type Mapped = Typed<InFile>;
    type Device = Typed<OnDevice>;

    fn to_device(host: &Typed<OnHost>, device: &Device) -> Result<Typed<OnDevice>> {
        by_pair!(host.pair(), |T| Ok(T::wrap(T::of(host)?.to_device(device)?)))
    }
    fn to_host(there: &Typed<OnDevice>) -> Result<Typed<OnHost>> {
        by_pair!(there.pair(), |T| Ok(T::wrap(T::of(there)?.to_host()?)))
    }
    fn device(there: &Typed<OnDevice>) -> &Device {
        there.device()
    }
    fn copy(host: &Typed<OnHost>) -> Typed<OnHost> {
        host.clone()
    }
    fn to_bytes(host: &Typed<OnHost>) -> Result<Vec<u8>> {
        by_pair!(host.pair(), |T| Ok(T::of(host)?.to_bytes()))
    }
    fn from_bytes(bytes: &[u8]) -> Result<Typed<OnHost>> {
        Pair::of_saved(|pair| by_pair!(pair, |T| Lsm::<T>::from_bytes(bytes).map(T::wrap)))
    }
    fn save(host: &Typed<OnHost>, path: &Path) -> Result<()> {
        by_pair!(host.pair(), |T| Ok(T::of(host)?.save(path)?))
    }
    fn load(path: &Path) -> Result<Typed<OnHost>> {
        Pair::of_saved(|pair| by_pair!(pair, |T| Lsm::<T>::load(path).map(T::wrap)))
    }
    unsafe fn map(path: &Path) -> Result<Typed<InFile>> {
        // SAFETY: the caller guarantees that the file does not change.
        Pair::of_saved(|pair| by_pair!(pair, |T| unsafe { Lsm::<T>::map(path) }.map(T::wrap)))
    }
}

impl Structure for Sorted {
    const NAME: &'static str = "SortedMap";

    fn describe(value: &Where<Sorted>) -> Result<String> {
        let (stored, bytes) = anywhere!(value, |map| by_pair!(map.pair(), |T| {
            let map = T::of(map)?;
            (map.resident_len(), map.memory_bytes())
        }));
        Ok(format!("{}, {stored} elements, {bytes} bytes", anywhere!(value, |map| map.pair()).describe()))
    }
}

/// Dictionary of these types in host memory.
pub type Lsm<T> = lsm::Lsm<<T as Types>::K, <T as Types>::V>;

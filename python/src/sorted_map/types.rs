//! The types of keys and values that dictionaries have, chosen by name when one is made.

use std::path::Path;
use std::sync::Arc;

use warpset::gpu::Device;
use warpset::lsm::{self, Bitmap, FileError, MappedLsm, OrderedKey, Ranges, gpu};
use warpset_base::file::SIGNED;

use super::cell::{Cell, Key, Value};
use crate::anywhere;
use crate::error::{Failure, Result};
use crate::structure::{Structure, Where, read_only};

/// One end of a range; `pyo3::Bound` is another thing.
pub use std::ops::Bound as End;

/// Gives the macro `$then` its arguments and all pairs of types.
macro_rules! each_pair {
    ($then:ident!($($arguments:tt)*)) => {
        $then! { ($($arguments)*)
            U32ToU32(u32, u32) U32ToU64(u32, u64) U32Set(u32, ())
            U64ToU32(u64, u32) U64ToU64(u64, u64) U64Set(u64, ())
            I32ToU32(i32, u32) I32ToU64(i32, u64) I32Set(i32, ())
            I64ToU32(i64, u32) I64ToU64(i64, u64) I64Set(i64, ())
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
    /// Of keys.
    type K: Key;
    /// Of values.
    type V: Value;

    /// The dictionary with these types, if it has them.
    fn of<F: Family>(typed: &Typed<F>) -> Result<&F::Of<Self::K, Self::V>>;
    /// `of`, to change it.
    fn of_mut<F: Family>(typed: &mut Typed<F>) -> Result<&mut F::Of<Self::K, Self::V>>;
    /// A dictionary with these types.
    fn wrap<F: Family>(map: F::Of<Self::K, Self::V>) -> Typed<F>;
}

/// Where dictionaries are.
pub trait Family: 'static {
    /// Such a dictionary.
    type Of<K: Key, V: Value>: Answers<K, V>;
}

macro_rules! typed {
    (() $($name:ident($key:ty, $value:ty))*) => {
        /// The types of a dictionary.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Pair { $($name,)* }

        impl Pair {
            /// All that there are.
            pub const ALL: &[Pair] = &[$(Pair::$name,)*];
        }

        /// A dictionary of some types.
        pub enum Typed<F: Family> { $($name(F::Of<$key, $value>),)* }

        impl<F: Family> Typed<F> {
            /// Its types.
            pub fn pair(&self) -> Pair {
                match self { $(Typed::$name(_) => Pair::$name,)* }
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
    Failure::value(format!("a map of {} and one of {}: make both with the same `key=` and `value=`", here.describe(), there.describe()))
}

impl Pair {
    /// The names of the types.
    pub fn names(self) -> (&'static str, Option<&'static str>) {
        by_pair!(self, |T| (<<T as Types>::K as Cell>::DTYPE.unwrap_or_default(), <<T as Types>::V as Cell>::DTYPE))
    }

    /// The types of these names.
    pub fn named(key: &str, value: Option<&str>) -> Result<Pair> {
        Pair::ALL.iter().copied().find(|pair| pair.names() == (key, value)).ok_or_else(|| {
            let value = value.map_or("None".into(), |value| format!("{value:?}"));
            Failure::value(format!(
                "key={key:?}, value={value}: keys are \"uint64\", \"uint32\", \"int64\" or \"int32\"; values \"uint64\", \
                 \"uint32\" or None"
            ))
        })
    }

    /// The names for messages.
    pub fn describe(self) -> String {
        let (key, value) = self.names();
        format!("{key} to {}", value.unwrap_or("None"))
    }

    /// The types as they stand in headers of files.
    fn saved(self) -> [u64; 2] {
        fn of<T: Types>() -> [u64; 2] {
            let sign = if T::K::MIN == T::K::default() { 0 } else { SIGNED };
            [size_of::<T::K>() as u64 | sign, size_of::<T::V>() as u64]
        }
        by_pair!(self, |T| of::<T>())
    }

    /// What is saved, by `read` for the types that the header names.
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

/// The elements of an iteration, some at a time; none at the end. They are those of its beginning, whatever happens to
/// the dictionary.
pub type Walk<K, V> = Box<dyn FnMut() -> Result<Vec<(K, V)>> + Send + Sync>;
/// Elements that are asked for at a time.
const CHUNK: usize = 1024;

/// What dictionaries are asked, wherever they are.
pub trait Answers<K, V>: Send + Sync {
    fn get(&self, key: K) -> Result<Option<V>>;
    fn get_into(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap>;
    fn contains(&self, keys: &[K]) -> Result<Bitmap>;
    fn count(&self, ranges: &[(End<K>, End<K>)]) -> Result<Vec<u64>>;
    fn list(&self, ranges: &[(End<K>, End<K>)]) -> Result<Ranges<K, V>>;
    fn successors(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>>;
    fn predecessors(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>>;
    fn first(&self) -> Result<Option<(K, V)>>;
    fn last(&self) -> Result<Option<(K, V)>>;
    fn live_len(&self) -> Result<u64>;
    fn stored_len(&self) -> u64;
    fn bytes(&self) -> u64;
    fn walk(&self) -> Result<Walk<K, V>>;
}

/// How dictionaries are changed.
pub trait Changes<K, V>: Answers<K, V> {
    fn put(&mut self, keys: &[K], values: &[V]) -> Result<()>;
    fn delete(&mut self, keys: &[K]) -> Result<()>;
    fn delete_range(&mut self, range: (End<K>, End<K>)) -> Result<()>;
    fn remove_all(&mut self) -> Result<()>;
    fn compact(&mut self) -> Result<()>;
}

/// What the host answers without a doubt, as devices do.
fn sure<T>(answer: T) -> Result<T, lsm::Error> {
    Ok(answer)
}

macro_rules! answers {
    ($($map:ty, $settle:path, $one:expr, $walk:expr;)*) => {$(
        impl<K: Key, V: Value> Answers<K, V> for $map {
            fn get(&self, key: K) -> Result<Option<V>> {
                ($one)(self, key)
            }
            fn get_into(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap> {
                Ok(self.get_bulk_into(keys, values)?)
            }
            fn contains(&self, keys: &[K]) -> Result<Bitmap> {
                Ok($settle(self.contains_bitmap_bulk(keys))?)
            }
            fn count(&self, ranges: &[(End<K>, End<K>)]) -> Result<Vec<u64>> {
                Ok($settle(self.count_range_bulk(ranges))?)
            }
            fn list(&self, ranges: &[(End<K>, End<K>)]) -> Result<Ranges<K, V>> {
                Ok(self.range_bulk(ranges)?)
            }
            fn successors(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>> {
                Ok($settle(self.successor_bulk(keys))?)
            }
            fn predecessors(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>> {
                Ok($settle(self.predecessor_bulk(keys))?)
            }
            fn first(&self) -> Result<Option<(K, V)>> {
                Ok($settle(self.first_key_value())?)
            }
            fn last(&self) -> Result<Option<(K, V)>> {
                Ok($settle(self.last_key_value())?)
            }
            fn live_len(&self) -> Result<u64> {
                Ok($settle(self.len())?)
            }
            fn stored_len(&self) -> u64 {
                self.resident_len()
            }
            fn bytes(&self) -> u64 {
                self.memory_bytes()
            }
            fn walk(&self) -> Result<Walk<K, V>> {
                ($walk)(self)
            }
        }
    )*};
}

/// A walk by pieces of ranges.
fn walk_by<K: Key, V: Value>(
    piece: impl Fn((End<K>, End<K>)) -> Vec<(K, V)> + Send + Sync + 'static,
) -> Result<Walk<K, V>> {
    let mut from = End::Unbounded;
    Ok(Box::new(move || {
        let next = piece((from, End::Unbounded));
        if let Some(&(last, _)) = next.last() {
            from = End::Excluded(last);
        }
        Ok(next)
    }))
}

answers! {
    lsm::Lsm<K, V>, sure, |map: &lsm::Lsm<K, V>, key| Ok(map.get(key)), |map: &lsm::Lsm<K, V>| {
        let map = map.clone();
        walk_by(move |range| map.range(range).take(CHUNK).collect())
    };
    Arc<MappedLsm<K, V>>, sure, |map: &MappedLsm<K, V>, key| Ok(map.get(key)), |map: &Arc<MappedLsm<K, V>>| {
        let map = map.clone();
        walk_by(move |range| map.range(range).take(CHUNK).collect())
    };
    gpu::Lsm<K, V>, Result::from, |map: &gpu::Lsm<K, V>, key| Ok(map.get_bulk(&[key])?.pop().flatten()),
        |map: &gpu::Lsm<K, V>| {
            let mut elements = map.iter()?;
            Ok(Box::new(move || Ok(elements.by_ref().take(CHUNK).collect::<Result<Vec<_>, lsm::Error>>()?)) as Walk<K, V>)
        };
}

impl<K: Key, V: Value, M: lsm::OrderedMap<K, V> + Answers<K, V>> Changes<K, V> for M {
    fn put(&mut self, keys: &[K], values: &[V]) -> Result<()> {
        Ok(self.insert_bulk(keys, values)?)
    }
    fn delete(&mut self, keys: &[K]) -> Result<()> {
        Ok(self.remove_bulk(keys)?)
    }
    fn delete_range(&mut self, range: (End<K>, End<K>)) -> Result<()> {
        Ok(self.remove_range(range).map(|_| ())?)
    }
    fn remove_all(&mut self) -> Result<()> {
        Ok(self.clear()?)
    }
    fn compact(&mut self) -> Result<()> {
        Ok(self.cleanup()?)
    }
}

/// In host memory.
pub struct OnHost;
impl Family for OnHost {
    type Of<K: Key, V: Value> = lsm::Lsm<K, V>;
}

/// In a mapped file, which an iteration keeps.
pub struct InFile;
impl Family for InFile {
    type Of<K: Key, V: Value> = Arc<MappedLsm<K, V>>;
}

/// On a device.
pub struct OnDevice;
impl Family for OnDevice {
    type Of<K: Key, V: Value> = gpu::Lsm<K, V>;
}

/// Two maps are equal if their types, keys and values are.
impl PartialEq for Typed<OnHost> {
    fn eq(&self, other: &Self) -> bool {
        by_pair!(self.pair(), |T| match (T::of(self), T::of(other)) {
            (Ok(here), Ok(there)) => here.iter().eq(there.iter()),
            _ => false,
        })
    }
}

/// The types of the class.
pub struct Sorted;

impl Structure for Sorted {
    type Host = Typed<OnHost>;
    type Mapped = Typed<InFile>;
    type Device = Typed<OnDevice>;

    const NAME: &'static str = "SortedMap";

    fn to_device(host: &Typed<OnHost>, device: &Device) -> Result<Typed<OnDevice>> {
        by_pair!(host.pair(), |T| Ok(T::wrap(T::of(host)?.to_device(device)?)))
    }
    fn to_host(there: &Typed<OnDevice>) -> Result<Typed<OnHost>> {
        by_pair!(there.pair(), |T| Ok(T::wrap(T::of(there)?.to_host()?)))
    }
    fn device(there: &Typed<OnDevice>) -> &Device {
        macro_rules! each {
            (($of:expr) $($name:ident($key:ty, $value:ty))*) => { match $of { $(Typed::$name(map) => map.device(),)* } };
        }
        each_pair!(each!(there))
    }
    fn copy(host: &Typed<OnHost>) -> Typed<OnHost> {
        macro_rules! each {
            (($of:expr) $($name:ident($key:ty, $value:ty))*) => {
                match $of { $(Typed::$name(map) => Typed::$name(map.clone()),)* }
            };
        }
        each_pair!(each!(host))
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
        // SAFETY: the caller's promise.
        Pair::of_saved(|pair| by_pair!(pair, |T| unsafe { Lsm::<T>::map(path) }.map(|map| T::wrap(Arc::new(map)))))
    }
    fn describe(value: &Where<Sorted>) -> Result<String> {
        let (stored, bytes) = by_pair!(pair_of(value), |T| {
            let map = answers::<T>(value)?;
            (map.stored_len(), map.bytes())
        });
        Ok(format!("{}, {stored} elements, {bytes} bytes", pair_of(value).describe()))
    }
}

/// The dictionary of these types in host memory.
pub type Lsm<T> = lsm::Lsm<<T as Types>::K, <T as Types>::V>;

/// The types of a map, wherever it is.
pub fn pair_of(value: &Where<Sorted>) -> Pair {
    anywhere!(value, |map| map.pair())
}

/// A map, to ask it.
pub fn answers<T: Types>(value: &Where<Sorted>) -> Result<&dyn Answers<T::K, T::V>> {
    Ok(match value {
        Where::Host(map) => T::of(map)?,
        Where::Mapped(map, _) => T::of(map)?,
        Where::Device(map) => T::of(map)?,
    })
}

/// A map, to change it.
pub fn changes<T: Types>(value: &mut Where<Sorted>) -> Result<&mut dyn Changes<T::K, T::V>> {
    Ok(match value {
        Where::Host(map) => T::of_mut(map)?,
        Where::Device(map) => T::of_mut(map)?,
        Where::Mapped(_, path) => return Err(read_only(path)),
    })
}

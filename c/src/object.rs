//! Structures behind handles: one table of operations for all of them.

use std::any::Any;
use std::path::Path;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

#[cfg(feature = "gpu")]
use warpset::gpu::{Devices, Stream};
use warpset_base::file::MappedWords;

#[cfg(feature = "gpu")]
use crate::device::{Address, Adopted};
use crate::error::{Failure, Result, warpset_status as Status};
use crate::handle::handles;
use crate::keys::{Batch, HostKeys, warpset_key_type};
use crate::rows::Rows;

/// Kinds of structures.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "name in C")]
pub enum warpset_kind {
    /// Split-block Bloom filter, as in Parquet.
    SplitBlockBloom = 1,
    BlockedBloom = 2,
    /// Two-level Bloom filter of Rao.
    RaoBloom = 3,
    Recsplit = 16,
    /// Fingerprints on top of a perfect hash function.
    StaticFilter = 17,
    Consensus = 18,
    Placement = 19,
    /// Exact map of strings.
    StringMap = 20,
    StandardQuotientFilter = 24,
    /// Quotient filter with rank and select, which counts.
    RankSelectQuotientFilter = 25,
    /// Quotient filter with values.
    Maplet = 26,
    /// Dictionary as a log-structured merge tree.
    Lsm = 32,
    /// Dictionary as a sorted array.
    SortedArray = 33,
    BinaryFuse8 = 40,
    BinaryFuse16 = 41,
    BinaryFuse32 = 42,
    /// Values of known keys, without the keys.
    StaticFunction = 43,
    RangeFilter = 44,
    DynamicRangeFilter = 45,
    StaticMap = 48,
    StaticSet = 49,
    /// Bloom filter of k-mers.
    SequenceFilter = 56,
}

use warpset_kind as Kind;

/// One key.
#[derive(Clone, Copy)]
pub enum OneKey<'a> {
    /// An integer.
    Word(u64),
    /// A string.
    String(&'a [u8]),
}

impl OneKey<'_> {
    /// Calls `work` with a batch of this key.
    fn as_batch<R>(self, work: impl FnOnce(HostKeys<'_>) -> Result<R>) -> Result<R> {
        match self {
            OneKey::Word(key) => work(HostKeys::Words(&[key])),
            OneKey::String(key) => work(HostKeys::Strings(&[key])),
        }
    }
}

/// Runs `$body` with the key under the name `$key`, whatever its type.
macro_rules! with_key {
    ($one:expr, |$key:ident| $body:expr) => {
        match $one {
            $crate::object::OneKey::Word($key) => $body,
            $crate::object::OneKey::String($key) => $body,
        }
    };
}
pub(crate) use with_key;

/// Operators that combine the value of a key with a new one.
#[derive(Clone, Copy)]
pub enum Combine {
    Replace,
    Sum,
    Min,
    Max,
    Or,
}

/// Hits of sequences in a sequence filter.
pub type Hits = Vec<(u64, u64)>;

/// Defines operations with a default that refuses them, for structures without them.
macro_rules! operations {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident(&$($this:ident)+ $(, $argument:ident: $type:ty)* $(,)?) -> $result:ty;
    )*) => {$(
        $(#[$attribute])*
        fn $name(&$($this)+ $(, $argument: $type)*) -> $result {
            $(let _ = $argument;)*
            Err(refused(operations!(@ $($this)+).kind(), stringify!($name)))
        }
    )*};
    (@ mut $this:ident) => {
        $this
    };
    (@ $this:ident) => {
        $this
    };
}

#[cold]
fn refused(kind: Kind, operation: &str) -> Failure {
    let why = format!("a {kind:?} in this place has no operation `{operation}`");
    Failure::new(Status::Unsupported, why)
}

/// A structure in one place. Answers have one item per key, checked by the caller.
pub trait Object: Any + Send + Sync {
    fn kind(&self) -> Kind;
    /// Returns the bytes of memory.
    fn memory_bytes(&self) -> u64;
    /// Whether keys can be added or removed.
    fn can_change(&self) -> bool {
        false
    }
    /// Whether the structure is on a device.
    #[cfg(feature = "gpu")]
    fn is_on_device(&self) -> bool {
        false
    }

    /// Whether one key may be in the structure.
    fn contains_one(&self, key: OneKey<'_>) -> Result<bool> {
        let mut answer = [0];
        key.as_batch(|keys| self.contains(keys, &mut answer))?;
        Ok(answer[0] != 0)
    }

    /// Counts the keys that may be in the structure.
    fn count_contained(&self, keys: HostKeys<'_>) -> Result<usize> {
        let mut answers = vec![0; keys.len()];
        self.contains(keys, &mut answers)?;
        Ok(answers.into_iter().map(usize::from).sum())
    }

    /// Returns an error unless keys of this type can be in the structure.
    fn takes(&self, _: warpset_key_type) -> Result<()> {
        Ok(())
    }

    /// Inserts one key.
    fn insert_one(&mut self, key: OneKey<'_>) -> Result<()> {
        if let OneKey::Word(_) = key {
            self.takes(warpset_key_type::U64)?;
        }
        key.as_batch(|keys| self.insert(keys))
    }

    /// Returns the number of one key.
    fn number_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
        let mut number = [0];
        key.as_batch(|keys| self.numbers(keys, &mut number))?;
        Ok(Some(number[0]).filter(|&number| number != u64::MAX))
    }

    /// Returns the value of one key.
    fn get_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
        let (mut value, mut found) = ([0], [0]);
        key.as_batch(|keys| self.get(keys, &mut value, &mut found))?;
        Ok(Some(value[0]).filter(|_| found[0] != 0))
    }

    operations! {
        /// Returns the number of keys, an estimate for Bloom filters.
        fn len(&self) -> Result<u64>;
        /// Returns the false-positive rate.
        fn fpr(&self) -> Result<f64>;
        /// Returns the saved form.
        fn to_bytes(&self) -> Result<Vec<u8>>;
        /// Writes a file.
        fn save(&self, path: &Path) -> Result<()>;
        /// Copies the structure within its place.
        fn copy(&self) -> Result<Box<dyn Object>>;

        /// Writes whether each key may be in the structure, as bytes 0 and 1.
        fn contains(&self, keys: HostKeys<'_>, answers: &mut [u8]) -> Result<()>;
        /// Inserts keys.
        fn insert(&mut self, keys: HostKeys<'_>) -> Result<()>;
        /// Inserts keys and writes which of them were new, as bytes 0 and 1.
        fn test_and_insert(&mut self, keys: HostKeys<'_>, new: &mut [u8]) -> Result<()>;
        /// Removes keys and returns the number of removed copies, or of keys where copies are not counted.
        fn remove(&mut self, keys: HostKeys<'_>) -> Result<u64>;
        /// Counts the copies of each key.
        fn counts(&self, keys: HostKeys<'_>, counts: &mut [u64]) -> Result<()>;
        /// Removes all keys.
        fn clear(&mut self) -> Result<()>;
        /// Adds the contents of a structure of the same type.
        fn merge(&mut self, other: &dyn Object) -> Result<()>;
        /// Keeps the common contents with a structure of the same type.
        fn intersect(&mut self, other: &dyn Object) -> Result<()>;
        /// Doubles or halves the number of slots.
        fn resize(&mut self, doubles: bool) -> Result<()>;

        /// Writes whether any key may lie in each range of `firsts` to `lasts`, as bytes 0 and 1.
        fn may_contain_ranges(&self, firsts: &Batch<'_>, lasts: &Batch<'_>, answers: &mut [u8]) -> Result<()>;
        /// Writes an upper bound of the number of keys in each range.
        fn count_ranges_at_most(&self, firsts: &Batch<'_>, lasts: &Batch<'_>, counts: &mut [u64]) -> Result<()>;

        /// Writes the number of each key, `u64::MAX` for keys that have none.
        fn numbers(&self, keys: HostKeys<'_>, numbers: &mut [u64]) -> Result<()>;
        /// Returns the number above all numbers of keys.
        fn number_bound(&self) -> Result<u64>;

        /// Writes the value of each key, and whether there is one, as bytes 0 and 1.
        fn get(&self, keys: HostKeys<'_>, values: &mut [u64], found: &mut [u8]) -> Result<()>;
        /// Inserts keys with values.
        fn insert_values(&mut self, keys: HostKeys<'_>, values: &[u64], by: Combine) -> Result<()>;
        /// Removes stale pairs.
        fn cleanup(&mut self) -> Result<()>;
        /// Counts the pairs with keys from `lows` to `highs`.
        fn count_ranges(&self, lows: HostKeys<'_>, highs: HostKeys<'_>, counts: &mut [u64]) -> Result<()>;
        /// Lists the pairs with keys from `lows` to `highs`.
        fn ranges(&self, lows: HostKeys<'_>, highs: HostKeys<'_>) -> Result<Rows>;
        /// Lists the nearest pair at or above each key, or at or below it.
        fn neighbours(&self, keys: HostKeys<'_>, is_above: bool) -> Result<Rows>;

        /// Inserts the k-mers of sequences.
        fn insert_sequences(&mut self, sequences: &[&[u8]]) -> Result<()>;
        /// Counts the k-mers of each sequence that may be in the filter, and all k-mers.
        fn hits(&self, sequences: &[&[u8]]) -> Result<Hits>;
        /// Returns whether the k-mer at each letter of a sequence may be in the filter.
        fn windows(&self, sequence: &[u8]) -> Result<Vec<bool>>;
        /// Returns the number of letters of a k-mer.
        fn k(&self) -> Result<u32>;
    }

    #[cfg(feature = "gpu")]
    operations! {
        /// Copies the structure to a device, the first one of several but for structures in parts.
        fn to_device(&self, devices: &Devices) -> Result<Box<dyn Object>>;
        /// Copies the structure to host memory.
        fn to_host(&self) -> Result<Box<dyn Object>>;
        /// Returns the devices of the structure.
        fn devices(&self) -> Result<Devices>;
        /// Writes whether each key on the device may be in the structure, as bytes 0 and 1.
        fn contains_on_device(&self, keys: &Adopted<'_>, answers: Address<u8>, stream: Option<&Stream>) -> Result<()>;
        /// Counts the keys on the device that may be in the structure.
        fn count_contained_on_device(&self, keys: &Adopted<'_>) -> Result<usize>;
        /// Inserts keys on the device.
        fn insert_on_device(&mut self, keys: &Adopted<'_>) -> Result<()>;
        /// Removes keys on the device.
        fn remove_on_device(&mut self, keys: &Adopted<'_>) -> Result<u64>;
        /// Counts the copies of each key on the device.
        fn counts_on_device(&self, keys: &Adopted<'_>, counts: Address<u64>) -> Result<()>;
        /// Writes the number of each key on the device.
        fn numbers_on_device(&self, keys: &Adopted<'_>, numbers: Address<u64>, stream: Option<&Stream>) -> Result<()>;
        /// Writes the value of each key on the device, and whether there is one, as bits.
        fn get_on_device(&self, keys: &Adopted<'_>, values: Address<u64>, found: Address<u64>) -> Result<()>;
        /// Inserts keys on the device with values there.
        fn insert_values_on_device(&mut self, keys: &Adopted<'_>, values: Address<u64>) -> Result<()>;
        /// Writes whether any key may lie in each range of keys on the device, as bits.
        fn may_contain_ranges_on_device(
            &self,
            firsts: &Adopted<'_>,
            lasts: &Adopted<'_>,
            found: Address<u64>,
            stream: Option<&Stream>,
        ) -> Result<()>;
        /// Writes an upper bound of the number of keys in each range of keys on the device.
        fn count_ranges_at_most_on_device(
            &self,
            firsts: &Adopted<'_>,
            lasts: &Adopted<'_>,
            counts: Address<u64>,
            stream: Option<&Stream>,
        ) -> Result<()>;
        /// Counts the pairs with keys from `lows` to `highs`, which are on the device.
        fn count_ranges_on_device(
            &self,
            lows: &Adopted<'_>,
            highs: &Adopted<'_>,
            counts: Address<u64>,
        ) -> Result<()>;
        /// Lists the pairs with keys from `lows` to `highs` on the device.
        fn ranges_on_device(
            &self,
            lows: &Adopted<'_>,
            highs: &Adopted<'_>,
            offsets: Address<u64>,
            keys: Address<u64>,
            values: Address<u64>,
        ) -> Result<()>;
    }
}

/// Returns another structure as one of the same type.
pub fn same<T: Object>(other: &dyn Object) -> Result<&T> {
    (other as &dyn Any).downcast_ref().ok_or_else(|| {
        let kind = other.kind();
        Failure::value(format!("the other structure is a {kind:?} of other types: build both with the same settings"))
    })
}

/// A structure of any type, in host memory, in a mapped file or on a device. Threads may call all functions but
/// `warpset_structure_free` at once with one structure: lookups run at the same time, changes one after the other.
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_structure {
    _private: [u8; 0],
}

handles! { warpset_structure: b"wstruct\x01", Held; }

/// A structure with its lock and its file.
pub struct Held {
    body: Body,
    pub kind: Kind,
    /// File of a mapped structure.
    pub file: Option<MappedWords<u8>>,
}

enum Body {
    /// Never changes, so needs no lock.
    Fixed(Box<dyn Object>),
    Changing(RwLock<Box<dyn Object>>),
}

/// Structure that is being read.
pub enum Reading<'a> {
    Fixed(&'a dyn Object),
    Locked(RwLockReadGuard<'a, Box<dyn Object>>),
}

impl std::ops::Deref for Reading<'_> {
    type Target = dyn Object;

    fn deref(&self) -> &(dyn Object + 'static) {
        match self {
            Reading::Fixed(object) => *object,
            Reading::Locked(object) => &***object,
        }
    }
}

fn broken<T>(_: T) -> Failure {
    let why = "an earlier change of this structure failed by a defect of this library: free it and make it again";
    Failure::new(Status::Internal, why)
}

impl Held {
    pub fn new(object: Box<dyn Object>) -> Held {
        let kind = object.kind();
        let body = if object.can_change() { Body::Changing(RwLock::new(object)) } else { Body::Fixed(object) };
        Held { body, kind, file: None }
    }

    /// Waits for changes to end.
    #[inline]
    pub fn read(&self) -> Result<Reading<'_>> {
        Ok(match &self.body {
            Body::Fixed(object) => Reading::Fixed(&**object),
            Body::Changing(object) => Reading::Locked(object.read().map_err(broken)?),
        })
    }

    /// Waits for changes and lookups to end.
    pub fn write(&self) -> Result<RwLockWriteGuard<'_, Box<dyn Object>>> {
        match &self.body {
            Body::Changing(object) => object.write().map_err(broken),
            Body::Fixed(_) if self.file.is_some() => {
                let why = "the structure is mapped from a file: change one of warpset_structure_copy";
                Err(Failure::new(Status::ReadOnly, why))
            }
            Body::Fixed(object) => Err(refused(object.kind(), "change")),
        }
    }
}

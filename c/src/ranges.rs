//! Range filters.

use std::cmp::Ordering;
use std::ops::Bound::{self, Excluded, Included};

#[cfg(feature = "gpu")]
use warpset::range;
use warpset::range::{
    Builder, DynamicRangeFilter, KeyOf, MappedDynamicRangeFilter, MappedRangeFilter, RangeFilter, RangeKey,
};
use warpset_base::bitmap::bits_to;

use crate::capabilities::*;
#[cfg(feature = "gpu")]
use crate::device::{Address, Adopted};
use crate::error::{Failure, Result, warpset_status as Status};
use crate::keys::{Batch, HostKeys, Order, warpset_key_type};
use crate::object::{Object, OneKey, same};
use crate::options::{Options, set, with_settings};
use crate::settled::Settled;
use crate::static_sets::built;

/// The nearest key of a type, and the side of it on which the caller's key is.
type Near<K> = (K, Ordering);

/// Type of the keys of a filter, made of keys of a caller.
trait Ranged: RangeKey {
    /// Type of the keys in C.
    const KEY_TYPE: warpset_key_type;
    type Key<'a>: KeyOf<Self> + Copy;

    /// Converts an integer or a floating-point number of 64 bits.
    fn of_word<'a>(_: u64) -> Result<Near<Self::Key<'a>>> {
        Err(other_order::<Self>())
    }

    /// Converts an integer of 128 bits.
    fn of_wide<'a>(_: u128) -> Result<Near<Self::Key<'a>>> {
        Err(other_order::<Self>())
    }

    /// Converts a string.
    fn of_string(_: &[u8]) -> Result<Near<Self::Key<'_>>> {
        Err(other_order::<Self>())
    }

    /// Converts keys.
    fn all(keys: HostKeys<'_>) -> Result<Vec<Near<Self::Key<'_>>>> {
        match keys {
            HostKeys::Words(keys) => keys.iter().map(|&key| Self::of_word(key)).collect(),
            HostKeys::Wide(keys) => keys.iter().map(|&key| Self::of_wide(key)).collect(),
            HostKeys::Strings(keys) => keys.iter().map(|&key| Self::of_string(key)).collect(),
            HostKeys::Hashes(_) => Err(other_order::<Self>()),
        }
    }
}

#[cold]
fn other_order<K: Ranged + ?Sized>() -> Failure {
    let keys = match K::KEY_TYPE.order() {
        Some(Order::Unsigned) => "unsigned integers",
        Some(Order::Signed) => "signed integers",
        Some(Order::Float) => "doubles",
        Some(Order::Lexicographic) | None => "strings",
    };
    Failure::new(Status::WrongType, format!("the keys of this range filter are {keys}: pass keys of such a type"))
}

macro_rules! integers {
    ($word:ty, $wide:ty: $($key:ty as $type:ident),*) => {$(
        impl Ranged for $key {
            const KEY_TYPE: warpset_key_type = warpset_key_type::$type;
            type Key<'a> = $key;

            fn of_word<'a>(key: u64) -> Result<Near<Self::Key<'a>>> {
                Self::of_wide(<$wide>::from(key as $word) as u128)
            }
            fn of_wide<'a>(key: u128) -> Result<Near<Self::Key<'a>>> {
                let key = key as $wide;
                let near = key.clamp(<$key>::MIN.into(), <$key>::MAX.into());
                Ok((near as $key, key.cmp(&near)))
            }
        }
    )*};
}
integers! { u64, u128: u32 as U32, u64 as U64, u128 as U128 }
integers! { i64, i128: i32 as I32, i64 as I64, i128 as I128 }

impl Ranged for f64 {
    const KEY_TYPE: warpset_key_type = warpset_key_type::F64;
    type Key<'a> = f64;

    fn of_word<'a>(bits: u64) -> Result<Near<Self::Key<'a>>> {
        Ok((f64::from_bits(bits), Ordering::Equal))
    }
}

impl Ranged for [u8] {
    const KEY_TYPE: warpset_key_type = warpset_key_type::Strings64;
    type Key<'a> = &'a [u8];

    fn of_string(string: &[u8]) -> Result<Near<Self::Key<'_>>> {
        Ok((string, Ordering::Equal))
    }
}

/// Both ends of a range.
type Ends<K> = (Bound<K>, Bound<K>);

/// Returns the range between two keys; keys beyond the type are in none.
fn ends<K>(first: Near<K>, last: Near<K>) -> Ends<K> {
    (
        if first.1 == Ordering::Greater { Excluded(first.0) } else { Included(first.0) },
        if last.1 == Ordering::Less { Excluded(last.0) } else { Included(last.0) },
    )
}

/// Pairs `firsts` and `lasts`, which have the order of the filter.
fn ranges<'a, K: Ranged + ?Sized>(firsts: &'a Batch<'_>, lasts: &'a Batch<'_>) -> Result<Vec<Ends<K::Key<'a>>>> {
    if [firsts, lasts].iter().any(|batch| batch.key_type.order() != K::KEY_TYPE.order()) {
        return Err(other_order::<K>());
    }
    Ok(K::all(firsts.keys())?.into_iter().zip(K::all(lasts.keys())?).map(|(first, last)| ends(first, last)).collect())
}

/// Queries, in every place.
macro_rules! queries {
    ($key:ty) => {
        fn takes(&self, key_type: warpset_key_type) -> Result<()> {
            match key_type.order() == <$key>::KEY_TYPE.order() {
                true => Ok(()),
                false => Err(other_order::<$key>()),
            }
        }
        fn contains(&self, keys: HostKeys<'_>, answers: &mut [u8]) -> Result<()> {
            let keys: Vec<_> = <$key>::all(keys)?.into_iter().map(|key| ends(key, key)).collect();
            bits_to(answers, self.may_contain_bitmap_bulk::<<$key as Ranged>::Key<'_>, _>(&keys).settled()?.as_words());
            Ok(())
        }
        fn may_contain_ranges(&self, firsts: &Batch<'_>, lasts: &Batch<'_>, answers: &mut [u8]) -> Result<()> {
            let ranges = ranges::<$key>(firsts, lasts)?;
            bits_to(
                answers,
                self.may_contain_bitmap_bulk::<<$key as Ranged>::Key<'_>, _>(&ranges).settled()?.as_words(),
            );
            Ok(())
        }
    };
}

/// Bounds of counts, in every place.
macro_rules! counts_at_most {
    ($key:ty) => {
        fn count_ranges_at_most(&self, firsts: &Batch<'_>, lasts: &Batch<'_>, counts: &mut [u64]) -> Result<()> {
            let ranges = ranges::<$key>(firsts, lasts)?;
            counts.copy_from_slice(&self.count_at_most_bulk::<<$key as Ranged>::Key<'_>, _>(&ranges).settled()?);
            Ok(())
        }
    };
}

/// One key, in host memory.
macro_rules! query_of_one {
    ($key:ty) => {
        fn contains_one(&self, key: OneKey<'_>) -> Result<bool> {
            let key = match key {
                OneKey::Word(key) => <$key>::of_word(key)?,
                OneKey::String(key) => <$key>::of_string(key)?,
            };
            Ok(self.may_contain::<<$key as Ranged>::Key<'_>>(ends(key, key)))
        }
    };
}

/// Ranges of keys on the device, which have the type of the filter.
#[cfg(feature = "gpu")]
macro_rules! device_ranges {
    ($key:ty) => {
        device_ranges! { $key, may_contain_ranges_on_device, may_contain_bitmap_device, may_contain_bitmap_async }
    };
    ($key:ty, counts) => {
        device_ranges! { $key }
        device_ranges! { $key, count_ranges_at_most_on_device, count_at_most_device, count_at_most_async }
    };
    ($key:ty, $name:ident, $waiting:ident, $queued:ident) => {
        fn $name(
            &self,
            firsts: &Adopted<'_>,
            lasts: &Adopted<'_>,
            answers: Address<u64>,
            stream: Option<&warpset::gpu::Stream>,
        ) -> Result<()> {
            let (firsts, lasts) = (firsts.of_type::<$key>(<$key>::KEY_TYPE)?, lasts.of_type::<$key>(<$key>::KEY_TYPE)?);
            // SAFETY: the header demands memory for the answers; the stream or the wait orders the work on it.
            let mut memory = unsafe { answers.adopt(self.device()) }?;
            Ok(match stream {
                // SAFETY: the header demands that all memory stays until the stream has passed the work.
                Some(stream) => unsafe { self.$queued(stream, firsts, lasts, memory.as_mut_slice()) },
                None => self.$waiting(firsts, lasts, memory.as_mut_slice()),
            }?)
        }
    };
}

/// Filters by the type of their keys, and whether there are such filters on devices.
macro_rules! filters {
    ($($key:ty $(, $device:ident)?;)*) => {$(
        object! {
            RangeFilter<$key>, RangeFilter:
            sized, numbered(len, fpr), saved($(range::$device::RangeFilter<$key>)?), queries($key),
            counts_at_most($key), query_of_one($key)
        }
        object! {
            MappedRangeFilter<$key>, RangeFilter:
            sized, numbered(len, fpr), queries($key), counts_at_most($key), query_of_one($key)
        }
        $(
            #[cfg(feature = "gpu")]
            object! {
                range::$device::RangeFilter<$key>, RangeFilter:
                sized, numbered(len, fpr), on_device, queries($key), counts_at_most($key), device_ranges($key, counts)
            }
        )?
    )*};
}
filters! {
    u32, gpu;
    u64, gpu;
    u128;
    i32, gpu;
    i64, gpu;
    i128;
    f64, gpu;
    [u8];
}

/// Returns keys that are stored as they are, without those beyond the type if `drops_others`, which otherwise are an
/// error.
fn stored<'a, K: Ranged + ?Sized>(keys: HostKeys<'a>, drops_others: bool) -> Result<Vec<K::Key<'a>>> {
    let mut near = K::all(keys)?;
    let all = near.len();
    near.retain(|key| key.1 == Ordering::Equal);
    match near.len() == all || drops_others {
        true => Ok(near.into_iter().map(|key| key.0).collect()),
        false => Err(Failure::value("a key beyond 64 bits: make a range filter for keys of 128 bits")),
    }
}

/// Rate at single keys.
macro_rules! rated {
    () => {
        fn fpr(&self) -> Result<f64> {
            Ok(self.fpr_of(1))
        }
    };
}

/// Changes of dynamic filters.
macro_rules! changes {
    ($key:ty) => {
        fn can_change(&self) -> bool {
            true
        }
        fn insert(&mut self, keys: HostKeys<'_>) -> Result<()> {
            Ok(self.insert_bulk::<<$key as Ranged>::Key<'_>>(&stored::<$key>(keys, false)?)?)
        }
        fn remove(&mut self, keys: HostKeys<'_>) -> Result<u64> {
            Ok(self.remove_bulk::<<$key as Ranged>::Key<'_>>(&stored::<$key>(keys, true)?)?)
        }
        fn clear(&mut self) -> Result<()> {
            self.clear().settled()
        }
        fn merge(&mut self, other: &dyn Object) -> Result<()> {
            Ok(self.merge(same(other)?)?)
        }
    };
}

/// Changes by keys on the device, which have the type of the filter.
#[cfg(feature = "gpu")]
macro_rules! device_changes {
    ($key:ty) => {
        fn insert_on_device(&mut self, keys: &Adopted<'_>) -> Result<()> {
            Ok(self.insert_device(keys.of_type::<$key>(<$key>::KEY_TYPE)?)?)
        }
        fn remove_on_device(&mut self, keys: &Adopted<'_>) -> Result<u64> {
            Ok(self.remove_device(keys.of_type::<$key>(<$key>::KEY_TYPE)?)?)
        }
    };
}

/// Dynamic filters by the type of their keys, and whether there are such filters on devices.
macro_rules! dynamic_filters {
    ($($key:ty $(, $device:ident)?;)*) => {$(
        object! {
            DynamicRangeFilter<$key>, DynamicRangeFilter:
            sized, numbered(len), rated, saved($(range::$device::DynamicRangeFilter<$key>)?), queries($key),
            query_of_one($key), changes($key), resizes
        }
        object! {
            MappedDynamicRangeFilter<$key>, DynamicRangeFilter:
            sized, numbered(len), rated, queries($key), query_of_one($key)
        }
        $(
            #[cfg(feature = "gpu")]
            object! {
                range::$device::DynamicRangeFilter<$key>, DynamicRangeFilter:
                sized, numbered(len), rated, on_device, queries($key), changes($key), resizes, device_ranges($key),
                device_changes($key)
            }
        )?
    )*};
}
dynamic_filters! {
    u64, gpu;
    u128;
    i64, gpu;
    i128;
    f64, gpu;
    [u8];
}

/// Makes an empty dynamic filter for a number of keys of a type.
pub fn dynamic(keys: u64, key_type: warpset_key_type, options: &Options) -> Result<Box<dyn Object>> {
    use warpset_key_type::*;
    fn empty<K: RangeKey + ?Sized>(keys: u64, options: &Options) -> Result<DynamicRangeFilter<K>> {
        let builder = with_settings!(DynamicRangeFilter::<K>::builder(keys), options; max_load = max_load, seed = seed);
        let given = &options.given;
        let rate = (set(given.fpr).unwrap_or(0.01), set(given.range_length).unwrap_or(1));
        Ok(builder.fpr_at(rate.0, rate.1).build()?)
    }
    match key_type.order() {
        Some(Order::Unsigned) if key_type == U128 => options.take(empty::<u128>(keys, options)?),
        Some(Order::Unsigned) => options.take(empty::<u64>(keys, options)?),
        Some(Order::Signed) if key_type == I128 => options.take(empty::<i128>(keys, options)?),
        Some(Order::Signed) => options.take(empty::<i64>(keys, options)?),
        Some(Order::Float) => options.take(empty::<f64>(keys, options)?),
        Some(Order::Lexicographic) => options.take(empty::<[u8]>(keys, options)?),
        None => Err(no_order()),
    }
}

#[cold]
fn no_order() -> Failure {
    Failure::new(Status::WrongType, "hashes have no order: a range filter has keys")
}

fn builder<K: RangeKey + ?Sized>(options: &Options) -> Builder<K> {
    let (given, builder) = (&options.given, RangeFilter::builder());
    match (set(given.bits_per_key), set(given.fpr), set(given.range_length)) {
        (Some(bits), ..) => builder.bits_per_key(bits),
        (None, None, None) => builder,
        (None, fpr, length) => builder.fpr_at(fpr.unwrap_or(0.01), length.unwrap_or(1)),
    }
}

pub fn build(batch: &Batch<'_>, options: &Options) -> Result<Box<dyn Object>> {
    use warpset_key_type::*;
    fn keys<'a, K: Ranged + ?Sized>(batch: &'a Batch<'_>) -> Result<Vec<K::Key<'a>>> {
        Ok(K::all(batch.keys())?.into_iter().map(|near| near.0).collect())
    }
    macro_rules! anywhere {
        ($key:ty) => {
            built!(builder::<$key>(options), options; &keys::<$key>(batch)?)
        };
    }
    macro_rules! on_host {
        ($key:ty) => {{
            let builder = with_settings!(builder::<$key>(options), options; seed = seed);
            options.take(builder.build_from(&keys::<$key>(batch)?)?)
        }};
    }
    match batch.key_type {
        U8 | U16 | U32 => anywhere!(u32),
        U64 => anywhere!(u64),
        U128 => on_host!(u128),
        I8 | I16 | I32 => anywhere!(i32),
        I64 => anywhere!(i64),
        I128 => on_host!(i128),
        F64 => anywhere!(f64),
        Strings32 | Strings64 | StringPointers | FixedStrings => on_host!([u8]),
        Hashes => Err(no_order()),
    }
}

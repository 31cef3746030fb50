//! Dictionaries: log-structured merge trees and sorted arrays.

use std::ops::RangeInclusive;

#[cfg(feature = "gpu")]
use warpset::lsm;
use warpset::lsm::{Lsm, MappedLsm, OrderedMap, Ranges, SortedArray};
use warpset_base::bitmap::bits_to;

use crate::bloom::in_place;
use crate::capabilities::*;
#[cfg(feature = "gpu")]
use crate::device::{Address, Adopted};
use crate::elements::{self, MapKey, MapValue};
use crate::error::Result;
use crate::keys::HostKeys;
use crate::object::{Combine, Object, OneKey, same};
use crate::options::{Options, with_settings};
use crate::rows::Rows;
use crate::settled::Settled;
use crate::static_sets::no_elements;

/// Pairs `lows` and `highs`; keys out of range end at the largest one.
fn ranges<K: MapKey>(lows: HostKeys<'_>, highs: HostKeys<'_>) -> Result<Vec<RangeInclusive<K>>> {
    Ok(K::all(lows)?.iter().zip(K::all(highs)?.iter()).map(|(&low, &high)| low..=high).collect())
}

fn rows<K: MapKey, V: MapValue>(found: Ranges<K, V>) -> Rows {
    let mut rows = Rows { offsets: found.offsets, ..Rows::default() };
    if rows.offsets.is_empty() {
        rows.offsets.push(0);
    }
    K::list(&mut rows, &found.keys);
    rows.values.extend(found.values.iter().map(|value| value.wide()));
    rows
}

/// Converts answers of at most one pair per key.
fn single<K: MapKey, V: MapValue>(found: Vec<Option<(K, V)>>) -> Rows {
    let mut rows = Rows { offsets: vec![0], ..Rows::default() };
    for pair in found {
        if let Some((key, value)) = pair {
            K::list(&mut rows, &[key]);
            rows.values.push(value.wide());
        }
        rows.offsets.push(rows.values.len() as u64);
    }
    rows
}

/// Lookups in a dictionary, in every place.
macro_rules! reads {
    ($key:ty, $value:ty) => {
        fn len(&self) -> Result<u64> {
            self.len().settled()
        }
        fn contains(&self, keys: HostKeys<'_>, answers: &mut [u8]) -> Result<()> {
            <$key as MapKey>::answered(keys, answers, |keys, answers| {
                bits_to(answers, self.contains_bitmap_bulk(keys).settled()?.as_words());
                Ok(())
            })
        }
        fn get(&self, keys: HostKeys<'_>, values: &mut [u64], found: &mut [u8]) -> Result<()> {
            elements::get::<$key, $value>(keys, values, found, |keys, values| Ok(self.get_bulk_into(keys, values)?))
        }
        fn count_ranges(&self, lows: HostKeys<'_>, highs: HostKeys<'_>, counts: &mut [u64]) -> Result<()> {
            counts.copy_from_slice(&self.count_range_bulk(&ranges::<$key>(lows, highs)?).settled()?);
            Ok(())
        }
        fn ranges(&self, lows: HostKeys<'_>, highs: HostKeys<'_>) -> Result<Rows> {
            Ok(rows::<$key, $value>(self.range_bulk(&ranges::<$key>(lows, highs)?)?))
        }
        fn neighbours(&self, keys: HostKeys<'_>, is_above: bool) -> Result<Rows> {
            let keys = <$key as MapKey>::all(keys)?;
            let found =
                if is_above { self.successor_bulk(&keys).settled() } else { self.predecessor_bulk(&keys).settled() };
            Ok(single::<$key, $value>(found?))
        }
    };
}

/// One pair, in host memory.
macro_rules! reads_one {
    ($key:ty) => {
        fn get_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
            Ok(<$key as MapKey>::of_one(key)?.and_then(|key| self.get(key)).map(MapValue::wide))
        }
        fn contains_one(&self, key: OneKey<'_>) -> Result<bool> {
            Ok(<$key as MapKey>::of_one(key)?.is_some_and(|key| self.contains(key)))
        }
    };
}

/// Changes of a dictionary.
macro_rules! writes {
    ($key:ty, $value:ty) => {
        fn can_change(&self) -> bool {
            true
        }
        fn insert_values(&mut self, keys: HostKeys<'_>, values: &[u64], by: Combine) -> Result<()> {
            let (keys, values) = (<$key as MapKey>::all(keys)?, <$value as MapValue>::all(values)?);
            match by {
                Combine::Replace => self.insert_bulk(&keys, &values)?,
                by => OrderedMap::upsert_bulk_with(self, &keys, &values, |old, new| {
                    by.apply(old.into(), new.into()) as $value
                })?,
            }
            Ok(())
        }
        fn remove(&mut self, keys: HostKeys<'_>) -> Result<u64> {
            let keys = <$key as MapKey>::all(keys)?;
            self.remove_bulk(&keys)?;
            Ok(keys.len() as u64)
        }
        fn clear(&mut self) -> Result<()> {
            Ok(OrderedMap::clear(self)?)
        }
        fn cleanup(&mut self) -> Result<()> {
            Ok(self.cleanup()?)
        }
        fn merge(&mut self, other: &dyn Object) -> Result<()> {
            let all = OrderedMap::range_bulk(same::<Self>(other)?, &[..])?;
            Ok(self.insert_bulk(&all.keys, &all.values)?)
        }
    };
}

/// Pairs of 64 bits each on the device.
#[cfg(feature = "gpu")]
macro_rules! device_pairs {
    () => {
        fn get_on_device(&self, keys: &Adopted<'_>, values: Address<u64>, found: Address<u64>) -> Result<()> {
            // SAFETY: the header demands memory for the answers; the wait orders the work on it.
            let (mut values, mut found) = unsafe { (values.adopt(self.device())?, found.adopt(self.device())?) };
            Ok(self.get_device(keys.words()?, values.as_mut_slice(), found.as_mut_slice())?)
        }
        fn insert_values_on_device(&mut self, keys: &Adopted<'_>, values: Address<u64>) -> Result<()> {
            // SAFETY: the header demands memory with the values; the wait orders the work on it.
            let memory = unsafe { values.adopt(self.device()) }?;
            Ok(self.insert_device(keys.words()?, memory.as_slice())?)
        }
        fn remove_on_device(&mut self, keys: &Adopted<'_>) -> Result<u64> {
            let keys = keys.words()?;
            self.remove_device(keys)?;
            Ok(keys.len() as u64)
        }
        fn count_ranges_on_device(&self, lows: &Adopted<'_>, highs: &Adopted<'_>, counts: Address<u64>) -> Result<()> {
            // SAFETY: the header demands memory for the counts; the wait orders the work on it.
            let mut memory = unsafe { counts.adopt(self.device()) }?;
            Ok(self.count_range_device(lows.words()?, highs.words()?, memory.as_mut_slice())?)
        }
        fn ranges_on_device(
            &self,
            lows: &Adopted<'_>,
            highs: &Adopted<'_>,
            offsets: Address<u64>,
            keys: Address<u64>,
            values: Address<u64>,
        ) -> Result<()> {
            let found = self.range_device(lows.words()?, highs.words()?)?;
            let from = [&found.offsets, &found.keys, &found.values];
            let mut to = Vec::new();
            for (address, from) in [offsets, keys, values].into_iter().zip(from) {
                address.has_room(from.len())?;
                // SAFETY: the header demands memory for the pairs; the wait orders the work on it.
                to.push(unsafe { address.adopt(self.device()) }?);
            }
            let stream = self.device().new_stream()?;
            for (to, from) in to.iter_mut().zip(from) {
                stream.copy(to.as_mut_slice().slice_mut(..from.len()), from)?;
            }
            Ok(stream.synchronize()?)
        }
    };
}

/// Dictionaries with elements of some types.
macro_rules! dictionaries {
    ($($name:ident: $([$key:ty, $value:ty $(, $pairs:ident)?])*;)*) => {$($(
        object! {
            $name<$key, $value>, $name:
            sized, numbered(exact), saved(lsm::gpu::$name<$key, $value>), reads($key, $value), reads_one($key),
            writes($key, $value)
        }
        #[cfg(feature = "gpu")]
        object! {
            lsm::gpu::$name<$key, $value>, $name:
            sized, numbered(exact), on_device, reads($key, $value), writes($key, $value) $(, $pairs)?
        }
    )*)*};
}
dictionaries! {
    Lsm: [u32, u32] [u64, u64, device_pairs] [u128, u64] [[u8; 16], u64];
    SortedArray: [u32, u32] [u64, u64, device_pairs] [u128, u64] [[u8; 16], u64];
}

/// Dictionaries in mapped files. Both kinds have one type, so the handle tells which one it is.
macro_rules! mapped {
    ($([$key:ty, $value:ty])*) => {$(
        object! { MappedLsm<$key, $value>, Lsm: sized, numbered(exact), reads($key, $value), reads_one($key) }
    )*};
}
mapped! {
    [u32, u32] [u64, u64] [u128, u64] [[u8; 16], u64]
}

/// Builds an empty dictionary in its place; `$make` returns the builder for two types.
macro_rules! of_elements {
    ($options:expr, $make:ident) => {
        match ($options.given.map_key_bits, $options.given.map_value_bits, $options.given.map_key_strings) {
            (32, 0 | 32, 0) => in_place!($make!(u32, u32), $options),
            (0 | 64, 0 | 64, 0) => in_place!($make!(u64, u64), $options),
            (128, 0 | 64, 0) => in_place!($make!(u128, u64), $options),
            (0 | 128, 0 | 64, 1) => in_place!($make!([u8; 16], u64), $options),
            (key, value, _) => {
                Err(no_elements(key, value, "32 and 32, 64 and 64, 128 and 64; strings have 128 and 64"))
            }
        }
    };
}

pub fn tree(options: &Options) -> Result<Box<dyn Object>> {
    macro_rules! builder {
        ($key:ty, $value:ty) => {
            with_settings!(Lsm::<$key, $value>::builder().cleanup(options.cleanup()), options; batch_size = batch_size)
        };
    }
    of_elements!(options, builder)
}

pub fn array(options: &Options) -> Result<Box<dyn Object>> {
    macro_rules! builder {
        ($key:ty, $value:ty) => {
            SortedArray::<$key, $value>::builder()
        };
    }
    of_elements!(options, builder)
}

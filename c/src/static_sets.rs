//! Exact sets and maps of integers.

#[cfg(feature = "gpu")]
use warpset::static_sets;
use warpset::static_sets::{MappedStaticMap, MappedStaticSet, StaticMap, StaticSet};

use crate::capabilities::*;
#[cfg(feature = "gpu")]
use crate::device::{Address, Adopted};
use crate::elements::{self, MapKey, MapValue};
use crate::error::{Failure, Result};
use crate::keys::{Batch, HostKeys};
use crate::object::{Object, OneKey};
use crate::options::Options;

/// Numbers of keys of a type, in every place.
macro_rules! numbers {
    ($key:ty) => {
        fn numbers(&self, keys: HostKeys<'_>, numbers: &mut [u64]) -> Result<()> {
            // Numbers plus one, and 0 for keys without one, among them those out of range.
            <$key as MapKey>::answered(keys, numbers, |keys, numbers| {
                let found = self.number_bulk_into(keys, numbers)?;
                for (number, is_found) in numbers.iter_mut().zip(found.iter()) {
                    *number = if is_found { *number + 1 } else { 0 };
                }
                Ok(())
            })?;
            numbers.iter_mut().for_each(|number| *number = number.wrapping_sub(1));
            Ok(())
        }
        fn number_bound(&self) -> Result<u64> {
            Ok(self.slots())
        }
    };
}

/// One number, in host memory.
macro_rules! number_on_host {
    ($key:ty) => {
        fn number_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
            Ok(<$key as MapKey>::of_one(key)?.and_then(|key| self.number(key)))
        }
    };
}

/// Values, in every place.
macro_rules! values {
    ($key:ty, $value:ty) => {
        fn get(&self, keys: HostKeys<'_>, values: &mut [u64], found: &mut [u8]) -> Result<()> {
            elements::get::<$key, $value>(keys, values, found, |keys, values| Ok(self.get_bulk_into(keys, values)?))
        }
    };
}

/// One value, in host memory.
macro_rules! value_on_host {
    ($key:ty) => {
        fn get_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
            Ok(<$key as MapKey>::of_one(key)?.and_then(|key| self.get(key)).map(MapValue::wide))
        }
    };
}

/// Values of 64 bits of keys of 64 bits on the device.
#[cfg(feature = "gpu")]
macro_rules! device_values {
    () => {
        fn get_on_device(&self, keys: &Adopted<'_>, values: Address<u64>, found: Address<u64>) -> Result<()> {
            // SAFETY: the header demands memory for the answers; the wait orders the work on it.
            let (mut values, mut found) = unsafe { (values.adopt(self.device())?, found.adopt(self.device())?) };
            Ok(self.get_device(keys.words()?, values.as_mut_slice(), found.as_mut_slice())?)
        }
    };
}

macro_rules! maps {
    ($($key:ty, $value:ty $(, $device:ident)?;)*) => {$(
        object! {
            StaticMap<$key, $value>, StaticMap:
            sized, numbered(len, exact), saved(static_sets::gpu::StaticMap<$key, $value>), members, numbers($key),
            number_on_host($key), values($key, $value), value_on_host($key)
        }
        object! {
            MappedStaticMap<$key, $value>, StaticMap:
            sized, numbered(len, exact), members, numbers($key), number_on_host($key), values($key, $value),
            value_on_host($key)
        }
        #[cfg(feature = "gpu")]
        object! {
            static_sets::gpu::StaticMap<$key, $value>, StaticMap:
            sized, numbered(len, exact), on_device, members, numbers($key), values($key, $value),
            device_filter(with_device_integers)
            $(, $device)?
        }
    )*};
}
maps! {
    u32, u32;
    u32, u64;
    u64, u32;
    u64, u64, device_values;
}

macro_rules! sets {
    ($($key:ty;)*) => {$(
        object! {
            StaticSet<$key>, StaticSet:
            sized, numbered(len, exact), saved(static_sets::gpu::StaticSet<$key>), members, numbers($key),
            number_on_host($key)
        }
        object! {
            MappedStaticSet<$key>, StaticSet:
            sized, numbered(len, exact), members, numbers($key), number_on_host($key)
        }
        #[cfg(feature = "gpu")]
        object! {
            static_sets::gpu::StaticSet<$key>, StaticSet:
            sized, numbered(len, exact), on_device, members, numbers($key), device_filter(with_device_integers)
        }
    )*};
}
sets! {
    u32;
    u64;
}

/// Builds a set or map in its place.
macro_rules! built {
    ($builder:expr, $options:expr; $($argument:expr),*) => {{
        let builder = $crate::options::with_settings!($builder, $options; seed = seed);
        match &$options.place {
            $crate::device::Place::Host => {
                Ok(Box::new(builder.build_from($($argument),*)?) as Box<dyn $crate::object::Object>)
            }
            #[cfg(feature = "gpu")]
            $crate::device::Place::On(devices) => Ok(Box::new(builder.on(devices.first()).build_from($($argument),*)?)),
        }
    }};
}
pub(crate) use built;

/// Returns the error for elements of other sizes.
pub fn no_elements(key_bits: u32, value_bits: u32, known: &str) -> Failure {
    Failure::value(format!("map_key_bits = {key_bits}, map_value_bits = {value_bits}: choose {known}"))
}

pub fn set(batch: &Batch<'_>, options: &Options) -> Result<Box<dyn Object>> {
    let keys = batch.keys();
    match options.given.map_key_bits {
        32 => built!(StaticSet::<u32>::builder(), options; &<u32 as MapKey>::all(keys)?),
        0 | 64 => built!(StaticSet::<u64>::builder(), options; &<u64 as MapKey>::all(keys)?),
        other => Err(no_elements(other, 0, "keys of 32 or 64 bits")),
    }
}

pub fn map(batch: &Batch<'_>, values: &[u64], options: &Options) -> Result<Box<dyn Object>> {
    let keys = batch.keys();
    macro_rules! of {
        ($key:ty, $value:ty) => {
            built!(StaticMap::<$key, $value>::builder(), options;
                &<$key as MapKey>::all(keys)?, &<$value as MapValue>::all(values)?)
        };
    }
    match (options.given.map_key_bits, options.given.map_value_bits) {
        (32, 32) => of!(u32, u32),
        (32, 0 | 64) => of!(u32, u64),
        (0 | 64, 32) => of!(u64, u32),
        (0 | 64, 0 | 64) => of!(u64, u64),
        (key, value) => Err(no_elements(key, value, "32 or 64 bits each")),
    }
}

//! Operations that many types of structures share, as parts of their [`Object`](crate::object::Object).

/// Implements `Object` for a type: its kind, and its capabilities, which are macros of this module.
macro_rules! object {
    ($type:ty, $kind:ident: $($capability:ident$(($($argument:tt)*))?),* $(,)?) => {
        impl $crate::object::Object for $type {
            fn kind(&self) -> $crate::object::warpset_kind {
                $crate::object::warpset_kind::$kind
            }
            $($capability! { $($($argument)*)? })*
        }
    };
}
pub(crate) use object;

/// Bytes of memory, by the method of the type.
macro_rules! sized {
    () => {
        fn memory_bytes(&self) -> u64 {
            self.memory_bytes()
        }
    };
}
pub(crate) use sized;

/// Numbers by methods of the type that return them, or a result.
macro_rules! numbered {
    ($($method:ident),*) => {
        $($crate::capabilities::numbered! { @ $method })*
    };
    (@ len) => {
        fn len(&self) -> $crate::error::Result<u64> {
            $crate::settled::Settled::settled(self.len())
        }
    };
    (@ fpr) => {
        fn fpr(&self) -> $crate::error::Result<f64> {
            $crate::settled::Settled::settled(self.fpr())
        }
    };
    (@ estimated_len) => {
        fn len(&self) -> $crate::error::Result<u64> {
            // A filter with all bits set has an infinite estimate, which becomes the largest number.
            $crate::settled::Settled::settled(self.estimated_len()).map(|len: f64| len.round() as u64)
        }
    };
    (@ exact) => {
        fn fpr(&self) -> $crate::error::Result<f64> {
            Ok(0.0)
        }
    };
}
pub(crate) use numbered;

/// Structure in host memory, with a saved form; the argument is its type on a device, if there is one, and a second one
/// its type on several.
macro_rules! saved {
    ($($device:ty $(, $several:ty)?)?) => {
        fn to_bytes(&self) -> $crate::error::Result<Vec<u8>> {
            Ok(self.to_bytes())
        }
        fn save(&self, path: &std::path::Path) -> $crate::error::Result<()> {
            Ok(self.save(path)?)
        }
        fn copy(&self) -> $crate::error::Result<Box<dyn $crate::object::Object>> {
            Ok(Box::new(self.clone()))
        }
        $(
            #[cfg(feature = "gpu")]
            fn to_device(
                &self,
                devices: &warpset::gpu::Devices,
            ) -> $crate::error::Result<Box<dyn $crate::object::Object>> {
                $(if devices.all().len() > 1 {
                    return Ok(Box::new(<$several>::from_host(devices, self)?));
                })?
                Ok(Box::new(<$device>::from_host(devices.first(), self)?))
            }
        )?
    };
}
pub(crate) use saved;

/// Structure on a device.
#[cfg(feature = "gpu")]
macro_rules! on_device {
    () => {
        fn devices(&self) -> $crate::error::Result<warpset::gpu::Devices> {
            Ok(self.device().into())
        }
        on_devices! {}
    };
}
#[cfg(feature = "gpu")]
pub(crate) use on_device;

/// Structure on one device or several.
#[cfg(feature = "gpu")]
macro_rules! on_devices {
    () => {
        fn is_on_device(&self) -> bool {
            true
        }
        fn to_host(&self) -> $crate::error::Result<Box<dyn $crate::object::Object>> {
            Ok(Box::new(self.to_host()?))
        }
        fn to_bytes(&self) -> $crate::error::Result<Vec<u8>> {
            Ok(self.to_host()?.to_bytes())
        }
        fn save(&self, path: &std::path::Path) -> $crate::error::Result<()> {
            Ok(self.to_host()?.save(path)?)
        }
    };
}
#[cfg(feature = "gpu")]
pub(crate) use on_devices;

/// Lookups in a filter, by the trait `Filter`; the argument tells how it takes hashes.
macro_rules! filter {
    () => {
        filter! { with_keys }
    };
    ($with:ident) => {
        fn contains_one(&self, key: $crate::object::OneKey<'_>) -> $crate::error::Result<bool> {
            Ok($crate::object::with_key!(key, |key| warpset::prelude::Filter::contains(self, key))?)
        }
        fn contains(&self, keys: $crate::keys::HostKeys<'_>, answers: &mut [u8]) -> $crate::error::Result<()> {
            $crate::keys::$with!(keys, |keys| {
                warpset::prelude::Filter::contains_bytes_bulk_into(self, keys, answers)?
            });
            Ok(())
        }
        fn count_contained(&self, keys: $crate::keys::HostKeys<'_>) -> $crate::error::Result<usize> {
            Ok($crate::keys::$with!(keys, |keys| warpset::prelude::Filter::count_contained_bulk(self, keys))?)
        }
    };
}
pub(crate) use filter;

/// Lookups in an exact set or map of integers, which holds no other keys, by the trait `Filter`.
macro_rules! members {
    () => {
        fn contains_one(&self, key: $crate::object::OneKey<'_>) -> $crate::error::Result<bool> {
            Ok(matches!(key, $crate::object::OneKey::Word(key) if warpset::prelude::Filter::contains(self, key)?))
        }
        fn contains(&self, keys: $crate::keys::HostKeys<'_>, answers: &mut [u8]) -> $crate::error::Result<()> {
            let keys = match keys {
                $crate::keys::HostKeys::Strings(_) | $crate::keys::HostKeys::Hashes(_) => {
                    answers.fill(0);
                    return Ok(());
                }
                keys => keys,
            };
            <u64 as $crate::elements::MapKey>::answered(keys, answers, |keys, answers| {
                Ok(warpset::prelude::Filter::contains_bytes_bulk_into(self, keys, answers)?)
            })
        }
    };
}
pub(crate) use members;

/// Insertions into a filter, by the traits `Insert` and `TestAndInsert`.
macro_rules! grows {
    () => {
        fn test_and_insert(&mut self, keys: $crate::keys::HostKeys<'_>, new: &mut [u8]) -> $crate::error::Result<()> {
            let found = $crate::keys::with_keys!(keys, |keys| {
                warpset::prelude::TestAndInsert::test_and_insert_bulk(self, keys)?
            });
            new.iter_mut().zip(found).for_each(|(new, found)| *new = found.into());
            Ok(())
        }
        inserts! {}
    };
}
pub(crate) use grows;

/// Insertions into a filter, by the trait `Insert`.
macro_rules! inserts {
    () => {
        fn can_change(&self) -> bool {
            true
        }
        fn insert_one(&mut self, key: $crate::object::OneKey<'_>) -> $crate::error::Result<()> {
            Ok($crate::object::with_key!(key, |key| warpset::prelude::Insert::insert(self, key))?)
        }
        fn insert(&mut self, keys: $crate::keys::HostKeys<'_>) -> $crate::error::Result<()> {
            $crate::keys::with_keys!(keys, |keys| warpset::prelude::Insert::insert_bulk(self, keys))?;
            Ok(())
        }
        fn clear(&mut self) -> $crate::error::Result<()> {
            Ok(warpset::prelude::Insert::clear(self)?)
        }
        fn merge(&mut self, other: &dyn $crate::object::Object) -> $crate::error::Result<()> {
            Ok(warpset::prelude::Insert::merge(self, $crate::object::same(other)?)?)
        }
    };
}
pub(crate) use inserts;

/// Intersection, by the method of the type.
macro_rules! intersects {
    () => {
        fn intersect(&mut self, other: &dyn $crate::object::Object) -> $crate::error::Result<()> {
            Ok(self.intersect($crate::object::same(other)?)?)
        }
    };
}
pub(crate) use intersects;

/// Counts, by the trait `Count`.
macro_rules! counts {
    () => {
        fn counts(&self, keys: $crate::keys::HostKeys<'_>, counts: &mut [u64]) -> $crate::error::Result<()> {
            $crate::keys::with_keys!(keys, |keys| warpset::prelude::Count::count_bulk_into(self, keys, counts)?);
            Ok(())
        }
    };
}
pub(crate) use counts;

/// Removals by the trait `Remove`, and other sizes.
macro_rules! removes {
    () => {
        fn remove(&mut self, keys: $crate::keys::HostKeys<'_>) -> $crate::error::Result<u64> {
            Ok($crate::keys::with_keys!(keys, |keys| warpset::prelude::Remove::remove_bulk(self, keys))?)
        }
    };
}
pub(crate) use removes;

/// Doubling and halving, by the methods of the type.
macro_rules! resizes {
    () => {
        fn resize(&mut self, doubles: bool) -> $crate::error::Result<()> {
            Ok(if doubles { self.double() } else { self.halve() }?)
        }
    };
}
pub(crate) use resizes;

/// Lookups of keys on the device, by the trait `DeviceFilter`; the argument tells which keys.
#[cfg(feature = "gpu")]
macro_rules! device_filter {
    () => {
        device_filter! { with_device_keys }
    };
    ($with:ident) => {
        fn contains_on_device(
            &self,
            keys: &$crate::device::Adopted<'_>,
            answers: $crate::device::Address<u8>,
            stream: Option<&warpset::gpu::Stream>,
        ) -> $crate::error::Result<()> {
            use warpset::prelude::DeviceFilter;
            // SAFETY: the header demands memory for the answers; the stream or the wait orders the work on it.
            let mut memory = unsafe { answers.adopt(self.device()) }?;
            let answers = memory.as_mut_slice();
            $crate::device::$with!(keys, |keys| match stream {
                // SAFETY: the header demands that all memory stays until the stream has passed the work.
                Some(stream) => unsafe { DeviceFilter::contains_async(self, stream, keys, answers) },
                None => DeviceFilter::contains_device(self, keys, answers),
            })?;
            Ok(())
        }
        fn count_contained_on_device(&self, keys: &$crate::device::Adopted<'_>) -> $crate::error::Result<usize> {
            use warpset::prelude::DeviceFilter;
            Ok($crate::device::$with!(keys, |keys| DeviceFilter::count_contained_device(self, keys))?)
        }
    };
}
#[cfg(feature = "gpu")]
pub(crate) use device_filter;

/// Insertions of keys on the device, by the trait `DeviceInsert`.
#[cfg(feature = "gpu")]
macro_rules! device_grows {
    () => {
        fn insert_on_device(&mut self, keys: &$crate::device::Adopted<'_>) -> $crate::error::Result<()> {
            $crate::device::with_device_keys!(keys, |keys| warpset::prelude::DeviceInsert::insert_device(self, keys))?;
            Ok(())
        }
    };
}
#[cfg(feature = "gpu")]
pub(crate) use device_grows;

//! Classes with structures of two kinds.

use std::marker::PhantomData;
use std::path::Path;

use warpset::gpu::{self, DeviceSliceMut};

use crate::device::Adopted;
use crate::error::{Failure, Result};
use crate::filter::{Changes, DeviceChanges, DeviceLookups, Lookups};
use crate::keys::{HostKeys, OneKey};
use crate::structure::{Forms, Where};

/// A structure of one of two kinds.
#[derive(Clone, PartialEq)]
pub enum Either<A, B> {
    First(A),
    Second(B),
}

/// Runs `$body` with the structure under the name `$it`, whatever its kind.
#[macro_export]
macro_rules! either {
    ($either:expr, |$it:ident| $body:expr) => {
        match $either {
            $crate::kinds::Either::First($it) => $body,
            $crate::kinds::Either::Second($it) => $body,
        }
    };
}

/// Structure of the same kind as the one under the name `$it`.
macro_rules! map_either {
    ($either:expr, |$it:ident: $first:ty, $second:ty| $body:ident($($argument:expr),*)) => {
        match $either {
            Either::First($it) => Either::First(<$first>::$body($($argument),*)?),
            Either::Second($it) => Either::Second(<$second>::$body($($argument),*)?),
        }
    };
}

/// Types of a class of two kinds.
pub struct Kinds<A, B>(PhantomData<(A, B)>);

/// Returns the structure that `first` read, or reads by `second` if the file contains another one.
fn of_either_kind<A, B>(first: Result<A>, second: impl FnOnce() -> Result<B>) -> Result<Either<A, B>> {
    match first {
        Ok(structure) => Ok(Either::First(structure)),
        Err(error) if error.other_structure().is_some() => Ok(Either::Second(second()?)),
        Err(error) => Err(error),
    }
}

impl<A: Forms, B: Forms> Forms for Kinds<A, B> {
    type Host = Either<A::Host, B::Host>;
    type Mapped = Either<A::Mapped, B::Mapped>;
    type Device = Either<A::Device, B::Device>;

    fn to_device(host: &Self::Host, device: &gpu::Device) -> Result<Self::Device> {
        Ok(map_either!(host, |host: A, B| to_device(host, device)))
    }

    fn to_host(there: &Self::Device) -> Result<Self::Host> {
        Ok(map_either!(there, |there: A, B| to_host(there)))
    }

    fn device(there: &Self::Device) -> &gpu::Device {
        match there {
            Either::First(there) => A::device(there),
            Either::Second(there) => B::device(there),
        }
    }

    fn copy(host: &Self::Host) -> Self::Host {
        match host {
            Either::First(host) => Either::First(A::copy(host)),
            Either::Second(host) => Either::Second(B::copy(host)),
        }
    }

    fn to_bytes(host: &Self::Host) -> Result<Vec<u8>> {
        match host {
            Either::First(host) => A::to_bytes(host),
            Either::Second(host) => B::to_bytes(host),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self::Host> {
        of_either_kind(A::from_bytes(bytes), || B::from_bytes(bytes))
    }

    fn save(host: &Self::Host, path: &Path) -> Result<()> {
        match host {
            Either::First(host) => A::save(host, path),
            Either::Second(host) => B::save(host, path),
        }
    }

    fn load(path: &Path) -> Result<Self::Host> {
        of_either_kind(A::load(path), || B::load(path))
    }

    unsafe fn map(path: &Path) -> Result<Self::Mapped> {
        // SAFETY: the caller guarantees that the file does not change.
        of_either_kind(unsafe { A::map(path) }, || {
            // SAFETY: the caller guarantees that the file does not change.
            unsafe { B::map(path) }
        })
    }
}

/// Wraps a structure of one kind as a structure of the class.
pub fn one_of<A: Forms, B: Forms>(
    built: Where<A>,
    host: impl FnOnce(A::Host) -> B::Host,
    device: impl FnOnce(A::Device) -> B::Device,
) -> Result<Where<B>> {
    match built {
        Where::Host(structure) => Ok(Where::Host(host(structure))),
        Where::Device(structure) => Ok(Where::Device(device(structure))),
        Where::Mapped(..) => Err(Failure::internal("a structure is built in memory")),
    }
}

/// Returns the name of a structure's kind.
pub fn kind_of<A: Forms, B: Forms>(value: &Where<Kinds<A, B>>, names: [&'static str; 2]) -> &'static str {
    let is_second = match value {
        Where::Host(value) => matches!(value, Either::Second(_)),
        Where::Mapped(value, _) => matches!(value, Either::Second(_)),
        Where::Device(value) => matches!(value, Either::Second(_)),
    };
    names[usize::from(is_second)]
}

/// Returns the error for an unknown kind.
pub fn no_kind(kind: &str, names: &[&str]) -> Failure {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    Failure::value(format!("kind={kind:?}: there are {} and {last}", others.join(", ")))
}

impl<A: Lookups, B: Lookups> Lookups for Either<A, B> {
    fn contains_one(&self, key: &OneKey<'_>) -> Result<bool> {
        either!(self, |filter| filter.contains_one(key))
    }

    fn contains_into(&self, keys: HostKeys<'_>, answers: &mut [u8]) -> Result<()> {
        either!(self, |filter| filter.contains_into(keys, answers))
    }

    fn count_contained(&self, keys: HostKeys<'_>) -> Result<usize> {
        either!(self, |filter| filter.count_contained(keys))
    }
}

impl<A: Changes, B: Changes> Changes for Either<A, B> {
    fn insert_one(&mut self, key: &OneKey<'_>) -> Result<()> {
        either!(self, |filter| filter.insert_one(key))
    }

    fn insert(&mut self, keys: HostKeys<'_>) -> Result<()> {
        either!(self, |filter| filter.insert(keys))
    }

    fn test_and_insert(&mut self, keys: HostKeys<'_>) -> Result<Vec<bool>> {
        either!(self, |filter| filter.test_and_insert(keys))
    }

    fn remove_all(&mut self) -> Result<()> {
        either!(self, |filter| filter.remove_all())
    }

    fn unite(&mut self, other: &Self) -> Result<()> {
        match (self, other) {
            (Either::First(here), Either::First(there)) => here.unite(there),
            (Either::Second(here), Either::Second(there)) => here.unite(there),
            _ => Err(other_kind()),
        }
    }
}

impl<A: DeviceLookups, B: DeviceLookups> DeviceLookups for Either<A, B> {
    fn contains_on_device(&self, keys: &Adopted<'_>, answers: DeviceSliceMut<'_, u8>) -> Result<()> {
        either!(self, |filter| filter.contains_on_device(keys, answers))
    }

    fn count_contained_on_device(&self, keys: &Adopted<'_>) -> Result<usize> {
        either!(self, |filter| filter.count_contained_on_device(keys))
    }
}

impl<A: DeviceChanges, B: DeviceChanges> DeviceChanges for Either<A, B> {
    fn insert_on_device(&mut self, keys: &Adopted<'_>) -> Result<()> {
        either!(self, |filter| filter.insert_on_device(keys))
    }
}

/// Returns the error for filters of different kinds.
pub fn other_kind() -> Failure {
    Failure::value("the two filters are of different kinds: build both with the same `kind`")
}

//! Quotient filters and maplets.

#[cfg(feature = "gpu")]
use warpset::lsm::Bitmap;
#[cfg(feature = "gpu")]
use warpset::prelude::{BitOr, Max, Min, Sum};
use warpset::quotient::{self, Builder};
use warpset_base::bitmap::options_to;

use crate::bloom::in_place;
use crate::capabilities::*;
#[cfg(feature = "gpu")]
use crate::device::{Address, Adopted, with_device_keys};
use crate::error::Result;
use crate::keys::{HostKeys, with_keys};
use crate::object::{Combine, Object, OneKey, same, with_key};
use crate::options::{Options, with_settings};
use crate::settled::Settled;

/// Removals and counts of keys on the device.
#[cfg(feature = "gpu")]
macro_rules! device_quotient {
    () => {
        fn remove_on_device(&mut self, keys: &Adopted<'_>) -> Result<u64> {
            Ok(with_device_keys!(keys, |keys| self.remove_device(keys))?)
        }
        fn counts_on_device(&self, keys: &Adopted<'_>, counts: Address<u64>) -> Result<()> {
            // SAFETY: the header demands memory for the counts; the wait orders the work on it.
            let mut memory = unsafe { counts.adopt(self.device()) }?;
            with_device_keys!(keys, |keys| self.count_device(keys, memory.as_mut_slice()))?;
            Ok(())
        }
    };
}

/// Values and removals of keys on the device.
#[cfg(feature = "gpu")]
macro_rules! device_maplet {
    () => {
        fn remove_on_device(&mut self, keys: &Adopted<'_>) -> Result<u64> {
            Ok(with_device_keys!(keys, |keys| self.remove_device(keys))?)
        }
        fn get_on_device(&self, keys: &Adopted<'_>, values: Address<u64>, found: Address<u64>) -> Result<()> {
            // SAFETY: the header demands memory for the answers; the wait orders the work on it.
            let (mut values, mut found) = unsafe { (values.adopt(self.device())?, found.adopt(self.device())?) };
            with_device_keys!(keys, |keys| self.get_device(keys, values.as_mut_slice()))?;
            // The device marks keys without a value by a value.
            let mut answers = values.as_slice().to_vec()?;
            let is_found: Vec<bool> = answers.iter().map(|&answer| answer != quotient::gpu::Maplet::ABSENT).collect();
            answers.iter_mut().zip(&is_found).filter(|(_, is_found)| !**is_found).for_each(|(answer, _)| *answer = 0);
            values.as_mut_slice().copy_from_slice(&answers)?;
            Ok(found.as_mut_slice().copy_from_slice(Bitmap::from_bools(&is_found).as_words())?)
        }
        fn insert_values_on_device(&mut self, keys: &Adopted<'_>, values: Address<u64>) -> Result<()> {
            // SAFETY: the header demands memory with the values; the wait orders the work on it.
            let memory = unsafe { values.adopt(self.device()) }?;
            with_device_keys!(keys, |keys| self.insert_device(keys, memory.as_slice()))?;
            Ok(())
        }
    };
}

/// Both kinds of filters: in host memory, in mapped files and on devices.
macro_rules! quotient {
    ($($kind:ident, $mapped:ident;)*) => {$(
        object! {
            quotient::$kind, $kind:
            sized, numbered(len, fpr), saved(quotient::gpu::$kind), filter, grows, intersects, counts, removes, resizes
        }
        object! { quotient::$mapped, $kind: sized, numbered(len, fpr), filter, counts }
        #[cfg(feature = "gpu")]
        object! {
            quotient::gpu::$kind, $kind:
            sized, numbered(len, fpr), on_device, filter, grows, intersects, counts, removes, resizes, device_filter,
            device_grows, device_quotient
        }
    )*};
}
quotient! {
    StandardQuotientFilter, MappedStandardQuotientFilter;
    RankSelectQuotientFilter, MappedRankSelectQuotientFilter;
}

/// Settings that filters and maplets share.
macro_rules! settings {
    ($keys:expr, $options:expr) => {
        with_settings!(Builder::with_capacity($keys).duplicates($options.duplicates()?), $options;
            fpr = fpr, exact = key_bits, max_load = max_load, seed = seed)
    };
}

pub fn standard(keys: u64, options: &Options) -> Result<Box<dyn Object>> {
    in_place!(settings!(keys, options) as Builder<quotient::Standard>, options)
}

pub fn rank_select(keys: u64, options: &Options) -> Result<Box<dyn Object>> {
    in_place!(settings!(keys, options) as Builder<quotient::RankSelect>, options)
}

pub fn maplet(keys: u64, options: &Options) -> Result<Box<dyn Object>> {
    let bits = if options.given.value_bits == 0 { 32 } else { options.given.value_bits };
    in_place!(settings!(keys, options).values(bits), options)
}

/// Values of a maplet, in every place.
macro_rules! maplet_values {
    () => {
        fn get(&self, keys: HostKeys<'_>, values: &mut [u64], found: &mut [u8]) -> Result<()> {
            options_to(values, found, with_keys!(keys, |keys| self.get_bulk(keys).settled())?);
            Ok(())
        }
    };
}

/// Rate and one value, in host memory.
macro_rules! maplet_on_host {
    () => {
        fn fpr(&self) -> Result<f64> {
            Ok(self.expected_fpr(self.len()))
        }
        fn get_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
            Ok(with_key!(key, |key| self.get(key)))
        }
    };
}

/// Changes of a maplet; `$upsert` combines values by an operator.
macro_rules! maplet_changes {
    (|$this:ident, $keys:ident, $values:ident, $by:ident| $upsert:expr) => {
        fn can_change(&self) -> bool {
            true
        }
        fn insert_values(&mut self, keys: HostKeys<'_>, $values: &[u64], $by: Combine) -> Result<()> {
            let $this = self;
            with_keys!(keys, |$keys| match $by {
                Combine::Replace => $this.insert_bulk($keys, $values),
                $by => $upsert,
            })?;
            Ok(())
        }
        fn remove(&mut self, keys: HostKeys<'_>) -> Result<u64> {
            Ok(with_keys!(keys, |keys| self.remove_bulk(keys))?)
        }
        fn clear(&mut self) -> Result<()> {
            self.clear().settled()
        }
        fn merge(&mut self, other: &dyn Object) -> Result<()> {
            Ok(self.merge(same(other)?)?)
        }
    };
}

object! {
    quotient::Maplet, Maplet:
    sized, numbered(len), saved(quotient::gpu::Maplet), filter, maplet_values, maplet_on_host, resizes,
    maplet_changes(|this, keys, values, by| this.upsert_bulk_with(keys, values, |old, new| by.apply(old, new)))
}
object! { quotient::MappedMaplet, Maplet: sized, numbered(len), filter, maplet_values, maplet_on_host }
#[cfg(feature = "gpu")]
object! {
    quotient::gpu::Maplet, Maplet:
    sized, numbered(len), on_device, filter, maplet_values, resizes, device_maplet,
    maplet_changes(|this, keys, values, by| match by {
        Combine::Replace | Combine::Sum => this.upsert_bulk::<Sum<u64>, _, _>(keys, values),
        Combine::Min => this.upsert_bulk::<Min<u64>, _, _>(keys, values),
        Combine::Max => this.upsert_bulk::<Max<u64>, _, _>(keys, values),
        Combine::Or => this.upsert_bulk::<BitOr<u64>, _, _>(keys, values),
    })
}

impl Combine {
    /// Combines the value of a key with a new one.
    pub fn apply(self, old: u64, new: u64) -> u64 {
        match self {
            Combine::Replace => new,
            Combine::Sum => old.wrapping_add(new),
            Combine::Min => old.min(new),
            Combine::Max => old.max(new),
            Combine::Or => old | new,
        }
    }
}

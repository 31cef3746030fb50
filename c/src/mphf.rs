//! Perfect hash functions, static filters and maps of strings.

use warpset::mphf::{self, Builder, ConsensusKind, HashKind, PlacementKind, RecSplitKind};
use warpset_base::bitmap::options_to;

use crate::capabilities::*;
#[cfg(feature = "gpu")]
use crate::device::{Address, Adopted, with_device_keys};
use crate::error::{Failure, Result, warpset_status as Status};
use crate::fuse::built_of;
use crate::keys::{Batch, HostKeys, with_function_keys};
use crate::object::{Object, OneKey, with_key};
use crate::options::{Options, warpset_function_kind, with_settings};

/// Numbers of a function, in every place.
macro_rules! function {
    () => {
        fn numbers(&self, keys: HostKeys<'_>, numbers: &mut [u64]) -> Result<()> {
            Ok(with_function_keys!(keys, |keys| self.get_bulk_into(keys, numbers))?)
        }
        fn number_bound(&self) -> Result<u64> {
            Ok(self.values())
        }
    };
}

/// One number, in host memory.
macro_rules! function_on_host {
    () => {
        fn number_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
            Ok(Some(with_key!(key, |key| self.get(key))))
        }
    };
}

/// Numbers of keys on the device.
#[cfg(feature = "gpu")]
macro_rules! device_function {
    () => {
        fn numbers_on_device(
            &self,
            keys: &Adopted<'_>,
            numbers: Address<u64>,
            stream: Option<&warpset::gpu::Stream>,
        ) -> Result<()> {
            // SAFETY: the header demands memory for the numbers; the stream or the wait orders the work on it.
            let mut memory = unsafe { numbers.adopt(self.device()) }?;
            let numbers = memory.as_mut_slice();
            with_device_keys!(keys, |keys| match stream {
                // SAFETY: the header demands that all memory stays until the stream has passed the work.
                Some(stream) => unsafe { self.get_async(stream, keys, numbers) },
                None => self.get_device(keys, numbers),
            })?;
            Ok(())
        }
    };
}

/// Numbers of a static filter, in every place.
macro_rules! numbered_filter {
    () => {
        fn numbers(&self, keys: HostKeys<'_>, numbers: &mut [u64]) -> Result<()> {
            let found = with_function_keys!(keys, |keys| self.get_bulk_into(keys, numbers))?;
            let strangers = numbers.iter_mut().zip(found.iter()).filter(|(_, is_found)| !is_found);
            strangers.for_each(|(number, _)| *number = u64::MAX);
            Ok(())
        }
        fn number_bound(&self) -> Result<u64> {
            Ok(self.len())
        }
    };
}

/// One number of a static filter, in host memory.
macro_rules! numbered_on_host {
    () => {
        fn number_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
            Ok(with_key!(key, |key| self.get(key)))
        }
    };
}

/// The three kinds of functions, and of filters based on them.
macro_rules! functions {
    ($($name:ident, $kind:ident, $mapped:ident, $hash:ident;)*) => {$(
        object! { mphf::$name, $kind: sized, numbered(len), saved(mphf::gpu::$name), function, function_on_host }
        object! { mphf::$mapped, $kind: sized, numbered(len), function, function_on_host }
        #[cfg(feature = "gpu")]
        object! { mphf::gpu::$name, $kind: sized, numbered(len), on_device, function, device_function }

        object! {
            mphf::StaticFilter<$hash>, StaticFilter:
            sized, numbered(len, fpr), saved(mphf::gpu::StaticFilter<$hash>), filter(with_function_keys), numbered_filter, numbered_on_host
        }
        object! {
            mphf::MappedStaticFilter<$hash>, StaticFilter:
            sized, numbered(len, fpr), filter(with_function_keys), numbered_filter, numbered_on_host
        }
        #[cfg(feature = "gpu")]
        object! {
            mphf::gpu::StaticFilter<$hash>, StaticFilter:
            sized, numbered(len, fpr), on_device, filter(with_function_keys), numbered_filter, device_filter
        }
    )*};
}
functions! {
    RecSplit, Recsplit, MappedRecSplit, RecSplitKind;
    Consensus, Consensus, MappedConsensus, ConsensusKind;
    Placement, Placement, MappedPlacement, PlacementKind;
}

/// Applies the settings of all functions, and the caller's callback.
fn of_all<M: HashKind, S>(builder: Builder<M, S>, options: &Options) -> Builder<M, S> {
    let builder = with_settings!(builder, options;
        for_space = bits_per_key, bucket_size = bucket_size, seed = seed);
    match options.progress() {
        Some(callback) => builder.progress(move |progress| callback(progress.keys_done, progress.keys)),
        None => builder,
    }
}

pub fn recsplit(batch: &Batch<'_>, options: &Options) -> Result<Box<dyn Object>> {
    let builder = with_settings!(of_all(mphf::RecSplit::builder(), options), options;
        leaf_size = leaf_size, load_factor = load_factor, keys_per_value = keys_per_value);
    built_of!(@ with_function_keys, builder, options, batch, |builder, devices| builder.on_each(devices))
}

pub fn consensus(batch: &Batch<'_>, options: &Options) -> Result<Box<dyn Object>> {
    let builder = with_settings!(of_all(mphf::Consensus::builder(), options), options; overhead = overhead);
    built_of!(@ with_function_keys, builder, options, batch, |builder, devices| builder.on_each(devices))
}

pub fn placement(batch: &Batch<'_>, options: &Options) -> Result<Box<dyn Object>> {
    let builder = with_settings!(of_all(mphf::Placement::builder(), options), options; keys_per_seed = keys_per_seed);
    built_of!(@ with_function_keys, builder, options, batch, |builder, devices| builder.on_each(devices))
}

pub fn static_filter(batch: &Batch<'_>, options: &Options) -> Result<Box<dyn Object>> {
    macro_rules! of_kind {
        ($kind:ident, $($setter:ident),*) => {{
            let builder = of_all(mphf::StaticFilter::builder_of_kind($kind), options);
            let builder = with_settings!(builder, options;
                fpr = fpr, width = fingerprint_bits $(, $setter = $setter)*);
            built_of!(@ with_function_keys, builder, options, batch, |builder, devices| builder.on_each(devices))
        }};
    }
    match options.function_kind()? {
        warpset_function_kind::Consensus => of_kind!(ConsensusKind, overhead),
        warpset_function_kind::Recsplit => of_kind!(RecSplitKind, leaf_size),
        warpset_function_kind::Placement => of_kind!(PlacementKind, keys_per_seed),
    }
}

/// Returns the error for keys of a map of strings that are integers.
fn not_strings() -> Failure {
    Failure::new(Status::WrongType, "the keys of a string map are strings: pass one of the string types")
}

/// Values of a map of strings.
macro_rules! string_map {
    () => {
        fn contains(&self, keys: HostKeys<'_>, answers: &mut [u8]) -> Result<()> {
            let mut values = vec![0; keys.len()];
            Object::get(self, keys, &mut values, answers)
        }
        fn get_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
            match key {
                OneKey::String(key) => Ok(self.get(key)),
                OneKey::Word(_) => Err(not_strings()),
            }
        }
        fn get(&self, keys: HostKeys<'_>, values: &mut [u64], found: &mut [u8]) -> Result<()> {
            let HostKeys::Strings(keys) = keys else {
                return if keys.len() == 0 { Ok(()) } else { Err(not_strings()) };
            };
            options_to(values, found, self.get_bulk(keys));
            Ok(())
        }
    };
}

object! { mphf::StringMap, StringMap: sized, numbered(len, exact), saved(), string_map }
object! { mphf::MappedStringMap, StringMap: sized, numbered(len, exact), string_map }

pub fn string_map(batch: &Batch<'_>, values: &[u64], options: &Options) -> Result<Box<dyn Object>> {
    let keys = match batch.keys() {
        HostKeys::Strings(keys) => keys,
        keys if keys.len() == 0 => &[],
        _ => return Err(not_strings()),
    };
    let builder = with_settings!(of_all(mphf::StringMap::builder(), options), options; keys_per_seed = keys_per_seed);
    options.take(builder.build_from(keys, values)?)
}

//! Binary fuse filters and static functions.

use warpset::fuse::{self, BinaryFuse, StaticFunction};
use warpset_base::bitmap::bits_to;

use crate::capabilities::*;
#[cfg(feature = "gpu")]
use crate::device::{Address, Adopted, with_device_keys};
use crate::error::{Failure, Result};
use crate::keys::{Batch, HostKeys, with_keys};
use crate::object::{Object, OneKey, with_key};
use crate::options::{Options, with_settings};

/// The three widths: in host memory, in mapped files and on devices.
macro_rules! fuse {
    ($($kind:ident, $mapped:ident;)*) => {$(
        object! { fuse::$kind, $kind: sized, numbered(len, fpr), saved(fuse::gpu::$kind), filter }
        object! { fuse::$mapped, $kind: sized, numbered(len, fpr), filter }
        #[cfg(feature = "gpu")]
        object! { fuse::gpu::$kind, $kind: sized, numbered(len, fpr), on_device, filter, device_filter }
    )*};
}
fuse! {
    BinaryFuse8, MappedBinaryFuse8;
    BinaryFuse16, MappedBinaryFuse16;
    BinaryFuse32, MappedBinaryFuse32;
}

/// Builds a structure of keys in its place, by a builder and the arguments after the keys; `$there` returns the builder
/// of a structure on devices, and `$with` tells how it takes hashes.
macro_rules! built_of {
    ($builder:expr, $options:expr, $batch:expr $(, $argument:expr)*) => {
        built_of!(@ with_keys, $builder, $options, $batch, |builder, devices| builder.on(devices.first()) $(, $argument)*)
    };
    (@ $with:ident, $builder:expr, $options:expr, $batch:expr, |$name:ident, $devices:ident| $there:expr $(, $argument:expr)*) => {{
        let builder = $builder;
        match &$options.place {
            $crate::device::Place::Host => Ok(Box::new($crate::keys::$with!($batch.keys(), |keys| {
                builder.build_from(keys $(, $argument)*)?
            })) as Box<dyn $crate::object::Object>),
            #[cfg(feature = "gpu")]
            $crate::device::Place::On($devices) => {
                let $name = builder;
                Ok(Box::new($crate::keys::$with!($batch.keys(), |keys| $there.build_from(keys $(, $argument)*)?)))
            }
        }
    }};
}
pub(crate) use built_of;

pub fn build(batch: &Batch<'_>, options: &Options) -> Result<Box<dyn Object>> {
    let (arity, form) = options.graphs()?;
    macro_rules! of_width {
        ($fingerprint:ty) => {{
            let builder = BinaryFuse::<$fingerprint>::builder().arity(arity).form(form);
            built_of!(with_settings!(builder, options; seed = seed), options, batch)
        }};
    }
    match options.given.fingerprint_bits {
        0 | 8 => of_width!(u8),
        16 => of_width!(u16),
        32 => of_width!(u32),
        other => Err(Failure::value(format!("fingerprint_bits = {other}: choose 8, 16 or 32"))),
    }
}

/// Values of a static function, in every place.
macro_rules! function {
    () => {
        fn fpr(&self) -> Result<f64> {
            let layout = self.layout();
            let bits = f64::from(layout.value_bits()) - f64::from(layout.bits());
            Ok(if layout.slots() == 0 { 0.0 } else { bits.exp2() })
        }
        fn get(&self, keys: HostKeys<'_>, values: &mut [u64], found: &mut [u8]) -> Result<()> {
            let bits = with_keys!(keys, |keys| self.get_bulk_into(keys, values))?;
            bits_to(found, bits.as_words());
            Ok(())
        }
    };
}

/// One value, in host memory.
macro_rules! function_on_host {
    () => {
        fn get_one(&self, key: OneKey<'_>) -> Result<Option<u64>> {
            Ok(with_key!(key, |key| self.get(key)))
        }
    };
}

/// Values of keys on the device.
#[cfg(feature = "gpu")]
macro_rules! device_function {
    () => {
        fn get_on_device(&self, keys: &Adopted<'_>, values: Address<u64>, found: Address<u64>) -> Result<()> {
            // SAFETY: the header demands memory for the answers; the wait orders the work on it.
            let (mut values, mut found) = unsafe { (values.adopt(self.device())?, found.adopt(self.device())?) };
            with_device_keys!(keys, |keys| self.get_device(keys, values.as_mut_slice(), found.as_mut_slice()))?;
            Ok(())
        }
    };
}

object! {
    StaticFunction<u64>, StaticFunction:
    sized, numbered(len), saved(fuse::gpu::StaticFunction<u64>), function, function_on_host
}
object! { fuse::MappedStaticFunction<u64>, StaticFunction: sized, numbered(len), function, function_on_host }
#[cfg(feature = "gpu")]
object! { fuse::gpu::StaticFunction<u64>, StaticFunction: sized, numbered(len), on_device, function, device_function }

pub fn function(batch: &Batch<'_>, values: &[u64], options: &Options) -> Result<Box<dyn Object>> {
    let (arity, form) = options.graphs()?;
    let widest = u64::BITS - values.iter().fold(1, |all, value| all | value).leading_zeros();
    let bits = if options.given.value_bits == 0 { widest } else { options.given.value_bits };
    let builder = StaticFunction::<u64>::builder().value_bits(bits).arity(arity).form(form);
    built_of!(with_settings!(builder, options; filtered = filtered, seed = seed), options, batch, values)
}

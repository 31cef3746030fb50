//! Settings of the published structure.

use std::marker::PhantomData;

use warpset_gpu::Device;

use super::cpu::Lsm;
use super::element::{PackedKey, PairValue};
use super::gpu::{self, DeviceKey};
use super::host::Host;
use super::steps::{Batch, Does};
use super::tree::Tree;
use crate::Error;
use crate::error::one_per_key;
use warpset_lsm::DEFAULT_BATCH_SIZE;

/// Settings of a published [`Lsm`]; each setter states its default.
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<K, V> {
    batch_size: u64,
    elements: PhantomData<(K, V)>,
}

impl<K, V> Default for Builder<K, V> {
    fn default() -> Self {
        Builder { batch_size: DEFAULT_BATCH_SIZE, elements: PhantomData }
    }
}

/// Returns a batch size that dictionaries have.
fn checked(batch_size: u64) -> Result<usize, Error> {
    if !batch_size.is_power_of_two() || !(64..=1 << 40).contains(&batch_size) {
        return Err(Error::InvalidBatchSize { batch_size });
    }
    Ok(batch_size as usize)
}

impl<K: PackedKey, V: PairValue> Lsm<K, V> {
    /// Makes a builder of a dictionary.
    pub fn builder() -> Builder<K, V> {
        Builder::default()
    }
}

impl<K: PackedKey, V: PairValue> Builder<K, V> {
    /// Sets the elements of a batch, the paper's `b`: a power of two, from 64 to 2^40. Default: 65536.
    pub fn batch_size(mut self, batch_size: u64) -> Self {
        self.batch_size = batch_size;
        self
    }

    /// Checks every setting and makes an empty dictionary.
    ///
    /// # Errors
    /// [`Error::InvalidBatchSize`]; no memory.
    pub fn build(&self) -> Result<Lsm<K, V>, Error> {
        Ok(Lsm { tree: Tree::empty(&Host, checked(self.batch_size)?)? })
    }

    /// Builds in bulk: keys and values, one value per key, are sorted once and cut into levels; the last batch is
    /// padded. Of equal keys the last one counts.
    ///
    /// # Errors
    /// [`Error::InvalidBatchSize`], [`Error::LengthMismatch`], [`Error::KeyTooLarge`]; no memory.
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<Lsm<K, V>, Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let batch = Batch { keys, does: Does::Insert(values) };
        // SAFETY: as many values as keys, checked above.
        Ok(Lsm { tree: unsafe { Tree::build(&Host, checked(self.batch_size)?, &batch)? } })
    }

    /// Makes a builder of dictionaries in device memory with these settings.
    pub fn on(&self, device: &Device) -> DeviceBuilder<K, V> {
        DeviceBuilder { settings: *self, device: device.clone() }
    }
}

/// [`Builder`] of dictionaries in device memory, made by [`Builder::on`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceBuilder<K, V> {
    settings: Builder<K, V>,
    device: Device,
}

impl<K: DeviceKey<V>, V: PairValue> DeviceBuilder<K, V> {
    /// Checks every setting and makes an empty dictionary.
    ///
    /// # Errors
    /// [`Error::InvalidBatchSize`]; no memory.
    pub fn build(&self) -> Result<gpu::Lsm<K, V>, Error> {
        gpu::Lsm::empty(&self.device, checked(self.settings.batch_size)?)
    }

    /// Builds like [`Builder::build_from`], in device memory.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`], and [`Error::Gpu`].
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<gpu::Lsm<K, V>, Error> {
        gpu::Lsm::build_from_slices(&self.device, checked(self.settings.batch_size)?, keys, values)
    }
}

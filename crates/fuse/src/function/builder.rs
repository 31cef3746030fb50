//! Settings of static functions, and builds from keys that need not fit in memory.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;

use warpset_base::filter::same_length;

use super::{FunctionValue, StaticFunction};
use crate::build::external::{self, Resources};
use crate::build::item::Entry;
use crate::build::{self, Pairs, Settings, word_of};
use crate::builder::graph_setters;
use crate::layout::MOST_FINGERPRINT_BITS;
use crate::{Arity, Error, Form, Key, Layout};

/// Settings of a [`StaticFunction`]; each setter states its default.
///
/// ```
/// use warpset_fuse::StaticFunction;
///
/// let keys: Vec<u64> = (0..100_000).collect();
/// let is_even: Vec<bool> = keys.iter().map(|key| key % 2 == 0).collect();
/// let function = StaticFunction::builder().for_space().build_from(&keys, &is_even)?;
/// assert!(function.bits_per_key() < 1.15 && function.get(44u64) == Some(true));
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct FunctionBuilder<V> {
    settings: Settings,
    filter_bits: u32,
    value: PhantomData<V>,
}

impl<V: FunctionValue> FunctionBuilder<V> {
    pub(crate) fn new() -> FunctionBuilder<V> {
        FunctionBuilder { settings: Settings::new(V::BITS, V::BITS), filter_bits: 0, value: PhantomData }
    }

    /// Sets the bits of a value, from 1 to those of the type; a greater value is an error. Default: those of the type.
    pub fn value_bits(mut self, bits: u32) -> Self {
        self.settings.value_bits = bits;
        self
    }

    /// Stores a fingerprint of this many bits, at most 32, beside each value: keys that the function was not built from
    /// get no value, except with probability `2^-bits`. Value and fingerprint have at most 64 bits. Default: 0, and
    /// such keys get any value.
    pub fn filtered(mut self, bits: u32) -> Self {
        self.filter_bits = bits;
        self
    }

    graph_setters!();

    /// Checks every setting.
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        let (value_bits, filter_bits) = (self.settings.value_bits, self.filter_bits);
        let bits = value_bits.saturating_add(filter_bits);
        if !(1..=V::BITS).contains(&value_bits) || filter_bits > MOST_FINGERPRINT_BITS || bits > 64 {
            return Err(Error::InvalidBits { value_bits, filter_bits, type_bits: V::BITS });
        }
        Ok(Settings { bits, ..self.settings })
    }

    /// Returns the parameters of a function of `keys` different keys if the first seed succeeds; the number of words is
    /// the same for every seed.
    ///
    /// # Errors
    /// [`Error::InvalidBits`], [`Error::TooManyKeys`].
    pub fn layout(&self, keys: u64) -> Result<Layout, Error> {
        self.settings()?.layout(keys, 0)
    }

    /// Returns the function of these keys and their values, on all threads of the current rayon pool. Keys may repeat
    /// with equal values. The bytes follow from the settings and the set of pairs, whatever their order and the number
    /// of threads.
    ///
    /// Memory for a time: some 55 bytes per key for one graph, at most 20 sharded; 16 more for keys that are no
    /// integers of up to 64 bits, or if keys are equal.
    ///
    /// # Errors
    /// The errors of [`layout`](Self::layout); [`Error::LengthMismatch`] unless there is a value per key;
    /// [`Error::WideValue`]; [`Error::TwoValues`] if equal keys have different ones; [`Error::OutOfMemory`];
    /// [`Error::NoSeed`] for [`Hashed`](crate::Hashed) keys that are not random, and otherwise never in practice.
    pub fn build_from<K: Key>(&self, keys: &[K], values: &[V]) -> Result<StaticFunction<V>, Error> {
        let settings = self.settings()?;
        same_length(keys.len(), values.len())?;
        values.iter().try_for_each(|&value| check(&settings, value))?;
        let source = Pairs { keys, values };
        let (layout, words) = match settings.bits {
            ..=8 => build::build::<u8, _>(&settings, &source)?,
            9..=16 => build::build::<u16, _>(&settings, &source)?,
            17..=32 => build::build::<u32, _>(&settings, &source)?,
            _ => build::build::<u64, _>(&settings, &source)?,
        };
        Ok(StaticFunction::from_parts(layout, words))
    }

    /// Returns a build of a sharded function from keys that need not fit in memory.
    pub fn external(&self) -> FunctionExternal<V> {
        FunctionExternal { builder: self.form(Form::Sharded), resources: Resources::default() }
    }
}

/// Fails if a value has more bits than the slots have for it.
fn check<V: FunctionValue>(settings: &Settings, value: V) -> Result<(), Error> {
    let (value, bits) = (value.into(), settings.value_bits);
    if value.unbounded_shr(bits) == 0 { Ok(()) } else { Err(Error::WideValue { value, bits }) }
}

/// A build of a sharded function from keys that need not fit in memory; made by [`FunctionBuilder::external`].
///
/// The function has the same bytes as one that [`FunctionBuilder::build_from`] builds from the same pairs with
/// [`Form::Sharded`].
///
/// ```
/// use warpset_fuse::{Form, StaticFunction};
///
/// let builder = StaticFunction::<u8>::builder().value_bits(3);
/// let pairs = (0..100_000u64).map(|i| Ok((i * i, (i % 8) as u8))); // rows of a file, say: each may fail to be read
/// let function = builder.external().memory(1 << 22).build_from(pairs)?;
/// assert_eq!(function.get(10_000u64 * 10_000), Some(0));
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing happens until `build_from`"]
pub struct FunctionExternal<V> {
    builder: FunctionBuilder<V>,
    resources: Resources,
}

impl<V: FunctionValue> FunctionExternal<V> {
    /// Sets the memory to use, in bytes, beside the function itself; at least 4 MiB. Default: 1 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.resources.memory = bytes;
        self
    }

    /// Sets the folder of the temporary file, which takes 16 bytes per key, and twice that for a time if a seed fails
    /// or keys are equal. The file has no name in the folder where the system allows that, and disappears at the end of
    /// the build, on every exit. Default: [`std::env::temp_dir`].
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.resources.folder = folder.into();
        self
    }

    /// Builds the function of these keys and values, which are read once.
    ///
    /// # Errors
    /// The errors of [`FunctionBuilder::build_from`]; [`Error::Io`] if the pairs or the temporary file cannot be read
    /// or written.
    pub fn build_from<K: Key>(
        &self,
        pairs: impl IntoIterator<Item = io::Result<(K, V)>>,
    ) -> Result<StaticFunction<V>, Error> {
        let settings = self.builder.settings()?;
        let items = pairs.into_iter().map(|pair| {
            pair.map(|(key, value)| {
                check(&settings, value)?;
                Ok(Entry { hash: word_of(&key), value: value.into() })
            })
        });
        let (layout, words) = match settings.bits {
            ..=8 => external::build::<Entry, u8>(&settings, &self.resources, items)?,
            9..=16 => external::build::<Entry, u16>(&settings, &self.resources, items)?,
            17..=32 => external::build::<Entry, u32>(&settings, &self.resources, items)?,
            _ => external::build::<Entry, u64>(&settings, &self.resources, items)?,
        };
        Ok(StaticFunction::from_parts(layout, words))
    }
}

impl<V: FunctionValue> fmt::Debug for FunctionBuilder<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("FunctionBuilder");
        f.field("settings", &self.settings).field("filter_bits", &self.filter_bits).finish()
    }
}

impl<V: FunctionValue> fmt::Debug for FunctionExternal<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resources { memory, folder } = &self.resources;
        let mut f = f.debug_struct("FunctionExternal");
        f.field("builder", &self.builder).field("memory", memory).field("folder", folder).finish()
    }
}

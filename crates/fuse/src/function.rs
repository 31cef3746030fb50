//! Static functions: values of keys that are known when the function is built, without the keys.
//!
//! The exclusive or of a key's slots is its value, where in a filter it is the key's fingerprint; graphs, peeling and
//! shards are those of filters. Slots take as many bits as a value, one after the other. A filtered function has a
//! fingerprint above each value, so that keys it was not built from are noticed.
//!
//! Source: Majewski, Wormald, Havas, Czech, "A Family of Perfect Hashing Methods", The Computer Journal 39(6), 1996
//! (values by peeling); Graf and Lemire (the graph).
//!
//! ```text
//! slot   | fingerprint, 0 to 32 bits | value, 1 to 64 bits |      at most 64 bits
//! words  | all slots | seeds: one byte per shard |
//! ```

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Zeroable;
use warpset_base::file::FileKind;
use warpset_base::filter::same_length;
use warpset_base::words::{AlignedWords, in_huge_pages};

use crate::image::{in_host_memory, measures};
use crate::{Bitmap, Error, Key, Layout};

pub(crate) mod builder;
mod lookup;

pub use builder::{FunctionBuilder, FunctionExternal};
use lookup::Lookup;

/// A value of a [`StaticFunction`]: `bool`, `u8`, `u16`, `u32` or `u64`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no value of a static function",
    note = "take `bool`, `u8`, `u16`, `u32` or `u64`; keep other values in a table, and take their numbers"
)]
pub trait FunctionValue:
    Copy + Default + Zeroable + PartialEq + fmt::Debug + Into<u64> + Send + Sync + sealed::Value
{
    /// Bits of a value if the builder does not say fewer.
    const BITS: u32;
}

mod sealed {
    pub trait Value {
        /// Returns the value with these bits, of which no other is set.
        fn of(bits: u64) -> Self;
    }
}

macro_rules! values {
    ($($value:ty, $bits:expr, |$given:ident| $made:expr;)*) => {$(
        impl FunctionValue for $value {
            const BITS: u32 = $bits;
        }
        impl sealed::Value for $value {
            #[inline(always)]
            fn of($given: u64) -> $value {
                $made
            }
        }
    )*};
}
values! {
    bool, 1, |bits| bits != 0;
    u8, 8, |bits| bits as u8;
    u16, 16, |bits| bits as u16;
    u32, 32, |bits| bits as u32;
    u64, 64, |bits| bits;
}

/// A static function in host memory: returns the value of each key that it was built from, and stores no keys.
///
/// For other keys it returns any value, or, if [`filtered`](FunctionBuilder::filtered), `None` except with probability
/// `2^-bits`.
///
/// - **Space**: 1.13 slots per key at a million keys and more; 1.08 four-wise, 1.24 sharded. A slot has the bits of a
///   value, and those of a fingerprint. Fewer keys take more, as in filters.
/// - **Cost**: a lookup reads three slots, four-wise four.
/// - **Limits**: nothing can be changed; one graph takes 3.8 billion keys.
///
/// ```
/// use warpset_fuse::StaticFunction;
///
/// let countries = ["Chad", "Fiji", "Peru"];
/// let populations = StaticFunction::<u32>::builder().build_from(&countries, &[17_700_000, 900_000, 34_000_000])?;
/// assert_eq!(populations.get("Fiji"), Some(900_000));
///
/// // Two bits per value, and 16 bits to notice other keys.
/// let keys: Vec<u64> = (0..10_000).collect();
/// let values: Vec<u8> = keys.iter().map(|key| (key % 4) as u8).collect();
/// let function = StaticFunction::<u8>::builder().value_bits(2).filtered(16).build_from(&keys, &values)?;
/// assert_eq!((function.get(7u64), function.get(1_000_007u64)), (Some(3), None));
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone)]
pub struct StaticFunction<V> {
    layout: Layout,
    words: AlignedWords<u64>,
    of: PhantomData<V>,
}

impl<V: FunctionValue> StaticFunction<V> {
    /// Returns settings for a function; [`FunctionBuilder::build_from`] takes keys and values.
    pub fn builder() -> FunctionBuilder<V> {
        FunctionBuilder::new()
    }

    /// Returns the value of a key. For keys that the function was not built from: `None` with probability
    /// `1 - `[`fpr`](Self::fpr), else any value.
    #[inline]
    pub fn get(&self, key: impl Key) -> Option<V> {
        Lookup { layout: &self.layout, words: self.words() }.value(crate::word_of(&key)).map(V::of)
    }
}

/// A function's parameters and a borrow of its words: answers queries, owns nothing.
///
/// ```
/// use warpset_fuse::{StaticFunction, StaticFunctionView};
///
/// let saved = StaticFunction::<u16>::builder().build_from(&["a", "b"], &[1, 2])?.to_bytes();
/// let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved); // at a multiple of 8
/// let view = StaticFunctionView::<u16>::from_bytes(bytemuck::cast_slice(&words))?;
/// assert_eq!(view.get("b"), Some(2));
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct StaticFunctionView<'a, V> {
    layout: Layout,
    words: &'a [u64],
    of: PhantomData<V>,
}

impl<V: FunctionValue> StaticFunctionView<'_, V> {
    #[inline(always)]
    fn lookup(&self) -> Lookup<'_> {
        Lookup { layout: &self.layout, words: self.words }
    }

    /// Returns the value of a key. For keys that the function was not built from: `None` with probability
    /// `1 - `[`fpr`](Self::fpr), else any value.
    #[inline]
    pub fn get(&self, key: impl Key) -> Option<V> {
        self.lookup().value(crate::word_of(&key)).map(V::of)
    }

    /// Returns the value of each key, on all threads of the current rayon pool; see [`get`](Self::get).
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Vec<Option<V>> {
        let mut values = in_huge_pages(vec![None; keys.len()]);
        self.lookup().values_of(keys, &mut values, |value| value.map(V::of));
        values
    }

    /// Writes the values of [`get_bulk`](Self::get_bulk) to a slice of equal length, and returns which keys have one;
    /// the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn get_bulk_into<K: Key>(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap, Error> {
        same_length(keys.len(), values.len())?;
        Ok(self.lookup().values_of(keys, values, |value| value.map_or(V::default(), V::of)))
    }
}

measures! {
    [V: FunctionValue] StaticFunction<V>;
    [V: FunctionValue] StaticFunctionView<'_, V>;
    #[cfg(feature = "mmap")]
    [V: FunctionValue] MappedStaticFunction<V>;
}

#[cfg(feature = "mmap")]
warpset_base::queries_of_view! {
    [V: FunctionValue] MappedStaticFunction<V>;
    => {
        /// Returns the value of a key. For keys that the function was not built from: `None` with probability
        /// `1 - `[`fpr`](Self::fpr), else any value.
        fn get(&self, key: impl Key) -> Option<V>;
    }
}

warpset_base::queries_of_view! {
    [V: FunctionValue] StaticFunction<V>;
    #[cfg(feature = "mmap")]
    [V: FunctionValue] MappedStaticFunction<V>;
    => {
        /// Returns the value of each key, on all threads of the current rayon pool; see [`get`](Self::get).
        fn get_bulk<K>(&self, keys: &[K]) -> Vec<Option<V>>;
        /// Writes the values of [`get_bulk`](Self::get_bulk) to a slice of equal length, and returns which keys have
        /// one; the others get zero.
        ///
        /// # Errors
        /// [`Error::LengthMismatch`].
        fn get_bulk_into<K>(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap, Error>;
    }
}

in_host_memory! {
    [V: FunctionValue] StaticFunction<V>, StaticFunctionView;
    FileKind::STATIC_FUNCTION, "static function", 1..=64, 1..=V::BITS;
    fn from_bytes;
}

#[cfg(feature = "mmap")]
warpset_base::mapped! {
    /// A function in a memory-mapped file, opened by [`StaticFunction::map`]. It answers every query; processes that
    /// map the same file share its memory.
    [V: FunctionValue] MappedStaticFunction<V> as MappedStaticFunction of StaticFunction<V>, Error;
    layout: Layout = |layout| layout;
    view: StaticFunctionView<'_, V> = |layout, words| StaticFunctionView::new(layout, words);
    /// Maps a saved function into memory: nothing is copied, and processes share the memory. The whole file is read
    /// once, for its checksum.
    ///
    /// ```
    /// use warpset_fuse::StaticFunction;
    ///
    /// let path = std::env::temp_dir().join("warpset-function-map.warpset");
    /// StaticFunction::<u8>::builder().build_from(&["a", "b"], &[1, 2])?.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let function = unsafe { StaticFunction::<u8>::map(&path)? };
    /// assert_eq!(function.get("b"), Some(2));
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_fuse::Error>(())
    /// ```
    fn map;
}

#[cfg(test)]
mod tests;

//! Types of keys and payloads, and the kernels for their widths.

use bytemuck::Pod;

use sealed::KeyWidth;

/// Types of sort keys: `u32`, `u64` and `u128`. Sealed.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be sorted by", note = "use `u32`, `u64` or `u128`")]
pub trait SortKey: Pod + Ord + sealed::Word + sealed::Key {}
impl SortKey for u32 {}
impl SortKey for u64 {}
impl SortKey for u128 {}

/// Types of payloads: integers of 4 or 8 bytes. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel with a key",
    note = "use integers of 4 or 8 bytes, such as places in a table"
)]
pub trait Payload: Pod + sealed::Word + sealed::Payload {}
impl<V: Pod + sealed::Word + sealed::Payload> Payload for V {}

pub(crate) mod sealed {
    use warpset_kernels::primitives::merge::merge_splits;
    use warpset_kernels::primitives::merge::search::{
        lower_bound, lower_bound_sorted, upper_bound, upper_bound_sorted,
    };
    use warpset_kernels::primitives::merge_many::merge_many_splits;
    use warpset_kernels::primitives::radix_sort::radix_sort_reverse;
    use warpset_simt::EntryOf;

    /// Integers by their bits.
    pub trait Word: Send + Sync {
        fn bits(self) -> u128;
        /// Drops bits beyond the width of the integer.
        fn from_bits(bits: u128) -> Self;
    }

    /// Width of keys.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum KeyWidth {
        U32,
        U64,
        U128,
    }

    /// Keys with kernels that split runs, search them and reverse items.
    pub trait Key:
        Sized
        + EntryOf<merge_splits<Self>>
        + EntryOf<merge_many_splits<Self>>
        + EntryOf<radix_sort_reverse<Self>>
        + EntryOf<lower_bound<Self>>
        + EntryOf<upper_bound<Self>>
        + EntryOf<lower_bound_sorted<Self>>
        + EntryOf<upper_bound_sorted<Self>>
    {
        const WIDTH: KeyWidth;
    }

    /// Payloads of keys.
    pub trait Payload {
        /// Whether the payload has 8 bytes and not 4.
        const WIDE: bool;
    }

    macro_rules! words {
        ($($word:ty)*) => {$(
            impl Word for $word {
                fn bits(self) -> u128 {
                    self as u128
                }
                fn from_bits(bits: u128) -> Self {
                    bits as $word
                }
            }
        )*};
    }
    words! { u32 i32 u64 i64 u128 }

    macro_rules! keys {
        ($($key:ty: $width:ident;)*) => {$(
            impl Key for $key {
                const WIDTH: KeyWidth = KeyWidth::$width;
            }
        )*};
    }
    keys! { u32: U32; u64: U64; u128: U128; }

    macro_rules! payloads {
        ($($payload:ty: $wide:literal;)*) => {$(
            impl Payload for $payload {
                const WIDE: bool = $wide;
            }
        )*};
    }
    payloads! { u32: false; i32: false; u64: true; i64: true; }
}

/// Returns a number as a key, for tests; keys of 128 bits have bits of large numbers in both halves.
#[cfg(test)]
pub(crate) fn key_of<K: SortKey>(number: u64) -> K {
    let number = u128::from(number);
    K::from_bits(if K::WIDTH == KeyWidth::U128 { number << 40 | number & 0xff } else { number })
}

/// Sorts by definition: a stable sort by the bits, for tests.
#[cfg(test)]
pub(crate) fn sorted<K: SortKey, V: Copy>(keys: &[K], values: &[V], by: &super::By) -> (Vec<K>, Vec<V>) {
    let bits = by.range::<K>().unwrap();
    let (drop, flip) = (128 - bits.len() as u32, if by.flip() == 0 { 0 } else { !0 });
    let rank = |key: K| (key.bits() >> bits.start ^ flip).checked_shl(drop);
    let mut pairs: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    if by.is_reversed() {
        pairs.reverse();
    }
    pairs.sort_by_key(|&(key, _)| rank(key));
    pairs.into_iter().unzip()
}

/// Widths of keys and payloads, which determine the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) keys: KeyWidth,
    /// `None` if there are no payloads.
    pub(crate) wide_values: Option<bool>,
}

impl Widths {
    pub(crate) fn keys<K: SortKey>() -> Widths {
        Widths { keys: K::WIDTH, wide_values: None }
    }

    pub(crate) fn pairs<K: SortKey, V: Payload>() -> Widths {
        Widths { keys: K::WIDTH, wide_values: Some(V::WIDE) }
    }

    pub(crate) fn key_bytes(self) -> usize {
        match self.keys {
            KeyWidth::U32 => 4,
            KeyWidth::U64 => 8,
            KeyWidth::U128 => 16,
        }
    }

    pub(crate) fn value_bytes(self) -> usize {
        self.wide_values.map_or(0, |wide| if wide { 8 } else { 4 })
    }
}

/// Evaluates `$call` with `$kernel` naming one of nine kernels or constants, by these [`Widths`].
macro_rules! by_widths {
    ($widths:expr, $module:ident::{
        $u32:ident, $u32_u32:ident, $u32_u64:ident, $u64:ident, $u64_u32:ident, $u64_u64:ident,
        $u128:ident, $u128_u32:ident, $u128_u64:ident
    }, |$kernel:ident| $call:expr) => {{
        macro_rules! with {
            ($chosen:ident) => {{
                use $module::$chosen as $kernel;
                $call
            }};
        }
        use $crate::sort::sealed::KeyWidth::{U32, U64, U128};
        match ($widths.keys, $widths.wide_values) {
            (U32, None) => with!($u32),
            (U32, Some(false)) => with!($u32_u32),
            (U32, Some(true)) => with!($u32_u64),
            (U64, None) => with!($u64),
            (U64, Some(false)) => with!($u64_u32),
            (U64, Some(true)) => with!($u64_u64),
            (U128, None) => with!($u128),
            (U128, Some(false)) => with!($u128_u32),
            (U128, Some(true)) => with!($u128_u64),
        }
    }};
}
pub(crate) use by_widths;

/// The function for the keys of these [`Widths`].
macro_rules! by_key_width {
    ($widths:expr, $function:ident) => {{
        use $crate::sort::sealed::KeyWidth::{U32, U64, U128};
        match $widths.keys {
            U32 => $function::<u32>,
            U64 => $function::<u64>,
            U128 => $function::<u128>,
        }
    }};
}
pub(crate) use by_key_width;

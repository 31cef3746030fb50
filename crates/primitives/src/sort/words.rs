//! The types of keys and payloads, and the kernels that their widths ask for.

use bytemuck::Pod;

/// What can be sorted by: `u32` and `u64`. Sealed.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be sorted by", note = "use `u32` or `u64`")]
pub trait SortKey: Pod + Ord + sealed::Word + sealed::MergeEntries {}
impl SortKey for u32 {}
impl SortKey for u64 {}

/// What can travel with a key: integers of 4 or 8 bytes. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel with a key",
    note = "use integers of 4 or 8 bytes, such as places in a table"
)]
pub trait Payload: Pod + sealed::Word {}
impl<T: Pod + sealed::Word> Payload for T {}

pub(crate) mod sealed {
    use warpset_kernels::primitives::merge::merge_splits;
    use warpset_kernels::primitives::merge::search::{
        lower_bound, lower_bound_sorted, upper_bound, upper_bound_sorted,
    };
    use warpset_kernels::primitives::merge_many::merge_many_splits;
    use warpset_kernels::primitives::radix_sort::radix_sort_reverse;
    use warpset_simt::EntryOf;

    pub trait Word: Send + Sync {
        const WIDE: bool;
        fn bits(self) -> u64;
        fn from_bits(bits: u64) -> Self;
    }
    /// Keys for which there are the kernels that split runs, search them and reverse items.
    pub trait MergeEntries:
        Sized
        + EntryOf<merge_splits<Self>>
        + EntryOf<merge_many_splits<Self>>
        + EntryOf<radix_sort_reverse<Self>>
        + EntryOf<lower_bound<Self>>
        + EntryOf<upper_bound<Self>>
        + EntryOf<lower_bound_sorted<Self>>
        + EntryOf<upper_bound_sorted<Self>>
    {
    }
    impl MergeEntries for u32 {}
    impl MergeEntries for u64 {}

    macro_rules! words {
        ($($word:ty: $wide:literal;)*) => {$(
            impl Word for $word {
                const WIDE: bool = $wide;
                fn bits(self) -> u64 {
                    self as u64
                }
                fn from_bits(bits: u64) -> Self {
                    bits as $word
                }
            }
        )*};
    }
    words! { u32: false; i32: false; u64: true; i64: true; }
}

/// What kernels there are: by the widths of keys and payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) wide_keys: bool,
    /// `None` if there are no payloads.
    pub(crate) wide_values: Option<bool>,
}

impl Widths {
    pub(crate) fn keys<K: SortKey>() -> Widths {
        Widths { wide_keys: K::WIDE, wide_values: None }
    }

    pub(crate) fn pairs<K: SortKey, V: Payload>() -> Widths {
        Widths { wide_keys: K::WIDE, wide_values: Some(V::WIDE) }
    }

    pub(crate) fn key_bytes(self) -> usize {
        if self.wide_keys { 8 } else { 4 }
    }

    pub(crate) fn value_bytes(self) -> usize {
        self.wide_values.map_or(0, |wide| if wide { 8 } else { 4 })
    }
}

/// Evaluates `$call` with `$kernel` naming the one of six kernels (or constants) that these [`Widths`] ask for.
macro_rules! by_widths {
    ($widths:expr, $module:ident::{$a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident}, |$kernel:ident| $call:expr) => {{
        macro_rules! with {
            ($chosen:ident) => {{
                use $module::$chosen as $kernel;
                $call
            }};
        }
        match ($widths.wide_keys, $widths.wide_values) {
            (false, None) => with!($a),
            (false, Some(false)) => with!($b),
            (false, Some(true)) => with!($c),
            (true, None) => with!($d),
            (true, Some(false)) => with!($e),
            (true, Some(true)) => with!($f),
        }
    }};
}
pub(crate) use by_widths;

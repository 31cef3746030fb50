//! Selection and partition, in order: by a bitmap, by flags, by a predicate, and to the first of equal neighbours.
//!
//! One launch reads every item once and writes every selected item once (see [`warpset_kernels::primitives::select`]);
//! the number of selected items is written to device memory.
//!
//! Scratch, allocated and freed in stream order: 8 bytes per 4096 items, and 8 more.

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
pub use warpset_kernels::primitives::predicate::{BitsDiffer, BitsEqual, InRange, Predicate};
use warpset_kernels::primitives::select::{self as kernels, FLAGS_ALIGNED, ITEMS_ALIGNED};

use crate::LookBack;
use crate::Result;
use crate::check::{apart, on_device_of, same_len, tiles};
use crate::error::check_len;
use crate::sort::{Payload, SortKey};

mod keys;

pub use keys::select_keys_device;

/// Items that can be selected: integers of 4, 8 or 16 bytes (unsigned if of 16 bytes). Sealed.
pub trait Item: Pod + Send + Sync + sealed::Sealed {}
impl<T: Pod + Send + Sync + sealed::Sealed> Item for T {}

/// Predicate with kernels: [`InRange`], [`BitsEqual`] or [`BitsDiffer`]. Sealed.
pub trait DevicePredicate<T>: Predicate<T> + sealed::Kind<T> {}
impl<T, P: Predicate<T> + sealed::Kind<T>> DevicePredicate<T> for P {}

use crate::sort::sealed::Word;
use sealed::Kernels;

/// Type of the items in kernels.
type Bits<T> = <T as sealed::Sealed>::Bits;

mod sealed {
    use warpset_simt::EntryOf;

    use super::{BitsDiffer, BitsEqual, InRange, kernels};
    use crate::sort::sealed::Word;

    /// Items by their bits: signed integers as unsigned ones.
    pub trait Sealed {
        type Bits: Bits;
    }
    impl Sealed for u32 {
        type Bits = u32;
    }
    impl Sealed for i32 {
        type Bits = u32;
    }
    impl Sealed for u64 {
        type Bits = u64;
    }
    impl Sealed for i64 {
        type Bits = u64;
    }
    impl Sealed for u128 {
        type Bits = u128;
    }

    /// Requirements of all kernels here.
    pub trait Bits:
        Word
        + Sized
        + EntryOf<kernels::select<Self>>
        + EntryOf<kernels::partition<Self>>
        + EntryOf<kernels::select_flagged<Self>>
        + EntryOf<kernels::partition_flagged<Self>>
        + EntryOf<kernels::select_in_range<Self>>
        + EntryOf<kernels::partition_in_range<Self>>
        + EntryOf<kernels::select_bits_equal<Self>>
        + EntryOf<kernels::partition_bits_equal<Self>>
        + EntryOf<kernels::select_bits_differ<Self>>
        + EntryOf<kernels::partition_bits_differ<Self>>
        + EntryOf<kernels::unique<Self>>
    {
    }
    impl Bits for u32 {}
    impl Bits for u64 {}
    impl Bits for u128 {}

    /// Kernels of a predicate, and its two parameters.
    pub enum Kernels {
        InRange,
        BitsEqual,
        BitsDiffer,
    }

    pub trait Kind<T> {
        fn kind(self) -> (Kernels, T, T);
    }
    impl<T> Kind<T> for InRange<T> {
        fn kind(self) -> (Kernels, T, T) {
            (Kernels::InRange, self.from, self.to)
        }
    }
    impl<T> Kind<T> for BitsEqual<T> {
        fn kind(self) -> (Kernels, T, T) {
            (Kernels::BitsEqual, self.mask, self.bits)
        }
    }
    impl<T> Kind<T> for BitsDiffer<T> {
        fn kind(self) -> (Kernels, T, T) {
            (Kernels::BitsDiffer, self.mask, self.bits)
        }
    }
}

/// Checks the common rules of all functions here: the lengths of the outputs, and that nothing overlaps.
fn check<T: Item>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    out: &DeviceSliceMut<'_, T>,
    rejected: Option<&DeviceSliceMut<'_, T>>,
    count: &DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check_len("selected items", items.len(), out.len())?;
    check_len("the number of selected items", 1, count.len())?;
    on_device_of(stream, "a selection", count)?;
    apart("items and selected items", items, out)?;
    apart("items and their number", items, count)?;
    apart("selected items and their number", out.as_slice(), count)?;
    if let Some(rejected) = rejected {
        check_len("rejected items", items.len(), rejected.len())?;
        apart("items and rejected items", items, rejected)?;
        apart("selected and rejected items", out.as_slice(), rejected)?;
        apart("rejected items and the number of selected ones", rejected.as_slice(), count)?;
    }
    Ok(())
}

/// Returns flags for whether `items` and `flags` may be read four at a time.
fn aligned<T: Item>(items: DeviceSlice<'_, T>, flags: Option<DeviceSlice<'_, u8>>) -> u32 {
    let items = if items.global().as_ptr().addr().is_multiple_of(16) { ITEMS_ALIGNED } else { 0 };
    let flags = flags.is_some_and(|flags| flags.global().as_ptr().addr().is_multiple_of(4));
    items | if flags { FLAGS_ALIGNED } else { 0 }
}

/// Launches a kernel that selects or, with two outputs in brackets, one that partitions.
macro_rules! launch {
    ($kernel:ident, $stream:ident, $items:ident, ($($arg:ident: $value:expr),*), $aligned:expr, [$($out:ident),*],
        $count:ident) => {{
        let n = $items.len();
        if n == 0 {
            $stream.fill_bytes($count.slice_mut(..1), 0)?;
            return Ok(());
        }
        let shape = kernels::$kernel::<Bits<T>>::SHAPE;
        let tiles = tiles(n, shape.tile())?;
        let mut look_back = LookBack::new($stream, tiles as usize)?;
        let (words, ticket, count) = (look_back.words(), look_back.ticket(), $count.global_mut());
        let config = LaunchConfig::new(tiles, shape.threads).shared(shape.shared_bytes);
        // SAFETY: sizes were checked; scratch belongs to this call and is freed in stream order; the rest is the
        // contract of this function.
        unsafe {
            kernels::$kernel::<Bits<T>> {
                items: $items.global().cast(), n, $($arg: $value,)* aligned: $aligned, look_back: words, ticket,
                $($out: $out.global_mut().cast(),)* count,
            }
            .launch($stream, config)?
        }
        Ok(())
    }};
}

/// Launches the kernel of a predicate, to select or to partition.
macro_rules! launch_if {
    (select, $($argument:tt),*) => {
        launch_if!([select_in_range, select_bits_equal, select_bits_differ], $($argument),*)
    };
    (partition, $($argument:tt),*) => {
        launch_if!([partition_in_range, partition_bits_equal, partition_bits_differ], $($argument),*)
    };
    ([$in_range:ident, $equal:ident, $differ:ident],
        $stream:ident, $items:ident, $predicate:ident, [$($out:ident),*], $count:ident) => {{
        let aligned = aligned($items, None);
        let (kernels, x, y) = $predicate.kind();
        let (x, y) = (Word::from_bits(x.bits()), Word::from_bits(y.bits()));
        match kernels {
            Kernels::InRange => launch!($in_range, $stream, $items, (from: x, to: y), aligned, [$($out),*], $count),
            Kernels::BitsEqual => launch!($equal, $stream, $items, (mask: x, bits: y), aligned, [$($out),*], $count),
            Kernels::BitsDiffer => launch!($differ, $stream, $items, (mask: x, bits: y), aligned, [$($out),*], $count),
        }
    }};
}

/// Checks that there is a bit for each item, apart from the outputs.
fn check_bitmap<T: Item>(
    n: usize,
    bitmap: DeviceSlice<'_, u64>,
    outputs: [Option<&DeviceSliceMut<'_, T>>; 2],
    count: &DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check_len("the bitmap's words", n.div_ceil(64), bitmap.len())?;
    outputs.into_iter().flatten().try_for_each(|out| apart("the bitmap and an output", bitmap, out))?;
    apart("the bitmap and the number of selected items", bitmap, count)
}

/// Checks that there is a flag for each item, apart from the outputs.
fn check_flags<T: Item>(
    n: usize,
    flags: DeviceSlice<'_, u8>,
    outputs: [Option<&DeviceSliceMut<'_, T>>; 2],
    count: &DeviceSliceMut<'_, u64>,
) -> Result<()> {
    same_len("flags", n, flags.len())?;
    outputs.into_iter().flatten().try_for_each(|out| apart("flags and an output", flags, out))?;
    apart("flags and the number of selected items", flags, count)
}

/// Queues a selection: copies the items with a set bit in `bitmap` (bit `i % 64` of word `i / 64`) to the start of
/// `out`, in order, and writes their number to `selected`.
///
/// `out` has a place for every item; items after the selected ones are unchanged.
///
/// # Errors
/// Before anything is queued: [`LengthMismatch`](crate::Error::LengthMismatch), [`Overlap`](crate::Error::Overlap),
/// [`TooLong`](crate::Error::TooLong).
///
/// # Safety
/// Until `stream` has passed this work:
/// - all arguments stay allocated;
/// - no other work writes the inputs or accesses the outputs.
pub unsafe fn select_async<T: Item>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    bitmap: DeviceSlice<'_, u64>,
    mut out: DeviceSliceMut<'_, T>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check(stream, items, &out, None, &selected)?;
    check_bitmap(items.len(), bitmap, [Some(&out), None], &selected)?;
    launch!(select, stream, items, (bitmap: bitmap.global().cast()), aligned(items, None), [out], selected)
}

/// Queues a selection of places: the numbers of the set bits below `n`.
///
/// # Errors
/// The errors of [`select_async`].
///
/// # Safety
/// The contract of [`select_async`].
pub unsafe fn select_indices_async(
    stream: &Stream,
    n: usize,
    bitmap: DeviceSlice<'_, u64>,
    mut out: DeviceSliceMut<'_, u64>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check_len("selected places", n, out.len())?;
    check_len("the number of selected places", 1, selected.len())?;
    on_device_of(stream, "a selection", &selected)?;
    apart("selected places and their number", out.as_slice(), &selected)?;
    check_bitmap(n, bitmap, [Some(&out), None], &selected)?;
    if n == 0 {
        stream.fill_bytes(selected.slice_mut(..1), 0)?;
        return Ok(());
    }
    let shape = kernels::select::<u64>::SHAPE;
    let tiles = tiles(n, shape.tile())?;
    let mut look_back = LookBack::new(stream, tiles as usize)?;
    let (words, ticket, bitmap) = (look_back.words(), look_back.ticket(), bitmap.global().cast());
    let config = LaunchConfig::new(tiles, shape.threads).shared(shape.shared_bytes);
    // SAFETY: sizes were checked; scratch belongs to this call and is freed in stream order; the rest is the contract
    // of this function.
    unsafe {
        let (out, count) = (out.global_mut(), selected.global_mut());
        kernels::select_indices { n, bitmap, look_back: words, ticket, out, count }.launch(stream, config)?;
    }
    Ok(())
}

/// Queues a selection as [`select_async`] does, of the items with a flag that is not 0.
///
/// # Errors
/// The errors of [`select_async`].
///
/// # Safety
/// The contract of [`select_async`].
pub unsafe fn select_flagged_async<T: Item>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    flags: DeviceSlice<'_, u8>,
    mut out: DeviceSliceMut<'_, T>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check(stream, items, &out, None, &selected)?;
    check_flags(items.len(), flags, [Some(&out), None], &selected)?;
    let aligned = aligned(items, Some(flags));
    launch!(select_flagged, stream, items, (flags: flags.global()), aligned, [out], selected)
}

/// Queues a selection as [`select_async`] does, of the items that satisfy a predicate.
///
/// # Errors
/// The errors of [`select_async`].
///
/// # Safety
/// The contract of [`select_async`].
pub unsafe fn select_if_async<T: Item + SortKey, P: DevicePredicate<T>>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    predicate: P,
    mut out: DeviceSliceMut<'_, T>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check(stream, items, &out, None, &selected)?;
    launch_if!(select, stream, items, predicate, [out], selected)
}

/// Queues a selection as [`select_async`] does, of the items that differ from the previous one: of sorted items each
/// one once.
///
/// # Errors
/// The errors of [`select_async`].
///
/// # Safety
/// The contract of [`select_async`].
pub unsafe fn unique_async<T: Item>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    mut out: DeviceSliceMut<'_, T>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check(stream, items, &out, None, &selected)?;
    launch!(unique, stream, items, (), aligned(items, None), [out], selected)
}

/// Queues a selection as [`select_async`] does, and copies the items without a set bit to the start of `rejected`, also
/// in order.
///
/// # Errors
/// The errors of [`select_async`].
///
/// # Safety
/// The contract of [`select_async`].
pub unsafe fn partition_async<T: Item>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    bitmap: DeviceSlice<'_, u64>,
    mut out: DeviceSliceMut<'_, T>,
    mut rejected: DeviceSliceMut<'_, T>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check(stream, items, &out, Some(&rejected), &selected)?;
    check_bitmap(items.len(), bitmap, [Some(&out), Some(&rejected)], &selected)?;
    let bitmap = bitmap.global().cast();
    let aligned = aligned(items, None);
    launch!(partition, stream, items, (bitmap: bitmap), aligned, [out, rejected], selected)
}

/// Queues a selection as [`select_flagged_async`] does, and copies the items with flag 0 to the start of `rejected`,
/// also in order.
///
/// # Errors
/// The errors of [`select_async`].
///
/// # Safety
/// The contract of [`select_async`].
pub unsafe fn partition_flagged_async<T: Item>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    flags: DeviceSlice<'_, u8>,
    mut out: DeviceSliceMut<'_, T>,
    mut rejected: DeviceSliceMut<'_, T>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check(stream, items, &out, Some(&rejected), &selected)?;
    check_flags(items.len(), flags, [Some(&out), Some(&rejected)], &selected)?;
    let aligned = aligned(items, Some(flags));
    let flags = flags.global();
    launch!(partition_flagged, stream, items, (flags: flags), aligned, [out, rejected], selected)
}

/// Queues a selection as [`select_if_async`] does, and copies the items that do not satisfy the predicate to the start
/// of `rejected`, also in order.
///
/// # Errors
/// The errors of [`select_async`].
///
/// # Safety
/// The contract of [`select_async`].
pub unsafe fn partition_if_async<T: Item + SortKey, P: DevicePredicate<T>>(
    stream: &Stream,
    items: DeviceSlice<'_, T>,
    predicate: P,
    mut out: DeviceSliceMut<'_, T>,
    mut rejected: DeviceSliceMut<'_, T>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    check(stream, items, &out, Some(&rejected), &selected)?;
    launch_if!(partition, stream, items, predicate, [out, rejected], selected)
}

/// Queues a selection of the keys that differ from the previous one, with their values: the first of each group of
/// equal neighbours. Copies keys to the start of `out_keys` and values to the start of `out_values`, and writes their
/// number to `selected`.
///
/// # Errors
/// The errors of [`select_async`].
///
/// # Safety
/// The contract of [`select_async`].
pub unsafe fn unique_by_key_async<K: Item, V: Item + Payload>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    mut out_keys: DeviceSliceMut<'_, K>,
    mut out_values: DeviceSliceMut<'_, V>,
    mut selected: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    let n = keys.len();
    same_len("values", n, values.len())?;
    check(stream, keys, &out_keys, None, &selected)?;
    check(stream, values, &out_values, None, &selected)?;
    apart("keys and selected values", keys, &out_values)?;
    apart("values and selected keys", values, &out_keys)?;
    apart("selected keys and selected values", out_keys.as_slice(), &out_values)?;
    if n == 0 {
        stream.fill_bytes(selected.slice_mut(..1), 0)?;
        return Ok(());
    }
    let aligned = aligned(keys, None) & aligned(values, None);
    let (keys, values) = (keys.global(), values.global());
    let (out_keys, out_values) = (out_keys.global_mut(), out_values.global_mut());
    macro_rules! launch {
        ($kernel:ident) => {{
            let shape = kernels::$kernel::SHAPE;
            let tiles = tiles(n, shape.tile())?;
            let mut look_back = LookBack::new(stream, tiles as usize)?;
            let (words, ticket, count) = (look_back.words(), look_back.ticket(), selected.global_mut());
            let config = LaunchConfig::new(tiles, shape.threads).shared(shape.shared_bytes);
            let (keys, values) = (keys.cast(), values.cast());
            let (out_keys, out_values) = (out_keys.cast(), out_values.cast());
            // SAFETY: sizes were checked; scratch belongs to this call and is freed in stream order; the rest is the
            // contract of this function.
            unsafe {
                kernels::$kernel { keys, values, n, aligned, look_back: words, ticket, out_keys, out_values, count }
                    .launch(stream, config)?
            }
        }};
    }
    match (size_of::<K>(), V::WIDE) {
        (4, false) => launch!(unique_by_key_u32_u32),
        (4, true) => launch!(unique_by_key_u32_u64),
        (8, false) => launch!(unique_by_key_u64_u32),
        (8, true) => launch!(unique_by_key_u64_u64),
        (_, false) => launch!(unique_by_key_u128_u32),
        (_, true) => launch!(unique_by_key_u128_u64),
    }
    Ok(())
}

#[cfg(test)]
mod tests;

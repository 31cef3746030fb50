//! Radix sort: stable, by any range of bits, of keys or of keys with payloads.
//!
//! [`sort_keys_async`] and [`sort_pairs_async`] leave their input as it is; [`sort_keys_in_place_async`] and
//! [`sort_pairs_in_place_async`] sort where the items are. [`cpu::sort`](crate::cpu::sort) has the same functions for
//! host slices.
//!
//! One launch counts all digits, then each digit of at most 8 bits takes one read and one write of the items (see
//! [`warpset_kernels::primitives::radix_sort`]); a digit that is the same in all keys takes none. Up to [`ONE_BLOCK`]
//! items take one launch altogether.
//!
//! Scratch, allocated and freed in the order of the stream: [`scratch_bytes`], that is once the items' own bytes, and
//! 2 KiB for each tile of 6,144 to 10,240 items, tiles of at most 2^30 items counted.

use std::ops::Range;

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::onesweep_tile::PassShape;
use warpset_kernels::primitives::radix_sort::{
    self as kernels, HISTOGRAM_BLOCK, HISTOGRAM_U32, HISTOGRAM_U64, LARGE_HISTOGRAM_U32, LARGE_HISTOGRAM_U64,
    SMALL_BLOCK, SMALL_ITEMS, SMALL_SHARED_BYTES,
};
use warpset_kernels::primitives::ranking::{DIGIT_BITS, DIGITS, Digit, LOOK_BACK_ITEMS};
use warpset_simt::{Global, GlobalMut, KernelInfo};

use crate::{Error, Result, check};

/// The most items that one block sorts in one launch.
pub const ONE_BLOCK: usize = SMALL_ITEMS;

/// The sizes from which another way is taken; tests set smaller ones.
#[derive(Clone, Copy)]
struct Limits {
    /// The most items of a launch.
    launch: usize,
    /// From this number of keys on, they are counted in columns.
    many: usize,
}

const LIMITS: Limits = Limits { launch: LOOK_BACK_ITEMS, many: 1 << 22 };

/// Which bits of the keys decide, and in which direction. Items whose bits are equal keep their order either way.
///
/// ```
/// use warpset_primitives::sort::By;
/// let all_bits = By::ascending();
/// let fingerprint = By::descending().bits(4..32);
/// assert_ne!(all_bits, fingerprint);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct By {
    bits: Option<Range<u32>>,
    descending: bool,
}

impl By {
    /// Least keys first, by all bits.
    pub fn ascending() -> By {
        By { bits: None, descending: false }
    }

    /// Greatest keys first, by all bits.
    pub fn descending() -> By {
        By { bits: None, descending: true }
    }

    /// By these bits only; bit 0 is the lowest. Time is paid for these bits only, in steps of 8. Default: all bits.
    #[must_use]
    pub fn bits(self, bits: Range<u32>) -> By {
        By { bits: Some(bits), ..self }
    }

    /// The bits of keys of type `K`; `0..0` if there are none.
    pub(crate) fn range<K: SortKey>(&self) -> Result<Range<u32>> {
        let width = 8 * size_of::<K>() as u32;
        let bits = self.bits.clone().unwrap_or(0..width);
        if bits.start > bits.end || bits.end > width {
            return Err(Error::InvalidBitRange { begin: bits.start, end: bits.end, width });
        }
        Ok(if bits.is_empty() { 0..0 } else { bits })
    }

    pub(crate) fn is_descending(&self) -> bool {
        self.descending
    }

    pub(crate) fn flip(&self) -> u32 {
        if self.descending { !0 } else { 0 }
    }
}

/// What can be sorted by: `u32` and `u64`. Sealed.
pub trait SortKey: Pod + Ord + sealed::Word + sealed::MergeEntries {}
impl SortKey for u32 {}
impl SortKey for u64 {}

/// What can travel with a key: integers of 4 or 8 bytes. Sealed.
pub trait Payload: Pod + sealed::Word {}
impl<T: Pod + sealed::Word> Payload for T {}

pub(crate) mod sealed {
    use warpset_kernels::primitives::merge::merge_splits;
    use warpset_kernels::primitives::merge::search::{
        lower_bound, lower_bound_sorted, upper_bound, upper_bound_sorted,
    };
    use warpset_kernels::primitives::merge_many::merge_many_splits;
    use warpset_simt::EntryOf;

    pub trait Word: Send + Sync {
        const WIDE: bool;
        fn bits(self) -> u64;
        fn from_bits(bits: u64) -> Self;
    }
    /// Keys for which there are the kernels that split runs and search them.
    pub trait MergeEntries:
        Sized
        + EntryOf<merge_splits<Self>>
        + EntryOf<merge_many_splits<Self>>
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

/// Keys and payloads, whatever their types, to be read.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub(crate) keys: Global<u8>,
    pub(crate) values: Global<u8>,
}

/// The same, to be written.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) keys: GlobalMut<u8>,
    pub(crate) values: GlobalMut<u8>,
}

impl Source {
    pub(crate) fn keys<K: SortKey>(keys: DeviceSlice<'_, K>) -> Source {
        Source { keys: keys.global().cast(), values: Global::from_raw_parts(std::ptr::null(), 0) }
    }

    pub(crate) fn pairs<K: SortKey, V: Payload>(keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> Source {
        Source { keys: keys.global().cast(), values: values.global().cast() }
    }
}

impl Target {
    pub(crate) fn keys<K: SortKey>(mut keys: DeviceSliceMut<'_, K>) -> Target {
        Target { keys: keys.global_mut().cast(), values: GlobalMut::from_raw_parts(std::ptr::null_mut(), 0) }
    }

    pub(crate) fn pairs<K: SortKey, V: Payload>(
        mut keys: DeviceSliceMut<'_, K>,
        mut values: DeviceSliceMut<'_, V>,
    ) -> Target {
        Target { keys: keys.global_mut().cast(), values: values.global_mut().cast() }
    }

    pub(crate) fn as_source(self) -> Source {
        Source { keys: self.keys.as_const(), values: self.values.as_const() }
    }
}

/// Queues a sort of `keys` into `out`.
///
/// # Errors
/// Before anything is queued: [`Error::LengthMismatch`] if `out` is not as long as `keys`, [`Error::InvalidBitRange`],
/// [`Error::Overlap`].
///
/// # Safety
/// Until `stream` has passed this work:
/// - `keys` and `out` stay allocated;
/// - no other work writes `keys` or accesses `out`.
pub unsafe fn sort_keys_async<'a, K: SortKey>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    by: By,
) -> Result<()> {
    let out = out.into();
    check::same_len("sorted keys", keys.len(), out.len())?;
    check::on_device_of(stream, "a sort", &out)?;
    check::apart("keys and sorted keys", keys, &out)?;
    let (source, target) = (Source::keys(keys), Target::keys(out));
    // SAFETY: the caller's promise; lengths are checked.
    unsafe { sort_items::<K>(stream, Widths::keys::<K>(), source, target, keys.len(), by, false) }
}

/// Queues a sort of `keys` with `values` into `out_keys` and `out_values`.
///
/// # Errors
/// Before anything is queued: [`Error::LengthMismatch`] unless all four are of one length, [`Error::InvalidBitRange`],
/// [`Error::Overlap`].
///
/// # Safety
/// Until `stream` has passed this work:
/// - keys, values and both outputs stay allocated;
/// - no other work writes `keys` or `values` or accesses the outputs.
pub unsafe fn sort_pairs_async<'a, 'b, K: SortKey, V: Payload>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'b, V>>,
    by: By,
) -> Result<()> {
    let (out_keys, out_values) = (out_keys.into(), out_values.into());
    let n = keys.len();
    check_pairs(stream, keys, values, &out_keys, &out_values)?;
    let (source, target) = (Source::pairs(keys, values), Target::pairs(out_keys, out_values));
    // SAFETY: the caller's promise; lengths are checked.
    unsafe { sort_items::<K>(stream, Widths::pairs::<K, V>(), source, target, n, by, false) }
}

/// Fails unless all four are of one length and the outputs share no byte with anything else.
pub(crate) fn check_pairs<K: SortKey, V: Payload>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    out_keys: &DeviceSliceMut<'_, K>,
    out_values: &DeviceSliceMut<'_, V>,
) -> Result<()> {
    let n = keys.len();
    check::same_len("payloads", n, values.len())?;
    check::same_len("sorted keys", n, out_keys.len())?;
    check::same_len("sorted payloads", n, out_values.len())?;
    check::on_device_of(stream, "a sort", out_keys)?;
    check::apart("keys and sorted keys", keys, out_keys)?;
    check::apart("payloads and sorted keys", values, out_keys)?;
    check::apart("keys and sorted payloads", keys, out_values)?;
    check::apart("payloads and sorted payloads", values, out_values)?;
    check::apart("sorted keys and sorted payloads", out_keys.as_slice(), out_values)
}

/// Queues a sort of `keys` where they are.
///
/// # Errors
/// Before anything is queued: [`Error::InvalidBitRange`].
///
/// # Safety
/// Until `stream` has passed this work:
/// - `keys` stay allocated;
/// - no other work accesses them.
pub unsafe fn sort_keys_in_place_async<'a, K: SortKey>(
    stream: &Stream,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    by: By,
) -> Result<()> {
    let keys = keys.into();
    check::on_device_of(stream, "a sort", &keys)?;
    let n = keys.len();
    let target = Target::keys(keys);
    // SAFETY: the caller's promise.
    unsafe { sort_items::<K>(stream, Widths::keys::<K>(), target.as_source(), target, n, by, true) }
}

/// Queues a sort of `keys` with `values` where they are.
///
/// # Errors
/// Before anything is queued: [`Error::LengthMismatch`] unless both are of one length, [`Error::InvalidBitRange`],
/// [`Error::Overlap`].
///
/// # Safety
/// Until `stream` has passed this work:
/// - `keys` and `values` stay allocated;
/// - no other work accesses them.
pub unsafe fn sort_pairs_in_place_async<'a, 'b, K: SortKey, V: Payload>(
    stream: &Stream,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    values: impl Into<DeviceSliceMut<'b, V>>,
    by: By,
) -> Result<()> {
    let (keys, values) = (keys.into(), values.into());
    let n = keys.len();
    check::same_len("payloads", n, values.len())?;
    check::on_device_of(stream, "a sort", &keys)?;
    check::apart("keys and payloads", keys.as_slice(), &values)?;
    let target = Target::pairs(keys, values);
    // SAFETY: the caller's promise; lengths are checked.
    unsafe { sort_items::<K>(stream, Widths::pairs::<K, V>(), target.as_source(), target, n, by, true) }
}

/// Bytes that sorting `n` keys takes beside what the caller gives, for a time.
pub fn scratch_bytes<K: SortKey>(n: usize) -> usize {
    scratch(Widths::keys::<K>(), n)
}

/// Bytes that sorting `n` pairs takes beside what the caller gives, for a time.
pub fn pair_scratch_bytes<K: SortKey, V: Payload>(n: usize) -> usize {
    scratch(Widths::pairs::<K, V>(), n)
}

fn scratch(widths: Widths, n: usize) -> usize {
    if n <= ONE_BLOCK {
        return 0;
    }
    let layout = Passes::new(widths, n, 0..8 * widths.key_bytes() as u32, true, LOOK_BACK_ITEMS);
    n * (widths.key_bytes() + widths.value_bytes()) + 8 * layout.words()
}

/// The kernels that a sort of `n` keys launches: for operations that sort among other things, and have all their kernels
/// loaded side by side ([`Device::with_kernels`](warpset_gpu::Device::with_kernels)).
pub fn kernels_for_keys<K: SortKey>(n: usize) -> Vec<&'static KernelInfo> {
    launched(Widths::keys::<K>(), n)
}

/// The same with payloads.
pub fn kernels_for_pairs<K: SortKey, V: Payload>(n: usize) -> Vec<&'static KernelInfo> {
    launched(Widths::pairs::<K, V>(), n)
}

fn launched(widths: Widths, n: usize) -> Vec<&'static KernelInfo> {
    if n <= ONE_BLOCK {
        return vec![by_widths!(
            widths,
            kernels::{
                radix_sort_small_u32, radix_sort_small_u32_u32, radix_sort_small_u32_u64, radix_sort_small_u64,
                radix_sort_small_u64_u32, radix_sort_small_u64_u64
            },
            |kernel| kernel::INFO
        )];
    }
    let histogram = match (widths.wide_keys, n < LIMITS.many) {
        (false, true) => kernels::radix_sort_histogram_u32::INFO,
        (true, true) => kernels::radix_sort_histogram_u64::INFO,
        (false, false) => kernels::radix_sort_large_histogram_u32::INFO,
        (true, false) => kernels::radix_sort_large_histogram_u64::INFO,
    };
    let pass = by_widths!(
        widths,
        kernels::{
            radix_sort_pass_u32, radix_sort_pass_u32_u32, radix_sort_pass_u32_u64, radix_sort_pass_u64,
            radix_sort_pass_u64_u32, radix_sort_pass_u64_u64
        },
        |kernel| kernel::INFO
    );
    vec![pass, histogram]
}

/// How the work is cut.
struct Passes {
    shape: PassShape,
    bits: Range<u32>,
    passes: u32,
    /// Items of one launch.
    portion: usize,
    portions: u32,
    /// Rows of look-back words that a launch needs.
    rows: usize,
}

impl Passes {
    /// No launch gets more than `limit` items.
    fn new(widths: Widths, n: usize, bits: Range<u32>, in_place: bool, limit: usize) -> Passes {
        let shape = by_widths!(
            widths,
            kernels::{PASS_U32, PASS_U32_U32, PASS_U32_U64, PASS_U64, PASS_U64_U32, PASS_U64_U64},
            |shape| shape
        );
        let mut passes = (bits.end - bits.start).div_ceil(DIGIT_BITS);
        if in_place {
            passes = passes.next_multiple_of(2); // the last must write what the first has read
        }
        let portion = limit / shape.tile * shape.tile;
        let rows = n.min(portion).div_ceil(shape.tile);
        Passes { shape, bits, passes, portion, portions: n.div_ceil(portion) as u32, rows }
    }

    // Scratch, in words of 8 bytes: what has to be zero first. Look-back words (two halves), the digits' starts, two
    // rows of starts for portions, and then single words of 4 bytes: the histogram's count of blocks, which passes move
    // items, a ticket for each launch.

    fn starts_at(&self) -> usize {
        self.rows * DIGITS as usize / 2
    }

    fn singles_at(&self) -> usize {
        self.starts_at() + (self.passes as usize + 2) * DIGITS as usize
    }

    fn second_half_at(&self) -> usize {
        self.singles_at() + (1 + self.passes as usize * (1 + self.portions as usize)).div_ceil(2)
    }

    fn words(&self) -> usize {
        self.second_half_at() + self.starts_at()
    }
}

/// Sorts `n` items; with `in_place`, `source` and `target` are the same.
///
/// # Safety
/// As the public functions; `source` and `target` hold `n` items of these widths.
unsafe fn sort_items<K: SortKey>(
    stream: &Stream,
    widths: Widths,
    source: Source,
    target: Target,
    n: usize,
    by: By,
    in_place: bool,
) -> Result<()> {
    let bits = by.range::<K>()?;
    if n == 0 || (bits.is_empty() && in_place) {
        return Ok(());
    }
    if n <= ONE_BLOCK {
        // SAFETY: the caller's promise is the same.
        return unsafe { sort_in_one_block(stream, widths, source, target, n as u32, bits, by.flip()) };
    }
    stream.device().with_kernels(&launched(widths, n), || {
        // SAFETY: the caller's promise is the same.
        unsafe { sort_in_passes(stream, widths, source, target, n, bits, by.flip(), in_place, LIMITS) }
    })
}

/// # Safety
/// As [`sort_items`].
unsafe fn sort_in_one_block(
    stream: &Stream,
    widths: Widths,
    source: Source,
    target: Target,
    n: u32,
    bits: Range<u32>,
    flip: u32,
) -> Result<()> {
    let config = LaunchConfig::new(1, SMALL_BLOCK).shared(SMALL_SHARED_BYTES);
    let width = bits.end - bits.start;
    // SAFETY: `n` is in range, the bits are, and the caller answers for the items.
    unsafe {
        by_widths!(
            widths,
            kernels::{
                radix_sort_small_u32, radix_sort_small_u32_u32, radix_sort_small_u32_u64, radix_sort_small_u64,
                radix_sort_small_u64_u32, radix_sort_small_u64_u64
            },
            |kernel| kernel {
                keys: source.keys.cast(),
                values: source.values.cast(),
                out_keys: target.keys.cast(),
                out_values: target.values.cast(),
                n,
                begin: bits.start,
                bits: width,
                passes: width.div_ceil(DIGIT_BITS),
                flip,
            }
            .launch(stream, config)?
        )
    };
    Ok(())
}

/// # Safety
/// As [`sort_items`].
#[allow(clippy::too_many_arguments)] // what there is to say of a sort
unsafe fn sort_in_passes(
    stream: &Stream,
    widths: Widths,
    source: Source,
    target: Target,
    n: usize,
    bits: Range<u32>,
    flip: u32,
    in_place: bool,
    limits: Limits,
) -> Result<()> {
    let mut layout = Passes::new(widths, n, bits, in_place, limits.launch);
    // No bits: one pass that tells nothing apart copies.
    layout.passes = layout.passes.max(1);
    let Passes { shape, passes, portions, rows, .. } = layout;
    let (begin, width) = (layout.bits.start, layout.bits.end - layout.bits.start);

    let mut scratch_keys: DeviceVec<u8> = stream.alloc_uninit(n * widths.key_bytes())?;
    let mut scratch_values: DeviceVec<u8> = stream.alloc_uninit(n * widths.value_bytes())?;
    let scratch = Target { keys: scratch_keys.global_mut(), values: scratch_values.global_mut() };
    let mut words: DeviceVec<u64> = stream.alloc_uninit(layout.words())?;
    stream.fill_bytes(words.slice_mut(..layout.second_half_at()), 0)?;
    let words = words.global_mut();
    let starts = |row: u32| words.at(layout.starts_at() + row as usize * DIGITS as usize);
    let single = |i: usize| words.at(layout.singles_at()).cast::<u32>().at(i);
    let (done, steps, tickets) = (single(0), single(1), single(1 + passes as usize));
    let (look_back, second) = (words.cast::<u32>(), words.at(layout.second_half_at()).cast::<u32>());

    let multiprocessors = stream.device().properties().multiprocessors as usize;
    // SAFETY: scratch is laid out as the kernels ask, this call's own, and freed in the order of the stream; the caller
    // answers for the items.
    unsafe {
        macro_rules! count {
            ($kernel:ident, $shape:ident, $items_a_thread:expr) => {{
                let grid = n.div_ceil($items_a_thread * HISTOGRAM_BLOCK as usize).min(multiprocessors) as u32;
                let config = LaunchConfig::new(grid, HISTOGRAM_BLOCK).shared($shape.shared_bytes());
                let (keys, in_place) = (source.keys.cast(), u32::from(in_place));
                kernels::$kernel {
                    keys,
                    n,
                    begin,
                    bits: width,
                    passes,
                    flip,
                    in_place,
                    starts: starts(0),
                    plan: steps,
                    done,
                }
                .launch(stream, config)?
            }};
        }
        // Columns of counters have to be added up, which takes longer than counting a few keys.
        match (widths.wide_keys, n < limits.many) {
            (false, true) => count!(radix_sort_histogram_u32, HISTOGRAM_U32, 8),
            (true, true) => count!(radix_sort_histogram_u64, HISTOGRAM_U64, 8),
            (false, false) => count!(radix_sort_large_histogram_u32, LARGE_HISTOGRAM_U32, 64),
            (true, false) => count!(radix_sort_large_histogram_u64, LARGE_HISTOGRAM_U64, 64),
        }
        for pass in 0..passes {
            let digit = Digit::of_pass(begin, width, pass, passes, flip);
            for portion in 0..portions {
                let first = portion as usize * layout.portion;
                let items = (n - first).min(layout.portion) as u32;
                let config =
                    LaunchConfig::new(items.div_ceil(shape.tile as u32), shape.threads).shared(shape.shared_bytes);
                let from = if portion == 0 { starts(pass) } else { starts(passes + (portion + 1) % 2) };
                let to = starts(passes + portion % 2);
                by_widths!(
                    widths,
                    kernels::{
                        radix_sort_pass_u32, radix_sort_pass_u32_u32, radix_sort_pass_u32_u64, radix_sort_pass_u64,
                        radix_sort_pass_u64_u32, radix_sort_pass_u64_u64
                    },
                    |kernel| kernel {
                        keys: source.keys.cast(),
                        values: source.values.cast(),
                        scratch_keys: scratch.keys.cast(),
                        scratch_values: scratch.values.cast(),
                        out_keys: target.keys.cast(),
                        out_values: target.values.cast(),
                        first_item: first,
                        n: items,
                        shift: digit.shift,
                        mask: digit.mask,
                        flip: digit.flip,
                        step: steps.as_const().at(pass as usize),
                        starts: from.as_const(),
                        next_starts: to,
                        look_back,
                        look_back_2: second,
                        rows: rows as u32,
                        portion,
                        portions,
                        ticket: tickets.at((pass * portions + portion) as usize),
                    }
                    .launch(stream, config)?
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

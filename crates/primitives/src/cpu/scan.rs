//! Scans on host slices: see [`crate::scan`].
//!
//! Parts of the input are reduced side by side, their results scanned, and each part is then scanned with what precedes
//! it: two reads and a write of each item. A single thread reads once.

use warpset_base::parallel;
use warpset_core::scan::{Flagged, Operator, Segmented};

use crate::Result;
use crate::check::same_len;
use crate::error::check_len;

/// Items of a part: enough that a task's start does not count, few enough for all threads to have some.
pub(super) const PART: usize = 1 << 15;

/// Scans the values that `value` makes of a place of `out` and its number, and hands each place what stands before it,
/// and that with its own value.
pub(super) fn scan_parts<O: Operator, T: Send + Sync>(
    out: &mut [T],
    value: impl Fn(usize, &T) -> O::Value + Sync,
    write: impl Fn(&mut T, usize, O::Value, O::Value) + Sync,
) {
    let n = out.len();
    let scan = |first: usize, out: &mut [T], mut before: O::Value| {
        for (i, place) in (first..).zip(out) {
            let after = O::combine(before, value(i, place));
            write(place, i, before, after);
            before = after;
        }
    };
    if n <= PART || rayon::current_num_threads() == 1 {
        scan(0, out, O::IDENTITY);
        return;
    }
    let fold = |(part, places): (usize, &[T])| {
        (part * PART..).zip(places).map(|(i, place)| value(i, place)).fold(O::IDENTITY, O::combine)
    };
    let mut before: Vec<O::Value> = parallel::map(out.chunks(PART).enumerate(), fold);
    let mut all = O::IDENTITY;
    for part in &mut before {
        all = O::combine(all, std::mem::replace(part, all));
    }
    let parts = out.chunks_mut(PART).zip(before).enumerate();
    parallel::for_each(parts, |(part, (out, before))| scan(part * PART, out, before));
}

/// # Errors
/// Unless there is a bit for each of `n` items.
fn head_of(heads: &[u64], n: usize) -> Result<impl Fn(usize) -> bool + Sync> {
    check_len("the words of heads", n.div_ceil(64), heads.len())?;
    Ok(move |i: usize| heads[i / 64] >> (i % 64) & 1 != 0)
}

macro_rules! scans {
    ($($doc:literal $name:ident, $in_place:ident, $segmented:ident, $segmented_in_place:ident: $result:expr;)*) => {$(
        #[doc = concat!($doc, " scan of `input` to `out`.")]
        ///
        /// # Errors
        /// [`LengthMismatch`](crate::Error::LengthMismatch) if the two are not of the same length.
        pub fn $name<O: Operator>(input: &[O::Value], out: &mut [O::Value]) -> Result<()> {
            same_len("results of a scan", input.len(), out.len())?;
            let result = $result;
            scan_parts::<O, _>(out, |i, _| input[i], |place, _, before, after| *place = result(before, after, None));
            Ok(())
        }

        #[doc = concat!($doc, " scan of `items` in their place.")]
        pub fn $in_place<O: Operator>(items: &mut [O::Value]) {
            let result = $result;
            scan_parts::<O, _>(items, |_, item| *item, |place, _, before, after| *place = result(before, after, None));
        }

        #[doc = concat!($doc, " scan of `input` to `out` that restarts at every head: an item `i` whose bit")]
        /// `i % 64` of `heads[i / 64]` is set. The first item is a head whatever its bit.
        ///
        /// # Errors
        /// [`LengthMismatch`](crate::Error::LengthMismatch) if input and output are not of the same length, or heads
        /// are missing.
        pub fn $segmented<O: Operator>(input: &[O::Value], heads: &[u64], out: &mut [O::Value]) -> Result<()> {
            same_len("results of a scan", input.len(), out.len())?;
            let (head, result) = (head_of(heads, input.len())?, $result);
            let value = |i: usize, _: &O::Value| Flagged { head: head(i), value: input[i] };
            scan_parts::<Segmented<O>, _>(out, value, |place, i, before, after| {
                *place = result(before.value, after.value, head(i).then_some(O::IDENTITY));
            });
            Ok(())
        }

        #[doc = concat!("[`", stringify!($segmented), "`] of `items` in their place.")]
        ///
        /// # Errors
        /// [`LengthMismatch`](crate::Error::LengthMismatch) if heads are missing.
        pub fn $segmented_in_place<O: Operator>(items: &mut [O::Value], heads: &[u64]) -> Result<()> {
            let (head, result) = (head_of(heads, items.len())?, $result);
            let value = |i: usize, item: &O::Value| Flagged { head: head(i), value: *item };
            scan_parts::<Segmented<O>, _>(items, value, |place, i, before, after| {
                *place = result(before.value, after.value, head(i).then_some(O::IDENTITY));
            });
            Ok(())
        }
    )*};
}
scans! {
    "An inclusive" inclusive, inclusive_in_place, segmented_inclusive, segmented_inclusive_in_place:
        |_: O::Value, after: O::Value, _: Option<O::Value>| after;
    "An exclusive" exclusive, exclusive_in_place, segmented_exclusive, segmented_exclusive_in_place:
        |before: O::Value, _: O::Value, at_head: Option<O::Value>| at_head.unwrap_or(before);
}

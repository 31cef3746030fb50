//! Device-wide primitives: what a whole grid does to a whole array.
//!
//! - [`non_associative`]: scans by operators that are not associative, such as the slots of a quotient filter.
//! - [`merge`]: merges sorted runs, stable, by all or some bits of the keys.
//! - [`radix`]: groups keys by a digit of their hash, in one stable single-pass scatter.
//! - [`search`]: the places of needles among sorted keys.
//! - [`segmented_sort`]: sorts each segment by itself.
//! - [`reduce`]: all items combined into one value, or those of each run of equal keys; run-length encoding.
//! - [`scan`]: all items up to each place combined, by any associative operator, by segments too.
//! - [`select`]: keeps items by a bitmap, flags, a predicate or the item before, in order; and parts items in two.
//! - [`sort`]: sorts keys, or keys with payloads, by any range of bits.
//!
//! [`DeviceFilter`] and [`DeviceInsert`] are what filters in device memory have in common.
//!
//! Every function on device slices ends in `_async`: it takes a [`Stream`](warpset_gpu::Stream) first, queues its work
//! there and returns, and is `unsafe`, because the caller must keep the slices until the stream has passed. Memory of
//! another device than the stream's is refused before anything is queued. Nothing is copied to the host, and nothing is
//! waited for (but by three methods of [`non_associative`] and by [`select::select_keys_device`], which say so).
//! Scratch memory is allocated and freed in the order of the stream, from the device's pool; each module says how many
//! bytes. All of it runs on the emulator too.

#![warn(clippy::missing_errors_doc)]

mod check;
mod device_filter;
mod error;
mod key;
mod look_back;
pub mod merge;
pub mod non_associative;
pub mod radix;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod segmented_sort;
pub mod select;
pub mod sort;

pub use device_filter::{DeviceFilter, DeviceInsert};
pub use error::{Error, Result};
pub use key::KeyMask;
#[doc(hidden)]
pub use look_back::LookBack;

//! Device-wide primitives: operations of a whole grid on a whole array.
//!
//! - [`non_associative`]: scans by operators that are not associative, such as the slots of a quotient filter.
//! - [`merge`]: merges sorted runs, stable, by all or some bits of the keys.
//! - [`radix`]: groups keys by a digit of their hash, in one stable single-pass scatter.
//! - [`search`]: finds the places of needles among sorted keys.
//! - [`segmented_sort`]: sorts each segment of an array.
//! - [`reduce`]: combines all items into one value, or the items of each run of equal keys; run-length encoding.
//! - [`scan`]: combines all items up to each place, by any associative operator, also by segments.
//! - [`select`]: selects items by a bitmap, flags, a predicate or the previous item, in order; also partitions.
//! - [`sort`]: sorts keys, or keys with payloads, by any range of bits.
//!
//! [`DeviceFilter`] and [`DeviceInsert`] are the interface of filters in device memory.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_primitives::sort::{self, By};
//!
//! let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
//! let stream = device.new_stream()?;
//! let mut keys = device.from_slice(&[3u32, 1, 2])?;
//! // SAFETY: `keys` live until `to_vec` has waited for the stream, and nothing else uses them.
//! unsafe { sort::sort_keys_in_place_async(&stream, &mut keys, By::ascending())? };
//! assert_eq!(keys.to_vec()?, [1, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every function on device slices ends in `_async`: it takes a [`Stream`](warpset_gpu::Stream) first, queues its work
//! there and returns, and is `unsafe`, because the caller must keep the slices until the stream has passed. Memory of
//! another device than the stream's is refused before anything is queued. No function copies to the host or waits,
//! except three methods of [`non_associative`] and [`select::select_keys_device`], as documented there. Scratch memory
//! is allocated and freed in stream order, from the device's pool; each module states its size. All of it runs on the
//! emulator too. An [`Error`] says which argument or device refused; the input is then unchanged.

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
#[doc(hidden)]
pub mod sharded;
pub mod sort;

pub use device_filter::{DeviceFilter, DeviceInsert};
pub use error::{Error, Result};
pub use key::KeyMask;
#[doc(hidden)]
pub use look_back::LookBack;

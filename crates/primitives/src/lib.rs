//! Device-wide primitives: what a whole grid does to a whole array.
//!
//! - [`radix`]: groups keys by a digit of their hash, in one stable single-pass scatter.
//! - [`segmented_sort`]: sorts each segment by itself.
//! - [`select`]: keeps the items whose bit is set in a bitmap, in order.
//! - [`sort`]: sorts keys, or keys with payloads, by any range of bits.
//!
//! Everything takes device slices and a [`Stream`](warpset_gpu::Stream), queues its work and returns: nothing is copied
//! to the host, nothing is waited for, and scratch memory is allocated and freed in the order of the stream, from the
//! device's pool: each module says how many bytes. All of it runs on the emulator too. The same operations on host slices
//! are in [`cpu`].

mod check;
pub mod cpu;
mod error;
pub mod radix;
mod scratch;
pub mod segmented_sort;
pub mod select;
pub mod sort;

pub use error::{Error, Result};

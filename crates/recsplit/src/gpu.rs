//! Functions and filters in device memory: built there, or brought there, and asked by kernels. The words are those that the CPU has
//! for the same keys and settings.
//!
//! Keys in host memory are staged through pinned memory in chunks; keys in device memory are read where they are. Operations on device
//! memory wait, or, with names that end in `_async`, are queued on the caller's stream.

mod buckets;
mod build;
#[cfg(all(test, not(warpset_host_tests)))]
mod build_tests;
mod builder;
mod encode;
mod filter;
mod filter_build;
mod filter_query;
mod function;
mod join;
mod lists;
mod node_lists;
mod number;
mod query;
mod rows;
mod search;
#[cfg(all(test, not(warpset_host_tests)))]
mod several_tests;
mod share;
mod source;
mod strategy;
mod supply;
mod tables;
mod watch;

pub use builder::Builder;
pub(crate) use builder::build_from_slice;
pub use filter::StaticFilter;
pub use function::RecSplit;
pub use number::Number;
pub use strategy::Strategy;
pub use warpset_gpu::batch::{DeviceKey, DeviceKeys128, DeviceStrings, Offset, StringVec};

//! Functions in device memory: built there, or brought there, and asked by kernels. The words are those that the CPU has for the
//! same keys and settings.

mod buckets;
mod build;
#[cfg(test)]
mod build_tests;
mod builder;
mod encode;
mod function;
mod host_find;
mod lists;
mod rows;
mod source;
mod watch;

pub use builder::Builder;
pub use function::RecSplit;

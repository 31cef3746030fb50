//! Functions in device memory: built there, or brought there, and asked by kernels. The words are those that the CPU has for the
//! same keys and settings.

mod function;

pub use function::RecSplit;

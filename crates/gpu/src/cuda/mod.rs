//! The CUDA executor.
//!
//! All driver functions are declared in [`binding`], with result codes as plain numbers, and found when the first one
//! is called. Host callbacks are not offered.
//!
//! # Order of frees
//!
//! Everything here runs on non-blocking streams; the legacy default stream is never used. Dropping a vector queues its
//! free after all work that any stream of the device holds at that moment, so memory is never handed out again while
//! a copy or a kernel queued earlier still uses it, whatever the order in which things are dropped.

mod binding;
mod device;
mod driver;
mod l2;
mod library;
mod memory;
mod module;
mod stream;

pub(crate) use device::{CudaDevice, count, open};
pub(crate) use driver::describe;
pub(crate) use stream::{CudaEvent, CudaStream};

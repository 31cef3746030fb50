//! The CUDA executor.
//!
//! # Which calls go through `cust`, and which do not
//!
//! | through `cust` 0.3.2 | why it is sound here |
//! | --- | --- |
//! | initialisation, driver version, enumeration, names, memory sizes, attributes known to CUDA 11.4 | plain queries |
//! | primary contexts: retain, make current, release | reference-counted by the driver; we check each result |
//! | modules: load, look a kernel up, unload | the module outlives its functions, both live in one entry |
//!
//! `cust` declares every driver function with a Rust enumeration as its result, and a code newer than CUDA 11.4 in it
//! would be undefined behaviour. The import library therefore answers `CUDA_ERROR_UNKNOWN` in its place and keeps the
//! true code aside, where [`driver::check_cust`] finds it.
//!
//! | declared in [`driver`] | because `cust` 0.3.2 |
//! | --- | --- |
//! | streams | drops the flag that makes a stream non-blocking, and cannot adopt a raw stream |
//! | waiting for events, and so events | destroys the event that a stream is made to wait for |
//! | device memory, copies, sets | frees twice after a cast, fails on length zero, needs a current context at drop, hides errors at drop, copies on the legacy default stream |
//! | pinned memory | is not portable between contexts |
//! | launches | take `cust` streams |
//! | the compiler's log | does not ask for it |
//! | attributes newer than CUDA 11.4, memory pools, dynamic shared memory above 48 KiB | lacks them |
//!
//! Host callbacks (`Stream::add_callback`, unsound in `cust`) are not offered at all.
//!
//! # Order of frees
//!
//! Everything here runs on non-blocking streams; the legacy default stream is never used. Dropping a vector queues its
//! free behind all work that any stream of the device holds at that moment, so memory is never handed out again while
//! a copy or a kernel queued earlier still uses it, whatever the order in which things are dropped.

mod device;
mod driver;
mod memory;
mod module;
mod stream;

pub(crate) use device::{CudaDevice, count, open};
pub(crate) use driver::describe;
pub(crate) use stream::{CudaEvent, CudaStream};

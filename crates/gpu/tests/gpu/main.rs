//! The whole API, on every executor that this machine has; and the CUDA executor against a driver that polices it.

mod deferred;
mod executors;
#[cfg(feature = "cuda")]
mod fake_driver;
#[cfg(feature = "cuda")]
mod late_binding;
mod runtime_kernels;
mod suite;

//! Kernels of methods exactly as published: yardsticks of the library's own methods, which no user depends on.
//!
//! - [`lsm`]: the GPU LSM, launched by the crate `papers-lsm`;
//! - [`quotient`]: builds and updates of quotient filters, launched by `papers-quotient`;
//! - [`open_addressing`]: the hash table that CUDA programs use as a set of integers.
//!
//! The crate is an ordinary program's crate of kernels, like `examples/own-kernel`. It uses the parts of
//! `warpset-kernels` for other crates, and its build script keeps the PTX beside it.

#![cfg_attr(target_arch = "nvptx64", no_std, feature(abi_ptx))]
// Functions that only bodies call, which the host compiles for the emulator.
#![cfg_attr(not(any(feature = "emulator", target_arch = "nvptx64")), allow(dead_code, unused_imports))]
// The arguments of kernels are single numbers and pointers.
#![allow(clippy::too_many_arguments)]

/// Declares kernels, with their bodies only on the device and for the emulator.
#[cfg(any(feature = "emulator", target_arch = "nvptx64"))]
macro_rules! kernel {
    ($($kernels:tt)*) => { warpset_simt::kernel! { #![module(crate::ptx)] $($kernels)* } };
}

/// Declares kernels by their names and arguments, which is all that launches on CUDA need.
#[cfg(not(any(feature = "emulator", target_arch = "nvptx64")))]
macro_rules! kernel {
    ($($kernels:tt)*) => { warpset_simt::kernel! { #![module(crate::ptx)] #![no_bodies] $($kernels)* } };
}

pub mod lsm;
pub mod open_addressing;
pub mod quotient;

/// Returns the module of all kernels here. The device build does not use it.
#[cfg(not(target_arch = "nvptx64"))]
const fn ptx(_: &str) -> Option<&'static warpset_simt::Module> {
    static MODULE: warpset_simt::Module = warpset_simt::Module {
        name: "papers_kernels",
        ptx: Some(warpset_simt::Ptx::Text(include_str!(concat!(env!("OUT_DIR"), "/papers_kernels.ptx")))),
        code: None, // the driver compiles the PTX
    };
    Some(&MODULE)
}

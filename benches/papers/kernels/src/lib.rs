//! Kernels of methods exactly as their papers have them: yardsticks of the library's own, which no user depends on.
//!
//! - [`lsm`]: the GPU LSM, launched by the crate `papers-lsm`;
//! - [`quotient`]: builds and updates of quotient filters, launched by `papers-quotient`;
//! - [`open_addressing`]: the hash table that CUDA programs take for a set of integers.
//!
//! The crate is a program's crate of kernels, such as `examples/own-kernel` is: it uses what `warpset-kernels` offers
//! to kernels of others, and its build script keeps the PTX beside it.

#![cfg_attr(target_arch = "nvptx64", no_std, feature(abi_ptx))]
// Kernels take what they need as arguments.
#![allow(clippy::too_many_arguments)]

pub mod lsm;
pub mod open_addressing;
pub mod quotient;

/// The module of all kernels here. The device build does not look at it.
#[cfg(not(target_arch = "nvptx64"))]
const fn ptx(_: &str) -> Option<&'static warpset_simt::Module> {
    static MODULE: warpset_simt::Module = warpset_simt::Module {
        name: "papers_kernels",
        ptx: Some(include_str!(concat!(env!("OUT_DIR"), "/papers_kernels.ptx"))),
        code: None, // the driver compiles the PTX
    };
    Some(&MODULE)
}

//! Every device kernel of Warpset, one module a structure: indexing and memory here, arithmetic in `warpset-core`.
//!
//! The crate is compiled twice. For the host it is an ordinary library with all modules: the kernels run in the
//! emulator, and [`ptx`] hands out their PTX. For `nvptx64-nvidia-cuda`, `cargo xtask ptx` compiles it once a module,
//! with the Cargo feature of the module's name, and writes `ptx/<module>.ptx`.
//!
//! This file declares modules and holds nothing that reaches the PTX, so it is not part of what the PTX is stamped
//! with: a new module leaves the PTX of the others valid.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]

#[cfg(any(not(target_arch = "nvptx64"), feature = "selftest"))]
pub mod selftest;

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(not(target_arch = "nvptx64"))]
mod launch_bounds;
#[cfg(not(target_arch = "nvptx64"))]
pub mod stamp;

#[cfg(not(target_arch = "nvptx64"))]
pub use launch_bounds::with_launch_bounds;

/// The PTX of every kernel in `module`, as `cargo xtask ptx` made it; `None` if there is no such module.
#[cfg(not(target_arch = "nvptx64"))]
pub fn ptx(module: &str) -> Option<&'static str> {
    MODULES.iter().find(|(name, _)| *name == module).map(|(_, text)| *text)
}

/// Every module that has kernels, with its PTX.
///
/// A new module is a line in this table, a feature in `Cargo.toml`, a `mod` above and, until `cargo xtask ptx` has
/// written it, an empty file in `ptx/`.
#[cfg(not(target_arch = "nvptx64"))]
pub const MODULES: &[(&str, &str)] = &[("selftest", include_str!("../ptx/selftest.ptx"))];

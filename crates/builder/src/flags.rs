//! Command line of the device compiler: the release, the target, flags and profile.

/// The release of Rust that compiles kernels. One exact release, because the PTX it generates is checked in.
pub const RUST_RELEASE: &str = "1.96.0";

/// The target of the kernels.
pub const TARGET: &str = "nvptx64-nvidia-cuda";

/// The architecture that PTX is compiled for unless the builder is told otherwise: that PTX runs on every later one
/// too.
pub const DEFAULT_ARCHITECTURE: &str = "sm_80";

/// The PTX version that the text is written in unless the builder is told otherwise: drivers for CUDA 12.0 read it.
pub const DEFAULT_PTX_VERSION: u32 = 80;

/// The release profile of the device build, as Cargo's environment variables.
pub(crate) const PROFILE: &[(&str, &str)] = &[
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "false"),
    ("CARGO_PROFILE_RELEASE_LTO", "fat"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3"),
    ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "false"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
];

/// Returns the compiler flags of the device build. `docs/architecture.md` says what each of them prevents.
pub(crate) fn rust_flags(architecture: &str, ptx_version: u32) -> Vec<String> {
    let fixed = [
        "-Zunstable-options",
        "-Cpanic=immediate-abort",
        "-Zmir-enable-passes=-JumpThreading",
        "-Cllvm-args=-unroll-threshold=5000",
    ];
    let chosen = [format!("-Ctarget-cpu={architecture}"), format!("-Ctarget-feature=+ptx{ptx_version}")];
    fixed.into_iter().map(str::to_owned).chain(chosen).collect()
}

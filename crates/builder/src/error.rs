//! Errors of builds, each with its remedy.

use std::{fmt, io, path::PathBuf};

use crate::{
    assemble::NoAssembler,
    flags::TARGET,
    lint::{self, Finding},
    stamp::Stale,
    toolchain::NoDeviceToolchain,
};

/// Reason why kernels could not be compiled, or were refused.
///
/// `Debug` prints the same text as `Display`, so that a build script whose `main` returns this error shows it readably.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder has no manifest that names a package.
    #[error("{} is no crate of kernels: {why}", folder.display())]
    NoCrate {
        /// The folder that the builder was given.
        folder: PathBuf,
        /// The missing part.
        why: String,
    },
    /// No compiler can build the kernels.
    #[error(transparent)]
    NoDeviceToolchain(#[from] NoDeviceToolchain),
    /// `ptxas` was requested and was not found.
    #[error(transparent)]
    NoAssembler(#[from] NoAssembler),
    /// The compiler refuses the kernels.
    #[error("{name} does not compile for {TARGET}; the compiler's messages say why")]
    DoesNotCompile {
        /// The crate, or its module.
        name: String,
    },
    /// The compiler succeeded and left no PTX or no list of sources.
    #[error("the compiler left no {what} in {}: remove {} and build again", file.display(), target.display())]
    NoOutput {
        /// Name of the missing part.
        what: &'static str,
        /// Expected place of the file.
        file: PathBuf,
        /// The folder of the device build.
        target: PathBuf,
    },
    /// The PTX contains what costs speed or correctness.
    #[error(
        "{name} compiles to PTX that is refused:\n  {}\n{}",
        lint::summary(findings).join("\n  "), lint::remedies(findings)
    )]
    Refused {
        /// The crate, or its module.
        name: String,
        /// Every statement that is refused.
        findings: Vec<Finding>,
    },
    /// `ptxas` does not take the PTX.
    #[error("ptxas refuses {name} for {architecture}:\n{log}")]
    DoesNotAssemble {
        /// The crate, or its module.
        name: String,
        /// The architecture that it was assembled for.
        architecture: String,
        /// Message of `ptxas`.
        log: String,
    },
    /// `fatbinary` makes no container of the device code.
    #[error("fatbinary makes no container of {name}:\n{log}")]
    NoContainer {
        /// The crate, or its module.
        name: String,
        /// Message of `fatbinary`.
        log: String,
    },
    /// Kernels need more registers than exist, and did not ask to spill.
    #[error(
        "{name} spills registers on {architecture} in {}: keep fewer values per thread, lower the blocks of the \
         kernel's `#[launch_bounds(threads, blocks)]`, or allow it by `warpset_simt::allow::spill()`",
        kernels.join(", ")
    )]
    Spills {
        /// The crate, or its module.
        name: String,
        /// The architecture that it was assembled for.
        architecture: String,
        /// The kernels.
        kernels: Vec<String>,
    },
    /// The PTX that is checked in is stale, and there is no compiler to renew it.
    #[error("{} is stale: {why}.\nIt has to be compiled again, and {missing}", path.display())]
    StaleWithoutToolchain {
        /// The PTX file.
        path: PathBuf,
        /// Difference from the sources.
        why: Stale,
        /// Places where no compiler was found, and how to install one.
        missing: NoDeviceToolchain,
    },
    /// An environment variable has a meaningless value.
    #[error("{variable} is `{value}`; {allowed}")]
    InvalidSetting {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// Values that the setting may have.
        allowed: &'static str,
    },
    /// A file could not be read or written, or a program not be started.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

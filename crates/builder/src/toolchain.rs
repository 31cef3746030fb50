//! The compiler of the device build: one exact release of Rust, with the sources of its standard library.

use std::{
    env, fmt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::flags::RUST_RELEASE;

/// Environment variables that name the compiler, and Cargo if it does not lie beside the compiler.
pub(crate) const RUSTC_VARIABLE: &str = "WARPSET_DEVICE_RUSTC";
pub(crate) const CARGO_VARIABLE: &str = "WARPSET_DEVICE_CARGO";

/// A compiler that can build the kernels.
#[derive(Debug)]
pub struct DeviceToolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// The Cargo that goes with it.
    pub cargo: PathBuf,
    llvm: String,
}

/// No compiler can build the kernels.
#[derive(Debug, thiserror::Error)]
#[error(
    "kernels need rustc {RUST_RELEASE} with the sources of the standard library:{}\n\
     Install it with\n  \
     rustup toolchain install {RUST_RELEASE} --profile minimal --component rust-src\n\
     or, on Debian,\n  \
     apt-get install rustc-web cargo-web rust-web-src\n\
     or name it in {RUSTC_VARIABLE} and {CARGO_VARIABLE}.",
    .rejected.iter().map(|(from, why)| format!("\n  {from}: {why}")).collect::<String>()
)]
pub struct NoDeviceToolchain {
    /// Candidates that were tried, and the fault of each.
    pub rejected: Vec<(String, Unfit)>,
}

/// Fault of one candidate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// There is no such file.
    #[error("not there")]
    Missing,
    /// It could not be started, or failed.
    #[error("does not run: {0}")]
    DoesNotRun(std::io::Error),
    /// It is of another release.
    #[error("is {0}")]
    OtherRelease(String),
    /// The sources of the standard library, from which `core` is compiled for the device, are missing in this folder.
    #[error("has no sources of the standard library in {}", .0.display())]
    NoSources(PathBuf),
    /// Its Cargo is missing.
    #[error("has no Cargo at {}", .0.display())]
    NoCargo(PathBuf),
}

impl DeviceToolchain {
    /// Finds the compiler that the environment names, else the system's, else rustup's.
    ///
    /// # Errors
    /// No compiler of that release was found; the message lists the candidates and the way to install one.
    pub fn find() -> Result<Self, NoDeviceToolchain> {
        if let Some(rustc) = env::var_os(RUSTC_VARIABLE).map(PathBuf::from) {
            return Self::probe(&rustc)
                .map_err(|unfit| NoDeviceToolchain { rejected: vec![(RUSTC_VARIABLE.to_owned(), unfit)] });
        }
        let mut rejected = Vec::new();
        match Self::probe(Path::new("/usr/bin/rustc")) {
            Ok(found) => return Ok(found),
            Err(unfit) => rejected.push(("/usr/bin/rustc".to_owned(), unfit)),
        }
        match rustup_compiler().ok_or(Unfit::Missing).and_then(|rustc| Self::probe(&rustc)) {
            Ok(found) => Ok(found),
            Err(unfit) => {
                rejected.push((format!("toolchain {RUST_RELEASE} of rustup"), unfit));
                Err(NoDeviceToolchain { rejected })
            }
        }
    }

    fn probe(rustc: &Path) -> Result<Self, Unfit> {
        if !rustc.is_file() {
            return Err(Unfit::Missing);
        }
        let version = output(Command::new(rustc).arg("-vV")).map_err(Unfit::DoesNotRun)?;
        let field = |name: &str| version.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown");
        if field("release: ") != RUST_RELEASE {
            return Err(Unfit::OtherRelease(version.lines().next().unwrap_or_default().to_owned()));
        }
        let sysroot = output(Command::new(rustc).args(["--print", "sysroot"])).map_err(Unfit::DoesNotRun)?;
        let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
        if !sources.join("core/Cargo.toml").is_file() {
            return Err(Unfit::NoSources(sources));
        }
        let cargo = env::var_os(CARGO_VARIABLE).map_or_else(|| rustc.with_file_name("cargo"), PathBuf::from);
        if !cargo.is_file() {
            return Err(Unfit::NoCargo(cargo));
        }
        Ok(Self { rustc: rustc.to_path_buf(), cargo, llvm: field("LLVM version: ").to_owned() })
    }
}

impl fmt::Display for DeviceToolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (Rust {RUST_RELEASE}, LLVM {})", self.rustc.display(), self.llvm)
    }
}

/// Finds the compiler of rustup's toolchain of that release. By path, because rustup's own proxies would set variables
/// that the device build must not see.
fn rustup_compiler() -> Option<PathBuf> {
    let path = output(Command::new("rustup").args(["which", "--toolchain", RUST_RELEASE, "rustc"])).ok()?;
    let path = PathBuf::from(path.trim());
    path.is_file().then_some(path)
}

/// Returns the output of a command, if it succeeds.
fn output(command: &mut Command) -> std::io::Result<String> {
    // The library path that rustup sets for the host's compiler is wrong for any other.
    let output = command.env_remove("LD_LIBRARY_PATH").output()?;
    if !output.status.success() {
        return Err(std::io::Error::other(output.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_what_was_tried_and_what_to_install() {
        let unfit = DeviceToolchain::probe(Path::new("/no/such/rustc")).expect_err("there is none");
        let error = NoDeviceToolchain { rejected: vec![("/no/such/rustc".to_owned(), unfit)] }.to_string();
        assert!(error.contains("/no/such/rustc: not there"), "{error}");
        assert!(error.contains("rustup toolchain install 1.96.0"), "{error}");
        assert!(error.contains("apt-get install rustc-web"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_is_no_compiler_is_refused() {
        let unfit = DeviceToolchain::probe(Path::new("/bin/true")).expect_err("prints no release");
        assert!(matches!(unfit, Unfit::OtherRelease(_)), "{unfit}");
        let unfit = DeviceToolchain::probe(Path::new("/bin/false")).expect_err("fails");
        assert!(matches!(unfit, Unfit::DoesNotRun(_)), "{unfit}");
    }
}

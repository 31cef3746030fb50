//! `cargo xtask`: the project's own commands, one file each, so that no shell script has to know how things are built.

#[cfg(feature = "bench")]
mod bench;
mod dist;
#[cfg(feature = "bench")]
mod headline;
#[cfg(feature = "bench")]
mod input;
mod package;
mod ptx;
#[cfg(feature = "bench")]
mod record;
#[cfg(feature = "bench")]
mod report;
#[cfg(feature = "bench")]
mod show;
mod soak;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

/// Warpset's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Verify and measure the structures on this machine
    #[cfg(feature = "bench")]
    Bench(bench::Args),
    /// Pack tests, benches, data and PTX for a GPU node without a Rust toolchain
    Dist(dist::Args),
    /// Pack the crates, build a program from the packages, check what the feature `cuda` adds to it
    Package(package::Args),
    /// Compile the kernels to PTX, or check the PTX that is checked in
    Ptx(ptx::Args),
    /// Turn the JSON of `bench` into one HTML page
    #[cfg(feature = "bench")]
    Report(report::Args),
    /// Run the tests on emulated GPUs again and again, each time with other schedules
    Soak(soak::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Package(args) => package::run(&args),
        Command::Ptx(args) => ptx::run(&args),
        #[cfg(feature = "bench")]
        Command::Report(args) => report::run(&args),
        Command::Soak(args) => soak::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not as `Debug`: whoever has RUST_BACKTRACE set for panics does not want a backtrace under every fault.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace: the parent of this package's, asked at run time so that a packed executable follows
/// the folder it was packed into.
fn workspace_root() -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&package).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
